"""The bracket of rho, and numbers at the ends of what a float can hold."""

from __future__ import annotations

import decimal
import math

import numpy as np
import pytest
from scipy import optimize

from private_bandits.definitions import SmallPolicy, delta_at, epsilon_at, rho_of
from private_bandits.definitions.observation_tree import accurate_log_ratio, expm2
from tests.definitions import oracle

MODELS = ("view", "table", "interactive-view", "interactive", "adaptive")


def randomised_response(p: float, horizon: int = 2) -> SmallPolicy:
    """Repeats the last reward as an arm with probability p."""

    def rule(history: tuple[tuple[int, float], ...]) -> tuple[float, float]:
        if not history:
            return 0.5, 0.5
        return (1 - p, p) if history[-1][1] else (p, 1 - p)

    return SmallPolicy.from_callable(rule, arms=2, horizon=horizon)


@pytest.mark.parametrize("p", [0.5 + 2**-20, 0.51, 0.6, 0.75, 0.9, 0.999, 1 - 2**-20])
def test_randomised_response(p: float) -> None:
    def negative(t: float) -> float:
        moment = p * math.expm1(t * math.log(p / (1 - p))) + (1 - p) * math.expm1(t * math.log((1 - p) / p))
        return -math.log1p(moment) / t / (1 + t)

    tops = [optimize.minimize_scalar(negative, bounds=(2.0**k, 2.0 ** (k + 2)), method="bounded") for k in range(-8, 4)]
    rho = max((2 * p - 1) * math.log(p / (1 - p)), *(-top.fun for top in tops))
    for model in MODELS:
        policy = randomised_response(p)
        assert epsilon_at(policy, model, 0) == pytest.approx(math.log(p / (1 - p)), rel=1e-9)
        for epsilon in (0.0, 0.1, 1.0):
            assert delta_at(policy, model, epsilon) == pytest.approx(
                max(0.0, p - math.exp(epsilon) * (1 - p)), abs=1e-15
            )
        bracket = rho_of(policy, model)
        assert bracket.low <= rho * (1 + 1e-9) <= bracket.high * (1 + 2e-9)
        assert bracket.high <= bracket.low * (1 + 1.01e-6)


def test_the_bracket_is_as_narrow_as_asked() -> None:
    policy = oracle.random_policy(21, horizon=4)
    for tolerance in (1e-1, 1e-3, 1e-8):
        bracket = rho_of(policy, "interactive", tolerance)
        assert bracket.high / bracket.low <= 1 + tolerance + 4e-9
    wide, narrow = rho_of(policy, "table", 0.1), rho_of(policy, "table", 1e-8)
    assert wide.low <= narrow.high
    assert narrow.low <= wide.high


@pytest.mark.parametrize("model", MODELS)
def test_a_policy_that_ignores_rewards(model: str) -> None:
    policy = SmallPolicy.from_callable(lambda history: (0.3, 0.7), arms=2, horizon=4)
    assert delta_at(policy, model, 0) == 0
    assert epsilon_at(policy, model, 0) == epsilon_at(policy, model, 0.1) == 0
    bracket = rho_of(policy, model)
    assert bracket.low == 0
    assert 0 <= bracket.high < 1e-27


@pytest.mark.parametrize("model", MODELS)
def test_a_policy_that_gives_the_reward_away(model: str) -> None:
    policy = randomised_response(1.0)
    assert delta_at(policy, model, 30) == 1
    assert epsilon_at(policy, model, 0) == epsilon_at(policy, model, 0.999) == math.inf
    assert rho_of(policy, model).low == rho_of(policy, model).high == math.inf


def test_impossible_in_both_worlds_counts_nowhere() -> None:
    """Arm 2 is never recommended; the rest is randomised response."""

    def rule(history: tuple[tuple[int, float], ...]) -> tuple[float, float, float]:
        return (0.5, 0.5, 0) if not history else ((0.25, 0.75, 0) if history[-1][1] else (0.75, 0.25, 0))

    policy = SmallPolicy.from_callable(rule, arms=3, horizon=2)
    for model in MODELS:
        assert epsilon_at(policy, model, 0) == pytest.approx(math.log(3))
        assert rho_of(policy, model).low == pytest.approx(rho_of(randomised_response(0.75), "view").low)


@pytest.mark.parametrize("model", MODELS)
def test_probabilities_near_the_ends_of_a_float(model: str) -> None:
    def rule(history: tuple[tuple[int, float], ...]) -> tuple[float, float]:
        return (0.5, 0.5) if not history or not history[-1][1] else (1e-300, 1.0)

    policy = SmallPolicy.from_callable(rule, arms=2, horizon=4)
    assert epsilon_at(policy, model, 0) >= math.log(0.5e300) * (1 - 1e-12)
    assert math.log(1e299) < epsilon_at(policy, model, 1e-3) < math.inf
    assert delta_at(policy, model, 600.0) == pytest.approx(0.5)
    bracket = rho_of(policy, model)
    assert 600 < bracket.low <= bracket.high <= bracket.low * (1 + 1.01e-6)


@pytest.mark.parametrize("leak", [1e-3, 3e-8, 1.7e-12])
def test_tiny_leaks_keep_their_digits(leak: float) -> None:
    d = (0.5 + leak) - 0.5  # what a float makes of it
    policy = randomised_response(0.5 + d)
    pure = math.log1p(2 * d) - math.log1p(-2 * d)
    assert delta_at(policy, "interactive", 0) == pytest.approx(2 * d, rel=1e-12, abs=0)
    assert epsilon_at(policy, "interactive", 0) == pytest.approx(pure, rel=1e-12, abs=0)
    # delta = d is reached where (1/2 + d) - e^eps (1/2 - d) = d.
    assert epsilon_at(policy, "interactive", d) == pytest.approx(-math.log1p(-2 * d), rel=1e-9, abs=0)
    bracket, kl = rho_of(policy, "interactive"), 2 * d * pure
    assert bracket.low <= kl <= bracket.high
    assert bracket.high / bracket.low - 1 <= 2e-6 + 2 * 1e-14 / math.sqrt(kl) * 1.1  # the margin of rounding


def test_pairs_that_are_set_aside_early_are_not_worse(monkeypatch: pytest.MonkeyPatch) -> None:
    """One pair at a time, the second a little worse than the first: epsilon^2/2 must not be taken for less."""
    leak = {0.0: 0.0, 1.0: 0.01, 2.0: 0.012}

    def rule(history: tuple[tuple[int, float], ...]) -> tuple[float, float]:
        return (0.5 + leak[history[-1][1]], 0.5 - leak[history[-1][1]]) if history else (0.5, 0.5)

    policy = SmallPolicy.from_callable(rule, arms=2, horizon=2, rewards=list(leak))
    estimate = oracle.rho_by_grid(oracle.pairs(policy, "view"))
    monkeypatch.setattr("private_bandits.definitions.analysis.CELLS", 1)
    for model in MODELS:
        bracket = rho_of(policy, model)
        assert bracket.low * (1 - 1e-9) <= estimate <= bracket.high


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("x", [1 / 3, 0.1, 0.3, 0.7, 1 / 7, 1e-9])
def test_a_delta_that_is_reached_exactly(model: str, x: float) -> None:
    """Arm 0 is impossible after reward 0 and has probability x after reward 1: at delta = x no epsilon is needed."""

    def rule(history: tuple[tuple[int, int], ...]) -> tuple[float, float]:
        return (0.5, 0.5) if not history else ((x, 1 - x) if history[0][1] else (0.0, 1.0))

    policy = SmallPolicy.from_callable(rule, arms=2, horizon=2)
    assert epsilon_at(policy, model, x) == 0
    assert epsilon_at(policy, model, x * (1 - 1e-13)) == math.inf


def test_a_small_delta_does_not_hide_behind_the_rounding_of_a_large_probability() -> None:
    def rule(history: tuple[tuple[int, int], ...]) -> tuple[float, float, float]:
        return (1.0, 0.0, 0.0) if not history else ((0.6, 0.4, 2e-17) if history[0][1] else (0.4, 0.6, 0.0))

    policy = SmallPolicy.from_callable(rule, arms=3, horizon=2)
    assert epsilon_at(policy, "table", 1e-17) == math.inf
    assert epsilon_at(policy, "table", 3e-17) == pytest.approx(math.log(1.5))


@pytest.mark.parametrize("model", MODELS)
def test_the_smallest_probability_there_is(model: str) -> None:
    def rule(history: tuple[tuple[int, int], ...]) -> tuple[float, float]:
        return (0.5, 0.5) if not history or not history[-1][1] else (5e-324, 1.0)

    policy = SmallPolicy.from_callable(rule, arms=2, horizon=2)
    assert epsilon_at(policy, model, 0) == pytest.approx(-math.log(5e-324) - math.log(2))
    assert rho_of(policy, model).low > 600


def test_differences_to_full_precision() -> None:
    with decimal.localcontext() as context:
        context.prec = 60
        for x in (1e-12, -3e-7, 0.0999, -0.1001, 0.5, -2.0, 30.0):
            exact = decimal.Decimal(x)
            assert expm2(np.array(x)) == pytest.approx(float(exact.exp() - 1 - exact), rel=1e-14, abs=0)
        for p, q in ((0.3 + 1e-13, 0.3), (0.1, 0.1 + 1e-9), (0.7, 0.2), (1e-300, 0.9)):
            found = accurate_log_ratio(np.array(p), np.array(q), np.array(p - q))
            expected = (decimal.Decimal(p) / decimal.Decimal(q)).ln()
            assert found == pytest.approx(float(expected), rel=1e-14, abs=0)
