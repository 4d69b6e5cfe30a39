"""AdaC-UCB, tight: what releases say together, the bound, the intervals, and the agent that uses them."""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import optimize, stats

import private_bandits as pb
from private_bandits.arrays import Floats
from private_bandits.errors import InvalidInput
from private_bandits.mechanism.factor import HALF_BEFORE, Factor
from private_bandits.policies.doubling import episode_length
from private_bandits.policies.release_memory import MeanError, combination_weights
from private_bandits.policies.tails import upper_bound
from private_bandits.simulation.engines import DOUBLING, ONE_BY_ONE, engine_for


def doubling(releases: int, first: int = 1, initial_rewards: int = 1) -> tuple[int, ...]:
    counts = [first]
    while len(counts) < releases:
        counts.append(episode_length(sum(counts), initial_rewards))
    return tuple(counts)


# What releases say together.


def solve(matrix: list[list[Fraction]], right: list[Fraction]) -> list[Fraction]:
    """Gauss, in exact arithmetic."""
    rows = [[*row, r] for row, r in zip(matrix, right, strict=True)]
    for i in range(len(rows)):
        rows[i] = [x / rows[i][i] for x in rows[i]]
        for k in range(len(rows)):
            if k != i and rows[k][i]:
                rows[k] = [x - rows[k][i] * y for x, y in zip(rows[k], rows[i], strict=True)]
    return [row[-1] for row in rows]


def exact_reading(counts: tuple[int, ...], noise: Fraction, factor: Factor | None) -> dict[str, Any]:
    """Least squares as it is written down: Cov^-1 C n, scaled to be unbiased."""
    size, taps = len(counts), factor.multipliers if factor else (1,)
    held = [[Fraction(0)] * size for _ in counts]
    for row, column in itertools.product(range(size), repeat=2):
        if 0 <= row - column < len(taps):
            held[row][column] = Fraction(taps[row - column], factor.unit if factor else 1)
    slopes = [sum((h * n for h, n in zip(row, counts, strict=True)), Fraction(0)) for row in held]
    covariance = [
        [
            sum((a * b * n / 4 for a, b, n in zip(held[i], held[k], counts, strict=True)), noise * (i == k))
            for k in range(size)
        ]
        for i in range(size)
    ]
    raw = solve(covariance, slopes)
    total = sum((w * a for w, a in zip(raw, slopes, strict=True)), Fraction(0))
    weights = [w / total for w in raw]
    of_rewards = [sum((weights[i] * held[i][k] for i in range(size)), Fraction(0)) for k in range(size)]
    return {
        "weights": weights,
        "variance": 1 / total,
        "rewards": sum((n * u * u for n, u in zip(counts, of_rewards, strict=True)), Fraction(0)),
        "weight": max(of_rewards),
        "noise": sum((noise * w * w for w in weights), Fraction(0)),
    }


@pytest.mark.parametrize("factor", [None, HALF_BEFORE, Factor((4, 2, 1), 4)])
@pytest.mark.parametrize("noise", [Fraction(0), Fraction(1, 16), Fraction(5), Fraction(6250)])
@pytest.mark.parametrize("counts", [doubling(1), doubling(7), doubling(5, first=37)])
def test_readings_are_least_squares(counts: tuple[int, ...], noise: Fraction, factor: Factor | None) -> None:
    found = combination_weights(counts, (float(noise),) * len(counts), factor)
    for j in range(1, len(counts) + 1):
        expected = exact_reading(counts[:j], noise, factor)
        np.testing.assert_allclose(found.weights[j - 1, :j], np.array(expected["weights"], float), rtol=1e-12)
        assert not found.weights[j - 1, j:].any()  # what was not released yet
        for name in ("rewards", "weight", "noise", "variance"):
            part = getattr(found.spread, name)[j - 1]
            assert part == pytest.approx(float(expected[name]), rel=1e-12, abs=0)


@pytest.mark.parametrize("noise", [Fraction(1, 1000), Fraction(625), Fraction(10**8)])
def test_readings_stay_exact_for_the_longest_runs(noise: Fraction) -> None:
    counts = doubling(40)  # 2^38 rewards in the last
    found, expected = (
        combination_weights(counts, (float(noise),) * 40, HALF_BEFORE),
        exact_reading(counts, noise, HALF_BEFORE),
    )
    np.testing.assert_allclose(found.weights[-1], np.array(expected["weights"], float), rtol=1e-10)
    assert found.spread.variance[-1] == pytest.approx(float(expected["variance"]), rel=1e-12)


@pytest.mark.parametrize("factor", [None, HALF_BEFORE, Factor((16, 12, 9, 7), 16)])
def test_one_release_after_the_other_gives_the_same_mean(factor: Factor | None) -> None:
    found = combination_weights(doubling(20), (3.0,) * 20, factor)
    values = np.random.default_rng(1).normal(size=20) * doubling(20)
    mean, news = 0.0, np.zeros(20)
    for j, value in enumerate(values):
        news[j] = value - found.carried[j] @ news
        mean += found.gain[j] * (news[j] - found.slope[j] * mean)
        assert mean == pytest.approx(found.weights[j] @ values, rel=1e-9)


@pytest.mark.parametrize("noise", [0.01, 1.0, 100.0, 1e5])
def test_no_other_combination_strays_less(noise: float) -> None:
    counts = doubling(12)
    rewards, held = np.array(counts, float), HALF_BEFORE.matrix(12)
    least = combination_weights(counts, (noise,) * 12, HALF_BEFORE).spread.variance
    for j in range(12):
        for k in range(j + 1):  # the plain mean of releases k..j
            weights = np.zeros(12)
            weights[k : j + 1] = 1 / (held @ rewards)[k : j + 1].sum()
            assert least[j] <= (1 + 1e-9) * (rewards @ (weights @ held) ** 2 / 4 + noise * weights @ weights)


def test_half_of_the_episode_before_tells_more_than_noise_of_its_own() -> None:
    """Where noise is most of the error, at equal budget: 20% less variance from the fifth release on."""
    alone = combination_weights(doubling(30), (1e18,) * 30, None).spread.variance
    again = combination_weights(doubling(30), (1.25e18,) * 30, HALF_BEFORE).spread.variance
    assert (again[1:] < alone[1:]).all()
    assert (again[4:] < 0.81 * alone[4:]).all()


def test_no_reward_has_a_negative_weight() -> None:
    """So that the bound by the rate function holds; noise and counts matter through their ratio only."""
    for noise, initial_rewards in itertools.product(np.geomspace(1e-9, 1e12, 64), (1, 4, 16, 512)):
        found = combination_weights(doubling(60, initial_rewards=initial_rewards), (float(noise),) * 60, HALF_BEFORE)
        assert (np.tril(found.weights) >= 0).all()
        assert (found.spread.weight > 0).all()  # zero where a weight is negative


def test_where_a_reward_has_a_negative_weight_the_bound_is_hoeffdings() -> None:
    counts, factor = (1, 33, 180), Factor((1, 4), 1)
    expected = exact_reading(counts, Fraction(27, 20), factor)
    assert (np.array(expected["weights"], float) @ factor.matrix(3)).min() < 0
    last = MeanError(*(float(part[-1]) for part in combination_weights(counts, (1.35,) * 3, factor).spread))
    variance = float(expected["variance"])
    for mean in (0.01, 0.4, 0.6, 0.98):
        assert upper_bound(mean, last, 2.0) == pytest.approx(mean + math.sqrt(4 * variance))


# The bound.


def played(releases: int, noise: float) -> tuple[int, ...]:
    """Episodes as the policy has them for noise of this variance, 5/4 of b."""
    return doubling(
        releases, initial_rewards=pb.AdaCUCB(1, pb.zCDP(5 / 8 / noise) if noise else pb.NoPrivacy()).initial_rewards
    )


class Observed:
    """Episodes of some rewards each, weighed as in release_memory.py, with noise."""

    def __init__(self, releases: int, noise: float, factor: Factor | None) -> None:
        counts = played(releases, noise)
        found = combination_weights(counts, (noise,) * releases, factor)
        self.counts, self.weights = np.array(counts, float), found.weights[-1]
        self.of_rewards = self.weights @ factor.matrix(releases) if factor else self.weights
        self.spread = MeanError(*(float(part[-1]) for part in found.spread))

    def rate(self, mean: float, q: float) -> float:
        """Chernoff's exponent of seeing `mean` or less where rewards are Bernoulli of mean q, in full."""

        def exponent(log_pull: float) -> float:
            pull = math.exp(log_pull)
            cumulants = np.logaddexp(math.log1p(-q), math.log(q) - pull * self.of_rewards)
            return float(pull * mean + self.counts @ cumulants + pull**2 * self.spread.noise / 2)

        found = optimize.minimize_scalar(exponent, bounds=(-12, 25), method="bounded", options={"xatol": 1e-10})
        return max(0.0, -float(found.fun))

    def exact_bound(self, mean: float, log_inv_failure: float) -> float:
        """The largest q in [0, 1] that is not excluded, by bisection: the rate grows with q."""
        low, high = min(max(mean, 0.0), 1.0), 1 - 1e-9
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (low, middle) if self.rate(mean, middle) > log_inv_failure else (middle, high)
        return high


@pytest.mark.parametrize("releases", [1, 3, 6, 9])
@pytest.mark.parametrize(("noise", "factor"), [(0.0, None), (0.6, HALF_BEFORE), (60.0, HALF_BEFORE)])
def test_the_bound_lies_between_the_exact_one_and_hoeffdings(
    releases: int, noise: float, factor: Factor | None
) -> None:
    observed, narrower = Observed(releases, noise, factor), 0
    for mean, log_inv_failure in itertools.product((-0.2, 0.0, 0.02, 0.2, 0.45, 0.5, 0.7, 0.95, 1.0), (0.5, 3.0, 20.0)):
        found = float(upper_bound(mean, observed.spread, log_inv_failure))
        hoeffding = mean + math.sqrt(2 * observed.spread.variance * log_inv_failure)
        assert min(max(found, 0.0), 1.0) >= observed.exact_bound(mean, log_inv_failure) - 1e-6
        assert found <= hoeffding + 1e-12
        narrower += found < hoeffding - 1e-3
    assert narrower > 3


def test_the_variance_of_kearns_and_saul_is_below_its_parabola() -> None:
    """x/(4 artanh x) <= 1/6 + q(1 - q)/3 with x = 1 - 2q, and equality to the second order at 1/2."""
    q = np.linspace(1e-6, 0.4999, 2000)
    x = 1 - 2 * q
    exact = x / (4 * np.arctanh(x))
    assert (exact <= 1 / 6 + q * (1 - q) / 3).all()
    assert exact[-1] == pytest.approx(1 / 6 + q[-1] * (1 - q[-1]) / 3, rel=1e-12)


@pytest.mark.parametrize("above", [1.0, 1.2, 3.0, 50.0])
@pytest.mark.parametrize("noise", [0.0, 0.1, 5000.0])
def test_an_estimate_above_every_mean_excludes_none(above: float, noise: float) -> None:
    for rewards, log_inv_failure in itertools.product((1e-6, 0.01, 1.0), (0.1, 3.0, 60.0)):
        assert upper_bound(above, MeanError(rewards, rewards, noise), log_inv_failure) >= 1


def estimates_of(mean: float, releases: int, noise: float, runs: int, chance: np.random.Generator) -> Floats:
    """The mean that the releases of an arm have together, in so many runs."""
    counts, held = played(releases, noise), HALF_BEFORE.matrix(releases)
    sums = chance.binomial(counts, mean, size=(runs, releases))
    values = sums @ held.T + math.sqrt(noise) * chance.standard_normal((runs, releases))
    found: Floats = values @ combination_weights(counts, (noise,) * releases, HALF_BEFORE).weights[-1]
    return found


@pytest.mark.parametrize("mean", [0.03, 0.3, 0.5, 0.85, 0.99])
@pytest.mark.parametrize(("releases", "noise"), [(3, 0.1), (6, 0.6), (8, 30.0)])
def test_the_bound_fails_as_rarely_as_it_says(mean: float, releases: int, noise: float) -> None:
    """One-sided, five standard errors. A quarter of the exponent is found out, unless rewards hardly vary."""
    runs, chance = 100_000, np.random.default_rng(7)
    estimates, spread = estimates_of(mean, releases, noise, runs, chance), Observed(releases, noise, HALF_BEFORE).spread
    for odds in (4.0, 50.0):
        failures = (upper_bound(estimates, spread, math.log(odds)) < mean).mean()
        assert failures <= 1 / odds + 5 * math.sqrt(1 / odds / runs)
    careless = (upper_bound(estimates, spread, math.log(50.0) / 4) < mean).mean()
    assert careless > 1 / 50 or not 0.1 < mean < 0.9


# The agent.


def run(agent: pb.Agent, steps: int, seed: int, means: tuple[float, ...]) -> list[int]:
    chance, actions = random.Random(seed), []
    for _ in range(steps):
        decision = agent.ask()
        actions.append(decision.action)
        agent.tell(decision, float(chance.random() < means[decision.action]))
    return actions


def test_the_papers_agent_acts_as_it_always_did() -> None:
    """To the last digit: recorded before there was another variant."""
    agent = pb.Agent(pb.AdaCUCB(3, pb.zCDP(0.3), variant="paper"), (-1, 3), seed=5)
    chance, plays = random.Random(1), [0, 0, 0]
    for _ in range(400):
        decision = agent.ask()
        plays[decision.action] += 1
        agent.tell(decision, chance.random() * (decision.action + 1) - 0.5)
    assert plays == [64, 80, 256]
    estimates = agent.estimates(0.1)
    assert [e.mean for e in estimates] == [-0.07731582969427109, 0.252110056579113, 1.0347409155219793]
    assert [e.low for e in estimates] == [-1.0, -1.0, 0.2830025426563527]
    assert [e.rewards for e in estimates] == [32, 32, 128]


@pytest.mark.parametrize("budget", [pb.zCDP(0.3), pb.ApproxDP(1.0, 1e-6), pb.RenyiDP(4, 0.8)], ids=str)
def test_a_run_costs_one_budget_and_its_noise_is_in_the_ledger(budget: pb.zCDP) -> None:
    agent = pb.Agent(pb.AdaCUCB(2, budget), (-2.0, 3.0))
    run(agent, 200, 3, (0.3, 0.6))
    assert 0.999 * budget.implied_rho <= agent.ledger.total <= budget.implied_rho
    for row in agent.ledger:
        # The smallest noise for a reward that is in its own release and, by half, in the next.
        assert row.noise_sd == pytest.approx(5.0 * math.sqrt(1.25 * budget.variance_factor), rel=1e-6)
        assert list(row.episodes.values()) == [1.0, 0.5][: len(row.episodes)]
        assert row.cost == pytest.approx(budget.implied_rho / 1.25, rel=1e-9)


def test_estimates_follow_from_the_ledger_alone() -> None:
    agent = pb.Agent(pb.AdaCUCB(2, pb.zCDP(0.5)), (-2.0, 3.0), seed=4)
    run(agent, 300, 3, (0.3, 0.6))
    for estimate in agent.estimates(0.05):
        rows = [row for row in agent.ledger if row.key == estimate.action]
        counts, noise = tuple(row.count for row in rows), Fraction(rows[0].noise_sd / 5) ** 2
        expected = exact_reading(counts, noise, HALF_BEFORE)
        mean = sum(float(w) * row.values[0] for w, row in zip(expected["weights"], rows, strict=True))
        j = len(rows)
        half_width = 5 * math.sqrt(2 * float(expected["variance"]) * math.log(2 * 2 * j * (j + 1) / 0.05))
        assert estimate.mean == pytest.approx(mean, rel=1e-9)
        assert estimate.low == pytest.approx(max(mean - half_width, -2.0), abs=1e-5)
        assert estimate.high == pytest.approx(min(mean + half_width, 3.0), abs=1e-5)
        assert estimate.rewards == sum(counts)


@pytest.mark.parametrize("budget", [pb.zCDP(0.5), pb.zCDP(8.0), pb.NoPrivacy()], ids=str)
def test_what_agents_say_varies_as_much_as_they_say(budget: pb.zCDP) -> None:
    """Rewards of 0 and 1 with mean 1/2 have the full variance of 1/4, so that the width is that of the variance.

    A chi-square test of both sides: noise that is forgotten, counted twice or drawn anew would show.
    """
    policy, agents, off = pb.AdaCUCB(1, budget), 1500, []
    for seed in range(agents):
        agent = pb.Agent(policy, seed=seed)
        chance = random.Random(seed)
        five = max(16, 8 * policy.initial_rewards)
        agent.tell_many([(decision, float(chance.random() < 0.5)) for decision in agent.ask(five)])
        state = policy.load_state(agent.learned)
        assert state.releases == [5]
        off.append((state.means[0] - 0.5) / math.sqrt(state.spread[0].variance))
    low, high = stats.chi2.ppf([1e-4, 1 - 1e-4], agents)
    assert low < sum(x * x for x in off) < high


def test_intervals_hold_together_at_the_promised_rate() -> None:
    """At the last of five releases, by the rate that is left for it; and much narrower ones are found out."""
    delta, agents, missed, careless = 0.9, 1500, 0, 0
    policy = pb.AdaCUCB(1, pb.zCDP(0.5))
    for seed in range(agents):
        agent = pb.Agent(policy, (0, 1), seed=seed)
        chance = random.Random(seed)
        agent.tell_many(
            [(decision, float(chance.random() < 0.5)) for decision in agent.ask(8 * policy.initial_rewards)]
        )
        state = policy.load_state(agent.learned)
        assert state.releases == [5]
        half_width = policy.half_width(state, 0, math.log(2 * 30 / delta))
        missed += abs(state.means[0] - 0.5) > half_width
        careless += abs(state.means[0] - 0.5) > half_width / 2
    assert missed <= agents * delta / 30 + 5 * math.sqrt(agents * delta / 30)
    assert careless > agents * delta / 30 + 5 * math.sqrt(agents * delta / 30)


@pytest.mark.parametrize("budget", [pb.zCDP(0.3), pb.NoPrivacy()], ids=str)
def test_a_file_goes_on_in_the_middle_of_an_episode(tmp_path: Path, budget: pb.zCDP) -> None:
    policy, path = pb.AdaCUCB(3, budget), tmp_path / "agent.db"
    whole = pb.Agent(policy, seed=8)
    chance = random.Random(2)
    rewards = [chance.random() for _ in range(120)]
    with pb.Agent(policy, path=path, seed=8) as agent:
        agent.tell(agent.ask(), rewards[0])
    whole.tell(whole.ask(), rewards[0])
    for reward in rewards[1:]:
        with pb.Agent.open(path) as agent:
            one, other = agent.ask(), whole.ask()
            assert one.action == other.action
            agent.tell(one, reward)
            whole.tell(other, reward)
            assert agent.learned == whole.learned


def test_a_state_of_an_older_version_goes_on_as_the_papers() -> None:
    """Files of versions that had no other variant: their policy says so, and their state has no memory."""
    policy = pb.AdaCUCB(2, pb.NoPrivacy(), variant="paper")
    state = policy.dump_state(policy.start(0.0, 1.0))
    older = {key: value for key, value in state.items() if key not in ("kept", "spread")}
    assert len(older) == len(state) - 2
    assert policy.load_state(older) == policy.start(0.0, 1.0)


@pytest.mark.parametrize(
    ("budget", "initial_rewards"),
    [(pb.zCDP(1e-4), 512), (pb.zCDP(0.1), 16), (pb.zCDP(1), 4), (pb.zCDP(1e4), 1), (pb.zCDP(1e-50), 2**30)],
    ids=str,
)
def test_noise_decides_how_many_rewards_come_before_counts_double(budget: pb.zCDP, initial_rewards: int) -> None:
    assert pb.AdaCUCB(2, budget).initial_rewards == initial_rewards
    assert pb.AdaCUCB(2, budget, variant="paper").initial_rewards == 1
    assert pb.AdaCUCB(2, pb.NoPrivacy()).initial_rewards == 1
    released = 0
    for expected in (1, initial_rewards - 1 or 1, max(2, initial_rewards), 2 * max(2, initial_rewards)):
        assert episode_length(released, initial_rewards) == expected
        released += expected


def test_late_rewards_and_other_actions_leave_the_doubling_as_it_is() -> None:
    agent = pb.Agent(pb.AdaCUCB(2, pb.zCDP(1.0)), seed=3)
    decisions = agent.ask(40)
    for i, decision in enumerate(reversed(decisions)):
        agent.tell(decision, float(i % 3 == 0), played=i % 2)
    for arm in (0, 1):
        rows = [row for row in agent.ledger if row.key == arm]
        assert [[part.rewards for part in row.parts] for row in rows] == [[1], [3, 1], [4, 3], [8, 4]]
        assert [row.count for row in rows] == [1, 3, 4, 8]
    assert agent.ledger.total == math.inf  # a seed makes noise foreseeable
    assert [e.rewards for e in agent.estimates()] == [16, 16]


def test_a_log_is_the_first_episode() -> None:
    policy = pb.AdaCUCB(arms=["A", "B"], budget=pb.zCDP(1.0))
    agent = pb.Agent(policy)
    agent.warm_start([("A", 1.0)] * 7 + [("B", 0.0)] * 3)
    for _ in range(7):
        agent.tell(agent.ask(), 1.0, played="A")
    assert [(row.key, row.count, row.all_rewards) for row in agent.ledger] == [(0, 7, 7), (1, 3, 3), (0, 7, 14)]
    assert agent.ledger.total <= 1.0
    state = policy.load_state(agent.learned)
    expected = exact_reading((7, 7), Fraction(agent.ledger.rows[0].noise_sd) ** 2, HALF_BEFORE)
    assert state.spread[0].variance == pytest.approx(float(expected["variance"]))


def test_a_person_of_several_rewards_is_kept_within_the_budget() -> None:
    """With releases that share rewards m of them cost m^2, whichever episodes they are in."""
    agent = pb.Agent(pb.AdaCUCB(2, pb.zCDP(0.9)), max_rewards_per_person=3, unit="person")
    for i in range(30):
        agent.tell(agent.ask(person=f"person {i % 10}"), 1.0)
    assert 0.999 * 0.1 <= agent.ledger.total <= 0.1
    assert agent.guarantee().spent <= 0.9


def test_the_twin_without_privacy_reads_plain_means() -> None:
    agent = pb.Agent(pb.AdaCUCB(1, pb.NoPrivacy()))
    rewards = [float(i % 3 == 0) for i in range(16)]
    agent.tell_many(list(zip(agent.ask(16), rewards, strict=True)))
    assert agent.estimates()[0].mean == pytest.approx(sum(rewards) / 16, rel=1e-12)
    assert all(row.count == row.all_rewards for row in agent.ledger)


def test_an_index_of_its_own_is_not_ignored_by_the_variant_that_has_none() -> None:
    class Curious(pb.AdaCUCB):
        def index(self, means: Any, counts: Any, step: Any, width: float) -> Any:
            return super().index(means, counts, step, 2 * width)

    with pytest.raises(InvalidInput, match=r'Curious has an index of its own.*variant="paper"'):
        Curious(2, pb.zCDP(1))
    assert engine_for(Curious(2, pb.zCDP(1), variant="paper")) is DOUBLING


@pytest.mark.parametrize("base", [pb.AdaCUCB, pb.AdaPUCB])
def test_what_a_subclass_changes_is_simulated(base: Any) -> None:
    """The fast engine knows indices only; whoever changes more is asked, one decision at a time."""

    class Alternating(base):  # type: ignore[misc]
        def recommend(self, state: Any, waiting: Any, arrived: Any, step: int) -> int:
            return step % 2

    class Renamed(base):  # type: ignore[misc]
        pass

    budget = pb.NoPrivacy()
    regret = pb.simulate({"a": Alternating(2, budget)}, pb.Bernoulli([1.0, 0.0]), 100, runs=1).final["a"]
    assert regret == 50
    assert engine_for(Renamed(2, budget)) is DOUBLING
    assert engine_for(Alternating(2, budget)) is ONE_BY_ONE


def test_wide_ranges_keep_their_noise_finite() -> None:
    agent = pb.Agent(pb.AdaCUCB(2, pb.zCDP(1)), reward_range=(0, 1e100), seed=1)
    unit = pb.Agent(pb.AdaCUCB(2, pb.zCDP(1)), seed=1)
    for _ in range(20):
        agent.tell(agent.ask(), 1e100)
        unit.tell(unit.ask(), 1.0)
    assert agent.learned["noise_sd"] == pytest.approx([1e100 * sd for sd in unit.learned["noise_sd"]], rel=1e-12)
