"""AdaC-IMED: its index, its reading of releases, its episodes, its cost, and what it does without rewards."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import optimize, stats

import private_bandits as pb
from private_bandits.agent import bandit_of
from private_bandits.errors import InvalidInput
from private_bandits.mechanism.factor import INDEPENDENT, Factor
from private_bandits.policies import adac_imed
from private_bandits.policies.geometric import GeometricMemory, geometric_factor
from private_bandits.policies.imed_index import LARGEST_MEAN, bound_of_cost, bounds_of_costs, cost, costs
from private_bandits.testing import interact
from tests.policies.test_release_memory import exact_reading

# The index.


def divergence(p: float, q: float) -> float:
    return sum(a * math.log(a / b) for a, b in ((p, q), (1 - p, 1 - q)) if a)


def slow_cost(mean: float, best: float, rewards: float, noise: float) -> float:
    """The infimum as it is written down, by a search over y that knows nothing of derivatives."""
    if mean >= best:
        return 0.0

    def story(y: float) -> float:
        return rewards * divergence(y, best) + (y - mean) ** 2 / (2 * noise)

    ends = (max(mean, 0.0), best)
    found = optimize.minimize_scalar(story, bounds=ends, method="bounded", options={"xatol": 1e-12, "maxiter": 2000})
    return float(min(found.fun, *map(story, ends)))


ARMS = [
    (mean, best, rewards, noise)
    for best in (1e-6, 0.02, 0.3, 0.5, 0.9, LARGEST_MEAN)
    for mean in (-2.0, -0.1, 0.0, 0.01, 0.29, 0.6, 0.97, 1.3)
    for rewards in (1.0, 40.0, 1e7)
    for noise in (1e-12, 1e-4, 0.3, 50.0)
]


def test_the_index_is_the_infimum() -> None:
    expected = np.array([slow_cost(*arm) for arm in ARMS])
    found = np.array([cost(*arm) for arm in ARMS])
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(costs(*np.array(ARMS).T), found, rtol=1e-9, atol=1e-9)


def test_the_index_without_noise_and_without_rewards() -> None:
    for mean in (-0.1, 0.0, 0.2, 1.0):
        assert cost(mean, 0.5, 10.0, 0.0) == pytest.approx(10 * divergence(max(mean, 0.0), 0.5) * (mean < 0.5))
    assert cost(-0.3, 0.0, 10.0, 0.5) == pytest.approx(0.09)
    assert cost(0.3, 0.5, math.inf, 0.5) == pytest.approx(0.04)
    arms = np.array([(-0.1, 0.5, 10.0, 0.0), (-0.3, 0.0, 10.0, 0.5), (0.3, 0.5, math.inf, 0.5), (1.0, 0.5, 10.0, 0.0)])
    np.testing.assert_allclose(costs(*arms.T), [cost(*arm) for arm in arms], rtol=1e-12)


def test_the_bound_is_below_the_index() -> None:
    arms = [*ARMS, (0.2, 0.5, 10.0, 0.0), (0.2, 0.5, math.inf, 0.1), (-0.1, 0.0, 5.0, 0.1)]
    found = np.array([bound_of_cost(*arm) for arm in arms])
    assert (found <= np.array([cost(*arm) for arm in arms]) + 1e-9).all()
    assert (found > 0).sum() > len(arms) / 3
    np.testing.assert_allclose(bounds_of_costs(*np.array(arms).T), found, rtol=1e-12)


# Episodes, and what is released.


def test_multipliers_are_rounded_and_cut() -> None:
    factor = geometric_factor(1.25)
    assert factor.cap is None
    assert factor.multipliers[0] == factor.unit
    assert factor.multipliers[-1] >= 0.009 * factor.unit
    ratios = np.array(factor.multipliers) / factor.unit
    np.testing.assert_allclose(ratios, ratios[1] ** np.arange(len(ratios)), atol=0.02)
    assert factor.column == sum(Fraction(c, factor.unit) ** 2 for c in factor.multipliers)
    assert len(geometric_factor(1.05).multipliers) > len(factor.multipliers) > len(geometric_factor(4.0).multipliers)


@pytest.mark.parametrize("budget", [pb.zCDP(0.5), pb.ApproxDP(1.0, 1e-6), pb.NoPrivacy()])
@pytest.mark.parametrize("growth", [1.05, 1.25, 2.0])
def test_counts_are_fixed_in_advance(budget: Any, growth: float) -> None:
    """Whatever is late, missing, given up or played instead, and whatever the rewards were."""
    policy = pb.AdaCIMED(n_arms=3, budget=budget, growth=growth)
    agent = pb.Agent(policy, seed=2)
    interact(agent, steps=300, script_seed=3)
    for arm in range(3):
        counts = [row.count for row in agent.ledger if row.key == arm]
        assert len(counts) >= 2
        assert tuple(counts) == policy.memory.lengths(policy.memory.opening, len(counts))


def test_episodes_grow() -> None:
    memory = GeometricMemory.for_budget(pb.zCDP(0.1), 1.25)
    totals = np.cumsum(memory.lengths(memory.opening, 60))
    assert memory.opening > 1
    np.testing.assert_allclose(totals[20:] / totals[19:-1], 1.25, rtol=0.01)
    assert GeometricMemory.for_budget(pb.NoPrivacy(), 1.25).lengths(1, 8) == (1, 1, 1, 1, 1, 1, 2, 2)
    assert memory.lengths(3, 2) == (3, memory.opening - 3)
    with pytest.raises(InvalidInput, match=r"growth must be from 1\.05 to 4, got 1"):
        pb.AdaCIMED(n_arms=2, budget=pb.zCDP(1), growth=1)


def ledger_cost(rows: Any) -> Fraction:
    """The largest cost of an episode, from the rows alone: scale, sensitivity and multipliers."""
    spent: dict[str, Fraction] = {}
    for row in rows:
        alone = (Fraction(row.sensitivity) / Fraction(row.scale)) ** 2 / 2
        for label, times in row.episodes.items():
            spent[label] = spent.get(label, Fraction(0)) + alone * Fraction(times) ** 2
    return max(spent.values())


@pytest.mark.parametrize("growth", [1.1, 1.25, 2.0])
def test_a_reward_costs_the_budget_and_no_more(growth: float) -> None:
    """In exact fractions: from the ledger, and from what one reward, changed by the whole range, moves."""
    rho, rewards = 2.0, 500
    changes = (0, 1, 37, 150)
    policy = pb.AdaCIMED(n_arms=2, budget=pb.zCDP(rho), growth=growth)

    def world(changed: int) -> tuple[list[int], Any]:
        agent = pb.Agent(policy, reward_range=(-1, 3))
        seen: list[int] = []
        door = bandit_of(agent).door
        through = door.release

        def release(whole: Any) -> Any:
            seen.append(whole.totals.reveal()[0])
            return through(whole)

        door.release = release  # type: ignore[method-assign]
        for number in range(rewards):
            agent.tell(agent.ask(), 3.0 if number == changed else -1.0, played=number % 2)
        return seen, agent.ledger

    plain, ledger = world(-1)
    assert ledger.total <= rho
    assert Fraction(99, 100) * Fraction(rho) < ledger_cost(ledger) <= Fraction(rho)
    for changed in changes:
        moved, _ = world(changed)
        pairs = zip(plain, moved, ledger, strict=True)
        spent = sum((Fraction(b - a) / Fraction(row.scale)) ** 2 / 2 for a, b, row in pairs)
        assert 0 < spent <= Fraction(rho)


# Reading.


@pytest.mark.parametrize("growth", [1.1, 1.25, 2.0])
@pytest.mark.parametrize("noise", [Fraction(1, 16), Fraction(5), Fraction(6250)])
def test_readings_are_least_squares_of_what_was_released(growth: float, noise: Fraction) -> None:
    memory = GeometricMemory(growth, 6, geometric_factor(growth))
    found = memory.readings(6, float(noise), 9)
    for releases in (1, 2, 9):
        expected = exact_reading(memory.lengths(6, releases), noise, memory.factor)
        weights = found.weights[releases - 1, :releases]
        np.testing.assert_allclose(weights, [float(w) for w in expected["weights"]], rtol=1e-9)
        assert found.spread.variance[releases - 1] == pytest.approx(float(expected["variance"]))
        assert found.spread.rewards[releases - 1] == pytest.approx(float(expected["rewards"]))


@pytest.mark.parametrize("growth", [1.05, 1.25, 4.0])
@pytest.mark.parametrize("rho", [1e-4, 0.1, 100.0])
@pytest.mark.parametrize("log", [None, 1, 10**5])
def test_long_readings_are_unbiased_and_have_no_negative_weight(growth: float, rho: float, log: int | None) -> None:
    """Up to a billion rewards: the weights of rewards add up to one, with the multipliers as they are released."""
    policy = pb.AdaCIMED(n_arms=2, budget=pb.zCDP(rho), growth=growth)
    memory, first = policy.memory, log or policy.memory.opening
    releases = next(n for n in range(2, 1000) if sum(memory.lengths(first, n)) > 10**9)
    noise = policy.budget.variance_factor * float(memory.factor.column)  # type: ignore[union-attr]
    found = memory.readings(first, noise, releases)
    lengths = np.array(memory.lengths(first, len(found.weights)), float)
    of_rewards = found.weights @ memory.factor.matrix(len(lengths))  # type: ignore[union-attr]
    np.testing.assert_allclose((of_rewards @ lengths)[:releases], 1.0, rtol=1e-9)
    np.testing.assert_allclose(found.sizes[:releases], 1.0, rtol=1e-9)
    assert of_rewards.min() > -1e-12 * of_rewards.max()
    assert (np.diff(found.spread.variance) < 0).all()


def test_a_negative_weight_leaves_hoeffdings_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """With multipliers above one a release may have to be subtracted: then all of the error counts as noise."""
    policy, factor = pb.AdaCIMED(n_arms=2, budget=pb.zCDP(1), growth=4), Factor((1, 4), 1)
    memory = GeometricMemory(4.0, 34, factor)
    monkeypatch.setattr(pb.AdaCIMED, "memory", memory)
    state = policy.start(0.0, 1.0)
    for counts in ((1,), (1, 33), (1, 33, 102)):
        row = {"count": counts[-1], "all_rewards": sum(counts[-2:]), "rounding": 0.0, "noise_sd": 1.0}
        held = counts[-1] + 4 * sum(counts[-2:-1])
        for arm in range(2):
            policy.learn(state, SimpleNamespace(key=arm, values=(0.5 * arm * held,), **row), 1)  # type: ignore[arg-type]
        expected = exact_reading(counts, Fraction(1), factor)
        negative = (np.array(expected["weights"], float) @ factor.matrix(len(counts))).min() < 0
        assert negative == (len(counts) == 3) == (state.rewards[0] == math.inf)
        assert state.variance[0] == pytest.approx(float(expected["variance"]))
        assert (state.noise[0] == state.variance[0]) == negative
        assert policy.recommend(state, [0, 0], {0: 0, 1: 0}, 1) == 1


@pytest.mark.parametrize("rho", [0.05, 5.0])
def test_errors_have_the_variance_and_the_intervals_hold(rho: float) -> None:
    """Rewards of Bernoulli(1/2) have the largest variance that there is: the error has the one that is declared."""
    policy = pb.AdaCIMED(n_arms=1, budget=pb.zCDP(rho))
    memory, runs, releases, delta = policy.memory, 2000, 25, 0.5
    chance = np.random.default_rng(4)
    lengths = memory.lengths(memory.opening, releases)
    factor = memory.factor
    assert factor is not None
    noise = policy.budget.variance_factor * float(factor.column)
    found = memory.readings(memory.opening, noise, releases)
    sums = chance.binomial(lengths, 0.5, size=(runs, releases)).astype(float)
    values = sums @ factor.matrix(releases).T + chance.normal(scale=math.sqrt(noise), size=sums.shape)
    errors = values @ found.weights[:releases, :releases].T - 0.5
    spread = (errors**2).sum(axis=0) / found.spread.variance[:releases]
    low, high = stats.chi2.ppf([1e-5, 1 - 1e-5], runs)
    assert ((low < spread) & (spread < high)).all()
    odds = np.array([math.log(2 * j * (j + 1) / delta) for j in range(1, releases + 1)])
    missed = (np.abs(errors) > np.sqrt(2 * found.spread.variance[:releases] * odds)).any(axis=1).mean()
    assert 0 < missed < delta


def test_estimates_are_of_all_rewards() -> None:
    agent = pb.Agent(pb.AdaCIMED(n_arms=2, budget=pb.NoPrivacy()), reward_range=(-2, 2))
    chance, told = random.Random(5), ([], [])  # type: ignore[var-annotated]
    for _ in range(400):
        decision, reward = agent.ask(), chance.choice([-2.0, 0.5, 2.0])
        agent.tell(decision, reward)
        told[decision.action].append(reward)
    for arm, estimate in enumerate(agent.estimates(delta=0.1)):
        assert estimate.mean is not None
        assert estimate.mean == pytest.approx(np.mean(told[arm][: estimate.rewards]), abs=1e-6)
        odds = math.log(4 * (j := len(bandit_of(agent).public.policy.values[arm])) * (j + 1) / 0.1)
        assert estimate.high == pytest.approx(min(2.0, estimate.mean + 4 * math.sqrt(odds / (2 * estimate.rewards))))
    empty = pb.Agent(pb.AdaCIMED(n_arms=1, budget=pb.zCDP(1))).estimates()[0]
    assert (empty.mean, empty.low, empty.high, empty.rewards) == (None, 0.0, 1.0, 0)


# Late and missing rewards.


def asked(agent: pb.Agent, steps: int, fate: Any) -> list[int]:
    """Ask one decision after the other; fate(agent, decision) tells it, gives it up or leaves it open."""
    actions = []
    for _ in range(steps):
        decision = agent.ask()
        actions.append(decision.action)
        fate(agent, decision)
    return actions


BUDGETS = pytest.mark.parametrize("budget", [pb.zCDP(5), pb.NoPrivacy()])


@BUDGETS
@pytest.mark.parametrize("how", ["open", "given up"])
def test_an_arm_whose_rewards_never_come_is_neither_asked_without_end_nor_forgotten(budget: Any, how: str) -> None:
    def fate(agent: pb.Agent, decision: pb.Decision) -> None:
        if decision.action:
            agent.tell(decision, 0.5)
        elif how == "given up":
            agent.give_up(decision)

    agent = pb.Agent(pb.AdaCIMED(n_arms=3, budget=budget), seed=1)
    actions = asked(agent, 4000, fate)
    assert min(map(actions.count, range(3))) > 500
    assert 0 in actions[3000:]
    asked(agent, 4000, lambda agent, decision: agent.tell(decision, 1.0 if decision.action == 0 else 0.5))
    assert agent.estimates()[0].rewards > 1000  # once its rewards come, it is seen to be the best


@BUDGETS
@pytest.mark.parametrize("how", ["open", "given up"])
def test_the_best_arm_may_lose_its_rewards(budget: Any, how: str) -> None:
    agent = pb.Agent(pb.AdaCIMED(n_arms=2, budget=budget), seed=1)
    asked(agent, 1000, lambda agent, decision: agent.tell(decision, [0.6, 0.4][decision.action]))

    def fate(agent: pb.Agent, decision: pb.Decision) -> None:
        if decision.action:
            agent.tell(decision, 0.4)
        elif how == "given up":
            agent.give_up(decision)

    released = agent.estimates()[1].rewards
    actions = asked(agent, 20_000, fate)
    assert actions.count(0) > 15_000
    assert agent.estimates()[1].rewards > 1.3 * released


def test_many_decisions_at_once_are_spread_as_if_they_were_played() -> None:
    """Without a reward, arms are filled one after the other, and then by the decisions made for them."""
    policy = pb.AdaCIMED(n_arms=3, budget=pb.zCDP(5))
    agent, opening = pb.Agent(policy, seed=1), policy.memory.opening
    first = [decision.action for decision in agent.ask(3 * opening)]
    assert first == sorted(list(range(3)) * opening)
    counts = np.bincount([decision.action for decision in agent.ask(300)], minlength=3)
    assert counts.max() - counts.min() <= 1


@pytest.mark.parametrize("budget", [pb.zCDP(0.5), pb.NoPrivacy()])
def test_many_arms_are_chosen_among_as_few_are(budget: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """With arrays or with plain numbers, late and missing rewards included."""
    shown = []
    for few in (4, 1000):
        monkeypatch.setattr(adac_imed, "FEW", few)
        agent = pb.Agent(pb.AdaCIMED(n_arms=40, budget=budget), seed=3)
        shown.append(interact(agent, steps=1500, script_seed=1).shown)
    assert shown[0] == shown[1]


# Logs and files.


@pytest.mark.parametrize("budget", [pb.zCDP(0.5), pb.NoPrivacy()])
def test_a_log_is_the_first_episode(budget: Any, tmp_path: Path) -> None:
    policy = pb.AdaCIMED(n_arms=3, budget=budget)
    log = [(0, 1.0)] * 40 + [(1, 0.25)] * 3
    told: list[list[tuple[int, float]]] = []
    for path in (None, tmp_path / "agent.db"):
        agent = pb.Agent(policy, path=path, seed=6)
        assert agent.warm_start(log) == 43
        if path is not None:
            agent.close()
            agent = pb.Agent.open(path)
        asked(agent, 300, lambda agent, decision: agent.tell(decision, 0.5))
        told.append([(row.key, row.count, row.values[0]) for row in agent.ledger])  # type: ignore[misc]
        for arm, first in enumerate((40, 3)):
            counts = [row.count for row in agent.ledger if row.key == arm]
            assert tuple(counts) == policy.memory.lengths(first, len(counts))
        agent.close()
    assert told[0] == told[1]
    assert len(told[0]) > 10


def test_people_with_several_rewards_get_longer_episodes_or_independent_releases() -> None:
    policy = pb.AdaCIMED(n_arms=3, budget=pb.zCDP(0.1))
    assert policy.for_people(1) == policy
    for rewards in (2, 3, 5, 10):
        chosen = policy.for_people(rewards)
        plans = [replace(policy, growth=g, correlated=c) for g in (1.25, 2.0) for c in (True, False)]
        least = min(plan.memory.noise_for_people(rewards) for plan in plans)
        assert chosen in plans
        assert chosen.memory.noise_for_people(rewards) <= 1.4 * least
        assert chosen.memory.noise_for_people(rewards) < policy.memory.noise_for_people(rewards)
    plain = pb.AdaCIMED(n_arms=3, budget=pb.NoPrivacy())
    assert plain.for_people(5) is plain


def test_the_noise_for_people_is_that_of_a_live_agent() -> None:
    policy = pb.AdaCIMED(n_arms=1, budget=pb.zCDP(0.5))
    for rewards in (1, 3):
        agent = pb.Agent(policy, max_rewards_per_person=rewards, unit="person", one_reward_per_episode=True)
        agent.tell_many([(agent.ask(person=f"p{i}"), 1.0) for i in range(400)])
        run = policy.for_people(rewards)
        cost = (run.factor or INDEPENDENT).spread_cost(rewards)
        expected = math.sqrt(policy.budget.variance_factor * float(cost))
        assert agent.ledger[0].noise_sd == pytest.approx(expected, rel=1e-6)
        assert agent.ledger.verify().ok
