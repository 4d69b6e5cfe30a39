"""Errors and tests against scipy's, against the bootstrap, and by counting how often they are wrong."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from private_bandits.experiments.analysis.estimates import contrast, difference, holm, mean, multiple_slope, price

CHANCE = np.random.default_rng(3)
FIRST = CHANCE.gamma(4.0, 30.0, (20, 6))
SECOND = 0.8 * FIRST + CHANCE.gamma(2.0, 10.0, (20, 6))


@pytest.mark.parametrize("paired", [True, False])
def test_differences_are_those_of_scipy(paired: bool) -> None:
    theirs = stats.ttest_rel(FIRST, SECOND) if paired else stats.ttest_ind(FIRST, SECOND, equal_var=False)
    ours = difference(FIRST, SECOND, paired)
    low, high = ours.interval()
    expected = theirs.confidence_interval(0.95)
    np.testing.assert_allclose(low, expected.low, rtol=1e-10)
    np.testing.assert_allclose(high, expected.high, rtol=1e-10)
    two_sided = [2 * min(ours[i].p_above(), ours[i].p_below()) for i in range(6)]
    np.testing.assert_allclose(two_sided, theirs.pvalue, rtol=1e-9)


def test_a_mean_is_that_of_scipy() -> None:
    low, high = mean(FIRST[:, 0]).interval()
    expected = stats.ttest_1samp(FIRST[:, 0], 0.0).confidence_interval(0.95)
    assert (float(low), float(high)) == pytest.approx((expected.low, expected.high), rel=1e-10)


def test_equivalence_is_the_larger_of_two_tests() -> None:
    one = difference(FIRST[:, 0], SECOND[:, 0], paired=False)
    sides = [
        stats.ttest_ind(FIRST[:, 0] + shift, SECOND[:, 0], equal_var=False, alternative=side).pvalue
        for shift, side in ((-30.0, "less"), (30.0, "greater"))
    ]
    assert one.p_within(30.0) == pytest.approx(max(sides), rel=1e-9)


@pytest.mark.parametrize("paired", [True, False])
def test_the_price_and_its_slope_have_the_error_of_the_bootstrap(paired: bool) -> None:
    """The spread of 4,000 resampled values is known to 1/sqrt(8000), 1.1 %; the bootstrap's own is (n-1)/n smaller."""
    chance, n = np.random.default_rng(5), 200
    steps = np.array([100, 1_000, 5_000, 10_000])
    plain = chance.gamma(20.0, 1.0, (n, 4)) * [5.0, 8.0, 10.0, 11.0]
    private = 1.5 * plain + chance.gamma(10.0, 4.0, (n, 4))
    prices, slopes = [], []
    for _ in range(4_000):
        rows = chance.integers(0, n, n)
        others = rows if paired else chance.integers(0, n, n)
        found = private[rows].mean(axis=0) / plain[others].mean(axis=0) - 1
        prices.append(found)
        slopes.append(np.polyfit(np.log10(steps), np.log10(1 + found), 1)[0])
    value = price(private, plain, paired)
    slope = multiple_slope([private], plain, steps, paired)
    tolerance = 5 / math.sqrt(8_000) + 1 / n
    np.testing.assert_allclose(value.error, np.std(prices, axis=0), rtol=tolerance)
    np.testing.assert_allclose(slope.error, np.std(slopes), rtol=tolerance)
    np.testing.assert_allclose(slope.value, np.polyfit(np.log10(steps), np.log10(1 + value.value), 1)[0], rtol=1e-10)


def test_the_mean_slope_of_several_budgets_shares_the_twin() -> None:
    """With the same private runs twice the mean slope is the slope; its variance counts them as independent."""
    steps = np.array([1, 10, 100, 1_000, 5_000, 10_000])
    one = multiple_slope([SECOND], FIRST, steps, paired=True)
    both = multiple_slope([SECOND, SECOND], FIRST, steps, paired=True)
    assert (float(both.value), float(both.error)) == pytest.approx((float(one.value), float(one.error)))
    alone, shared = (multiple_slope([SECOND] * k, FIRST, steps, paired=False) for k in (1, 2))
    private = multiple_slope([SECOND], np.tile(FIRST.mean(axis=0), (20, 1)), steps, paired=False)
    twin_part = float(alone.error) ** 2 - float(private.error) ** 2
    assert float(shared.error) ** 2 == pytest.approx(float(private.error) ** 2 / 2 + twin_part)


def test_intervals_of_the_price_cover_it() -> None:
    """95 % of 2,000, within four standard errors and a point for the delta method's second order."""
    chance, covered, repeats, n = np.random.default_rng(11), 0, 2_000, 20
    for _ in range(repeats):
        found = price(chance.normal(30.0, 3.0, n), chance.normal(20.0, 3.0, n), paired=False)
        low, high = found.interval()
        covered += int(low <= 0.5 <= high)
    assert abs(covered / repeats - 0.95) < 4 * math.sqrt(0.95 * 0.05 / repeats) + 0.01


def test_a_contrast_of_two_is_a_difference() -> None:
    for paired in (True, False):
        ours = contrast([FIRST[:, 0], SECOND[:, 0]], np.array([1.0, -1.0]), paired)
        theirs = difference(FIRST[:, 0], SECOND[:, 0], paired)
        assert [float(getattr(ours, part)) for part in ("value", "error", "freedom")] == pytest.approx(
            [float(getattr(theirs, part)) for part in ("value", "error", "freedom")]
        )


def test_holm_by_hand() -> None:
    assert holm([]) == []
    assert holm([0.2]) == [0.2]
    assert holm([0.04, 0.001, 0.02, 0.9]) == pytest.approx([0.08, 0.004, 0.06, 0.9])
    assert holm([0.6, 0.7]) == [1.0, 1.0]


def test_rounding_is_no_evidence() -> None:
    """Runs that agree have no error, though a sum of tenths does not come out even."""
    same = np.full((7, 1), 0.1)
    assert float(mean(same).error[0]) == 0
    none = difference(same, same.copy(), paired=False)[0]
    assert (none.p_above(), none.p_below()) == (1.0, 1.0)
    assert difference(same + 1, same, paired=False)[0].p_above() == 0.5**7  # seven tosses that all fell alike
    assert difference(same + 1, same, paired=True)[0].p_above() == 0.5**4  # no less than the sign test's 0.5**7


def test_one_run_has_no_error() -> None:
    one = difference(np.array([[3.0]]), np.array([[2.0]]), paired=False)[0]
    assert (float(one.value), one.p_above(), one.p_below(), one.p_within(10.0)) == (1.0, 0.5, 0.5, 0.5)
    assert np.isnan(one.interval()).all()


def test_no_price_without_regret() -> None:
    found = price(np.array([[1.0, 2.0], [1.0, 2.0]]), np.array([[0.0, 1.0], [0.0, 1.0]]), paired=False)
    assert math.isnan(found.value[0])
    assert found.value[1] == 1.0
