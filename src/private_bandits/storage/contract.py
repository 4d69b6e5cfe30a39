"""The promises of a store. Whoever adds one implements `Store`, and runs tests/storage over it.

1. All or nothing. What was told since the last `commit` or `keep_releases` becomes lasting together, or none of it.
2. A draw is lasting before anyone looks at it. `keep_releases` returns when the releases told so far, with the sums
   that follow them, survive the process and the machine. No exception of a policy takes them back.
3. A decision is found by its id without loading the others. Looking up sees what was told and not yet committed.
4. A second owner is refused, or shares by version: two copies of one state that draw for themselves cost twice.
5. A failure ends the agent. A store that cannot write raises `StoreFailed`, and holds what it had made lasting before.
   Nothing of a change that was not made lasting may be seen, its draws least of all.
6. No error repeats a stored value. A database's own words may quote a sum or a context.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from private_bandits.errors import AgentClosed
from private_bandits.state import OpenDecision, PublicState, Records


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
        """Make everything lasting that was told since the last commit."""

    def finish(self, public: PublicState) -> None:
        """Write what may have been put off, before the store is closed."""

    def close(self) -> None:
        """Let go of the store. Closing it again does nothing."""
