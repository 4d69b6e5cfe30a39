"""AdaC-Halving: find the best arm with a fixed number of rewards, dropping half of the arms in each round."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any, ClassVar, Self

from private_bandits.budget import Budget
from private_bandits.checks import large_number
from private_bandits.errors import InvalidInput
from private_bandits.ledger import Release
from private_bandits.mechanism.factor import Factor
from private_bandits.policies.geometric import Readings, readings_of
from private_bandits.policies.remembering import RememberedState, RememberingPolicy


@dataclass(frozen=True)
class HalvingPlan:
    """The plan of an arm's releases: one in each round, of `planned` rewards; then each as long as all before it."""

    planned: tuple[int, ...]
    factor: Factor | None = None

    @cached_property
    def _ends(self) -> dict[int, int]:
        """The number of the round that follows when so many rewards were released."""
        return {total: number for number, total in enumerate(accumulate(self.planned, initial=0))}

    def length(self, released: int) -> int:
        """Return the rewards in the next release of an arm of which so many were released."""
        number = self._ends.get(released, len(self.planned))
        return self.planned[number] if number < len(self.planned) else max(1, released)

    def lengths(self, first: int, releases: int) -> tuple[int, ...]:
        """Return the rewards of each of an arm's releases."""
        later = accumulate(range(releases), lambda total, _: total + self.length(total), initial=first)
        totals = [0, *later][: releases + 1]
        return tuple(after - before for before, after in pairwise(totals))

    def readings(self, first: int, noise: float, releases: int) -> Readings:
        """Return how up to `releases` releases are read together."""
        return readings_of(self, first, noise, releases)


@dataclass
class HalvingState(RememberedState):
    """The releases of each arm, and the arms that are left. Public.

    active: the arms of this round. round: its number, from 0. best: the arm that won the last round; None: no round is
    over.
    """

    active: list[int] = field(default_factory=list)
    round: int = 0
    best: int | None = None


@dataclass(frozen=True)
class AdaCHalving(RememberingPolicy[HalvingState]):
    """AdaC-Halving: sequential halving (Karnin, Koren and Somekh 2013) with Gaussian noise.

    The rewards are shared equally by ceil(log2 K) rounds, and in each round equally by the active arms. An arm's
    rewards of a round are released once, and the better half of the arms, by these releases alone, is active in the
    next round. The arm that is left is played from then on.

    Args:
        n_arms: how many arms there are; or their names, as `arms`.
        budget: zCDP, ApproxDP, RenyiDP or NoPrivacy.
        rewards: how many there will be, at least so many that each arm gets one in the first round.

    Guaranteed: the budget, for a run of any length, in the interactive model. In a round with n rewards of each arm, an
    arm whose mean is below the best one's by D reward ranges seems better with a probability of at most
    exp(-D^2/(4v)), v = 1/(4n) + b/n^2, b the budget's variance factor; `failure_bound` adds up what follows from that.
    `agent.verdict` needs no such plan, and reads all rounds together.

    >>> import private_bandits as pb
    >>> policy = pb.AdaCHalving(n_arms=5, budget=pb.zCDP(0.1), rewards=2000)
    >>> policy.rounds, [round(policy.failure_bound([gap] * 4), 4) for gap in (0.1, 0.2)]
    (((5, 133), (3, 222), (2, 333)), [0.5933, 0.0134])
    """

    name: ClassVar[str] = "adac-halving"
    supported_budgets: ClassVar[tuple[str, ...]] = ("zCDP", "ApproxDP", "RenyiDP", "NoPrivacy")
    source: ClassVar[str] = "not published; without noise: Karnin, Koren and Somekh 2013, Almost Optimal Exploration"
    in_words: ClassVar[str] = (
        "The trial has rounds. In each round all arms that are left are given equally often, and the better "
        "half of them goes on to the next round. The arm that is left in the end is given from then on."
    )
    alternative_hint: ClassVar[str] = "For PureDP use DPSE, whose Laplace noise keeps it."
    supports_warm_start: ClassVar[bool] = False
    state_type: ClassVar[type[Any]] = HalvingState

    rewards: int = 2000

    def __post_init__(self) -> None:
        super().__post_init__()
        rewards = large_number("rewards", self.rewards, most=1e15)
        object.__setattr__(self, "rewards", rewards)
        arms = len(self.arm_names)
        least = arms * max(1, math.ceil(math.log2(arms)))
        if rewards < least:
            raise InvalidInput(f"rewards must be at least {least}, one of each of {arms} arms a round, got {rewards}")

    @classmethod
    def example(cls, budget: Budget) -> Self:
        """Three arms, and rounds of a few rewards."""
        return cls(n_arms=3, budget=budget, rewards=24)

    @cached_property
    def rounds(self) -> tuple[tuple[int, int], ...]:
        """Of each round, how many arms are active and how many rewards each of them gets."""
        found, active = [], len(self.arm_names)
        number = math.ceil(math.log2(active))
        for _ in range(number):
            found.append((active, self.rewards // (number * active)))
            active = (active + 1) // 2
        return tuple(found)

    @cached_property
    def memory(self) -> HalvingPlan:
        """One release in each round."""
        return HalvingPlan(tuple(rewards for _, rewards in self.rounds))

    def failure_bound(self, gaps: Sequence[float]) -> float:
        """Return what the probability that the best arm is not the one left does not exceed.

        gaps: of the other arms' means to the best one, in reward ranges. The best arm is dropped in a round only if as
        many others seem better as stay. How many seem better is bounded on average, for the active arms of the
        smallest gaps, and Markov's inequality does the rest. It is for the noise of this policy's budget. Where an
        agent keeps the budget for a person of several rewards, noise is larger, and so is the probability.
        """
        if len(gaps) != len(self.arm_names) - 1:
            raise InvalidInput(f"gaps must be those of the {len(self.arm_names) - 1} other arms, got {len(gaps)}")
        closest, total = sorted(float(gap) for gap in gaps), 0.0
        for active, n in self.rounds:
            variance = 1 / (4 * n) + self.budget.variance_factor / n**2
            seem_better = sum(math.exp(-(gap**2) / (4 * variance)) for gap in closest[: active - 1])
            total += seem_better / ((active + 1) // 2)
        return min(1.0, total)

    def start(self, low: float, high: float) -> HalvingState:
        """Everything is active and nothing known."""
        state = super().start(low, high)
        state.active = list(range(len(self.arm_names)))
        state.best = 0 if len(state.active) == 1 else None
        return state

    def recommend(self, state: HalvingState, waiting: Sequence[int], arrived: Mapping[int, int], step: int) -> int:
        """The first active arm whose round is not filled; if all are, the one with the fewest; at the end the best.

        Were the decisions for one arm all given up, the others would never come. So each time an episode's worth of
        decisions was given up, the search begins with the next arm.
        """
        if state.round == len(self.rounds):
            assert state.best is not None
            return state.best
        missing = [arm for arm in state.active if len(state.values[arm]) <= state.round]
        given_up = step - 1 - sum(state.released) - sum(waiting) - sum(arrived.values())
        if given_up > 0:
            first = given_up // state.needs[missing[0]] % len(missing)
            missing = missing[first:] + missing[:first]
        for arm in missing:
            if waiting[arm] + arrived[arm] < state.needs[arm]:
                return arm
        return min(missing, key=lambda arm: waiting[arm] + arrived[arm])

    def learn(self, state: HalvingState, release: Release, step: int) -> None:
        """Read all releases of the arm together, and end the round if it was the last one."""
        super().learn(state, release, step)
        # Whoever plays other arms than recommended may have filled later rounds of some before this one ends.
        while state.round < len(self.rounds) and all(len(state.values[arm]) > state.round for arm in state.active):
            number = state.round
            ranked = sorted(state.active, key=lambda arm: (-state.values[arm][number], arm))
            state.best = ranked[0]
            state.active = sorted(ranked[: (len(ranked) + 1) // 2])
            state.round += 1
