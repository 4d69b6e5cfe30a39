"""The public file beside an agent's own: one moment, lasting, public, and no trouble for its owner."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import private_bandits as pb
from private_bandits.agent import bandit_of
from private_bandits.errors import AgentBusy, AgentFileInvalid, AgentFileMissing, InvalidInput, PolicyFailed
from private_bandits.ledger import Account
from private_bandits.public_view import PublicView, view_of
from private_bandits.storage.public_file import public_path, read_public_file
from private_bandits.testing import offered
from tests.support import ONE_OF_EACH_NOISE, policy_id

POLICY = pb.AdaCIMED(arms=["A", "B", "C"], budget=pb.zCDP(1.0))


def seen(path: Path) -> PublicView:
    return PublicView.from_dict(read_public_file(public_path(path))[0])


def play(agent: pb.Agent, people: int, seed: int = 0) -> None:
    chance = np.random.default_rng(seed)
    for step in range(people):
        decision = agent.ask(actions=offered(agent.policy, step))
        agent.tell(decision, float(chance.random() < 0.3))


@pytest.mark.parametrize("policy", ONE_OF_EACH_NOISE, ids=policy_id)
def test_a_view_says_what_the_agent_says_and_comes_back_from_plain_data(policy: Any, tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    agent = pb.Agent(policy, path=path, seed=3)
    for part in range(3):
        if part == 1:
            play(agent, 40)
        if part == 2:
            agent.finish()
        agent.close()
        view = seen(path)
        agent = pb.Agent.open(path)
        assert view.counts == agent.counts
        assert (view.releases, view.head, view.spent) == (len(agent.ledger), agent.ledger.head, agent.ledger.total)
        assert view.guarantee() == agent.guarantee()
        assert view.finished is agent.finished
        assert view.estimates(0.1) == agent.estimates(0.1)
        if policy.arm_names:
            assert view.verdict(0.1) == agent.verdict(0.1)
        assert json.dumps(seen(path).to_dict()) == json.dumps(view.to_dict())
    agent.close()


def test_it_is_written_at_once_after_a_release_and_otherwise_once_a_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    path = tmp_path / "agent.db"
    agent = pb.Agent(POLICY, path=path)
    assert seen(path).counts.asked == 0
    agent.ask(2)
    assert seen(path).counts.asked == 0
    clock[0] += 1.0
    agent.ask()
    assert seen(path).counts.asked == 3
    while not len(agent.ledger):
        agent.tell(agent.ask(), 1.0)
    assert seen(path).releases == 1
    assert seen(path).counts == agent.counts
    agent.ask()
    agent.close()
    assert seen(path).counts == agent.counts


BUSY = """
import sys
import private_bandits as pb
agent = pb.Agent(pb.AdaCIMED(arms=["A", "B", "C"], budget=pb.zCDP(25.0)), path=sys.argv[1], give_up_after=30)
print("ready", flush=True)
for step in range(10**9):
    decision = agent.ask()
    if step % 5:
        agent.tell(decision, float(step % 3 == 0))
    elif step % 2:
        agent.give_up(decision)
"""


@pytest.mark.parametrize("looks", [200, pytest.param(10_000, marks=pytest.mark.full)])
def test_readers_see_one_lasting_moment_while_the_owner_goes_as_fast_as_it_can(looks: int, tmp_path: Path) -> None:
    """The owner is killed in the end. All that was seen is in the ledger that it left behind."""
    path = tmp_path / "agent.db"
    found: dict[int, set[str]] = {}
    asked = 0
    with subprocess.Popen([sys.executable, "-c", BUSY, str(path)], stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "ready\n"
        done = 0
        while done < looks or len(found) < 5:
            view = seen(path)
            done += 1
            counts = view.counts
            assert counts.asked == counts.open + counts.told + counts.given_up
            assert counts.asked >= asked
            asked = counts.asked
            assert sum(known.rewards for known in view.estimates()) == view.released <= counts.told
            assert int(view.head.partition("-")[0]) == view.releases
            found.setdefault(view.releases, set()).add(view.head)
        assert owner.poll() is None
        owner.kill()
    with pb.Agent.open(path) as agent:
        account = Account(opening=agent.ledger.opening)
        heads = {0: account.head}
        for row in agent.ledger:
            account.charge(row)
            heads[row.number] = account.head
    assert {number: {heads[number]} for number in found} == found


def test_two_worlds_that_differ_in_unreleased_rewards_have_the_same_file(tmp_path: Path) -> None:
    texts = []
    for world in (0.0, 1.0):
        path = tmp_path / f"{world}.db"
        agent = pb.Agent(pb.AdaCIMED(arms=["A", "B", "C"], budget=pb.zCDP(0.1)), path=path, seed=5)
        while len(agent.ledger) < 3:
            agent.tell(agent.ask(), 1.0)
        agent.tell(agent.ask(), world)
        assert len(agent.ledger) == 3
        agent.close()
        view = read_public_file(public_path(path))[0]
        texts.append({name: value for name, value in view.items() if name not in ("head", "opening")})
    assert texts[0] == texts[1]


def test_only_its_owner_can_read_it_and_it_holds_no_person_and_no_salt(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    with pb.Agent(POLICY, path=path, max_rewards_per_person=2) as agent:
        for number in range(40):
            agent.tell(agent.ask(person=f"patient {number}"), 1.0)
        salt = bandit_of(agent).settings.salt
    text = public_path(path).read_text(encoding="ascii")
    assert "patient" not in text
    assert salt not in text
    assert bandit_of(agent).settings.hash_person("patient 3") not in text
    assert public_path(path).stat().st_mode & 0o777 == 0o600
    assert sorted(file.name for file in tmp_path.iterdir()) == ["agent.db", "agent.db-public"]


def test_an_agent_goes_on_where_the_file_cannot_be_written(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    public_path(path).mkdir()
    with pb.Agent(POLICY, path=path) as agent:
        play(agent, 60)
        assert len(agent.ledger)
    with pytest.raises(AgentFileInvalid, match="no public file"):
        read_public_file(public_path(path))


def test_it_stands_beside_the_file_itself_where_the_path_is_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    link = tmp_path / "link.db"
    pb.Agent(POLICY, path=tmp_path / "real" / "agent.db").close()
    link.symlink_to(tmp_path / "real" / "agent.db")
    with pb.Agent.open(link) as agent:
        agent.ask()
    assert seen(link).counts.asked == 1
    assert public_path(link) == tmp_path / "real" / "agent.db-public"


def test_a_draft_that_was_left_behind_is_no_trouble(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    draft = Path(f"{public_path(path)}-draft")
    draft.symlink_to(tmp_path / "elsewhere")
    with pb.Agent(POLICY, path=path) as agent:
        play(agent, 60)
    assert seen(path).releases
    assert not (tmp_path / "elsewhere").exists()


@dataclass(frozen=True)
class Fails(pb.AdaCUCB):
    """Fails at its second release."""

    name = "fails-second-for-tests"

    def learn(self, state: Any, release: pb.Release, step: int) -> None:
        if release.number == 2:
            raise ArithmeticError("no more")
        super().learn(state, release, step)


def test_a_policy_that_failed_is_shown_as_failed(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    agent = pb.Agent(Fails(2, pb.zCDP(1.0)), path=path)
    agent.tell(agent.ask(), 1.0)
    with pytest.raises(PolicyFailed):
        agent.tell(agent.ask(), 1.0)
    view = seen(path)
    assert view.failed == "Fails failed at release 2, with ArithmeticError"
    assert (view.releases, view.counts.told, view.estimates(), view.verdict()) == (2, 2, [], None)
    assert pb.Agent.open(path).ledger.head == view.head
    assert seen(path).failed is not None


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: "",
        lambda text: text[: len(text) // 2],
        lambda text: text.replace('"asked": 1', '"asked": 7'),
        lambda text: "{}\n{}\n",
        lambda text: text.replace("private-bandits public view", "something else"),
        lambda text: text + "\n\n",
        lambda text: text.replace("asked", "aské"),
    ],
)
def test_a_damaged_file_is_refused(tmp_path: Path, damage: Any) -> None:
    path = tmp_path / "agent.db"
    with pb.Agent(POLICY, path=path) as agent:
        agent.ask()
    public_path(path).write_text(damage(public_path(path).read_text()), encoding="utf-8")
    with pytest.raises(AgentFileInvalid, match=r"agent\.db-public is no public file of an agent, or is damaged"):
        read_public_file(public_path(path))
    pb.Agent.open(path).close()
    assert seen(path).counts.asked == 1


def test_what_is_not_there_or_of_a_later_form_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AgentFileMissing, match="no public file"):
        read_public_file(tmp_path / "nothing")
    agent = pb.Agent(POLICY)
    data = view_of(bandit_of(agent), 0, "9.9").to_dict()
    with pytest.raises(AgentFileInvalid, match="form 99"):
        PublicView.from_dict(data | {"format": 99})
    assert PublicView.from_dict(data).plan is None


def test_a_person_pays_in_a_view_what_they_pay_in_the_agent() -> None:
    agent = pb.Agent(POLICY, max_rewards_per_person=3, unit="person", one_reward_per_episode=True, plan={"why": "x"})
    view = PublicView.from_dict(view_of(bandit_of(agent), 0, "1").to_dict())
    assert view.guarantee() == agent.guarantee()
    assert view.plan == {"why": "x"}
    assert Fraction(view.promise.per_reward) == Fraction(bandit_of(agent).door.budget.level)


# Waiting for the owner.

OWNER = """
import sys, time
import private_bandits as pb
agent = pb.Agent.open(sys.argv[1])
print("ready", flush=True)
time.sleep(0.4)
agent.close()
"""


def test_open_waits_for_the_owner(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    pb.Agent(POLICY, path=path).close()
    with subprocess.Popen([sys.executable, "-c", OWNER, str(path)], stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "ready\n"
        with pytest.raises(AgentBusy):
            pb.Agent.open(path)
        with pytest.raises(AgentBusy) as refused:
            pb.Agent.open(path, wait=0.02)
        assert refused.value.__notes__ == ["it was so for 0.02 seconds"]
        pb.Agent.open(path, wait=20).close()
    assert owner.returncode == 0


@pytest.mark.parametrize("wait", [-1, float("nan"), float("inf"), "1", True, None])
def test_waits_that_are_none_are_refused(tmp_path: Path, wait: Any) -> None:
    with pytest.raises(InvalidInput, match="wait must be a number of seconds"):
        pb.Agent.open(tmp_path / "agent.db", wait=wait)


def test_a_forked_child_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    agent = pb.Agent(POLICY, path=path)
    before = public_path(path).stat()
    child = os.fork()
    if not child:
        try:
            agent.close()
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert public_path(path).stat().st_mtime_ns == before.st_mtime_ns
    agent.close()
