"""AdaC-IMED: the arm that it costs least to believe in, from releases that remember; for finitely many arms."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from heapq import heapify, heapreplace
from typing import Any, ClassVar

import numpy as np

from private_bandits.arrays import Floats
from private_bandits.checks import check_positive
from private_bandits.policies.geometric_policy import ChosenState, GeometricPolicy
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
from private_bandits.policies.waiting import foremost

FEW = 32
"""Up to so many arms a choice is made with plain numbers, which are faster than arrays then."""


@dataclass
class ImedState(ChosenState):
    """The releases of each arm, and what the choice among them follows from. Public."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.costs: list[float] | None = None  # of every arm, where they were needed
        self.columns: Floats | None = None  # what they follow from

    def note(self, arm: int, step: int) -> None:
        """Let everything be computed anew that followed from the arm before, and say which decision comes next."""
        super().note(arm, step)
        self.costs = None
        if self.columns is not None:
            mean = (self.means[arm] - self.low) / self.width
            self.columns[:, arm] = mean, self.rewards[arm], self.noise[arm], math.log(self.released[arm])


@dataclass(frozen=True)
class AdaCIMED(GeometricPolicy[ImedState]):
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
    source: ClassVar[str] = "not published; the index without noise: Honda and Takemura 2015, Non-Asymptotic Analysis"
    in_words: ClassVar[str] = (
        "For each arm the program asks how hard it would be to believe, after all that was released, that this arm is "
        "as good as the best one. The arm of which that is easiest to believe is given; arms that were seldom given "
        "get some preference. So arms that look bad are given less and less often."
    )
    waits_for = "none"
    state_type: ClassVar[type[Any]] = ImedState

    growth: float = 1.25
    beta: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "beta", check_positive("beta", self.beta))

    # Choosing.

    def least(self, state: ImedState) -> int:
        """Find the arm of the least index, where all have one: J where a bound below it does not decide."""
        if len(state.released) > FEW:
            return self._least_of_many(state)
        means = state.scaled_means
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
            state.columns = np.array([state.scaled_means, state.rewards, state.noise, logs])
        return state.columns

    def choose_with_open(self, state: ImedState, waiting: Sequence[int], arrived: Mapping[int, int], step: int) -> int:
        """Find what is to be played where decisions are open or were given up."""
        own = self._costs(state)

        def index(arm: int, lost: int = 0) -> float:
            ahead, released = waiting[arm] + arrived[arm] + lost, state.released[arm]
            if ahead < state.needs[arm]:
                return own[arm] + math.log(released) if released else -math.inf
            return own[arm] + math.log(released + ahead)

        given_up = self.given_up(state, waiting, arrived, step)
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
            episode = self.episode_after(state, arm, ahead)
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
