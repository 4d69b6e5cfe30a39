"""The smallest rho of zCDP, sup over alpha > 1 of D_alpha/alpha, between two certified numbers.

Let t = alpha - 1 and y = t (1 + t). For one pair and one adversary two functions of t are convex:

    G(t) = t D_(1+t) = log of the sum of P^(1+t) Q^-t, a log-moment, with G(0) = 0;
    F(t) = (e^G - 1)/y, the power divergence: its generator has the second derivative u^(-t-2), convex in t.

So are their maxima over adversaries. Between two orders where they are known, each lies below its chord, and
D_alpha/alpha = G/y = log(1 + y F)/y: the chord of G is good where the worlds are far apart, that of F where they are
close. Beyond any order a, D_alpha/alpha <= D_infinity/(1+a). Intervals whose bound is not below what has been reached
are split, pair by pair. At t -> 0 the limit is F(0), the KL divergence.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from itertools import count

import numpy as np

from private_bandits.definitions.numerics import Floats
from private_bandits.definitions.quantities import log_moments
from private_bandits.definitions.tree import Leaves
from private_bandits.definitions.worlds import Ints, Worlds
from private_bandits.errors import InvalidInput

RELATIVE, LOG_RATIO = 1e-9, 1e-14
"""Both ends are moved outwards for rounding, which is far smaller: by a part of the value, and by what an error of
1e-14 in every log-ratio could do, sqrt(rho) times that and its square."""

MOST_SPLITS = 5_000
"""After so many evaluations in one chunk the bracket is returned as wide as it is; a hundred are common."""

CELLS = 64
"""Into so many parts an interval is cut to bound the chord of F; no tree is needed for it."""


@dataclass(frozen=True)
class Bracket:
    """low <= rho <= high."""

    low: float
    high: float


@dataclass(frozen=True)
class _Interval:
    """Orders from `start` to `end` for some pairs, with G and F at both ends; for G at infinity stands D_infinity."""

    start: float
    end: float
    pairs: Ints
    log_moments: tuple[Floats, Floats]
    powers: tuple[Floats, Floats]

    def take(self, which: Ints) -> _Interval:
        """Some of the pairs."""
        g, f = self.log_moments, self.powers
        return _Interval(
            self.start, self.end, self.pairs[which], (g[0][which], g[1][which]), (f[0][which], f[1][which])
        )

    def split(self, moments: Floats) -> tuple[_Interval, _Interval]:
        """The two intervals before and after `middle`, where G is `moments`."""
        (g0, g1), (f0, f1), power = self.log_moments, self.powers, _power(moments, self.middle)
        return (
            _Interval(self.start, self.middle, self.pairs, (g0, moments), (f0, power)),
            _Interval(self.middle, self.end, self.pairs, (moments, g1), (power, f1)),
        )

    @property
    def middle(self) -> float:
        """Where to look next: orders spread over powers of two, and [0, end] shrinks fast towards 0."""
        if self.end == math.inf:
            return 2 * self.start
        return self.end / 4 if self.start == 0 else math.sqrt(self.start * self.end)

    def bounds(self, enough: float) -> Floats:
        """What D_alpha/alpha is at most between the two orders; where that is above `enough`, looked at closely."""
        if self.end == math.inf:
            return self.log_moments[1] / (1 + self.start)
        bounds = self._chord_of_log_moments()
        wide = np.flatnonzero(bounds > enough)
        if wide.size:
            bounds[wide] = np.minimum(bounds[wide], self.take(wide)._chord_of_powers())
        return bounds

    def _chord_of_log_moments(self) -> Floats:
        """The maximum of (slope t - below)/(t (1+t)), in closed form: where slope t^2 = below (2t + 1)."""
        at_start, at_end = self.log_moments
        slope = (at_end - at_start) / (self.end - self.start)
        below = np.maximum(slope * self.start - at_start, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            top = np.where(below > 0, (below + np.sqrt(below * (below + slope))) / slope, 0.0)
            t = np.clip(top, self.start, self.end)
            inside = np.maximum((slope * t - below) / (t * (1 + t)), 0.0)
        return np.where(t > 0, inside, slope)

    def _chord_of_powers(self) -> Floats:
        """The maximum of c log(1 + y c)/(y c), c the chord, cell by cell: log(1 + x)/x falls, so the least x counts."""
        t = np.linspace(self.start, self.end, CELLS + 1)[:, None]
        with np.errstate(invalid="ignore", over="ignore"):
            chord = self.powers[0] + (self.powers[1] - self.powers[0]) * (t - self.start) / (self.end - self.start)
            low, high = np.minimum(chord[:-1], chord[1:]), np.maximum(chord[:-1], chord[1:])
            x = (t * (1 + t))[:-1] * low
            falling = np.where(x > 0, np.log1p(x) / np.where(x > 0, x, 1.0), 1.0)
            most: Floats = (high * falling).max(axis=0)
        return np.where(np.isfinite(most), most, math.inf)


def _power(moments: Floats, order: float) -> Floats:
    """F from G; infinite where a float cannot hold it, which only makes a bound useless."""
    with np.errstate(over="ignore"):
        power: Floats = np.expm1(moments) / (order * (1 + order))
    return power


class SmallestRho:
    """Keeps the best lower bound and the largest bound of what was set aside."""

    def __init__(self, tolerance: float = 1e-6) -> None:
        if not 1e-12 <= tolerance <= 1:
            raise InvalidInput(f"tolerance must lie between 1e-12 and 1, got {tolerance!r}")
        self.tolerance = tolerance
        self.low, self.high = 0.0, 0.0
        self.order = 0.0
        self.worst: Worlds | None = None

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
        waiting: list[tuple[float, int, _Interval]] = []

        def add(interval: _Interval) -> None:
            bounds = interval.bounds(self.enough)
            still = self._open(bounds, np.arange(interval.pairs.size))
            if still.size:
                heapq.heappush(waiting, (-float(bounds[still].max()), next(number), interval.take(still)))

        everyone = np.arange(leaves.worlds.count)
        moments = self._moments(leaves, everyone, 1.0)
        power = _power(moments, 1.0)
        add(_Interval(1.0, math.inf, everyone, (moments, leaves.largest), (power, power)))
        add(_Interval(0.0, 1.0, everyone, (np.zeros_like(moments), moments), (divergences, power)))
        for _ in range(MOST_SPLITS):
            if not waiting:
                return
            wide = heapq.heappop(waiting)[2]
            wide = wide.take(self._open(wide.bounds(self.enough), np.arange(wide.pairs.size)))
            if wide.pairs.size:
                for half in wide.split(self._moments(leaves, wide.pairs, wide.middle)):
                    add(half)
        self.high = max(self.high, *(-bound for bound, _, _ in waiting))

    def _moments(self, leaves: Leaves, pairs: Ints, order: float) -> Floats:
        chosen = leaves if pairs.size == leaves.worlds.count else leaves.take(pairs)
        moments = log_moments(chosen, order)
        self._reached(moments / (order * (1 + order)), order, chosen)
        return moments


def _margin(value: float) -> float:
    return RELATIVE * value + LOG_RATIO * math.sqrt(value) + LOG_RATIO**2
