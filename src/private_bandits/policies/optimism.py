"""What policies that are optimistic about a linear reward share: checked parameters, and the parts of a width."""

from __future__ import annotations

import math
from typing import Any

from private_bandits.budget import check_positive, check_probability
from private_bandits.policies.base import checked_horizon

GAUSSIAN = ("zCDP", "ApproxDP", "RenyiDP", "NoPrivacy")
"""Budgets that Gaussian noise keeps."""
INSTEAD_OF_PURE = (
    "No contextual policy here serves pure DP: its Laplace noise has heavier tails than these widths are made for; "
    "zCDP(epsilon**2/2) is what pure DP implies."
)


def check_optimism(policy: Any, *positive: str) -> None:
    """Refuse parameters that make no width. positive: names of those that have to be."""
    for name in positive:
        object.__setattr__(policy, name, check_positive(name, getattr(policy, name)))
    check_probability("delta", policy.delta)
    object.__setattr__(policy, "horizon", checked_horizon(policy.horizon))


def noise_tail(dimension: int, x: float) -> float:
    """f(d, x): what the squared length of d standard normals exceeds with probability at most x (Laurent, Massart)."""
    log_odds = -math.log(x)
    return dimension + 2 * math.sqrt(dimension * log_odds) + 2 * log_odds


def reward_width(spread: float, delta: float, growth: float) -> float:
    """How far rewards in a range of this width lead theta astray, in the norm of V.

    growth: log(det V/lambda^d). With probability 1 - delta at all times (Abbasi-Yadkori et al. 2011, Theorem 1).
    """
    return spread / 2 * math.sqrt(2 * math.log(1 / delta) + growth)
