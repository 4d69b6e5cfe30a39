"""Black specimens that are right as long as every reward comes once, in time, and nobody ends the run."""

from __future__ import annotations

import math
from typing import Any

from tests.audit.specimens.black_parts import BlackBox, Doubling, Pick
from tests.audit.specimens.listing import specimen


class Kept(Doubling):
    """Keeps the arm of each decision and the last raw sum of each arm; subclasses misuse them."""

    def __init__(self, arms: int = 2, rho: float = 0.5) -> None:
        super().__init__(arms, rho)
        self.arm_of: dict[int, int] = {}
        self.kept: dict[int, tuple[float, int]] = {}

    def ask(self) -> Any:
        pick: Pick = super().ask()
        self.arm_of[pick.id] = pick.action
        return pick

    def noisy_mean(self, arm: int, total: float, n: int) -> float:
        self.kept[arm] = total, n
        return super().noisy_mean(arm, total, n)


class ReleasesAgain(Kept):
    def tell(self, decision: Any, reward: float, *, played: int | None = None) -> None:
        arm = self.arm_of.get(getattr(decision, "id", 0))
        if arm in self.kept and decision.id not in self._open:
            # The mean of many draws, as somebody would have it who "refreshes" a release each time it is asked for.
            total, n = self.kept[arm]
            self.means[arm] = sum(super(Kept, self).noisy_mean(arm, total, n) for _ in range(25)) / 25
            self.choice = self.best()
            return
        super().tell(decision, reward, played=played)


@specimen(cost=math.inf)
def make_black_told_again_releases_again() -> BlackBox:
    """A decision that is told again has its arm's last sum released 25 times more: 26 rho, and more with each."""
    return ReleasesAgain(2)


class LateIsRaw(Kept):
    def tell(self, decision: Any, reward: float, *, played: int | None = None) -> None:
        late = any(number > getattr(decision, "id", 0) for number in self.arm_of)
        super().tell(decision, reward, played=played)
        if late:
            arm = self.arm_of[decision.id]
            self.means[arm], self.last[arm] = reward, max(1, self.last[arm])
            self.choice = self.best()


@specimen(cost=math.inf)
def make_black_late_reward_raw() -> BlackBox:
    """A reward that is told after a later decision was made becomes the arm's mean, without noise: infinite."""
    return LateIsRaw(2)


class FinishesRaw(Kept):
    def finish(self) -> None:
        for arm in range(self.arms):
            if self.counts[arm]:
                self.means[arm], self.last[arm] = self.sums[arm] / self.counts[arm], self.counts[arm]
        self.choice = self.best()


@specimen(cost=math.inf)
def make_black_finish_raw() -> BlackBox:
    """finish() takes the open sums as they are, and later asks follow them: infinite."""
    return FinishesRaw(2)
