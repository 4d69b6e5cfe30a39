"""How much noise a budget takes: the paper's constant b, and the one that policies here use.

Every upper bound of this package depends on a Gaussian budget through b alone, the variance of the noise in units of
the squared sensitivity. That is the paper's extension from zCDP to (epsilon, delta) and Renyi DP.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from private_bandits.budget import ApproxDP, Budget, zCDP
from private_bandits.errors import InvalidInput


@dataclass(frozen=True)
class Calibration:
    """b of a budget: the paper's, and what is used here. proven: whether the paper's keeps the budget."""

    paper: float
    used: float
    formula: str
    proven: bool

    @property
    def as_zcdp(self) -> zCDP:
        """The zCDP budget with as much noise as the paper's, for the functions of this package."""
        return zCDP(1 / (2 * self.paper))


def calibration(budget: Budget) -> Calibration:
    """The paper's Theorem "The Gaussian Mechanism" beside `variance_factor`.

    zCDP: b = 1/(2 rho). Renyi DP: alpha/(2 epsilon). (epsilon, delta): 2 log(1.25/delta)/epsilon^2, which is proven for
    epsilon <= 1 only and too small for large epsilon; policies here take the b of the zCDP that converts to it.

    >>> calibration(zCDP(0.1)).paper == calibration(zCDP(0.1)).used
    True
    >>> found = calibration(ApproxDP(0.5, 1e-6))
    >>> found.proven, round(found.paper, 3), round(found.used, 3)
    (True, 112.309, 75.284)
    """
    if budget.noise != "gaussian":
        raise InvalidInput(f"{budget} is not kept by Gaussian noise: give zCDP, ApproxDP or RenyiDP")
    if isinstance(budget, ApproxDP):
        b = 2 * math.log(1.25 / budget.delta) / budget.epsilon**2
        return Calibration(b, budget.variance_factor, "2 log(1.25/delta)/epsilon^2", budget.epsilon <= 1)
    formula = "1/(2 rho)" if isinstance(budget, zCDP) else "alpha/(2 epsilon)"
    return Calibration(budget.variance_factor, budget.variance_factor, formula, True)
