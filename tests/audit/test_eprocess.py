"""Wealth grows against a broken claim, and never on average against one that is kept, whatever was seen before."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest
from scipy.stats import binom

from private_bandits.audit.bets import ORDERS
from private_bandits.audit.eprocess import Bettor, average, gaussian_cells
from private_bandits.audit.evidence import Claim
from tests.audit.test_bets import divergence

P, Q = np.array([0.7, 0.3]), np.array([0.45, 0.55])
KEPT = [
    Claim("zCDP", max(divergence(*pair, a) / a for pair in ((P, Q), (Q, P)) for a in ORDERS)),
    Claim("pure DP", math.log(0.55 / 0.3)),
    Claim("approximate DP", math.log(0.5 / 0.3), 0.05),
]


def steps(bettor: Bettor, left: int) -> Iterator[tuple[float, float]]:
    """At every point that can be reached: the wealth, and what it is on average after one more pair."""
    after = 0.0
    for x, y in product((0, 1), repeat=2):
        later = copy.deepcopy(bettor)
        later.play(np.array([1.0 - x]), np.array([1.0 - y]))
        after += P[x] * Q[y] * math.exp(later.log_wealth)
        if left > 1:
            yield from steps(later, left - 1)
    yield math.exp(bettor.log_wealth), after


@pytest.mark.parametrize("claim", KEPT, ids=str)
def test_wealth_is_a_supermartingale(claim: Claim) -> None:
    """Bets, epsilons and shares follow the pairs before: every way that three pairs can go, without any chance."""
    found = list(steps(Bettor(claim, first=1), 3))
    assert len(found) == 21
    assert all(after <= before * (1 + 1e-9) for before, after in found)
    assert any(after < before for before, after in found)  # somebody did bet


def test_wealth_grows_if_less_was_claimed() -> None:
    generator = np.random.default_rng(0)
    x, y = (generator.random((2, 3000)) < np.array([[0.7], [0.45]])).astype(float)
    for claim in KEPT:
        broken = Bettor(Claim(claim.notion, claim.level / 4, claim.delta / 4))
        assert broken.play(x, y).max() > math.log(1e4)
        assert Bettor(claim).play(x, y).max() < math.log(1e4)


@pytest.mark.full
def test_a_claim_that_is_kept_is_seldom_refuted() -> None:
    generator = np.random.default_rng(1)
    runs, level = 200, 0.1
    refuted = 0
    for _ in range(runs):
        x, y = (generator.random((2, 300)) < np.array([[0.7], [0.45]])).astype(float)
        refuted += Bettor(KEPT[1]).play(x, y).max() >= math.log(1 / level)
    assert binom.sf(refuted - 1, runs, level) > 1e-6


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("notion", ["zCDP", "Gaussian DP"])
def test_twice_the_rho_is_seen_soon(notion: str, sign: int) -> None:
    """In 320 pairs on average (benchmarks/audit.py), whichever world has the larger scores."""
    generator = np.random.default_rng(2)
    x, y = generator.normal(sign, 0.5, 900), generator.normal(0.0, 0.5, 900)
    assert Bettor(Claim(notion, 1.0)).play(x, y).max() > math.log(1e4)


def test_pairs_may_come_in_any_portions() -> None:
    generator = np.random.default_rng(3)
    x, y = generator.normal(1, 1, 150), generator.normal(0, 1, 150)
    whole, parts = Bettor(Claim("zCDP", 0.1)), Bettor(Claim("zCDP", 0.1))
    paths = [parts.play(x[i : i + 7], y[i : i + 7]) for i in range(0, 150, 7)]
    assert np.concatenate(paths) == pytest.approx(whole.play(x, y))


def test_runs_that_are_known_already_save_pairs() -> None:
    generator = np.random.default_rng(4)
    x, y = generator.normal(1, 0.4, 1000), generator.normal(0, 0.4, 1000)
    known = Bettor(Claim("zCDP", 1.0), x[:500], y[:500])
    assert known.log_wealth == 0.0
    assert known.play(x[500:520], y[500:520])[-1] > Bettor(Claim("zCDP", 1.0)).play(x[500:520], y[500:520])[-1]


def test_worlds_that_never_differ_cost_next_to_nothing() -> None:
    same = np.zeros(200)
    path = Bettor(Claim("zCDP", 0.5)).play(same, same)
    assert path.max() <= 0
    assert np.isfinite(path).all()


def test_cells_of_a_shift() -> None:
    p, q = gaussian_cells(1.0, np.array([0.25, 0.5, 0.25]))
    assert (p + q) / 2 == pytest.approx([0.25, 0.5, 0.25], abs=1e-5)
    assert p == pytest.approx(q[::-1], abs=1e-5)
    assert p[2] > q[2]


def test_the_average_of_wealths() -> None:
    assert average(np.log([1.0, 3.0])) == pytest.approx(math.log(2))
    assert average(np.array([-math.inf, -math.inf])) == -math.inf
    assert average(np.array([0.0, 2000.0])) == pytest.approx(2000 - math.log(2))
