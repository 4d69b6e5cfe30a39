"""Lists decisions: never their persons, their contexts or their rewards."""

from __future__ import annotations

from private_bandits.plain_data import csv_text
from private_bandits.protocol.problems import HIDDEN, Refused
from private_bandits.service.cursors import cursor_of
from private_bandits.service.ids import DecisionIds
from private_bandits.service.shapes import DecisionLine, DecisionList
from private_bandits.service.snapshots import Facts
from private_bandits.storage.sql.database import Database
from private_bandits.storage.sql.decisions import name_in
from private_bandits.storage.sql.public_rows import decisions_after


def decisions_page(database: Database, facts: Facts, last: int, count: int) -> DecisionList:
    """Return so many decisions after a number.

    Raises:
        Refused: Contexts are private here, so that decisions are as well.
    """
    if facts.policy.private_contexts:
        raise Refused(HIDDEN)
    incarnation, rows = decisions_after(database, facts.number, last, count)
    ids, names = DecisionIds(facts.id_key, incarnation), facts.policy.arm_names
    items = [
        DecisionLine.model_construct(
            id=ids.of(row.number),
            number=row.number,
            action=row.action,
            arm=name_in(row.arm) or (names[row.action] if names else f"action {row.action}"),
            status=row.status,
            asked_at=row.asked_at,
            closed_at=row.closed_at,
        )
        for row in rows
    ]
    return DecisionList(items=items, next=cursor_of(items[-1].number) if len(items) == count else None)


def as_csv(page: DecisionList) -> str:
    """Return decisions as CSV, with a line of names first."""
    rows = [item.model_dump() for item in page.items]
    return csv_text(rows) if rows else ",".join(DecisionLine.model_fields) + "\n"
