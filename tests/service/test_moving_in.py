"""A durable agent moves into a database and goes on there as it would have. Its file opens no more."""

from __future__ import annotations

import os
import random
import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import private_bandits as pb
from private_bandits.errors import AgentBusy, AgentFileInvalid, BanditExists, ClosedDecision, OutcomeUnknown
from private_bandits.service.committer import Committer
from private_bandits.service.creating import create
from private_bandits.service.moving_in import move_in
from private_bandits.service.operations import Ask, Tell
from private_bandits.storage.ledger_file import read_ledger_file
from private_bandits.storage.sql.database import Transaction
from private_bandits.storage.sqlite import SqliteStore
from tests.databases import KINDS, DatabaseAgent, opened
from tests.service.test_like_an_agent import OPTIONS, POLICIES, SEED, WORDS, Run, Twin, in_this_process

POLICY = pb.AdaCUCB(arms=["A", "B"], budget=pb.NoPrivacy())


def on_agent(agent: pb.Agent) -> Run:
    """An agent that answers as a worker does."""

    def tell(decision: str, reward: float, played: Any) -> str:
        before = agent.counts.told
        try:
            agent.tell(decision, reward, played=played)
        except ClosedDecision as error:
            return next(outcome for outcome, words in WORDS.items() if words in str(error))
        return "recorded" if agent.counts.told > before else "over_limit"

    def give_up(decision: str) -> str:
        try:
            agent.give_up(decision)
        except ClosedDecision:
            return "already_recorded"
        return "given_up"

    def run(kind: str, arguments: dict[str, Any]) -> Any:
        calls: dict[str, Any] = {"ask": agent.ask, "tell": tell, "give_up": give_up}
        return calls[kind](**arguments)

    return run


@pytest.mark.parametrize("name", POLICIES)
def test_it_goes_on_as_it_would_have(name: str, tmp_path: Path) -> None:
    path, options = tmp_path / "agent.db", OPTIONS.get(name, {})
    twin = Twin(POLICIES[name], options, [], random.Random(9))
    for life in range(2):
        agent = pb.Agent.open(path) if life else pb.Agent(POLICIES[name], path=path, seed=SEED, **options)
        with agent:
            twin.workers = [on_agent(agent)]
            twin.act(30)
    database = opened("sqlite", tmp_path)
    moved = move_in(database, path, "trial")
    assert (moved.bandit, moved.counts, moved.releases) == ("trial", twin.agent.counts, len(twin.agent.ledger))
    twin.check(database)
    with in_this_process("sqlite", tmp_path, 2) as twin.workers:
        twin.act(30)
        twin.check(database)


@pytest.mark.parametrize("kind", KINDS)
def test_the_file_opens_no_more_and_its_ledger_can_be_read(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    with pb.Agent(POLICY, path=path) as agent:
        agent.tell(agent.ask(), 1.0)
        database = opened(kind, tmp_path)
        with pytest.raises(AgentBusy):
            move_in(database, path, "trial")
    move_in(database, path, "trial")
    with pytest.raises(AgentFileInvalid, match="moved into a database, as the bandit trial: go on there"):
        pb.Agent.open(path)
    with pytest.raises(AgentFileInvalid, match="go on there"):
        move_in(database, path, "trial")
    assert read_ledger_file(path).rows == list(agent.ledger)
    assert not Path(f"{path}-public").exists()
    assert DatabaseAgent.resume(database).ledger.head == agent.ledger.head


def test_what_is_refused_leaves_the_file_an_agents(tmp_path: Path) -> None:
    path, database = tmp_path / "agent.db", opened("sqlite", tmp_path)
    with pb.Agent(POLICY, path=path) as agent:
        decision = agent.ask()
    create(database, "trial", POLICY, give_up_after=None)
    with pytest.raises(BanditExists, match="another bandit named 'trial'"):
        move_in(database, path, "trial")
    with pb.Agent.open(path) as again:
        again.tell(decision, 1.0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("at", ["before the commit", "at the commit", "after the commit"])
def test_a_move_that_is_cut_short_goes_on_at_the_same_place_only(
    at: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At no time do both go on: the file opens no more from the first write on."""
    path = tmp_path / "agent.db"
    with pb.Agent(POLICY, path=path, max_rewards_per_person=2) as agent:
        found = agent.ask(20, person="ann") + agent.ask(20, person="bob")
        agent.tell_many([(one, 0.5) for one in (*found[:2], found[20])])
    database = opened(kind, tmp_path)
    whole_commit, whole_mark = Transaction.commit, SqliteStore.mark_moved

    def commit(work: Transaction) -> None:
        if at == "at the commit":
            whole_commit(work)
        raise OutcomeUnknown("the answer was lost")

    def mark(store: SqliteStore, moved: Any, public: Any) -> None:
        if moved.done:
            raise KeyboardInterrupt
        whole_mark(store, moved, public)

    with monkeypatch.context() as patch:
        if at == "after the commit":
            patch.setattr(SqliteStore, "mark_moved", mark)
        else:
            patch.setattr(Transaction, "commit", commit)
        with pytest.raises((OutcomeUnknown, KeyboardInterrupt)):
            move_in(database, path, "trial")
    with pytest.raises(AgentFileInvalid, match="began to move into a database, as the bandit trial"):
        pb.Agent.open(path)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for other, name in ((opened(kind, elsewhere), "trial"), (database, "other")):
        with pytest.raises(AgentFileInvalid, match="began to move"):
            move_in(other, path, name)
    assert move_in(database, path, "trial").counts.told == 3
    with pytest.raises(AgentFileInvalid, match="go on there"):
        move_in(database, path, "trial")
    with Committer(database) as committer:
        assert committer.run("trial", Tell(found[0].id, 1.0)) == "already_recorded"
        assert committer.run("trial", Tell(found[5].id, 1.0)) == "over_limit"
        assert committer.run("trial", Tell(found[25].id, 1.0)) == "recorded"
        assert committer.run("trial", Tell(found[25].id, 1.0)) == "already_recorded"


def test_a_batch_of_old_decisions_has_few_statements(tmp_path: Path) -> None:
    """Those that were told in the file have no rows."""
    path = tmp_path / "agent.db"
    with pb.Agent(POLICY, path=path) as agent:
        found = agent.ask(50)
        agent.tell_many([(one, 0.5) for one in found])
    database = opened("sqlite", tmp_path)
    move_in(database, path, "trial")
    statements: list[Any] = []
    whole = Transaction.rows

    def rows(work: Transaction, statement: Any) -> Any:
        statements.append(statement)
        return whole(work, statement)

    with Committer(database) as committer:
        committer.run("trial", Ask())
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Transaction, "rows", rows)
            futures = committer.submit_many("trial", [Tell(one.id, 1.0) for one in found])
            assert {future.result() for future in futures} == {"already_recorded"}
    assert len(statements) < 10


def test_decisions_keep_their_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, now = tmp_path / "agent.db", 1e10
    agent = pb.Agent(POLICY, path=path, give_up_after=timedelta(seconds=100), clock=lambda: now)
    early = agent.ask(2)
    now += 50
    late = agent.ask()
    agent.close()
    monkeypatch.setattr(Transaction, "_clock", lambda work: int(1e6 * now))
    database = opened("sqlite", tmp_path)
    move_in(database, path, "trial")
    now += 60
    with Committer(database) as committer:
        assert committer.run("trial", Tell(early[0].id, 1.0)) == "given_up"
        assert committer.run("trial", Tell(late.id, 1.0)) == "recorded"


def test_ids_that_a_power_cut_took_back_are_not_taken_for_others(tmp_path: Path) -> None:
    """The number of a lost decision was given to another one."""
    path = tmp_path / "agent.db"
    with pb.Agent(POLICY, path=path) as agent:
        agent.ask(2)
    shutil.copy(path, tmp_path / "earlier.db")
    with pb.Agent.open(path) as agent:
        lost = agent.ask(3)
    os.replace(tmp_path / "earlier.db", path)
    pb.Agent.open(path).close()  # so that generations differ
    with pb.Agent.open(path) as agent:
        kept = agent.ask(3)
    assert [one.id.rpartition("-")[2] for one in lost] == [one.id.rpartition("-")[2] for one in kept]
    database = opened("sqlite", tmp_path)
    move_in(database, path, "trial")
    with Committer(database) as committer:
        for one in lost:
            assert committer.submit("trial", Tell(one.id, 1.0)).exception() is not None
        assert [committer.run("trial", Tell(one.id, 1.0)) for one in kept] == ["recorded"] * 3
        assert len(committer.run("trial", Ask())) == 1


def test_a_file_of_an_earlier_version_moves_too(tmp_path: Path) -> None:
    for name in ("people.db", "factor.db", "contextual.db"):
        folder = tmp_path / name.removesuffix(".db")
        folder.mkdir()
        path = Path(shutil.copy(Path(__file__).parents[1] / "storage" / "files" / name, folder / name))
        database = opened("sqlite", folder)
        moved = move_in(database, path, "trial")
        found = DatabaseAgent.resume(database)
        assert (found.counts, len(found.ledger), found.ledger.head) == (moved.counts, moved.releases, moved.head)
        assert moved.counts.asked > 0
