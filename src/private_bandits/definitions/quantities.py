"""What is asked of a tree: delta at an epsilon, the KL divergence, Renyi divergences.

With l = log(P/Q) and t = alpha - 1, each is a sum over leaves that the adversary maximises:

    delta(eps)        = sum of  P max(0, 1 - e^(eps - l))
    KL                = sum of  P (l + e^-l - 1)
    e^(t D_alpha) - 1 = sum of  P (e^(t l) - 1 + t (e^-l - 1))

The last two have terms added that sum to zero (both worlds' probabilities sum to one, whatever the adversary does):
each leaf is then at least zero, and nothing cancels when the worlds are close. A leaf with P = 0 < Q would add t Q;
it is left out, because then the same pair in the other order has an infinite divergence, and nothing else matters.
"""

from __future__ import annotations

import numpy as np

from private_bandits.definitions.numerics import Floats, expm2
from private_bandits.definitions.tree import LARGE, Leaves


def delta_leaves(leaves: Leaves, epsilon: float) -> Floats:
    """P - e^eps Q where that is positive, else 0."""
    gain: Floats = leaves.p * -np.expm1(np.minimum(epsilon - leaves.log_ratio, 0.0))
    return gain


def renyi_leaves(leaves: Leaves, order: float) -> Floats:
    """What a leaf adds to e^(t D) - 1 at t = alpha - 1 = order; at most LARGE/t for every log-ratio."""
    return leaves.p * expm2(order * leaves.log_ratio) + order * leaves.information


def log_moments(leaves: Leaves, order: float) -> Floats:
    """t D_(1+t) of each pair under its best adversary: log of the sum of P^(1+t) Q^-t. Convex in t, 0 at t = 0."""
    if order * float(leaves.largest.max()) <= LARGE:
        return np.log1p(leaves.best(renyi_leaves(leaves, order)))
    exponents, shift = scaled_exponents(leaves, order)
    return np.log(leaves.best(np.exp(exponents))) + shift


def scaled_exponents(leaves: Leaves, order: float) -> tuple[Floats, Floats]:
    """log of P^(1+t) Q^-t less its largest value, and that value, for orders at which the powers overflow."""
    exponents = leaves.log_p + order * leaves.log_ratio
    shift = exponents.max(axis=tuple(range(exponents.ndim - 1)))
    return exponents - shift, shift
