"""One owner of an agent's file.

Two copies of one state, each released with its own noise, would cost twice. So a lock refuses a second opener and
falls with the process; a forked child leaves the file to its parent. A copied file cannot be detected.

A file that is moved, replaced or cut while its agent runs is noticed before the next write. What the agent wrote last
is in the write-ahead log beside the file; the file says whether it needs that log, so that a missing one is noticed.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
import os
import sqlite3
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar, TypeVar

from private_bandits.errors import AgentBusy, AgentClosed, AgentFileInvalid, AgentFileMissing, InvalidInput
from private_bandits.storage.damage import database_failure

try:
    import fcntl
except ImportError:  # not on Windows, where SQLite's own lock does not have the weakness below
    fcntl = None  # type: ignore[assignment]

T = TypeVar("T")

APPLICATION_ID = 0x50424E44  # "PBND" in the file's header


PRESENCE = "CREATE TABLE presence (log_needed INTEGER NOT NULL)"
"""Its one row is 1 while an agent has the file, as the latest writes may be in the log alone, and 0 otherwise."""
LOG_NEEDED = "UPDATE presence SET log_needed = 1"


class OwnedFile:
    """A SQLite file that is this agent's alone until it is closed, dropped, or its process ends."""

    connection: sqlite3.Connection

    def __init__(self, path: Path) -> None:
        self._process = os.getpid()
        self._path = path
        self._log = log_of(path)
        self._size = self._log_size = 0  # as they were last; neither shrinks while the agent runs
        self._lock = _Lock(path)
        self._connections: list[sqlite3.Connection] = []  # one, once there is one
        _OWNED.add(self)
        # Also when the agent is dropped without being closed.
        self._let_go = weakref.finalize(self, _close, self._connections, self._lock, self._process)

    def connect(self, new: bool) -> None:
        """Open the file for writing. new: it may be empty. A refusal says what the file is, without its path."""
        self.connection = _connect(self._path, new)
        self._connections.append(self.connection)

    def check_place(self, log: bool = True) -> None:
        """Refuse to write once the path names another file, or a part of this one is gone.

        Written all the same, the file under its new name would miss what is published from here on. log: look at the
        log as well.
        """
        trouble = self._trouble() or (self._trouble_with_log() if log else "")
        if trouble:
            raise AgentClosed(f"{trouble} while its agent was running, and the agent has ended")

    def _trouble(self) -> str:
        try:
            now = os.stat(self._path)
        except OSError:
            return f"{self._path} was moved or deleted (where it is now, it can be resumed with Agent.open)"
        if (now.st_dev, now.st_ino) != self._lock.file:
            return f"{self._path} was moved and replaced (where it is now, it can be resumed with Agent.open)"
        if now.st_size < self._size:
            return f"{self._path} was cut"
        self._size = now.st_size
        return ""

    def _trouble_with_log(self) -> str:
        size = size_of(self._log)
        if size < self._log_size:
            return f"{self._log}, the log of {self._path}, was removed or cut (resume the file with Agent.open)"
        self._log_size = size
        return ""

    def fold_log(self) -> None:
        """Make what was committed part of the file itself, on disk."""
        blocked, pages, folded = self.connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        if blocked or pages != folded:
            raise sqlite3.OperationalError("the log could not be folded into the file")
        self.check_place()

    def empty_log(self) -> None:
        """Leave nothing in the log, which holds what rows were before: sums, too, that were forgotten since."""
        _fold_for_good(self.connection)
        self._log_size = size_of(self._log)
        self.connection.execute(LOG_NEEDED)

    def check_process(self) -> None:
        """Refuse a forked child, however it came about."""
        if os.getpid() != self._process:
            raise AgentClosed("the agent belongs to the process that this one was forked from: use it there")

    def close(self) -> None:
        """Let others have the file."""
        try:
            self._let_go()
        except BaseException:  # it may not even have begun
            _close(self._connections, self._lock, self._process)
            raise

    def abandon(self) -> None:
        """In a forked child: leave the file to the parent.

        The connection is never closed here, which would take the log away under the parent. Closing this copy
        of the lock's handle leaves the parent's lock as it is.
        """
        self._let_go.detach()
        # For good: even the end of the child's interpreter must not close it.
        for connection in self._connections:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))
        self._lock.give_back()


_OWNED: weakref.WeakSet[OwnedFile] = weakref.WeakSet()


def _abandon_in_child() -> None:
    for file in list(_OWNED):
        with contextlib.suppress(Exception):
            file.abandon()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_abandon_in_child)


def file_path(path: str | os.PathLike[str]) -> Path:
    """Return the path of a file as a caller gave it. Refuses what is no path."""
    if not isinstance(path, (str, os.PathLike)) or "\0" in os.fspath(path) or not os.fspath(path):
        raise InvalidInput(f"path must name a file, as a text or a pathlib.Path, got {path!r}")
    return Path(path)


RESERVED = ("-wal", "-shm", "-journal", "-public", "-public-draft")
"""Ends of names that stand beside an agent's file: of SQLite's own files, and of the public file."""


def make_private_file(path: Path) -> None:
    """An empty file that its owner alone can read; what stands there already is left for later checks."""
    _refuse_folder(path)
    ending = next((end for end in RESERVED if path.name.endswith(end)), None)
    if ending is not None:
        raise InvalidInput(f"{path} ends in {ending}, as files do that stand beside an agent's: choose another name")
    if path.is_symlink() and not path.exists():
        raise AgentFileInvalid(f"{path} is a link that leads nowhere")
    if not path.parent.is_dir():
        raise AgentFileMissing(f"the folder {path.parent} does not exist: make it first")
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        pass
    except OSError as error:
        raise InvalidInput(f"{path} cannot be made: {error.strerror}. Choose another place for the file") from None
    if path.stat().st_size == 0:
        path.chmod(0o600)  # also where an empty file stood; its log takes over the mode


def check_agents_file(path: Path) -> None:
    """Refuse what is certainly no agent's file, without opening it."""
    _refuse_folder(path)
    if not path.exists():
        raise AgentFileMissing(f"no agent's file at {path}: make one with Agent(policy, path=...)")
    if path.stat().st_size == 0 and not path.with_name(path.name + "-wal").exists():
        raise AgentFileInvalid(f"{path} is empty: no agent was made in it yet, Agent(policy, path=...) does")


def log_of(path: Path) -> str:
    """Return the path of SQLite's write-ahead log, which stands beside the file itself, not beside a link to it."""
    return os.path.realpath(path) + "-wal"


def size_of(path: str) -> int:
    """Return the size of a file, 0 if there is none."""
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def _refuse_folder(path: Path) -> None:
    if path.is_dir():
        raise AgentFileInvalid(f"{path} is a folder: name a file")


def _connect(path: Path, new: bool) -> sqlite3.Connection:
    """A connection that keeps every other SQLite program out until it is closed or its process ends."""
    connection = sqlite3.connect(path, isolation_level=None, timeout=0, check_same_thread=False)
    connection.text_factory = bytes  # a text that is damaged is no UTF-8, and sqlite3 would quote it in its error
    failure: Exception | None = None
    try:
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        marked = connection.execute("PRAGMA application_id").fetchone()[0] == APPLICATION_ID
        if marked or (new and not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]):
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA secure_delete = ON")  # no old sum stays in a freed page
            connection.execute("BEGIN EXCLUSIVE")
            connection.execute("COMMIT")
            return connection
    except Exception as error:  # a damaged text in the words of sqlite3 is an error of its own kind
        failure = error
    except BaseException:
        _fold_for_good(connection)  # closing would fold the log, and the file would seem to lack it
        connection.close()
        raise
    connection.close()
    if failure is not None and is_locked(failure):
        raise busy(path)
    if failure is None or getattr(failure, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_NOTADB:
        raise AgentFileInvalid("is not an agent's file")
    raise AgentFileInvalid(f"cannot be opened: {database_failure(failure)}")


def _close(connections: list[sqlite3.Connection], lock: _Lock, process: int) -> None:
    if os.getpid() != process:
        return
    try:
        _close_all(connections)
    except BaseException:
        _close_all(connections)  # closed half-way, the file would seem to lack its log
        raise
    finally:
        lock.give_back()


def _close_all(connections: list[sqlite3.Connection]) -> None:
    while connections:
        _fold_for_good(connections[-1])
        connections[-1].close()
        connections.pop()


def _fold_for_good(connection: sqlite3.Connection) -> None:
    """Make the log part of the file, and note that it is not needed any more.

    The log is emptied, not only removed: where the file was moved, SQLite leaves the log behind, and another file at
    the old place must not take it for its own. Where the disk fails the log stays, and so does the note.
    """
    with contextlib.suppress(*_DATABASE_ERRORS):
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        connection.execute("PRAGMA wal_checkpoint(RESTART)").fetchall()  # a full disk has room in the log again
    with contextlib.suppress(*_DATABASE_ERRORS):  # versions before 0.9 had no such note
        connection.execute("UPDATE presence SET log_needed = 0 WHERE log_needed")
    with contextlib.suppress(*_DATABASE_ERRORS):
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


_DATABASE_ERRORS = (sqlite3.Error, UnicodeDecodeError)
"""The second comes where a damaged text is part of the words of the first."""


def is_locked(failure: Exception) -> bool:
    """Whether another program has the file."""
    return getattr(failure, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def busy(path: Path) -> AgentBusy:
    """Return the refusal of a file that another agent, or another program, has."""
    return AgentBusy(f"{path} is in use by another agent: close that one first, or end its process")


def waiting_for(take: Callable[[], T], seconds: float) -> T:
    """Return what `take` returns. While another agent has the file, try again for so many seconds."""
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 <= seconds < math.inf:
        raise InvalidInput(f"wait must be a number of seconds of at least 0, got {seconds!r}")
    until = time.monotonic() + seconds
    while True:
        try:
            return take()
        except AgentBusy as error:
            left = until - time.monotonic()
            if left <= 0:
                if seconds:
                    error.add_note(f"it was so for {seconds:g} seconds")
                raise
        time.sleep(min(RETRY, left))


RETRY = 0.05
"""Seconds between two tries to get a file that another agent has."""


class _Lock:
    """The right to be the one agent of a file, kept until it is given back or the process ends.

    SQLite's own lock is not enough: the system drops it as soon as this process closes any other handle on the
    file, as a backup within the process would. A flock stays. Files owned by this process are looked up first,
    without opening them.
    """

    _owned: ClassVar[set[tuple[int, int]]] = set()
    _handle: int | None = None

    def __init__(self, path: Path) -> None:
        status = path.stat()
        self.file = (status.st_dev, status.st_ino)
        if self.file in self._owned:
            raise busy(path)
        if status.st_nlink != 1:
            raise AgentFileInvalid(
                f"{path} has other names (hard links), where its log would not be found: remove them"
            )
        self._handle = os.open(path, os.O_RDWR)
        try:
            if fcntl is not None:
                fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            handle, self._handle = self._handle, None
            os.close(handle)
            raise busy(path) from None
        self._owned.add(self.file)

    def give_back(self) -> None:
        """Others may have the file from now on."""
        handle, self._handle = self._handle, None
        if handle is not None:
            self._owned.discard(self.file)
            os.close(handle)

    def __del__(self) -> None:
        self.give_back()  # where an interrupt came before anyone had it
