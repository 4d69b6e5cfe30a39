"""What several experiments share: budgets, parameters, scales, and what holds in a setting, in words."""

from __future__ import annotations

import math
from typing import Any

from private_bandits.experiments.run.experiment import Options

RHOS_FINE = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, math.inf)
"""Budgets where one more costs next to nothing."""
COARSE = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0, math.inf)
"""Budgets where every step is played."""
RHOS_PLACEMENT = (0.001, 0.01, 0.1, 1.0)
"""Budgets of the paper's comparison of places for the noise, and of its tables."""
RHOS_RIVALS = (0.01, 0.1, 1.0, math.inf)
"""Budgets at which rivals are compared."""

MEANS = (0.75, 0.625, 0.5, 0.375, 0.25)
DELTA = (("delta", 1e-3),)
AS_PRINTED: Options = (("regulariser", 0.1), ("growth", 1.0), ("delta", 1e-3))
PROVEN: Options = (("regulariser", 1.0), ("delta", 1e-3))
FREE, VANISHES, WINS = "free-privacy", "price-vanishes", "in-between-wins"
SCALE_EXTRA: dict[str, Any] = {"horizon": 200_000, "runs": 20, "quick": (10**4, 5), "full": (10**6, 100)}
"""The scale of what the paper lacks."""

OUT_OF_RANGE = (
    "Rewards are <theta, a> + N(0, 1), as in the paper's experiment, and leave the range [-1, 1] that the noise of "
    "the policies is calibrated to: no privacy holds for these runs. (A live agent clips, and keeps its budget.) "
)
STRICT_FINITE = (
    "Everything promised holds: rewards are 0 or 1, so live each policy would keep its budget, and beta = 3.1, so the "
    "paper's regret bound of AdaC-UCB (beta > 3) holds as well."
)
STRICT_LINEAR = (
    "Everything promised holds: actions have length 1 and rewards are +1 or -1, with P(+1) = (1 + <theta, a>)/2, so "
    "live each policy would keep its budget, and widths fail with probability delta = 0.001 at most."
)
STRICT_CONTEXTUAL = (
    "Everything promised holds: contexts are scaled into the unit ball and rewards are +1 or -1, with P(+1) = "
    "(1 + <theta, a>)/2, so live each policy would keep its budget; the regulariser is 1, which the paper's proof "
    "of its regret bound needs."
)
PRIVATE_TOO = (
    " AdaC-OFUL-private and Shariff-Sheffet protect contexts as well (joint DP): a stronger promise, which costs more."
)
