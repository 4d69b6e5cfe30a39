"""Widths against their formulas, and how often they fail."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import private_bandits as pb
from private_bandits.budget import Budget
from private_bandits.policies.base import Variant
from private_bandits.theory import (
    Coverage,
    ellipsoid_coverage,
    ellipsoid_width,
    index_coverage,
    index_width,
    phase_coverage,
    phase_width,
)
from tests.theory.test_linear import directions


def test_index_widths_by_hand() -> None:
    # n = 8, beta log t = 4, rho = 1/2: sqrt((1/16 + 2/64) * 4); epsilon = 2: sqrt(4/16) + 4/16
    step = math.exp(2)
    assert index_width(8, step, 0.5, beta=2) == pytest.approx(math.sqrt(6 / 16), rel=1e-12)
    assert index_width(8, step, pb.PureDP(2), beta=2) == pytest.approx(0.75, rel=1e-12)
    assert index_width(8, step, math.inf, beta=2) == pytest.approx(0.5, rel=1e-12)


def test_phase_widths_by_hand() -> None:
    """Two unit vectors: the design is uniform, V = n I, so ||a||^2 = 1/n."""
    policy = pb.AdaCGOPE(actions=np.eye(2), budget=pb.zCDP(0.5), delta=0.1, variant="paper")
    n = math.ceil(policy.length(1, [0, 1]) / 2)
    found = phase_width(policy)
    log_inv_failure = math.log(4 * 2 * 2 / 0.1)
    f = 2 + 2 * math.sqrt(2 * math.log(40 * 2)) + 2 * math.log(40 * 2)
    assert found.aimed == 0.5
    # noise of variance b (2 ||a||)^2 = 4/n on V^(-1/2) * sum of a r, hence 4/n^2 at an action
    hand = math.sqrt(2 * log_inv_failure / n) + 2 / n * math.sqrt(2 * log_inv_failure)
    assert found.reached == pytest.approx(hand, rel=1e-9)
    assert found.paper == pytest.approx(math.sqrt(2 * log_inv_failure / n) + math.sqrt(4 * f) / n, rel=1e-9)
    assert phase_width(policy, 3).aimed == 0.125


@pytest.mark.parametrize("rho", [1e-4, 0.1, 10.0])
@pytest.mark.parametrize("phase", [1, 2, 4])
def test_a_phase_as_printed_reaches_what_it_aims_at(rho: float, phase: int) -> None:
    """c_l is long enough for the paper's width, but for what the design misses; and that is above the policy's."""
    found = phase_width(pb.AdaCGOPE(directions(12, 4, 1).actions, pb.zCDP(rho), variant="paper"), phase)
    assert found.reached <= found.paper <= found.aimed * (1 + 1e-3)


def test_ellipsoid_widths_by_hand() -> None:
    # V = diag(2, 8), lambda = 1/2, d = 2, l = 3, rho = 1/2, T/delta = 10^4
    options: dict[str, Any] = {"horizon": 100, "regulariser": 0.5, "delta": 0.01, "parameter_norm": 2}
    policy = pb.AdaCOFUL(dimension=2, budget=pb.zCDP(0.5), variant="paper", **options)
    f = 2 + 2 * math.sqrt(2 * math.log(1e4)) + 2 * math.log(1e4)
    hand = math.sqrt(2 * math.log(100) + math.log(16 / 0.25)) + 2 * math.sqrt(0.5) + math.sqrt(4 * 3 * f / 2)
    assert ellipsoid_width(policy, np.diag([2.0, 8.0]), releases=3) == pytest.approx(hand, rel=1e-12)
    # tight: n = floor(2 log2(1 + 100)) = 13, S_13 and S_3 of c = 1, 1/2, 3/8, ...; chi-square with two degrees
    tight = replace(policy, variant="tight")
    squares = [(math.comb(2 * k, k) / 4**k) ** 2 for k in range(13)]
    chi = -2 * math.log(0.01 / 28)  # for n + 1 releases, as one may be a log's
    hand = math.sqrt(2 * math.log(200) + math.log(16 / 0.25)) + 2 * math.sqrt(0.5)
    hand += math.sqrt(4 * sum(squares) * sum(squares[:3]) * chi / 2)
    assert tight.cap == 13
    assert ellipsoid_width(tight, np.diag([2.0, 8.0]), releases=3) == pytest.approx(hand, rel=2e-3)


@pytest.mark.parametrize("budget", [pb.zCDP(0.001), pb.zCDP(1), pb.NoPrivacy(), pb.PureDP(0.05), pb.PureDP(2)])
@pytest.mark.parametrize(("mean", "count"), [(0.5, 1), (0.5, 32), (0.95, 8)])
def test_index_widths_fail_as_rarely_as_promised(budget: Budget, mean: float, count: int) -> None:
    measured = index_coverage(mean, count, budget, failure=0.05, runs=20_000, seed=count)
    assert measured.kept, measured


def test_the_widths_of_noise_alone_are_nearly_used_up() -> None:
    """A test of widths that could not fail would say nothing: a fifth off and this one is broken."""
    chance = np.random.default_rng(0)
    width = index_width(1, 1 / 0.05, 1e-4, beta=1.0)  # noise of sd 70.7 on one reward
    noise = math.sqrt(5000) * chance.standard_normal(10**5)
    assert Coverage(0.1, int((np.abs(noise) > 0.6 * width).sum()), 10**5).kept is False
    assert 0.01 < (np.abs(noise) > width).mean() < 0.1


@pytest.mark.parametrize("rho", [1e-4, 0.1, math.inf])
def test_phase_widths_fail_as_rarely_as_promised(rho: float) -> None:
    world = directions(10, 3, 0)
    policy = pb.AdaCGOPE(world.actions, pb.NoPrivacy() if rho == math.inf else pb.zCDP(rho), delta=0.9, variant="paper")
    measured = phase_coverage(policy, world, runs=5000)
    assert measured.kept
    assert measured.promised == 0.45


@pytest.mark.parametrize("variant", pb.AdaCOFUL.variants)
@pytest.mark.parametrize("budget", [pb.zCDP(0.1), pb.NoPrivacy()])
def test_ellipsoids_fail_as_rarely_as_promised(budget: Budget, variant: Variant) -> None:
    policy = pb.AdaCOFUL(dimension=2, budget=budget, horizon=100, delta=0.05, regulariser=0.1, variant=variant)
    measured = ellipsoid_coverage(policy, pb.Contextual(2, 5, [0.6, 0.79]), steps=100, runs=60)
    assert measured.kept
    assert (measured.promised, measured.runs) == (0.1 if variant == "paper" else 0.05, 60)


def test_too_narrow_an_ellipsoid_is_found_out() -> None:
    """Widths for a parameter of norm 1e-9 and rewards that never stray: theta is then outside at once."""
    shape = {"regulariser": 50.0, "delta": 0.999, "parameter_norm": 1e-9, "variant": "paper"}
    policy = pb.AdaCOFUL(dimension=2, budget=pb.NoPrivacy(), **shape)  # type: ignore[arg-type]
    measured = ellipsoid_coverage(policy, pb.Contextual(2, 5, [0.6, 0.79]), steps=300, runs=30)
    assert measured.failures == 30
    assert not Coverage(0.05, measured.failures, measured.runs).kept


@pytest.mark.full
@pytest.mark.parametrize("variant", pb.AdaCOFUL.variants)
@pytest.mark.parametrize("rho", [0.01, 1.0, math.inf])
def test_ellipsoids_fail_as_rarely_as_promised_over_long_runs(rho: float, variant: Variant) -> None:
    budget: Budget = pb.NoPrivacy() if rho == math.inf else pb.zCDP(rho)
    policy = pb.AdaCOFUL(dimension=3, budget=budget, horizon=1000, delta=0.05, regulariser=0.1, variant=variant)
    assert ellipsoid_coverage(policy, pb.Contextual(3, 10, [0.6, 0.48, 0.63]), steps=1000, runs=100).kept
