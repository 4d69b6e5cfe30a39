"""The noise of simulated releases: continuous, from a seed. It protects nobody."""

from __future__ import annotations

from typing import Any

import numpy as np

from private_bandits.budget import Budget
from private_bandits.environments import Floats


def noise_draws(budget: Budget, width: float, generator: np.random.Generator, size: Any) -> Floats:
    """Noise that keeps the budget for sums of weight one, of rewards in a range of this width."""
    if budget.noise == "none":
        return np.zeros(size)
    if budget.noise == "laplace":
        return np.asarray(generator.laplace(scale=width / budget.level, size=size))
    return np.asarray(generator.normal(scale=width * budget.variance_factor**0.5, size=size))
