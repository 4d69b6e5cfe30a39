"""Writes what a batch did, with a few statements, each for many rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Table, delete, insert, update
from sqlalchemy.dialects import postgresql, sqlite

from private_bandits.errors import DatabaseFailed
from private_bandits.ledger import Release
from private_bandits.storage.sql.asks import KEPT_FOR, AskRows
from private_bandits.storage.sql.database import Transaction
from private_bandits.storage.sql.decisions import Decisions, erased
from private_bandits.storage.sql.people import PeopleRows
from private_bandits.storage.sql.schema import asks, cold, decisions, episodes, hot, people, releases
from private_bandits.storage.sql.state_rows import ColdRow, HotRow

Rows = Sequence[dict[str, Any]]

_UPSERTS = {"sqlite": sqlite.insert, "postgresql": postgresql.insert}


@dataclass(frozen=True, repr=False)
class Changes:
    """What a batch did to a bandit.

    Args:
        bandit: The number of the bandit.
        hot: The hot state before and after.
        cold: The cold state before and after.
        decisions: The decisions that were handed out and closed.
        people: The people whose rewards were taken.
        released: The releases that were made.
        asks: Asks that may come again.
    """

    bandit: int
    hot: tuple[HotRow, HotRow]
    cold: tuple[ColdRow, ColdRow]
    decisions: Decisions
    people: PeopleRows
    released: Sequence[Release]
    asks: AskRows


def write(work: Transaction, changes: Changes) -> None:
    """Write all of it. Nothing lasts before the transaction is committed."""
    _insert(work, decisions, changes.decisions.new_rows(changes.hot[1].generation, work.now))
    _close_decisions(work, changes)
    _write_people(work, changes.people.new_rows())
    _write_releases(work, changes)
    _write_asks(work, changes)
    before, after = changes.cold
    if after is not before:
        work.run(update(cold).where(cold.c.bandit == changes.bandit).values(**after.columns()))
    _write_hot(work, changes)


def _insert(work: Transaction, table: Table, rows: Rows) -> None:
    if rows:
        work.run(insert(table), rows)


def _close_decisions(work: Transaction, changes: Changes) -> None:
    """Note how decisions ended, and erase whom they were for and what they chose from."""
    gone = erased(changes.decisions.hides_arms)
    for ending, numbers in changes.decisions.gone():
        where = decisions.c.bandit == changes.bandit, decisions.c.number.in_(numbers)
        work.run(update(decisions).where(*where).values(status=ending, closed_at=work.now, **gone))


def _write_people(work: Transaction, rows: Rows) -> None:
    if rows:
        statement: Any = _UPSERTS[work.dialect](people)
        new = {name: statement.excluded[name] for name in ("rewards", "places")}
        work.run(statement.on_conflict_do_update(index_elements=["bandit", "person"], set_=new), rows)


def _write_releases(work: Transaction, changes: Changes) -> None:
    """Add rows to the ledger. An episode that was released before is refused by the key of `episodes`."""
    bandit, incarnation = changes.bandit, changes.hot[1].incarnation
    new = [
        {"bandit": bandit, "incarnation": incarnation, "episode": part.episode, "release": row.number}
        for row in changes.released
        for part in row.parts
        if part.new
    ]
    _insert(work, episodes, new)
    rows = [{"bandit": bandit, "number": row.number, "row": row.text} for row in changes.released]
    _insert(work, releases, [row | {"released_at": work.now} for row in rows])


def _write_asks(work: Transaction, changes: Changes) -> None:
    """Note asks that may come again, and forget those that are too old for that."""
    rows = changes.asks.new_rows(work.now)
    if rows:
        old = asks.c.bandit == changes.bandit, asks.c.asked_at < work.now - KEPT_FOR
        work.run(delete(asks).where(*old))
        _insert(work, asks, rows)


def _write_hot(work: Transaction, changes: Changes) -> None:
    before, after = changes.hot
    where = hot.c.bandit == changes.bandit, hot.c.version == before.version
    if work.run(update(hot).where(*where).values(**after.columns(), now=work.now)) != 1:
        raise DatabaseFailed("another worker changed the bandit although its row was locked: nothing was changed")
