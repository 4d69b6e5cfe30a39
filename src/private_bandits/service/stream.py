"""One stream of a bandit's releases. What it sends is in the ledger for good."""

from __future__ import annotations

from collections.abc import AsyncIterator

from starlette.concurrency import run_in_threadpool

from private_bandits.service.draining import DRAINING
from private_bandits.service.running import Service
from private_bandits.storage.sql.public_rows import Watched, releases_since

ROWS = 100
"""Releases that are read at a time."""


class Stream:
    """The events of a bandit from now on, or from a row of its ledger on.

    Args:
        service: The worker.
        bandit: The number of the bandit.
        secret: The key of who watches. It is looked at again each second.
        last: The number of the last release that is known; None: all that there are.
    """

    def __init__(self, service: Service, bandit: int, secret: str, last: int | None) -> None:
        self._service, self._bandit, self._secret, self._last = service, bandit, secret, last
        self._standing: str | None = None

    async def events(self) -> AsyncIterator[str]:
        """Send what is new, once a second, until the key is revoked or the server stops."""
        async with self._service.watcher.watching(self._bandit):
            yield ": the stream begins\n\n"
            while not DRAINING.is_set() and await self._is_allowed():
                found = await self._service.watcher.next_of(self._bandit)
                if found is None:
                    yield ": the database does not answer\n\n"
                    continue
                async for event in self._new(found):
                    yield event

    async def _is_allowed(self) -> bool:
        return await run_in_threadpool(self._service.callers.look_up, self._secret) is not None

    async def _new(self, found: Watched) -> AsyncIterator[str]:
        if self._last is None:
            self._last = found.releases
        standing = "failed" if found.failed else found.status
        if standing != self._standing:
            self._standing = standing
            yield f'event: status\ndata: {{"status":"{standing}","releases":{found.releases}}}\n\n'
        else:
            yield ": \n\n"  # whoever has gone is noticed
        while self._last < found.releases:
            service = self._service
            rows = await run_in_threadpool(releases_since, service.database, self._bandit, self._last, ROWS)
            for row in rows:
                yield f"id: {row.number}\nevent: release\ndata: {row.text}\n\n"
                self._last = row.number
            if not rows:
                break
