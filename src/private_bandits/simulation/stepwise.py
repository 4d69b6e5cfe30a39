"""Contextual policies that may learn from every reward: each step is played, compiled.

The slow, obvious engine beside it is contextual_steps.py. Both draw the same random numbers in the same order, so that
their runs differ by rounding alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, Protocol

import numpy as np

from private_bandits.arrays import Floats, Integers
from private_bandits.budget import Budget
from private_bandits.environments import Contextual
from private_bandits.mechanism.moments import MomentScale
from private_bandits.policies.optimism import Optimism
from private_bandits.progress import Report
from private_bandits.simulation import context_runs
from private_bandits.simulation.contextual import World
from private_bandits.simulation.seeds import Seeds
from private_bandits.simulation.simulated_noise import release_deviation
from private_bandits.simulation.stepwise_kernels import RELEASED, RELEASES, USED, WANTED, Field, lay_out, optimist, play

AHEAD = 512
"""Releases whose noise is drawn at once, at most."""
ROOM = 2**16
"""Normals that are drawn at once, about, at most."""
TALLEST = 62
"""Levels of a tree that no run completes, and whose leaves 64 bits can count."""
LONGEST_WAIT = 2**62
"""Rewards that a release may wait for: more than there are."""


class StepwisePolicy(Protocol):
    """What this engine asks of a policy, once or when a tree is complete."""

    dimension: int
    context_norm: float

    @property
    def promise(self) -> Budget:
        """The budget."""

    @property
    def unit(self) -> float:
        """A step of the grid of actions."""

    @property
    def n_sums(self) -> int:
        """One for all actions, or one for each."""

    @property
    def tree_levels(self) -> int:
        """0: no tree, every release is of new rewards."""

    def moments(self, low: float, high: float) -> MomentScale | None:
        """What is summed, if contexts are private."""

    def optimism(self, noises: int, low: float, high: float) -> Optimism:
        """The numbers of a width."""

    def wait(self, rewards: int) -> float:
        """How many rewards the next release is of."""


def noise_scales(policy: Any, low: float, high: float) -> Floats:
    """The standard deviation of the noise in each coordinate of what is released, in units of a a' and a r."""
    deviation, scale = release_deviation(policy, low, high), policy.moments(low, high)
    if scale is None:
        return np.full(policy.dimension, deviation * policy.unit)
    matrix, vector = policy.matrix_and_vector(np.full(scale.size, deviation), low, high)
    return np.concatenate([matrix[np.triu_indices(policy.dimension)], vector])


class StepwiseLearner:
    """One policy in one run, with its state in arrays that compiled code reads and writes."""

    def __init__(self, policy: StepwisePolicy, environment: Contextual, seeds: Seeds, run: int, steps: int) -> None:
        self.policy = policy
        self.environment = environment
        self._chance, self._noise = (np.random.default_rng(seed) for seed in seeds.own(policy, run))
        self._chances = np.zeros(steps)
        scales = noise_scales(policy, *environment.reward_range)
        self._noisy = bool(scales.any())
        # Where there is no tree, each release is a tree of one leaf.
        self._levels = min(TALLEST, max(1, policy.tree_levels))
        ahead = max(1, min(AHEAD, ROOM // len(scales)))
        self.state = optimist(policy.n_sums, environment.arms, policy.dimension, self._levels, scales, ahead)
        self.state.counts[USED] = ahead
        self._seen = np.full(policy.n_sums, -1)
        self._look_after()
        self._know_nothing()

    @property
    def regret(self) -> float:
        """So far."""
        return float(self.state.regret[0])

    @property
    def releases(self) -> int:
        """So far."""
        return int(self.state.counts[RELEASES])

    def begin_block(self, steps: int) -> None:
        """Draw what decides the rewards of so many steps."""
        draw = self._chance.random if self.environment.bounded else self._chance.standard_normal
        draw(out=self._chances[:steps])

    def play(self, field: Field, start: int, stop: int) -> None:
        """Play from step `start` of the block to `stop`."""
        deviation = -1.0 if self.environment.bounded else self.environment.deviation
        while start < stop:
            start = play(self.state, field, self._chances, deviation, start, stop)
            self._look_after()

    def _know_nothing(self) -> None:
        """V = shift I, theta = 0."""
        known, d = self.policy.optimism(0, *self.environment.reward_range), self.policy.dimension
        self.state.inverse[:] = np.eye(d)[:, :, None] / known.shift
        self.state.width[:] = known.width(d * math.log(known.shift), known.shift)

    def _look_after(self) -> None:
        """Draw normals if they are used up; count the noises of trees that are complete."""
        state, policy = self.state, self.policy
        if state.counts[USED] == len(state.normals):
            if self._noisy:
                self._noise.standard_normal(out=state.normals)
            state.counts[USED] = 0
        low, high = self.environment.reward_range
        for noises in np.unique(state.before[state.before != self._seen]).tolist():
            known = [policy.optimism(noises + x, low, high) for x in range(self._levels + 1)]
            state.optimism[state.before == noises] = known
        self._seen[:] = state.before
        state.counts[WANTED] = min(LONGEST_WAIT, math.ceil(policy.wait(int(state.counts[RELEASED]))))


def _fields(policies: Sequence[Any], world: World) -> dict[float, Field]:
    """Room for the contexts on the grid of each policy; most have the same."""
    shape = (world.steps, world.environment.dimension, world.environment.arms)
    ideal = world.block.ideal.reshape(-1)
    return {policy.unit: Field(np.empty(shape), np.empty((shape[0], shape[2])), ideal) for policy in policies}


def play_run(
    policies: Sequence[Any],
    environment: Contextual,
    horizon: int,
    checkpoints: Integers,
    seeds: Seeds,
    run: int,
    report: Report = lambda part: None,
) -> tuple[Floats, Integers]:
    """One run of the policies on the same contexts, each with rewards and noise of its own.

    Regrets, [policy, checkpoint], and how often each policy has released.
    """
    world = World(environment, seeds, run)
    fields = _fields(policies, world)
    learners = [StepwiseLearner(policy, environment, seeds, run, world.steps) for policy in policies]
    curves = np.empty((len(policies), len(checkpoints)))
    for time in range(0, horizon, world.steps):
        steps = min(horizon - time, world.steps)
        world.draw()
        for unit, field in fields.items():
            lay_out(world.block, unit, field)
        first, last = np.searchsorted(checkpoints, [time + 1, time + steps + 1])
        stops = [*(int(step) - time for step in checkpoints[first:last]), steps]
        for p, learner in enumerate(learners):
            learner.begin_block(steps)
            start = 0
            for c, stop in enumerate(stops, first):
                learner.play(fields[learner.policy.unit], start, stop)
                start = stop
                if c < last:
                    curves[p, c] = learner.regret
            report((time + steps * (p + 1) / len(learners)) / horizon)
    return curves, np.array([learner.releases for learner in learners])


regret_curves = partial(context_runs.regret_curves, play=play_run)


def prepare(policies: Sequence[Any], environment: Contextual) -> None:
    """Compile, so that what comes next can be timed."""
    play_run(policies[:1], environment, 1, np.array([1]), Seeds(0, 0), 0)
