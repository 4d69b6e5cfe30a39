"""Work side by side: it stops when it should, and leaves nobody behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import private_bandits as pb
from private_bandits.simulation import run
from private_bandits.simulation.workers import Job, compute
from tests.interruptible import hears_interrupts

ENVIRONMENT = pb.Bernoulli([0.8, 0.6, 0.3])


@dataclass(frozen=True)
class Slow(pb.AdaCUCB):
    """Played step by step: a million steps take a minute, ten thousand half a second."""

    name: ClassVar[str] = ""

    def due(self, state: Any, key: int, count: int, arrived: Any) -> bool:
        return super().due(state, key, count, arrived)


def slow_jobs(horizon: int, count: int) -> list[Job]:
    policy = Slow(3, pb.zCDP(1))
    (task,) = run.tasks_for({"a": policy}, ENVIRONMENT, horizon, np.array([horizon]), seed=0)
    return [(task, (i, 1)) for i in range(count)]


@pytest.mark.parametrize("processes", [1, 2])
def test_an_error_in_a_job_is_raised(processes: int) -> None:
    jobs = [*slow_jobs(50, 2), *slow_jobs(50, 1)]
    broken = jobs[1][0].only(["a"])
    object.__setattr__(broken, "horizon", "no number")
    with pytest.raises(TypeError):
        list(compute([jobs[0], (broken, (0, 1)), jobs[2]], processes))


def test_what_is_under_way_is_given_up_when_nobody_wants_it() -> None:
    """The others would take minutes, and tell nothing on the way."""
    began = time.monotonic()
    with closing(compute([*slow_jobs(50, 1), *slow_jobs(10**7, 3)], 2)) as finished:
        assert next(finished)[0] == 0
    assert time.monotonic() - began < 60


PARENT = """
import sys, threading, time
from multiprocessing import active_children
from private_bandits.simulation.workers import compute
from tests.simulation.test_workers import slow_jobs

def tell():
    while len(active_children()) < 2:
        time.sleep(0.01)
    print(*(child.pid for child in active_children()), flush=True)

if __name__ == "__main__":
    threading.Thread(target=tell, daemon=True).start()
    list(compute(slow_jobs(10**7, 2), 2))
"""


def running(pid: int) -> bool:
    """Whether there is such a process, and more of it than an entry in a table."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are looked up in /proc")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT], ids=["killed", "interrupted"])
def test_processes_end_with_the_one_that_started_them(how: signal.Signals, tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(PARENT)
    root = str(Path(__file__).parents[2])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])}
    with subprocess.Popen(
        [sys.executable, str(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        preexec_fn=hears_interrupts,
    ) as parent:
        try:
            assert parent.stdout is not None
            children = [int(pid) for pid in parent.stdout.readline().split()]
            assert len(children) == 2
            parent.send_signal(how)
            deadline = time.monotonic() + 60
            while any(map(running, children)) and time.monotonic() < deadline:
                time.sleep(0.05)
            assert not any(map(running, children))
            parent.communicate(timeout=60)
        finally:
            parent.kill()
