"""Names of actions that change from step to step: in decisions, when rewards are told, and in files."""

from __future__ import annotations

import json
from collections import UserDict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import private_bandits as pb
from private_bandits.agent import bandit_of
from private_bandits.errors import AgentFileInvalid, InvalidInput
from private_bandits.policies import Policy
from private_bandits.policies.named_offer import NamedOffer
from private_bandits.storage.decisions import OpenDecisions
from tests.support import ONE_OF_EACH_NOISE, policy_id

OFFERS = {"aspirin": [1.0, 0.0], "placebo": [0.0, 1.0], "nothing": [0.0, 0.0]}
OTHERS = {"tea": [0.6, 0.8], "aspirin": [0.1, 0.0]}
CONTEXTUAL = [policy for policy in ONE_OF_EACH_NOISE if policy.setting == "contextual"]


def other_offers(policy: Policy[Any]) -> dict[str, list[float]]:
    """Other names, and fewer of them where the policy allows it."""
    return OTHERS if policy.name != "linpriv" else OTHERS | {"rest": [0.0, 0.1]}


@pytest.mark.parametrize("policy", CONTEXTUAL, ids=policy_id)
@pytest.mark.parametrize("lasting", [False, True])
def test_a_decision_has_the_name_of_its_action_and_rewards_are_told_by_name(
    policy: Policy[Any], lasting: bool, tmp_path: Path
) -> None:
    path = tmp_path / "agent.db" if lasting else None
    agent = pb.Agent(policy, (-1, 1), path=path)
    plain = pb.Agent(policy, (-1, 1), seed=1)
    with agent:
        first = agent.ask(actions=OFFERS)
        assert first.action == plain.ask(actions=list(OFFERS.values())).action
        assert first.arm == list(OFFERS)[first.action]
        others = other_offers(policy)
        second, third = agent.ask(2, actions=UserDict(others))
        assert second.arm == third.arm == list(others)[second.action]
        unnamed = agent.ask(actions=list(OFFERS.values()))
        assert unnamed.arm == f"action {unnamed.action}"
        assert agent.open_decisions == [first, second, third, unnamed]
        if lasting:
            agent.close()
            agent = pb.Agent.open(path or "")
        assert agent.open_decisions == [first, second, third, unnamed]
        agent.tell(first, 1.0, played="nothing")
        agent.tell_many([(second, 1.0, "tea"), (third.id, 0.5, 1)])
        with pytest.raises(InvalidInput, match="played must be"):
            agent.tell(unnamed, 1.0, played="aspirin")
        agent.tell(unnamed, 1.0, played="action 2")
        assert agent.open_decisions == []
        assert agent.counts.told == 4
    agent.close()


@pytest.mark.parametrize("lasting", [False, True])
def test_the_reward_counts_for_the_action_of_the_name(lasting: bool, tmp_path: Path) -> None:
    with pb.Agent(pb.AdaCOFUL(2, pb.zCDP(1), regulariser=1.0), path=tmp_path / "a.db" if lasting else None) as agent:
        decision = agent.ask(actions=OFFERS)
        agent.tell(decision, 1.0, played="placebo")
        since = np.array(agent.learned["since"]) + agent.learned["frozen"]
        assert since == pytest.approx(np.diag([1.0, 2.0]))


def test_rows_of_a_frame_are_named_by_a_text_index() -> None:
    agent = pb.Agent(pb.AdaCOFUL(2, pb.zCDP(1)))
    frame = pd.DataFrame(OFFERS, index=["x", "y"]).T
    decision = agent.ask(actions=frame)
    assert decision.arm == frame.index[decision.action]
    agent.tell(decision, 1.0, played="placebo")
    assert agent.predict(frame) == agent.predict(OFFERS)
    unnamed = agent.ask(actions=frame.reset_index(drop=True))
    assert unnamed.arm == f"action {unnamed.action}"
    with pytest.raises(InvalidInput, match="different names"):
        agent.ask(actions=pd.concat([frame, frame]))


@pytest.mark.parametrize(
    ("actions", "words"),
    [
        ({1: [0.0, 1.0]}, "texts for names, got one of type int"),
        ({"": [0.0, 1.0]}, "different names, none of them empty"),
        ({}, "must be a table of 2 columns"),
        ({"a": [0.0, 1.0], "b": [0.0]}, "must be a table of numbers"),
        ({"a": [0.0, 1.0], "b": [2.0, 0.0]}, "norm at most 1, got 2 in row 1"),
        ({"a": 0.5, "b": 0.1}, "must be a table of 2 columns"),
    ],
)
def test_what_is_no_name_or_no_vector_is_refused_and_nothing_changes(actions: Any, words: str) -> None:
    agent = pb.Agent(pb.AdaCOFUL(2, pb.zCDP(1)))
    with pytest.raises(InvalidInput, match=words):
        agent.ask(actions=actions)
    assert agent.counts.asked == 0


def test_an_unknown_name_is_refused_with_those_that_were_offered() -> None:
    agent = pb.Agent(pb.AdaCOFUL(2, pb.zCDP(1)))
    decision = agent.ask(actions=OFFERS)
    with pytest.raises(InvalidInput, match=r"one of the arms \['aspirin', 'placebo', 'nothing'\], got 'tea'"):
        agent.tell(decision, 1.0, played="tea")
    with pytest.raises(InvalidInput, match="from 0 to 2"):
        agent.tell(decision, 1.0, played=3)
    with pytest.raises(InvalidInput, match="same actions at every step"):
        pb.Agent(pb.AdaCUCB(3, pb.zCDP(1))).ask(actions=OFFERS)


@pytest.mark.parametrize("cls", [pb.ShariffSheffet, pb.AdaCOFULPrivate])
@pytest.mark.parametrize("lasting", [False, True])
def test_names_of_private_contexts_are_where_the_contexts_are_and_go_with_them(
    cls: Any, lasting: bool, tmp_path: Path
) -> None:
    """Only the name of the action that was recommended is where its number is."""
    path = tmp_path / "agent.db"
    with pb.Agent(cls(2, pb.zCDP(1)), (-1, 1), path=path if lasting else None) as agent:
        decision = agent.ask(actions=OFFERS)
        hidden = [name for name in OFFERS if name != decision.arm]
        bandit = bandit_of(agent)
        opened = bandit.records.find(decision.id)
        assert opened is not None
        assert opened.offered is None
        assert type(bandit.offered_to(opened)) is NamedOffer
        for shown in (bandit.public, bandit.private, opened, agent.open_decisions, agent.learned, agent.ledger, agent):
            assert not any(name in repr(shown) for name in hidden)
        with pytest.raises(InvalidInput) as caught:
            agent.tell(decision, 1.0, played="tea")
        assert not any(name in str(caught.value) for name in (*OFFERS, "tea"))
        agent.tell(decision, 1.0, played=hidden[0])
        assert bandit.offered_to(opened) is None
        assert agent.open_decisions == []
    if lasting:
        stored = path.read_bytes()
        assert not any(name.encode() in stored for name in OFFERS)


def test_any_text_is_a_name_also_in_a_file(tmp_path: Path) -> None:
    offers = {
        "Grüner Tee ☕": [1.0, 0.0],
        '{"names": 1}': [0.0, 1.0],
        "half \ud800": [0.0, 0.0],
        "action 0": [0.1, 0.0],
    }
    with pb.Agent(pb.AdaCOFUL(2, pb.zCDP(1)), path=tmp_path / "agent.db") as agent:
        decision = agent.ask(actions=offers)
    with pb.Agent.open(tmp_path / "agent.db") as agent:
        assert agent.open_decisions == [decision]
        opened = bandit_of(agent).records.find(decision.id)
        assert opened is not None
        offered = bandit_of(agent).offered_to(opened)
        assert type(offered) is NamedOffer
        assert offered.names == tuple(offers)
        agent.tell(decision, 1.0, played="action 0")


@pytest.mark.parametrize(
    "names", [["a"], ["a", "a", "b"], ["a", "b", ""], ["a", "b", 3], "abc", None, {"a": 1, "b": 2, "c": 3}]
)
def test_names_in_a_file_that_do_not_fit_its_actions_are_refused(names: Any) -> None:
    settings = bandit_of(pb.Agent(pb.AdaCOFUL(2, pb.zCDP(1)))).settings
    decisions = OpenDecisions(settings, 1, 1)
    rows = [[5, 0], [0, 5], [0, 0]]
    right = json.dumps({"names": list(OFFERS), "actions": rows})
    assert decisions.parsed((1, 1, 1, None, right))[0].arm == "placebo"
    assert decisions.parsed((1, 1, 1, None, json.dumps(rows)))[0].arm is None  # as earlier versions wrote it
    with pytest.raises(AgentFileInvalid, match="cannot be read"):
        decisions.parsed((1, 1, 1, None, json.dumps({"names": names, "actions": rows})))
