"""The engines of the rivals against the agent, against plain loops, and against the definition of their noise."""

from __future__ import annotations

import json
import math
import random
from typing import Any

import numpy as np
import pytest
from scipy import stats
from typer.testing import CliRunner

import private_bandits as pb
from private_bandits.budget import Budget
from private_bandits.cli import app
from private_bandits.mechanism.tree import is_complete, nodes_after
from private_bandits.policies import Policy
from private_bandits.simulation import steps
from private_bandits.simulation.elimination import EliminationRuns
from private_bandits.simulation.simulated_noise import noise_draws
from tests.simulation.test_finite import Certain, same_distribution

trees = pytest.importorskip("private_bandits.simulation.trees")


def engine_and_agent(policy: Policy[Any], environment: Certain, horizon: int) -> tuple[Any, Any]:
    """Regret at every step. The gaps differ from arm to arm, so equal regret means equal actions."""
    every = range(1, horizon + 1)
    fast = pb.simulate({"p": policy}, environment, horizon, runs=1, checkpoints=every, progress=False).curves["p"][0]
    return fast, steps.actions_and_regret(policy, environment, horizon, np.random.default_rng(0))[1]


def no_noise(arms: int) -> list[Policy[Any]]:
    return [
        pb.DPSE(arms, pb.NoPrivacy(), horizon=100, epoch_factor=0.02),
        pb.DPSE(arms, pb.NoPrivacy(), horizon=1),
        pb.TreeUCB(arms, pb.NoPrivacy(), horizon=1000),
        pb.TreeUCB(arms, pb.NoPrivacy(), horizon=5),  # many trees one after the other
    ]


@pytest.mark.parametrize("which", range(4))
@pytest.mark.parametrize(
    "environment",
    [
        Certain((0.75, 0.625, 0.5, 0.375, 0.25)),
        Certain((0.125, 0.875)),
        Certain((0.25,)),
        Certain((-2.0, 0.5, 3.0), reward_range=(-2.0, 6.0)),
    ],
    ids=str,
)
def test_same_actions_as_the_agent_on_certain_rewards_without_noise(environment: Certain, which: int) -> None:
    fast, slow = engine_and_agent(no_noise(len(environment.values))[which], environment, 900)
    np.testing.assert_allclose(fast, slow, atol=1e-9)


@pytest.mark.parametrize("horizon", [1, 2, 4, 5, 6])
@pytest.mark.parametrize("which", range(4))
def test_horizons_shorter_than_the_first_pulls(horizon: int, which: int) -> None:
    fast, slow = engine_and_agent(no_noise(5)[which], Certain((0.0, 0.25, 0.5, 0.75, 1.0)), horizon)
    np.testing.assert_allclose(fast, slow)


@pytest.mark.parametrize(
    ("policy", "horizon"),
    [
        (pb.DPSE(3, pb.PureDP(1.0), horizon=10, epoch_factor=0.02), 300),
        pytest.param(pb.DPSE(3, pb.NoPrivacy(), horizon=10, epoch_factor=0.02), 300, marks=pytest.mark.full),
        pytest.param(pb.TreeUCB(3, pb.PureDP(20.0), horizon=300), 120, marks=pytest.mark.full),
        pytest.param(pb.TreeUCB(3, pb.zCDP(5.0), horizon=300), 120, marks=pytest.mark.full),
        (pb.TreeUCB(3, pb.zCDP(5.0), horizon=20), 120),
        pytest.param(pb.TreeUCB(3, pb.NoPrivacy(), horizon=300), 120, marks=pytest.mark.full),
    ],
    ids=str,
)
def test_same_distribution_as_the_agent(policy: Policy[Any], horizon: int) -> None:
    environment = pb.Bernoulli([0.1, 0.95, 0.6])
    generator = np.random.default_rng(3)
    slow = [steps.actions_and_regret(policy, environment, horizon, generator)[1][-1] for _ in range(150)]
    fast = pb.simulate({"p": policy}, environment, horizon, runs=4000, seed=6, progress=False).final["p"]
    assert fast.std() > 1
    assert same_distribution(slow, fast)


def plain_elimination(means: list[float], epsilon: float, factor: float, horizon: int, chance: random.Random) -> float:
    """Sajed and Sheffet's Algorithm 2, one play at a time, with continuous noise; written without the package."""
    active, regret, t, e, best = list(range(len(means))), 0.0, 0, 0, 0
    while t < horizon:
        e += 1
        if len(active) == 1:
            return regret + (horizon - t) * (max(means) - means[active[0]])
        gap, size = 2.0**-e, len(active)
        log8 = math.log(8 * size * e**2 * horizon)
        log4 = math.log(4 * size * e**2 * horizon)
        rounds = math.ceil(factor * max(32 * log8 / gap**2, 8 * log4 / (epsilon * gap))) + 1
        totals = dict.fromkeys(active, 0.0)
        for _ in range(rounds):
            for arm in active:
                if t == horizon:
                    return regret
                totals[arm] += chance.random() < means[arm]
                regret += max(means) - means[arm]
                t += 1
        noisy = {}
        for arm in active:
            laplace = (chance.expovariate(1) - chance.expovariate(1)) / epsilon
            noisy[arm] = (totals[arm] + laplace) / rounds
        best = max(active, key=lambda arm: noisy[arm])
        allowed = 2 * math.sqrt(log8 / (2 * rounds)) + 2 * log4 / (rounds * epsilon)
        active = [arm for arm in active if noisy[best] - noisy[arm] <= allowed]
    return regret


@pytest.mark.parametrize("epsilon", [0.3, *(pytest.param(e, marks=pytest.mark.full) for e in (3.0, math.inf))])
def test_dp_se_has_the_distribution_of_a_plain_loop(epsilon: float) -> None:
    means, horizon, factor = [0.2, 0.9, 0.6, 0.85], 4000, 0.02
    chance = random.Random(12)
    loop = [plain_elimination(means, epsilon, factor, horizon, chance) for _ in range(250)]
    budget: Budget = pb.NoPrivacy() if math.isinf(epsilon) else pb.PureDP(epsilon)
    policy = pb.DPSE(4, budget, horizon=horizon, epoch_factor=factor)
    fast = pb.simulate({"p": policy}, pb.Bernoulli(means), horizon, runs=20_000, seed=7, progress=False).final["p"]
    assert fast.std() > 1
    assert same_distribution(loop, fast)


def test_dp_se_as_published_on_the_papers_instance() -> None:
    """One run of the plain loop at full length: epochs are so long that what is dropped, and when, is all but sure."""
    means, horizon = [0.75, 0.625, 0.5, 0.375, 0.25], 100_000
    loop = plain_elimination(means, 1.0, 1.0, horizon, random.Random(1))
    policy = pb.DPSE(5, pb.PureDP(1.0), horizon=horizon)
    fast = pb.simulate({"p": policy}, pb.Bernoulli(means), horizon, runs=200, progress=False).final["p"]
    assert fast.min() <= loop <= fast.max()


def test_curves_of_dp_se_are_exact_within_an_epoch() -> None:
    policy = pb.DPSE(3, pb.NoPrivacy(), horizon=100)
    runs = EliminationRuns(policy, pb.Bernoulli([0.5, 0.25, 0.0]), 100, 1, np.random.default_rng(0))
    assert runs.play_epoch(1) == 0
    found = runs.runs[0].regrets(np.arange(1, 101), runs.gaps)
    np.testing.assert_allclose(found, np.cumsum(np.tile([0.0, 0.25, 0.5], 34)[:100]))


@pytest.mark.parametrize("levels", [1, 3, 5])
def test_a_prefix_holds_the_noises_of_its_nodes(levels: int) -> None:
    """The noise of node i is 2^i here, so that a sum says which nodes are in it."""
    forest = trees.plant(1, levels)
    nodes: list[int] = []
    for leaf in range(1, 2**levels):
        nodes = nodes_after(nodes, 2**leaf, leaf, levels)
        assert trees.prefix_noise(forest.upper[0], leaf, 2.0**leaf) == sum(nodes)
        assert len(nodes) == leaf.bit_count()
    assert is_complete(2**levels - 1, levels)


@pytest.mark.parametrize("budget", [pb.PureDP(0.7), pb.zCDP(0.7)], ids=str)
def test_the_noise_of_a_prefix_has_its_defined_distribution(budget: Budget) -> None:
    """After n rewards of one arm: as many draws as n has ones, of scale 3 L/epsilon or variance 9 L/(2 rho).

    Rewards are zero, and the width of the index is known, so that what is left of it is noise.
    """
    policy, leaves, count = pb.TreeUCB(1, budget, horizon=15), 11, 3000
    environment = Certain((0.0,), reward_range=(0.0, 3.0))
    generator, direct = np.random.default_rng(8), np.random.default_rng(9)
    found = []
    for _ in range(count):
        run = trees.TreeRun(policy, environment, leaves, generator)
        run.play(leaves)
        found.append(float(run.forest.fixed[0]) * leaves - 3 * policy.half_width(3))
    if isinstance(budget, pb.PureDP):
        expected = direct.laplace(scale=3 * 4 / 0.7, size=(count, 3)).sum(axis=1)
        variance, kurtosis = 3 * 2 * (12 / 0.7) ** 2, 3 / 3
    else:
        expected = direct.normal(scale=3 * math.sqrt(4 / (2 * 0.7)), size=(count, 3)).sum(axis=1)
        variance, kurtosis = 3 * 9 * 4 / 1.4, 0.0
    assert stats.ks_2samp(found, expected).pvalue > 1e-4
    # The variance of a sample variance is variance^2 (2 + excess kurtosis)/n, about; five standard errors.
    assert abs(np.var(found) - variance) < 5 * variance * math.sqrt((2 + kurtosis) / count)


def test_noise_draws_have_the_scale_of_the_budget() -> None:
    generator = np.random.default_rng(10)
    laplace = noise_draws(pb.PureDP(0.5), 2.0, generator, 20_000)
    assert stats.kstest(laplace, stats.laplace(scale=4.0).cdf).pvalue > 1e-4
    normal = noise_draws(pb.zCDP(0.5), 2.0, generator, 20_000)
    assert stats.kstest(normal, stats.norm(scale=2.0).cdf).pvalue > 1e-4
    assert not noise_draws(pb.NoPrivacy(), 2.0, generator, 10).any()


def test_rewards_of_any_environment_and_the_same_numbers_from_two_processes() -> None:
    environment = pb.Linear(np.eye(2), theta=[0.9, -0.9], noise="gaussian")
    policies: dict[str, Policy[Any]] = {
        "tree": pb.TreeUCB(2, pb.zCDP(1.0), horizon=10**6),
        "se": pb.DPSE(2, pb.PureDP(1.0)),
    }
    one = pb.simulate(policies, environment, 10**6, runs=2, progress=False)
    two = pb.simulate(policies, environment, 10**6, runs=2, processes=2, progress=False)
    for name in policies:
        np.testing.assert_array_equal(one.curves[name], two.curves[name])
        assert 0 < one.final[name].mean() < 20_000


def test_the_command_line_runs_them_together_and_states_each_budget() -> None:
    arguments = ["simulate", "--policy", "adac-ucb,adap-ucb,dp-se,dp-ucb", "--rho", "0.5,inf", "--horizon", "1e4"]
    done = CliRunner().invoke(app, [*arguments, "--runs", "3", "--json"])
    data = json.loads(done.stdout)
    budgets = {(row["policy"], row["rho"]): row["budget"] for row in data["results"]}
    assert budgets["adac-ucb", 0.5] == budgets["dp-ucb", 0.5] == "zCDP(rho=0.5)"
    assert budgets["adap-ucb", 0.5] == budgets["dp-se", 0.5] == "PureDP(epsilon=1.0)"
    assert {policy for policy, rho in budgets if rho == "inf"} == {"adac-ucb", "adap-ucb", "dp-se", "dp-ucb"}
    assert all(made["horizon"] == 10**4 for made in data["policies"].values() if made["policy"].startswith("dp-"))
