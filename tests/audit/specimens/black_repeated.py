"""Black specimens that release a reward more often than they charge it."""

from __future__ import annotations

import math

from tests.audit.specimens.black_correct import Tree, TwoSums
from tests.audit.specimens.black_parts import BlackBox, Doubling
from tests.audit.specimens.listing import specimen


class RedrawAtAsk(Doubling):
    def noisy_mean(self, arm: int, total: float, n: int) -> float:
        self.__dict__.setdefault("kept", {})[arm] = (total, n)
        return super().noisy_mean(arm, total, n)

    def choose(self) -> int:
        for arm, (total, n) in list(self.__dict__.get("kept", {}).items()):
            self.means[arm] = super().noisy_mean(arm, total, n)
        self.choice = self.best()
        return super().choose()


@specimen(cost=math.inf)
def make_black_redraw_at_ask() -> BlackBox:
    """Noise of the last sums is drawn anew at every ask: rho times the number of asks, without bound."""
    return RedrawAtAsk(2)


@specimen(cost=1.0, hard=True)
def make_black_reward_in_two_sums() -> BlackBox:
    """Each reward is in two releases and charged for one: 2 rho."""
    return TwoSums(2)


class Cumulative(Doubling):
    def release(self, arm: int) -> None:
        total, n = self.sums[arm], self.counts[arm]
        super().release(arm)
        self.released[arm] = n
        self.sums[arm], self.counts[arm] = total, n

    def due(self, arm: int, reward: float) -> bool:
        return self.counts[arm] >= 2 * self.released[arm]


@specimen(cost=math.inf, hard=True)
def make_black_cumulative_doubling() -> BlackBox:
    """No forgetting: at each doubling the sum of all rewards leaves with fresh noise: rho a release."""
    return Cumulative(2)


class CumulativeAlways(Cumulative):
    def due(self, arm: int, reward: float) -> bool:
        return True


@specimen(rho=0.1, cost=math.inf)
def make_black_cumulative_every_tell() -> BlackBox:
    """No forgetting: at each tell the sum of all rewards leaves with fresh noise: rho a tell."""
    return CumulativeAlways(2, 0.1)


@specimen(cost=4.0, hard=True)
def make_black_tree_uncharged() -> BlackBox:
    """The binary mechanism of 8 levels with the noise of one: up to 8 rho."""
    return Tree(2, 0.5, charged=False)
