"""The divergence of DP-IMED and DP-KLUCB against its definition, by brute force."""

from __future__ import annotations

import math

import numpy as np
import pytest

from private_bandits.arrays import Floats
from private_bandits.policies.private_divergence import largest_mean, private_divergence

EPSILONS = [1e-3, 0.1, 1.0, 5.0, 50.0, 1000.0, math.inf]


def kl(x: float, y: float) -> float:
    """Written out, with 0 log 0 = 0."""
    if (x > 0 and y == 0) or (x < 1 and y == 1):
        return math.inf
    heads = x * math.log(x / y) if x else 0.0
    return heads + ((1 - x) * math.log((1 - x) / (1 - y)) if x < 1 else 0.0)


def by_definition(x: float, y: float, epsilon: float) -> float:
    """The least epsilon (z - x) + kl(z, y) over z in [x, y], by thirds, as it is convex in z."""
    if x >= y:
        return 0.0
    if math.isinf(epsilon):
        return kl(x, y)
    if y == 1:
        return epsilon * (1 - x)  # any z but y has an infinite cost

    def cost(z: float) -> float:
        return epsilon * (z - x) + kl(z, y)

    low, high = x, y
    for _ in range(45):
        one, two = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, two) if cost(one) <= cost(two) else (one, high)
    return min(cost(low), cost(x))


PAIRS = [(0.0, 0.0), (0.0, 1e-6), (0.0, 0.5), (0.0, 1.0), (0.3, 1.0), (1.0, 1.0), (0.5, 0.4), (0.2, 0.21), (0.1, 0.9)]
PAIRS += [(0.7, 0.999), (1e-9, 0.3), (0.98, 0.99)]


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_closed_form_is_the_infimum(epsilon: float) -> None:
    chance = np.random.default_rng(2)
    x, y = np.concatenate([np.array(PAIRS), np.sort(chance.random((200, 2)), axis=1)]).T
    expected = np.array([by_definition(one, other, epsilon) for one, other in zip(x.tolist(), y.tolist(), strict=True)])
    np.testing.assert_allclose(private_divergence(x, y, epsilon), expected, atol=1e-12, rtol=1e-9)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_largest_mean_is_where_the_divergence_reaches_its_limit(epsilon: float) -> None:
    """Against halving, for means at and near both ends, and for limits from a 10^9th to 30."""
    chance = np.random.default_rng(1)
    x = np.concatenate([chance.random(500), [0.0, 0.0, 1.0, 1e-9, 1e-6, 1 - 1e-9, 0.5]])
    limit = 10 ** chance.uniform(-9, 1.5, len(x))
    low, high = x.copy(), np.ones_like(x)
    for _ in range(80):
        middle = (low + high) / 2
        inside = private_divergence(x, middle, epsilon) <= limit
        low, high = np.where(inside, middle, low), np.where(inside, high, middle)
    expected = np.where(private_divergence(x, np.ones_like(x), epsilon) <= limit, 1.0, low)
    np.testing.assert_allclose(largest_mean(x, limit, epsilon), expected, atol=1e-10, rtol=0)


def test_a_limit_of_zero_allows_the_mean_alone() -> None:
    x: Floats = np.array([0.0, 0.25, 1.0])
    for epsilon in EPSILONS:
        np.testing.assert_allclose(largest_mean(x, np.zeros(3), epsilon), x, atol=1e-7)


def test_it_goes_from_kl_to_the_distance_of_means_times_epsilon() -> None:
    """As the publication says: kl for large epsilon, epsilon times the total variation for small."""
    x, y = np.array(0.3), np.array(0.6)
    assert float(private_divergence(x, y, 100.0)) == pytest.approx(kl(0.3, 0.6), rel=1e-12)
    assert float(private_divergence(x, y, 1e-4)) == pytest.approx(1e-4 * 0.3, rel=1e-3)
