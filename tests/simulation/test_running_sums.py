"""The engine of DP-IMED and DP-KLUCB against the agent and against plain loops."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest

import private_bandits as pb
from private_bandits.budget import Budget
from private_bandits.policies.running_sum import RunningSumPolicy
from private_bandits.simulation import steps
from private_bandits.simulation.engines import ONE_BY_ONE, RUNNING_SUMS, engine_for
from tests.policies.test_private_divergence import by_definition
from tests.simulation.test_finite import Certain, same_distribution

BOTH = pytest.mark.parametrize("make", [pb.DPIMED, pb.DPKLUCB])


def engine_and_agent(policy: RunningSumPolicy, environment: Certain, horizon: int) -> tuple[Any, Any]:
    """Regret at every step. The gaps differ from arm to arm, so equal regret means equal actions."""
    assert engine_for(policy) is RUNNING_SUMS
    every = range(1, horizon + 1)
    fast = pb.simulate({"p": policy}, environment, horizon, runs=1, checkpoints=every, progress=False).curves["p"][0]
    return fast, steps.actions_and_regret(policy, environment, horizon, np.random.default_rng(0))[1]


@BOTH
@pytest.mark.parametrize("alpha", [1.25, 2.0, 50.0])
@pytest.mark.parametrize(
    "environment",
    [
        Certain((0.75, 0.625, 0.5, 0.375, 0.25)),
        Certain((0.125, 0.875)),
        Certain((0.5, 1.0, 0.0)),
        Certain((0.25,)),
        Certain((-2.0, 0.5, 3.0), reward_range=(-2.0, 6.0)),
    ],
    ids=str,
)
def test_same_actions_as_the_agent_on_certain_rewards_without_noise(
    environment: Certain, alpha: float, make: type[RunningSumPolicy]
) -> None:
    fast, slow = engine_and_agent(make(len(environment.values), pb.NoPrivacy(), alpha=alpha), environment, 700)
    np.testing.assert_allclose(fast, slow, atol=1e-9)


@BOTH
@pytest.mark.parametrize("horizon", [1, 2, 4, 5, 6, 7])
def test_horizons_shorter_than_the_first_batches(horizon: int, make: type[RunningSumPolicy]) -> None:
    fast, slow = engine_and_agent(make(5, pb.NoPrivacy()), Certain((0.0, 0.25, 0.5, 0.75, 1.0)), horizon)
    np.testing.assert_allclose(fast, slow)


@BOTH
@pytest.mark.parametrize(
    "budget", [pb.PureDP(1.0), pytest.param(pb.PureDP(8.0), marks=pytest.mark.full), pb.NoPrivacy()], ids=str
)
def test_same_distribution_as_the_agent(make: type[RunningSumPolicy], budget: Budget) -> None:
    policy, environment = make(3, budget, alpha=1.5), pb.Bernoulli([0.2, 0.9, 0.6])
    generator = np.random.default_rng(3)
    slow = [steps.actions_and_regret(policy, environment, 300, generator)[1][-1] for _ in range(200)]
    fast = pb.simulate({"p": policy}, environment, horizon=300, runs=20_000, seed=6, progress=False).final["p"]
    assert fast.std() > 1
    assert same_distribution(slow, fast)


class PlainLoop:
    """The publication's algorithms, one step at a time, with continuous noise; written without the package."""

    def __init__(self, means: list[float], epsilon: float, alpha: float, horizon: int, chance: random.Random) -> None:
        self.means, self.epsilon, self.alpha, self.horizon, self.chance = means, epsilon, alpha, horizon, chance
        self.sums, self.counts, self.batches = [0.0 for _ in means], [0 for _ in means], [0 for _ in means]
        self.t, self.regret = 0, 0.0

    def run(self, by: str) -> float:
        for arm in range(len(self.means)):
            self.play(arm)
        while self.t < self.horizon:
            m = [min(max(s / n, 0.0), 1.0) for s, n in zip(self.sums, self.counts, strict=True)]
            if by == "imed":
                cost = [n * self.d(x, max(m)) + math.log(n) for x, n in zip(m, self.counts, strict=True)]
                self.play(cost.index(min(cost)))
            else:
                bounds = [self.bound(x, math.log(self.t + 1) / n) for x, n in zip(m, self.counts, strict=True)]
                self.play(bounds.index(max(bounds)))
        return self.regret

    def play(self, arm: int) -> None:
        size = math.ceil(self.alpha ** self.batches[arm])
        for _ in range(min(size, self.horizon - self.t)):
            self.sums[arm] += self.chance.random() < self.means[arm]
            self.regret += max(self.means) - self.means[arm]
            self.t += 1
        self.counts[arm] += size
        self.batches[arm] += 1
        self.sums[arm] += (self.chance.expovariate(1) - self.chance.expovariate(1)) / self.epsilon

    def d(self, x: float, y: float) -> float:
        return by_definition(x, y, self.epsilon)

    def bound(self, x: float, limit: float) -> float:
        if self.d(x, 1.0) <= limit:
            return 1.0
        low, high = x, 1.0
        for _ in range(20):
            middle = (low + high) / 2
            low, high = (middle, high) if self.d(x, middle) <= limit else (low, middle)
        return low


@pytest.mark.parametrize(("by", "make"), [("imed", pb.DPIMED), ("klucb", pb.DPKLUCB)])
@pytest.mark.parametrize("epsilon", [0.7, pytest.param(5.0, marks=pytest.mark.full)])
def test_same_distribution_as_a_plain_loop(by: str, make: type[RunningSumPolicy], epsilon: float) -> None:
    means, alpha, horizon = [0.3, 0.8, 0.6], 1.6, 400
    chance = random.Random(11)
    slow = [PlainLoop(means, epsilon, alpha, horizon, chance).run(by) for _ in range(100)]
    policy = make(3, pb.PureDP(epsilon), alpha=alpha)
    fast = pb.simulate({"p": policy}, pb.Bernoulli(means), horizon, runs=20_000, seed=5, progress=False).final["p"]
    assert fast.std() > 1
    assert same_distribution(slow, fast)


@BOTH
def test_a_policys_numbers_do_not_depend_on_those_beside_it(make: type[RunningSumPolicy]) -> None:
    """Budgets and ratios advance together, each with draws and batches of its own."""
    environment = pb.Bernoulli([0.5, 0.6])
    one = make(2, pb.PureDP(1.0))
    others = {"other": make(2, pb.NoPrivacy(), alpha=1.2), "third": make(2, pb.PureDP(0.1), alpha=3.0)}
    alone = pb.simulate({"p": one}, environment, 10**5, runs=20, progress=False).curves["p"]
    beside = pb.simulate({"p": one, **others}, environment, 10**5, runs=20, progress=False).curves["p"]
    np.testing.assert_array_equal(alone, beside)


def test_another_frame_is_played_one_by_one_and_another_index_is_not() -> None:
    class OtherBatches(pb.DPIMED):
        def due(self, state: Any, key: int, count: int, arrived: Any) -> bool:
            return count >= 3

    class OtherIndex(pb.DPIMED):
        def index(self, means: Any, counts: Any, step: Any, width: float) -> Any:
            return means

    assert engine_for(OtherBatches(2, pb.PureDP(1))) is ONE_BY_ONE
    assert engine_for(OtherIndex(2, pb.PureDP(1))) is RUNNING_SUMS


@BOTH
def test_without_noise_it_is_near_the_asymptotic_reference(make: type[RunningSumPolicy]) -> None:
    """On the paper's instance at 10^7 steps, where Lai and Robbins' constant times log T is 115."""
    environment = pb.Bernoulli([0.75, 0.625, 0.5, 0.375, 0.25])
    result = pb.simulate({"p": make(5, pb.NoPrivacy(), alpha=1.25)}, environment, 10**7, runs=500, progress=False)
    assert 0.6 * 115 < result.final["p"].mean() < 1.25 * 115
