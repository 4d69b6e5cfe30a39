"""What releases say of arms, and what it costs to believe otherwise: the numbers behind a verdict.

An arm's mean m was read from releases, for rewards in [0, 1]. No reward has a larger weight in it than 1/n, and noise
is added to it. Were the arm's true mean u, then m would be as low as it is with a probability of at most
e^-J (Chernoff),

    J(u) = sup over x >= 0 of   x f (u - m) - x u - n log(1 - u + u e^(-x/n)) - N(x)

where N is the log of the noise's moment generating function: v x^2/2 for Gaussian noise of variance v, and
-c log(1 - s^2 x^2) for c Laplace noises of scale s. f is 1, but for a release that was made before all of its planned
rewards were in (docs/guarantees.md): then it is the part that they have of the planned weight.

Each x alone gives a valid bound, and one that is convex in u. So whatever rounding or an early end of a search does to
x, what is computed here is a cost that holds, and its tangents in u are below it everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate, product
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from private_bandits.arrays import Floats
from private_bandits.budget import NoiseKind

_NEWTON_STEPS = 60
_CUTS = 40
_NEAR = 1e-5
"""How close a joint cost is to the infimum, below it, in parts of it."""
_CLOSE = 1e-7
_END_STEPS, _HALVINGS, _END_NEAR = 60, 6, 1e-12
"""Steps for the ends of an interval, at most; those that halve what is left; and how close is close enough."""
_EDGE = 1e-9
"""The true mean is looked for between this and 1 minus this. Tangents bound what is beyond."""
_BELOW_ONE = 1 - 1e-15
_SAFELY = 1 - 1e-9
"""Costs are multiplied by this, for what rounding may do to them."""


class Evidence(NamedTuple):
    """What the releases say of an arm's mean, for rewards in [0, 1]; numbers, or arrays of them.

    mean: as read from releases. rounding: of it, at most. rewards: one over the largest weight that a reward has in it;
    infinite: their error counts as Gaussian noise. variance: of Gaussian noise in it. scale, copies: of Laplace noises
    in it. share: the part of the planned weight that has arrived: 1, but for a closing release. odds: one over the
    share of the failure probability that goes to statements of this number of releases.
    """

    mean: Any
    rounding: Any
    rewards: Any
    variance: Any
    odds: Any
    scale: Any = 0.0
    copies: Any = 0.0
    share: Any = 1.0

    @classmethod
    def stacked(cls, found: list[Evidence]) -> Evidence:
        """Return the evidence of several arms as arrays."""
        return cls(*np.array(found, float).reshape(len(found), len(cls._fields)).T)

    def take(self, places: Any) -> Self:
        """Return the evidence at some places of arrays."""
        return type(self)(*(part[places] for part in self))

    @classmethod
    def of_mean(
        cls, kind: NoiseKind, mean: float, rounding: float, rewards: float, sd: float, peak: float, odds: float
    ) -> Evidence:
        """Return what a mean of plain rewards says. sd: of all noise in it, peak: of its largest part.

        Laplace noises of several scales have a log mgf of at most that of (sd/peak)^2 noises of the largest scale, as
        -log(1 - t)/t grows with t.
        """
        if kind != "laplace" or not peak:
            return cls(mean, rounding, rewards, sd**2, odds)
        return cls(mean, rounding, rewards, 0.0, odds, scale=peak / math.sqrt(2), copies=(sd / peak) ** 2)

    @property
    def mirrored(self) -> Self:
        """Return the same for rewards turned around, 1 - r: an arm's being worse is its being better there."""
        return self._replace(mean=1.0 - self.mean)


def costs_of_more(arms: Evidence, u: Floats) -> tuple[Floats, Floats]:
    """Return the cost of believing that each arm's mean is as large as u, and a slope: tangents are below the cost.

    >>> arm = Evidence.stacked([Evidence(0.4, 0.0, 100.0, 0.0, 1.0), Evidence(0.4, 0.0, 100.0, 0.01, 1.0)])
    >>> costs_of_more(arm, np.array([0.5, 0.5]))[0].round(4).tolist()
    [2.0136, 0.4]
    """
    mean = arms.mean + arms.rounding
    u = np.minimum(u, _BELOW_ONE)  # larger means cost no less, and that of 1 has no slope
    # With a part of the weight, a mean below 0 could make larger u cost less. That of 0 costs less than it, and more
    # with larger u: a convex function that is zero at a mean of [0, 1] grows from there.
    mean = np.where(arms.share < 1.0, np.maximum(mean, 0.0), mean)
    gap = arms.share * (u - mean)
    found, slopes = np.zeros(len(u)), np.zeros(len(u))
    places = np.flatnonzero(gap > 0.0)
    if len(places):
        found[places], slopes[places] = _costs(arms.take(places), u[places], gap[places])
    return found, slopes


def costs_of_less(arms: Evidence, u: Floats) -> tuple[Floats, Floats]:
    """Return the cost of believing that each arm's mean is as small as u, and its slope."""
    found, slopes = costs_of_more(arms.mirrored, 1.0 - u)
    return found, -slopes


def _costs(arms: Evidence, u: Floats, gap: Floats) -> tuple[Floats, Floats]:
    """The same where the arm's mean is below u. gap: f (u - m)."""
    gaussian = np.isinf(arms.rewards)
    n = np.where(gaussian, 1.0, arms.rewards)
    tilt = _best_tilts(u, gap, n, arms, gaussian)
    x = n * tilt
    fall = np.expm1(-tilt)
    # 1 - u + u e^(-x/n) and its log, precise at either end: n would multiply what is lost.
    near, inside = u * fall, (1.0 - u) + u * np.exp(-tilt)
    logs = np.where(near > -0.5, np.log1p(np.maximum(near, -0.5)), np.log(inside))
    of_rewards = np.where(gaussian, 0.0, x * u + n * logs)
    found = x * gap - of_rewards - _log_mgf(arms, x)
    slopes = x * arms.share - np.where(gaussian, 0.0, x + n * fall / inside)
    useless = ~(found > 0.0)  # nothing is believed at a cost below zero
    return np.where(useless, 0.0, found * _SAFELY), np.where(useless, 0.0, slopes * _SAFELY)


def _log_mgf(arms: Evidence, x: Floats) -> Floats:
    """N(x)."""
    return np.asarray(arms.variance * x * x / 2.0 - arms.copies * np.log1p(-np.square(arms.scale * x)))


def _best_tilts(u: Floats, gap: Floats, n: Floats, arms: Evidence, gaussian: Any) -> Floats:
    """Find x/n of the largest bound: Newton's steps, kept within what is known of the root of a falling function."""
    variance, scale, copies = arms.variance, arms.scale, arms.copies
    with np.errstate(divide="ignore", invalid="ignore"):
        most = np.where(variance > 0.0, gap / (variance * n), np.inf)
        most = np.where(scale > 0.0, np.minimum(most, (1.0 - 1e-12) / (scale * n)), most)
        # Without noise the root is known.
        y = u - gap
        plain = np.log(u / (1.0 - u)) - np.log(np.maximum(y, 1e-300) / np.maximum(1.0 - y, 1e-300))
    most = np.where(gaussian, most, np.minimum(most, 700.0))  # e^-700 is about the smallest number there is
    low, high = np.zeros(len(u)), most
    curve = np.where(gaussian, 0.0, u * (1.0 - u))
    tilt = np.minimum(gap / (n * (variance + 2.0 * copies * scale**2) + curve + 1e-300), 0.5 * most)
    noisy = (variance > 0.0) | (scale > 0.0)
    tilt = np.where(noisy, tilt, np.minimum(np.maximum(plain, 0.0), 700.0))
    for number in range(_NEWTON_STEPS):
        falling = u * np.exp(-tilt)
        share = falling / (1.0 - u + falling)
        x = n * tilt
        room = 1.0 - np.square(scale * x)
        # The slope of the bound in x, and its own slope in x/n, with a minus.
        slope = gap - np.where(gaussian, 0.0, u - share) - variance * x - 2.0 * copies * scale**2 * x / room
        bend = np.where(gaussian, 0.0, share * (1.0 - share)) + n * variance
        bend = bend + 2.0 * n * copies * scale**2 * (2.0 - room) / room**2
        low, high = np.where(slope > 0.0, tilt, low), np.where(slope > 0.0, high, tilt)
        step = slope / np.maximum(bend, 1e-290)
        moved = tilt + step
        done = ~noisy | (np.abs(step) <= _CLOSE * tilt)
        # Newton's steps may go back and forth. Then every other one halves what is left.
        inside = (moved > low) & (moved < high) & (done | (number < 10) | (number % 2 == 0))
        tilt = np.where(done & ~inside, tilt, np.where(inside, moved, 0.5 * (low + high)))
        if done.all():
            break
    return np.asarray(tilt)


ArmEvidence = tuple[Evidence, ...]
"""What is known of one arm, in one or two ways: after a closing release also what was known before. Empty: nothing."""


def joint_costs(first: Evidence, second: Evidence, lead: Floats, near: float = _NEAR) -> Floats:
    """Return the least cost of believing that the first arms' means exceed those of the second by no more than `lead`.

    It is the infimum over u in [0, 1] of the cost that the first arm's mean is u + lead at most plus the cost that the
    second's is u at least, rounded down: both are convex, so the two tangents next to the infimum bound it below.
    near: how close it is to the infimum, in parts of it.

    >>> arms = [Evidence(m, 0.0, 1000.0, 1e-5, 2.0) for m in (0.6, 0.5)]
    >>> better, worse = (Evidence.stacked([arm]) for arm in arms)
    >>> joint_costs(better, worse, np.zeros(1)).round(2).tolist(), joint_costs(worse, better, np.zeros(1)).tolist()
    ([9.72], [0.0])
    """
    least, most = np.maximum(0.0, -lead) + _EDGE, np.minimum(1.0, 1.0 - lead) - _EDGE
    found: Floats = np.zeros(len(lead))
    behind = first.mean - first.rounding - lead > second.mean + second.rounding
    left = np.flatnonzero(behind & (least < most))
    if not len(left):
        return found
    first, second, lead, least, most = first.take(left), second.take(left), lead[left], least[left], most[left]
    search = _Search(first, second, lead, least, most, near)
    found_all = search.cut(search.guess())
    while not found_all and search.cuts < _CUTS:
        found_all = search.cut(search.crossing())
    found[left] = search.bound()
    return np.asarray(np.maximum(found, 0.0))


def _between(first: Evidence, second: Evidence, left: Floats, right: Floats) -> Floats:
    """Return a point where the first arm's being so low costs about as much more as the second's being so high."""
    spread, other = (arm.variance + 2.0 * arm.copies * arm.scale**2 + 0.25 / arm.rewards for arm in (first, second))
    part = other / np.maximum(spread + other, 1e-300)
    return np.asarray(left + np.clip(part, 0.01, 0.99) * (right - left))


def beats(first: Evidence, second: Evidence, odds: Floats | float) -> NDArray[np.bool_]:
    """Return whether it costs too much to believe that the second arm is as good as the first, for each pair.

    odds: one over the failure probability of each pair. One point decides against most of them: the infimum is no more
    than the cost there.
    """
    needed = cost_needed(odds * first.odds * second.odds)
    left, right = (np.clip(arm.mean, _EDGE, 1.0 - _EDGE) for arm in (second, first))
    u = _between(first, second, left, right)
    found = (first.mean > second.mean) & (costs_of_less(first, u)[0] + costs_of_more(second, u)[0] >= needed)
    places = np.flatnonzero(found)
    found[places] = joint_costs(first.take(places), second.take(places), np.zeros(len(places))) >= needed[places]
    return np.asarray(found)


class _Search:
    """The search for the least of a convex function of u, between two tangents that come closer."""

    def __init__(
        self, first: Evidence, second: Evidence, lead: Floats, least: Floats, most: Floats, near: float
    ) -> None:
        self.first, self.second, self.lead, self.near = first, second, lead, near
        self.least, self.most = least - _EDGE, most + _EDGE
        # Left of the second arm's mean and right of the first one's the function does not fall.
        self.left = np.clip(second.mean + second.rounding, least, most)
        self.right = np.clip(first.mean - first.rounding - lead, self.left, most)
        self.cuts = 0
        everywhere = slice(None)
        self.cost_left, self.slope_left = self._at(self.left, everywhere)
        self.cost_right, self.slope_right = self._at(self.right, everywhere)

    def _at(self, u: Floats, places: Any) -> tuple[Floats, Floats]:
        more, slope = costs_of_more(self.second.take(places), u)
        less, other = costs_of_less(self.first.take(places), u + self.lead[places])
        return more + less, slope + other

    def guess(self) -> Floats:
        """Return where the infimum would be, were all of it Gaussian."""
        return _between(self.first, self.second, self.left, self.right)

    def crossing(self) -> Floats:
        """Where the tangents meet."""
        turn = self.slope_right - self.slope_left
        with np.errstate(divide="ignore", invalid="ignore"):
            ahead = (self.cost_left - self.cost_right + self.slope_right * (self.right - self.left)) / turn
        ahead = np.where(np.isfinite(ahead), ahead, 0.5 * (self.right - self.left))
        return np.asarray(self.left + np.clip(ahead, 0.0, self.right - self.left))

    def bound(self) -> Floats:
        """Return what the function is not below."""
        crossing = self.crossing()
        at = self.cost_left + self.slope_left * (crossing - self.left)
        at = np.minimum(at, self.cost_right - self.slope_right * (self.right - crossing))
        outside_left = self.cost_left - np.maximum(self.slope_left, 0.0) * (self.left - self.least)
        outside_right = self.cost_right + np.minimum(self.slope_right, 0.0) * (self.most - self.right)
        rises, falls = self.slope_left >= 0.0, self.slope_right <= 0.0
        return np.asarray(np.where(rises, outside_left, np.where(falls, outside_right, at)))

    def cut(self, at: Floats) -> bool:
        """Move one end of each bracket to a point in it. Returns whether none is left to be moved."""
        self.cuts += 1
        bound = self.bound()
        open_ = (self.slope_left < 0.0) & (self.slope_right > 0.0) & (self.right - self.left > 1e-13)
        upper = np.minimum(self.cost_left, self.cost_right)
        places = np.flatnonzero(open_ & (upper - bound > self.near * (1e-3 + upper)))
        if not len(places):
            return True
        u = at[places]
        cost, slope = self._at(u, places)
        goes_left = slope < 0.0
        here, there = places[goes_left], places[~goes_left]
        self.left[here], self.cost_left[here], self.slope_left[here] = u[goes_left], cost[goes_left], slope[goes_left]
        self.right[there], self.cost_right[there] = u[~goes_left], cost[~goes_left]
        self.slope_right[there] = slope[~goes_left]
        return False


def cost_needed(odds: Floats) -> Floats:
    """Return x with (1 + x) e^-x = 1/odds: the sum of two independent costs exceeds it with that probability at most.

    >>> x = cost_needed(np.array([1.0, 20.0]))
    >>> ((1 + x) * np.exp(-x) * np.array([1, 20])).round(6).tolist()
    [1.0, 1.0]
    """
    level = np.log(np.maximum(odds, 1.0))
    x = level + np.sqrt(2.0 * level)  # above the root, and the function is convex: Newton's steps stay above
    for _ in range(50):
        step = np.where(x > 0.0, (x - np.log1p(x) - level) * (1.0 + x) / np.maximum(x, 1e-300), 0.0)
        x = x - step
        if (np.abs(step) <= 1e-12 * (1.0 + x)).all():
            break
    return np.asarray(np.maximum(x, 0.0) + 1e-9)


def relative_costs(pairs: Sequence[tuple[ArmEvidence, ArmEvidence]], lead: Floats, odds: float) -> Floats:
    """Return what it costs to believe that the second arm of a pair is as good as the first, but for `lead`.

    It is relative to what is needed to exclude that. odds: one over the failure probability of each pair. Where an arm
    is known in two ways, the best one counts: the failure probability is shared over the numbers of releases, and each
    way has its own.
    """
    first, second, starts = _ways(pairs)
    repeated = np.repeat(lead, np.diff([*starts, len(first.mean)]))
    found = joint_costs(first, second, repeated) / cost_needed(odds * first.odds * second.odds)
    return np.asarray(np.maximum.reduceat(found, starts))


def _ways(pairs: Sequence[tuple[ArmEvidence, ArmEvidence]]) -> tuple[Evidence, Evidence, list[int]]:
    """Return each way in which the arms of each pair are known, and where the ways of each pair begin."""
    ways = [list(product(first, second)) for first, second in pairs]
    sides = zip(*(way for each in ways for way in each), strict=True)
    first, second = (Evidence.stacked(list(side)) for side in sides)
    return first, second, list(accumulate((len(each) for each in ways[:-1]), initial=0))


def declared(arms: Sequence[ArmEvidence], delta: float) -> int | None:
    """Return the arm of the largest mean, if it costs too much to believe that any other is as good; else None.

    The probability that an arm is ever returned which is worse than another is at most delta (docs/guarantees.md).
    """
    if not all(arms):
        return 0 if len(arms) == 1 else None
    leader = int(np.argmax([float(known[-1].mean) for known in arms]))
    others = [known for arm, known in enumerate(arms) if arm != leader]
    if not others:
        return leader
    first, second, starts = _ways([(arms[leader], known) for known in others])
    found = np.logical_or.reduceat(beats(first, second, len(others) / delta), starts)
    return leader if found.all() else None


@lru_cache(maxsize=16)  # people look more often than there are releases
def intervals_of(arms: tuple[Evidence, ...], odds: tuple[float, ...]) -> tuple[tuple[float, float], ...]:
    """Return the means of each arm that cost less than log(2 odds) to believe: they hold the true one, but for 1/odds.

    The upper end is looked for from above. A tangent is below the cost, so where the tangent costs that much everything
    beyond does: a step of Newton's never passes the end. The lower end is the upper end of 1 - r.

    >>> [(low, high)] = intervals_of((Evidence(0.4, 0.0, 100.0, 0.0, 1.0),), (20.0,))
    >>> round(low, 3), round(high, 3)
    (0.274, 0.536)
    """
    if not arms:
        return ()
    both = Evidence.stacked([*arms, *(arm.mirrored for arm in arms)])
    level = np.log(2.0 * np.tile(np.asarray(odds, float), 2))
    low, high = np.clip(both.mean + both.rounding, 0.0, 1.0), np.ones(len(level))  # low is believed at no cost
    middle = high
    for number in range(_END_STEPS):
        cost, slope = costs_of_more(both, middle)
        excluded = (cost >= level) & (slope > 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            tangent = np.where(excluded, middle - (cost - level) / slope, high)
        high = np.clip(tangent, low, high)
        low = np.where(excluded, low, np.maximum(low, np.minimum(middle, high)))
        if ((high - low <= _END_NEAR) | (excluded & (cost - level <= _END_NEAR * level))).all():
            break
        # From far away steps are short, as the cost bends: halves come first, and now and then.
        middle = 0.5 * (low + high) if number < _HALVINGS or number % 3 == 0 else high
    ends = high.reshape(2, -1)
    return tuple((1.0 - below, above) for above, below in zip(*ends.tolist(), strict=True))
