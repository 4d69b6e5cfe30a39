"""What policies that are optimistic about a linear reward share: checked parameters, and the parts of a width."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

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


class Optimism(NamedTuple):
    """What is known of a width before V is: with V = shift I and the sum of a a', m its least eigenvalue, it is

        half sqrt(odds + log det V - log_floor) + min(ridge, steep/sqrt(m)) + noise/sqrt(m)

    floor: what m is at least, log_floor: d times its logarithm. It changes with the number of noises in the sums only,
    so that compiled engines need no formula of a policy but this one.
    """

    shift: float
    floor: float
    log_floor: float
    half: float
    odds: float
    ridge: float
    steep: float
    noise: float

    def width(self, log_det: float, least: float) -> float:
        """For this V. least: m."""
        root = math.sqrt(least)
        rewards = self.half * math.sqrt(self.odds + log_det - self.log_floor)
        return rewards + min(self.ridge, self.steep / root) + self.noise / root
