"""Policies that read all releases of an arm together: what AdaC-IMED, AdaC-TopTwo and AdaC-Halving have in common.

Each arm has one open sum. It is released when it holds as many rewards as the policy's plan says (`memory`), which
follows from the number of the release alone. All releases of the arm are then read together, with weights of least
variance. Which arm is played next is left to the policy.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Protocol, TypeVar

from private_bandits.ledger import Release
from private_bandits.mechanism.factor import Factor
from private_bandits.policies.base import UNIT_WEIGHT, Estimate, FiniteArmsPolicy
from private_bandits.policies.closing import pooled_evidence, releases_of_arms
from private_bandits.policies.evidence import ArmEvidence, Evidence
from private_bandits.policies.geometric import Readings
from private_bandits.policies.tails import interval


class Plan(Protocol):
    """The plan of an arm's releases: how long episodes are, what releases hold again, and how they are read."""

    @property
    def factor(self) -> Factor | None:
        """The multipliers of earlier episodes; None: no release holds an episode again."""

    def length(self, released: int) -> int:
        """Return the rewards in the next release of an arm of which so many were released."""

    def lengths(self, first: int, releases: int) -> tuple[int, ...]:
        """Return the new rewards of each of an arm's releases, if its first one has so many."""

    def readings(self, first: int, noise: float, releases: int) -> Readings:
        """Return how the first releases of an arm are read. first: rewards in the first of them."""


@dataclass
class RememberedState:
    """The releases of each arm, as the policy remembers them. Public.

    first: rewards in the arm's first release. released: in all of them. values: of its releases.
    means: of all rewards released, as read, in the units of the rewards; rounding: of that mean, at most.
    rewards: how many plain rewards have a mean that strays as little as this one, noise apart. noise: the variance of
        the noise in it; variance: of all its error, at most. Both in squared reward ranges.
    step: number of the decision that followed the last release.
    weight: the largest weight that a reward has in the mean; 0 if it is not known.
    """

    low: float
    high: float
    first: list[int]
    released: list[int]
    values: list[list[float]]
    means: list[float]
    rounding: list[float]
    rewards: list[float]
    noise: list[float]
    variance: list[float]
    step: int
    weight: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not self.weight:  # files of earlier versions do not have it
            self.weight = [0.0] * len(self.first)
        self.left = self.released[:]  # those included that the policy has not learned yet
        self.needs: list[int] = []  # rewards in the next release of each arm, once `left` are released
        self.version = 0  # grows with each release

    def note(self, arm: int, step: int) -> None:
        """Let everything be computed anew that followed from the arm before, and say which decision comes next."""
        self.step = step
        self.version += 1

    @property
    def width(self) -> float:
        """How wide the range of rewards is."""
        return self.high - self.low

    @property
    def scaled_means(self) -> list[float]:
        """The means, of rewards scaled to [0, 1]."""
        low, width = self.low, self.high - self.low
        return [(mean - low) / width for mean in self.means]


S = TypeVar("S", bound=RememberedState)


@dataclass(frozen=True)
class RememberingPolicy(FiniteArmsPolicy[S]):
    """Releases an arm's rewards as its plan says, and reads all of its releases together."""

    supports_warm_start: ClassVar[bool] = True
    waits_for = "none"
    state_type: ClassVar[type[Any]] = RememberedState

    @property
    @abstractmethod
    def memory(self) -> Plan:
        """How long episodes are, what releases hold again, and how they are read."""

    @property
    def factor(self) -> Factor | None:
        """The multipliers of earlier episodes, as planned."""
        return self.memory.factor

    def start(self, low: float, high: float) -> S:
        """Nothing released yet."""
        k = len(self.arm_names)
        none, lists = [0] * k, ([0.0] * k for _ in range(5))
        return self._ready(self.state_type(low, high, none[:], none[:], [[] for _ in range(k)], *lists, step=1))

    def _ready(self, state: S) -> S:
        state.needs = [self.memory.length(released) for released in state.released]
        return state

    def entry(self, state: S, action: int) -> tuple[int, tuple[int, ...]]:
        """Weight one in the arm's own sum."""
        return action, UNIT_WEIGHT

    def due(self, state: S, key: int, count: int, arrived: Mapping[int, int]) -> bool:
        """Whether the arm's episode is complete."""
        return count >= state.needs[key]

    def leave(self, state: S, rewards: Mapping[int, int]) -> Callable[[], None]:
        """Count the rewards that leave: `due` need not wait until the release is learned."""
        before = {key: state.left[key] for key in rewards}

        def count(left: Mapping[int, int]) -> None:
            for key, total in left.items():
                state.left[key], state.needs[key] = total, self.memory.length(total)

        count({key: before[key] + new for key, new in rewards.items()})
        return partial(count, before)

    def learn(self, state: S, release: Release, step: int) -> None:
        """Read all releases of the arm together."""
        arm, values = release.key, state.values[release.key]
        values.append(release.values[0])
        if len(values) == 1:
            state.first[arm] = release.count
        state.released[arm] += release.count
        if state.released[arm] > state.left[arm]:  # of a log, or before a restart, nobody told that they left
            state.left[arm] = state.released[arm]
            state.needs[arm] = self.memory.length(state.left[arm])
        noise = (release.noise_sd / state.width) ** 2
        readings, row = self.memory.readings(state.first[arm], noise, len(values)), len(values) - 1
        spread = readings.spread
        state.means[arm] = float(readings.weights[row, : len(values)] @ values)
        state.rounding[arm] = float(readings.sizes[row]) * release.rounding / release.all_rewards
        state.rewards[arm] = float(1.0 / spread.rewards[row]) if spread.rewards[row] else math.inf
        state.weight[arm] = float(spread.weight[row])
        state.noise[arm] = float(spread.noise[row])
        state.variance[arm] = float(spread.variance[row])
        state.note(arm, step)

    def estimates(self, state: S, delta: float) -> list[Estimate]:
        """Means of all rewards released, with intervals.

        The j-th release of an arm always holds the same number of rewards, so a union over arms and j, with
        delta/(K j (j+1)) each, makes the intervals right for all arms at all times together. The mean is subgaussian
        with the variance that the state has (Hoeffding for rewards).
        """
        found = []
        for arm, name in enumerate(self.arm_names):
            j = len(state.values[arm])
            if not j:
                found.append(Estimate(arm, name, None, state.low, state.high, 0))
                continue
            odds = math.log(2 * len(state.means) * j * (j + 1) / delta)
            half_width = state.width * math.sqrt(2.0 * state.variance[arm] * odds) + state.rounding[arm]
            found.append(interval(arm, name, state.means[arm], half_width, state.released[arm], state.low, state.high))
        return found

    def evidence(self, state: S) -> list[ArmEvidence] | None:
        """The mean of all rewards released of each arm."""
        if not self.as_planned:
            return None
        return self.arm_evidence(state)

    def arm_evidence(self, state: S) -> list[ArmEvidence]:
        """The same, if releases are made as planned here."""
        return [self._evidence_of(state, arm, mean) for arm, mean in enumerate(state.scaled_means)]

    def _evidence_of(self, state: S, arm: int, mean: float) -> ArmEvidence:
        j, weight, rounding = len(state.values[arm]), state.weight[arm], state.rounding[arm] / state.width
        if not j:
            return ()
        if not weight:  # Hoeffding's bound
            return (Evidence(mean, rounding, math.inf, state.variance[arm], j * (j + 1)),)
        return (Evidence(mean, rounding, 1.0 / weight, state.noise[arm], j * (j + 1)),)

    def planned(self, state: S, key: int) -> int:
        """As the plan says."""
        return self.memory.length(state.released[key])

    def final_evidence(self, state: S, rows: Sequence[Release], closing: int) -> list[ArmEvidence] | None:
        """All releases of each arm together, the closing one included."""
        if not self.as_planned:
            return None
        found = []
        for arm, own in enumerate(releases_of_arms(rows, len(state.means))):
            planned = self.planned(state, arm) if own and own[-1].number >= closing else None
            found.append(pooled_evidence(own, planned, self.factor, state.low, state.width))
        return found

    def load_state(self, data: Mapping[str, Any]) -> S:
        """From plain data."""
        return self._ready(self.state_type(**data))
