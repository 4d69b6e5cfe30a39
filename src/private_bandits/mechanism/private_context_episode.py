"""Sums over people whose contexts are private as well.

Private state, as all episodes. Here an action is not a public weight, so what one person can change is not computed
from it: every action is forced into the declared norm before it is summed, and the sensitivity is for that norm.
"""

from __future__ import annotations

import math

from private_bandits.errors import InvalidInput, PrivateBanditsError
from private_bandits.mechanism.episode import Episode, Grid
from private_bandits.mechanism.moments import MomentScale


class PrivateContextEpisode(Episode):
    """The sum of what people add. Nothing in it is public but how many there are."""

    __slots__ = ("scale",)

    def __init__(self, key: int, number: int, scale: MomentScale, grid: Grid) -> None:
        super().__init__(key, number, scale.size, grid)
        self.scale = scale
        self.max_squared = scale.room**2
        self.max_l1 = scale.room

    @property
    def unit(self) -> float:  # type: ignore[override]
        """What leaves is in units of one, not of the reward range."""
        return self.scale.high - self.scale.low

    def _empty(self) -> Episode:
        return PrivateContextEpisode(self.key, self.number, self.scale, self.grid)

    def refusal(self, weight: tuple[int, ...]) -> PrivateBanditsError | None:
        """By the number of people alone: the action is private."""
        return self._full() if self.count >= self._room(self.max_squared, self.max_l1) else None

    def add(self, weight: tuple[int, ...], reward: int) -> None:
        """Add one person. weight: the action, which is private here."""
        refusal = self.refusal(weight)
        if refusal is not None:
            raise refusal
        self.count += 1
        for i, part in enumerate(self.scale.coordinates(weight, reward, self.grid.steps)):
            self.totals._values[i] += part

    def _is_possible(self) -> bool:
        """Whether people within the declared norms can have these sums."""
        most = self.count * self.grid.steps * self.scale.room
        fit = all(type(total) is int and abs(total) <= most for total in self.totals.reveal())
        return fit and not any(self.weight_sums)

    def moved_by(self, times: int) -> int:
        """steps * D; and, as rounding moves a difference by up to one in every coordinate, its square root more."""
        return times * (math.ceil(self.grid.steps * self.scale.sensitivity) + math.isqrt(self.scale.size) + 2)

    @property
    def sensitivity_l1(self) -> int:
        """Not known: no Laplace noise."""
        raise InvalidInput("sums over private contexts are released with Gaussian noise only")
