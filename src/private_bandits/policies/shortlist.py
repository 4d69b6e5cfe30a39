"""The arm of the largest index among many, found without the index of every arm.

At a step s the exact index of every arm is computed once, and a ceiling that it keeps below for all steps from s to
s + s/64, or fewer. The arms of the largest ceilings are the shortlist; no other arm can get beyond the largest ceiling
that is left. Then the exact indices of the arms on the list, and of those with a newer release, decide: once one is
above that ceiling, it is the largest of all. Otherwise the list is used up, and all are computed again.

The choice is the same as that from all indices, to the last bit. All arms have a decision when a choice is first
needed, so that s is not below their number, and there are about 64 of these rounds for each doubling of s. Where so
many arms are so close to each other that the list does not last, the next ceilings are for half as many steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from private_bandits.arrays import Floats

FEW = 256
"""Up to so many arms all indices are computed each time: numpy takes hardly longer for them than for one."""

WIDEST, NARROWEST = 6, 20
"""A ceiling holds for 2^-6 to 2^-20 times as many steps more as there were."""


Exact = Callable[[Floats, int], Floats]
"""The index of each arm at a step, from a column of numbers for each: operations that round correctly, arm by arm."""

Ceiling = Callable[[Floats, int, int], Floats]
"""For each column a number that the index does not exceed at any step from the first to the last."""


class Shortlist:
    """Columns of numbers for all arms, and the arms that may have the largest index.

    columns: a row for each number, a column for each arm. seen: which arms take part.
    """

    def __init__(self, columns: Floats, seen: NDArray[np.bool_]) -> None:
        self._columns, self._seen = columns, seen
        self._size = max(FEW // 2, 4 * math.isqrt(len(seen)))
        self._horizon = WIDEST
        self._clear()

    def _clear(self) -> None:
        """Leave nothing on the list."""
        self._first, self._last = 1, 0
        self._arms = np.zeros(2 * self._size, int)
        self._short = np.zeros((len(self._columns), 2 * self._size))
        self._places: dict[int, int] = {}
        self._rest = math.inf
        self._guard, self._guarded = -1, -math.inf
        self._notes = 0

    def note(self, arm: int, column: Floats) -> None:
        """Take the new numbers of an arm."""
        self._columns[:, arm] = column
        self._seen[arm] = True
        if self._first <= self._last:
            self._list(arm, column)

    def _list(self, arm: int, column: Floats) -> None:
        """Put an arm on the list, with its new numbers."""
        self._notes += 1
        if arm == self._guard:
            self._rest = max(self._rest, self._guarded)
        place = self._places.get(arm)
        if place is None:
            if len(self._places) == len(self._arms):
                self._clear()
                return
            place = len(self._places)
        self._arms[place] = arm
        self._short[:, place] = column
        self._places[arm] = place

    def best(self, exact: Exact, ceiling: Ceiling, step: int) -> int:
        """The arm of the largest index at a step, the first of several."""
        if step > self._last:
            self._horizon = max(WIDEST, self._horizon - 1)
        elif self._first <= step:
            count = len(self._places)
            values = exact(self._short[:, :count], step)
            largest = values.max()
            if largest > self._rest:
                return int(self._arms[:count][values == largest].min())
            if self._notes < self._size // 4:
                self._horizon = min(NARROWEST, self._horizon + 1)
        return self._renewed(exact, ceiling, step)

    def _renewed(self, exact: Exact, ceiling: Ceiling, step: int) -> int:
        """The same from all arms, and a new list."""
        self._clear()
        seen = np.flatnonzero(self._seen)
        columns = self._columns[:, seen]
        chosen = int(seen[exact(columns, step).argmax()])
        last = step + (step >> self._horizon)
        places = self._listed(columns, ceiling(columns, step, last))
        self._arms[: len(places)] = seen[places]
        self._short[:, : len(places)] = columns[:, places]
        self._places = {int(arm): place for place, arm in enumerate(seen[places])}
        if self._guard >= 0:
            self._guard = int(seen[self._guard])
        self._first, self._last = step, last  # at the end: an interrupt leaves an empty list
        return chosen

    def _listed(self, columns: Floats, ceilings: Floats) -> NDArray[np.intp]:
        """The places of the largest ceilings, the first of equal ones; and what is left for the others.

        The last arm of the list guards those that are its equals in all numbers: they have its index, and come after
        it, for as long as its numbers stay as they are. Without noise there may be thousands of them.
        """
        if len(ceilings) <= self._size:
            self._rest = -math.inf
            return np.arange(len(ceilings))
        least = np.partition(ceilings, len(ceilings) - self._size)[len(ceilings) - self._size]
        larger = np.flatnonzero(ceilings > least)
        equal = np.flatnonzero(ceilings == least)[: self._size - len(larger)]
        places = np.concatenate([larger, equal])
        others = np.ones(len(ceilings), bool)
        others[places] = False
        self._guard, self._guarded = int(equal[-1]), float(ceilings[others].max())
        others &= (columns != columns[:, self._guard : self._guard + 1]).any(axis=0)
        self._rest = float(ceilings[others].max(initial=-math.inf))
        return places
