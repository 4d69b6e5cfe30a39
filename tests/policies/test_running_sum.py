"""DP-IMED and DP-KLUCB: what they play, release, pay and say."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy import stats

import private_bandits as pb
from private_bandits.budget import Budget
from private_bandits.errors import InvalidInput
from private_bandits.policies.running_sum import MOST_REWARDS, RunningSumPolicy, batch_ends, batch_length
from tests.policies.test_private_divergence import by_definition
from tests.policies.test_rivals import feed

BOTH = pytest.mark.parametrize("make", [pb.DPIMED, pb.DPKLUCB])


def index_from_the_ledger(agent: pb.Agent, arm: int, step: int) -> float:
    """By the formula, from the sums in the ledger; of DP-KLUCB by halving."""
    low, high = agent.settings["reward_range"]
    epsilon = agent.policy.budget.level

    def mean_and_count(of: int) -> tuple[float, int]:
        rows = [row for row in agent.ledger if row.key == of]
        n = sum(row.count for row in rows)
        mean = (math.fsum(row.values[0] for row in rows) / n - low) / (high - low)
        return min(max(mean, 0.0), 1.0), n

    mean, n = mean_and_count(arm)
    if isinstance(agent.policy, pb.DPIMED):
        best = max(mean_and_count(other)[0] for other in range(len(agent.policy.arm_names)))
        return -(n * by_definition(mean, best, epsilon) + math.log(n))
    below, above = mean, 1.0
    if n * by_definition(mean, 1.0, epsilon) <= math.log(step):
        return 1.0
    for _ in range(40):
        middle = (below + above) / 2
        if n * by_definition(mean, middle, epsilon) <= math.log(step):
            below = middle
        else:
            above = middle
    return below


@BOTH
@pytest.mark.parametrize("budget", [pb.PureDP(1.5), pb.NoPrivacy()], ids=str)
def test_plays_a_batch_of_the_arm_of_the_largest_index(make: type[RunningSumPolicy], budget: Budget) -> None:
    agent = pb.Agent(make(n_arms=3, budget=budget), (-1, 3), seed=2)
    chance = np.random.default_rng(4)
    for arm in range(3):
        decision = agent.ask()
        assert decision.action == arm
        agent.tell(decision, float(chance.choice([-1.0, 3.0])))
    step = 4
    while step < 250:
        index = [index_from_the_ledger(agent, arm, step) for arm in range(3)]
        chosen = agent.ask(1)[0].action
        assert index[chosen] == pytest.approx(max(index), abs=1e-9)
        released = sum(row.count for row in agent.ledger if row.key == chosen)
        agent.tell(agent.open_decisions[0], float(chance.choice([-1.0, 3.0], p=[0.7, 0.3])))
        for _ in range(batch_length(released, 2.0) - 1):
            decision = agent.ask()
            assert decision.action == chosen
            agent.tell(decision, float(chance.choice([-1.0, 3.0], p=[0.7, 0.3])))
        step = agent.counts.asked + 1


@BOTH
def test_batches_are_geometric_and_each_leaves_once(make: type[RunningSumPolicy]) -> None:
    agent = pb.Agent(make(n_arms=2, budget=pb.PureDP(0.5), alpha=1.5), (0, 2))
    feed(agent, [0.9, 0.1], 400)
    for arm in range(2):
        sizes = [row.count for row in agent.ledger if row.key == arm]
        assert sizes == [math.ceil(1.5**i) for i in range(len(sizes))]
    for row in agent.ledger:
        assert (row.noise, len(row.parts), row.all_rewards) == ("laplace", 1, row.count)
        assert row.noise_sd == pytest.approx(math.sqrt(2) * 2 / 0.5, rel=1e-3)
    assert agent.ledger.total <= 0.5


@BOTH
def test_the_mean_is_of_all_rewards_and_carries_all_noises(make: type[RunningSumPolicy]) -> None:
    agent = pb.Agent(make(n_arms=2, budget=pb.PureDP(2)), (-1, 1), seed=3)
    feed(agent, [0.6, 0.5], 300)
    for arm in range(2):
        rows = [row for row in agent.ledger if row.key == arm]
        n = sum(row.count for row in rows)
        state = agent.learned
        assert state["means"][arm] == pytest.approx(math.fsum(row.values[0] for row in rows) / n, rel=1e-12)
        assert state["noise_sd"][arm] == pytest.approx(rows[0].noise_sd * math.sqrt(len(rows)) / n, rel=1e-12)
        assert state["largest_noise_sd"][arm] == rows[0].noise_sd
        assert state["rounding"][arm] == pytest.approx(math.fsum(row.rounding for row in rows) / n, rel=1e-12)
        assert agent.estimates()[arm].rewards == n


@BOTH
@pytest.mark.parametrize("budget", [pb.PureDP(2), pb.NoPrivacy()], ids=str)
def test_intervals_hold_for_all_arms_at_all_times(make: type[RunningSumPolicy], budget: Budget) -> None:
    means, failed, agents, delta, widths = [0.3, 0.6, 0.5], 0, 60, 0.2, []
    for seed in range(agents):
        agent = pb.Agent(make(n_arms=3, budget=budget), seed=seed)
        chance, right = np.random.default_rng(seed), True
        for _ in range(150):
            decision = agent.ask()
            agent.tell(decision, float(chance.random() < means[decision.action]))
            right &= all(e.low <= means[e.action] <= e.high for e in agent.estimates(delta))
        failed += not right
        widths.append(min(e.high - e.low for e in agent.estimates(delta)))
    assert failed <= stats.binom.ppf(1 - 1e-6, agents, delta)
    assert np.mean(widths) < 0.9  # they say something


@BOTH
def test_an_interval_is_hoeffdings_and_that_of_a_sum_of_laplace_draws(make: type[RunningSumPolicy]) -> None:
    """All rewards of arm 0, as often as it takes for the noise's bound to change its form."""
    policy = make(n_arms=2, budget=pb.PureDP(4), alpha=1.1)
    agent = pb.Agent(policy, (0, 2), seed=1)
    for _ in range(2000):
        agent.tell(agent.ask(), 1.0, played=0)
    rows = list(agent.ledger)
    n, j, delta = sum(row.count for row in rows), len(rows), 0.5
    log = math.log(2 * 2 * j * (j + 1) / delta) + math.log(2)
    sd = rows[0].noise_sd
    assert log < j  # so the draws together are nearly Gaussian
    expected = 2 * math.sqrt(log / (2 * n)) + 2 * sd * math.sqrt(j * log) / n + sum(row.rounding for row in rows) / n
    found = agent.estimates(delta)[0]
    assert found.mean is not None
    assert found.high - found.mean == pytest.approx(expected, rel=1e-9)
    assert found.mean - found.low == pytest.approx(expected, rel=1e-9)


def test_late_rewards_fill_the_same_batches_one_by_one_or_at_once() -> None:
    policy = pb.DPIMED(n_arms=2, budget=pb.PureDP(1))
    agents = [pb.Agent(policy, seed=5) for _ in range(2)]
    decisions = [agent.ask(60) for agent in agents]
    for decision in decisions[0]:
        agents[0].tell(decision, 1.0, played=0)
    agents[1].tell_many([(decision, 1.0, 0) for decision in decisions[1]])
    rows = [[(row.key, row.count, row.values) for row in agent.ledger] for agent in agents]
    assert rows[0] == rows[1]
    assert [count for _, count, _ in rows[0]] == [1, 2, 4, 8, 16]


def test_a_log_is_the_first_batch_and_the_next_is_as_long_as_without_it() -> None:
    agent = pb.Agent(pb.DPKLUCB(n_arms=2, budget=pb.PureDP(1)))
    agent.warm_start([(0, 1.0)] * 20 + [(1, 0.0)] * 3)
    for _ in range(16):
        agent.tell(agent.ask(), 1.0, played=0)
    for _ in range(4):
        agent.tell(agent.ask(), 0.0, played=1)
    assert [(row.key, row.count) for row in agent.ledger] == [(0, 20), (1, 3), (0, 16), (1, 4)]
    assert agent.ledger.total <= 1
    assert [estimate.rewards for estimate in agent.estimates()] == [36, 7]


@pytest.mark.parametrize("alpha", [1.01, 1.3, 2.0, 1e300])
def test_batches_go_on_for_as_long_as_sums_are_exact(alpha: float) -> None:
    ends = batch_ends(alpha)
    assert ends[-1] >= MOST_REWARDS > ends[-2]
    assert all(batch_length(end, alpha) == after - end for end, after in pairwise(ends))


@pytest.mark.parametrize("alpha", [1.0, 0.5, -1.0, math.inf, math.nan, "2", 1.005])
def test_a_ratio_that_does_not_grow_is_refused(alpha: Any) -> None:
    with pytest.raises(InvalidInput, match="alpha must be"):
        pb.DPIMED(n_arms=2, budget=pb.PureDP(1), alpha=alpha)
