"""Notices damage of an agent's file, and tells it without a word of what the file holds.

Every row of the file has a checksum, and the file holds the total of all of them: a row that changed, went missing or
came from another time does not fit. This is against accidents. Who edits a file on purpose can compute checksums too.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from typing import Any, Generic, TypeVar
from zlib import crc32

T = TypeVar("T")

ROW = 2**32
"""A row adds its checksum and this to the total, so that the total counts the rows as well."""

_SQLITE_SAYS = {
    sqlite3.SQLITE_BUSY: "it is locked",
    sqlite3.SQLITE_LOCKED: "it is locked",
    sqlite3.SQLITE_READONLY: "it is read-only",
    sqlite3.SQLITE_IOERR: "the disk failed",
    sqlite3.SQLITE_CORRUPT: "its pages are damaged",
    sqlite3.SQLITE_FULL: "the disk is full",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened",
    sqlite3.SQLITE_NOTADB: "it is no database",
}


class Hidden(Generic[T]):
    """Holds a value that no repr shows: a sum or a context, on its way into the file or out of it."""

    __slots__ = ("value",)

    def __init__(self, value: T) -> None:
        self.value = value


def checksum(*columns: object) -> int:
    """Return the CRC-32 of a row, of the texts of its columns."""
    return crc32("\x1f".join(map(str, columns)).encode(errors="surrogateescape"))


def total(checksums: Iterable[int]) -> int:
    """Return what rows of these checksums add to the total of the file."""
    return sum(ROW + one for one in checksums)


def texts(rows: Iterable[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    """Return rows with texts for bytes. Bytes that are no UTF-8 are kept as they are, and have another checksum."""
    for row in rows:
        yield tuple([c.decode(errors="surrogateescape") if type(c) is bytes else c for c in row])


def database_failure(error: Exception) -> str:
    """Say what went wrong in fixed words. SQLite's own words may quote a column, and with it a sum."""
    code = getattr(error, "sqlite_errorcode", None)
    return _SQLITE_SAYS.get((code or 0) & 0xFF, "it is damaged, or the database refused")
