"""The tables of the database, its settings, and errors that quote nothing."""

from __future__ import annotations

import json
import sqlite3
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

import private_bandits as pb
from private_bandits.agent import bandit_of
from private_bandits.errors import (
    AgentFileInvalid,
    BanditExists,
    DatabaseBusy,
    DatabaseFailed,
    DatabaseOutdated,
    InvalidInput,
    OutcomeUnknown,
    PrivateBanditsError,
    UnknownBandit,
)
from private_bandits.ledger import Account
from private_bandits.storage.sql import database as database_module
from private_bandits.storage.sql.database import Database, address_of
from private_bandits.storage.sql.migrating import newest_revision
from private_bandits.storage.sql.schema import decisions, episodes, hot, metadata, people, releases
from private_bandits.storage.sql.store import SqlStore
from private_bandits.storage.sql.stored import check_name, find_bandit
from tests.databases import KINDS, DatabaseAgent, address, opened, server

POLICY = pb.AdaCUCB(arms=["A", "B"], budget=pb.zCDP(1.0))


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def database(kind: str, tmp_path: Path) -> Database:
    return opened(kind, tmp_path)


def rows_of(database: Database, table: sa.Table) -> list[dict[str, Any]]:
    with database.reading() as work:
        return [dict(row._mapping) for row in work.rows(sa.select(table))]


# Tables.


def test_migrations_make_the_tables_that_queries_are_written_against(database: Database) -> None:
    with database.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, metadata) == []


def test_an_upgrade_is_done_once_and_is_needed(kind: str, tmp_path: Path) -> None:
    fresh = Database(address(kind, tmp_path))
    with pytest.raises(DatabaseOutdated, match="has no tables yet" if fresh.on_server else "no database at"):
        fresh.check()
    assert list(tmp_path.iterdir()) == []
    assert fresh.upgrade() == (None, newest_revision())
    assert fresh.upgrade() == (newest_revision(), newest_revision())
    fresh.check()
    with fresh.transaction() as work:
        work.run(sa.text("UPDATE alembic_version SET version_num = '9999'"))
        work.commit()
    for call in (fresh.check, fresh.upgrade):
        with pytest.raises(DatabaseOutdated, match="9999, which a newer version of private-bandits made"):
            call()
    fresh.close()


def test_values_that_depend_on_rewards_are_texts_without_constraints(database: Database) -> None:
    private = {"hot": {"sums", "arrivals", "head"}, "cold": {"kept", "policy", "account"}, "releases": {"row"}}
    inspector = sa.inspect(database.engine)
    for table, columns in private.items():
        found = {column["name"]: column for column in inspector.get_columns(table)}
        assert all(isinstance(found[name]["type"], sa.TEXT) for name in columns)
        assert not inspector.get_check_constraints(table)
        keyed = set(inspector.get_pk_constraint(table)["constrained_columns"])
        keyed |= {name for index in inspector.get_indexes(table) for name in index["column_names"] if name}
        keyed |= {name for one in inspector.get_unique_constraints(table) for name in one["column_names"]}
        assert not columns & keyed


def test_no_table_has_a_row_for_a_reward(database: Database) -> None:
    """Told or given up, a decision leaves the same row, but for its status."""
    agent = DatabaseAgent.make(database, POLICY, max_rewards_per_person=6)
    asked = agent.ask(8, person="ann")
    for decision in asked[:6]:
        agent.tell(decision, 0.123456)
    agent.give_up(asked[6])
    found = sorted(rows_of(database, decisions), key=lambda row: row["number"])
    assert [row["status"] for row in found] == ["told"] * 6 + ["given_up", "open"]
    assert [row["person"] is None for row in found] == [True] * 7 + [False]
    assert set(found[0]) == {
        *("bandit", "number", "generation", "action", "arm", "person", "offered", "status", "asked_at", "closed_at")
    }
    assert [row["rewards"] for row in rows_of(database, people)] == [6]
    tables = {table.name: len(rows_of(database, table)) for table in metadata.sorted_tables}
    rows = len(agent.ledger)
    once = dict.fromkeys(("bandits", "hot", "cold", "people", "identity"), 1)
    assert tables == once | {"decisions": 8, "releases": rows, "episodes": rows, "asks": 0, "keys": 0}


def test_an_episode_is_released_once(database: Database) -> None:
    agent = DatabaseAgent.make(database, POLICY)
    agent.tell(agent.ask(), 1.0)
    (row,) = rows_of(database, episodes)
    assert row["episode"] == "0/1"
    with database.transaction() as work, pytest.raises(DatabaseFailed, match="there already"):
        work.run(sa.insert(episodes), [row | {"release": 2}])


def test_a_write_from_another_version_is_refused_even_with_the_lock(database: Database) -> None:
    agent = DatabaseAgent.make(database, POLICY)
    asked = agent.ask()
    store = bandit_of(agent).records
    assert isinstance(store, SqlStore)
    with database.transaction() as work:
        work.lock(1)
        work.run(sa.update(hot).values(version=hot.c.version + 1))
        store.join(work)
        with pytest.raises(DatabaseFailed, match="although its row was locked"):
            agent.tell(asked, 1.0)
    assert rows_of(database, releases) == []


def test_contexts_are_erased_when_a_decision_is_closed(database: Database) -> None:
    agent = DatabaseAgent.make(database, pb.AdaCOFUL(dimension=2, budget=pb.zCDP(1.0)))
    one, two = (agent.ask(actions={"left": [0.5, 0.0], "right": [0.0, 0.5]}) for _ in range(2))
    assert all("left" in row["offered"] for row in rows_of(database, decisions))
    agent.tell(one, 1.0)
    again = DatabaseAgent.resume(database)
    assert again.open_decisions == [two]
    again.tell(two, 0.5, played="left")
    assert {row["offered"] for row in rows_of(database, decisions)} == {None}


def test_with_private_contexts_the_names_of_actions_are_erased_too(database: Database) -> None:
    policy = pb.AdaCOFULPrivate(dimension=2, budget=pb.zCDP(1.0), horizon=1000)
    agent = DatabaseAgent.make(database, policy)
    decision = agent.ask(actions={"left": [0.5, 0.0], "right": [0.0, 0.5]})
    again = DatabaseAgent.resume(database)
    again.tell(decision.id, 1.0)
    (row,) = rows_of(database, decisions)
    assert (row["arm"], row["offered"], row["status"]) == (None, None, "told")


# What is read again.


@pytest.mark.parametrize(
    "policy",
    [
        pb.AdaCIMED(arms=["A", "B"], budget=pb.zCDP(1.0)),
        pb.TreeUCB(n_arms=2, budget=pb.PureDP(1.0)),
        pb.AdaCUCB(n_arms=3, budget=pb.NoPrivacy()),
    ],
)
def test_an_account_that_is_stored_is_the_account_of_its_ledger(policy: Any) -> None:
    agent = pb.Agent(policy)
    agent.tell_many([(decision, 0.5) for decision in agent.ask(120)])
    whole = Account(agent.ledger, opening=agent.ledger.opening)
    found = Account.restored(json.loads(json.dumps(whole.dump())), agent.ledger.opening)
    assert (len(found), found.total, found.head) == (len(whole), whole.total, whole.head)
    assert all(found.covers(label) for row in agent.ledger for label in row.episodes)
    assert not found.covers("0/10000")
    assert found.dump() == whole.dump()
    agent.finish()
    for row in agent.ledger[len(whole) :]:
        found.charge(row)
        whole.charge(row)
    assert (found.total, found.head, found.dump()) == (whole.total, whole.head, whole.dump())
    assert all(Fraction(cost) >= 0 for steps in found.dump()["costs"].values() for _, cost in steps)


def test_damage_is_refused_without_what_was_read(database: Database) -> None:
    agent = DatabaseAgent.make(database, POLICY)
    agent.tell_many([(decision, 0.987654) for decision in agent.ask(4)])
    for table, columns in (("hot", {"sums": "0 [987654"}), ("cold", {"kept": "987654"}), ("cold", {"account": "{"})):
        with database.transaction() as work:
            work.run(sa.update(metadata.tables[table]).values(**columns))
            work.commit()
        with pytest.raises(AgentFileInvalid, match="the bandit trial is damaged") as caught:
            DatabaseAgent.resume(database)
        assert "987654" not in str(caught.value)
        assert caught.value.__context__ is caught.value.__cause__ is None


def test_a_ledger_that_lacks_rows_is_noticed(database: Database) -> None:
    agent = DatabaseAgent.make(database, POLICY)
    agent.tell_many([(decision, 0.5) for decision in agent.ask(4)])
    with database.transaction() as work:
        work.run(sa.delete(releases).where(releases.c.number == 1))
        work.commit()
    with pytest.raises(DatabaseFailed, match="lacks releases"):
        _ = agent.ledger


# Names and addresses.


def test_a_name_is_there_once(database: Database) -> None:
    DatabaseAgent.make(database, POLICY)
    with pytest.raises(BanditExists, match="'trial'"):
        DatabaseAgent.make(database, POLICY)
    with database.reading() as work, pytest.raises(UnknownBandit, match="'other'"):
        find_bandit(work, "other")


def test_names_are_fit_for_addresses() -> None:
    for name in ("trial", "A-1.b_c", "_", "x" * 100):
        assert check_name(name) == name
    wrong: list[Any] = ["", "x" * 101, "a b", "a/b", "ä", ".hidden", "-x", 7]
    for name in wrong:
        with pytest.raises(InvalidInput, match="a bandit's name"):
            check_name(name)


def test_an_address_is_a_path_or_of_a_known_database(tmp_path: Path) -> None:
    assert address_of(tmp_path / "a b.db").database == str(tmp_path / "a b.db")
    assert address_of("postgresql://ann:secret@host/name").drivername == "postgresql+psycopg"
    for wrong in ("mysql://ann:secret@host/x", "sqlite://", "sqlite:///:memory:", "postgresql://host", "://secret"):
        with pytest.raises(InvalidInput, match="a database is a path") as caught:
            address_of(wrong)
        assert "secret" not in str(caught.value)


# Settings of the connections.


def test_what_is_committed_is_on_the_disk(kind: str, database: Database) -> None:
    def setting(name: str) -> Any:
        with database.reading() as work:
            return work.rows(sa.text(f"{'PRAGMA' if kind == 'sqlite' else 'SHOW'} {name}"))[0][0]

    if kind == "sqlite":
        names = ("journal_mode", "synchronous", "secure_delete", "busy_timeout")
        assert [setting(name) for name in names] == ["wal", 2, 1, 5000]
    else:
        names = ("fsync", "synchronous_commit", "lock_timeout", "idle_in_transaction_session_timeout")
        assert [setting(name) for name in names] == ["on", "on", "5s", "10s"]


def test_a_commit_that_need_not_reach_the_disk_is_turned_back_on(tmp_path: Path) -> None:
    given = sa.make_url(address("postgresql", tmp_path)).update_query_dict({"options": "-csynchronous_commit=off"})
    found = Database(given.render_as_string(hide_password=False))
    with found.reading() as work:
        assert work.rows(sa.text("SHOW synchronous_commit"))[0][0] == "on"
    found.close()


def test_a_server_without_fsync_is_refused(tmp_path: Path) -> None:
    admin = sa.create_engine(sa.make_url(server()).set(drivername="postgresql+psycopg"), isolation_level="AUTOCOMMIT")
    found = Database(address("postgresql", tmp_path))
    with admin.connect() as connection:
        try:
            connection.exec_driver_sql("ALTER SYSTEM SET fsync = off")
            connection.exec_driver_sql("SELECT pg_reload_conf()")
            while connection.exec_driver_sql("SHOW fsync").scalar() == "on":
                connection.exec_driver_sql("SELECT pg_sleep(0.01)")
            with pytest.raises(DatabaseFailed, match="fsync off"):
                found.check()
        finally:
            connection.exec_driver_sql("ALTER SYSTEM RESET fsync")
            connection.exec_driver_sql("SELECT pg_reload_conf()")
            while connection.exec_driver_sql("SHOW fsync").scalar() == "off":
                connection.exec_driver_sql("SELECT pg_sleep(0.01)")
    admin.dispose()
    found.close()


def test_a_release_does_not_leave_the_sum_before_it_in_the_files_of_sqlite(tmp_path: Path) -> None:
    """The sum of one reward is in the file until it is released. Then its text is nowhere."""
    database = opened("sqlite", tmp_path)
    agent = DatabaseAgent.make(database, pb.AdaCHalving(arms=["A", "B"], budget=pb.zCDP(1.0), rewards=4))
    one, *others = agent.ask(4)
    agent.tell(one, 0.7)
    (total,) = {episode.totals.reveal()[0] for episode in bandit_of(agent).private.episodes.values()}
    text = str(total).encode()

    def stands() -> bool:
        return any(text in path.read_bytes() for path in tmp_path.glob("bandits.db*"))

    assert len(text) > 6
    assert stands()
    for decision in others:
        agent.tell(decision, 0.0)
    assert len(agent.ledger) == 2
    assert not stands()


# Errors.


def test_who_waits_too_long_for_a_lock_is_told_so(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shorter = {
        "_SQLITE_SETTINGS": ("PRAGMA busy_timeout = 50",),
        "_POSTGRES_SETTINGS": "SET lock_timeout = '50ms'",
    }
    database = opened(kind, tmp_path)
    agent = DatabaseAgent.make(database, POLICY)
    for name, value in shorter.items():
        monkeypatch.setattr(database_module, name, value)
    other = Database(address(kind, tmp_path))
    with database.transaction() as work:
        work.lock(1)
        with pytest.raises(DatabaseBusy, match="try again in a moment"), other.transaction() as second:
            second.lock(1)
    other.close()
    agent.tell(agent.ask(), 1.0)


def test_an_error_quotes_nothing_and_carries_nothing(database: Database) -> None:
    DatabaseAgent.make(database, POLICY)
    row = {"bandit": 1, "person": "secret-person", "rewards": "secret-number", "places": "{}"}
    twice = {"bandit": 1, "person": "secret-person", "rewards": 1, "places": "{}"}
    statements: list[Any] = [
        (sa.insert(people), [twice, twice]),
        (sa.text("SELECT 'secret' FROM no_such_table"), None),
        (sa.text("INSERT INTO people VALUES (1, 'secret', 'secret', NULL)"), None),
    ]
    if database.on_server:
        statements.append((sa.insert(people), [row]))
    for statement, rows in statements:
        with database.transaction() as work, pytest.raises(DatabaseFailed) as caught:
            work.run(statement, rows)
        assert "secret" not in str(caught.value)
        assert caught.value.__context__ is caught.value.__cause__ is None


def test_a_commit_without_an_answer_is_told_apart_from_one_that_failed(database: Database) -> None:
    DatabaseAgent.make(database, POLICY)
    for lost in (True, False):
        with database.transaction() as work:
            work.run(sa.update(hot).values(version=7))
            if lost:
                work._connection.connection.dbapi_connection.close()  # type: ignore[union-attr]
            with pytest.raises(PrivateBanditsError) as caught:
                work.commit() if lost else work.run(sa.text("SELECT nothing FROM nowhere"))
        assert type(caught.value) is (OutcomeUnknown if lost else DatabaseFailed)
    with database.reading() as work:
        assert work.version(1) == 1


def test_a_file_that_is_no_database_is_told_so(tmp_path: Path) -> None:
    (tmp_path / "bandits.db").write_text("secret " * 1000)
    database = Database(tmp_path / "bandits.db")
    with pytest.raises(DatabaseFailed, match="it is no database") as caught:
        database.check()
    assert "secret" not in str(caught.value)
    database.close()
    assert sqlite3.sqlite_version_info >= (3, 35)
