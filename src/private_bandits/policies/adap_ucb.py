"""AdaP-UCB: upper confidence bounds under Laplace noise, for pure differential privacy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from private_bandits.arrays import Floats
from private_bandits.policies.doubling import ConfidenceBoundPolicy


@dataclass(frozen=True)
class AdaPUCB(ConfidenceBoundPolicy):
    """AdaP-UCB (Azize and Basu 2022, "When Privacy Meets Partial Information").

    Index of an arm at step t, for rewards in [0, 1]:

        m + sqrt(beta log t / (2n)) + beta log t / (epsilon n)

    n: rewards in the arm's last release, m: their mean with Laplace noise of scale 1/(epsilon n), drawn once.
    Laplace noise is not subgaussian, hence the second term.

    Guaranteed: epsilon-pure DP of the published actions, in the interactive model, for every beta.

    >>> from private_bandits import PureDP
    >>> AdaPUCB(n_arms=2, budget=PureDP(1)).budget
    PureDP(epsilon=1.0)
    """

    name: ClassVar[str] = "adap-ucb"
    supported_budgets: ClassVar[tuple[str, ...]] = ("PureDP", "NoPrivacy")
    source: ClassVar[str] = "Azize and Basu 2022, When Privacy Meets Partial Information"
    in_words: ClassVar[str] = (
        "Each arm gets a score: its mean so far, plus an allowance that is the larger, the less is known of "
        "the arm. The arm of the best score is given until it has as many new outcomes as its last release "
        "had. Then the scores are computed anew."
    )
    alternative_hint: ClassVar[str] = "For zCDP, ApproxDP and RenyiDP use AdaCUCB, whose Gaussian noise is smaller."
    chooses_late = True

    def index(self, means: Floats, counts: Floats, step: Any, width: float) -> Floats:
        """The index above, scaled to rewards of any width."""
        log_step = self.beta * np.log(step)
        found: Floats = means + width * (np.sqrt(0.5 / counts * log_step) + log_step / (self.budget.level * counts))
        return found
