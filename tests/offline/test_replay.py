"""Replays of logs: the right rows, the right estimate, clear refusals, and no claim of privacy for raw means."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import private_bandits as pb
from private_bandits.agent import bandit_of
from private_bandits.errors import InvalidInput
from private_bandits.offline.replay import Replay
from private_bandits.policies import Policy
from tests.support import EVERY_POLICY, OFFERED, offered, policy_id

MEANS = {"A": 0.3, "B": 0.7}


def uniform_log(rows: int, seed: int = 0) -> pd.DataFrame:
    generator = np.random.default_rng(seed)
    arms = generator.choice(list(MEANS), rows)
    return pd.DataFrame({"arm": arms, "reward": generator.random(rows) < [MEANS[arm] for arm in arms]})


def ucb(budget: Any = None) -> pb.AdaCUCB:
    return pb.AdaCUCB(arms=["A", "B"], budget=budget or pb.NoPrivacy(), beta=1.0)


def by_hand(policy: Policy[Any], frame: pd.DataFrame) -> list[int]:
    """Li et al., Algorithm 2, as it stands: ask at every row, and forget the row if it does not match."""
    agent, matched = pb.Agent(policy), []
    for row, (arm, reward) in enumerate(zip(frame.arm, frame.reward, strict=True)):
        twin_asked = agent.ask()
        if twin_asked.arm == arm:
            agent.tell(twin_asked, reward)
            matched.append(row)
        else:
            agent.give_up(twin_asked)
            bandit_of(agent).public.asked -= 1  # it never was
    return matched


def test_rows_match_as_in_the_paper() -> None:
    frame = uniform_log(500)
    result = Replay(frame).run(ucb())
    matched = by_hand(ucb(), frame)
    assert result.rewards.tolist() == frame.reward[matched].astype(float).tolist()
    assert result.plays == frame.arm[matched].value_counts().to_dict()
    assert (result.rows, result.steps) == (500, len(matched))


def test_mean_error_and_curve() -> None:
    result = Replay(uniform_log(500)).run(ucb())
    rewards = result.rewards
    assert result.mean == rewards.mean()
    assert result.standard_error == pytest.approx(rewards.std(ddof=1) / math.sqrt(len(rewards)))
    assert result.curve.tolist() == pytest.approx([rewards[: i + 1].mean() for i in range(len(rewards))])
    one = Replay([("A", 1.0)]).run(pb.AdaCUCB(1, pb.NoPrivacy()))
    assert (one.mean, one.standard_error, one.curve.tolist()) == (1.0, None, [1.0])


@pytest.mark.parametrize("uniform", [True, False])
def test_the_estimate_is_what_the_policy_earns_live(uniform: bool) -> None:
    """Mean reward of 60 steps, over 200 logs and 200 live runs, within four standard errors of their difference.

    Not uniform: a hidden kind of person gets arm B more often and has other rewards, so arms without their
    probabilities would be compared on different people.
    """
    steps, runs, generator = 60, 200, np.random.default_rng(1)

    def outcome(kind: bool, arm: str) -> float:
        return float(generator.random() < (MEANS[arm] if kind else 1 - MEANS[arm] ** 2))

    logged, live = [], []
    for run in range(runs):
        rows: list[tuple[Any, ...]] = []
        for _ in range(400 if uniform else 900):
            kind = generator.random() < 0.7
            chance = 0.5 if uniform or not kind else 0.8
            arm, p = ("B", chance) if generator.random() < chance else ("A", 1 - chance)
            rows.append((arm, outcome(kind, arm)) if uniform else (arm, outcome(kind, arm), p))
        result = Replay(rows, arms=["A", "B"]).run(ucb(), seed=run)
        assert result.steps >= steps
        logged.append(result.rewards[:steps].mean())
        agent = pb.Agent(ucb())
        total = 0.0
        for _ in range(steps):
            decision = agent.ask()
            reward = outcome(generator.random() < 0.7, decision.arm)
            agent.tell(decision, reward)
            total += reward
        live.append(total / steps)
    error = math.sqrt((np.var(logged) + np.var(live)) / runs)
    assert abs(np.mean(logged) - np.mean(live)) < 4 * error


def test_probabilities_thin_the_log_to_uniform_arms() -> None:
    rows = [("A", 1.0, 0.9)] * 9000 + [("B", 1.0, 0.1)] * 1000
    replay = Replay(rows)
    kept = list(replay._kept(seed=0))
    first = sum(row < 9000 for row in kept)
    assert len(kept) - first == 1000  # every row of the least likely arm
    assert abs(first - 1000) < 4 * math.sqrt(1000)
    assert kept == list(replay._kept(seed=0)) != list(replay._kept(seed=1))


@pytest.mark.parametrize("policy", EVERY_POLICY, ids=policy_id)
def test_every_policy_can_be_replayed(policy: Policy[Any]) -> None:
    generator = np.random.default_rng(0)
    rows = 150
    frame = pd.DataFrame({"reward": generator.integers(0, 9, rows) / 8})
    if policy.arm_names:
        frame["arm"] = generator.choice(policy.arm_names, rows)
        options: dict[str, Any] = {"arms": policy.arm_names}
    else:
        frame["arm"], options = generator.integers(0, OFFERED, rows), {}
        frame["actions"] = [offered(policy, step) for step in range(rows)]
    result = Replay(frame, **options).run(policy, seed=1)
    assert 0 < result.steps < rows
    assert sum(result.plays.values()) == result.steps
    again = Replay(frame, **options).run(policy, seed=1)
    assert again.rewards.tolist() == result.rewards.tolist()
    live = Replay(frame, **options).run(policy)
    assert live.agent.ledger.total <= policy.budget.level


def test_actions_in_a_file_are_json(tmp_path: Path) -> None:
    tables = [[[1.0, 0.0], [0.0, 1.0]], [[0.5, 0.5], [0.1, 0.2], [0.0, 0.0]]]
    frame = pd.DataFrame({"arm": [0, 1], "reward": [1.0, 0.5], "actions": tables})
    frame.assign(actions=[json.dumps(t) for t in tables]).to_csv(tmp_path / "log.csv", index=False)
    policy = pb.AdaCOFUL(dimension=2, budget=pb.NoPrivacy())
    for log in (frame, tmp_path / "log.csv"):
        replay = Replay(log)
        assert repr(replay) == "Replay(2 rows, actions of their own, reward_range=(0, 1))"
        assert replay.run(policy).plays == {"0": 1}


# Arms.


def test_arms_come_in_the_order_of_the_log_or_as_given() -> None:
    rows = [("B", 1.0), ("A", 0.0), ("B", 1.0)]
    assert Replay(rows).arms == ("B", "A")
    assert Replay(rows, arms=["A", "B"]).arms == ("A", "B")
    assert Replay([(1, 1.0), (0, 0.0)]).arms == ("1", "0")
    assert Replay([(1, 1.0), (0, 0.0)], arms=["no", "yes"]).arms == ("no", "yes")


def test_arms_match_by_name_or_by_index() -> None:
    rows = [("B", 1.0), ("A", 0.0)] * 20
    by_name = Replay(rows).run(pb.AdaCUCB(arms=["A", "B"], budget=pb.NoPrivacy()))
    by_index = Replay(rows, arms=["A", "B"]).run(pb.AdaCUCB(2, pb.NoPrivacy()))
    assert by_name.rewards.tolist() == by_index.rewards.tolist()
    assert [e.mean for e in by_name.agent.estimates()] == [0.0, 1.0]
    with pytest.raises(InvalidInput, match=r"the policy has the arms \['A', 'C'\], the log \['B', 'A'\]"):
        Replay(rows).run(pb.AdaCUCB(arms=["A", "C"], budget=pb.NoPrivacy()))
    with pytest.raises(InvalidInput, match="name the policy's alike"):
        Replay(rows).run(pb.AdaCUCB(3, pb.NoPrivacy()))


def test_linear_policies_match_by_index() -> None:
    result = Replay([(0, 1.0), (1, 0.0)] * 20, arms=["A", "B"]).run(
        pb.AdaCGOPE(actions=[[1.0, 0.0], [0.0, 1.0]], budget=pb.NoPrivacy())
    )
    assert result.steps


# Refusals.


@pytest.mark.parametrize(
    ("log", "options", "text"),
    [
        ([], {}, "the log is empty"),
        ({"arm": ["A"]}, {}, "no column 'reward'"),
        ({"a": ["A"], "reward": [1.0]}, {}, "no column 'arm'"),
        ([("A", 0.5), ("A", 1.731)], {}, r"the reward in row 1 \(the first is 0\) lies outside reward_range \(0, 1\)"),
        ([("A", 0.5), ("A", "0.731?")], {}, "the reward in row 1 .* is not a number"),
        ([("A", 0.5), ("A", math.nan)], {}, "'reward' in row 1 .* is missing"),
        ([("A", 0.5), (None, 0.731)], {}, "'arm' in row 1 .* is missing"),
        ([("A", 0.5), ("C", 0.731)], {"arms": ["A", "B"]}, "the arm in row 1 .* is unknown"),
        ([("A", 0.5)], {"arms": ["A", "B"]}, "arm 'B' is never in the log"),
        ([("A", 0.5)], {"arms": ["A", "A"]}, "different names"),
        ([("A", 0.5)], {"reward_range": (1, 0)}, "low < high"),
        ([("A", 0.5, 0.0)], {}, "the probability in row 0 .* above 0 and at most 1"),
        ([("A", 0.5, 1.5)], {}, "the probability in row 0"),
        ([("A", 0.5, "often")], {}, "the probability in row 0 .* is not a number"),
        ({"arm": [2], "reward": [1.0], "actions": [[[1.0], [2.0]]]}, {}, "the arm in row 0 .* an index from 0 to 1"),
        ({"arm": [0], "reward": [1.0], "actions": ["[1"]}, {}, "the actions in row 0 .* a table"),
    ],
)
def test_bad_logs_are_clear_errors_that_know_no_reward(log: Any, options: dict[str, Any], text: str) -> None:
    with pytest.raises(InvalidInput, match=text) as refused:
        Replay(log, **options)
    assert "731" not in str(refused.value)


def test_bad_policies_are_named() -> None:
    arms = Replay([("A", 1.0)])
    actions = Replay({"arm": [0], "reward": [1.0], "actions": [[[3.0, 4.0]]]})
    with pytest.raises(InvalidInput, match="policy must be a policy"):
        arms.run("adac-ucb")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="the log has no column of actions, AdaCOFUL needs one"):
        arms.run(pb.AdaCOFUL(dimension=2, budget=pb.NoPrivacy()))
    with pytest.raises(InvalidInput, match="the log has a column of actions, AdaCUCB is for the finite setting"):
        actions.run(pb.AdaCUCB(1, pb.NoPrivacy()))
    with pytest.raises(InvalidInput, match=r"row 0 of the log \(the first is 0\): .* norm at most 1, got 5"):
        actions.run(pb.AdaCOFUL(dimension=2, budget=pb.NoPrivacy()))


# Privacy.


def test_the_result_says_that_it_is_not_private() -> None:
    result = Replay(uniform_log(200)).run(ucb(budget=pb.zCDP(0.5)))
    for text in (repr(result), str(result), result.note):
        assert "NOT private" in text
        assert "raw rewards" in text
    assert "zCDP(rho=0.5)" in result.note
    assert result.agent.guarantee().spent <= 0.5
    assert "No privacy is promised" in Replay(uniform_log(200)).run(ucb(budget=pb.zCDP(0.5)), seed=0).note


def test_the_log_does_not_show_its_rewards() -> None:
    assert "731" not in repr(Replay([("A", 0.731)]))


def test_which_rows_match_depends_on_rewards_through_releases_only() -> None:
    """Rewards of the same sums within every episode: seeded, the same rows match."""
    start = [("A", 0.0), ("B", 0.5), ("B", 1.0), ("A", 0.0)]
    first = start + [("B", 1.0), ("B", 0.0), ("A", 0.0)] * 40
    second = start + [("B", 0.5), ("B", 0.5), ("A", 0.0)] * 40
    policy = ucb(budget=pb.zCDP(50.0))
    results = [Replay(rows).run(policy, seed=4) for rows in (first, second)]
    assert results[0].steps == results[1].steps > 30
    rows = [[row.to_dict() for row in result.agent.ledger] for result in results]
    assert rows[0] == rows[1]
