"""The slow, obvious engine: one agent, one ask and one tell at a time. Works for every policy.

It is the oracle of the fast engines, and what a policy without a fast engine is simulated with.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from private_bandits.agent import Agent
from private_bandits.arrays import Floats, Integers
from private_bandits.environments import FiniteEnvironment
from private_bandits.policies import Policy
from private_bandits.progress import Report


def actions_and_regret(
    policy: Policy[Any], environment: FiniteEnvironment, horizon: int, generator: np.random.Generator
) -> tuple[Integers, Floats]:
    """The action of every step and the regret after it, of one run with seeded noise."""
    agent = Agent(policy, environment.reward_range, seed=int(generator.integers(2**62)))
    gaps = environment.means.max() - environment.means
    once = np.ones(1, dtype=np.int64)
    actions = np.empty(horizon, dtype=np.int64)
    for step in range(horizon):
        decision = agent.ask()
        actions[step] = decision.action
        reward = environment.reward_sums(generator, once * decision.action, once)[0]
        agent.tell(decision, float(reward))
    return actions, np.cumsum(gaps[actions])


def regret_curves(
    policies: Sequence[Policy[Any]],
    environment: FiniteEnvironment,
    horizon: int,
    runs: int,
    checkpoints: Integers,
    generators: Sequence[np.random.Generator],
    report: Report,
) -> Floats:
    """Regret of every policy and run at the checkpoints: an array [policy, run, checkpoint]."""
    curves = np.empty((len(policies), runs, len(checkpoints)))
    for i, (policy, generator) in enumerate(zip(policies, generators, strict=True)):
        for run in range(runs):
            _, regret = actions_and_regret(policy, environment, horizon, generator)
            curves[i, run] = regret[checkpoints - 1]
            report((i * runs + run + 1) / (len(policies) * runs))
    return curves
