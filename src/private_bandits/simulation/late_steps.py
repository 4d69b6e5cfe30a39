"""Late and missing rewards: an agent is asked and told one decision at a time, as in a trial.

The agent itself plays every run, so that a simulated run is what would happen live, but for the seeded noise.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, repeat
from typing import Any

import numpy as np

from private_bandits.agent import Agent, bandit_of
from private_bandits.arrays import Floats, Integers
from private_bandits.environments import FiniteEnvironment
from private_bandits.policies import Policy
from private_bandits.progress import Report
from private_bandits.simulation.arrivals import Arrivals, TrialWorld
from private_bandits.simulation.verdicts import NO_VERDICT, NOBODY, FirstVerdict
from private_bandits.state import Decision

CHUNK = 256
"""Random numbers drawn together: one by one they would take longer than the agent."""

AfterRelease = Callable[[Agent, int], None]
"""Called with the agent, and with the number of decisions made so far, when a told reward has released something."""


def play_run(
    policy: Policy[Any],
    environment: FiniteEnvironment,
    arrivals: Arrivals,
    horizon: int,
    generator: np.random.Generator,
    *,
    after_release: AfterRelease | None = None,
    report: Report = lambda part: None,
) -> Integers:
    """Return the action of every decision of one run, with seeded noise.

    A reward with delay d is told once d later decisions were made, before the next one. Rewards that are due at the
    same time are told in the order of their decisions. Where a reward is missing, its decision is given up instead.
    What is due after the last decision is not told. Noise, rewards and arrivals have a stream of random numbers each.

    after_release: called after every told reward that released something.
    report: told now and then which share of the run is done.
    """
    agent = Agent(policy, environment.reward_range, seed=int(generator.integers(2**62)))
    of_rewards, of_arrivals = generator.spawn(2)
    rewards = [_rewards(environment, arm, of_rewards) for arm in range(len(environment.means))]
    tell = agent.tell if after_release is None else _telling(agent, after_release)
    actions = np.empty(horizon, dtype=np.int64)
    due: defaultdict[int, list[tuple[Decision, float | None]]] = defaultdict(list)
    for step, (delay, missing) in zip(range(horizon), _arrivals(arrivals, of_arrivals), strict=False):
        decision = agent.ask()
        actions[step] = decision.action
        reward = next(rewards[decision.action])
        due[step + delay].append((decision, None if missing else reward))
        for earlier, told in due.pop(step, ()):
            if told is None:
                agent.give_up(earlier)
            else:
                tell(earlier, told)
        if step % CHUNK == 0:
            report(step / horizon)
    return actions


def _rewards(environment: FiniteEnvironment, arm: int, generator: np.random.Generator) -> Iterator[float]:
    """Rewards of one arm without end."""
    arms, ones = np.full(CHUNK, arm), np.ones(CHUNK, dtype=np.int64)
    return chain.from_iterable(environment.reward_sums(generator, arms, ones).tolist() for _ in repeat(None))


def _arrivals(arrivals: Arrivals, generator: np.random.Generator) -> Iterator[tuple[int, bool]]:
    """Delays without end, and whether each reward is missing."""
    return chain.from_iterable(arrivals.draws(generator, CHUNK) for _ in repeat(None))


def _telling(agent: Agent, after_release: AfterRelease) -> Callable[[Decision, float], None]:
    """Return `agent.tell`, followed by `after_release` where it released something."""
    bandit = bandit_of(agent)
    account, public = bandit.door.account, bandit.public

    def tell(decision: Decision, reward: float) -> None:
        before = len(account)
        agent.tell(decision, reward)
        if len(account) > before:
            after_release(agent, public.asked)

    return tell


class Look:
    """Looks for a verdict after every release, and notes the first one."""

    def __init__(self, delta: float | None) -> None:
        self.delta = delta
        self.found = NO_VERDICT

    def __call__(self, agent: Agent, decisions: int) -> None:
        """Look once, after so many decisions."""
        if self.found.winner == NOBODY and self.delta is not None:
            winner = agent.verdict(self.delta).action
            if winner is not None:
                self.found = FirstVerdict(decisions, winner)


def regret_curves(
    policies: Sequence[Policy[Any]],
    world: TrialWorld,
    horizon: int,
    runs: int,
    checkpoints: Integers,
    generators: Sequence[np.random.Generator],
    report: Report,
) -> Floats:
    """Regret of every policy and run at the checkpoints: an array [policy, run, checkpoint].

    Every decision counts when it is made, whether its reward has come or not. Where verdicts are looked for, two
    columns follow (`verdicts.FirstVerdict`).
    """
    means = world.environment.means
    gaps = means.max() - means
    watched = 0 if world.verdict is None else len(FirstVerdict._fields)
    curves = np.empty((len(policies), runs, len(checkpoints) + watched))
    total = len(policies) * runs
    for done, (i, run) in enumerate(np.ndindex(len(policies), runs)):

        def within(part: float, done: int = done) -> None:
            report((done + part) / total)

        look = Look(world.verdict)
        actions = play_run(
            *(policies[i], world.environment, world.arrivals, horizon, generators[i]),
            after_release=None if world.verdict is None else look,
            report=within,
        )
        curves[i, run] = [*np.cumsum(gaps[actions])[checkpoints - 1], *(look.found if watched else ())]
    return curves
