"""Robustness: what someone who changes a few rewards can do to what is published.

A budget is rho of zCDP as a number, or a Budget; of RenyiDP and ApproxDP what the package's agents keep: zCDP at the
budget's level.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from private_bandits.budget import Budget, PureDP
from private_bandits.plain_data import json_numbers
from private_bandits.theory.bound_inputs import checked_chance, checked_count, checked_rho


def least_rho(p: float, p_prime: float) -> float:
    """The least rho for which a rho-zCDP mechanism may give an event probability p on an input and p' on its neighbour.

    sup over alpha >= 1 of D_alpha/alpha between the two coins, in both directions. Never above the true value, and
    close to it: the supremum is taken over many orders. For randomised response, p' = 1 - p = e^eps/(1 + e^eps), it
    is eps tanh(eps/2), the order alpha = 1.

    >>> round(least_rho(0.25, 0.75), 6), round(math.log(3) * math.tanh(math.log(3) / 2), 6)
    (0.549306, 0.549306)
    """
    p, p_prime = checked_chance("p", p), checked_chance("p_prime", p_prime)
    if p == p_prime:
        return 0.0
    if p in (0, 1) or p_prime in (0, 1):
        return math.inf
    low, high = min(p, p_prime), max(p, p_prime)
    up, down = _log_ratios(low, high)
    return max(_least_rho_of(low, high, up, down), _least_rho_of(high, low, -up, -down))


def largest_probability(budget: float | Budget, rewards: int, probability: float) -> float:
    """How probable an event of probability p can become by changing `rewards` of the rewards.

    zCDP: the largest p' with least_rho(p, p') <= rho m^2, by bisection from above. Pure DP: the least of e^(m eps) p
    and 1 - e^(-m eps) (1 - p). Tight for one reward: some mechanism attains them. For more it is what group privacy
    gives. The same holds for the mean of anything published between 0 and 1, such as the share of patients who get
    one medicine. Impossible events stay impossible.

    >>> round(largest_probability(0.01, 3, 0.5), 4)
    0.7022
    """
    p, m = checked_chance("probability", probability), checked_count("rewards", rewards)
    strength = _strength(budget, m)
    if m == 0 or strength == 0 or p in (0, 1):
        return p
    if strength == math.inf:
        return 1.0
    if isinstance(budget, PureDP):
        return _up(min(p * math.exp(min(strength, 700.0)), 1 - math.exp(-strength) * (1 - p)))
    low, high = p, _up(p + _largest_shift(strength))
    while True:
        # p may be tiny: first through the powers of ten
        middle = math.sqrt(low) * math.sqrt(high) if high > 4 * low else (low + high) / 2
        if not low < middle < high:
            return high
        if least_rho(p, middle) <= strength:
            low = middle
        else:
            high = middle


def largest_shift(budget: float | Budget, rewards: int) -> float:
    """Total variation between what is published with and without `rewards` changed rewards, at most.

    zCDP: the tau with 2 tau atanh(tau) = rho m^2. Pure DP: tanh(m eps/2). Tight for one
    reward: by joint quasi-convexity of Renyi divergences the extreme is randomised response, whose D_alpha/alpha
    is greatest at alpha = 1 (docs/theory.md). Never above what Pinsker, Bretagnolle-Huber or the conversion to
    (0, delta) give (`shift_bounds`).

    With probability 1 - tau nothing published changes at all, if both runs are paired as well as can be. So of all
    decisions, at most the share tau changes on average.

    >>> round(largest_shift(0.01, 3), 4), round(math.sqrt(0.01 * 9 / 2), 4)
    (0.2105, 0.2121)
    """
    strength = _strength(budget, checked_count("rewards", rewards))
    if isinstance(budget, PureDP):
        return min(1.0, math.tanh(strength / 2) * (1 + 1e-15))
    return _largest_shift(strength)


def shift_bounds(rho: float, rewards: int) -> dict[str, float]:
    """`largest_shift` beside the classic bounds on total variation that zCDP implies. None of them is below it.

    pinsker: sqrt(rho m^2/2). bretagnolle-huber: 1 - exp(-rho m^2)/2. conversion: delta at epsilon = 0 of Canonne,
    Kamath and Steinke (2020), Prop. 12: inf over alpha of exp((alpha-1) alpha rho m^2)/(alpha-1) (1-1/alpha)^alpha.

    >>> {name: round(bound, 3) for name, bound in shift_bounds(0.5, 1).items()}
    {'exact': 0.479, 'pinsker': 0.5, 'bretagnolle-huber': 0.697, 'conversion': 0.559}
    """
    strength = _strength(rho, checked_count("rewards", rewards))
    excess = np.exp(np.linspace(-12.0, 25.0, 4001))  # alpha - 1; every one of them gives a valid bound
    exponents = excess * (1 + excess) * strength if strength else np.zeros_like(excess)
    log_delta = exponents - np.log(excess) + (1 + excess) * (np.log(excess) - np.log1p(excess))
    return {
        "exact": _largest_shift(strength),
        "pinsker": math.sqrt(strength / 2),
        "bretagnolle-huber": 1 - math.exp(-strength) / 2,
        "conversion": float(np.exp(min(0.0, float(log_delta.min())))) if strength else 0.0,
    }


def rewards_needed(budget: float | Budget, p: float, p_prime: float) -> float:
    """How many rewards someone has to change, at least, to bring an event from probability p to p'.

    zCDP: the least m with rho m^2 >= least_rho(p, p'). Pure DP: with m eps >= the larger of |log(p'/p)| and
    |log((1-p')/(1-p))|. A whole number; infinity where no number is enough (a certain or impossible event).

    >>> rewards_needed(0.01, 0.1, 0.9)
    14
    """
    p, p_prime = checked_chance("p", p), checked_chance("p_prime", p_prime)
    one = _strength(budget, 1)
    if p == p_prime:
        return 0
    if one == math.inf:
        return 1
    if one == 0 or p in (0, 1) or p_prime in (0, 1):
        return math.inf
    if isinstance(budget, PureDP):
        up, down = _log_ratios(min(p, p_prime), max(p, p_prime))
        exact = max(up, -down) / one
    else:
        exact = math.sqrt(least_rho(p, p_prime) / one)
    return max(1, math.ceil(exact * (1 - 1e-12)))


@dataclass(frozen=True)
class Robustness:
    """What someone who changes `rewards` rewards can do to what is published, at most.

    largest, smallest: what the probability of an event of probability `probability` can become.
    shift: the probability that anything published changes, both runs paired as well as can be; also the largest
    mean share of decisions that change, and the most by which any event's probability moves.
    """

    budget: float | Budget
    rewards: int
    probability: float
    largest: float
    smallest: float
    shift: float
    words: str

    def __str__(self) -> str:
        return self.words

    def to_dict(self) -> dict[str, Any]:
        """Plain data; a budget as text, infinity as the text "inf"."""
        data = {name: getattr(self, name) for name in self.__dataclass_fields__}
        data["budget"] = str(self.budget) if isinstance(self.budget, Budget) else self.budget
        return json_numbers(data)


def robustness(budget: float | Budget, rewards: int, probability: float = 0.5) -> Robustness:
    """What m changed rewards can do to the published actions, as numbers and in words.

    Privacy says that a reward hardly moves what is published, whoever chose its value; so neither does one that an
    attacker made up (the paper's remark (c) on Interactive DP). Changed values of rewards that arrive are meant,
    not people who are added. For (epsilon, delta) and Renyi budgets it is the rho that this package's noise keeps
    which counts; it does not follow from such a promise alone.

    >>> print(robustness(0.01, rewards=3).words)  # doctest: +NORMALIZE_WHITESPACE
    If someone changed 3 of the rewards, to any values, then with probability at least 78.9 % nothing that is published
    would change. On average at most 21.1 % of the decisions would change. Anything that would have been published
    with probability 50 % would have between 29.7 % and 70.3 %.
    """
    p, m = checked_chance("probability", probability), checked_count("rewards", rewards)
    largest = largest_probability(budget, m, p)
    shift = largest_shift(budget, m)
    smallest = max(0.0, math.nextafter(1 - largest_probability(budget, m, 1 - p), 0.0)) if 0 < p < 1 and shift else p
    return Robustness(budget, m, p, largest, smallest, shift, _in_words(m, p, largest, smallest, shift))


def _in_words(m: int, p: float, largest: float, smallest: float, shift: float) -> str:
    if m == 0:
        return "Whoever changes no reward changes nothing that is published."
    which = "1 of the rewards, to any value," if m == 1 else f"{m} of the rewards, to any values,"
    if shift > 0.999:
        return (
            f"Against someone who could change {which} this budget promises next to nothing: all of what is published "
            f"may change. A smaller budget, or a limit on the rewards of one person, would help."
        )
    return (
        f"If someone changed {which} then with probability at least "
        f"{_percent(1 - shift, math.floor)} nothing that is published would change. On average at most "
        f"{_percent(shift, math.ceil)} of the decisions would "
        f"change. Anything that would have been published with probability {100 * p:.6g} % would have between "
        f"{_percent(smallest, math.floor)} and {_percent(largest, math.ceil)}."
    )


def _percent(share: float, to: Any) -> str:
    """In per cent with one decimal, rounded to the safe side; more decimals near 0 and 1."""
    for digits in (1, 3, 6):
        if min(share, 1 - share) >= 10.0 ** (-digits - 1) or digits == 6:
            break
    return f"{to(share * 100 * 10**digits) / 10**digits:.{6 + digits}g} %"


ORDERS = np.exp(np.linspace(math.log(1e-3), math.log(1e12), 181))
"""alpha - 1 of the Renyi orders that are looked at first."""


def _log_ratios(low: float, high: float) -> tuple[float, float]:
    """log(high/low) and log((1-high)/(1-low)) of 0 < low < high < 1, each to a few units in the last place.

    Far apart they are logarithms of quotients: 1 - high is exact for high >= 1/2, and 1 - (low + shift) would not be.
    Close together they are taken from the difference, which is then exact up to one rounding.
    """
    ratio, rest = high / low, (1 - high) / (1 - low)
    if ratio < 2:
        up = math.log1p((high - low) / low)
    else:
        up = math.log(ratio) if ratio < math.inf else math.log(high) - math.log(low)
    return up, math.log1p((low - high) / (1 - low)) if rest > 0.5 else math.log(rest)


def _least_rho_of(p: float, q: float, up: float, down: float) -> float:
    """sup over alpha of D_alpha/alpha from a coin of q to one of p, up = log(q/p), down = log((1-q)/(1-p))."""
    best = q * up + (1 - q) * down - 2e-15 * (q * abs(up) + (1 - q) * abs(down))  # alpha = 1, less rounding
    excess = ORDERS
    for _ in range(3):
        values = _renyi_rates(p, up, down, excess)
        at = int(np.argmax(values))
        best = max(best, float(values[at]))
        lower, upper = excess[max(at - 1, 0)], excess[min(at + 1, len(excess) - 1)]
        excess = np.exp(np.linspace(math.log(lower), math.log(upper), 41))
    return best


def _renyi_rates(p: float, up: float, down: float, excess: NDArray[np.float64]) -> NDArray[np.float64]:
    """D_alpha/alpha of two coins, alpha - 1 in `excess`, less what rounding may have added.

    The coin's two outcomes have probabilities p and 1 - p under the second law, and log ratios `up` and `down`.
    """
    alpha = 1 + excess
    excess = alpha - 1  # of the alpha that is used: the sum was rounded
    large = alpha * max(abs(up), abs(down)) > 1
    safe = np.where(large, 0.0, alpha)  # the other branch, where this one would overflow
    parts = p * np.expm1(safe * up), (1 - p) * np.expm1(safe * down)
    near = np.log1p(parts[0] + parts[1])
    near_error = 3e-15 * (np.abs(parts[0]) + np.abs(parts[1]))
    far = np.logaddexp(math.log(p) + alpha * up, math.log1p(-p) + alpha * down)
    far_error = 2e-15 * (abs(math.log(p)) + abs(math.log1p(-p)) + alpha * max(abs(up), abs(down)))
    logs: NDArray[np.float64] = np.where(large, far - far_error, near - near_error)
    return logs / (excess * alpha)


def _largest_shift(strength: float) -> float:
    """The tau with 2 tau atanh(tau) = strength, from above."""
    if strength == 0:
        return 0.0
    low, high = 0.0, min(1.0, math.sqrt(strength / 2) * (1 + 1e-15))  # Pinsker
    while True:
        middle = (low + high) / 2
        if not low < middle < high:
            return high
        if 2 * middle * math.atanh(middle) * (1 - 1e-15) <= strength:
            low = middle
        else:
            high = middle


def _strength(budget: float | Budget, rewards: int) -> float:
    """What the budget is for that many rewards together: rho m^2, or m epsilon of pure DP."""
    if rewards == 0:
        return 0.0
    level = budget.level if isinstance(budget, Budget) else checked_rho(budget)
    try:
        return budget.group_cost(level, rewards) if isinstance(budget, Budget) else level * rewards**2
    except OverflowError:  # more rewards than a float can hold
        return math.inf if level else 0.0


def _up(probability: float) -> float:
    return min(1.0, math.nextafter(probability, 2.0))
