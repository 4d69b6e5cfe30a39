"""Finite arms: an episode's reward sum is one draw, so a run of T steps takes O(K log T) of them.

All runs of all policies advance together, an episode at a time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from private_bandits.arrays import Floats, Integers
from private_bandits.environments import FiniteEnvironment
from private_bandits.errors import InvalidInput
from private_bandits.mechanism.factor import INDEPENDENT
from private_bandits.policies.doubling import IndexPolicy
from private_bandits.policies.evidence import Evidence
from private_bandits.progress import Report
from private_bandits.simulation.arrivals import TrialWorld
from private_bandits.simulation.simulated_noise import noise_draws, release_variance
from private_bandits.simulation.verdicts import Watch


class Runs(ABC):
    """The state of many runs of several policies; rows are runs, grouped by policy."""

    def __init__(
        self,
        policies: Sequence[Any],
        environment: FiniteEnvironment | TrialWorld,
        horizon: int,
        runs: int,
        generators: Sequence[np.random.Generator],
    ) -> None:
        self.watch: Watch | None = None
        if isinstance(environment, TrialWorld):
            if environment.verdict is not None:
                self.watch = Watch(environment.verdict, len(policies) * runs)
            environment = environment.environment
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
        self.complete = np.ones(total, dtype=bool)  # whether the last episode was not cut by the horizon
        self.regret = np.zeros(total)
        self.means = np.zeros((total, arms))

    @abstractmethod
    def next_length(self, rows: Integers, arm: Integers) -> Integers:
        """How many rewards the next release of an arm has, in these runs."""

    @abstractmethod
    def leave_out_finished(self) -> None:
        """Go on without runs that are over, where that is worth while."""

    def play(self, arm: Integers, steps: Integers) -> None:
        """Play an arm in every run for a whole episode and release its noisy sum; beyond the horizon, nothing."""
        count = np.minimum(steps, self.horizon - self.time)
        self.complete = count == steps
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
            noise[group] = noise_draws(policy.budget, moved, generator, group.stop - group.start)
        self.learn(self.row, arm, count, sums[self.run], noise[self.run])

    @abstractmethod
    def learn(self, rows: Integers, arm: Integers, count: Integers, sums: Floats, noise: Floats) -> None:
        """Take in the sum of an arm's episode, and the noise of its release, in these runs."""

    @abstractmethod
    def choose(self) -> Integers:
        """The arm of the largest index in every run."""

    def evidence(self, rows: Integers) -> Evidence:
        """What the releases of these runs say of each arm, [arm, run]: for verdicts."""
        raise NotImplementedError(f"{type(self).__name__} draws no verdicts")


def class_of(policies: Sequence[Any]) -> type:
    """Return the class of all of these policies.

    Raises:
        InvalidInput: They are of several: runs that choose by one class's rule would play the others wrongly.
    """
    classes = {type(policy): None for policy in policies}
    if len(classes) != 1:
        names = ", ".join(found.__name__ for found in classes)
        raise InvalidInput(f"these runs are of one class of policies, got {names}: simulate each class by itself")
    return next(iter(classes))


class LastReleases(Runs):
    """Policies whose index is of an arm's last release."""

    def __init__(self, *settings: Any) -> None:
        super().__init__(*settings)
        self.last = np.ones_like(self.means)
        self.released = np.zeros(self.means.shape, dtype=np.int64)
        self.variance, self.scale = (np.zeros(len(self.row)) for _ in range(2))  # of the noise of a release
        for policy, group in zip(self.policies, self.groups, strict=True):
            laplace = policy.budget.noise == "laplace"
            (self.scale if laplace else self.variance)[group] = (
                1.0 / policy.budget.level if laplace else release_variance(policy)
            )

    def keep(self, left: Integers) -> None:
        """Leave out all runs but these."""
        for name in ("run", "time", "complete", "regret", "means", "last", "released", "variance", "scale"):
            setattr(self, name, getattr(self, name)[left])
        self.row = np.arange(len(left))

    def leave_out_finished(self) -> None:
        """Never: they cost little here."""

    def next_length(self, rows: Integers, arm: Integers) -> Integers:
        """As many as were released of it; at first, one."""
        return np.maximum(self.released[rows, arm], 1)

    def learn(self, rows: Integers, arm: Integers, count: Integers, sums: Floats, noise: Floats) -> None:
        """Forget the arm's mean before."""
        divisor = np.maximum(count, 1)
        self.released[rows, arm] += count
        self.last[rows, arm] = divisor
        self.means[rows, arm] = (sums + noise) / divisor

    def evidence(self, rows: Integers) -> Evidence:
        """The last release of each arm. The j-th one holds 2^(j-2) rewards, and the first one 1."""
        count, means = self.last[rows].T, (self.means[rows].T - self.low) / self.width
        nothing = np.zeros(means.shape)
        number = np.log2(np.maximum(self.released[rows].T, 1)) + 1.0
        variance, scale = self.variance[rows], self.scale[rows]
        noise, copies = (variance / count**2, scale / count), nothing + (scale > 0.0)
        return Evidence(means, nothing, count, noise[0], number * (number + 1.0), noise[1], copies, nothing + 1.0)

    def choose(self) -> Integers:
        """By each policy's own index."""
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
    """Regret of every policy and run at the checkpoints: an array [policy, run, checkpoint]."""
    return curves_of(LastReleases(policies, environment, horizon, runs, generators), checkpoints, report)


def curves_of(state: Runs, checkpoints: Integers, report: Report) -> Floats:
    """Regret of every policy and run at the checkpoints: an array [policy, run, checkpoint].

    Where verdicts are looked for, two columns follow (`verdicts.FirstVerdict`). Within an episode regret grows by the
    same gap at each step, so interpolating between the ends of episodes is exact.
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

    def look() -> None:
        if state.watch is not None:
            rows = state.watch.undecided(state.run, state.complete)
            state.watch.look(state.evidence(rows), state.run[rows], state.time[rows])

    for number in range(min(len(state.gaps), state.horizon)):
        arm = np.full(len(state.row), number)
        play(arm, state.next_length(state.row, arm))
    if state.horizon >= len(state.gaps):
        look()
    while (state.time < state.horizon).any():
        arm_of_run = state.choose()
        play(arm_of_run, state.next_length(state.row, arm_of_run))
        look()
        state.leave_out_finished()
    ends, heights = np.array(times), np.array(regrets)
    curves = np.array([np.interp(checkpoints, ends[:, i], heights[:, i]) for i in runs])
    if state.watch is not None:
        curves = np.column_stack([curves, state.watch.found])
    return curves.reshape(len(state.policies), -1, curves.shape[1])
