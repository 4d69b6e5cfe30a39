"""Moves a durable agent from its file into a database. The file opens no more afterwards.

The file is marked first, with the name and the database that it moves to. So at no time can two copies of one state
both draw. Where the move is cut short, importing again goes on with it, at the same place only.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import dataclass

from private_bandits.bandit import Bandit
from private_bandits.progress import progress
from private_bandits.state import DecisionCounts
from private_bandits.storage.formats import Moved
from private_bandits.storage.ownership import file_path
from private_bandits.storage.public_file import public_path
from private_bandits.storage.resuming import AgentFile
from private_bandits.storage.sql.database import Database
from private_bandits.storage.sql.moved_rows import add_moved, identity_of, is_there
from private_bandits.storage.sql.stored import check_name
from private_bandits.storage.sqlite import SqliteStore
from private_bandits.wiring import resumed_bandit


@dataclass(frozen=True)
class MovedIn:
    """An agent that moved into a database.

    Args:
        bandit: Its name there.
        counts: Its decisions by what became of them.
        releases: The number of rows of its ledger.
        head: The head of its ledger.
    """

    bandit: str
    counts: DecisionCounts
    releases: int
    head: str


def move_in(database: Database, path: str | os.PathLike[str], name: str) -> MovedIn:
    """Move the agent of a file into a database. Ids of its decisions stay good.

    Args:
        database: The database.
        path: The file of the agent. No agent may have it open.
        name: The name of the bandit in the database.

    Raises:
        AgentFileInvalid: The file is damaged, or moved elsewhere before.
        BanditExists: The database has another bandit of this name.
        PolicyFailed: The policy fails at a release that it has not learned yet. Nothing moved.
    """
    check_name(name)
    database.check()
    place, destination = file_path(path), identity_of(database)
    stored = AgentFile(place, moving_to=(name, destination))
    try:
        bandit, store = resumed_bandit(Bandit, stored, None)
        assert isinstance(store, SqliteStore)
        bandit.resume(stored.policy_state, stored.learned)
        return _moved(database, bandit, store, Moved(name, destination, done=False))
    finally:
        stored.close()


def _moved(database: Database, bandit: Bandit, store: SqliteStore, moving: Moved) -> MovedIn:
    """Mark the file, write the bandit, and mark the file as done."""
    with database.transaction() as work:
        settings = json.dumps(bandit.settings.to_dict())
        if not is_there(
            work, moving.bandit, bandit.door.account.opening, settings
        ):  # an earlier try may have written it
            store.mark_moved(moving, bandit.public)
            with progress(f"Moving {moving.bandit} into the database") as report:
                add_moved(work, moving.bandit, bandit, store, report)
            work.commit()
    store.mark_moved(moving._replace(done=True), bandit.public)
    with suppress(OSError):
        public_path(store.path).unlink(missing_ok=True)  # what it says is out of date from now on
    account = bandit.door.account
    return MovedIn(moving.bandit, bandit.public.counts(len(store)), len(account), account.head)
