"""No bet gains on average against worlds that keep the claim: computed exactly, on worlds that just keep it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from scipy.stats import norm

from private_bandits.arrays import Floats
from private_bandits.audit.bets import ORDERS, best_payoff
from private_bandits.audit.evidence import Claim

CELLS = 5
Worlds = Callable[[np.random.Generator], tuple[Claim, Floats, Floats]]


def divergence(p: Floats, q: Floats, alpha: float) -> float:
    if alpha == 1.0:
        return float((p * np.log(p / q)).sum())
    return math.log(float((p**alpha * q ** (1 - alpha)).sum())) / (alpha - 1)


def blurred(generator: np.random.Generator, p: list[float], q: list[float]) -> tuple[Floats, Floats]:
    """What an observer sees who is shown a cell that depends on the outcome by chance."""
    rows = generator.dirichlet(np.full(CELLS, 0.3), size=len(p)) * (1 - 1e-9) + 1e-9 / CELLS
    return np.array(p) @ rows, np.array(q) @ rows


def just_zcdp(generator: np.random.Generator) -> tuple[Claim, Floats, Floats]:
    p, q = generator.dirichlet(np.full(CELLS, 2.0), size=2)
    rho = max(divergence(*pair, alpha) / alpha for pair in ((p, q), (q, p)) for alpha in ORDERS)
    return Claim("zCDP", rho), p, q


def just_gaussian(generator: np.random.Generator) -> tuple[Claim, Floats, Floats]:
    mu = generator.uniform(0.2, 2.0)
    edges = np.sort(generator.normal(0, 1, CELLS - 1)) + mu / 2
    p, q = (np.diff(norm.cdf(edges - at), prepend=0.0, append=1.0) for at in (mu, 0.0))
    return Claim("Gaussian DP", mu**2 / 2), p, q


def just_pure(generator: np.random.Generator) -> tuple[Claim, Floats, Floats]:
    epsilon = generator.uniform(0.2, 2.0)
    lie = 1 / (1 + math.exp(epsilon))
    return Claim("pure DP", epsilon), *blurred(generator, [1 - lie, lie], [lie, 1 - lie])


def just_approximate(generator: np.random.Generator) -> tuple[Claim, Floats, Floats]:
    epsilon, delta = generator.uniform(0.2, 2.0), 0.1
    lie = (1 - delta) / (1 + math.exp(epsilon))
    truth = 1 - delta - lie
    worlds = blurred(generator, [delta, truth, lie, 0.0], [0.0, lie, truth, delta])
    return Claim("approximate DP", epsilon, delta), *worlds


WORLDS = (just_zcdp, just_gaussian, just_pure, just_approximate)


def expectations(claim: Claim, p: Floats, q: Floats, generator: np.random.Generator) -> Iterator[float]:
    """Of payoffs that are best for the worlds as they are, for the other direction, and for worlds unlike them."""
    thought = generator.dirichlet(np.ones(CELLS), size=2) * 0.999 + 0.001 / CELLS
    for expected in ((p, q), (q, p), tuple(thought)):
        payoff = best_payoff(claim, *expected)
        assert payoff.min() >= -1e-12
        yield float(p @ payoff @ q)


@pytest.mark.parametrize("worlds", WORLDS)
def test_nobody_gains_against_worlds_that_just_keep_the_claim(worlds: Worlds) -> None:
    generator = np.random.default_rng(0)
    for _ in range(12):
        claim, p, q = worlds(generator)
        assert max(expectations(claim, p, q, generator)) <= 1 + 1e-9


@pytest.mark.parametrize("worlds", WORLDS)
def test_who_knows_the_worlds_gains_if_less_was_claimed(worlds: Worlds) -> None:
    generator = np.random.default_rng(1)
    grown = []
    for _ in range(8):
        claim, p, q = worlds(generator)
        payoff = best_payoff(Claim(claim.notion, claim.level / 2, claim.delta / 2), p, q)
        grown.append(float(p @ np.log(payoff) @ q))
    assert min(grown) >= -1e-9
    assert np.mean(np.array(grown) > 1e-4) > 0.7


def test_a_claim_of_nothing_is_refuted_by_anything() -> None:
    p, q = np.array([0.6, 0.4]), np.array([0.4, 0.6])
    payoff = best_payoff(Claim("pure DP", 0.0), p, q)
    assert float(p @ np.log(payoff) @ q) > 0
    assert float(q @ payoff @ q) <= 1 + 1e-12
