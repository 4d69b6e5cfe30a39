"""From an experiment to its simulation: environment, policies, tasks. All of it follows from the data and the seed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from private_bandits.arrays import Integers
from private_bandits.budget import NoPrivacy, zCDP
from private_bandits.environments import Bernoulli
from private_bandits.errors import InvalidInput
from private_bandits.experiments.run.experiment import Entry, Experiment, Instance
from private_bandits.experiments.run.lower_bound_instances import HARD
from private_bandits.experiments.run.real_data import bundled_table
from private_bandits.instances import contextual_instance, linear_instance, parameters_of, policy_named
from private_bandits.policies import Policy
from private_bandits.simulation.linucb import LinUCB
from private_bandits.simulation.run import Task, log_checkpoints, tasks_for

Given = Mapping[str, Any]
"""What the world tells policies about itself, by the names of their parameters."""


def _finite(experiment: Experiment, instance: Instance, seed: int) -> tuple[Any, Given]:
    means = instance.means or tuple(np.random.default_rng(seed).uniform(size=instance.arms).tolist())
    return Bernoulli(means), {"n_arms": len(means)}


def _linear(experiment: Experiment, instance: Instance, seed: int) -> tuple[Any, Given]:
    noise = "gaussian" if experiment.of_the_paper else "bounded"
    environment = linear_instance(seed, noise, instance.arms, instance.dimension)
    return environment, {"actions": environment.actions}


def _contextual(experiment: Experiment, instance: Instance, seed: int) -> tuple[Any, Given]:
    environment: Any
    if instance.table:
        environment = bundled_table(instance.table, instance.components)
    else:
        environment = contextual_instance(seed, experiment.setting_as, instance.arms, instance.dimension)
    return environment, {"dimension": environment.dimension, "arms": environment.arms}


WORLDS: dict[str, Callable[[Experiment, Instance, int], tuple[Any, Given]]] = {
    "finite": _finite,
    "linear": _linear,
    "contextual": _contextual,
}
"""The world of each setting."""
REFERENCES = {"linucb": LinUCB}
"""References that are run for comparison. They have no budget, and no command offers them as policies."""


@dataclass(frozen=True)
class Study:
    """An experiment with a seed, ready to be simulated. policies, environments: by the labels of the entries."""

    experiment: Experiment
    seed: int
    environments: Mapping[str, Any]
    policies: Mapping[str, Policy[Any]]
    checkpoints: Integers
    tasks: tuple[Task, ...]

    @property
    def environment(self) -> Any:
        """Of the first entry: of all of them, where entries name no instances."""
        return next(iter(self.environments.values()))


def study_of(experiment: Experiment, seed: int) -> Study:
    """The instances and the policies of an experiment.

    Its numbers are those of `simulate` with the same policies, environment, horizon, runs and seed.

    >>> from private_bandits.experiments.run.data import EXPERIMENTS
    >>> study = study_of(EXPERIMENTS["finite"], seed=0)
    >>> len(study.policies), str(study.environment)
    (14, 'Bernoulli(probabilities=(0.75, 0.625, 0.5, 0.375, 0.25))')
    """
    if experiment.setting not in WORLDS:
        raise InvalidInput(f"setting must be one of {', '.join(WORLDS)}, got {experiment.setting!r}")
    environments, policies = {}, {}
    for entry in experiment.entries:
        environments[entry.label], given = _world(experiment, entry, seed)
        policies[entry.label] = _policy(experiment, entry, {**given, "horizon": experiment.horizon})
    if len(policies) < len(experiment.entries):
        raise InvalidInput(f"the entries of {experiment.name} must have different labels, got {sorted(policies)}")
    points = log_checkpoints(experiment.horizon)
    tasks = [
        task
        for environment, labels in _by_world(environments)
        for task in tasks_for(
            {label: policies[label] for label in labels}, environment, experiment.horizon, points, seed
        )
    ]
    return Study(experiment, seed, environments, policies, points, tuple(tasks))


def _world(experiment: Experiment, entry: Entry, seed: int) -> tuple[Any, Given]:
    instance = entry.instance or experiment.instance
    if instance.worst:
        return HARD[experiment.setting](instance, experiment.horizon, entry.rho)
    return WORLDS[experiment.setting](experiment, instance, seed if instance.draw is None else instance.draw)


def _by_world(environments: Mapping[str, Any]) -> list[tuple[Any, list[str]]]:
    """Each world once, with the labels that it has: what is in one contextual world shares its contexts."""
    found: list[tuple[Any, list[str]]] = []
    for label, environment in environments.items():
        labels = next((labels for known, labels in found if known == environment), None)
        if labels is None:
            found.append((environment, [label]))
        else:
            labels.append(label)
    return found


def _policy(experiment: Experiment, entry: Entry, given: Given) -> Policy[Any]:
    budget = NoPrivacy() if math.isinf(entry.rho) else zCDP(entry.rho)
    options = dict(entry.options)
    if entry.policy in REFERENCES:
        return REFERENCES[entry.policy](given["dimension"], budget, **options)
    policy = policy_named(entry.policy, experiment.setting, budget, {**given, **options}, entry.variant)
    unknown = sorted(set(options) - parameters_of(entry.policy))
    if unknown:
        raise InvalidInput(f"{entry.policy} has no option {unknown[0]!r}: take it out of {entry.label!r}")
    return policy
