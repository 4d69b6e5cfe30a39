"""Means, differences and ratios of regrets, with the errors that chance leaves in them.

Everything is made of one step, a difference of two means. Runs of one contextual experiment share their contexts, so
there runs are compared in pairs; elsewhere they are independent and the errors are Welch's. A ratio of means is
linear in the means up to terms of second order (the delta method), so its error is that of a difference again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from private_bandits.arrays import Floats
from private_bandits.loading import require

CONFIDENCE = 0.95
"""Of every interval that is drawn or printed."""
FREE = 0.1
"""Share of the non-private regret below which privacy counts as free: what the paper's 100 runs can resolve.

The difference of two means of 100 runs has an error of about 3 % of the regret with finitely many arms. Of 20 seeds at
the paper's scale, 19 showed the difference at rho = 1000 to be within 10 %, and none could show 5 %.
"""


@dataclass(frozen=True)
class RegretEstimate:
    """Values, their standard errors, and the degrees of freedom of the t distribution that they have."""

    value: Floats
    error: Floats
    freedom: Floats

    def __getitem__(self, index: Any) -> RegretEstimate:
        return RegretEstimate(*(np.asarray(part)[index] for part in (self.value, self.error, self.freedom)))

    def interval(self, confidence: float = CONFIDENCE) -> tuple[Floats, Floats]:
        """value ± t error; not a number where a single run leaves no error to be seen.

        >>> low, high = mean(np.array([1.0, 2.0, 3.0])).interval()
        >>> round(float(low), 3), round(float(high), 3)
        (-0.484, 4.484)
        """
        require("a confidence interval", "experiments", "scipy")
        from scipy.special import stdtrit

        reach = stdtrit(self.freedom, (1 + confidence) / 2) * self.error
        return self.value - reach, self.value + reach

    def p_above(self, bound: float = 0.0) -> float:
        """The p-value of "no more than `bound`", against "above it". Small: it is above."""
        return _tail(float(self.value) - bound, float(self.error), float(self.freedom))

    def p_below(self, bound: float = 0.0) -> float:
        """The p-value of "no less than `bound`", against "below it"."""
        return _tail(bound - float(self.value), float(self.error), float(self.freedom))

    def p_within(self, margin: float) -> float:
        """The p-value of "at least `margin` away from zero", against "closer": two one-sided tests (Schuirmann 1987).

        >>> mean(np.array([-0.1, 0.0, 0.1])).p_within(1.0) < 0.01
        True
        """
        return max(self.p_below(margin), self.p_above(-margin))


def _tail(distance: float, error: float, freedom: float) -> float:
    """P(t > distance/error), or one half where nothing can be said.

    Runs that all agree leave no error, and are no proof either: they count as freedom/2 + 1 tosses of a coin that all
    fell alike, as in a sign test. Two independent samples of n runs have n such tosses; n pairs would have more.
    """
    require("a test of regrets", "experiments", "scipy")
    from scipy.special import stdtr

    if np.isnan(distance) or np.isnan(error):
        return 0.5
    if error == 0:
        return float(0.5 ** (freedom / 2 + 1)) if distance > 0 else 1.0
    return float(stdtr(freedom, -distance / error))


def mean(sample: Floats) -> RegretEstimate:
    """Mean over the first axis, the runs; s/sqrt(n) with n - 1 degrees of freedom.

    Where all runs agree the error is zero, and not what rounding leaves in a sum.
    """
    n = len(sample)
    agree = np.ptp(sample, axis=0) == 0
    value = np.asarray(np.where(agree, sample[0], sample.mean(axis=0)))
    if n < 2:
        return RegretEstimate(value, np.full_like(value, np.nan), np.ones_like(value))
    error = np.where(agree, 0.0, sample.std(axis=0, ddof=1) / np.sqrt(n))
    return RegretEstimate(value, np.asarray(error), np.full_like(value, n - 1.0))


def stacked(estimates: Sequence[RegretEstimate]) -> RegretEstimate:
    """Several of one number each, as one of as many."""
    return RegretEstimate(
        *(np.array([getattr(one, part) for one in estimates]) for part in ("value", "error", "freedom"))
    )


def difference(first: Floats, second: Floats, paired: bool) -> RegretEstimate:
    """mean(first) - mean(second): by runs in pairs, or of independent runs (Welch 1947, with his degrees of freedom).

    >>> one, two = np.array([1.0, 2.0, 3.0]), np.array([0.0, 1.1, 1.9])
    >>> float(difference(one, two, paired=True).error) < float(difference(one, two, paired=False).error)
    True
    """
    if paired:
        return mean(first - second)
    a, b = mean(first), mean(second)
    parts = (a.error**2, b.error**2)
    spread = sum(part**2 / f for part, f in zip(parts, (a.freedom, b.freedom), strict=True))
    total = parts[0] + parts[1]
    with np.errstate(invalid="ignore", divide="ignore"):
        freedom = np.where(np.greater(spread, 0), total**2 / spread, len(first) + len(second) - 2.0)
    return RegretEstimate(np.asarray(a.value - b.value), np.asarray(np.sqrt(total)), np.asarray(freedom))


def price(private: Floats, plain: Floats, paired: bool) -> RegretEstimate:
    """The price of privacy, (mean(private) - mean(plain))/mean(plain), at every step; no number where mean(plain) = 0.

    Delta method: ratio - 1 has the error of  mean(private)/m - ratio mean(plain)/m  with m and ratio held fixed.

    >>> float(price(np.array([2.0, 4.0]), np.array([1.0, 3.0]), paired=True).value)
    0.5
    """
    ratio, scale = _ratio(private, plain)
    linear = difference(private * scale, ratio * plain * scale, paired)
    return RegretEstimate(ratio - 1, linear.error, linear.freedom)


def multiple_slope(private: Sequence[Floats], plain: Floats, steps: NDArray[Any], paired: bool) -> RegretEstimate:
    """Slope of the straight line that fits log10(mean(private)/mean(plain)) against log10(step) best (least squares).

    The multiple is 1 + price and falls where the price falls. Its logarithm is nearer to linear in the means than the
    price is: with 20 skewed runs a test of the price's own slope at 5 % is wrong in 7 % of cases, and this one in 5 %.
    Of several budgets: the mean of their logarithms. The twin is the same for all, so that its part is one sample.
    """
    place = np.log10(steps) - np.log10(steps).mean()
    weights = place / (place @ place)
    means = [sample.mean(axis=0) for sample in private]
    value = weights @ np.mean([np.log10(own / plain.mean(axis=0)) for own in means], axis=0)
    scale = weights / np.log(10)
    parts = [(sample / own) @ scale / len(private) for sample, own in zip(private, means, strict=True)]
    twin = (plain / plain.mean(axis=0)) @ scale
    linear = contrast([*parts, twin], np.array([1.0] * len(parts) + [-1.0]), paired)
    return RegretEstimate(np.asarray(value), linear.error, linear.freedom)


def _ratio(private: Floats, plain: Floats) -> tuple[Floats, Floats]:
    base = plain.mean(axis=0)
    scale = np.divide(1.0, base, out=np.full_like(base, np.nan), where=base > 0)
    return private.mean(axis=0) * scale, scale


def contrast(samples: Sequence[Floats], weights: Floats, paired: bool) -> RegretEstimate:
    """Weighted sum of the means of several samples, with the degrees of freedom of Welch and Satterthwaite."""
    if paired:
        return mean(np.asarray(sum(w * sample for w, sample in zip(weights, samples, strict=True))))
    means = [mean(sample) for sample in samples]
    parts = np.array([w**2 * m.error**2 for w, m in zip(weights, means, strict=True)])
    value = sum(w * m.value for w, m in zip(weights, means, strict=True))
    spread = sum(part**2 / m.freedom for part, m in zip(parts, means, strict=True))
    freedom = parts.sum() ** 2 / spread if spread > 0 else sum(len(sample) - 1.0 for sample in samples)
    return RegretEstimate(np.asarray(value), np.sqrt(parts.sum()), np.asarray(freedom))


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted p-values: all that are below 0.05 can be believed together, wrongly at most once in twenty (Holm 1979).

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    adjusted, largest = [0.0] * len(p_values), 0.0
    for rank, index in enumerate(np.argsort(p_values, kind="stable")):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = largest
    return adjusted
