"""The set that a parameter lies in, as far as releases say, and what it says of the mean reward of any action.

Everything here is a function of releases and of public numbers (docs/guarantees.md, "Predictions").
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from private_bandits.arrays import Floats
from private_bandits.policies.base import Prediction
from private_bandits.policies.optimism import reward_width, squared_length

LEAST_REWARD_STEPS = 2**13
"""Steps that a reward range has at least where actions change and are public, for rho of 10^-9 and more."""


class Ellipsoid(NamedTuple):
    """All parameters within `width` of theta, in the norm of V. V^-1 = root root'.

    low, high: the reward range, in which every mean reward lies. theta is None where nothing was released.
    """

    low: float
    high: float
    theta: Floats | None = None
    root: Floats | None = None
    width: float = 0.0

    def predict(self, action: Floats) -> Prediction:
        """Return the mean reward of an action: <theta, a>, give or take width ||a|| in V^-1."""
        if self.theta is None or self.root is None:
            return Prediction(None, self.low, self.high)
        mean, half_width = float(action @ self.theta), self.width * float(np.linalg.norm(action @ self.root))
        return predicted(mean, half_width, self.low, self.high)


class KnownSum(NamedTuple):
    """What was released of one sum of a r, where actions are public.

    gram: V, from lambda I on. total: the sum itself, with noise. noise_sd: of the noise in each coordinate of it.
    releases, rewards: how many there are in it. sums: how many such sums there are.
    """

    gram: Floats
    total: Floats
    noise_sd: float
    releases: int
    rewards: int
    sums: int = 1


class Assumed(NamedTuple):
    """What a policy says in advance: lambda, the largest norm of the parameter, and the step of its actions' grid."""

    regulariser: float
    parameter_norm: float
    unit: float


def predicted(mean: float, half_width: float, low: float, high: float) -> Prediction:
    """Return what is said of an action whose mean is within `half_width` of this one, and in [low, high] anyway.

    >>> predicted(0.9, 0.25, 0.0, 1.0)
    Prediction(mean=0.9, low=0.65, high=1.0)
    """
    below, middle, above = (min(max(x, low), high) for x in (mean - half_width, mean, mean + half_width))
    return Prediction(middle, below, above)


def release_share(delta: float, number: int) -> float:
    """Return the part of delta that release number 1, 2, ... may fail with. All parts together are delta.

    >>> release_share(0.05, 1), round(sum(release_share(0.05, n) for n in range(1, 10**4)), 4)
    (0.025, 0.05)
    """
    return delta / (number * (number + 1))


def rounding_of_rewards(rewards: int, spread: float, steps: int, dimension: int, assumed: Assumed) -> float:
    """Return by how much grids may move theta, in the norm of V.

    The mean of a reward on its grid of so many steps is at most half a step, and the norm of the parameter times
    sqrt(d) steps of the actions' grid, from <theta, a> with a on its grid. n rewards together move theta by sqrt(n)
    times that at most (Cauchy-Schwarz).
    """
    off = spread / (2 * steps) + assumed.parameter_norm * math.sqrt(dimension) * assumed.unit
    return math.sqrt(rewards) * off


def ellipsoid_of_sum(known: KnownSum, assumed: Assumed, delta: float, low: float, high: float) -> Ellipsoid:
    """Return where the parameter is, but for a probability of delta, at all times and for all sums together.

    Half of delta is for the rewards. Half is for the noise, of which each release has its share.
    """
    if not known.releases:
        return Ellipsoid(low, high)
    d, half = len(known.total), delta / (2 * known.sums)
    values, vectors = np.linalg.eigh(known.gram)
    values = np.maximum(values, assumed.regulariser)  # V is at least lambda I, whatever rounding says
    growth = float(np.log(values).sum()) - d * math.log(assumed.regulariser)
    length = squared_length(d, release_share(half, known.releases))
    noise = known.noise_sd * math.sqrt(length / float(values[0]))
    ridge = math.sqrt(assumed.regulariser) * assumed.parameter_norm
    rounding = rounding_of_rewards(known.rewards, high - low, LEAST_REWARD_STEPS, d, assumed)
    width = reward_width(high - low, half, growth) + ridge + noise + rounding
    root = vectors / np.sqrt(values)
    return Ellipsoid(low, high, root @ (known.total @ root), root, width)
