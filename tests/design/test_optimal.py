"""Designs against their certificate in 100 digits, a slow and obvious solver, and sets of actions that mean harm."""

from __future__ import annotations

import math
import tracemalloc
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from private_bandits.design.approximate import rough_design
from private_bandits.design.optimal import (
    Design,
    exchanges,
    leverages,
    lightened,
    moments,
    null_space,
    optimal_design,
    small_design,
    span_of,
    thinned,
)
from private_bandits.errors import InvalidInput

steady = settings(derandomize=True, deadline=None, max_examples=60)
Floats = NDArray[np.float64]
TOLERANCES = (0.5, 1e-3, 1e-6)


def draw(seed: int, *shape: int) -> Floats:
    return np.random.default_rng(seed).normal(size=shape)


def sphere(seed: int, *shape: int) -> Floats:
    points = draw(seed, *shape)
    units: Floats = points / np.sqrt((points**2).sum(axis=1))[:, None]
    return units


def rotation(seed: int, d: int) -> Floats:
    return np.asarray(np.linalg.qr(draw(seed, d, d)).Q, dtype=np.float64)


def exact_leverage(actions: Floats, design: Design) -> float:
    """The largest leverage with 100 digits, from the actions as given."""
    decimals: Callable[[Floats], Any] = np.vectorize(lambda x: Decimal(float(x)), otypes=[object])
    with localcontext() as context:
        context.prec = 100
        points = decimals(actions) @ decimals(design.basis)
        used = points[design.support]
        moment = used.T @ (used * decimals(design.weights[design.support])[:, None])
        square = (points * solved(moment, points.T).T).sum(axis=1)
        return float(max(square))


def solved(matrix: Any, right: Any) -> Any:
    """Gauss-Jordan elimination of a positive definite matrix of Decimals."""
    both = np.hstack([matrix, right])
    for i in range(len(matrix)):
        both[i] = both[i] / both[i, i]
        for j in range(len(matrix)):
            if j != i:
                both[j] = both[j] - both[i] * both[j, i]
    return both[:, len(matrix) :]


def rational_rank(rows: list[list[int]]) -> int:
    left = [[Fraction(x) for x in row] for row in rows]
    rank = 0
    for column in range(len(rows[0])):
        pivot = next((row for row in left if row[column]), None)
        if pivot is None:
            continue
        rank += 1
        left.remove(pivot)
        left = [[x - y * row[column] / pivot[column] for x, y in zip(row, pivot, strict=True)] for row in left]
    return rank


def plain_leverages(points: Floats, weights: Floats) -> Floats:
    inverse = np.linalg.inv(points.T @ (points * weights[:, None]))
    values: Floats = ((points @ inverse) * points).sum(axis=1)
    return values


def multiplicative(points: Floats, rounds: int = 20_000) -> Floats:
    """The slow, obvious solver: every weight times its leverage over the rank (Titterington 1976)."""
    weights = np.full(len(points), 1 / len(points))
    for _ in range(rounds):
        weights = weights * plain_leverages(points, weights) / points.shape[1]
    return weights


def check(design: Design, actions: Floats, rank: int, factor: float, support: int) -> None:
    """Everything that holds for every design."""
    assert design.rank == rank
    assert design.weights.shape == (len(actions),)
    assert design.weights.min() >= 0
    assert math.fsum(design.weights) == pytest.approx(1, abs=1e-12)
    assert design.support.tolist() == np.flatnonzero(design.weights).tolist()
    assert len(design.support) <= support
    assert design.basis.shape == (actions.shape[1], rank)
    assert np.abs(design.basis.T @ design.basis - np.eye(rank)).max() < 1e-13
    exact = exact_leverage(actions, design)
    assert rank * (1 - 1e-9) <= exact <= factor * rank
    assert design.leverage == pytest.approx(exact, rel=1e-9)


def longest_small(d: int) -> float:
    return 4 * d * math.log(math.log(max(d, 3))) + 16


# Hostile sets: name, actions, rank.

HOSTILE: dict[str, tuple[Floats, int]] = {
    "one": (np.array([[3.0, -4.0]]), 1),
    "one number": (np.array([[-2.0]]), 1),
    "a vector and its negative": (np.array([[1.0, 2.0], [-1.0, -2.0]]), 1),
    "unit vectors": (np.eye(5), 5),
    "random": (draw(1, 30, 4), 4),
    "on the sphere": (sphere(2, 200, 5), 5),
    "fewer than dimensions": (draw(3, 3, 7), 3),
    "a plane": (draw(4, 40, 2) @ draw(5, 2, 3), 2),
    "a plane, badly scaled": (draw(6, 40, 2) * [1, 1e-8] @ draw(7, 2, 3), 2),
    "repeated": (np.repeat(draw(8, 6, 3), 5, axis=0), 3),
    "near-duplicates": (np.repeat(draw(9, 10, 3), 4, axis=0) + 1e-9 * draw(10, 40, 3), 3),
    "two near-duplicates": (np.array([[1.0, 1.0], [1.0, 1.0 + 1e-9]]), 2),
    "a zero vector": (np.vstack([draw(11, 5, 3), np.zeros((1, 3))]), 3),
    "a short direction": (draw(12, 30, 3) * [1, 1, 1e-8], 3),
    "condition 1e8": (draw(13, 30, 6) * np.logspace(0, -8, 6) @ rotation(14, 6), 6),
    "condition 1e8, square": (rotation(15, 6) * np.logspace(0, -8, 6) @ rotation(16, 6), 6),
    "lengths 1 and 1e-8": (np.array([[1.0, 0.0], [1.0, 0.1], [0.0, 1e-8], [1e-8, 1e-8]]), 2),
    "a plane and a short way out": (np.vstack([draw(17, 20, 2) @ draw(18, 2, 3), 1e-8 * draw(19, 1, 3)]), 3),
    "lengths 1 to 1e-20": (draw(20, 30, 4) * np.logspace(0, -20, 30)[:, None], 4),
    "huge": (1e300 * draw(21, 10, 3), 3),
    "tiny": (1e-300 * draw(22, 10, 3), 3),
    "far from the origin": (1 + 1e-6 * draw(23, 30, 3), 3),
    "an unresolved direction": (draw(24, 20, 3) * [1, 1, 1e-17] @ rotation(25, 3), 2),
    "the corners of a cube": (np.array(np.meshgrid(*[[-1.0, 1.0]] * 5)).reshape(5, -1).T.copy(), 5),
    "a fine circle": (np.stack([np.cos(np.linspace(0, 6, 500)), np.sin(np.linspace(0, 6, 500))], axis=1), 2),
    "powers": (np.linspace(0, 1, 101)[:, None] ** np.arange(8), 8),
    "integers": (np.array([[1, 2], [3, 4], [5, 6]]).astype(np.float64), 2),
}


@pytest.mark.parametrize("tol", TOLERANCES)
@pytest.mark.parametrize("name", HOSTILE)
def test_the_certificate_holds_in_exact_arithmetic(name: str, tol: float) -> None:
    actions, rank = HOSTILE[name]
    check(optimal_design(actions, tol), actions, rank, 1 + tol, rank * (rank + 1) // 2)


@pytest.mark.parametrize("tol", [0.5, 0.1])
@pytest.mark.parametrize("name", HOSTILE)
def test_a_rough_design_keeps_its_tolerance_too(name: str, tol: float) -> None:
    actions, rank = HOSTILE[name]
    check(rough_design(actions, tol), actions, rank, 1 + tol, rank * (rank + 1) // 2)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_small_design_has_few_actions_and_twice_the_best_leverage(name: str) -> None:
    actions, rank = HOSTILE[name]
    check(small_design(actions), actions, rank, 2, min(2 * rank, int(longest_small(rank))))


@pytest.mark.parametrize("d", [1, 2, 3, 5, 8, 9, 13, 21, 34, 50])
def test_small_designs_in_every_dimension(d: int) -> None:
    for seed, kind in enumerate((draw, sphere, lambda *x: draw(*x) ** 5, lambda *x: np.abs(draw(*x)) ** 0.1)):
        actions = kind(seed, 20 * d, d)
        design = small_design(actions)
        assert design.rank == d
        assert len(design.support) <= min(2 * d, longest_small(d))
        assert leverages(actions, design.weights).max() <= 2 * d
        assert design.leverage <= 2 * d


@pytest.mark.parametrize("d", [25, 50])
def test_condition_1e8_in_many_dimensions(d: int) -> None:
    actions = draw(d, 2 * d, d) * np.logspace(0, -8, d) @ rotation(d, d)
    check(optimal_design(actions, 1e-6), actions, d, 1 + 1e-6, d * (d + 1) // 2)


@steady
@given(
    st.integers(1, 4).flatmap(
        lambda d: st.lists(st.lists(st.integers(-2, 2), min_size=d, max_size=d), min_size=1, max_size=9)
    ),
    st.sampled_from(TOLERANCES),
)
def test_small_integers(rows: list[list[int]], tol: float) -> None:
    actions = np.array(rows, dtype=np.float64)
    rank = rational_rank(rows)
    if rank:
        check(optimal_design(rows, tol), actions, rank, 1 + tol, rank * (rank + 1) // 2)
        check(small_design(rows), actions, rank, 2, 2 * rank)
    assert span_of(rows).shape == (actions.shape[1], rank)


# The optimum.


@pytest.mark.parametrize("seed", range(3))
def test_kiefer_wolfowitz(seed: int) -> None:
    """Least largest leverage = rank = where the determinant is largest, which the slow solver finds too."""
    actions = draw(seed, 12 + seed, 3)
    design = optimal_design(actions, 1e-6)
    slow = multiplicative(actions)
    best = np.linalg.slogdet(moments(actions, slow)).logabsdet
    ours = np.linalg.slogdet(moments(actions, design.weights)).logabsdet
    assert best <= ours + 3 * 1e-6  # log det is within rank log(1 + tol) of its maximum
    assert best >= ours - 1e-4
    assert design.weights == pytest.approx(slow, abs=5e-3)
    assert plain_leverages(actions, design.weights)[design.support] == pytest.approx(3, abs=1e-2)
    for other in np.random.default_rng(seed).dirichlet(np.ones(len(actions)), size=50):
        assert plain_leverages(actions, other).max() >= 3


def test_known_optima() -> None:
    assert optimal_design(np.eye(4)).weights.tolist() == [0.25] * 4
    assert optimal_design([[2.0], [1.0], [-1.0]]).weights.tolist() == [1, 0, 0]
    # Quadratic regression on [-1, 1]: a third each at -1, 0 and 1 (Kiefer and Wolfowitz 1959).
    quadratic = optimal_design(np.linspace(-1, 1, 21)[:, None] ** np.arange(3), 1e-6)
    assert quadratic.support.tolist() == [0, 10, 20]
    assert quadratic.weights[quadratic.support] == pytest.approx(1 / 3, abs=1e-3)


@pytest.mark.parametrize("design_of", [optimal_design, small_design])
def test_invertible_maps_change_nothing_that_matters(design_of: Callable[[Floats], Design]) -> None:
    actions = draw(31, 60, 4)
    design = design_of(actions)
    for matrix in (rotation(32, 4), draw(33, 4, 4), np.diag([1, 1e-3, 1e3, 7.0]), -1e9 * np.eye(4)):
        moved = actions @ matrix
        assert exact_leverage(moved, design) == pytest.approx(design.leverage, rel=1e-6)
        assert design_of(moved).leverage <= max(1.001 * 4, 2 * 4 if design_of is small_design else 0)
    wide = design_of(actions @ draw(34, 4, 9))
    assert wide.rank == 4
    assert wide.leverage <= (8 if design_of is small_design else 4.004)


def test_the_same_input_gives_the_same_design() -> None:
    actions = sphere(35, 300, 6)
    given = actions.copy()
    for design_of in (optimal_design, small_design):
        first, second = design_of(actions), design_of(actions.tolist())
        assert first.weights.tobytes() == second.weights.tobytes()
        assert first.leverage == second.leverage
    assert (actions == given).all()


# The parts.


def test_the_span_is_spanned() -> None:
    for actions, rank in HOSTILE.values():
        basis = span_of(actions)
        assert basis.shape == (actions.shape[1], rank)
        scaled = actions / np.abs(actions).max(axis=1, initial=1e-310)[:, None]
        assert np.abs(scaled - scaled @ basis @ basis.T).max() < 1e-11
    assert span_of(draw(36, 9, 3)).tolist() == np.eye(3).tolist()


@pytest.mark.parametrize(("points", "uses"), [(sphere(41, 400, 6), 21), (np.repeat(draw(42, 30, 4), 9, axis=0), 10)])
def test_a_lighter_design_has_the_same_moments_or_larger_ones(points: Floats, uses: int) -> None:
    """Also with repeated points, where the null space comes from the slower factorisation."""
    weights = np.random.default_rng(0).dirichlet(np.ones(len(points)))
    light = lightened(points, weights)
    assert np.count_nonzero(light) <= uses
    assert light.min() >= 0
    assert light.sum() == pytest.approx(1, abs=1e-14)
    ratio = moments(points, light) / moments(points, weights)
    assert ratio == pytest.approx(ratio[0, 0], rel=1e-8)
    assert ratio[0, 0] >= 1 - 1e-12


def test_null_spaces() -> None:
    for products in (draw(43, 30, 10), np.repeat(draw(44, 3, 10), 5, axis=0), np.zeros((12, 10))):
        rays = null_space(products)
        assert rays.shape == (len(products), len(products) - 10)
        assert np.abs(products.T @ rays).max() < 1e-12
        assert np.linalg.svd(rays).S.min() > 1e-3


def test_thinning_costs_no_more_than_its_share() -> None:
    points = draw(45, 200, 4)
    weights = np.random.default_rng(1).dirichlet(np.full(200, 0.2))
    thin = thinned(points, weights, 0.1)
    assert np.count_nonzero(thin) < np.count_nonzero(weights)
    assert leverages(points, thin).max() <= leverages(points, weights).max() / 0.9


def test_exchanges_end_from_the_worst_start() -> None:
    points = np.vstack([np.eye(6), 2 * np.ones((1, 6)), 2 - 4 * np.eye(6)])
    weights = exchanges(points, np.arange(6))
    assert leverages(points, weights).max() <= 12
    assert (12 * weights).tolist() == [round(12 * w) for w in weights]


# Size.


@pytest.mark.parametrize("kind", [draw, sphere])
def test_ten_thousand_actions_in_fifty_dimensions(kind: Callable[..., Floats]) -> None:
    actions = kind(51, 10_000, 50)
    tracemalloc.start()
    design = optimal_design(actions)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert design.rank == 50
    assert len(design.support) <= 50 * 51 // 2
    assert plain_leverages(actions, design.weights).max() <= 1.001 * 50
    assert peak < 40 * actions.nbytes  # a K x K matrix would be 200 times the actions


# Edges.


@pytest.mark.parametrize("design_of", [optimal_design, small_design])
def test_actions_that_are_all_zero(design_of: Callable[[Floats], Design]) -> None:
    design = design_of(np.zeros((3, 2)))
    assert design.weights.tolist() == [1, 0, 0]
    assert design.support.tolist() == [0]
    assert (design.rank, design.leverage, design.basis.shape) == (0, 0, (2, 0))


def test_zero_and_negligible_actions_get_no_weight() -> None:
    actions = np.vstack([np.zeros(3), 1e-120 * np.ones(3), draw(61, 4, 2) @ draw(62, 2, 3)])
    for design in (optimal_design(actions), small_design(actions)):
        assert design.rank == 2
        assert design.weights[:2].tolist() == [0, 0]


@pytest.mark.parametrize(
    ("actions", "words"),
    [
        ([], r"shape \(0,\)"),
        ([[]], r"shape \(1, 0\)"),
        (np.zeros((0, 3)), r"shape \(0, 3\)"),
        ([1.0, 2.0], r"shape \(2,\)"),
        (np.zeros((2, 2, 2)), r"shape \(2, 2, 2\)"),
        ([[1.0], [1.0, 2.0]], "different lengths"),
        ([[1.0, 2.0], [3.0, math.nan]], "got nan in row 1, column 1"),
        ([[1.0, -math.inf]], "got -inf in row 0, column 1"),
        ([["a", "b"]], "dtype <U1"),
        ([[1j]], "dtype complex128"),
        ([[None]], "dtype object"),
    ],
)
def test_wrong_actions_are_named(actions: Any, words: str) -> None:
    for function in (optimal_design, small_design, span_of):
        with pytest.raises(InvalidInput, match=words):
            function(actions)


@pytest.mark.parametrize("tol", [0, -1, 1.5, math.nan, math.inf, "small", None, True])
def test_wrong_tolerances_are_named(tol: Any) -> None:
    with pytest.raises(InvalidInput, match="tol must be in"):
        optimal_design(np.eye(2), tol)


def test_a_tolerance_below_rounding_is_refused_rather_than_missed() -> None:
    with pytest.raises(InvalidInput, match="use a larger tol"):
        optimal_design(sphere(63, 300, 6), 1e-16)
