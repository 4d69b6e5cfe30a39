"""Costs of belief: what they are, that they are never too large, and how often they are as large as they say."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import optimize, stats

import private_bandits as pb
from private_bandits.arrays import Floats
from private_bandits.policies.closing import pooled_evidence
from private_bandits.policies.evidence import (
    Evidence,
    beats,
    cost_needed,
    costs_of_less,
    costs_of_more,
    declared,
    intervals_of,
    joint_costs,
)
from private_bandits.policies.release_memory import combination_weights
from tests.policies.test_imed import divergence


@pytest.fixture(autouse=True)
def rounding_is_no_excuse() -> Iterator[None]:
    """Nothing overflows, is divided by zero or is not a number without a test that fails."""
    with np.errstate(over="raise", divide="raise", invalid="raise"), warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def stacked(*arms: Evidence) -> Evidence:
    return Evidence.stacked(list(arms))


def cost_of_more(arm: Evidence, u: float) -> float:
    return float(costs_of_more(stacked(arm), np.array([u]))[0][0])


# The cost of one arm.


def laplace_rate(t: float) -> float:
    root = math.sqrt(1 + t * t)
    return root - 1 - math.log((1 + root) / 2)


def slow_cost(arm: Evidence, u: float) -> float:
    """The infimum over what the rewards' mean y may have been, as it is written down."""
    mean = arm.mean + arm.rounding
    seen = u - arm.share * (u - (max(mean, 0.0) if arm.share < 1 else mean))
    if seen >= u:
        return 0.0

    def noise(y: float) -> float:
        if arm.scale:
            return float(arm.copies * laplace_rate(abs(y - seen) / (arm.scale * arm.copies)))
        return float((y - seen) ** 2 / (2 * arm.variance)) if arm.variance else math.inf * (y != seen)

    def story(y: float) -> float:
        return float(arm.rewards * divergence(y, u)) + noise(y)

    if math.isinf(arm.rewards):
        return noise(u)
    if not (arm.variance or arm.scale):
        return float(arm.rewards * divergence(seen, u)) if seen >= 0 else math.inf
    ends = (max(seen, 0.0), u)
    found = optimize.minimize_scalar(story, bounds=ends, method="bounded", options={"xatol": 1e-13, "maxiter": 2000})
    return float(min(found.fun, *map(story, ends)))


GAUSSIAN = [
    Evidence(mean, rounding, rewards, variance, 2.0, share=share)
    for mean, rounding in ((-0.7, 0.0), (0.0, 0.0), (0.01, 0.002), (0.4, 0.0), (0.95, 1e-6), (1.4, 0.0))
    for rewards in (1.0, 3.7, 200.0, 1e7, math.inf)
    for variance in (1e-9, 1e-4, 0.02, 5.0)
    for share in (1.0, 0.3)
]
LAPLACE = [
    Evidence(mean, 0.0, rewards, 0.0, 2.0, scale, copies)
    for mean in (-0.7, 0.0, 0.4, 0.95)
    for rewards in (1.0, 200.0, 1e7)
    for scale in (1e-4, 0.05, 3.0)
    for copies in (1.0, 6.5)
]
PLAIN = [Evidence(mean, 0.0, rewards, 0.0, 2.0) for mean in (0.0, 0.4, 0.95) for rewards in (1.0, 200.0, 1e7)]
SLOW = [(arm, u) for arm in GAUSSIAN + LAPLACE + PLAIN for u in (0.02, 0.5, 0.97)]


def test_the_cost_is_the_infimum_and_never_above() -> None:
    expected = np.array([slow_cost(arm, u) for arm, u in SLOW])
    places = np.array([u for _, u in SLOW])
    found, slopes = costs_of_more(stacked(*(arm for arm, _ in SLOW)), places)
    assert (expected > 0).mean() > 0.5
    assert (found <= expected * (1 + 1e-7) + 1e-9).all()
    # What costs hundreds is excluded anyway: the search ends at 700 a reward.
    enough = np.minimum(expected, 400)
    np.testing.assert_allclose(np.minimum(found, 400), enough, rtol=1e-5, atol=1e-9)
    assert (slopes >= -1e-9 * (1 + found)).all()


def test_being_less_is_being_more_of_what_is_missing() -> None:
    arms = stacked(*(arm for arm, _ in SLOW))
    places = np.array([u for _, u in SLOW])
    found, slopes = costs_of_less(arms._replace(mean=1 - arms.mean), 1 - places)
    expected, other = costs_of_more(arms, places)
    # 1 - (1 - u) is not u to the last bit, and ten million rewards tell the two apart.
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(slopes, -other, rtol=1e-6, atol=1e-7)


def test_tangents_are_below_the_cost() -> None:
    """So that a joint cost which was found from them holds."""
    here = np.linspace(0.001, 0.999, 61)
    for arm in GAUSSIAN[::7] + LAPLACE[::5] + PLAIN:
        costs, slopes = costs_of_more(stacked(*[arm] * len(here)), here)
        tangents = costs[:, None] + slopes[:, None] * (here[None, :] - here[:, None])
        assert (tangents <= costs[None, :] * (1 + 1e-9) + 1e-7 * (1 + costs[:, None])).all()
        assert (np.diff(costs) >= -1e-9 * (1 + costs[1:])).all()


EXTREME = [
    Evidence(mean, rounding, rewards, variance, odds, scale, copies, share)
    for mean in (-1e6, -3.0, -1e-12, 0.0, 1e-300, 0.5, 1 - 1e-16, 1.0, 1.0 + 1e-9, 4.0, 1e6)
    for rounding in (0.0, 1e-9)
    for rewards in (1.0, 1e12, math.inf)
    for variance, scale, copies in ((0.0, 0.0, 0.0), (1e-30, 0.0, 0.0), (1e12, 0.0, 0.0), (0, 1e-9, 1), (0, 1e6, 40))
    for share, odds in ((1.0, 2.0), (1e-9, 1e12))
    if rewards < math.inf or variance  # rewards whose error counts as Gaussian noise have such a noise
]


def test_extreme_numbers_give_numbers() -> None:
    arms = stacked(*EXTREME)
    for u in (0.0, 1e-300, 1e-9, 0.5, 1 - 1e-9, 1.0):
        for costs in (costs_of_more, costs_of_less):
            found, slopes = costs(arms, np.full(len(EXTREME), u))
            assert np.isfinite(found).all()
            assert np.isfinite(slopes).all()
            assert (found >= 0).all()
    chance = np.random.default_rng(1)
    others = arms.take(chance.permutation(len(EXTREME)))
    for lead in (-1.0, -0.999, -1e-12, 0.0, 0.3, 1.0):
        found = joint_costs(arms, others, np.full(len(EXTREME), lead))
        assert np.isfinite(found).all()
        assert (found >= 0).all()
    assert beats(arms, others, 20.0).dtype == bool
    for arm in EXTREME[::17]:
        low, high = intervals_of((arm,), (20.0 * arm.odds,))[0]
        assert 0 <= low <= 1
        assert 0 <= high <= 1


# Two arms.


def pairs() -> tuple[Evidence, Evidence, Floats]:
    sides = GAUSSIAN[::3] + LAPLACE[::4] + PLAIN
    chance = np.random.default_rng(2)
    first, second = (
        stacked(*(sides[i] for i in chance.permutation(np.tile(np.arange(len(sides)), 4)))) for _ in range(2)
    )
    return first, second, chance.choice([-0.4, -0.05, 0.0, 0.0, 0.2], size=len(first.mean))


def slow_joint(first: Evidence, second: Evidence, lead: Floats) -> Floats:
    """The least sum of both costs on a grid over u that becomes finer around its best place."""
    low, high = np.maximum(0.0, -lead), np.minimum(1.0, 1.0 - lead)
    best = np.full(len(lead), np.inf)
    for _ in range(7):
        grid = np.linspace(low, high, 41)
        costs = np.array([costs_of_less(first, u + lead)[0] + costs_of_more(second, u)[0] for u in grid])
        best = np.minimum(best, costs.min(axis=0))
        place = grid[costs.argmin(axis=0), np.arange(len(lead))]
        step = grid[1] - grid[0]
        low, high = np.maximum(low, place - step), np.minimum(high, place + step)
    return best


def test_a_joint_cost_is_the_least_sum_and_never_above() -> None:
    first, second, lead = pairs()
    expected, found = slow_joint(first, second, lead), joint_costs(first, second, lead)
    assert (expected > 0.01).sum() > 100
    assert (found <= expected * (1 + 1e-8) + 1e-9).all()
    # Noise may take means of both arms beyond 0 or 1. That alone is unlikely, and says nothing of their difference.
    sensible = (expected > 1e-3) & (first.mean - first.rounding - lead > second.mean + second.rounding)
    assert (found[~sensible] <= 1e-3).all()
    np.testing.assert_allclose(found[sensible], expected[sensible], rtol=0.01)


def test_a_larger_lead_is_believed_at_a_smaller_cost() -> None:
    first, second, _ = pairs()
    leads = np.linspace(-0.99, 0.99, 34)
    found = np.array([joint_costs(first, second, np.full(len(first.mean), lead)) for lead in leads])
    assert (found[0] > found[-1]).mean() > 0.5
    assert (np.diff(found, axis=0) <= 1e-4 * (1e-2 + found[:-1])).all()  # as close as joint costs are


def test_the_cost_needed_has_the_tail_of_a_sum_of_two() -> None:
    odds = np.array([1.0, 1.001, 2.0, 40.0, 1e6, 1e30, 1e300])
    x = cost_needed(odds)
    assert ((1 + x) * np.exp(-x) <= 1 / odds).all()
    assert (x - 2e-9 <= 0).sum() == 1
    more = np.maximum(x - 1e-6, 0)
    assert ((1 + more) * np.exp(-more) >= (1 - 1e-12) / odds).all()
    assert float(cost_needed(np.array(0.5))) == pytest.approx(0, abs=1e-8)  # no confidence is asked for
    costs = np.random.default_rng(3).exponential(size=(2, 200_000)).sum(axis=0)
    share = (costs >= float(cost_needed(np.array(20.0)))).mean()
    assert abs(share - 0.05) < 4 * math.sqrt(0.05 * 0.95 / 200_000)


@pytest.mark.parametrize("odds", [1.0, 20.0, 1e5])
def test_an_arm_beats_another_where_the_joint_cost_suffices(odds: float) -> None:
    first, second, _ = pairs()
    needed = cost_needed(odds * first.odds * second.odds)
    expected = joint_costs(first, second, np.zeros(len(needed))) >= needed
    assert 0 < expected.sum() < len(expected)
    np.testing.assert_array_equal(beats(first, second, odds), expected)
    assert not (beats(first, second, odds) & beats(second, first, odds)).any()


def test_a_winner_beats_all_others() -> None:
    arms = [(Evidence(mean, 0.0, 500.0, 1e-4, 6.0),) for mean in (0.4, 0.8, 0.3, 0.5)]
    assert declared(arms, 0.05) == 1
    assert declared([*arms, (Evidence(0.78, 0.0, 500.0, 1e-4, 6.0),)], 0.05) is None
    assert declared([*arms, ()], 0.05) is None
    assert (declared([()], 0.05), declared(arms[:1], 0.05)) == (0, 0)
    needed = [delta for delta in np.geomspace(1e-12, 0.9, 60) if declared(arms[:2], float(delta)) is not None]
    assert needed == sorted(needed)  # once a delta is large enough, larger ones are
    assert needed[-1] == pytest.approx(0.9)


def test_what_was_known_before_the_end_still_counts() -> None:
    """An arm that is known in two ways wins by either of them."""
    sure, vague = Evidence(0.9, 0.0, 500.0, 0.0, 6.0), Evidence(0.85, 0.0, 500.0, 0.5, 12.0)
    other = (Evidence(0.2, 0.0, 500.0, 0.0, 6.0),)
    assert declared([(vague,), other], 0.05) is None
    assert declared([(sure, vague), other], 0.05) == 0


def test_intervals_are_where_the_cost_is_reached() -> None:
    for arm in GAUSSIAN[::5] + LAPLACE[::3] + PLAIN:
        low, high = intervals_of((arm,), (40.0,))[0]
        level = math.log(80)
        if 1e-6 < high < 1:
            assert cost_of_more(arm, high + 1e-9) >= level * (1 - 1e-6)
            assert cost_of_more(arm, high - 1e-9) <= level * (1 + 1e-3)
        if 0 < low < 1 - 1e-6:
            assert cost_of_more(arm.mirrored, 1 - low + 1e-9) >= level * (1 - 1e-6)


# How often a cost is as large as x: with a probability of at most e^-x.

LEVELS = (0.3, 1.0, 3.0, 8.0)


def highest_mean_of_cost(arm: Evidence, u: float, level: float) -> float:
    """Return the largest mean at which believing in u costs `level`."""
    low, high = u - 60.0, u
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if cost_of_more(arm._replace(mean=middle), u) >= level else (low, middle)
    return low


def exact_tail(arm: Evidence, n: int, u: float, level: float) -> float:
    """The probability that a mean of n rewards of Bernoulli(u), with the noise, costs as much."""
    below = highest_mean_of_cost(arm, u, level)
    sums = np.arange(n + 1)
    space = below - sums / n
    if arm.scale:
        noise = stats.laplace.cdf(space / arm.scale)
    elif arm.variance:
        noise = stats.norm.cdf(space / math.sqrt(arm.variance))
    else:
        noise = space >= -1e-12
    return float(stats.binom.pmf(sums, n, u) @ noise)


@pytest.mark.parametrize("n", [1, 6, 50])
@pytest.mark.parametrize("u", [0.02, 0.4, 0.97])
def test_exactly_how_often_a_cost_is_large(n: int, u: float) -> None:
    noises = [{"variance": 0.0}, {"variance": 1e-3}, {"variance": 0.3}]
    noises += [{"variance": 0.0, "scale": scale, "copies": 1.0} for scale in (0.01, 0.5)]
    for noise, level in product(noises, LEVELS):
        arm = Evidence(0.0, 0.0, float(n), odds=1.0, **noise)
        assert exact_tail(arm, n, u, level) <= math.exp(-level) * (1 + 1e-9)


def test_claiming_more_rewards_than_there_are_would_be_seen() -> None:
    """The same test fails for a mean of 50 rewards that is taken for one of 200."""
    arm = Evidence(0.0, 0.0, 200.0, 1e-6, 1.0)
    assert exact_tail(arm, 50, 0.4, 3.0) > 1.5 * math.exp(-3.0)


def seldom_enough(costs: Floats) -> bool:
    """Whether no level is exceeded significantly more often than it may be: wrong once in a million."""
    tests = (stats.binomtest(int((costs >= x).sum()), len(costs), math.exp(-x), "greater") for x in LEVELS)
    return all(test.pvalue > 1e-6 for test in tests)


@pytest.mark.parametrize("policy", [pb.AdaCIMED(1, pb.zCDP(0.02)), pb.AdaCTopTwo(1, pb.zCDP(2.0))])
@pytest.mark.parametrize("u", [0.03, 0.5, 0.9])
def test_how_often_weighted_means_cost_much(policy: Any, u: float) -> None:
    runs, releases = 20_000, 12
    chance, memory = np.random.default_rng(4), policy.memory
    lengths, factor = memory.lengths(memory.opening, releases), memory.factor
    noise = policy.budget.variance_factor * float(factor.column)
    found = memory.readings(memory.opening, noise, releases)
    sums = chance.binomial(lengths, u, size=(runs, releases)).astype(float)
    values = sums @ factor.matrix(releases).T + chance.normal(scale=math.sqrt(noise), size=sums.shape)
    means = values @ found.weights[:releases, :releases].T
    for j in (0, 4, releases - 1):
        weight, of_noise = float(found.spread.weight[j]), float(found.spread.noise[j])
        arm = Evidence(means[:, j], *(np.full(runs, part) for part in (0.0, 1 / weight, of_noise, 1.0, 0.0, 0.0, 1.0)))
        place = np.full(runs, u)
        more, less = costs_of_more(arm, place)[0], costs_of_less(arm, place)[0]
        assert seldom_enough(more)
        assert seldom_enough(less)
        assert (np.concatenate([more, less]) >= 1).mean() > 0.02  # and the costs are not simply small


def release(count: int, value: float, sd: float) -> Any:
    return SimpleNamespace(count=count, values=(value,), noise_sd=sd, steps=2**40, noise="gaussian")


@pytest.mark.parametrize("u", [0.1, 0.5])
@pytest.mark.parametrize("rho", [0.2, 20.0])
def test_how_often_means_cost_much_if_one_stops_when_it_looks_best(u: float, rho: float) -> None:
    """The closing release is made after the reward, of those planned, at which the cost is largest."""
    policy, runs, before = pb.AdaCIMED(1, pb.zCDP(rho)), 4000, 6
    memory, chance = policy.memory, np.random.default_rng(5)
    lengths, factor = memory.lengths(memory.opening, before + 1), memory.factor
    assert factor is not None
    planned, noise = lengths[-1], policy.budget.variance_factor * float(factor.column)
    sd, matrix = math.sqrt(noise), factor.matrix(before + 1)
    sums = chance.binomial(lengths[:-1], u, size=(runs, before)).astype(float)
    last = (chance.random((runs, planned)) < u).cumsum(axis=1)
    noises = chance.normal(scale=sd, size=(runs, before + 1))
    weights = combination_weights(lengths, (noise,) * (before + 1), factor).weights[-1]
    most, at_end = (np.zeros((2, runs)) for _ in range(2))
    for k in range(1, planned + 1):
        values = np.column_stack([sums, last[:, k - 1]]) @ matrix.T + noises
        rows = [release(count, value, sd) for count, value in zip((*lengths[:-1], k), values[0], strict=True)]
        closed = pooled_evidence(rows, planned, factor, 0.0, 1.0)[-1]
        assert closed.mean == pytest.approx(float(weights @ values[0]) / closed.share)
        arms = Evidence(*(np.full(runs, part) for part in closed))._replace(mean=values @ weights / closed.share)
        at_end = np.array([costs(arms, np.full(runs, u))[0] for costs in (costs_of_more, costs_of_less)])
        most = np.maximum(most, at_end)
    assert closed.share == pytest.approx(1)
    assert all(map(seldom_enough, most))
    assert (most > at_end).mean() > 0.1  # stopping early did make a difference


def test_a_closing_release_counts_with_what_was_known_before() -> None:
    rows = [release(10, 6.0, 1.0), release(10, 7.0, 1.0), release(4, 3.0, 1.0)]
    before, closed = pooled_evidence(rows, 10, None, 0.0, 1.0)
    assert (before.share, before.odds, closed.odds) == (pytest.approx(1), 6.0, 12.0)
    assert 0.6 < closed.share < 1
    assert closed.mean == pytest.approx(16 / 24, abs=0.05)
    assert pooled_evidence([], None, None, 0.0, 1.0) == ()
    assert len(pooled_evidence(rows, None, None, 0.0, 1.0)) == 1
    assert len(pooled_evidence(rows[-1:], 10, None, 0.0, 1.0)) == 1
