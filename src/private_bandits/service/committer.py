"""Takes operations from many threads, and runs them in batches: one of a bandit at a time, several bandits at once."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from queue import SimpleQueue
from types import TracebackType
from typing import Any, Self

from private_bandits.errors import BanditStopped, OutcomeUnknown, Overloaded
from private_bandits.service.batch import Batches
from private_bandits.service.operations import Answer, Operation
from private_bandits.service.working_copy import Loader
from private_bandits.storage.sql.database import Database
from private_bandits.storage.sql.stored import find_bandit

THREADS = 8
"""Committer threads of a worker on PostgreSQL. SQLite has one writer at a time, and one thread."""
MOST_IN_A_BATCH = 1000
GATHER_SECONDS = 0.002
"""How long a batch waits for more, where the one before it had more than twice as many operations."""
MOST_WAITING = 10_000
"""Operations that wait for one bandit, at most."""

Waiting = tuple[Operation, Future[Any]]


class Lane:
    """The operations that wait for one bandit, in their order. One thread at a time runs them.

    Args:
        batches: Runs them.
        most: How many may wait.
    """

    def __init__(self, batches: Batches, most: int) -> None:
        self._batches, self._most = batches, most
        self._waiting: deque[Waiting] = deque()
        self._lock = threading.Lock()
        self._last = 0  # how many operations the last batch had
        self.is_running = False
        """Whether a thread runs them, or is to come."""

    def add(self, operations: Sequence[Operation]) -> tuple[list[Future[Any]], bool]:
        """Let operations wait, all or none. Returns their outcomes to be, and whether a thread has to come.

        Raises:
            Overloaded: Too many wait already.
        """
        new: list[Waiting] = [(operation, Future()) for operation in operations]
        with self._lock:
            if len(self._waiting) + len(new) > self._most:
                raise Overloaded(f"{len(self._waiting)} calls wait for this bandit: try again in a second")
            self._waiting.extend(new)
            starts = bool(new) and not self.is_running
            self.is_running = self.is_running or starts
        return [future for _, future in new], starts

    def __len__(self) -> int:
        return len(self._waiting)

    def run_some(self) -> bool:
        """Run one batch. Returns whether more waits."""
        if len(self._waiting) * 2 < self._last:
            time.sleep(GATHER_SECONDS)  # who was answered just now is about to call again
        with self._lock:
            some = [self._waiting.popleft() for _ in range(min(MOST_IN_A_BATCH, len(self._waiting)))]
        try:
            answers = self._batches.run([operation for operation, _ in some])
        except BaseException:  # nobody is left waiting, and the thread goes on with other bandits
            self._batches.forget()
            answers = [Answer(error=OutcomeUnknown("the worker failed: repeat the call, which tells")) for _ in some]
        with self._lock:
            self._last = len(answers)
            self._waiting.extendleft(reversed(some[len(answers) :]))
            self.is_running = goes_on = bool(self._waiting)
        for (_, future), answer in zip(some, answers, strict=False):
            _resolve(future, answer)
        return goes_on


def _resolve(future: Future[Any], answer: Answer) -> None:
    if not future.set_running_or_notify_cancel():
        return  # nobody waits for it any more
    if answer.error is None:
        future.set_result(answer.value)
    else:
        future.set_exception(answer.error)


class Committer:
    """Runs operations on the bandits of a database.

    Args:
        database: The database. Its tables are of this version.
        threads: How many batches run at once; None: as many as suit the database.
        most_waiting: How many operations may wait for one bandit.

    The outcome of an operation is in the `Future` that `submit` returns, once it is lasting.
    """

    def __init__(self, database: Database, threads: int | None = None, most_waiting: int = MOST_WAITING) -> None:
        self._database, self._most = database, most_waiting
        self._lanes: dict[str, Lane] = {}
        self._lock = threading.Lock()
        self._ready: SimpleQueue[Lane | None] = SimpleQueue()
        self._is_closed = False
        count = threads or (THREADS if database.on_server else 1)
        self._threads = [threading.Thread(target=self._work, name=f"committer-{i}") for i in range(count)]
        for thread in self._threads:
            thread.start()

    def submit(self, bandit: str, operation: Operation) -> Future[Any]:
        """Let an operation run on a bandit, by its name.

        Raises:
            UnknownBandit: The database has none of this name.
            Overloaded: Too many operations wait for it.
        """
        return self.submit_many(bandit, [operation])[0]

    def submit_many(self, bandit: str, operations: Sequence[Operation]) -> list[Future[Any]]:
        """Let operations run in their order, if there is room for all of them. Each has an outcome of its own."""
        lane = self._lane(bandit)
        with self._lock:
            if self._is_closed:
                raise BanditStopped("the worker is shutting down: ask another one, or try again in a moment")
            futures, starts = lane.add(operations)
            if starts:
                self._ready.put(lane)
        return futures

    def run(self, bandit: str, operation: Operation) -> Any:
        """Run an operation, and return its outcome once it is lasting."""
        return self.submit(bandit, operation).result()

    def is_prepared(self, bandit: str) -> bool:
        """Whether `submit` need not look a bandit up, which waits for the database."""
        return bandit in self._lanes

    def prepare(self, bandit: str) -> None:
        """Look a bandit up.

        Raises:
            UnknownBandit: The database has none of this name.
        """
        self._lane(bandit)

    @property
    def waiting(self) -> int:
        """How many operations wait, of all bandits."""
        with self._lock:
            return sum(len(lane) for lane in self._lanes.values())

    def _lane(self, bandit: str) -> Lane:
        with self._lock:
            found = self._lanes.get(bandit)
        if found is not None:
            return found
        with self._database.reading() as work:
            fixed = find_bandit(work, bandit)
        made = Lane(Batches(self._database, Loader(self._database, fixed)), self._most)
        with self._lock:
            return self._lanes.setdefault(bandit, made)

    def _work(self) -> None:
        while (lane := self._ready.get()) is not None:
            if lane.run_some():
                self._ready.put(lane)  # behind the others

    def close(self) -> None:
        """Run what waits, and end. Nothing new is taken."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
        while any(lane.is_running for lane in self._lanes.values()):
            threading.Event().wait(0.005)
        for _ in self._threads:
            self._ready.put(None)
        for thread in self._threads:
            thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
