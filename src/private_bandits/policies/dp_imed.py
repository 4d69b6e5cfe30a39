"""DP-IMED: the arm of the minimum empirical divergence under Laplace noise, for pure differential privacy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from private_bandits.arrays import Floats
from private_bandits.policies.private_divergence import private_divergence
from private_bandits.policies.running_sum import RunningSumPolicy


@dataclass(frozen=True)
class DPIMED(RunningSumPolicy):
    """DP-IMED (Azize, Wu, Honda, Orabona, Ito and Basu 2025, "Optimal Regret of Bandits under Differential Privacy").

    After every arm has had its first batch, plays a batch of the arm with the least

        n d(m, m*) + log n        d(x, y) = inf over z in [x, y] of epsilon (z - x) + kl(z, y)

    n: all rewards that were released of the arm, m: their mean with all Laplace noises in it, clipped to [0, 1]; m*:
    the largest m. Batch l of an arm holds ceil(alpha^l) rewards (running_sum.py). Ties go to the first arm. Rewards in
    another range are scaled to [0, 1].

    Guaranteed: epsilon-pure DP of the published actions, in the interactive model, for every alpha. The regret bound
    is the publication's: for Bernoulli rewards, as T grows, the least that epsilon-DP allows times a constant that is
    close to 1 for alpha close to 1.

    alpha: with less, choices follow the rewards sooner and sums hold more noises. The default is our choice: with
    epsilon below 1, smaller ratios give up the best arm too often after an unlucky start. Some runs still do, and then
    have very large regret (docs/choosing.md).

    >>> from private_bandits import PureDP
    >>> DPIMED(n_arms=2, budget=PureDP(1)).budget
    PureDP(epsilon=1.0)
    """

    name: ClassVar[str] = "dp-imed"
    in_words: ClassVar[str] = (
        "For each arm the program asks how hard it would be to believe, after all that was released, that this arm is "
        "as good as the best one. The arm of which that is easiest to believe is given; arms that were seldom given "
        "get some preference. So arms that look bad are given less and less often."
    )
    chooses_late = True

    def index(self, means: Floats, counts: Floats, step: Any, width: float) -> Floats:
        """The number above with a minus, as the largest index is played."""
        best = means.max(axis=-1, keepdims=True)
        found: Floats = -(counts * private_divergence(means, best, self.budget.level) + np.log(counts))
        return found
