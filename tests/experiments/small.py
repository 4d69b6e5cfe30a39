"""Small experiments for the tests of the runner."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from private_bandits.experiments.run.cache import Cache
from private_bandits.experiments.run.data import EXPERIMENTS, Experiment, entries
from private_bandits.experiments.run.runner import Plan, plan
from private_bandits.simulation.workers import Finished, Job, Shares, compute

FINITE = EXPERIMENTS["finite-strict"].resized(3000, 4)
LINEAR = EXPERIMENTS["linear"].resized(3000, 3)
PLACEMENT = EXPERIMENTS["noise-placement"].resized(3000, 3)


def contextual(rhos: Sequence[float] = (0.1, math.inf)) -> Experiment:
    """Two blocks of one run each: half of what one block may hold does not fit twice."""
    made = EXPERIMENTS["contextual"].resized(600_000, 2)
    return Experiment(**{**vars(made), "entries": entries(["adac-oful"], rhos)})


def planned(experiments: Sequence[Experiment], folder: Path, seed: int = 0) -> tuple[Plan, Cache]:
    cache = Cache(folder)
    return plan(experiments, seed, cache), cache


def here(jobs: Sequence[Job], report: Shares) -> Finished:
    return compute(jobs, 1, report)
