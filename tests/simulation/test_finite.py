"""The engine for finite arms against the agent, against a plain loop, and against known figures."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy import stats

import private_bandits as pb
from private_bandits.arrays import Floats, Integers
from private_bandits.budget import Budget
from private_bandits.policies import Policy
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


def regret_by_step(policy: Policy[Any], environment: Certain, horizon: int) -> Floats:
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


class PlainLoop:
    """Algorithm 4 of the paper, one step at a time, with continuous noise; written without the package."""

    def __init__(self, means: list[float], rho: float, beta: float, horizon: int, chance: random.Random) -> None:
        self.means, self.rho, self.beta, self.horizon, self.chance = means, rho, beta, horizon, chance
        self.sums: list[list[float]] = [[] for _ in means]
        self.counts: list[list[int]] = [[] for _ in means]
        self.noise: list[list[float]] = [[] for _ in means]
        self.t = 0

    def regret(self) -> float:
        for arm in range(len(self.means)):
            self.play(arm, 1)
        while self.t < self.horizon:
            best = max(range(len(self.means)), key=self.index)
            self.play(best, self.length(sum(self.counts[best])))
        return sum((max(self.means) - m) * sum(n) for m, n in zip(self.means, self.counts, strict=True))

    def length(self, played: int) -> int:
        return played

    def play(self, arm: int, count: int) -> None:
        done = min(count, self.horizon - self.t)
        self.sums[arm].append(float(sum(self.chance.random() < self.means[arm] for _ in range(done))))
        self.counts[arm].append(done)
        self.noise[arm].append(0.0 if math.isinf(self.rho) else self.chance.gauss(0, self.noise_sd))
        self.t += done

    @property
    def noise_sd(self) -> float:
        return math.sqrt(1 / (2 * self.rho))

    @property
    def log_inv_failure(self) -> float:
        return self.beta * math.log(self.t + 1)

    def index(self, arm: int) -> float:
        n = max(self.counts[arm][-1], 1)
        mean = (self.sums[arm][-1] + self.noise[arm][-1]) / n
        return mean + math.sqrt((1 / (2 * n) + 1 / (self.rho * n**2)) * self.log_inv_failure)


def same_distribution(one: list[float], other: Floats) -> bool:
    """Kolmogorov-Smirnov: right implementations fail it for one choice of seeds in 10,000."""
    return bool(stats.ks_2samp(np.round(one, 6), np.round(other, 6)).pvalue > 1e-4)


@pytest.mark.parametrize("rho", [0.05, pytest.param(2.0, marks=pytest.mark.full), math.inf])
def test_same_distribution_as_a_plain_loop(rho: float) -> None:
    means, beta, horizon = [0.4, 0.7, 0.55], 1.0, 500
    chance = random.Random(11)
    slow = [PlainLoop(means, rho, beta, horizon, chance).regret() for _ in range(800)]
    policy = pb.AdaCUCB(3, pb.NoPrivacy() if math.isinf(rho) else pb.zCDP(rho), beta=beta)
    fast = pb.simulate({"p": policy}, pb.Bernoulli(means), horizon, runs=20_000, seed=5)
    assert same_distribution(slow, fast.final["p"])


@pytest.mark.parametrize(
    "policy",
    [
        pb.AdaCUCB(3, pb.zCDP(0.5), variant="paper"),
        pb.AdaPUCB(3, pb.PureDP(1.0), beta=1.0),
    ],
    ids=["gaussian", "laplace"],
)
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
    policy = pb.AdaCUCB(5, budget, beta=1, variant="paper")
    row = pb.simulate({"p": policy}, environment, horizon=10**7, runs=1000, seed=1).summary()[0]
    assert abs(row["regret_mean"] - expected) < 5 * math.hypot(3.0, row["regret_stderr"])


def test_the_papers_variant_has_the_numbers_that_it_always_had() -> None:
    """To the last digit, as simulations are seeded by the policy: recorded before there was another variant."""
    environment = pb.Bernoulli([0.75, 0.625, 0.5, 0.375, 0.25])
    policies = {b: pb.AdaCUCB(5, b, beta=1, variant="paper") for b in (pb.zCDP(0.1), pb.NoPrivacy())}
    result = pb.simulate({str(b): p for b, p in policies.items()}, environment, 10**6, runs=4, seed=3)
    assert result.final["zCDP(rho=0.1)"].tolist() == [512.0, 368.0, 384.0, 432.0]
    assert result.final["NoPrivacy()"].tolist() == [240.0, 432.0, 368.0, 272.0]


def test_policies_are_simulated_side_by_side_as_they_are_alone() -> None:
    environment = pb.Bernoulli([0.6, 0.4, 0.5])
    policies = {
        "less private": pb.AdaCUCB(3, pb.zCDP(1)),
        "private": pb.AdaCUCB(3, pb.zCDP(0.1)),
        "twin": pb.AdaCUCB(3, pb.NoPrivacy(), beta=1),
    }
    together = pb.simulate(policies, environment, 10**4, runs=30, seed=4).curves
    for name, policy in policies.items():
        alone = pb.simulate({name: policy}, environment, 10**4, runs=30, seed=4).curves
        np.testing.assert_array_equal(together[name], alone[name])
