"""From samples of two worlds to a lower bound on what one reward can give away, with stated confidence.

Two bounds, both true whatever the agent is, as long as events and scores were chosen on other samples:

- an event E: Clopper-Pearson bounds on its two probabilities, then the divergence of the two Bernoullis;
- a score f: for every bounded f and every order alpha > 1 (Birrell et al. 2021, "Variational representations and
  neural network estimation of Renyi divergences")

      D_alpha(P||Q)/alpha  >=  log E_P[exp((alpha-1) f)] / (alpha-1)  -  log E_Q[exp(alpha f)] / alpha

  with Donsker and Varadhan's  E_P[f] - log E_Q[exp f]  at alpha -> 1, and empirical Bernstein bounds (Maurer and
  Pontil 2009, Theorem 4) on the two means. Where the worlds differ by a little everywhere, as under Gaussian noise
  of a wrong size, this needs about a tenth of the samples that an event needs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist

import numpy as np

from private_bandits.arrays import Floats
from private_bandits.gaussian_curve import gaussian_delta
from private_bandits.loading import require

ORDERS = 1.0 + np.logspace(-4, 3, 71)
"""Renyi orders that are tried; each gives a valid bound, so the largest is taken."""
UNBOUNDED = Fraction(10**300)
"""A cost that no budget holds."""
SCORE_ORDERS = (1.0, 1.5, 2.0, 4.0)
ROUNDING = 1e-9
"""What two ways of computing in floating point may differ by."""


@dataclass(frozen=True)
class Claim:
    """What an agent says that it keeps: a level of rho-zCDP, of epsilon-DP, or of epsilon at a delta.

    "Gaussian DP" is the sharper claim of an agent whose noise is Gaussian, of a level rho: whatever it shows could be
    made of one number with that noise, so that it is sqrt(2 rho)-GDP (Dong, Roth and Su 2022). It implies rho-zCDP.
    """

    notion: str
    level: float
    delta: float = 0.0

    def of_event(self, p: float, q: float) -> float:
        """The least level at which an event may have probabilities p in one world and q in the other, p >= q."""
        return _BY_EVENT[self.notion](p, q, self.delta)

    def cost(self, noise: str, scale: float, moved: int | Fraction, squared: int | Fraction) -> Fraction:
        """What a release surely costs when its sum moves by `moved` in L1 and the root of `squared` in L2 norm.

        Never more than the truth, so that what exceeds `most` refutes the claim. Gaussian noise: D^2/(2 sigma^2) of
        rho, which is exact, and no epsilon of pure DP. Laplace noise: D_1/scale of epsilon, which is exact; of rho at
        least its KL divergence e^-epsilon - 1 + epsilon (that of the integers is less by a share of 1/scale).
        """
        if not moved:
            return Fraction(0)
        if noise == "gaussian":
            return Fraction(squared) / (2 * Fraction(scale) ** 2) if self.notion != "pure DP" else UNBOUNDED
        if noise == "laplace":
            epsilon = Fraction(moved) / Fraction(scale)
            if self.notion == "pure DP":
                return epsilon
            return Fraction((math.expm1(-float(epsilon)) + float(epsilon)) * max(0.0, 1 - 10 / scale))
        return UNBOUNDED

    @property
    def most(self) -> float:
        """The largest cost, in the units of `cost`, that the claim leaves room for.

        For (epsilon, delta) the rho of the Gaussian that just keeps it (Balle and Wang 2018, Theorem 8).
        """
        if self.notion != "approximate DP":
            return self.level
        low, high = 0.0, 100.0
        for _ in range(200):
            middle = (low + high) / 2
            low, high = (middle, high) if gaussian_delta(middle, self.level) <= self.delta else (low, middle)
        return high**2 / 2

    @property
    def rho(self) -> float:
        """The rho of Gaussian noise that is about as private: a guess to begin with, from which nothing is proven."""
        return self.level**2 / 2 if self.notion == "pure DP" else self.most

    @property
    def symbol(self) -> str:
        """What the level is called."""
        return "rho" if self.notion in ("zCDP", "Gaussian DP") else "epsilon"

    def __str__(self) -> str:
        return f"{self.notion} with {self.symbol} = {self.level:.6g}" + (
            f", delta = {self.delta:g}" if self.delta else ""
        )


def own_claim(noise: str) -> Claim:
    """The notion that a row of the ledger counts its cost in."""
    return Claim("pure DP" if noise == "laplace" else "zCDP", math.inf)


def clopper_pearson(hits: int, runs: int, failure: float) -> tuple[float, float]:
    """Bounds on a probability, each wrong with probability at most `failure`."""
    require("the audit", "audit", "scipy")
    from scipy.special import betainccinv, betaincinv

    low = float(betaincinv(hits, runs - hits + 1, failure)) if hits else 0.0
    high = float(betainccinv(hits + 1, runs - hits, failure)) if hits < runs else 1.0
    return low, high


def renyi_of_bernoullis(p: float, q: float, orders: Floats = ORDERS) -> Floats:
    """D_alpha(Bernoulli(p) || Bernoulli(q)) at every order, in log space."""
    with np.errstate(divide="ignore", invalid="ignore"):
        log_p, log_q = np.log([p, 1 - p]), np.log([q, 1 - q])
        terms = orders[:, None] * log_p - (orders[:, None] - 1) * log_q
        terms[:, log_p == -np.inf] = -np.inf  # what cannot happen in the first world adds nothing
        return np.asarray(np.logaddexp(terms[:, 0], terms[:, 1]) / (orders - 1))


def rho_of_event(p: float, q: float, delta: float = 0.0) -> float:
    """The largest D_alpha/alpha, over orders, of the two Bernoullis."""
    return 0.0 if p <= q else max(0.0, float(np.max(renyi_of_bernoullis(p, q) / ORDERS)))


def epsilon_of_event(p: float, q: float, delta: float = 0.0) -> float:
    """The least epsilon >= 0 with p <= exp(epsilon) q + delta, and the same of the complements."""

    def one(a: float, b: float) -> float:
        if a <= b + delta:
            return 0.0
        return math.log((a - delta) / b) if b else math.inf

    return max(one(p, q), one(1 - q, 1 - p))


def rho_of_shift(p: float, q: float, delta: float = 0.0) -> float:
    """The least rho of Gaussian noise with which an event has probabilities p and q (Dong, Roth and Su 2022)."""
    if not q < p:
        return 0.0
    if p == 1.0 or q == 0.0:
        return math.inf
    normal = NormalDist()
    return (normal.inv_cdf(p) - normal.inv_cdf(q)) ** 2 / 2


_BY_EVENT: dict[str, Callable[[float, float, float], float]] = {
    "zCDP": rho_of_event,
    "Gaussian DP": rho_of_shift,
    "pure DP": epsilon_of_event,
    "approximate DP": epsilon_of_event,
}


@dataclass(frozen=True)
class SampleMoments:
    """Mean, variance and range of a bounded variable in a sample of `runs`."""

    mean: float
    variance: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Floats, low: float, high: float) -> SampleMoments:
        """From a sample whose values lie in [low, high]."""
        return cls(float(values.mean()), float(values.var(ddof=1)), low, high)

    def bound(self, runs: int, failure: float, sign: int) -> float:
        """Bound on the expectation, from above (sign 1) or below (-1), wrong with probability at most `failure`."""
        log = math.log(2 / failure)
        reach = math.sqrt(2 * self.variance * log / runs) + 7 * (self.high - self.low) * log / (3 * (runs - 1))
        return min(self.high, self.mean + reach) if sign > 0 else max(self.low, self.mean - reach)


def rho_of_score(p: Floats, q: Floats, alpha: float, cap: float, failure: float, runs: int | None = None) -> float:
    """Lower bound on rho from scores in [-cap, cap] sampled in both worlds, wrong with probability at most `failure`.

    runs: as if the samples had had this size with the same moments (to plan a larger sample).
    """
    n, m = (runs or len(p)), (runs or len(q))
    if alpha == 1.0:
        first = SampleMoments.of(p, -cap, cap).bound(n, failure / 2, -1)
    else:
        grown = np.exp((alpha - 1) * p)
        least = SampleMoments.of(grown, math.exp(-(alpha - 1) * cap), math.exp((alpha - 1) * cap))
        first = math.log(least.bound(n, failure / 2, -1)) / (alpha - 1)
    most = SampleMoments.of(np.exp(alpha * q), math.exp(-alpha * cap), math.exp(alpha * cap)).bound(m, failure / 2, 1)
    return max(0.0, first - math.log(most) / alpha)
