"""The instances of the lower bounds' proofs, as environments that `simulate` takes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from private_bandits.arrays import Floats, Integers
from private_bandits.environments import Bernoulli, FiniteEnvironment
from private_bandits.errors import InvalidInput
from private_bandits.theory.bound_inputs import checked_size
from private_bandits.theory.lower import Rewards

REACH = 9.0
"""Of the declared range, to both sides. Unit-variance rewards of mean up to 1 leave it with probability below 1e-15."""


@dataclass(frozen=True)
class GaussianArms:
    """Arms with N(mean, 1) rewards, means in [-1, 1], declared to lie in [-9, 9].

    An agent clips rewards to the declared range, and its noise is for the whole width of it: so a policy is as private
    on these rewards as on any others. Clipping would hardly ever change one, and is left out here.

    actions: where the arms are actions of a linear bandit.

    >>> GaussianArms((0.5, 0.0)).reward_range
    (-9.0, 9.0)
    """

    arm_means: Sequence[float]
    actions: Any = None

    def __post_init__(self) -> None:
        if not self.arm_means or not all(abs(mean) <= 1 for mean in self.arm_means):
            raise InvalidInput(f"the means of Gaussian arms must lie in [-1, 1], got {list(self.arm_means)}")

    @property
    def means(self) -> Floats:
        """The mean reward of each arm."""
        return np.array(self.arm_means, float)

    @property
    def reward_range(self) -> tuple[float, float]:
        """What is declared."""
        return (-REACH, REACH)

    def reward_sums(self, generator: np.random.Generator, arms: Integers, counts: Integers) -> Floats:
        """A Normal draw each."""
        return np.asarray(counts * self.means[arms] + np.sqrt(counts) * generator.standard_normal(len(counts)))


def finite_instances(arms: float, gap: float, rewards: Rewards = "gaussian") -> list[FiniteEnvironment]:
    """Those of `finite_lower` and `finite_lower_scan`: means (gap, 0, ..., 0), and 2 gap at each other arm in turn.

    One of the latter is the proof's second instance: that of the arm which a policy plays least on the first one.
    Binary: rewards of 0 and 1, and all means 1/2 higher.

    >>> [world.means.tolist() for world in finite_instances(3, 0.25)]
    [[0.25, 0.0, 0.0], [0.25, 0.5, 0.0], [0.25, 0.0, 0.5]]
    >>> finite_instances(2, 0.125, "binary")[1]
    Bernoulli(probabilities=(0.625, 0.75))
    """
    k = checked_size("arms", arms, 2)
    first = [gap] + [0.0] * (k - 1)
    others = [[*first[:a], 2 * gap, *first[a + 1 :]] for a in range(1, k)]
    if rewards == "binary":
        return [Bernoulli([0.5 + mean for mean in means]) for means in [first, *others]]
    return [GaussianArms(tuple(means)) for means in [first, *others]]


def linear_instances(dimension: float, size: float) -> list[GaussianArms]:
    """Those of `linear_lower`: the corners of [-1, 1]^d as actions, and every theta of entries +size or -size.

    size: 1/sqrt(T) in the non-private part, 1/(T sqrt(2 rho)) in the private one. The best action is a corner.

    >>> linear_instances(1, 0.1)[0].means.tolist()
    [0.1, -0.1]
    """
    d = checked_size("dimension", dimension, 1)
    if not 0 < size * d <= 1:
        raise InvalidInput(
            f"size must be positive and at most 1/d = {1 / d:g}, so that means lie in [-1, 1], got {size}"
        )
    corners = tuple(itertools.product((-1.0, 1.0), repeat=d))
    return [
        GaussianArms(tuple(size * math.fsum(x * y for x, y in zip(theta, a, strict=True)) for a in corners), corners)
        for theta in corners
    ]
