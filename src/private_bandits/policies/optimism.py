"""What policies that are optimistic about a linear reward share: checked parameters, and the parts of a width."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from private_bandits.checks import check_positive, check_probability
from private_bandits.errors import InvalidInput
from private_bandits.policies.base import checked_horizon

GAUSSIAN = ("zCDP", "ApproxDP", "RenyiDP", "NoPrivacy")
"""Budgets that Gaussian noise keeps."""
INSTEAD_OF_PURE = (
    "No contextual policy here serves pure DP: its Laplace noise has heavier tails than these widths are made for; "
    "zCDP(epsilon**2/2) is what pure DP implies."
)


LEAST_DELTA = 1e-100
"""Of policies that divide it by numbers of steps, whose logarithm is then taken."""


def check_optimism(policy: Any, *positive: str) -> None:
    """Refuse parameters that make no width. positive: names of those that have to be."""
    for name in positive:
        object.__setattr__(policy, name, check_positive(name, getattr(policy, name)))
    object.__setattr__(policy, "delta", check_probability("delta", policy.delta))
    if policy.delta < LEAST_DELTA:
        raise InvalidInput(f"delta must be at least {LEAST_DELTA:g}, got {policy.delta!r}: smaller ones change nothing")
    object.__setattr__(policy, "horizon", checked_horizon(policy.horizon))


def settle_exploration(policy: Any, default: float) -> None:
    """Give `exploration` the value that was chosen for the policy if the user gave none, and refuse what is none."""
    given = default if policy.exploration is None else policy.exploration
    try:
        found = 0.0 if given == 0 and not isinstance(given, bool) else check_positive("exploration", given)
    except InvalidInput:
        raise InvalidInput(
            f"exploration must be 0 or a positive number, got {given!r}: {default:g} is usual, 1 is proven"
        ) from None
    object.__setattr__(policy, "exploration", found)


def noise_tail(dimension: int, x: float) -> float:
    """f(d, x): what the squared length of d standard normals exceeds with probability at most x (Laurent, Massart)."""
    log_inv_failure = -math.log(x)
    return dimension + 2 * math.sqrt(dimension * log_inv_failure) + 2 * log_inv_failure


def squared_length(dimension: int, x: float) -> float:
    """What the squared length of d standard normals exceeds with probability x, and a thousandth more.

    The quantile of the chi-square distribution, at most f(d, x) of `noise_tail`. The thousandth is for noise on a grid,
    whose distribution is a little another (docs/guarantees.md).

    >>> round(squared_length(3, 0.01) / 1.001, 2), round(squared_length(10, 1e-6) / 1.001, 2)
    (11.34, 46.86)
    """
    below, above = 0.0, noise_tail(dimension, x)
    while above - below > 1e-9 * above:
        middle = (below + above) / 2
        below, above = (middle, above) if _chi_square_beyond(dimension, middle) > x else (below, middle)
    return 1.001 * above


def _chi_square_beyond(degrees: int, value: float) -> float:
    """The probability of more than `value`: a finite sum, as twice the order of the gamma function is whole."""
    half = value / 2
    if not half:
        return 1.0
    odd = degrees % 2
    orders = [j + odd / 2 for j in range(degrees // 2)]  # exp(-y) y^a/Gamma(a + 1)
    found = math.erfc(math.sqrt(half)) if odd else 0.0
    return found + sum(math.exp(a * math.log(half) - half - math.lgamma(a + 1)) for a in orders)


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
