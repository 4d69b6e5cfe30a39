"""Makes the changes of a bandit lasting in a database that several workers share.

Nobody owns a bandit. A write is refused if the version is another than the one that was read, so that two copies of one
state never both draw. A batch locks the row first, reads what changed, and writes all it did in one transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import select
from sqlalchemy.sql.base import Executable

from private_bandits.errors import DatabaseFailed
from private_bandits.expiry import Mark
from private_bandits.ledger import Release
from private_bandits.mechanism.episode import Episode
from private_bandits.policies import Offer
from private_bandits.state import Ending, OpenDecision, PublicState, Settings
from private_bandits.storage.contract import StoreFailed
from private_bandits.storage.sql.asks import AskRows
from private_bandits.storage.sql.database import Database, Rows, Transaction
from private_bandits.storage.sql.decisions import Decisions
from private_bandits.storage.sql.people import PeopleRows
from private_bandits.storage.sql.schema import releases
from private_bandits.storage.sql.state_rows import ColdRow, HotRow
from private_bandits.storage.sql.writing import Changes, write


@dataclass(frozen=True, repr=False)
class Fixed:
    """What is fixed for the life of a bandit in a database.

    Args:
        number: The number of the bandit in its database.
        name: The name of the bandit.
        settings: The settings of the bandit.
        opening: The text that the chain of its ledger begins with.
        id_key: Signs the ids of its decisions.
        moved_in: The number of the last decision of each generation of the file that it was in, if it was.
    """

    number: int
    name: str
    settings: Settings
    opening: str
    id_key: bytes
    moved_in: Mapping[int, int] = field(default_factory=dict)


class SqlStore:
    """The records of a bandit as one worker sees them, at one version. Another version needs another store.

    Args:
        database: The database.
        fixed: The bandit.
        hot: Its hot state, as it was read.
        cold: Its cold state, as it was read.
    """

    lasting = True

    def __init__(self, database: Database, fixed: Fixed, hot: HotRow, cold: ColdRow) -> None:
        self.fixed, self.hot, self.cold = fixed, hot, cold
        self._written = hot, cold
        self._database = database
        self._work: Transaction | None = None
        self._decisions = Decisions(fixed.number, fixed.settings, hot.open, self._look)
        self._people = PeopleRows(fixed.number, self._look)
        self.asks = AskRows(fixed.number, self._look)
        """Asks that may come again."""
        self._summed: dict[int, Episode] = {}
        self._released: list[Release] = []

    # Where it reads and writes.

    def join(self, work: Transaction) -> None:
        """Read and write in a transaction that has the lock of the bandit at this version, until that is committed."""
        self._work = work

    def leave(self) -> None:
        """Let go of the transaction that was joined."""
        self._work = None

    @property
    def has_changes(self) -> bool:
        """Whether anything was told since the last commit."""
        told = self._decisions.asked or self._decisions.closed or self._summed or self._released
        return bool(told) or self._written != (self.hot, self.cold)

    def fetch(self, numbers: Iterable[int]) -> None:
        """Look up many decisions at once, and the people that they are for."""
        wanted = list(numbers)
        self._decisions.fetch(wanted)
        found = (self._decisions.numbered(number) for number in wanted)
        self._people.fetch(one.person for one in found if one is not None and one.person is not None)

    def late(self, before: int, most: int) -> list[OpenDecision]:
        """Return the oldest open decisions that were asked by a time, so many at most."""
        return self._decisions.late(before, most)

    def made(self, first: int, count: int) -> list[tuple[int, int, str | None]]:
        """Return number, action and name of so many decisions from a number on, open or closed."""
        return self._decisions.made(first, count)

    def _look(self, statement: Executable) -> Rows:
        """Return rows as they are at this version."""
        if self._work is not None:
            return self._work.rows(statement)
        with self._database.reading() as reader:
            self._check_version(reader.version(self.fixed.number))
            return reader.rows(statement)

    def _check_version(self, found: int) -> None:
        if found != self.hot.version:
            raise StoreFailed(
                f"another worker has changed the bandit {self.fixed.name}: this copy of its state has ended, and "
                "nothing of this call was kept",
                "has ended, as another worker changed its state",
            )

    def _ledger_rows(self, statement: Executable) -> Rows:
        """Return rows that never change once they are there."""
        if self._work is not None:
            return self._work.rows(statement)
        with self._database.reading() as reader:
            return reader.rows(statement)

    # Looking up.

    def find(self, decision: str) -> OpenDecision | None:
        """Return an open decision by its id."""
        number = decision.rpartition("-")[2]
        if not (number.isascii() and number.isdecimal()) or len(number) > 18:
            return None
        found = self._decisions.numbered(int(number))
        return found if found is not None and found.id == decision else None

    def numbered(self, number: int) -> OpenDecision | None:
        """Return an open decision by its number."""
        return self._decisions.numbered(number)

    def asked_in(self, generation: int) -> int:
        """Nothing is known of earlier generations."""
        return 0

    def ending_of(self, number: int) -> Ending:
        """Return how a closed decision ended."""
        return self._decisions.ending_of(number)  # type: ignore[return-value]

    def offered_to(self, decision: OpenDecision) -> Offer | None:
        """Return the private actions that an open decision chose from."""
        return self._decisions.offered_to(decision)

    def open_decisions(self) -> Iterable[OpenDecision]:
        """Return all open decisions, oldest first."""
        return self._decisions.listed()

    def __len__(self) -> int:
        return self._decisions.count

    def rewards_of(self, person: str) -> int:
        """Return how many rewards of this person were taken."""
        return self._people.of(person).rewards

    def places_of(self, person: str) -> Mapping[int, int]:
        """Return the episodes that this person's rewards were in when the last one was taken."""
        return self._people.of(person).places

    def releases(self, first: int, last: int) -> Sequence[Release]:
        """Return the rows of the ledger from one number to another, both included, as far as there are."""
        written = self.hot.releases
        found: list[Release] = []
        if first <= written:
            number = releases.c.number
            query = select(releases.c.row).where(releases.c.bandit == self.fixed.number)
            rows = self._ledger_rows(query.where(number.between(first, min(last, written))).order_by(number))
            found = [Release.from_text(row[0]) for row in rows]
            if len(found) != min(last, written) - first + 1:
                raise DatabaseFailed("the ledger in the database lacks releases that were made: it is damaged")
        return found + [row for row in self._released if first <= row.number <= last]

    # What changed.

    def asked(self, decision: OpenDecision, offered: Offer | None) -> None:
        """Note that a decision was handed out, from what was offered."""
        self._decisions.ask(decision, offered)

    def closed(self, decision: OpenDecision, ending: Ending) -> None:
        """Note that a decision was closed, and how."""
        self._decisions.close(decision, ending)

    def reopened(self, decision: OpenDecision, offered: Offer | None) -> None:
        """Take back that a decision was closed since the last write."""
        self._decisions.reopen(decision, offered)

    def count_rewards_of(self, person: str, more: int) -> None:
        """Count so many more of this person's rewards."""
        known = self._people.of(person)
        self._people.put(person, known._replace(rewards=known.rewards + more))

    def put_places_of(self, person: str, places: Mapping[int, int]) -> None:
        """Note the open episodes that this person's rewards are in."""
        self._people.put(person, self._people.of(person)._replace(places=places))

    def summed(self, changed: Iterable[Episode]) -> None:
        """Note that open sums changed."""
        for episode in changed:
            self._summed[episode.key] = episode

    def released(self, row: Release) -> None:
        """Note a release."""
        self._released.append(row)

    def encoded(self, learned: int, state: str) -> None:
        """Note the policy's state, as JSON, with so many releases learned and everything that arrived."""
        self.cold = self.cold.learning(learned, state)
        self.hot = self.hot.changed(arrivals=None)

    def arrived(self, arrivals: str) -> None:
        """Note what arrived since the last release that the policy's encoded state has learned, as JSON."""
        self.hot = self.hot.changed(arrivals=arrivals)

    def timed(self, mark: Mark) -> None:
        """Every decision has its own time here."""

    def untimed(self, mark: Mark) -> None:
        """Every decision has its own time here."""

    # Making it lasting.

    def keep_releases(self, public: PublicState) -> None:
        """Commit everything told so far, a release among it. SQLite then forgets what the release overwrote."""
        self.commit(public)
        self._database.erase_overwritten()

    def commit(self, public: PublicState) -> None:
        """Commit everything told so far, in the transaction that was joined, or in one of its own.

        Raises:
            StoreFailed: Another worker has changed the bandit.
        """
        if self._work is not None:
            self._commit(self._work, public)
            return
        with self._database.transaction() as work:
            self._check_version(work.lock(self.fixed.number).version)
            self._work = work
            try:
                self._commit(work, public)
            finally:
                self._work = None

    def _commit(self, work: Transaction, public: PublicState) -> None:
        summed, released = self._summed, self._released
        hot = self.hot.after(public, self._decisions.count, summed.values(), released)
        cold = self.cold.after(self.fixed.opening, summed, released)
        changes = Changes(
            self.fixed.number,
            (self._written[0], hot),
            (self._written[1], cold),
            self._decisions,
            self._people,
            released,
            self.asks,
        )
        write(work, changes)
        work.commit()
        self._work = None
        self.hot, self.cold = self._written = hot, cold
        self._decisions.written()
        self._people.written()
        self.asks.written()
        self._summed, self._released = {}, []

    def publish(self, stamp: object, view: Callable[[], Mapping[str, Any]], now: bool = False) -> None:
        """Who may look reads the database."""

    def finish(self, public: PublicState) -> None:
        """Nothing is put off."""

    def close(self) -> None:
        """Nothing is held."""
