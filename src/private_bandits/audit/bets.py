"""Bets against a privacy claim on one pair of runs, one of each world: nobody gains by them if the claim is kept.

A bet names a gain a(X) for what the run X of the first world shows, and a loss b(Y) for the run Y of the second, with
E[a(X)] - E[b(Y)] <= toll for all worlds that keep the claim. So

    payoff(X, Y) = 1 + (a(X) - b(Y) - toll) / (max b - min a + toll)

is never negative, and at most 1 on average. So is every mixture of payoffs. Two kinds of bet are known:

- *on the curve*: E_P[f] <= e^epsilon E_Q[f] + delta(epsilon) for every f in [0, 1];
- *on a Renyi order*: E_P[phi'(r)] - E_Q[r phi'(r) - phi(r)] <= E_Q[phi(dP/dQ)] for every r > 0 and convex phi (its
  tangents lie below it). With phi(t) = t log t and log r = f that is E_P[f] - E_Q[e^f - 1] <= KL(P||Q) <= rho; with
  phi(t) = t^alpha it is E_P[alpha r^(alpha-1)] - E_Q[(alpha-1) r^alpha] <= e^(alpha (alpha-1) rho).

What a run shows comes here as a cell: one of a few numbers that it is sorted into.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from private_bandits.arrays import Floats
from private_bandits.audit.evidence import Claim
from private_bandits.gaussian_curve import gaussian_delta

ORDERS = (1.0, 1.5, 2.0, 4.0)
STRETCHES = (0.5, 0.75, 1.0)
"""A smaller multiple of the log ratio of the worlds has less variance, and gains more often."""
CAPS = (1.0, 2.0, 4.0)
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
"""The shares of the claimed epsilon at which the curve is bet on."""
SHIFTS = (0.0, 0.5, 1.0, 2.0)
"""The same for Gaussian noise, as multiples of its shift."""
STEPS = 50
CASH = 0.7
"""The part of the wealth that the search for the best mixture leaves aside at its start."""


class Bet(NamedTuple):
    """Gain and loss in each cell, and the toll that the claim takes."""

    gain: Floats
    loss: Floats
    toll: float

    def payoff(self) -> Floats:
        """Return what one unit of wealth becomes: row X, column Y."""
        most = self.loss.max() - self.gain.min() + self.toll
        if not most > 0:  # it can lose nothing, and so gains nothing
            return np.ones((len(self.gain), len(self.loss)))
        return np.asarray(1 + (self.gain[:, None] - self.loss[None, :] - self.toll) / most)


def bet_on_curve(f: Floats, epsilon: float, delta: float) -> Bet:
    """Return the bet that f in [0, 1] shows more than delta at epsilon."""
    return Bet(f, math.exp(epsilon) * f, delta)


def bet_on_order(log_ratio: Floats, alpha: float, rho: float) -> Bet:
    """Return the bet that the divergence of order alpha is more than alpha rho, where log_ratio is expected."""
    if alpha == 1.0:
        return Bet(log_ratio, np.expm1(log_ratio), rho)
    gain, loss = alpha * np.exp((alpha - 1) * log_ratio), (alpha - 1) * np.exp(alpha * log_ratio)
    return Bet(gain, loss, math.exp(alpha * (alpha - 1) * rho))


def curve_of(claim: Claim) -> list[tuple[float, float]]:
    """Return a few (epsilon, delta) that the claim implies, of those where it promises most.

    Below the claimed epsilon that is the curve of the worst mechanism that keeps (epsilon, delta) in both directions
    (Kairouz, Oh and Viswanath 2015, Theorem 3.2).
    """
    if claim.notion == "Gaussian DP":
        shift = math.sqrt(2 * claim.level)
        return [(share * shift, gaussian_delta(shift, share * shift)) for share in SHIFTS]
    found = []
    for share in SHARES:
        epsilon = share * claim.level
        less = math.expm1(claim.level - epsilon) / (math.exp(-epsilon) + math.exp(claim.level - epsilon))
        found.append((epsilon, claim.delta + (1 - claim.delta) * less))
    return found


def _on_curve(claim: Claim, log_ratio: Floats) -> Iterator[Bet]:
    curve = curve_of(claim)
    for threshold in np.unique(log_ratio)[1:]:
        f = (log_ratio >= threshold).astype(float)
        for epsilon, delta in curve:
            yield bet_on_curve(f, epsilon, delta)


def _on_orders(claim: Claim, log_ratio: Floats) -> Iterator[Bet]:
    for alpha in ORDERS:
        if alpha * (alpha - 1) * claim.level > 30:  # a toll that no float is above
            return
        for stretch in STRETCHES:
            for cap in CAPS:
                yield bet_on_order((stretch * log_ratio).clip(-cap, cap), alpha, claim.level)


def _on_both(claim: Claim, log_ratio: Floats) -> Iterator[Bet]:
    yield from _on_curve(claim, log_ratio)
    yield from _on_orders(claim, log_ratio)


_BETS: dict[str, Callable[[Claim, Floats], Iterator[Bet]]] = {
    "zCDP": _on_orders,
    "Gaussian DP": _on_both,
    "pure DP": _on_curve,
    "approximate DP": _on_curve,
}


def best_payoff(claim: Claim, p: Floats, q: Floats) -> Floats:
    """Return the payoff whose logarithm is largest on average, if p and q are the chances of the cells in both worlds.

    A mixture of bets in both directions. It is 1 on average at most, whatever p and q are, if the claim is kept. All
    chances have to be above 0.
    """
    log_ratio = np.log(p / q)
    payoffs = [np.ones((len(p), len(q)))]
    for bet, mirrored in zip(
        _BETS[claim.notion](claim, log_ratio), _BETS[claim.notion](claim, -log_ratio), strict=True
    ):
        payoffs += [bet.payoff(), mirrored.payoff().T]
    shape = payoffs[0].shape
    return _mixed(np.reshape(payoffs, (len(payoffs), -1)), np.outer(p, q).ravel()).reshape(shape)


def _mixed(payoffs: Floats, chances: Floats) -> Floats:
    """Mix the rows, of which the first is cash: Cover's algorithm for the log-optimal portfolio, with longer steps."""
    shares = np.full(len(payoffs), (1 - CASH) / max(1, len(payoffs) - 1))
    shares[0] = CASH if len(payoffs) > 1 else 1.0
    mixed = shares @ payoffs
    growth, step = float(chances @ np.log(mixed)), 1.0
    for _ in range(STEPS):
        tried = shares * (payoffs @ (chances / mixed)) ** step
        tried /= tried.sum()
        result = tried @ payoffs
        grown = float(chances @ np.log(result))
        if grown >= growth:
            shares, mixed, growth, step = tried, result, grown, min(1.5 * step, 50.0)
        else:
            step = max(1.0, step / 4)
    return mixed
