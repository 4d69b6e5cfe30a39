"""Records that end with the process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from private_bandits.expiry import Mark
from private_bandits.ledger import Release
from private_bandits.mechanism.episode import Episode
from private_bandits.policies import Offer
from private_bandits.state import Ending, OpenDecision, PublicState


class MemoryStore:
    """Open decisions, people's counts and releases. Everything else of the state is in the bandit itself.

    token: of the agent, with which the ids of its decisions begin.
    """

    lasting = False

    def __init__(self, token: str) -> None:
        self._prefix = f"{token}-1-"  # of the first generation, and there is no other
        self._open: dict[str, OpenDecision] = {}
        self._offers: dict[str, Offer] = {}  # private ones
        self._endings: dict[int, Ending] = {}  # other than told
        self._rewards_of: dict[str, int] = {}
        self._places_of: dict[str, Mapping[int, int]] = {}
        self._releases: list[Release] = []
        self.find = self._open.get  # the dictionary's own method, in a call that everyone waits for

    def numbered(self, number: int) -> OpenDecision | None:
        """Return an open decision by its number."""
        return self._open.get(f"{self._prefix}{number}")

    def asked_in(self, generation: int) -> int:
        """There is one generation only."""
        return 0

    def offered_to(self, decision: OpenDecision) -> Offer | None:
        """Return the private actions that an open decision chose from."""
        return self._offers.get(decision.id)

    def open_decisions(self) -> Iterator[OpenDecision]:
        """Return all open decisions, oldest first. One that was opened again is not where it was."""
        return iter(sorted(self._open.values(), key=lambda decision: decision.number))

    def __len__(self) -> int:
        return len(self._open)

    def ending_of(self, number: int) -> Ending:
        """Return how a closed decision ended."""
        return self._endings.get(number, "told")

    def rewards_of(self, person: str) -> int:
        """Return how many rewards of this person were taken."""
        return self._rewards_of.get(person, 0)

    def asked(self, decision: OpenDecision, offered: Offer | None) -> None:
        """Note that a decision was handed out, from what was offered."""
        self._open[decision[0]] = decision
        if offered is not None and decision.offered is None:
            self._offers[decision.id] = offered

    def closed(self, decision: OpenDecision, ending: Ending) -> None:
        """Forget a decision, but for how it ended."""
        if ending != "told":
            self._endings[decision.number] = ending
        del self._open[decision[0]]
        if self._offers:
            self._offers.pop(decision.id, None)

    def reopened(self, decision: OpenDecision, offered: Offer | None) -> None:
        """Take back that a decision was closed."""
        self.asked(decision, offered)

    def count_rewards_of(self, person: str, more: int) -> None:
        """Count so many more of this person's rewards."""
        self._rewards_of[person] = self.rewards_of(person) + more

    def places_of(self, person: str) -> Mapping[int, int]:
        """Return the episodes that this person's rewards were in when the last one was taken."""
        return self._places_of.get(person, {})

    def put_places_of(self, person: str, places: Mapping[int, int]) -> None:
        """Note the open episodes that this person's rewards are in."""
        self._places_of[person] = places

    def releases(self, first: int, last: int) -> Sequence[Release]:
        """Return the rows of the ledger from one number to another, both included, as far as there are."""
        return self._releases[first - 1 : last]

    def released(self, row: Release) -> None:
        """Note a release."""
        self._releases.append(row)

    def timed(self, mark: Mark) -> None:
        """The bandit has the times."""

    def untimed(self, mark: Mark) -> None:
        """The bandit has the times."""

    # Nothing outlives the process, so that there is nothing to write down.

    def summed(self, changed: Iterable[Episode]) -> None:
        """The bandit has the sums."""

    def encoded(self, learned: int, state: str) -> None:
        """The bandit has the policy's state."""

    def arrived(self, arrivals: str) -> None:
        """The policy has what arrived."""

    def keep_releases(self, public: PublicState) -> None:
        """A release that was noted is as lasting as anything here."""

    def commit(self, public: PublicState) -> None:
        """Every change is as lasting as it gets."""

    def publish(self, stamp: object, view: Callable[[], Mapping[str, Any]], now: bool = False) -> None:
        """Nobody reads beside the owner."""

    def finish(self, public: PublicState) -> None:
        """Nothing is pending."""

    def close(self) -> None:
        """Nothing is held."""
