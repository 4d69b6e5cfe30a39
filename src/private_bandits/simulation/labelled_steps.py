"""Contextual policies on a labelled table, one step at a time. All policies of a run see the same rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from private_bandits.arrays import Integers
from private_bandits.labelled import Labelled
from private_bandits.policies import Policy
from private_bandits.simulation import context_runs
from private_bandits.simulation.context_runs import Stretch, refuse_unknown_noise
from private_bandits.simulation.seeds import Seeds

ROOM = 2**20
"""Numbers in the actions of a stretch, about."""
LONGEST = 2**12
"""Steps in a stretch, at most."""


def drawn_rows(environment: Labelled, horizon: int, seeds: Seeds, run: int) -> Integers:
    """Return the rows of the table that all policies of a run see."""
    return environment.draw_rows(np.random.default_rng(seeds.contexts(run)), horizon)


def _stretches(environment: Labelled, horizon: int, seeds: Seeds, run: int) -> Iterator[Stretch]:
    """The actions of the rows of a run, and 1 for the arm that is right, some thousand steps at a time."""
    rows = drawn_rows(environment, horizon, seeds, run)
    size = min(LONGEST, max(1, ROOM // (environment.arms * environment.dimension)))
    for start in range(0, horizon, size):
        seen, places = np.unique(rows[start : start + size], return_inverse=True)
        tables = np.array([environment.actions(row) for row in seen])
        yield Stretch(tables[places], np.eye(environment.arms)[environment.answers[seen[places]]])


play_run = partial(context_runs.play_one_by_one, stretches=_stretches)
regret_curves = partial(context_runs.regret_curves, play=play_run)


def prepare(policies: Sequence[Policy[Any]], environment: Labelled) -> None:
    """Refuse what this engine does not know."""
    refuse_unknown_noise(policies)
