"""Finite arms with a tree each: the choice may change at every step, so every step is played, compiled.

What is random is drawn ahead, arm by arm, for any environment: the next rewards of an arm, and the noises of the nodes
that they will release. The compiled part only walks through them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from private_bandits.arrays import Floats, Integers
from private_bandits.environments import FiniteEnvironment
from private_bandits.policies.tree_ucb import TreeUCB
from private_bandits.progress import Report
from private_bandits.simulation.compiled import compiled
from private_bandits.simulation.simulated_noise import noise_draws

AHEAD = 2**12
"""Rewards of an arm that are drawn at once, at most."""


class Forest(NamedTuple):
    """The trees of all arms of one run, as the compiled code changes them.

    rewards, noises_ahead: those of each arm that were drawn, of which `used` are in its tree and `drawn` are there.
    counts, totals: of all rewards of an arm. fixed: what its index has beside sqrt(2 log t) times `spreads`.
    upper[k, z]: noise of the nodes of z levels and more in the newest tree of arm k; upper[k, 0] is all of it. places:
    leaves in that tree. before, noises: noise of the trees that were complete before it, and how many they were.
    """

    rewards: Floats
    noises_ahead: Floats
    used: Integers
    drawn: Integers
    counts: Integers
    places: Integers
    totals: Floats
    upper: Floats
    before: Floats
    noises: Integers
    fixed: Floats
    spreads: Floats


def plant(arms: int, levels: int) -> Forest:
    """No leaf yet; an arm without any is played first."""
    return Forest(
        rewards=np.empty((arms, AHEAD)),
        noises_ahead=np.empty((arms, AHEAD)),
        used=np.zeros(arms, np.int64),
        drawn=np.zeros(arms, np.int64),
        counts=np.zeros(arms, np.int64),
        places=np.zeros(arms, np.int64),
        totals=np.zeros(arms),
        upper=np.zeros((arms, levels + 1)),
        before=np.zeros(arms),
        noises=np.zeros(arms, np.int64),
        fixed=np.full(arms, np.inf),
        spreads=np.zeros(arms),
    )


@compiled
def prefix_noise(upper: Floats, place: int, noise: float) -> float:
    """Noise of the first `place` leaves of a tree, once its last one has released a node with this noise."""
    level = 0
    while not (place >> level) & 1:
        level += 1
    total: float = upper[level + 1] + noise
    for z in range(level + 1):
        upper[z] = total
    return total


@compiled
def grow(f: Forest, k: int, width: float, half_widths: Floats) -> None:
    """Arm k has one reward more. reaches[x]: of x noises."""
    levels = f.upper.shape[1] - 1
    f.totals[k] += f.rewards[k, f.used[k]]
    f.counts[k] += 1
    f.places[k] += 1
    noise = f.before[k] + prefix_noise(f.upper[k], f.places[k], f.noises_ahead[k, f.used[k]])
    f.used[k] += 1
    ones, place = f.noises[k], f.places[k]
    while place:
        ones += 1
        place &= place - 1
    n = f.counts[k]
    f.fixed[k] = (f.totals[k] + noise + width * half_widths[ones]) / n
    f.spreads[k] = width / np.sqrt(n)
    if f.places[k] == (1 << levels) - 1:
        f.before[k], f.noises[k], f.places[k] = noise, ones, 0
        f.upper[k] = 0.0


@compiled
def walk(f: Forest, times: Integers, regret: Floats, gaps: Floats, stop: int, width: float, half_widths: Floats) -> int:
    """Play on to step `stop`, or until rewards of an arm have to be drawn: that arm, or -1."""
    while times[0] < stop:
        optimism = np.sqrt(2 * np.log(times[0] + 1.0))
        best, largest = 0, -np.inf
        for k in range(len(gaps)):
            index = f.fixed[k] + optimism * f.spreads[k]
            if index > largest:
                best, largest = k, index
        if f.used[best] == f.drawn[best]:
            return best
        grow(f, best, width, half_widths)
        times[0] += 1
        regret[0] += gaps[best]
    return -1


@lru_cache(maxsize=16)
def _reaches(policy: TreeUCB, most: int) -> Floats:
    """Of 0, 1, ..., most noises; the same for all runs."""
    return np.array([policy.half_width(noises) for noises in range(most + 1)])


class TreeRun:
    """One run of a policy."""

    def __init__(
        self, policy: TreeUCB, environment: FiniteEnvironment, horizon: int, generator: np.random.Generator
    ) -> None:
        low, high = environment.reward_range
        self.policy, self.environment, self.generator = policy, environment, generator
        self.width = high - low
        self.gaps = environment.means.max() - environment.means
        self.forest = plant(len(self.gaps), policy.tree_levels)
        self.time, self.regret = np.zeros(1, np.int64), np.zeros(1)
        trees = 1 + horizon // (2**policy.tree_levels - 1)
        self.half_widths = _reaches(policy, policy.tree_levels * trees)

    def play(self, stop: int) -> float:
        """On to step `stop`; the regret then."""
        while True:
            arm = walk(self.forest, self.time, self.regret, self.gaps, stop, self.width, self.half_widths)
            if arm < 0:
                return float(self.regret[0])
            self._draw(arm)

    def _draw(self, arm: int) -> None:
        """As many rewards of the arm as it had before, so that few are drawn in vain, with the noise of their nodes."""
        forest = self.forest
        size = min(AHEAD, max(16, int(forest.counts[arm])))
        arms = np.full(size, arm)
        forest.rewards[arm, :size] = self.environment.reward_sums(self.generator, arms, np.ones(size, np.int64))
        forest.noises_ahead[arm, :size] = noise_draws(self.policy.node_budget, self.width, self.generator, size)
        forest.used[arm], forest.drawn[arm] = 0, size


def prepare(policies: Sequence[TreeUCB], environment: FiniteEnvironment) -> None:
    """Compile."""
    TreeRun(policies[0], environment, 1, np.random.default_rng(0)).play(1)


def regret_curves(
    policies: Sequence[TreeUCB],
    environment: FiniteEnvironment,
    horizon: int,
    runs: int,
    checkpoints: Integers,
    generators: Sequence[np.random.Generator],
    report: Report,
) -> Floats:
    """Regret of every policy and run at the checkpoints: an array [policy, run, checkpoint]."""
    curves = np.empty((len(policies), runs, len(checkpoints)))
    for i, (policy, generator) in enumerate(zip(policies, generators, strict=True)):
        for run in range(runs):
            state = TreeRun(policy, environment, horizon, generator)
            curves[i, run] = [state.play(int(stop)) for stop in checkpoints]
            report((i * runs + run + 1) / (len(policies) * runs))
    return curves
