"""Rough designs of many sets at once: their tolerance, their size, and that a set has the same alone."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from private_bandits.design import approximate
from private_bandits.design.approximate import FEW, fewer, rough_design, rough_weights
from private_bandits.design.optimal import Design, optimal_design
from tests.design.test_optimal import check, draw, plain_leverages, rotation, sphere

Floats = NDArray[np.float64]


def lengths(seed: int, k: int, d: int) -> Floats:
    """Of very unlike length."""
    return draw(seed, k, d) * np.random.default_rng(seed).uniform(0.01, 1, (k, 1))


def halves(seed: int, k: int, d: int) -> Floats:
    """On a grid, so that many are repeated."""
    return np.round(2 * sphere(seed, k, d)) / 2


KINDS = (draw, sphere, lengths, halves)


@pytest.mark.parametrize("d", [2, 3, 5, 10])
@pytest.mark.parametrize("kind", KINDS)
def test_found_without_the_solver(d: int, kind: type, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(approximate, "optimal_design", None)
    for seed, k in enumerate((d + 2, d * (d + 1) // 2, d * (d + 1), FEW)):
        if kind is halves and k < d * (d + 1):
            continue  # too few different ones
        actions = kind(seed + 10, k, d)
        check(rough_design(actions, 0.1), actions, d, 1.1, d * (d + 1) // 2)


def test_what_it_cannot_do_is_left_to_the_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def counted(actions: Floats, tol: float) -> Design:
        asked.append(len(actions))
        return optimal_design(actions, tol)

    monkeypatch.setattr(approximate, "optimal_design", counted)
    corners = np.array(np.meshgrid(*[[-1.0, 1.0]] * 5)).reshape(5, -1).T  # all squares are one: too few products
    plane = np.column_stack([sphere(0, 9, 2), np.zeros(9)])
    many = sphere(1, FEW + 1, 2)
    for actions, rank in ((corners, 5), (plane, 2), (many, 2)):
        check(rough_design(actions, 0.1), actions, rank, 1.1, rank * (rank + 1) // 2)
    assert asked == [32, 9, FEW + 1]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("k", "d"), [(12, 2), (40, 3), (90, 6)])
def test_a_set_has_the_same_design_alone_and_among_others(k: int, d: int, kind: type) -> None:
    """Also where many actions are alike, so that it could be one or the other."""
    rows = kind(3, k, d)
    generator = np.random.default_rng(4)
    among = generator.random((30, k)) < generator.uniform(0.4, 1, (30, 1))
    together = rough_weights(rows, among, 0.1)
    assert together.any(axis=1).mean() > 0.7
    assert (np.count_nonzero(together, axis=1) <= d * (d + 1) // 2).all()
    for weights, chosen in zip(together, among, strict=True):
        assert not weights[~chosen].any()
        alone = rough_weights(rows[chosen], np.full((1, int(chosen.sum())), True), 0.1)[0]
        np.testing.assert_allclose(alone, weights[chosen], rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_fewer_actions_have_the_same_moments_or_larger_ones(kind: type) -> None:
    rows = kind(5, 60, 4)
    weights = np.random.default_rng(6).dirichlet(np.ones(60), 1)
    few = fewer(rows[None], weights)[0]
    assert np.count_nonzero(few) <= 10
    before, after = ((rows.T * w) @ rows for w in (weights[0], few))
    ratios = np.linalg.eigvals(np.linalg.solve(before, after)).real
    assert ratios.min() >= 1 - 1e-9
    np.testing.assert_allclose(ratios, ratios.mean(), rtol=1e-9)
    assert plain_leverages(rows, few).max() <= plain_leverages(rows, weights[0]).max() * (1 + 1e-9)


def test_the_design_does_not_depend_on_coordinates() -> None:
    actions = sphere(6, 30, 4)
    for seed in range(5):
        turned = rough_design(actions @ rotation(seed, 4), 0.1)
        np.testing.assert_allclose(turned.weights, rough_design(actions, 0.1).weights, atol=1e-9)
