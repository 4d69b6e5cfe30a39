"""Delta at an epsilon, and the smallest epsilon at a delta, over all pairs that are shown."""

from __future__ import annotations

import math

import numpy as np

from private_bandits.definitions.quantities import delta_leaves
from private_bandits.definitions.tree import Leaves
from private_bandits.definitions.worlds import Worlds
from private_bandits.errors import InvalidInput


class LargestDelta:
    """delta(eps) = max over pairs and adversaries of the sum of (P - e^eps Q)^+ . Exact up to rounding."""

    def __init__(self, epsilon: float) -> None:
        if not 0 <= epsilon < math.inf:
            raise InvalidInput(f"epsilon must be at least 0 and finite, got {epsilon!r}")
        self.epsilon = float(epsilon)
        self.value = 0.0
        self.worst: Worlds | None = None

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
        if not 0 <= delta < 1:
            raise InvalidInput(f"delta must be at least 0 and below 1, got {delta!r}")
        self.delta = float(delta)
        self.value = 0.0
        self.worst: Worlds | None = None

    def look(self, leaves: Leaves) -> None:
        """Takes some pairs into account: those above delta at the epsilon reached so far push it on."""
        self.worst = self.worst or leaves.worlds.take([0])
        if self.delta == 0:
            place = int(leaves.largest.argmax())
            if leaves.largest[place] > self.value:
                self.value, self.worst = float(leaves.largest[place]), leaves.worlds.take([place])
            return
        left = np.flatnonzero(leaves.largest > self.value)
        while left.size and self.value < math.inf:
            chosen = leaves.take(left)
            values = chosen.best(delta_leaves(chosen, self.value))
            place = int(values.argmax())
            if values[place] <= self.delta:
                return
            self._push(chosen.take(np.array([place])))
            left = left[(values > self.delta) & (np.arange(left.size) != place)]

    def _push(self, pair: Leaves) -> None:
        self.worst = pair.worlds
        for _ in range(10_000):
            values = delta_leaves(pair, self.value)
            event = pair.kept(values) & (values > 0)
            excess = float(values[event].sum()) - self.delta
            if excess <= 0:
                return
            # log of e^eps Q(E), the slope of delta in log x; Q = P e^-l may be too small for a float.
            terms = pair.log_p[event] - pair.log_ratio[event] + self.value
            most = float(terms.max())
            if most == -math.inf:  # impossible in the second world: no epsilon mends that
                self.value = math.inf
                return
            slope = most + math.log(float(np.exp(terms - most).sum()))
            new = self.value + float(np.logaddexp(0.0, math.log(excess) - slope))
            if not new > self.value * (1 + 1e-15):
                return
            self.value = new
