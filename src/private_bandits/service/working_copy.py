"""A bandit as one worker has it: at one version of the database, and good for as long as that version stays."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from private_bandits.arguments import parsed_id
from private_bandits.bandit import Bandit
from private_bandits.errors import StateRolledBack
from private_bandits.ledger import Account
from private_bandits.mechanism.release import Door
from private_bandits.service.ids import DecisionIds
from private_bandits.state import Decision
from private_bandits.storage.sql.database import Database, Transaction
from private_bandits.storage.sql.state_rows import ColdRow
from private_bandits.storage.sql.store import Fixed, SqlStore
from private_bandits.storage.sql.stored import StoredInDatabase
from private_bandits.wiring import door_for

MOST_EXPIRED = 1000
"""Decisions that one batch gives up because of their time, at most."""


@dataclass(frozen=True, repr=False)
class WorkingCopy:
    """The state machine of a bandit, and its records.

    Args:
        bandit: The state machine. It holds raw sums: show nothing of it.
        store: Its records.
        ids: Makes and reads the ids of its decisions.
    """

    bandit: Bandit
    store: SqlStore
    ids: DecisionIds

    def shown(self, number: int, action: int, arm: str | None) -> Decision:
        """Return a decision as callers see it."""
        names = self.bandit.policy.arm_names
        return Decision(self.ids.of(number), action, arm or (names[action] if names else f"action {action}"))

    def number_of(self, decision: str) -> int:
        """Return the number of a decision by its id.

        Raises:
            UnknownDecision: The bandit did not hand it out.
            StateRolledBack: The bandit handed it out, and does not know that any more.
        """
        in_file = parsed_id(decision, self.bandit.settings.token) if isinstance(decision, str) else None
        if in_file is not None and in_file[1] <= self.store.fixed.moved_in.get(in_file[0], 0):
            return in_file[1]  # the id that the agent handed out before it moved in
        incarnation, number = self.ids.parsed(decision)
        if incarnation != self.ids.incarnation or number > self.bandit.public.asked:
            raise StateRolledBack(
                "the bandit handed out decisions that its database does not know: the database is an earlier copy. "
                "The bandit is frozen until an operator thaws it"
            )
        return number

    def give_up_late(self, now: int) -> None:
        """Close the decisions that are out of time, the oldest first, and not too many at once."""
        after = self.bandit.settings.give_up_time
        if after is None or self.bandit.finished or not len(self.store):
            return
        late = self.store.late(now - after, MOST_EXPIRED)
        if late:
            self.bandit.close_late(late)
            self.bandit.unfinished = False


class Loader:
    """Loads a bandit anew when another worker has changed it: the hot state always, the cold one after releases.

    Args:
        database: The database.
        fixed: The bandit.
    """

    def __init__(self, database: Database, fixed: Fixed) -> None:
        self.fixed = fixed
        self._database = database
        self._door: Door = door_for(fixed.settings, Account())
        self._copy: WorkingCopy | None = None
        self._cold: ColdRow | None = None
        self._ids = DecisionIds(fixed.id_key, "")
        self.failed: str | None = None
        """How the policy failed at a release that was loaded, if it did."""

    def current(self, work: Transaction, version: int) -> WorkingCopy:
        """Return the bandit at the version whose lock this transaction has.

        The policy learns releases that its stored state has not learned.

        Raises:
            PolicyFailed: It failed at one of them. `failed` says how.
        """
        self.failed = None
        if self._copy is None or self._copy.store.hot.version != version:
            self._copy = None
            self._copy = self._load(work)
        self._copy.store.join(work)
        return self._copy

    def _load(self, work: Transaction) -> WorkingCopy:
        stored = StoredInDatabase(self._database, self.fixed, work, self._cold)
        store = stored.take_over()
        self._cold = store.cold
        door = self._door
        door.account = stored.account
        declared = self.fixed.settings.run_policy.with_budget(door.budget).declared_weight
        public, private = stored.load(partial(door.open_episode, declared=declared))
        bandit = Bandit(self.fixed.settings, door, public, private, store)
        store.join(work)
        try:
            bandit.resume(stored.policy_state, stored.learned)
        finally:
            self.failed = bandit.failed
        if self._ids.incarnation != store.hot.incarnation:
            self._ids = DecisionIds(self.fixed.id_key, store.hot.incarnation)
        return WorkingCopy(bandit, store, self._ids)

    def forget(self) -> None:
        """Load everything anew the next time."""
        self._copy = self._cold = None
