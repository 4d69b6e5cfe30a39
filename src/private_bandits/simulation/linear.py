"""Linear bandits in phases: what a phase plays is known when it begins, so each action's reward sum is one draw.

All runs of a policy advance together, a phase at a time; runs with the same active actions, and the same best one if
that matters, share design and plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from private_bandits.arrays import Floats, Integers
from private_bandits.environments import FiniteEnvironment
from private_bandits.policies.adac_gope import AdaCGOPE
from private_bandits.policies.fit import Fit
from private_bandits.policies.phased_elimination import LONGEST, PhasedElimination, surviving
from private_bandits.policies.tight_phases import ENTRIES, ROUNDING, pair_log_inv_failure, shortest_length
from private_bandits.progress import Report
from private_bandits.simulation.allocation_cache import (
    Key,
    PlayedAllocation,
    alike,
    estimates,
    known_mixes,
    largest_squares,
    membership,
)
from private_bandits.simulation.simulated_noise import release_variance


@dataclass
class PhasedRun:
    """One run: the ends of its stretches of constant regret per step, and what is active."""

    times: list[Floats]
    regrets: list[Floats]
    active: tuple[int, ...]
    best: int | None
    time: float = 0.0
    """Steps so far."""

    def play(self, arms: Integers, counts: Integers, gaps: Floats) -> None:
        """One action after the other, so often."""
        self.go_on(np.cumsum(counts, dtype=float), np.cumsum(counts * gaps[arms]))

    def go_on(self, times: Floats, regrets: Floats) -> None:
        """Stretches that end after so many more steps, with so much more regret."""
        self.times.append(self.times[-1][-1] + times)
        self.regrets.append(self.regrets[-1][-1] + regrets)
        self.time = float(self.times[-1][-1])


Groups = dict[tuple[tuple[int, ...], int | None], list[PhasedRun]]
"""Runs by what is active, and the best action."""


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
        self.runs = [PhasedRun([np.zeros(1)], [np.zeros(1)], everything, None) for _ in range(runs)]

    def play_phase(self, phase: int) -> int:
        """Every run that has not reached the horizon plays the phase; how many of them go on."""
        groups: Groups = {}
        leads = self.policy.lead > 0
        for run in self.runs:
            if run.time < self.horizon:
                groups.setdefault((run.active, run.best if leads else None), []).append(run)
        self._play_groups(phase, groups)
        return sum(run.time < self.horizon for run in self.runs)

    def _play_groups(self, phase: int, groups: Groups) -> None:
        for (active, best), members in groups.items():
            self._play_group(phase, active, best, members)

    def _play_group(self, phase: int, active: tuple[int, ...], best: int | None, members: list[PhasedRun]) -> None:
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

    def _learn(
        self, phase: int, active: tuple[int, ...], arms: Integers, counts: Integers, runs: list[PhasedRun]
    ) -> None:
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
        if self.policy.budget.noise == "laplace":
            return self.generator.laplace(scale=0.5**0.5, size=shape)
        return self.generator.standard_normal(shape)

    def curves(self, checkpoints: Integers) -> Floats:
        """Regret at the checkpoints: exact, as it grows by the same gap at each step of a stretch."""
        return np.array([np.interp(checkpoints, np.concatenate(r.times), np.concatenate(r.regrets)) for r in self.runs])


class ShortPhasedRuns(PhasedRuns):
    """The same for the variant "tight" of AdaC-GOPE, whose runs soon differ in what is active.

    So the linear algebra of many groups is done together, in arrays [group or run, action, coordinate]: actions that
    are not active, or not played, have no weight. The formulas are those of policies/tight_phases.py. Groups whose
    actions nearly depend on each other, or that have no best action yet, are played as above.
    """

    def _play_groups(self, phase: int, groups: Groups) -> None:
        mixes = known_mixes(self.policy.rows, self.policy.tol, self.policy.lead)
        # One action is the best one; it is not known in the first phase.
        keys = [(active, best) for active, best in groups if best is not None and len(active) > 1]
        left = dict(groups)
        for start in range(0, len(keys), mixes.room):
            played = mixes.of(self.policy, keys[start : start + mixes.room])
            for items in alike(played.items(), lambda item: item[1].basis.shape[1]).values():
                self._play_batch(Batch.of(self.policy, phase, dict(items)), left)
        super()._play_groups(phase, left)

    def _play_batch(self, batch: Batch, left: Groups) -> None:
        """Play the phase of these groups, and take them out of those that are left."""
        which: list[int] = []
        finished: list[PhasedRun] = []
        order = np.argsort(np.arange(len(batch.arms)) != batch.bests[:, None], axis=1, kind="stable")  # the best first
        counts = np.take_along_axis(batch.counts, order, 1)
        ends, losses = counts.cumsum(axis=1, dtype=float), (counts * self.gaps[batch.arms[order]]).cumsum(axis=1)
        for i, (key, played) in enumerate(zip(batch.keys, counts > 0, strict=True)):
            times, regrets = ends[i, played], losses[i, played]
            for run in left.pop(key):
                run.go_on(times, regrets)
                if run.time < self.horizon:
                    which.append(i)
                    finished.append(run)
        if not finished:
            return
        size, estimate = max(1, ENTRIES // batch.vectors.size), estimates(batch.vectors, batch.counts, batch.bases)
        for start in range(0, len(finished), size):
            part = slice(start, start + size)
            self._learn_together(batch, estimate, np.array(which[part]), finished[part])

    def _learn_together(self, batch: Batch, estimate: Estimates, which: Integers, runs: list[PhasedRun]) -> None:
        """which: the group of each run."""
        whitened, weights = estimate
        counts, among = batch.counts[which], batch.among[which]
        sums = self.environment.reward_sums(self.generator, np.tile(batch.arms, len(runs)), counts.ravel())
        phi = (sums.reshape(len(runs), 1, -1) @ weights[which])[:, 0]
        # The weights are not rounded: what is released is phi.
        noise_sd = self.width * np.sqrt(release_variance(self.policy) * largest_squares(weights))[which, None]
        phi += noise_sd * self._draws(phi.shape)
        points = whitened[which]
        means = np.where(among, (points @ phi[:, :, None])[:, :, 0], -np.inf)
        leaders = means.argmax(axis=1)
        apart = np.linalg.norm(points - points[np.arange(len(runs)), leaders][:, None], axis=2)
        width = np.sqrt(2 * batch.log_inv_failure[which, None]) * np.hypot(self.width / 2, noise_sd) * apart
        kept = surviving(means, width / 2 + ROUNDING * self.width)
        for run, leader, keep in zip(runs, batch.arms[leaders].tolist(), kept, strict=True):
            run.best, run.active = leader, tuple(batch.arms[keep].tolist())


Estimates = tuple[Floats, Floats]
"""All actions whitened, and the weights of the rewards of each in phi, for each group."""


@dataclass
class Batch:
    """A phase of several groups that have sets of one rank active."""

    keys: list[Key]
    arms: Integers
    """What is active in any of them. The arrays below are over these actions, a row a group."""
    vectors: Floats
    bases: Floats
    among: NDArray[np.bool_]
    """Whether an action is active."""
    bests: Integers
    log_inv_failure: Floats
    counts: Integers
    """How often an action is played."""

    @classmethod
    def of(cls, policy: PhasedElimination, phase: int, mixes: dict[Key, PlayedAllocation]) -> Batch:
        """Planned as by policy.plan, but for groups whose phase exact sums have no room for."""
        log_inv_failure = np.array([pair_log_inv_failure(phase, len(active), policy.delta) for active, _ in mixes])
        apart, largest = (np.array([getattr(p, name) for p in mixes.values()]) for name in ("apart", "largest"))
        factor = release_variance(policy)
        length = policy.phase_factor * shortest_length(log_inv_failure, 2.0**-phase, apart, largest, factor)
        short = (length > 0) & ((1 + policy.lead) * length < LONGEST)
        mixes = {key: played for (key, played), stays in zip(mixes.items(), short.tolist(), strict=True) if stays}
        arms, among = membership([active for active, _ in mixes], len(policy.vectors))
        bests = np.searchsorted(arms, [best for _, best in mixes])
        bases = np.array([played.basis for played in mixes.values()])
        shares = np.array([played.shares for played in mixes.values()]).reshape(len(mixes), len(policy.vectors))
        counts = np.ceil(length[short][:, None] * shares[:, arms]).astype(np.int64)
        return cls(list(mixes), arms, policy.vectors[arms], bases, among, bests, log_inv_failure[short], counts)


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
        # A subclass may measure otherwise, which only its own methods know.
        kind = ShortPhasedRuns if type(policy) is AdaCGOPE and policy.tight else PhasedRuns
        state = kind(policy, environment, horizon, runs, generator)
        phase, left = 1, runs
        while left:
            left = state.play_phase(phase)
            phase += 1
            time = min(horizon, sum(run.time for run in state.runs) / runs)
            report((i + float(np.log1p(time) / np.log1p(horizon))) / len(policies))
        found.append(state.curves(checkpoints))
    return np.array(found)
