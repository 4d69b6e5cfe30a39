"""The tight variant of AdaC-UCB: not for new agents; its bound and its budget. tests/storage opens files of it."""

from __future__ import annotations

import itertools
import json
import math
import random
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy import optimize

import private_bandits as pb
from private_bandits.agent import bandit_of
from private_bandits.arrays import Floats
from private_bandits.errors import InvalidInput
from private_bandits.mechanism.factor import HALF_BEFORE, Factor
from private_bandits.policies import POLICIES, policy_from_dict
from private_bandits.policies.legacy import TightAdaCUCB, upper_bound
from private_bandits.policies.release_memory import MeanError, combination_weights
from private_bandits.simulation.engines import ONE_BY_ONE, engine_for
from tests.policies.test_release_memory import doubling, exact_reading
from tests.storage.test_damage import copied

POLICY = TightAdaCUCB(2, pb.zCDP(1.0))


@pytest.fixture
def as_new(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets new agents have it, as earlier versions did."""
    monkeypatch.setattr(TightAdaCUCB, "replaced_by", "")


def test_new_code_is_told_what_replaced_it(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"variant of AdaCUCB must be one of 'paper', got 'tight'. AdaCIMED .*arms="):
        pb.AdaCUCB(2, pb.zCDP(1.0), variant="tight")
    for path in (None, tmp_path / "agent.db"):
        with pytest.raises(InvalidInput, match=r"TightAdaCUCB only goes on with files .* AdaCIMED"):
            pb.Agent(POLICY, path=path)
    assert not any(tmp_path.iterdir())


def test_only_what_files_hold_makes_one() -> None:
    stored = json.loads(json.dumps(POLICY.to_dict()))
    assert (stored["policy"], stored["variant"]) == ("adac-ucb", "tight")
    assert policy_from_dict(stored) == POLICY
    assert TightAdaCUCB not in POLICIES.values()
    assert not hasattr(pb, "TightAdaCUCB")
    assert engine_for(POLICY) is ONE_BY_ONE


def test_a_file_keeps_saying_what_made_it(tmp_path: Path) -> None:
    """Its settings and the opening of its ledger, however often it is opened."""
    path = copied("factor", tmp_path)
    for step in range(3):
        with pb.Agent.open(path) as agent:
            assert type(agent.policy) is TightAdaCUCB
            agent.tell(agent.ask(), step / 2)
            opened = json.loads(agent.ledger.opening)["settings"]["policy"]
            assert (opened["policy"], opened["variant"]) == ("adac-ucb", "tight")
            assert bandit_of(agent).settings.to_dict()["policy"] == agent.policy.to_dict()


# The bound.


def test_where_a_reward_has_a_negative_weight_the_bound_is_hoeffdings() -> None:
    counts, factor = (1, 33, 180), Factor((1, 4), 1)
    expected = exact_reading(counts, Fraction(27, 20), factor)
    assert (np.array(expected["weights"], float) @ factor.matrix(3)).min() < 0
    last = MeanError(*(float(part[-1]) for part in combination_weights(counts, (1.35,) * 3, factor).spread))
    variance = float(expected["variance"])
    for mean in (0.01, 0.4, 0.6, 0.98):
        assert upper_bound(mean, last, 2.0) == pytest.approx(mean + math.sqrt(4 * variance))


def played(releases: int, noise: float) -> tuple[int, ...]:
    """Episodes as the policy has them for noise of this variance, 5/4 of b."""
    return doubling(
        releases, initial_rewards=TightAdaCUCB(1, pb.zCDP(5 / 8 / noise) if noise else pb.NoPrivacy()).initial_rewards
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


@pytest.mark.parametrize("budget", [pb.zCDP(0.3), pb.ApproxDP(1.0, 1e-6), pb.RenyiDP(4, 0.8)], ids=str)
def test_a_run_costs_one_budget_and_its_noise_is_in_the_ledger(budget: pb.zCDP, as_new: None) -> None:
    agent = pb.Agent(TightAdaCUCB(2, budget), (-2.0, 3.0))
    run(agent, 200, 3, (0.3, 0.6))
    assert 0.999 * budget.implied_rho <= agent.ledger.total <= budget.implied_rho
    for row in agent.ledger:
        # The smallest noise for a reward that is in its own release and, by half, in the next.
        assert row.noise_sd == pytest.approx(5.0 * math.sqrt(1.25 * budget.variance_factor), rel=1e-6)
        assert list(row.episodes.values()) == [1.0, 0.5][: len(row.episodes)]
        assert row.cost == pytest.approx(budget.implied_rho / 1.25, rel=1e-9)


def test_estimates_follow_from_the_ledger_alone(as_new: None) -> None:
    agent = pb.Agent(TightAdaCUCB(2, pb.zCDP(0.5)), (-2.0, 3.0), seed=4)
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


@pytest.mark.parametrize(
    ("budget", "initial_rewards"),
    [(pb.zCDP(1e-4), 512), (pb.zCDP(0.1), 16), (pb.zCDP(1), 4), (pb.zCDP(1e4), 1), (pb.zCDP(1e-50), 2**30)],
    ids=str,
)
def test_noise_decides_how_many_rewards_come_before_counts_double(budget: pb.zCDP, initial_rewards: int) -> None:
    policy = TightAdaCUCB(1, budget)
    assert policy.initial_rewards == initial_rewards
    state = policy.start(0.0, 1.0)
    for expected in (1, initial_rewards - 1 or 1, max(2, initial_rewards), 2 * max(2, initial_rewards)):
        assert [policy.due(state, 0, count, {}) for count in (expected - 1, expected)] == [False, True]
        state.released[0] += expected


def test_a_person_of_several_rewards_is_kept_within_the_budget(as_new: None) -> None:
    """With releases that share rewards m of them cost m^2, whichever episodes they are in."""
    agent = pb.Agent(TightAdaCUCB(2, pb.zCDP(0.9)), max_rewards_per_person=3, unit="person")
    for i in range(30):
        agent.tell(agent.ask(person=f"person {i % 10}"), 1.0)
    assert 0.999 * 0.1 <= agent.ledger.total <= 0.1
    assert agent.guarantee().spent <= 0.9
