"""Contextual linear bandits: a policy is frozen between two releases, so many steps are played at once.

All policies of a run see the same contexts, a block of steps at a time. A determinant only grows, so the end of an
episode is looked for only where a stretch of steps has passed it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from private_bandits.arrays import Floats, Floats32, Integers
from private_bandits.environments import Contextual
from private_bandits.errors import InvalidInput
from private_bandits.policies.decoding import DecodedSum
from private_bandits.progress import Report
from private_bandits.simulation import context_runs
from private_bandits.simulation.normals import LANES, PAIRS, fill_uniforms, generators
from private_bandits.simulation.oful_kernels import SCRATCH, TILE, ContextBlock, advance, draw
from private_bandits.simulation.oful_state import GROWTH, REGRET, WIDTH, freeze, release, stack
from private_bandits.simulation.seeds import Seeds

ROOM = 2**16
"""Numbers in a block of contexts, about: they have to stay in the cache while every policy passes."""
TILES = 8
"""Tiles in a block, at most."""


class World:
    """The contexts of one run."""

    def __init__(self, environment: Contextual, seeds: Seeds, run: int) -> None:
        d, actions = environment.dimension, environment.arms
        tile = min(TILE, max(LANES, ROOM // (d * actions) // LANES * LANES))
        tiles = max(1, min(TILES, ROOM // (d * actions * tile)))
        self.environment = environment
        self.steps = tile * tiles
        size = self.steps * d * actions
        self._normals = np.empty(-(-size // PAIRS) * PAIRS, np.float32)
        self._lanes = generators(seeds.contexts(run))
        # A little less than one, so that rounding leaves no action outside the unit ball.
        self._longest = 1 - (d + 4) * 2.0**-24 if environment.scaled else 0.0
        self.block = ContextBlock(
            contexts=self._normals[:size].reshape(tiles, actions, d, tile),
            theta=np.array(environment.theta),
            ideal=np.empty((tiles, tile)),
            scratch=np.zeros(SCRATCH, np.float32),
            chosen=np.zeros((d, tile)),
            means=np.zeros(tile),
            places=np.zeros(tile, np.int64),
        )

    def draw(self) -> None:
        """The contexts of the next `steps` steps."""
        draw(self._lanes, self._normals, self.block, self._longest)


class Learners:
    """The policies of one run."""

    def __init__(self, policies: Sequence[Any], environment: Contextual, seeds: Seeds, run: int, steps: int) -> None:
        count, d = len(policies), environment.dimension
        low, high = environment.reward_range
        self.environment = environment
        self._truth = np.array(environment.theta)
        self._variances = [p.budget.variance_factor * ((high - low) * p.context_norm) ** 2 for p in policies]
        self._betas = [2 * math.log(1 / p.reward_delta) - d * math.log(p.regulariser) for p in policies]
        self._ridges = [math.sqrt(p.regulariser) * p.parameter_norm for p in policies]
        self._explorations = [p.exploration for p in policies]
        self._tails = [p.noise_length for p in policies]
        self._decoders = [p.decoder for p in policies]
        # Of policies whose releases hold earlier episodes again: the noise in the sum of all, as it is decoded.
        self._noises = [None if p.factor is None else DecodedSum(p.factor, np.zeros(d)) for p in policies]
        own = [seeds.own(policy, run) for policy in policies]
        self._generators = [np.random.default_rng(noise) for _, noise in own]
        self._lanes = np.array([generators(chance) for chance, _ in own])
        self._uniforms: Floats32 = np.zeros((count, steps if environment.bounded else 0), np.float32)
        self._totals: Floats = np.zeros((count, d))
        self.releases: Integers = np.zeros(count, np.int64)
        self._starts: Integers = np.zeros(count, np.int64)
        self._frozen = stack(count, d)
        self._frozen.numbers[:, GROWTH] = [math.log1p(p.growth) for p in policies]
        self._frozen.gram[:] = [p.regulariser * np.eye(d) for p in policies]
        for p in range(count):
            self._freeze(p)

    @property
    def regrets(self) -> Floats:
        """So far."""
        return self._frozen.numbers[:, REGRET]

    def begin_block(self) -> None:
        """Draw what decides the rewards of a block of steps."""
        fill_uniforms(self._lanes, self._uniforms)
        self._starts[:] = 0

    def play(self, world: World, stop: int, time: int, horizon: int) -> None:
        """Play on to step `stop` of a block that begins after `time` steps."""
        while True:
            p = advance(world.block, self._frozen, self._uniforms, self._starts, stop, time)
            if p == len(self._starts):
                return
            if time + self._starts[p] < horizon:
                self.release(p)

    def release(self, p: int) -> None:
        """Release the episode's sum of a r of policy p, with noise, and learn from all that it has released."""
        d = len(self._truth)
        normals, noise = self._generators[p].standard_normal((2, d))
        if self.environment.bounded:
            normals = normals[:0]
        noise *= math.sqrt(self._variances[p])
        noises = self._noises[p]
        if noises is not None:
            # Decoding is linear: it makes the sums of the sums of rewards, and of the noises this.
            before = noises.total
            noises.take(math.sqrt(noises.factor.column) * noise)
            noise = noises.total - before
        release(self._frozen, p, self._totals[p], self._truth, self.environment.deviation * normals, noise)
        self.releases[p] += 1
        self._freeze(p)

    def _freeze(self, p: int) -> None:
        noise = self._variances[p] * self._decoders[p].prefix_noise(int(self.releases[p])) * self._tails[p]
        parts = self._explorations[p], self._betas[p], self._ridges[p], noise
        freeze(self._frozen, p, self._totals[p], *parts)
        if not math.isfinite(self._frozen.numbers[p, WIDTH]):
            raise InvalidInput(
                f"regulariser is too small for double precision: V = lambda I + sum of a a' is singular after "
                f"{self.releases[p]} releases"
            )


def play_run(
    policies: Sequence[Any],
    environment: Contextual,
    horizon: int,
    checkpoints: Integers,
    seeds: Seeds,
    run: int,
    report: Report = lambda part: None,
) -> tuple[Floats, Integers]:
    """One run of the policies on the same contexts, each with noise of its own.

    Regrets, [policy, checkpoint], and how often each policy has released.
    """
    world = World(environment, seeds, run)
    learners = Learners(policies, environment, seeds, run, world.steps)
    curves = np.empty((len(policies), len(checkpoints)))
    for time in range(0, horizon, world.steps):
        world.draw()
        learners.begin_block()
        stop = min(horizon - time, world.steps)
        first, last = np.searchsorted(checkpoints, [time + 1, time + stop + 1])
        for c in range(first, last):
            learners.play(world, int(checkpoints[c]) - time, time, horizon)
            curves[:, c] = learners.regrets
        learners.play(world, stop, time, horizon)
        report((time + stop) / horizon)
    return curves, learners.releases


def contexts(environment: Contextual, steps: int, seeds: Seeds, run: int) -> Floats32:
    """The contexts that all policies of a run see, [step, action, coordinate]."""
    world = World(environment, seeds, run)
    found: list[Floats32] = []
    for _ in range(0, steps, world.steps):
        world.draw()
        found.extend(world.block.contexts.transpose(0, 3, 1, 2).copy())
    return np.concatenate(found)[:steps]


regret_curves = partial(context_runs.regret_curves, play=play_run)


def prepare(policies: Sequence[Any], environment: Contextual) -> None:
    """Compile, so that what comes next can be timed."""
    world = World(environment, Seeds(0, 0), 0)
    world.draw()
    learners = Learners(policies[:1], environment, Seeds(0, 0), 0, world.steps)
    learners.begin_block()
    learners.play(world, 1, 0, 1)
    learners.release(0)
