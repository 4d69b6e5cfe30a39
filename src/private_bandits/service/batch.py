"""One batch: operations of one bandit, in one transaction, each with an outcome of its own.

The row of the bandit is locked first. A batch ends with the first operation that releases: the draw is committed before
the policy sees it, with everything that was done before it. So only the database, the connection or the process may
discard a draw. A policy that fails at a release stops its bandit, and is run again on the stored row.
"""

from __future__ import annotations

import copy as copies
from collections.abc import Sequence
from contextlib import suppress

from private_bandits.errors import (
    BanditStopped,
    DatabaseFailed,
    InvalidInput,
    OutcomeUnknown,
    PolicyFailed,
    PrivateBanditsError,
    StateRolledBack,
    UnknownDecision,
)
from private_bandits.service.operations import Answer, Operation
from private_bandits.service.working_copy import Loader, WorkingCopy
from private_bandits.state import Settings
from private_bandits.storage.sql.database import Database, Transaction
from private_bandits.storage.sql.state_rows import ACTIVE
from private_bandits.storage.sql.stored import change_standing

FROZEN = "frozen"


class Batches:
    """Runs the batches of one bandit, one after the other.

    Args:
        database: The database.
        loader: Loads the bandit.
    """

    def __init__(self, database: Database, loader: Loader) -> None:
        self._database, self._loader = database, loader
        self._copy: WorkingCopy | None = None
        self._begun = False  # whether an operation of this batch ran

    def run(self, operations: Sequence[Operation]) -> list[Answer]:
        """Run the first of these operations, up to one that releases. Returns the outcomes of those that ran."""
        self._copy, self._begun, self._loader.failed = None, False, None
        try:
            answers = self._transact(operations)
        except BaseException as error:
            stopped = error
        else:
            self._keep_learned()
            return answers
        return self._after(stopped, operations)

    def forget(self) -> None:
        """Load everything anew for the next batch."""
        self._loader.forget()

    def _transact(self, operations: Sequence[Operation]) -> list[Answer]:
        """Lock the bandit, load what changed, run the operations, write, commit."""
        with self._database.transaction() as work:
            lock = work.lock(self._loader.fixed.number)
            refusal = self._refusal(lock.status, lock.failed)
            if refusal is not None:
                return _all_of(operations, refusal)
            self._copy = copy = self._loader.current(work, lock.version)
            copy.give_up_late(work.now)
            _fetch(copy, operations, work.now)
            self._begun = True
            try:
                answers = _run_all(copy, operations, lock.status, work)
                if not work.ended:
                    copy.bandit.encode_changes()
                    if copy.store.has_changes:
                        copy.store.commit(copy.bandit.public)
            finally:
                copy.store.leave()
        return answers

    def _refusal(self, status: str, failed: str | None) -> PrivateBanditsError | None:
        """Return why the bandit does nothing at all, if so."""
        name = self._loader.fixed.name
        if failed is not None:
            return BanditStopped(
                f"the bandit {name} has stopped: {failed}. Everything released is in its ledger, and nothing is drawn "
                "again. Mend the policy, and let the bandit run again"
            )
        if status == FROZEN:
            return StateRolledBack(f"the bandit {name} is frozen: its database is an earlier copy. Thaw it")
        if status not in (ACTIVE, "paused"):
            return BanditStopped(f"the bandit {name} is {status}")
        return None

    # After a batch.

    def _keep_learned(self) -> None:
        """Write what the policy made of a release, or how it failed. Others can learn it from the release too."""
        if self._copy is None:
            return
        bandit, store = self._copy.bandit, self._copy.store
        if bandit.unfinished:
            self._loader.forget()  # what followed a release failed, and this copy is good for nothing any more
        else:
            try:
                bandit.encode_changes()
                if store.has_changes:
                    store.commit(bandit.public)
            except BaseException:  # another worker was faster, the database failed, or the policy
                self._loader.forget()
        if bandit.failed is not None:
            self._mark_failed(bandit.failed)

    def _mark_failed(self, failed: str) -> None:
        with suppress(PrivateBanditsError):  # whoever loads the bandit next sees the policy fail, and marks it
            change_standing(self._database, self._loader.fixed.number, failed=failed)

    def _after(self, error: BaseException, operations: Sequence[Operation]) -> list[Answer]:
        """Return the outcomes where nothing of a batch was kept, or nobody knows whether it was."""
        failed = self._loader.failed if self._copy is None else self._copy.bandit.failed
        self._loader.forget()
        if failed is not None:
            self._mark_failed(failed)
            return _all_of(operations, self._refusal(ACTIVE, failed))
        if isinstance(error, StateRolledBack):
            with suppress(PrivateBanditsError):
                change_standing(self._database, self._loader.fixed.number, status=FROZEN)
        alone = len(operations) == 1 or not self._begun or isinstance(error, (DatabaseFailed, OutcomeUnknown))
        if alone:
            return _all_of(operations, _shown(error))
        # Something in the batch cannot be done. No draw was made: it would have ended the batch.
        return [answer for operation in operations for answer in self.run([operation])]


def _fetch(copy: WorkingCopy, operations: Sequence[Operation], now: int) -> None:
    """Look up, with a few statements, what the operations name.

    A decision that the bandit handed out and does not know ends the batch here, before any operation runs.
    """
    numbers: list[int] = []
    for operation in operations:
        for decision in operation.decisions:
            with suppress(UnknownDecision):
                numbers.append(copy.number_of(decision))
    numbers += _out_of_count(copy.bandit.settings, copy.bandit.public.asked, sum(one.asks for one in operations))
    copy.store.fetch(numbers)
    copy.store.asks.fetch((one.ask_key for one in operations if one.ask_key is not None), now)


def _out_of_count(settings: Settings, asked: int, more: int) -> range:
    """Return the numbers of the decisions that so many more asks give up, where that is by their count."""
    after = settings.give_up_after
    if not isinstance(after, int):
        return range(0)
    return range(max(1, asked + 1 - after), min(asked, asked + more - after) + 1)


def _run_all(copy: WorkingCopy, operations: Sequence[Operation], status: str, work: Transaction) -> list[Answer]:
    answers: list[Answer] = []
    for operation in operations:
        if status in operation.statuses:
            answers.append(_run_one(copy, operation))
        else:
            answers.append(Answer(error=BanditStopped(f"the bandit is {status}: it makes no decisions now")))
        if work.ended:
            break  # it released
    return answers


def _run_one(copy: WorkingCopy, operation: Operation) -> Answer:
    """Return the outcome of an operation. An error in the middle of a change ends the batch."""
    bandit, before = copy.bandit, copy.store.hot.version
    try:
        value = operation.run(copy)
    except BaseException as error:
        if copy.store.hot.version > before:  # its release is lasting, and what followed failed
            return operation.once_lasting()
        kept_from_others = isinstance(error, Exception) and not isinstance(error, (DatabaseFailed, OutcomeUnknown))
        if not kept_from_others or bandit.unfinished or bandit.failed is not None:
            raise
        return Answer(error=_shown(error))
    bandit.unfinished = False  # the rest is up to the transaction
    return Answer(value)


def _shown(error: BaseException) -> PrivateBanditsError:
    """Return the error to raise, without the frames that hold what was told."""
    if not isinstance(error, PrivateBanditsError):
        kind = type(error).__name__
        if isinstance(error, (TypeError, ValueError)):
            return InvalidInput(f"the call was refused ({kind}), and nothing was changed: check its arguments")
        return PolicyFailed(f"the policy could not do this ({kind}), and nothing was changed: mend it")
    error.__context__ = error.__cause__ = None
    return error.with_traceback(None)


def _all_of(operations: Sequence[Operation], error: PrivateBanditsError | None) -> list[Answer]:
    """Return the same error for each: an object of its own, as it is raised in a thread of its own."""
    return [Answer(error=copies.copy(error)) for _ in operations]
