"""Evidence that may be looked at after every pair of runs: the wealth of somebody who bets against a claim.

Before each pair a payoff is fixed (bets.py), from earlier pairs alone. If the claim is kept, a payoff is at most 1 on
average, whatever came before: the wealth, their product, is a supermartingale that begins at 1. By Ville's inequality
it ever reaches 1/level with probability at most `level`. An average of several wealths is a wealth.
"""

from __future__ import annotations

import math

import numpy as np

from private_bandits.arrays import Floats
from private_bandits.audit.bets import best_payoff
from private_bandits.audit.evidence import Claim
from private_bandits.loading import require

QUANTILES = (0.005, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.995)
"""The quantiles of earlier scores that are the edges of the cells."""
GUESSES = (1.4, 2.0, 4.0, 16.0)
"""Times the claimed rho that the agent may have, under Gaussian noise."""
FIRST = 16
"""Pairs that are seen before a bet."""
GROWTH = 0.25
"""Bets are thought over when there are so many more pairs."""
CAUTION = 2.0
"""Runs for each cell that the two worlds are thought to have in common, beside those that were seen."""


class Bettor:
    """Bets on a score that was fixed before: larger in the first world, or smaller.

    Several gamblers share the first wealth. One believes what earlier pairs show; the others, who need fewer of them,
    that the score is a number with Gaussian noise that is too small by a certain factor.
    """

    def __init__(self, claim: Claim, p: Floats | None = None, q: Floats | None = None, first: int = FIRST) -> None:
        """p, q: scores of runs of each world that are known already, and are not bet on."""
        self._claim = claim
        self._first = max(1, first)
        self._p = np.array([] if p is None else p, float)
        self._q = np.array([] if q is None else q, float)
        self._logs = np.zeros(1 + len(GUESSES))
        self._edges = np.zeros(0)
        self._payoffs = np.ones((len(self._logs), 1, 1))
        self._rethink = self._first

    @property
    def log_wealth(self) -> float:
        """The logarithm of what one unit has become."""
        return float(average(self._logs))

    def play(self, x: Floats, y: Floats) -> Floats:
        """Bet on pairs of runs of the first and the second world. Returns the log wealth after each."""
        found = [np.zeros(0)]
        done = 0
        while done < len(x):
            known = min(len(self._p), len(self._q))
            if known >= self._rethink:
                self._rethink = known + max(self._first, math.ceil(GROWTH * known))
                self._think()
            part = slice(done, done + self._rethink - known)
            found.append(self._bet(x[part], y[part]))
            self._p, self._q = np.append(self._p, x[part]), np.append(self._q, y[part])
            done = part.stop
        return np.concatenate(found)

    def _bet(self, x: Floats, y: Floats) -> Floats:
        rows, columns = np.searchsorted(self._edges, x), np.searchsorted(self._edges, y)
        with np.errstate(divide="ignore"):  # all may be lost
            grown = np.log(self._payoffs[:, rows, columns])
        paths = self._logs[:, None] + grown.cumsum(axis=1)
        self._logs = paths[:, -1]
        return average(paths)

    def _think(self) -> None:
        """Sort scores into cells, and choose a payoff for each gambler."""
        self._edges = np.unique(np.quantile(np.append(self._p, self._q), QUANTILES))
        seen = [
            np.bincount(np.searchsorted(self._edges, z), minlength=len(self._edges) + 1) for z in (self._p, self._q)
        ]
        pooled = (seen[0] + seen[1] + 0.5) / (seen[0] + seen[1] + 0.5).sum()
        caution = CAUTION * len(pooled) * pooled
        p, q = ((count + caution) / (count + caution).sum() for count in seen)
        larger = (np.cumsum(q) - np.cumsum(p)).sum() >= 0
        payoffs = [best_payoff(self._claim, p, q)]
        for guess in GUESSES:
            high, low = gaussian_cells(math.sqrt(2 * self._claim.rho * guess), pooled)
            payoffs.append(best_payoff(self._claim, *((high, low) if larger else (low, high))))
        self._payoffs = np.array(payoffs)


def gaussian_cells(shift: float, pooled: Floats) -> tuple[Floats, Floats]:
    """Return the chances of cells under normal distributions `shift` apart, which on average are `pooled`."""
    require("the audit", "audit", "scipy")
    from scipy.special import ndtr

    points = np.linspace(-shift / 2 - 9, shift / 2 + 9, 4001)
    above, below = ndtr(points - shift / 2), ndtr(points + shift / 2)
    edges = np.interp(np.cumsum(pooled)[:-1], (above + below) / 2, points)
    both = (np.diff(ndtr(edges + sign * shift / 2), prepend=0.0, append=1.0) for sign in (-1, 1))
    p, q = (np.maximum(chances, 1e-12) for chances in both)
    return p, q


def average(logs: Floats) -> Floats:
    """Return the logarithm of the mean of wealths, over the first axis, from their logarithms."""
    most = logs.max(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        found = most + np.log(np.exp(logs - most).mean(axis=0))
    return np.asarray(np.where(np.isfinite(most), found, most))
