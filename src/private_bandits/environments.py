"""Where simulated rewards come from. An environment knows the truth that a policy has to learn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from private_bandits.errors import InvalidInput

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class FiniteEnvironment(Protocol):
    """K arms whose rewards are independent draws, arm by arm."""

    @property
    def means(self) -> Floats:
        """The mean reward of each arm."""

    @property
    def reward_range(self) -> tuple[float, float]:
        """Where rewards lie."""

    def reward_sums(self, generator: np.random.Generator, arms: Integers, counts: Integers) -> Floats:
        """For each i, the sum of counts[i] rewards of arm arms[i], exact in distribution, in one draw."""


@dataclass(frozen=True)
class Bernoulli:
    """Rewards of 1 with the arm's probability, else 0.

    >>> Bernoulli([0.75, 0.5]).means.tolist()
    [0.75, 0.5]
    """

    probabilities: Sequence[float]

    def __post_init__(self) -> None:
        try:
            values = tuple(float(p) for p in self.probabilities)
        except (TypeError, ValueError):
            raise InvalidInput(f"the means must be numbers, got {self.probabilities!r}") from None
        if not values:
            raise InvalidInput("the means must name at least one arm")
        if not all(0 <= p <= 1 for p in values):
            raise InvalidInput(f"the means of Bernoulli arms must lie in [0, 1], got {list(values)}")
        object.__setattr__(self, "probabilities", values)

    @property
    def means(self) -> Floats:
        """The probabilities of a reward of 1."""
        return np.array(self.probabilities)

    @property
    def reward_range(self) -> tuple[float, float]:
        """[0, 1]."""
        return (0.0, 1.0)

    def reward_sums(self, generator: np.random.Generator, arms: Integers, counts: Integers) -> Floats:
        """A Binomial draw each."""
        return generator.binomial(counts, self.means[arms]).astype(float)
