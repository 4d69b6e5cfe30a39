"""The variant "tight" of AdaC-GOPE: lengths and widths against slow ones, what may fail, and the regret it saves."""

from __future__ import annotations

import itertools
import math
import random
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import private_bandits as pb
from private_bandits.budget import Budget
from private_bandits.policies import tight_phases
from private_bandits.policies.phased_elimination import PhasedElimination, PhasedState
from private_bandits.simulation.linear import PhasedRuns

Floats = NDArray[np.float64]


def directions(seed: int, k: int, d: int) -> Floats:
    rows = np.random.default_rng(seed).normal(size=(k, d))
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def budget(rho: float) -> Budget:
    return pb.NoPrivacy() if math.isinf(rho) else pb.zCDP(rho)


def widest(actions: Floats, counts: dict[int, float], rho: float, log_inv_failure: float) -> float:
    """The largest width of two actions, from V and from every pair of them."""
    v = sum(n * np.outer(actions[a], actions[a]) for a, n in counts.items())
    inverse = np.linalg.pinv(v, rcond=1e-12)
    moved = max(float(actions[a] @ inverse @ actions[a]) for a in counts)  # by one reward, squared, at width one
    variances = [
        float((x - y) @ inverse @ (x - y)) * (1 + 4 / (2 * rho) * moved) for x, y in itertools.combinations(actions, 2)
    ]
    return math.sqrt(2 * max(variances) * log_inv_failure)


SETS = {
    "directions": directions(1, 7, 3),
    "fewer than dimensions": directions(2, 3, 5),
    "unlike lengths": directions(3, 6, 2) * np.geomspace(1, 0.05, 6)[:, None],
    "in a plane": directions(4, 6, 2) @ np.linalg.qr(directions(5, 3, 3))[0][:2],
}


@pytest.mark.parametrize("rho", [1e-4, 0.1, math.inf])
@pytest.mark.parametrize("name", SETS)
def test_a_phase_is_as_short_as_its_widths_allow(name: str, rho: float) -> None:
    """A slow search for the least c; and the whole plays, which are no fewer, are enough too."""
    actions = SETS[name]
    n = len(actions)
    policy = pb.AdaCGOPE(actions, budget(rho), delta=0.01)
    for phase, best in ((1, None), (2, 1), (5, n - 1)):
        log_inv_failure = math.log((n - 1) * phase * (phase + 1) / 0.01)
        shares = policy.mix(range(n), best).shares
        low, high = 0.0, 1e12
        for _ in range(200):
            middle = (low + high) / 2
            enough = (
                widest(actions, {a: middle * s for a, s in shares.items()}, rho, log_inv_failure) <= 2 * 2.0**-phase
            )
            low, high = (low, middle) if enough else (middle, high)
        assert policy.length(phase, range(n), best) == pytest.approx(high, rel=1e-9)
        plan: dict[int, Any] = policy.plan(phase, range(n), best)
        assert widest(actions, plan, rho, log_inv_failure) <= 2 * 2.0**-phase * (1 + 1e-12)
        assert sum(plan.values()) <= high * sum(shares.values()) + len(shares)


def test_the_best_so_far_is_played_first_and_three_times_as_often_as_the_design() -> None:
    policy = pb.AdaCGOPE(directions(6, 9, 3), pb.zCDP(1))
    assert sum(policy.mix(range(9)).shares.values()) == pytest.approx(1)
    for best in range(9):
        shares = policy.mix(range(9), best).shares
        assert next(iter(shares)) == best
        assert sum(shares.values()) == pytest.approx(4)
        assert shares[best] == pytest.approx(3 + policy.design(range(9)).weights[best])
    published = pb.AdaCGOPE(policy.actions, pb.zCDP(1), variant="paper")
    assert published.plan(3, range(9), 4) == published.plan(3, range(9))


def test_what_is_dropped_can_be_recomputed_from_the_ledger() -> None:
    """Estimates and widths from a row alone, with the rounded weights that were summed; also in another range."""
    actions, scale = directions(7, 8, 3), 3.0
    policy = pb.AdaCGOPE(actions, pb.zCDP(0.05), delta=0.4)
    agent = pb.Agent(policy, reward_range=(-scale, scale), seed=2)
    chance, means = random.Random(1), actions @ [0.5, -0.6, 0.4]
    active, phase, shrunk = list(range(8)), 1, 0
    while phase < 5 and len(active) > 1:
        decision = agent.ask()
        agent.tell(decision, scale if chance.random() < (1 + means[decision.action]) / 2 else -scale)
        if len(agent.ledger) < phase:
            continue
        row = agent.ledger[phase - 1]
        weights, played = np.array(row.weights), actions[list(row.keys)]
        decode = np.linalg.pinv(weights @ (np.array(row.counts)[:, None] * played))
        estimates = actions[active] @ decode @ np.array(row.values)
        # Each reward's part in the estimate of an action, and that of each draw of noise.
        rewards = actions[active] @ decode @ weights * np.sqrt(row.counts) * scale
        parts = np.hstack([rewards, row.noise_sd * (actions[active] @ decode)])
        lead = int(estimates.argmax())
        log_inv_failure = math.log((len(active) - 1) * phase * (phase + 1) / 0.4)
        width = np.sqrt(2 * log_inv_failure) * np.linalg.norm(parts - parts[lead], axis=1)
        kept = [a for a, gap, w in zip(active, estimates[lead] - estimates, width, strict=True) if gap <= w]
        assert agent.learned["active"] == kept
        assert agent.learned["width"] == pytest.approx(width.max() / 2, rel=1e-6)
        assert agent.learned["best"] == active[lead]
        shrunk += len(kept) < len(active)
        active, phase = kept, phase + 1
    assert shrunk


class HalfAsWide(pb.AdaCGOPE):
    """What the tests below have to notice."""

    name = ""

    def slack(self, *arguments: Any) -> Any:
        return super().slack(*arguments) / 2

    def half_width(self, *arguments: float) -> float:
        return super().half_width(*arguments) / 2


def lost(cls: type[pb.AdaCGOPE], rho: float, delta: float, runs: int) -> float:
    """How often the best of ten actions that are nearly the same was dropped."""
    actions = np.eye(10)
    environment = pb.Linear(actions, [0.001, *[0.0] * 9])
    state = PhasedRuns(cls(actions, budget(rho), delta=delta), environment, 10**6, runs, np.random.default_rng(8))
    phase = 1
    while state.play_phase(phase):
        phase += 1
    return float(np.mean([0 not in run.active for run in state.runs]))


@pytest.mark.parametrize("rho", [0.001, 1.0, math.inf])
@pytest.mark.parametrize("delta", [0.1, 0.5])
def test_the_best_action_is_lost_no_more_often_than_delta_says(rho: float, delta: float) -> None:
    runs = 300
    assert lost(pb.AdaCGOPE, rho, delta, runs) <= delta
    assert lost(HalfAsWide, rho, delta, runs) > delta + 4 * math.sqrt(delta * (1 - delta) / runs)


def missed(cls: type[pb.AdaCGOPE], rho: float, delta: float, runs: int) -> float:
    """How often an interval missed its mean after some release, of agents with rewards of +1 and -1."""
    actions = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8], [0.8, -0.6]])
    means = actions @ [0.1, 0.05]
    chance, wrong = random.Random(9), 0
    for run in range(runs):
        agent = pb.Agent(cls(actions, budget(rho), phase_factor=0.05), reward_range=(-1, 1), seed=run)
        releases, failed = 0, False
        for _ in range(120):
            decision = agent.ask()
            agent.tell(decision, 1.0 if chance.random() < (1 + means[decision.action]) / 2 else -1.0)
            if len(agent.ledger) > releases:
                releases = len(agent.ledger)
                failed |= any(not e.low <= means[e.action] <= e.high for e in agent.estimates(delta))
        assert releases
        wrong += failed
    return wrong / runs


@pytest.mark.parametrize(("rho", "runs"), [(2.0, 60), (math.inf, 60), pytest.param(2.0, 1_000, marks=pytest.mark.full)])
def test_intervals_miss_no_more_often_than_delta_says(rho: float, runs: int) -> None:
    delta = 0.2
    assert missed(pb.AdaCGOPE, rho, delta, runs) <= delta
    assert missed(HalfAsWide, rho, delta, runs) > delta + 4 * math.sqrt(delta * (1 - delta) / runs)


@pytest.mark.parametrize(("k", "d"), [(10, 3), (20, 10)])
@pytest.mark.parametrize("rho", [0.001, 0.1, 1.0, math.inf])
def test_regret_is_less_than_a_third_of_the_published_phases(k: int, d: int, rho: float) -> None:
    actions = directions(11, k, d)
    environment = pb.Linear(actions, directions(12, 1, d)[0])
    policies: dict[str, pb.AdaCGOPE] = {v: pb.AdaCGOPE(actions, budget(rho), variant=v) for v in pb.AdaCGOPE.variants}
    found = pb.simulate(policies, environment, 10**7, 20).final
    assert found["tight"].mean() < 0.3 * found["paper"].mean()


def test_distances_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    points = np.random.default_rng(10).normal(size=(30, 4))
    expected = max(float((x - y) @ (x - y)) for x, y in itertools.combinations(points, 2))
    assert tight_phases.farthest(points) == pytest.approx(expected, rel=1e-12)
    monkeypatch.setattr(tight_phases, "ENTRIES", 64)
    assert tight_phases.farthest(points) == pytest.approx(expected, rel=1e-12)


def test_actions_that_are_nearly_the_same_are_told_apart_by_their_difference() -> None:
    """Far below the root of a float's precision, where a product of rows would leave nothing of it."""
    errors = np.array([[1.0, 1.0], [1.0, 1.0 + 1e-12]])
    widths = tight_phases.pair_widths(errors, np.array([0]), log_inv_failure=2.0)
    assert widths[0] == pytest.approx([0.0, 2e-12], rel=1e-3)


def test_states_of_earlier_versions_are_read() -> None:
    """A file of a policy of the published phases: its parameters name the variant, and its state has the same parts."""
    policy = pb.AdaCGOPE.example(pb.zCDP(1))
    published = pb.AdaCGOPE(policy.actions, pb.zCDP(1), variant="paper", phase_factor=2e-3)
    again = pb.policies.policy_from_dict(published.to_dict())
    assert again == published
    state: PhasedState = again.load_state(published.dump_state(published.start(0, 1)))
    assert state == published.start(0, 1)


# The published phases are as they were: mean regret of a seeded simulation, before there was another variant.

EARLIER: dict[tuple[type[PhasedElimination], Budget], float] = {
    (pb.AdaCGOPE, pb.zCDP(0.01)): 26261.24289999996,
    (pb.AdaCGOPE, pb.NoPrivacy()): 21676.80343499997,
    (pb.AdaCGOPEVar, pb.zCDP(0.01)): 26161.639644999967,
    (pb.AdaCGOPEVar, pb.NoPrivacy()): 21831.75287499997,
    (pb.AdaCGOPEEnd, pb.zCDP(0.01)): 26372.44863999996,
    (pb.AdaCGOPEEnd, pb.NoPrivacy()): 21783.82581999997,
    (pb.LiGOPE, pb.zCDP(0.01)): 28037.08466999996,
    (pb.LiGOPE, pb.NoPrivacy()): 24279.66397999996,
    (pb.HannaGOPE, pb.PureDP(0.5)): 27877.57532499996,
    (pb.HannaGOPE, pb.NoPrivacy()): 24279.66397999996,
}


@pytest.mark.parametrize(("cls", "level"), EARLIER)
def test_published_phases_have_not_changed(cls: type[PhasedElimination], level: Budget) -> None:
    """The repr is what seeds a simulation."""
    actions = np.round(0.99 * directions(4, 12, 4), 3)
    policy = cls(actions, level, variant="paper")
    found = pb.simulate({"p": policy}, pb.Linear(actions, [0.6, -0.5, 0.4, 0.2]), 10**6, 20, seed=3).final["p"]
    assert found.mean() == pytest.approx(EARLIER[cls, level], rel=1e-12)
    if cls is pb.AdaCGOPE:
        rest = "variant='paper', tol=0.001, phase_factor=1.0, phase_length='paper')"
        assert repr(policy).endswith(f"{policy.described!r}, delta=0.001, {rest}")


def test_equal_best_actions_are_kept_together() -> None:
    """Their width is zero, and their means differ in the last digits."""
    chance = np.random.default_rng(0)
    for _ in range(60):
        rows = chance.normal(size=(6, 3))
        rows /= 1.001 * np.linalg.norm(rows, axis=1, keepdims=True)
        rows = np.vstack([rows, rows])[chance.permutation(12)]
        theta = 0.9 * rows[0]
        means = rows @ theta
        best = set(np.flatnonzero(means >= means.max() - 1e-12).tolist())
        agent = pb.Agent(pb.AdaCGOPE(rows, pb.NoPrivacy(), delta=1e-6, phase_factor=0.02), reward_range=(-1, 1))
        for _ in range(400):
            decision = agent.ask()
            agent.tell(decision, float(means[decision.action]))
        assert best <= set(agent.learned["active"])
        assert len(agent.ledger) > 1


def test_actions_that_floats_cannot_tell_apart_need_no_phase() -> None:
    best = np.array([0.6, 0.3])
    rows = np.array([best, best * (1 + 2e-16), [-0.6, 0.1], [0.1, -0.8]])
    assert (rows[0] != rows[1]).any()
    agent = pb.Agent(pb.AdaCGOPE(rows, pb.NoPrivacy(), phase_factor=0.01), reward_range=(-1, 1))
    for _ in range(1500):
        decision = agent.ask()
        agent.tell(decision, float(rows[decision.action] @ [0.9, 0.2]))
    assert set(agent.learned["active"]) == {0, 1}
