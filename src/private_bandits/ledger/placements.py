"""The dearest placements: the most that m rewards of one person cost for however long an agent runs.

Costs are in units of one release with the multiplier one. Each function is for one rule by which releases hold rewards
(mechanism/composition.py), and for agents that take one reward of a person in an episode at most. The proofs are in
docs/guarantees.md, and tests compare them with all placements of small cases.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise

MANY_OVER_FACTORS = 1000
"""Rewards of a person beyond which a bound stands for the exact cost, where they are spread over several factors."""
MANY_IN_TREES = 64
"""The same in trees."""


@lru_cache(maxsize=256)
def factor_cost(multipliers: tuple[int, ...], unit: int, cap: int | None, rewards: int) -> Fraction:
    """Return the most that rewards in different episodes cost, where releases hold earlier episodes by a factor.

    Rewards in episodes i <= j share the releases that hold both: G_ij = c_(j-i) c_0 + c_(j-i+1) c_1 + ..., up to the
    cap. With multipliers that never grow, G_ij falls with j - i and with j. So no episodes are dearer than the first
    ones of a factor, one after the other. A factor that is used up is followed by another one, which shares nothing
    with it.

    Args:
        multipliers: Whole numbers over unit, of the newest episode first.
        unit: What makes one.
        cap: After so many releases another factor begins; None: never.
        rewards: How many there are.

    >>> factor_cost((2, 1), 2, None, 2), factor_cost((1,), 1, 1, 5)
    (Fraction(7, 2), Fraction(5, 1))
    """
    column = _shared(multipliers, unit, cap, 0, 0)
    most = rewards if cap is None else min(rewards, cap)
    falling = all(a >= b for a, b in pairwise(multipliers))
    if not falling or (cap is not None and rewards > MANY_OVER_FACTORS):
        # A reward shares most with those at the dearest distances, twice each, wherever they are.
        distances = sorted((_shared(multipliers, unit, cap, 0, d) for d in range(1, len(multipliers))), reverse=True)
        return min(rewards * (column + 2 * sum(distances[: most - 1])), rewards**2 * column)
    costs = [Fraction(0)]
    for last in range(1, most + 1):
        if cap is None and last > len(multipliers):  # from here on every reward adds the same
            return costs[-1] + (rewards - last + 1) * (costs[-1] - costs[-2])
        beside = sum(_shared(multipliers, unit, cap, last - 1, apart) for apart in range(1, last))
        costs.append(costs[-1] + _shared(multipliers, unit, cap, last - 1, 0) + 2 * beside)
    return _largest_split(costs, rewards)


def _shared(multipliers: tuple[int, ...], unit: int, cap: int | None, before: int, apart: int) -> Fraction:
    """Return G_ij of two episodes so far apart, the later of which has so many before it in its factor."""
    rows = len(multipliers) if cap is None else min(len(multipliers), cap - before)
    return Fraction(sum(a * b for a, b in zip(multipliers[:rows], multipliers[apart:], strict=False)), unit**2)


@lru_cache(maxsize=256)
def tree_cost(levels: int, rewards: int) -> Fraction:
    """Return the most that rewards in different leaves cost, where nodes of a binary tree leave (mechanism/tree.py).

    A node that holds s of them costs s^2. Of the two halves of a node, the left one leaves by itself when it is
    complete, the right one does not. So s leaves in a left half cost s^2 more than in a right half of the same size,
    and in both they are split over the two halves in the dearest way.

    >>> tree_cost(4, 1), tree_cost(4, 2), tree_cost(1, 3)
    (Fraction(4, 1), Fraction(13, 1), Fraction(3, 1))
    """
    if rewards > MANY_IN_TREES:  # at most 2^z of them are in a node of 2^z leaves
        return Fraction(sum(rewards * min(rewards, 1 << level) for level in range(levels)))
    left, right = [0, 1], [0, 0]
    for level in range(1, levels + 1):
        halves = [_dearest_halves(left, right, s) for s in range(min(1 << level, rewards) + 1)]
        left, right = [cost + s * s for s, cost in enumerate(halves)], halves
    return _largest_split([Fraction(cost) for cost in right], rewards)


def _dearest_halves(left: Sequence[int], right: Sequence[int], leaves: int) -> int:
    """Return the most that so many leaves cost that are split over two halves."""
    splits = range(max(0, leaves - len(right) + 1), min(leaves, len(left) - 1) + 1)
    return max(left[s] + right[leaves - s] for s in splits)


def _largest_split(costs: Sequence[Fraction], rewards: int) -> Fraction:
    """Return the most that so many rewards cost if they are split over parts that share nothing.

    costs: of 0, 1, 2, ... rewards in one part, as many as fit into it.
    """
    best = [Fraction(0)]
    for left in range(1, rewards + 1):
        best.append(max(costs[k] + best[left - k] for k in range(1, min(left, len(costs) - 1) + 1)))
    return best[rewards]
