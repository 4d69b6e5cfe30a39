"""Blocks of simulations side by side: compiled code in threads, the rest in processes.

Which of them computes a block does not change its numbers.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from contextlib import ExitStack
from multiprocessing import connection, get_context, parent_process
from typing import TYPE_CHECKING, Any

import numpy as np

from private_bandits.arrays import Floats

if TYPE_CHECKING:
    from private_bandits.simulation.run import Block, Task

Job = tuple["Task", "Block"]
"""A piece of work, which is a pure function: the curves of a block, [policy, run, checkpoint]."""
Shares = Callable[[Floats], None]
"""Told now and then which share of every job is done."""
GLANCE = 0.25
"""Seconds between two looks at what the others do."""


Finished = Generator[tuple[int, Floats], None, None]
"""The number and the curves of every job, in the order in which they are finished."""


def compute(jobs: Sequence[Job], processes: int, report: Shares = lambda shares: None) -> Finished:
    """Do the jobs on this machine. The numbers do not depend on `processes`.

    What is not finished when an interrupt or an error comes, or when the iterator is closed, is given up.
    """
    shares = np.zeros(len(jobs))
    if processes > 1 and len(jobs) > 1:
        yield from _side_by_side(jobs, min(processes, len(jobs)), shares, report)
        return
    for i, (task, block) in enumerate(jobs):

        def tell(part: float, i: int = i) -> None:
            shares[i] = part
            report(shares)

        curves = task(block, tell)
        tell(1.0)
        yield i, curves


def _side_by_side(jobs: Sequence[Job], count: int, shares: Floats, report: Shares) -> Iterator[tuple[int, Floats]]:
    apart = any(not task.runs_in_threads for task, _ in jobs)
    stopped: Any = get_context("spawn").Event() if apart else threading.Event()

    def run(i: int) -> Floats:
        task, block = jobs[i]
        if not task.runs_in_threads:
            return processes.submit(task, block).result()

        def watch(part: float) -> None:
            shares[i] = part
            if stopped.is_set():
                raise KeyboardInterrupt

        return task(block, watch)

    with ExitStack() as stack:
        if apart:
            processes = stack.enter_context(pool(count, stopped))
        threads = stack.enter_context(ThreadPoolExecutor(count))
        numbers: dict[Future[Floats], int] = {threads.submit(run, i): i for i in range(len(jobs))}
        try:
            yield from _as_finished(numbers, shares, report)
        except BaseException:
            stopped.set()
            threads.shutdown(wait=False, cancel_futures=True)
            raise


def _as_finished(numbers: dict[Future[Floats], int], shares: Floats, report: Shares) -> Iterator[tuple[int, Floats]]:
    waiting = set(numbers)
    while waiting:
        done, waiting = wait(waiting, GLANCE, FIRST_COMPLETED)
        for future in done:
            curves = future.result()
            shares[numbers[future]] = 1.0
            yield numbers[future], curves
        report(shares)


def pool(count: int, stopped: Any) -> ProcessPoolExecutor:
    """Processes that end with this one, or at once when `stopped`, an event of multiprocessing, is set."""
    return ProcessPoolExecutor(count, get_context("spawn"), _begin, (stopped,))


def _begin(stopped: Any) -> None:
    """A process of the pool: an interrupt is for the parent to handle, and without it there is nothing to do."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_leave_with_parent, args=(stopped,), daemon=True).start()


def _leave_with_parent(stopped: Any) -> None:
    parent = parent_process()
    while not stopped.is_set():
        if parent is None or connection.wait([parent.sentinel], GLANCE):
            break
    os._exit(1)
