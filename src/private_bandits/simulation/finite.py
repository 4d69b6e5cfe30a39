"""Finite arms: an episode's reward sum is one draw, so a run of T steps takes O(K log T) of them.

All runs of all policies that read their releases alike advance together, an episode at a time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from private_bandits.environments import FiniteEnvironment, Floats, Integers
from private_bandits.factor import INDEPENDENT
from private_bandits.policies.doubling import IndexPolicy
from private_bandits.policies.memory import Readings, Spread, readings
from private_bandits.policies.tails import upper_bound
from private_bandits.progress import Report
from private_bandits.simulation.draws import noise_draws

CACHED = 5000
"""Arms that a bound is computed for at once: more of them leave the processor's cache, and take three times as long."""


class Runs(ABC):
    """The state of many runs of several policies; rows are runs, grouped by policy."""

    def __init__(
        self,
        policies: Sequence[Any],
        environment: FiniteEnvironment,
        horizon: int,
        runs: int,
        generators: Sequence[np.random.Generator],
    ) -> None:
        total, arms = len(policies) * runs, len(environment.means)
        self.policies = policies
        self.environment = environment
        self.horizon = horizon
        self.generators = generators
        self.groups = [slice(i * runs, (i + 1) * runs) for i in range(len(policies))]
        self.row = np.arange(total)
        self.gaps = environment.means.max() - environment.means
        self.low, high = environment.reward_range
        self.width = high - self.low
        # How far a reward moves all of its releases together: the root of the factor's column, in reward ranges.
        self.moved = [self.width * float((policy.factor or INDEPENDENT).column) ** 0.5 for policy in policies]
        self.time = np.zeros(total, dtype=np.int64)
        self.regret = np.zeros(total)
        self.released = np.zeros((total, arms), dtype=np.int64)
        self.means = np.zeros((total, arms))

    def play(self, arm: Integers, steps: Integers) -> None:
        """Play an arm in every run for a whole episode and release its noisy sum; beyond the horizon, nothing."""
        count = np.minimum(steps, self.horizon - self.time)
        self.time += count
        self.regret += self.gaps[arm] * count
        sums, noise = np.empty(len(arm)), np.empty(len(arm))
        for policy, moved, group, generator in zip(
            self.policies, self.moved, self.groups, self.generators, strict=True
        ):
            sums[group] = self.environment.reward_sums(generator, arm[group], count[group])
            noise[group] = noise_draws(policy.promise, moved, generator, group.stop - group.start)
        self.learn(arm, count, sums, noise)

    @abstractmethod
    def learn(self, arm: Integers, count: Integers, sums: Floats, noise: Floats) -> None:
        """Take in the sum of an arm's episode, and the noise of its release, in every run."""

    @abstractmethod
    def choose(self) -> Integers:
        """The arm of the largest index in every run."""


class LastReleases(Runs):
    """Policies whose index is of an arm's last release."""

    def __init__(self, *settings: Any) -> None:
        super().__init__(*settings)
        self.last = np.ones_like(self.means)

    def learn(self, arm: Integers, count: Integers, sums: Floats, noise: Floats) -> None:
        """Forget the arm's mean before."""
        divisor = np.maximum(count, 1)
        self.released[self.row, arm] += count
        self.last[self.row, arm] = divisor
        self.means[self.row, arm] = (sums + noise) / divisor

    def choose(self) -> Integers:
        """By each policy's own index."""
        chosen = np.empty(len(self.row), dtype=np.int64)
        for policy, group in zip(self.policies, self.groups, strict=True):
            step = (self.time[group] + 1)[:, None]
            index = policy.checked_index(self.means[group], self.last[group], step, self.width)
            chosen[group] = index.argmax(axis=1)
        return chosen


class AllReleases(Runs):
    """Policies that read all releases of an arm together (policies/memory.py), which hold the episode before at most.

    The j-th release of an arm is of the same number of rewards in every run, so how it is read is in a table by j.
    """

    def __init__(self, *settings: Any) -> None:
        super().__init__(*settings)
        releases = self.horizon.bit_length() + 1
        tables = [doubling_readings(policy, releases) for policy in self.policies]
        parts = [(table.slope, table.gain, *table.spread) for table in tables]
        self.tables = np.concatenate([np.array(part) for part in parts], axis=1)
        # By the release before: what the next one subtracts of its news. There is none after the last in the table.
        self.carried = np.concatenate([np.append(table.carried[1:], 0.0) for table in tables])
        runs, (total, arms) = len(self.row) // len(tables), self.means.shape
        self.table = np.repeat(np.arange(len(tables)) * releases, runs)
        self.beta = np.repeat([policy.beta for policy in self.policies], runs)
        self.again = np.repeat([(policy.factor or INDEPENDENT).matrix(2)[1, 0] for policy in self.policies], runs)
        self.first = self.row * arms
        self.before = np.zeros(total * arms)
        self.spread = np.ones((3, total * arms))

    def learn(self, arm: Integers, count: Integers, sums: Floats, noise: Floats) -> None:
        """What is new in the release moves the arm's mean, which is in reward ranges above the lowest reward."""
        here, means, released = self.first + arm, self.means.reshape(-1), self.released.reshape(-1)
        earlier = released.take(here)
        released[here] = earlier + count
        # Nothing released of the arm: its first release; 1, 2, 4, ... rewards: the second, third, fourth.
        number = self.table + np.frexp(earlier)[1]
        slope, gain, *spread = self.tables.take(number, axis=1)
        sums, noise = (sums - self.low * count) / self.width, noise / self.width
        new, mean = sums + noise + self.before.take(here), means.take(here)
        means[here] = mean + gain * (new - slope * mean)
        # The next release holds part of these rewards again; of that, what this one has told is not new.
        self.before[here] = self.again * sums - self.carried.take(number) * new
        for own, found in zip(self.spread, spread, strict=True):
            own[here] = found

    def choose(self) -> Integers:
        """By the upper bound of each arm's mean."""
        # As long as the arms are: a column that is stretched anew by each product takes four times as long.
        log_odds = np.repeat(self.beta * np.log(self.time + 1), self.means.shape[1]).reshape(self.means.shape)
        spread = Spread(*self.spread.reshape(3, *self.means.shape))
        chosen, size = np.zeros(len(self.row), dtype=np.int64), max(1, CACHED // self.means.shape[1])
        for rows in (slice(first, first + size) for first in range(0, len(chosen), size)):
            if (self.time[rows] < self.horizon).any():  # else there is nothing to choose
                own = Spread(*(part[rows] for part in spread))
                chosen[rows] = upper_bound(self.means[rows], own, log_odds[rows]).argmax(axis=1)
        return chosen


def doubling_readings(policy: IndexPolicy, releases: int) -> Readings:
    """How a policy reads the releases of an arm whose episodes are of 1, 1, 2, 4, ... rewards."""
    factor = policy.factor or INDEPENDENT
    counts = (1, *(2**j for j in range(releases - 1)))
    return readings(counts, (policy.promise.variance_factor * float(factor.column),) * releases, policy.factor)


def regret_curves(
    policies: Sequence[IndexPolicy],
    environment: FiniteEnvironment,
    horizon: int,
    runs: int,
    checkpoints: Integers,
    generators: Sequence[np.random.Generator],
    report: Report,
) -> Floats:
    """Regret of every policy and run at the checkpoints: an array [policy, run, checkpoint]."""
    curves = np.empty((len(policies), runs, len(checkpoints)))
    kinds: dict[type[Runs], list[int]] = {}
    for i, policy in enumerate(policies):
        kinds.setdefault(AllReleases if policy.remembers else LastReleases, []).append(i)
    done = 0.0
    for kind, places in kinds.items():
        share = len(places) / len(policies)
        own = kind([policies[i] for i in places], environment, horizon, runs, [generators[i] for i in places])
        curves[places] = _curves(own, checkpoints, partial(_part, report, done, share))
        done += share
    return curves


def _part(report: Report, done: float, share: float, part: float) -> None:
    report(done + share * part)


def _curves(state: Runs, checkpoints: Integers, report: Report) -> Floats:
    """The curves of some policies.

    Within an episode regret grows by the same gap at each step, so interpolating between the ends of episodes
    is exact.
    """
    times, regrets = [state.time.copy()], [state.regret.copy()]

    def play(arm: Integers, steps: Integers) -> None:
        state.play(arm, steps)
        times.append(state.time.copy())
        regrets.append(state.regret.copy())
        # Episodes double, so work is done in proportion to the logarithm of time.
        report(float(np.log1p(state.time).mean() / np.log1p(state.horizon)))

    everywhere = np.ones(len(state.row), dtype=np.int64)
    for arm in range(min(len(state.gaps), state.horizon)):
        play(everywhere * arm, everywhere)
    while (state.time < state.horizon).any():
        arm_of_run = state.choose()
        play(arm_of_run, state.released[state.row, arm_of_run])
    ends, heights = np.array(times), np.array(regrets)
    curves = [np.interp(checkpoints, ends[:, i], heights[:, i]) for i in state.row]
    return np.array(curves).reshape(len(state.policies), -1, len(checkpoints))
