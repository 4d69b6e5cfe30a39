"""What releases say together: least squares, one release after the other, and weights that are not negative."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from private_bandits.mechanism.factor import HALF_BEFORE, Factor
from private_bandits.policies.release_memory import combination_weights


def doubling(releases: int, first: int = 1, initial_rewards: int = 1) -> tuple[int, ...]:
    """Counts that double, once there are so many rewards."""
    counts = [first]
    while len(counts) < releases:
        counts.append(max(sum(counts), initial_rewards - sum(counts)))
    return tuple(counts)


def solve(matrix: list[list[Fraction]], right: list[Fraction]) -> list[Fraction]:
    """Gauss, in exact arithmetic."""
    rows = [[*row, r] for row, r in zip(matrix, right, strict=True)]
    for i in range(len(rows)):
        rows[i] = [x / rows[i][i] for x in rows[i]]
        for k in range(len(rows)):
            if k != i and rows[k][i]:
                rows[k] = [x - rows[k][i] * y for x, y in zip(rows[k], rows[i], strict=True)]
    return [row[-1] for row in rows]


def exact_reading(counts: tuple[int, ...], noise: Fraction, factor: Factor | None) -> dict[str, Any]:
    """Least squares as it is written down: Cov^-1 C n, scaled to be unbiased."""
    size, taps = len(counts), factor.multipliers if factor else (1,)
    held = [[Fraction(0)] * size for _ in counts]
    for row, column in itertools.product(range(size), repeat=2):
        if 0 <= row - column < len(taps):
            held[row][column] = Fraction(taps[row - column], factor.unit if factor else 1)
    slopes = [sum((h * n for h, n in zip(row, counts, strict=True)), Fraction(0)) for row in held]
    covariance = [
        [
            sum((a * b * n / 4 for a, b, n in zip(held[i], held[k], counts, strict=True)), noise * (i == k))
            for k in range(size)
        ]
        for i in range(size)
    ]
    raw = solve(covariance, slopes)
    total = sum((w * a for w, a in zip(raw, slopes, strict=True)), Fraction(0))
    weights = [w / total for w in raw]
    of_rewards = [sum((weights[i] * held[i][k] for i in range(size)), Fraction(0)) for k in range(size)]
    return {
        "weights": weights,
        "variance": 1 / total,
        "rewards": sum((n * u * u for n, u in zip(counts, of_rewards, strict=True)), Fraction(0)),
        "weight": max(of_rewards),
        "noise": sum((noise * w * w for w in weights), Fraction(0)),
    }


@pytest.mark.parametrize("factor", [None, HALF_BEFORE, Factor((4, 2, 1), 4)])
@pytest.mark.parametrize("noise", [Fraction(0), Fraction(1, 16), Fraction(5), Fraction(6250)])
@pytest.mark.parametrize("counts", [doubling(1), doubling(7), doubling(5, first=37)])
def test_readings_are_least_squares(counts: tuple[int, ...], noise: Fraction, factor: Factor | None) -> None:
    found = combination_weights(counts, (float(noise),) * len(counts), factor)
    for j in range(1, len(counts) + 1):
        expected = exact_reading(counts[:j], noise, factor)
        np.testing.assert_allclose(found.weights[j - 1, :j], np.array(expected["weights"], float), rtol=1e-12)
        assert not found.weights[j - 1, j:].any()  # what was not released yet
        for name in ("rewards", "weight", "noise", "variance"):
            part = getattr(found.spread, name)[j - 1]
            assert part == pytest.approx(float(expected[name]), rel=1e-12, abs=0)


@pytest.mark.parametrize("noise", [Fraction(1, 1000), Fraction(625), Fraction(10**8)])
def test_readings_stay_exact_for_the_longest_runs(noise: Fraction) -> None:
    counts = doubling(40)  # 2^38 rewards in the last
    found, expected = (
        combination_weights(counts, (float(noise),) * 40, HALF_BEFORE),
        exact_reading(counts, noise, HALF_BEFORE),
    )
    np.testing.assert_allclose(found.weights[-1], np.array(expected["weights"], float), rtol=1e-10)
    assert found.spread.variance[-1] == pytest.approx(float(expected["variance"]), rel=1e-12)


@pytest.mark.parametrize("factor", [None, HALF_BEFORE, Factor((16, 12, 9, 7), 16)])
def test_one_release_after_the_other_gives_the_same_mean(factor: Factor | None) -> None:
    found = combination_weights(doubling(20), (3.0,) * 20, factor)
    values = np.random.default_rng(1).normal(size=20) * doubling(20)
    mean, news = 0.0, np.zeros(20)
    for j, value in enumerate(values):
        news[j] = value - found.carried[j] @ news
        mean += found.gain[j] * (news[j] - found.slope[j] * mean)
        assert mean == pytest.approx(found.weights[j] @ values, rel=1e-9)


@pytest.mark.parametrize("noise", [0.01, 1.0, 100.0, 1e5])
def test_no_other_combination_strays_less(noise: float) -> None:
    counts = doubling(12)
    rewards, held = np.array(counts, float), HALF_BEFORE.matrix(12)
    least = combination_weights(counts, (noise,) * 12, HALF_BEFORE).spread.variance
    for j in range(12):
        for k in range(j + 1):  # the plain mean of releases k..j
            weights = np.zeros(12)
            weights[k : j + 1] = 1 / (held @ rewards)[k : j + 1].sum()
            assert least[j] <= (1 + 1e-9) * (rewards @ (weights @ held) ** 2 / 4 + noise * weights @ weights)


def test_half_of_the_episode_before_tells_more_than_noise_of_its_own() -> None:
    """Where noise is most of the error, at equal budget: 20% less variance from the fifth release on."""
    alone = combination_weights(doubling(30), (1e18,) * 30, None).spread.variance
    again = combination_weights(doubling(30), (1.25e18,) * 30, HALF_BEFORE).spread.variance
    assert (again[1:] < alone[1:]).all()
    assert (again[4:] < 0.81 * alone[4:]).all()


def test_no_reward_has_a_negative_weight() -> None:
    """So that the bound by the rate function holds; noise and counts matter through their ratio only."""
    for noise, initial_rewards in itertools.product(np.geomspace(1e-9, 1e12, 64), (1, 4, 16, 512)):
        found = combination_weights(doubling(60, initial_rewards=initial_rewards), (float(noise),) * 60, HALF_BEFORE)
        assert (np.tril(found.weights) >= 0).all()
        assert (found.spread.weight > 0).all()  # zero where a weight is negative
