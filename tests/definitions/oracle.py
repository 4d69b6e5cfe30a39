"""The definitions read literally, in plain Python: every table, every adversary, every event. Slow and obvious."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, combinations, product
from typing import Any

import numpy as np

from private_bandits.definitions import Histories, SmallPolicy

Distribution = dict[tuple[int, ...], float]
Pair = tuple[Distribution, Distribution]
Adversary = Callable[[tuple[int, ...]], Any]


def random_policy(
    seed: int, arms: int = 2, rewards: int = 2, horizon: int = 3, contexts: int = 0, zeros: float = 0.0
) -> SmallPolicy:
    """A policy with random rows; some entries are zero with probability `zeros`, but never a whole row."""
    rng = np.random.default_rng(seed)
    space = Histories.of(arms, list(range(rewards)), horizon, contexts)
    steps = []
    for step in range(horizon):
        rows = rng.dirichlet([1.5] * arms, space.rows(step))
        rows[rng.random(rows.shape) < zeros] = 0.0
        rows[rows.sum(axis=1) == 0, 0] = 1.0
        steps.append(rows / rows.sum(axis=1, keepdims=True))
    return SmallPolicy(f"random {seed}", space, tuple(steps))


def run(policy: SmallPolicy, respond: Callable[[tuple[int, ...]], tuple[int, float]]) -> Distribution:
    """Recommendations o_1..o_T when `respond(o_1..o_t)` says which (arm, reward) the policy is told after step t."""
    found: Distribution = {}
    for actions in product(range(len(policy.arms)), repeat=policy.horizon):
        probability = 1.0
        for step, action in enumerate(actions):
            history = [respond(actions[: t + 1]) for t in range(step)]
            probability *= policy.row(history)[action]
        found[actions] = probability
    return found


def tables(policy: SmallPolicy, constant: bool, last: bool) -> list[tuple[tuple[float, ...], ...]]:
    """Every table of T rows; constant: every list of rewards, as a table. The last row changes only if `last`."""
    arms = len(policy.arms)
    rows = [(r,) * arms for r in policy.rewards] if constant else list(product(policy.rewards, repeat=arms))
    return list(product(*[rows] * (policy.horizon - 1), rows if last else rows[:1]))


def neighbours(every: Sequence[tuple[Any, ...]]) -> Iterator[tuple[Any, Any]]:
    """Ordered pairs that differ in exactly one row."""
    for d, e in product(every, repeat=2):
        if sum(x != y for x, y in zip(d, e, strict=True)) == 1:
            yield d, e


def adversaries(arms: int, horizon: int) -> Iterator[dict[tuple[int, ...], int]]:
    """Every deterministic adversary, as a map from o_1..o_t to q_t; the last query changes nothing."""
    prefixes = [p for t in range(1, horizon) for p in product(range(arms), repeat=t)]
    for answers in product(range(arms), repeat=len(prefixes)):
        yield dict(zip(prefixes, answers, strict=True))


def pairs(policy: SmallPolicy, model: str, last: bool = False) -> list[Pair]:
    """The two distributions of every pair of neighbours (and every adversary) of a model; equal pairs once."""
    if model == "adaptive":
        return distinct(adaptive_pairs(policy))
    every = tables(policy, model in ("view", "interactive-view"), last)
    near = list(neighbours(every))

    def found() -> Iterator[Pair]:
        queried = model.startswith("interactive")
        for b in adversaries(len(policy.arms), policy.horizon) if queried else [None]:
            answer: Adversary = (lambda o: o[-1]) if b is None else b.__getitem__
            made = {d: against(policy, d, answer) for d in every}
            yield from ((made[d], made[e]) for d, e in near)

    return distinct(found())


def distinct(every: Iterator[Pair]) -> list[Pair]:
    return list({(tuple(p.values()), tuple(q.values())): (p, q) for p, q in every}.values())


def against(policy: SmallPolicy, table: Sequence[Sequence[float]], b: Adversary) -> Distribution:
    """The view of the adversary b on a table."""

    def respond(seen: tuple[int, ...]) -> tuple[int, float]:
        query = b(seen)
        return query, table[len(seen) - 1][query]

    return run(policy, respond)


def adaptive_pairs(policy: SmallPolicy) -> Iterator[Pair]:
    """Every adversary that picks (arm, reward in world 0, reward in world 1), the two different at most once a path."""
    arms, horizon = range(len(policy.arms)), policy.horizon
    prefixes = [p for t in range(1, horizon) for p in product(arms, repeat=t)]
    moves = list(product(arms, policy.rewards, policy.rewards))
    for answers in product(moves, repeat=len(prefixes)):
        b = dict(zip(prefixes, answers, strict=True))
        paths = product(arms, repeat=horizon - 1)
        if all(sum(b[p[:t]][1] != b[p[:t]][2] for t in range(1, horizon)) <= 1 for p in paths):
            yield (
                run(policy, lambda o, b=b: (b[o][0], b[o][1])),  # type: ignore[misc]
                run(policy, lambda o, b=b: (b[o][0], b[o][2])),  # type: ignore[misc]
            )


def joint_pairs(policy: SmallPolicy, constant: bool, observer: str) -> Iterator[Pair]:
    """Joint DP: every pair of t-neighbours (contexts and rows), marginals over what the observer sees."""
    arms, horizon = len(policy.arms), policy.horizon
    cells = [(r,) * arms for r in policy.rewards] if constant else list(product(policy.rewards, repeat=arms))
    people = list(product(range(len(policy.contexts)), cells))
    for s, s2 in neighbours(list(product(people, repeat=horizon))):
        t = next(i for i in range(horizon) if s[i] != s2[i])
        seen = range(t + 1, horizon) if observer == "later" else [i for i in range(horizon) if i != t]
        yield marginal(contextual(policy, s), seen), marginal(contextual(policy, s2), seen)


def contextual(policy: SmallPolicy, people: Sequence[tuple[int, tuple[float, ...]]]) -> Distribution:
    """Recommendations to people who bring a context and a row."""
    found: Distribution = {}
    for actions in product(range(len(policy.arms)), repeat=policy.horizon):
        probability = 1.0
        for step, action in enumerate(actions):
            history = [(people[t][0], actions[t], people[t][1][actions[t]]) for t in range(step)]
            probability *= policy.row(history, people[step][0])[action]
        found[actions] = probability
    return found


def marginal(distribution: Distribution, steps: Sequence[int]) -> Distribution:
    found: Distribution = {}
    for actions, probability in distribution.items():
        key = tuple(actions[t] for t in steps)
        found[key] = found.get(key, 0.0) + probability
    return found


def delta_of(pair: Pair, epsilon: float) -> float:
    """max over events of P(E) - e^eps Q(E), event by event."""
    p, q = pair
    events = chain.from_iterable(combinations(p, n) for n in range(len(p) + 1))
    return max(sum(p[a] for a in event) - math.exp(epsilon) * sum(q[a] for a in event) for event in events)


def quick_delta(pair: Pair, epsilon: float) -> float:
    """The same by the best event."""
    p, q = pair
    return math.fsum(max(0.0, p[a] - math.exp(epsilon) * q[a]) for a in p)


def pure_epsilon(every: Sequence[Pair]) -> float:
    return max((math.inf if q[a] == 0 else math.log(p[a] / q[a]) for p, q in every for a in p if p[a] > 0), default=0.0)


def epsilon_by_bisection(every: Sequence[Pair], delta: float) -> float:
    def above(epsilon: float) -> list[Pair]:
        return [pair for pair in every if quick_delta(pair, epsilon) > delta]

    every = above(0.0)
    if not every:
        return 0.0
    low, high = 0.0, 50.0
    if above(high):
        return math.inf
    for _ in range(60):
        middle = (low + high) / 2
        still = above(middle)
        if still:  # the others stay below delta at every larger epsilon
            low, every = middle, still
        else:
            high = middle
    return high


def renyi(pair: Pair, alpha: float) -> float:
    p, q = pair
    if any(p[a] > 0 and q[a] == 0 for a in p):
        return math.inf
    if alpha == 1:
        return math.fsum(p[a] * math.log(p[a] / q[a]) for a in p if p[a] > 0)
    return math.log(math.fsum(p[a] ** alpha * q[a] ** (1 - alpha) for a in p if p[a] > 0)) / (alpha - 1)


def rho_by_grid(every: Sequence[Pair]) -> float:
    """sup over alpha of D_alpha/alpha by a grid and golden sections around its best points: a lower estimate."""
    if any(p[a] > 0 and q[a] == 0 for p, q in every for a in p):
        return math.inf
    grid = [1.0, *(1 + 2 ** (k / 2) for k in range(-16, 15))]
    widest = max(len(pair[0]) for pair in every)
    p, q = np.zeros((2, len(every), widest))
    for number, pair in enumerate(every):
        p[number, : len(pair[0])] = [pair[0][a] for a in pair[0]]
        q[number, : len(pair[0])] = [pair[1][a] for a in pair[0]]
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(p > 0, np.log(p) - np.log(q), 0.0)
        log_p = np.log(p)
    values = []
    for alpha in grid:
        if alpha == 1:
            values.append((p * logs).sum(axis=1))
        else:
            exponents = log_p + (alpha - 1) * logs
            top = exponents.max(axis=1)
            moments = np.log(np.exp(exponents - top[:, None]).sum(axis=1)) + top
            values.append(moments / (alpha - 1) / alpha)
    table = np.array(values)
    best = float(table.max())
    for place in np.argsort(-table.max(axis=0))[:5]:
        k = int(table[:, place].argmax())
        low, high = grid[max(0, k - 1)], grid[min(len(grid) - 1, k + 1)]
        for _ in range(80):
            left, right = low + 0.382 * (high - low), low + 0.618 * (high - low)
            at_left, at_right = renyi(every[place], left) / left, renyi(every[place], right) / right
            low, high = (low, right) if at_left > at_right else (left, high)
            best = max(best, at_left, at_right)
    return best
