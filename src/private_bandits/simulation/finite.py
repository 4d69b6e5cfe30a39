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
from private_bandits.policies.doubling import IndexPolicy, episode_length
from private_bandits.policies.memory import Readings, Spread, readings
from private_bandits.policies.tails import upper_bound
from private_bandits.progress import Report
from private_bandits.simulation.draws import noise_draws

SAFELY = 1 + 1e-9
"""What rounding may do to a bound."""


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
        self.opening = np.repeat([policy.opening for policy in policies], runs)
        self.time = np.zeros(total, dtype=np.int64)
        self.regret = np.zeros(total)
        self.released = np.zeros((total, arms), dtype=np.int64)
        self.means = np.zeros((total, arms))

    def next_length(self, arm: Integers) -> Integers:
        """How long an arm is played next, in every run (policies.doubling.episode_length)."""
        released = self.released[self.row, arm]
        return np.maximum(released, self.opening - released)

    def play(self, arm: Integers, steps: Integers) -> None:
        """Play an arm in every run for a whole episode and release its noisy sum; beyond the horizon, nothing."""
        count = np.minimum(steps, self.horizon - self.time)
        self.time += count
        self.regret += self.gaps[arm] * count
        sums, noise = np.zeros(len(arm)), np.zeros(len(arm))
        for policy, moved, group, generator in zip(
            self.policies, self.moved, self.groups, self.generators, strict=True
        ):
            if not count[group].any():
                continue  # all of its runs are over
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
        parts = [(table.slope, table.gain, table.spread.variance) for table in tables]
        self.tables = np.concatenate([np.array(part) for part in parts], axis=1)
        self.spreads = np.concatenate([np.array(table.spread) for table in tables], axis=1)
        # By the release before: what the next one subtracts of its news. There is none after the last in the table.
        self.carried = np.concatenate([np.append(table.carried[1:], 0.0) for table in tables])
        runs, (total, arms) = len(self.row) // len(tables), self.means.shape
        self.table = np.repeat(np.arange(len(tables)) * releases, runs)
        self.beta = np.repeat([policy.beta for policy in self.policies], runs)
        self.again = np.repeat([(policy.factor or INDEPENDENT).matrix(2)[1, 0] for policy in self.policies], runs)
        # [arm, run]: what is done to all runs at once is fast then, however few arms there are.
        self.released = np.zeros((arms, total), np.int64).T
        self.means = np.zeros((arms, total)).T
        self.before = np.zeros(arms * total)
        self.last = np.tile(self.table - 1, arms)  # the last release of each arm, in the tables
        self.variance = np.ones((arms, total))
        self.index = np.full((arms, total), -np.inf)
        self.least = np.full((arms, total), -np.inf)

    def learn(self, arm: Integers, count: Integers, sums: Floats, noise: Floats) -> None:
        """What is new in the release moves the arm's mean, which is in reward ranges above the lowest reward."""
        here, means, released = arm * len(self.row) + self.row, self.means.T.reshape(-1), self.released.T.reshape(-1)
        released[here] += count
        number = np.where(count, self.last.take(here) + 1, self.table)  # no rewards: beyond the horizon nobody reads it
        slope, gain, variance = self.tables.take(number, axis=1)
        sums, noise = (sums - self.low * count) / self.width, noise / self.width
        new, mean = sums + noise + self.before.take(here), means.take(here)
        means[here] = found = mean + gain * (new - slope * mean)
        # The next release holds part of these rewards again; of that, what this one has told is not new.
        self.before[here] = self.again * sums - self.carried.take(number) * new
        self.last[here] = number
        self.variance.reshape(-1)[here] = np.where((found >= 0) & (found <= 1), variance, np.inf)
        self.index.reshape(-1)[here] = -np.inf
        self.least.reshape(-1)[here] = -np.inf

    def choose(self) -> Integers:
        """By the upper bound of each arm's mean.

        It is computed where it may be the largest only, as it takes long. For means in [0, 1] it is at most Hoeffding's
        bound, and it grows with time, so that the largest one is at least what it was before (`least`). Means outside,
        which noise makes, have neither property: of these it is computed always, their variance being infinite here.
        """
        log_odds = self.beta * np.log(self.time + 1)
        at_most = self.means.T + np.sqrt(self.variance * (2 * log_odds * SAFELY))
        at_least = self.least.max(axis=0)
        at_least[self.time >= self.horizon] = np.inf  # there is nothing to choose
        here = np.flatnonzero(at_most >= at_least)
        means, own = self.means.T.reshape(-1).take(here), Spread(*self.spreads.take(self.last.take(here), axis=1))
        bounds = upper_bound(means, own, log_odds.take(here % len(self.row)))
        self.index.reshape(-1)[here] = bounds
        self.least.reshape(-1)[here] = np.where(np.isinf(self.variance.take(here)), -np.inf, bounds)
        return np.asarray(self.index.argmax(axis=0))


def doubling_readings(policy: IndexPolicy, releases: int) -> Readings:
    """How a policy reads the releases of an arm, if all of its rewards are in time."""
    factor = policy.factor or INDEPENDENT
    counts = [1]
    for _ in range(releases - 1):
        counts.append(episode_length(sum(counts), policy.opening))
    return readings(tuple(counts), (policy.promise.variance_factor * float(factor.column),) * releases, policy.factor)


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
        play(arm_of_run, state.next_length(arm_of_run))
    ends, heights = np.array(times), np.array(regrets)
    curves = [np.interp(checkpoints, ends[:, i], heights[:, i]) for i in state.row]
    return np.array(curves).reshape(len(state.policies), -1, len(checkpoints))
