"""How well rewards can be told apart through Laplace noise: the index code that DP-IMED and DP-KLUCB share.

Azize, Wu, Honda, Orabona, Ito and Basu (2025, "Optimal Regret of Bandits under Differential Privacy") measure how hard
it is, under epsilon-DP, to tell Bernoulli rewards of mean x from those of a larger mean y by

    d(x, y) = inf over z in [x, y] of  epsilon (z - x) + kl(z, y)

Small changes of x are explained by the noise, at a price of epsilon each, and the rest by chance. The derivative in z,
epsilon + logit z - logit y, grows with z. So z is x where logit y - logit x <= epsilon, and else has the log odds
logit y - epsilon. There kl(z, y) = -epsilon z - log(1 - y + y e^-epsilon), which leaves

    d(x, y) = -log(1 - y + y e^-epsilon) - epsilon x

Without privacy epsilon is infinite, and d is kl.
"""

from __future__ import annotations

import math

import numpy as np

from private_bandits.arrays import Floats

NEWTON_STEPS = 24
"""From the bounds below, a few steps do; for means very close to 0 each of the first ones halves the distance."""


def private_divergence(x: Floats, y: Floats, epsilon: float) -> Floats:
    """Return d(x, y) for means in [0, 1], element by element; 0 where x >= y.

    >>> private_divergence(np.array([0.25, 0.5, 0.75]), np.array(0.75), epsilon=1.0).round(4).tolist()
    [0.3926, 0.1426, 0.0]
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        found = _kl(x, y)
        if math.isfinite(epsilon):
            through_noise = -np.logaddexp(np.log1p(-y), np.log(y) - epsilon) - epsilon * x
            found = np.where(_logit(x) < _logit(y) - epsilon, through_noise, found)
    return np.where(x < y, np.maximum(found, 0.0), 0.0)


def largest_mean(x: Floats, limit: Floats, epsilon: float) -> Floats:
    """Return the largest y in [x, 1] with d(x, y) <= limit, element by element.

    Where d has the closed form, so has y. Else kl(x, y) = limit is solved by Newton's method in v = -log(1 - y), in
    which kl is convex: from above it comes down to the solution and never passes it. It starts at the least of three
    bounds: the y at which the closed form begins, that of Pinsker's inequality, and that of log y <= 0.

    >>> largest_mean(np.array([0.25, 0.5]), np.array([0.4, 0.1]), epsilon=1.0).round(4).tolist()
    [0.7561, 0.7129]
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        begins, through_noise = np.ones_like(x), np.zeros_like(x)
        if math.isfinite(epsilon):
            begins = np.where(x > 0.0, x / (x + (1.0 - x) * math.exp(-epsilon)), 0.0)
            through_noise = np.minimum(np.expm1(-limit - epsilon * x) / math.expm1(-epsilon), 1.0)
        pinsker = np.minimum(np.minimum(x + np.sqrt(limit / 2.0), begins), 1.0)
        mixed = np.where(x > 0.0, x * np.log(x), 0.0)
        v = np.minimum(-np.log1p(-pinsker), (limit - mixed) / (1.0 - x) - np.log1p(-x))
        constant = mixed + (1.0 - x) * np.log1p(-x) - limit
        for _ in range(NEWTON_STEPS):
            y = -np.expm1(-v)
            excess = constant - np.where(x > 0.0, x * np.log(y), 0.0) + (1.0 - x) * v
            slope = (y - x) / y
            v = v - np.where((excess > 0.0) & (slope > 0.0), excess / slope, 0.0)
        by_chance = np.where(x < 1.0, np.maximum(-np.expm1(-v), x), 1.0)
    return np.where(through_noise > begins, through_noise, by_chance)


def _kl(x: Floats, y: Floats) -> Floats:
    """Return the divergence of a coin of mean y from one of mean x. The caller silences warnings about zeros."""
    heads = np.where(x > 0.0, x * _log_ratio(x, y, x - y), 0.0)
    tails = np.where(x < 1.0, (1.0 - x) * _log_ratio(1.0 - x, 1.0 - y, y - x), 0.0)
    found: Floats = heads + tails
    return found


def _log_ratio(above: Floats, below: Floats, apart: Floats) -> Floats:
    """Return log(above/below), from how far apart they are where that is little: there two such logarithms cancel."""
    return np.where(np.abs(apart) < 0.5 * below, np.log1p(apart / below), np.log(above / below))


def _logit(x: Floats) -> Floats:
    found: Floats = np.log(x) - np.log1p(-x)
    return found
