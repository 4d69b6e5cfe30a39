"""What becomes of operations: outcomes, retries, failures, and what they cost."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar

import pytest
import sqlalchemy as sa

import private_bandits as pb
from private_bandits.errors import (
    AgentFinished,
    BanditStopped,
    DatabaseBusy,
    DatabaseFailed,
    InvalidInput,
    OutcomeUnknown,
    Overloaded,
    PolicyFailed,
    StateRolledBack,
    UnknownBandit,
    UnknownDecision,
)
from private_bandits.service import committer as committer_module
from private_bandits.service import working_copy
from private_bandits.service.batch import Batches
from private_bandits.service.committer import Committer
from private_bandits.service.creating import create
from private_bandits.service.ids import DecisionIds
from private_bandits.service.operations import Ask, Finish, GiveUp, Operation, Tell
from private_bandits.storage.sql import database as database_module
from private_bandits.storage.sql.asks import KEPT_FOR
from private_bandits.storage.sql.database import Database, Transaction
from private_bandits.storage.sql.schema import asks, decisions, hot, releases
from private_bandits.storage.sql.store import SqlStore
from private_bandits.storage.sql.stored import change_standing, find_bandit
from tests.databases import KINDS, DatabaseAgent, opened

EXACT = pb.AdaCUCB(arms=["A", "B"], budget=pb.NoPrivacy())
"""Without noise, so that releases show exact sums."""


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def database(kind: str, tmp_path: Path) -> Database:
    return opened(kind, tmp_path)


@pytest.fixture
def committer(database: Database) -> Iterator[Committer]:
    with Committer(database) as found:
        yield found


def made(database: Database, policy: Any = EXACT, **options: Any) -> None:
    create(database, "trial", policy, **{"give_up_after": None} | options)


def tell_all(committer: Committer, told: list[tuple[str, float]]) -> list[Any]:
    futures = committer.submit_many("trial", [Tell(key, reward) for key, reward in told])
    return [future.result() for future in futures]


def only_row(database: Database, table: sa.Table = hot) -> Any:
    with database.reading() as work:
        (row,) = work.rows(sa.select(table))
    return row


# Outcomes.


def test_a_reward_counts_once_whatever_is_told_later(database: Database, committer: Committer) -> None:
    made(database)
    (one,) = committer.run("trial", Ask())
    assert committer.run("trial", Tell(one.id, 1.0)) == "recorded"
    wrong: list[Any] = [1.0, 0.0, float("nan"), "x", None]
    for reward in wrong:
        assert committer.run("trial", Tell(one.id, reward, played="nobody")) == "already_recorded"
    assert committer.run("trial", GiveUp(one.id)) == "already_recorded"
    agent = DatabaseAgent.resume(database)
    assert [row.values for row in agent.ledger] == [(1.0,)]


def test_every_way_to_end_has_its_outcome(database: Database, committer: Committer) -> None:
    made(database, max_rewards_per_person=1, give_up_after=4)
    (one,) = committer.run("trial", Ask(person="ann"))
    two, three = committer.run("trial", Ask(n=2, person="ann"))
    for _ in range(2):
        assert committer.run("trial", Tell(one.id, 1.0)) in ("recorded", "already_recorded")
        assert committer.run("trial", Tell(two.id, 1.0)) == "over_limit"
        assert committer.run("trial", GiveUp(three.id)) == "given_up"
        assert committer.run("trial", Tell(three.id, 1.0)) == "given_up"
    (late,) = committer.run("trial", Ask(person="bob"))
    committer.run("trial", Ask(n=4, person="eve"))
    assert committer.run("trial", Tell(late.id, 1.0)) == "given_up"
    counts = DatabaseAgent.resume(database).counts
    assert (counts.asked, counts.told, counts.over_limit, counts.given_up, counts.out_of_time) == (8, 1, 1, 2, 1)


def test_what_is_refused_changes_nothing_and_leaves_its_batch_alone(database: Database, committer: Committer) -> None:
    made(database)
    one, two = committer.run("trial", Ask(n=2))
    before = only_row(database)
    bad: list[Operation] = [
        Tell(one.id, float("nan")),
        Tell(one.id, 1.0, played="C"),
        Tell("nonsense", 1.0),
        Tell(one.id[:-1] + ("0" if one.id[-1] != "0" else "1"), 1.0),
        Ask(n=0),
        Ask(n=1001),
        Ask(actions=[[1.0]]),
    ]
    futures = committer.submit_many("trial", bad)
    kinds = [type(future.exception()) for future in futures]
    assert kinds == [InvalidInput, InvalidInput, UnknownDecision, UnknownDecision] + [InvalidInput] * 3
    assert only_row(database) == before
    mixed = committer.submit_many("trial", [bad[0], Tell(one.id, 1.0), bad[2], Tell(two.id, 0.5)])
    assert [mixed[1].result(), mixed[3].result()] == ["recorded", "recorded"]
    assert type(mixed[0].exception()) is InvalidInput


def test_no_error_and_no_repr_has_a_reward_or_a_person(database: Database, committer: Committer) -> None:
    made(database, max_rewards_per_person=1)
    (one,) = committer.run("trial", Ask(person="secret"))
    wrong: Any = "0.987654"
    error = committer.submit("trial", Tell(one.id, wrong)).exception()
    assert "987654" not in str(error)
    assert error is not None
    assert [error.__traceback__, error.__context__, error.__cause__] == [None] * 3  # no frame holds what was told
    shown = repr([Tell(one.id, 0.987654), Ask(person="secret", actions=[[0.987654]])])
    assert "987654" not in shown
    assert "secret" not in shown


def test_a_bandit_that_is_not_there_is_told_so(committer: Committer) -> None:
    with pytest.raises(UnknownBandit, match="'trial'"):
        committer.submit("trial", Ask())


# The same ask again.


def test_an_ask_that_comes_again_has_the_same_answer(
    database: Database, committer: Committer, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(database, max_rewards_per_person=2)
    ask = Ask(n=3, person="ann", api_key=1, idempotency_key="k")
    first = committer.run("trial", ask)
    committer.run("trial", Tell(first[1].id, 1.0))
    committer.run("trial", GiveUp(first[2].id))
    assert committer.run("trial", ask) == first
    both = [future.result() for future in committer.submit_many("trial", [ask, Ask(person="ann"), ask])]
    assert both[0] == both[2] == first
    other = committer.run("trial", Ask(n=3, person="ann", api_key=2, idempotency_key="k"))
    assert {one.id for one in other}.isdisjoint(one.id for one in first)
    for changed in ({"n": 2}, {"person": "bob"}):
        again: dict[str, Any] = {"n": 3, "person": "ann", "api_key": 1, "idempotency_key": "k"} | changed
        with pytest.raises(InvalidInput, match="used for another ask"):
            committer.run("trial", Ask(**again))
    with database.reading() as work:
        rows = work.rows(sa.select(asks))
    assert len(rows) == 2
    assert "ann" not in str(rows)
    clock = Transaction._clock
    monkeypatch.setattr(Transaction, "_clock", lambda work: clock(work) + KEPT_FOR + 1)
    a_day_later = Ask(n=1, person="bob", api_key=1, idempotency_key="k")
    assert committer.run("trial", a_day_later) == committer.run("trial", a_day_later)
    assert only_row(database, asks).made == 1, "older ones are forgotten"


def test_a_key_is_a_text_that_can_be_printed() -> None:
    wrong: list[Any] = ["", "x" * 256, "a\0", "a\n", "\ud800", 7, b"k"]
    for key in wrong:
        with pytest.raises(InvalidInput, match="an idempotency key is a text"):
            Ask(idempotency_key=key)


def test_no_text_of_one_caller_stops_the_operations_of_others(database: Database, committer: Committer) -> None:
    made(database, pb.AdaCOFUL(dimension=1, budget=pb.zCDP(1.0)), max_rewards_per_person=1)
    for text in ("a\0b", "\ud800", "é", '"', "\n", "x" * 10_000):
        odd = Ask(actions={text: [1.0]}, person=text, idempotency_key="k" + str(len(text)))
        futures = committer.submit_many("trial", [Ask(actions={"plain": [1.0]}, person="ann"), odd, odd])
        assert futures[0].result()[0].arm == "plain"
        (one,) = futures[1].result()
        assert one.arm == text
        assert futures[2].result() == [one]
        with Committer(database) as other:
            assert other.run("trial", Tell(one.id, 1.0, played=text)) == "recorded"
        assert committer.run("trial", odd) == [one]
        key = odd.idempotency_key
        with pytest.raises(InvalidInput, match="another ask"):
            committer.run("trial", Ask(actions={"other": [1.0]}, person=text, idempotency_key=key))
        forget_asks(database)


def forget_asks(database: Database) -> None:
    with database.transaction() as work:
        work.run(sa.delete(asks))
        work.commit()


def test_an_ask_and_its_key_are_kept_together(database: Database, committer: Committer) -> None:
    """Two that come at the same time, in one batch or in two workers, are one."""
    made(database)
    ask = Ask(n=2, api_key=1, idempotency_key="k")
    with Committer(database) as other:
        for _ in range(20):
            futures = [one.submit("trial", ask) for one in (committer, other, committer)]
            assert len({tuple(future.result()) for future in futures}) == 1
    assert DatabaseAgent.resume(database).counts.asked == 2


# Ids, and a database that is an earlier copy.


def test_an_id_of_another_bandit_or_a_made_up_one_is_unknown(database: Database, committer: Committer) -> None:
    made(database)
    create(database, "other", EXACT, give_up_after=None)
    (one,) = committer.run("trial", Ask())
    incarnation, number, tag = one.id.split("-")
    made_up = [one.id + "0", f"{incarnation}-2-{tag}", f"{incarnation}-0{number}-{tag}", f"-{number}-{tag}", "", "-", 7]
    for key in made_up:
        assert type(committer.submit("trial", Tell(key, 1.0)).exception()) is UnknownDecision
    assert type(committer.submit("other", Tell(one.id, 1.0)).exception()) is UnknownDecision
    assert only_row_status(database, "trial") == "active"


def only_row_status(database: Database, name: str) -> str:
    with database.reading() as work:
        number = find_bandit(work, name).number
        return str(work.rows(sa.select(hot.c.status).where(hot.c.bandit == number))[0][0])


@pytest.mark.parametrize("evidence", ["a later number", "another incarnation"])
def test_a_bandit_that_knows_less_than_it_said_is_frozen_before_anything_is_done(
    evidence: str, database: Database, committer: Committer
) -> None:
    made(database)
    (one,) = committer.run("trial", Ask())
    with database.reading() as work:
        fixed, row = find_bandit(work, "trial"), work.rows(sa.select(hot))[0]
    told = DecisionIds(fixed.id_key, row.incarnation).of(2)
    if evidence == "another incarnation":
        told = DecisionIds(fixed.id_key, "f" * 16).of(1)
    futures = committer.submit_many("trial", [Tell(one.id, 1.0), Ask(), Tell(told, 1.0)])
    assert [type(future.exception()) for future in futures] == [StateRolledBack] * 3
    assert type(committer.submit("trial", Tell(one.id, 1.0)).exception()) is StateRolledBack
    found = only_row(database)
    assert (found.status, found.asked, found.releases) == ("frozen", 1, 0)


# Standing.


def test_a_paused_bandit_takes_rewards_and_a_closed_one_does_nothing(database: Database, committer: Committer) -> None:
    made(database)
    one, two = committer.run("trial", Ask(n=2))
    change_standing(database, 1, status="paused")
    assert type(committer.submit("trial", Ask()).exception()) is BanditStopped
    assert committer.run("trial", Tell(one.id, 1.0)) == "recorded"
    change_standing(database, 1, status="closed")
    assert type(committer.submit("trial", Tell(two.id, 1.0)).exception()) is BanditStopped
    change_standing(database, 1, status="active")
    assert committer.run("trial", Tell(two.id, 1.0)) == "recorded"


def test_a_finished_bandit_takes_nothing(database: Database, committer: Committer) -> None:
    made(database)
    found = committer.run("trial", Ask(n=20))
    tell_all(committer, [(one.id, 0.5) for one in found[:13]])
    unreleased = committer.run("trial", Finish())
    assert unreleased > 0
    assert committer.run("trial", Finish()) == 0
    for operation in (Ask(), Tell(found[15].id, 1.0)):
        assert type(committer.submit("trial", operation).exception()) is AgentFinished
    agent = DatabaseAgent.resume(database)
    assert sum(row.count for row in agent.ledger) == 13
    assert sum(row.values[0] for row in agent.ledger) == 6.5


def test_a_database_that_fails_after_the_last_release_leaves_the_bandit_finished(
    database: Database, committer: Committer, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(database)
    found = committer.run("trial", Ask(n=9))
    tell_all(committer, [(one.id, 0.5) for one in found])
    whole, armed = SqlStore.releases, [1]

    def once_failing(store: SqlStore, first: int, last: int) -> Any:
        if armed:
            armed.pop()
            raise DatabaseFailed("the database failed")
        return whole(store, first, last)

    monkeypatch.setattr(SqlStore, "releases", once_failing)
    with pytest.raises(OutcomeUnknown, match="repeat the call"):
        committer.run("trial", Finish())
    assert committer.run("trial", Finish()) == 0
    assert type(committer.submit("trial", Ask()).exception()) is AgentFinished
    assert sum(row.values[0] for row in DatabaseAgent.resume(database).ledger) == 4.5


# Time.


def test_decisions_are_given_up_after_a_time_of_the_databases_clock(
    database: Database, committer: Committer, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(database, give_up_after=timedelta(seconds=10))
    now = start = 10**16
    monkeypatch.setattr(Transaction, "_clock", lambda work: now)
    monkeypatch.setattr(working_copy, "MOST_EXPIRED", 3)
    (one,) = committer.run("trial", Ask())
    now += 5_000_000
    later = committer.run("trial", Ask(n=5))
    now += 4_999_999
    assert committer.run("trial", Tell(one.id, 1.0)) == "recorded"
    now -= 10**9  # a clock that was set back makes no decision younger
    committer.run("trial", Ask())
    now += 10**9 + 5_000_001
    # Of five that are late the oldest three are closed at once.
    assert committer.run("trial", Tell(later[4].id, 1.0)) == "recorded"
    assert committer.run("trial", Tell(later[0].id, 1.0)) == "given_up"
    counts = DatabaseAgent.resume(database).counts
    assert (counts.out_of_time, counts.told, counts.open) == (4, 2, 1)
    with database.reading() as work:
        rows = work.rows(sa.select(decisions).order_by(decisions.c.number))
    assert [row.asked_at - start for row in rows] == [0] + [5_000_000] * 5 + [9_999_999]


# A queue that is full.


class Slow(Operation):
    """Waits until it may end."""

    def __init__(self) -> None:
        self.begun, self.may_end = threading.Event(), threading.Event()

    def run(self, copy: Any) -> None:
        """Say that it has begun, and wait."""
        self.begun.set()
        self.may_end.wait(20)


def test_who_comes_when_the_queue_is_full_is_told_when_to_come_again(database: Database) -> None:
    made(database)
    create(database, "other", EXACT, give_up_after=None)
    with Committer(database, most_waiting=5) as committer:
        slow = Slow()
        first = committer.submit("trial", slow)
        slow.begun.wait(20)
        waiting = committer.submit_many("trial", [Ask()] * 4)
        with pytest.raises(Overloaded, match="4 calls wait") as caught:
            committer.submit_many("trial", [Ask()] * 2)  # all of them or none
        assert caught.value.retry_after > 0
        waiting.append(committer.submit("trial", Ask()))
        other = committer.submit("other", Ask())
        if database.on_server:
            assert len(other.result(20)) == 1, "another bandit does not wait"
        slow.may_end.set()
        assert first.result() is None
        assert [len(future.result()) for future in waiting] == [1] * 5
    with pytest.raises(BanditStopped, match="shutting down"):
        committer.submit("trial", Ask())


def test_what_waits_is_done_before_a_worker_ends(database: Database) -> None:
    made(database)
    committer = Committer(database)
    futures = [committer.submit("trial", Ask()) for _ in range(200)]
    committer.close()
    committer.close()
    assert all(future.done() for future in futures)
    assert only_row(database).asked == 200


# Failures.


@dataclass(frozen=True)
class Fragile(pb.AdaCUCB):
    """Fails where a test says so."""

    name: ClassVar[str] = "fragile-in-the-service-for-tests"
    at: ClassVar[str] = ""
    error: ClassVar[BaseException] = RuntimeError("secret")
    learned: ClassVar[list[Any]] = []

    def learn(self, state: Any, release: Any, step: int) -> None:
        """Remember what it was given."""
        type(self).learned.append(release.values)
        if type(self).at == "learn":
            raise type(self).error
        super().learn(state, release, step)

    def recommend(self, state: Any, waiting: Any, arrived: Any, step: int) -> int:
        """Fail in the middle of an ask of three."""
        if type(self).at == "recommend" and step % 3 == 0:
            raise type(self).error
        return super().recommend(state, waiting, arrived, step)

    def dump_state(self, state: Any) -> dict[str, Any]:
        """Fail when the state is to be written."""
        if type(self).at == "dump":
            raise type(self).error
        return super().dump_state(state)


@pytest.fixture
def fragile() -> Iterator[type[Fragile]]:
    Fragile.at, Fragile.error = "", RuntimeError("secret")
    Fragile.learned.clear()
    yield Fragile
    Fragile.at = ""


@pytest.mark.parametrize("at", ["learn", "dump"])
@pytest.mark.parametrize("error", [RuntimeError("secret"), SystemExit("secret")], ids=["error", "exit"])
def test_a_policy_that_fails_at_a_release_stops_its_bandit_and_never_draws_again(
    at: str, error: BaseException, database: Database, fragile: type[Fragile]
) -> None:
    made(database, Fragile(arms=["A", "B"], budget=pb.zCDP(1.0)))
    with Committer(database) as committer, Committer(database) as other:
        one, two = committer.run("trial", Ask(n=2))
        other.run("trial", Ask())
        fragile.at, fragile.error = at, error
        assert committer.run("trial", Tell(one.id, 1.0)) == "recorded"
        row = only_row(database, releases)
        assert only_row(database).failed == f"Fragile failed {failing_place(at)}, with {type(error).__name__}"
        for worker in (committer, other):
            for operation in (Tell(one.id, 1.0), Tell(two.id, 1.0), Ask(), Finish()):
                with pytest.raises(BanditStopped, match="nothing is drawn again") as caught:
                    worker.run("trial", operation)
                assert "secret" not in str(caught.value)
        change_standing(database, 1, failed=None)  # it fails again, at the same row
        fragile.learned.clear()
        with pytest.raises(BanditStopped):
            other.run("trial", Ask())
        assert only_row(database).failed is not None
        fragile.at = ""
        change_standing(database, 1, failed=None)
        assert other.run("trial", Tell(one.id, 0.0)) == "already_recorded"
        assert len(set(fragile.learned)) == 1
        assert only_row(database, releases) == row
        assert committer.run("trial", Tell(two.id, 1.0)) == "recorded"
    assert len(DatabaseAgent.resume(database).ledger) == 2


def failing_place(at: str) -> str:
    return "at release 1" if at == "learn" else "to write its state down"


def test_a_policy_that_fails_at_an_ask_spoils_no_other_operation(database: Database, fragile: type[Fragile]) -> None:
    made(database, Fragile(arms=["A", "B"], budget=pb.NoPrivacy()))
    with Committer(database) as committer:
        one, two = committer.run("trial", Ask(n=2))
        fragile.at = "recommend"
        futures = committer.submit_many("trial", [GiveUp(one.id), Ask(n=3), GiveUp(two.id), Ask(n=2)])
        assert futures[0].result() == futures[2].result() == "given_up"
        errors = [futures[1].exception(), futures[3].exception()]
        assert [type(error) for error in errors] == [PolicyFailed] * 2
        assert "secret" not in str(errors)
        fragile.at = ""
        assert len(committer.run("trial", Ask(n=3))) == 3
    row = only_row(database)
    assert (row.asked, row.open, row.failed) == (5, 3, None)


def broken(monkeypatch: pytest.MonkeyPatch, name: str, failure: Exception, after: bool) -> list[int]:
    """Let a method of transactions fail, before or after it did its work, once. Returns a list to arm it with."""
    armed: list[int] = []
    whole = getattr(Transaction, name)

    def method(self: Transaction, *arguments: Any) -> Any:
        if not armed:
            return whole(self, *arguments)
        armed.pop()
        if armed:
            return whole(self, *arguments)
        if after:
            whole(self, *arguments)
        raise failure

    monkeypatch.setattr(Transaction, name, method)
    return armed


@pytest.mark.parametrize("kept", [True, False], ids=["kept", "lost"])
@pytest.mark.parametrize("releases_now", [True, False], ids=["release", "no release"])
def test_a_commit_without_an_answer_is_told_and_the_call_again_tells_what_became_of_it(
    kept: bool, releases_now: bool, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(database)
    with Committer(database) as committer:
        found = committer.run("trial", Ask(n=3))
        tell_all(committer, [(found[0].id, 1.0), (found[1].id, 1.0)])
        if not releases_now:
            found = [one for one in committer.run("trial", Ask(n=9)) if one.action == found[2].action]
        armed = broken(monkeypatch, "commit", OutcomeUnknown("the answer was lost"), after=kept)
        armed.append(1)
        rows = only_row(database).releases
        told, asked = Tell(found[-1].id, 1.0, played=found[0].action), Ask(api_key=1, idempotency_key="k")
        futures = committer.submit_many("trial", [asked, told])
        assert [type(future.exception()) for future in futures] == [OutcomeUnknown] * 2
        assert only_row(database).releases - rows <= int(kept)
        assert committer.run("trial", told) == ("already_recorded" if kept else "recorded")
        before = only_row(database).asked
        (one,) = committer.run("trial", asked)
        assert only_row(database).asked == before + int(not kept)
        assert committer.run("trial", asked) == [one]


def test_a_database_that_fails_before_the_commit_changes_nothing(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever statement of a batch with a release it is."""

    made(database)
    with Committer(database) as committer:
        armed = broken(monkeypatch, "run", DatabaseFailed("the database failed"), after=True)
        failures = 0
        for statement in range(1, 20):
            (one,) = committer.run("trial", Ask())
            before = only_row(database)
            armed[:] = [1] * statement
            outcome = committer.submit("trial", Tell(one.id, 1.0)).exception()
            failed, armed[:] = outcome is not None, []
            failures += failed
            if failed:
                assert type(outcome) is DatabaseFailed
                assert only_row(database) == before
            assert committer.run("trial", Tell(one.id, 1.0)) == ("recorded" if failed else "already_recorded")
    assert failures >= 2
    agent = DatabaseAgent.resume(database)
    assert agent.counts.told == 19
    agent.finish()
    assert sum(row.values[0] for row in agent.ledger) == 19.0


def test_who_waits_too_long_for_another_worker_is_told_so(
    kind: str, database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(database)
    monkeypatch.setattr(database_module, "_SQLITE_SETTINGS", ("PRAGMA busy_timeout = 50",))
    monkeypatch.setattr(database_module, "_POSTGRES_SETTINGS", "SET lock_timeout = '50ms'")
    with Committer(opened(kind, tmp_path)) as committer:
        committer.run("trial", Ask())
        with database.transaction() as work:
            work.lock(1)
            assert type(committer.submit("trial", Ask()).exception()) is DatabaseBusy
        assert len(committer.run("trial", Ask())) == 1


def test_nobody_waits_for_ever_when_a_worker_fails(
    database: Database, committer: Committer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("a mistake in the worker")

    made(database)
    with monkeypatch.context() as patch:
        patch.setattr(Batches, "run", fail)
        futures = committer.submit_many("trial", [Ask(), Ask()])
        assert [type(future.exception(20)) for future in futures] == [OutcomeUnknown] * 2
    assert len(committer.run("trial", Ask())) == 1


# Many at the same time.


@pytest.mark.parametrize("rounds", [200, pytest.param(10_000, marks=pytest.mark.full)])
def test_a_decision_told_by_eight_workers_at_once_is_recorded_once(rounds: int, kind: str, tmp_path: Path) -> None:
    database = opened(kind, tmp_path)
    made(database)
    rounds = rounds if kind == "postgresql" else rounds // 4
    script, total, outcomes = random.Random(1), 0.0, Counter[str]()
    with ExitStack() as stack:
        workers = [stack.enter_context(Committer(opened(kind, tmp_path, 2), threads=1)) for _ in range(8)]
        for _ in range(rounds):
            (one,) = workers[0].run("trial", Ask())
            rewards = [script.randint(0, 8) / 8 for _ in workers]
            futures: list[Future[Any]] = [
                w.submit("trial", Tell(one.id, r)) for w, r in zip(workers, rewards, strict=True)
            ]
            found = [future.result() for future in futures]
            outcomes.update(found)
            total += rewards[found.index("recorded")]
        assert workers[0].run("trial", Finish()) >= 0
    assert outcomes == {"recorded": rounds, "already_recorded": 7 * rounds}
    agent = DatabaseAgent.resume(database)
    assert sum(row.values[0] for row in agent.ledger) == total
    assert sum(row.count for row in agent.ledger) == agent.counts.told == rounds


# Cost.


def cost_of_a_batch(database: Database) -> tuple[int, int]:
    """Return how many statements a tell and an ask have, and how many steps SQLite takes for them.

    A new worker does it, which has nothing at hand.
    """
    statements, steps = [], []

    def step() -> int:
        steps.append(1)
        return 0

    def watch(connection: Any, _: Any, statement: str, *others: Any) -> None:
        connection.connection.dbapi_connection.set_progress_handler(step, 1)
        statements.append(statement)

    with Committer(database) as committer:
        (one,) = committer.run("trial", Ask(person="ann"))
    with Committer(database) as committer:
        sa.event.listen(database.engine, "before_cursor_execute", watch)
        committer.run("trial", Tell(one.id, 0.5))
        committer.run("trial", Ask(person="ann"))
        sa.event.remove(database.engine, "before_cursor_execute", watch)
    return len(statements), len(steps)


def test_a_batch_costs_the_same_however_many_decisions_there_are(tmp_path: Path) -> None:
    """In statements and in the steps of SQLite's machine, which do not depend on the clock."""
    database = opened("sqlite", tmp_path)
    never = pb.AdaCHalving(arms=["A", "B"], budget=pb.zCDP(1.0), rewards=10**6)
    made(database, never, give_up_after=timedelta(days=1), max_rewards_per_person=10**6)
    found = []
    for hundreds in (1, 200):
        with Committer(database) as committer:
            futures = committer.submit_many("trial", [Ask(n=100, person="ann")] * hundreds)
            asked = [one for future in futures for one in future.result()]
            assert set(tell_all(committer, [(one.id, 0.5) for one in asked[::10]])) == {"recorded"}
        found.append(cost_of_a_batch(database))
    (few, few_steps), (many, many_steps) = found
    assert few == many
    assert few_steps > 50
    assert many_steps <= 1.1 * few_steps
    assert only_row(database).open > 15_000


def test_the_ledger_is_never_loaded(kind: str, tmp_path: Path) -> None:
    """Nor anything else that grows: the rows that a worker reads for a batch stay few."""
    database = opened(kind, tmp_path)
    made(database, pb.TreeUCB(n_arms=2, budget=pb.PureDP(1.0)))
    rows: list[int] = []
    whole = Transaction.rows

    def counting(self: Transaction, statement: Any) -> Any:
        found = whole(self, statement)
        rows.append(len(found))
        return found

    with Committer(database) as committer:
        tell_all(committer, [(one.id, 0.5) for one in committer.run("trial", Ask(n=100))])
    assert only_row(database).releases == 100
    with pytest.MonkeyPatch.context() as patch, Committer(database) as committer:
        patch.setattr(Transaction, "rows", counting)
        (one,) = committer.run("trial", Ask())
        committer.run("trial", Tell(one.id, 0.5))
    assert sum(rows) < 20


def test_batches_end_with_a_release_and_have_a_thousand_operations_at_most(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(database)
    monkeypatch.setattr(committer_module, "MOST_IN_A_BATCH", 7)
    with Committer(database) as committer:
        version = only_row(database).version
        futures = committer.submit_many("trial", [Ask()] * 20)
        assert len({future.result()[0].id for future in futures}) == 20
        assert only_row(database).version == version + 3
