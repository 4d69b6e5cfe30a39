"""Correlated noise: releases that hold earlier episodes again, so that a sum of all of them carries less noise.

Let x_1, x_2, ... be the sums of the episodes. Instead of x_l with noise of its own, release number l is

    y_l = c_0 x_l + c_1 x_(l-1) + ... + z_l        with c_0 = 1 and independent noises z_l

and what a policy wants of the x is computed from the y. A reward of episode j is in y_j, y_(j+1), ... with the
multipliers c_0, c_1, ..., so that it costs as much as one release with the multiplier sqrt(c_0^2 + c_1^2 + ...): the
column of the factor. The y may be asked for one after the other, with actions that depend on those before, as y_l holds
no later episode (docs/guarantees.md).

The multipliers are whole numbers over `unit`, so that what is released is exact, and decoding uses the same ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from private_bandits.errors import InvalidInput
from private_bandits.ledger.placements import factor_cost

Part = TypeVar("Part")

UNIT = 2**8
"""Multipliers of a square root are whole numbers over this: by 4000 less than half a per cent of variance is lost."""


@dataclass(frozen=True)
class Factor:
    """The multipliers as whole numbers over `unit`, a power of two, of the newest episode first.

    cap: after so many releases the factor is used up, and another one like it begins with the next episode; None: it
    goes on for ever. Each episode belongs to one of them.
    """

    multipliers: tuple[int, ...]
    unit: int
    cap: int | None = None

    def __post_init__(self) -> None:
        numbers = (*self.multipliers, self.unit, *(() if self.cap is None else (self.cap,)))
        whole = all(type(c) is int and c > 0 for c in numbers) and self.multipliers[:1] == (self.unit,)
        if not whole or self.unit & (self.unit - 1) or not (self.cap is None or self.cap >= 1):
            raise InvalidInput(
                "a factor needs whole multipliers above zero, the first of them its unit, a power of two, and a cap of "
                f"at least one, got {self.multipliers[:8]}, {self.unit}, {self.cap}"
            )

    @cached_property
    def column(self) -> Fraction:
        """The cost to a reward in all of its releases together, where one of multiplier one costs 1."""
        return Fraction(sum(c * c for c in self.multipliers), self.unit**2)

    def spread_cost(self, rewards: int) -> Fraction:
        """Return the most that rewards of one person cost, one in an episode at most, in units as `column`."""
        return factor_cost(self.multipliers, self.unit, self.cap, rewards)

    def place(self, number: int) -> int:
        """Return the place of release `number` in its own factor; the first is 1."""
        return number if self.cap is None else (number - 1) % self.cap + 1

    def covered(self, number: int) -> int:
        """How many episodes are in release `number`, the newest included."""
        return min(self.place(number), len(self.multipliers))

    def kept_after(self, kept: Sequence[Part], newest: Part, number: int) -> tuple[Part, ...]:
        """Return what the next release holds again, oldest first, after release `number` held `kept` and `newest`."""
        again = self.covered(number + 1) - 1
        return (*kept, newest)[-again:] if again else ()

    def weighted(self, parts: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
        """c_0 x_l + c_1 x_(l-1) + ..., of real sums, the newest first: for simulations."""
        multipliers = np.array(self.multipliers[: len(parts)]) / self.unit
        return np.asarray(multipliers @ np.array(parts[: len(multipliers)]))

    def matrix(self, size: int) -> NDArray[np.float64]:
        """The factor's first rows and columns: y = matrix @ x + z."""
        rows = np.zeros((size, size))
        for k, c in enumerate(self.multipliers[:size]):
            rows += np.diag(np.full(size - k, c / self.unit), -k)
        return rows

    @cached_property
    def prefix_weights(self) -> NDArray[np.float64]:
        """m_0, m_1, ... such that x_1 + ... + x_l = m_0 y_l + m_1 y_(l-1) + ..., up to the cap, without noise.

        The matrix of all prefix sums, times the inverse of the factor: as power series, 1/((1 - t) c(t)).
        """
        assert self.cap is not None
        c = np.array(self.multipliers, float) / self.unit
        inverse = np.zeros(self.cap)
        inverse[0] = 1 / c[0]
        for k in range(1, self.cap):
            taps = c[1 : k + 1]
            inverse[k] = -(taps @ inverse[k - len(taps) : k][::-1]) / c[0]
        return np.cumsum(inverse)

    @cached_property
    def prefix_variances(self) -> NDArray[np.float64]:
        """Variance of the noise in x_1 + ... + x_l as decoded, l = 1, 2, ..., where noise for one release has one."""
        return float(self.column) * np.cumsum(self.prefix_weights**2)

    def prefix_noise(self, releases: int) -> float:
        """The same after any number of releases: at the cap the sum is frozen, and what comes later is added to it.

        >>> Factor((1,), 1, 1).prefix_noise(7)
        7.0
        """
        assert self.cap is not None
        used_up, rest = divmod(releases, self.cap)
        known = self.prefix_variances
        return used_up * float(known[-1]) + (float(known[rest - 1]) if rest else 0.0)


@lru_cache(maxsize=64)
def square_root(releases: int) -> Factor:
    """The square root of the matrix of all prefix sums, c_k = c_(k-1) (1 - 1/(2k)), for so many releases.

    >>> square_root(4)
    Factor(multipliers=(256, 128, 96, 80), unit=256, cap=4)
    """
    found, c = [], 1.0
    for k in range(releases):
        c *= 1 - 0.5 / k if k else 1.0
        found.append(max(1, round(c * UNIT)))
    return Factor(tuple(found), UNIT, releases)


HALF_BEFORE = Factor((2, 1), 2)
"""The newest episode, and half of the one before it: for episodes that double."""

INDEPENDENT = Factor((1,), 1, 1)
"""Every episode by itself: each in one release, and the sum of all carries the noises of all."""
