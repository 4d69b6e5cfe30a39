"""The promises of a store.

Whoever adds one implements `Records` (state.py: what a bandit looks up, and what it tells), `Store` (how that becomes
lasting) and, if it outlives the process, `StoredBandit` (how it is resumed). wiring.new_bandit and Agent.open choose
the store of an agent, and service/ has the one of a database; tests/storage runs over every one of them.

1. All or nothing. What was told since the last `commit` or `keep_releases` becomes lasting together, or none of it.
2. A draw is lasting before anyone looks at it. `keep_releases` returns when the releases told so far, with the sums
   that follow them, survive the process and the machine. No exception of a policy takes them back.
3. A decision is found by its id without loading the others. Looking up sees what was told and not yet committed.
4. A second owner is refused, or shares by version: two copies of one state that draw for themselves cost twice.
5. A failure ends the agent. A store that cannot write raises `StoreFailed`, and holds what it had made lasting before.
   Nothing of a change that was not made lasting may be seen, its draws least of all.
6. What is read again is checked before anything is written (`StoredBandit`). A state that is damaged, or is behind what
   was published, is refused as it stands.
7. No error repeats a stored value. A database's own words may quote a sum or a context.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol

from private_bandits.errors import AgentClosed
from private_bandits.ledger import Release
from private_bandits.mechanism.episode import Episode
from private_bandits.state import OpenDecision, PrivateState, PublicState, Records, Settings


class StoreFailed(AgentClosed):
    """A store could not make a change lasting, and the agent on it has ended.

    reason: why, for later calls: "the agent {reason}".
    """

    def __init__(self, text: str, reason: str) -> None:
        super().__init__(text)
        self.reason = reason


def write_failed(trouble: str) -> StoreFailed:
    """Return the failure of a store that could not write its file."""
    return StoreFailed(
        f"the agent could not write its file ({trouble}) and has ended; the file holds everything up to the call "
        "before: mend the cause, resume with Agent.open(path) and tell again",
        f"could not write its file ({trouble})",
    )


def read_failed(trouble: str) -> StoreFailed:
    """Return the failure of a store that could not read its file."""
    return StoreFailed(
        f"the agent could not read its file ({trouble}) and has ended: mend the cause, resume with "
        "Agent.open(path) and tell again",
        f"could not read its file ({trouble})",
    )


class Store(Records, Protocol):
    """Records that can be made lasting. The lookups and notes are those of `Records`."""

    def open_decisions(self) -> Iterable[OpenDecision]:
        """Return all open decisions, oldest first."""

    def __len__(self) -> int:
        """Return how many decisions are open."""

    def commit(self, public: PublicState) -> None:
        """Make everything lasting that was told since the last commit.

        Two things may wait for the next write: what the policy made of a release, which can be learned again from it,
        and, where the machine fails and not the process, decisions that no reward was told to.
        """

    def publish(self, stamp: object, view: Callable[[], Mapping[str, Any]], now: bool = False) -> None:
        """Show the public view of the bandit to whoever reads it beside the owner, if there is such a place.

        Called between changes. stamp: anything that differs after a release. now: whether it may not wait.
        """

    def finish(self, public: PublicState) -> None:
        """Write what may have been put off, before the store is closed."""

    def close(self) -> None:
        """Let go of the store. Closing it again does nothing."""


class StoredBandit(Protocol):
    """A bandit as a store holds it. It is read, checked and taken over, in this order."""

    @property
    def settings(self) -> Settings:
        """The settings that it was made with."""

    def load(self, open_episode: Callable[[int, int, int], Episode]) -> tuple[PublicState, PrivateState]:
        """Return its state, but for the policy's. open_episode makes the empty sum of a key, number and dimension."""

    @property
    def opening(self) -> str | None:
        """The text that the chain of its ledger begins with; None where a version stored it that had no chain."""

    @property
    def rows(self) -> int:
        """How many releases it has."""

    def releases(self, opening: str) -> Iterator[Release]:
        """Read the rows of its ledger, oldest first, without keeping all of them in memory.

        They are read once and to the end, before `take_over`: the account of the door is charged with them. Rows that
        are in no chain yet are put into the one that begins with `opening`.
        """

    @property
    def policy_state(self) -> dict[str, Any]:
        """The policy's state as it was stored last."""

    @property
    def learned(self) -> int:
        """How many releases that state has learned. The policy learns the later ones from the ledger."""

    @property
    def checked(self) -> bool:
        """Whether checksums vouch for what was read: then a state that the policy cannot read is the policy's fault."""

    def check(self, check: Callable[[], object]) -> None:
        """Run a check of what was read. Whatever goes wrong there is told as damage, without what was read."""

    def take_over(self) -> Store:
        """Become the owner, and return the store that goes on. This is the first write."""

    def close(self) -> None:
        """Let others have it, whether it was taken over or not."""
