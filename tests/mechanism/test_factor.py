"""Correlated noise: which episodes a release holds again, what that costs, and how sums are decoded from it."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import private_bandits as pb
from private_bandits.errors import AgentClosed, CapacityExceeded, InvalidInput, PolicyFailed
from private_bandits.ledger import Account, Release, rewards_in
from private_bandits.mechanism.composition import Correlated
from private_bandits.mechanism.episode import Episode
from private_bandits.mechanism.factor import HALF_BEFORE, Factor, square_root
from private_bandits.mechanism.release import Door
from private_bandits.mechanism.rewards import RewardRange
from private_bandits.policies import POLICIES

FACTORS = [HALF_BEFORE, square_root(1), square_root(7), Factor((4, 3, 2, 1), 4, 6), Factor((2, 1), 2, 3)]


def door(budget: pb.budget.Budget, factor: Factor | None, seed: int | None = None) -> Door:
    return Door(budget, RewardRange(0.0, 1.0), Account(), seed, factor=factor)


def play(one: Door, counts: list[int], generator: np.random.Generator) -> tuple[list[int], list[Release]]:
    """Release as many episodes, of so many rewards each: their exact sums, and what was released."""
    sums, rows = list[int](), list[Release]()
    kept: tuple[Episode, ...] = ()
    for number, count in enumerate(counts, 1):
        episode = one.open_episode(0, number, 1)
        episode.kept = kept
        rewards = generator.integers(0, one.grid.steps + 1, count).tolist()
        for reward in rewards:
            episode.add((1,), reward)
        whole = one.composition.compose(episode)
        kept = whole.carried_over
        rows.append(one.release(whole))
        sums.append(sum(rewards))
    return sums, rows


@pytest.mark.parametrize("factor", FACTORS)
def test_a_release_holds_what_the_matrix_of_the_factor_says(factor: Factor) -> None:
    one = door(pb.NoPrivacy(), factor)
    counts = [1, 1, 2, 4, 3, 5, 2, 9, 1, 4, 2, 7, 3, 2, 5]
    sums, rows = play(one, counts, np.random.default_rng(0))
    values = [row.values for row in rows]
    cap = factor.cap or len(counts)
    exact = [Fraction(s, one.grid.steps) for s in sums]
    for start in range(0, len(counts), cap):
        part = exact[start : start + cap]
        for l, ours in enumerate(values[start : start + cap]):  # noqa: E741
            taps = zip(factor.multipliers, reversed(part[: l + 1]), strict=False)
            assert ours == pytest.approx((float(sum(c * x for c, x in taps) / factor.unit),), rel=1e-12)
        decoded = np.linalg.solve(factor.matrix(len(part)), [v[0] for v in values[start : start + cap]])
        assert decoded == pytest.approx([float(x) for x in part], rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("factor", FACTORS)
@pytest.mark.parametrize("budget", [pb.zCDP(0.1), pb.ApproxDP(1, 1e-6), pb.RenyiDP(3, 0.7), pb.zCDP(math.pi)])
def test_a_reward_costs_one_budget_in_all_of_its_releases_together(factor: Factor, budget: pb.budget.Budget) -> None:
    one = door(budget, factor)
    _, rows = play(one, [1, 2] * 9, np.random.default_rng(1))
    costs: dict[str, Fraction] = {}
    for row in rows:
        assert row.calibrated == pytest.approx(row.sensitivity**2 / (2 * row.scale**2), rel=1e-9)
        assert row.noise_sd == pytest.approx(
            math.sqrt(budget.variance_factor * float(factor.column)), rel=1e-9
        )  # of a sum of weight one and width one
        for episode, multiplier in row.episodes.items():
            costs[episode] = costs.get(episode, Fraction(0)) + Fraction(row.cost) * Fraction(multiplier) ** 2
    assert max(costs.values()) <= Fraction(budget.level)
    assert one.account.total == pytest.approx(budget.level, rel=1e-9)
    assert one.account.total <= budget.level
    full = len(factor.multipliers)
    if factor.cap is None or factor.cap >= full:
        assert float(costs["0/1"]) == pytest.approx(budget.level, rel=1e-9)


def test_noise_for_one_release_alone_would_cost_more_than_the_budget() -> None:
    factor = square_root(8)
    one = door(pb.zCDP(0.1), factor)
    one._per_release = pb.zCDP(0.1)
    play(one, [1] * 8, np.random.default_rng(2))
    assert one.account.total == pytest.approx(0.1 * float(factor.column), rel=1e-6)


def test_only_what_the_factor_covers_goes_through_the_door() -> None:
    factor = square_root(3)
    one = door(pb.zCDP(1.0), factor)
    first = one.open_episode(0, 1, 1)
    first.add((1,), 1)
    with pytest.raises(AssertionError, match="another factor"):
        one.release(first)
    with pytest.raises(AssertionError, match="another factor"):
        door(pb.zCDP(1.0), None).release(Correlated(first, factor))
    with pytest.raises(AssertionError, match="another factor"):
        one.release(Correlated(first, square_root(4)))
    second = one.open_episode(0, 2, 1)
    second.add((1,), 1)
    with pytest.raises(AssertionError, match="does not hold"):
        one.composition.compose(second)  # without the first
    fourth = one.open_episode(0, 4, 1)
    fourth.add((1,), 1)
    fourth.kept = (first,)
    with pytest.raises(AssertionError, match="does not hold"):
        one.composition.compose(fourth)  # the cap is reached: the first must not come again
    released = one.composition.compose(first)
    one.release(released)
    with pytest.raises(AssertionError, match="released before"):
        one.release(released)


def test_a_factor_is_for_gaussian_noise() -> None:
    with pytest.raises(InvalidInput, match="factor"):
        Door(pb.PureDP(1), RewardRange(0.0, 1.0), Account(), None, factor=HALF_BEFORE)
    with pytest.raises(InvalidInput, match="factor"):
        Door(pb.zCDP(1), RewardRange(0.0, 1.0), Account(), None, factor=HALF_BEFORE, releases_of_a_reward=2)


def test_sums_that_outgrow_64_bits_together_are_refused() -> None:
    one = door(pb.zCDP(1.0), HALF_BEFORE)
    full = one.grid.fits(1, 1)
    first, second = (one.open_episode(0, number, 1) for number in (1, 2))
    for episode, count in ((first, full), (second, full)):
        episode.add((1,), 0)
        episode.count = count
    assert rewards_in(one.composition.compose(first).parts) == full
    second.kept = (first,)
    with pytest.raises(CapacityExceeded, match="64 bits together"):
        one.composition.compose(second)
    second.count = full // 2
    assert rewards_in(one.composition.compose(second).parts) == full // 2 + full


def test_no_repr_shows_a_sum() -> None:
    one = door(pb.zCDP(1.0), HALF_BEFORE)
    episode = one.open_episode(0, 1, 1)
    episode.add((1,), 12345678)
    whole = one.composition.compose(episode)
    for shown in (repr(whole), repr(whole.totals), repr(vars(whole))):
        assert "24691356" not in shown
        assert "12345678" not in shown


@pytest.mark.parametrize("releases", [1, 2, 5, 75, 400])
def test_the_square_root_decodes_prefix_sums_with_little_noise(releases: int) -> None:
    factor = square_root(releases)
    prefixes = np.tril(np.ones((releases, releases)))
    decoder = prefixes @ np.linalg.inv(factor.matrix(releases))
    weights = factor.prefix_weights
    for row in range(releases):
        assert decoder[row, : row + 1] == pytest.approx(weights[row::-1], rel=1e-9, abs=1e-12)
    variances = float(factor.column) * np.cumsum(weights**2)
    assert factor.prefix_variances == pytest.approx(variances)
    harmonic = [sum((math.comb(2 * k, k) / 4**k) ** 2 for k in range(n)) for n in range(1, releases + 1)]
    ideal = harmonic[-1] * np.array(harmonic)  # S_n S_l of the unrounded root
    assert (np.abs(variances / ideal - 1) < 0.01).all()
    if releases == 75:
        assert variances[-1] < 6.5 < 75


def test_sensitivity_is_for_the_largest_weight_among_all_that_are_covered() -> None:
    one = door(pb.zCDP(1.0), HALF_BEFORE)
    first, second = (one.open_episode(0, number, 2) for number in (1, 2))
    first.add((3, 4), 1)
    second.add((1, 0), 1)
    second.kept = (first,)
    whole = one.composition.compose(second)
    assert whole.sensitivity_l2 == 5 * 2 * one.grid.steps
    assert whole.weight_sums == [2 * 1 + 3, 4]
    assert whole.multipliers == {"0/2": 1.0, "0/1": 0.5}


def test_places_and_covers() -> None:
    factor = Factor((4, 3, 2), 4, 5)
    assert [factor.covered(number) for number in range(1, 12)] == [1, 2, 3, 3, 3, 1, 2, 3, 3, 3, 1]
    assert [HALF_BEFORE.covered(number) for number in (1, 2, 3, 100)] == [1, 2, 2, 2]
    assert all(a >= b for a, b in pairwise(square_root(50).multipliers))


def test_an_episode_of_its_own_is_unchanged_by_factors() -> None:
    episode = Episode(3, 1, 1, door(pb.zCDP(1.0), None).grid)
    assert (episode.factor, episode.multipliers) == (None, {"3/1": 1.0})


@pytest.mark.parametrize("name", ["adac-imed", "adac-oful", "adac-gope"])
@pytest.mark.parametrize("step", ["ledger", "policy"])
def test_an_agent_in_memory_ends_where_a_release_was_cut_short(
    name: str, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A policy that missed one would read the next ones, which hold its episode again, wrongly."""
    policy = POLICIES[name].example(pb.zCDP(1))
    agent = pb.Agent(policy, seed=1)  # noise may leave one action, and then there are no more releases
    actions = None if policy.arm_names else np.eye(2)

    def cut(*_: object) -> None:
        raise KeyboardInterrupt

    for _ in range(50):
        agent.tell(agent.ask(actions=actions), 1.0)
    monkeypatch.setattr(*((Account, "charge_new", cut) if step == "ledger" else (type(policy), "learn", cut)))

    def play() -> None:
        for _ in range(10_000):
            agent.tell(agent.ask(actions=actions), 1.0)

    with pytest.raises(KeyboardInterrupt):
        play()
    monkeypatch.undo()
    expected, words = (AgentClosed, "interrupted") if step == "ledger" else (PolicyFailed, "with KeyboardInterrupt")
    for look in (lambda: agent.ask(actions=actions), agent.estimates):
        with pytest.raises(expected, match=words):
            look()
    if step == "ledger":
        with pytest.raises(AgentClosed, match="interrupted"):
            _ = agent.ledger
    else:
        assert len(agent.ledger) > 1


@pytest.mark.parametrize(
    ("multipliers", "unit", "cap"),
    [((), 1, None), ((2, -1), 2, None), ((2, 0), 2, None), ((3, 1), 3, None), ((1, 1), 2, None), ((1,), 1, 0)],
)
def test_what_is_no_factor_is_refused(multipliers: tuple[int, ...], unit: int, cap: int | None) -> None:
    with pytest.raises(InvalidInput, match="factor needs"):
        Factor(multipliers, unit, cap)


def test_a_factor_and_a_combination_exclude_each_other() -> None:
    class Both(pb.AdaCIMED):
        def combination(self, state: Any, key: int, arrived: Any) -> Any:
            return None

    with pytest.raises(InvalidInput, match="Both has a factor and a combination"):
        pb.Agent(Both(2, pb.zCDP(1)))
    pb.Agent(Both(2, pb.NoPrivacy()))


def test_a_budget_too_small_to_be_shared_is_named() -> None:
    with pytest.raises(InvalidInput, match=r"zCDP\(rho=1e-200\) leaves less than 1e-200"):
        pb.Agent(pb.AdaCIMED(2, pb.zCDP(1e-200)))
