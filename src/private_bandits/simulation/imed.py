"""AdaC-IMED: what is released of arms is in remembering.py; here is the choice among them, for all runs at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from private_bandits.arrays import Floats, Integers
from private_bandits.environments import FiniteEnvironment
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
from private_bandits.simulation.finite import curves_of
from private_bandits.simulation.remembering import RememberedReleases


class ImedRuns(RememberedReleases):
    """Runs that play the arm of the least index."""

    policies: Sequence[AdaCIMED]
    by_run: ClassVar[tuple[str, ...]] = ("beta",)
    by_arm_and_run: ClassVar[tuple[str, ...]] = ("costs", "slopes", "at")

    def __init__(self, *settings: Any) -> None:
        super().__init__(*settings)
        self.beta = np.repeat([policy.beta for policy in self.policies], len(self.row) // len(self.policies))
        # J of each arm and its slope in q, as they were last computed, for this q; zeros since the arm's last release.
        self.costs, self.slopes, self.at = (np.zeros(self.means.shape) for _ in range(3))

    def learn(self, rows: Integers, arm: Integers, count: Integers, sums: Floats, noise: Floats) -> None:
        """Forget the arm's cost as well."""
        super().learn(rows, arm, count, sums, noise)
        self.costs[arm, rows] = self.slopes[arm, rows] = 0.0

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
    return curves_of(ImedRuns(policies, environment, horizon, runs, generators), checkpoints, report)
