"""The regret of the best policies, asymptotically: what measured regrets are compared with.

Lai and Robbins (1985): a policy that is good on every Bernoulli instance plays a worse arm, of mean m, until an arm of
mean q, that of the best one, would have such rewards with a probability of only 1/T. That takes log(T)/kl(m, q) plays.
With noise of variance b = 1/(2 rho) on the sum of the arm's n rewards, what was seen may be due to rewards of mean y,
which have a probability of about exp(-n kl(y, q)), and to noise that moved their sum by n (y - m), which has
exp(-rho n^2 (y - m)^2). The likeliest y counts:

    C_n(m, q) = inf over y in [m, q] of  n kl(y, q) + rho n^2 (y - m)^2

and n_a plays, C_(n_a)(m_a, q) = log T, are what arm a costs. docs/theory.md has what this is and is not.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from private_bandits.budget import Budget, NoPrivacy
from private_bandits.environments import Bernoulli
from private_bandits.policies import Policy
from private_bandits.policies.private_divergence import private_divergence
from private_bandits.theory.bound import Bound
from private_bandits.theory.bound_inputs import as_budget, checked_chance, checked_size

PRECISION = 1e-14
"""Of the numbers that are found by halving, relative."""
GAUSSIAN = "sum of gap n, inf over y of n kl(y, q) + n^2 (y - m)^2/(2b) = log T"
TERM = "log T term of expected regret"
LAPLACE = "sum of gap log(T)/d(m, q), d = inf over y of kl(y, q) + epsilon (y - m)"


def reference_regret(means: ArrayLike, horizon: float, budget: float | Budget) -> Bound:
    """Return the log T term of the regret of the best policies on these Bernoulli arms, as a reference.

        sum over worse arms of  (q - m) n        n: plays with C_n(m, q) = log T, q the largest mean

    C_n is above, with 1/(2b) in place of rho for other budgets with Gaussian noise. Pure DP: n = log(T)/d(m, q), with
    d(m, q) = inf over y of kl(y, q) + epsilon (y - m), which is the lower bound of Azize, Wu, Honda, Orabona, Ito and
    Basu (2025) for T to infinity.

    It is asymptotic, and no floor: it has no lower-order terms, and good indices stay below it at finite T. It counts
    one noise for the whole sum of an arm; a policy that looks at its arms more than once has more. With episodes that
    grow by a factor, the constant of log T is up to that factor larger.

    >>> means = (0.75, 0.625, 0.5, 0.375, 0.25)
    >>> [round(reference_regret(means, 10**7, rho).value, 1) for rho in (0.001, 0.01, 0.1, 1, math.inf)]
    [563.5, 226.4, 135.2, 117.5, 114.9]
    """
    found = tuple(checked_chance("a mean", float(mean)) for mean in np.asarray(means, dtype=float).ravel())
    steps, kept = checked_size("horizon", horizon, 2), as_budget(budget)
    value, without = (_regret(found, math.log(steps), which) for which in (kept, NoPrivacy()))
    pure = kept.noise == "laplace"
    source = "Azize and others 2025, lower bound" if pure else "Lai and Robbins 1985, with noise; docs/theory.md"
    formula, assumptions = LAPLACE if pure else GAUSSIAN, (("Bernoulli rewards", True),)
    return Bound("reference", value, value - without, formula, source, "reference", TERM, assumptions)


def reference_of(policy: Policy[Any], environment: Any, horizon: int) -> float | None:
    """Return the reference for a policy's own budget in an environment; None where it is not for its rewards, or 0.

    >>> from private_bandits import AdaPUCB, PureDP
    >>> round(reference_of(AdaPUCB(2, PureDP(1)), Bernoulli([0.5, 0.25]), 10**6), 1)
    26.6
    """
    if not isinstance(environment, Bernoulli) or horizon < 2:
        return None
    return reference_regret(environment.probabilities, horizon, policy.budget).value or None


def _regret(means: tuple[float, ...], log_steps: float, budget: Budget) -> float:
    best = max(means)
    worse = [mean for mean in means if mean < best]
    return math.fsum((best - mean) * _plays(mean, best, log_steps, budget) for mean in worse)


def _plays(mean: float, best: float, log_steps: float, budget: Budget) -> float:
    """Return the n with C_n(mean, best) = log T. C_n grows with n."""
    if budget.noise != "gaussian":
        return log_steps / float(private_divergence(np.array(mean), np.array(best), budget.level))
    b = budget.variance_factor
    low, high = 0.0, 1.0
    while _cost(high, mean, best, b) < log_steps:
        low, high = high, 2 * high
    while high - low > PRECISION * high:
        middle = (low + high) / 2
        low, high = (middle, high) if _cost(middle, mean, best, b) < log_steps else (low, middle)
    return high


def _cost(n: float, mean: float, best: float, b: float) -> float:
    """Return C_n. The derivative in y, n (logit y - logit q) + n^2 (y - m)/b, grows with y: its zero is halved out."""
    if best == 1.0:
        return (n * (1.0 - mean)) ** 2 / (2 * b)  # any y but q has an infinite divergence
    low, high, target = 0.0, best - mean, _logit(best)
    while high - low > PRECISION * high:
        moved = (low + high) / 2  # y - m, which may be too small to be seen in y
        rises = _logit(mean + moved) - target + n * moved / b > 0
        low, high = (low, moved) if rises else (moved, high)
    by_chance = float(private_divergence(np.array(mean + low), np.array(best), math.inf))
    return n * by_chance + (n * low) ** 2 / (2 * b)


def _logit(x: float) -> float:
    return math.log(x) - math.log1p(-x) if x else -math.inf
