"""Policies that read all releases of an arm together: an episode's reward sum is one draw, and weights are in a table.

All runs of all policies advance together, an episode at a time, as for other index policies (finite.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from private_bandits.arrays import Floats, Integers
from private_bandits.mechanism.factor import INDEPENDENT, Factor
from private_bandits.policies.evidence import Evidence
from private_bandits.policies.remembering import RememberingPolicy
from private_bandits.simulation.finite import Runs
from private_bandits.simulation.simulated_noise import release_variance


class RememberedReleases(Runs):
    """Policies that read all releases of an arm, however many episodes these hold again.

    The j-th release of an arm is of the same number of rewards in every run, so how it is read is in a table by j.
    """

    policies: Sequence[RememberingPolicy[Any]]

    by_run: ClassVar[tuple[str, ...]] = ()
    by_arm_and_run: ClassVar[tuple[str, ...]] = ()
    """Arrays that a subclass has besides, [run] and [arm, run]."""

    def __init__(self, *settings: Any) -> None:
        super().__init__(*settings)
        runs, (total, arms) = len(self.row) // len(self.policies), self.means.shape
        taps = max(len(_factor(policy).multipliers) for policy in self.policies)
        tables = [_Table(policy, self.horizon, taps - 1) for policy in self.policies]
        self.lengths = np.concatenate([table.lengths for table in tables])
        self.read = np.concatenate([table.read for table in tables], axis=1)
        self.carried = np.concatenate([table.carried for table in tables])
        self.again = np.repeat([table.again for table in tables], runs, axis=0)
        # The table of each row begins here. [arm, run]: what is done to all runs at once is fast then.
        ends = np.cumsum([len(table.lengths) for table in tables])
        self.begin = np.repeat([0, *ends[:-1]], runs)
        self.means = np.zeros((arms, total))
        self.done = np.zeros((arms, total), dtype=np.int64)
        self.rewards, self.noise, self.logs, self.largest = (np.ones((arms, total)) for _ in range(4))
        # What the next releases hold of the rewards so far, less what is not new in it.
        self.before = np.zeros((arms, total, taps - 1))

    def leave_out_finished(self) -> None:
        """Once they are a quarter of all."""
        left = np.flatnonzero(self.time < self.horizon)
        if 4 * len(left) <= 3 * len(self.row):
            self.keep(left)

    def keep(self, left: Integers) -> None:
        """Leave out all runs but these."""
        for name in ("run", "time", "complete", "regret", "begin", "again", *self.by_run):
            setattr(self, name, getattr(self, name)[left])
        for name in ("means", "done", "rewards", "noise", "logs", "largest", "before", *self.by_arm_and_run):
            setattr(self, name, getattr(self, name)[:, left])
        self.row = np.arange(len(left))

    def evidence(self, rows: Integers) -> Evidence:
        """What the releases of these runs say of each arm, [arm, run]."""
        means, largest, number = self.means[:, rows], self.largest[:, rows], np.maximum(self.done[:, rows], 1)
        nothing, odds = np.zeros_like(means), number * (number + 1.0)
        with np.errstate(divide="ignore"):
            rewards = np.where(largest > 0.0, 1.0 / largest, np.inf)
        return Evidence(means, nothing, rewards, self.noise[:, rows], odds, nothing, nothing, nothing + 1.0)

    def next_length(self, rows: Integers, arm: Integers) -> Integers:
        """From the table."""
        return np.asarray(self.lengths[self.begin[rows] + self.done[arm, rows]])

    def learn(self, rows: Integers, arm: Integers, count: Integers, sums: Floats, noise: Floats) -> None:
        """What is new in the release moves the arm's mean, which is in reward ranges above the lowest reward."""
        here = (arm, rows)
        place = self.begin[rows] + self.done[here]
        gain, slope, self.rewards[here], self.noise[here], self.logs[here], self.largest[here] = self.read[:, place]
        sums, before, mean = (sums - self.low * count) / self.width, self.before[here], self.means[here]
        new = sums + noise / self.width + (before[:, 0] if before.size else 0.0)
        self.means[here] = mean + gain * (new - slope * mean)
        later = self.again[rows] * sums[:, None] - self.carried[place] * new[:, None]
        later[:, :-1] += before[:, 1:]
        self.before[here] = later
        self.done[here] += count > 0  # a run that is over stays where it is


class _Table:
    """How one policy plays and reads an arm, by the number of the release, if all rewards are in time.

    read: gain and slope of what is new in the release; then of the mean that it leads to the rewards that it is worth,
    its noise, the log of the rewards in it, and the largest weight of one. again, carried: of the release, in each of
    those that follow.
    """

    def __init__(self, policy: RememberingPolicy[Any], horizon: int, later: int) -> None:
        memory, total, releases = policy.memory, 0, 1
        first = memory.length(0)
        while total < horizon:  # one more than an arm can have: the place of a run that is over
            total, releases = total + memory.length(total), releases + 1
        found = memory.readings(first, release_variance(policy), releases + later).combination
        self.lengths = np.array(memory.lengths(first, releases))
        with np.errstate(divide="ignore"):
            worth = 1.0 / found.spread.rewards
        logs = np.log(np.cumsum(self.lengths))
        self.read = np.array(
            [part[:releases] for part in (found.gain, found.slope, worth, found.spread.noise)]
            + [logs, found.spread.weight[:releases]]
        )
        self.again = _factor(policy).matrix(later + 1)[1:, 0]
        self.carried = np.array([found.carried[j + 1 : j + 1 + later, j] for j in range(releases)])


def _factor(policy: RememberingPolicy[Any]) -> Factor:
    return policy.factor or INDEPENDENT
