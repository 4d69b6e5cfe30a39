"""RewardRange: clip a reward and put it on an integer grid.

Everything between a person's reward and the noise is integers, so that no rounding of floating point can
tell one reward from another after the noise (Mironov 2012).
"""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass, field
from typing import Any

from private_bandits.errors import InvalidInput

LARGEST = 1e100
"""No bound and no width may exceed this, and no width be below 1/LARGEST: squares of sums and noise stay finite."""
LEAST_RELATIVE_WIDTH = 2.0**-50
"""A width is at least this share of the larger bound: floats have 53 bits, so fewer steps are hardly any."""


@dataclass(frozen=True)
class RewardRange:
    """The public interval that rewards are clipped to, chosen before any reward is seen.

    >>> RewardRange(0, 1).to_grid(0.25, grid=8)
    2
    >>> RewardRange(-1, 1).to_grid(7.0, grid=8)      # clipped
    8
    """

    low: float
    high: float
    width: float = field(init=False, repr=False)
    """high - low: by how much one reward can change."""

    def __post_init__(self) -> None:
        for name, bound in (("low", self.low), ("high", self.high)):
            if isinstance(bound, bool) or not isinstance(bound, numbers.Real) or not _is_finite(bound):
                raise InvalidInput(f"reward_range needs two finite numbers, got {name} = {bound!r}")
        object.__setattr__(self, "low", float(self.low))
        object.__setattr__(self, "high", float(self.high))
        object.__setattr__(self, "width", self.high - self.low)
        if not self.low < self.high:
            raise InvalidInput(f"reward_range must be low < high, got ({self.low}, {self.high})")
        farthest = max(abs(self.low), abs(self.high))
        least = max(1 / LARGEST, LEAST_RELATIVE_WIDTH * farthest)
        if farthest > LARGEST or not least <= self.width <= LARGEST:
            raise InvalidInput(
                f"reward_range ({self.low}, {self.high}) is too far from zero, too wide or too narrow. Bounds may be "
                f"up to {LARGEST:g}, and the width from {1 / LARGEST:g}, or 2^-50 of the larger bound, to {LARGEST:g}: "
                "express rewards in another unit, or subtract one number from all of them"
            )

    @classmethod
    def of(cls, bounds: Any) -> RewardRange:
        """From a pair (low, high)."""
        if isinstance(bounds, RewardRange):
            return bounds
        try:
            low, high = bounds
        except (TypeError, ValueError):
            raise InvalidInput(f"reward_range must be a pair (low, high), got {bounds!r}") from None
        return cls(low, high)

    def to_grid(self, reward: Any, grid: int) -> int:
        """round(grid (clip(reward) - low)/(high - low)), a whole number from 0 to grid.

        Whatever is not a finite number is refused, by its kind and without its value.
        """
        if type(reward) is not float:
            reward = self._as_float(reward)
        if reward >= self.high:
            if reward == math.inf:
                raise InvalidInput("reward must be a finite number, got one that is infinite")
            return grid
        if reward <= self.low:
            if reward == -math.inf:
                raise InvalidInput("reward must be a finite number, got one that is infinite")
            return 0
        if reward != reward:
            raise InvalidInput("reward must be a finite number, got one that is NaN")
        return round(grid * float((reward - self.low) / self.width))

    def _as_float(self, reward: Any) -> float:
        """A real number of another type (int, bool, numpy's, Fraction) as a float, clipped if it is huge."""
        if not isinstance(reward, numbers.Real) and type(reward).__name__ not in ("bool", "bool_"):
            raise InvalidInput(f"reward must be a finite number, got a value of type {type(reward).__name__}")
        try:
            value = float(reward)
        except OverflowError:
            value = math.inf
        if math.isinf(value) and -math.inf < reward < math.inf:  # finite, and far outside any range
            return self.high if reward > 0 else self.low
        return value


def _is_finite(number: Any) -> bool:
    try:
        return math.isfinite(number)
    except OverflowError:
        return False
