"""AdaC-OFUL live: against a plain loop, with late and other plays, on odd contexts."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import private_bandits as pb
from private_bandits.errors import InvalidInput
from private_bandits.policies.adac_oful import BLOCK, INT64_HOLDS, OFULState
from private_bandits.policies.base import Variant
from private_bandits.policies.contextual import STEPS

Floats = NDArray[np.float64]


def contexts(generator: np.random.Generator, k: int, d: int) -> Floats:
    """On the grid of the policy, so that nothing is rounded, and inside the ball."""
    rows = generator.normal(1 / math.sqrt(d), 0.3, size=(k, d))
    rows /= np.maximum(1.0, np.linalg.norm(rows, axis=1, keepdims=True))
    return np.asarray(np.trunc(rows * STEPS) / STEPS)


class PlainOFUL:
    """Algorithm 3 without noise, one step at a time, written without the package."""

    def __init__(self, d: int, horizon: int, lam: float, growth: float, delta: float, exploration: float) -> None:
        self.exploration = exploration
        self.d, self.horizon, self.lam, self.growth, self.delta = d, horizon, lam, growth, delta
        self.v, self.b = lam * np.eye(d), np.zeros(d)
        self.v_tau, self.releases = self.v.copy(), 0
        self.theta: Floats = np.zeros(d)

    def choose(self, rows: Floats) -> int:
        if np.linalg.det(self.v) > (1 + self.growth) * np.linalg.det(self.v_tau):
            self.v_tau, self.releases = self.v.copy(), self.releases + 1
            self.theta = np.asarray(np.linalg.solve(self.v_tau, self.b), float)
        log_ratio = np.linalg.slogdet(self.v_tau)[1] - self.d * math.log(self.lam)
        width = math.sqrt(2 * math.log(1 / self.delta) + log_ratio) + math.sqrt(self.lam)
        whitener = np.sqrt(np.einsum("ij,ij->i", rows @ np.linalg.inv(self.v_tau), rows))
        return int(np.argmax(rows @ self.theta + self.exploration * width * whitener))

    def learn(self, row: Floats, reward: float) -> None:
        self.v += np.outer(row, row)
        self.b += row * reward


@pytest.mark.parametrize(
    ("d", "k", "lam", "growth", "exploration"),
    [
        (3, 10, 0.1, 1.0, 1.0),
        (1, 2, 1.0, 0.5, 1.0),
        (5, 4, 0.5, 3.0, 0.3),
        (2, 1, 0.1, 1.0, 1.0),
        (3, 10, 0.1, 1.0, 0.1),
    ],
)
def test_same_actions_as_a_plain_loop_without_noise(
    d: int, k: int, lam: float, growth: float, exploration: float
) -> None:
    generator = np.random.default_rng(d)
    theta = generator.normal(size=d)
    theta /= np.linalg.norm(theta)
    policy = pb.AdaCOFUL(
        dimension=d, budget=pb.NoPrivacy(), horizon=800, regulariser=lam, growth=growth, exploration=exploration
    )
    agent, plain = pb.Agent(policy, reward_range=(-1, 1)), PlainOFUL(d, 800, lam, growth, 1e-3, exploration)
    for step in range(800):
        rows = contexts(generator, k, d)
        decision = agent.ask(actions=rows)
        assert decision.action == plain.choose(rows), step
        reward = float(np.clip(rows[decision.action] @ theta, -1, 1))
        agent.tell(decision, reward)
        plain.learn(rows[decision.action], reward)
    assert len(agent.ledger) in (plain.releases, plain.releases + 1)  # the last may come with the last reward
    most = d * math.log(1 + 800 / (lam * d)) / math.log(1 + growth) + 1
    assert 0 < len(agent.ledger) <= most


def release(policy: pb.AdaCOFUL, state: OFULState) -> None:
    """End the episode, with a sum of zero."""
    policy.learn(state, SimpleNamespace(values=[0.0] * policy.dimension, count=1), 1)  # type: ignore[arg-type]


def slow_rule(policy: pb.AdaCOFUL, frozen: Floats, since: Floats) -> bool:
    """The determinant computed, of a running sum of floats."""
    values = np.maximum(np.linalg.eigvalsh(frozen), policy.regulariser)
    log_det = float(np.linalg.slogdet(frozen + since)[1])
    return log_det > float(np.log(values).sum()) + math.log1p(policy.growth)


@pytest.mark.parametrize("d", [1, 3, 20])
@pytest.mark.parametrize("growth", [0.05, 1.0, 1e4])
@pytest.mark.parametrize("lengths", ["full", "tiny", "mixed", "one direction"])
def test_episodes_end_where_the_determinant_says_so(d: int, growth: float, lengths: str) -> None:
    generator = np.random.default_rng([d, int(growth), len(lengths)])
    policy = pb.AdaCOFUL(dimension=d, budget=pb.NoPrivacy(), regulariser=0.3, growth=growth, context_norm=7.0)
    state = policy.start(0.0, 1.0)
    frozen, since = state.frozen.copy(), np.zeros((d, d))
    direction, ends, looks = generator.normal(size=d), 0, 0
    for _ in range(1000 if d < 20 else 300):
        row = direction if lengths == "one direction" else generator.normal(size=d)
        row = row / np.linalg.norm(row) * policy.context_norm
        row *= {"full": 1.0, "tiny": 2e-3, "mixed": 10.0 ** generator.integers(-5, 1)}.get(lengths, generator.random())
        steps = policy.offer(row[None] * (1 - 1e-12))
        undo = policy.arrive(state, 0, policy.entry_of(state, steps, 0)[1])
        if generator.random() < 0.1:
            policy.due(state, 0, 1, {})
            undo()  # as if the reward had been refused
            continue
        real = steps[0] * policy.unit
        since += np.outer(real, real)
        looks += not state.room > 0
        assert policy.due(state, 0, 1, {}) == slow_rule(policy, frozen, since)
        if slow_rule(policy, frozen, since):
            release(policy, state)
            frozen, since, ends = frozen + since, np.zeros((d, d)), ends + 1
            assert np.abs(frozen - state.frozen).max() <= 1e-12 * np.abs(frozen).max()
        elif generator.random() < 0.01:
            state = policy.load_state(json.loads(json.dumps(policy.dump_state(state))))
    assert ends > 0 or growth > 1 or lengths == "tiny"
    if (d, growth, lengths) == (3, 1.0, "full"):
        assert ends < looks < 200  # of 1000


def test_determinants_beyond_what_floats_can_tell_are_computed_every_time() -> None:
    policy = pb.AdaCOFUL(dimension=3, budget=pb.NoPrivacy(), context_norm=1e9)
    state = policy.start(0.0, 1.0)
    for _ in range(50):
        policy.arrive(state, 0, (STEPS, 0, 0))
        if policy.due(state, 0, 1, {}):
            release(policy, state)
    assert state.releases > 3
    assert not state.room > 0
    assert math.isfinite(state.width)
    assert policy.choose(state, policy.offer(np.diag([1e9, 1e9, 1.0])), 1) == 1  # what was never played


def test_ten_million_updates_leave_no_rounding_error() -> None:
    policy = pb.AdaCOFUL(dimension=2, budget=pb.NoPrivacy(), growth=1e200)
    state = policy.start(0.0, 1.0)
    angles = np.random.default_rng(5).normal(0, 0.1, size=BLOCK)  # one coordinate is nearly as large as it can be
    steps = policy.offer(np.stack([np.cos(angles), np.sin(angles)], axis=1))
    blocks = 10**7 // BLOCK
    gram = (steps.T @ steps).astype(object)
    state.since = gram * (blocks - 500)  # so many came before
    rows = list(steps.astype(float))
    for _ in range(500):  # what BLOCK calls of `arrive` come to
        state.pending = rows
        state.gather()
    policy.arrive(state, 0, (STEPS, 0))
    policy.arrive(state, 0, (0, 1))()  # and not
    assert state.gather().tolist() == (gram * blocks + np.array([[STEPS**2, 0], [0, 0]])).tolist()
    stored = json.loads(json.dumps(policy.dump_state(state)))
    assert policy.load_state(stored) == state


def test_sums_outgrow_64_bits_without_harm() -> None:
    policy = pb.AdaCOFUL(dimension=2, budget=pb.NoPrivacy(), growth=1e200)
    state = policy.start(0.0, 1.0)
    state.since = np.array([[INT64_HOLDS, 0], [0, 0]])  # as if millions had arrived
    policy.arrive(state, 0, (STEPS, 1))
    assert state.gather().dtype == object
    state.since = state.since * 2**10
    policy.arrive(state, 0, (1, -STEPS))
    assert state.gather().tolist() == [
        [2**10 * (INT64_HOLDS + STEPS**2) + 1, 2**10 * STEPS - STEPS],
        [2**10 * STEPS - STEPS, 2**10 + STEPS**2],
    ]
    again = policy.load_state(json.loads(json.dumps(policy.dump_state(state))))
    assert again == state
    release(policy, again)
    assert again.since.dtype == np.int64
    assert again.frozen[0, 0] == pytest.approx(2.0**10 * INT64_HOLDS / STEPS**2)


def test_state_of_version_0_4_is_read() -> None:
    generator = np.random.default_rng(6)
    policy = pb.AdaCOFUL(dimension=3, budget=pb.zCDP(1), growth=50.0, context_norm=3.0)
    agent = pb.Agent(policy)
    while len(agent.ledger) < 2 or not any(map(any, agent.learned["since"])):  # when it releases depends on its noise
        agent.tell(agent.ask(actions=contexts(generator, 3, 3)), 0.5)
    stored = agent.learned
    old = {name: part for name, part in stored.items() if name != "since_steps"}
    assert policy.load_state(old) == policy.load_state(stored)


def test_theta_without_noise_is_the_ridge_estimate() -> None:
    generator = np.random.default_rng(0)
    agent = pb.Agent(pb.AdaCOFUL(dimension=3, budget=pb.NoPrivacy(), horizon=1000), reward_range=(-1, 1))
    rows_told: list[Floats] = []
    rewards: list[float] = []
    released = 0
    for _ in range(500):
        rows = contexts(generator, 5, 3)
        decision = agent.ask(actions=rows)
        rows_told.append(rows[decision.action])
        rewards.append(float(generator.uniform(-1, 1)))
        agent.tell(decision, rewards[-1])
        if len(agent.ledger) > released:
            released = len(agent.ledger)
            x, y = np.array(rows_told), np.array(rewards)
            ridge = np.linalg.solve(0.1 * np.eye(3) + x.T @ x, x.T @ y)
            assert np.abs(np.array(agent.learned["theta"]) - ridge).max() < 1e-9


def test_noise_is_for_the_declared_norm_and_is_never_redrawn() -> None:
    generator = np.random.default_rng(1)
    policy = pb.AdaCOFUL(dimension=2, budget=pb.zCDP(0.5), horizon=1000, context_norm=2.0, variant="paper")
    agent = pb.Agent(policy, reward_range=(-1, 1))
    totals = [np.zeros(2)]
    for _ in range(300):
        agent.tell(agent.ask(actions=contexts(generator, 3, 2)), 1.0)
        total = np.array(agent.learned["total"])
        if len(agent.ledger) == len(totals):
            row = agent.ledger[-1]
            assert total == pytest.approx(totals[-1] + np.array(row.values) * policy.unit)
            # sqrt(1/(2 rho)) times the range of 2 times the norm of 2, in units of the grid
            assert row.noise_sd * policy.unit == pytest.approx(4.0, rel=1e-6)
            totals.append(total)
        else:
            assert (total == totals[-1]).all()
    assert len(totals) > 3
    assert agent.ledger.total <= 0.5


def test_episode_ends_do_not_depend_on_unreleased_rewards() -> None:
    def run(rewards: random.Random) -> list[tuple[int, int]]:
        generator, script = np.random.default_rng(2), random.Random(3)
        agent = pb.Agent(
            pb.AdaCOFUL(dimension=2, budget=pb.NoPrivacy(), horizon=1000, growth=1e6), reward_range=(-1, 1)
        )
        seen, waiting = [], []
        for _ in range(300):
            waiting.append(agent.ask(actions=contexts(generator, 3, 2)))
            seen.append((waiting[-1].action, len(agent.ledger)))
            while waiting and script.random() < 0.6:
                decision = waiting.pop(script.randrange(len(waiting)))
                agent.tell(decision, rewards.uniform(-1, 1), played=script.randrange(3))
        return seen

    assert run(random.Random(1)) == run(random.Random(2))


def test_an_action_enters_v_with_its_reward_and_not_before() -> None:
    agent = pb.Agent(pb.AdaCOFUL(dimension=2, budget=pb.zCDP(1), growth=100.0))
    rows = np.array([[1.0, 0.0], [0.0, 1.0]])
    first, second = agent.ask(2, actions=rows)
    assert np.array(agent.learned["since"]).sum() == 0
    agent.give_up(first)
    assert np.array(agent.learned["since"]).sum() == 0
    agent.tell(second, 0.5, played=1)
    assert agent.learned["since"] == [[0.0, 0.0], [0.0, 1.0]]


def test_a_resumed_agent_knows_what_was_offered(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    rows = np.array([[0.5, 0.25], [0.0, 1.0], [0.75, -0.5]])
    with pb.Agent(pb.AdaCOFUL(dimension=2, budget=pb.zCDP(1), growth=50.0, regulariser=1.0), path=path) as agent:
        decision = agent.ask(actions=rows)
        agent.tell(agent.ask(actions=rows), 0.5)
        learned = agent.learned
    with pb.Agent.open(path) as again:
        assert again.learned == learned
        assert again.open_decisions == [decision]
        again.tell(decision, 1.0, played=2)
        moved = np.array(again.learned["since"]) - np.array(learned["since"])
        assert moved == pytest.approx(np.outer(rows[2], rows[2]))


def test_many_dimensions() -> None:
    generator = np.random.default_rng(4)
    agent = pb.Agent(pb.AdaCOFUL(dimension=200, budget=pb.zCDP(1), horizon=10**6))
    for _ in range(30):
        agent.tell(agent.ask(actions=contexts(generator, 5, 200)), 0.5)
    assert len(agent.learned["theta"]) == 200


def test_all_zero_contexts() -> None:
    agent = pb.Agent(pb.AdaCOFUL(dimension=2, budget=pb.zCDP(1)))
    for _ in range(10):
        agent.tell(agent.ask(actions=np.zeros((3, 2))), 1.0)
    assert len(agent.ledger) == 0  # nothing was learned, and nothing released


@pytest.mark.parametrize(
    ("actions", "words"),
    [
        (None, r"needs ask\(actions=...\)"),
        ([[1.0]], "table of 2 columns"),
        ([1.0, 0.0], "table of 2 columns"),
        (np.zeros((0, 2)), "table of 2 columns"),
        ([[math.nan, 0.0]], "nan in row 0, column 0"),
        ([[0.0, 0.0], [0.0, math.inf]], "inf in row 1, column 1"),
        ([[1.0, 1.0]], "norm at most 1, got 1.41421356 in row 0"),
        ("x", "table of numbers"),
        ([[1.0], [1.0, 0.0]], "table of numbers"),
    ],
)
def test_bad_actions_are_refused_and_nothing_changes(actions: Any, words: str) -> None:
    agent = pb.Agent(pb.AdaCOFUL(dimension=2, budget=pb.zCDP(1)))
    before = repr(agent)
    with pytest.raises(InvalidInput, match=words):
        agent.ask(actions=actions)
    assert repr(agent) == before
    assert agent.open_decisions == []


def test_long_actions_are_scaled_where_asked() -> None:
    policy = pb.AdaCOFUL(dimension=2, budget=pb.zCDP(1), long_actions="scale")
    rows = policy.offer([[30.0, 40.0], [0.3, 0.4], [0.0, 0.0]]) * policy.unit
    assert rows == pytest.approx(np.array([[0.6, 0.8], [0.3, 0.4], [0.0, 0.0]]), abs=2 * policy.unit)
    assert np.linalg.norm(rows, axis=1).max() <= 1.0


@pytest.mark.parametrize("variant", pb.AdaCOFUL.variants)
@pytest.mark.parametrize("norm", [1.0, 0.3, 7.0])
def test_rows_divided_by_their_norm_are_taken_as_they_are(norm: float, variant: Variant) -> None:
    policy = pb.AdaCOFUL(dimension=5, budget=pb.zCDP(1), context_norm=norm, variant=variant)
    rows = np.random.default_rng(7).normal(size=(2000, 5))
    rows *= norm / np.linalg.norm(rows, axis=1, keepdims=True)
    steps = policy.offer(rows)
    assert (steps == np.trunc(rows / policy.unit)).all()
    assert (steps**2).sum(axis=1).max() <= policy.steps**2
    # On the grid, and one step too long.
    longer = np.array([[policy.steps, 1, 0, 0, 0]]) * policy.unit
    assert (policy.offer(longer) ** 2).sum() <= policy.steps**2


def test_fixed_actions_are_not_offered() -> None:
    with pytest.raises(InvalidInput, match="same actions at every step"):
        pb.Agent(pb.AdaCUCB(2, pb.zCDP(1))).ask(actions=[[1.0]])


def test_played_is_one_of_those_offered() -> None:
    agent = pb.Agent(pb.AdaCOFUL(dimension=1, budget=pb.zCDP(1)))
    decision = agent.ask(actions=[[0.5], [0.25]])
    for wrong in (2, -1, "action 2"):
        with pytest.raises(InvalidInput, match="played must be"):
            agent.tell(decision, 1.0, played=wrong)
    agent.tell(decision, 1.0, played="action 1")


@pytest.mark.parametrize(
    "options",
    [
        {"dimension": 0},
        {"dimension": 2.5},
        {"horizon": 0},
        {"horizon": 10**400},
        {"regulariser": 0.0},
        {"growth": -1.0},
        {"delta": 2.0},
        {"delta": 5e-324},
        {"parameter_norm": 0.0},
        {"context_norm": math.nan},
        {"context_norm": 1e155},
        {"variant": "tighter"},
        {"long_actions": "cut"},
    ],
)
def test_bad_options_are_named(options: dict[str, Any]) -> None:
    given: dict[str, Any] = {"dimension": 2, "budget": pb.zCDP(1)} | options
    with pytest.raises(InvalidInput, match=next(iter(options))):
        pb.AdaCOFUL(**given)


@pytest.mark.parametrize(
    "options", [{"context_norm": 1e100, "regulariser": 1e-200}, {"delta": 1e-100}, {"growth": 1e-200}]
)
def test_extreme_options_make_an_agent(options: dict[str, Any]) -> None:
    agent = pb.Agent(pb.AdaCOFUL(2, pb.zCDP(1), horizon=10**9, **options))
    agent.tell(agent.ask(actions=[[0.5, 0.0], [0.0, 1.0]]), 1.0)


@pytest.mark.parametrize("budget", [pb.zCDP(1.0), pb.NoPrivacy()], ids=str)
def test_same_distribution_as_the_engine(budget: Any) -> None:
    pytest.importorskip("numba")
    environment = pb.Contextual(dimension=2, arms=4, theta=[0.8, -0.5])
    policy = pb.AdaCOFUL(dimension=2, budget=budget, horizon=400)
    theta = np.array(environment.theta)
    slow = []
    for run in range(40):
        generator = np.random.default_rng(run)
        agent = pb.Agent(policy, reward_range=(-1, 1), seed=run)
        regret = 0.0
        for _ in range(400):
            rows = environment.draw_actions(generator)
            decision = agent.ask(actions=rows)
            agent.tell(decision, environment.draw_reward(generator, rows[decision.action]))
            regret += float((rows @ theta).max() - rows[decision.action] @ theta)
        slow.append(regret)
    fast = pb.simulate({"p": policy}, environment, 400, 1_000).final["p"]
    error = math.hypot(np.std(slow, ddof=1) / math.sqrt(40), fast.std(ddof=1) / math.sqrt(1_000))
    assert abs(np.mean(slow) - fast.mean()) < 4 * error
