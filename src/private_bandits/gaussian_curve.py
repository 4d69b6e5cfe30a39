"""How much Gaussian noise gives away at every epsilon: its privacy curve delta(epsilon), for one release of one number.

rho-zCDP says less about Gaussian noise than is true. Of normal noise the curve is known exactly (Balle and Wang 2018,
Theorem 8); the noise of this package is on the integers, and its curve is a little higher or lower, by a share of
about (1/scale)^2 where delta is not tiny.
"""

from __future__ import annotations

import math

import numpy as np

FAR = 40.0
"""Standard deviations beyond which noise has no probability that a float could hold."""
MOST_VALUES = 10**7
"""Values of the noise that are added up at most."""


def gaussian_delta(shift: float, epsilon: float) -> float:
    """Return the least delta at epsilon of normal noise of size one on a number that moves by `shift`.

    Balle and Wang 2018, Theorem 8: Phi(shift/2 - epsilon/shift) - e^epsilon Phi(-shift/2 - epsilon/shift).

    >>> round(gaussian_delta(1.0, 0.0), 4)
    0.3829
    """
    if shift == 0:
        return 0.0
    # Beyond 700 the second term is less than delta's last digit, and exp would overflow.
    second = math.exp(epsilon) * _normal_above(shift / 2 + epsilon / shift) if epsilon < 700 else 0.0
    return max(0.0, _normal_above(epsilon / shift - shift / 2) - second)


def _normal_above(x: float) -> float:
    return math.erfc(x / math.sqrt(2)) / 2


def discrete_gaussian_delta(scale: float, shift: int, epsilon: float) -> float:
    """Return the least delta at epsilon of discrete Gaussian noise on an integer that moves by `shift`.

    Exact but for the rounding of floats. P(y) >= e^epsilon P(y - shift reversed) holds from one y on, so the best
    event is that tail (docs/guarantees.md has the proof, and what it is proven for).

    Args:
        scale: The noise has probability proportional to exp(-z^2 / (2 scale^2)) at every integer z.
        shift: How far the integer moves, at most: delta grows with it.
        epsilon: At least 0.

    Raises:
        ValueError: If `scale` is too large for the sum: use `gaussian_delta` there, which differs by less.

    >>> round(discrete_gaussian_delta(2.2, 1, 1.0) / gaussian_delta(1 / 2.2, 1.0), 2)
    1.02
    """
    if shift == 0:
        return 0.0
    reach = math.ceil(FAR * scale) + shift
    if reach > MOST_VALUES:
        raise ValueError(f"scale must be at most about {MOST_VALUES / FAR:.0f} steps for an exact sum, got {scale:g}")
    chances = np.exp(-(np.arange(reach + 1) ** 2) / (2.0 * scale**2))
    chances /= chances[0] + 2 * chances[1:].sum()
    # The ratio of the two worlds at y is exp((2 y shift - shift^2)/(2 scale^2)): above e^epsilon from here on.
    first = math.ceil(epsilon * scale**2 / shift + shift / 2)
    if first - shift > reach:
        return 0.0
    ours = chances[np.abs(np.arange(first - shift, reach + 1))]
    theirs = np.zeros_like(ours)
    theirs[: max(0, reach + 1 - first)] = chances[first:]
    return float((ours - math.exp(min(epsilon, 700.0)) * theirs).clip(0.0).sum())


def release_epsilon(scale: float, shift: int, delta: float) -> float:
    """Return the least epsilon at which one release of one integer keeps (epsilon, delta), rounded up.

    >>> round(release_epsilon(2236.1, 1000, 1e-6), 3), "zCDP says 2.142"
    (1.994, 'zCDP says 2.142')
    """
    low, high = 0.0, 1.0
    while discrete_gaussian_delta(scale, shift, high) > delta:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if discrete_gaussian_delta(scale, shift, middle) <= delta else (middle, high)
    return high
