"""DP-KLUCB: upper confidence bounds by divergence under Laplace noise, for pure differential privacy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from private_bandits.arrays import Floats
from private_bandits.policies.private_divergence import largest_mean
from private_bandits.policies.running_sum import RunningSumPolicy


@dataclass(frozen=True)
class DPKLUCB(RunningSumPolicy):
    """DP-KLUCB (Azize, Wu, Honda, Orabona, Ito and Basu 2025, "Optimal Regret of Bandits under Differential Privacy").

    After every arm has had its first batch, plays a batch of the arm with the largest index. At step t that is

        the largest q with  n d(m, q) <= log t        d(x, y) = inf over z in [x, y] of epsilon (z - x) + kl(z, y)

    n: all rewards that were released of the arm, m: their mean with all Laplace noises in it, clipped to [0, 1]. Batch
    l of an arm holds ceil(alpha^l) rewards (running_sum.py). Ties go to the first arm. Rewards in another range are
    scaled to [0, 1].

    Guaranteed: epsilon-pure DP of the published actions, in the interactive model, for every alpha. The regret bound
    is the publication's: for Bernoulli rewards, as T grows, the least that epsilon-DP allows times a constant that is
    close to 1 for alpha close to 1.

    alpha: with less, choices follow the rewards sooner and sums hold more noises. The default is our choice: with
    epsilon below 1, smaller ratios give up the best arm too often after an unlucky start.

    >>> from private_bandits import PureDP
    >>> DPKLUCB(n_arms=2, budget=PureDP(1)).budget
    PureDP(epsilon=1.0)
    """

    name: ClassVar[str] = "dp-klucb"
    in_words: ClassVar[str] = (
        "Each arm gets a score: the largest mean that can still be believed of it, from what was released. "
        "The arm of the best score is given until it has some more outcomes. Then the scores are computed "
        "anew."
    )
    chooses_late = True

    def index(self, means: Floats, counts: Floats, step: Any, width: float) -> Floats:
        """The index above."""
        return largest_mean(means, np.log(step) / counts, self.budget.level)
