"""Order statements: the paper's own and those that it quotes, with every constant of an O(.) set to one.

Such a number bounds nothing by itself. It says how the bounds of two policies compare when all parameters grow. Bounds
for pure DP are compared at epsilon = sqrt(2 rho), as epsilon-DP implies epsilon^2/2-zCDP: the paper calls that
"converted".
"""

from __future__ import annotations

import math
from dataclasses import replace

from private_bandits.budget import Budget
from private_bandits.checks import check_probability
from private_bandits.theory.bound import EXPECTED, PAPER, Assumptions, Bound, with_probability
from private_bandits.theory.bound_inputs import as_budget, checked_size

TABLE_ONE = f"{PAPER}, Table I"
TABLE_TWO = f"{PAPER}, Table II"


def adac_ucb_order(arms: float, horizon: float, budget: float | Budget, beta: float = 3.1) -> Bound:
    """sqrt(K T log T) + K sqrt(log(T)/rho): AdaC-UCB, part b. It is stated for beta > 3, and holds for beta > 1.

    >>> adac_ucb_order(5, 10**7, math.inf).private
    0.0
    """
    k, log_t = checked_size("arms", arms, 1), math.log(_steps(horizon))
    free = math.sqrt(k * horizon * log_t)
    private = k * math.sqrt(log_t) * _rho_root(budget)
    formula = "sqrt(K T log T) + K sqrt(log(T)/rho)"
    return _order("AdaC-UCB, order", free, private, formula, TABLE_ONE, (("beta > 1", beta > 1),))


def adap_ucb_order(arms: float, horizon: float, budget: float | Budget) -> Bound:
    """sqrt(K T log T) + K log(T)/sqrt(rho): AdaP-UCB, converted.

    >>> adap_ucb_order(5, 10**7, 0.1).private > adac_ucb_order(5, 10**7, 0.1).private
    True
    """
    k, log_t = checked_size("arms", arms, 1), math.log(_steps(horizon))
    private = k * log_t * _rho_root(budget)
    source = f"{TABLE_TWO}, from Azize and Basu 2022, Theorem 12"
    free = math.sqrt(k * horizon * log_t)
    return _order("AdaP-UCB, converted", free, private, "sqrt(K T log T) + K log(T)/sqrt(rho)", source)


def adac_gope_order(
    dimension: float, arms: float, horizon: float, budget: float | Budget, delta: float | None = None
) -> Bound:
    """sqrt(d T log(K T)) + d log(K T)^(3/2)/sqrt(rho): AdaC-GOPE, expected, at delta = 1/T.

    With delta, what the theorem says with probability 1 - delta: sqrt(d T a) + d sqrt(a) log(T)/sqrt(rho), with
    a = log(K log(T)/delta). Of the phases as printed the private part follows only while d is at most of the order of
    the logarithm: see `adac_gope_closed`.

    >>> round(adac_gope_order(3, 10, 10**7, 1.0).private, 3)
    237.181
    """
    d, log_kt = checked_size("dimension", dimension, 1), _log_kt(arms, horizon)
    if delta is None:
        private = d * log_kt**1.5 * _rho_root(budget)
        formula = "sqrt(d T log(K T)) + d log(K T)^(3/2)/sqrt(rho)"
        small = ("d <= log(K T), or the private part has d^(3/2)", d <= log_kt)
        return _order("AdaC-GOPE, order", math.sqrt(d * horizon * log_kt), private, formula, TABLE_ONE, (small,))
    log_t = math.log(_steps(horizon))
    odds = math.log(arms * max(log_t, 1.0) / check_probability("delta", delta))
    private = d * math.sqrt(odds) * log_t * _rho_root(budget)
    formula = "sqrt(d T a) + d sqrt(a) log(T)/sqrt(rho), a = log(K log(T)/delta)"
    small = ("d <= a, or the private part has d^(3/2)", d <= odds)
    source = f"{PAPER}, Theorem on AdaC-GOPE"
    bound = _order("AdaC-GOPE, order at delta", math.sqrt(d * horizon * odds), private, formula, source, (small,))
    return replace(bound, of=with_probability(delta))


def hanna_order(dimension: float, arms: float, horizon: float, budget: float | Budget) -> Bound:
    """sqrt(d T log(K T)) + d^2 log(K T)^2/sqrt(rho): Hanna et al., converted from pure DP.

    >>> hanna_order(3, 10, 10**7, 0.1).private > adac_gope_order(3, 10, 10**7, 0.1).private
    True
    """
    d, log_kt = checked_size("dimension", dimension, 1), _log_kt(arms, horizon)
    private = d**2 * log_kt**2 * _rho_root(budget)
    formula = "sqrt(d T log(K T)) + d^2 log(K T)^2/sqrt(rho)"
    source = f"{TABLE_TWO}, from Hanna et al. 2022, Eq. (17)"
    return _order("Hanna et al., converted", math.sqrt(d * horizon * log_kt), private, formula, source)


def li_order(dimension: float, arms: float, horizon: float, budget: float | Budget) -> Bound:
    """sqrt(d T log(K T)) + d^(3/2)/sqrt(rho), logarithms of the private part left out: Li et al.

    The paper quotes nothing but d^(3/2) of it, for (epsilon, delta)-DP.

    >>> li_order(4, 10, 10**7, 1.0).private
    8.0
    """
    d, log_kt = checked_size("dimension", dimension, 1), _log_kt(arms, horizon)
    formula = "sqrt(d T log(K T)) + d^(3/2)/sqrt(rho), without logarithms in the private part"
    source = "Li et al. 2022, Eq. (56), as the paper's Section V quotes it"
    return _order("Li et al.", math.sqrt(d * horizon * log_kt), d**1.5 * _rho_root(budget), formula, source)


def adac_oful_order(dimension: float, horizon: float, budget: float | Budget) -> Bound:
    """d log(T) sqrt(T) + d^2 log(T)^2/sqrt(rho): AdaC-OFUL.

    It hides 1/sqrt(lambda_0) in the private part, at least sqrt(d), and its assumption on contexts cannot be met for
    d >= 2: see `adac_oful_stochastic`.

    >>> adac_oful_order(1, 10**7, 0.1).holds, adac_oful_order(3, 10**7, 0.1).holds
    (True, False)
    """
    d, log_t = checked_size("dimension", dimension, 1), math.log(_steps(horizon))
    private = d**2 * log_t**2 * _rho_root(budget)
    formula = "d log(T) sqrt(T) + d^2 log(T)^2/sqrt(rho)"
    contexts = ("stochastic contexts (Assumption 2): possible for d = 1 only", d == 1)
    return _order("AdaC-OFUL, order", d * log_t * math.sqrt(horizon), private, formula, TABLE_ONE, (contexts,))


def shariff_sheffet_order(dimension: float, horizon: float, budget: float | Budget) -> Bound:
    """d sqrt(T) + sqrt(T)/epsilon, without logarithms: Shariff and Sheffet, private contexts, any of them.

    As the paper quotes it. It keeps joint (epsilon, delta)-DP, a promise about contexts too.

    >>> shariff_sheffet_order(3, 10**4, 0.5).private
    100.0
    """
    d, root = checked_size("dimension", dimension, 1), math.sqrt(_steps(horizon))
    private = root / _epsilon(budget)
    formula = "d sqrt(T) + sqrt(T)/epsilon, without logarithms"
    source = "Shariff and Sheffet 2018, as the paper's Section V quotes it"
    return _order("Shariff and Sheffet, joint DP", d * root, private, formula, source)


def linpriv_order(dimension: float, arms: float, horizon: float, budget: float | Budget, corrected: bool) -> Bound:
    """LinPriv, public contexts, any of them; without logarithms in the first part.

    claimed:    d sqrt(T) + K d log(T)/epsilon       Neel and Roth 2018, Theorem 5
    corrected:  d sqrt(T) + K d sqrt(T)/epsilon      the paper's "Rectifying LinPriv Regret Analysis"

    The claim sums ||a|| in V^-1 over the steps as the elliptical potential lemma sums its square.

    >>> linpriv_order(3, 10, 10**4, 0.5, corrected=True).private
    3000.0
    """
    d, k = checked_size("dimension", dimension, 1), checked_size("arms", arms, 1)
    steps = _steps(horizon)
    over = math.sqrt(steps) if corrected else math.log(steps)
    private = k * d * over / _epsilon(budget)
    name = "LinPriv, corrected" if corrected else "LinPriv, as claimed"
    formula = f"d sqrt(T) + K d {'sqrt(T)' if corrected else 'log(T)'}/epsilon, without logarithms"
    source = 'the paper\'s "Rectifying LinPriv Regret Analysis"' if corrected else "Neel and Roth 2018, Theorem 5"
    wrong = () if corrected else (("the sum of norms is bounded as that of their squares, which is false", False),)
    return _order(name, d * math.sqrt(steps), private, formula, source, wrong)


def _steps(horizon: float) -> int:
    return checked_size("horizon", horizon, 2)


def _log_kt(arms: float, horizon: float) -> float:
    return math.log(checked_size("arms", arms, 1) * _steps(horizon))


def _rho_root(budget: float | Budget) -> float:
    """1/sqrt(rho), of the zCDP that is kept or that pure DP implies; 0 without privacy."""
    return 1 / math.sqrt(as_budget(budget).implied_rho)


def _epsilon(budget: float | Budget) -> float:
    """Of pure DP, or of the pure DP that implies the zCDP."""
    return math.sqrt(2 * as_budget(budget).implied_rho)


def _order(name: str, free: float, private: float, formula: str, source: str, assumptions: Assumptions = ()) -> Bound:
    return Bound(name, free + private, private, formula, source, "order", EXPECTED, assumptions)
