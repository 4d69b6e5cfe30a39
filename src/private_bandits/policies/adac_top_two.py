"""AdaC-TopTwo: find the best arm with fixed confidence, by playing the leader and its closest challenger."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from private_bandits.arrays import Floats
from private_bandits.checks import check_probability
from private_bandits.ledger import Release
from private_bandits.policies.evidence import Evidence, declared, joint_costs
from private_bandits.policies.geometric_policy import ChosenState, GeometricPolicy

NEAR = 1e-3
"""How precise the cost of a challenger has to be, in parts of it."""
TIE = 1e-6
"""Indices that differ by no more are equal, and the first arm has precedence: rounding does not decide."""


@dataclass
class TopTwoState(ChosenState):
    """The releases of each arm, and the winner once there is one. Public."""

    winner: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.standing: tuple[int, list[float]] | None = None  # the leader, and what it costs to believe in each other

    def note(self, arm: int, step: int) -> None:
        """Let the choice be made anew, and say which decision comes next."""
        super().note(arm, step)
        self.standing = None


@dataclass(frozen=True)
class AdaCTopTwo(GeometricPolicy[TopTwoState]):
    """AdaC-TopTwo: finds the best arm, and plays it from then on.

    The leader is the arm of the largest released mean. The challenger has the least

        W + log N        W = inf over u of the cost that the leader's mean is u at most, and its own u at least

    N: rewards released of the arm. The cost is that of AdaC-IMED, in both directions (imed_index.py). The leader is
    played if it has no more rewards than the challenger, else the challenger, until the arm's released rewards have
    grown by half (`growth` = 1.5). Releases hold earlier episodes again, as those of AdaC-IMED do (geometric.py).

    Once `agent.verdict(delta)` has a winner for the policy's own delta, the winner is played for ever.

    Args:
        n_arms: how many arms there are; or their names, as `arms`.
        budget: zCDP, ApproxDP, RenyiDP or NoPrivacy.
        delta: the probability that it ever declares an arm which is worse than another is at most this.
        growth: of the released rewards of an arm with each release, from 1.05 to 4.

    Guaranteed, for every growth: the budget, for a run of any length, in the interactive model; delta, under the
    conditions of a verdict (docs/guarantees.md). How many rewards it needs was studied by simulation only.

    >>> import private_bandits as pb
    >>> policy = pb.AdaCTopTwo(arms=["aspirin", "placebo"], budget=pb.zCDP(0.1), delta=0.05)
    >>> policy.memory.lengths(policy.memory.opening, 4)
    (17, 8, 12, 18)
    """

    name: ClassVar[str] = "adac-top-two"
    source: ClassVar[str] = "not published; top-two sampling: Russo 2016, Simple Bayesian Algorithms for Best Arm"
    in_words: ClassVar[str] = (
        "The trial looks for the best arm. Two arms are given about equally often: the one that looks best so "
        "far, and the one that is hardest to tell from it. Once the best arm is known surely enough, "
        "everybody is given that one."
    )
    waits_for = "none"
    state_type: ClassVar[type[Any]] = TopTwoState

    growth: float = 1.5
    delta: float = 0.05

    def __post_init__(self) -> None:
        super().__post_init__()
        check_probability("delta", self.delta)

    def recommend(self, state: TopTwoState, waiting: Sequence[int], arrived: Mapping[int, int], step: int) -> int:
        """The winner, if there is one; else the leader or its challenger."""
        if state.winner is not None:
            return state.winner
        return super().recommend(state, waiting, arrived, step)

    def least(self, state: TopTwoState) -> int:
        """Return the leader or its challenger."""
        return self._pick(state, [0] * len(state.released))

    def choose_with_open(
        self, state: TopTwoState, waiting: Sequence[int], arrived: Mapping[int, int], step: int
    ) -> int:
        """The same, where open decisions that fill an episode count as if their rewards were released.

        Decisions that were given up count as if they had been made one episode after the other, each for the arm that
        would have been chosen: no arm is asked without end.
        """
        ahead = [open_ + arrived[arm] for arm, open_ in enumerate(waiting)]
        given_up = self.given_up(state, waiting, arrived, step)
        while True:
            arm = self._pick(state, ahead)
            episode = self.episode_after(state, arm, ahead[arm])
            if given_up < episode:
                return arm
            given_up -= episode
            ahead[arm] += episode

    def _pick(self, state: TopTwoState, ahead: Sequence[int]) -> int:
        """Return the leader or its challenger, if so many rewards of each arm are on their way.

        An arm without a release comes first, until its episode is filled; then nothing speaks against it.
        """
        counts = []
        for arm, (released, coming) in enumerate(zip(state.released, ahead, strict=True)):
            if not released and coming < state.needs[arm]:
                return arm
            counts.append(released + coming if coming >= state.needs[arm] else released)
        if len(counts) == 1:
            return 0
        leader, costs = self._standing(state)
        index = [cost + math.log(count) for cost, count in zip(costs, counts, strict=True)]
        least = min(value for arm, value in enumerate(index) if arm != leader)
        challenger = next(arm for arm, value in enumerate(index) if arm != leader and value <= least + TIE)
        return leader if counts[leader] <= counts[challenger] else challenger

    def _standing(self, state: TopTwoState) -> tuple[int, list[float]]:
        """Return the arm of the largest mean, and what it costs to believe that each arm is as good; 0 if unseen."""
        if state.standing is None:
            seen = np.array(state.released) > 0
            means = np.where(seen, state.scaled_means, -np.inf)
            leader = int(means.argmax())
            costs = np.zeros(len(means))
            others = np.flatnonzero(seen & (np.arange(len(means)) != leader))
            rewards, noise = np.array(state.rewards), np.array(state.noise)
            costs[others] = costs_of_challengers(
                (means[[leader] * len(others)], rewards[[leader] * len(others)], noise[[leader] * len(others)]),
                (means[others], rewards[others], noise[others]),
            )
            state.standing = leader, costs.tolist()
        return state.standing

    def learn(self, state: TopTwoState, release: Release, step: int) -> None:
        """Read all releases of the arm together, and see whether there is a winner now."""
        super().learn(state, release, step)
        if state.winner is None:
            state.winner = declared(self.arm_evidence(state), self.delta)


Columns = tuple[Floats, Floats, Floats]
"""Means in [0, 1], the plain rewards that they are worth, and the variance of their noise."""


def costs_of_challengers(leaders: Columns, others: Columns) -> Floats:
    """Return W of arms, each with its leader: what it costs to believe that it is as good. A guide, not a proof.

    For a verdict a mean is worth one over the largest weight of a reward, and here one over the sum of squares.
    """
    nothing = np.zeros(len(leaders[0]))
    ahead, behind = (
        Evidence(means, nothing, rewards, noise, nothing, nothing, nothing, nothing + 1.0)
        for means, rewards, noise in (leaders, others)
    )
    return joint_costs(ahead, behind, nothing, NEAR)
