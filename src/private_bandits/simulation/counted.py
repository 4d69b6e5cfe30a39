"""Contextual policies whose episodes end by the count of rewards: AdaC-OFUL for private contexts.

Between two releases such a policy is frozen, and when the next one comes is known: many steps are played at once, by
the compiled code of the contextual engine. At a release the policy itself learns, through its own methods.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from private_bandits.arrays import Floats, Floats32, Integers
from private_bandits.environments import Contextual
from private_bandits.policies import AdaCOFULPrivate
from private_bandits.progress import Report
from private_bandits.simulation import context_runs
from private_bandits.simulation.contextual import World
from private_bandits.simulation.oful_kernels import advance
from private_bandits.simulation.oful_state import GROWTH, REGRET, freeze_as, release, stack
from private_bandits.simulation.seeds import Seeds
from private_bandits.simulation.simulated_bandit import NoisySum, OpenSum
from private_bandits.simulation.simulated_noise import release_deviation


class CountedLearner:
    """One policy in one run."""

    def __init__(self, policy: AdaCOFULPrivate, environment: Contextual, seeds: Seeds, run: int, steps: int) -> None:
        low, high = environment.reward_range
        self.policy = policy
        self.environment = environment
        self.state = policy.start(low, high)
        self.releases = 0
        self._scale = policy.moments(low, high)
        self._sum = OpenSum(np.zeros(self._scale.size))
        self._noise_sd = release_deviation(policy, low, high)
        self._chance, self._noise = (np.random.default_rng(seed) for seed in seeds.own(policy, run))
        self._uniforms: Floats32 = np.zeros((1, steps if environment.bounded else 0), np.float32)
        self._starts = np.zeros(1, np.int64)
        self._frozen = stack(1, policy.dimension)
        self._frozen.numbers[0, GROWTH] = math.inf  # of the determinant: it ends no episode
        self._learned()

    @property
    def regret(self) -> float:
        """So far."""
        return float(self._frozen.numbers[0, REGRET])

    def begin_block(self, steps: int) -> None:
        """Draw what decides the rewards of so many steps."""
        if self.environment.bounded:
            self._uniforms[0, :steps] = 2 * self._chance.random(steps) - 1
        self._starts[:] = 0

    def play(self, world: World, stop: int, time: int) -> None:
        """Play on to step `stop` of a block that begins after `time` steps."""
        while self._starts[0] < stop:
            until = min(stop, self._next_release - time)
            advance(world.block, self._frozen, self._uniforms, self._starts, until, time)
            if time + self._starts[0] == self._next_release:
                self._release()

    def _release(self) -> None:
        """Release the moments of the people since the last release, with noise, and learn from all of them."""
        d, policy, frozen = self.policy.dimension, self.policy, self._frozen
        normals, vector = np.zeros(0), np.zeros(d)
        if not self.environment.bounded:
            normals = self.environment.deviation * self._noise.standard_normal(d)
        release(frozen, 0, vector, np.array(self.environment.theta), normals, np.zeros(d))
        matrix = frozen.gram[0] - frozen.released[0]
        longest = policy.context_norm
        sums = self._scale.coordinates_of(matrix / longest**2, vector / longest / self._scale.largest_reward)
        count = self._next_release - self.state.rewards
        self._sum.total, self._sum.count = sums, count
        total, all_rewards = self._sum.close(policy.tree_levels, policy.factor)
        noise = self._noise_sd * self._noise.standard_normal(len(total))
        policy.learn(self.state, NoisySum(0, total + noise, count, all_rewards), self._next_release + 1)  # type: ignore[arg-type]
        self.releases += 1
        self._learned()

    def _learned(self) -> None:
        """Take over what the policy knows now."""
        state, frozen = self.state, self._frozen
        frozen.released[0] = frozen.gram[0]
        matrix = np.linalg.inv(state.inverse).astype(float)
        freeze_as(frozen, 0, state.theta, matrix, self.policy.optimism_of(state))
        self._next_release = state.rewards + math.ceil(self.policy.wait(state.rewards))


def play_run(
    policies: Sequence[AdaCOFULPrivate],
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
    learners = [CountedLearner(policy, environment, seeds, run, world.steps) for policy in policies]
    curves = np.empty((len(policies), len(checkpoints)))
    for time in range(0, horizon, world.steps):
        world.draw()
        stop = min(horizon - time, world.steps)
        first, last = np.searchsorted(checkpoints, [time + 1, time + stop + 1])
        for p, learner in enumerate(learners):
            learner.begin_block(stop)
            for c in range(first, last):
                learner.play(world, int(checkpoints[c]) - time, time)
                curves[p, c] = learner.regret
            learner.play(world, stop, time)
        report((time + stop) / horizon)
    return curves, np.array([learner.releases for learner in learners])


regret_curves = partial(context_runs.regret_curves, play=play_run)


def prepare(policies: Sequence[Any], environment: Contextual) -> None:
    """Compile, so that what comes next can be timed."""
    steps = math.ceil(policies[0].wait(0))
    play_run(policies[:1], environment, steps, np.array([steps]), Seeds(0, 0), 0)
