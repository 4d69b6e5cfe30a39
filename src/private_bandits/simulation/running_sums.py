"""Finite arms with running sums in geometric batches: the sum of a batch is one draw.

Batch l of an arm is as long in every run, so lengths are in a table. All runs of all policies advance together, a batch
at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from private_bandits.arrays import Floats, Integers
from private_bandits.environments import FiniteEnvironment
from private_bandits.policies.running_sum import RunningSumPolicy, batch_ends, clipped_means
from private_bandits.progress import Report
from private_bandits.simulation.finite import Runs, curves_of


class RunningSums(Runs):
    """Policies whose index is of all rewards of an arm, the noises of all of its batches included."""

    def __init__(self, *settings: Any) -> None:
        super().__init__(*settings)
        self.counts = np.zeros(self.means.shape, dtype=np.int64)
        self.batches = np.zeros(self.means.shape, dtype=np.int64)
        runs = len(self.row) // len(self.policies)
        self.policy = np.repeat(np.arange(len(self.policies)), runs)
        tables = [np.diff(batch_ends(policy.alpha), prepend=0) for policy in self.policies]
        self.lengths = np.zeros((len(tables), max(map(len, tables))), dtype=np.int64)
        for row, table in zip(self.lengths, tables, strict=True):
            row[: len(table)] = np.minimum(table, self.horizon)

    def leave_out_finished(self) -> None:
        """Never: they cost little here."""

    def next_length(self, rows: Integers, arm: Integers) -> Integers:
        """From the table."""
        found: Integers = self.lengths[self.policy[rows], self.batches[rows, arm]]
        return found

    def learn(self, rows: Integers, arm: Integers, count: Integers, sums: Floats, noise: Floats) -> None:
        """Add the batch to those before it, by the operations of `RunningSumPolicy.take`."""
        here = rows, arm
        self.counts[here] += count
        self.batches[here] += count > 0  # of runs that are over nobody reads what is there
        mean = self.means[here]
        self.means[here] = mean + (sums + noise - count * mean) / np.maximum(self.counts[here], 1)

    def choose(self) -> Integers:
        """By each policy's own index."""
        chosen = np.empty(len(self.row), dtype=np.int64)
        means, counts = clipped_means(self.means, self.low, self.width), np.maximum(self.counts, 1).astype(float)
        for policy, group in zip(self.policies, self.groups, strict=True):
            step = (self.time[group] + 1)[:, None]
            chosen[group] = policy.checked_index(means[group], counts[group], step, 1.0).argmax(axis=1)
        return chosen


def regret_curves(
    policies: Sequence[RunningSumPolicy],
    environment: FiniteEnvironment,
    horizon: int,
    runs: int,
    checkpoints: Integers,
    generators: Sequence[np.random.Generator],
    report: Report,
) -> Floats:
    """Regret of every policy and run at the checkpoints: an array [policy, run, checkpoint]."""
    return curves_of(RunningSums(policies, environment, horizon, runs, generators), checkpoints, report)
