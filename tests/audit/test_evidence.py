from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom, norm

import private_bandits as pb
from private_bandits.audit.evidence import (
    Claim,
    SampleMoments,
    clopper_pearson,
    epsilon_of_event,
    renyi_of_bernoullis,
    rho_of_event,
    rho_of_score,
)


@pytest.mark.parametrize("p", [0.0, 0.003, 0.2, 0.5, 0.97, 1.0])
@pytest.mark.parametrize("n", [1, 20, 300])
def test_clopper_pearson_is_wrong_no_more_often_than_stated(p: float, n: int) -> None:
    failure = 0.01
    hits = np.arange(n + 1)
    chances = binom.pmf(hits, n, p)
    bounds = [clopper_pearson(int(k), n, failure) for k in hits]
    assert sum(c for c, (low, _) in zip(chances, bounds, strict=True) if low > p) <= failure * (1 + 1e-9)
    assert sum(c for c, (_, high) in zip(chances, bounds, strict=True) if high < p) <= failure * (1 + 1e-9)


def test_renyi_divergence_of_bernoullis_matches_the_definition() -> None:
    p, q = 0.7, 0.2
    for alpha in (1.5, 2.0, 5.0):
        direct = math.log(p**alpha * q ** (1 - alpha) + (1 - p) ** alpha * (1 - q) ** (1 - alpha)) / (alpha - 1)
        assert renyi_of_bernoullis(p, q, np.array([alpha]))[0] == pytest.approx(direct, rel=1e-12)
    assert renyi_of_bernoullis(0.5, 0.0, np.array([2.0]))[0] == math.inf
    assert renyi_of_bernoullis(0.0, 0.5, np.array([2.0]))[0] == pytest.approx(math.log(2))
    assert np.isfinite(renyi_of_bernoullis(1e-300, 1e-280)).all()


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 2.0, 6.0])
def test_rho_of_randomised_response(epsilon: float) -> None:
    """Its zCDP is epsilon tanh(epsilon/2), decided at order one; a grid of orders comes close from below."""
    p = 1 / (1 + math.exp(-epsilon))
    exact = epsilon * math.tanh(epsilon / 2)
    assert exact * (1 - 1e-3) <= rho_of_event(p, 1 - p) <= exact * (1 + 1e-9)


def test_an_event_never_shows_more_than_a_gaussian_shift_costs() -> None:
    shift = 1.3
    for threshold in np.linspace(-4, 5, 40):
        p, q = norm.sf(threshold - shift), norm.sf(threshold)
        assert rho_of_event(p, q) <= shift**2 / 2 * (1 + 1e-12)
    assert rho_of_event(0.2, 0.7) == 0.0


def test_epsilon_of_an_event_and_of_its_complement() -> None:
    assert epsilon_of_event(0.5, 0.25) == pytest.approx(math.log(2))
    assert epsilon_of_event(1.0, 0.75) == math.inf
    assert epsilon_of_event(0.5, 0.25, delta=0.25) == 0.0
    assert epsilon_of_event(0.999, 0.99) == pytest.approx(math.log(0.01 / 0.001))


def test_empirical_bernstein_is_wrong_rarely_and_not_idle() -> None:
    generator = np.random.default_rng(3)
    failure, runs, wrong, reach = 0.02, 200, 0, []
    for _ in range(2000):
        sample = generator.beta(0.3, 2.0, runs)
        bound = SampleMoments.of(sample, 0.0, 1.0).bound(runs, failure, 1)
        wrong += bound < 0.3 / 2.3
        reach.append(bound - 0.3 / 2.3)
    assert binom.sf(wrong - 1, 2000, failure) > 1e-6
    assert np.mean(reach) < 0.2


@pytest.mark.parametrize("alpha", [1.0, 2.0])
@pytest.mark.parametrize("rho", [0.05, 0.5])
def test_a_score_proves_most_of_a_gaussian_shift_and_never_more(alpha: float, rho: float) -> None:
    generator = np.random.default_rng(1)
    shift, n, cap = math.sqrt(2 * rho), 400_000, 3.0
    p, q = generator.normal(shift / 2, 1, n), generator.normal(-shift / 2, 1, n)
    found = rho_of_score((shift * p).clip(-cap, cap), (shift * q).clip(-cap, cap), alpha, cap, failure=1e-5)
    assert 0.5 * rho < found < rho


def test_scores_of_equal_worlds_accuse_nobody() -> None:
    generator = np.random.default_rng(2)
    bounds = []
    for _ in range(400):
        p, q = generator.normal(size=(2, 500)).clip(-1, 1)
        bounds.append(rho_of_score(p, q, 1.0, 1.0, failure=0.05))
    assert np.mean(np.array(bounds) > 0) <= 0.05


def test_costs_in_the_units_of_the_claim() -> None:
    rho, epsilon = Claim("zCDP", 1.0), Claim("pure DP", 1.0)
    assert rho.cost("gaussian", 2.0, 3, 9) == Fraction(9, 8)
    assert epsilon.cost("laplace", 2.0, 3, 9) == Fraction(3, 2)
    kl = math.exp(-1.5) - 1 + 1.5  # at most the rho of Laplace noise at epsilon = 1.5, which is at most 1.5^2/2
    assert float(rho.cost("laplace", 2e9, 3 * 10**9, 9 * 10**18)) == pytest.approx(kl, rel=1e-6)
    assert epsilon.cost("gaussian", 2.0, 3, 9) > 10**100
    assert rho.cost("none", 0.0, 3, 9) > 10**100
    assert rho.cost("none", 0.0, 0, 0) == 0


def test_what_an_epsilon_delta_claim_leaves_room_for() -> None:
    """The Gaussian that just keeps (epsilon, delta), not the rho whose conversion implies it."""
    most = Claim("approximate DP", 1.0, 1e-6).most
    shift = math.sqrt(2 * most)
    exact = norm.cdf(shift / 2 - 1 / shift) - math.exp(1) * norm.cdf(-shift / 2 - 1 / shift)
    assert exact == pytest.approx(1e-6, rel=1e-6)
    assert most > pb.ApproxDP(1.0, 1e-6).level
    assert Claim("zCDP", 0.3).most == 0.3
