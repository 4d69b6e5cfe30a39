"""The engine against the definitions read literally."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest

from private_bandits.definitions import SmallPolicy, delta_at, epsilon_at, rho_of
from tests.definitions import oracle

FOUR = ("view", "table", "interactive-view", "interactive")
LEVELS = (0.0, 0.3, 1.0, 2.5)


def agree(policy: SmallPolicy, model: str, every: list[oracle.Pair], observer: str = "later") -> None:
    for epsilon in LEVELS:
        expected = max((oracle.quick_delta(pair, epsilon) for pair in every), default=0.0)
        assert delta_at(policy, model, epsilon, observer) == pytest.approx(expected, abs=1e-14)
    pure = oracle.pure_epsilon(every)
    assert epsilon_at(policy, model, 0.0, observer) == pytest.approx(max(0.0, pure), abs=1e-12)
    for delta in (1e-3, 0.1, 0.4):
        expected = oracle.epsilon_by_bisection(every, delta)
        assert epsilon_at(policy, model, delta, observer) == pytest.approx(expected, abs=1e-9)
    bracket, estimate = rho_of(policy, model, observer=observer), oracle.rho_by_grid(every)
    if math.isinf(estimate):
        assert bracket.low == bracket.high == math.inf
    else:
        assert bracket.high >= estimate * (1 - 1e-12)
        assert bracket.low <= estimate * (1 + 2e-6) + 1e-14  # the estimate may miss the top by a little
        assert bracket.low <= bracket.high <= bracket.low * (1 + 1.1e-6) + 1e-13


@pytest.mark.parametrize("zeros", [0.0, 0.3])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("model", FOUR)
def test_two_arms_three_steps(model: str, seed: int, zeros: float) -> None:
    policy = oracle.random_policy(seed, zeros=zeros)
    agree(policy, model, oracle.pairs(policy, model))


@pytest.mark.parametrize("zeros", [0.0, 0.3])
@pytest.mark.parametrize("model", [*FOUR, "adaptive"])
def test_two_steps_with_events_one_by_one(model: str, zeros: float) -> None:
    policy = oracle.random_policy(11, horizon=2, zeros=zeros)
    every = oracle.pairs(policy, model, last=True)
    agree(policy, model, every)
    for epsilon in LEVELS:
        expected = max(oracle.delta_of(pair, epsilon) for pair in every)
        assert delta_at(policy, model, epsilon) == pytest.approx(expected, abs=1e-14)


@pytest.mark.parametrize("model", ["view", "table"])
def test_three_arms_three_steps(model: str) -> None:
    policy = oracle.random_policy(5, arms=3, zeros=0.1)
    agree(policy, model, oracle.pairs(policy, model))


@pytest.mark.parametrize("model", FOUR)
def test_three_arms_two_steps(model: str) -> None:
    policy = oracle.random_policy(6, arms=3, horizon=2)
    agree(policy, model, oracle.pairs(policy, model))


@pytest.mark.parametrize("model", ["view", "table", "interactive-view"])
def test_three_rewards(model: str) -> None:
    policy = oracle.random_policy(7, rewards=3, horizon=2 if model == "table" else 3)
    agree(policy, model, oracle.pairs(policy, model))


def adaptive_value(policy: SmallPolicy, epsilon: float | None, alpha: float) -> float:
    """The adaptive adversary by recursion over everything it has seen, with the pair spent at a time of its choice."""
    arms = range(len(policy.arms))

    def leaf(p: float, q: float) -> float:
        if epsilon is not None:
            return max(0.0, p - math.exp(epsilon) * q)
        return float(p**alpha * q ** (1 - alpha))

    def moves(spent: bool) -> Iterator[tuple[int, float, float]]:
        for arm in arms:
            for first in policy.rewards:
                for second in [first] if spent else policy.rewards:
                    yield arm, first, second

    def value(h: tuple[tuple[int, float], ...], g: tuple[tuple[int, float], ...], p: float, q: float) -> float:
        total = 0.0
        for o in arms:
            p_o, q_o = p * policy.row(h)[o], q * policy.row(g)[o]
            if len(h) + 1 == policy.horizon:
                total += leaf(p_o, q_o)
            else:
                total += max(value((*h, (a, r)), (*g, (a, s)), p_o, q_o) for a, r, s in moves(h != g))
        return total

    return value((), (), 1.0, 1.0)


@pytest.mark.parametrize(
    ("arms", "rewards", "horizon"), [(2, 2, 3), (3, 2, 3), (2, 3, 3), (2, 2, 4)], ids=lambda n: str(n)
)
def test_the_adaptive_adversary(arms: int, rewards: int, horizon: int) -> None:
    policy = oracle.random_policy(9, arms, rewards, horizon)
    for epsilon in (0.0, 0.7):
        assert delta_at(policy, "adaptive", epsilon) == pytest.approx(adaptive_value(policy, epsilon, 0), abs=1e-13)
    high = rho_of(policy, "adaptive").high
    ratios = [
        math.log(adaptive_value(policy, None, a)) / (a - 1) / a
        for a in ([1.01, 2.0] if horizon == 4 else [1.001, 1.3, 2, 4, 9])
    ]
    assert max(ratios) <= high
    assert max(ratios) >= 0.7 * high


def test_what_the_worlds_do_not_share_is_not_counted() -> None:
    """One step, one arm or one reward: nothing can be learnt."""
    for policy in (
        oracle.random_policy(1, horizon=1),
        oracle.random_policy(1, arms=1),
        oracle.random_policy(1, rewards=1),
    ):
        for model in (*FOUR, "adaptive"):
            assert delta_at(policy, model, 0.0) == 0
            assert epsilon_at(policy, model, 0.0) == 0
            assert rho_of(policy, model).high <= 1e-27


def test_the_chunks_do_not_change_the_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = oracle.random_policy(3, horizon=4)
    whole = {m: (delta_at(policy, m, 0.5), epsilon_at(policy, m, 0.01), rho_of(policy, m)) for m in (*FOUR, "adaptive")}
    monkeypatch.setattr("private_bandits.definitions.analysis.CELLS", 100)
    for model, (delta, epsilon, rho) in whole.items():
        assert delta_at(policy, model, 0.5) == pytest.approx(delta, rel=1e-13)
        assert epsilon_at(policy, model, 0.01) == pytest.approx(epsilon, rel=1e-12)
        parts = rho_of(policy, model)
        assert max(parts.low, rho.low) <= min(parts.high, rho.high)


def test_rows_that_sum_to_one_within_the_tolerance() -> None:
    exact = oracle.random_policy(4)
    loose = SmallPolicy("loose", exact.space, tuple(step * (1 + 5e-10) for step in exact.probabilities))
    assert loose.row([]) != exact.row([])
    assert delta_at(loose, "table", 0.2) == pytest.approx(delta_at(exact, "table", 0.2), rel=1e-12)
    assert rho_of(loose, "interactive").low == pytest.approx(rho_of(exact, "interactive").low, rel=1e-9)
    np.testing.assert_allclose(loose.normalised[2].sum(axis=1), 1.0, rtol=1e-15)
