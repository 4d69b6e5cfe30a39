"""Couplings and the transport problem, against brute force and by their certificates."""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from private_bandits import transport
from private_bandits.errors import InvalidInput, MissingExtra
from private_bandits.transport import (
    coupled_run,
    hamming,
    kl_divergence,
    maximal_coupling,
    product_distribution,
    total_variation,
    transport_cost,
)

steady = settings(derandomize=True, deadline=None, max_examples=40)


def distributions(points: list[Any]) -> st.SearchStrategy[dict[Any, float]]:
    weights = st.lists(st.integers(0, 20), min_size=len(points), max_size=len(points)).filter(any)
    return weights.map(lambda ws: {x: w / sum(ws) for x, w in zip(points, ws, strict=True)})


letters = distributions(["a", "b", "c"])
words = distributions(list(itertools.product("ab", repeat=3)))


def marginal(coupling: Mapping[tuple[Any, Any], float], side: int) -> dict[Any, float]:
    sums: dict[Any, float] = {}
    for pair, mass in coupling.items():
        sums[pair[side]] = sums.get(pair[side], 0.0) + mass
    return sums


def assert_couples(coupling: Mapping[tuple[Any, Any], float], p: Mapping[Any, float], q: Mapping[Any, float]) -> None:
    assert min(coupling.values()) > 0
    for side, wanted in ((0, p), (1, q)):
        sums = marginal(coupling, side)
        assert set(sums) <= set(wanted)
        for x, mass in wanted.items():
            assert sums.get(x, 0.0) == pytest.approx(mass, abs=1e-12)


# One coordinate.


@steady
@given(letters, letters)
def test_total_variation_is_the_largest_difference_over_events(p: dict[str, float], q: dict[str, float]) -> None:
    events = itertools.chain.from_iterable(itertools.combinations("abc", k) for k in range(4))
    largest = max(sum(p[x] for x in event) - sum(q[x] for x in event) for event in events)
    assert total_variation(p, q) == pytest.approx(largest, abs=1e-12)
    assert total_variation(p, q) == total_variation(q, p)


@steady
@given(letters, letters)
def test_a_maximal_coupling_differs_as_rarely_as_can_be(p: dict[str, float], q: dict[str, float]) -> None:
    coupling = maximal_coupling(p, q)
    assert_couples(coupling, p, q)
    differs = sum(mass for (x, y), mass in coupling.items() if x != y)
    assert differs == pytest.approx(total_variation(p, q), abs=1e-12)


# The transport problem.


@steady
@given(st.floats(0, 1), st.floats(0, 1))
def test_two_by_two_against_a_search_over_the_one_free_number(p: float, q: float) -> None:
    """A coupling of two coins is fixed by the mass at (far, far)."""
    near, far = (0, 0, 0), (1, 1, 0)
    found = transport_cost({near: 1 - p, far: p}, {near: 1 - q, far: q})
    searched = min(4 * ((p - both) + (q - both)) for both in np.linspace(max(0.0, p + q - 1), min(p, q), 101))
    assert found.cost == pytest.approx(searched, abs=1e-9)


@steady
@given(words, words, st.sampled_from(["hamming-squared", "hamming"]))
def test_optimum_and_certificate(p: dict[Any, float], q: dict[Any, float], cost: Any) -> None:
    found = transport_cost(p, q, cost)
    assert_couples(found.coupling, p, q)
    power = 2 if cost == "hamming-squared" else 1
    paid = sum(mass * hamming(x, y) ** power for (x, y), mass in found.coupling.items())
    assert found.cost == pytest.approx(paid, abs=1e-12)
    assert found.lower <= found.cost
    assert found.gap < 1e-8
    independent = sum(a * b * hamming(x, y) ** power for x, a in p.items() for y, b in q.items())
    assert found.lower <= independent + 1e-12
    assert total_variation(p, q) - 1e-9 <= found.cost <= 3**power * total_variation(p, q) + 1e-9


@steady
@given(words, words)
def test_no_lipschitz_function_beats_the_hamming_cost(p: dict[Any, float], q: dict[Any, float]) -> None:
    """Weak duality with a function found elsewhere: the number of a's, and the distance to each word."""
    cost = transport_cost(p, q, "hamming").cost
    for centre in p:
        moved = sum(mass * hamming(x, centre) for x, mass in p.items())
        moved -= sum(mass * hamming(x, centre) for x, mass in q.items())
        assert abs(moved) <= cost + 1e-9


@steady
@given(st.lists(st.tuples(letters, letters), min_size=1, max_size=3))
def test_the_best_coupling_is_never_worse_than_coordinate_by_coordinate(pairs: list[tuple[Any, Any]]) -> None:
    best = transport_cost(product_distribution([p for p, _ in pairs]), product_distribution([q for _, q in pairs])).cost
    shifts = [total_variation(p, q) for p, q in pairs]
    assert best <= sum(shifts) ** 2 + sum(t * (1 - t) for t in shifts) + 1e-9
    assert best >= sum(shifts) ** 2 - 1e-9  # Jensen: no coupling differs in fewer places on average


def test_the_best_coupling_of_a_product_can_be_better() -> None:
    """By hand: 3/16 along each of the four edges, 2/16 across: 12/16 + 4 * 2/16."""
    low, high = product_distribution([{0: 0.75, 1: 0.25}] * 2), product_distribution([{0: 0.25, 1: 0.75}] * 2)
    found = transport_cost(low, high)
    assert found.cost == pytest.approx(1.25, abs=1e-12)
    assert found.coupling[(0, 0), (1, 1)] == pytest.approx(1 / 8, abs=1e-12)


def test_a_product_is_the_product() -> None:
    listed = product_distribution([{0: 0.25, 1: 0.75}, {0: 0.5, 1: 0.5}])
    assert listed == {(0, 0): 0.125, (0, 1): 0.125, (1, 0): 0.375, (1, 1): 0.375}
    assert product_distribution([]) == {(): 1.0}


@pytest.mark.parametrize(
    ("p1", "p2", "message"),
    [
        ({(0,): 0.5}, {(0,): 1.0}, "probabilities of p1 must sum to 1, got 0.5"),
        ({(0,): 1.0}, {(0,): 1.5, (1,): -0.5}, r"p2 must hold probabilities of at least 0, got -0.5 for \(1,\)"),
        ({(0,): 1.0}, {(0,): math.nan}, "p2 must hold probabilities"),
        ({(0,): 1.0}, {(0, 0): 1.0}, r"tuples of one length, got lengths \[1, 2\]"),
        ({0: 1.0}, {(0,): 1.0}, "p1 must be a mapping {tuple: probability}, got the key 0"),
        ({}, {(0,): 1.0}, "p1 must be a mapping"),
        ([1.0], {(0,): 1.0}, "p1 must be a mapping"),
    ],
)
def test_what_is_no_distribution_is_refused(p1: Any, p2: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        transport_cost(p1, p2)


def test_other_costs_and_large_problems_are_refused() -> None:
    with pytest.raises(InvalidInput, match="cost must be"):
        transport_cost({(0,): 1.0}, {(0,): 1.0}, cost="euclidean")  # type: ignore[arg-type]
    many = {(i,): 1 / 400 for i in range(400)}
    with pytest.raises(InvalidInput, match=r"400 x 400 = 160000 pairs .* at most 100000 are solved"):
        transport_cost(many, many)
    with pytest.raises(InvalidInput, match=r"the product of 40 marginals has 1.1e\+12 points"):
        product_distribution([{0: 0.5, 1: 0.5}] * 40)


def test_without_scipy_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy", None)
    with pytest.raises(MissingExtra, match=r'transport_cost needs scipy: pip install "private-bandits\[audit\]"'):
        transport_cost({(0,): 1.0}, {(1,): 1.0})


# Coupled runs of a policy.


def brute_force(
    policy: Any, instance1: list[dict[Any, float]], instance2: list[dict[Any, float]], horizon: int
) -> dict[str, float]:
    """Every sequence of actions, rewards and other rewards on its own; nothing is shared with the package."""
    shifts = [
        sum(abs(p.get(x, 0) - q.get(x, 0)) for x in {*p, *q}) / 2 for p, q in zip(instance1, instance2, strict=True)
    ]
    sums = {"s": 0.0, "s2": 0.0, "spread": 0.0, "d2": 0.0, "ms": 0.0}
    rewards = sorted({x for arm in [*instance1, *instance2] for x in arm})
    first: dict[Any, float] = {}
    second: dict[Any, float] = {}
    for actions in itertools.product(range(len(instance1)), repeat=horizon):
        for seen in itertools.product(rewards, repeat=horizon):
            chosen = math.prod(
                policy(tuple(zip(actions[:t], seen[:t], strict=True)))[actions[t]] for t in range(horizon)
            )
            for law, instance in ((first, instance1), (second, instance2)):
                chance = math.prod(instance[a].get(r, 0.0) for a, r in zip(actions, seen, strict=True))
                law[actions] = law.get(actions, 0.0) + chosen * chance
            for other in itertools.product(rewards, repeat=horizon):
                mass = chosen
                for a, r, o in zip(actions, seen, other, strict=True):
                    p, q = instance1[a], instance2[a]
                    if r == o:
                        mass *= min(p.get(r, 0.0), q.get(r, 0.0))
                    else:
                        excess = max(p.get(r, 0.0) - q.get(r, 0.0), 0.0) * max(q.get(o, 0.0) - p.get(o, 0.0), 0.0)
                        mass *= excess / shifts[a] if excess else 0.0
                s = sum(shifts[a] for a in actions)
                d = sum(r != o for r, o in zip(seen, other, strict=True))
                sums["s"] += mass * s
                sums["s2"] += mass * s * s
                sums["d2"] += mass * d * d
                sums["ms"] += mass * (d - s) * s
                sums["spread"] += mass * sum(shifts[a] * (1 - shifts[a]) for a in actions)
    sums["kl"] = sum(mass * math.log(mass / second[actions]) for actions, mass in first.items() if mass > 0)
    return sums


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("horizon", "values"), [(2, 3), (3, 2)])
def test_a_coupled_run_against_brute_force(seed: int, horizon: int, values: int) -> None:
    draw = np.random.default_rng(seed)
    one, two = ([dict(enumerate(draw.dirichlet(np.ones(values)))) for _ in range(2)] for _ in range(2))
    table: dict[Any, Any] = {}

    def policy(history: Any) -> Any:
        return table.setdefault(history, draw.dirichlet(np.ones(2)))

    run = coupled_run(policy, one, two, horizon)
    slow = brute_force(policy, one, two, horizon)
    assert run.mean == pytest.approx(slow["s"], abs=1e-12)
    assert run.variance == pytest.approx(slow["s2"] - slow["s"] ** 2, abs=1e-12)
    assert run.spread == pytest.approx(slow["spread"], abs=1e-12)
    assert run.cross == pytest.approx(slow["ms"], abs=1e-12)
    assert run.distance_squared == pytest.approx(slow["d2"], abs=1e-12)
    assert run.kl == pytest.approx(slow["kl"], abs=1e-12)
    # d = S + M, M a martingale with E[M^2] = spread.
    total = run.mean**2 + run.variance + run.spread + 2 * run.cross
    assert run.distance_squared == pytest.approx(total, abs=1e-12)


def test_actions_that_ignore_rewards_leave_nothing_between_m_and_s() -> None:
    run = coupled_run(lambda history: [0.25, 0.75], [{0: 0.5, 1: 0.5}, {0: 1.0}], [{1: 1.0}, {0: 0.5, 1: 0.5}], 4)
    assert run.cross == pytest.approx(0, abs=1e-12)
    assert run.kl == 0


def test_what_a_coupled_run_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    arm = {0: 0.5, 1: 0.5}
    with pytest.raises(InvalidInput, match="same arms, at least one, got 1 and 2"):
        coupled_run(lambda history: [1.0], [arm], [arm, arm], 2)
    with pytest.raises(InvalidInput, match="horizon must be a whole number of at least 1, got 0"):
        coupled_run(lambda history: [1.0], [arm], [arm], 0)
    with pytest.raises(InvalidInput, match="the policy must return 2 probabilities, got 1"):
        coupled_run(lambda history: [1.0], [arm, arm], [arm, arm], 2)
    with pytest.raises(InvalidInput, match=r"the policy after \(\) must sum to 1, got 0.5"):
        coupled_run(lambda history: [0.5], [arm], [arm], 2)
    monkeypatch.setattr(transport, "LARGEST_TREE", 100)
    with pytest.raises(InvalidInput, match="more than 100 histories over 9 steps"):
        coupled_run(lambda history: [1.0], [arm], [arm], 9)


def test_kl_divergence_at_its_ends() -> None:
    assert kl_divergence({0: 1.0}, {0: 1.0}) == 0
    assert kl_divergence({0: 0.5, 1: 0.5}, {0: 1.0}) == math.inf
    assert kl_divergence({0: 1.0}, {0: 0.5, 1: 0.5}) == pytest.approx(math.log(2))
