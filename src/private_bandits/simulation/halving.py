"""AdaC-Halving: what is released of arms is in remembering.py; here are the rounds of all runs at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from private_bandits.arrays import Floats, Integers
from private_bandits.environments import FiniteEnvironment
from private_bandits.policies.adac_halving import AdaCHalving
from private_bandits.progress import Report
from private_bandits.simulation.finite import curves_of
from private_bandits.simulation.remembering import RememberedReleases


class HalvingRuns(RememberedReleases):
    """Runs that play every active arm once a round, and go on with the better half of them.

    round: its number in each run. active: whether an arm is in it. fresh: the mean of the arm's release in each round
    alone, [arm, run, round].
    """

    policies: Sequence[AdaCHalving]
    by_run: ClassVar[tuple[str, ...]] = ("round",)
    by_arm_and_run: ClassVar[tuple[str, ...]] = ("active", "fresh")

    def __init__(self, *settings: Any) -> None:
        super().__init__(*settings)
        self.round = np.zeros(len(self.row), dtype=np.int64)
        self.active = np.ones(self.means.shape, dtype=bool)
        self.kept = [(arms + 1) // 2 for arms, _ in self.policies[0].rounds]  # the same for every policy
        self.fresh = np.zeros((*self.means.shape, len(self.kept) + 1))  # the last one: of all releases that follow

    def learn(self, rows: Integers, arm: Integers, count: Integers, sums: Floats, noise: Floats) -> None:
        """Keep the mean of the release by itself too."""
        number = np.minimum(self.done[arm, rows], len(self.kept))
        super().learn(rows, arm, count, sums, noise)
        self.fresh[arm, rows, number] = (sums + noise) / np.maximum(count, 1)

    def choose(self) -> Integers:
        """Return the first active arm that is not released in this round; where all are, the next round begins."""
        self.end_rounds()
        return np.asarray(self.missing().argmax(axis=0))

    def missing(self) -> NDArray[np.bool_]:
        """Say which active arms are not released in this round, [arm, run]; at the end, the one that is left."""
        ended = self.round == len(self.kept)
        return np.asarray(self.active & ((self.done <= self.round) | ended))

    def end_rounds(self) -> None:
        """Where all active arms are released, keep the better half of them."""
        for number, kept in enumerate(self.kept):
            over = np.flatnonzero((self.round == number) & (~self.active | (self.done > number)).all(axis=0))
            ranks = np.where(self.active[:, over], -self.fresh[:, over, number], np.inf).argsort(axis=0, kind="stable")
            self.active[:, over] = False
            self.active[ranks[:kept], over] = True
            self.round[over] += 1


def regret_curves(
    policies: Sequence[AdaCHalving],
    environment: FiniteEnvironment,
    horizon: int,
    runs: int,
    checkpoints: Integers,
    generators: Sequence[np.random.Generator],
    report: Report,
) -> Floats:
    """Regret of every policy and run at the checkpoints: an array [policy, run, checkpoint]."""
    return curves_of(HalvingRuns(policies, environment, horizon, runs, generators), checkpoints, report)
