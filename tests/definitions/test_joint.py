"""Contexts: private ones (joint DP) and public ones."""

from __future__ import annotations

from itertools import product

import pytest

from private_bandits.definitions import InvalidPolicy, SmallPolicy, analyse, delta_at, epsilon_at, rho_of
from private_bandits.errors import InvalidInput
from tests.definitions import oracle
from tests.definitions.test_engine import agree


@pytest.mark.parametrize("observer", ["later", "others"])
@pytest.mark.parametrize(
    ("model", "horizon", "zeros"),
    [("joint-view", 2, 0.0), ("joint-view", 2, 0.3), ("joint-view", 3, 0.0), ("joint-table", 2, 0.3)],
)
def test_joint_dp_read_literally(model: str, observer: str, horizon: int, zeros: float) -> None:
    policy = oracle.random_policy(horizon, horizon=horizon, contexts=2, zeros=zeros)
    pairs = oracle.distinct(oracle.joint_pairs(policy, model == "joint-view", observer))
    agree(policy, model, pairs, observer)


def test_everyone_else_together_sees_more_than_those_who_come_later() -> None:
    for seed in range(5):
        policy = oracle.random_policy(seed, horizon=3, contexts=2)
        for model in ("joint-view", "joint-table"):
            assert delta_at(policy, model, 0.3, "later") <= delta_at(policy, model, 0.3, "others") + 1e-14
            assert rho_of(policy, model).low <= rho_of(policy, model, observer="others").high
        assert delta_at(policy, "joint-view", 0.3) <= delta_at(policy, "joint-table", 0.3) + 1e-14


def test_a_persons_own_recommendation_may_depend_on_the_context() -> None:
    """The point of joint DP: the recommendation at step t follows the context, and nobody else learns of it."""
    policy = SmallPolicy.from_callable(
        lambda history, context: (1.0, 0.0) if context == 0 else (0.0, 1.0), arms=2, horizon=3, contexts=2
    )
    for observer in ("later", "others"):
        assert delta_at(policy, "joint-table", 0.0, observer) == 0
        assert epsilon_at(policy, "joint-table", 0.0, observer) == 0


def test_the_action_before_gives_the_context_away_to_all_others() -> None:
    """Two people agree: the second repeats the first's recommendation, which repeats the context."""

    def rule(history: tuple[tuple[int, int, float], ...], context: int) -> tuple[float, float]:
        arm = history[-1][1] if history else context
        return (0.9, 0.1) if arm == 0 else (0.1, 0.9)

    policy = SmallPolicy.from_callable(rule, arms=2, horizon=2, contexts=2)
    assert delta_at(policy, "joint-view", 0.0) == pytest.approx(0.9 * 0.9 + 0.1 * 0.1 - 2 * 0.9 * 0.1)


@pytest.mark.parametrize("model", ["view", "table", "interactive-view", "interactive"])
def test_public_contexts_are_the_worst_sequence(model: str) -> None:
    """For each sequence of contexts the policy is one without contexts; the largest value counts."""
    policy = oracle.random_policy(2, horizon=3, contexts=2)
    values = []
    for contexts in product(range(2), repeat=3):

        def rule(history: tuple[tuple[int, float], ...], c: tuple[int, ...] = contexts) -> tuple[float, ...]:
            return policy.row([(c[t], *entry) for t, entry in enumerate(history)], c[len(history)])

        values.append(SmallPolicy.from_callable(rule, arms=2, horizon=3))
    for epsilon in (0.0, 0.5):
        expected = max(delta_at(fixed, model, epsilon) for fixed in values)
        assert delta_at(policy, model, epsilon) == pytest.approx(expected, abs=1e-14)
    assert rho_of(policy, model).low == pytest.approx(max(rho_of(fixed, model).low for fixed in values), rel=1e-5)
    assert delta_at(policy, "adaptive", 0.5) >= delta_at(policy, model, 0.5) - 1e-14


def test_which_models_apply() -> None:
    with pytest.raises(InvalidPolicy, match="joint-view needs a policy with contexts; for this one take view, table"):
        delta_at(oracle.random_policy(0), "joint-view", 1.0)
    with pytest.raises(InvalidInput, match="observer must be later or others, got 'me'"):
        delta_at(oracle.random_policy(0, contexts=2), "joint-view", 1.0, observer="me")
    contextual = analyse(oracle.random_policy(0, horizon=2, contexts=2))
    assert list(contextual.results) == ["view", "table", "interactive", "adaptive", "joint-view", "joint-table"]
