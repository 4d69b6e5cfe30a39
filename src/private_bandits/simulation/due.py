"""When the rewards of many simulated runs are due: the decisions of each run, in the order in which they are told."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from private_bandits.arrays import Integers
from private_bandits.simulation.arrivals import Arrivals

CHUNK = 256
"""Decisions of each run whose arrivals are drawn and put in order together."""


class Told(NamedTuple):
    """Decisions whose rewards are due, at most one of each run: the run, the arm, and whether the reward is missing."""

    row: Integers
    arm: Integers
    missing: NDArray[np.bool_]


class DueDecisions:
    """Knows which decisions are due after each decision. Rows are runs.

    sizes: how many rows draw from each generator. horizon: what is due after so many decisions is forgotten.
    """

    def __init__(
        self, arrivals: Arrivals, generators: Sequence[np.random.Generator], sizes: Sequence[int], horizon: float
    ) -> None:
        self.arrivals = arrivals
        self.horizon = horizon
        self.generators = generators
        self.sizes = list(sizes)
        nothing = np.zeros(0, dtype=np.int64)
        # Open decisions of earlier chunks in the order of their decisions: run, arm, step when due, whether missing.
        self.row, self.arm, self.due, self.missing = nothing, nothing, nothing, nothing.astype(bool)
        self.played = np.zeros((CHUNK, sum(sizes)), dtype=np.int64)

    def steps(self, first: int, last: int) -> Iterator[int]:
        """Count the decisions up to the last one, at most `CHUNK` of them. Whoever counts fills `played`."""
        self.first, rows, steps = first, sum(self.sizes), last - first
        drawn = [self.arrivals.arrays(g, steps * n) for g, n in zip(self.generators, self.sizes, strict=True)]
        delays, missing = (
            np.concatenate([part[i].reshape(steps, -1) for part in drawn], axis=1).ravel() for i in (0, 1)
        )
        step = np.repeat(np.arange(first, last), rows)
        self.row = np.concatenate([self.row, np.tile(np.arange(rows), steps)])
        self.arm = np.concatenate([self.arm, first - 1 - step])  # below zero: its place in `played`
        self.due = np.concatenate([self.due, step + delays])
        self.missing = np.concatenate([self.missing, missing])
        self._order(np.flatnonzero(self.due < last), self.due - first)
        yield from range(first, last)
        left = np.flatnonzero((self.due >= last) & (self.due < self.horizon))
        self.row, self.due, self.missing = self.row[left], self.due[left], self.missing[left]
        self.arm = self._arms(self.row, self.arm[left])

    def _arms(self, row: Integers, arm: Integers) -> Integers:
        return np.asarray(np.where(arm < 0, self.played[np.minimum(-1 - arm, CHUNK - 1), row], arm))

    def _order(self, places: Integers, time: Integers) -> None:
        """Put these decisions in an order of rounds: at each time, each round has one decision of each row at most."""
        rows, time = sum(self.sizes), time[places]
        order = (time * rows + self.row[places]).argsort(kind="stable")
        places, time, row = places[order], time[order], self.row[places][order]
        begins = np.ones(len(places), dtype=bool)
        begins[1:] = (time[1:] != time[:-1]) | (row[1:] != row[:-1])
        number = np.arange(len(places))
        rank = number - np.maximum.accumulate(np.where(begins, number, 0))
        self.rounds = int(rank.max(initial=-1)) + 1
        key = time * self.rounds + rank
        order = key.argsort(kind="stable")
        self.places = places[order]
        last = int(time.max(initial=-1)) + 1
        self.ends = np.searchsorted(key[order], np.arange(last * self.rounds + 1))

    def told(self, step: int) -> Iterator[Told]:
        """Go through what is due after this decision: all first decisions of the runs, then all second ones."""
        time = step - self.first
        for round_ in range(time * self.rounds, min((time + 1) * self.rounds, len(self.ends) - 1)):
            places = self.places[self.ends[round_] : self.ends[round_ + 1]]
            if not len(places):
                return
            row = self.row[places]
            yield Told(row, self._arms(row, self.arm[places]), self.missing[places])

    def outstanding(self) -> Iterator[Told]:
        """Go through all that is open after the last decision that was counted, when nobody decides any more."""
        self.first, order = 0, self.due.argsort(kind="stable")
        self.row, self.arm, self.missing = self.row[order], self.arm[order], self.missing[order]
        self._order(np.arange(len(order)), np.zeros(len(order), dtype=np.int64))
        yield from self.told(0)

    def keep(self, left: Integers, sizes: Sequence[int]) -> None:
        """Leave out all rows but these, between two chunks."""
        place = np.full(sum(self.sizes), -1)
        place[left] = np.arange(len(left))
        kept = np.flatnonzero(place[self.row] >= 0)
        self.row, self.arm = place[self.row[kept]], self.arm[kept]
        self.due, self.missing = self.due[kept], self.missing[kept]
        self.sizes, self.played = list(sizes), self.played[:, left]
