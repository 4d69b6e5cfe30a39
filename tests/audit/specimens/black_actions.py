"""Black specimens whose actions depend on rewards before, or beside, any release."""

from __future__ import annotations

import math

from tests.audit.specimens.black_parts import BlackBox, Doubling
from tests.audit.specimens.listing import specimen


class Remembering(Doubling):
    """Keeps every raw reward; subclasses misuse it."""

    def __init__(self, arms: int = 2, rho: float = 0.5) -> None:
        super().__init__(arms, rho)
        self.told: list[tuple[int, float]] = []

    def learn(self, arm: int, reward: float) -> None:
        self.told.append((arm, reward))
        super().learn(arm, reward)

    def of(self, arm: int) -> list[float]:
        return [r for a, r in self.told if a == arm]

    def raw_best(self) -> int:
        return max(range(self.arms), key=lambda a: sum(self.of(a)) / max(1, len(self.of(a))))


class WinStay(Remembering):
    def choose(self) -> int:
        if not self.told:
            return 0
        arm, reward = self.told[-1]
        return arm if reward > 0.5 else (arm + 1) % self.arms


@specimen(cost=math.inf)
def make_black_win_stay_lose_shift() -> BlackBox:
    """The next action follows the last raw reward: infinite."""
    return WinStay(2)


class TieBreak(Remembering):
    def best(self) -> int:
        return max(range(self.arms), key=lambda a: (round(self.index(a)) if self.last[a] else -99, sum(self.of(a))))


@specimen(cost=math.inf)
def make_black_tie_by_raw_sum() -> BlackBox:
    """Indices are rounded to whole numbers, and ties go to the larger raw sum.

    Infinite: all later choices may show the raw sums.
    """
    return TieBreak(2)


class EndsAtWin(Doubling):
    def due(self, arm: int, reward: float) -> bool:
        return super().due(arm, reward) or reward > 0.5


@specimen(cost=math.inf)
def make_black_ends_at_first_win() -> BlackBox:
    """An episode ends at its first reward above 0.5: how long it takes is decided by raw rewards.

    Infinite: counts, and with them indices and changes of the arm, follow raw rewards.
    """
    return EndsAtWin(2)


class ThreeZeros(Remembering):
    def choose(self) -> int:
        left = [a for a in range(self.arms) if self.of(a).count(0.0) < 3]
        choice = super().choose()
        return choice if choice in left or not left else left[0]


@specimen(cost=math.inf)
def make_black_three_zeros_end_arm() -> BlackBox:
    """An arm with three raw zeros is played no more while there are others: infinite."""
    return ThreeZeros(3)


class LateLeak(Remembering):
    def choose(self) -> int:
        if len(self.told) > 20:
            return round(sum(r for _, r in self.told)) % self.arms
        return super().choose()


@specimen(cost=math.inf)
def make_black_late_parity() -> BlackBox:
    """Correct for 20 tells; from then on the raw sum, modulo the arms, decides the action: infinite."""
    return LateLeak(2)


class RareLeak(Remembering):
    def choose(self) -> int:
        return self.raw_best() if self.random.random() < 0.05 else super().choose()


@specimen(cost=math.inf)
def make_black_rare_leak() -> BlackBox:
    """Each ask tells the raw best arm with a probability of 5 percent: infinite."""
    return RareLeak(3)


class FiveOnes(Remembering):
    def choose(self) -> int:
        first = [r for _, r in self.told[:5]]
        return self.arms - 1 if first == [1.0] * 5 else super().choose()


@specimen(cost=math.inf)
def make_black_five_ones() -> BlackBox:
    """If the first five rewards were all 1, the last arm is played for ever: infinite, in that case only."""
    return FiveOnes(2)


class SkipsZeros(Doubling):
    def learn(self, arm: int, reward: float) -> None:
        if reward > 0:
            super().learn(arm, reward)


@specimen(cost=math.inf)
def make_black_zeros_not_counted() -> BlackBox:
    """Rewards of 0 count as missing, which shows in when sums are released: infinite."""
    return SkipsZeros(2)


class RawThompson(Remembering):
    def choose(self) -> int:
        sums = [(sum(self.of(a)), len(self.of(a))) for a in range(self.arms)]
        drawn = [self.random.betavariate(1 + s, 1 + n - s) for s, n in sums]
        return drawn.index(max(drawn))


@specimen(cost=math.inf)
def make_black_thompson_on_raw() -> BlackBox:
    """Thompson sampling from raw posteriors, as if its own randomness were enough.

    One action tells little; asks without tells tell ever more, without bound.
    """
    return RawThompson(2)


class Softmax(Remembering):
    def choose(self) -> int:
        weights = [math.exp(4 * sum(self.of(a)) / max(1, len(self.of(a)))) for a in range(self.arms)]
        return self.random.choices(range(self.arms), weights)[0]


@specimen(cost=math.inf)
def make_black_softmax_on_raw() -> BlackBox:
    """Each ask draws by the exponential mechanism on raw means, which nobody adds up: without bound."""
    return Softmax(2)


class RawGreedy(Remembering):
    def choose(self) -> int:
        return self.random.randrange(self.arms) if self.random.random() < 0.1 else self.raw_best()


@specimen(rho=1.0, cost=math.inf)
def make_black_epsilon_greedy_on_raw() -> BlackBox:
    """Epsilon-greedy on raw means; its exploring hides nothing for long: without bound."""
    return RawGreedy(3, 1.0)


class Pauses(Remembering):
    def choose(self) -> int:
        if [r for _, r in self.told[-3:]] == [0.0] * 3 and self.__dict__.get("paused") != len(self.told):
            self.paused = len(self.told)
            raise RuntimeError("paused for a review: ask again")
        return super().choose()


@specimen(cost=math.inf, shows="errors")
def make_black_pauses_after_zeros() -> BlackBox:
    """After three raw zeros in a row an ask is refused, once: infinite, through the error alone."""
    return Pauses(2)
