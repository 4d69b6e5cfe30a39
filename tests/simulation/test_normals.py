"""The generator of the compiled engines: moments, tails, and independence of everything that it puts side by side."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from private_bandits.simulation.normals import LANES, PAIRS, fill_normals, fill_uniforms, generators

SMALL = 1e-4
"""A right generator fails a test for one seed in 10,000."""


def normals(seed: int, rows: int) -> NDArray[np.float32]:
    """[row, place]: a place is one half of the pair of one lane, a row is what all of them give at once."""
    out = np.empty(rows * PAIRS, np.float32)
    fill_normals(generators(np.random.SeedSequence(seed)), out)
    return out.reshape(rows, PAIRS)


@pytest.fixture(scope="module")
def table() -> NDArray[np.float64]:
    return normals(1, 40_000).astype(float)


def chi_square(found: Any, expected: Any) -> float:
    """The p-value of counts."""
    found, expected = np.ravel(found), np.ravel(expected)
    return float(stats.chi2.sf(((found - expected) ** 2 / expected).sum(), found.size - 1))


def largest(correlations: NDArray[np.float64], count: int) -> float:
    """The p-value of the largest of many correlations of `count` independent pairs."""
    worst = 2 * stats.norm.sf(np.abs(correlations).max() * np.sqrt(count))
    return float(-np.expm1(correlations.size * np.log1p(-worst)))


def test_moments(table: NDArray[np.float64]) -> None:
    values = table.ravel()
    double = [1, 1, 3, 15, 105, 945, 10395, 135135]  # the even moments, 0 to 14
    power = np.ones_like(values)
    for order in range(1, 8):
        power *= values
        expected = 0.0 if order % 2 else double[order // 2]
        error = np.sqrt((double[order] - expected**2) / values.size)
        assert abs(power.mean() - expected) < stats.norm.isf(SMALL / 2) * error, order


def test_cells_and_tails() -> None:
    """Cells a quarter of a deviation wide, and tails to five and beyond."""
    edges = np.concatenate([[-np.inf], np.arange(-5, 5.1, 0.25), [np.inf]])
    counts, total = np.zeros(len(edges) - 1), 0
    state = generators(np.random.SeedSequence(2))
    out = np.empty(2**20, np.float32)
    for _ in range(100):
        fill_normals(state, out)
        out.sort()
        counts += np.diff(np.searchsorted(out, edges))
        total += out.size
    expected = total * np.diff(stats.norm.cdf(edges[: len(edges) // 2]))
    half = np.concatenate([expected, total * np.diff(stats.norm.cdf([edges[len(expected)], 0.0]))])
    symmetric = np.concatenate([half, half[::-1]])
    assert symmetric.sum() == pytest.approx(total)
    assert symmetric[0] > 25  # beyond five deviations, on each side
    assert chi_square(counts, symmetric) > SMALL
    assert chi_square(counts[[0, 1, 2, -3, -2, -1]], symmetric[[0, 1, 2, -3, -2, -1]]) > SMALL


def test_fine_cells(table: NDArray[np.float64]) -> None:
    cells = np.floor(stats.norm.cdf(table.ravel()) * 1024).astype(int)
    counts = np.bincount(cells, minlength=1024)
    assert chi_square(counts, np.full(1024, cells.size / 1024)) > SMALL


@pytest.mark.parametrize("power", [1, 2])
def test_lanes_are_independent_of_each_other_and_of_what_came_before(table: NDArray[np.float64], power: int) -> None:
    values = table**power
    values = (values - values.mean()) / values.std()
    rows = len(values)
    for lag in (0, 1, 2, 5):
        found = values[lag:].T @ values[: rows - lag] / (rows - lag)
        if lag == 0:
            found = found[np.triu_indices(PAIRS, 1)]
        assert largest(found, rows - lag) > SMALL, lag


def test_the_two_normals_of_a_pair_are_independent(table: NDArray[np.float64]) -> None:
    x, y = table[:, :LANES].ravel(), table[:, LANES:].ravel()
    cells = 32
    column, row = (np.floor(stats.norm.cdf(z) * cells).astype(int) for z in (x, y))
    counts = np.bincount(column * cells + row, minlength=cells**2)
    assert chi_square(counts, np.full(cells**2, x.size / cells**2)) > SMALL
    angles = np.floor((np.arctan2(y, x) / (2 * np.pi) + 0.5) * 720).astype(int).clip(0, 719)
    assert chi_square(np.bincount(angles, minlength=720), np.full(720, x.size / 720)) > SMALL
    assert stats.kstest(np.exp(-(x * x + y * y) / 2), "uniform").pvalue > SMALL


def test_successive_values_fill_the_square(table: NDArray[np.float64]) -> None:
    cells = 32
    places = np.floor(stats.norm.cdf(table) * cells).astype(int)
    for one, other in ((places[:-1], places[1:]), (places[:, :-1], places[:, 1:])):
        counts = np.bincount((one * cells + other).ravel(), minlength=cells**2)
        assert chi_square(counts, np.full(cells**2, one.size / cells**2)) > SMALL


def test_seeds_give_streams_of_their_own_and_the_same_again() -> None:
    np.testing.assert_array_equal(normals(3, 10), normals(3, 10))
    one, other = normals(3, 20_000).astype(float), normals(4, 20_000).astype(float)
    assert largest((one * other).mean(axis=0), 20_000) > SMALL
    assert len(np.unique(generators(np.random.SeedSequence(0)))) == 4 * LANES


def test_a_filled_array_goes_on_where_the_last_one_ended() -> None:
    state = generators(np.random.SeedSequence(3))
    first, second = np.empty(3 * PAIRS, np.float32), np.empty(7 * PAIRS, np.float32)
    fill_normals(state, first)
    fill_normals(state, second)
    np.testing.assert_array_equal(np.concatenate([first, second]).reshape(10, PAIRS), normals(3, 10))


def test_uniforms() -> None:
    states = np.array([generators(np.random.SeedSequence(s)) for s in range(3)])
    out = np.empty((3, 2**20), np.float32)
    fill_uniforms(states, out)
    assert np.abs(out).max() <= 1
    for row in out.astype(float):
        cells = np.floor((row + 1) * 512).astype(int).clip(0, 1023)
        assert chi_square(np.bincount(cells, minlength=1024), np.full(1024, row.size / 1024)) > SMALL
        lanes = row.reshape(-1, LANES) * np.sqrt(3)
        found = lanes.T @ lanes / len(lanes)
        assert largest(found[np.triu_indices(LANES, 1)], len(lanes)) > SMALL
        assert largest(lanes[1:].T @ lanes[:-1] / len(lanes), len(lanes)) > SMALL
    assert largest(np.array([np.corrcoef(out[i], out[i - 1])[0, 1] for i in range(3)]), 2**20) > SMALL
