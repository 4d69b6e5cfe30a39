"""The smallest rho of zCDP, sup over alpha > 1 of D_alpha/alpha, between two certified numbers.

Branch and bound over orders and pairs: what D_alpha/alpha reaches at an order that was tried is a lower bound, what it
can be at most between two orders (renyi_orders.py) an upper bound. Intervals whose upper bound is not below what has
been reached are split, pair by pair.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from itertools import count
from numbers import Real
from typing import Any

import numpy as np

from private_bandits.arrays import Floats
from private_bandits.definitions.observation_tree import Leaves, log_moments
from private_bandits.definitions.renyi_orders import Interval, power_of
from private_bandits.definitions.worlds import Ints, WorldPairs
from private_bandits.errors import InvalidInput

RELATIVE, LOG_RATIO = 1e-9, 1e-14
"""Both ends are moved outwards for rounding, which is far smaller: by a part of the value, and by what an error of
1e-14 in every log-ratio could do, sqrt(rho) times that and its square."""

MOST_SPLITS = 5_000
"""After so many evaluations in one chunk the bracket is returned as wide as it is; a hundred are common."""


@dataclass(frozen=True)
class Bracket:
    """low <= rho <= high."""

    low: float
    high: float


class SmallestRho:
    """Keeps the best lower bound and the largest bound of what was set aside."""

    def __init__(self, tolerance: float = 1e-6) -> None:
        given: Any = tolerance
        if isinstance(given, bool) or not isinstance(given, Real) or not 1e-9 <= float(given) <= 1:
            raise InvalidInput(f"tolerance must lie between 1e-9 and 1, got {tolerance!r}")
        self.tolerance = float(tolerance)
        self.low, self.high = 0.0, 0.0
        self.order = 0.0
        self.worst: WorldPairs | None = None

    @property
    def enough(self) -> float:
        """Bounds up to here need not be improved."""
        return self.low * (1 + self.tolerance)

    @property
    def value(self) -> Bracket:
        """The bracket, widened for rounding."""
        if self.low == math.inf:
            return Bracket(math.inf, math.inf)
        high = max(self.low, self.high)
        return Bracket(max(0.0, self.low - _margin(self.low)), high + _margin(high))

    def look(self, leaves: Leaves) -> None:
        """Takes some pairs into account."""
        self.worst = self.worst or leaves.worlds.take([0])
        if leaves.largest.max() == math.inf:
            self.low, self.worst = math.inf, leaves.worlds.take([int(leaves.largest.argmax())])
        if self.low == math.inf:
            return
        # epsilon-DP is epsilon^2/2-zCDP (Bun and Steinke 2016, Prop. 4): most pairs need no more than this.
        spread = np.abs(leaves.log_ratio).max(axis=tuple(range(leaves.log_ratio.ndim - 1)))
        pairs = self._open(spread**2 / 2, np.arange(leaves.worlds.count))
        if not pairs.size:
            return
        chosen = leaves.take(pairs)
        divergences = chosen.best(chosen.information)
        self._reached(divergences, 0.0, chosen)
        best = np.array([divergences.argmax()])
        self._search(chosen.take(best), divergences[best])
        if pairs.size > 1:
            self._search(chosen, divergences)

    def _open(self, bounds: Floats, pairs: Ints) -> Ints:
        """The pairs that could still be worse; the bounds of the others go into `high`."""
        wide = bounds > self.enough
        if not wide.all():
            self.high = max(self.high, float(bounds[~wide].max()))
        return pairs[wide]

    def _reached(self, ratios: Floats, order: float, leaves: Leaves) -> None:
        place = int(ratios.argmax())
        if ratios[place] > self.low:
            self.low, self.order, self.worst = float(ratios[place]), order, leaves.worlds.take([place])

    def _search(self, leaves: Leaves, divergences: Floats) -> None:
        """Best first: the interval with the largest bound is split, until no bound is worth it."""
        number = count()
        waiting: list[tuple[float, int, Interval]] = []

        def add(interval: Interval) -> None:
            bounds = interval.bounds(self.enough)
            still = self._open(bounds, np.arange(interval.pairs.size))
            if still.size:
                heapq.heappush(waiting, (-float(bounds[still].max()), next(number), interval.take(still)))

        everyone = np.arange(leaves.worlds.count)
        moments = self._moments(leaves, everyone, 1.0)
        power = power_of(moments, 1.0)
        add(Interval(1.0, math.inf, everyone, (moments, leaves.largest), (power, power)))
        add(Interval(0.0, 1.0, everyone, (np.zeros_like(moments), moments), (divergences, power)))
        for _ in range(MOST_SPLITS):
            if not waiting:
                return
            wide = heapq.heappop(waiting)[2]
            wide = wide.take(self._open(wide.bounds(self.enough), np.arange(wide.pairs.size)))
            if wide.pairs.size:
                for half in wide.split(self._moments(leaves, wide.pairs, wide.middle)):
                    add(half)
        self.high = max([self.high, *(-bound for bound, _, _ in waiting)])

    def _moments(self, leaves: Leaves, pairs: Ints, order: float) -> Floats:
        chosen = leaves if pairs.size == leaves.worlds.count else leaves.take(pairs)
        moments = log_moments(chosen, order)
        self._reached(moments / (order * (1 + order)), order, chosen)
        return moments


def _margin(value: float) -> float:
    return RELATIVE * value + LOG_RATIO * math.sqrt(value) + LOG_RATIO**2
