"""The cost to a person: the exact worst placement, by brute force over all of them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest

import private_bandits as pb
from private_bandits.errors import InvalidInput
from private_bandits.ledger import Ledger, Release, label_span
from private_bandits.ledger.people import MOST_PAIRS, Releases, worst_person
from private_bandits.ledger.placements import factor_cost, tree_cost
from private_bandits.mechanism.factor import HALF_BEFORE, INDEPENDENT, Factor, square_root
from private_bandits.mechanism.tree import subtrees_joined

FACTORS = [
    HALF_BEFORE,
    INDEPENDENT,
    Factor((4, 3, 1), 4),
    Factor((4, 2, 1), 4, 3),
    Factor((4, 2), 4, 3),
    square_root(3),
    square_root(4),
]


def episodes_of(row: Release) -> Iterator[tuple[str, int, Fraction]]:
    """Every episode of a row with its multiplier."""
    for label, multiplier in row.episodes.items():
        key, first, last = label_span(label)
        for number in range(first, last + 1):
            yield key, number, Fraction(multiplier)


def cost_of(rows: list[Release], placed: dict[tuple[str, int], int]) -> Fraction:
    """What the releases cost a person with so many rewards in each episode, by the definition."""
    total = Fraction(0)
    for row in rows:
        moves = [c * placed.get((key, number), 0) for key, number, c in episodes_of(row)]
        if row.noise == "laplace":
            total += Fraction(row.calibrated) * sum(moves)
        elif len(row.keys) > 1 and row.weights is None:  # every sum is a value of its own
            total += Fraction(row.calibrated) * sum(move**2 for move in moves)
        else:
            total += Fraction(row.calibrated) * sum(moves) ** 2
    return total


def brute_force(rows: list[Release], rewards: int, one: bool) -> Fraction:
    """The dearest of all placements."""
    sizes: dict[tuple[str, int], int] = {}
    for row in rows:
        for part in row.parts:
            if part.new:
                key, _, number = label_span(part.episode)
                sizes[key, number] = 1 if one else min(part.rewards, rewards)
    places = list(sizes)
    tries = product(*(range(sizes[place] + 1) for place in places))
    return max(cost_of(rows, dict(zip(places, k, strict=True))) for k in tries if sum(k) <= rewards)


def played(policy: pb.policies.Policy[Any], steps: int, seed: int) -> Ledger:
    """The ledger of an agent after a few rewards of random arms."""
    dice = random.Random(seed)
    agent = pb.Agent(policy)
    for _ in range(steps):
        agent.tell(agent.ask(), dice.random(), played=dice.randrange(len(policy.arm_names)))
    return agent.ledger


@pytest.mark.parametrize("one", [False, True])
@pytest.mark.parametrize("rewards", [1, 2, 3, 5])
@pytest.mark.parametrize(
    ("policy", "steps"),
    [
        (pb.AdaCUCB(2, pb.zCDP(0.5)), 18),
        (pb.AdaCUCB(2, pb.zCDP(40.0), variant="paper"), 14),
        (pb.AdaPUCB(2, pb.PureDP(1.0)), 14),
        (pb.TreeUCB(2, pb.zCDP(1.0), horizon=50), 8),
        (pb.DPSE(2, pb.PureDP(8.0)), 12),
    ],
    ids=lambda x: x.name if isinstance(x, pb.policies.Policy) else "",
)
def test_the_worst_person_is_that_of_all_placements(
    policy: pb.policies.Policy[Any], steps: int, rewards: int, one: bool
) -> None:
    for seed in range(3):
        rows = list(played(policy, steps, seed))
        found = worst_person(Releases.of(rows), rewards, one)
        assert found.exact
        assert found.cost == brute_force(rows, rewards, one)
        placed = {}
        for label, k in found.placement.items():
            key, _, number = label_span(label)
            placed[key, number] = k
        assert cost_of(rows, placed) == found.cost  # it names a placement that has this cost
        assert sum(found.placement.values()) <= rewards
        assert found.rounded >= found.cost


def test_all_rewards_in_one_episode_cost_their_square() -> None:
    ledger = played(pb.AdaCUCB(2, pb.zCDP(0.5), variant="paper"), 200, 1)
    for rewards in (1, 3, 10):
        found = ledger.person_cost(rewards)
        assert found.exact
        assert found.cost == rewards**2 * max(Fraction(row.calibrated) for row in ledger)
        assert len(found.placement) == 1
        spread = ledger.person_cost(rewards, one_per_episode=True)
        assert spread.exact
        assert spread.cost <= rewards * max(Fraction(row.calibrated) for row in ledger)


def test_where_too_much_is_shared_an_upper_bound_is_told_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = pb.TreeUCB(1, pb.zCDP(1.0), horizon=100)
    exact = played(policy, 20, 3).person_cost(3)
    monkeypatch.setattr("private_bandits.ledger.people.MOST_PAIRS", 10)
    bound = played(policy, 20, 3).person_cost(3)
    assert exact.exact
    assert not bound.exact
    assert bound.cost >= exact.cost
    assert MOST_PAIRS > 10


def test_a_ledger_that_protects_nobody_has_no_cost_to_a_person() -> None:
    agent = pb.Agent(pb.AdaCUCB(2, pb.zCDP(1)), seed=1)
    agent.tell(agent.ask(), 1.0)
    with pytest.raises(InvalidInput, match="nothing protects"):
        agent.ledger.person_cost(2)
    with pytest.raises(InvalidInput, match="rewards must be"):
        pb.Agent(pb.AdaCUCB(2, pb.zCDP(1))).ledger.person_cost(0)


# For however long an agent runs.


@pytest.mark.parametrize("factor", FACTORS, ids=str)
def test_the_dearest_episodes_of_a_factor(factor: Factor) -> None:
    size = 12
    mixed = [
        [
            Fraction(factor.multipliers[l - j], factor.unit)
            if 0 <= l - j < min(factor.covered(l + 1), len(factor.multipliers))
            else Fraction(0)
            for j in range(size)
        ]
        for l in range(size)  # noqa: E741
    ]
    for rewards in (1, 2, 3, 4):
        exact = max(
            sum(sum(row[j] for j in chosen) ** 2 for row in mixed) for chosen in combinations(range(size), rewards)
        )
        assert factor.spread_cost(rewards) == exact
        assert exact <= rewards**2 * factor.column


@pytest.mark.parametrize("levels", [1, 2, 3, 4])
def test_the_dearest_leaves_of_a_tree(levels: int) -> None:
    leaves = range(1, 16)
    for rewards in (1, 2, 3, 4):
        exact = 0
        for chosen in combinations(leaves, rewards):
            nodes = [(i - 2 ** subtrees_joined(i, levels), i) for i in leaves]
            exact = max(exact, sum(sum(low < x <= high for x in chosen) ** 2 for low, high in nodes))
        assert tree_cost(levels, rewards) == exact


def test_many_rewards_are_bounded_from_above() -> None:
    assert tree_cost(10, 65) >= tree_cost(10, 64)
    assert tree_cost(3, 1000) <= 1000**2 * 3
    capped = square_root(5)
    assert capped.spread_cost(1001) >= capped.spread_cost(1000)
    for times in ((2, 4, 1), (256, 1, 1, 200), (4, 1, 1, 1, 4)):  # multipliers that grow: a bound, not the exact cost
        for rewards in (2, 3):
            exact = max(
                sum(sum(times[l - j] for j in chosen if 0 <= l - j < len(times)) ** 2 for l in range(16))  # noqa: E741
                for chosen in combinations(range(11), rewards)
            )
            assert factor_cost(times, times[0], None, rewards) >= Fraction(exact, times[0] ** 2)
    assert factor_cost((2, 1), 2, None, 10**9) == Fraction(9, 4) * (10**9 - 2) + Fraction(7, 2)


def test_the_figures_of_the_geometric_factor() -> None:
    """Growth 1.25: about 3.6, 7.5, 18 and 54 times the cost of one reward."""
    times = [max(1, round(256 * 0.8**k)) for k in range(21)]
    factor = Factor(tuple(times), 256)
    worth = [float(factor.spread_cost(m) / factor.column) for m in (2, 3, 5, 10)]
    np.testing.assert_allclose(worth, [3.6, 7.5, 18.1, 54.3], rtol=0.005)
