"""Successive elimination of finite arms: a draw per arm and epoch, as an epoch's plays are known when it begins.

Regret is exact at every checkpoint, within an epoch too: active arms are played in turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from private_bandits.arrays import Floats, Integers
from private_bandits.environments import FiniteEnvironment
from private_bandits.policies.dp_se import DPSE
from private_bandits.progress import Report
from private_bandits.simulation.simulated_noise import noise_draws


@dataclass
class EliminationRun:
    """One run: when each epoch began, with what regret, and the arms that it plays in turn."""

    active: Integers
    begun: list[tuple[int, float, Integers]] = field(default_factory=list)
    time: int = 0
    regret: float = 0.0

    def play(self, arms: Integers, rounds: int, gaps: Floats) -> None:
        """These arms in turn."""
        self.begun.append((self.time, self.regret, arms))
        self.time += rounds * len(arms)
        self.regret += rounds * float(gaps[arms].sum())

    def regrets(self, checkpoints: Integers, gaps: Floats) -> Floats:
        """After so many steps each: whole rounds of the epoch, and part of one."""
        starts = np.array([start for start, _, _ in self.begun])
        found = np.empty(len(checkpoints))
        for i, epoch in enumerate((np.searchsorted(starts, checkpoints, side="left") - 1).tolist()):
            start, regret, arms = self.begun[epoch]
            rounds, more = divmod(int(checkpoints[i]) - start, len(arms))
            found[i] = regret + rounds * gaps[arms].sum() + gaps[arms[:more]].sum()
        return found


class EliminationRuns:
    """Many runs of one policy; those with the same active arms play an epoch together."""

    def __init__(
        self, policy: DPSE, environment: FiniteEnvironment, horizon: int, runs: int, generator: np.random.Generator
    ) -> None:
        low, high = environment.reward_range
        self.policy, self.environment, self.horizon, self.generator = policy, environment, horizon, generator
        self.width = high - low
        self.gaps = environment.means.max() - environment.means
        self.best = np.zeros(runs, dtype=np.int64)
        self.runs = [EliminationRun(np.arange(len(self.gaps))) for _ in range(runs)]

    def play_epoch(self, epoch: int) -> int:
        """Every run that has not reached the horizon plays the epoch; how many of them go on."""
        groups: dict[tuple[int, ...], list[int]] = {}
        for i, run in enumerate(self.runs):
            if run.time < self.horizon:
                groups.setdefault(tuple(run.active.tolist()), []).append(i)
        for active, members in groups.items():
            self._play_group(epoch, np.array(active), members)
        return sum(run.time < self.horizon for run in self.runs)

    def _play_group(self, epoch: int, active: Integers, members: list[int]) -> None:
        plays = self.policy.plays(epoch, len(active))
        for i in members:
            run = self.runs[i]
            if plays:
                run.play(active, plays, self.gaps)
            else:  # nothing more to find out
                run.play(self.best[i : i + 1], self.horizon - run.time, self.gaps)
        # An epoch that the horizon cuts releases nothing.
        finished = [i for i in members if self.runs[i].time < self.horizon]
        if not finished:
            return
        shape = (len(finished), len(active))
        arms = np.tile(active, len(finished))
        sums = self.environment.reward_sums(self.generator, arms, np.full(len(arms), plays)).reshape(shape)
        means = (sums + noise_draws(self.policy.budget, self.width, self.generator, shape)) / plays
        kept = self.policy.kept(means, epoch, plays, self.width)
        self.best[finished] = active[means.argmax(axis=1)]
        for i, keep in zip(finished, kept, strict=True):
            self.runs[i].active = active[keep]


def regret_curves(
    policies: Sequence[DPSE],
    environment: FiniteEnvironment,
    horizon: int,
    runs: int,
    checkpoints: Integers,
    generators: Sequence[np.random.Generator],
    report: Report,
) -> Floats:
    """Regret of every policy and run at the checkpoints: an array [policy, run, checkpoint]."""
    found = []
    for i, (policy, generator) in enumerate(zip(policies, generators, strict=True)):
        state = EliminationRuns(policy, environment, horizon, runs, generator)
        epoch, left = 1, runs
        while left:
            left = state.play_epoch(epoch)
            epoch += 1
            report((i + 1 - left / runs) / len(policies))
        found.append([run.regrets(checkpoints, state.gaps) for run in state.runs])
    return np.array(found)
