"""The engine for finite arms against the agent, against a plain loop, and against known figures."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

import numpy as np
import pytest
from scipy import stats

import private_bandits as pb
from private_bandits.budget import Budget
from private_bandits.environments import Floats, Integers
from private_bandits.simulation import steps


@dataclass(frozen=True)
class Certain:
    """Every reward of an arm is its mean."""

    values: tuple[float, ...]
    reward_range: tuple[float, float] = (0.0, 1.0)

    @property
    def means(self) -> Floats:
        return np.array(self.values)

    def reward_sums(self, generator: np.random.Generator, arms: Integers, counts: Integers) -> Floats:
        return self.means[arms] * counts


def regret_by_step(policy: pb.AdaCUCB, environment: Certain, horizon: int) -> Floats:
    every_step = range(1, horizon + 1)
    curves = pb.simulate({"p": policy}, environment, horizon, runs=1, checkpoints=every_step).curves["p"]
    return np.asarray(curves[0])


@pytest.mark.parametrize("beta", [0.3, 1.0, 3.1])
@pytest.mark.parametrize("values", [(0.75, 0.625, 0.5, 0.375, 0.25), (0.125, 0.875), (0.5, 1.0, 0.0), (0.25,)])
def test_same_actions_as_the_agent_on_certain_rewards_without_noise(values: tuple[float, ...], beta: float) -> None:
    """The gaps differ from arm to arm, so equal regret at every step means equal actions."""
    policy = pb.AdaCUCB(len(values), pb.NoPrivacy(), beta=beta)
    environment = Certain(values)
    _, expected = steps.actions_and_regret(policy, environment, 700, np.random.default_rng(0))
    np.testing.assert_allclose(regret_by_step(policy, environment, 700), expected, atol=1e-9)


def test_same_actions_in_another_range() -> None:
    environment = Certain((-2.0, 0.5, 3.0), reward_range=(-2.0, 6.0))
    policy = pb.AdaCUCB(3, pb.NoPrivacy(), beta=1.0)
    _, expected = steps.actions_and_regret(policy, environment, 500, np.random.default_rng(0))
    np.testing.assert_allclose(regret_by_step(policy, environment, 500), expected, atol=1e-9)


@pytest.mark.parametrize("horizon", [1, 2, 4, 5, 6, 7])
def test_horizons_shorter_than_the_first_pulls(horizon: int) -> None:
    environment = Certain((0.0, 0.25, 0.5, 0.75, 1.0))
    policy = pb.AdaCUCB(5, pb.NoPrivacy())
    _, expected = steps.actions_and_regret(policy, environment, horizon, np.random.default_rng(0))
    np.testing.assert_allclose(regret_by_step(policy, environment, horizon), expected)


def plain_loop(means: list[float], rho: float, beta: float, horizon: int, chance: random.Random) -> float:
    """Algorithm 4 of the paper, one step at a time, with continuous noise; written without the package."""
    arms = len(means)
    pulls, last, mean = [0] * arms, [0] * arms, [0.0] * arms
    regret, t = 0.0, 0

    def play(arm: int, count: int) -> None:
        nonlocal regret, t
        total, done = 0.0, 0
        while done < count and t < horizon:
            total += chance.random() < means[arm]
            regret += max(means) - means[arm]
            t, done = t + 1, done + 1
        pulls[arm] += done
        last[arm] = max(done, 1)
        noise = 0.0 if math.isinf(rho) else chance.gauss(0, math.sqrt(1 / (2 * rho)))
        mean[arm] = (total + noise) / last[arm]

    def index(arm: int) -> float:
        n = last[arm]
        return mean[arm] + math.sqrt((1 / (2 * n) + 1 / (rho * n**2)) * beta * math.log(t + 1))

    for arm in range(arms):
        play(arm, 1)
    while t < horizon:
        best = max(range(arms), key=index)
        play(best, pulls[best])
    return regret


def same_distribution(one: list[float], other: Floats) -> bool:
    """Kolmogorov-Smirnov: right implementations fail it for one choice of seeds in 10,000."""
    return bool(stats.ks_2samp(np.round(one, 6), np.round(other, 6)).pvalue > 1e-4)


@pytest.mark.parametrize("rho", [0.05, 2.0, math.inf])
def test_same_distribution_as_a_plain_loop(rho: float) -> None:
    means, beta, horizon = [0.4, 0.7, 0.55], 1.0, 500
    chance = random.Random(11)
    loop = [plain_loop(means, rho, beta, horizon, chance) for _ in range(1500)]
    budget: Budget = pb.NoPrivacy() if math.isinf(rho) else pb.zCDP(rho)
    fast = pb.simulate({"p": pb.AdaCUCB(3, budget, beta=beta)}, pb.Bernoulli(means), horizon, runs=20_000, seed=5)
    assert same_distribution(loop, fast.final["p"])


@pytest.mark.parametrize("policy", [pb.AdaCUCB(3, pb.zCDP(0.5)), pb.AdaPUCB(3, pb.PureDP(1.0), beta=1.0)])
def test_same_distribution_as_the_agent(policy: pb.AdaCUCB | pb.AdaPUCB) -> None:
    environment = pb.Bernoulli([0.2, 0.9, 0.6])
    generator = np.random.default_rng(3)
    slow = [steps.actions_and_regret(policy, environment, 300, generator)[1][-1] for _ in range(300)]
    fast = pb.simulate({"p": policy}, environment, horizon=300, runs=20_000, seed=6)
    assert same_distribution(slow, fast.final["p"])


@pytest.mark.parametrize(("budget", "expected"), [(pb.zCDP(0.1), 438.0), (pb.NoPrivacy(), 379.0)])
def test_known_regrets_of_the_papers_instance(budget: Budget, expected: float) -> None:
    """Both figures have a standard error of 3; five of the two together are allowed."""
    environment = pb.Bernoulli([0.75, 0.625, 0.5, 0.375, 0.25])
    result = pb.simulate({"p": pb.AdaCUCB(5, budget, beta=1)}, environment, horizon=10**7, runs=1000, seed=1)
    row = result.summary()[0]
    assert abs(row["regret_mean"] - expected) < 5 * math.hypot(3.0, row["regret_stderr"])
