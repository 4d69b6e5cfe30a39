"""What one person adds to the sums of a a' and a r, where contexts are private too, and how far it can move them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from private_bandits.arrays import Floats, Integers
from private_bandits.errors import InvalidInput

LEAST_SHARE = 0.2
"""Of the budget, for the matrix: with less the noise of the vector would not shrink any more."""


@dataclass(frozen=True)
class MomentScale:
    """What a person adds: the coordinates of (kappa a a', a r), with a and r divided by the largest that they may be.

    The upper triangle of the matrix, row by row, off the diagonal times sqrt(2), so that lengths are Frobenius norms;
    then the vector. Replacing one person's (a, r), |a| <= 1 and |r| <= 1, moves it by at most

        D = sqrt(2) (kappa + 1/(2 kappa)),  for kappa >= 1/sqrt(2)      (docs/guarantees.md)

    matrix_share: the share of the budget for the matrix, were the two released apart: it sets the ratio of their
    noises, kappa = sqrt(2 share/(1 - share)). Released together they need less than apart.
    """

    dimension: int
    context_steps: int
    low: float
    high: float
    matrix_share: float

    def __post_init__(self) -> None:
        if not LEAST_SHARE <= self.matrix_share < 1:
            raise InvalidInput(f"matrix_share must be from {LEAST_SHARE} to less than 1, got {self.matrix_share!r}")

    @property
    def kappa(self) -> float:
        """What the matrix is multiplied by."""
        return math.sqrt(2 * self.matrix_share / (1 - self.matrix_share))

    @property
    def sensitivity(self) -> float:
        """D."""
        kappa = max(self.kappa, math.sqrt(0.5))
        return math.sqrt(2) * (kappa + 1 / (2 * kappa))

    @property
    def size(self) -> int:
        """How many coordinates there are."""
        return self.dimension * (self.dimension + 3) // 2

    @property
    def room(self) -> int:
        """A whole number that neither one person's coordinates nor the sensitivity exceed."""
        return math.ceil(max(self.sensitivity, math.sqrt(2) * self.kappa, 1.0)) + 1

    @property
    def largest_reward(self) -> float:
        """R, the largest reward in size."""
        return max(abs(self.low), abs(self.high))

    def coordinates(self, action: tuple[int, ...], reward: int, steps: int) -> list[int]:
        """What a person adds, in whole numbers of 1/steps. An action longer than context_steps is shortened."""
        longest = max(float(self.context_steps), math.sqrt(sum(part * part for part in action)))
        r = (self.low + (self.high - self.low) * reward / steps) / self.largest_reward
        added = self.addend(np.array(action, float) / longest, min(1.0, max(-1.0, r)))
        return [round(x) for x in (added * steps).tolist()]

    def addend(self, a: Floats, r: float) -> Floats:
        """The coordinates of (kappa a a', a r)."""
        rows, columns, factors = _upper_triangle(self.dimension)
        return np.concatenate([a[rows] * a[columns] * (factors * self.kappa), a * r])

    def coordinates_of(self, matrix: Floats, vector: Floats) -> Floats:
        """The coordinates of sums of a a' and a r."""
        rows, columns, factors = _upper_triangle(self.dimension)
        return np.concatenate([matrix[rows, columns] * (factors * self.kappa), vector])

    def matrix_and_vector(self, coordinates: Floats) -> tuple[Floats, Floats]:
        """The sums of a a' and a r in such coordinates, with noise or without: the matrix is always symmetric."""
        rows, columns, factors = _upper_triangle(self.dimension)
        matrix = np.zeros((self.dimension, self.dimension))
        matrix[rows, columns] = matrix[columns, rows] = coordinates[: len(rows)] / (factors * self.kappa)
        return matrix, coordinates[len(rows) :]


@lru_cache(maxsize=16)
def _upper_triangle(dimension: int) -> tuple[Integers, Integers, Floats]:
    """Rows, columns and factors: 1 on the diagonal and sqrt(2) off it."""
    rows, columns = np.triu_indices(dimension)
    return rows, columns, np.where(rows == columns, 1.0, math.sqrt(2))
