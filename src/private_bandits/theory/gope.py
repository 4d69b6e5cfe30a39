"""Regret of AdaC-GOPE as published, for linear bandits with finitely many actions.

With probability 1 - delta no phase errs by more than its width. Then every action that is still active in phase l has a
gap of at most 4 w_(l-1), w_l = (1 + tol) 2^-l, and a phase is at most c_l + d(d+1)/2 long. tol: of the designs, which
need not be exactly optimal; the policy then drops by the width that it really reached, at most w_l.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from numpy.typing import ArrayLike

from private_bandits.budget import Budget
from private_bandits.checks import check_probability
from private_bandits.errors import InvalidInput
from private_bandits.policies.adac_gope import paper_length
from private_bandits.theory.bound import PAPER, Assumptions, Bound, with_probability
from private_bandits.theory.bound_inputs import checked_gaps, checked_size, gaussian

SOURCE = f"{PAPER}, Theorem on AdaC-GOPE; constants: docs/theory.md"
INSTEAD = "of pure DP only orders are known here, see hanna_order"


def adac_gope_regret(
    dimension: float,
    arms: float,
    horizon: float,
    budget: float | Budget,
    delta: float = 1e-3,
    tol: float = 1e-3,
    gaps: ArrayLike | None = None,
    bounded: bool = True,
    in_ball: bool = True,
) -> Bound:
    """Regret of AdaC-GOPE, at most, phase by phase.

    sum over phases of  r_l (c_l + min(K, d(d+1)/2)),  r_l = min(2, 4 (1 + tol) 2^-(l-1)),  the last phase cut at T.
    With gaps, r_l is the largest gap that is at most 4 (1 + tol) 2^-(l-1); nothing once all are larger.

    c_l: Eq. (4), as in the policy's variant "paper". In expectation 2 T delta more at most, as a step costs up to 2
    (the paper: T delta).

    bounded: whether rewards less their means are 1-subgaussian, as those in [-1, 1] are. in_ball: ||a||, ||theta|| are
    at most 1.

    >>> adac_gope_regret(3, 10, 10**7, 0.1).value < adac_gope_closed(3, 10, 10**7, 0.1).value
    True
    """
    d, k, steps, b, delta = _checked(dimension, arms, horizon, budget, delta)
    tol = _checked_tol(tol)
    found = None if gaps is None else checked_gaps(gaps)
    value = _sum(d, k, steps, b, delta, tol, found)
    noise = max(0.0, value - _sum(d, k, steps, 0.0, delta, tol, found))
    formula = "sum over phases of r_l (c_l + min(K, d(d+1)/2)), r_l = min(2, 4(1+tol) 2^(1-l)), cut at T"
    if found is not None:
        formula = formula.replace("min(2, 4(1+tol) 2^(1-l))", "the largest gap up to 4(1+tol) 2^(1-l)")
    name = "AdaC-GOPE, by phases" + ("" if found is None else ", with gaps")
    assumptions = _assumptions(bounded, in_ball)
    return Bound(name, value, noise, formula, SOURCE, "upper", with_probability(delta), assumptions)


def adac_gope_closed(
    dimension: float,
    arms: float,
    horizon: float,
    budget: float | Budget,
    delta: float = 1e-3,
    tol: float = 1e-3,
    bounded: bool = True,
    in_ball: bool = True,
) -> Bound:
    """The same in closed form, with the constants that the paper calls A and B.

    (1 + tol) ( 64 sqrt(d T L) + 16 d m sqrt(4 b F) + 4 d(d+1) )

    m: phases that begin before T. L = log(4 K m(m+1)/delta), F = f(d, delta/(K m(m+1))) as in Eq. (4).

    The paper's B is no universal constant: F holds d, so the private part is of order d^(3/2) once d exceeds the
    logarithms. The Gaussian tail at one action would give order d: `phase_length="own"` of the policy, or
    its variant "tight".

    >>> bound = adac_gope_closed(3, 10, 10**7, 0.1)
    >>> 0 < bound.private < bound.value
    True
    """
    d, k, steps, b, delta = _checked(dimension, arms, horizon, budget, delta)
    tol = _checked_tol(tol)
    m = sum(1 for _ in _phases(d, k, steps, b, delta))
    share = delta / (k * m * (m + 1))
    tail = math.log(2 / share)
    f = d + 2 * math.sqrt(d * tail) + 2 * tail
    noise = (1 + tol) * 16 * d * m * math.sqrt(4 * b * f)
    value = (1 + tol) * (64 * math.sqrt(d * steps * math.log(4 / share)) + 4 * d * (d + 1)) + noise
    formula = "(1+tol) (64 sqrt(d T log(4 K m(m+1)/delta)) + 16 d m sqrt(4 b f(d, delta/(K m(m+1)))) + 4 d(d+1))"
    assumptions = _assumptions(bounded, in_ball)
    return Bound("AdaC-GOPE, closed form", value, noise, formula, SOURCE, "upper", with_probability(delta), assumptions)


def _phases(d: int, k: int, steps: int, b: float, delta: float) -> Iterator[float]:
    """c_l of every phase that begins before the horizon."""
    played, phase = 0.0, 1
    while played < steps:
        length = paper_length(phase, d, k, delta, b)
        yield length
        played, phase = played + length, phase + 1


def _sum(d: int, k: int, steps: int, b: float, delta: float, tol: float, gaps: tuple[float, ...] | None) -> float:
    """Rates fall from phase to phase, so phases as long as can be are the worst."""
    left, phase, total = float(steps), 1, 0.0
    while left > 0:
        half_width = 4 * (1 + tol) * 2.0 ** (1 - phase)
        rate = min(2.0, half_width) if gaps is None else max((gap for gap in gaps if gap <= half_width), default=0.0)
        if not rate:
            break
        plays = min(left, paper_length(phase, d, k, delta, b) + min(k, d * (d + 1) // 2))
        total, left, phase = total + rate * plays, left - plays, phase + 1
    return total


def _checked(
    dimension: float, arms: float, horizon: float, budget: float | Budget, delta: float
) -> tuple[int, int, int, float, float]:
    d, k = checked_size("dimension", dimension, 1), checked_size("arms", arms, 1)
    b = gaussian(budget, INSTEAD).variance_factor
    return d, k, checked_size("horizon", horizon, 2), b, check_probability("delta", delta)


def _checked_tol(tol: float) -> float:
    if not 0 <= tol <= 1:
        raise InvalidInput(f"tol must lie between 0 and 1, got {tol!r}")
    return float(tol)


def _assumptions(bounded: bool, in_ball: bool) -> Assumptions:
    return (
        ("rewards less their means are 1-subgaussian, as rewards in [-1, 1] are", bounded),
        ("||a|| <= 1 and ||theta|| <= 1", in_ball),
    )
