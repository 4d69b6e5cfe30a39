"""Runs of contextual policies on the same contexts, one step at a time, and what every contextual engine shares.

A policy does what it does in an agent, in floating point and with continuous noise, but for what cannot be seen: the
grid of rewards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from private_bandits.arrays import Floats, Integers
from private_bandits.errors import InvalidInput
from private_bandits.policies import Offer, Policy
from private_bandits.progress import Report
from private_bandits.simulation.seeds import Seeds
from private_bandits.simulation.simulated_bandit import SimulatedBandit


class Stretch(NamedTuple):
    """Some steps of a run: the actions, [step, action, coordinate], and their mean rewards, [step, action]."""

    contexts: Floats
    means: Floats


class ContextualWorld(Protocol):
    """What a learner asks of an environment."""

    @property
    def reward_range(self) -> tuple[float, float]:
        """Where rewards lie, or what is declared."""

    @property
    def bounded(self) -> bool:
        """Whether chance is a uniform number; else it is normal."""

    @property
    def scaled(self) -> bool:
        """Whether actions are as short as a policy declares."""

    def reward_of(self, mean: float, chance: float) -> float:
        """The reward that chance makes of an action's mean."""


class ContextualLearner(SimulatedBandit):
    """One policy in one run, step by step through the methods of the policy itself."""

    def __init__(self, policy: Any, environment: ContextualWorld, seeds: Seeds, run: int) -> None:
        self._chance, noise = (np.random.default_rng(seed) for seed in seeds.own(policy, run))
        super().__init__(policy, *environment.reward_range, noise)
        self.environment = environment
        self.regret = 0.0

    def play(self, stretch: Stretch, time: int) -> tuple[Integers, Floats]:
        """Play steps that begin after `time` others: the actions, and the regret after each."""
        means = stretch.means
        chances = self._draw_chances(len(means))
        actions = np.empty(len(means), np.int64)
        for t, rows in enumerate(stretch.contexts):
            offered = self._offer(rows)
            action = self.policy.choose(self.state, offered, time + t + 1)
            reward = self.environment.reward_of(float(means[t, action]), chances[t])
            self.take(offered, action, reward, time + t + 2)
            actions[t] = action
        regrets = self.regret + np.cumsum(means.max(axis=1) - means[np.arange(len(means)), actions])
        self.regret = float(regrets[-1])
        return actions, regrets

    def _draw_chances(self, steps: int) -> list[float]:
        """What decides the rewards."""
        drawn = self._chance.random(steps) if self.environment.bounded else self._chance.standard_normal(steps)
        return drawn.tolist()  # type: ignore[no-any-return]

    def _offer(self, rows: Floats) -> Offer:
        if self.environment.scaled:
            return self.policy.offer(rows)  # type: ignore[no-any-return]
        unit: float = self.policy.unit
        return (rows / unit).astype(np.int64)


def play_stretches(
    learners: Sequence[ContextualLearner],
    stretches: Iterable[Stretch],
    horizon: int,
    checkpoints: Integers,
    report: Report = lambda part: None,
) -> tuple[Floats, Integers]:
    """One run of learners on the same stretches, each with rewards and noise of its own.

    Regrets, [policy, checkpoint], and how often each policy has released.
    """
    curves = np.empty((len(learners), len(checkpoints)))
    time = 0
    for stretch in stretches:
        steps = len(stretch.means)
        first, last = np.searchsorted(checkpoints, [time + 1, time + steps + 1])
        for p, learner in enumerate(learners):
            _, regrets = learner.play(stretch, time)
            curves[p, first:last] = regrets[checkpoints[first:last] - time - 1]
            report((time + steps * (p + 1) / len(learners)) / horizon)
        time += steps
    return curves, np.array([learner.releases for learner in learners])


def play_one_by_one(
    policies: Sequence[Policy[Any]],
    environment: Any,
    horizon: int,
    checkpoints: Integers,
    seeds: Seeds,
    run: int,
    report: Report = lambda part: None,
    *,
    stretches: Callable[[Any, int, Seeds, int], Iterable[Stretch]],
) -> tuple[Floats, Integers]:
    """Play one run of the policies on the same steps, which `stretches` draws, each with rewards and noise of its own.

    Regrets, [policy, checkpoint], and how often each policy has released.
    """
    learners = [ContextualLearner(policy, environment, seeds, run) for policy in policies]
    return play_stretches(learners, stretches(environment, horizon, seeds, run), horizon, checkpoints, report)


def regret_curves(
    policies: Sequence[Any],
    environment: Any,
    horizon: int,
    runs: int,
    checkpoints: Integers,
    seeds: Seeds,
    report: Report,
    play: Callable[..., tuple[Floats, Integers]],
) -> Floats:
    """Regret of every policy and run at the checkpoints: an array [policy, run, checkpoint]. play: plays one run."""
    found = np.empty((len(policies), runs, len(checkpoints)))
    for i in range(runs):

        def report_share(part: float, i: int = i) -> None:
            report((i + part) / runs)

        run = seeds.first + i
        found[:, i], _ = play(policies, environment, horizon, checkpoints, seeds, run, report_share)
    return found


def refuse_unknown_noise(policies: Sequence[Policy[Any]]) -> None:
    """Refuse what a learner does not know."""
    for policy in policies:
        if policy.budget.noise == "laplace" or type(policy).combination is not Policy.combination:
            raise InvalidInput(
                f"{type(policy).__name__} cannot be simulated in a contextual environment: the engine knows Gaussian "
                "noise, on one sum at a time"
            )
