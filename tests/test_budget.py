"""Budgets: what they refuse, what they are worth, and how they convert."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import norm

from private_bandits.budget import (
    BUDGETS,
    ApproxDP,
    Budget,
    NoPrivacy,
    PureDP,
    RenyiDP,
    epsilon_of,
    equal_budget,
    rho_of,
    zCDP,
)
from private_bandits.errors import InvalidInput

steady = settings(derandomize=True, deadline=None)

POSITIVE_ARGUMENTS: dict[str, tuple[str, Callable[[Any], Budget]]] = {
    "zCDP rho": ("rho", zCDP),
    "ApproxDP epsilon": ("epsilon", lambda value: ApproxDP(value, 1e-6)),
    "RenyiDP alpha": ("alpha", lambda value: RenyiDP(value, 1.0)),
    "RenyiDP epsilon": ("epsilon", lambda value: RenyiDP(2.0, value)),
    "PureDP epsilon": ("epsilon", PureDP),
}
GAUSSIAN = [
    zCDP(0.1),
    zCDP(1.0),
    zCDP(3e-7),
    ApproxDP(1.0, 1e-6),
    ApproxDP(7.3, 1e-9),
    RenyiDP(10, 1),
    RenyiDP(1.7, 0.3),
]

rhos = st.floats(1e-12, 1e6)
deltas = st.floats(-100, -0.3).map(lambda exponent: 10.0**exponent)


# What is refused.


@pytest.mark.parametrize("argument", POSITIVE_ARGUMENTS)
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 0, 0.0, -1, -0.5, True, False, "1", "", None, 1j])
def test_a_budget_refuses_what_is_not_a_positive_finite_number(argument: str, value: Any) -> None:
    name, make = POSITIVE_ARGUMENTS[argument]
    with pytest.raises(InvalidInput, match=f"^{name} must be a positive, finite number, got ") as caught:
        make(value)
    assert str(caught.value).endswith(repr(value))
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("argument", POSITIVE_ARGUMENTS)
def test_a_budget_refuses_a_whole_number_too_large_for_a_float(argument: str) -> None:
    name, make = POSITIVE_ARGUMENTS[argument]
    with pytest.raises(InvalidInput, match=f"^{name} must "):
        make(10**400)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 0, 1, 0.0, 1.0, -0.1, 2, True, False, "0.1", None])
def test_a_delta_outside_0_to_1_is_refused(value: Any) -> None:
    for call in (lambda: ApproxDP(1.0, value), lambda: epsilon_of(0.1, value)):
        with pytest.raises(InvalidInput, match=r"^delta must lie strictly between 0 and 1, got "):
            call()


@pytest.mark.parametrize("alpha", [1, 1.0, 0.5])
def test_renyi_needs_an_order_above_1(alpha: float) -> None:
    with pytest.raises(InvalidInput, match=r"^alpha must be greater than 1"):
        RenyiDP(alpha, 1.0)


@pytest.mark.parametrize("make", [lambda: ApproxDP(5e-324, 1e-300), lambda: RenyiDP(1e200, 1e-200)])
def test_a_budget_too_small_for_any_noise_is_refused_when_it_is_made(make: Callable[[], Budget]) -> None:
    with pytest.raises(InvalidInput):
        make()


@pytest.mark.parametrize("rho", [-1e-9, -math.inf, math.nan])
def test_the_conversion_refuses_a_rho_that_is_no_cost(rho: float) -> None:
    with pytest.raises(InvalidInput, match=r"^rho must be at least 0"):
        epsilon_of(rho, 1e-6)


def test_a_budget_cannot_be_changed_afterwards() -> None:
    budget = zCDP(0.1)
    with pytest.raises(AttributeError):
        budget.rho = 10.0  # type: ignore[misc]
    assert budget == zCDP(0.1)


def test_every_kind_of_budget_is_found_by_its_name() -> None:
    expected = {"zCDP": zCDP, "ApproxDP": ApproxDP, "RenyiDP": RenyiDP, "PureDP": PureDP, "NoPrivacy": NoPrivacy}
    assert expected == BUDGETS
    with pytest.raises(TypeError, match="a budget is one of zCDP, "):
        _ = Budget().level


# What noise keeps a budget.


def test_levels_and_variance_factors_are_the_formulas_of_each_notion() -> None:
    assert (zCDP(0.1).level, zCDP(0.1).variance_factor) == (0.1, 5.0)
    assert zCDP(2).rho == 2.0
    assert isinstance(zCDP(2).rho, float)
    assert RenyiDP(alpha=10, epsilon=1).level == 0.1
    assert RenyiDP(alpha=10, epsilon=1).variance_factor == pytest.approx(10 / (2 * 1), rel=1e-15)
    assert ApproxDP(1.0, 1e-6).level == rho_of(1.0, 1e-6)
    assert ApproxDP(2.1419, 1e-6).variance_factor == pytest.approx(5.0, rel=1e-4)
    assert (NoPrivacy().level, NoPrivacy().variance_factor) == (math.inf, 0.0)
    assert PureDP(0.7).level == 0.7
    assert {budget.noise for budget in GAUSSIAN} == {"gaussian"}
    assert (PureDP(1.0).noise, NoPrivacy().noise) == ("laplace", "none")


def test_the_zcdp_that_a_budget_implies() -> None:
    assert PureDP(3.0).implied_rho == 4.5
    assert zCDP(0.3).implied_rho == 0.3
    assert RenyiDP(4, 2).implied_rho == 0.5
    assert NoPrivacy().implied_rho == math.inf


@steady
@given(alpha=st.floats(1.001, 1e4), epsilon=st.floats(1e-9, 1e4))
def test_the_level_of_a_renyi_budget_is_the_largest_rho_within_it(alpha: float, epsilon: float) -> None:
    level = RenyiDP(alpha, epsilon).level
    assert level * alpha <= epsilon
    assert level * alpha >= epsilon * (1 - 1e-15)


# The conversion between rho and (epsilon, delta).


def brute_force_epsilon(rho: float, delta: float) -> float:
    """inf over alpha of alpha rho + log(1/(alpha delta))/(alpha-1) + log(1-1/alpha), on a grid that is then refined."""

    def bound(log_excess: NDArray[np.float64]) -> NDArray[np.float64]:
        excess = np.exp(log_excess)  # alpha - 1
        return np.asarray((1 + excess) * rho - (np.log1p(excess) + math.log(delta)) / excess - np.log1p(1 / excess))

    grid = np.linspace(-40, 90, 60_001)
    for _ in range(2):
        best, step = grid[int(np.argmin(bound(grid)))], grid[1] - grid[0]
        grid = np.linspace(best - step, best + step, 4_001)
    return max(0.0, float(np.min(bound(grid))))


def test_the_published_conversion_of_rho_one_tenth() -> None:
    assert epsilon_of(0.1, 1e-6) == pytest.approx(2.1419, abs=5e-5)
    assert rho_of(2.1419, 1e-6) == pytest.approx(0.1, abs=5e-6)


def test_the_ends_of_the_conversion() -> None:
    assert epsilon_of(0.0, 1e-6) == 0.0
    assert epsilon_of(math.inf, 1e-6) == math.inf
    assert epsilon_of(1e-20, 1e-6) == 0.0  # total variation below delta: nothing is left to bound


@steady
@given(rho=rhos, delta=deltas)
def test_epsilon_is_the_infimum_over_all_orders(rho: float, delta: float) -> None:
    # 1e-14: rounding of the logarithms, which are below 250.
    assert epsilon_of(rho, delta) == pytest.approx(brute_force_epsilon(rho, delta), rel=1e-9, abs=1e-14)


@pytest.mark.parametrize(
    ("rho", "delta"), [(1e-34, 1e-30), (1e-34, 1e-100), (1e-30, 1e-30), (1e-30, 1e-100), (1e-24, 1e-30)]
)
def test_epsilon_is_right_for_the_smallest_budgets_too(rho: float, delta: float) -> None:
    assert epsilon_of(rho, delta) == pytest.approx(brute_force_epsilon(rho, delta), rel=1e-6, abs=0)


@pytest.mark.parametrize(("epsilon", "delta"), [(1e-20, 1e-30), (1e-14, 1e-30), (1e-12, 1e-100), (1e-10, 1e-30)])
def test_rho_keeps_the_smallest_epsilon_too(epsilon: float, delta: float) -> None:
    assert brute_force_epsilon(rho_of(epsilon, delta), delta) <= epsilon * (1 + 1e-6)


@steady
@given(rho=st.floats(1e-6, 1e3), delta=st.floats(1e-12, 0.5))
def test_gaussian_noise_of_rho_keeps_the_epsilon_of_the_conversion(rho: float, delta: float) -> None:
    """Against the exact delta of continuous Gaussian noise (Balle and Wang 2018, Theorem 8)."""
    epsilon, mu = epsilon_of(rho, delta), math.sqrt(2 * rho)
    first, second = norm.logcdf(mu / 2 - epsilon / mu), epsilon + norm.logcdf(-mu / 2 - epsilon / mu)
    assert math.exp(first) - math.exp(second) <= delta * (1 + 1e-9)


@steady
@given(rho=rhos, delta=deltas)
def test_epsilon_is_never_above_the_simple_bound(rho: float, delta: float) -> None:
    simple = rho + 2 * math.sqrt(rho * math.log(1 / delta))  # Bun and Steinke 2016, Prop. 3
    assert epsilon_of(rho, delta) <= simple * (1 + 1e-12)


@steady
@given(rho=rhos, delta=deltas, factor=st.floats(1.01, 100))
def test_epsilon_grows_with_rho_and_falls_with_delta(rho: float, delta: float, factor: float) -> None:
    assert epsilon_of(rho * factor, delta) >= epsilon_of(rho, delta)
    assert epsilon_of(rho, min(delta * factor, 0.99)) <= epsilon_of(rho, delta) * (1 + 1e-9) + 1e-14


@steady
@given(epsilon=st.floats(1e-3, 1e3), delta=st.floats(-30, -0.3).map(lambda exponent: 10.0**exponent))
def test_rho_is_the_largest_that_keeps_epsilon(epsilon: float, delta: float) -> None:
    rho = rho_of(epsilon, delta)
    assert epsilon_of(rho, delta) <= epsilon
    assert epsilon_of(rho * (1 + 1e-9), delta) > epsilon
    assert brute_force_epsilon(rho, delta) == pytest.approx(epsilon, rel=1e-9)


# Groups: all rewards of one person.


@pytest.mark.parametrize("budget", [*GAUSSIAN, PureDP(1.0), PureDP(0.3), PureDP(1e-9)], ids=str)
def test_the_share_of_one_reward_keeps_the_budget_of_a_group(budget: Budget) -> None:
    power = 1 if isinstance(budget, PureDP) else 2
    for rewards in [*range(1, 200), 10**3, 10**6 + 7]:
        share = budget.per_reward(rewards)
        assert share.noise == budget.noise
        assert share.level * rewards**power <= budget.level
        assert share.level * rewards**power >= budget.level * (1 - 1e-15)
        assert share.group_cost(share.level, rewards) <= budget.level


@steady
@given(level=st.floats(1e-12, 1e6), rewards=st.integers(1, 10**6), pure=st.booleans())
def test_any_share_of_one_reward_keeps_any_budget_of_a_group(level: float, rewards: int, pure: bool) -> None:
    budget: Budget = PureDP(level) if pure else zCDP(level)
    together = budget.per_reward(rewards).level * rewards ** (1 if pure else 2)
    assert level * (1 - 1e-15) <= together <= level


def test_a_group_costs_the_square_of_its_size_and_with_pure_dp_its_size() -> None:
    for budget in GAUSSIAN:
        assert budget.group_cost(0.5, 3) == 4.5
    assert PureDP(1.0).group_cost(0.5, 3) == 1.5


def test_the_share_of_an_approximate_budget_comes_from_its_rho() -> None:
    budget = ApproxDP(1.0, 1e-6)
    share = budget.per_reward(4)
    assert isinstance(share, zCDP)
    assert share.rho == pytest.approx(rho_of(1.0, 1e-6) / 16, rel=1e-15)
    assert epsilon_of(16 * share.rho, 1e-6) <= 1.0
    assert budget.per_reward(1).level == budget.level


def test_no_promise_for_one_is_no_promise_for_a_group() -> None:
    assert NoPrivacy().per_reward(5) == NoPrivacy()


# Budgets of equal strength.


@pytest.mark.parametrize("rho", [1e-6, 0.1, 0.5, 1.0, 8.0])
def test_a_pure_budget_of_equal_strength_implies_the_same_rho(rho: float) -> None:
    equal = equal_budget(zCDP(rho), kept=["PureDP"])
    assert isinstance(equal, PureDP)
    assert equal.epsilon == math.sqrt(2 * rho)
    assert equal.implied_rho == pytest.approx(rho, rel=1e-15)


@pytest.mark.parametrize(
    ("budget", "kept"),
    [
        (zCDP(0.1), ["zCDP"]),
        (zCDP(0.1), ["zCDP", "PureDP"]),
        (zCDP(0.1), ["NoPrivacy"]),
        (PureDP(1.0), ["PureDP"]),
        (ApproxDP(1.0, 1e-6), ["PureDP"]),
        (NoPrivacy(), ["PureDP"]),
    ],
    ids=str,
)
def test_a_budget_that_is_kept_or_has_no_equal_stays_as_it_is(budget: Budget, kept: list[str]) -> None:
    assert equal_budget(budget, kept) is budget


@pytest.mark.parametrize("budget", [zCDP(0.3), PureDP(0.7), RenyiDP(8.0, 2.0), ApproxDP(1.0, 1e-6)])
@pytest.mark.parametrize("releases", [1, 2, 3, 7, 24])
def test_shares_of_a_budget_add_up_to_no_more_than_it(budget: Budget, releases: int) -> None:
    share = budget.shared(releases).level
    assert Fraction(share) * releases <= Fraction(budget.level)
    assert share * releases == pytest.approx(budget.level)
    assert budget.shared(releases).noise == budget.noise
    assert NoPrivacy().shared(releases) == NoPrivacy()


@pytest.mark.parametrize("budget", [zCDP(0.1), zCDP(0.7), PureDP(0.1), PureDP(0.3)])
@pytest.mark.parametrize("rewards", [2, 3, 7, 11])
def test_shares_of_a_person_add_up_to_no_more_than_the_budget(budget: Budget, rewards: int) -> None:
    times = rewards if isinstance(budget, PureDP) else rewards**2
    assert Fraction(budget.per_reward(rewards).level) * times <= Fraction(budget.level)
