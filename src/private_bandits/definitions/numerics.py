"""Small differences to full relative precision."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]


def expm2(x: Floats) -> Floats:
    """e^x - 1 - x.

    >>> f"{expm2(np.array(3e-10)):.12g}"  # e^x - 1 - x itself would have no digit right
    '4.50000000045e-20'
    """
    near = np.clip(x, -0.1, 0.1)
    series = np.zeros_like(near)
    for k in range(12, 1, -1):  # Horner: 1/2! + x/3! + ...; at 0.1 the rest is below 1e-19
        series = (series * near + 1.0) / k
    return np.where(np.abs(x) <= 0.1, near * near * series, np.expm1(x) - x)


def log_ratio(p: Floats, q: Floats, difference: Floats) -> Floats:
    """log(p/q), where difference = p - q; 0 where p = 0, which no later step can mend."""
    with np.errstate(divide="ignore", invalid="ignore"):
        excess = difference / q
        ratio = np.where(np.abs(excess) < 0.5, np.log1p(excess), np.log(p) - np.log(q))
    return np.where(p > 0, ratio, 0.0)
