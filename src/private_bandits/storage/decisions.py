"""The open decisions of a file: looked up one by one, however many there are, with those used last at hand."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from itertools import islice
from typing import Any

import numpy as np

from private_bandits.errors import AgentClosed, AgentFileInvalid
from private_bandits.policies import Offer
from private_bandits.policies.named_offer import NamedOffer, are_names
from private_bandits.state import Ending, OpenDecision, Settings
from private_bandits.storage.damage import ROW, checksum, texts

Row = tuple[Any, ...]

AT_HAND = 50_000
"""Open decisions that are kept in memory, those used last, up to twice as many. The others are in the file alone."""

COLUMNS = "number, generation, action, person, offered"

FINGERPRINT = "(((number % 1000003) * ((action + 1) * 8191 + generation) + number) % 1000000007)"
"""The fingerprint of a row, in SQL, which has no CRC: a million rows without texts are checked in a moment."""


def checksum_share(row: Row, own: int | None = None) -> int:
    """Return what a row of decisions adds to the total of the file. own: its checksum, if that is known."""
    number, generation, action, _, _ = row
    fingerprint = ((number % 1000003) * ((action + 1) * 8191 + generation) + number) % 1000000007
    return ROW + fingerprint + (checksum("decisions", *row) if own is None else own)  # type: ignore[no-any-return]


class OpenDecisions:
    """Open decisions by number. Notes what changed since the last write."""

    def __init__(self, settings: Settings, generation: int, count: int) -> None:
        self.count = count
        self.asked: dict[int, tuple[OpenDecision, Offer | None]] = {}
        """Handed out since the last write, with what was offered."""
        self.closed: dict[int, Ending] = {}
        """Closed since the last write, and how."""
        self._settings = settings
        self._generation = generation
        self._at_hand: dict[int, OpenDecision] = {}
        self._offers: dict[int, Offer] = {}  # private ones
        self._weights: dict[int, int] = {}  # of rows that are in the file and at hand
        self._all: list[OpenDecision] | None = None  # once the file is closed

    def find(self, decision: str, look_up: Callable[[int], list[Row]]) -> OpenDecision | None:
        """Return an open decision by its id. look_up: reads the row of a number from the file."""
        number = decision.rpartition("-")[2]
        if not number.isdecimal() or len(number) > 18:
            return None
        found = self.numbered(int(number), look_up)
        return found if found is not None and found.id == decision else None

    def numbered(self, number: int, look_up: Callable[[int], list[Row]]) -> OpenDecision | None:
        """Return an open decision by its number."""
        found = self._at_hand.get(number)
        if found is None and self.count > len(self._at_hand) and number > 0 and number not in self.closed:
            for row in look_up(number):
                found = self._loaded(row)
        return found

    def _loaded(self, row: Row) -> OpenDecision:
        """Take a decision from the file to those at hand."""
        number = row[0]
        decision, offered = self.parsed(row)
        self._weights[number] = checksum_share(row)
        if offered is not None and decision.offered is None:
            self._offers[number] = offered
        self._at_hand[number] = decision  # last: an interrupt leaves no decision that is at hand in part
        return decision

    def parsed(self, row: Row) -> tuple[OpenDecision, Offer | None]:
        """Return the decision that a row holds, and what was offered. Refuses one that does not fit the settings."""
        settings = self._settings
        number, generation, action, person, text = row
        policy = settings.policy
        changing, limited = not policy.arm_names, settings.max_rewards_per_person is not None
        if (text is not None) is not changing or (person is not None) is not limited:
            raise AgentFileInvalid("is damaged: an open decision does not fit the settings")
        offered = stored_offer(text, action, getattr(policy, "dimension", None)) if changing else None
        shown = None if policy.private_contexts else offered
        arm = offered.names[action] if type(offered) is NamedOffer else None
        return OpenDecision(f"{settings.token}-{generation}-{number}", number, action, person, shown, arm), offered

    def offered_to(self, decision: OpenDecision) -> Offer | None:
        """Return the private actions that an open decision chose from."""
        return self._offers.get(decision.number)

    # What changed.

    def ask(self, decision: OpenDecision, offered: Offer | None) -> None:
        """Note that a decision was handed out."""
        number = decision.number
        self.asked[number] = decision, offered
        self._put_at_hand(decision, offered)

    def close(self, decision: OpenDecision, ending: Ending) -> None:
        """Note that a decision was closed."""
        number = decision.number
        self.closed[number] = ending
        del self._at_hand[number]
        if self._offers:
            self._offers.pop(number, None)
        self.count -= 1

    def reopen(self, decision: OpenDecision, offered: Offer | None) -> None:
        """Take back that a decision was closed since the last write."""
        del self.closed[decision.number]
        self._put_at_hand(decision, offered)

    def _put_at_hand(self, decision: OpenDecision, offered: Offer | None) -> None:
        self._at_hand[decision.number] = decision
        if offered is not None and decision.offered is None:
            self._offers[decision.number] = offered
        self.count += 1

    # Writing.

    def new_rows(self) -> tuple[list[Row], int]:
        """Return the rows to write, each with its checksum, and what they add to the total. Counts them as written."""
        rows, total = [], 0
        for number, asked in self.asked.items():
            if number not in self.closed:
                row = self._row(*asked)
                own = checksum("decisions", *row)
                self._weights[number] = weight = checksum_share(row, own)
                rows.append((*row, own))
                total += weight
        return rows, total

    def _row(self, decision: OpenDecision, offered: Offer | None) -> Row:
        text = None if offered is None else json.dumps(plain_offer(offered))
        return decision.number, self._generation, decision.action, decision.person, text

    def gone(self) -> dict[int, int]:
        """Return the numbers of the rows to delete, with what they added to the total."""
        return {number: self._weights.pop(number) for number in self.closed if number not in self.asked}

    def written(self) -> None:
        """Forget what was noted."""
        self.asked, self.closed = {}, {}

    def trim(self) -> None:
        """Keep the latest decisions at hand. Only between calls: one that was found in a call may be closed in it."""
        if len(self._at_hand) > 2 * AT_HAND:  # all at once: taking the first of a dictionary again and again is slow
            latest = dict(islice(self._at_hand.items(), len(self._at_hand) - AT_HAND, None))
            self._weights = {number: self._weights[number] for number in latest}
            self._offers = {number: offer for number, offer in self._offers.items() if number in latest}
            self._at_hand = latest

    # All of them.

    def listed(self, connection: sqlite3.Connection) -> Iterator[OpenDecision]:
        """Return all, oldest first."""
        if self._all is not None:
            yield from self._all
            return
        query = f"SELECT {COLUMNS}, checksum FROM decisions ORDER BY number"  # noqa: S608
        with closing(connection.execute(query)) as rows:  # a half-read one would keep the log from being folded
            for row in checked_rows("decisions", rows):
                yield self.parsed(row)[0]

    def keep_listed(self, connection: sqlite3.Connection) -> None:
        """Keep the list for the time after the file is closed, if it is short."""
        if self._all is None and self.count <= AT_HAND:
            self._all = list(self.listed(connection))

    def check_listed(self) -> None:
        """Refuse a list that is in a closed file alone."""
        if self._all is None:
            raise AgentClosed(
                f"the agent has ended, and {self.count} decisions are open in its file: Agent.open(path) lists them"
            )


def checked_rows(table: str, rows: Iterable[Row]) -> Iterator[Row]:
    """Return rows without their last column, which is the checksum that they should have."""
    for row in texts(rows):
        if row[-1] != checksum(table, *row[:-1]):
            raise AgentFileInvalid(f"is damaged: a row of {table} does not have its checksum")
        yield row[:-1]


def plain_offer(offered: Offer) -> Any:
    """Return what was offered as plain data: rows, or rows with their names."""
    rows = offered.tolist()
    return {"names": offered.names, "actions": rows} if type(offered) is NamedOffer else rows


def stored_offer(text: str, action: int, dimension: int | None) -> Offer:
    """Return what plain_offer made a text of. Refuses what the action, or the dimension of the policy, does not fit."""
    found = json.loads(text)
    named = type(found) is dict and set(found) == {"names", "actions"}
    table = np.array(found["actions"] if named else found)
    fit = table.ndim == 2 and table.dtype == np.int64 and dimension in (None, table.shape[1])
    if not fit or not 0 <= action < len(table) or (named and not are_names(found["names"], len(table))):
        raise AgentFileInvalid("is damaged: the actions of an open decision cannot be read")
    return NamedOffer.of(table, found["names"]) if named else table
