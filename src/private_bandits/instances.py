"""Instances and policies by name, as the command line and the experiments ask for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from private_bandits.budget import Budget, equal_budget
from private_bandits.environments import Contextual, Linear, Setting
from private_bandits.errors import InvalidInput
from private_bandits.policies import POLICIES, Policy
from private_bandits.policies.base import instead_of


def linear_instance(
    seed: int, noise: str = "bounded", arms: int = 10, dimension: int = 3, theta: ArrayLike | None = None
) -> Linear:
    """Random directions as actions, and one more as theta where none is given, as in the paper's experiment.

    >>> linear_instance(seed=0).means.shape
    (10,)
    """
    directions = np.random.default_rng(seed).normal(size=(arms + 1, dimension))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    return Linear(directions[:arms], directions[arms] if theta is None else theta, noise)


def contextual_instance(
    seed: int, setting: Setting = "strict", arms: int = 10, dimension: int = 3, theta: ArrayLike | None = None
) -> Contextual:
    """A random direction as theta where none is given, as in the paper's experiment.

    >>> contextual_instance(seed=0).dimension
    3
    """
    if theta is not None:
        return Contextual(dimension, arms, theta, setting)
    direction = np.random.default_rng(seed).normal(size=max(1, dimension))
    # A hair less than one, so that rounding leaves no mean outside [-1, 1].
    return Contextual(dimension, arms, direction / (np.linalg.norm(direction) * (1 + 1e-12)), setting)


def policy_named(
    name: str, setting: str, budget: Budget, options: Mapping[str, Any], variant: str | None = None
) -> Policy[Any]:
    """The policy with those of the options that it has, at a budget as strong as the given one that it can keep.

    variant: one that it has; None, its own default. Every policy has "paper", as published.

    >>> from private_bandits import zCDP
    >>> policy_named("adap-ucb", "finite", zCDP(0.5), {"n_arms": 2, "horizon": 100}).budget
    PureDP(epsilon=1.0)
    """
    known = sorted(n for n, policy in POLICIES.items() if policy.setting == setting)
    if name not in known and name in POLICIES:
        raise InvalidInput(f"{name} is for the {POLICIES[name].setting} setting, and this one is {setting}")
    if name not in known:
        raise InvalidInput(f"policy must be one of {', '.join(known)}, got {name!r}")
    cls = POLICIES[name]
    if variant is not None and variant not in cls.variants:
        raise InvalidInput(
            f"{name} has no variant {variant!r}: variant must be {' or '.join(cls.variants)} for it"
            + instead_of(cls, variant)
        )
    said = options if variant is None else {**options, "variant": variant}
    mine = {k: v for k, v in said.items() if k in parameters_of(name)}
    return cls(budget=equal_budget(budget, cls.supported_budgets), **mine)  # type: ignore[call-arg]


def parameters_of(name: str) -> set[str]:
    """What can be said of a policy."""
    return {field.name for field in fields(POLICIES[name]) if field.init}  # type: ignore[arg-type]
