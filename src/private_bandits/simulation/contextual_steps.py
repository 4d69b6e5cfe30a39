"""Contextual linear bandits one step at a time, for every policy: the oracle of the compiled engines, and for the rest.

What an agent does, in floating point and with continuous noise, but for what cannot be seen: the grid of rewards. All
policies of a run see the contexts that the compiled engines show them, so differences between the engines' policies
are paired too.

In the setting "strict" actions are offered as to an agent. In the setting "paper" they are longer than what is
declared, and a policy would refuse or shorten them. They are taken as drawn, as in the compiled engines, and where
contexts are private as well; noise is for what is declared. No guarantee would hold then, which the simulation says.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from private_bandits.arrays import Floats, Integers
from private_bandits.environments import Contextual
from private_bandits.errors import InvalidInput
from private_bandits.policies import Offer, Policy
from private_bandits.progress import Report
from private_bandits.simulation import contextual
from private_bandits.simulation.contextual import World
from private_bandits.simulation.seeds import Seeds
from private_bandits.simulation.simulated_bandit import SimulatedBandit


class ContextualLearner(SimulatedBandit):
    """One policy in one run, step by step through the methods of the policy itself."""

    def __init__(self, policy: Any, environment: Contextual, seeds: Seeds, run: int) -> None:
        self._chance, noise = (np.random.default_rng(seed) for seed in seeds.own(policy, run))
        super().__init__(policy, *environment.reward_range, noise)
        self.environment = environment
        self.regret = 0.0

    def play(self, contexts: Floats, time: int) -> tuple[Integers, Floats]:
        """Play a block that begins after `time` steps: its actions, and the regret after each."""
        means = contexts @ np.array(self.environment.theta)
        chances = self._draw_chances(len(contexts))
        actions = np.empty(len(contexts), np.int64)
        for t, rows in enumerate(contexts):
            offered = self._offer(rows)
            action = self.policy.choose(self.state, offered, time + t + 1)
            self.take(offered, action, self._reward(float(means[t, action]), chances[t]), time + t + 2)
            actions[t] = action
        regrets = self.regret + np.cumsum(means.max(axis=1) - means[np.arange(len(means)), actions])
        self.regret = float(regrets[-1])
        return actions, regrets

    def _draw_chances(self, steps: int) -> list[float]:
        """What decides the rewards."""
        drawn = self._chance.random(steps) if self.environment.bounded else self._chance.standard_normal(steps)
        return drawn.tolist()  # type: ignore[no-any-return]

    def _reward(self, mean: float, chance: float) -> float:
        if self.environment.bounded:
            return 1.0 if 2 * chance - 1 < mean else -1.0
        return mean + self.environment.deviation * chance

    def _offer(self, rows: Floats) -> Offer:
        if self.environment.scaled:
            return self.policy.offer(rows)  # type: ignore[no-any-return]
        unit: float = self.policy.unit
        return (rows / unit).astype(np.int64)


def _blocks(environment: Contextual, horizon: int, seeds: Seeds, run: int) -> Iterator[Floats]:
    """The contexts of a run, [step, action, coordinate], some thousand steps at a time."""
    world = World(environment, seeds, run)
    for time in range(0, horizon, world.steps):
        world.draw()
        drawn = world.block.contexts.transpose(0, 3, 1, 2).astype(float)
        yield drawn.reshape(-1, *drawn.shape[2:])[: horizon - time]


def play_run(
    policies: Sequence[Policy[Any]],
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
    learners = [ContextualLearner(policy, environment, seeds, run) for policy in policies]
    curves = np.empty((len(policies), len(checkpoints)))
    time = 0
    for contexts in _blocks(environment, horizon, seeds, run):
        first, last = np.searchsorted(checkpoints, [time + 1, time + len(contexts) + 1])
        for p, learner in enumerate(learners):
            _, regrets = learner.play(contexts, time)
            curves[p, first:last] = regrets[checkpoints[first:last] - time - 1]
            report((time + len(contexts) * (p + 1) / len(learners)) / horizon)
        time += len(contexts)
    return curves, np.array([learner.releases for learner in learners])


regret_curves = partial(contextual.regret_curves, play=play_run)


def prepare(policies: Sequence[Policy[Any]], environment: Contextual) -> None:
    """Compile what draws contexts, so that what comes next can be timed; refuse what this engine does not know."""
    for policy in policies:
        if policy.budget.noise == "laplace" or type(policy).combination is not Policy.combination:
            raise InvalidInput(
                f"{type(policy).__name__} cannot be simulated in a contextual environment: the engine knows Gaussian "
                "noise, on one sum at a time"
            )
    World(environment, Seeds(0, 0), 0).draw()
