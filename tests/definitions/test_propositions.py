"""The paper's propositions and reductions, and what follows beyond them, on random policies."""

from __future__ import annotations

import math
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from private_bandits.definitions import (
    SmallPolicy,
    adaptive_gap,
    analyse,
    compose_with_adversary,
    counterexample,
    delta_at,
    distribution,
    epsilon_at,
    list_to_table,
    rho_of,
    table_to_list,
)
from tests.definitions import oracle

policies = st.builds(
    oracle.random_policy,
    seed=st.integers(0, 10**6),
    arms=st.sampled_from([2, 2, 3]),
    rewards=st.sampled_from([2, 2, 3]),
    horizon=st.sampled_from([2, 3]),
    zeros=st.sampled_from([0.0, 0.0, 0.2]),
)
quick = settings(max_examples=15, deadline=None, derandomize=True)
levels = st.sampled_from([0.0, 0.2, 0.7, 1.5])


@quick
@given(policies)
def test_1a_pure_dp_of_table_and_view_are_the_same(policy: SmallPolicy) -> None:
    assert epsilon_at(policy, "table", 0) == pytest.approx(epsilon_at(policy, "view", 0), rel=1e-12)


@quick
@given(policies, levels)
def test_1b_1d_view_table_and_the_loss_between_them(policy: SmallPolicy, epsilon: float) -> None:
    view, table = delta_at(policy, "view", epsilon), delta_at(policy, "table", epsilon)
    assert view <= table + 1e-14
    assert table <= len(policy.arms) ** policy.horizon * view + 1e-13


@quick
@given(policies)
def test_1c_2a_and_the_whole_chain_of_zcdp(policy: SmallPolicy) -> None:
    chain = [rho_of(policy, model) for model in ("view", "table", "interactive", "adaptive")]
    assert all(weak.low <= strong.high for weak, strong in pairwise(chain))


@quick
@given(policies, levels)
def test_the_chain_of_delta(policy: SmallPolicy, epsilon: float) -> None:
    chain = [delta_at(policy, model, epsilon) for model in ("view", "table", "interactive", "adaptive")]
    assert all(weak <= strong + 1e-14 for weak, strong in pairwise(chain))
    assert chain[0] <= delta_at(policy, "interactive-view", epsilon) + 1e-14 <= chain[2] + 2e-14


def test_1e_the_counterexample() -> None:
    results = analyse(counterexample(), epsilon=0.95, delta=0.17).results
    view, table, interactive = results["view"], results["table"], results["interactive"]
    assert view.delta <= 0.17 < table.delta
    assert view.delta == pytest.approx(0.16878341147925, abs=1e-13)
    assert table.delta == pytest.approx(0.17768369331279, abs=1e-13)
    assert view.epsilon == pytest.approx(0.94362792809, abs=1e-10)
    assert table.epsilon == pytest.approx(0.98397813622, abs=1e-10)  # the paper rounds it to 0.98
    assert interactive.delta == results["adaptive"].delta == pytest.approx(6 / 7, abs=1e-14)
    assert interactive.epsilon == results["adaptive"].epsilon == math.inf
    assert all(result.rho.low == math.inf for result in results.values())


def test_the_gap_between_interactive_and_adaptive() -> None:
    """The paper's question after the Interactive definition: for (epsilon, delta) the two are not the same."""
    policy = adaptive_gap()
    deltas = [delta_at(policy, model, 0.0) for model in ("view", "table", "interactive", "adaptive")]
    assert deltas == pytest.approx([0.195, 0.247, 0.51, 0.62], abs=1e-14)


@quick
@given(policies)
def test_for_renyi_divergences_eyes_do_not_help(policy: SmallPolicy) -> None:
    """docs/definitions.md, Theorem 2: adaptive, interactive and interactive-view have the same rho and pure epsilon."""
    brackets = [rho_of(policy, model) for model in ("interactive-view", "interactive", "adaptive")]
    assert max(b.low for b in brackets) <= min(b.high for b in brackets)
    pure = [epsilon_at(policy, model, 0) for model in ("interactive-view", "interactive", "adaptive")]
    assert pure == pytest.approx([pure[0]] * 3, rel=1e-12)


@quick
@given(policies)
def test_the_renyi_divergence_is_a_sum_over_steps(policy: SmallPolicy) -> None:
    """docs/definitions.md, Theorem 2: fixed arms, two lists that differ once, one divergence for each step."""

    def divergence(p: tuple[float, ...], q: tuple[float, ...], alpha: float) -> float:
        return oracle.renyi((dict(enumerate_keys(p)), dict(enumerate_keys(q))), alpha)

    def enumerate_keys(row: tuple[float, ...]) -> list[tuple[tuple[int, ...], float]]:
        return [((arm,), x) for arm, x in enumerate(row)]

    bracket, best = rho_of(policy, "interactive"), 0.0
    steps = policy.horizon - 1
    lists = list(product(policy.rewards, repeat=steps))
    for arms in product(range(len(policy.arms)), repeat=steps):
        for first, second in oracle.neighbours(lists):
            h, g = (list(zip(arms, rewards, strict=True)) for rewards in (first, second))
            for alpha in (1.0, 1.2, 2.0, 5.0):
                total = sum(divergence(policy.row(h[:t]), policy.row(g[:t]), alpha) for t in range(steps + 1))
                best = max(best, total / alpha)
    assert best <= bracket.high
    assert best >= 0.8 * bracket.low


@pytest.mark.parametrize("seed", range(3))
def test_2b_interactive_zcdp_is_table_zcdp_with_every_adversary_inside(seed: int) -> None:
    policy = oracle.random_policy(seed, horizon=3)
    inside = [
        compose_with_adversary(policy, b.__getitem__) for b in list(oracle.adversaries(2, 3))[:: 1 if seed == 0 else 3]
    ]
    interactive = rho_of(policy, "interactive")
    brackets = [rho_of(composed, "table") for composed in inside]
    assert all(bracket.low <= interactive.high for bracket in brackets)
    if seed == 0:
        assert max(bracket.high for bracket in brackets) >= interactive.low
        lists = max(delta_at(composed, "view", 0.3) for composed in inside)
        assert lists == pytest.approx(delta_at(policy, "interactive-view", 0.3), abs=1e-14)


def test_2b_does_not_hold_for_epsilon_and_delta() -> None:
    """pi^B reads a row at the arm that was recommended, pi at the arm that B plays: another reward."""
    policy = adaptive_gap()
    inside = [delta_at(compose_with_adversary(policy, b.__getitem__), "table", 0) for b in oracle.adversaries(2, 3)]
    assert max(inside) == pytest.approx(delta_at(policy, "adaptive", 0))
    assert max(inside) > delta_at(policy, "interactive", 0) + 0.1


def test_2b_fails_the_other_way_too_from_four_steps_on() -> None:
    """At step 3 arm 0 is recommended always: pi^B reads one cell, where B plays two arms and reads two."""
    tests = {(0, 0): (0.5, 0.1), (1, 1): (0.9, 0.5)}  # what step 4 tells of the first reward; else nothing

    def rule(history: tuple[tuple[int, int], ...]) -> tuple[float, float]:
        if len(history) in (0, 2):
            return 1.0, 0.0
        first = history[0][1]
        x = (0.7, 0.3)[first] if len(history) == 1 else tests.get(history[2], (0.5, 0.5))[first]
        return x, 1 - x

    policy = SmallPolicy.from_callable(rule, arms=2, horizon=4)
    # Steps 1 and 3 have one recommendation and the arms of steps 1 and 2 do not matter: four adversaries are all.
    every = [lambda seen, a=a: a[seen[1]] if len(seen) == 3 else 0 for a in product((0, 1), repeat=2)]
    inside = [delta_at(compose_with_adversary(policy, b), "table", 0) for b in every]
    assert max(inside) == pytest.approx(0.48)
    assert delta_at(policy, "interactive", 0) == pytest.approx(0.56)


@quick
@given(policies, st.data())
def test_reduction_1_from_lists_to_tables(policy: SmallPolicy, data: st.DataObject) -> None:
    rewards = data.draw(st.lists(st.sampled_from(policy.rewards), min_size=policy.horizon, max_size=policy.horizon))
    as_list = distribution(policy, "view", rewards)
    as_table = distribution(policy, "table", list_to_table(rewards, len(policy.arms)))
    assert as_list == as_table
    assert math.fsum(as_list.values()) == pytest.approx(1)


@quick
@given(policies, st.data())
def test_reduction_2_from_tables_to_lists(policy: SmallPolicy, data: st.DataObject) -> None:
    row = st.tuples(*[st.sampled_from(policy.rewards)] * len(policy.arms))
    table = data.draw(st.lists(row, min_size=policy.horizon, max_size=policy.horizon))
    for actions, probability in distribution(policy, "table", table).items():
        assert distribution(policy, "view", table_to_list(table, actions))[actions] == probability


@quick
@given(st.integers(0, 10**6), levels)
def test_a_randomised_adversary_gains_nothing(seed: int, epsilon: float) -> None:
    """Mixtures of deterministic adversaries, the coins hidden or seen: Lemma 2.2 of Vadhan and Wang, and convexity."""
    policy, rng = oracle.random_policy(seed, horizon=3), np.random.default_rng(seed)
    d = [tuple(map(float, row)) for row in rng.integers(0, 2, (3, 2))]
    e = list(d)
    e[rng.integers(0, 2)] = tuple(map(float, rng.integers(0, 2, 2)))
    every = list(oracle.adversaries(2, 3))
    chosen = [every[i] for i in rng.integers(0, len(every), 4)]
    weights = rng.dirichlet(np.ones(4))
    views = [
        (
            distribution(policy, "interactive", d, b.__getitem__),
            distribution(policy, "interactive", e, b.__getitem__),
        )
        for b in chosen
    ]
    hidden, seen = _mixed(views, weights, seen=False), _mixed(views, weights, seen=True)
    for pair in (hidden, seen):
        assert oracle.quick_delta(pair, epsilon) <= delta_at(policy, "interactive", epsilon) + 1e-14
        assert oracle.renyi(pair, 2.0) / 2 <= rho_of(policy, "interactive").high


def _mixed(views: list[oracle.Pair], weights: np.ndarray[tuple[int], np.dtype[np.float64]], seen: bool) -> oracle.Pair:
    mixed: oracle.Pair = ({}, {})
    for number, (pair, weight) in enumerate(zip(views, weights.tolist(), strict=True)):
        for world in (0, 1):
            for actions, probability in pair[world].items():
                key = (number, *actions) if seen else actions
                mixed[world][key] = mixed[world].get(key, 0.0) + weight * probability
    return mixed


@quick
@given(st.integers(0, 10**6), st.data())
def test_theorem_1_the_sum_of_kl_divergences(seed: int, data: st.DataObject) -> None:
    policy = oracle.random_policy(seed, horizon=data.draw(st.sampled_from([2, 3, 4])))
    high = rho_of(policy, "interactive").high
    rng = np.random.default_rng(seed)
    for _ in range(20):
        actions = rng.integers(0, 2, policy.horizon).tolist()
        first, second = rng.integers(0, 2, (2, policy.horizon)).astype(float).tolist()
        total = 0.0
        for t in range(policy.horizon):
            p = policy.row(list(zip(actions[:t], first[:t], strict=True)))
            q = policy.row(list(zip(actions[:t], second[:t], strict=True)))
            total += sum(x * math.log(x / y) for x, y in zip(p, q, strict=True))
        assert total <= high * sum(a != b for a, b in zip(first, second, strict=True)) ** 2 + 1e-12


def test_interactive_can_beat_interactive_on_lists() -> None:
    """Where rows are not constant, the arm that is played also picks the reward of that row."""
    tests = {(0, 0.0): (0.5, 0.1), (1, 1.0): (0.9, 0.5)}  # what step 3 tells of the first reward; else nothing

    def rule(history: tuple[tuple[int, float], ...]) -> tuple[float, float]:
        if not history:
            return 0.5, 0.5
        first = int(history[0][1])
        x = (0.7, 0.3)[first] if len(history) == 1 else tests.get(history[1], (0.5, 0.5))[first]
        return x, 1 - x

    policy = SmallPolicy.from_callable(rule, arms=2, horizon=3)
    assert delta_at(policy, "interactive-view", 0) == pytest.approx(0.48)
    assert delta_at(policy, "interactive", 0) == pytest.approx(0.56)
    # With the arms of the tests swapped, following the recommendations is best: table is not below interactive-view.
    tests = {(1 - arm, reward): told for (arm, reward), told in tests.items()}
    policy = SmallPolicy.from_callable(rule, arms=2, horizon=3)
    assert delta_at(policy, "interactive-view", 0) == pytest.approx(0.48)
    assert delta_at(policy, "table", 0) == pytest.approx(0.56)


def test_constant_adversaries_of_every_length_agree_with_the_engine() -> None:
    policy = oracle.random_policy(8, horizon=4)
    table = [(0.0, 1.0), (1.0, 0.0), (1.0, 1.0), (0.0, 0.0)]
    for queries in product((0, 1), repeat=4):
        found = distribution(policy, "interactive", table, lambda seen, q=queries: q[len(seen) - 1])  # type: ignore[misc]
        history = [(q, table[t][q]) for t, q in enumerate(queries)]
        for actions, probability in found.items():
            steps = [policy.row(history[:t])[action] for t, action in enumerate(actions)]
            assert probability == pytest.approx(math.prod(steps), rel=1e-12)
