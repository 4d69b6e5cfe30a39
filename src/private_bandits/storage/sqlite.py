"""An agent's state in a SQLite file that it owns.

A file has one owner (ownership.py), and every write checks the generation that the owner wrote when it opened the
file. Everything read is checked first (formats.py): a damaged file is refused, never taken for one with less noise.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from private_bandits.errors import AgentClosed, AgentFileExists, AgentFileInvalid, InvalidInput
from private_bandits.expiry import Mark
from private_bandits.ledger import Release
from private_bandits.mechanism.episode import Episode
from private_bandits.policies import Offer
from private_bandits.state import Ending, Endings, OpenDecision, PublicState, Settings
from private_bandits.storage.contract import StoreFailed, read_failed, write_failed
from private_bandits.storage.damage import ROW, Hidden, checksum, database_failure, total
from private_bandits.storage.decisions import COLUMNS, OpenDecisions, checked_rows, checksum_share
from private_bandits.storage.formats import (
    CHAINED,
    FORMAT,
    LOOKED_UP,
    MOVED,
    MOVED_TABLE,
    Contents,
    Moved,
    Row,
    agent_checksum,
    refuse_damage,
)
from private_bandits.storage.ownership import (
    LOG_NEEDED,
    OwnedFile,
    make_private_file,
)
from private_bandits.storage.public_file import PublicFile, check_public_place
from private_bandits.storage.reading import ledger_rows, releases_between
from private_bandits.storage.rows import LedgerRows, StoredRow
from private_bandits.storage.tables import (
    CHANGING,
    INSERT,
    PLACES,
    UPDATE_AGENT,
    Statement,
    chained_tables,
    empty_tables,
    inserted,
    runs,
)

T = TypeVar("T")


class Taken(NamedTuple):
    """The parts of a file that was read and is taken over (resuming.py)."""

    contents: Contents
    ended: Endings
    episodes: Mapping[int, Episode]
    decisions: OpenDecisions
    rows: LedgerRows


class SqliteStore:
    """State in one file: told what changes, it makes all of it lasting at `commit`, or nothing.

    A tell is on disk when commit returns; a lone ask is with the system by then. A release is on disk, in the file
    itself, before the policy learns it (`keep_releases`): it stays whatever the policy does, and whatever becomes of
    the log.

    An ask reaches the disk itself with the next tell at the latest: a killed process loses nothing, a power
    cut may lose decisions that were asked after the last tell, and a reward told to one of those is refused.
    """

    lasting = True

    def __init__(
        self,
        path: Path,
        owned: OwnedFile,
        settings: str,
        opening: str,
        generation: int,
        decisions: OpenDecisions,
        rows: LedgerRows,
        ended: Endings,
    ) -> None:
        self.path = path
        self._owned = owned
        self.publish = PublicFile(path).publish
        self._settings, self._opening = settings, opening
        self._settings_checksum, self._chain_checksum = checksum("settings", settings), checksum("chain", opening)
        self._generation = generation
        self._decisions = decisions
        self._rows = rows
        self._ended = json.dumps(vars(ended))
        self._synchronous = ""
        self._total = 0
        self._is_closed = False
        self._checksums: dict[tuple[str, Any], int] = {}  # of the rows that may be changed or deleted later
        self._policy_checksum = 0
        self._policy_row: tuple[int, str] | None = None  # what is still to be written of the policy
        self._arrivals: str | None = None
        self._kept: dict[int, tuple[Episode, ...]] = {}  # the earlier sums of each key that are in the file
        self._timed: Mark | None = None
        self._untimed: Mark | None = None
        self._folded = False  # whether a release of this call is in the file, with all that came before it
        self.forget()

    @classmethod
    def create(cls, path: Path, settings: Settings, state: str, opening: str) -> SqliteStore:
        """Make a new file, readable by its owner alone. Refused where an agent's file stands already.

        state: of the policy, as JSON. opening: what the chain of the ledger begins with.
        """
        check_public_place(path)
        make_private_file(path)
        place = path.absolute()
        text = json.dumps(settings.to_dict())
        decisions = OpenDecisions(settings, 1, 0)
        store = cls(place, OwnedFile(place), text, opening, 1, decisions, LedgerRows(), Endings())
        try:
            refuse_damage(str(path), lambda: store._owned.connect(new=True))
            store._initialise(state, timed=settings.give_up_time is not None)
        except sqlite3.Error as error:
            store.close()
            raise InvalidInput(f"{path} cannot be written: {database_failure(error)}") from None
        except BaseException:
            store.close()
            raise
        return store

    def _initialise(self, state: str, timed: bool) -> None:
        if self.connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            raise AgentFileExists(f"{self.path} exists: resume it with Agent.open({str(self.path)!r})")
        policy = (0, state)
        self._policy_checksum = checksum("policy", *policy)
        tables = empty_tables(self._settings, self._opening, timed)
        self._run([*tables, inserted("policy", [policy])], 0, synchronous="FULL", owner=0)
        self._owned.fold_log()

    @classmethod
    def resume(cls, path: Path, owned: OwnedFile, taken: Taken) -> SqliteStore:
        """Take a file over that was read and checked. A file of an older format is rewritten in this one."""
        found = taken.contents
        assert found.opening is not None
        generation = found.generation + 1
        store = cls(path, owned, found.settings, found.opening, generation, taken.decisions, taken.rows, taken.ended)
        store._kept = {key: episode.kept for key, episode in taken.episodes.items() if episode.kept}
        owned.connect(new=False)
        store._take_over(found)
        return store

    def _take_over(self, found: Contents) -> None:
        """Write the new owner's generation, and remember the checksums of what is going to change."""
        self._total, self._arrivals = found.total, found.arrivals
        older = found.version < LOOKED_UP
        statements = self._new_tables(found) if older else self._chained_tables(found)
        for table, rows in (
            ("episodes", found.episodes.value),
            ("kept", found.kept.value),
            ("times", found.times or []),
        ):
            for row in rows:
                self._checksums[table, PLACES[table](row)] = checksum(table, *row)
        self._policy_checksum = checksum("policy", found.learned, found.policy)
        statements.append(self._put("generations", [(self._generation, found.asked)]))
        statements.append((LOG_NEEDED, None))
        self._run(statements, found.asked, synchronous="FULL", owner=0 if older else found.generation)
        self._owned.fold_log()
        self._rows.older = {}

    def _chained_tables(self, found: Contents) -> list[Statement]:
        """Put the rows of the ledger into a chain, if they are in none."""
        if found.version >= CHAINED:
            return []
        older = self._rows.older
        self._total -= total(before for _, before in older.values())
        return [
            *chained_tables(self._opening),
            ("DELETE FROM ledger WHERE number = ?", Hidden([(number,) for number in older])),
            self._put("ledger", [_ledger_row(row) for row, _ in older.values()]),
        ]

    def _new_tables(self, found: Contents) -> list[Statement]:
        """Replace the tables of an older format by those of this one, with the same rows and their checksums."""
        names = [name.decode() for (name,) in self.connection.execute("SELECT name FROM sqlite_master")]
        statements: list[Statement] = [(f"DROP TABLE {name}", None) for name in names if not name.startswith("sqlite_")]
        statements += empty_tables(found.settings, self._opening)
        statements.append(inserted("policy", [(found.learned, found.policy)]))
        statements.append(inserted("decisions", found.decisions.value))
        self._total = sum(map(checksum_share, found.decisions.value))
        tables = {
            "episodes": found.episodes.value,
            "kept": found.kept.value,
            "ledger": [_ledger_row(row) for row, _ in self._rows.older.values()],
            "people": found.people.value,
        }
        for table, rows in tables.items():
            statements.append(inserted(table, rows))
            self._total += total(checksum(table, *row) for row in rows)
        return statements

    @property
    def connection(self) -> sqlite3.Connection:
        """The one connection to the file."""
        return self._owned.connection

    # Looking up.

    def find(self, decision: str) -> OpenDecision | None:
        """Return an open decision by its id."""
        return self._decisions.find(decision, self._decision_row)

    def numbered(self, number: int) -> OpenDecision | None:
        """Return an open decision by its number."""
        return self._decisions.numbered(number, self._decision_row)

    def offered_to(self, decision: OpenDecision) -> Offer | None:
        """Return the private actions that an open decision chose from."""
        return self._decisions.offered_to(decision)

    def open_decisions(self) -> Iterable[OpenDecision]:
        """Return all open decisions, oldest first."""
        if self._is_closed:
            self._decisions.check_listed()
        return self._read_or_ended("decisions", lambda: list(self._decisions.listed(self.connection)))

    def __len__(self) -> int:
        return self._decisions.count

    def ending_of(self, number: int) -> Ending:
        """Return how a closed decision ended, if that was noted; "told" for all others."""
        if number in self._decisions.closed:
            return self._decisions.closed[number]
        for row in self._looked_up("closed", "number, ending", "number", number):
            return row[1]  # type: ignore[no-any-return]
        return "told"

    def asked_in(self, generation: int) -> int:
        """Return the number of the last decision of an earlier generation: the next one noted it when it began."""
        for row in self._looked_up("generations", "generation, asked", "generation", generation + 1):
            return int(row[1])
        return 2**62  # not noted by version 0.8; no agent makes so many decisions

    def releases(self, first: int, last: int) -> Sequence[Release]:
        """Return the rows of the ledger from one number to another, both included, as far as there are."""
        return self._rows.between(first, last, self._stored_rows)

    def _stored_rows(self, first: int, last: int) -> list[StoredRow]:
        """Read rows of the ledger from the file, after its end too, if no other agent has it."""
        self._owned.check_process()
        if self._is_closed:
            return refuse_damage(str(self.path), lambda: releases_between(self.path, self._settings, first, last))
        return self._read_or_ended("ledger", lambda: ledger_rows(self.connection, first, last))

    def _decision_row(self, number: int) -> list[Row]:
        return self._looked_up("decisions", COLUMNS, "number", number)

    def _looked_up(self, table: str, columns: str, key: str, value: object) -> list[Row]:
        """Return the row of a key, if there is one."""
        query = f"SELECT {columns}, checksum FROM {table} WHERE {key} = ?"  # noqa: S608
        # All of it at once: what an interrupt leaves half-read would keep the log from being folded into the file.
        look = partial(self.connection.execute, query, (value,))
        return self._read_or_ended(table, lambda: list(checked_rows(table, look().fetchall())))

    def _read_or_ended(self, table: str, read: Callable[[], T]) -> T:
        """Read, or say why that is not possible."""
        try:
            return read()
        except (sqlite3.Error, UnicodeDecodeError) as error:
            trouble = database_failure(error)
        except AgentFileInvalid:
            trouble = f"a row of {table} is missing, or does not have its checksum"
        raise read_failed(trouble)

    # What changed.

    def asked(self, decision: OpenDecision, offered: Offer | None) -> None:
        """Note that a decision was handed out, from what was offered."""
        self._decisions.ask(decision, offered)

    def closed(self, decision: OpenDecision, ending: Ending) -> None:
        """Note that a decision was closed, and how."""
        self._decisions.close(decision, ending)

    def reopened(self, decision: OpenDecision, offered: Offer | None) -> None:
        """Take back that a decision was closed, in the same call."""
        self._decisions.reopen(decision, offered)

    def summed(self, changed: Iterable[Episode]) -> None:
        """Note that open sums changed."""
        for episode in changed:
            self._summed[episode.key] = episode

    def released(self, row: Release) -> None:
        """Note a release."""
        self._released.append(row)
        self._rows.append(row)

    def timed(self, mark: Mark) -> None:
        """Note by which time decisions up to a number were made."""
        self._timed = mark

    def untimed(self, mark: Mark) -> None:
        """Forget the times up to this one."""
        self._untimed = mark

    def arrived(self, arrivals: str) -> None:
        """Note what arrived since the last release that the policy's encoded state has learned, as JSON."""
        self._arrivals = arrivals

    def encoded(self, learned: int, state: str) -> None:
        """Note the policy's state, as JSON, with so many releases learned and everything that arrived."""
        self._policy_row = (learned, state)
        self._arrivals = None

    def rewards_of(self, person: str) -> int:
        """Return how many rewards of this person were taken: from the file, and what is pending."""
        if person in self._people:
            return self._people[person]
        for row in self._looked_up("people", "person, rewards", "person", person):
            self._checksums["people", person] = checksum("people", *row)
            return int(row[1])
        return 0

    def count_rewards_of(self, person: str, more: int) -> None:
        """Count so many more of this person's rewards. Lookups see it at once, the file with the next write."""
        self._people[person] = self.rewards_of(person) + more

    def places_of(self, person: str) -> Mapping[int, int]:
        """Return the episodes that this person's rewards were in when the last one was taken, pending ones too."""
        if person in self._places:
            return self._places[person]
        for row in self._looked_up("places", "person, episodes", "person", person):
            self._checksums["places", person] = checksum("places", *row)
            return {int(key): number for key, number in json.loads(row[1]).items()}
        return {}

    def put_places_of(self, person: str, places: Mapping[int, int]) -> None:
        """Note the open episodes that this person's rewards are in. The file has them with the next write."""
        self.places_of(person)  # so that the checksum of a row that stands there is known
        self._places[person] = places

    def forget(self) -> None:
        """Drop what is pending."""
        self._summed: dict[int, Episode] = {}
        self._released: list[Release] = []
        self._people: dict[str, int] = {}
        self._places: dict[str, Mapping[int, int]] = {}
        self._policy_row = None
        self._timed = self._untimed = None

    # Making it lasting.

    def keep_releases(self, public: PublicState) -> None:
        """Write everything pending, a release among it, to the disk and into the file itself."""
        self._or_ended(self._keep_releases, public)

    def commit(self, public: PublicState) -> None:
        """Write everything pending. A tell is on disk before it returns.

        If all that is pending is what the policy made of a release, that waits for the next write: it can be learned
        again from the release.
        """
        self._or_ended(self._commit, public)

    def finish(self, public: PublicState) -> None:
        """Write what the policy made of its last release, if that is still pending."""
        if self._policy_row is not None:
            self._or_ended(self._write, public)

    def _keep_releases(self, public: PublicState) -> None:
        self._write(public)  # folding the log brings it to the disk first
        self._owned.fold_log()
        if public.ended.closing_from:
            self._owned.empty_log()
        self._folded = True

    def _commit(self, public: PublicState) -> None:
        told = bool(self._decisions.closed or self._summed or self._released)
        if told or self._decisions.asked or not self._folded:
            self._write(public, "FULL" if told else "NORMAL")
        self._folded = False
        self._decisions.trim()

    def _or_ended(self, write: Callable[[PublicState], None], public: PublicState) -> None:
        """Write, or say why that is not possible."""
        failure: StoreFailed | None = None
        try:
            write(public)
        except (sqlite3.Error, UnicodeDecodeError) as error:  # the latter where a damaged text is part of the former
            failure = write_failed(database_failure(error))
        except AgentClosed as error:  # the file is not where it was, or not this agent's any more
            failure = StoreFailed(str(error), "has ended, as its file was moved, cut or taken over")
        if failure is not None:  # raised outside of the block above, whose exception knows what was to be written
            raise failure

    def all_rows(self, table: str, columns: str) -> Iterator[Row]:
        """Read all rows of a table, with the values of these columns."""
        query = f"SELECT {columns}, checksum FROM {table}"  # noqa: S608
        yield from checked_rows(table, self.connection.execute(query))

    def mark_moved(self, moved: Moved, public: PublicState) -> None:
        """Write into the file that its agent moves into a database. No agent can open it from now on."""
        self._or_ended(partial(self._mark_moved, moved), public)

    def _mark_moved(self, moved: Moved, public: PublicState) -> None:
        version: Statement = (f"PRAGMA user_version = {MOVED + FORMAT}", None)
        row = (moved.bandit, moved.database, int(moved.done))
        statements = [(MOVED_TABLE, None), ("DELETE FROM moved", None), inserted("moved", [row]), version]
        self._run(statements, public.asked, synchronous="FULL")
        self._owned.fold_log()

    def close(self) -> None:
        """Fold the write-ahead log into the file and let go of it."""
        if not self._is_closed:
            self._is_closed = True
            with suppress(Exception):  # it was never opened, or cannot be read any more: there is nothing to keep
                self._decisions.keep_listed(self.connection)
        self._owned.close()

    def _write(self, public: PublicState, synchronous: str = "NORMAL") -> None:
        """Write everything pending, in one transaction."""
        statements: list[Statement] = []
        if self._policy_row is not None:
            statements += [("DELETE FROM policy", None), inserted("policy", [self._policy_row])]
            self._policy_checksum = checksum("policy", *self._policy_row)
        statements += self._decision_changes()
        if self._summed:
            sums = [(key, json.dumps(episode.dump())) for key, episode in self._summed.items()]
            statements.append(self._put("episodes", sums))
            statements += [change for episode in self._summed.values() for change in self._kept_changes(episode)]
            del sums
        if self._released:
            statements.append(self._put("ledger", map(_ledger_row, self._released)))
        if self._people:
            statements.append(self._put("people", self._people.items()))
        if self._places:
            places = [(person, json.dumps(episodes)) for person, episodes in self._places.items()]
            statements.append(self._put("places", places))
        statements += self._time_changes()
        self._ended = json.dumps(vars(public.ended))
        self._run(statements, public.asked, synchronous)
        self.forget()
        self._decisions.written()

    def _decision_changes(self) -> list[Statement]:
        """Write new decisions, delete closed ones, and note how they ended if not by a reward."""
        decisions = self._decisions
        statements: list[Statement] = []
        (new, weight), gone = decisions.new_rows(), decisions.gone()
        if new:
            statements.append((INSERT["decisions"], Hidden(new)))
            self._total += weight
        if gone:
            self._total -= sum(gone.values())
            statements.append(("DELETE FROM decisions WHERE number BETWEEN ? AND ?", Hidden(runs(gone))))
        ended = [(number, ending) for number, ending in decisions.closed.items() if ending != "told"]
        if ended:
            statements.append(self._put("closed", ended))
        return statements

    def _time_changes(self) -> list[Statement]:
        """Write the latest time, and delete those whose decisions are closed."""
        statements: list[Statement] = []
        if self._untimed is not None:
            gone = [place for place in self._checksums if place[0] == "times" and place[1] <= self._untimed[0]]
            self._total -= total(self._checksums.pop(place) for place in gone)
            statements.append(("DELETE FROM times WHERE time <= ?", Hidden([(self._untimed[0],)])))
        if self._timed is not None:
            statements.append(self._put("times", [self._timed]))
        return statements

    def _kept_changes(self, episode: Episode) -> list[Statement]:
        """Make the kept sums in the file those of the episode. They change at a release only."""
        key, known = episode.key, self._kept.get(episode.key, ())
        if episode.kept is known:
            return []
        self._kept[key] = episode.kept
        before, after = {part.label for part in known}, {part.label: part for part in episode.kept}
        gone = [(key, label) for label in sorted(before - set(after))]
        new = [part for label, part in after.items() if label not in before]
        for place in gone:
            self._total -= ROW + self._checksums.pop(("kept", place))
        return [
            ("DELETE FROM kept WHERE key = ? AND label = ?", Hidden(gone)),
            self._put("kept", [(key, part.number, part.label, json.dumps(part.dump())) for part in new]),
        ]

    def _put(self, table: str, rows: Iterable[Row]) -> Statement:
        """Write rows, new or in place of those that stand there, and count their checksums in the total."""
        statement, found = inserted(table, rows)
        assert found is not None
        known, place, remembered = self._checksums, PLACES[table], table in CHANGING
        for row in found.value:
            key, own = (table, place(row)), row[-1]
            before = known.pop(key, None)
            self._total += own + ROW if before is None else own - before
            if remembered:
                known[key] = own
        return statement, found

    def _run(self, statements: Iterable[Statement], asked: int, synchronous: str, owner: int | None = None) -> None:
        """Run all statements in one transaction, or none of them; none where the file is not this agent's any more.

        owner: the generation that the file has now, if not this agent's.
        """
        self._owned.check_process()
        self._owned.check_place(log=synchronous == "FULL")
        execute, executemany = self.connection.execute, self.connection.executemany
        if self._synchronous != synchronous:
            execute(f"PRAGMA synchronous = {synchronous}")
            self._synchronous = synchronous
        execute("BEGIN IMMEDIATE")
        try:
            for statement, rows in statements:
                if rows is None:
                    execute(statement)
                else:
                    executemany(statement, rows.value)
            if execute(UPDATE_AGENT, self._agent_row(asked, owner)).rowcount != 1:
                raise AgentClosed(f"{self.path} was taken over by another agent: this one has ended")
            execute("COMMIT")
        except BaseException:
            if self.connection.in_transaction:
                execute("ROLLBACK")
            raise

    def _agent_row(self, asked: int, owner: int | None) -> Row:
        """Return what the row of agent is to hold, and the generation that it has now."""
        columns = (asked, self._generation, self._arrivals, self._ended, self._total)
        own = agent_checksum(columns, (self._settings_checksum, self._policy_checksum, self._chain_checksum))
        return *columns, own, self._generation if owner is None else owner


def _ledger_row(row: Release) -> Row:
    return row.number, row.text
