"""What no private policy can beat: minimax lower bounds, and the budget from which on privacy may be free.

They bound the worst instance of a class, not each: unit-variance Gaussian arms, or actions in [-1, 1]^d. Compare them
with the largest regret over the instances of their proofs, whose gap `finite_lower_scan` gives.

Two instances are as hard to tell apart as the KL divergence between the published actions is small. Privacy bounds it
(`kl_bound_bandit`). form="paper" has the paper's bound on it, which is false as stated; form="proven" what holds
instead, 2 rho in the place of rho. Pure DP: KL <= epsilon E[S], as the log ratio is at most epsilon times the number of
rewards that differ, whose mean is E[S].
"""

from __future__ import annotations

import math
from typing import Literal

from private_bandits.budget import Budget, NoPrivacy, PureDP
from private_bandits.errors import InvalidInput
from private_bandits.theory.bound import PAPER, WORST, Assumptions, Bound
from private_bandits.theory.bound_inputs import as_budget, checked_size
from private_bandits.theory.divergence import Form, Moments, kl_bound_bandit

SOURCE = f"{PAPER}, Appendix G"
LARGEST_GAP = 0.5
"""Of the better arm in the first instance; the second one has twice that, and means are to lie in [0, 1]."""
FINITE_CLASS = "about the worst of: unit-variance Gaussian arms"
LINEAR_CLASS = "about the worst of: actions [-1, 1]^d, N(0, 1) noise, any theta"
Notion = Literal["zCDP", "PureDP"]
Rewards = Literal["gaussian", "binary"]


def finite_lower(arms: float, horizon: float, budget: float | Budget, form: Form = "proven") -> Bound:
    """The largest expected regret over unit-variance Gaussian arms with means in [0, 1], at least, if private.

    paper:    max( sqrt(T (K-1))/27,  sqrt((K-1)/rho)/124 )       Theorem "Minimax lower bounds for finite arms"
    proven:   max( sqrt(T (K-1))/27,  sqrt((K-1)/(2 rho))/124 )   for rho <= 1/2
    pure DP:  max( sqrt(T (K-1))/27,  (K-1)/(8 e epsilon) )       either form

    Beyond rho = 1/2 (1 in the paper's form) the first part is the larger, and needs no condition on rho. A budget in
    (epsilon, delta) or Renyi DP counts as the zCDP that policies here keep for it: for those notions by themselves
    group privacy gives no such bound. The gap of the private part's instance is to be at most 1/2, see `LARGEST_GAP`.

    >>> finite_lower(5, 100, 1e-5).value == math.sqrt(4 / 2e-5) / 124
    True
    >>> finite_lower(5, 10**7, 0.1).private
    0.0
    """
    k, steps, found = checked_size("arms", arms, 2), checked_size("horizon", horizon, 1), as_budget(budget)
    free = math.sqrt(steps * (k - 1)) / 27
    strength = _loss(form) * found.level
    if isinstance(found, PureDP):
        part, gap = (k - 1) / (8 * math.e * found.epsilon), (k - 1) / (found.epsilon * steps)
        text = "(K-1)/(8 e epsilon)"
    else:
        part, gap = math.sqrt((k - 1) / strength) / 124, _finite_gap(k, steps, strength)
        text = "sqrt((K-1)/rho)/124" if form == "paper" else "sqrt((K-1)/(2 rho))/124"
    assumptions: Assumptions = ((FINITE_CLASS, True), ("T >= K-1", steps >= k - 1))
    assumptions += _standing(found, form, strength, part <= free)
    if part > free:
        assumptions += (("the hard instance has a gap of at most 1/2", gap <= LARGEST_GAP),)
    source = f"{SOURCE}; Lattimore and Szepesvari 2020, Theorem 15.2"
    return _larger("any policy, finite arms", free, part, f"max(sqrt(T (K-1))/27, {text})", source, assumptions)


def finite_lower_scan(
    arms: float, horizon: float, budget: float | Budget, rewards: Rewards = "gaussian"
) -> tuple[float, float]:
    """The best lower bound of that proof, and its gap: the largest over gaps in (0, 1/2], found by a scan.

    T gap/8 exp(-KL),  KL = min( 2 n gap^2, rho (t sqrt(T n) + sqrt(n t (1-t)))^2 ),  n = T/(K-1) the plays of the arm
    that differs, at most, and t = erf(gap/sqrt 2) the total variation between N(0, 1) and N(2 gap, 1). Pure DP:
    epsilon n t in place of the second. Binary: the same proof for rewards of 0 and 1 with means from 1/2 to 9/10, so
    gaps up to 1/5, n log(1/(1 - 16 gap^2))/2 in place of 2 n gap^2, and t = 2 gap.

    Every gap gives a bound that holds, for every rho. The two instances have means (gap, 0, ..., 0), and the same with
    2 gap at one other arm.

    >>> value, gap = finite_lower_scan(5, 10**4, 0.1)
    >>> value > finite_lower(5, 10**4, 0.1).value
    True
    """
    k, steps, found = checked_size("arms", arms, 2), checked_size("horizon", horizon, 1), as_budget(budget)
    scanned = [largest_gap(rewards) * math.exp(-0.02 * i) for i in range(1500)]
    return max((steps * gap / 8 * math.exp(-_finite_kl(gap, k, steps, found, rewards)), gap) for gap in scanned)


def largest_gap(rewards: Rewards) -> float:
    """Of a scan.

    >>> largest_gap("gaussian"), largest_gap("binary")
    (0.5, 0.2)
    """
    return {"gaussian": LARGEST_GAP, "binary": 0.2}[rewards]


def finite_lower_best(arms: float, horizon: float, budget: float | Budget) -> Bound:
    """`finite_lower_scan` as a bound.

    >>> finite_lower_best(5, 10**7, 0.1).value > finite_lower(5, 10**7, 0.1).value
    True
    """
    value, gap = finite_lower_scan(arms, horizon, budget)
    free, _ = finite_lower_scan(arms, horizon, NoPrivacy())
    formula = f"max over gaps of T gap/8 exp(-KL(gap)); the largest at gap = {gap:.3g}"
    assumptions = ((FINITE_CLASS, True),)
    name, source = "any policy, finite arms, gap scanned", f"{SOURCE}; constants: docs/theory.md"
    return Bound(name, value, max(0.0, value - free), formula, source, "lower", WORST, assumptions)


def linear_lower(dimension: float, horizon: float, budget: float | Budget, form: Form = "proven") -> Bound:
    """The largest expected regret over theta, for actions [-1, 1]^d and N(0, 1) noise, at least, if private.

    paper:    max( e^-2/8 d sqrt(T),  e^-2.25/4 d/sqrt(rho) )     Theorem "Minimax Lower Bounds for Linear Bandits"
    proven:   max( e^-2/8 d sqrt(T),  e^-2/8 d/sqrt(2 rho) )      for rho <= 1/2
    pure DP:  max( e^-2/8 d sqrt(T),  d/(8 e epsilon) )           either form

    The paper's private part is too large by two: its Markov inequality, for T/2 wrong signs, loses the factor 1/2. Its
    e^-2.25 is smaller than need be: S is at most 1/sqrt(rho), so E[S]^2 + Var[S] is at most 1/rho and not 5/(4 rho).

    >>> linear_lower(3, 100, 1e-5).value == math.exp(-2) / 8 * 3 / math.sqrt(2e-5)
    True
    """
    d, steps, found = checked_size("dimension", dimension, 1), checked_size("horizon", horizon, 1), as_budget(budget)
    free = math.exp(-2) / 8 * d * math.sqrt(steps)
    strength = _loss(form) * found.level
    if isinstance(found, PureDP):
        part, text, hard = d / (8 * math.e * found.epsilon), "d/(8 e epsilon)", 1 / (found.epsilon * steps)
    else:
        hard = 1 / (steps * math.sqrt(strength)) if strength else math.inf
        part = (math.exp(-2.25) / 4 if form == "paper" else math.exp(-2) / 8) * d / math.sqrt(strength)
        text = "e^-2.25/4 d/sqrt(rho)" if form == "paper" else "e^-2/8 d/sqrt(2 rho)"
    formula = f"max(e^-2/8 d sqrt(T), {text})"
    assumptions: Assumptions = ((LINEAR_CLASS, True),)
    assumptions += _standing(found, form, strength, part <= free)
    if part > free:
        assumptions += (("the hard theta leaves mean rewards in [-1, 1]", d * hard <= 1),)
    if form == "paper" and found.noise == "gaussian":
        lost = "Markov's inequality without its factor 1/2, which is false, or the non-private part is the larger"
        assumptions += ((lost, part <= free),)
    source = f"{SOURCE}; Lattimore and Szepesvari 2020, Theorem 24.1"
    return _larger("any policy, linear", free, part, formula, source, assumptions)


def linear_lower_size(horizon: float, budget: float | Budget) -> float:
    """The entries of the hard theta of `linear_lower`: those of the part that is the larger.

    1/sqrt(T), or 1/(T sqrt(2 rho)); pure DP: 1/(epsilon T).

    >>> linear_lower_size(100, math.inf), linear_lower_size(100, 0.5e-4)
    (0.1, 1.0)
    """
    steps, found = checked_size("horizon", horizon, 1), as_budget(budget)
    private = found.epsilon if isinstance(found, PureDP) else math.sqrt(_loss("proven") * found.level)
    return max(1 / math.sqrt(steps), 1 / (steps * private))


def finite_threshold(arms: float, horizon: float, notion: Notion = "zCDP", form: Form = "proven") -> float:
    """The budget below which the private part of `finite_lower` is the larger: privacy then costs regret for sure.

    zCDP: rho = (27/124)^2/T (paper), half of that (proven). Pure DP: epsilon = 27/(8 e) sqrt((K-1)/T).

    >>> finite_threshold(5, 10**6) == (27 / 124) ** 2 / (2 * 10**6)
    True
    """
    k, steps = checked_size("arms", arms, 2), checked_size("horizon", horizon, 1)
    if _checked_notion(notion) == "PureDP":
        return 27 / (8 * math.e) * math.sqrt((k - 1) / steps)
    return (27 / 124) ** 2 / (_loss(form) * steps)


def linear_threshold(horizon: float, notion: Notion = "zCDP", form: Form = "proven") -> float:
    """The budget below which the private part of `linear_lower` is the larger.

    zCDP: rho = 4 e^-0.5/T (paper), 1/(2 T) (proven). Pure DP: epsilon = e/sqrt(T). epsilon^2/2 and rho are of the same
    order, 1/T.

    >>> linear_threshold(100), linear_threshold(100, "PureDP") == math.e / 10
    (0.005, True)
    """
    steps = checked_size("horizon", horizon, 1)
    if _checked_notion(notion) == "PureDP":
        return math.e / math.sqrt(steps)
    return 4 * math.exp(-0.5) / steps if _loss(form) == 1 else 1 / (2 * steps)


def _finite_kl(gap: float, k: int, steps: int, budget: Budget, rewards: Rewards) -> float:
    plays = steps / (k - 1)
    # KL and total variation of one reward: N(0, 1) and N(2 gap, 1), or coins of 1/2 and 1/2 + 2 gap
    one = 2 * gap**2 if rewards == "gaussian" else -0.5 * math.log1p(-16 * gap**2)
    free = plays * one
    if isinstance(budget, NoPrivacy):
        return free
    t = math.erf(gap / math.sqrt(2)) if rewards == "gaussian" else 2 * gap
    if isinstance(budget, PureDP):
        return min(free, budget.epsilon * plays * t)
    mean, squared = t * plays, t**2 * steps * plays  # E[N^2] <= T E[N]
    return min(free, kl_bound_bandit(budget.level, Moments(mean, max(0.0, squared - mean**2), mean * (1 - t))))


def _finite_gap(k: int, steps: int, strength: float) -> float:
    """The gap of the proof's instance. strength: rho, or 2 rho."""
    b = strength * steps**2 / (k - 1) * (1 + 1 / (k - 1))
    return 1 / math.sqrt(b) - strength * steps / (k - 1) / (2 * b) if b < math.inf else 0.0


def _loss(form: Form) -> int:
    """By what rho is multiplied in the bound on KL."""
    if form not in ("proven", "paper"):
        raise InvalidInput(f'form must be "proven" or "paper", got {form!r}')
    return 1 if form == "paper" else 2


def _standing(budget: Budget, form: Form, strength: float, smaller: bool) -> Assumptions:
    """What the private part stands on. smaller: than the other part, which stands by itself."""
    if budget.noise != "gaussian":
        return ()
    limit = "1" if form == "paper" else "1/2"
    found: Assumptions = ((f"rho <= {limit}, or the non-private part is the larger", strength <= 1 or smaller),)
    if type(budget).__name__ != "zCDP":
        found += ((f"{type(budget).__name__} is kept through zCDP, as policies here do", True),)
    if form == "paper":
        found += (("the paper's KL decomposition, which is false, or the non-private part is the larger", smaller),)
    return found


def _checked_notion(notion: Notion) -> Notion:
    if notion not in ("zCDP", "PureDP"):
        raise InvalidInput(f'notion must be "zCDP" or "PureDP", got {notion!r}')
    return notion


def _larger(name: str, free: float, part: float, formula: str, source: str, assumptions: Assumptions) -> Bound:
    source += "; constants: docs/theory.md"
    return Bound(name, max(free, part), max(0.0, part - free), formula, source, "lower", WORST, assumptions)
