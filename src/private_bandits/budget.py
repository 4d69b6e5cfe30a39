"""What is promised: privacy budgets and the conversions between them.

Every Gaussian budget comes down to one number, the zCDP parameter rho: noise of variance b D^2 with
b = 1/(2 rho) on a sum of sensitivity D is rho-zCDP (Bun and Steinke 2016, Prop. 6). Pure DP is kept by
Laplace noise of scale D_1/epsilon instead, and no finite Gaussian noise keeps it.

The conversion from zCDP to (epsilon, delta) is the optimal one over Renyi orders, of Canonne, Kamath and
Steinke (2020, "The Discrete Gaussian for Differential Privacy", Prop. 12).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, Literal

from private_bandits.checks import SMALLEST, check_positive, check_probability
from private_bandits.errors import InvalidInput

NoiseKind = Literal["gaussian", "laplace", "none"]

BUDGETS: dict[str, type[Budget]] = {}
"""Every kind of budget by name; filled as the classes are defined."""


@dataclass(frozen=True)
class Budget:
    """The promise that a policy makes about one unit (a reward, or a person).

    `noise` names the noise that keeps it and `level` is what that noise is calibrated to: rho for Gaussian
    noise, epsilon for Laplace noise, infinity for none.
    """

    noise: ClassVar[NoiseKind]

    def __init_subclass__(cls) -> None:
        BUDGETS[cls.__name__] = cls

    @property
    def level(self) -> float:
        """What the noise is calibrated to."""
        raise TypeError("a budget is one of " + ", ".join(BUDGETS))

    @property
    def implied_rho(self) -> float:
        """The zCDP that this budget implies."""
        return self.level

    @property
    def variance_factor(self) -> float:
        """b of the Gaussian mechanism: noise of variance b D^2 on a sum of sensitivity D."""
        return 1.0 / (2.0 * self.level)

    def group_cost(self, cost: float, rewards: int, worth: Fraction | None = None) -> float:
        """Return the cost of `rewards` rewards together, where one of them costs `cost`, rounded up.

        Group privacy of Gaussian noise: m rewards move a sum by at most m D, which costs m^2 rho.

        Args:
            cost: The cost of one reward in all of its releases.
            rewards: How many rewards there are.
            worth: How many times the cost of one they have at most. None means m^2: all of them may be in one sum.
        """
        return _product(cost, Fraction(rewards**2) if worth is None else worth)

    def per_reward(self, rewards: int, worth: Fraction | None = None) -> Budget:
        """Return the budget for one reward that keeps this budget for any `rewards` rewards together.

        worth: as in `group_cost`.
        """
        return zCDP(_share(self.level, Fraction(rewards**2) if worth is None else worth))

    def shared(self, releases: int | Fraction) -> Budget:
        """The budget of each of so many releases that hold the same reward. Costs of both kinds of noise add up."""
        if releases == 1:
            return self
        level = _share(self.level, releases)
        if level < SMALLEST:
            raise InvalidInput(
                f"{self} leaves less than {SMALLEST:g} for each of the releases that share it: use a larger one"
            )
        return self._of_level(level)

    def _of_level(self, level: float) -> Budget:
        return zCDP(level)


@dataclass(frozen=True)
class zCDP(Budget):
    """rho-zero-concentrated differential privacy: Renyi divergence at most rho alpha for every alpha > 1.

    >>> zCDP(0.1).variance_factor
    5.0
    """

    rho: float
    noise = "gaussian"

    def __post_init__(self) -> None:
        object.__setattr__(self, "rho", check_positive("rho", self.rho))

    @property
    def level(self) -> float:
        """rho itself."""
        return self.rho


@dataclass(frozen=True)
class ApproxDP(Budget):
    """(epsilon, delta)-differential privacy, kept through the largest rho whose conversion gives it.

    The conversion is proven for discrete noise, for vectors and for several releases, at every epsilon.

    >>> round(ApproxDP(2.1419, 1e-6).level, 4)
    0.1
    """

    epsilon: float
    delta: float
    noise = "gaussian"

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_positive("epsilon", self.epsilon))
        object.__setattr__(self, "delta", check_probability("delta", self.delta))
        _check_level(self)

    @property
    def level(self) -> float:
        """The largest rho with epsilon_of(rho, delta) <= epsilon."""
        return rho_of(self.epsilon, self.delta)


@dataclass(frozen=True)
class RenyiDP(Budget):
    """(alpha, epsilon)-Renyi differential privacy: b = alpha/(2 epsilon), which is rho = epsilon/alpha.

    >>> RenyiDP(alpha=10, epsilon=1).level
    0.1
    """

    alpha: float
    epsilon: float
    noise = "gaussian"

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", check_positive("alpha", self.alpha))
        object.__setattr__(self, "epsilon", check_positive("epsilon", self.epsilon))
        if self.alpha <= 1:
            raise InvalidInput(f"alpha must be greater than 1, got {self.alpha!r}")
        _check_level(self)

    @property
    def level(self) -> float:
        """The largest rho with rho alpha <= epsilon."""
        return _largest_below(self.epsilon, lambda rho: rho * self.alpha, self.epsilon / self.alpha)


@dataclass(frozen=True)
class PureDP(Budget):
    """epsilon-differential privacy, kept by Laplace noise of scale (L1 sensitivity)/epsilon."""

    epsilon: float
    noise = "laplace"

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_positive("epsilon", self.epsilon))

    @property
    def level(self) -> float:
        """epsilon itself."""
        return self.epsilon

    @property
    def implied_rho(self) -> float:
        """epsilon^2/2 (Bun and Steinke 2016, Prop. 4)."""
        return self.epsilon**2 / 2

    def group_cost(self, cost: float, rewards: int, worth: Fraction | None = None) -> float:
        """Group privacy of pure DP: m rewards cost m epsilon, wherever they are."""
        return _product(cost, Fraction(rewards))

    def per_reward(self, rewards: int, worth: Fraction | None = None) -> Budget:
        """Return the budget for one reward that keeps this budget for any `rewards` rewards together."""
        return PureDP(_share(self.epsilon, rewards))

    def _of_level(self, level: float) -> Budget:
        return PureDP(level)


@dataclass(frozen=True)
class NoPrivacy(Budget):
    """No promise and no noise: the twin that a private policy is compared with."""

    noise = "none"

    @property
    def level(self) -> float:
        """Infinite: nothing is kept."""
        return math.inf

    @property
    def variance_factor(self) -> float:
        """b = 0: no noise."""
        return 0.0

    def per_reward(self, rewards: int, worth: Fraction | None = None) -> Budget:
        """No promise for one is no promise for many."""
        return self

    def shared(self, releases: int | Fraction) -> Budget:
        """Nor for a release."""
        return self


def _share(level: float, releases: int | Fraction) -> float:
    """The largest share of which so many, added up exactly, do not exceed the level."""
    share = float(level / releases)
    while Fraction(share) * releases > Fraction(level):
        share = math.nextafter(share, 0.0)
    return share


def _product(cost: float, times: Fraction) -> float:
    """Return a float that is not below the exact product."""
    if math.isinf(cost):
        return cost
    exact = Fraction(cost) * times
    nearest = float(exact)
    return nearest if nearest >= exact else math.nextafter(nearest, math.inf)


def _check_level(budget: Budget) -> None:
    if budget.level < SMALLEST:
        raise InvalidInput(f"{budget} is too small a budget for any noise: choose a larger one")


def equal_budget(budget: Budget, kept: Sequence[str]) -> Budget:
    """The budget of equal strength for a policy that keeps only the notions named in `kept`.

    epsilon-pure DP implies epsilon^2/2-zCDP (Bun and Steinke 2016, Prop. 4), so a zCDP budget of rho is compared
    with pure DP at epsilon = sqrt(2 rho).

    >>> equal_budget(zCDP(0.5), kept=["PureDP"])
    PureDP(epsilon=1.0)
    """
    if isinstance(budget, zCDP) and "zCDP" not in kept and "PureDP" in kept:
        return PureDP(math.sqrt(2 * budget.rho))
    return budget


def epsilon_of(rho: float, delta: float) -> float:
    """The smallest epsilon for which rho-zCDP is known to imply (epsilon, delta)-DP.

    inf over alpha > 1 of  alpha rho + log(1/(alpha delta))/(alpha - 1) + log(1 - 1/alpha),
    Canonne, Kamath and Steinke (2020), Prop. 12. Any alpha gives a valid epsilon, so a search that stops
    early errs on the safe side.

    >>> round(epsilon_of(0.1, 1e-6), 4)
    2.1419
    """
    check_probability("delta", delta)
    if rho == math.inf:
        return math.inf
    if rho < 0 or math.isnan(rho):
        raise InvalidInput(f"rho must be at least 0, got {rho!r}")
    if rho == 0:
        return 0.0

    def bound(log_excess: float) -> float:
        excess = math.exp(log_excess)  # alpha - 1
        parts = (
            (1.0 + excess) * rho,
            -(math.log1p(excess) + math.log(delta)) / excess,
            -math.log1p(math.exp(-log_excess)),  # log(1 - 1/alpha)
        )
        return math.fsum(parts) + 4e-16 * math.fsum(map(abs, parts))  # rounding errs on the safe side

    # The bound falls and then rises in alpha: golden section over log(alpha - 1).
    return max(0.0, _minimum(bound, -30.0, 700.0))


@lru_cache(maxsize=1024)
def rho_of(epsilon: float, delta: float) -> float:
    """The largest rho with epsilon_of(rho, delta) <= epsilon, from below.

    >>> round(rho_of(1.0, 1e-6), 5)
    0.02436
    """
    low, high = 0.0, 1.0
    while epsilon_of(high, delta) <= epsilon:
        low, high = high, 2 * high
    while True:
        middle = (low + high) / 2
        if not low < middle < high:
            return low
        if epsilon_of(middle, delta) <= epsilon:
            low = middle
        else:
            high = middle


def _minimum(function: Callable[[float], float], low: float, high: float) -> float:
    """The least value that a golden-section search sees on [low, high]."""
    ratio = (math.sqrt(5) - 1) / 2
    left, right = high - ratio * (high - low), low + ratio * (high - low)
    at_left, at_right = function(left), function(right)
    while high - low > 1e-12:
        if at_left < at_right:
            high, right, at_right = right, left, at_left
            left = high - ratio * (high - low)
            at_left = function(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + ratio * (high - low)
            at_right = function(right)
    return min(at_left, at_right)


def _largest_below(limit: float, cost: Callable[[float], float], start: float) -> float:
    """The float next to `start` whose cost does not overshoot `limit` by a rounding."""
    while cost(start) > limit:
        start = math.nextafter(start, 0.0)
    return start
