"""Couplings: two random inputs drawn together so that they differ as little as possible.

A private mechanism cannot tell apart inputs that differ in few places, so how well two *distributions* of inputs
can be told apart through it is a transport problem: move one distribution onto the other at the least mean squared
Hamming distance. For small discrete distributions it is solved here exactly, as a linear programme with a
certificate. A bandit chooses which inputs it sees, so its coupling is drawn step by step: `coupled_run`.

Solving needs scipy, the rest does not. The bounds that use these numbers are in theory/divergence.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from numbers import Real
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from private_bandits.checks import whole_number
from private_bandits.errors import InvalidInput
from private_bandits.loading import require

X = TypeVar("X", bound=Hashable)
Input = tuple[Hashable, ...]
Cost = Literal["hamming-squared", "hamming"]

History = tuple[tuple[int, Hashable], ...]
"""Actions with their rewards, in order."""
PolicyRule = Callable[[History], Sequence[float]]
"""The probability of each arm after a history."""
Instance = Sequence[Mapping[Any, float]]
"""The reward distribution of each arm, as {reward: probability}."""

LARGEST_PROBLEM = 100_000
"""Pairs of inputs up to which a transport problem is solved: seconds and some hundred megabytes."""
LARGEST_TREE = 500_000
"""Histories up to which a policy is followed: some seconds."""
TOLERANCE = 1e-9
"""How far a sum of probabilities may be from 1; it is then scaled to 1."""


@dataclass(frozen=True)
class Transport:
    """The cheapest way to move one distribution onto another.

    cost: of `coupling`, which is a coupling up to the rounding of floats, so never below the true optimum.
    coupling: {(input, other input): probability}, without zeros.
    lower: value of a feasible point of the dual problem, so never above the true optimum (weak duality).
    """

    cost: float
    coupling: dict[tuple[Input, Input], float]
    lower: float

    @property
    def gap(self) -> float:
        """How far `cost` can be from the true optimum."""
        return max(0.0, self.cost - self.lower)


@dataclass(frozen=True)
class CoupledRun:
    """A policy on two bandit instances at once, every reward drawn from the maximal coupling of its arm.

    The policy sees the rewards R_t of the first instance. With t_a the total variation of arm a, X_t = 1{R_t != R'_t},
    S = sum of t_(A_t) and M = sum of X_t - t_(A_t):

    mean, variance: of S.  spread: mean of the sum of t(1 - t), which is E[M^2].
    cross: E[M S]. Zero if later actions do not depend on which rewards differ, and not in general.
    distance_squared: E[(sum of X_t)^2] = mean^2 + variance + spread + 2 cross.
    kl: KL divergence from the actions on the first instance to those on the second, exactly.
    """

    mean: float
    variance: float
    spread: float
    cross: float
    distance_squared: float
    kl: float


def total_variation(p: Mapping[X, float], q: Mapping[X, float]) -> float:
    """Total variation distance of two discrete distributions: the sum of |p - q|, halved.

    >>> total_variation({0: 0.5, 1: 0.5}, {0: 0.25, 1: 0.75})
    0.25
    """
    p, q = checked_distribution("p", p), checked_distribution("q", q)
    return min(1.0, math.fsum(abs(p.get(x, 0.0) - q.get(x, 0.0)) for x in p | q) / 2)


def maximal_coupling(p: Mapping[X, float], q: Mapping[X, float]) -> dict[tuple[X, X], float]:
    """Draws from p and q together that differ with the least possible probability, their total variation.

    min(p, q) stays in place, and what p has too much is spread over what q has too much in proportion:
    c(x, y) = (p - q)^+(x) (q - p)^+(y) / TV. Proposition on maximal couplings, Section VI of the paper.

    >>> maximal_coupling({0: 0.5, 1: 0.5}, {0: 0.25, 1: 0.75})
    {(0, 0): 0.25, (1, 1): 0.5, (0, 1): 0.25}
    """
    p, q = checked_distribution("p", p), checked_distribution("q", q)
    points = list(p | q)
    coupling = {(x, x): min(p.get(x, 0.0), q.get(x, 0.0)) for x in points}
    too_much = {x: p.get(x, 0.0) - q.get(x, 0.0) for x in points}
    moved = math.fsum(excess for excess in too_much.values() if excess > 0)
    for x, y in product(points, points):
        if too_much[x] > 0 > too_much[y]:
            coupling[x, y] = too_much[x] * -too_much[y] / moved
    return {pair: mass for pair, mass in coupling.items() if mass > 0}


def product_distribution(marginals: Sequence[Mapping[Any, float]]) -> dict[Input, float]:
    """Independent coordinates as one distribution over tuples.

    >>> product_distribution([{0: 0.5, 1: 0.5}, {"a": 1.0}])
    {(0, 'a'): 0.5, (1, 'a'): 0.5}
    """
    parts = [checked_distribution(f"marginal {i}", marginal) for i, marginal in enumerate(marginals)]
    size = math.prod(len(part) for part in parts)
    if size > LARGEST_PROBLEM:
        raise InvalidInput(
            f"the product of {len(parts)} marginals has {size:.3g} points, at most {LARGEST_PROBLEM} are listed: "
            f"use fewer coordinates, or a bound that needs the marginals only"
        )
    return {
        tuple(x for x, _ in point): math.prod(mass for _, mass in point)
        for point in product(*(p.items() for p in parts))
    }


def hamming(first: Input, second: Input) -> int:
    """In how many places two inputs of one length differ.

    >>> hamming((0, 1, 1), (1, 1, 0))
    2
    """
    return sum(x != y for x, y in zip(first, second, strict=True))


def transport_cost(p1: Mapping[Any, float], p2: Mapping[Any, float], cost: Cost = "hamming-squared") -> Transport:
    """The least E[d(D, D')^2] over all ways to draw D from p1 and D' from p2 together, d the Hamming distance.

    p1, p2: {tuple: probability}, all tuples of one length. The linear programme over couplings is solved by HiGHS;
    its solution is then mended to a true coupling and its multipliers to a feasible dual point, so that optimum
    and certificate hold whatever the solver's tolerances were. The transport problem of Section VI of the paper.

    >>> found = transport_cost({(0, 0): 1.0}, {(0, 0): 0.5, (1, 1): 0.5})
    >>> round(found.cost, 9), round(found.lower, 9)
    (2.0, 2.0)
    """
    if cost not in ("hamming-squared", "hamming"):
        raise InvalidInput(f'cost must be "hamming-squared" or "hamming", got {cost!r}')
    first, second = _checked_inputs(p1, p2)
    require("transport_cost", "audit", "scipy")
    power = 2 if cost == "hamming-squared" else 1
    costs = np.array([[hamming(x, y) ** power for y in second] for x in first], dtype=float)
    p, q = np.array(list(first.values())), np.array(list(second.values()))
    plan, potential = _solve(costs, p, q)
    plan = _mended(plan, p, q)
    best = float((plan * costs).sum())
    lower = float(p @ potential + q @ (costs - potential[:, None]).min(axis=0))
    if best - lower > 1e-6 * max(1.0, best):
        raise ArithmeticError(f"the solver stopped too early: optimum between {lower!r} and {best!r}")
    points, others = list(first), list(second)
    coupling = {(points[i], others[j]): float(plan[i, j]) for i, j in np.argwhere(plan > 0)}
    return Transport(best, coupling, min(lower, best))


def coupled_run(policy: PolicyRule, instance1: Instance, instance2: Instance, horizon: int) -> CoupledRun:
    """All moments of a policy's coupled run, and the exact KL divergence of its actions, by following every history.

    policy: takes the history, a tuple of (action, reward), and returns a probability for each arm. instance1,
    instance2: the reward distribution of each arm. The coupling is that of the paper's Theorem "KL decomposition
    for rho-Interactive zCDP". The numbers are exact up to rounding; the work grows like (arms x rewards)^horizon,
    histories of probability 0 aside.

    >>> follow_a_zero = lambda history: (1.0, 0.0) if not history or history[0][1] else (0.0, 1.0)
    >>> run = coupled_run(follow_a_zero, [{0: 0.5, 1: 0.5}, {0: 1.0}], [{1: 1.0}, {1: 1.0}], horizon=2)
    >>> run.distance_squared, run.mean**2 + run.variance + run.spread
    (2.25, 2.0)
    """
    arms1 = [checked_distribution(f"arm {a} of instance1", arm) for a, arm in enumerate(instance1)]
    arms2 = [checked_distribution(f"arm {a} of instance2", arm) for a, arm in enumerate(instance2)]
    if not arms1 or len(arms1) != len(arms2):
        raise InvalidInput(f"both instances need the same arms, at least one, got {len(arms1)} and {len(arms2)}")
    tree = _Tree(policy, whole_number("horizon", horizon), len(arms1))
    couplings = [maximal_coupling(p, q) for p, q in zip(arms1, arms2, strict=True)]
    shifts = np.array([total_variation(p, q) for p, q in zip(arms1, arms2, strict=True)])
    # The coupled run: what an arm pays out is (reward seen by the policy, does the other one differ?).
    seen = [_grouped(coupling) for coupling in couplings]
    mass, s, x, spread = (np.array(column) for column in zip(*_moments(tree, seen, shifts), strict=True))
    mean = float(mass @ s)
    return CoupledRun(
        mean=mean,
        variance=float(mass @ (s - mean) ** 2),
        spread=float(mass @ spread),
        cross=float(mass @ ((x - s) * s)),
        distance_squared=float(mass @ x**2),
        kl=kl_divergence(_actions(tree, arms1), _actions(tree, arms2)),
    )


def kl_divergence(p: Mapping[X, float], q: Mapping[X, float]) -> float:
    """KL divergence from p to q in nats; infinite where p has mass and q has none.

    >>> round(kl_divergence({0: 0.5, 1: 0.5}, {0: 0.25, 1: 0.75}), 6)
    0.143841
    """
    if any(mass > 0 and not q.get(x, 0.0) > 0 for x, mass in p.items()):
        return math.inf
    return max(0.0, math.fsum(mass * (math.log(mass) - math.log(q[x])) for x, mass in p.items() if mass > 0))


def checked_distribution(name: str, distribution: Mapping[X, float]) -> dict[X, float]:
    """A distribution without its zeros, scaled to sum to 1; refused if it is none."""
    if not isinstance(distribution, Mapping) or not distribution:
        raise InvalidInput(f"{name} must be a mapping {{value: probability}}, not empty, got {distribution!r}")
    for x, mass in distribution.items():
        if isinstance(mass, bool) or not isinstance(mass, Real) or not 0 <= mass < math.inf:
            raise InvalidInput(f"{name} must hold probabilities of at least 0, got {mass!r} for {x!r}")
    total = math.fsum(distribution.values())
    if abs(total - 1) > TOLERANCE:
        raise InvalidInput(f"the probabilities of {name} must sum to 1, got {total!r}: divide them by their sum")
    return {x: float(mass) / total for x, mass in distribution.items() if mass > 0}


def _checked_inputs(p1: Mapping[Any, float], p2: Mapping[Any, float]) -> tuple[dict[Input, float], dict[Input, float]]:
    for name, distribution in (("p1", p1), ("p2", p2)):
        for point in distribution if isinstance(distribution, Mapping) else ():
            if not isinstance(point, tuple):
                raise InvalidInput(f"{name} must be a mapping {{tuple: probability}}, got the key {point!r}")
    first, second = checked_distribution("p1", p1), checked_distribution("p2", p2)
    lengths = sorted({len(point) for point in [*first, *second]})
    if len(lengths) > 1:
        raise InvalidInput(f"all inputs must be tuples of one length, got lengths {lengths}")
    pairs = len(first) * len(second)
    if pairs > LARGEST_PROBLEM:
        raise InvalidInput(
            f"{len(first)} x {len(second)} = {pairs} pairs of inputs are too many: the linear programme has a variable "
            f"for each pair, and at most {LARGEST_PROBLEM} are solved; use fewer coordinates, or kl_bound_product"
        )
    return first, second


def _solve(
    costs: NDArray[np.float64], p: NDArray[np.float64], q: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The solver's plan, and its multipliers of the row sums."""
    from scipy import optimize, sparse  # here: a slow import of an extra

    rows, columns = costs.shape
    sums = sparse.vstack(
        [
            sparse.kron(sparse.eye(rows), np.ones((1, columns))),
            sparse.kron(np.ones((1, rows)), sparse.eye(columns)),
        ],
        format="csr",
    )
    found = optimize.linprog(costs.ravel(), A_eq=sums, b_eq=np.concatenate([p, q]), bounds=(0, None), method="highs")
    if not found.success:
        raise ArithmeticError(f"the transport problem was not solved: {found.message}")
    plan: NDArray[np.float64] = np.asarray(found.x, dtype=float).reshape(costs.shape)
    return plan, np.asarray(found.eqlin.marginals[:rows], dtype=float)


def _mended(plan: NDArray[np.float64], p: NDArray[np.float64], q: NDArray[np.float64]) -> NDArray[np.float64]:
    """A plan whose sums are p and q: too full rows and columns are thinned, what is then missing is spread."""
    plan = np.maximum(plan, 0.0)
    rows = plan.sum(axis=1)
    plan = plan * np.minimum(1.0, p / np.maximum(rows, 1e-300))[:, None]
    columns = plan.sum(axis=0)
    plan = plan * np.minimum(1.0, q / np.maximum(columns, 1e-300))
    left, right = np.maximum(p - plan.sum(axis=1), 0.0), np.maximum(q - plan.sum(axis=0), 0.0)
    missing = float(left.sum())
    return plan + np.outer(left, right) / missing if missing > 0 else plan


class _Tree:
    """A policy's rule, checked at each history that it is asked about, and counted."""

    def __init__(self, policy: PolicyRule, horizon: int, arms: int) -> None:
        self.policy, self.horizon, self.arms, self.visited = policy, horizon, arms, 0

    def choices(self, history: History) -> list[tuple[int, float]]:
        """The arms that may be played next, with their probabilities."""
        self.visited += 1
        if self.visited > LARGEST_TREE:
            raise InvalidInput(
                f"the policy has more than {LARGEST_TREE} histories over {self.horizon} steps: the work grows like "
                f"(arms x rewards)^horizon; use a shorter horizon, or fewer rewards"
            )
        probabilities = [float(probability) for probability in self.policy(history)]
        if len(probabilities) != self.arms:
            raise InvalidInput(f"the policy must return {self.arms} probabilities, got {len(probabilities)}")
        return list(checked_distribution(f"the policy after {history!r}", dict(enumerate(probabilities))).items())


def _grouped(coupling: Mapping[tuple[X, X], float]) -> dict[tuple[X, bool], float]:
    """{(reward, does the other reward differ?): probability} of a coupling of two rewards."""
    grouped: dict[tuple[X, bool], float] = {}
    for (reward, other), mass in coupling.items():
        key = (reward, reward != other)
        grouped[key] = grouped.get(key, 0.0) + mass
    return grouped


def _moments(
    tree: _Tree, seen: Sequence[Mapping[tuple[Any, bool], float]], shifts: NDArray[np.float64]
) -> list[tuple[float, float, int, float]]:
    """Probability, S, number of differing rewards and sum of t(1 - t), of every path."""
    paths: dict[tuple[History, int], tuple[float, float, float]] = {((), 0): (1.0, 0.0, 0.0)}
    for _ in range(tree.horizon):
        longer: dict[tuple[History, int], tuple[float, float, float]] = {}
        for (history, differing), (mass, s, spread) in paths.items():
            for arm, chance in tree.choices(history):
                t = float(shifts[arm])
                for (reward, differs), weight in seen[arm].items():
                    key = ((*history, (arm, reward)), differing + differs)
                    before = longer.get(key, (0.0, 0.0, 0.0))[0]
                    longer[key] = (before + mass * chance * weight, s + t, spread + t * (1 - t))
        paths = longer
    return [(mass, s, differing, spread) for (_, differing), (mass, s, spread) in paths.items()]


def _actions(tree: _Tree, arms: Sequence[Mapping[Any, float]]) -> dict[tuple[int, ...], float]:
    """The distribution of the played actions on one instance."""
    histories: dict[History, float] = {(): 1.0}
    actions: dict[tuple[int, ...], float] = {}
    for step in range(tree.horizon):
        longer: dict[History, float] = {}
        for history, mass in histories.items():
            for arm, chance in tree.choices(history):
                if step == tree.horizon - 1:
                    played = (*(a for a, _ in history), arm)
                    actions[played] = actions.get(played, 0.0) + mass * chance
                    continue
                for reward, weight in arms[arm].items():
                    longer[*history, (arm, reward)] = mass * chance * weight
        histories = longer
    return actions
