"""Says what went wrong in a database in fixed words. A database's own words may quote a sum, a context or a person."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import TypeVar

from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from private_bandits.errors import DatabaseBusy, DatabaseFailed, OutcomeUnknown
from private_bandits.storage.damage import database_failure

T = TypeVar("T")

_POSTGRES_SAYS = {
    "08": "the connection was lost",
    "22": "a value is out of range",
    "23": "a row that may be there once is there already",
    "25": "the transaction was ended",
    "28": "it refuses this user",
    "3D": "there is no such database",
    "42": "its tables are not those of this version, or it refuses this user",
    "53": "it is out of disk space, memory or connections",
    "57": "it was stopped",
    "58": "its disk failed",
    "XX": "it is damaged",
}
"""By the first two letters of the code that PostgreSQL gives each error."""

_POSTGRES_BUSY = ("55P03", "40001", "40P01", "57014", "25P03")
"""Codes of transactions that waited too long for each other."""


def guarded(call: Callable[[], T]) -> T:
    """Return what a call returns. What the database says is not passed on, nor its frames."""
    try:
        return call()
    except SQLAlchemyError as error:
        failure = failure_of(error)
    raise failure  # outside of the block above: its exception holds what was to be written


def guarded_commit(commit: Callable[[], None]) -> None:
    """Commit, or say that nobody knows whether that was done."""
    trouble = None
    try:
        commit()
    except SQLAlchemyError as error:
        trouble = trouble_of(error)
    if trouble is not None:
        raise OutcomeUnknown(
            f"the database did not say whether it kept the change ({trouble}): repeat the call with the same ids and "
            "the same key, which tells"
        )


def failure_of(error: SQLAlchemyError) -> DatabaseFailed:
    """Return the failure in fixed words. Nothing was changed."""
    trouble = trouble_of(error)
    if is_busy(error):
        return DatabaseBusy(f"the database is busy ({trouble}), nothing was changed: try again in a moment")
    return DatabaseFailed(f"the database failed ({trouble}), nothing was changed: mend the cause and try again")


def is_busy(error: SQLAlchemyError) -> bool:
    """Whether waiting helps."""
    if isinstance(error, PoolTimeout):
        return True
    cause = error.orig if isinstance(error, DBAPIError) else None
    if isinstance(cause, sqlite3.Error):
        return getattr(cause, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
    return (getattr(cause, "sqlstate", None) or "") in _POSTGRES_BUSY


def trouble_of(error: SQLAlchemyError) -> str:
    """Return what went wrong, by the class of the error alone."""
    if isinstance(error, PoolTimeout):
        return "all connections are in use"
    cause = error.orig if isinstance(error, DBAPIError) else None
    if isinstance(cause, sqlite3.IntegrityError):
        return _POSTGRES_SAYS["23"]
    if isinstance(cause, sqlite3.Error):
        return database_failure(cause)
    code = getattr(cause, "sqlstate", None) or ""
    if code in _POSTGRES_BUSY:
        return "another transaction has the lock"
    return _POSTGRES_SAYS.get(code[:2], "it cannot be reached, or the connection was lost")
