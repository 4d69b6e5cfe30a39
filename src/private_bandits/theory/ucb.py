"""Regret of the index policies for finitely many arms: AdaC-UCB (Gaussian noise) and AdaP-UCB (Laplace noise).

One proof serves both (docs/theory.md). An arm a that starts an episode with 2^j rewards has an index of n = 2^(j-1) of
them. Once n is so large that twice the index's width is at most the gap, the arm is chosen only if its own released
mean, or that of the best arm, is off by its width. The j-th such episode is 2^j long and begins after step 2^j, where
the width fails with probability 2^(-j beta) at most. Summed over episodes that is a constant for every beta > 1.
"""

from __future__ import annotations

import math

from numpy.typing import ArrayLike

from private_bandits.budget import Budget
from private_bandits.checks import check_positive
from private_bandits.errors import InvalidInput
from private_bandits.theory.bound import EXPECTED, PAPER, Assumptions, Bound
from private_bandits.theory.bound_inputs import as_budget, checked_gaps, checked_size, gaussian
from private_bandits.theory.divergence import Form

SOURCE = f"{PAPER}, Appendix C"
USE_ADAP = "use adap_ucb_regret or adap_ucb_minimax"


def late_plays(beta: float) -> float:
    """Expected plays of an arm after its index should have ruled it out, at most; infinite for beta <= 1.

    sum over j >= 1 of  2^j ( 2^(-j beta) + (j+1) 2^(-j beta) + sum over i > j of 2^(-i beta) ): its own mean is off, or
    that of the best arm, which has j + 1 releases up to its 2^j-th reward; or a later one of the best arm.

    >>> round(late_plays(3), 6), round(10 / 9 + 1 / 21, 6)
    (1.15873, 1.15873)
    """
    if beta <= 1:
        return math.inf
    q, p = math.pow(2, 1 - beta), math.pow(2, -beta)
    return q / (1 - q) ** 2 + 2 * q / (1 - q) + q / (1 - q) * p / (1 - p)


def adac_ucb_regret(
    gaps: ArrayLike,
    horizon: float,
    budget: float | Budget,
    beta: float = 3.1,
    form: Form = "proven",
    bounded: bool = True,
) -> Bound:
    """Expected regret of AdaC-UCB on arms with these gaps, at most (Theorem "Part a: Problem-dependent regret").

    paper:   sum over worse arms of  8 beta log(T)/gap + 8 sqrt(2 b beta log T) + 2 beta/(beta - 3)
    proven:  the same with  late_plays(beta) gap  in place of the last term, for every beta > 1

    b: variance factor of the budget, 1/(2 rho) for zCDP, so that the middle term is 8 sqrt(beta log(T)/rho). With
    ApproxDP or RenyiDP it is the extension of the paper's appendix. For beta > 3 the paper's form holds too, as it is
    the larger. gaps: of every arm, 0 for the best. bounded: whether rewards lie in [0, 1].

    >>> adac_ucb_regret([0, 0.5], 10**4, 0.1, beta=4).formula
    'sum of 8 beta log(T)/gap + 8 sqrt(2 b beta log T) + late_plays(beta) gap'
    >>> round(adac_ucb_regret([0, 0.5], 10**4, 0.1, beta=4).value, 3)
    743.244
    """
    found, steps, b, beta = _checked(gaps, horizon, gaussian(budget, USE_ADAP).variance_factor, beta)
    worse = [gap for gap in found if gap > 0]
    rewards = math.fsum(8 * beta * math.log(steps) / gap for gap in worse)
    noise = len(worse) * 8 * math.sqrt(2 * b * beta * math.log(steps))
    rest = _rest(worse, beta, form)
    last = "2 beta/(beta - 3)" if form == "paper" else "late_plays(beta) gap"
    formula = f"sum of 8 beta log(T)/gap + 8 sqrt(2 b beta log T) + {last}"
    source = f"{SOURCE}, Theorem (Part a)" + _proved(form)
    assumptions = _assumptions(steps, len(found), beta, form, bounded)
    return Bound("AdaC-UCB", rewards + noise + rest, noise, formula, source, "upper", EXPECTED, assumptions)


def adac_ucb_minimax(
    arms: float,
    horizon: float,
    budget: float | Budget,
    beta: float = 3.1,
    form: Form = "proven",
    gap_sum: float | None = None,
    bounded: bool = True,
) -> Bound:
    """Expected regret of AdaC-UCB on any K arms, at most (Theorem "Part b: Minimax regret", constants of its proof).

    paper:   4 sqrt(2 beta K T log T) + 8 K sqrt(2 b beta log T) + 3 beta/(beta - 3) * sum of gaps
    proven:  K - 1 in place of K, as the best arm costs nothing, and  late_plays(beta)  in place of 3 beta/(beta - 3)

    The proof of the paper's part b has 3 beta/(beta - 3) where its part a has 2 beta/(beta - 3); either holds for
    beta > 3. gap_sum: K - 1 unless given, as gaps of rewards in [0, 1] are at most 1.

    >>> round(adac_ucb_minimax(5, 10**7, 0.1, beta=4, form="paper").value, 1)
    322242.4
    """
    k = checked_size("arms", arms, 1)
    _, steps, b, beta = _checked([0.0], horizon, gaussian(budget, USE_ADAP).variance_factor, beta)
    total, counted = (k - 1 if gap_sum is None else float(gap_sum)), (k if form == "paper" else k - 1)
    if not 0 <= total < math.inf:
        raise InvalidInput(f"gap_sum must be a finite number, at least 0, got {gap_sum!r}")
    rewards = 4 * math.sqrt(2 * beta * counted * steps * math.log(steps))
    noise = counted * 8 * math.sqrt(2 * b * beta * math.log(steps))
    rest = total * (_paper_constant(beta) * 1.5 if form == "paper" else late_plays(beta)) if total else 0.0
    count, last = ("K", "3 beta/(beta - 3)") if form == "paper" else ("(K-1)", "late_plays(beta)")
    gaps = "(K-1)" if gap_sum is None else "sum of gaps"
    formula = f"4 sqrt(2 beta {count} T log T) + 8 {count} sqrt(2 b beta log T) + {last} * {gaps}"
    source = f"{SOURCE}, Theorem (Part b)" + _proved(form)
    assumptions = _assumptions(steps, k, beta, form, bounded)
    return Bound("AdaC-UCB, any gaps", rewards + noise + rest, noise, formula, source, "upper", EXPECTED, assumptions)


def adap_ucb_regret(
    gaps: ArrayLike,
    horizon: float,
    budget: float | Budget,
    beta: float = 3.1,
    form: Form = "proven",
    bounded: bool = True,
) -> Bound:
    """Expected regret of AdaP-UCB, which keeps pure DP, on arms with these gaps, at most.

    paper:   sum of  8 beta log(T)/gap + 8 sqrt(2 beta) log(T)/epsilon        ("converted", its second table)
    proven:  sum of  8 beta log(T)/gap + 16 beta log(T)/epsilon + 1.5 late_plays(beta) gap

    A number, or a zCDP budget, is compared at epsilon = sqrt(2 rho). The table's private part has sqrt(beta) where the
    Laplace tail, beta log(t)/(epsilon n), gives beta: for beta > 1/2 it is too small by sqrt(2 beta) and does not
    follow. 1.5: a width fails when the rewards do, or the noise, which a Laplace tail does half as often.

    >>> round(adap_ucb_regret([0, 0.5], 10**4, 0.5, beta=4).value, 3)
    1179.267
    """
    epsilon = _epsilon(budget)
    found, steps, _, beta = _checked(gaps, horizon, 0.0, beta)
    worse = [gap for gap in found if gap > 0]
    rewards = math.fsum(8 * beta * math.log(steps) / gap for gap in worse)
    factor = 8 * math.sqrt(2 * beta) if form == "paper" else 16 * beta
    noise = len(worse) * factor * math.log(steps) / epsilon
    rest = 0.0 if form == "paper" else 1.5 * _rest(worse, beta, form)
    private, last = ("8 sqrt(2 beta)", "") if form == "paper" else ("16 beta", " + 1.5 late_plays(beta) gap")
    formula = f"sum of 8 beta log(T)/gap + {private} log(T)/epsilon{last}"
    source = "Azize and Basu 2022, Theorem 7, as the paper's second table converts it"
    source = source if form == "paper" else "as AdaC-UCB's, with the Laplace tail: docs/theory.md"
    assumptions = _assumptions(steps, len(found), beta, form, bounded)
    if form == "paper":
        assumptions = (
            *assumptions,
            ("beta <= 1/2, else the private part does not follow", beta <= 0.5),
        )
    return Bound("AdaP-UCB", rewards + noise + rest, noise, formula, source, "upper", EXPECTED, assumptions)


def adap_ucb_minimax(
    arms: float, horizon: float, budget: float | Budget, beta: float = 3.1, bounded: bool = True
) -> Bound:
    """Expected regret of AdaP-UCB on any K arms, at most.

    4 sqrt(2 beta (K-1) T log T) + 16 (K-1) beta log(T)/epsilon + 1.5 (K-1) late_plays(beta), from `adap_ucb_regret` as
    part b from part a. A number, or a zCDP budget, is compared at epsilon = sqrt(2 rho).

    >>> adap_ucb_minimax(5, 10**7, 0.1).value > adac_ucb_minimax(5, 10**7, 0.1).value
    True
    """
    k, epsilon = checked_size("arms", arms, 1), _epsilon(budget)
    _, steps, _, beta = _checked([0.0], horizon, 0.0, beta)
    rewards = 4 * math.sqrt(2 * beta * (k - 1) * steps * math.log(steps))
    noise = (k - 1) * 16 * beta * math.log(steps) / epsilon
    rest = 1.5 * (k - 1) * late_plays(beta) if k > 1 else 0.0
    formula = "4 sqrt(2 beta (K-1) T log T) + 16 (K-1) beta log(T)/epsilon + 1.5 (K-1) late_plays(beta)"
    source = "as AdaC-UCB's, with the Laplace tail: docs/theory.md"
    assumptions = _assumptions(steps, k, beta, "proven", bounded)
    return Bound("AdaP-UCB, any gaps", rewards + noise + rest, noise, formula, source, "upper", EXPECTED, assumptions)


def _checked(gaps: ArrayLike, horizon: float, b: float, beta: float) -> tuple[tuple[float, ...], int, float, float]:
    return checked_gaps(gaps), checked_size("horizon", horizon, 2), b, check_positive("beta", beta)


def _epsilon(budget: float | Budget) -> float:
    """Of pure DP; of a zCDP budget, that of the pure DP which implies it."""
    found = as_budget(budget)
    if found.noise == "gaussian":
        return math.sqrt(2 * found.level)
    return found.level


def _rest(worse: list[float], beta: float, form: Form) -> float:
    """What comes on top of the plays that the gap demands."""
    if form not in ("proven", "paper"):
        raise InvalidInput(f'form must be "proven" or "paper", got {form!r}')
    if not worse:
        return 0.0
    return len(worse) * _paper_constant(beta) if form == "paper" else math.fsum(worse) * late_plays(beta)


def _paper_constant(beta: float) -> float:
    """2 beta/(beta - 3); nothing is promised for beta <= 3."""
    return 2 * beta / (beta - 3) if beta > 3 else math.inf


def _proved(form: Form) -> str:
    return "" if form == "paper" else "; constants: docs/theory.md"


def _assumptions(steps: int, arms: int, beta: float, form: Form, bounded: bool) -> Assumptions:
    least = 3 if form == "paper" else 1
    return (
        ("rewards in [0, 1]", bounded),
        (f"beta > {least}", beta > least),
        ("T >= K", steps >= arms),
    )
