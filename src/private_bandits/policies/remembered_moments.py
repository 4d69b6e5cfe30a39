"""The sum over all people, read from releases that hold earlier episodes again, for private contexts.

Episodes have the sums x_1, x_2, ..., and release number l is y_l = x_l + c_1 x_(l-1) + ... with noise (factor.py). Any
combination of all releases is a sum over people in which each has a weight that its episode decides:

    sum of w_l y_l  =  sum of (C'w)_j x_j  and noise of variance |w|^2 times that of a release

The mean reward of an action is the same in every episode, so that least squares are right with any weights that are not
negative. Here they are those of least variance (release_memory.py), scaled so that the largest is one: with noise alone
the sum carries about (1 + 1/g)^2 noises where episodes grow by g, however many releases there are, and the sum of all
with weight one carries ever more. Weights follow from counts, which are public and fixed before the first person.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from private_bandits.arrays import Floats
from private_bandits.mechanism.factor import INDEPENDENT
from private_bandits.policies.geometric import GeometricMemory


class PeopleWeights(NamedTuple):
    """How the first releases are read together.

    releases: the weight of each of them. people: the weight that each episode's people have then, at most one.
    """

    releases: Floats
    people: Floats

    @property
    def noises(self) -> float:
        """Variance of the noise in what is read, where that of a release is one."""
        return float(self.releases @ self.releases)


@lru_cache(maxsize=1024)
def people_weights(memory: GeometricMemory, noise: float, releases: int) -> PeopleWeights:
    """Return how so many releases are read. noise: of a release, beside people whose rewards have variance 1/4.

    >>> people_weights(GeometricMemory(2.0, 4, None), 0.0, 3).people.tolist()
    [1.0, 1.0, 1.0]
    """
    factor = (memory.factor or INDEPENDENT).matrix(releases)
    found = memory.readings(memory.opening, noise, releases).weights[releases - 1, :releases]
    people = found @ factor
    if people.min() < 0:  # theta would be of no least squares; with these no weight is negative, as no multiplier is
        found = factor @ np.array(memory.lengths(memory.opening, releases), float)
        people = found @ factor
    return PeopleWeights(found / people.max(), people / people.max())


@dataclass(eq=False)
class RememberedMoments:
    """All releases, as they came, and what they say together. Public.

    size: how many coordinates there are. noise: variance of the noise in each of them, of a release. spread: the same
    beside people (`people_weights`).
    """

    memory: GeometricMemory
    size: int
    noise: float
    spread: float
    values: list[Floats] = field(default_factory=list)

    def take(self, values: Floats) -> None:
        """Take in the next release."""
        self.values = [*self.values, values]

    @property
    def total(self) -> Floats:
        """The weighted sum over all people, with noise; 0 before the first release."""
        return np.asarray(self._weights().releases @ np.array(self.values)) if self.values else np.zeros(self.size)

    @property
    def releases(self) -> int:
        """How many releases there were."""
        return len(self.values)

    @property
    def variance(self) -> float:
        """Variance of the noise in each coordinate of it."""
        return self.noise * self._weights().noises if self.values else 0.0

    def _weights(self) -> PeopleWeights:
        return people_weights(self.memory, self.spread, len(self.values))

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {"values": [row.tolist() for row in self.values]}

    def restored(self, data: Mapping[str, Any]) -> RememberedMoments:
        """Return the same with what to_dict wrote."""
        return replace(self, values=[np.array(row, float) for row in data["values"]])
