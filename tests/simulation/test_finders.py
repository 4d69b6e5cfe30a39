"""The engines of AdaC-TopTwo and AdaC-Halving against the agent, and verdicts of many runs at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import private_bandits as pb
from private_bandits.budget import Budget
from private_bandits.errors import InvalidInput
from private_bandits.simulation import late_steps, steps
from private_bandits.simulation.arrivals import PROMPT, TrialWorld
from private_bandits.simulation.engines import HALVING, LATE, TOP_TWO, engine_for
from tests.simulation.test_finite import Certain, regret_by_step, same_distribution

VALUES = [(0.75, 0.625, 0.5, 0.375, 0.25), (0.125, 0.875), (0.5, 1.0, 0.0), (0.25,)]


def finders(arms: int, budget: Budget) -> list[Any]:
    """Both policies that look for the best arm."""
    return [pb.AdaCTopTwo(arms, budget, delta=0.1), pb.AdaCHalving(arms, budget, rewards=300)]


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("values", VALUES)
def test_same_actions_as_the_agent_on_certain_rewards_without_noise(values: tuple[float, ...], which: int) -> None:
    """The gaps differ from arm to arm, so equal regret at every step means equal actions."""
    policy, environment = finders(len(values), pb.NoPrivacy())[which], Certain(values)
    _, expected = steps.actions_and_regret(policy, environment, 700, np.random.default_rng(0))
    np.testing.assert_allclose(regret_by_step(policy, environment, 700), expected, atol=1e-9)


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("horizon", [1, 2, 5, 6, 11, 25])
def test_horizons_shorter_than_the_openings(horizon: int, which: int) -> None:
    policy, environment = finders(5, pb.zCDP(1.0))[which], Certain((0.0, 0.25, 0.5, 0.75, 1.0))
    _, expected = steps.actions_and_regret(policy, environment, horizon, np.random.default_rng(0))
    np.testing.assert_allclose(regret_by_step(policy, environment, horizon), expected)


@pytest.mark.parametrize("which", [0, 1])
def test_same_distribution_as_the_agent(which: int) -> None:
    policy, environment = finders(3, pb.zCDP(0.5))[which], pb.Bernoulli([0.2, 0.9, 0.6])
    generator = np.random.default_rng(3)
    slow = [steps.actions_and_regret(policy, environment, 350, generator)[1][-1] for _ in range(40)]
    fast = pb.simulate({"p": policy}, environment, horizon=350, runs=5_000, seed=6)
    assert same_distribution(slow, fast.final["p"])


@pytest.mark.parametrize(
    "policy",
    [
        *finders(2, pb.zCDP(1.0)),
        pb.AdaCIMED(2, pb.zCDP(1.0)),
        pb.AdaCUCB(2, pb.zCDP(1.0), beta=1),
        pb.AdaPUCB(2, pb.PureDP(2)),
    ],
    ids=lambda policy: policy.name,
)
def test_verdicts_fall_when_those_of_agents_fall(policy: Any) -> None:
    world, horizon, runs = pb.Bernoulli([0.9, 0.3]), 400, 40
    fast = pb.simulate({"p": policy}, world, horizon, 3000, verdict=0.3, progress=False).verdicts["p"]
    trial = TrialWorld(world, PROMPT, 0.3)
    generators, points = [np.random.default_rng(4)], np.array([horizon])
    slow = late_steps.regret_curves([policy], trial, horizon, runs, points, generators, lambda part: None)[0]
    never = float(horizon + 1)
    assert same_distribution(np.nan_to_num(slow[:, 1], nan=never), np.nan_to_num(fast.decisions, nan=never))


def test_engines_of_verdicts() -> None:
    """Fast ones where all runs are looked at together; else agents, one decision at a time."""
    world = TrialWorld(pb.Bernoulli([0.9, 0.3]), PROMPT, 0.05)
    assert [engine_for(policy, world) for policy in finders(2, pb.zCDP(1.0))] == [TOP_TWO, HALVING]
    assert engine_for(pb.DPKLUCB(2, pb.PureDP(1)), world) is LATE


def test_looking_changes_no_regret() -> None:
    policies = dict(zip("ab", finders(3, pb.zCDP(0.5)), strict=True))
    looked = pb.simulate(policies, pb.Bernoulli([0.2, 0.9, 0.6]), 2000, 50, seed=2, verdict=0.1, progress=False)
    plain = pb.simulate(policies, pb.Bernoulli([0.2, 0.9, 0.6]), 2000, 50, seed=2, progress=False)
    for name in policies:
        np.testing.assert_array_equal(looked.curves[name], plain.curves[name])
    assert plain.verdicts == {}
    row = looked.summary()[0]
    assert row["verdict_delta"] == 0.1
    assert 0 <= row["verdict_wrong"] <= row["verdict_share"] <= 1


def test_a_release_that_the_horizon_cuts_says_nothing() -> None:
    """Without a complete release of each arm there is no verdict."""
    policy = pb.AdaCTopTwo(2, pb.NoPrivacy(), delta=0.5)
    assert policy.memory.opening == 1
    halving = pb.AdaCHalving(2, pb.NoPrivacy(), rewards=100)
    found = pb.simulate({"p": halving}, Certain((1.0, 0.0)), 99, 20, verdict=0.5, progress=False).verdicts["p"]
    assert np.isnan(found.decisions).all()
    found = pb.simulate({"p": halving}, Certain((1.0, 0.0)), 100, 20, verdict=0.5, progress=False).verdicts["p"]
    assert (found.decisions == 100).all()


@pytest.mark.parametrize("delta", [0.5, 0.1, 0.01])
@pytest.mark.parametrize("means", [[0.5, 0.499], [0.99, 0.98, 0.5], [0.01, 0.005], [0.6, 0.59, 0.59, 0.59]])
def test_wrong_verdicts_are_rare(means: list[float], delta: float) -> None:
    """A wrong arm is declared with a probability of at most delta, on near ties and near 0 and 1."""
    policies: dict[str, Any] = {
        "top two": pb.AdaCTopTwo(len(means), pb.zCDP(2.0), delta=delta),
        "free": pb.AdaCTopTwo(len(means), pb.NoPrivacy(), delta=delta),
        "index": pb.AdaCUCB(len(means), pb.zCDP(2.0), beta=1),
    }
    runs = 400
    found = pb.simulate(policies, pb.Bernoulli(means), 3000, runs, seed=9, verdict=delta, progress=False)
    for verdicts in found.verdicts.values():
        assert verdicts.wrong.sum() <= delta * runs + 5 * np.sqrt(delta * (1 - delta) * runs) + 1


def test_a_verdict_is_for_finite_arms() -> None:
    actions = [[1.0, 0.0], [0.0, 1.0]]
    policy = pb.AdaCGOPE(actions=actions, budget=pb.zCDP(1.0))
    with pytest.raises(InvalidInput, match="finite arms"):
        pb.simulate({"p": policy}, pb.Linear(actions, [0.5, 0.1]), 100, 2, verdict=0.1)
    with pytest.raises(InvalidInput, match="verdict"):
        pb.simulate({"p": pb.AdaCIMED(2, pb.zCDP(1.0))}, pb.Bernoulli([0.5, 0.1]), 100, 2, verdict=1.5)
