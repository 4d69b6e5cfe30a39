"""Delta at an epsilon, and the smallest epsilon at a delta, over all pairs that are shown."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

import numpy as np

from private_bandits.definitions.observation_tree import Leaves, delta_leaves
from private_bandits.definitions.worlds import WorldPairs
from private_bandits.errors import InvalidInput

ROUNDING = 4 * 2.0**-52
"""What rounding may add to a delta, as a part of it, for each unit of its logarithm: probabilities are kept as logs.
Without this allowance the last bit of a float would decide between an epsilon of 0 and an infinite one where a delta
is asked for that is reached exactly."""


def _checked(name: str, value: Any, limits: str, most: float) -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 <= float(value) < most:
        raise InvalidInput(f"{name} must be {limits}, got {value!r}")
    return float(value)


class LargestDelta:
    """delta(eps) = max over pairs and adversaries of the sum of (P - e^eps Q)^+ . Exact up to rounding."""

    def __init__(self, epsilon: float) -> None:
        self.epsilon = _checked("epsilon", epsilon, "at least 0 and finite", math.inf)
        self.value = 0.0
        self.worst: WorldPairs | None = None

    def look(self, leaves: Leaves) -> None:
        """Takes some pairs into account."""
        if leaves.largest.max() <= self.epsilon and self.worst is not None:
            return
        values = leaves.best(delta_leaves(leaves, self.epsilon))
        place = int(values.argmax())
        if self.worst is None or values[place] > self.value:
            self.value, self.worst = min(1.0, float(values[place])), leaves.worlds.take([place])


class SmallestEpsilon:
    """The smallest eps >= 0 with delta(eps) <= delta.

    delta = 0 is pure DP, the largest log-ratio. Otherwise Newton's method in x = e^eps on a function that is convex,
    decreasing and piecewise linear, from the left: every step lands at most at the root, and on its last piece at it.
    """

    def __init__(self, delta: float) -> None:
        self.delta = _checked("delta", delta, "at least 0 and below 1", 1.0)
        self.limit = self.delta * (1 + ROUNDING * (1 - math.log(self.delta))) if self.delta else 0.0
        self.reached = 0.0
        self.worst: WorldPairs | None = None

    @property
    def value(self) -> float:
        """The epsilon; what is no more than rounding is 0."""
        return self.reached if self.delta == 0 or self.reached > ROUNDING else 0.0

    def look(self, leaves: Leaves) -> None:
        """Takes some pairs into account: those above delta at the epsilon reached so far push it on."""
        self.worst = self.worst or leaves.worlds.take([0])
        if self.delta == 0:
            place = int(leaves.largest.argmax())
            if leaves.largest[place] > self.reached:
                self.reached, self.worst = float(leaves.largest[place]), leaves.worlds.take([place])
            return
        left = np.flatnonzero(leaves.largest > self.reached)
        while left.size and self.reached < math.inf:
            chosen = leaves.take(left)
            values = chosen.best(delta_leaves(chosen, self.reached))
            place = int(values.argmax())
            if values[place] <= self.limit:
                return
            self._push(chosen.take(np.array([place])))
            left = left[(values > self.limit) & (np.arange(left.size) != place)]

    def _push(self, pair: Leaves) -> None:
        self.worst = pair.worlds
        for _ in range(10_000):
            values = delta_leaves(pair, self.reached)
            event = pair.kept(values) & (values > 0)
            total = float(values[event].sum())
            if total <= self.limit:
                return
            # log of e^eps Q(E), the slope of delta in log x; Q = P e^-l may be too small for a float.
            terms = pair.log_p[event] - pair.log_ratio[event] + self.reached
            most = float(terms.max())
            if most == -math.inf:  # impossible in the second world: no epsilon mends that
                self.reached = math.inf
                return
            slope = most + math.log(float(np.exp(terms - most).sum()))
            new = self.reached + float(np.logaddexp(0.0, math.log(total - self.delta) - slope))
            if not new > self.reached * (1 + 1e-15):
                return
            self.reached = new
