"""AdaC-UCB: upper confidence bounds under Gaussian noise, for finitely many arms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from private_bandits.policies.doubling import Array, ConfidenceBoundPolicy


@dataclass(frozen=True)
class AdaCUCB(ConfidenceBoundPolicy):
    """AdaC-UCB ("Concentrated Differential Privacy for Bandits", Appendix C, Algorithm 4).

    Index of an arm at step t, for rewards in [0, 1]:

        m + sqrt((1/(2n) + 2b/n^2) beta log t)

    n: rewards in the arm's last release, m: their noisy mean, b: variance factor of the budget (1/(2 rho) for
    zCDP, 0 without privacy). The noise of m was drawn once, at the release.

    Guaranteed: rho-Interactive zCDP (Theorem "Privacy of AdaC-UCB"), for every beta. The regret bound of
    Appendix C needs beta > 3 and rewards in [0, 1]; the paper's experiment uses beta = 1.

    >>> from private_bandits import zCDP
    >>> AdaCUCB(n_arms=5, budget=zCDP(0.1)).beta
    3.1
    >>> AdaCUCB(arms=["aspirin", "placebo"], budget=zCDP(1)).arm_names
    ('aspirin', 'placebo')
    """

    name: ClassVar[str] = "adac-ucb"
    notions: ClassVar[tuple[str, ...]] = ("zCDP", "ApproxDP", "RenyiDP", "NoPrivacy")
    source: ClassVar[str] = "Concentrated Differential Privacy for Bandits, Appendix C"
    serves_instead: ClassVar[str] = "For PureDP use AdaPUCB, whose Laplace noise keeps it."

    def index(self, means: Array, counts: Array, step: Any, width: float) -> Array:
        """The paper's Eq. for the private index, scaled to rewards of any width."""
        b = self.promise.variance_factor
        spread = (0.5 / counts + 2.0 * b / counts**2) * (self.beta * np.log(step))
        found: Array = means + width * np.sqrt(spread)
        return found
