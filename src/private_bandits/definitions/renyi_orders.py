"""What D_alpha/alpha can be between two orders at which it is known.

Let t = alpha - 1 and y = t (1 + t). For one pair and one adversary two functions of t are convex:

    G(t) = t D_(1+t) = log of the sum of P^(1+t) Q^-t, a log-moment, with G(0) = 0;
    F(t) = (e^G - 1)/y, the power divergence: its generator has the second derivative u^(-t-2), convex in t.

So are their maxima over adversaries. Between two orders where they are known, each lies below its chord, and
D_alpha/alpha = G/y = log(1 + y F)/y: the chord of G is good where the worlds are far apart, that of F where they are
close. Beyond any order a, D_alpha/alpha <= D_infinity/(1+a). At t -> 0 the limit is F(0), the KL divergence.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from private_bandits.arrays import Floats
from private_bandits.definitions.worlds import Ints

CELLS = 64
"""Into so many parts an interval is cut to bound the chord of F; no tree is needed for it."""


@dataclass(frozen=True)
class Interval:
    """Orders from `start` to `end` for some pairs, with G and F at both ends; for G at infinity stands D_infinity."""

    start: float
    end: float
    pairs: Ints
    log_moments: tuple[Floats, Floats]
    powers: tuple[Floats, Floats]

    def take(self, which: Ints) -> Interval:
        """Some of the pairs."""
        g, f = self.log_moments, self.powers
        return Interval(self.start, self.end, self.pairs[which], (g[0][which], g[1][which]), (f[0][which], f[1][which]))

    def split(self, moments: Floats) -> tuple[Interval, Interval]:
        """The two intervals before and after `middle`, where G is `moments`."""
        (g0, g1), (f0, f1), power = self.log_moments, self.powers, power_of(moments, self.middle)
        return (
            Interval(self.start, self.middle, self.pairs, (g0, moments), (f0, power)),
            Interval(self.middle, self.end, self.pairs, (moments, g1), (power, f1)),
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


def power_of(moments: Floats, order: float) -> Floats:
    """F from G; infinite where a float cannot hold it, which only makes a bound useless."""
    with np.errstate(over="ignore"):
        power: Floats = np.expm1(moments) / (order * (1 + order))
    return power
