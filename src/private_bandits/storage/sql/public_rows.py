"""Reads what is public of bandits. No query here names a column that holds a sum, a person or a context.

What is read was committed: nobody sees a draw before it is in the ledger for good.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Row, func, select, update

from private_bandits.errors import DatabaseFailed, UnknownBandit
from private_bandits.storage.sql.database import Database, Transaction
from private_bandits.storage.sql.schema import bandits, cold, decisions, hot, releases

_FIXED = (bandits.c.id, bandits.c.name, bandits.c.opening, bandits.c.created)
_MOVING = (
    *(hot.c.version, hot.c.status, hot.c.failed, hot.c.incarnation, hot.c.asked, hot.c.open, hot.c.ended),
    *(hot.c.arrivals, hot.c.releases, cold.c.learned, cold.c.policy, cold.c.account),
)


class LedgerRow(NamedTuple):
    """A row of the ledger: its number, its text, and when it was released, in microseconds since 1970."""

    number: int
    text: str
    released_at: int


class Page(NamedTuple):
    """Bandits to list: number, name, opening, created and status of each; and whether there are more."""

    rows: Sequence[Row[Any]]
    more: bool


def bandits_after(database: Database, last: int, count: int, name: str | None) -> Page:
    """Return so many bandits after the one of a number, in the order in which they were made.

    Args:
        database: The database.
        last: The number of the last one that is known; 0: none is.
        count: How many.
        name: Only the one of this name; None: all of them.
    """
    query = select(*_FIXED, hot.c.status).join(hot, hot.c.bandit == bandits.c.id).where(bandits.c.id > last)
    if name is not None:
        query = query.where(bandits.c.name == name)
    with database.reading() as work:
        found = work.rows(query.order_by(bandits.c.id).limit(count + 1))
    return Page(found[:count], len(found) > count)


def fixed_row(database: Database, name: str) -> Row[Any]:
    """Return what is fixed of a bandit: its number, its opening, when it was made, and the key of its ids.

    Raises:
        UnknownBandit: There is none of this name.
    """
    with database.reading() as work:
        found = work.rows(select(*_FIXED, bandits.c.id_key).where(bandits.c.name == name))
    if not found:
        raise UnknownBandit("the database has no bandit of this name")
    return found[0]


def version_of(database: Database, bandit: int) -> int:
    """Return the version of a bandit. It changes with everything that is written of it."""
    with database.reading() as work:
        return work.version(bandit)


def moving_row(work: Transaction, bandit: int) -> Row[Any]:
    """Return what changes of a bandit, but for its sums."""
    query = select(*_MOVING).join(cold, cold.c.bandit == hot.c.bandit).where(hot.c.bandit == bandit)
    return work.rows(query)[0]


def ledger_rows(work: Transaction, bandit: int, first: int, count: int) -> list[LedgerRow]:
    """Return so many rows of the ledger from a number on, as far as there are."""
    number = releases.c.number
    query = select(number, releases.c.row, releases.c.released_at).where(releases.c.bandit == bandit)
    found = work.rows(query.where(number >= first).order_by(number).limit(count))
    return [LedgerRow(row.number, row.row, row.released_at) for row in found]


def releases_since(database: Database, bandit: int, last: int, count: int) -> list[LedgerRow]:
    """Return so many rows of the ledger after a number."""
    with database.reading() as work:
        return ledger_rows(work, bandit, last + 1, count)


class Watched(NamedTuple):
    """How a bandit stands: how often it was written, its releases, its status, whether its policy failed."""

    version: int
    releases: int
    status: str
    failed: bool


def watch(database: Database, numbers: Iterable[int]) -> dict[int, Watched]:
    """Return how bandits stand, with one query for all of them."""
    columns = (hot.c.bandit, hot.c.version, hot.c.releases, hot.c.status, hot.c.failed)
    with database.reading() as work:
        rows = work.rows(select(*columns).where(hot.c.bandit.in_(sorted(numbers))))
    return {row.bandit: Watched(row.version, row.releases, row.status, row.failed is not None) for row in rows}


# Decisions.


def decisions_after(database: Database, bandit: int, last: int, count: int) -> tuple[str, Sequence[Row[Any]]]:
    """Return the incarnation of a bandit, and so many of its decisions after a number, without person and context."""
    columns = (decisions.c.number, decisions.c.action, decisions.c.arm, decisions.c.status)
    query = select(*columns, decisions.c.asked_at, decisions.c.closed_at).where(decisions.c.bandit == bandit)
    with database.reading() as work:
        incarnation = work.rows(select(hot.c.incarnation).where(hot.c.bandit == bandit))[0][0]
        number = decisions.c.number
        return incarnation, work.rows(query.where(number > last).order_by(number).limit(count))


def decisions_by_time(database: Database, bandit: int, since: int, width: int) -> Sequence[Row[Any]]:
    """Count the decisions that were asked since a time, in spans of a width, by action and by what became of them.

    Times are in microseconds. The rows have: span (its number since 1970), action, status, decisions.
    """
    with database.reading() as work:
        first = _first_since(work, bandit, since)
        span = (decisions.c.asked_at // width).label("span")
        query = select(span, decisions.c.action, decisions.c.status, func.count().label("decisions"))
        query = query.where(decisions.c.bandit == bandit, decisions.c.number >= first)
        return work.rows(query.group_by(span, decisions.c.action, decisions.c.status).order_by(span))


def _first_since(work: Transaction, bandit: int, since: int) -> int:
    """Return the number of the first decision that was asked since a time. Later decisions have later times."""
    low, high = 1, work.rows(select(hot.c.asked).where(hot.c.bandit == bandit))[0][0] + 1
    while low < high:
        middle = (low + high) // 2
        found = work.rows(
            select(decisions.c.asked_at).where(decisions.c.bandit == bandit, decisions.c.number == middle)
        )
        if found and found[0].asked_at >= since:
            high = middle
        else:
            low = middle + 1
    return low


# What operators change.


def change_status(database: Database, bandit: int, status: str, allowed: Sequence[str]) -> bool:
    """Change the status of a bandit, if it is one of those from which that is allowed. Returns whether it is so now."""
    with database.transaction() as work:
        lock = work.lock(bandit)
        if lock.status == status:
            return True
        if lock.status not in allowed:
            return False
        values = {"version": lock.version + 1, "now": work.now, "status": status}
        if work.run(update(hot).where(hot.c.bandit == bandit).values(values)) != 1:
            raise DatabaseFailed("the bandit is gone: nothing was changed")
        work.commit()
    return True
