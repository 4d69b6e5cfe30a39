"""Where an agent's state lives: in memory, or also in a SQLite file that it owns.

Public state and private state are two types.

Two copies of one state, each released with its own noise, would cost twice. So a file has one owner: a lock
refuses a second opener and falls with the process, and every write checks the generation that the owner wrote
when it opened the file. A copied file cannot be detected.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import json
import os
import secrets
import sqlite3
import weakref
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol

from private_bandits.episode import Episode, Grid
from private_bandits.errors import (
    AgentBusy,
    AgentClosed,
    AgentFileExists,
    AgentFileInvalid,
    AgentFileMissing,
    InvalidInput,
)
from private_bandits.guarantee import Unit
from private_bandits.ledger import Ledger, Release
from private_bandits.policies import Policy, policy_from_dict
from private_bandits.rewards import RewardRange

try:
    import fcntl
except ImportError:  # not on Windows, where SQLite's own lock does not have the weakness below
    fcntl = None  # type: ignore[assignment]

FORMAT = 1
APPLICATION_ID = 0x50424E44  # "PBND" in the file's header


@dataclass(frozen=True)
class Settings:
    """What an agent was made with. Public, and fixed for its life."""

    policy: Policy[Any]
    reward_range: RewardRange
    max_rewards_per_person: int | None
    unit: Unit
    seed: int | None
    give_up_after: int | None
    token: str = field(default_factory=lambda: secrets.token_hex(4))
    """Marks this agent's decisions, so that another agent's are not taken for them."""
    salt: str = field(default_factory=lambda: secrets.token_hex(16))
    """Keeps people's names out of memory and file: only keyed hashes are stored."""

    def hash_person(self, person: str) -> str:
        """What is kept of a name."""
        return hashlib.blake2b(person.encode(), key=bytes.fromhex(self.salt), digest_size=16).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        plain = {k: getattr(self, k) for k in _PLAIN_SETTINGS}
        bounds = [self.reward_range.low, self.reward_range.high]
        return plain | {"policy": self.policy.to_dict(), "reward_range": bounds}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Settings:
        """What to_dict wrote."""
        policy = policy_from_dict(data.pop("policy"))
        return cls(policy=policy, reward_range=RewardRange.of(data.pop("reward_range")), **data)


_PLAIN_SETTINGS = ("max_rewards_per_person", "unit", "seed", "give_up_after", "token", "salt")


class OpenDecision(NamedTuple):
    """A decision that waits for its reward. Public."""

    number: int
    action: int
    person: str | None


@dataclass
class PublicState:
    """What everyone may know: decisions made and open, releases, the policy's state."""

    policy: Any
    waiting: list[int]
    asked: int = 0
    generation: int = 1
    open: dict[str, OpenDecision] = field(default_factory=dict)


@dataclass
class PrivateState:
    """What nobody may see: the open sums. Its repr says how many there are."""

    episodes: dict[int, Episode] = field(default_factory=dict, repr=False)

    def __repr__(self) -> str:
        return f"PrivateState({len(self.episodes)} open episodes, sums hidden)"


class _Hidden:
    """A text with a sum in it, on its way into the file; its repr does not show it."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


class PeopleCounts(Protocol):
    """How many rewards of each person were taken."""

    def rewards_of(self, person: str) -> int:
        """How many rewards of this person were taken."""

    def count_rewards_of(self, person: str, more: int) -> None:
        """So many more of this person's rewards are taken; -1 where one was refused after all."""


class CountsInMemory:
    """Counts that end with the process."""

    def __init__(self) -> None:
        self._rewards_of: dict[str, int] = {}

    def rewards_of(self, person: str) -> int:
        """From the counts."""
        return self._rewards_of.get(person, 0)

    def count_rewards_of(self, person: str, more: int) -> None:
        """Into the counts."""
        self._rewards_of[person] = self.rewards_of(person) + more


_SCHEMA = (
    "CREATE TABLE agent (settings TEXT NOT NULL, policy TEXT NOT NULL, asked INTEGER NOT NULL,"
    " generation INTEGER NOT NULL)",
    "CREATE TABLE decisions (number INTEGER PRIMARY KEY, generation INTEGER NOT NULL, action INTEGER NOT NULL,"
    " person TEXT)",
    "CREATE TABLE episodes (key INTEGER PRIMARY KEY, private TEXT NOT NULL)",
    "CREATE TABLE ledger (number INTEGER PRIMARY KEY, release TEXT NOT NULL)",
    "CREATE TABLE people (person TEXT PRIMARY KEY, rewards INTEGER NOT NULL) WITHOUT ROWID",
)


class SqliteStore:
    """State in one file: told what changes, it makes all of it lasting at `commit`, or nothing.

    A tell is on disk when commit returns; a lone ask is with the system by then.

    An ask reaches the disk itself with the next tell at the latest: a killed process loses nothing, a power
    cut may lose decisions that were asked after the last tell, and a reward told to one of those is refused.
    """

    def __init__(self, path: Path, new: bool) -> None:
        self._path = path
        self._process = os.getpid()
        self._ownership = _Ownership(path)
        try:
            self._connection = _connect(path, new)
        except BaseException:
            self._ownership.give_back()
            raise
        _STORES.add(self)
        # Also when the agent is dropped without being closed.
        self._let_go = weakref.finalize(self, _close, self._connection, self._ownership, self._process)
        self._synchronous = ""
        self._generation = 0
        self.forget()

    @classmethod
    def create(cls, path: Path, settings: Settings, public: PublicState) -> SqliteStore:
        """A new file, readable by its owner alone. Refused where an agent's file stands already."""
        _refuse_folder(path)
        if path.is_symlink() and not path.exists():
            raise AgentFileInvalid(f"{path} is a link that leads nowhere")
        if not path.parent.is_dir():
            raise AgentFileMissing(f"the folder {path.parent} does not exist: make it first")
        with contextlib.suppress(FileExistsError):  # what stands there is looked at below
            os.close(os.open(path, os.O_CREAT | os.O_EXCL, 0o600))
        if path.stat().st_size == 0:
            path.chmod(0o600)  # also where an empty file stood; its log takes over the mode
        store = cls(path.absolute(), new=True)
        try:
            store._initialise(settings, public)
        except sqlite3.Error as error:
            store.close()
            raise InvalidInput(f"{path} cannot be written: {error}") from None
        except BaseException:
            store.close()
            raise
        return store

    @classmethod
    def open(cls, path: Path) -> tuple[SqliteStore, Settings, Ledger]:
        """Take over an agent's file. Refused while another agent has it."""
        _refuse_folder(path)
        if path.exists() and path.stat().st_size == 0 and not path.with_name(path.name + "-wal").exists():
            raise AgentFileInvalid(f"{path} is empty: no agent was made in it yet, Agent(policy, path=...) does")
        if not path.exists():
            raise AgentFileMissing(f"no agent's file at {path}: make one with Agent(policy, path=...)")
        store = cls(path.absolute(), new=False)
        try:
            return store, store._take_over(), Ledger(store._load_ledger())
        except sqlite3.Error as error:
            store.close()
            raise AgentFileInvalid(f"{path} is damaged: {error}") from None
        except BaseException:
            store.close()
            raise

    def _initialise(self, settings: Settings, public: PublicState) -> None:
        if self._one("SELECT count(*) FROM sqlite_master")[0]:
            raise AgentFileExists(f"{self._path} exists: resume it with Agent.open({str(self._path)!r})")
        policy = settings.policy.dump_state(public.policy)
        self._generation = 1
        self._run(
            [
                *((statement, ()) for statement in _SCHEMA),
                (f"PRAGMA application_id = {APPLICATION_ID}", ()),
                (f"PRAGMA user_version = {FORMAT}", ()),
                (
                    "INSERT INTO agent VALUES (?, ?, 0, 1)",
                    (json.dumps(settings.to_dict()), json.dumps(policy)),
                ),
            ],
            synchronous="FULL",
        )
        self._dump_policy = settings.policy.dump_state

    def _take_over(self) -> Settings:
        version = self._one("PRAGMA user_version")[0]
        if version != FORMAT:
            raise AgentFileInvalid(f"{self._path} has format {version}, this version reads format {FORMAT}")
        text, generation = self._one("SELECT settings, generation FROM agent")
        self._generation = generation + 1
        self._run([("UPDATE agent SET generation = ?", (self._generation,))], synchronous="FULL")
        settings = Settings.from_dict(json.loads(text))
        self._dump_policy = settings.policy.dump_state
        return settings

    def load(self, settings: Settings, grid: Grid) -> tuple[PublicState, PrivateState]:
        """The state as it was committed last."""
        policy, asked = self._one("SELECT policy, asked FROM agent")
        public = PublicState(
            policy=settings.policy.load_state(json.loads(policy)),
            waiting=[0] * len(settings.policy.arm_names),
            asked=asked,
            generation=self._generation,
        )
        rows = self._all("SELECT number, generation, action, person FROM decisions ORDER BY number")
        for number, generation, action, person in rows:
            public.open[f"{settings.token}-{generation}-{number}"] = OpenDecision(number, action, person)
            public.waiting[action] += 1
        return public, PrivateState(self._load_episodes(grid))

    def _load_episodes(self, grid: Grid) -> dict[int, Episode]:
        # None, and told here: an exception, or a local of the frame that raises it, could show a sum.
        found = [_load_episode(_Hidden(row[0]), grid) for row in self._all("SELECT private FROM episodes")]
        if None in found:
            raise AgentFileInvalid(f"{self._path} is damaged: its open sums cannot be read")
        return {episode.key: episode for episode in found if episode is not None}

    def _load_ledger(self) -> list[Release]:
        """All rows, oldest first."""
        rows = self._all("SELECT release FROM ledger ORDER BY number")
        try:
            return [Release.from_dict(json.loads(text)) for (text,) in rows]
        except (ValueError, KeyError, TypeError) as error:
            raise AgentFileInvalid(f"{self._path} is damaged: its ledger cannot be read ({error})") from None

    def asked(self, decision: OpenDecision) -> None:
        """A decision was handed out."""
        self._asked[decision.number] = decision

    def closed(self, decision: OpenDecision, episode: Episode | None, row: Release | None) -> None:
        """A decision has its reward or was given up; the episode that changed, and the release that followed."""
        if self._asked.pop(decision.number, None) is None:
            self._closed.append((decision.number,))
        if episode is not None:
            self._summed[episode.key] = episode
        if row is not None:
            self._released.append(row)

    def rewards_of(self, person: str) -> int:
        """From the file and what is pending."""
        if person in self._people:
            return self._people[person]
        try:
            found = self._all("SELECT rewards FROM people WHERE person = ?", (person,))
        except sqlite3.Error as error:
            raise AgentClosed(
                f"the agent could not read its file ({error}) and has ended: mend the cause, resume with "
                "Agent.open(path) and tell again"
            ) from None
        return int(found[0][0]) if found else 0

    def count_rewards_of(self, person: str, more: int) -> None:
        """Pending until commit."""
        self._people[person] = self.rewards_of(person) + more

    def commit(self, public: PublicState) -> None:
        """One transaction. A tell or a release is on disk before it returns."""
        generation = self._generation
        statements: list[tuple[str, tuple[Any, ...]]] = [("UPDATE agent SET asked = ?", (public.asked,))]
        statements += [
            ("INSERT INTO decisions VALUES (?, ?, ?, ?)", (d.number, generation, d.action, d.person))
            for d in self._asked.values()
        ]
        statements += [("DELETE FROM decisions WHERE number = ?", number) for number in self._closed]
        statements += [
            ("INSERT OR REPLACE INTO episodes VALUES (?, ?)", (key, _Hidden(json.dumps(episode.dump()))))
            for key, episode in self._summed.items()
        ]
        for row in self._released:
            statements.append(("INSERT INTO ledger VALUES (?, ?)", (row.number, json.dumps(row.to_dict()))))
        statements += [("INSERT OR REPLACE INTO people VALUES (?, ?)", item) for item in self._people.items()]
        if self._released:  # the policy's state changes with a release only
            statements.append(("UPDATE agent SET policy = ?", (json.dumps(self._dump_policy(public.policy)),)))
        told = self._closed or self._summed or self._released
        self._run(statements, synchronous="FULL" if told else "NORMAL")
        self.forget()

    def forget(self) -> None:
        """Drop what is pending."""
        self._asked: dict[int, OpenDecision] = {}
        self._closed: list[tuple[int]] = []
        self._summed: dict[int, Episode] = {}
        self._released: list[Release] = []
        self._people: dict[str, int] = {}

    def abandon(self) -> None:
        """In a forked child: leave the file to the parent.

        The connection is never closed here, which would take the log away under the parent. Closing this copy
        of the lock's handle leaves the parent's lock as it is.
        """
        self._let_go.detach()
        # For good: even the end of the child's interpreter must not close it.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._connection))
        self._ownership.give_back()

    def close(self) -> None:
        """Fold the write-ahead log into the file and let go of it."""
        self._let_go()

    def _run(self, statements: Iterable[tuple[str, tuple[Any, ...]]], synchronous: str) -> None:
        """All statements in one transaction, or none of them; none where another agent has taken the file over."""
        if os.getpid() != self._process:
            raise AgentClosed("the agent belongs to the process that this one was forked from: use it there")
        execute = self._connection.execute
        if self._synchronous != synchronous:
            execute(f"PRAGMA synchronous = {synchronous}")
            self._synchronous = synchronous
        execute("BEGIN IMMEDIATE")
        try:
            for statement, values in statements:
                execute(statement, [v.text if type(v) is _Hidden else v for v in values])
            owner = execute("SELECT generation FROM agent").fetchone()[0]
            if owner != self._generation:
                raise AgentClosed(f"{self._path} was taken over by another agent: this one has ended")
            execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                execute("ROLLBACK")
            raise

    def _one(self, query: str) -> tuple[Any, ...]:
        row = self._connection.execute(query).fetchone()
        if row is None:
            raise AgentFileInvalid(f"{self._path} is damaged: it holds no agent")
        return tuple(row)

    def _all(self, query: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        return self._connection.execute(query, values).fetchall()


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


def _load_episode(text: _Hidden, grid: Grid) -> Episode | None:
    try:
        return Episode.load(json.loads(text.text), grid)
    except (ValueError, KeyError, TypeError):
        return None


def _close(connection: sqlite3.Connection, ownership: _Ownership, process: int) -> None:
    if os.getpid() == process:
        try:
            connection.close()
        finally:
            ownership.give_back()


_STORES: weakref.WeakSet[SqliteStore] = weakref.WeakSet()


def _abandon_in_child() -> None:
    for store in list(_STORES):
        with contextlib.suppress(Exception):
            store.abandon()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_abandon_in_child)


def _refuse_folder(path: Path) -> None:
    if path.is_dir():
        raise AgentFileInvalid(f"{path} is a folder: name a file")


def _busy(path: Path) -> AgentBusy:
    return AgentBusy(f"{path} is in use by another agent: close that one first, or end its process")


class _Ownership:
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
