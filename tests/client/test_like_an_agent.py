"""A bandit of the service does, through its client, what an agent in memory does: same decisions, ledger and words."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import private_bandits as pb
from private_bandits.client import ServedBandit
from private_bandits.errors import AgentFinished, ClosedDecision, InvalidInput, UnknownDecision
from private_bandits.testing import PREDICTED, offered
from tests.client.server import Served, served
from tests.service.test_like_an_agent import OPTIONS, POLICIES, SEED
from tests.support import ONE_OF_EACH_NOISE, policy_id

BY_COUNT = {"give_up_after"}
"""Options of agents that the service does not have."""

SHORT = ("held-again", "private-contexts")
"""Policies that are always compared."""


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Served]:
    with served("sqlite", tmp_path) as found:
        yield found


class Pair:
    """An agent in memory and a bandit of the service. Each call goes to both, and has to end in the same way."""

    def __init__(self, agent: pb.Agent, bandit: ServedBandit) -> None:
        self.agent, self.bandit = agent, bandit
        self.made: list[tuple[pb.Decision, pb.Decision]] = []

    def ask(self, n: int, **options: Any) -> None:
        own, theirs = self.agent.ask(n, **options), self.bandit.ask(n, **options)
        assert [one[1:] for one in theirs] == [one[1:] for one in own]
        self.made += zip(own, theirs, strict=True)

    def both(self, verb: str, place: int, *arguments: Any, **options: Any) -> None:
        """The same verb on the same decision: it returns, or raises the same for the same reason."""
        ends = []
        for target, decision in zip((self.agent, self.bandit), self.made[place], strict=True):
            try:
                getattr(target, verb)(decision, *arguments, **options)
            except ClosedDecision as error:
                ends.append(str(error).partition("closed: ")[2])
            else:
                ends.append("")
        own, theirs = ends
        given_up = verb == "give_up" and "given up" in own
        if theirs or not (given_up or "not taken" in own):  # some calls are no error when they are made again
            assert theirs == own

    def act(self, steps: int, script: random.Random) -> None:
        """Late, missing, other and repeated rewards, in single calls and in batches."""
        arms = len(self.agent.policy.arm_names) or len(offered(self.agent.policy, 0))
        limited = self.agent.settings["max_rewards_per_person"] is not None
        for step in range(steps):
            person = f"p{script.randrange(40)}" if limited else None
            self.ask(script.choice([1, 1, 2, 6]), actions=offered(self.agent.policy, step), person=person)
            for _ in range(script.randrange(4)):
                played = script.randrange(arms) if script.random() < 0.3 else None
                self.both("tell", script.randrange(len(self.made)), script.random(), played=played)
            if script.random() < 0.1:
                self.both("give_up", script.randrange(len(self.made)))
            if step % PREDICTED == 0:
                self.tell_many(script)

    def tell_many(self, script: random.Random) -> None:
        waiting = {decision.id for decision in self.agent.open_decisions}
        places = [place for place, (own, _) in enumerate(self.made) if own.id in waiting]
        told = [(place, script.random()) for place in script.sample(places, len(places) // 2)]
        self.agent.tell_many([(self.made[place][0], reward) for place, reward in told])
        self.bandit.tell_many((self.made[place][1].id, reward) for place, reward in told)

    def check(self) -> None:
        """Everything that both show. The service gives up by time, and notes that in the settings."""
        own, theirs = self.agent.ledger, self.bandit.ledger
        assert [row.parts for row in theirs] == [row.parts for row in own]
        assert [(row.values, row.cost) for row in theirs] == [(row.values, row.cost) for row in own]
        assert theirs.total == own.total
        assert theirs.verify().ok
        assert self.bandit.counts == self.agent.counts
        assert self.bandit.estimates(0.1) == self.agent.estimates(0.1)
        assert self.bandit.policy == self.agent.policy
        assert self.bandit.finished == self.agent.finished
        assert self.bandit.guarantee(1e-5) == self.agent.guarantee(1e-5)
        if self.agent.policy.arm_names:
            mine, other = self.agent.verdict(0.3), self.bandit.verdict(0.3)
            assert (other.to_dict(), str(other)) == (mine.to_dict(), str(mine))
        if not self.agent.policy.private_contexts:
            assert [d[1:] for d in self.bandit.open_decisions] == [d[1:] for d in self.agent.open_decisions]


def pair(service: Served, policy: Any, **options: Any) -> Pair:
    bandit = service.made(policy, seed=SEED, give_up_after=None, **options)
    return Pair(pb.Agent(policy, seed=SEED, **options), bandit)


@pytest.mark.parametrize(
    "name", [name if name in SHORT else pytest.param(name, marks=pytest.mark.full) for name in POLICIES]
)
def test_the_same_comes_out(name: str, service: Served) -> None:
    options = {key: value for key, value in OPTIONS.get(name, {}).items() if key not in BY_COUNT}
    found = pair(service, POLICIES[name], **options)
    found.act(40, random.Random(3))
    found.check()
    assert len(found.agent.ledger) > 5
    assert found.bandit.finish() == found.agent.finish()
    found.check()
    actions = offered(found.agent.policy, 0)
    for target in (found.agent, found.bandit):
        with pytest.raises(AgentFinished):
            target.ask(actions=actions, person="p1" if "max_rewards_per_person" in options else None)


def test_so_it_does_on_postgresql(tmp_path: Path) -> None:
    with served("postgresql", tmp_path) as service:
        found = pair(service, POLICIES["held-again"], **OPTIONS["held-again"])
        found.act(25, random.Random(4))
        found.check()


@pytest.mark.full
@pytest.mark.parametrize("policy", ONE_OF_EACH_NOISE, ids=policy_id)
def test_so_it_does_with_every_policy(policy: Any, service: Served) -> None:
    found = pair(service, policy)
    found.act(40, random.Random(5))
    found.check()


def test_the_statement_is_the_one_of_the_agent(service: Served) -> None:
    plan = {"arms": ["A", "B", "C"], "people": 200}
    found = pair(service, POLICIES["held-again"], plan=plan, **OPTIONS["held-again"])
    found.act(25, random.Random(6))
    for _ in range(2):
        theirs = found.bandit.statement(0.1)
        date = theirs.to_dict()["written"]
        own = found.agent.statement(0.1, written=date)
        known = [own.to_dict()["ledger"], own.to_dict()["settings"]["token"]]
        for text in known[0].values():
            assert str(text) in own.text
        assert _without_heads(theirs.to_dict()) == _without_heads(own.to_dict())
        assert len(theirs.text.splitlines()) == len(own.text.splitlines())
        assert theirs.html().count("<tr") == own.html().count("<tr")
        found.agent.finish()
        found.bandit.finish()


def _without_heads(facts: dict[str, Any]) -> Any:
    """Facts without what differs between two bandits of one kind: their tokens, and the heads that follow from them."""
    facts = json.loads(json.dumps(facts))
    for name in ("head", "first_head"):
        del facts["ledger"][name]
    del facts["settings"]["token"]
    return facts


@pytest.mark.parametrize("shape", [dict, np.array, list])
def test_actions_come_as_they_are_offered(shape: Any, service: Served) -> None:
    found = pair(service, pb.AdaCOFUL(dimension=2, budget=pb.zCDP(1.0), horizon=100))
    table = {"mild": [0.6, 0.0], "strong": [0.0, 0.8]}
    found.ask(3, actions=table if shape is dict else shape(list(table.values())))
    if shape is dict:
        found.both("tell", 0, 1.0, played="strong")
    found.both("tell", 1, 0.5, played=1)
    found.check()


def test_a_frame_has_names(service: Served) -> None:
    pd = pytest.importorskip("pandas")
    found = pair(service, pb.AdaCOFUL(dimension=2, budget=pb.zCDP(1.0), horizon=100))
    found.ask(2, actions=pd.DataFrame([[0.6, 0.0], [0.0, 0.8]], index=["mild", "strong"]))
    assert found.made[0][1].arm in ("mild", "strong")


def test_lists_of_any_length_are_told(service: Served) -> None:
    found = pair(service, pb.AdaCUCB(n_arms=2, budget=pb.zCDP(1.0)))
    found.ask(2500)
    assert len({theirs.id for _, theirs in found.made}) == 2500
    rewards = [(place * 7 % 11) / 11 for place in range(2500)]
    found.agent.tell_many([(own, reward) for (own, _), reward in zip(found.made, rewards, strict=True)])
    found.bandit.tell_many([(theirs, reward) for (_, theirs), reward in zip(found.made, rewards, strict=True)])
    found.check()


BAD: dict[str, tuple[Any, type[Exception]]] = {
    "no number": ([("made", "much")], InvalidInput),
    "NaN": ([("made", float("nan"))], InvalidInput),
    "infinite": ([("made", 1.0, 0), ("made", float("inf"))], InvalidInput),
    "an arm that is none": ([("made", 0.5, 0.5)], InvalidInput),
    "an id of another": ([("no such id", 0.5)], UnknownDecision),
    "no id": ([(7, 0.5)], UnknownDecision),
    "no pair": ([0.5], InvalidInput),
}


@pytest.mark.parametrize("case", BAD)
def test_what_an_agent_refuses_is_refused_before_anything_is_sent(case: str, service: Served) -> None:
    items, kind = BAD[case]
    found = pair(service, pb.AdaCUCB(n_arms=2, budget=pb.zCDP(1.0)))
    found.ask(len(items))
    targets: tuple[Any, Any] = (found.agent, found.bandit)
    for side, target in enumerate(targets):
        names = [one[side] for one in found.made]
        told = [
            (names[i], *item[1:]) if isinstance(item, tuple) and item[0] == "made" else item
            for i, item in enumerate(items)
        ]
        with pytest.raises(kind):
            target.tell_many(told)
        assert target.counts.told == 0


def test_of_a_list_the_refused_are_named_and_the_others_told(service: Served) -> None:
    bandit = service.made(pb.AdaCUCB(n_arms=2, budget=pb.zCDP(1.0)))
    first, second, third = bandit.ask(3)
    bandit.tell(second, 0.25)
    bandit.give_up(first)
    with pytest.raises(ClosedDecision, match=f"{first.id} is closed: it was given up") as caught:
        bandit.tell_many([(third, 0.25), (first, 0.25), (second, 0.25)])
    assert "number 2 of the batch: 2 of the 3 were refused" in caught.value.__notes__[0]
    assert "0.25" not in str(caught.value) + caught.value.__notes__[0]
    assert bandit.counts.told == 2


def _shown(service: Served, changed: int | None) -> list[tuple[str, Any]]:
    """Everything that some calls show: actions, and releases as they come. One reward may be another one."""
    bandit = service.made(
        pb.AdaCUCB(arms=["A", "B"], budget=pb.zCDP(1.0)), f"b{changed}", seed=SEED, give_up_after=None
    )
    found: list[tuple[str, Any]] = []
    rows = 0
    for step in range(16):
        decision = bandit.ask()
        found.append(("action", decision.action))
        reward = step % 5 / 4
        bandit.tell(decision, 1 - reward if step == changed else reward)
        ledger = bandit.ledger
        found += [("release", (row.keys, row.counts, row.values)) for row in ledger.rows[rows:]]
        found.append(("estimates", bandit.estimates()))
        rows = len(ledger)
    return found


def test_nothing_moves_before_the_release_of_a_changed_reward(service: Served) -> None:
    """The first thing that differs between two worlds is the release that holds the reward in which they differ."""
    original = _shown(service, None)
    steps = [place for place, (kind, _) in enumerate(original) if kind == "action"]
    for changed in (0, 4):
        played = original[steps[changed]][1]
        holds = (
            place
            for place, (kind, what) in enumerate(original)
            if kind == "release" and place > steps[changed] and what[0] == (played,)
        )
        other = _shown(service, changed)
        differs = next(i for i, (one, another) in enumerate(zip(original, other, strict=True)) if one != another)
        assert differs == next(holds)
        assert original[differs][1][:2] == other[differs][1][:2]  # its values differ, and nothing else
