"""What callers want of a bandit, one operation each. Each has an outcome of its own, whatever else is in its batch."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from private_bandits.checks import whole_number
from private_bandits.errors import IdempotencyKeyReused, InvalidInput, OutcomeUnknown, PrivateBanditsError
from private_bandits.service.working_copy import WorkingCopy
from private_bandits.state import Decision
from private_bandits.storage.sql.asks import AskKey, KnownAsk

Outcome = Literal["recorded", "already_recorded", "given_up", "over_limit", "dropped", "lost"]
"""What became of a decision. `recorded` is said once; later tells of it, whatever they say, are `already_recorded`."""

MOST_ASKED = 1000
LONGEST_KEY = 255

_OUTCOMES: dict[str, Outcome] = {
    "told": "already_recorded",
    "given_up": "given_up",
    "out_of_time": "given_up",
    "over_limit": "over_limit",
    "dropped": "dropped",
    "lost": "lost",
}


@dataclass(frozen=True, repr=False)
class Answer:
    """The outcome of an operation: a value, or the error to raise."""

    value: Any = None
    error: PrivateBanditsError | None = None


class Operation(ABC):
    """Something to do in a batch."""

    statuses: ClassVar[Sequence[str]] = ("active", "paused")
    """In which the bandit does it."""

    @property
    def decisions(self) -> Sequence[str]:
        """The ids of the decisions that it names."""
        return ()

    @property
    def asks(self) -> int:
        """How many decisions it asks for."""
        return 0

    @property
    def ask_key(self) -> AskKey | None:
        """The key under which it may come again."""
        return None

    @abstractmethod
    def run(self, copy: WorkingCopy) -> Any:
        """Do it, in the transaction of the batch. What is raised before anything changed is its outcome."""

    def once_lasting(self) -> Answer:
        """Return the outcome where it released, which is lasting, and something failed afterwards."""
        text = "the release is lasting, and what followed it failed: repeat the call, which tells"
        return Answer(error=OutcomeUnknown(text))


@dataclass(frozen=True)
class Ask(Operation):
    """Make decisions.

    Args:
        n: How many.
        person: For whom, where the bandit has a limit for each person.
        actions: To choose from, where they change.
        api_key: The number of the caller's API key.
        idempotency_key: Under which the same ask may come again for a day, and has the same answer.
    """

    n: int = 1
    person: str | None = field(default=None, repr=False)
    actions: Any = field(default=None, repr=False)
    api_key: int = 0
    idempotency_key: str | None = None

    statuses = ("active",)

    def __post_init__(self) -> None:
        key = self.idempotency_key
        if key is not None and not (isinstance(key, str) and 0 < len(key) <= LONGEST_KEY and key.isprintable()):
            raise InvalidInput(f"an idempotency key is a text of 1 to {LONGEST_KEY} characters that can be printed")

    @property
    def asks(self) -> int:
        """So many, unless that is no number, which is refused later."""
        return self.n if type(self.n) is int and 0 < self.n <= MOST_ASKED else 0

    @property
    def ask_key(self) -> AskKey | None:
        """The API key's number, and the caller's key."""
        return None if self.idempotency_key is None else (self.api_key, self.idempotency_key)

    def run(self, copy: WorkingCopy) -> list[Decision]:
        """Return the decisions: new ones, or those that the same ask had before."""
        count = whole_number("n", self.n, 1, MOST_ASKED)
        key = self.ask_key
        if key is None:
            return self._made(copy, count)
        body = copy.ids.body_hash(self._body())
        known = copy.store.asks.find(key)
        if known is None:
            first = copy.bandit.public.asked + 1
            found = self._made(copy, count)
            copy.store.asks.note(key, KnownAsk(body, first, count))
            return found
        if known.body != body:
            raise IdempotencyKeyReused("the idempotency key was used for another ask within a day: choose a new key")
        return [copy.shown(*made) for made in copy.store.made(known.first, known.made)]

    def _made(self, copy: WorkingCopy, count: int) -> list[Decision]:
        first = copy.bandit.public.asked + 1
        found = copy.bandit.ask(count, self.actions, self.person)
        assert isinstance(found, list)
        return [copy.shown(first + i, one.action, one.arm) for i, one in enumerate(found)]

    def _body(self) -> str:
        try:
            return json.dumps([self.n, self.person, self.actions])
        except (TypeError, ValueError):
            problem = "an ask with an idempotency key takes plain data: lists, numbers and texts"
        raise InvalidInput(problem)


@dataclass(frozen=True)
class Tell(Operation):
    """Tell the reward of a decision.

    Args:
        decision: The id of the decision.
        reward: The reward.
        played: The action really taken, where it was another.
    """

    decision: str
    reward: float = field(repr=False)
    played: int | str | None = field(default=None, repr=False)

    @property
    def decisions(self) -> Sequence[str]:
        """The one that it tells the reward of."""
        return (self.decision,)

    def run(self, copy: WorkingCopy) -> Outcome:
        """Take the reward, once. A decision that is closed says how it ended, whatever is told now."""
        number, store = copy.number_of(self.decision), copy.store
        opened, before = store.numbered(number), store.hot.version
        if opened is None:
            return _OUTCOMES[store.ending_of(number)]
        copy.bandit.tell(opened.id, self.reward, self.played)
        if store.hot.version > before:
            return "recorded"  # and released
        ended = store.ending_of(number)
        return "recorded" if ended == "told" else _OUTCOMES[ended]

    def once_lasting(self) -> Answer:
        """The reward was taken, whatever the policy made of the release."""
        return Answer("recorded")


@dataclass(frozen=True)
class GiveUp(Operation):
    """Give a decision up, whose reward will never come.

    Args:
        decision: The id of the decision.
    """

    decision: str

    @property
    def decisions(self) -> Sequence[str]:
        """The one that it gives up."""
        return (self.decision,)

    def run(self, copy: WorkingCopy) -> Outcome:
        """Close the decision. One that is closed says how it ended."""
        number = copy.number_of(self.decision)
        opened = copy.store.numbered(number)
        if opened is None:
            return _OUTCOMES[copy.store.ending_of(number)]
        copy.bandit.give_up(opened.id)
        return "given_up"


@dataclass(frozen=True)
class Finish(Operation):
    """Release what is unreleased, and take no rewards any more."""

    def run(self, copy: WorkingCopy) -> int:
        """Return how many rewards the closing releases hold; 0 if the bandit was finished before."""
        return copy.bandit.finish()
