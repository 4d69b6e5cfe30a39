"""What every policy has to keep, found automatically: a new policy is tested the day it is written."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import private_bandits as pb
from private_bandits.noise import Hidden, Mechanism
from private_bandits.policies import Policy, policy_from_dict
from tests.support import EVERY_POLICY, OFFERED, holds, interact, offered, policy_id

pytestmark = pytest.mark.parametrize("policy", EVERY_POLICY, ids=policy_id)


def test_actions_are_valid(policy: Policy[Any]) -> None:
    agent = pb.Agent(policy, seed=1)
    names = policy.arm_names or [f"action {i}" for i in range(OFFERED)]
    for decision in agent.ask(7, actions=offered(policy, 0)):
        assert decision.arm == names[decision.action]
    transcript = interact(pb.Agent(policy, seed=1), steps=200, script_seed=2)
    actions = {action for shown in transcript.shown if shown and isinstance(shown[0], int) for action in shown}
    assert actions <= set(range(len(names)))


@pytest.mark.parametrize("script_seed", range(6))
def test_nothing_published_moves_before_the_release_of_a_changed_reward(policy: Policy[Any], script_seed: int) -> None:
    original = interact(pb.Agent(policy, seed=3), steps=60, script_seed=script_seed)
    for changed in range(0, len(original.plays), 7):
        agent = pb.Agent(policy, seed=3)
        other = interact(agent, 60, script_seed, change=lambda told, r, at=changed: 1 - r if told == at else r)  # type: ignore[misc]
        label = original.labels[changed]
        assert other.labels[: changed + 1] == original.labels[: changed + 1]
        release = next((row for row in agent.ledger if holds(row, label)), None)
        first_difference = next(
            (i for i, (a, b) in enumerate(zip(original.shown, other.shown, strict=False)) if a != b), None
        )
        if release is None:  # the reward stayed in an open episode: nobody may see a difference
            assert original.shown == other.shown
        elif first_difference is not None:
            # The first thing that differs is the release that holds the reward.
            shown = other.shown[first_difference]
            assert shown == [release.to_dict()]


def test_a_changed_reward_is_seen_without_noise(policy: Policy[Any]) -> None:
    """The test above can fail: a release does tell the reward when there is no noise."""
    one = interact(pb.Agent(policy, seed=3), 60, 0)
    other = interact(pb.Agent(policy, seed=3), 60, 0, change=lambda told, r: 1 - r if told == 0 else r)
    assert one.shown != other.shown


def test_noise_is_drawn_once_per_release(policy: Policy[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    draws = []
    draw = Mechanism.__call__

    def counted(self: Mechanism, totals: Hidden) -> list[int]:
        draws.append(self.kind)
        return draw(self, totals)

    monkeypatch.setattr(Mechanism, "__call__", counted)
    agent = pb.Agent(policy)
    interact(agent, steps=100, script_seed=4)
    assert len(draws) == len(agent.ledger) > 2
    agent.estimates()
    agent.guarantee()
    agent.ask(50, actions=offered(policy, 0))
    assert len(draws) == len(agent.ledger)


def test_each_reward_enters_one_release_and_counts_for_what_was_played(policy: Policy[Any]) -> None:
    agent = pb.Agent(policy, seed=5)
    transcript = interact(agent, steps=150, script_seed=6)
    labels = [label for row in agent.ledger for label in row.episodes]
    assert len(labels) == len(set(labels))
    told = Counter(action for action, _ in transcript.plays)
    counted = Counter[int]()
    for row in agent.ledger:
        counted.update(dict(zip(row.keys, row.counts, strict=True)))
        assert row.count == sum(row.counts)
    for key, episode in agent._private.episodes.items():
        counted[key] += episode.count
    if policy.arm_names:
        assert counted <= told
    if policy.setting == "finite":  # a sum an arm, and no reward is dropped
        assert counted == told
        sums = dict.fromkeys(told, 0.0)
        for played, reward in transcript.plays:
            sums[played] += reward
        if isinstance(policy.promise, pb.NoPrivacy):
            for arm, total in sums.items():
                episode = agent._private.episodes[arm]
                released = sum(row.values[0] for row in agent.ledger if row.key == arm)
                still_open = episode.totals.reveal()[0] / episode.grid.steps
                assert released + still_open == pytest.approx(total, abs=1e-6)


def test_the_ledger_stays_within_the_budget(policy: Policy[Any]) -> None:
    agent = pb.Agent(policy)
    interact(agent, steps=150, script_seed=7)
    assert agent.ledger.total <= policy.promise.level
    assert agent.guarantee().private == (policy.promise.noise != "none")


def test_a_seeded_agent_promises_nothing(policy: Policy[Any]) -> None:
    agent = pb.Agent(policy, seed=0)
    interact(agent, steps=20, script_seed=8)
    assert agent.ledger.total == float("inf")
    assert not any(row.private for row in agent.ledger)
    assert agent.guarantee().promised == float("inf")
    assert "No privacy" in str(agent.guarantee())


def test_only_learn_changes_the_state(policy: Policy[Any]) -> None:
    agent = pb.Agent(policy, seed=9)
    interact(agent, steps=30, script_seed=9)
    state = agent._public.policy
    before = json.dumps(policy.dump_state(state))
    for waiting in ([0, 0, 0], [1, 0, 5], [3, 3, 3]):
        offer = policy.offer(offered(policy, 1))
        if offer is None:
            entry = policy.entry(state, policy.recommend(state, waiting, agent._arrived, step=99))
        else:
            entry = policy.entry_of(state, offer, policy.choose(state, offer, step=99))
        if entry is not None:
            policy.due(state, entry[0], 1, agent._arrived)
    policy.estimates(state, 0.1)
    assert json.dumps(policy.dump_state(state)) == before


def test_policy_and_state_survive_as_plain_data(policy: Policy[Any]) -> None:
    assert policy_from_dict(json.loads(json.dumps(policy.to_dict()))) == policy
    agent = pb.Agent(policy, seed=9)
    interact(agent, steps=30, script_seed=9)
    plain = json.loads(json.dumps(policy.dump_state(agent._public.policy)))
    assert policy.load_state(plain) == agent._public.policy


def test_a_resumed_agent_goes_on_as_the_old_one_would_have(policy: Policy[Any], tmp_path: Path) -> None:
    never_closed = interact(pb.Agent(policy, seed=10), steps=80, script_seed=10)
    path = tmp_path / "agent.db"

    def reopen(agent: pb.Agent, step: int) -> pb.Agent:
        if step % 9:
            return agent
        agent.close()
        return pb.Agent.open(path)

    resumed = interact(pb.Agent(policy, path=path, seed=10), steps=80, script_seed=10, pause=reopen)
    assert resumed.shown == never_closed.shown


def test_refused_budgets_point_to_a_policy_that_serves_them(policy: Policy[Any]) -> None:
    from tests.support import EXAMPLE_BUDGETS

    served = {notion for other in EVERY_POLICY if other.setting == policy.setting for notion in other.notions}
    for notion, budget in EXAMPLE_BUDGETS.items():
        if notion not in policy.notions:
            with pytest.raises(pb.errors.UnsupportedBudget) as refused:
                policy.with_budget(budget)
            if notion not in served:
                continue
            pointed = str(refused.value).split(" use ")[1].split(",")[0]
            assert notion in getattr(pb, pointed).notions
