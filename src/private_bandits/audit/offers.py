"""Actions that an audit offers where they change from step to step."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from private_bandits.arrays import Floats

OFFERED = 3
"""Actions that an audit offers at each step where they change, unless the policy needs another number of them."""


@dataclass(frozen=True)
class Offers:
    """The same actions at the same step of every run, of norms up to the largest."""

    policy: Any

    @property
    def rows(self) -> int:
        """How many actions a step has."""
        return getattr(self.policy, "arms", 0) or OFFERED

    def __call__(self, step: int) -> Any:
        """Directions that go round, one of them short."""
        rows = _directions(step % 97, self.rows, self.policy.dimension) * self.policy.context_norm
        rows[step % self.rows] *= 0.25
        return rows

    def instead(self, step: int) -> list[Any]:
        """Return what another person might have been offered at this step.

        The first, at the same highest reward, and the second, with the lowest reward where that is minus the highest,
        move sums of (kappa a a', a r) furthest: they are at the angle of cosine -1/(2 kappa^2), or 1/(2 kappa^2).
        """
        rows = _directions(step % 97, self.rows, self.policy.dimension) * self.policy.context_norm
        moments = self.policy.moments(-1.0, 1.0)
        cosine = 0.0 if moments is None else min(1.0, 1 / (2 * moments.kappa**2))
        return [_turned(rows, -cosine), _turned(rows, cosine), -rows, 0 * rows, 1e6 * _turned(rows, 0.0)]


@lru_cache(maxsize=1024)
def _directions(seed: int, rows: int, dimension: int) -> Floats:
    found = np.random.default_rng(seed).normal(size=(rows, dimension))
    return np.asarray(found / np.linalg.norm(found, axis=1, keepdims=True))


def _turned(rows: Floats, cosine: float) -> Floats:
    """Each row turned by an angle of this cosine; in one dimension, shortened to it."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    other = np.eye(rows.shape[1])[np.abs(rows).argmin(axis=1)]
    across = other - rows * (other * rows).sum(axis=1, keepdims=True) / lengths**2
    across *= lengths / np.maximum(np.linalg.norm(across, axis=1, keepdims=True), 1e-9)
    return np.asarray(cosine * rows + math.sqrt(1 - cosine**2) * across)
