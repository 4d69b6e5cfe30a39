"""AdaC-OFUL with correlated noise: what is released, what it costs, what is decoded, and how wide it is."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2

import private_bandits as pb
from private_bandits.agent import bandit_of
from private_bandits.errors import AgentFileInvalid, InvalidInput
from private_bandits.ledger import Part
from private_bandits.mechanism.factor import square_root
from private_bandits.policies.optimism import noise_tail, squared_length
from private_bandits.storage.sqlite import SqliteStore
from private_bandits.theory import Coverage

Floats = NDArray[np.float64]


def rows_of(generator: np.random.Generator, d: int = 2, k: int = 3) -> Floats:
    rows = generator.normal(size=(k, d))
    return np.asarray(rows / np.maximum(1, np.linalg.norm(rows, axis=1, keepdims=True)))


def policy_with_cap(budget: Any, cap: int) -> pb.AdaCOFUL:
    """A factor for so few releases that a run of some hundred rewards goes beyond."""
    regulariser = 0.5 / (2 ** ((cap + 0.5) / 2) - 1)
    found = pb.AdaCOFUL(dimension=2, budget=budget, horizon=1, regulariser=regulariser)
    assert found.cap == cap
    return found


def run(agent: pb.Agent, steps: int, seed: int = 0) -> tuple[list[Floats], list[float]]:
    """Rows that were played, on the grid, and rewards."""
    generator, played, rewards = np.random.default_rng(seed), [], []
    assert isinstance(agent.policy, pb.AdaCOFUL)
    unit = agent.policy.unit
    for _ in range(steps):
        rows = rows_of(generator)
        decision, reward = agent.ask(actions=rows), float(generator.choice([-1.0, 1.0]))
        agent.tell(decision, reward)
        played.append(np.trunc(rows[decision.action] / unit) * unit)
        rewards.append(reward)
    return played, rewards


def test_the_factor_is_for_as_many_releases_as_the_determinant_can_make() -> None:
    policy = pb.AdaCOFUL(dimension=3, budget=pb.zCDP(0.1), horizon=10**5, regulariser=0.5, growth=0.7)
    assert policy.cap == math.floor(3 * math.log(1 + 10**5 / 1.5) / math.log(1.7))
    assert policy.factor == square_root(policy.cap)
    assert replace(policy, budget=pb.NoPrivacy()).factor is None
    assert replace(policy, variant="paper").factor is None
    assert pb.AdaCOFUL(dimension=3, budget=pb.zCDP(1), growth=1e-9).cap == 4096
    assert pb.AdaCOFUL(dimension=1, budget=pb.zCDP(1), growth=1e9, horizon=1).cap == 1


@pytest.mark.parametrize("budget", [pb.zCDP(0.5), pb.ApproxDP(1.0, 1e-6), pb.RenyiDP(2.0, 0.3)], ids=str)
@pytest.mark.parametrize("cap", [1, 3, 6])
def test_costs_and_noise_follow_from_the_ledger_alone(budget: Any, cap: int) -> None:
    policy = policy_with_cap(budget, cap)
    agent = pb.Agent(policy, reward_range=(-1, 1))
    while len(agent.ledger.rows) <= 2 * cap:  # how fast it releases depends on its noise
        run(agent, 50)
    rows = agent.ledger.rows
    column = sum(Fraction(c, 256) ** 2 for c in square_root(cap).multipliers)
    spent: dict[str, Fraction] = {}
    for row in rows:
        assert row.calibrated == pytest.approx(row.sensitivity**2 / (2 * row.scale**2), rel=1e-12)
        assert row.sensitivity == row.steps * int(row.unit) * policy.steps  # of multiplier one, for the declared norm
        assert row.noise_sd == pytest.approx(2 / row.steps / row.unit * row.scale, rel=1e-12)
        assert row.noise_sd * policy.unit == pytest.approx(2 * math.sqrt(budget.variance_factor * column), rel=1e-9)
        for episode, multiplier in row.episodes.items():
            spent[episode] = spent.get(episode, Fraction(0)) + Fraction(row.cost) * Fraction(multiplier) ** 2
    assert max(spent.values()) <= Fraction(budget.level)
    assert float(max(spent.values())) == pytest.approx(budget.level, rel=1e-9)
    assert agent.ledger.total == pytest.approx(float(max(spent.values())), rel=1e-12)
    # At the cap a factor is used up: the next release holds nothing of it.
    sizes = [len(row.episodes) for row in rows]
    assert sizes == [1 + i % cap for i in range(len(rows))]
    assert agent.guarantee().spent <= budget.level


@pytest.mark.parametrize("cap", [1, 4, 9])
def test_decoded_sums_are_the_exact_ones_but_for_the_noise(cap: int) -> None:
    """With next to no noise: rewards of -1 and 1 are on the grid, and so are the actions."""
    policy = policy_with_cap(pb.zCDP(1e10), cap)
    agent = pb.Agent(policy, reward_range=(-1, 1))
    played, rewards = run(agent, 120)
    released = sum(row.count for row in agent.ledger)
    exact = np.array(rewards[:released]) @ np.array(played[:released])
    learned = agent.learned
    assert learned["rewards"] == released
    sd = 2 * math.sqrt(policy.budget.variance_factor * policy.decoder.prefix_noise(len(agent.ledger)))
    assert np.abs(np.array(learned["total"]) - exact).max() < 6 * sd + 1e-9
    gram = policy.regulariser * np.eye(2) + np.array(played[:released]).T @ np.array(played[:released])
    assert np.array(learned["frozen"]) == pytest.approx(gram, rel=1e-9)
    assert np.array(learned["theta"]) == pytest.approx(np.linalg.solve(gram, exact), abs=1e-3)


def test_looking_changes_nothing_and_noise_stays_as_it_was_drawn() -> None:
    """The decoded sums are one combination of the rows of the ledger, for ever."""
    policy = policy_with_cap(pb.zCDP(0.3), 5)
    agent = pb.Agent(policy, reward_range=(-1, 1))
    generator = np.random.default_rng(3)
    seen = 0
    for _ in range(120):
        agent.tell(agent.ask(actions=rows_of(generator)), 1.0)
        total = np.array(agent.learned["total"])
        assert (total == np.array(agent.learned["total"])).all()
        decoded = np.zeros(2)
        values = [np.array(row.values) * policy.unit for row in agent.ledger]
        for start in range(0, len(values), 5):
            part = np.array(values[start : start + 5])
            decoded += np.linalg.solve(policy.decoder.matrix(len(part)), part).sum(axis=0)
        assert total == pytest.approx(decoded, rel=1e-9, abs=1e-9)
        seen = len(values)
    assert seen > 10


@pytest.mark.parametrize("cap", [2, 5])
def test_a_restart_in_the_middle_of_a_factor_changes_nothing(tmp_path: Path, cap: int) -> None:
    policy = policy_with_cap(pb.zCDP(1e10), cap)
    whole = pb.Agent(policy, reward_range=(-1, 1), seed=5)
    run(whole, 60)
    path = tmp_path / "agent.db"
    parts = pb.Agent(policy, reward_range=(-1, 1), path=path, seed=5)
    generator = np.random.default_rng(0)
    for step in range(60):
        rows = rows_of(generator)
        parts.tell(parts.ask(actions=rows), float(generator.choice([-1.0, 1.0])))
        if step % 7 == 3:
            parts.close()
            parts = pb.Agent.open(path)
    assert [row.episodes for row in parts.ledger] == [row.episodes for row in whole.ledger]
    assert [row.parts for row in parts.ledger] == [row.parts for row in whole.ledger]
    close = [np.abs(np.array(a.values) - b.values).max() < 1 for a, b in zip(parts.ledger, whole.ledger, strict=True)]
    assert all(close)
    assert parts.learned["frozen"] == whole.learned["frozen"]
    parts.close()


def test_a_file_does_not_go_on_with_another_factor(tmp_path: Path) -> None:
    """Its rewards would be in other releases than share the budget."""
    path = tmp_path / "agent.db"
    with pb.Agent(policy_with_cap(pb.zCDP(1), 4), path=path) as agent:
        run(agent, 9)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pb.AdaCOFUL, "cap", 5)
        with pytest.raises(AgentFileInvalid, match="factor"):
            pb.Agent.open(path)
    pb.Agent.open(path).close()


def test_a_log_is_the_first_episode_of_the_factor() -> None:
    policy = policy_with_cap(pb.zCDP(0.5), 3)
    agent = pb.Agent(policy, reward_range=(-1, 1))
    generator = np.random.default_rng(1)
    agent.warm_start([(rows_of(generator)[0], 1.0) for _ in range(50)])
    assert [(row.count, dict(row.episodes)) for row in agent.ledger] == [(50, {"0/1": 1.0})]
    run(agent, 400)
    assert agent.ledger[1].parts[1] == Part(0, "0/1", 50, 0.5, new=False)
    assert agent.ledger.total <= 0.5


def test_what_is_stored_of_a_release_is_stored_once(tmp_path: Path) -> None:
    """A tell between two releases writes neither earlier sums nor the decoded ones."""
    path = tmp_path / "agent.db"
    agent = pb.Agent(pb.AdaCOFUL(dimension=2, budget=pb.zCDP(1)), path=path)
    run(agent, 80)
    store = bandit_of(agent).records
    assert isinstance(store, SqliteStore)
    before = len(agent.ledger)
    texts: list[str] = []
    store.connection.set_trace_callback(texts.append)
    generator = np.random.default_rng(9)
    while len(agent.ledger) == before:
        texts.clear()
        agent.tell(agent.ask(actions=rows_of(generator)), 1.0)
    assert any("INTO kept" in text for text in texts)
    agent.give_up(agent.ask(actions=rows_of(generator)))  # writes what the policy made of the release
    texts.clear()
    agent.tell(agent.ask(actions=0.01 * rows_of(generator)), 1.0)
    assert len(agent.ledger) == before + 1
    assert not any("kept" in text for text in texts)
    assert max(map(len, texts)) < 500
    agent.close()


def test_people_who_come_back_cost_the_square() -> None:
    policy = policy_with_cap(pb.zCDP(0.1), 4)
    agent = pb.Agent(policy, reward_range=(-1, 1), max_rewards_per_person=3)
    assert agent.guarantee().per_person == pytest.approx(0.9)
    strict = pb.Agent(policy, reward_range=(-1, 1), max_rewards_per_person=3, unit="person")
    generator = np.random.default_rng(0)
    for i in range(30):
        strict.tell(strict.ask(actions=rows_of(generator), person=str(i % 10)), 1.0)
    assert strict.ledger.total <= 0.1 / 9
    assert strict.guarantee().spent <= 0.1


# The width.


@pytest.mark.parametrize("d", [1, 2, 3, 10, 201])
@pytest.mark.parametrize("x", [0.5, 1e-3, 1e-9])
def test_squared_lengths_are_quantiles_of_chi_square(d: int, x: float) -> None:
    assert squared_length(d, x) == pytest.approx(1.001 * chi2.isf(x, d), rel=1e-8)
    assert squared_length(d, x) <= 1.001 * noise_tail(d, x)


def slow_width(policy: pb.AdaCOFUL, gram: Floats, releases: int, spread: float) -> float:
    """From the definitions: matrices instead of power series."""
    d, n, delta = policy.dimension, policy.cap, policy.delta
    factor = square_root(n).matrix(n)
    decoder = np.tril(np.ones((n, n))) @ np.linalg.inv(factor)
    column = (factor[:, 0] ** 2).sum()
    full, rest = divmod(releases, n)
    variance = column * (full * (decoder[-1] ** 2).sum() + ((decoder[rest - 1] ** 2).sum() if rest else 0.0))
    sd = spread * policy.context_norm * math.sqrt(policy.budget.variance_factor * variance)
    q = 1.001 * chi2.isf(delta / (2 * n + 2), d)
    rewards = spread / 2 * math.sqrt(2 * math.log(2 / delta) + math.log(np.linalg.det(gram) / policy.regulariser**d))
    least = np.linalg.eigvalsh(gram)[0]
    return float(rewards + math.sqrt(policy.regulariser) * policy.parameter_norm + sd * math.sqrt(q / least))


def test_defaults_follow_the_variant_and_the_noise() -> None:
    def chosen(budget: pb.zCDP | pb.NoPrivacy, **options: Any) -> tuple[float, float]:
        policy = pb.AdaCOFUL(3, budget, **options)
        return policy.regulariser, policy.exploration

    assert chosen(pb.zCDP(0.02), variant="paper") == (0.1, 1.0)
    assert chosen(pb.NoPrivacy()) == (0.1, 0.1)
    assert chosen(pb.zCDP(0.02), context_norm=2.0) == (40.0, 0.1)
    assert chosen(pb.zCDP(1e4), exploration=1) == (0.1, 1.0)
    assert chosen(pb.zCDP(0.02), regulariser=0.3, exploration=0) == (0.3, 0.0)
    for wrong in (-0.1, math.nan, math.inf, "1", True):
        with pytest.raises(InvalidInput, match="exploration"):
            chosen(pb.zCDP(1), exploration=wrong)


def test_the_regulariser_of_the_promise_stays_with_one_rewards_share_of_it() -> None:
    """Else the factor would be another, and a reward would be in more releases than its budget is shared by."""
    policy = pb.AdaCOFUL(2, pb.zCDP(0.1), horizon=100)
    agent = pb.Agent(policy, max_rewards_per_person=3, unit="person")
    assert policy.with_budget(pb.zCDP(0.1 / 9)).factor == policy.factor
    agent.tell(agent.ask(actions=np.eye(2), person="one"), 1.0)


def test_the_width_is_what_its_definition_says() -> None:
    policy = pb.AdaCOFUL(
        2, pb.zCDP(0.2), context_norm=1.5, horizon=500, regulariser=0.1, parameter_norm=2.0, delta=0.01
    )
    agent = pb.Agent(policy, reward_range=(0, 3))
    generator = np.random.default_rng(2)
    checked = set()
    for _ in range(200):
        agent.tell(agent.ask(actions=rows_of(generator)), 1.0)
        learned = agent.learned
        if learned["releases"] not in checked:
            checked.add(learned["releases"])
            slow = slow_width(policy, np.array(learned["frozen"]), learned["releases"], 3.0)
            assert learned["width"] == pytest.approx(slow, rel=1e-8)
    assert len(checked) > 8


def test_variants_are_the_same_without_privacy() -> None:
    found = []
    for variant in pb.AdaCOFUL.variants:
        policy = pb.AdaCOFUL(dimension=2, budget=pb.NoPrivacy(), variant=variant, exploration=0.5)
        agent = pb.Agent(policy, reward_range=(-1, 1))
        run(agent, 100)
        found.append(json.dumps(agent.learned))
    assert found[0] == found[1]


def noise_leaves(policy: pb.AdaCOFUL, share: float, runs: int) -> Coverage:
    """How often the decoded noise leaves `share` of its length at some release up to the cap. Promised: delta/2."""
    factor, n = policy.decoder, policy.cap
    generator, failures = np.random.default_rng(0), 0
    decoder = np.tril(np.ones((n, n))) @ np.linalg.inv(factor.matrix(n))
    lengths = share**2 * policy.noise_length * factor.prefix_variances
    for _ in range(runs):
        noise = decoder @ (math.sqrt(factor.column) * generator.standard_normal((n, policy.dimension)))
        failures += bool(((noise**2).sum(axis=1) > lengths).any())
    return Coverage(policy.delta / 2, failures, runs)


def test_the_noise_stays_within_its_length_and_nearly_uses_it_up() -> None:
    policy = pb.AdaCOFUL(dimension=3, budget=pb.zCDP(1), horizon=2000, delta=0.4)
    measured = noise_leaves(policy, 1.0, 600)
    assert measured.kept, measured
    assert measured.failures > 0.05 * 600  # the noises of prefixes go together, so a union over them is not sharp
    assert not noise_leaves(policy, 0.75, 600).kept


@pytest.mark.full
@pytest.mark.parametrize("d", [1, 3, 10])
def test_the_noise_stays_within_its_length_in_many_runs(d: int) -> None:
    policy = pb.AdaCOFUL(dimension=d, budget=pb.zCDP(1), horizon=10**5, delta=0.2)
    measured = noise_leaves(policy, 1.0, 5000)
    assert measured.kept, measured


# Regret.


@pytest.mark.parametrize(("d", "least"), [(3, 0.4), (10, 0.5)])
def test_less_regret_than_the_paper_at_the_same_budget(d: int, least: float) -> None:
    theta = np.random.default_rng(d).normal(size=d)
    world = pb.Contextual(d, 10, (theta / np.linalg.norm(theta)).tolist())
    policies: dict[str, pb.AdaCOFUL] = {
        variant: pb.AdaCOFUL(dimension=d, budget=pb.zCDP(0.01), horizon=40_000, variant=variant)
        for variant in pb.AdaCOFUL.variants
    }
    found = pb.simulate(policies, world, 40_000, runs=6, progress=False)
    paper, tight = found.final["paper"], found.final["tight"]
    gain = 1 - tight.mean() / paper.mean()
    error = (tight - (1 - gain) * paper).std(ddof=1) / math.sqrt(6) / paper.mean()
    assert gain - 3 * error > least
