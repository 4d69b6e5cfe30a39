"""The engine of AdaC-IMED against the agent."""

from __future__ import annotations

import numpy as np
import pytest

import private_bandits as pb
from private_bandits.budget import Budget
from private_bandits.simulation import steps
from private_bandits.simulation.engines import ONE_BY_ONE, REMEMBERING, engine_for
from tests.simulation.test_finite import Certain, regret_by_step, same_distribution


@pytest.mark.parametrize("beta", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("growth", [1.05, 1.25, 2.0])
@pytest.mark.parametrize("values", [(0.75, 0.625, 0.5, 0.375, 0.25), (0.125, 0.875), (0.5, 1.0, 0.0), (0.25,)])
def test_same_actions_as_the_agent_on_certain_rewards_without_noise(
    values: tuple[float, ...], growth: float, beta: float
) -> None:
    """The gaps differ from arm to arm, so equal regret at every step means equal actions."""
    policy = pb.AdaCIMED(len(values), pb.NoPrivacy(), beta=beta, growth=growth)
    environment = Certain(values)
    _, expected = steps.actions_and_regret(policy, environment, 700, np.random.default_rng(0))
    np.testing.assert_allclose(regret_by_step(policy, environment, 700), expected, atol=1e-9)


def test_same_actions_in_another_range() -> None:
    environment = Certain((-2.0, 0.5, 3.0), reward_range=(-2.0, 6.0))
    policy = pb.AdaCIMED(3, pb.NoPrivacy())
    _, expected = steps.actions_and_regret(policy, environment, 500, np.random.default_rng(0))
    np.testing.assert_allclose(regret_by_step(policy, environment, 500), expected, atol=1e-9)


@pytest.mark.parametrize("horizon", [1, 2, 5, 6, 11, 25])
def test_horizons_shorter_than_the_openings(horizon: int) -> None:
    environment = Certain((0.0, 0.25, 0.5, 0.75, 1.0))
    policy = pb.AdaCIMED(5, pb.zCDP(1.0))
    _, expected = steps.actions_and_regret(policy, environment, horizon, np.random.default_rng(0))
    np.testing.assert_allclose(regret_by_step(policy, environment, horizon), expected)


@pytest.mark.parametrize("budget", [pb.zCDP(0.5), pb.NoPrivacy()])
def test_same_distribution_as_the_agent(budget: Budget) -> None:
    policy, environment = pb.AdaCIMED(3, budget), pb.Bernoulli([0.2, 0.9, 0.6])
    generator = np.random.default_rng(3)
    slow = [steps.actions_and_regret(policy, environment, 300, generator)[1][-1] for _ in range(300)]
    fast = pb.simulate({"p": policy}, environment, horizon=300, runs=20_000, seed=6)
    assert same_distribution(slow, fast.final["p"])


def test_policies_that_remember_differently_run_side_by_side() -> None:
    """With other growths and other budgets, and without noise: the same numbers as alone, but for rounding."""
    policies = {
        "much": pb.AdaCIMED(3, pb.zCDP(0.1), growth=1.1),
        "little": pb.AdaCIMED(3, pb.zCDP(1.0), growth=2.0, beta=1.5),
        "nothing": pb.AdaCIMED(3, pb.NoPrivacy()),
    }
    environment = pb.Bernoulli([0.4, 0.6, 0.5])
    together = pb.simulate(policies, environment, 10**4, runs=200, seed=1).final
    for name, policy in policies.items():
        alone = pb.simulate({name: policy}, environment, 10**4, runs=200, seed=1).final[name]
        np.testing.assert_allclose(together[name], alone)


def test_the_engine_serves_the_policy_and_no_other() -> None:
    class Other(pb.AdaCIMED):
        def recommend(self, *seen: object) -> int:
            return 0

    assert engine_for(pb.AdaCIMED(2, pb.zCDP(1))) is REMEMBERING
    assert engine_for(Other(2, pb.zCDP(1))) is ONE_BY_ONE
