"""AdaC-TopTwo and AdaC-Halving: what they play, and that nothing holds them up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import private_bandits as pb
from private_bandits.errors import InvalidInput
from private_bandits.policies.evidence import Evidence, joint_costs


def test_the_leader_or_its_challenger_is_played() -> None:
    """Computed anew, in the plainest way, after every release."""
    policy, rng = pb.AdaCTopTwo(4, pb.zCDP(0.5), delta=0.001), np.random.default_rng(2)
    agent, rows, expected = pb.Agent(policy, seed=4), 0, 0
    for _ in range(900):
        decision = agent.ask()
        assert len(agent.ledger) < 4 or agent.learned["winner"] is not None or decision.action == expected
        agent.tell(decision, float(rng.random() < (0.6, 0.55, 0.4, 0.1)[decision.action]))
        if len(agent.ledger) == rows or len(agent.ledger) < 4:
            continue
        rows, state = len(agent.ledger), agent.learned
        means, released = state["means"], state["released"]
        leader = int(np.argmax(means))
        index = {}
        for arm in set(range(4)) - {leader}:
            pair = [
                Evidence.stacked([Evidence(means[a], 0.0, state["rewards"][a], state["noise"][a], 1.0)])
                for a in (leader, arm)
            ]
            index[arm] = float(joint_costs(pair[0], pair[1], np.zeros(1), 1e-3)[0]) + np.log(released[arm])
        challenger = min(index, key=lambda arm: (index[arm], arm))
        expected = leader if released[leader] <= released[challenger] else challenger
    assert rows > 20


def test_the_winner_is_played_for_ever_and_stays() -> None:
    policy, rng = pb.AdaCTopTwo(arms=["A", "B"], budget=pb.zCDP(1.0), delta=0.1), np.random.default_rng(1)
    agent = pb.Agent(policy, seed=2)
    while agent.learned["winner"] is None:
        decision = agent.ask()
        agent.tell(decision, float(rng.random() < (0.2, 0.9)[decision.action]))
    assert agent.verdict(0.1).winner == "B"
    for _ in range(200):
        decision = agent.ask()
        assert decision.arm == "B"
        agent.tell(decision, 0.0)  # whatever comes
    assert agent.learned["winner"] == 1


@pytest.mark.parametrize("policy", [pb.AdaCTopTwo(3, pb.zCDP(1.0)), pb.AdaCHalving(3, pb.zCDP(1.0), rewards=90)])
@pytest.mark.parametrize("fate", ["late", "given up"])
def test_an_arm_without_rewards_is_not_asked_for_ever(policy: Any, fate: str) -> None:
    """Where a round cannot end without it, the others are asked all the same."""
    agent, asked = pb.Agent(policy, seed=0), np.zeros(3)
    for _ in range(600):
        decision = agent.ask()
        asked[decision.action] += 1
        if decision.action != 1:
            agent.tell(decision, 1.0)
        elif fate == "given up":
            agent.give_up(decision)
    assert asked.min() > 0
    if isinstance(policy, pb.AdaCTopTwo):
        assert asked[1] < 400


@pytest.mark.parametrize("policy", [pb.AdaCTopTwo(3, pb.zCDP(1.0)), pb.AdaCHalving(3, pb.zCDP(1.0), rewards=90)])
def test_a_resumed_one_goes_on_alike(policy: Any, tmp_path: Path) -> None:
    def go_on(agent: pb.Agent, steps: range) -> list[int]:
        played = []
        for step in steps:
            decision = agent.ask()
            played.append(decision.action)
            agent.tell(decision, float((step * 7 + decision.action) % 3 == 0))
        return played

    whole = pb.Agent(policy, seed=5)
    expected = go_on(whole, range(150))
    first = pb.Agent(policy, seed=5, path=tmp_path / "a.db")
    found = go_on(first, range(70))
    first.close()
    again = pb.Agent.open(tmp_path / "a.db")
    assert found + go_on(again, range(70, 150)) == expected
    assert again.learned == whole.learned


def test_rounds_of_halving() -> None:
    policy = pb.AdaCHalving(n_arms=5, budget=pb.NoPrivacy(), rewards=100)
    assert policy.rounds == ((5, 6), (3, 11), (2, 16))
    agent = pb.Agent(policy)
    for _ in range(30 + 33 + 32):
        decision = agent.ask()
        agent.tell(decision, (0.1, 0.5, 0.9, 0.4, 0.2)[decision.action])
    state = agent.learned
    assert (state["round"], state["active"], state["best"]) == (3, [2], 2)
    assert [row.count for row in agent.ledger] == [6] * 5 + [11] * 3 + [16] * 2
    assert agent.ask().action == 2


def test_later_rounds_that_were_filled_before_count() -> None:
    """Whoever plays other arms than recommended may complete a later round of an arm first."""
    agent = pb.Agent(pb.AdaCHalving(n_arms=2, budget=pb.NoPrivacy(), rewards=4))
    for _ in range(5):
        agent.tell(agent.ask(), 1.0, played=1)
    agent.tell_many([(agent.ask(), 0.0, 0) for _ in range(2)])
    assert agent.learned["best"] == 1


def test_the_failure_bound_of_halving_holds() -> None:
    policy, means = pb.AdaCHalving(4, pb.zCDP(0.5), rewards=800), [0.6, 0.45, 0.45, 0.4]
    bound = policy.failure_bound([0.15, 0.15, 0.2])
    runs = 4000
    found = pb.simulate({"p": policy}, pb.Bernoulli(means), 1600, runs, seed=1, checkpoints=[1599], progress=False)
    regret = found.curves["p"]
    wrong = (regret[:, -1] - regret[:, -2] > 1e-9).mean()
    assert 0.001 < bound < 0.5
    assert wrong <= bound + 5 * np.sqrt(bound / runs)


def test_parameters_are_checked() -> None:
    with pytest.raises(InvalidInput, match="delta"):
        pb.AdaCTopTwo(2, pb.zCDP(1.0), delta=1.5)
    with pytest.raises(InvalidInput, match="growth"):
        pb.AdaCTopTwo(2, pb.zCDP(1.0), growth=9.0)
    with pytest.raises(InvalidInput, match="rewards must be at least 15"):
        pb.AdaCHalving(5, pb.zCDP(1.0), rewards=14)
    with pytest.raises(InvalidInput, match="gaps"):
        pb.AdaCHalving(5, pb.zCDP(1.0)).failure_bound([0.1])
