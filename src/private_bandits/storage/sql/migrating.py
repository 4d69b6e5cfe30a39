"""Brings the tables of a database to this version, step by step, with Alembic."""

from __future__ import annotations

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

from private_bandits.errors import DatabaseOutdated


def _config(connection: Connection | None = None) -> Config:
    config = Config()
    config.set_main_option("script_location", "private_bandits.storage.sql:migrations")
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    return config


def newest_revision() -> str:
    """Return the revision of the tables that this version reads."""
    found = ScriptDirectory.from_config(_config()).get_current_head()
    assert found is not None
    return found


def revision_of(connection: Connection) -> str | None:
    """Return the revision of the tables of a database; None where there are none."""
    return MigrationContext.configure(connection).get_current_revision()


def upgrade(connection: Connection) -> tuple[str | None, str]:
    """Bring the tables to this version, in the transaction of the connection. Returns the revisions before and after.

    Raises:
        DatabaseOutdated: A newer version of this package wrote the tables.
    """
    before, after = revision_of(connection), newest_revision()
    known = {script.revision for script in ScriptDirectory.from_config(_config()).walk_revisions()}
    if before is not None and before not in known:
        raise _newer(before)
    if before != after:
        command.upgrade(_config(connection), "head")
    return before, after


def check_revision(connection: Connection) -> None:
    """Refuse a database whose tables are of another version."""
    found, expected = revision_of(connection), newest_revision()
    if found == expected:
        return
    known = {script.revision for script in ScriptDirectory.from_config(_config()).walk_revisions()}
    if found is not None and found not in known:
        raise _newer(found)
    have = "has no tables yet" if found is None else f"has tables of revision {found}"
    raise DatabaseOutdated(f"the database {have}, and this version reads revision {expected}: upgrade it first")


def _newer(revision: str) -> DatabaseOutdated:
    return DatabaseOutdated(
        f"the database has tables of revision {revision}, which a newer version of private-bandits made: use that one"
    )
