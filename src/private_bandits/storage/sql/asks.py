"""Asks that may come again: the same key brings the same decisions, for a day."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from sqlalchemy import select
from sqlalchemy.sql.base import Executable

from private_bandits.storage.sql.database import Rows
from private_bandits.storage.sql.schema import asks

KEPT_FOR = 24 * 3600 * 1_000_000
"""Microseconds for which an ask may come again."""

AskKey = tuple[int, str]
"""The number of the API key, and the key that the caller chose."""


class KnownAsk(NamedTuple):
    """An ask that was answered: a keyed hash of what was asked, the first decision, and how many there are."""

    body: str
    first: int
    made: int


class AskRows:
    """Asks by their keys, noted until they are written together with their decisions.

    Args:
        bandit: The number of the bandit.
        look: Returns the rows that a statement finds.
    """

    def __init__(self, bandit: int, look: Callable[[Executable], Rows]) -> None:
        self._bandit, self._look = bandit, look
        self._known: dict[AskKey, KnownAsk | None] = {}
        self._new: list[AskKey] = []

    def fetch(self, keys: Iterable[AskKey], now: int) -> None:
        """Look many asks up at once, those of the last day."""
        wanted = set(keys)
        if not wanted:
            return
        names = sorted({name for _, name in wanted})
        recent = asks.c.bandit == self._bandit, asks.c.asked_at >= now - KEPT_FOR
        self._known |= dict.fromkeys(wanted)
        for row in self._look(select(asks).where(*recent, asks.c.idempotency_key.in_(names))):
            self._known[row.api_key, row.idempotency_key] = KnownAsk(row.body, row.first, row.made)

    def find(self, key: AskKey) -> KnownAsk | None:
        """Return an ask that was fetched, or noted since."""
        return self._known[key]

    def note(self, key: AskKey, ask: KnownAsk) -> None:
        """Note an ask that was answered."""
        self._known[key] = ask
        self._new.append(key)

    def new_rows(self, now: int) -> list[dict[str, Any]]:
        """Return the rows to write."""
        return [
            {"bandit": self._bandit, "api_key": number, "idempotency_key": name, "asked_at": now}
            | self._known[number, name]._asdict()  # type: ignore[union-attr]
            for number, name in self._new
        ]

    def written(self) -> None:
        """Forget what was noted."""
        self._known, self._new = {}, []
