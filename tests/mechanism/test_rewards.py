"""RewardRange: every reward becomes a whole number from 0 to the grid, and no error repeats it."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from private_bandits.errors import InvalidInput
from private_bandits.mechanism.rewards import RewardRange

steady = settings(derandomize=True, deadline=None)

GRID = 2**24
finite = st.floats(allow_nan=False, allow_infinity=False)
grids = st.sampled_from([1, 2, 3, 10, 2**10, GRID])


@st.composite
def ranges(draw: st.DrawFn) -> RewardRange:
    low, width = draw(st.floats(-1e9, 1e9)), draw(st.floats(1e-3, 1e9))
    return RewardRange(low, low + width)


def exact_position(bounds: RewardRange, reward: Any, grid: int) -> Fraction:
    """grid (clip(reward) - low)/(high - low) without any rounding."""
    low, high = Fraction(bounds.low), Fraction(bounds.high)
    return grid * (min(max(Fraction(reward), low), high) - low) / (high - low)


# Onto the grid.


@pytest.mark.parametrize(
    ("low", "high", "reward", "expected"),
    [
        (0, 1, 0.0, 0),
        (0, 1, 1.0, 8),
        (0, 1, 0.25, 2),
        (0, 1, 0.3, 2),  # 2.4
        (0, 1, 0.35, 3),  # 2.8: to the nearest, not down
        (0, 1, 7.0, 8),
        (0, 1, -7.0, 0),
        (0, 1, 1e308, 8),
        (0, 1, -1e308, 0),
        (0, 1, -0.0, 0),
        (-1, 1, -1.0, 0),
        (-1, 1, 0.0, 4),
        (-1, 1, 0.99, 8),
        (5, 9, 5.5, 1),
        (5, 9, 0.0, 0),
        (5, 9, 9.5, 8),
    ],
)
def test_a_reward_is_clipped_and_rounded_to_the_nearest_step(
    low: float, high: float, reward: float, expected: int
) -> None:
    found = RewardRange(low, high).to_grid(reward, grid=8)
    assert (found, type(found)) == (expected, int)


@steady
@given(bounds=ranges(), reward=finite, grid=grids)
def test_any_float_lands_on_the_grid_at_most_half_a_step_away(bounds: RewardRange, reward: float, grid: int) -> None:
    found = bounds.to_grid(reward, grid)
    assert type(found) is int
    assert 0 <= found <= grid
    # Three roundings on the way, each of 2^-53 relative.
    assert abs(found - exact_position(bounds, reward, grid)) <= Fraction(1, 2) + Fraction(grid, 2**51)


@steady
@given(bounds=ranges(), share=st.floats(0, 1), grid=grids)
def test_a_float_inside_the_range_lands_at_most_half_a_step_away(bounds: RewardRange, share: float, grid: int) -> None:
    reward = bounds.low + share * bounds.width
    found = bounds.to_grid(reward, grid)
    assert 0 <= found <= grid
    assert abs(found - exact_position(bounds, reward, grid)) <= Fraction(1, 2) + Fraction(grid, 2**51)


@steady
@given(bounds=ranges(), shares=st.lists(st.floats(-0.2, 1.2), min_size=2, max_size=20), grid=grids)
def test_a_larger_reward_never_lands_lower(bounds: RewardRange, shares: list[float], grid: int) -> None:
    rewards = sorted(bounds.low + share * bounds.width for share in shares)
    found = [bounds.to_grid(reward, grid) for reward in rewards]
    assert found == sorted(found)


@pytest.mark.parametrize("grid", [1, 7, GRID])
def test_the_ends_of_the_range_are_the_ends_of_the_grid(grid: int) -> None:
    for bounds in (RewardRange(0, 1), RewardRange(-1, 1), RewardRange(0.1, 0.3), RewardRange(-1e9, 1e-9)):
        assert bounds.to_grid(bounds.low, grid) == 0
        assert bounds.to_grid(bounds.high, grid) == grid
        assert bounds.to_grid(math.nextafter(bounds.high, -math.inf), grid) <= grid
        assert bounds.to_grid(math.nextafter(bounds.low, math.inf), grid) >= 0


@pytest.mark.parametrize(
    ("reward", "expected"),
    [
        (1, 8),
        (0, 0),
        (-3, 0),
        (True, 8),
        (False, 0),
        (np.float64(0.25), 2),
        (np.float32(0.25), 2),
        (np.float16(0.25), 2),
        (np.int64(1), 8),
        (np.int8(-4), 0),
        (np.uint8(200), 8),
        (np.bool_(True), 8),
        (np.bool_(False), 0),
        (Fraction(1, 4), 2),
        (Fraction(1, 3), 3),
        (Fraction(10**400, 3), 8),
        (Fraction(-(10**400), 3), 0),
        (10**400, 8),
        (-(10**400), 0),
    ],
    ids=lambda value: f"{type(value).__name__}",
)
def test_numbers_of_every_type_are_taken(reward: Any, expected: int) -> None:
    found = RewardRange(0, 1).to_grid(reward, grid=8)
    assert (found, type(found)) == (expected, int)


def test_a_number_of_more_range_than_a_float_is_clipped() -> None:
    huge = np.longdouble(2) ** 2000
    if np.isinf(huge):
        pytest.skip("long doubles are doubles here")
    assert RewardRange(0, 1).to_grid(huge, grid=8) == 8
    assert RewardRange(0, 1).to_grid(-huge, grid=8) == 0


# What is refused, without its value.


@pytest.mark.parametrize(
    ("reward", "kind"),
    [
        (math.nan, "NaN"),
        (np.float64("nan"), "NaN"),
        (np.float32("nan"), "NaN"),
        (math.inf, "infinite"),
        (-math.inf, "infinite"),
        (np.float64("inf"), "infinite"),
        (np.float32("-inf"), "infinite"),
    ],
)
def test_a_reward_that_is_not_finite_is_refused_by_its_kind(reward: float, kind: str) -> None:
    for bounds in (RewardRange(0, 1), RewardRange(-1, 1)):
        with pytest.raises(InvalidInput) as caught:
            bounds.to_grid(reward, GRID)
        assert str(caught.value) == f"reward must be a finite number, got one that is {kind}"


@pytest.mark.parametrize(
    "reward",
    [
        "0.48151623",
        b"0.48151623",
        complex(0.48151623, 0),
        np.complex128(0.48151623),
        Decimal("0.48151623"),
        [0.48151623],
        (0.48151623,),
        {"reward": 0.48151623},
        np.array([0.48151623]),
        np.str_("0.48151623"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_no_real_number_is_refused_by_its_type_and_without_its_value(reward: Any) -> None:
    with pytest.raises(InvalidInput) as caught:
        RewardRange(0, 1).to_grid(reward, GRID)
    error = caught.value
    name = type(reward).__name__
    assert str(error) == f"reward must be a finite number, got a value of type {name}"
    assert "48151623" not in repr(error)
    assert error.__cause__ is None
    assert error.__context__ is None


def test_none_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"^reward must be a finite number, got a value of type NoneType$"):
        RewardRange(0, 1).to_grid(None, GRID)


# Ranges.


@pytest.mark.parametrize("bounds", [(0, 1), [0, 1], (np.float64(0), np.int64(1)), (Fraction(0), Fraction(1))])
def test_a_pair_of_numbers_makes_a_range_of_floats(bounds: Any) -> None:
    made = RewardRange.of(bounds)
    assert made == RewardRange(0.0, 1.0)
    assert (type(made.low), type(made.high), made.width) == (float, float, 1.0)
    assert RewardRange.of(made) is made


@pytest.mark.parametrize("bound", [math.nan, math.inf, -math.inf, True, "0", None, 1j, 10**400, -(10**400)])
def test_a_range_refuses_a_bound_that_is_no_finite_number(bound: Any) -> None:
    with pytest.raises(InvalidInput, match="two finite numbers, got low = "):
        RewardRange(bound, 1.0)
    with pytest.raises(InvalidInput, match="two finite numbers, got high = "):
        RewardRange(0.0, bound)


@pytest.mark.parametrize("bounds", [(1, 0), (1, 1), (0.0, -0.0)])
def test_a_range_needs_low_below_high(bounds: tuple[float, float]) -> None:
    with pytest.raises(InvalidInput, match="reward_range must be low < high, got "):
        RewardRange(*bounds)


@pytest.mark.parametrize(
    "bounds",
    [
        *((-1e308, 1e308), (0.0, 1.001e100), (-0.6e100, 0.6e100), (1e101, 1.1e101), (-1.1e101, -1e101)),
        *((0.0, 0.999e-100), (0.0, 1e-310), (0.0, 5e-324), (1.0, 1.0 + 2.0**-51), (-1e15 - 0.5, -1e15)),
    ],
)
def test_a_range_too_wide_or_too_narrow_for_floats_is_refused(bounds: tuple[float, float]) -> None:
    with pytest.raises(InvalidInput, match="too wide or too narrow"):
        RewardRange(*bounds)


@pytest.mark.parametrize("bounds", [(0.0, 1e100), (-0.5e100, 0.5e100), (0.0, 1e-100), (1.0, 1.0 + 2.0**-49)])
def test_a_range_at_the_ends_of_what_is_taken(bounds: tuple[float, float]) -> None:
    found = RewardRange(*bounds)
    assert (found.low, found.high) == bounds
    assert [found.to_grid(reward, 8) for reward in bounds] == [0, 8]


@pytest.mark.parametrize("bounds", [5, None, (), (1,), (0, 1, 2), "01x"])
def test_a_range_is_a_pair(bounds: Any) -> None:
    with pytest.raises(InvalidInput, match="must be a pair"):
        RewardRange.of(bounds)
