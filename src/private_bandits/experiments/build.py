"""From an experiment to its simulation: environment, policies, tasks. All of it follows from the data and the seed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from private_bandits.budget import NoPrivacy, zCDP
from private_bandits.environments import Bernoulli, Integers
from private_bandits.errors import InvalidInput
from private_bandits.experiments.data import Entry, Experiment
from private_bandits.instances import contextual_instance, linear_instance, parameters_of, policy_named
from private_bandits.policies import Policy
from private_bandits.simulation.run import Task, log_checkpoints, tasks_for

Given = Mapping[str, Any]
"""What the world tells policies about itself, by the names of their parameters."""


def _finite(experiment: Experiment, seed: int) -> tuple[Any, Given]:
    return Bernoulli(experiment.means), {"n_arms": len(experiment.means)}


def _linear(experiment: Experiment, seed: int) -> tuple[Any, Given]:
    noise = "gaussian" if experiment.of_the_paper else "bounded"
    environment = linear_instance(seed, noise, experiment.arms, experiment.dimension)
    return environment, {"actions": environment.actions}


def _contextual(experiment: Experiment, seed: int) -> tuple[Any, Given]:
    environment = contextual_instance(seed, experiment.setting_as, experiment.arms, experiment.dimension)
    return environment, {"dimension": environment.dimension, "arms": environment.arms}


WORLDS: dict[str, Callable[[Experiment, int], tuple[Any, Given]]] = {
    "finite": _finite,
    "linear": _linear,
    "contextual": _contextual,
}
"""The world of each setting."""


@dataclass(frozen=True)
class Study:
    """An experiment with a seed, ready to be simulated. policies: by their labels."""

    experiment: Experiment
    seed: int
    environment: Any
    policies: Mapping[str, Policy[Any]]
    checkpoints: Integers
    tasks: tuple[Task, ...]


def study_of(experiment: Experiment, seed: int) -> Study:
    """The instance and the policies of an experiment.

    Its numbers are those of `simulate` with the same policies, environment, horizon, runs and seed.

    >>> from private_bandits.experiments.data import EXPERIMENTS
    >>> study = study_of(EXPERIMENTS["finite"], seed=0)
    >>> len(study.policies), str(study.environment)
    (14, 'Bernoulli(probabilities=(0.75, 0.625, 0.5, 0.375, 0.25))')
    """
    if experiment.setting not in WORLDS:
        raise InvalidInput(f"setting must be one of {', '.join(WORLDS)}, got {experiment.setting!r}")
    environment, given = WORLDS[experiment.setting](experiment, seed)
    given = {**given, "horizon": experiment.horizon}
    policies = {entry.label: _policy(experiment, entry, given) for entry in experiment.entries}
    if len(policies) < len(experiment.entries):
        raise InvalidInput(f"the entries of {experiment.name} must have different labels, got {sorted(policies)}")
    points = log_checkpoints(experiment.horizon)
    tasks = tasks_for(policies, environment, experiment.horizon, points, seed)
    return Study(experiment, seed, environment, policies, points, tuple(tasks))


def _policy(experiment: Experiment, entry: Entry, given: Given) -> Policy[Any]:
    budget = NoPrivacy() if math.isinf(entry.rho) else zCDP(entry.rho)
    options = dict(entry.options)
    policy = policy_named(entry.policy, experiment.setting, budget, {**given, **options})
    unknown = sorted(set(options) - parameters_of(entry.policy))
    if unknown:
        raise InvalidInput(f"{entry.policy} has no option {unknown[0]!r}: take it out of {entry.label!r}")
    return policy
