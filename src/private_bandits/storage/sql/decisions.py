"""The decisions of a bandit in a database: looked up by number, and noted until they are written together."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from sqlalchemy import Row, Select, select
from sqlalchemy.sql.base import Executable

from private_bandits.policies import Offer
from private_bandits.state import Ending, OpenDecision, Settings
from private_bandits.storage.decisions import plain_offer, stored_offer
from private_bandits.storage.sql.database import Rows
from private_bandits.storage.sql.schema import decisions

OPEN = "open"
AT_HAND = 50_000
"""Open decisions that are kept in memory at most between two writes."""
MOST_NAMED = 5000
"""Numbers that one statement names at most."""

Look = Callable[[Executable], Rows]

_COLUMNS = (
    *(decisions.c.number, decisions.c.generation, decisions.c.action, decisions.c.arm),
    *(decisions.c.person, decisions.c.offered, decisions.c.status),
)


class Decisions:
    """Decisions by number. What is at hand is as the database has it, as long as the bandit's version stays.

    Args:
        bandit: The number of the bandit.
        settings: The settings of the bandit.
        still_open: How many decisions are open.
        look: Returns the rows that a statement finds.
    """

    def __init__(self, bandit: int, settings: Settings, still_open: int, look: Look) -> None:
        self.count = still_open
        self.asked: dict[int, OpenDecision] = {}
        """Handed out since the last write."""
        self.closed: dict[int, Ending] = {}
        """Closed since the last write, and how."""
        self._bandit, self._settings, self._look = bandit, settings, look
        self._open: dict[int, OpenDecision] = {}
        self._offers: dict[int, Offer] = {}  # what was offered, where that changes
        self._endings: dict[int, str] = {}  # of closed decisions that were looked up

    def numbered(self, number: int) -> OpenDecision | None:
        """Return an open decision by its number."""
        found = self._open.get(number)
        if found is None and number > 0 and number not in self.closed and number not in self._endings:
            self.fetch([number])
            found = self._open.get(number)
        return found

    def ending_of(self, number: int) -> str:
        """Return how a closed decision ended."""
        if number not in self.closed and number not in self._endings:
            self.fetch([number])
        return self.closed.get(number) or self._endings.get(number, "told")

    def fetch(self, numbers: Iterable[int]) -> None:
        """Look many decisions up at once. One without a row was told before its agent moved in, or is none."""
        known = (self._open, self.closed, self._endings)
        unknown = sorted({n for n in numbers if not any(n in one for one in known)})
        for some in _parts(unknown):
            self._endings |= dict.fromkeys(some, "told")
            for row in self._look(self._select().where(decisions.c.number.in_(some))):
                self._take(row)

    def late(self, before: int, most: int) -> list[OpenDecision]:
        """Return the oldest open decisions that were asked by a time, so many at most. None may wait to be written."""
        query = self._select().where(decisions.c.status == OPEN, decisions.c.asked_at <= before)
        rows = self._look(query.order_by(decisions.c.asked_at, decisions.c.number).limit(most))
        return [self._take(row) for row in rows]  # type: ignore[misc]

    def made(self, first: int, count: int) -> list[tuple[int, int, str | None]]:
        """Return number, action and name of so many decisions from a number on, open or closed, oldest first."""
        number = decisions.c.number
        query = select(number, decisions.c.action, decisions.c.arm).where(decisions.c.bandit == self._bandit)
        rows = self._look(query.where(number.between(first, first + count - 1)).order_by(number))
        new = (self.asked[n] for n in range(first, first + count) if n in self.asked)
        return [(row.number, row.action, name_in(row.arm)) for row in rows] + [(d.number, d.action, d.arm) for d in new]

    def listed(self) -> Iterator[OpenDecision]:
        """Return all open decisions, oldest first."""
        rows = self._look(self._select().where(decisions.c.status == OPEN).order_by(decisions.c.number))
        found = {row.number: self._parsed(row) for row in rows if row.number not in self.closed}
        return iter(dict(sorted((found | self.asked).items())).values())

    def _select(self) -> Select[Any]:
        return select(*_COLUMNS).where(decisions.c.bandit == self._bandit)

    def _take(self, row: Row[Any]) -> OpenDecision | None:
        if row.status != OPEN:
            self._endings[row.number] = row.status
            return None
        self._endings.pop(row.number, None)
        found = self._open[row.number] = self._parsed(row)
        return found

    def _parsed(self, row: Row[Any]) -> OpenDecision:
        policy = self._settings.policy
        offered = None
        if row.offered is not None:
            offered = stored_offer(row.offered, row.action, getattr(policy, "dimension", None))
            self._offers[row.number] = offered
        shown = None if policy.private_contexts else offered
        key = f"{self._settings.token}-{row.generation}-{row.number}"
        return OpenDecision(key, row.number, row.action, row.person, shown, name_in(row.arm))

    def offered_to(self, decision: OpenDecision) -> Offer | None:
        """Return the actions that an open decision chose from, where they change."""
        return self._offers.get(decision.number)

    # What changed.

    def ask(self, decision: OpenDecision, offered: Offer | None) -> None:
        """Note that a decision was handed out."""
        self.asked[decision.number] = decision
        self._put(decision, offered)

    def close(self, decision: OpenDecision, ending: Ending) -> None:
        """Note that a decision was closed."""
        self.closed[decision.number] = ending
        del self._open[decision.number]
        self.count -= 1

    def reopen(self, decision: OpenDecision, offered: Offer | None) -> None:
        """Take back that a decision was closed since the last write."""
        del self.closed[decision.number]
        self._put(decision, offered)

    def _put(self, decision: OpenDecision, offered: Offer | None) -> None:
        self._open[decision.number] = decision
        if offered is not None:
            self._offers[decision.number] = offered
        self.count += 1

    # Writing.

    def new_rows(self, generation: int, now: int) -> list[dict[str, Any]]:
        """Return the rows of decisions that were handed out. Of those that are closed again, how they ended."""
        return [self._row(decision, generation, now) for decision in self.asked.values()]

    def _row(self, decision: OpenDecision, generation: int, now: int) -> dict[str, Any]:
        ending = self.closed.get(decision.number)
        offered = None if ending is not None else self._offers.get(decision.number)
        return {
            "bandit": self._bandit,
            "number": decision.number,
            "generation": generation,
            "action": decision.action,
            "arm": None if ending is not None and self.hides_arms else stored_name(decision.arm),
            "person": None if ending is not None else decision.person,
            "offered": None if offered is None else json.dumps(plain_offer(offered)),
            "status": ending or OPEN,
            "asked_at": now,
            "closed_at": None if ending is None else now,
        }

    @property
    def hides_arms(self) -> bool:
        """Whether the name of an action that changes is private, as the contexts are."""
        return self._settings.policy.private_contexts

    def gone(self) -> Iterator[tuple[Ending, list[int]]]:
        """Return the numbers of written decisions that were closed, by how they ended."""
        by_ending: dict[Ending, list[int]] = {}
        for number, ending in self.closed.items():
            if number not in self.asked:
                by_ending.setdefault(ending, []).append(number)
        for ending, numbers in by_ending.items():
            for some in _parts(numbers):
                yield ending, some

    def written(self) -> None:
        """Forget what was noted, and what is no longer needed at hand."""
        for number in self.closed:
            self._offers.pop(number, None)
        self.asked, self.closed, self._endings = {}, {}, {}
        if len(self._open) > AT_HAND:
            self._open, self._offers = {}, {}


def erased(hides_arms: bool) -> dict[str, None]:
    """Return what is erased of a decision when it is closed."""
    columns = ("person", "offered", "arm") if hides_arms else ("person", "offered")
    return dict.fromkeys(columns)


def stored_name(arm: str | None) -> str | None:
    """Return the name of an action as it is stored: as JSON, as not every database takes every character."""
    return None if arm is None else json.dumps(arm)


def name_in(stored: str | None) -> str | None:
    """Return the name of an action that is stored so."""
    return None if stored is None else str(json.loads(stored))


def _parts(numbers: list[int]) -> Iterator[list[int]]:
    """Return numbers in lists that are short enough for one statement."""
    for first in range(0, len(numbers), MOST_NAMED):
        yield numbers[first : first + MOST_NAMED]
