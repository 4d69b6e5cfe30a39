"""The exact curve of Gaussian noise, beside slow sums in many digits."""

from __future__ import annotations

import math
from decimal import Decimal, getcontext

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from private_bandits.budget import epsilon_of
from private_bandits.gaussian_curve import discrete_gaussian_delta, gaussian_delta, release_epsilon

getcontext().prec = 40


def oracle(scale: str, shift: int, epsilon: float, reach: int) -> float:
    """Sum of max(P(y) - e^epsilon Q(y), 0) over all integers y, with 40 digits."""
    variance = 2 * Decimal(scale) ** 2
    weights = {z: (-(Decimal(z) ** 2) / variance).exp() for z in range(-reach - shift, reach + 1)}
    factor = Decimal(epsilon).exp()
    total = sum(weights.values())
    terms = (weights[y - shift] - factor * weights[y] for y in range(-reach, reach + 1))
    return float(sum(max(term, Decimal(0)) for term in terms) / total)


@pytest.mark.parametrize(("scale", "shift"), [("0.7", 1), ("2.2", 1), ("2.236", 3), ("9.5", 20)])
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.7, 6.0])
def test_the_discrete_curve_is_the_sum_over_all_integers(scale: str, shift: int, epsilon: float) -> None:
    reach = 40 + shift + math.ceil(14 * float(scale))
    slow = oracle(scale, shift, epsilon, reach)
    assert discrete_gaussian_delta(float(scale), shift, epsilon) == pytest.approx(slow, rel=1e-9, abs=1e-30)


@pytest.mark.parametrize("shift", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0])
def test_the_normal_curve_is_the_integral(shift: float, epsilon: float) -> None:
    worse = lambda y: max(norm.pdf(y - shift) - math.exp(epsilon) * norm.pdf(y), 0.0)  # noqa: E731
    begin = epsilon / shift + shift / 2
    assert gaussian_delta(shift, epsilon) == pytest.approx(quad(worse, begin, begin + 15)[0], rel=1e-6, abs=1e-12)


def most_above(scale: float, shift: int, least: float, points: int) -> float:
    """How much the discrete curve exceeds the normal one at most, as a share, where delta is at least `least`."""
    mu = shift / scale
    epsilons = [e for e in np.linspace(0, mu * (mu / 2 + 5), points) if gaussian_delta(mu, e) >= least]
    return max(discrete_gaussian_delta(scale, shift, e) / gaussian_delta(mu, e) for e in epsilons) - 1


def test_discrete_noise_is_not_exactly_gaussian() -> None:
    """The figures of docs/audit.md: both noises have rho of about 0.1, the second on a grid of 1,000 steps."""
    assert most_above(2.2, 1, 1e-5, 1500) == pytest.approx(0.14, abs=0.005)
    assert most_above(2236.0, 1000, 1e-6, 150) == pytest.approx(2e-7, abs=0.5e-7)


def test_a_larger_shift_gives_away_more() -> None:
    deltas = [discrete_gaussian_delta(2.2, shift, 0.4) for shift in range(6)]
    assert deltas == sorted(deltas)
    assert deltas[0] == 0.0


@pytest.mark.parametrize("scale", [1.5, 2.2, 30.0])
def test_the_epsilon_of_a_release_is_less_than_that_of_its_rho(scale: float) -> None:
    for delta in (1e-3, 1e-6):
        epsilon = release_epsilon(scale, 1, delta)
        assert discrete_gaussian_delta(scale, 1, epsilon) <= delta
        assert discrete_gaussian_delta(scale, 1, epsilon * (1 - 1e-6)) > delta
        assert epsilon < epsilon_of(1 / (2 * scale**2), delta)


def test_a_scale_that_is_too_large_is_refused() -> None:
    with pytest.raises(ValueError, match="scale must be at most"):
        discrete_gaussian_delta(1e9, 1, 0.5)
