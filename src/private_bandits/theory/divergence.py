"""How far apart a private mechanism's outputs can be when its inputs come from two distributions.

Section VI and Appendix G of the paper: the route to the lower bounds. rho is the zCDP parameter throughout, KL
divergences are in nats. Where this file departs from the paper, the docstring says so, and docs/theory.md shows why.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal

from private_bandits.errors import InvalidInput
from private_bandits.theory.bound_inputs import checked_count, checked_rho, times
from private_bandits.transport import (
    CoupledRun,
    Instance,
    PolicyRule,
    coupled_run,
    product_distribution,
    total_variation,
    transport_cost,
)

Form = Literal["proven", "paper"]


def renyi_of_group(rho: float, distance: int, alpha: float) -> float:
    """Renyi divergence between a rho-zCDP mechanism's outputs on inputs that differ in `distance` places.

    D_alpha <= rho distance^2 alpha for every alpha >= 1: group privacy (Bun and Steinke 2016, Prop. 27).

    >>> renyi_of_group(0.5, distance=3, alpha=2)
    9.0
    """
    if isinstance(alpha, bool) or not isinstance(alpha, Real) or not 1 <= alpha < math.inf:
        raise InvalidInput(f"alpha must be a finite number, at least 1, got {alpha!r}")
    rho, places = checked_rho(rho), checked_count("distance", distance)
    try:
        return times(rho, places**2 * float(alpha))
    except OverflowError:  # more places than a float can hold
        return times(math.inf, rho)


def kl_of_group(rho: float, distance: int) -> float:
    """KL divergence between a rho-zCDP mechanism's outputs on inputs that differ in `distance` places.

    KL <= rho distance^2, the order alpha = 1 of `renyi_of_group`.

    >>> kl_of_group(0.5, distance=3)
    4.5
    """
    return renyi_of_group(rho, distance, 1)


def kl_bound_transport(rho: float, p1: Mapping[Any, float], p2: Mapping[Any, float]) -> float:
    """KL divergence between a rho-zCDP mechanism's outputs when its input is drawn from p1, and from p2.

    KL <= rho inf over couplings of E[d(D, D')^2], d the Hamming distance: Theorem "KL upper bound as a transport
    problem" of the paper, with the infimum solved exactly. p1, p2: {tuple: probability}. Needs scipy.

    >>> round(kl_bound_transport(0.5, {(0, 0): 1.0}, {(0, 0): 0.5, (1, 1): 0.5}), 9)
    1.0
    """
    return times(checked_rho(rho), transport_cost(p1, p2).cost)


def kl_bound_product(
    rho: float, marginals1: Sequence[Mapping[Any, float]], marginals2: Sequence[Mapping[Any, float]]
) -> float:
    """The same for inputs of independent coordinates, in closed form.

    KL <= rho (sum of t_i)^2 + rho sum of t_i (1 - t_i), t_i the total variation of the i-th coordinate: Theorem "KL
    decomposition for product distributions" of the paper. It couples each coordinate maximally and independently
    of the others; `kl_bounds` says how much the best coupling gains.

    >>> coin, biased = {0: 0.5, 1: 0.5}, {0: 0.25, 1: 0.75}
    >>> kl_bound_product(1.0, [coin, coin], [biased, biased])
    0.625
    """
    return times(checked_rho(rho), _product_distance(marginals1, marginals2))


@dataclass(frozen=True)
class KLBounds:
    """Two upper bounds on one KL divergence, and the mean squared distances that they are rho times of.

    product: coordinates coupled maximally, each on its own. transport: the best coupling of all.
    """

    product: float
    transport: float
    product_distance: float
    transport_distance: float

    @property
    def gap(self) -> float:
        """What the best coupling gains."""
        return self.product - self.transport


def kl_bounds(
    rho: float, marginals1: Sequence[Mapping[Any, float]], marginals2: Sequence[Mapping[Any, float]]
) -> KLBounds:
    """`kl_bound_product` beside `kl_bound_transport`, for small products. Needs scipy.

    The best coupling keeps the number of differing coordinates near its mean, which independent coordinates
    cannot: for two coordinates of 1/4 against 3/4 it gains a sixth.

    >>> low, high = {0: 0.75, 1: 0.25}, {0: 0.25, 1: 0.75}
    >>> found = kl_bounds(1.0, [low, low], [high, high])
    >>> round(found.product, 6), round(found.transport, 6)
    (1.5, 1.25)
    """
    checked_rho(rho)
    independent = _product_distance(marginals1, marginals2)
    best = transport_cost(product_distribution(marginals1), product_distribution(marginals2)).cost
    return KLBounds(times(rho, independent), times(rho, best), independent, best)


@dataclass(frozen=True)
class Moments:
    """What the KL bound of a bandit needs. S is the sum over steps of t_a, the total variation of the played arm.

    mean, variance: of S. spread: mean of the sum over steps of t_a (1 - t_a). All on the first instance.
    """

    mean: float
    variance: float
    spread: float

    def __post_init__(self) -> None:
        for name in ("mean", "variance", "spread"):
            value: Any = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, Real) or not 0 <= float(value) < math.inf:
                raise InvalidInput(f"{name} must be a finite number, at least 0, got {value!r}")
        if self.spread > self.mean * (1 + 1e-9):
            raise InvalidInput(f"spread is at most mean, as t(1 - t) <= t; got {self.spread!r} > {self.mean!r}")


def kl_bound_bandit(rho: float, moments: Moments | CoupledRun, form: Form = "proven") -> float:
    """KL divergence between the actions of a rho-Interactive zCDP policy on two bandit instances.

    form="proven":  rho (sqrt(E[S^2]) + sqrt(E[sum t(1-t)]))^2      holds
    form="paper":   rho (E[S]^2 + Var[S] + E[sum t(1-t)])           can be too small, by a factor of up to 2

    Both bound rho E[d^2], d the number of rewards that differ when the rewards of each step are coupled maximally.
    d = S + M, with M a martingale and E[M^2] = E[sum t(1-t)]. The paper's Theorem "KL decomposition for
    rho-Interactive zCDP" takes E[M S] for 0 by conditioning on all actions; later actions depend on earlier rewards,
    and E[M S] may be positive. Minkowski's inequality gives the proven form. docs/theory.md has a private policy
    whose KL divergence exceeds the paper's expression. rho E[d^2] itself is `BanditKL.coupling`.

    moments: `Moments` from anywhere, or a `coupled_run`. The last reward is never acted upon, so the moments of all
    steps but the last will do.

    >>> kl_bound_bandit(1.0, Moments(mean=1.0, variance=0.0, spread=1.0))
    4.0
    >>> kl_bound_bandit(1.0, Moments(mean=1.0, variance=0.0, spread=1.0), form="paper")
    2.0
    """
    if form not in ("proven", "paper"):
        raise InvalidInput(f'form must be "proven" or "paper", got {form!r}')
    squared = moments.mean**2 + moments.variance
    if form == "paper":
        return times(checked_rho(rho), squared + moments.spread)
    return times(checked_rho(rho), (math.sqrt(squared) + math.sqrt(moments.spread)) ** 2)


@dataclass(frozen=True)
class BanditKL:
    """The exact KL divergence of a small policy's actions on two instances, beside its bounds.

    kl <= coupling <= proven, if the policy keeps rho. `paper` can be on either side of coupling, and below kl: see
    `kl_bound_bandit`.
    """

    kl: float
    coupling: float
    paper: float
    proven: float


def bandit_kl(rho: float, policy: PolicyRule, instance1: Instance, instance2: Instance, horizon: int) -> BanditKL:
    """All four numbers for a small policy, by following every history (see `transport.coupled_run`).

    rho: what the policy keeps, which is not checked here.

    >>> found = bandit_kl(0.5, lambda history: [0.5, 0.5], [{0: 1.0}] * 2, [{1: 1.0}] * 2, horizon=1)
    >>> found.kl, found.coupling, found.paper, found.proven
    (0.0, 0.5, 0.5, 0.5)
    """
    run = coupled_run(policy, instance1, instance2, horizon)
    coupling = times(checked_rho(rho), run.distance_squared)
    return BanditKL(run.kl, coupling, kl_bound_bandit(rho, run, "paper"), kl_bound_bandit(rho, run, "proven"))


def _product_distance(marginals1: Sequence[Mapping[Any, float]], marginals2: Sequence[Mapping[Any, float]]) -> float:
    """E[d^2] when each coordinate is coupled maximally and on its own."""
    if len(marginals1) != len(marginals2):
        raise InvalidInput(f"both inputs need the same length, got {len(marginals1)} and {len(marginals2)} marginals")
    shifts = [total_variation(p, q) for p, q in zip(marginals1, marginals2, strict=True)]
    return math.fsum(shifts) ** 2 + math.fsum(t * (1 - t) for t in shifts)
