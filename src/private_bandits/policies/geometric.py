"""Episodes that grow by a factor, releases that hold earlier ones again, and how all of them are read together.

An arm's first episode has `opening` rewards. Each later one has about growth - 1 times as many as were released before.
Release number l of an arm holds its earlier episodes again, with geometric multipliers:

    y_l = x_l + r x_(l-1) + r^2 x_(l-2) + ... + z_l        r = growth^-DECAY, in whole multiples of 1/unit, cut at CUT

The mean of all rewards is then read from y_1, ..., y_l with the weights that have the least variance, for the
multipliers as they were rounded and cut (release_memory.py). All counts, multipliers and weights are known before the
first reward: they follow from the budget, the growth and the length of the log that an arm starts from.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, Protocol

import numpy as np

from private_bandits.arrays import Floats
from private_bandits.budget import Budget
from private_bandits.mechanism.factor import INDEPENDENT, UNIT, Factor
from private_bandits.policies.release_memory import CombinationWeights, MeanError, combination_weights

OPENING = 7.5
"""Rewards in an arm's first episode, for a noise of standard deviation one: 5.3/sqrt(rho) for zCDP. Noise then moves
their mean by a fifth of the reward range. Chosen by the study in benchmarks/imed.py."""
LONGEST_OPENING = 2**30
DECAY = 1.5
"""With 1, noise would be least after very many releases, and with 1.5 it is less by a quarter after the first ones, as
an opening is longer than the episodes that would have led up to it. 4% more noise in the end is the price."""
CUT = 0.01
"""Multipliers below this are left out."""
FAR, MOSTLY_NOISE = 30.0, 1e9
"""By how much rewards have grown, and how large noise is, where plans for people are compared."""
LEAST_GROWTH, MOST_GROWTH = 1.05, 4.0
_BLOCK = 32


@lru_cache(maxsize=64)
def geometric_factor(growth: float, decay: float = DECAY) -> Factor:
    """Return the multipliers of releases whose episodes grow by `growth`.

    >>> geometric_factor(2.0)
    Factor(multipliers=(256, 91, 32, 11, 4), unit=256, cap=None)
    """
    ratio = growth**-decay
    taps = math.floor(math.log(CUT) / math.log(ratio)) + 1
    return Factor(tuple(max(1, round(UNIT * ratio**k)) for k in range(taps)), UNIT)


class Readings(NamedTuple):
    """How the first j releases of an arm are read, for every j: row j - 1.

    sizes: the sum over rewards of the size of their weight: one, unless a weight is negative.
    """

    combination: CombinationWeights
    sizes: Floats

    @property
    def weights(self) -> Floats:
        """Of each release, in the mean."""
        return self.combination.weights

    @property
    def spread(self) -> MeanError:
        """How far that mean strays, in units of the reward range."""
        return self.combination.spread


@dataclass(frozen=True)
class GeometricMemory:
    """The plan of an arm's releases: how long episodes are, what releases hold again, and how they are read.

    opening: rewards in the first episode. growth: by how much the released rewards grow with each release. factor: the
    multipliers of earlier episodes; None without noise, where there is nothing to gain.
    """

    growth: float
    opening: int
    factor: Factor | None

    @classmethod
    def for_budget(
        cls, budget: Budget, growth: float, opening: float = OPENING, decay: float = DECAY
    ) -> GeometricMemory:
        """Return the plan that keeps a budget: the less noise, the shorter the first episode.

        >>> from private_bandits import zCDP
        >>> GeometricMemory.for_budget(zCDP(0.01), 1.25).opening
        53
        """
        b = budget.variance_factor
        first = max(1, min(LONGEST_OPENING, round(opening * math.sqrt(b))))
        return cls(growth, first, geometric_factor(growth, decay) if b else None)

    def noise_for_people(self, rewards: int) -> float:
        """Return the variance of the noise in a mean, times its rewards squared, for people with so many rewards each.

        It is for one reward of a person in an episode at most, in units of the noise for one reward alone, and for
        means that are mostly noise, after the rewards have grown by `FAR`.
        """
        releases = 1 + math.ceil(math.log(FAR) / math.log(self.growth))
        found = self.readings(self.opening, MOSTLY_NOISE, releases).spread.noise[releases - 1] / MOSTLY_NOISE
        cost = (self.factor or INDEPENDENT).spread_cost(rewards)
        return float(cost) * float(found) * sum(self.lengths(self.opening, releases)) ** 2

    def length(self, released: int) -> int:
        """Return the rewards in the next release of an arm of which so many were released.

        Where a log was shorter than the first episode, the next release makes up for what is missing.
        """
        if released < self.opening:
            return self.opening - released
        return max(1, round((self.growth - 1.0) * released))

    def lengths(self, first: int, releases: int) -> tuple[int, ...]:
        """Return the new rewards of each of an arm's releases, if its first one has so many."""
        found, total = [first], first
        while len(found) < releases:
            found.append(self.length(total))
            total += found[-1]
        return tuple(found)

    def readings(self, first: int, noise: float, releases: int) -> Readings:
        """Return how up to `releases` releases, or more, are read.

        first: rewards in the first of them. noise: variance of the noise of each, in squared reward ranges.
        """
        return readings_of(self, first, noise, releases)


class PlannedReleases(Protocol):
    """How long the episodes of an arm are, and which of them releases hold again."""

    @property
    def factor(self) -> Factor | None:
        """The multipliers of earlier episodes."""

    def lengths(self, first: int, releases: int) -> tuple[int, ...]:
        """Return the new rewards of each of an arm's releases, if its first one has so many."""


def readings_of(plan: PlannedReleases, first: int, noise: float, releases: int) -> Readings:
    """Return how up to `releases` releases of a plan, or more, are read."""
    size = _BLOCK
    while size < releases:
        size *= 2
    return _readings(plan.lengths(first, size), noise, plan.factor)


@lru_cache(maxsize=64)
def _readings(lengths: tuple[int, ...], noise: float, factor: Factor | None) -> Readings:
    found = combination_weights(lengths, (noise,) * len(lengths), factor)
    of_rewards = found.weights if factor is None else found.weights @ factor.matrix(len(lengths))
    return Readings(found, np.abs(of_rewards) @ np.array(lengths, float))
