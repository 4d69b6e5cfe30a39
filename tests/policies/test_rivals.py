"""The wrapper for any index, and the rivals for finite arms: what they play, release, pay and say."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from scipy import stats

import private_bandits as pb
from private_bandits.budget import Budget
from private_bandits.errors import InvalidInput, PolicyFailed
from private_bandits.policies import POLICIES
from private_bandits.policies.tails import mean_half_width, noise_half_width
from tests.support import EXAMPLE_BUDGETS


@pytest.fixture(autouse=True)
def _no_policy_stays() -> Iterator[None]:
    before = dict(POLICIES)
    yield
    POLICIES.clear()
    POLICIES.update(before)


def feed(agent: pb.Agent, means: list[float], steps: int, seed: int = 0) -> list[int]:
    """Bernoulli rewards in the agent's range, in time; the actions."""
    chance = np.random.default_rng(seed)
    low, high = agent.settings["reward_range"]
    found = []
    for _ in range(steps):
        decision = agent.ask()
        found.append(decision.action)
        agent.tell(decision, high if chance.random() < means[decision.action] else low)
    return found


def kl_ucb() -> type[pb.IndexPolicy]:
    class KLUCB(pb.IndexPolicy):
        name = "kl-ucb"

        def index(self, means: Any, counts: Any, step: Any, width: float) -> Any:
            """The largest q with n kl(m, q) <= log t, by halving."""
            m = np.clip(means / width, 1e-9, 1 - 1e-9)
            low, high = m, np.ones_like(m)
            for _ in range(40):
                q = np.minimum((low + high) / 2, 1 - 1e-12)
                inside = counts * (m * np.log(m / q) + (1 - m) * np.log((1 - m) / (1 - q))) <= np.log(step)
                low, high = np.where(inside, q, low), np.where(inside, high, q)
            return width * low

    return KLUCB


def of_one_row() -> type[pb.IndexPolicy]:
    class OneRow(pb.IndexPolicy):
        name = "one-row"

        def index(self, means: Any, counts: Any, step: Any, width: float) -> Any:
            def row(m: Any, n: Any, t: Any) -> Any:
                assert m.ndim == n.ndim == 1
                return m + width * np.sqrt(2 * math.log(t) / n)

            return np.vectorize(row, signature="(k),(k),()->(k)")(means, counts, np.squeeze(step))

    return OneRow


@pytest.mark.parametrize("make", [kl_ucb, of_one_row])
@pytest.mark.parametrize("budget", EXAMPLE_BUDGETS.values(), ids=str)
def test_an_index_of_ones_own_is_a_policy_under_every_budget(make: Any, budget: Budget) -> None:
    policy = make()(n_arms=2, budget=budget)
    agent = pb.Agent(policy)
    feed(agent, [0.9, 0.1], 300)
    assert agent.ledger.total <= budget.level
    assert agent.ledger[0].noise == budget.noise
    assert len(agent.ledger) < 2 * math.log2(300)
    result = pb.simulate({"p": policy}, pb.Bernoulli([0.95, 0.05]), horizon=5000, runs=50, progress=False)
    assert result.final["p"].mean() < 0.9 * 5000 / 4


def test_an_index_of_the_wrong_shape_is_refused() -> None:
    class Wrong(pb.IndexPolicy):
        name = "wrong"

        def index(self, means: Any, counts: Any, step: Any, width: float) -> Any:
            return np.zeros(7)

    policy = Wrong(n_arms=2, budget=pb.zCDP(1))
    with pytest.raises(InvalidInput, match=r"the index of Wrong must keep the shape \(3, 2\)"):
        pb.simulate({"p": policy}, pb.Bernoulli([0.5, 0.5]), 100, runs=3, progress=False)
    agent = pb.Agent(policy)
    with pytest.raises(PolicyFailed):
        agent.tell(agent.ask(), 1.0)


@pytest.mark.parametrize("budget", EXAMPLE_BUDGETS.values(), ids=str)
def test_the_tail_of_a_mean_follows_from_the_noise(budget: Budget) -> None:
    """A released mean of 40 Bernoulli rewards strays further with probability 2 exp(-2), at most."""
    count, runs, reach_odds = 40, 20_000, 2.0
    generator = np.random.default_rng(1)
    noise_sd = {"laplace": math.sqrt(2), "gaussian": 1.0, "none": 0.0}[budget.noise] / math.sqrt(count)
    noise = {
        "laplace": generator.laplace(size=runs) / math.sqrt(count),
        "gaussian": generator.normal(size=runs) / math.sqrt(count),
        "none": np.zeros(runs),
    }[budget.noise]
    off = generator.binomial(count, 0.5, runs) / count + noise - 0.5
    policy = kl_ucb()(n_arms=2, budget=budget)
    half_width = policy.deviation(count, noise_sd, reach_odds, 1.0)
    assert half_width == mean_half_width(budget.noise, count, noise_sd, reach_odds, 1.0)
    assert (abs(off) > half_width).sum() <= stats.binom.ppf(1 - 1e-6, runs, 2 * math.exp(-reach_odds))
    assert half_width < 4 * off.std()


@pytest.mark.parametrize(("sd", "peak", "log_inv_failure"), [(3.0, 1.0, 2.0), (3.0, 1.0, 20.0), (0.0, 0.0, 5.0)])
@pytest.mark.parametrize("budget", [pb.PureDP(1), pb.NoPrivacy()])
def test_tails_of_sums_are_those_of_the_phases(budget: Budget, sd: float, peak: float, log_inv_failure: float) -> None:
    phases = pb.HannaGOPE.example(budget)
    assert noise_half_width(budget.noise, sd, peak, log_inv_failure) == phases.noise_width(sd, peak, log_inv_failure)


# DP-SE.


def test_an_epoch_leaves_at_once_and_costs_epsilon_once() -> None:
    policy = pb.DPSE(n_arms=3, budget=pb.PureDP(0.5), horizon=1000, epoch_factor=0.01)
    agent = pb.Agent(policy, (-1, 3))
    plays = policy.plays(1, 3)
    actions = feed(agent, [0.9, 0.5, 0.1], 3 * plays)
    assert actions == [0, 1, 2] * plays
    (row,) = agent.ledger
    assert (row.keys, row.counts, row.weights) == ((0, 1, 2), (plays,) * 3, None)
    assert row.noise == "laplace"
    assert row.noise_sd == pytest.approx(math.sqrt(2) * 4 / 0.5, rel=1e-3)
    feed(agent, [0.9, 0.5, 0.1], 3000)
    assert len(agent.ledger) > 2
    assert agent.ledger.total <= 0.5


def test_arms_are_dropped_and_the_last_one_is_played_for_ever() -> None:
    policy = pb.DPSE(n_arms=3, budget=pb.NoPrivacy(), horizon=100, epoch_factor=0.05)
    agent = pb.Agent(policy)
    actions = feed(agent, [0.0, 1.0, 0.0], 500)
    assert set(actions[-50:]) == {1}
    assert agent.learned["active"] == [1]
    releases = len(agent.ledger)
    for _ in range(200):  # rewards of other arms, and of the last one, change nothing any more
        agent.tell(agent.ask(), 1.0, played=0)
    assert len(agent.ledger) == releases
    assert {d.action for d in agent.ask(20)} == {1}


def test_more_rewards_than_planned_count_and_the_least_count_decides() -> None:
    policy = pb.DPSE(n_arms=2, budget=pb.NoPrivacy(), horizon=10, epoch_factor=0.02)
    plays = policy.plays(1, 2)
    agent = pb.Agent(policy)
    for _ in range(3 * plays):
        agent.tell(agent.ask(), 1.0, played=0)
    for _ in range(plays):
        agent.tell(agent.ask(), 0.0, played=1)
    (row,) = agent.ledger
    assert row.counts == (3 * plays, plays)
    assert agent.learned["means"] == [1.0, 0.0]
    assert len(agent.learned["active"]) == (1 if 2 * policy.half_width(1, 2, plays) < 1 else 2)


def test_missing_rewards_are_asked_for_again() -> None:
    policy = pb.DPSE(n_arms=2, budget=pb.NoPrivacy(), horizon=10, epoch_factor=0.01)
    plays = policy.plays(1, 2)
    agent = pb.Agent(policy)
    decisions = agent.ask(2 * plays)
    for decision in decisions:
        if decision.action == 0:
            agent.tell(decision, 1.0)
    later = agent.ask(6 * plays)  # the rewards of arm 1 never come
    assert [d.action for d in later].count(1) >= plays
    for decision in later:
        if decision.action == 1:
            agent.tell(decision, 0.0)
    assert len(agent.ledger) >= 1


@pytest.mark.parametrize("width", [1.0, 8.0])
def test_the_epochs_are_as_published(width: float) -> None:
    policy = pb.DPSE(n_arms=4, budget=pb.PureDP(0.1), horizon=10**4)
    log8, log4 = math.log(8 * 4 * 9 * 10**4), math.log(4 * 4 * 9 * 10**4)
    planned = math.ceil(max(32 * log8 * 64, 8 * log4 * 8 / 0.1)) + 1
    assert policy.plays(3, 4) == planned
    h, c = math.sqrt(log8 / (2 * planned)), log4 / (planned * 0.1)
    edge = width * (2 * h + 2 * c)
    means = np.array([0.0, edge * (1 + 1e-9), edge * 1e-8, edge / 2])
    assert policy.kept(means, 3, planned, width).tolist() == [False, True, True, True]


def test_a_first_epoch_beyond_exact_sums_is_refused() -> None:
    with pytest.raises(InvalidInput, match="too long for exact sums"):
        pb.DPSE(n_arms=2, budget=pb.PureDP(1e-9))
    with pytest.raises(InvalidInput, match=r"horizon must be a whole number from 1 to 1e\+100, got 0\.5"):
        pb.DPSE(n_arms=2, budget=pb.PureDP(1), horizon=0.5)  # type: ignore[arg-type]


# DP-UCB.


def index_from_the_ledger(agent: pb.Agent, arm: int, step: int) -> float:
    """By the formula, from the nodes in the ledger: the last node of each length makes up the prefix."""
    policy = agent.policy
    assert isinstance(policy, pb.TreeUCB)
    levels, k, epsilon = policy.horizon.bit_length(), len(policy.arm_names), policy.budget.level
    low, high = agent.settings["reward_range"]
    rows = [row for row in agent.ledger if row.key == arm]
    covered, total, nodes = len(rows), 0.0, 0
    while covered:  # the node that ends at a leaf, and what was before it
        total += rows[covered - 1].values[0]
        nodes += 1
        covered -= rows[covered - 1].all_rewards
    scale, log_inv_failure = levels / epsilon, math.log(2 * k * policy.horizon**2)
    steep = math.sqrt(2) * scale * (nodes + log_inv_failure)
    noise = steep if log_inv_failure > nodes else 2 * math.sqrt(2 * nodes * log_inv_failure) * scale
    n = len(rows)
    return float(total / n + (high - low) * (math.sqrt(2 * math.log(step) / n) + noise / n))


@pytest.mark.parametrize("budget", [pb.PureDP(2), pb.NoPrivacy()])
@pytest.mark.parametrize("horizon", [20, 200])
def test_recommends_the_largest_index_and_pays_for_every_node(budget: Budget, horizon: int) -> None:
    agent = pb.Agent(pb.TreeUCB(n_arms=3, budget=budget, horizon=horizon), (-1, 2))
    chance = np.random.default_rng(4)
    assert [d.action for d in [agent.ask() for _ in range(3)]] == [0, 1, 2]
    for decision in agent.open_decisions:
        agent.tell(decision, 1.0)
    for step in range(4, 120):
        index = [index_from_the_ledger(agent, arm, step) for arm in range(3)]
        decision = agent.ask()
        assert index[decision.action] == pytest.approx(max(index), abs=1e-9)
        agent.tell(decision, chance.random() * 3 - 1)
    assert len(agent.ledger) == 119
    if isinstance(budget, pb.PureDP):
        assert agent.ledger[0].calibrated <= 2 / horizon.bit_length()
        assert 1.0 < agent.ledger.total <= 2


def test_more_budget_is_not_needed_for_more_arms_and_the_width_is_below_the_published() -> None:
    for horizon in (100, 10**4, 10**6):
        for k in (1, 2, 10):
            policy = pb.TreeUCB(n_arms=k, budget=pb.PureDP(1), horizon=horizon)
            assert policy.node_budget.level == pytest.approx(1 / horizon.bit_length())
            log = math.log(horizon)
            assert policy.half_width(policy.tree_levels) < k * log**2 * math.log(k * horizon * log * horizon)


@pytest.mark.parametrize("budget", [pb.zCDP(0.5), pb.PureDP(2)])
@pytest.mark.parametrize("name", ["dp-ucb", "dp-se"])
def test_intervals_hold_for_all_arms_at_all_times(name: str, budget: Budget) -> None:
    if type(budget).__name__ not in POLICIES[name].supported_budgets:
        pytest.skip("another policy's budget")
    means, failed, agents, delta = [0.3, 0.6, 0.5], 0, 40, 0.2
    for seed in range(agents):
        agent = pb.Agent(POLICIES[name].example(budget), seed=seed)
        chance, right = np.random.default_rng(seed), True
        for _ in range(100):
            decision = agent.ask()
            agent.tell(decision, float(chance.random() < means[decision.action]))
            right &= all(e.low <= means[e.action] <= e.high for e in agent.estimates(delta))
        failed += not right
    assert failed <= stats.binom.ppf(1 - 1e-6, agents, delta)


def test_an_index_that_is_not_a_number_is_refused() -> None:
    class Undefined(pb.IndexPolicy):
        def index(self, means: Any, counts: Any, step: Any, width: float) -> Any:
            return means * np.nan

    policy = Undefined(2, pb.NoPrivacy())
    with pytest.raises(InvalidInput, match="the index of Undefined is not a number: noise takes means out of the"):
        pb.simulate({"undefined": policy}, pb.Bernoulli([0.1, 0.2]), horizon=100, runs=2)
    agent = pb.Agent(policy)
    with pytest.raises(pb.errors.PolicyFailed, match="InvalidInput"):
        agent.tell(agent.ask(), 1.0)


def test_a_shipped_name_cannot_be_taken() -> None:
    """A file of the one would come back as the other."""
    with pytest.raises(InvalidInput, match="the name 'adac-ucb' belongs to AdaCUCB: give Mine another"):

        class Mine(pb.IndexPolicy):
            name = "adac-ucb"

            def index(self, means: Any, counts: Any, step: Any, width: float) -> Any:
                return means

    assert POLICIES["adac-ucb"] is pb.AdaCUCB
