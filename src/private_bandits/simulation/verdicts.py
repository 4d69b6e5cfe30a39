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

    def undecided(self, run: Integers, complete: NDArray[np.bool_]) -> Integers:
        """Return the places of the runs that have no verdict yet, of those whose last release holds all its rewards."""
        return np.flatnonzero(complete & (self.found[run, 1] == NOBODY))

    def look(self, evidence: Evidence, run: Integers, time: Integers) -> None:
        """Look at the runs of these numbers, that have no verdict yet. evidence: [arm, run], of these runs."""
        self.note(winners(evidence, np.full(len(run), self.delta)), run, time)

    def note(self, found: Integers, run: Integers, time: Integers) -> None:
        """Note the winners of these runs, or NOBODY."""
        fell = found != NOBODY
        self.found[run[fell]] = np.column_stack([time[fell], found[fell]])


def winners(evidence: Evidence, delta: Floats) -> Integers:
    """Return the winner of each run, or NOBODY. evidence: [arm, run], of arms that all have a release.

    The arm that is closest to the leader, by a rough measure, is looked at first: in most runs it decides.
    """
    arms, runs = evidence.mean.shape
    leader: Integers = evidence.mean.argmax(axis=0)
    if arms == 1 or not runs:
        return leader
    spread = evidence.variance + 0.25 / evidence.rewards
    place = np.arange(runs)
    rough = (evidence.mean[leader, place] - evidence.mean) ** 2 / (spread[leader, place] + spread)
    rough[leader, place] = np.inf
    closest = rough.argmin(axis=0)
    found = np.full(runs, NOBODY)
    left = _winning(evidence, leader, closest, place, delta)
    for arm in range(arms if len(left) else 0):
        to_check = left[(leader[left] != arm) & (closest[left] != arm)]
        won = _winning(evidence, leader[to_check], np.full(len(to_check), arm), to_check, delta[to_check])
        left = np.setdiff1d(left, np.setdiff1d(to_check, won))
    found[left] = leader[left]
    return found


def _winning(evidence: Evidence, leader: Integers, other: Integers, runs: Integers, delta: Floats) -> Integers:
    """Return those of these runs in which it costs too much to believe that the other arm is as good."""
    first, second = evidence.take((leader, runs)), evidence.take((other, runs))
    odds = (len(evidence.mean) - 1) / delta
    likely = np.flatnonzero(~surely_too_little(first, second, odds))
    if not len(likely):
        return likely
    return runs[likely[beats(first.take(likely), second.take(likely), odds[likely])]]


def surely_too_little(first: Evidence, second: Evidence, odds: Floats) -> NDArray[np.bool_]:
    """Return whether a story of how both means are the same costs too little to exclude it: `beats` says no then.

    For means without Laplace noise. At a cost of n kl(y, u) + (y - m)^2/(2v) the rewards of an arm of mean u had the
    mean y, and noise did the rest. Any u and y bound the infimum from above, and no search is needed.
    """
    level = np.log(odds * first.odds * second.odds)
    needed = level + np.log1p(np.maximum(level, 0.0))  # (1 + x) e^-x = 1/odds has a larger root
    spreads = [arm.variance + 0.25 / arm.rewards for arm in (first, second)]
    part = spreads[1] / np.maximum(spreads[0] + spreads[1], 1e-300)
    u = np.clip(second.mean + part * (first.mean - second.mean), 1e-9, 1.0 - 1e-9)
    return np.asarray((_story(first, u) + _story(second, u) < needed) & (first.scale == 0.0) & (second.scale == 0.0))


def _story(arms: Evidence, u: Floats) -> Floats:
    """Return the cost of one story of how an arm whose mean is u seemed as it does."""
    with np.errstate(divide="ignore", invalid="ignore"):
        of_noise = arms.variance / (arms.variance + u * (1.0 - u) / arms.rewards)
        y = np.clip(arms.mean + of_noise * (u - arms.mean), 0.0, 1.0)
        rest = np.where(y == arms.mean, 0.0, (y - arms.mean) ** 2 / (2.0 * arms.variance))
        ones = np.where(y > 0.0, y * np.log(y / u), 0.0)
        zeros = np.where(y < 1.0, (1.0 - y) * np.log((1.0 - y) / (1.0 - u)), 0.0)
        gaussian, found = (arms.mean - u) ** 2 / (2.0 * arms.variance), arms.rewards * (ones + zeros) + rest
        found = np.where(np.isinf(arms.rewards), gaussian, found)
    return np.asarray(np.nan_to_num(found, nan=np.inf))
