"""Regret of AdaC-OFUL, for contextual linear bandits.

With probability 1 - 2 delta theta is in the policy's ellipsoid at every release: its width is for the V that was really
seen, so that no assumption on the contexts is needed for that. A step then costs at most 2 sqrt(1+C) width ||a||, the
norm that of V^-1, and those norms add up by the elliptical potential lemma. What is due to the noise falls with the
smallest eigenvalue of V: bounded by lambda for any contexts, or assumed to grow with time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from private_bandits.budget import Budget
from private_bandits.checks import check_positive, check_probability
from private_bandits.errors import InvalidInput
from private_bandits.policies.optimism import noise_tail, reward_width
from private_bandits.theory.bound import PAPER, Assumptions, Bound, with_probability
from private_bandits.theory.bound_inputs import checked_size, gaussian
from private_bandits.theory.divergence import Form

SOURCE = f"{PAPER}, Theorem on AdaC-OFUL; constants: docs/theory.md"
SMALLEST_EIGENVALUE = 1e-9
"""Below, V settles after more steps than anyone has."""
INSTEAD = "pure DP implies zCDP(epsilon**2/2)"


@dataclass(frozen=True)
class _Parts:
    """What all forms are made of, for ||a|| <= 1 and rewards in [-1, 1]."""

    d: int
    steps: int
    delta: float
    regulariser: float
    growth: float
    norm: float
    b: float

    @property
    def log_det(self) -> float:
        """log(det V_T/lambda^d) by the arithmetic and geometric means, at most."""
        return self.d * math.log1p(self.steps / (self.regulariser * self.d))

    @property
    def potential(self) -> float:
        """The sum over steps of min(1, ||a||^2 in V^-1), at most (elliptical potential lemma)."""
        return 2 * self.log_det

    @property
    def releases(self) -> float:
        """How many there are, at most: the determinant grows by 1 + C from one to the next."""
        return self.log_det / math.log1p(self.growth)

    @property
    def rewards_width(self) -> float:
        """beta_T: the policy's own width without noise."""
        return reward_width(2.0, self.delta, self.log_det) + math.sqrt(self.regulariser) * self.norm

    @property
    def noise_norm(self) -> float:
        """The norm of all noises in a sum, but for a probability of delta: sqrt(4 b l f(d, delta/T))."""
        return math.sqrt(4 * self.b * self.releases * noise_tail(self.d, self.delta / self.steps))

    @property
    def factor(self) -> float:
        """What a width costs in all: 2 sqrt(1+C) sqrt(potential)."""
        return 2 * math.sqrt((1 + self.growth) * self.potential)

    @property
    def wide_enough(self) -> bool:
        """Whether 2 sqrt(1+C) width >= 2, what a step costs at most: min(1, ||a||) may then stand for ||a||."""
        least = math.sqrt(2 * math.log(1 / self.delta)) + math.sqrt(self.regulariser) * self.norm
        return math.sqrt(1 + self.growth) * least >= 1


def adac_oful_regret(
    dimension: float,
    horizon: float,
    budget: float | Budget,
    delta: float = 1e-3,
    regulariser: float = 0.1,
    growth: float = 1.0,
    parameter_norm: float = 1.0,
    bounded: bool = True,
    in_ball: bool = True,
) -> Bound:
    """Regret of AdaC-OFUL for any contexts, at most; with probability 1 - 2 delta.

    2 sqrt(1+C) sqrt(T P) ( beta_T + sqrt(4 b l f(d, delta/T)/lambda) ),   P = 2 d log(1 + T/(lambda d)),
    beta_T = sqrt(2 log(1/delta) + d log(1 + T/(lambda d))) + sqrt(lambda) S,   l = P/(2 log(1+C))

    For every lambda > 0. The private part grows with sqrt(T), as nothing keeps contexts from hiding a direction.

    >>> free = adac_oful_regret(3, 10**7, math.inf)
    >>> free.private, round(free.value)
    (0.0, 768394)
    """
    parts = _parts(dimension, horizon, budget, delta, regulariser, growth, parameter_norm)
    noise = parts.factor * math.sqrt(parts.steps / parts.regulariser) * parts.noise_norm
    value = parts.factor * math.sqrt(parts.steps) * parts.rewards_width + noise
    formula = "2 sqrt((1+C) T P) (beta_T + sqrt(4 b l f(d, delta/T)/lambda)), P = 2 d log(1 + T/(lambda d))"
    assumptions = _assumptions(parts, bounded, in_ball, failures=2)
    of = with_probability(2 * parts.delta)
    return Bound("AdaC-OFUL, any contexts", value, noise, formula, SOURCE, "upper", of, assumptions)


def adac_oful_stochastic(
    dimension: float,
    horizon: float,
    budget: float | Budget,
    eigenvalue: float,
    delta: float = 1e-3,
    regulariser: float = 0.1,
    growth: float = 1.0,
    parameter_norm: float = 1.0,
    form: Form = "proven",
    bounded: bool = True,
    in_ball: bool = True,
    on_sphere: bool = True,
) -> Bound:
    """Regret of AdaC-OFUL where the smallest eigenvalue of V grows with time, at most; with probability 1 - 3 delta.

    paper:   2 sqrt((1+C) P) ( beta_T sqrt(T) + gamma_T sqrt((1+C)(1+lambda) l) ),
             gamma_T = sqrt(4 b l f(d, delta/T) T/(lambda + g(T))),  needs lambda >= 1
    proven:  2 sqrt((1+C) P) ( beta_T sqrt(T) + sqrt(4 b l f(d, delta/T) 8/lambda_0 (1 + C + C lambda) l) )
             + early,  for every lambda > 0

    eigenvalue: lambda_0, the smallest one of E[a a']. g: `eigenvalue_floor`, which is negative for small t, so that
    gamma_T is not the largest gamma_t, as the paper's proof has it. From t_0 on (see `settled_from`) lambda + g(t) is
    at least lambda_0 t/8. early: what steps up to t_1 = 1 + C lambda + (1+C) t_0 cost, at most 2 t_1, or as for any
    contexts.

    For d >= 2 no contexts at all meet the paper's Assumption 2 (docs/theory.md), so there this is a bound for contexts
    of which the floor is known from elsewhere.

    >>> bound = adac_oful_stochastic(1, 10**7, 0.1, eigenvalue=1.0, regulariser=1.0)
    >>> bound.holds, adac_oful_stochastic(2, 10**7, 0.1, eigenvalue=0.5, regulariser=1.0).holds
    (True, False)
    """
    parts = _parts(dimension, horizon, budget, delta, regulariser, growth, parameter_norm)
    least = check_positive("eigenvalue", eigenvalue)
    if least < SMALLEST_EIGENVALUE:
        raise InvalidInput(f"eigenvalue must be at least {SMALLEST_EIGENVALUE:g}, got {eigenvalue!r}")
    c, lam, lengths = parts.growth, parts.regulariser, parts.releases
    rewards = parts.factor * math.sqrt(parts.steps) * parts.rewards_width
    if form == "paper":
        floor = lam + eigenvalue_floor(parts.steps, least, parts.delta, parts.d)
        late = math.sqrt(parts.steps / floor * (1 + c) * (1 + lam) * lengths) if floor > 0 else math.inf
        early = 0.0
        formula = "2 sqrt((1+C) P) (beta_T sqrt(T) + gamma_T sqrt((1+C)(1+lambda) l))"
    else:
        late = math.sqrt(8 / least * (1 + c + c * lam) * lengths)
        settled = min(parts.steps, 1 + c * lam + (1 + c) * settled_from(least, parts.delta, parts.d, lam))
        early = min(2.0 * settled, parts.factor * parts.noise_norm * math.sqrt(settled / lam)) if parts.b else 0.0
        formula = (
            "2 sqrt((1+C) P) (beta_T sqrt(T) + sqrt(32 b l^2 f(d, delta/T) (1+C+C lambda)/lambda_0))"
            " + min(2 t_1, 4 sqrt((1+C) P b l f t_1/lambda))"
        )
    noise = (parts.factor * parts.noise_norm * late if parts.b else 0.0) + early
    assumptions = _assumptions(parts, bounded, in_ball, failures=3) + _contexts(parts, least, form, on_sphere)
    of = with_probability(3 * parts.delta)
    return Bound("AdaC-OFUL, stochastic contexts", rewards + noise, noise, formula, SOURCE, "upper", of, assumptions)


def eigenvalue_floor(step: float, eigenvalue: float, delta: float, dimension: int) -> float:
    """g(t), below which the smallest eigenvalue of the sum of a a' is with probability delta at most, at any time.

    lambda_0 t/4 - 8 log((t+3) d/delta) - 2 sqrt(t log((t+3) d/delta)): Gentile et al. 2014, Lemma 2, after
    the paper. Negative, and so of no use, for small t.

    >>> eigenvalue_floor(100, 1.0, 1e-3, 1) < 0 < eigenvalue_floor(10**4, 1.0, 1e-3, 1)
    True
    """
    log_inv_failure = math.log((step + 3) * dimension / delta)
    return eigenvalue * step / 4 - 8 * log_inv_failure - 2 * math.sqrt(step * log_inv_failure)


def settled_from(eigenvalue: float, delta: float, dimension: int, regulariser: float) -> int:
    """t_0: from then on lambda + g(t) >= lambda_0 t/8.

    What is missing to that, h(t), is convex in t: where it is at least 0 and grows, it stays so.

    >>> settled_from(1.0, 1e-3, 1, 1.0)
    5796
    """

    def h(t: int) -> float:
        return regulariser + eigenvalue_floor(t, eigenvalue, delta, dimension) - eigenvalue * t / 8

    def settled(t: int) -> bool:
        return 0 <= h(t) <= h(t + 1)

    low, high = 0, 1
    while not settled(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if settled(middle) else (middle, high)
    return high


def _parts(
    dimension: float,
    horizon: float,
    budget: float | Budget,
    delta: float,
    regulariser: float,
    growth: float,
    parameter_norm: float,
) -> _Parts:
    return _Parts(
        checked_size("dimension", dimension, 1),
        checked_size("horizon", horizon, 2),
        check_probability("delta", delta),
        check_positive("regulariser", regulariser),
        check_positive("growth", growth),
        check_positive("parameter_norm", parameter_norm),
        gaussian(budget, INSTEAD).variance_factor,
    )


def _assumptions(parts: _Parts, bounded: bool, in_ball: bool, failures: int) -> Assumptions:
    """failures: how often delta may be spent."""
    return (
        (f"{failures} delta < 1", failures * parts.delta < 1),
        ("rewards in [-1, 1]", bounded),
        ("||a|| <= 1 and ||theta|| <= S", in_ball),
        ("sqrt(1+C) (sqrt(2 log(1/delta)) + sqrt(lambda) S) >= 1", parts.wide_enough),
    )


def _contexts(parts: _Parts, eigenvalue: float, form: Form, on_sphere: bool) -> Assumptions:
    """What the paper's Assumption 2 says, and what its proof needs beside it."""
    found: Assumptions = (
        ("||a|| = 1 (Assumption 2)", on_sphere),
        ("lambda_0 <= 1/d, as ||a|| = 1", eigenvalue <= 1 / parts.d * (1 + 1e-12)),
        ("(z'a)^2 varies by at most lambda_0^2/(8 log 4K) (Assumption 2): possible for d = 1 only", parts.d == 1),
    )
    if form == "paper":
        found += (
            ("lambda >= 1", parts.regulariser >= 1),
            ("gamma_t <= gamma_T at all t: fails for small t, where lambda + g(t) is near 0", False),
        )
    return found
