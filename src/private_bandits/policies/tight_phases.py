"""Short phases: what the variant "tight" of AdaC-GOPE plays, and how it compares actions (docs/guarantees.md).

The error of an estimate is subgaussian, and so is the difference of two, with the variances of rewards and noise added.
A best action is dropped only if another one seems better by more than the width of these two. That is one event for
each other action, on one side: a union over the actions left, whichever of them is best.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from private_bandits.arrays import Floats
from private_bandits.design.approximate import rough_design
from private_bandits.design.optimal import Design
from private_bandits.policies.fit import Fit

LEAD = 3.0
"""Plays of the best action so far, for each play of the design: it costs least, and half of a comparison is with it."""

ROUGH = 0.1
"""Tolerance of the designs, at least: widths are those reached, and better designs do not show in the regret."""

ROUNDING = 1e-9
"""Of the reward range: equal actions, whose width together is zero, differ in the last digits of their means."""

ENTRIES = 2**22
"""Distances that are looked at together."""


def quick_design(vectors: Floats, tol: float) -> Design:
    """A design as good as regret needs."""
    return rough_design(vectors, max(tol, ROUGH))


@dataclass(frozen=True, eq=False)
class Allocation:
    """What a phase plays, in which shares, and what least squares then knows of the active actions, at c = 1."""

    shares: dict[int, float]
    """Plays of each action for one of the design, in order."""
    fit: Fit
    vectors: Floats
    """The active actions."""

    @cached_property
    def condition(self) -> float:
        """Of what is played."""
        return float(np.linalg.cond(self.fit.r))

    @cached_property
    def largest(self) -> float:
        """The largest ||a||^2 in V^-1 of an action that is played: their whitened rows are those of Q over the root."""
        return float(((self.fit.q / self.fit.roots[:, None]) ** 2).sum(axis=1).max())

    @cached_property
    def apart(self) -> float:
        """The largest ||a - a'||^2 in V^-1 of two active actions."""
        return float(farthest(self.fit.whitened(self.vectors)))


def pair_log_inv_failure(phase: int, actions: int, delta: float) -> float:
    """log((n - 1) l(l+1)/delta): what the best of n actions may lose against any other, in all phases together."""
    return math.log(max(1, actions - 1) * phase * (phase + 1) / delta)


def shortest_length(log_inv_failure: Any, beta: float, apart: Any, largest: Any, variance_factor: float) -> Any:
    """The least c for which no two of the actions may seem 2 beta farther apart than they are, for rewards in [-1, 1].

    apart: the largest ||a - a'||^2 in V^-1 of two actions, largest: the largest ||a||^2 of a played one, both at c = 1.
    With c times the plays the difference of two has a variance of apart/c for rewards, and of 4 b largest/c times that
    for noise (`between`), so that

        2 log_inv_failure (apart/c + 4 b largest apart/c^2) = (2 beta)^2

    >>> round(float(shortest_length(2.0, beta=0.5, apart=4.0, largest=2.0, variance_factor=0.0)), 12)
    16.0
    """
    rewards = log_inv_failure * apart / (2 * beta**2)
    return (rewards + np.sqrt(rewards * (rewards + 16 * variance_factor * largest))) / 2


def farthest(points: Floats) -> Any:
    """The largest squared distance of two points: the rows, of one set or of each of several.

    >>> float(farthest(np.array([[0.0, 0.0], [3.0, 4.0], [1.0, 1.0]])))
    25.0
    """
    squares = (points * points).sum(axis=-1)
    size = max(1, ENTRIES // squares.size)
    found = np.zeros(squares.shape[:-1])  # equal points may be below by rounding
    for i in range(0, squares.shape[-1], size):
        part = slice(i, i + size)
        apart = squares[..., part, None] + squares[..., None, :] - 2 * points[..., part, :] @ points.mT
        found = np.maximum(found, apart.max(axis=(-2, -1)))
    return found


def pair_widths(errors: Floats, leaders: NDArray[np.intp], log_inv_failure: float) -> Floats:
    """How much better than an action each leader may seem than it is: a row a leader, a column an action.

    errors: a row an action, what each independent source of error has in its estimate, in its own standard deviations.
    Differences of rows are taken, not products: actions may be as close as floats can tell.
    """
    found, place = np.unique(leaders, return_inverse=True)
    spread = np.array([np.linalg.norm(errors - errors[leader], axis=1) for leader in found.tolist()])
    return np.asarray(math.sqrt(2 * log_inv_failure) * spread[place])
