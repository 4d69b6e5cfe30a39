"""Combinations of known vectors: right, and nearly as cheap as a linear program finds them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

from private_bandits.arrays import Floats
from private_bandits.design.combining import cheapest_combinations


def least_cost(known: Floats, costs: Floats, wanted: Floats) -> float:
    """The linear program, with c = p - q and p, q >= 0."""
    found = linprog(np.r_[costs, costs], A_eq=np.hstack([known.T, -known.T]), b_eq=wanted, bounds=(0, None))
    assert found.success
    return float(found.fun)


@pytest.mark.parametrize(("count", "dimension"), [(1, 1), (3, 3), (12, 2), (40, 5), (200, 3)])
def test_combinations_are_right_and_cost_little_more_than_a_linear_program_finds(count: int, dimension: int) -> None:
    chance = np.random.default_rng([count, dimension])
    known, costs = chance.normal(size=(count, dimension)), chance.uniform(0.01, 1, count)
    wanted = chance.normal(size=(10, count)) @ known
    found = cheapest_combinations(known, costs, wanted)
    assert np.allclose(found @ known, wanted, rtol=1e-8, atol=1e-8)
    for c, row in zip(found, wanted, strict=True):
        assert least_cost(known, costs, row) * (1 - 1e-7) <= np.abs(c) @ costs <= least_cost(known, costs, row) * 1.01


def test_a_known_vector_costs_no_more_than_itself() -> None:
    chance = np.random.default_rng(0)
    known, costs = chance.normal(size=(30, 4)), chance.uniform(0.01, 1, 30)
    found = cheapest_combinations(known, costs, known)
    assert (np.abs(found) @ costs <= costs).all()
    assert (cheapest_combinations(known, np.zeros(30), known) == np.eye(30)).all()


def test_nothing_is_said_outside_of_the_span() -> None:
    known = np.array([[1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [2.0, 1.0, 0.0]])
    found = cheapest_combinations(known, np.ones(3), np.array([[0.3, 0.2, 0.0], [0.3, 0.2, 1e-6], [0.0, 0.0, 0.0]]))
    assert np.allclose(found[0] @ known, [0.3, 0.2, 0.0])
    assert np.isnan(found[1]).all()
    assert (found[2] == 0).all()
    nothing = cheapest_combinations(np.zeros((2, 3)), np.ones(2), known)
    assert np.isnan(nothing).all()


@pytest.mark.parametrize("scale", [1e-80, 1e-9, 1e9, 1e80])
def test_units_do_not_matter(scale: float) -> None:
    chance = np.random.default_rng(1)
    known, costs, wanted = chance.normal(size=(9, 3)), chance.uniform(0.1, 1, 9), chance.normal(size=(4, 3))
    plain = np.abs(cheapest_combinations(known, costs, wanted)) @ costs
    assert np.abs(cheapest_combinations(known * scale, costs, wanted * scale)) @ costs == pytest.approx(plain)
    assert np.abs(cheapest_combinations(known, costs * scale, wanted)) @ costs == pytest.approx(plain)
    assert np.abs(cheapest_combinations(known, costs, wanted * scale)) @ costs == pytest.approx(plain * scale)
