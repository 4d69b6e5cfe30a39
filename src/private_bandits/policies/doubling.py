"""Doubling, forgetting and noise: what makes any index policy for finite arms private.

Each arm has one open sum. It is released when it holds as many rewards as were released of the arm before
(the first time: one), and an index of the released means decides which arm is recommended next. With every
reward in time this is the episode structure of the paper's Appendix C: an arm is played until its count has
doubled, and only the rewards of its last episode enter its index.

Privacy needs nothing of the index: see docs/guarantees.md.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from private_bandits.budget import check_positive
from private_bandits.ledger import Release
from private_bandits.policies.base import Estimate, FiniteArmsPolicy, check_variant

Array = NDArray[np.float64]

UNIT_WEIGHT = (1,)
RETRY = 32
"""An arm without any reward is tried again at 2 RETRY K decisions, and each time their number has doubled."""


@dataclass
class DoublingState:
    """What was released of each arm. Public.

    released: rewards released of the arm so far. last: those in its last release. releases: how many there were.
    means: mean of the last release, with its noise. noise_sd, rounding: of that mean.
    choice: the arm of the largest index; None before any release.
    """

    low: float
    high: float
    released: list[int]
    last: list[int]
    releases: list[int]
    means: list[float]
    noise_sd: list[float]
    rounding: list[float]
    choice: int | None
    unseen: int
    """Arms of which nothing has been released."""


@dataclass(frozen=True)
class DoublingPolicy(FiniteArmsPolicy[DoublingState]):
    """Plays the arm of the largest index until its count of rewards has doubled."""

    engine: ClassVar[str] = "doubling"

    @abstractmethod
    def index(self, means: Array, counts: Array, step: Any, width: float) -> Array:
        """The index of every arm from released means of `counts` rewards each, at `step`.

        Works on arrays whose last axis is the arms; width is high - low of the rewards.
        """

    @abstractmethod
    def deviation(self, count: int, noise_sd: float, log_odds: float, width: float) -> float:
        """How far a released mean of `count` rewards strays, but for a probability of 2 exp(-log_odds)."""

    def start(self, low: float, high: float) -> DoublingState:
        """Nothing released yet."""
        k = len(self.arm_names)
        zeros = [0.0] * k
        return DoublingState(low, high, [0] * k, [0] * k, [0] * k, zeros[:], zeros[:], zeros[:], choice=None, unseen=k)

    def recommend(self, state: DoublingState, waiting: Sequence[int], arrived: Mapping[int, int], step: int) -> int:
        """First every arm once; then the choice. Nothing released at all: the arm with fewest open decisions.

        An arm whose first rewards never come is tried again now and then, so that no arm is lost for ever.
        """
        if state.unseen:
            for arm, released in enumerate(state.released):
                if not released and (not waiting[arm] or step >= RETRY * len(waiting) * 2 ** waiting[arm]):
                    return arm
        if state.choice is None:
            return min(range(len(waiting)), key=waiting.__getitem__)
        return state.choice

    def entry(self, state: DoublingState, action: int) -> tuple[int, tuple[int, ...]]:
        """Weight one in the arm's own sum."""
        return action, UNIT_WEIGHT

    def due(self, state: DoublingState, key: int, count: int, arrived: Mapping[int, int]) -> bool:
        """When the arm's unreleased rewards equal its released ones; the first reward at once."""
        return count >= (state.released[key] or 1)

    def learn(self, state: DoublingState, release: Release, step: int) -> None:
        """Forget the arm's earlier mean, take the new one and choose again."""
        arm, count = release.key, release.count
        state.unseen -= state.released[arm] == 0
        state.released[arm] += count
        state.last[arm] = count
        state.releases[arm] += 1
        state.means[arm] = release.values[0] / count
        state.noise_sd[arm] = release.noise_sd / count
        state.rounding[arm] = release.rounding / count
        seen = [a for a, n in enumerate(state.last) if n]
        counts, means = np.array([state.last[a] for a in seen], float), np.array([state.means[a] for a in seen])
        state.choice = seen[int(self.index(means, counts, step, state.high - state.low).argmax())]

    def estimates(self, state: DoublingState, delta: float) -> list[Estimate]:
        """Last released means with intervals.

        The j-th release of an arm always holds the same number of rewards, so a union over arms and j, with
        delta/(K j (j+1)) each, makes the intervals right for all arms at all times together.
        """
        k = len(self.arm_names)
        width = state.high - state.low
        found = []
        for arm, name in enumerate(self.arm_names):
            j, count = state.releases[arm], state.last[arm]
            if not j:
                found.append(Estimate(arm, name, None, state.low, state.high, 0))
                continue
            log_odds = math.log(2 * k * j * (j + 1) / delta)
            reach = self.deviation(count, state.noise_sd[arm], log_odds, width) + state.rounding[arm]
            low, mean, high = (
                min(max(x, state.low), state.high)
                for x in (state.means[arm] - reach, state.means[arm], state.means[arm] + reach)
            )
            found.append(Estimate(arm, name, mean, low, high, count))
        return found

    def load_state(self, data: Mapping[str, Any]) -> DoublingState:
        """From plain data."""
        return DoublingState(**data)


@dataclass(frozen=True)
class ConfidenceBoundPolicy(DoublingPolicy):
    """An index that adds to the mean a width that grows with beta. Privacy does not depend on beta."""

    beta: float = 3.1
    variant: str = "paper"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "beta", check_positive("beta", self.beta))
        check_variant(self.variant)
