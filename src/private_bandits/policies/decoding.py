"""All sums of rewards added up, decoded from releases that hold earlier episodes again (factor.py)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from private_bandits.arrays import Floats
from private_bandits.mechanism.factor import Factor


@dataclass(eq=False)
class DecodedSum:
    """The sum of all episodes. Public: it is made of releases.

    before: of the factors that are used up. values: releases of the present one, a row each. Noise is never drawn anew:
    the sum of all is a combination of what was released, and its noise the same combination of theirs.
    """

    factor: Factor
    before: Floats
    releases: int = 0
    values: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    total: Floats = field(init=False)
    """The sum of all episodes, with noise."""

    def __post_init__(self) -> None:
        self.values = self.values.reshape(-1, len(self.before))
        self.total = self._decoded()

    def take(self, values: Floats) -> None:
        """Take in the next release. At the cap the sum is frozen, and what comes later is added to it."""
        self.values = np.concatenate([self.values, values[None]])
        self.releases += 1
        self.total = self._decoded()
        if len(self.values) == self.factor.cap:
            self.before, self.values = self.total, self.values[:0]

    def _decoded(self) -> Floats:
        size = len(self.values)
        if not size:
            return self.before
        return np.asarray(self.before + self.factor.prefix_weights[size - 1 :: -1] @ self.values)

    @property
    def noise(self) -> float:
        """Variance of the noise in each coordinate of it, where noise for one release alone has variance one."""
        return self.factor.prefix_noise(self.releases)

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {"before": self.before.tolist(), "releases": self.releases, "values": self.values.tolist()}

    @classmethod
    def from_dict(cls, factor: Factor, data: Mapping[str, Any]) -> DecodedSum:
        """What to_dict wrote."""
        return cls(factor, np.array(data["before"], float), data["releases"], np.array(data["values"], float))
