"""Where an agent's state lives: in memory, or also in a SQLite file that it owns.

Public state and private state are two types.

A file has one owner (ownership.py), and every write checks the generation that the owner wrote when it opened the
file.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import sqlite3
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from zlib import crc32

import numpy as np

from private_bandits.episode import Episode
from private_bandits.errors import (
    AgentClosed,
    AgentFileExists,
    AgentFileInvalid,
    InvalidInput,
)
from private_bandits.guarantee import Unit
from private_bandits.ledger import Ledger, Release
from private_bandits.ownership import APPLICATION_ID, OwnedFile, check_agents_file, make_private_file
from private_bandits.policies import Offer, Policy, policy_from_dict
from private_bandits.rewards import RewardRange

FORMAT = 3


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
    salt: str = field(default_factory=lambda: secrets.token_hex(16), repr=False)
    """Keeps people's names out of memory and file: only keyed hashes are stored."""

    def hash_person(self, person: str) -> str:
        """What is kept of a name."""
        return hashlib.blake2b(person.encode(), key=bytes.fromhex(self.salt), digest_size=16).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        plain = {k: getattr(self, k) for k in _PLAIN_SETTINGS}
        bounds = [self.reward_range.low, self.reward_range.high]
        return plain | {"policy": self.policy.to_dict(), "reward_range": bounds} | _sharing(self.policy)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Settings:
        """What to_dict wrote."""
        policy = policy_from_dict(data.pop("policy"))
        for name, own in _sharing(policy).items():
            stored = data.pop(name, own if name == "tree_levels" else None)  # older files know no factors
            if stored != own:  # rewards in the file would be in other releases than share the budget
                raise AgentFileInvalid(
                    f"the file was made by another {type(policy).__name__}, with {name} {stored}: this one has {own}"
                )
        return cls(policy=policy, reward_range=RewardRange.of(data.pop("reward_range")), **data)


def _sharing(policy: Policy[Any]) -> dict[str, Any]:
    """In which releases a reward is: a file must not go on with others."""
    factor = policy.factor
    told = None if factor is None else [factor.unit, factor.cap, crc32(repr(factor.multipliers).encode())]
    return {"tree_levels": policy.tree_levels, "factor": told}


_PLAIN_SETTINGS = ("max_rewards_per_person", "unit", "seed", "give_up_after", "token", "salt")


class OpenDecision(NamedTuple):
    """A decision that waits for its reward. Public."""

    number: int
    action: int
    person: str | None
    offered: Offer | None = None
    """What there was to choose from, where that changes and is public."""


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
    """What nobody may see: the open sums. Its repr says how many there are.

    offered: what there was to choose from, by the id of an open decision, where contexts are private.
    """

    episodes: dict[int, Episode] = field(default_factory=dict, repr=False)
    offered: dict[str, Offer] = field(default_factory=dict, repr=False)

    def __repr__(self) -> str:
        return f"PrivateState({len(self.episodes)} open episodes, sums hidden)"


class _Hidden:
    """A text with a sum or a context in it, on its way into the file; its repr does not show it."""

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


_KEPT = (
    "CREATE TABLE kept (key INTEGER NOT NULL, number INTEGER NOT NULL, label TEXT NOT NULL, private TEXT NOT NULL,"
    " PRIMARY KEY (key, label)) WITHOUT ROWID"
)
"""Earlier sums that later releases hold again."""

_SCHEMA = (
    "CREATE TABLE agent (settings TEXT NOT NULL, policy TEXT NOT NULL, asked INTEGER NOT NULL,"
    " generation INTEGER NOT NULL, arrivals TEXT)",
    "CREATE TABLE decisions (number INTEGER PRIMARY KEY, generation INTEGER NOT NULL, action INTEGER NOT NULL,"
    " person TEXT, offered TEXT)",
    "CREATE TABLE episodes (key INTEGER PRIMARY KEY, private TEXT NOT NULL)",
    _KEPT,
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
        self._owned = OwnedFile(path, new)
        self._connection = self._owned.connection
        self._synchronous = ""
        self._generation = 0
        self._kept: dict[int, tuple[Episode, ...]] = {}  # the earlier sums of each key that are in the file
        self.forget()

    @classmethod
    def create(cls, path: Path, settings: Settings, public: PublicState) -> SqliteStore:
        """A new file, readable by its owner alone. Refused where an agent's file stands already."""
        make_private_file(path)
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
        check_agents_file(path)
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
                    "INSERT INTO agent VALUES (?, ?, 0, 1, NULL)",
                    (json.dumps(settings.to_dict()), json.dumps(policy)),
                ),
            ],
            synchronous="FULL",
        )
        self._policy = settings.policy

    def _take_over(self) -> Settings:
        version = self._one("PRAGMA user_version")[0]
        if version not in range(1, FORMAT + 1):
            raise AgentFileInvalid(f"{self._path} has format {version}, this version reads format {FORMAT}")
        text, generation = self._one("SELECT settings, generation FROM agent")
        if version < FORMAT:
            self._generation = generation
            # Versions 0.1 to 0.3 had no actions that change; up to 0.7 kept sums were stored with the open ones, and
            # the policy's state as a whole.
            changes = ["ALTER TABLE decisions ADD COLUMN offered TEXT"] if version == 1 else []
            changes += [_KEPT, "ALTER TABLE agent ADD COLUMN arrivals TEXT", f"PRAGMA user_version = {FORMAT}"]
            self._run([(change, ()) for change in changes], synchronous="FULL")
        self._generation = generation + 1
        self._run([("UPDATE agent SET generation = ?", (self._generation,))], synchronous="FULL")
        settings = Settings.from_dict(json.loads(text))
        self._policy = settings.policy
        return settings

    def load(
        self, settings: Settings, served: Policy[Any], open_episode: Callable[[int, int, int], Episode]
    ) -> tuple[PublicState, PrivateState]:
        """The state as it was committed last. open_episode: makes the empty sums that it is read into.

        served: the policy with the budget that its noise is really for, from which widths follow (`unit="person"`).
        """
        private = PrivateState(self._load_episodes(open_episode))
        policy, asked, arrivals = self._one("SELECT policy, asked, arrivals FROM agent")
        public = PublicState(
            policy=served.load_state(json.loads(policy) | json.loads(arrivals or "{}")),
            waiting=[0] * len(settings.policy.arm_names),
            asked=asked,
            generation=self._generation,
        )
        damaged: list[int] = []
        for number, generation, action, person, text in self._decisions():
            offered = None if text is None else _load_offered(text, action)
            if text is not None and offered is None:
                damaged.append(number)
            key = f"{settings.token}-{generation}-{number}"
            if offered is not None and settings.policy.private_contexts:
                private.offered[key], offered = offered, None
            public.open[key] = OpenDecision(number, action, person, offered)
            if public.waiting:
                public.waiting[action] += 1
        if damaged:  # told here, as in _load_episodes
            raise AgentFileInvalid(f"{self._path} is damaged: the actions of decision {damaged[0]} cannot be read")
        return public, private

    def _decisions(self) -> list[tuple[Any, ...]]:
        rows = self._all("SELECT number, generation, action, person, offered FROM decisions ORDER BY number")
        return [(*row[:4], None if row[4] is None else _Hidden(row[4])) for row in rows]

    def _load_episodes(self, open_episode: Callable[[int, int, int], Episode]) -> dict[int, Episode]:
        found = {episode.key: episode for episode in self._sums("SELECT private FROM episodes", open_episode)}
        for part in self._sums("SELECT private FROM kept ORDER BY key, number", open_episode):
            if part.key not in found:
                raise AgentFileInvalid(f"{self._path} is damaged: it holds earlier sums of {part.key} and no open one")
            found[part.key].kept += (part,)
            self._kept[part.key] = found[part.key].kept
        return found

    def _sums(self, query: str, open_episode: Callable[[int, int, int], Episode]) -> list[Episode]:
        # None, and told here: an exception, or a local of the frame that raises it, could show a sum.
        found = [_load_episode(_Hidden(row[0]), open_episode) for row in self._all(query)]
        if None in found:
            raise AgentFileInvalid(f"{self._path} is damaged: its open sums cannot be read")
        return [episode for episode in found if episode is not None]

    def _load_ledger(self) -> list[Release]:
        """All rows, oldest first."""
        rows = self._all("SELECT release FROM ledger ORDER BY number")
        try:
            return [Release.from_dict(json.loads(text)) for (text,) in rows]
        except (ValueError, KeyError, TypeError) as error:
            raise AgentFileInvalid(f"{self._path} is damaged: its ledger cannot be read ({error})") from None

    def asked(self, decision: OpenDecision, offered: Offer | None) -> None:
        """A decision was handed out, from what was offered."""
        self._asked[decision.number] = decision, offered

    def closed(self, decision: OpenDecision, changed: Iterable[Episode], row: Release | None) -> None:
        """A decision has its reward or was given up; the episodes that changed, and the release that followed."""
        if self._asked.pop(decision.number, None) is None:
            self._closed.append((decision.number,))
        self.summed(changed, row)

    def summed(self, changed: Iterable[Episode], row: Release | None) -> None:
        """Episodes changed, and a release may have followed."""
        for episode in changed:
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
            (
                "INSERT INTO decisions VALUES (?, ?, ?, ?, ?)",
                (d.number, generation, d.action, d.person, _offered_text(offered)),
            )
            for d, offered in self._asked.values()
        ]
        statements += [("DELETE FROM decisions WHERE number = ?", number) for number in self._closed]
        statements += [
            ("INSERT OR REPLACE INTO episodes VALUES (?, ?)", (key, _Hidden(json.dumps(episode.dump()))))
            for key, episode in self._summed.items()
        ]
        for episode in self._summed.values():
            statements += self._kept_changes(episode)
        for row in self._released:
            statements.append(("INSERT INTO ledger VALUES (?, ?)", (row.number, json.dumps(row.to_dict()))))
        statements += [("INSERT OR REPLACE INTO people VALUES (?, ?)", item) for item in self._people.items()]
        if self._released:  # nothing else changes the policy's state, but for arrivals
            text = json.dumps(self._policy.dump_state(public.policy))
            statements.append(("UPDATE agent SET policy = ?, arrivals = NULL", (text,)))
        elif self._policy.changes_on_arrival and self._summed:
            text = json.dumps(self._policy.dump_arrivals(public.policy))
            statements.append(("UPDATE agent SET arrivals = ?", (text,)))
        told = self._closed or self._summed or self._released
        self._run(statements, synchronous="FULL" if told else "NORMAL")
        self.forget()

    def _kept_changes(self, episode: Episode) -> list[tuple[str, tuple[Any, ...]]]:
        """What makes the kept sums in the file those of the episode. They change at a release only."""
        key, known = episode.key, self._kept.get(episode.key, ())
        if episode.kept is known:
            return []
        self._kept[key] = episode.kept
        before, after = {part.label for part in known}, {part.label: part for part in episode.kept}
        gone = [("DELETE FROM kept WHERE key = ? AND label = ?", (key, label)) for label in sorted(before - set(after))]
        new = [
            ("INSERT INTO kept VALUES (?, ?, ?, ?)", (key, part.number, label, _Hidden(json.dumps(part.dump()))))
            for label, part in after.items()
            if label not in before
        ]
        return gone + new

    def forget(self) -> None:
        """Drop what is pending."""
        self._asked: dict[int, tuple[OpenDecision, Offer | None]] = {}
        self._closed: list[tuple[int]] = []
        self._summed: dict[int, Episode] = {}
        self._released: list[Release] = []
        self._people: dict[str, int] = {}

    def close(self) -> None:
        """Fold the write-ahead log into the file and let go of it."""
        self._owned.close()

    def _run(self, statements: Iterable[tuple[str, tuple[Any, ...]]], synchronous: str) -> None:
        """All statements in one transaction, or none of them; none where another agent has taken the file over."""
        self._owned.check_process()
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


def _offered_text(offered: Offer | None) -> _Hidden | None:
    return None if offered is None else _Hidden(json.dumps(offered.tolist()))


def _load_offered(text: _Hidden, action: int) -> Offer | None:
    try:
        table = np.array(json.loads(text.text))
    except (ValueError, TypeError, RecursionError):
        return None
    return table if table.ndim == 2 and table.dtype == np.int64 and action < len(table) else None


def _load_episode(text: _Hidden, open_episode: Callable[[int, int, int], Episode]) -> Episode | None:
    try:
        data = json.loads(text.text)
        return open_episode(data["key"], data["number"], len(data["totals"])).restored(data)
    except (ValueError, KeyError, TypeError):
        return None
