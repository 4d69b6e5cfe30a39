"""Reads an agent's file before it is taken over, and changes nothing in it.

What was written last is in the log beside the file, until it is folded into the file. SQLite believes whatever log it
finds. A log that was cut, or is from an earlier time, would bring back pages that the file has newer, and a release
that was published could be drawn again. So both are read first, the file alone and the file with its log.
"""

from __future__ import annotations

import os
import sqlite3
import struct
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from private_bandits.errors import AgentFileInvalid
from private_bandits.storage.damage import texts
from private_bandits.storage.decisions import checked_rows
from private_bandits.storage.formats import CHECKED, NO_AGENT, Contents, read_contents
from private_bandits.storage.ownership import APPLICATION_ID, busy, is_locked, log_of, size_of

LEAST_LOG = 32 + 24 + 512
"""Bytes of a log that holds anything: its header, and one page with its own."""


class Standing(NamedTuple):
    """How far a file has come. The first two only grow, and settings stay; files before format 4 have none apart."""

    generation: int
    releases: int
    settings: bytes | None


def read_file(path: Path, without_log: bool) -> Contents:
    """Read and check a file that no agent has open.

    Refuses a file whose log is missing, or behind the file. without_log: reads the file alone then, and also if the two
    do not fit together; a log that is no use is set aside.
    """
    log = log_of(path)
    empty = size_of(log) < LEAST_LOG
    with _reading(path, with_log=False) as alone:
        standing, needs_log = _standing(alone), _needs_log(alone)
        if empty and (without_log or not needs_log):
            return replace(_checked(alone), with_log=False)
    try:
        if empty:
            raise _log_lost(log, "missing or empty")
        with _reading(path, with_log=True) as whole:
            if _is_behind(_standing(whole), standing):
                raise _log_lost(log, "cut, of an earlier time or of another file")
            if not without_log and _has_unreadable_writes(log):
                raise _log_lost(log, "damaged")
            return _checked(whole)
    except (AgentFileInvalid, sqlite3.Error):
        if not without_log:
            raise
    with _reading(path, with_log=False) as alone:
        found = replace(_checked(alone), with_log=False)
    os.replace(log, log + "-set-aside")  # SQLite would take it for the file's own
    return found


def stored_releases(path: Path, contents: Contents) -> Iterator[tuple[int, str]]:
    """Read the rows of the ledger of a file, one after the other, in the way in which its contents were read."""
    with _reading(path, contents.with_log) as connection:
        query = "SELECT number, release, checksum FROM ledger ORDER BY number"
        if contents.checked:
            yield from checked_rows("ledger", connection.execute(query))
            return
        for number, text in texts(connection.execute(query.replace(", checksum", ""))):
            if type(text) is not str or not text.isascii():
                raise AgentFileInvalid("is damaged: a column holds what no agent writes")
            yield number, text


def releases_between(path: Path, settings: str, first: int, last: int) -> list[tuple[int, str]]:
    """Read rows of the ledger of a file that its agent has closed. Refuses a file of other settings."""
    with _reading(path, with_log=True) as connection:
        if list(texts(connection.execute("SELECT text FROM settings"))) != [(settings,)]:
            raise AgentFileInvalid("is another agent's file by now")
        return ledger_rows(connection, first, last)


def ledger_rows(connection: sqlite3.Connection, first: int, last: int) -> list[tuple[int, str]]:
    """Read the rows of a ledger from one number to another. Refuses a ledger that lacks one of them."""
    query = "SELECT number, release, checksum FROM ledger WHERE number BETWEEN ? AND ? ORDER BY number"
    # All of it at once: what an interrupt leaves half-read would keep the log from being folded into the file.
    found = list(checked_rows("ledger", connection.execute(query, (first, last)).fetchall()))
    if [number for number, _ in found] != list(range(first, last + 1)):
        raise AgentFileInvalid("lacks releases that its agent made: it is an earlier copy, or damaged")
    return found


def _log_lost(log: str, trouble: str) -> AgentFileInvalid:
    return AgentFileInvalid(
        f"cannot be read with its latest writes: the log that held them, {log}, is {trouble}. Put the right log beside "
        "the file. If it is lost, Agent.open(path, without_log=True) goes on without the asks and tells in it; every "
        "release is in the file"
    )


def _has_unreadable_writes(log: str) -> bool:
    """Whether SQLite leaves out whole transactions of the log, because something before them is damaged.

    A process that is killed leaves no such log: its last transaction may be written in part, and nothing follows it.
    (The format is SQLite's: a header of 32 bytes, then pages, each after 24 bytes that say whether a transaction ends
    with it. They carry the two salts of the header if they belong to this log. What SQLite reads is in its index.)
    """
    index = log.removesuffix("-wal") + "-shm"
    with open(log, "rb") as file, open(index, "rb") as read:
        header = file.read(32)
        if _sums(header[:24], "<" if header[3] == 0x82 else ">") != struct.unpack(">II", header[24:]):
            return True
        frame = 24 + struct.unpack(">I", header[8:12])[0]
        readable = struct.unpack("=I", read.read(20)[16:])[0]
        file.seek(32 + readable * frame)
        ended = False
        while len(start := file.read(24)) == 24:
            if start[8:16] == header[16:24]:
                if ended:
                    return True
                ended = start[4:8] != bytes(4)
            file.seek(frame - 24, os.SEEK_CUR)
    return False


def _sums(header: bytes, order: str) -> tuple[int, int]:
    """Return the checksum of the header of a log, as SQLite computes it."""
    first = second = 0
    for one, other in struct.iter_unpack(f"{order}II", header):
        first = (first + one + second) % 2**32
        second = (second + other + first) % 2**32
    return first, second


@contextmanager
def _reading(path: Path, with_log: bool) -> Iterator[sqlite3.Connection]:
    """Open the file for reading. Without its log, as if nobody could write to it."""
    index = Path(f"{os.path.realpath(path)}-shm")
    stood = index.exists()
    address = path.as_uri() + ("?mode=ro" if with_log else "?mode=ro&immutable=1")
    failure: sqlite3.Error | None = None
    try:
        with closing(sqlite3.connect(address, uri=True, timeout=0)) as connection:
            connection.text_factory = bytes  # a damaged text is no UTF-8, and sqlite3 would quote it in its error
            yield connection
    except sqlite3.Error as error:
        failure = error
    finally:
        if with_log and not stood:
            index.unlink(missing_ok=True)  # SQLite's index of the log, which it makes anew
    if failure is not None:
        raise busy(path) if is_locked(failure) else failure


def _checked(connection: sqlite3.Connection) -> Contents:
    if connection.execute("PRAGMA application_id").fetchone() != (APPLICATION_ID,):
        raise AgentFileInvalid(NO_AGENT)
    return read_contents(connection)


def _standing(connection: sqlite3.Connection) -> Standing | None:
    """Say how far the file has come; None where that cannot be read, as in a file that was never folded."""
    try:
        query = "SELECT generation, (SELECT coalesce(max(number), 0) FROM ledger) FROM agent"
        generation, releases = connection.execute(query).fetchone()
        settings = None
        if connection.execute("PRAGMA user_version").fetchone()[0] >= CHECKED:
            settings = connection.execute("SELECT text FROM settings").fetchone()[0]
        if type(generation) is int and type(releases) is int:
            return Standing(generation, releases, settings)
    except Exception as error:
        if isinstance(error, sqlite3.Error) and is_locked(error):  # somebody has it: that says nothing of the log
            raise
    return None


def _is_behind(whole: Standing | None, alone: Standing | None) -> bool:
    """Whether the log takes something back that the file has, or is not the file's own."""
    if alone is None or whole is None:
        return alone is not None
    earlier = whole.generation < alone.generation or whole.releases < alone.releases
    return earlier or alone.settings not in (None, whole.settings)


def _needs_log(connection: sqlite3.Connection) -> bool:
    """Whether the file was not closed by the agent that had it last. Files before format 4 do not say so."""
    found: Any = (0,)
    with suppress(Exception):
        if connection.execute("PRAGMA user_version").fetchone()[0] >= CHECKED:
            found = connection.execute("SELECT log_needed FROM presence").fetchone()
    return bool(found != (0,))
