"""The engine of AdaC-OFUL for private contexts against one step at a time, which is what an agent does."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import private_bandits as pb
from private_bandits.budget import Budget
from private_bandits.environments import Setting
from private_bandits.policies import contextual as policies_contextual
from private_bandits.policies import private_contexts
from private_bandits.policies.remembered_moments import people_weights
from private_bandits.simulation import contextual_steps, counted
from private_bandits.simulation.engines import COUNTED, engine_for
from private_bandits.simulation.seeds import Seeds

SEEDS = Seeds(seed=5, first=0)
BUDGETS = [pb.zCDP(1.0), pb.zCDP(0.01), pb.ApproxDP(1.0, 1e-6), pb.NoPrivacy()]


def world(d: int, arms: int, setting: Setting = "strict") -> pb.Contextual:
    theta = np.cos(np.arange(d))
    return pb.Contextual(d, arms, theta / np.linalg.norm(theta), setting)


def several(d: int, budget: Budget, horizon: int) -> list[pb.AdaCOFULPrivate]:
    other: dict[str, Any] = {"parameter_norm": 2.0, "matrix_share": 0.9, "context_norm": 1.25}
    return [
        pb.AdaCOFULPrivate(d, budget, horizon=horizon),
        pb.AdaCOFULPrivate(d, budget, horizon=50, growth=0.05, regulariser=30.0, exploration=1.0, **other),
        pb.AdaCOFULPrivate(d, budget, horizon=horizon, exploration=0.0, growth=3.0),
        pb.AdaCOFULPrivate(d, budget, horizon=horizon, variant="paper"),
        pb.AdaCOFULPrivate(d, budget, horizon=9, variant="paper", growth=0.05, exploration=0.1, **other),
    ]


@pytest.mark.parametrize("budget", BUDGETS, ids=repr)
@pytest.mark.parametrize(("d", "arms"), [(3, 10), (1, 3), (6, 4)])
def test_same_actions_as_one_step_at_a_time(monkeypatch: pytest.MonkeyPatch, d: int, arms: int, budget: Budget) -> None:
    """Regrets at every step are the same, and gaps differ, so all actions are the same.

    Many actions have length one, and before the first release rounding decides between them: so the grid is fine.
    """
    for module in (policies_contextual, private_contexts):
        monkeypatch.setattr(module, "STEPS", 2**40)
    steps, policies = 700, several(d, budget, 700)
    assert {engine_for(policy) for policy in policies} == {COUNTED}
    every = np.arange(1, steps + 1)
    fast, fast_releases = counted.play_run(policies, world(d, arms), steps, every, SEEDS, 0)
    slow, slow_releases = contextual_steps.play_run(policies, world(d, arms), steps, every, SEEDS, 0)
    np.testing.assert_allclose(fast, slow, rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(fast_releases, slow_releases)
    assert fast_releases.min() >= 3


def test_checkpoints_and_blocks_change_nothing() -> None:
    """With many arms a block has few steps."""
    policies = several(2, pb.zCDP(0.5), 1200)
    whole, _ = counted.play_run(policies, world(2, 700), 1200, np.array([1200]), SEEDS, 1)
    often, _ = counted.play_run(policies, world(2, 700), 1200, np.arange(1, 1201), SEEDS, 1)
    np.testing.assert_allclose(whole[:, -1], often[:, -1])


@pytest.mark.parametrize("variant", pb.AdaCOFULPrivate.variants)
def test_gaussian_rewards_in_distribution(variant: Any) -> None:
    """They are drawn once for an episode here, and one by one there."""
    policy = pb.AdaCOFULPrivate(2, pb.zCDP(1.0), horizon=300, variant=variant)
    runs, end = 60, np.array([300])
    found = [
        np.array(
            [engine.play_run([policy], world(2, 4, "paper"), 300, end, SEEDS, run)[0][0, 0] for run in range(runs)]
        )
        for engine in (counted, contextual_steps)
    ]
    error = math.sqrt(sum(x.var() / runs for x in found))
    assert abs(found[0].mean() - found[1].mean()) < 4.5 * error


@pytest.mark.parametrize("growth", [0.05, 0.25, 0.5, 1.0, 3.0])
def test_people_have_weights_from_zero_to_one_and_little_noise(growth: float) -> None:
    policy = pb.AdaCOFULPrivate(4, pb.zCDP(0.1), growth=growth)
    assert policy.factor is not None
    column = float(policy.factor.column)
    for spread in (1e-6, 1.0, 1e3, 1e9):
        for releases in (1, 2, 7, 30, 60):
            weights = people_weights(policy.memory, spread, releases)
            assert weights.people.min() >= 0
            assert weights.people.max() == pytest.approx(1.0)
            np.testing.assert_allclose(weights.releases @ policy.factor.matrix(releases), weights.people)
    limit = (1 + 1 / (1 + growth)) ** 2
    lengths = np.array(policy.memory.lengths(4, 60), float)
    noisy = people_weights(policy.memory, 1e6 * float(lengths.sum()) ** 2, 60)
    share = noisy.people @ lengths / lengths.sum()
    assert column * noisy.noises / share**2 <= 1.1 * limit
