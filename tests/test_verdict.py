"""agent.verdict(): from releases alone, for every policy with arms."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import private_bandits as pb
from private_bandits.errors import InvalidInput
from private_bandits.policies import POLICIES
from private_bandits.testing import examples_of, policy_id

SHIPPED = [cls for cls in POLICIES.values() if cls.__module__.startswith("private_bandits.")]
WITH_ARMS = [policy for policy in examples_of(SHIPPED, one_of_each_noise=True) if policy.arm_names]


@pytest.mark.parametrize("policy", WITH_ARMS, ids=policy_id)
def test_every_policy_with_arms_gives_verdicts(policy: Any) -> None:
    """Of releases only: between two of them nothing changes."""
    rng = np.random.default_rng(3)
    agent, rows = pb.Agent(policy, seed=1), -1
    said = agent.verdict(0.2)
    for _ in range(120):
        decision = agent.ask()
        agent.tell(decision, float(rng.random() < 0.2 + 0.5 * (decision.action == 1)))
        verdict = agent.verdict(0.2)
        if len(agent.ledger) == rows:
            assert verdict == said
        rows, said = len(agent.ledger), verdict
    pairs = len(policy.arm_names) * (len(policy.arm_names) - 1) // 2
    assert len(said.differences) == pairs
    assert all(found.low <= found.high for found in said.differences)
    plain = json.loads(json.dumps(said.to_dict()))
    assert plain["winner"] == said.winner
    assert len(plain["differences"]) == pairs


def test_a_clear_winner_is_declared_and_the_differences_agree() -> None:
    agent, rng = pb.Agent(pb.AdaCTopTwo(arms=["A", "B", "C"], budget=pb.zCDP(1.0)), seed=0), np.random.default_rng(0)
    assert agent.verdict().winner is None
    assert "No arm" in str(agent.verdict())
    while (verdict := agent.verdict(0.01)).winner is None:
        decision = agent.ask()
        agent.tell(decision, float(rng.random() < (0.2, 0.8, 0.3)[decision.action]))
    assert (verdict.winner, verdict.action) == ("B", 1)
    assert "B is the best arm" in str(verdict)
    forth, back = verdict.difference("A", "B"), verdict.difference("B", "A")
    assert forth.low <= -0.6 <= forth.high
    assert (back.low, back.high) == (-forth.high, -forth.low)
    with pytest.raises(KeyError, match="Z"):
        verdict.difference("A", "Z")


def test_rewards_in_another_range_are_scaled() -> None:
    agents = [pb.Agent(pb.AdaCIMED(2, pb.zCDP(1.0)), bounds, seed=3) for bounds in ((0, 1), (-10, 30))]
    rng = np.random.default_rng(1)
    for _ in range(300):
        reward = rng.random(2) < (0.8, 0.2)
        for agent, scale in zip(agents, ((0, 1), (-10, 40)), strict=True):
            decision = agent.ask()
            agent.tell(decision, scale[0] + scale[1] * float(reward[decision.action]))
    small, large = (agent.verdict(0.3).differences[0] for agent in agents)
    assert [large.low, large.high] == pytest.approx([40 * small.low, 40 * small.high], abs=0.02)


def test_one_arm_is_the_best() -> None:
    agent = pb.Agent(pb.AdaCUCB(1, pb.zCDP(1.0)))
    assert agent.verdict().winner == "arm 0"
    assert agent.verdict().differences == []


def test_where_actions_change_none_is_the_best() -> None:
    with pytest.raises(InvalidInput, match="predict"):
        pb.Agent(pb.AdaCOFUL(2, pb.zCDP(1.0))).verdict()


def test_linear_policies_name_the_action_that_is_left() -> None:
    policy = pb.AdaCGOPE(actions=np.eye(3), budget=pb.NoPrivacy(), delta=0.1, phase_factor=0.1)
    agent = pb.Agent(policy)
    for _ in range(20_000):
        decision = agent.ask()
        agent.tell(decision, (0.1, 0.9, 0.2)[decision.action])
        if len(agent.learned["active"]) == 1:
            break
    assert agent.learned["active"] == [1]
    assert agent.verdict(0.1).action == 1  # the policy's own delta
    assert agent.verdict(0.09).winner is None  # and no interval is above the others
    assert "linear" in agent.verdict(0.1).conditions[0]


def test_intervals_of_differences_hold_for_an_adversary_who_looks_at_rewards() -> None:
    """It plays the arm that looks better until it looks worse. At delta = 0.5 flaws show soonest."""
    missed, runs, means = 0, 40, (0.5, 0.45)
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        agent = pb.Agent(pb.AdaCUCB(2, pb.zCDP(5.0)), seed=seed)
        sums, counts = np.zeros(2), np.ones(2)
        for _ in range(40):
            arm = int(np.argmin(sums / counts))
            reward = float(rng.random() < means[arm])
            agent.tell(agent.ask(), reward, played=arm)
            sums[arm], counts[arm] = sums[arm] + reward, counts[arm] + 1
        found = agent.verdict(0.5).differences[0]
        missed += not found.low <= 0.05 <= found.high
    assert missed <= runs / 2 + 4.8 * np.sqrt(runs) / 2
