"""Verdicts of many simulated runs at once: the same costs as a live verdict's, computed only where they may decide."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from private_bandits.arrays import Floats, Integers
from private_bandits.policies.evidence import Evidence, beats

NOBODY = -1
"""In place of a winner, where there is none yet."""


class FirstVerdict(NamedTuple):
    """The first verdict of a run: after how many decisions, and on which arm."""

    decisions: float
    winner: int


NO_VERDICT = FirstVerdict(math.nan, NOBODY)


@dataclass(frozen=True)
class Verdicts:
    """The first verdicts of all runs of a policy. Wrong ones are on an arm whose mean is below the largest.

    decisions: made when the verdict fell, nan where none did by the horizon. winners: the arm; -1 where none.
    """

    delta: float
    decisions: Floats
    winners: Integers
    wrong: NDArray[np.bool_]

    @classmethod
    def of(cls, delta: float, found: Floats, means: Floats) -> Verdicts:
        """Make them of the columns of `FirstVerdict`."""
        winners = found[:, 1].astype(np.int64)
        return cls(delta, found[:, 0], winners, (winners != NOBODY) & (means[winners] < means.max()))

    def figures(self) -> dict[str, float | None]:
        """Return how often a verdict fell, how often it was wrong, and after how many decisions it fell.

        Shares are of all runs. Numbers of decisions are of those runs that had a verdict by the horizon.
        """
        fell = self.decisions[self.winners != NOBODY]
        shares = {"verdict_share": len(fell) / len(self.winners), "verdict_wrong": float(self.wrong.mean())}
        mean = error = middle = late = None
        if len(fell):
            mean, middle, late = float(fell.mean()), *(float(q) for q in np.quantile(fell, (0.5, 0.95)))
            error = float(fell.std(ddof=1) / math.sqrt(len(fell))) if len(fell) > 1 else None
        times = {"mean": mean, "stderr": error, "median": middle, "p95": late}
        return {"verdict_delta": self.delta, **shares} | {f"decisions_{name}": time for name, time in times.items()}


class Watch:
    """Looks for verdicts in many runs after every release, and notes the first one of each.

    found: the columns of `FirstVerdict`, a row for each run.
    """

    def __init__(self, delta: float, runs: int) -> None:
        self.delta = delta
        self.found = np.tile(np.array(NO_VERDICT), (runs, 1))

    def look(self, evidence: Evidence, run: Integers, time: Integers, complete: NDArray[np.bool_]) -> None:
        """Look at the runs of these numbers. complete: whether the last release of each holds all of its rewards."""
        rows = np.flatnonzero(complete & (self.found[run, 1] == NOBODY))
        found = winners(evidence, rows, np.full(len(rows), self.delta))
        fell = found != NOBODY
        self.found[run[rows[fell]]] = np.column_stack([time[rows[fell]], found[fell]])


def winners(evidence: Evidence, runs: Integers, delta: Floats) -> Integers:
    """Return the winner of each of these runs, or NOBODY. evidence: [arm, run], of arms that all have a release.

    The arm that is closest to the leader, by a rough measure, is looked at first: in most runs it decides.
    """
    arms = len(evidence.mean)
    means = evidence.mean[:, runs]
    leader: Integers = means.argmax(axis=0)
    if arms == 1 or not len(runs):
        return leader
    spread = evidence.variance[:, runs] + 0.25 / evidence.rewards[:, runs]
    place = np.arange(len(runs))
    rough = (means[leader, place] - means) ** 2 / (spread[leader, place] + spread)
    rough[leader, place] = np.inf
    closest = rough.argmin(axis=0)
    found = np.full(len(runs), NOBODY)
    left = np.flatnonzero(_beats(evidence, leader, closest, runs, delta))
    for arm in range(arms):
        to_check = left[(leader[left] != arm) & (closest[left] != arm)]
        others = np.full(len(to_check), arm)
        lost = to_check[~_beats(evidence, leader[to_check], others, runs[to_check], delta[to_check])]
        left = np.setdiff1d(left, lost)
    found[left] = leader[left]
    return found


def _beats(evidence: Evidence, leader: Integers, other: Integers, runs: Integers, delta: Floats) -> NDArray[np.bool_]:
    first, second = evidence.take((leader, runs)), evidence.take((other, runs))
    return beats(first, second, (len(evidence.mean) - 1) / delta)
