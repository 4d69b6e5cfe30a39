"""Looks once a second, with one query, whether watched bandits have something new."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.concurrency import run_in_threadpool

from private_bandits.storage.sql.database import Database
from private_bandits.storage.sql.public_rows import Watched, watch

SECONDS = 1.0


class Watcher:
    """How watched bandits stand. It asks the database only while somebody watches.

    Args:
        database: The database.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._watched: Counter[int] = Counter()
        self._found: dict[int, Watched] = {}
        self._task: asyncio.Task[None] | None = None
        self._polled = asyncio.Event()

    @asynccontextmanager
    async def watching(self, bandit: int) -> AsyncIterator[None]:
        """Watch a bandit, by its number."""
        self._watched[bandit] += 1
        if self._task is None:
            self._task = asyncio.create_task(self._poll())
        try:
            yield
        finally:
            self._watched[bandit] -= 1
            self._watched += Counter()  # without those that nobody watches any more
            if not self._watched and self._task is not None:
                self._task.cancel()
                self._task = None

    async def next_of(self, bandit: int) -> Watched | None:
        """Wait for the next look, and return how a bandit stands; None: that is not known."""
        await self._polled.wait()
        return self._found.get(bandit)

    async def _poll(self) -> None:
        while True:
            try:
                self._found = await run_in_threadpool(watch, self._database, list(self._watched))
            except Exception:
                self._found = {}  # the next look may succeed
            self._polled.set()
            self._polled = asyncio.Event()
            await asyncio.sleep(SECONDS)
