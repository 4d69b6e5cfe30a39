"""A database: how to connect to it so that what it keeps stays kept, and transactions whose errors quote nothing."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, Row, create_engine, event, make_url, select, text
from sqlalchemy.exc import ArgumentError, SQLAlchemyError
from sqlalchemy.sql.base import Executable

from private_bandits.errors import DatabaseFailed, DatabaseOutdated, InvalidInput, UnknownBandit
from private_bandits.storage.ownership import make_private_file
from private_bandits.storage.sql.failures import guarded, guarded_commit
from private_bandits.storage.sql.migrating import check_revision, upgrade
from private_bandits.storage.sql.schema import hot

Rows = Sequence[Row[Any]]

LOCK_SECONDS = 5
"""How long a transaction waits for another one."""
IDLE_SECONDS = 10
"""How long PostgreSQL lets a transaction wait for its client."""

_SQLITE_SETTINGS = (
    f"PRAGMA busy_timeout = {LOCK_SECONDS * 1000}",
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",  # what was answered is on the disk
    "PRAGMA secure_delete = ON",  # what was deleted is overwritten
    "PRAGMA foreign_keys = ON",
)
_POSTGRES_SETTINGS = f"""
    SET lock_timeout = '{LOCK_SECONDS}s';
    SET idle_in_transaction_session_timeout = '{IDLE_SECONDS}s';
    SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'
"""
_KEEPALIVES = {
    "keepalives": 1,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "connect_timeout": 10,
}


class Transaction:
    """One transaction. It is rolled back unless it is committed."""

    def __init__(self, connection: Connection, on_server: bool) -> None:
        self._connection = connection
        self._on_server = on_server
        self.ended = False
        """Whether it was committed, or may have been."""
        self.now = 0
        """The time in microseconds since 1970: the database's own, once the lock is there, and never an earlier one."""

    @property
    def dialect(self) -> str:
        """The kind of database: "sqlite" or "postgresql"."""
        return self._connection.dialect.name

    def rows(self, statement: Executable) -> Rows:
        """Return the rows that a statement finds."""
        return guarded(lambda: self._connection.execute(statement).fetchall())

    def run(self, statement: Executable, rows: Sequence[Mapping[str, Any]] | None = None) -> int:
        """Run a statement, once for each row if there are some. Returns how many rows it changed."""
        return guarded(lambda: self._connection.execute(statement, rows).rowcount)

    def lock(self, bandit: int) -> Row[Any]:
        """Lock a bandit's row. Returns its version, its status, and why it failed if it did.

        Raises:
            UnknownBandit: There is none of this number.
        """
        columns = (hot.c.version, hot.c.status, hot.c.failed, hot.c.now)
        found = self.rows(select(*columns).where(hot.c.bandit == bandit).with_for_update())
        if not found:
            raise UnknownBandit(f"the database has no bandit of number {bandit}")
        self.now = max(self._clock(), found[0].now)
        return found[0]

    def version(self, bandit: int) -> int:
        """Return the version of a bandit's row, without locking it; 0 where there is none."""
        found = self.rows(select(hot.c.version).where(hot.c.bandit == bandit))
        return int(found[0].version) if found else 0

    def _clock(self) -> int:
        """Return the time of the machine that the database is on."""
        if not self._on_server:
            return time.time_ns() // 1000
        found = self.rows(text("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"))
        return int(found[0][0])

    def commit(self) -> None:
        """Make everything lasting.

        Raises:
            OutcomeUnknown: The database did not say whether it did.
        """
        self.ended = True
        guarded_commit(self._connection.commit)


class Database:
    """A SQLite file, or a PostgreSQL server.

    Args:
        address: A path, "sqlite:///PATH" or "postgresql://USER:PASSWORD@HOST/NAME".
        connections: How many connections to keep at most.
    """

    def __init__(self, address: str | os.PathLike[str], connections: int = 10) -> None:
        url = address_of(address)
        self.on_server = url.get_backend_name() == "postgresql"
        self._file = None if self.on_server else Path(str(url.database))
        self.engine = _postgres(url, connections) if self.on_server else _sqlite(url, connections)

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """Begin a transaction that may write. On SQLite it waits until no other one does."""
        with self._connected({}) as connection:
            guarded(connection.begin)
            work = Transaction(connection, self.on_server)
            try:
                yield work
            finally:
                _end(connection)

    @contextmanager
    def reading(self) -> Iterator[Transaction]:
        """Begin a transaction that sees one moment, keeps nobody waiting and writes nothing."""
        isolation = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
        with self._connected(isolation if self.on_server else {_READS: True}) as connection:
            guarded(connection.begin)
            try:
                yield Transaction(connection, self.on_server)
            finally:
                _end(connection)

    @contextmanager
    def _connected(self, options: Mapping[str, Any]) -> Iterator[Connection]:
        connection = guarded(self.engine.connect)
        try:
            yield guarded(lambda: connection.execution_options(**options))
        finally:
            with suppress(SQLAlchemyError):
                connection.close()

    def upgrade(self) -> tuple[str | None, str]:
        """Bring the tables to this version. Returns the revisions before and after.

        A SQLite file that is not there is made, readable by its owner alone.
        """
        if self._file is not None:
            make_private_file(self._file)
        with self.transaction() as work:
            found = guarded(lambda: upgrade(work._connection))
            work.commit()
        return found

    def check(self) -> None:
        """Refuse a database whose tables are of another version."""
        if self._file is not None and not self._file.exists():
            raise DatabaseOutdated(f"there is no database at {self._file} yet: an upgrade of its tables makes it")
        with self.reading() as work:
            guarded(lambda: check_revision(work._connection))

    def erase_overwritten(self) -> None:
        """Let SQLite's log not keep what was overwritten, if nobody reads just now. PostgreSQL does so in its time."""
        if not self.on_server:
            with suppress(SQLAlchemyError, sqlite3.Error), closing(self.engine.raw_connection()) as connection:
                connection.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)").close()

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()


_READS = "private_bandits_reads"


def address_of(address: str | os.PathLike[str]) -> URL:
    """Return the address of a database.

    Raises:
        InvalidInput: It is no path, and no address of SQLite or PostgreSQL.
    """
    given = os.fspath(address)
    if "://" not in given:
        return URL.create("sqlite", database=str(Path(given)))
    url: URL | None = None
    with suppress(ArgumentError):
        url = make_url(given)
    known = url is not None and url.get_backend_name() in ("sqlite", "postgresql")
    if url is None or not known or url.database in (None, "", ":memory:"):
        # Not shown: it may hold a password.
        raise InvalidInput("a database is a path, or an address as sqlite:///bandits.db or postgresql://user@host/name")
    return url.set(drivername="postgresql+psycopg") if url.get_backend_name() == "postgresql" else url


def _sqlite(url: URL, connections: int) -> Engine:
    engine = create_engine(url, hide_parameters=True, pool_size=connections, max_overflow=0)

    @event.listens_for(engine, "connect")
    def _prepare(connection: Any, _: object) -> None:
        connection.isolation_level = None  # this module says where transactions begin
        for setting in _SQLITE_SETTINGS:
            connection.execute(setting).close()

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        reads = connection.get_execution_options().get(_READS)
        connection.exec_driver_sql("BEGIN" if reads else "BEGIN IMMEDIATE")

    return engine


def _postgres(url: URL, connections: int) -> Engine:
    engine = create_engine(
        url,
        hide_parameters=True,
        pool_size=connections,
        max_overflow=0,
        pool_timeout=LOCK_SECONDS,
        isolation_level="READ COMMITTED",
        connect_args=_KEEPALIVES,
    )

    @event.listens_for(engine, "connect")
    def _prepare(connection: Any, _: object) -> None:
        connection.autocommit = True
        connection.execute(_POSTGRES_SETTINGS)
        fsync = connection.execute("SHOW fsync").fetchone()[0]
        connection.autocommit = False
        if fsync != "on":
            raise DatabaseFailed("the PostgreSQL server runs with fsync off and may lose what it said: turn fsync on")

    return engine


def _end(connection: Connection) -> None:
    """Take back what was not committed. A connection that is lost took it back itself."""
    with suppress(SQLAlchemyError):
        connection.rollback()
