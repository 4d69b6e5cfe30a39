"""Runs experiments: plans the blocks that are not there yet, has them computed, keeps each, makes the frames.

Where the blocks are computed, here or on a cluster, is a function that is passed in: blocks are pure functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from private_bandits import __version__
from private_bandits.arrays import Floats
from private_bandits.errors import InvalidInput
from private_bandits.experiments.run.build import Study, study_of
from private_bandits.experiments.run.cache import Cache, key_of
from private_bandits.experiments.run.experiment import Experiment
from private_bandits.loading import require
from private_bandits.progress import Report
from private_bandits.simulation.run import Block, Task
from private_bandits.simulation.workers import Finished, Job, Shares

if TYPE_CHECKING:
    import pandas as pd

Compute = Callable[[Sequence[Job], Shares], Finished]
"""Has jobs done, in any order and place."""
COLUMNS = ("experiment", "policy", "label", "rho", "run", "step", "regret", "seed", "version")
"""Of a frame of results; a row for each run and checkpoint."""


@dataclass
class Plan:
    """What is there, and what has to be computed.

    found: the blocks that are there, by key. keys: of every experiment, what it needs, policy by policy. jobs: what
    computes the rest; wanted: the keys that each of them gives, policy by policy.
    """

    studies: Sequence[Study]
    found: dict[str, Floats] = field(default_factory=dict)
    keys: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    jobs: list[Job] = field(default_factory=list)
    wanted: list[list[str]] = field(default_factory=list)

    @property
    def blocks(self) -> int:
        """Blocks that all experiments need, of one policy each."""
        return len({key for by_label in self.keys.values() for keys in by_label.values() for key in keys})

    @property
    def missing(self) -> int:
        """Those of them that are not there."""
        return self.blocks - len(self.found)

    def complete(self, name: str) -> bool:
        """Whether everything is there that an experiment needs."""
        return all(key in self.found for keys in self.keys[name].values() for key in keys)


def plan(experiments: Sequence[Experiment], seed: int, cache: Cache) -> Plan:
    """Look up every block. Experiments that share a policy share its blocks; what is missing of a block is one job."""
    names = [experiment.name for experiment in experiments]
    if len(set(names)) < len(names):
        raise InvalidInput(f"experiments must have different names, got {', '.join(names)}")
    made = Plan([study_of(experiment, seed) for experiment in experiments])
    claimed: set[str] = set()
    for study in made.studies:
        needed = made.keys[study.experiment.name] = {label: [] for label in study.policies}
        for task in study.tasks:
            for block in task.blocks(study.experiment.runs):
                keys = {label: key_of(task, label, block) for label in task.policies}
                for label, key in keys.items():
                    needed[label].append(key)
                absent = {label: key for label, key in keys.items() if key not in claimed}
                claimed.update(absent.values())
                _look_up(made, cache, task, block, absent)
    return made


def _look_up(made: Plan, cache: Cache, task: Task, block: Block, keys: Mapping[str, str]) -> None:
    """Each policy's part of a block: found, or part of a job."""
    absent: dict[str, str] = {}
    for label, key in keys.items():
        curves = cache.get(key, (block[1], len(task.checkpoints)))
        if curves is None:
            absent[label] = key
        else:
            made.found[key] = curves
    if absent:
        made.jobs.append((task.only(list(absent)), block))
        made.wanted.append(list(absent.values()))


def run(made: Plan, cache: Cache, compute: Compute, report: Report) -> Iterator[tuple[Study, pd.DataFrame]]:
    """Have everything computed that is missing; every experiment as soon as it is complete.

    Each block is on disk before the next one is looked at, so whatever ends this, nothing that was done is lost.
    """
    waiting = list(made.studies)
    work = np.array([_work(job) for job in made.jobs])
    yield from _complete(made, waiting)
    with closing(compute(made.jobs, lambda shares: report(float(work @ shares / work.sum())))) as finished:
        for i, curves in finished:
            for key, rows in zip(made.wanted[i], curves, strict=True):
                cache.put(key, rows)
                made.found[key] = rows
            yield from _complete(made, waiting)


def _complete(made: Plan, waiting: list[Study]) -> Iterator[tuple[Study, pd.DataFrame]]:
    """Takes out of `waiting` what is complete."""
    for study in [study for study in waiting if made.complete(study.experiment.name)]:
        waiting.remove(study)
        parts = made.keys[study.experiment.name]
        yield study, frame_of(study, {label: _joined(made, keys) for label, keys in parts.items()})


def _joined(made: Plan, keys: Sequence[str]) -> Floats:
    return np.concatenate([made.found[key] for key in keys])


def frame_of(study: Study, curves: Mapping[str, Floats]) -> pd.DataFrame:
    """The regrets of every policy, [run, checkpoint], as a long frame of the columns COLUMNS."""
    require("a frame of regrets", "experiments", "pandas")
    import pandas as pd  # here: half a second that a look at the cache does not need

    experiment, steps = study.experiment, study.checkpoints
    frames = []
    for entry in experiment.entries:
        rows = curves[entry.label]
        columns = {
            "experiment": experiment.name,
            "policy": entry.policy,
            "label": entry.label,
            "rho": entry.rho,
            "run": np.repeat(np.arange(len(rows)), len(steps)),
            "step": np.tile(steps, len(rows)),
            "regret": rows.ravel(),
            "seed": study.seed,
            "version": __version__,
        }
        frames.append(pd.DataFrame(columns, columns=list(COLUMNS)))
    return pd.concat(frames, ignore_index=True)


def _work(job: Job) -> float:
    """Seconds that a job takes, about."""
    task, (_, runs) = job
    return task.seconds(runs)
