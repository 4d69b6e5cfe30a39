"""A real scheduler and two real workers on this machine: local numbers, also when a worker is killed on the way."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import distributed
import pandas as pd
import pytest

from private_bandits.errors import InvalidInput
from private_bandits.experiments.run import cluster
from private_bandits.experiments.run.data import EXPERIMENTS
from private_bandits.experiments.run.runner import Compute, run
from private_bandits.simulation import engines
from private_bandits.simulation.workers import Finished, Job, Shares
from tests.experiments.small import LINEAR, contextual, here, planned

DASK = str(Path(sys.executable).with_name("dask"))
QUIET = {**os.environ, "DASK_LOGGING__DISTRIBUTED": "critical", "OPENBLAS_NUM_THREADS": "1"}
Process = subprocess.Popen[bytes]


@contextmanager
def started(*arguments: str) -> Iterator[Process]:
    """A process that ends with the test, whatever happens."""
    process = subprocess.Popen([DASK, *arguments], env=QUIET, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@contextmanager
def scheduler(folder: Path) -> Iterator[str]:
    """The address of a scheduler on a free port."""
    note = folder / "scheduler.json"
    options = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(note)]
    with started("scheduler", *options) as process:
        deadline = time.monotonic() + 60
        while not note.exists() or not note.read_text():
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)
        yield json.loads(note.read_text())["address"]


@pytest.fixture(scope="module")
def cluster_of_two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Process]]:
    """The address of a scheduler with two workers, and one of these. No nanny would start a killed one anew."""
    folder = tmp_path_factory.mktemp("dask")
    options = ["--no-nanny", "--no-dashboard", "--nthreads", "1", "--host", "127.0.0.1", "--local-directory"]
    with (
        scheduler(folder) as address,
        started("worker", address, *options, str(folder / "1")) as first,
        started("worker", address, *options, str(folder / "2")),
    ):
        client = distributed.Client(address, set_as_default=False)
        client.wait_for_workers(2, timeout=60)
        client.close()
        yield address, first


def frames(folder: Path, how: Compute) -> dict[str, pd.DataFrame]:
    made, cache = planned([LINEAR.resized(10**5, 24), contextual().resized(600, 2)], folder)
    assert len(made.jobs) == 13
    return {study.experiment.name: frame for study, frame in run(made, cache, how, lambda part: None)}


def test_a_killed_worker_costs_only_its_tasks(
    cluster_of_two: tuple[str, Process], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "BLOCK", 2)
    address, victim = cluster_of_two
    times: Counter[int] = Counter()

    def kill_one_on_the_way(jobs: Sequence[Job], report: Shares) -> Finished:
        for i, curves in cluster.compute(address, jobs, report):
            times[i] += 1
            if times.total() == 2:
                assert victim.poll() is None
                victim.kill()
            yield i, curves

    found = frames(tmp_path / "cluster", kill_one_on_the_way)
    assert times == dict.fromkeys(range(13), 1)
    for name, frame in frames(tmp_path / "here", here).items():
        pd.testing.assert_frame_equal(found[name], frame, check_exact=True)


def test_workers_with_other_code_are_refused(
    cluster_of_two: tuple[str, Process], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "code_digest", lambda: "what the workers do not have")
    made, cache = planned([EXPERIMENTS["finite"].resized(100, 2)], tmp_path)
    with pytest.raises(InvalidInput, match="install there what is here"):
        list(run(made, cache, partial(cluster.compute, cluster_of_two[0]), lambda part: None))
    assert made.missing == 14


def test_a_scheduler_without_workers_and_none_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "PATIENCE", 1)
    made, _ = planned([EXPERIMENTS["finite"].resized(100, 2)], tmp_path)
    with scheduler(tmp_path) as address, pytest.raises(InvalidInput, match=f"start one with `dask worker {address}"):
        list(cluster.compute(address, made.jobs))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        nobody = f"tcp://127.0.0.1:{free.getsockname()[1]}"
        with pytest.raises(InvalidInput, match=f"no Dask scheduler answers at {nobody}"):
            list(cluster.compute(nobody, made.jobs))
    for wrong in ("nonsense", "martian://127.0.0.1:1"):
        with pytest.raises(InvalidInput, match=f"no Dask scheduler answers at {wrong}"):
            list(cluster.compute(wrong, made.jobs))
    assert list(cluster.compute(nobody, [])) == []  # nothing to do: nobody is needed
