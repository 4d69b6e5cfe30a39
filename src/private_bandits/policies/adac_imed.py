"""AdaC-IMED: the arm that it costs least to believe in, from releases that remember; for finitely many arms."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from heapq import heapify, heapreplace
from typing import Any, ClassVar, Self

import numpy as np

from private_bandits.arrays import Floats
from private_bandits.checks import check_positive
from private_bandits.errors import InvalidInput
from private_bandits.ledger import Release
from private_bandits.mechanism.factor import Factor
from private_bandits.policies.base import UNIT_WEIGHT, Estimate, FiniteArmsPolicy
from private_bandits.policies.geometric import LEAST_GROWTH, MOST_GROWTH, GeometricMemory
from private_bandits.policies.imed_index import (
    LARGEST_MEAN,
    TIE,
    all_discounted,
    bound_of_cost,
    bounds_of_costs,
    cost,
    costs,
    discounted,
)
from private_bandits.policies.tails import interval
from private_bandits.policies.waiting import foremost

LONGER_GROWTH, PRICE_OF_LONGER = 2.0, 1.4
"""A growth for people with several rewards, and what it costs by itself, in variance: 18% more regret, squared."""
FEW = 32
"""Up to so many arms a choice is made with plain numbers, which are faster than arrays then."""


@dataclass
class ImedState:
    """The releases of each arm, as the policy remembers them. Public.

    first: rewards in the arm's first release. released: in all of them. values: of its releases.
    means: of all rewards released, as read, in the units of the rewards; rounding: of that mean, at most.
    rewards: how many plain rewards have a mean that strays as little as this one, noise apart. noise: the variance of
        the noise in it; variance: of all its error, at most. Both in squared reward ranges.
    step: number of the decision that followed the last release.
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

    def __post_init__(self) -> None:
        self.left = self.released[:]  # those included that the policy has not learned yet
        self.needs: list[int] = []  # rewards in the next release of each arm, once `left` are released
        self.unseen = 0  # all arms before this one have a release
        self.choice: int | None = None  # what is to be played, if no decision is open; None: not computed
        self.until = 0  # the decision before which that holds, whatever was given up
        self.costs: list[float] | None = None  # of every arm, where they were needed
        self.columns: Floats | None = None  # what they follow from
        self.version = 0  # grows with each release

    def note(self, arm: int, step: int) -> None:
        """Let everything be computed anew that followed from the arm before, and say which decision comes next."""
        self.step = step
        self.choice = self.costs = None
        self.version += 1
        if self.columns is not None:
            mean = (self.means[arm] - self.low) / self.width
            self.columns[:, arm] = mean, self.rewards[arm], self.noise[arm], math.log(self.released[arm])

    @property
    def width(self) -> float:
        """How wide the range of rewards is."""
        return self.high - self.low


@dataclass(frozen=True)
class AdaCIMED(FiniteArmsPolicy[ImedState]):
    """AdaC-IMED: indexed minimum empirical divergence (Honda and Takemura 2015) with noise that it knows of.

    An arm is played until its released rewards have grown by a quarter (`growth` = 1.25), and then a sum is released
    that holds its earlier episodes again, discounted (geometric.py). All releases of an arm are read together, with
    weights of least variance. For means m scaled to [0, 1], q the largest of them, the arm is played with the least

        J (1 - e^(-J/3)) / beta + log N        J = inf over y in [m, q] of n kl(y, q) + (y - m)^2 / (2 v)

    N: rewards released of the arm, n: as many plain rewards as its mean is worth, v: variance of the noise in it.
    J is what it costs to believe that the arm is as good as the best (imed_index.py); small costs are discounted, as
    they may be bad luck.

    Args:
        n_arms: how many arms there are; or their names, as `arms`.
        budget: zCDP, ApproxDP, RenyiDP or NoPrivacy.
        growth: of the released rewards of an arm with each release, from 1.05 to 4. Less means more releases.
        beta: more means more exploration: a larger mean regret with a lighter tail (docs/choosing.md).

    Guaranteed, for every growth and beta: the budget, for a run of any length, in the interactive model, and intervals
    of `estimates` that hold for all arms at all times together (docs/guarantees.md). Its regret was studied by
    simulation only: no bound is proven.

    >>> from private_bandits import zCDP
    >>> policy = AdaCIMED(arms=["aspirin", "placebo"], budget=zCDP(0.1))
    >>> policy.arm_names, policy.memory.lengths(policy.memory.opening, 4)
    (('aspirin', 'placebo'), (17, 4, 5, 6))
    """

    name: ClassVar[str] = "adac-imed"
    supported_budgets: ClassVar[tuple[str, ...]] = ("zCDP", "ApproxDP", "RenyiDP", "NoPrivacy")
    source: ClassVar[str] = "not published; the index without noise: Honda and Takemura 2015, Non-Asymptotic Analysis"
    alternative_hint: ClassVar[str] = "For PureDP use DPKLUCB, or AdaPUCB, whose Laplace noise keeps it."
    supports_warm_start: ClassVar[bool] = True
    waits_for = "none"

    growth: float = 1.25
    beta: float = 1.0
    correlated: bool = field(default=True, repr=False)
    """Whether releases hold earlier episodes again. `for_people` chooses it."""

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "beta", check_positive("beta", self.beta))
        object.__setattr__(self, "growth", check_positive("growth", self.growth))
        if not LEAST_GROWTH <= self.growth <= MOST_GROWTH:
            raise InvalidInput(f"growth must be from {LEAST_GROWTH:g} to {MOST_GROWTH:g}, got {self.growth:g}")

    @cached_property
    def memory(self) -> GeometricMemory:
        """How long episodes are, what releases hold again, and how they are read."""
        found = GeometricMemory.for_budget(self.budget, self.growth)
        return found if self.correlated else replace(found, factor=None)

    @property
    def factor(self) -> Factor | None:
        """Geometric multipliers of earlier episodes; None without noise."""
        return self.memory.factor

    def for_people(self, rewards: int) -> Self:
        """Return the policy whose means carry least noise for people with so many rewards each, one in an episode.

        Where episodes are held again, rewards of one person in several episodes meet in one release. Longer episodes
        and independent releases cost less then.
        """
        if rewards == 1 or self.budget.noise == "none":
            return self
        longer = replace(self, growth=max(self.growth, LONGER_GROWTH))
        prices = {self: 1.0, replace(self, correlated=False): 1.0}
        prices |= {longer: PRICE_OF_LONGER, replace(longer, correlated=False): PRICE_OF_LONGER}
        return min(prices, key=lambda plan: prices[plan] * plan.memory.noise_for_people(rewards))

    def start(self, low: float, high: float) -> ImedState:
        """Nothing released yet."""
        k = len(self.arm_names)
        zeros = [0.0] * k
        return self._ready(
            ImedState(
                low, high, [0] * k, [0] * k, [[] for _ in range(k)], zeros[:], zeros[:], zeros[:], zeros[:], zeros[:], 1
            )
        )

    def _ready(self, state: ImedState) -> ImedState:
        state.needs = [self.memory.length(released) for released in state.released]
        return state

    # Choosing.

    def recommend(self, state: ImedState, waiting: Sequence[int], arrived: Mapping[int, int], step: int) -> int:
        """The arm of the least index, the first of several; an arm without a release comes first.

        The index has no clock: were the rewards of the chosen arm late, nothing would change. So where the arm's open
        decisions and its rewards that arrived fill its episode already, they count as if they were released. If the arm
        had decisions for a whole episode since the last release of any arm, those given up so far count too.
        """
        choice = state.choice
        if choice is None:
            choice = self._choose(state)
        if not waiting[choice] and step < state.until:
            return choice
        return self._choose_with_open(state, waiting, arrived, step)

    def _choose(self, state: ImedState) -> int:
        """Find what is to be played if no decision is open."""
        released, arms = state.released, len(state.released)
        while state.unseen < arms and released[state.unseen]:
            state.unseen += 1
        choice = state.unseen if state.unseen < arms else self._least(state)
        state.choice, state.until = choice, state.step + state.needs[choice]
        return choice

    def _least(self, state: ImedState) -> int:
        """Find the arm of the least index, where all have one: J where a bound below it does not decide."""
        if len(state.released) > FEW:
            return self._least_of_many(state)
        means = self._scaled(state)
        best = min(max(max(means), 0.0), LARGEST_MEAN)
        logs = [math.log(released) for released in state.released]
        bounds = sorted(
            (discounted(bound_of_cost(mean, best, state.rewards[arm], state.noise[arm])) / self.beta + logs[arm], arm)
            for arm, mean in enumerate(means)
        )
        least, found = math.inf, []
        for bound, arm in bounds:
            if bound > least + TIE:
                break
            own = discounted(cost(means[arm], best, state.rewards[arm], state.noise[arm])) / self.beta + logs[arm]
            least = min(least, own)
            found.append((arm, own))
        return min(arm for arm, own in found if own <= least + TIE)

    def _least_of_many(self, state: ImedState) -> int:
        """The same with arrays: J of the arms of the least bounds, and of all if these do not decide."""
        means, rewards, noise, logs = self._columns(state)
        best = min(max(float(means.max()), 0.0), LARGEST_MEAN)
        bounds = all_discounted(bounds_of_costs(means, best, rewards, noise)) / self.beta + logs
        arms = np.sort(np.argpartition(bounds, FEW)[:FEW])
        rest = np.delete(bounds, arms).min()
        own = self._indices(state, arms, best)
        if not own.min() + TIE < rest:
            arms = np.arange(len(means))
            own = self._indices(state, arms, best)
        return int(arms[(own <= own.min() + TIE).argmax()])

    def _indices(self, state: ImedState, arms: Any, best: float) -> Floats:
        """The index of some arms, of many."""
        means, rewards, noise, logs = self._columns(state)[:, arms]
        found: Floats = all_discounted(costs(means, np.full(len(means), best), rewards, noise)) / self.beta + logs
        return found

    def _columns(self, state: ImedState) -> Floats:
        """Return means in [0, 1], the rewards that they are worth, noise, and the log of the rewards released."""
        if state.columns is None:
            logs = np.log(np.maximum(state.released, 1))
            state.columns = np.array([self._scaled(state), state.rewards, state.noise, logs])
        return state.columns

    def _scaled(self, state: ImedState) -> list[float]:
        low, width = state.low, state.high - state.low
        return [(mean - low) / width for mean in state.means]

    def _choose_with_open(self, state: ImedState, waiting: Sequence[int], arrived: Mapping[int, int], step: int) -> int:
        """Find what is to be played where decisions are open or were given up."""
        choice = state.choice
        assert choice is not None
        if waiting[choice] + arrived[choice] < state.needs[choice] and step < state.until:
            return choice
        own = self._costs(state)

        def index(arm: int, lost: int = 0) -> float:
            ahead, released = waiting[arm] + arrived[arm] + lost, state.released[arm]
            if ahead < state.needs[arm]:
                return own[arm] + math.log(released) if released else -math.inf
            return own[arm] + math.log(released + ahead)

        if step >= state.until:
            given_up = step - 1 - sum(state.released) - sum(waiting) - sum(arrived.values())
            if given_up > 0:
                return self._choose_without(state, given_up, waiting, arrived, index)
        found = foremost(waiting, state, state.version, partial(range, len(own)), index)
        assert found is not None
        return found[1]

    def _choose_without(
        self,
        state: ImedState,
        given_up: int,
        waiting: Sequence[int],
        arrived: Mapping[int, int],
        index: Callable[[int, int], float],
    ) -> int:
        """Find what is to be played where so many decisions came to nothing.

        Nobody notes of which arms they were. They count as if they had been made one episode after the other, each for
        the arm of the least index: so they raise the indices that are least, and no arm is asked without end.
        """
        lost = [0] * len(waiting)
        heap = [(index(arm, 0), arm) for arm in range(len(waiting))]
        heapify(heap)
        while True:
            arm = heap[0][1]
            ahead = waiting[arm] + arrived[arm] + lost[arm]
            missing = state.needs[arm] - ahead
            episode = missing if missing > 0 else self.memory.length(state.released[arm] + ahead)
            if given_up < episode:
                return arm
            given_up -= episode
            lost[arm] += episode
            heapreplace(heap, (index(arm, lost[arm]), arm))

    def _costs(self, state: ImedState) -> list[float]:
        """Return what counts of every arm's cost, over beta; 0 of those without a release."""
        if state.costs is None:
            means, rewards, noise, _ = self._columns(state)
            seen = np.array(state.released) > 0
            best = min(max(float(means.max(where=seen, initial=0.0)), 0.0), LARGEST_MEAN)
            found = costs(means, np.full(len(means), best), np.where(seen, rewards, 1.0), noise)
            state.costs = np.where(seen, all_discounted(found) / self.beta, 0.0).tolist()
        return state.costs

    # Learning.

    def entry(self, state: ImedState, action: int) -> tuple[int, tuple[int, ...]]:
        """Weight one in the arm's own sum."""
        return action, UNIT_WEIGHT

    def due(self, state: ImedState, key: int, count: int, arrived: Mapping[int, int]) -> bool:
        """Whether the arm's episode is complete."""
        return count >= state.needs[key]

    def leave(self, state: ImedState, rewards: Mapping[int, int]) -> Callable[[], None]:
        """Count the rewards that leave: `due` need not wait until the release is learned."""
        before = {key: state.left[key] for key in rewards}

        def count(left: Mapping[int, int]) -> None:
            for key, total in left.items():
                state.left[key], state.needs[key] = total, self.memory.length(total)

        count({key: before[key] + new for key, new in rewards.items()})
        return partial(count, before)

    def learn(self, state: ImedState, release: Release, step: int) -> None:
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
        state.noise[arm] = float(spread.noise[row])
        state.variance[arm] = float(spread.variance[row])
        state.note(arm, step)

    def estimates(self, state: ImedState, delta: float) -> list[Estimate]:
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

    def load_state(self, data: Mapping[str, Any]) -> ImedState:
        """From plain data."""
        return self._ready(ImedState(**data))
