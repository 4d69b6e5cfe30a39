"""The statements that write an agent's file, each row with its checksum."""

from __future__ import annotations

from collections.abc import Iterable
from operator import itemgetter

from private_bandits.storage.damage import Hidden, checksum
from private_bandits.storage.formats import FORMAT, NEW_TABLES, SCHEMA, TIMES, Row
from private_bandits.storage.ownership import APPLICATION_ID

Statement = tuple[str, Hidden[list[Row]] | None]
"""One statement of SQL, with the rows that it is run for; None: it is run once. Rows may hold a sum or a context."""


UPDATE_AGENT = (
    "UPDATE agent SET asked = ?, generation = ?, arrivals = ?, ended = ?, total = ?, checksum = ? WHERE generation = ?"
)
CHANGING = ("episodes", "kept", "times")
"""Tables whose rows are replaced or deleted by the agent that wrote them, so that it remembers their checksums."""


INSERT = {
    table: f"INSERT{'' if table == 'ledger' else ' OR REPLACE'} INTO {table} VALUES ({', '.join('?' * columns)})"
    for table, columns in {
        "settings": 2,
        "policy": 3,
        "decisions": 6,
        "closed": 3,
        "generations": 3,
        "episodes": 3,
        "kept": 5,
        "ledger": 3,
        "people": 3,
        "chain": 2,
        "places": 3,
        "times": 3,
        "moved": 4,
    }.items()
}
PLACES = {name: itemgetter(0, 2) if name == "kept" else itemgetter(0) for name in INSERT}
"""The primary key of a row, by table."""


def runs(numbers: Iterable[int]) -> list[Row]:
    """Return the first and the last of each run of whole numbers without a gap: a batch is often one run.

    >>> runs([7, 3, 4, 5])
    [(3, 5), (7, 7)]
    """
    found: list[Row] = []
    for number in sorted(numbers):
        if found and found[-1][1] == number - 1:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return found


def inserted(table: str, rows: Iterable[Row]) -> Statement:
    """Write rows with their checksums."""
    return INSERT[table], Hidden([(*row, checksum(table, *row)) for row in rows])


def chained_tables(opening: str) -> list[Statement]:
    """Make the tables that a file of format 5 lacks, and note what the chain of its ledger begins with."""
    version: Statement = (f"PRAGMA user_version = {FORMAT}", None)
    return [*((statement, None) for statement in NEW_TABLES), version, inserted("chain", [(opening,)])]


def empty_tables(settings: str, opening: str, timed: bool = False) -> list[Statement]:
    """Make the tables of a new file. timed: whether it holds the times of decisions."""
    return [
        *((statement, None) for statement in (*SCHEMA, *([TIMES] if timed else []))),
        (f"PRAGMA application_id = {APPLICATION_ID}", None),
        (f"PRAGMA user_version = {FORMAT}", None),
        inserted("settings", [(settings,)]),
        inserted("chain", [(opening,)]),
        ("INSERT INTO agent VALUES (0, 0, NULL, '', 0, 0)", None),
        ("INSERT INTO presence VALUES (1)", None),
    ]
