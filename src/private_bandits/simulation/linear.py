"""Linear bandits in phases: what a phase plays is known when it begins, so each action's reward sum is one draw.

All runs of a policy advance together, a phase at a time; runs with the same active actions, and the same best one if
that matters, share design and plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from private_bandits.environments import FiniteEnvironment, Floats, Integers
from private_bandits.policies.fit import Fit
from private_bandits.policies.phased import PhasedElimination, surviving
from private_bandits.progress import Report


@dataclass
class Run:
    """One run: the ends of its stretches of constant regret per step, and what is active."""

    times: list[Floats]
    regrets: list[Floats]
    active: tuple[int, ...]
    best: int | None

    def play(self, arms: Integers, counts: Integers, gaps: Floats) -> None:
        """One action after the other, so often."""
        self.times.append(self.times[-1][-1] + np.cumsum(counts, dtype=float))
        self.regrets.append(self.regrets[-1][-1] + np.cumsum(counts * gaps[arms]))

    @property
    def time(self) -> float:
        """Steps so far."""
        return float(self.times[-1][-1])


class PhasedRuns:
    """Many runs of one policy."""

    def __init__(
        self,
        policy: PhasedElimination,
        environment: FiniteEnvironment,
        horizon: int,
        runs: int,
        generator: np.random.Generator,
    ) -> None:
        low, high = environment.reward_range
        self.policy = policy
        self.environment = environment
        self.width = high - low
        self.gaps = environment.means.max() - environment.means
        self.horizon = horizon
        self.generator = generator
        everything = tuple(range(len(self.gaps)))
        self.runs = [Run([np.zeros(1)], [np.zeros(1)], everything, None) for _ in range(runs)]

    def play_phase(self, phase: int) -> int:
        """Every run that has not reached the horizon plays the phase; how many of them go on."""
        groups: dict[tuple[tuple[int, ...], int | None], list[Run]] = {}
        leads = self.policy.lead > 0
        for run in self.runs:
            if run.time < self.horizon:
                groups.setdefault((run.active, run.best if leads else None), []).append(run)
        for (active, best), members in groups.items():
            self._play_group(phase, active, best, members)
        return sum(run.time < self.horizon for run in self.runs)

    def _play_group(self, phase: int, active: tuple[int, ...], best: int | None, members: list[Run]) -> None:
        plan = self.policy.plan(phase, active, best)
        if not plan:  # nothing more to find out: the best action for ever
            for run in members:
                last = active[0] if run.best is None else run.best
                run.play(np.array([last]), np.array([self.horizon - int(run.time)]), self.gaps)
            return
        arms, counts = np.array(list(plan)), np.array(list(plan.values()))
        for run in members:
            run.play(arms, counts, self.gaps)
        # A phase that the horizon cuts releases nothing.
        finished = [run for run in members if run.time < self.horizon]
        if finished:
            self._learn(phase, active, arms, counts, finished)

    def _learn(self, phase: int, active: tuple[int, ...], arms: Integers, counts: Integers, runs: list[Run]) -> None:
        policy, vectors = self.policy, self.policy.vectors
        fit = Fit.of(vectors[arms], counts.astype(float), policy.design(active).basis)
        weights = type(policy).placement(fit)
        decoder, noise_sd = fit.decoder(weights), policy.noise_sd(weights, self.width)
        sums = self.environment.reward_sums(self.generator, np.tile(arms, len(runs)), np.tile(counts, len(runs)))
        phi = sums.reshape(len(runs), -1) @ fit.decoder(None).T
        if noise_sd:
            phi += noise_sd * self._draws((len(runs), decoder.shape[1])) @ decoder.T
        whitened = fit.whitened(vectors[list(active)])
        means = phi @ whitened.T
        kept = surviving(means, policy.slack(phase, means, whitened, decoder, noise_sd, self.width))
        for run, best, keep in zip(runs, means.argmax(axis=1).tolist(), kept.tolist(), strict=True):
            run.best = active[best]
            run.active = tuple(arm for arm, stays in zip(active, keep, strict=True) if stays)

    def _draws(self, shape: tuple[int, int]) -> Floats:
        """Noise of variance one."""
        if self.policy.promise.noise == "laplace":
            return self.generator.laplace(scale=0.5**0.5, size=shape)
        return self.generator.standard_normal(shape)

    def curves(self, checkpoints: Integers) -> Floats:
        """Regret at the checkpoints: exact, as it grows by the same gap at each step of a stretch."""
        return np.array([np.interp(checkpoints, np.concatenate(r.times), np.concatenate(r.regrets)) for r in self.runs])


def regret_curves(
    policies: Sequence[PhasedElimination],
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
        state = PhasedRuns(policy, environment, horizon, runs, generator)
        phase, left = 1, runs
        while left:
            left = state.play_phase(phase)
            phase += 1
            time = min(horizon, sum(run.time for run in state.runs) / runs)
            report((i + float(np.log1p(time) / np.log1p(horizon))) / len(policies))
        found.append(state.curves(checkpoints))
    return np.array(found)
