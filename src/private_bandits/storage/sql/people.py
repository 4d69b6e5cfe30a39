"""The rewards of people in a database: looked up by person, and noted until they are written together."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from sqlalchemy import select
from sqlalchemy.sql.base import Executable

from private_bandits.storage.sql.database import Rows
from private_bandits.storage.sql.schema import people


class Person(NamedTuple):
    """How many rewards of a person were taken, and in which open episodes they are: numbers by key."""

    rewards: int = 0
    places: Mapping[int, int] = {}


class PeopleRows:
    """People by their keyed hashes. What is at hand is as the database has it, as long as the bandit's version stays.

    Args:
        bandit: The number of the bandit.
        look: Returns the rows that a statement finds.
    """

    def __init__(self, bandit: int, look: Callable[[Executable], Rows]) -> None:
        self._bandit, self._look = bandit, look
        self._known: dict[str, Person] = {}
        self._changed: set[str] = set()

    def fetch(self, persons: Iterable[str]) -> None:
        """Look many people up at once."""
        unknown = sorted(set(persons) - self._known.keys())
        if not unknown:
            return
        columns = (people.c.person, people.c.rewards, people.c.places)
        query = select(*columns).where(people.c.bandit == self._bandit, people.c.person.in_(unknown))
        self._known |= dict.fromkeys(unknown, Person())
        for row in self._look(query):
            places = {int(key): number for key, number in json.loads(row.places).items()}
            self._known[row.person] = Person(row.rewards, places)

    def of(self, person: str) -> Person:
        """Return what is known of a person."""
        if person not in self._known:
            self.fetch([person])
        return self._known[person]

    def put(self, person: str, found: Person) -> None:
        """Note what is known of a person from now on."""
        self._known[person] = found
        self._changed.add(person)

    def new_rows(self) -> list[dict[str, Any]]:
        """Return the rows to write."""
        return [
            {"bandit": self._bandit, "person": person, "rewards": known.rewards, "places": json.dumps(known.places)}
            for person, known in ((one, self._known[one]) for one in sorted(self._changed))
        ]

    def written(self) -> None:
        """Forget what was noted."""
        self._known, self._changed = {}, set()
