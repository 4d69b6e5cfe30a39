"""Bets on several scores at once, in several rounds: one wealth, that may be looked at after every pair of runs."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from private_bandits.arrays import Floats
from private_bandits.audit.eprocess import Bettor, average
from private_bandits.audit.evidence import Claim


class Wagers:
    """Puts an equal part of one unit on each round, and in a round on each score.

    What a round has become stays as it is; what later rounds have is still 1. So the sum is a wealth like any other.
    """

    def __init__(self, claim: Claim, rounds: int) -> None:
        self.claim = claim
        self.best = 0.0
        """The logarithm of the largest wealth so far."""
        self._left = rounds
        self._closed: list[float] = []
        self._bettors: list[Bettor] = []

    def begin(self, known: Sequence[tuple[Floats, Floats]]) -> None:
        """Begin a round with new scores. known: of each, its values in runs of both worlds that are not bet on."""
        self._close()
        self._left -= 1
        self._bettors = [Bettor(self.claim, p, q) for p, q in known]

    def play(self, fresh: Sequence[tuple[Floats, Floats]]) -> None:
        """Bet on fresh pairs of runs: of each score its values in both worlds."""
        path = average(np.array([b.play(p, q) for b, (p, q) in zip(self._bettors, fresh, strict=True)]))
        others = np.array([*self._closed, *[0.0] * self._left])
        rounds = np.vstack([path, np.repeat(others[:, None], len(path), axis=1)])
        self.best = max(self.best, float(average(rounds).max(initial=-math.inf)))

    def _close(self) -> None:
        if self._bettors:
            self._closed.append(float(average(np.array([b.log_wealth for b in self._bettors]))))
