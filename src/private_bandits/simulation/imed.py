"""AdaC-IMED: an episode's reward sum is one draw, and all releases of an arm are read with weights from a table.

All runs of all policies advance together, an episode at a time, as for other index policies (finite.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from private_bandits.arrays import Floats, Integers
from private_bandits.environments import FiniteEnvironment
from private_bandits.mechanism.factor import INDEPENDENT
from private_bandits.policies.adac_imed import AdaCIMED
from private_bandits.policies.imed_index import (
    LARGEST_MEAN,
    SAFELY,
    TIE,
    all_discounted,
    bounds_of_costs,
    costs_and_slopes,
)
from private_bandits.progress import Report
from private_bandits.simulation.finite import Runs, curves_of, part_of
from private_bandits.simulation.simulated_noise import release_variance

ROOM = 2**23
"""Sums and noises remembered at once, about: runs beyond them wait for their turn."""


class RememberedReleases(Runs):
    """Policies that read all releases of an arm, however many episodes these hold again.

    The j-th release of an arm is of the same number of rewards in every run, so how it is read is in a table by j.
    """

    policies: Sequence[AdaCIMED]

    def __init__(self, *settings: Any) -> None:
        super().__init__(*settings)
        runs, (total, arms) = len(self.row) // len(self.policies), self.means.shape
        releases = releases_until(self.policies, self.horizon)
        tables = [_Table(policy, releases) for policy in self.policies]
        self.of_sums = np.concatenate([table.of_sums for table in tables])
        self.of_noise = np.concatenate([table.of_noise for table in tables])
        self.lengths = np.concatenate([table.lengths for table in tables])
        self.read = np.concatenate([table.read for table in tables], axis=1)
        self.beta = np.repeat([policy.beta for policy in self.policies], runs)
        # The table of each row begins here. [arm, run]: what is done to all runs at once is fast then.
        self.begin = np.repeat(np.arange(len(tables)) * releases, runs)
        self.means = np.zeros((arms, total))
        self.done = np.zeros((arms, total), dtype=np.int64)
        self.rewards, self.noise, self.logs = (np.ones((arms, total)) for _ in range(3))
        # J of each arm and its slope in q, as they were last computed, for this q; zeros since the arm's last release.
        self.costs, self.slopes, self.at = (np.zeros((arms, total)) for _ in range(3))
        self.sums, self.noises = (np.zeros((arms, total, releases)) for _ in range(2))

    def leave_out_finished(self) -> None:
        """Once they are a quarter of all."""
        left = np.flatnonzero(self.time < self.horizon)
        if 4 * len(left) > 3 * len(self.row):
            return
        for name in ("run", "time", "regret", "beta", "begin"):
            setattr(self, name, getattr(self, name)[left])
        for name in ("means", "done", "rewards", "noise", "logs", "costs", "slopes", "at", "sums", "noises"):
            setattr(self, name, getattr(self, name)[:, left])
        self.row = np.arange(len(left))

    def next_length(self, arm: Integers) -> Integers:
        """From the table."""
        return np.asarray(self.lengths[self.begin + self.done[arm, self.row]])

    def learn(self, arm: Integers, count: Integers, sums: Floats, noise: Floats) -> None:
        """Read all releases of the arm, in reward ranges above the lowest reward."""
        here, number = (arm, self.row), self.done[arm, self.row]
        self.sums[*here, number] = (sums - self.low * count) / self.width
        self.noises[*here, number] = noise / self.width
        place, known = self.begin + number, int(number.max()) + 1
        self.means[here] = np.einsum("ij,ij->i", self.of_sums[place, :known], self.sums[*here, :known])
        self.means[here] += np.einsum("ij,ij->i", self.of_noise[place, :known], self.noises[*here, :known])
        self.rewards[here], self.noise[here], self.logs[here] = self.read[:, place]
        self.costs[here] = self.slopes[here] = 0.0
        self.done[here] += count > 0  # a run that is over stays where it is

    def choose(self) -> Integers:
        """Find the arm of the least index, with J computed only where bounds below it leave the choice open.

        One bound needs no search, and the other is the tangent of what was computed before.
        """
        best = self.means.max(axis=0).clip(0.0, LARGEST_MEAN)
        before = self.costs + self.slopes * (best - self.at)
        bounds = np.maximum(bounds_of_costs(self.means, best, self.rewards, self.noise), before * SAFELY)
        index = all_discounted(bounds) / self.beta + self.logs
        leading = np.where(self.means >= best, self.logs, np.inf).min(axis=0)
        arm, row = np.nonzero((index <= leading + TIE) & (self.means < best))
        here = (arm, row)
        own, slopes = costs_and_slopes(self.means[here], best[row], self.rewards[here], self.noise[here])
        self.costs[here], self.slopes[here], self.at[here] = own, slopes, best[row]
        index[here] = all_discounted(own) / self.beta[row] + self.logs[here]
        return np.asarray((index <= index.min(axis=0) + TIE).argmax(axis=0))


class _Table:
    """How one policy plays and reads an arm, by the number of the release, if all rewards are in time."""

    def __init__(self, policy: AdaCIMED, releases: int) -> None:
        memory = policy.memory
        found = memory.readings(memory.opening, release_variance(policy), releases)
        lengths = np.array(memory.lengths(memory.opening, releases))
        self.lengths = lengths
        self.of_noise = found.weights[:releases, :releases]
        self.of_sums = self.of_noise @ (memory.factor or INDEPENDENT).matrix(releases)
        with np.errstate(divide="ignore"):
            worth = 1.0 / found.spread.rewards[:releases]
        self.read = np.array([worth, found.spread.noise[:releases], np.log(np.cumsum(lengths))])


def releases_until(policies: Sequence[AdaCIMED], horizon: int) -> int:
    """Return the number of releases that no arm exceeds."""
    most = 1
    for policy in policies:
        total, releases = policy.memory.opening, 1
        while total < horizon:
            total, releases = total + policy.memory.length(total), releases + 1
        most = max(most, releases)
    return most + 1


def regret_curves(
    policies: Sequence[AdaCIMED],
    environment: FiniteEnvironment,
    horizon: int,
    runs: int,
    checkpoints: Integers,
    generators: Sequence[np.random.Generator],
    report: Report,
) -> Floats:
    """Regret of every policy and run at the checkpoints: an array [policy, run, checkpoint]."""
    of_a_run = 2 * len(policies) * len(environment.means) * releases_until(policies, horizon)
    together = max(1, ROOM // of_a_run)
    found = []
    for done in range(0, runs, together):
        size = min(together, runs - done)
        state = RememberedReleases(policies, environment, horizon, size, generators)
        found.append(curves_of(state, checkpoints, partial(part_of, report, done / runs, size / runs)))
    return np.concatenate(found, axis=1)
