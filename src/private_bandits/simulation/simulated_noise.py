"""The noise of simulated releases: continuous, from a seed. It protects nobody.

Every engine takes the size of its noise from here, so that a simulated release has the noise of a live one.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from private_bandits.arrays import Floats
from private_bandits.budget import Budget
from private_bandits.policies import Policy


def release_variance(policy: Policy[Any]) -> float:
    """Return the variance of the noise in a coordinate of a release, for a sum that one reward moves by one.

    It is the promise's b, for the share that a release has of it: a reward is in as many releases as a tree has levels,
    or in those that its factor holds it in.
    """
    if policy.factor is not None:
        return policy.budget.variance_factor * float(policy.factor.column)
    return policy.budget.shared(max(1, policy.tree_levels)).variance_factor


def release_deviation(policy: Any, low: float, high: float) -> float:
    """Return the standard deviation of the noise of a contextual policy's release, in every coordinate.

    It is in steps of the policy's grid, as its weights are.
    """
    scale = policy.moments(low, high)
    sensitivity: float = (high - low) * policy.context_norm / policy.unit if scale is None else scale.sensitivity
    return sensitivity * math.sqrt(release_variance(policy))


def noise_draws(budget: Budget, width: float, generator: np.random.Generator, size: Any) -> Floats:
    """Noise that keeps the budget for sums of weight one, of rewards in a range of this width."""
    if budget.noise == "none":
        return np.zeros(size)
    if budget.noise == "laplace":
        return np.asarray(generator.laplace(scale=width / budget.level, size=size))
    return np.asarray(generator.normal(scale=width * budget.variance_factor**0.5, size=size))
