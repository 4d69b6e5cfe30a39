"""One owner of an agent's file.

Two copies of one state, each released with its own noise, would cost twice. So a lock refuses a second opener and
falls with the process; a forked child leaves the file to its parent. A copied file cannot be detected.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sqlite3
import weakref
from pathlib import Path
from typing import ClassVar

from private_bandits.errors import AgentBusy, AgentClosed, AgentFileInvalid, AgentFileMissing, InvalidInput

try:
    import fcntl
except ImportError:  # not on Windows, where SQLite's own lock does not have the weakness below
    fcntl = None  # type: ignore[assignment]

APPLICATION_ID = 0x50424E44  # "PBND" in the file's header


class OwnedFile:
    """A SQLite file that is this agent's alone until it is closed, dropped, or its process ends."""

    def __init__(self, path: Path, new: bool) -> None:
        self._process = os.getpid()
        self._lock = _Lock(path)
        try:
            self.connection = _connect(path, new)
        except BaseException:
            self._lock.give_back()
            raise
        _OWNED.add(self)
        # Also when the agent is dropped without being closed.
        self._let_go = weakref.finalize(self, _close, self.connection, self._lock, self._process)

    def check_process(self) -> None:
        """Refuse a forked child, however it came about."""
        if os.getpid() != self._process:
            raise AgentClosed("the agent belongs to the process that this one was forked from: use it there")

    def close(self) -> None:
        """Let others have the file."""
        self._let_go()

    def abandon(self) -> None:
        """In a forked child: leave the file to the parent.

        The connection is never closed here, which would take the log away under the parent. Closing this copy
        of the lock's handle leaves the parent's lock as it is.
        """
        self._let_go.detach()
        # For good: even the end of the child's interpreter must not close it.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self.connection))
        self._lock.give_back()


_OWNED: weakref.WeakSet[OwnedFile] = weakref.WeakSet()


def _abandon_in_child() -> None:
    for file in list(_OWNED):
        with contextlib.suppress(Exception):
            file.abandon()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_abandon_in_child)


def make_private_file(path: Path) -> None:
    """An empty file that its owner alone can read; what stands there already is left for later checks."""
    _refuse_folder(path)
    if path.is_symlink() and not path.exists():
        raise AgentFileInvalid(f"{path} is a link that leads nowhere")
    if not path.parent.is_dir():
        raise AgentFileMissing(f"the folder {path.parent} does not exist: make it first")
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL, 0o600))
    if path.stat().st_size == 0:
        path.chmod(0o600)  # also where an empty file stood; its log takes over the mode


def check_agents_file(path: Path) -> None:
    """Refuse what is certainly no agent's file, without opening it."""
    _refuse_folder(path)
    if not path.exists():
        raise AgentFileMissing(f"no agent's file at {path}: make one with Agent(policy, path=...)")
    if path.stat().st_size == 0 and not path.with_name(path.name + "-wal").exists():
        raise AgentFileInvalid(f"{path} is empty: no agent was made in it yet, Agent(policy, path=...) does")


def _refuse_folder(path: Path) -> None:
    if path.is_dir():
        raise AgentFileInvalid(f"{path} is a folder: name a file")


def _connect(path: Path, new: bool) -> sqlite3.Connection:
    """A connection that keeps every other SQLite program out until it is closed or its process ends."""
    connection = sqlite3.connect(path, isolation_level=None, timeout=0, check_same_thread=False)
    try:
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        marked = connection.execute("PRAGMA application_id").fetchone()[0] == APPLICATION_ID
        if not marked and (not new or connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]):
            raise sqlite3.DatabaseError("not a database of ours")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA secure_delete = ON")  # no old sum stays in a freed page
        connection.execute("BEGIN EXCLUSIVE")
        connection.execute("COMMIT")
    except sqlite3.DatabaseError as error:
        connection.close()
        if "locked" in str(error):
            raise _busy(path) from None
        if "not a database" in str(error):
            raise AgentFileInvalid(f"{path} is not an agent's file") from None
        raise InvalidInput(f"{path} cannot be opened: {error}") from None
    return connection


def _close(connection: sqlite3.Connection, lock: _Lock, process: int) -> None:
    if os.getpid() == process:
        try:
            connection.close()
        finally:
            lock.give_back()


def _busy(path: Path) -> AgentBusy:
    return AgentBusy(f"{path} is in use by another agent: close that one first, or end its process")


class _Lock:
    """The right to be the one agent of a file, kept until it is given back or the process ends.

    SQLite's own lock is not enough: the system drops it as soon as this process closes any other handle on the
    file, as a backup within the process would. A flock stays. Files owned by this process are looked up first,
    without opening them.
    """

    _owned: ClassVar[set[tuple[int, int]]] = set()

    def __init__(self, path: Path) -> None:
        status = path.stat()
        self._file = (status.st_dev, status.st_ino)
        if self._file in self._owned:
            raise _busy(path)
        if status.st_nlink != 1:
            raise AgentFileInvalid(
                f"{path} has other names (hard links), where its log would not be found: remove them"
            )
        self._handle: int | None = os.open(path, os.O_RDWR)
        try:
            if fcntl is not None:
                fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._handle)
            raise _busy(path) from None
        self._owned.add(self._file)

    def give_back(self) -> None:
        """Others may have the file from now on."""
        handle, self._handle = self._handle, None
        if handle is not None:
            os.close(handle)
            self._owned.discard(self._file)
