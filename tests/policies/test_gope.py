"""Phased elimination: estimates, noise and plans against formulas written out here."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import private_bandits as pb
from private_bandits.agent import bandit_of
from private_bandits.errors import InvalidInput
from private_bandits.mechanism import composition
from private_bandits.policies import phased_elimination, tight_phases
from private_bandits.policies.base import Variant
from private_bandits.policies.phased_elimination import PhasedElimination, PhasedState

Floats = NDArray[np.float64]

PLACEMENTS = (pb.AdaCGOPE, pb.AdaCGOPEVar, pb.AdaCGOPEEnd)
EVERY = (*PLACEMENTS, pb.LiGOPE, pb.HannaGOPE)


def directions(seed: int, k: int, d: int) -> Floats:
    rows = np.random.default_rng(seed).normal(size=(k, d))
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def state_of(agent: pb.Agent) -> PhasedState:
    state: PhasedState = bandit_of(agent).public.policy
    return state


def play_until_release(agent: pb.Agent, reward: Any, releases: int = 1) -> list[tuple[int, float]]:
    """Told (action, reward) of the last phase."""
    told: list[tuple[int, float]] = []
    for _ in range(releases):
        told.clear()
        before = len(agent.ledger)
        while len(agent.ledger) == before:
            decision = agent.ask()
            told.append((decision.action, reward(decision.action)))
            agent.tell(decision, told[-1][1])
    return told


def least_squares(actions: Floats, told: list[tuple[int, float]]) -> Floats:
    """The shortest solution, from sums that are exact to the last bits."""
    arms = sorted({a for a, _ in told})
    sums = np.array([math.fsum(r for a, r in told if a == arm) for arm in arms])
    counts = np.array([sum(a == arm for a, _ in told) for arm in arms])
    rows = actions[arms]
    return np.asarray(np.linalg.pinv((rows * counts[:, None]).T @ rows) @ (rows.T @ sums))


# The estimate.


@pytest.mark.parametrize(
    ("rewards", "kind"),
    [
        (20_000, "uniform"),
        (20_000, "constant"),
        pytest.param(2_000_000, "uniform", marks=pytest.mark.full),
        pytest.param(2_000_000, "constant", marks=pytest.mark.full),
    ],
)
@pytest.mark.parametrize("cls", PLACEMENTS)
def test_theta_without_noise_is_least_squares(cls: type[pb.AdaCGOPE], rewards: int, kind: str) -> None:
    actions = directions(1, 6, 3)
    theta = np.array([0.3, -0.4, 0.1])
    policy = cls(actions, pb.NoPrivacy())
    policy = cls(actions, pb.NoPrivacy(), phase_factor=rewards / policy.length(1, range(6)))
    generator = random.Random(0)
    means = (actions @ theta).tolist()
    draw = (lambda arm: generator.uniform(-1, 1)) if kind == "uniform" else (lambda arm: means[arm])
    agent = pb.Agent(policy, reward_range=(-1, 1))
    told = play_until_release(agent, draw)
    assert len(told) >= rewards
    assert np.abs(np.array(state_of(agent).theta) - least_squares(actions, told)).max() < 1e-9


@pytest.mark.parametrize("cls", PLACEMENTS)
def test_coarse_weights_do_not_bias_the_estimate(cls: type[pb.AdaCGOPE], monkeypatch: pytest.MonkeyPatch) -> None:
    """With weights of six bits the rounded ones decode exactly; those before the rounding are 1 % off."""
    monkeypatch.setattr(composition, "MOST_WEIGHT", 2**6)
    actions = directions(2, 5, 3)
    theta = np.array([0.2, 0.5, -0.3])
    agent = pb.Agent(cls(actions, pb.NoPrivacy(), phase_factor=0.01), reward_range=(-1, 1))
    play_until_release(agent, lambda arm: float(actions[arm] @ theta))
    assert np.abs(np.array(state_of(agent).theta) - theta).max() < 1e-9
    row = agent.ledger[0]
    if row.weights is not None:
        assert max(abs(w) for values in row.weights for w in values) * row.unit <= 2**6 + 1
        first: Any = cls.placement(bandit_of(agent).policy._fit(range(5), row.keys, row.counts))  # type: ignore[attr-defined]
        exact = np.asarray(first)
        assert np.abs(exact - np.array(row.weights)).max() > 1e-4 * np.abs(exact).max()


@pytest.mark.parametrize("bounds", [(0.0, 1.0), (-1.0, 1.0), (-3.0, 5.0)])
@pytest.mark.parametrize("cls", EVERY)
def test_other_ranges_give_the_same_theta_in_their_units(
    cls: type[PhasedElimination], bounds: tuple[float, float]
) -> None:
    actions = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])
    theta = np.array([0.5, 0.25])
    agent = pb.Agent(cls(actions, pb.NoPrivacy(), phase_factor=0.01), reward_range=bounds)
    play_until_release(agent, lambda arm: float(actions[arm] @ theta))
    assert np.abs(np.array(state_of(agent).theta) - theta).max() < 1e-9


# The noise.


def sensitivity(cls: type[PhasedElimination], actions: Floats, counts: Counter[int]) -> float:
    """What one reward in [-1, 1] moves the released values by, from the arms really played."""
    arms = sorted(counts)
    v = sum(counts[a] * np.outer(actions[a], actions[a]) for a in arms)
    values, vectors = np.linalg.eigh(v)
    keep = values > 1e-12 * values.max()
    root = vectors[:, keep] / np.sqrt(values[keep]) @ vectors[:, keep].T
    by = {pb.AdaCGOPE: root, pb.AdaCGOPEEnd: root @ root}
    moved = [np.linalg.norm(by[cls] @ actions[a]) for a in arms] if cls in by else [1.0]
    return 2 * float(max(moved))


@pytest.mark.parametrize("tol", [0.5, 1e-3, 1e-6])
@pytest.mark.parametrize("stray", [False, True])
@pytest.mark.parametrize("cls", EVERY)
def test_noise_is_calibrated_to_what_was_really_played(cls: type[PhasedElimination], stray: bool, tol: float) -> None:
    """Never too small, and at most 1 % too large, also where people play other actions than recommended."""
    actions = np.vstack([directions(3, 7, 3), [[0.3, 0.1, 0.2]]])
    budget = pb.PureDP(0.7) if cls is pb.HannaGOPE else pb.zCDP(0.3)
    agent = pb.Agent(cls(actions, budget, tol=tol, phase_factor=0.01), reward_range=(-1, 1))
    script = random.Random(4)
    phase: Counter[int] = Counter()
    checked = 0
    while checked < 3:
        decision = agent.ask()
        played = script.randrange(8) if stray and script.random() < 0.3 else decision.action
        if played in state_of(agent).plan:
            phase[played] += 1
        agent.tell(decision, script.choice([-1.0, 1.0]), played=played)
        if len(agent.ledger) > checked:
            row = agent.ledger[checked]
            assert dict(zip(row.keys, row.counts, strict=True)) == phase
            moved = sensitivity(cls, actions, phase)
            declared = row.noise_sd / math.sqrt(2) * 0.7 if cls is pb.HannaGOPE else row.noise_sd * math.sqrt(0.6)
            assert moved * (1 - 1e-12) <= declared <= moved * 1.005  # 1 % of the variance
            phase.clear()
            checked += 1


def test_a_poor_design_needs_more_noise_than_the_main_text_has() -> None:
    """2d/(rho c_l) is too small where the design is not exactly optimal: the trap that calibration avoids."""
    rho = 0.5
    rows = directions(11, 9, 4)
    policy = pb.AdaCGOPE(rows, pb.zCDP(rho), tol=0.9, variant="paper")
    plan = policy.plan(1, range(9))
    needed = sensitivity(pb.AdaCGOPE, rows, Counter(plan)) ** 2 / (2 * rho)
    paper = 2 * 4 / (rho * policy.length(1, range(9)))
    assert needed > paper


# Plans and eliminations.


@pytest.mark.parametrize("cls", EVERY)
def test_phase_lengths(cls: type[PhasedElimination]) -> None:
    actions, rho, delta = directions(5, 10, 3), 0.1, 1e-3
    budget = pb.PureDP(1.0) if cls is pb.HannaGOPE else pb.zCDP(rho)
    policy = cls(actions, budget, delta=delta, variant="paper")
    for phase in (1, 2, 5):
        beta, share = 2.0**-phase, delta / (10 * phase * (phase + 1))
        if isinstance(policy, pb.AdaCGOPE):
            f = 3 + 2 * math.sqrt(3 * math.log(2 / share)) + 2 * math.log(2 / share)
            expected = 8 * 3 / beta**2 * math.log(4 / share) + 2 * 3 / beta * math.sqrt(2 / rho * f)
            assert policy.length(phase, range(10)) == pytest.approx(expected, rel=1e-12)
        design = policy.design(range(10))
        plan = policy.plan(phase, range(10))
        length = policy.length(phase, range(10))
        assert plan == {a: math.ceil(length * design.weights[a]) for a in design.support.tolist()}
        assert list(plan) == sorted(plan)


@pytest.mark.parametrize("cls", EVERY)
def test_own_phases_are_long_enough_for_rewards_and_noise(cls: type[PhasedElimination]) -> None:
    """With what the plan plays, the width really reached is at most 2^-l; and it is not much smaller."""
    actions = directions(6, 10, 3)
    for level in (0.001, 0.01, 0.1, 1.0):
        options: dict[str, Any] = {"phase_length": "own", "variant": "paper"} if issubclass(cls, pb.AdaCGOPE) else {}
        policy: Any = cls(actions, pb.PureDP(level) if cls is pb.HannaGOPE else pb.zCDP(level), **options)
        for phase in (1, 4, 7):
            plan = policy.plan(phase, range(10))
            fit = policy._fit(range(10), list(plan), list(plan.values()))
            weights = cls.placement(fit)
            whitened = fit.whitened(actions)
            log_inv_failure = policy.log_inv_failure(phase)
            rewards = np.linalg.norm(whitened, axis=1).max() * math.sqrt(2 * log_inv_failure)
            noise = policy.noise_half_width(
                whitened @ fit.decoder(weights), policy.noise_sd(weights, 2.0), log_inv_failure
            )
            assert 0.35 * 2.0**-phase < rewards + noise <= 2.0**-phase


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_noise_width_holds(noise: str) -> None:
    """Its tail bound, on sums of draws of unequal parts, against a sample."""
    policy: Any = pb.HannaGOPE.example(pb.PureDP(1)) if noise == "laplace" else pb.AdaCGOPE.example(pb.zCDP(1))
    generator = np.random.default_rng(0)
    for parts in (np.array([1.0]), np.array([1.0, 0.1, 0.1]), np.ones(8)):
        shape = (200_000, len(parts))
        draws = generator.laplace(size=shape) / 2**0.5 if noise == "laplace" else generator.normal(size=shape)
        strayed = np.abs(draws @ parts)
        for log_inv_failure in (1.0, 3.0, 6.0):
            half_width = policy.noise_width(float(np.linalg.norm(parts)), float(parts.max()), log_inv_failure)
            allowed = 2 * math.exp(-log_inv_failure)
            assert (strayed > half_width).mean() < allowed + 4 * math.sqrt(allowed / 200_000)


def test_elimination_keeps_what_could_be_best_and_drops_what_cannot() -> None:
    actions = np.array([[1.0, 0.0], [0.0, 1.0], [0.8, 0.6], [-0.9, 0.0]])
    theta = np.array([0.2, 0.8])  # means 0.2, 0.8, 0.64, -0.18: gaps 0.6, 0, 0.16, 0.98
    agent = pb.Agent(pb.AdaCGOPE(actions, pb.NoPrivacy(), variant="paper"), reward_range=(-1, 1))
    mean = lambda arm: float(actions[arm] @ theta)  # noqa: E731
    kept = []
    for _ in range(3):
        play_until_release(agent, mean)
        kept.append(state_of(agent).active)
    # Exact means: dropped when the gap exceeds 2 * 2^-l.
    assert kept == [[0, 1, 2, 3], [1, 2], [1, 2]]
    play_until_release(agent, mean)
    assert state_of(agent).active == [1]
    assert state_of(agent).plan == {}
    assert {agent.ask().action for _ in range(100)} == {1}
    rows = len(agent.ledger)
    agent.tell(agent.ask(), 1.0)
    assert len(agent.ledger) == rows


# Action sets of every kind.

ODD_SETS = {
    "one action": [[0.5, 0.5]],
    "fewer than dimensions": [[1.0, 0.0, 0.0], [0.0, 0.6, 0.8]],
    "in a plane": [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.6, 0.8, 0.0], [0.6, -0.8, 0.0]],
    "in a tilted plane": (directions(7, 6, 2) @ np.linalg.qr(directions(8, 3, 3))[0][:2]).tolist(),
    "repeats": [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [0.0, 1.0]],
    "all the same": [[0.5, 0.1]] * 3,
    "with zero": [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]],
    "zero alone": [[0.0, 0.0]],
    "all zero": [[0.0, 0.0], [0.0, 0.0]],
    "one dimension": [[1.0], [-0.5], [0.25]],
    "badly conditioned": [[1.0, 0.0], [1.0, 1e-8], [0.5, 0.0]],
}


@pytest.mark.parametrize("name", ODD_SETS)
@pytest.mark.parametrize(("cls", "variant"), [(cls, variant) for cls in EVERY for variant in cls.variants])
def test_odd_action_sets(cls: type[PhasedElimination], variant: Variant, name: str) -> None:
    actions = np.array(ODD_SETS[name])
    theta = np.linspace(0.6, 0.2, actions.shape[1])
    theta /= max(1.0, float(np.abs(actions @ theta).max()))
    budget = pb.PureDP(1.0) if cls is pb.HannaGOPE else pb.zCDP(1.0)
    factor = 0.2 if variant == "tight" else 0.02
    # Seeded: with phases as short as these, noise may throw out the best action, and intervals hold most of the time.
    agent = pb.Agent(cls(actions, budget, phase_factor=factor, variant=variant), reward_range=(-1, 1), seed=4)
    generator = random.Random(9)
    means = actions @ theta
    for _ in range(600):
        decision = agent.ask()
        agent.tell(decision, 1.0 if generator.random() < (1 + means[decision.action]) / 2 else -1.0)
    state = state_of(agent)
    assert set(state.active) <= set(range(len(actions)))
    best = int(np.argmax(means))
    assert means[state.active].max() == pytest.approx(means[best])
    for estimate in agent.estimates():
        assert estimate.low <= means[estimate.action] <= estimate.high


def test_same_actions_in_rotated_space() -> None:
    """Nothing but angles and lengths matters."""
    actions = directions(10, 8, 3)
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(3, 3)))[0]
    theta = np.array([0.5, -0.5, 0.6])
    means = actions @ theta
    played = []
    for rows in (actions, actions @ turn):
        agent = pb.Agent(pb.AdaCGOPE(rows, pb.NoPrivacy(), phase_factor=0.1, tol=1e-6), reward_range=(-1, 1))
        seen = Counter[int]()
        for _ in range(2_000):
            decision = agent.ask()
            seen[decision.action] += 1
            agent.tell(decision, float(means[decision.action]))
        played.append((seen, state_of(agent).active))
    assert played[0][1] == played[1][1]
    assert all(abs(played[0][0][a] - played[1][0][a]) <= 8 for a in range(8))


@pytest.mark.parametrize("cls", PLACEMENTS)
def test_unit_vectors_make_it_finite_armed_elimination(cls: type[pb.AdaCGOPE]) -> None:
    """Equal plays of every arm left, means of each, and the worse ones dropped: written out without vectors."""
    k = 4
    policy = cls(np.eye(k), pb.NoPrivacy(), phase_factor=0.05, variant="paper")
    agent = pb.Agent(policy, reward_range=(-1, 1))
    generator = random.Random(12)
    rewards = [[generator.choice([-1.0, 1.0]) for _ in range(5_000)] for _ in range(k)]

    def elimination() -> Iterator[int]:
        active, phase, used = list(range(k)), 1, [0] * k
        while len(active) > 1:
            n = math.ceil(0.05 * policy.length(phase, range(k)) / len(active) - 1e-9)
            for arm in active:
                yield from [arm] * n
            means = {a: math.fsum(rewards[a][used[a] : used[a] + n]) / n for a in active}
            used = [u + n * (a in active) for a, u in enumerate(used)]
            width = max(2.0**-phase, math.sqrt(2 / n * math.log(4 * k * phase * (phase + 1) / 1e-3)))
            active = [a for a in active if max(means.values()) - means[a] <= 2 * width]
            phase += 1
        while True:
            yield active[0]

    expected, used = elimination(), [0] * k
    for step in range(1, 5_000):
        decision = agent.ask()
        assert decision.action == next(expected), step
        agent.tell(decision, rewards[decision.action][used[decision.action]])
        used[decision.action] += 1


# Late, missing and other plays.


def test_given_up_plays_are_asked_again_and_the_phase_ends_with_its_rewards() -> None:
    policy = pb.AdaCGOPE.example(pb.zCDP(1)).with_budget(pb.zCDP(1))
    policy = pb.AdaCGOPE(policy.actions, pb.zCDP(1), phase_factor=0.02)
    agent = pb.Agent(policy)
    plan = state_of(agent).plan
    total = sum(plan.values())
    open_decisions = agent.ask(total)
    assert Counter(d.action for d in open_decisions) == plan
    lost = open_decisions.pop(0)
    agent.give_up(lost)
    again = agent.ask()
    assert again.action == lost.action
    for decision in open_decisions:
        agent.tell(decision, 1.0)
    assert not len(agent.ledger)
    agent.tell(again, 1.0)
    assert len(agent.ledger) == 1
    assert dict(zip(agent.ledger[0].keys, agent.ledger[0].counts, strict=True)) == plan


def test_rewards_that_never_come_do_not_hold_the_agent_up_for_ever() -> None:
    agent = pb.Agent(pb.AdaCGOPE.example(pb.zCDP(1)))
    never = agent.ask()
    for _ in range(40):
        agent.tell(agent.ask(), 0.5)
    assert len(agent.ledger) > 1
    agent.tell(never, 1.0)  # late, and still welcome where its action is in the design


def test_extra_plays_of_the_design_count_and_others_are_dropped() -> None:
    agent = pb.Agent(pb.AdaCGOPE(((1, 0), (0, 1), (0.1, 0.1)), pb.zCDP(1), phase_factor=0.02))
    plan = state_of(agent).plan
    assert set(plan) == {0, 1}
    for _ in range(plan[0] + 5):
        agent.tell(agent.ask(), 1.0, played=0)
    agent.tell(agent.ask(), 1.0, played=2)
    while not len(agent.ledger):
        agent.tell(agent.ask(), 1.0)
    row = agent.ledger[0]
    assert dict(zip(row.keys, row.counts, strict=True)) == {0: plan[0] + 5, 1: plan[1]}


# Refusals.


@pytest.mark.parametrize(
    ("actions", "words"),
    [
        ([[1.0, math.nan]], "nan in row 0, column 1"),
        ([[1.0, math.inf]], "inf"),
        ([1.0, 2.0], "shape"),
        ([], "shape"),
        ([[]], "shape"),
        ([[1.0], [1.0, 2.0]], "one length"),
        ([[1j, 0.0]], "real numbers"),
        ([[1e-200, 0.0], [0.0, 1e-210]], "too short"),
        ("abc", "table"),
        (None, "table"),
        ([[1.0, 1.0]], r"norm at most 1, got 1.41421356 in row 0.*action_norm=1.41422"),
    ],
)
def test_bad_actions_are_named(actions: Any, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        pb.AdaCGOPE(actions, pb.zCDP(1))


def test_a_larger_norm_may_be_declared() -> None:
    assert pb.AdaCGOPE([[3.0, 4.0]], pb.zCDP(1), action_norm=5.0).actions == ((3.0, 4.0),)


@pytest.mark.parametrize(
    "options",
    [
        {"delta": 0.0},
        {"delta": 1.5},
        {"tol": 0.0},
        {"tol": 2.0},
        {"phase_factor": -1.0},
        {"variant": "short"},
        {"phase_length": "own"},
        {"phase_length": "long"},
        {"arms": ["a"]},
        {"action_norm": 0.0},
    ],
)
def test_bad_options_are_named(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=next(iter(options)) if "arms" not in options else "are named"):
        pb.AdaCGOPE([[1.0, 0.0], [0.0, 1.0]], pb.zCDP(1), **options)


def test_own_phases_of_the_default_variant_are_refused_with_the_way_out() -> None:
    with pytest.raises(InvalidInput, match='needs variant="paper": phases'):
        pb.AdaCGOPE([[1.0, 0.0], [0.0, 1.0]], pb.zCDP(1), phase_length="own")


@pytest.mark.parametrize("bounds", [(0.0, 1e155), (0.0, 1e-150)])
def test_ranges_that_floats_cannot_square_are_refused(bounds: tuple[float, float]) -> None:
    with pytest.raises(InvalidInput, match="another unit"):
        pb.Agent(pb.HannaGOPE.example(pb.PureDP(1)), reward_range=bounds)


def test_a_norm_that_is_declared_as_advised_is_taken() -> None:
    for length in (1.0000005, 1.34907123, 123456.789):
        with pytest.raises(InvalidInput) as refused:
            pb.AdaCGOPE([[length, 0.0]], pb.zCDP(1))
        pb.AdaCGOPE([[length, 0.0]], pb.zCDP(1), action_norm=float(str(refused.value).split("action_norm=")[1]))


def test_names_of_actions() -> None:
    policy = pb.AdaCGOPE([[1.0, 0.0], [0.0, 1.0]], pb.zCDP(1), arms=["red", "blue"])
    assert pb.Agent(policy).ask().arm == "red"
    assert pb.AdaCGOPE([[1.0]], pb.zCDP(1)).arm_names == ("action 0",)


def test_what_was_learned_can_be_seen() -> None:
    agent = pb.Agent(pb.AdaCGOPE.example(pb.zCDP(1)))
    assert agent.learned["phase"] == 1
    play_until_release(agent, lambda arm: 0.5)
    learned = agent.learned
    assert learned["phase"] == 2
    assert learned["theta"] is not None
    assert learned["width"] > 0
    learned["active"].clear()  # a copy
    assert agent.learned["active"]


@pytest.mark.parametrize("variant", pb.AdaCGOPE.variants)
def test_a_design_that_floats_cannot_reach_does_not_stop_a_phase(
    variant: Variant, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(vectors: Floats, tol: float) -> pb.Design:
        raise InvalidInput("finer than floats resolve")

    monkeypatch.setattr(phased_elimination, "optimal_design", fails)
    monkeypatch.setattr(tight_phases, "rough_design", fails)
    policy = pb.AdaCGOPE(directions(13, 20, 4), pb.zCDP(1), variant=variant)
    plan = policy.plan(1, range(20))
    assert set(plan) == set(pb.small_design(policy.vectors).support.tolist())


def test_a_repr_is_short_and_tells_sets_apart() -> None:
    one, other = (pb.AdaCGOPE(directions(seed, 500, 20), pb.zCDP(1)) for seed in (1, 2))
    assert len(repr(one)) < 300
    assert "500 actions in R^20" in repr(one)
    assert repr(one) != repr(other)
    assert one != other


def test_actions_that_floats_cannot_tell_apart_are_refused_at_once() -> None:
    generator = np.random.default_rng(0)
    refused = 0
    for _ in range(60):
        rows = directions(int(generator.integers(1000)), 6, 3) * 1e-40 ** generator.uniform(size=(6, 1))
        try:
            agent = pb.Agent(pb.AdaCGOPE(rows, pb.zCDP(1), phase_factor=1e-3))
        except InvalidInput as error:
            assert "cannot be told apart" in str(error)  # noqa: PT017  (most sets are fine)
            refused += 1
            continue
        for _ in range(60):
            agent.tell(agent.ask(), 0.5)
    assert 0 < refused < 60


def test_a_first_phase_that_is_too_long_is_refused() -> None:
    with pytest.raises(InvalidInput, match="too long for exact sums"):
        pb.Agent(pb.AdaCGOPE([[1.0, 0.0], [0.0, 1.0]], pb.zCDP(1), phase_factor=1e9))
