"""Finite arms: an episode's reward sum is one draw, so a run of T steps takes O(K log T) of them.

All runs of all policies advance together, an episode at a time.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from private_bandits.environments import FiniteEnvironment, Floats, Integers
from private_bandits.policies.doubling import IndexPolicy
from private_bandits.progress import Report
from private_bandits.simulation.draws import noise_draws


class Runs:
    """The state of many runs of several policies; rows are runs, grouped by policy."""

    def __init__(
        self,
        policies: Sequence[IndexPolicy],
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
        low, high = environment.reward_range
        self.width = high - low
        self.time = np.zeros(total, dtype=np.int64)
        self.regret = np.zeros(total)
        self.released = np.zeros((total, arms), dtype=np.int64)
        self.last = np.ones((total, arms))
        self.means = np.zeros((total, arms))

    def play(self, arm: Integers, steps: Integers) -> None:
        """Play an arm in every run for a whole episode and release its noisy mean; beyond the horizon, nothing."""
        count = np.minimum(steps, self.horizon - self.time)
        self.time += count
        self.regret += self.gaps[arm] * count
        sums = np.empty(len(arm))
        for policy, group, generator in zip(self.policies, self.groups, self.generators, strict=True):
            sums[group] = self.environment.reward_sums(generator, arm[group], count[group])
            sums[group] += noise_draws(policy.promise, self.width, generator, group.stop - group.start)
        divisor = np.maximum(count, 1)
        self.released[self.row, arm] += count
        self.last[self.row, arm] = divisor
        self.means[self.row, arm] = sums / divisor

    def choose(self) -> Integers:
        """The arm of the largest index in every run."""
        chosen = np.empty(len(self.row), dtype=np.int64)
        for policy, group in zip(self.policies, self.groups, strict=True):
            step = (self.time[group] + 1)[:, None]
            index = policy.checked_index(self.means[group], self.last[group], step, self.width)
            chosen[group] = index.argmax(axis=1)
        return chosen


def regret_curves(
    policies: Sequence[IndexPolicy],
    environment: FiniteEnvironment,
    horizon: int,
    runs: int,
    checkpoints: Integers,
    generators: Sequence[np.random.Generator],
    report: Report,
) -> Floats:
    """Regret of every policy and run at the checkpoints: an array [policy, run, checkpoint].

    Within an episode regret grows by the same gap at each step, so interpolating between the ends of episodes
    is exact.
    """
    state = Runs(policies, environment, horizon, runs, generators)
    times, regrets = [state.time.copy()], [state.regret.copy()]

    def play(arm: Integers, steps: Integers) -> None:
        state.play(arm, steps)
        times.append(state.time.copy())
        regrets.append(state.regret.copy())
        # Episodes double, so work is done in proportion to the logarithm of time.
        report(float(np.log1p(state.time).mean() / np.log1p(horizon)))

    everywhere = np.ones(len(state.row), dtype=np.int64)
    for arm in range(min(len(environment.means), horizon)):
        play(everywhere * arm, everywhere)
    while (state.time < horizon).any():
        arm_of_run = state.choose()
        play(arm_of_run, state.released[state.row, arm_of_run])
    ends, heights = np.array(times), np.array(regrets)
    curves = [np.interp(checkpoints, ends[:, i], heights[:, i]) for i in state.row]
    return np.array(curves).reshape(len(policies), runs, len(checkpoints))
