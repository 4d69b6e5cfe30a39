"""Jobs on a Dask cluster. The only place that imports `distributed`.

A job is a pure function of its settings and seed, so it does not matter which worker does it, nor how often: what a
worker had under way when it died is done again by another one, and the numbers are those of one machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from private_bandits.arrays import Floats
from private_bandits.errors import InvalidInput
from private_bandits.experiments.run.cache import code_digest
from private_bandits.loading import require
from private_bandits.simulation.workers import Finished, Job, Shares

require("a Dask cluster", "dask")

import distributed  # noqa: E402

PATIENCE = 30
"""Seconds to wait for a scheduler to answer, and for its first worker."""
RETRIES = 3
"""How often a job that fails is tried again, on another worker if there is one."""


class WrongCode(Exception):
    """A worker has other sources or libraries, so its numbers would not be ours."""


def do(job: Job, code: str) -> Floats:
    """What a worker does. code: the state of the sources and libraries that the numbers are to come from."""
    if code_digest() != code:
        raise WrongCode
    task, block = job
    return task(block)


def compute(address: str, jobs: Sequence[Job], report: Shares = lambda shares: None) -> Finished:
    """As `workers.compute`, on the cluster whose scheduler is at `address`."""
    if not jobs:
        return
    client = _connect(address)
    waiting: dict[Any, int] = {}
    try:
        code = code_digest()
        waiting = {client.submit(do, job, code, pure=False, retries=RETRIES): i for i, job in enumerate(jobs)}
        shares = np.zeros(len(jobs))
        for future in distributed.as_completed(list(waiting), loop=client.loop):
            i = waiting.pop(future)
            curves = _result(future, address)
            shares[i] = 1.0
            report(shares)
            yield i, curves
    finally:
        client.cancel(list(waiting), force=True)
        client.close()


def _connect(address: str) -> Any:
    try:
        client = distributed.Client(address, timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise InvalidInput(
            f"no Dask scheduler answers at {address} ({type(error).__name__}): start one with `dask scheduler`, or "
            "compute on this machine"
        ) from None
    try:
        client.wait_for_workers(1, timeout=PATIENCE)
    except TimeoutError:
        client.close()
        raise InvalidInput(
            f"the scheduler at {address} has no worker: start one with `dask worker {address}`"
        ) from None
    return client


def _result(future: Any, address: str) -> Floats:
    try:
        curves: Floats = future.result()
    except WrongCode:
        raise InvalidInput(
            f"workers of {address} have another version of private-bandits, numpy or numba: install there what is here"
        ) from None
    except ImportError as error:
        raise InvalidInput(
            f'workers of {address} lack {error.name}: pip install "private-bandits[fast,dask]" there'
        ) from None
    except distributed.KilledWorker as error:
        raise InvalidInput(
            f"{error.allowed_failures + 1} workers died on the same block, perhaps for want of memory: what is done is "
            "kept, and the same command continues"
        ) from None
    return curves
