"""The reference without privacy: the textbook's rule, and nothing that could be taken for a private policy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import private_bandits as pb
from private_bandits.errors import InvalidInput, PrivateBanditsError, UnsupportedBudget
from private_bandits.policies import POLICIES
from private_bandits.simulation.labelled_steps import drawn_rows
from private_bandits.simulation.linucb import LinUCB
from private_bandits.simulation.seeds import Seeds
from tests.simulation.test_labelled_steps import TABLE

STEPS = 300


def test_decisions_are_those_of_the_textbook() -> None:
    """Its V and its sums are made anew at every step, from all that came before."""
    alpha, ridge, wrong = 0.5, 0.2, []
    played, rewards = np.zeros((0, TABLE.dimension)), np.zeros(0)
    for row in drawn_rows(TABLE, STEPS, Seeds(1, 0), 0):
        actions = TABLE.actions(row)
        gram = ridge * np.eye(TABLE.dimension) + played.T @ played
        theta = np.linalg.solve(gram, played.T @ rewards)
        widths = np.sqrt((actions * np.linalg.solve(gram, actions.T).T).sum(axis=1))
        arm = int((actions @ theta + alpha * widths).round(9).argmax())
        reward = TABLE.reward(row, arm)
        played, rewards = np.vstack([played, actions[arm]]), np.append(rewards, reward)
        wrong.append(1 - reward)
    policy = LinUCB(TABLE.dimension, pb.NoPrivacy(), alpha=alpha, regulariser=ridge)
    every = range(1, STEPS + 1)
    result = pb.simulate({"it": policy}, TABLE, STEPS, runs=1, seed=1, checkpoints=every)
    np.testing.assert_array_equal(result.curves["it"][0], np.cumsum(wrong))
    assert result.share_right()["it"][0, -1] > TABLE.best_fixed_share + 0.3


@pytest.mark.parametrize("budget", [pb.zCDP(1.0), pb.ApproxDP(1.0, 1e-6), pb.PureDP(1.0), pb.RenyiDP(2.0, 1.0)])
def test_it_takes_no_budget_that_promises_something(budget: pb.budget.Budget) -> None:
    with pytest.raises(UnsupportedBudget, match="it serves NoPrivacy"):
        LinUCB(3, budget)


def test_it_is_no_policy_that_commands_or_files_know(tmp_path: Path) -> None:
    assert LinUCB not in POLICIES.values()
    with pytest.raises(PrivateBanditsError):
        pb.Agent(LinUCB(3, pb.NoPrivacy()), reward_range=(0, 1), path=tmp_path / "agent.db")


@pytest.mark.parametrize("options", [{"alpha": -1.0}, {"alpha": float("nan")}, {"regulariser": 0.0}])
def test_bad_parameters_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=next(iter(options))):
        LinUCB(3, pb.NoPrivacy(), **options)


def test_its_state_comes_back() -> None:
    policy = LinUCB(2, pb.NoPrivacy())
    state = policy.start(0.0, 1.0)
    policy.arrive(state, 0, (2**19, 2**18))
    again = policy.load_state(policy.dump_state(state))
    np.testing.assert_array_equal(again.inverse, state.inverse)
    undo = policy.arrive(state, 0, (2**18, 2**19))
    undo()
    np.testing.assert_array_equal(again.inverse, state.inverse)
