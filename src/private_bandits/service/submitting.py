"""Hands operations to the committer, and waits for their outcomes without holding a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import Future
from itertools import count
from typing import Any

from starlette.concurrency import run_in_threadpool

from private_bandits.protocol.problems import NO_PRIVACY, Refused
from private_bandits.service.operations import Operation
from private_bandits.service.running import Service


async def submit(service: Service, bandit: str, operation: Operation) -> Any:
    """Run an operation on a bandit, and return its outcome once it is lasting."""
    await check_runs_here(service, bandit)
    return await asyncio.wrap_future(service.committer.submit(bandit, operation))


async def submit_many(service: Service, bandit: str, operations: Sequence[Operation]) -> list[Any]:
    """Run operations in their order, and return the outcome of each, or the error that it ended with."""
    await check_runs_here(service, bandit)
    futures = service.committer.submit_many(bandit, operations)
    await _all_done(futures)
    return [future.exception() or future.result() for future in futures]


async def check_runs_here(service: Service, bandit: str) -> None:
    """Refuse a bandit that does not exist, or that promises nothing on a server that has to promise something."""
    facts = service.snapshots.known(bandit)
    if facts is None or not service.committer.is_prepared(bandit):
        facts = await run_in_threadpool(service.snapshots.facts, bandit)
        await run_in_threadpool(service.committer.prepare, bandit)
    if not facts.promise.private and not service.settings.allow_no_privacy:
        raise Refused(NO_PRIVACY)


async def _all_done(futures: Sequence[Future[Any]]) -> None:
    """Wait for futures of other threads, with one call into this thread for all of them."""
    if not futures:
        return
    loop, left = asyncio.get_running_loop(), count(1)
    done: asyncio.Future[None] = loop.create_future()

    def one_more(_: Future[Any]) -> None:
        if next(left) == len(futures):
            loop.call_soon_threadsafe(_finish, done)

    for future in futures:
        future.add_done_callback(one_more)
    await done


def _finish(done: asyncio.Future[None]) -> None:
    if not done.done():
        done.set_result(None)
