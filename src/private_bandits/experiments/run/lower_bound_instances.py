"""The instances of the lower bounds' proofs as worlds, and the bounds: no policy that keeps the budget beats them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from private_bandits.environments import FiniteEnvironment
from private_bandits.experiments.run.experiment import Entry, Experiment, Instance
from private_bandits.theory.lower import finite_lower_scan, largest_gap, linear_lower, linear_lower_size
from private_bandits.theory.proof_instances import finite_instances, linear_instances

Hard = Callable[[Instance, int, float], tuple[FiniteEnvironment, Mapping[str, Any]]]

_scan = lru_cache(finite_lower_scan)


def _finite(instance: Instance, horizon: int, rho: float) -> tuple[FiniteEnvironment, Mapping[str, Any]]:
    """The second instance of the proof, with 2 gap at the last arm: the other one costs less."""
    _, gap = _scan(instance.arms, horizon, rho, instance.rewards)
    gap = min(largest_gap(instance.rewards), instance.worst * gap)
    return finite_instances(instance.arms, gap, instance.rewards)[-1], {"n_arms": instance.arms}


def _linear(instance: Instance, horizon: int, rho: float) -> tuple[FiniteEnvironment, Mapping[str, Any]]:
    """All entries of theta positive: by symmetry one is as good as another, and this corner is played last."""
    d = instance.dimension
    world = linear_instances(d, min(1 / d, instance.worst * linear_lower_size(horizon, rho)))[-1]
    return world, {"actions": world.actions, "action_norm": math.sqrt(d)}


HARD: dict[str, Hard] = {"finite": _finite, "linear": _linear}
"""By setting: the world of an instance at a horizon and rho, and what it tells policies about itself."""


def lower_bound(experiment: Experiment, entry: Entry) -> float:
    """The best one here for the entry's budget; of a linear one with actions in [-1, 1]^d."""
    instance = entry.instance or experiment.instance
    if experiment.setting == "finite":
        return _scan(instance.arms, experiment.horizon, entry.rho, instance.rewards)[0]
    return linear_lower(instance.dimension, experiment.horizon, entry.rho).value
