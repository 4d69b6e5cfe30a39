"""AdaC-UCB: upper confidence bounds under Gaussian noise, for finitely many arms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from private_bandits.arrays import Floats
from private_bandits.policies.doubling import ConfidenceBoundPolicy


@dataclass(frozen=True)
class AdaCUCB(ConfidenceBoundPolicy):
    """AdaC-UCB ("Concentrated Differential Privacy for Bandits", Appendix C, Algorithm 4).

    An arm is played until its count of rewards has doubled, and their sum is released. Index of an arm at step t, for
    rewards in [0, 1]:

        m + sqrt((1/(2n) + 2b/n^2) beta log t)

    n: rewards in the arm's last release, m: their noisy mean, b: variance factor of the budget (1/(2 rho) for
    zCDP, 0 without privacy). The noise of m was drawn once, at the release.

    Guaranteed, for every beta: rho-Interactive zCDP (Theorem "Privacy of AdaC-UCB"). At step t an index is below the
    arm's mean with a probability of at most t^-beta for each number of releases. The regret bound of Appendix C needs
    beta > 3 and rewards in [0, 1]; the paper's experiment uses beta = 1. AdaCIMED has less regret for the same budget,
    without a proven bound of it.

    >>> from private_bandits import zCDP
    >>> AdaCUCB(n_arms=5, budget=zCDP(0.1)).beta
    3.1
    >>> AdaCUCB(arms=["aspirin", "placebo"], budget=zCDP(1)).arm_names
    ('aspirin', 'placebo')
    """

    name: ClassVar[str] = "adac-ucb"
    supported_budgets: ClassVar[tuple[str, ...]] = ("zCDP", "ApproxDP", "RenyiDP", "NoPrivacy")
    source: ClassVar[str] = "Concentrated Differential Privacy for Bandits, Appendix C"
    in_words: ClassVar[str] = (
        "Each arm gets a score: its mean so far, plus an allowance that is the larger, the less is known of "
        "the arm. The arm of the best score is given until it has as many new outcomes as its last release "
        "had. Then the scores are computed anew."
    )
    alternative_hint: ClassVar[str] = "For PureDP use AdaPUCB, whose Laplace noise keeps it."
    former_variants: ClassVar[Mapping[str, str]] = {
        "tight": "AdaCIMED (adac-imed) replaced it, with less regret for the same budget, as in "
        'AdaCIMED(arms=["A", "B"], budget=zCDP(0.1))'
    }
    waits_for = "none"
    chooses_late = True

    def index(self, means: Floats, counts: Floats, step: Any, width: float) -> Floats:
        """The paper's Eq. for the private index of one release, scaled to rewards of any width."""
        b = self.budget.variance_factor
        spread = (0.5 / counts + 2.0 * b / counts**2) * (self.beta * np.log(step))
        found: Floats = means + width * np.sqrt(spread)
        return found
