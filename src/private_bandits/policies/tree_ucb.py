"""DP-UCB: upper confidence bounds that look at every reward, through a tree for each arm."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from private_bandits.arrays import Floats
from private_bandits.budget import BUDGETS, Budget
from private_bandits.ledger import Release
from private_bandits.mechanism.tree import levels_for
from private_bandits.policies.base import UNIT_WEIGHT, Estimate, FiniteArmsPolicy, checked_horizon
from private_bandits.policies.doubling import unseen_arm
from private_bandits.policies.evidence import ArmEvidence, Evidence
from private_bandits.policies.prefix import PrefixSum
from private_bandits.policies.shortlist import FEW, Shortlist
from private_bandits.policies.tails import interval, noise_half_width


@dataclass(eq=False)
class TreeState:
    """The sum of all rewards of each arm, from the nodes of its tree. Public.

    means, spreads, bonuses: of every arm that has a reward, its mean with noise, width/sqrt(n) and how far the noise of
    the mean strays; they follow from the sums. unseen: arms without a reward. noise_sd: of a node. rounding: of a
    reward, at most.
    """

    low: float
    high: float
    sums: list[PrefixSum]
    noise_sd: float = 0.0
    rounding: float = 0.0

    def __post_init__(self) -> None:
        k = len(self.sums)
        self.counts, self.means, self.spreads, self.bonuses = [0] * k, [0.0] * k, [0.0] * k, [0.0] * k
        self.unseen = k
        self.shortlist: Shortlist | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TreeState) and self.to_dict() == other.to_dict()

    def to_dict(self) -> dict[str, Any]:
        """What the rest follows from, as plain data."""
        plain = {"low": self.low, "high": self.high, "noise_sd": self.noise_sd, "rounding": self.rounding}
        return plain | {"sums": [s.to_dict() for s in self.sums]}


@dataclass(frozen=True)
class TreeUCB(FiniteArmsPolicy[TreeState]):
    """DP-UCB (Mishra and Thakurta 2015, "(Nearly) Optimal Differentially Private Stochastic Multi-Arm Bandits").

    Every reward releases a node of its arm's tree of L levels, which share the budget. Index at step t, of rewards in
    [0, 1], T the horizon, K arms:

        m + sqrt(2 log t/n) + g/n         m: mean of all n rewards of the arm, with the noises of its nodes in it

    g is how far the noises that are really in the sum stray, but for a probability of 1/(K T^2): as many as n has ones
    in binary, of scale L/epsilon or of variance L/(2 rho) each (tails.py). The published g is the same for all
    n, K log^2 T log(K T log T/delta)/epsilon. With delta = 1/T the one here is smaller from T = 100 on: x <= L Laplace
    noises stray by sqrt(2) L/epsilon (x + log(2 K T^2)), which is at most 2.83 L log(2 K T^2)/epsilon. The factor K is
    not needed for privacy either, as a reward is in the tree of one arm.

    Guaranteed: the budget, for a run of any length, also beyond the horizon.

    >>> from private_bandits import PureDP
    >>> TreeUCB(n_arms=5, budget=PureDP(1), horizon=10**6).tree_levels
    20
    """

    name: ClassVar[str] = "dp-ucb"
    waits_for = "none"
    supported_budgets: ClassVar[tuple[str, ...]] = tuple(BUDGETS)
    source: ClassVar[str] = "Mishra and Thakurta 2015, (Nearly) Optimal DP Stochastic Multi-Arm Bandits"
    in_words: ClassVar[str] = (
        "Each arm gets a score: its mean so far, plus an allowance that is the larger, the less is known of "
        "the arm. Everybody is given the arm of the best score. The scores are computed anew after each "
        "outcome."
    )

    horizon: int = 10**6

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "horizon", checked_horizon(self.horizon))

    @classmethod
    def example(cls, budget: Budget) -> Self:
        """Three arms."""
        return cls(n_arms=3, budget=budget, horizon=1000)

    @property
    def tree_levels(self) -> int:
        """Enough for the horizon; then another tree begins."""
        return levels_for(self.horizon)

    @cached_property
    def node_budget(self) -> Budget:
        """What is left of the budget for each of the nodes that hold a reward."""
        return self.budget.shared(self.tree_levels)

    def half_width(self, noises: int) -> float:
        """g of a sum with so many noises, in widths of the reward range."""
        budget = self.node_budget
        laplace = budget.noise == "laplace"
        sd = math.sqrt(2) / budget.level if laplace else math.sqrt(budget.variance_factor)
        log_inv_failure = math.log(2 * len(self.arm_names)) + 2 * math.log(self.horizon)
        return noise_half_width(budget.noise, sd * math.sqrt(noises), sd, log_inv_failure)

    def start(self, low: float, high: float) -> TreeState:
        """Nothing released yet."""
        return TreeState(low, high, [PrefixSum(np.zeros(1)) for _ in self.arm_names])

    def _settle(self, state: TreeState, arm: int) -> None:
        found, width = state.sums[arm], state.high - state.low
        n = found.leaves
        state.unseen += (n == 0) - (state.counts[arm] == 0)
        state.counts[arm] = n
        if n:
            state.means[arm] = float(found.total[0]) / n
            state.spreads[arm] = width / math.sqrt(n)
            state.bonuses[arm] = width * self.half_width(found.noises) / n
            if state.shortlist is not None:
                state.shortlist.note(arm, _columns(state, [arm])[:, 0])

    def recommend(self, state: TreeState, waiting: Sequence[int], arrived: Mapping[int, int], step: int) -> int:
        """First every arm once; then the largest index, among arms that have a reward. Ties go to the first."""
        if state.unseen:
            found = unseen_arm(state.counts, waiting, step)
            if found is not None and (found[1] or state.unseen == len(waiting)):
                return found[0]
        if len(state.counts) > FEW:
            if state.shortlist is None:
                columns = _columns(state, range(len(state.counts)))
                state.shortlist = Shortlist(columns, np.array(state.counts) > 0)
            return state.shortlist.best(_index, _ceiling, step)
        optimism = _optimism(step)
        seen = [arm for arm, n in enumerate(state.counts) if n]
        return max(seen, key=lambda a: state.means[a] + state.bonuses[a] + optimism * state.spreads[a])

    def entry(self, state: TreeState, action: int) -> tuple[int, tuple[int, ...]]:
        """Weight one in the arm's own tree."""
        return action, UNIT_WEIGHT

    def due(self, state: TreeState, key: int, count: int, arrived: Mapping[int, int]) -> bool:
        """With every reward."""
        return True

    def learn(self, state: TreeState, release: Release, step: int) -> None:
        """Take in the node."""
        state.sums[release.key].take(np.array(release.values), self.tree_levels)
        state.noise_sd, state.rounding = release.noise_sd, release.rounding / release.all_rewards
        self._settle(state, release.key)

    def estimates(self, state: TreeState, delta: float) -> list[Estimate]:
        """Mean of all rewards of each arm, with an interval.

        A union over arms and n, delta/(K n (n+1)) each, half for the rewards and half for the noise, makes the
        intervals right for all arms at all times together.
        """
        found = []
        for arm, name in enumerate(self.arm_names):
            n = state.counts[arm]
            if not n:
                found.append(Estimate(arm, name, None, state.low, state.high, 0))
                continue
            log_inv_failure = math.log(4 * len(state.sums) * n * (n + 1) / delta)
            noise_sd = state.noise_sd * math.sqrt(state.sums[arm].noises)
            half_width = (state.high - state.low) * math.sqrt(log_inv_failure / (2 * n)) + state.rounding
            half_width += noise_half_width(self.budget.noise, noise_sd, state.noise_sd, log_inv_failure) / n
            found.append(interval(arm, name, state.means[arm], half_width, n, state.low, state.high))
        return found

    def evidence(self, state: TreeState) -> list[ArmEvidence]:
        """The mean of all n rewards of each arm: a union over n."""
        found: list[ArmEvidence] = []
        width = state.high - state.low
        for n, mean, sums in zip(state.counts, state.means, state.sums, strict=True):
            if not n:
                found.append(())
                continue
            peak, kind = state.noise_sd / width / n, self.budget.noise
            sd, rounding = peak * math.sqrt(sums.noises), state.rounding / width
            found.append((Evidence.of_mean(kind, (mean - state.low) / width, rounding, n, sd, peak, n * (n + 1)),))
        return found

    def final_evidence(self, state: TreeState, rows: Sequence[Release], closing: int) -> list[ArmEvidence]:
        """The same as before: every reward was released when it came, and no release closes anything."""
        return self.evidence(state)

    def dump_state(self, state: TreeState) -> dict[str, Any]:
        """Everything, the means too."""
        return state.to_dict() | {"counts": list(state.counts), "means": list(state.means)}

    def load_state(self, data: Mapping[str, Any]) -> TreeState:
        """From plain data; what follows from the sums is computed anew."""
        sums = [PrefixSum.from_dict(s) for s in data["sums"]]
        state = TreeState(data["low"], data["high"], sums, data["noise_sd"], data["rounding"])
        for arm in range(len(sums)):
            self._settle(state, arm)
        return state


def _optimism(step: int) -> float:
    """The factor of the spreads at a step. It grows with the step."""
    return math.sqrt(2 * math.log(step))


def _columns(state: TreeState, arms: Sequence[int]) -> Floats:
    """Return what the indices of these arms follow from, a column each."""
    return np.array([[state.means[arm] + state.bonuses[arm] for arm in arms], [state.spreads[arm] for arm in arms]])


def _index(columns: Floats, step: int) -> Floats:
    """The index of each column."""
    found: Floats = columns[0] + _optimism(step) * columns[1]
    return found


def _ceiling(columns: Floats, first: int, last: int) -> Floats:
    """The index at the last step, as it grows."""
    return _index(columns, last)
