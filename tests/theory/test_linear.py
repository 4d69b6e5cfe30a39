"""AdaC-GOPE and AdaC-OFUL: bounds against values worked out by hand, and measured regret below them."""

from __future__ import annotations

import itertools
import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import private_bandits as pb
from private_bandits.budget import Budget
from private_bandits.errors import InvalidInput
from private_bandits.policies.adac_gope import paper_length
from private_bandits.policies.contextual import STEPS
from private_bandits.theory import (
    adac_gope_closed,
    adac_gope_regret,
    adac_oful_regret,
    adac_oful_stochastic,
    eigenvalue_floor,
    settled_from,
)


def directions(arms: int, dimension: int, seed: int) -> pb.Linear:
    drawn = np.random.default_rng(seed).normal(size=(arms + 1, dimension))
    drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
    return pb.Linear(drawn[:arms], drawn[arms])


# AdaC-GOPE


def test_the_length_of_a_phase_by_hand() -> None:
    # d = 2, K = 4, delta = 0.1, l = 1, so that x = 1/80: c = 8*2*4 log 320 + 8 sqrt(4 b f)
    f = 2 + 2 * math.sqrt(2 * math.log(160)) + 2 * math.log(160)
    assert paper_length(1, 2, 4, 0.1, 5.0) == pytest.approx(64 * math.log(320) + 8 * math.sqrt(20 * f), rel=1e-12)
    policy = pb.AdaCGOPE(actions=np.eye(4)[:, :2] + 0.1, budget=pb.zCDP(0.1), delta=0.1, action_norm=2, variant="paper")
    assert policy.length(1, range(4)) == paper_length(1, 2, 4, 0.1, 5.0)


def test_the_sum_over_phases_by_hand() -> None:
    # without privacy, d = 2, K = 3: phases of c_l + 3, the third one cut at T; a step costs 2, 2, 1 with tol = 0
    first, second = (paper_length(phase, 2, 3, 0.05, 0.0) + 3 for phase in (1, 2))
    steps = int(first + second) + 1000
    hand = 2 * (first + second) + 1 * (steps - first - second)
    assert adac_gope_regret(2, 3, steps, math.inf, 0.05, tol=0.0).value == pytest.approx(hand, rel=1e-12)
    # gaps 0.9 and 0.3: both until 4 * 2^(1-l) < 0.9, that is for l <= 3; 0.3 for l = 4; none at l = 5: 4/16 < 0.3
    lengths = [paper_length(phase, 2, 3, 0.05, 5.0) + 3 for phase in (1, 2, 3, 4)]
    with_gaps = adac_gope_regret(2, 3, 10**9, 0.1, 0.05, tol=0.0, gaps=[0, 0.9, 0.3])
    assert with_gaps.value == pytest.approx(0.9 * sum(lengths[:3]) + 0.3 * lengths[3], rel=1e-12)
    assert with_gaps.private > 0


def test_the_closed_form_by_hand() -> None:
    # T = 10^4, d = 2, K = 3, delta = 0.05, rho = 0.1, tol = 0: three phases begin (c_1 + c_2 < 10^4 < c_1 + c_2 + c_3)
    c = [paper_length(phase, 2, 3, 0.05, 5.0) for phase in (1, 2, 3)]
    assert c[0] + c[1] < 10**4 < sum(c)
    x = 0.05 / (3 * 3 * 4)
    f = 2 + 2 * math.sqrt(2 * math.log(2 / x)) + 2 * math.log(2 / x)
    hand = 64 * math.sqrt(2e4 * math.log(4 / x)) + 16 * 2 * 3 * math.sqrt(20 * f) + 24
    bound = adac_gope_closed(2, 3, 10**4, 0.1, 0.05, tol=0.0)
    assert bound.value == pytest.approx(hand, rel=1e-12)
    assert bound.private == pytest.approx(96 * math.sqrt(20 * f), rel=1e-12)
    assert bound.of == "regret, with probability at least 0.95"


def test_the_closed_form_is_never_the_smaller() -> None:
    for d, k, steps, rho in [(1, 2, 100, 1), (3, 10, 10**5, 0.01), (8, 60, 10**7, 0.1), (3, 10, 10**9, math.inf)]:
        by_phases, closed = adac_gope_regret(d, k, steps, rho), adac_gope_closed(d, k, steps, rho)
        assert by_phases.value <= closed.value
        assert by_phases.value <= 2 * steps


def test_the_private_part_grows_faster_than_the_dimension() -> None:
    """What the paper's universal constant B would exclude: with d the private part grows as d^(3/2)."""

    def over_the_printed(d: int) -> float:
        steps = 10**15
        log_inv_failure = math.log(2 * d * math.log(steps) / 1e-3)
        return adac_gope_closed(d, 2 * d, steps, 0.1).private / (d * math.sqrt(log_inv_failure) * math.log(steps))

    assert over_the_printed(100_000) > 10 * over_the_printed(100)


def test_what_needs_what_in_linear_bandits() -> None:
    assert adac_gope_regret(3, 10, 10**5, 0.1).holds
    assert not adac_gope_regret(3, 10, 10**5, 0.1, bounded=False).holds
    assert not adac_gope_closed(3, 10, 10**5, 0.1, in_ball=False).holds
    with pytest.raises(InvalidInput, match="tol"):
        adac_gope_closed(3, 10, 10**5, 0.1, tol=-0.1)
    with pytest.raises(InvalidInput, match="hanna_order"):
        adac_gope_regret(3, 10, 10**5, pb.PureDP(1))


def test_measured_regret_of_elimination_is_below_the_bounds() -> None:
    """Every run: 320 of them may fail with probability 1e-4 each."""
    telling = 0
    for arms, dimension, seed in [(10, 3, 0), (4, 2, 1), (30, 5, 2), (3, 3, 3)]:
        world = directions(arms, dimension, seed)
        gaps = (world.means.max() - world.means).tolist()
        for horizon in (10**5, 10**7):
            budgets = {"0.01": pb.zCDP(0.01), "1": pb.zCDP(1), "none": pb.NoPrivacy(), "e": pb.ApproxDP(1, 1e-6)}
            policies = {
                name: pb.AdaCGOPE(world.actions, budget, delta=1e-4, variant="paper")
                for name, budget in budgets.items()
            }
            result = pb.simulate(policies, world, horizon, runs=10, seed=5, progress=False)
            for name, budget in budgets.items():
                size = (dimension, arms, horizon, budget, 1e-4)
                for bound in (adac_gope_regret(*size, gaps=gaps), adac_gope_regret(*size), adac_gope_closed(*size)):
                    assert bound.holds
                    assert result.final[name].max() <= bound.value, (arms, horizon, name, bound.name)
                    telling += bound.value < horizon * max(gaps)
    assert telling > 40


# AdaC-OFUL


def test_any_contexts_by_hand() -> None:
    # d = 2, T = 10^4, lambda = 1/2, so 1 + T/(lambda d) = 10001; C = 3, delta = 0.01, S = 1, rho = 1/2: 4 b = 4
    log_det = 2 * math.log(10001)
    width = math.sqrt(2 * math.log(100) + log_det) + math.sqrt(0.5)
    f = 2 + 2 * math.sqrt(2 * math.log(1e6)) + 2 * math.log(1e6)
    noise = math.sqrt(4 * log_det / math.log(4) * f / 0.5)
    factor = 2 * math.sqrt(4 * 2 * log_det * 1e4)
    bound = adac_oful_regret(2, 10**4, 0.5, delta=0.01, regulariser=0.5, growth=3)
    assert bound.value == pytest.approx(factor * (width + noise), rel=1e-12)
    assert bound.private == pytest.approx(factor * noise, rel=1e-12)
    assert bound.of == "regret, with probability at least 0.98"


def test_stochastic_contexts_by_hand() -> None:
    # d = 1, lambda = 1, lambda_0 = 1, C = 1, T = 10^6, delta = 0.01, rho = 1/2
    log_det = math.log(10**6 + 1)
    releases, p = log_det / math.log(2), 2 * log_det
    width = math.sqrt(2 * math.log(100) + log_det) + 1
    f = 1 + 2 * math.sqrt(math.log(1e8)) + 2 * math.log(1e8)
    factor, noise = 2 * math.sqrt(2 * p), math.sqrt(4 * releases * f)
    t_one = 2 + 2 * settled_from(1.0, 0.01, 1, 1.0)
    early = min(2 * t_one, factor * noise * math.sqrt(t_one))
    proven = adac_oful_stochastic(1, 10**6, 0.5, 1.0, delta=0.01, regulariser=1.0)
    hand = factor * (width * 1000 + noise * math.sqrt(8 * 3 * releases)) + early
    assert proven.value == pytest.approx(hand, rel=1e-12)
    assert proven.holds
    assert proven.of == "regret, with probability at least 0.97"  # 1 - 3 delta, not 1 - delta
    g = 250_000 - 8 * math.log(1.000003e8) - 2 * math.sqrt(1e6 * math.log(1.000003e8))
    printed = adac_oful_stochastic(1, 10**6, 0.5, 1.0, delta=0.01, regulariser=1.0, form="paper")
    late = noise * math.sqrt(1e6 / (1 + g) * 4 * releases)
    assert printed.value == pytest.approx(factor * (width * 1000 + late), rel=1e-12)


def test_the_traps_of_the_contextual_theorem_are_told() -> None:
    needs = dict(adac_oful_stochastic(3, 10**7, 0.1, 0.1, form="paper", regulariser=0.1).assumptions)
    assert needs["lambda >= 1"] is False
    assert dict(adac_oful_stochastic(3, 10**7, 0.1, 0.1, form="paper", regulariser=1.0).assumptions)["lambda >= 1"]
    assert "lambda >= 1" not in dict(adac_oful_stochastic(1, 10**7, 0.1, 1.0, regulariser=0.1).assumptions)
    assert adac_oful_stochastic(1, 10**7, 0.1, 1.0, regulariser=0.1).holds
    assert eigenvalue_floor(1000, 0.1, 1e-3, 3) < 0
    assert adac_oful_stochastic(3, 1000, 0.1, 0.1, form="paper").value == math.inf  # lambda + g(T) < 0
    assert not adac_oful_regret(3, 100, 0.1, delta=0.9, regulariser=1e-4).holds  # widths below one
    assert not adac_oful_regret(3, 100, 0.1, in_ball=False).holds
    assert not adac_oful_stochastic(1, 10**4, 0.1, 1.0, on_sphere=False).holds
    with pytest.raises(InvalidInput, match="eigenvalue"):
        adac_oful_stochastic(1, 100, 0.1, 1e-30)
    with pytest.raises(InvalidInput, match=r"zCDP\(epsilon"):
        adac_oful_regret(3, 100, pb.PureDP(1))


@pytest.mark.parametrize(
    ("eigenvalue", "delta", "dimension", "regulariser"), [(1.0, 0.1, 1, 1.0), (0.4, 0.01, 2, 50.0)]
)
def test_from_when_on_the_eigenvalue_is_large(
    eigenvalue: float, delta: float, dimension: int, regulariser: float
) -> None:
    start = settled_from(eigenvalue, delta, dimension, regulariser)

    def enough(t: int) -> bool:
        return regulariser + eigenvalue_floor(t, eigenvalue, delta, dimension) >= eigenvalue * t / 8

    assert all(enough(t) for t in range(start, 20 * start, 7))
    assert not enough(start - 1)


@pytest.mark.parametrize("dimension", [2, 3, 5])
def test_no_contexts_meet_the_papers_assumption(dimension: int) -> None:
    """Var (z'a)^2, averaged over directions z, exceeds lambda_0^2/(8 log 4), for unit vectors of any distribution."""
    chance = np.random.default_rng(dimension)
    for spread in (0.0, 0.1, 1.0, 10.0):
        atoms = chance.normal(size=(40, dimension)) + spread * np.eye(dimension)[0]
        atoms /= np.linalg.norm(atoms, axis=1, keepdims=True)
        weights = chance.dirichlet(np.ones(40))
        second = (atoms * weights[:, None]).T @ atoms
        least = np.linalg.eigvalsh(second)[0]
        z = chance.normal(size=(4000, dimension))
        squares = ((z / np.linalg.norm(z, axis=1, keepdims=True)) @ atoms.T) ** 2
        variances = squares**2 @ weights - (squares @ weights) ** 2
        closed = 2 * (1 - (second**2).sum()) / (dimension * (dimension + 2))
        assert variances.mean() == pytest.approx(closed, abs=5 * variances.std() / math.sqrt(4000))
        assert closed > least**2 / (8 * math.log(4))


OPTIMISM: list[tuple[Budget, dict[str, Any]]] = [
    (pb.zCDP(1e5), {"regulariser": 1.0, "growth": 0.5, "delta": 1e-4}),
    (pb.NoPrivacy(), {"regulariser": 0.1, "growth": 2.0, "delta": 1e-4}),
]
"""Budgets and parameters of which the bound at 20,000 steps says more than that a step costs 2 at most."""


@pytest.mark.parametrize(("budget", "shape"), OPTIMISM)
def test_measured_regret_of_optimism_is_below_the_bound(budget: Budget, shape: dict[str, Any]) -> None:
    """A run, played step by step, may fail with probability 2e-4."""
    horizon = 20_000
    world = pb.Contextual(dimension=2, arms=3, theta=[0.6, 0.8])
    policy = pb.AdaCOFUL(dimension=2, budget=budget, horizon=horizon, **shape)
    bound = adac_oful_regret(2, horizon, budget, **shape)
    assert bound.holds
    assert play(policy, world, horizon, np.random.default_rng(3)) <= bound.value < 2 * horizon


@pytest.mark.full
def test_measured_regret_of_optimism_is_below_the_bound_over_a_grid() -> None:
    """Every run: 160 of them may fail with probability 2e-4 each."""
    for dimension, horizon, regulariser in itertools.product((2, 5), (10**4, 10**6), (0.1, 1.0)):
        world = pb.Contextual(dimension, arms=10, theta=[dimension**-0.5 * (1 - 1e-12)] * dimension)
        budgets = {"none": pb.NoPrivacy(), "100": pb.zCDP(100), "1": pb.zCDP(1), "0.01": pb.zCDP(0.01)}
        shape: dict[str, Any] = {"regulariser": regulariser, "delta": 1e-4}
        policies = {n: pb.AdaCOFUL(dimension=dimension, budget=b, horizon=horizon, **shape) for n, b in budgets.items()}
        result = pb.simulate(policies, world, horizon, runs=5, seed=2, progress=False)
        for name, budget in budgets.items():
            assert result.final[name].max() <= adac_oful_regret(dimension, horizon, budget, **shape).value


class Signs:
    """Contexts that meet the paper's Assumption 2: in one dimension, two actions that are +1 or -1 each."""

    theta = (0.5,)
    reward_range = (-1.0, 1.0)

    def draw_actions(self, chance: np.random.Generator) -> np.ndarray:
        return chance.choice([-1.0, 1.0], size=(2, 1))

    def draw_reward(self, chance: np.random.Generator, action: np.ndarray) -> float:
        return 1.0 if 2 * chance.random() - 1 < 0.5 * float(action[0]) else -1.0


@pytest.mark.full
def test_measured_regret_where_the_contexts_are_as_the_paper_assumes() -> None:
    horizon = 10**5
    policy = pb.AdaCOFUL(dimension=1, budget=pb.zCDP(0.1), horizon=horizon, regulariser=0.1)
    bound = adac_oful_stochastic(1, horizon, 0.1, eigenvalue=1.0)
    assert bound.holds
    assert play(policy, Signs(), horizon, np.random.default_rng(4)) <= bound.value < 2 * horizon


def play(policy: pb.AdaCOFUL, world: Any, horizon: int, chance: np.random.Generator) -> float:
    """Regret of one run, plainly; rewards in [-1, 1]."""
    state, theta, regret = policy.start(-1.0, 1.0), np.array(world.theta), 0.0
    noise_sd = 2 * STEPS * math.sqrt(policy.budget.variance_factor)
    total, count = np.zeros(policy.dimension), 0
    for step in range(1, horizon + 1):
        actions = world.draw_actions(chance)
        offered = policy.offer(actions)
        chosen = policy.choose(state, offered, step)
        means = actions @ theta
        regret += float(means.max() - means[chosen])
        _, weight = policy.entry_of(state, offered, chosen)
        policy.arrive(state, 0, weight)
        total, count = total + np.array(weight) * world.draw_reward(chance, actions[chosen]), count + 1
        if policy.due(state, 0, count, {}):
            values = total + noise_sd * chance.standard_normal(len(total))
            noisy: Any = SimpleNamespace(values=values, count=count)
            policy.learn(state, noisy, step)
            total, count = np.zeros(policy.dimension), 0
    return regret
