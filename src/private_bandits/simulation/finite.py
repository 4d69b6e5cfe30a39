"""Finite arms: an episode's reward sum is one draw, so a run of T steps takes O(K log T) of them.

All runs of all policies that read their releases alike advance together, an episode at a time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from private_bandits.arrays import Floats, Integers
from private_bandits.environments import FiniteEnvironment
from private_bandits.mechanism.factor import INDEPENDENT
from private_bandits.policies.doubling import IndexPolicy, episode_length
from private_bandits.policies.release_memory import CombinationWeights, MeanError, combination_weights
from private_bandits.policies.tails import upper_bound
from private_bandits.progress import Report
from private_bandits.simulation.simulated_noise import noise_draws, release_variance

FEW = 4000
FEW_ARMS = 8
"""Bounds, of all runs or of each, that are computed faster than it is found out which of them matter."""
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
        self.row = self.run = np.arange(total)  # run: which of all is in a row, as those that are over are left out
        self.gaps = environment.means.max() - environment.means
        self.low, high = environment.reward_range
        self.width = high - self.low
        # How far a reward moves all of its releases together: the root of the factor's column, in reward ranges.
        self.moved = [self.width * float((policy.factor or INDEPENDENT).column) ** 0.5 for policy in policies]
        self.time = np.zeros(total, dtype=np.int64)
        self.regret = np.zeros(total)
        self.means = np.zeros((total, arms))

    @abstractmethod
    def next_length(self, arm: Integers) -> Integers:
        """How long an arm is played next, in every run."""

    @abstractmethod
    def leave_out_finished(self) -> None:
        """Go on without runs that are over, where that is worth while."""

    def play(self, arm: Integers, steps: Integers) -> None:
        """Play an arm in every run for a whole episode and release its noisy sum; beyond the horizon, nothing."""
        count = np.minimum(steps, self.horizon - self.time)
        self.time += count
        self.regret += self.gaps[arm] * count
        # For runs that were left out as well: so draws are the same however many are.
        arms, counts = (np.zeros(self.groups[-1].stop, dtype=np.int64) for _ in range(2))
        arms[self.run], counts[self.run] = arm, count
        sums, noise = (np.zeros(len(arms)) for _ in range(2))
        for policy, moved, group, generator in zip(
            self.policies, self.moved, self.groups, self.generators, strict=True
        ):
            if not counts[group].any():
                continue  # all of its runs are over
            sums[group] = self.environment.reward_sums(generator, arms[group], counts[group])
            noise[group] = noise_draws(policy.promise, moved, generator, group.stop - group.start)
        self.learn(arm, count, sums[self.run], noise[self.run])

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
        self.released = np.zeros(self.means.shape, dtype=np.int64)
        runs = len(self.row) // len(self.policies)
        self.initial_rewards = np.repeat([policy.initial_rewards for policy in self.policies], runs)

    def leave_out_finished(self) -> None:
        """Never: they cost little here."""

    def next_length(self, arm: Integers) -> Integers:
        """From what was released (policies.doubling.episode_length)."""
        released = self.released[self.row, arm]
        return np.where(released, np.maximum(released, self.initial_rewards - released), 1)

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
    """Policies that combine all releases of an arm (policies/release_memory.py), which hold the episode before at most.

    The j-th release of an arm is of the same number of rewards in every run, so how it is read is in a table by j.
    """

    def __init__(self, *settings: Any) -> None:
        super().__init__(*settings)
        releases = self.horizon.bit_length() + 1
        tables = [doubling_weights(policy, releases) for policy in self.policies]
        # By the release: how it is read, and what the next one subtracts of its news, or 0 where the table ends.
        parts = [(t.slope, t.gain, np.append(np.diag(t.carried, -1), 0.0)) for t in tables]
        self.tables = np.concatenate([np.array(part) for part in parts], axis=1)
        self.spreads = np.concatenate([np.array(table.spread) for table in tables], axis=1)
        self.lengths = np.concatenate([doubling_lengths(policy, releases) for policy in self.policies])
        runs, (total, arms) = len(self.row) // len(tables), self.means.shape
        self.beta = np.repeat([policy.beta for policy in self.policies], runs)
        self.again = np.repeat([(policy.factor or INDEPENDENT).matrix(2)[1, 0] for policy in self.policies], runs)
        # [arm, run]: what is done to all runs at once is fast then, however few arms there are.
        self.means = np.zeros((arms, total))
        self.before = np.zeros(arms * total)
        self.index = np.full((arms, total), -np.inf)
        # What is known of an index later: at least so much, and at most the mean plus a slope times the log odds, as
        # long as that is below the limit.
        self.least = np.full((arms, total), -np.inf)
        self.slope = np.full((arms, total), np.inf)
        self.limit = np.full((arms, total), np.inf)
        self.column = np.tile(self.row, arms)
        # The next release of each arm, in the tables. Of runs that are over nobody reads what is there.
        self.next = np.tile(np.repeat(np.arange(len(tables)) * releases, runs), arms)

    def leave_out_finished(self) -> None:
        """Once they are a quarter of all."""
        left, arms = np.flatnonzero(self.time < self.horizon), len(self.gaps)
        if 4 * len(left) > 3 * len(self.row):
            return
        self.before = self.before.reshape(arms, -1).take(left, axis=1).reshape(-1)
        self.next = self.next.reshape(arms, -1).take(left, axis=1).reshape(-1)
        for name in ("run", "time", "regret", "beta", "again", "means", "index", "least", "slope", "limit"):
            setattr(self, name, getattr(self, name).take(left, axis=-1))
        self.row = np.arange(len(left))
        self.column = np.tile(self.row, arms)

    def next_length(self, arm: Integers) -> Integers:
        """From the table."""
        return self.lengths.take(self.next.take(arm * len(self.row) + self.row), mode="clip")

    def learn(self, arm: Integers, count: Integers, sums: Floats, noise: Floats) -> None:
        """What is new in the release moves the arm's mean, which is in reward ranges above the lowest reward."""
        here, means = arm * len(self.row) + self.row, self.means.reshape(-1)
        number = self.next.take(here)
        slope, gain, carried = self.tables.take(number, axis=1, mode="clip")
        if (self.low, self.width) != (0.0, 1.0):
            sums, noise = (sums - self.low * count) / self.width, noise / self.width
        new, mean = sums + noise + self.before.take(here), means.take(here)
        mean += gain * (new - slope * mean)
        means[here] = mean
        # The next release holds part of these rewards again; of that, what this one has told is not new.
        self.before[here] = self.again * sums - carried * new
        self.next[here] = number + 1
        self.least.reshape(-1)[here] = -np.inf
        self.slope.reshape(-1)[here] = np.inf

    def choose(self) -> Integers:
        """By the upper bound of each arm's mean, of many computed where it may be the largest only, as it takes long.

        It exceeds the mean by x at log odds of x^2/(2 v(x)), with v(x) the variance in either formula. As v is concave,
        that is convex in x if v(0) >= 0: the excess grows by no larger factor than the log odds do. Up to the limit the
        formula stays the same one, or the narrower of both; at 1/2 or 1 it may change, once. For means above 1, or so
        far below 0 that v(0) < 0, it is computed every time.
        """
        log_inv_failure = self.beta * np.log(self.time + 1)
        if self.means.size <= FEW or len(self.means) <= FEW_ARMS:
            own = MeanError(*self.spreads.take(self.next.reshape(self.means.shape) - 1, axis=1, mode="clip"))
            return np.asarray(upper_bound(self.means, own, log_inv_failure).argmax(axis=0))
        at_most = self.means + self.slope * (SAFELY * log_inv_failure)
        here = np.flatnonzero(at_most >= np.minimum(self.least.max(axis=0), self.limit))
        odds, means = log_inv_failure.take(self.column.take(here)), self.means.reshape(-1).take(here)
        own = MeanError(*self.spreads.take(self.next.take(here) - 1, axis=1, mode="clip"))
        found = upper_bound(means, own, odds)
        known = (means <= 1.0) & (own.weight * means * (1.0 - means) >= -own.noise)
        end = 1.0 - 0.5 * (means < 0.5)
        self.index.reshape(-1)[here] = found
        self.least.reshape(-1)[here] = np.where(known, found, -np.inf)
        self.slope.reshape(-1)[here] = np.where(known, (found - means) / odds, np.inf)
        self.limit.reshape(-1)[here] = np.where(found < end, end, np.inf)
        return np.asarray(self.index.argmax(axis=0))


def doubling_lengths(policy: IndexPolicy, releases: int) -> list[int]:
    """New rewards in each release of an arm, if all rewards are in time."""
    lengths = [1]
    while len(lengths) < releases:
        lengths.append(episode_length(sum(lengths), policy.initial_rewards))
    return lengths


def doubling_weights(policy: IndexPolicy, releases: int) -> CombinationWeights:
    """How a policy reads the releases of an arm, if all rewards are in time."""
    noise = (release_variance(policy),) * releases
    return combination_weights(tuple(doubling_lengths(policy, releases)), noise, policy.factor)


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
        kinds.setdefault(AllReleases if policy.uses_all_releases else LastReleases, []).append(i)
    done = 0.0
    for kind, places in kinds.items():
        share = len(places) / len(policies)
        own = kind([policies[i] for i in places], environment, horizon, runs, [generators[i] for i in places])
        curves[places] = curves_of(own, checkpoints, partial(part_of, report, done, share))
        done += share
    return curves


def part_of(report: Report, done: float, share: float, part: float) -> None:
    """Report a part of a share of the work, after what is done."""
    report(done + share * part)


def curves_of(state: Runs, checkpoints: Integers, report: Report) -> Floats:
    """The curves of some policies.

    Within an episode regret grows by the same gap at each step, so interpolating between the ends of episodes
    is exact.
    """
    times, regrets = [state.time.copy()], [state.regret.copy()]
    runs = range(len(state.run))

    def play(arm: Integers, steps: Integers) -> None:
        state.play(arm, steps)
        times.append(times[-1].copy())
        regrets.append(regrets[-1].copy())
        times[-1][state.run], regrets[-1][state.run] = state.time, state.regret
        # Episodes double, so work is done in proportion to the logarithm of time.
        report(float(np.log1p(times[-1]).mean() / np.log1p(state.horizon)))

    for number in range(min(len(state.gaps), state.horizon)):
        arm = np.full(len(state.row), number)
        play(arm, state.next_length(arm))
    while (state.time < state.horizon).any():
        arm_of_run = state.choose()
        play(arm_of_run, state.next_length(arm_of_run))
        state.leave_out_finished()
    ends, heights = np.array(times), np.array(regrets)
    curves = [np.interp(checkpoints, ends[:, i], heights[:, i]) for i in runs]
    return np.array(curves).reshape(len(state.policies), -1, len(checkpoints))
