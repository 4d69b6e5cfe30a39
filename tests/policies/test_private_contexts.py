"""Private contexts: nothing that others see may move before a release, whatever a context was."""

from __future__ import annotations

import json
import math
import re
import sqlite3
import traceback
from contextlib import closing
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import private_bandits as pb
from private_bandits.agent import bandit_of
from private_bandits.budget import NoiseKind
from private_bandits.errors import AgentFileInvalid, InvalidInput, NoiseFailed, PolicyFailed
from private_bandits.mechanism.noise import ExactNoise, Mechanism
from private_bandits.policies import Policy
from private_bandits.policies.contextual import STEPS
from private_bandits.policies.private_contexts import MomentsState


class Failing(ExactNoise):
    def calibrate(self, *arguments: object) -> Mechanism:
        raise NoiseFailed("the noise could not be drawn: nothing was released and nothing was changed")


BOTH = (pb.ShariffSheffet, pb.AdaCOFULPrivate)


def table(step: int, rows: int = 3, dimension: int = 2) -> np.ndarray[Any, np.dtype[np.float64]]:
    found = np.random.default_rng(step).normal(size=(rows, dimension))
    return np.asarray(found / np.linalg.norm(found, axis=1, keepdims=True))


OTHER_TABLES = {
    "zero": np.zeros((3, 2)),
    "turned": -table(0),
    "long": 1e6 * table(1),
    "more rows": table(2, rows=9),
    "huge": np.full((3, 2), 1e150),
}


LENGTHS = {"paper": [2, 2, 4, 8, 16], "tight": [2, 1, 2, 2, 4, 6, 8, 12]}


@pytest.mark.parametrize("variant", pb.AdaCOFULPrivate.variants)
@pytest.mark.parametrize("name", OTHER_TABLES)
def test_ends_of_episodes_and_all_that_others_see_stay_when_an_unreleased_context_changes(
    name: str, variant: Any
) -> None:
    """Also where the changed person's reward never comes."""
    for late in (False, True):
        worlds = []
        for changed in (None, OTHER_TABLES[name]):
            policy = pb.AdaCOFULPrivate(dimension=2, budget=pb.zCDP(0.5), horizon=1000, variant=variant)
            agent = pb.Agent(policy, (-1, 1), seed=3)
            shown: list[Any] = []
            for step in range(50):
                decision = agent.ask(actions=table(step) if step != 41 or changed is None else changed)
                if step != 41:  # the person's own recommendation is no one else's
                    shown.append(decision[1:])
                if step != 41 or not late:
                    agent.tell(decision, math.sin(step))
                shown.append(
                    ([row.to_dict() for row in agent.ledger], agent.learned, str(agent.guarantee()), repr(agent))
                )
            worlds.append(shown)
            assert [row.count for row in agent.ledger] == LENGTHS[variant]
        assert worlds[0] == worlds[1]


class Scripted(ExactNoise):
    """Hands out what a script says, whatever the sums are, and keeps the sums: two worlds see the same releases."""

    def __init__(self) -> None:
        self.seen: list[tuple[list[int], float, int]] = []

    def calibrate(self, kind: NoiseKind, level: float, sensitivity: int, dimension: int, number: int) -> Mechanism:
        found = super().calibrate(kind, level, sensitivity, dimension, number)
        said = np.random.default_rng(number).normal(scale=found.scale, size=dimension)

        def draw(totals: list[int]) -> list[int]:
            self.seen.append((totals, found.scale, sensitivity))
            return [round(x) for x in said.tolist()]

        return replace(found, draw=draw)


@pytest.mark.parametrize("reward_range", [(-1.0, 1.0), (0.0, 3.0)], ids=str)
@pytest.mark.parametrize("growth", [0.25, 0.5, 2.0])
def test_a_person_costs_no_more_than_the_budget_in_exact_fractions(
    growth: float, reward_range: tuple[float, float]
) -> None:
    """Table, action and reward of one person are replaced. Others see the same releases: what they do is the same."""
    rho, changed, steps = 0.3, 9, 60
    costs = []
    for other in (None, -table(9), table(9)[::-1], 1e6 * table(77), np.zeros((3, 2)), table(5, rows=9)):
        for reward in reward_range:
            noise = Scripted()
            policy = pb.AdaCOFULPrivate(dimension=2, budget=pb.zCDP(rho), growth=growth)
            agent = pb.Agent(policy, reward_range, noise=noise)
            for step in range(steps):
                offered = table(step) if step != changed or other is None else other
                own = reward if step == changed else reward_range[step % 2]
                agent.tell(agent.ask(actions=offered), own, played=0)
            costs.append(noise.seen)
    assert len(costs[0]) >= 3
    dearest = Fraction(0)
    for world in costs[1:]:
        cost = Fraction(0)
        for (sums, scale, _), (others, same, _) in zip(costs[0], world, strict=True):
            assert scale == same
            moved = sum((a - b) ** 2 for a, b in zip(sums, others, strict=True))
            cost += Fraction(moved) / (2 * Fraction(scale) ** 2)
        assert cost <= Fraction(rho)
        dearest = max(dearest, cost)
    assert dearest > Fraction(rho) / 4
    assert agent.ledger.total <= rho


@pytest.mark.parametrize("spread", [False, True], ids=["anywhere", "one in an episode"])
@pytest.mark.parametrize("visits", [(0, 1, 2), (4, 9, 10), (1, 3, 20), (7, 7, 7)], ids=str)
def test_all_visits_of_a_person_cost_no_more_than_the_budget_in_exact_fractions(
    visits: tuple[int, ...], spread: bool
) -> None:
    """Actions and rewards are the pair that moves sums furthest, at every visit: they meet in releases, and add up."""
    rho, share = 0.3, 0.5
    cosine = (1 - share) / (4 * share)  # 1/(2 kappa^2)
    worlds = {1.0: [1.0, 0.0], -1.0: [cosine, math.sqrt(1 - cosine**2)]}
    found = []
    for reward, own in worlds.items():
        noise = Scripted()
        policy = pb.AdaCOFULPrivate(dimension=2, budget=pb.zCDP(rho), matrix_share=share)
        agent = pb.Agent(
            policy, (-1, 1), noise=noise, max_rewards_per_person=3, unit="person", one_reward_per_episode=spread
        )
        for step in range(50):
            for _ in range(visits.count(step)):
                agent.tell(agent.ask(actions=[own], person="the same"), reward)
            agent.tell(agent.ask(actions=table(step), person=f"another {step}"), 0.5, played=0)
        found.append(noise.seen)
    cost = Fraction(0)
    for (sums, scale, _), (others, same, _) in zip(*found, strict=True):
        assert scale == same
        cost += Fraction(sum((a - b) ** 2 for a, b in zip(sums, others, strict=True))) / (2 * Fraction(scale) ** 2)
    assert Fraction(rho) / 6 < cost <= Fraction(rho)


@pytest.mark.parametrize("cls", BOTH)
def test_a_released_context_shows_without_noise(cls: type[pb.AdaCOFULPrivate]) -> None:
    """The test above can fail."""
    found = []
    for changed in (table(5), -table(5)[::-1]):
        agent = pb.Agent(cls(dimension=2, budget=pb.NoPrivacy()), (-1, 1))
        for step in range(16):
            agent.tell(agent.ask(actions=changed if step == 5 else table(step)), 0.5)
        found.append(agent.learned["released"])
    assert found[0] != found[1]


def test_long_contexts_are_shortened_without_a_word() -> None:
    for cls in BOTH:
        released = []
        for length in (1.0, 1e3):
            agent = pb.Agent(cls(dimension=2, budget=pb.NoPrivacy()), (-1, 1))
            for step in range(4):
                agent.tell(agent.ask(actions=length * table(step)), 1.0)
            released.append(agent.ledger[-1].values)
        assert np.allclose(released[0], released[1], atol=1e-5)
        with pytest.raises(InvalidInput, match="an error would tell"):
            cls(dimension=2, budget=pb.zCDP(1), long_actions="refuse")


def test_lengths_beyond_floating_point_are_shortened_too() -> None:
    policy = pb.AdaCOFULPrivate(dimension=2, budget=pb.zCDP(1))
    assert np.array_equal(policy.offer([[1e300, 0.0], [-1e300, 1e300]]), policy.offer([[1e9, 0.0], [-1e9, 1e9]]))


HUGE: dict[str, tuple[Any, list[list[float]]]] = {
    "whole": ([[10**400, 1]], [[1, 0]]),
    "negative": ([[0.5, -(10**400)], [0.3, 0.4]], [[0, -1], [0.3, 0.4]]),
    "both": ([[3 * 10**400, -4 * 10**400]], [[0.6, -0.8]]),
    "in the last row": ([[0.0, 0.0], [9e307, 0.0], [10**5000, 10**5000]], [[0, 0], [1, 0], [0.5**0.5, 0.5**0.5]]),
    "hardly too large": ([[3 * 10**308, 1.5e308]], [[0.8**0.5, 0.2**0.5]]),
    "of objects": (np.array([[10**400, True], [0.3, Fraction(2, 5)]], dtype=object), [[1, 0], [0.3, 0.4]]),
    "fractions": ([[Fraction(10**401, 3), Fraction(1, 10**400)]], [[1, 0]]),
    "decimals": ([[Decimal("-3e400"), Decimal("4e400")]], [[-0.6, 0.8]]),
    "a decimal beyond memory": ([[Decimal("1e999999999"), 10**400]], [[1, 0]]),
    "long floats": (np.array([["3e400", "4e400"]]).astype(np.longdouble), [[0.6, 0.8]]),
    "texts": ([["3e400", "-4e400"]], [[0.6, -0.8]]),
}


@pytest.mark.parametrize("norm", [1.0, 1e-100, 1e100])
@pytest.mark.parametrize(("actions", "expected"), HUGE.values(), ids=HUGE)
@pytest.mark.parametrize("cls", BOTH)
def test_numbers_that_no_float_can_hold_are_shortened_without_a_word(
    cls: Any, actions: Any, expected: list[list[float]], norm: float
) -> None:
    policy = cls(dimension=2, budget=pb.zCDP(1), context_norm=norm)
    found = policy.offer(actions)
    lengths = np.linalg.norm(expected, axis=1)
    assert (found.astype(object) ** 2).sum(axis=1).max() <= STEPS**2
    assert np.allclose(found[lengths >= 1] / STEPS, np.array(expected)[lengths >= 1], atol=3e-6)
    if norm == 1:
        assert np.allclose(found / STEPS, expected, atol=3e-6)
    agent = pb.Agent(policy, (-1, 1), seed=1)
    agent.tell(agent.ask(actions=actions), 1.0)


@pytest.mark.parametrize("cls", BOTH)
@pytest.mark.parametrize("other", [math.inf, -math.inf, math.nan, Decimal("inf"), "infinity", None, "x", 1j, [1.0]])
def test_what_is_no_finite_number_is_refused_beside_one_that_no_float_can_hold(cls: Any, other: Any) -> None:
    policy = cls(dimension=2, budget=pb.zCDP(1))
    for row in ([10**400, other], [other, 10**400]):
        with pytest.raises(InvalidInput, match=r"table of numbers|finite numbers"):
            policy.offer([[0.1, 0.2], row])
    for table in ([10**400, 1], [[10**400]], [[10**400, 1, 1]], [[10**400, 1], [1]]):
        with pytest.raises(InvalidInput, match="must be a table"):
            policy.offer(table)


def test_numbers_that_no_float_can_hold_are_refused_where_contexts_are_public_and_not_to_be_scaled() -> None:
    with pytest.raises(InvalidInput, match="larger than any float"):
        pb.AdaCOFUL(dimension=2, budget=pb.zCDP(1)).offer([[10**400, 1]])
    policy = pb.AdaCOFUL(dimension=2, budget=pb.zCDP(1), long_actions="scale")
    assert np.allclose(policy.offer([[10**400, -(10**400)]]) / policy.steps, [[0.5**0.5, -(0.5**0.5)]], atol=3e-5)


@pytest.mark.filterwarnings("ignore:overflow")
def test_lengths_beyond_floating_point_are_refused_where_contexts_are_public() -> None:
    with pytest.raises(InvalidInput, match="norm at most 1, got"):
        pb.AdaCOFUL(dimension=2, budget=pb.zCDP(1)).offer([[1e300, 1e300]])


def frames_of(error: BaseException) -> str:
    """What a crash reporter would log, without the frame of the test."""
    assert error.__traceback__ is not None
    report = traceback.TracebackException(type(error), error, error.__traceback__.tb_next, capture_locals=True)
    return "".join(report.format())


MARKED = np.array([[0.123456789, 0.2], [0.3, 0.4]])


def tells(text: str) -> bool:
    """Whether the first coordinate stands in a text, on its grid: as a number, not among the digits of a random id."""
    return re.search(rf"(?<![\w.]){int(MARKED[0, 0] * 2**20)}(\.0*)?(?![\w.])", text) is not None


@pytest.mark.parametrize("kind", [int, float])
def test_a_text_that_tells_is_known(kind: type) -> None:
    steps = np.trunc(MARKED * 2**20).astype(kind)
    row = steps[0].tolist()
    for shown in (steps, row, tuple(row), steps[0, 0], {"a": row[0]}, json.dumps(row), f"at {row[0]}, {row[1]}"):
        assert tells(repr(shown))
        assert tells(str(shown))
    for other in ("ab129453", "12945312", "0x129453f", "3.129453", "129453.5"):
        assert not tells(other)


class Unlucky(pb.AdaCOFULPrivate):
    """Fails when it learns."""

    def learn(self, state: MomentsState, release: pb.Release, step: int) -> None:
        raise ValueError("of a release")


def test_no_frame_of_a_failure_shows_a_context() -> None:
    unlucky = pb.Agent(Unlucky(dimension=2, budget=pb.zCDP(1)), (-1, 1))
    failing = pb.Agent(pb.ShariffSheffet(dimension=2, budget=pb.zCDP(1)), (-1, 1))
    bandit_of(failing).door.noise = Failing()
    for agent, first in ((unlucky, 1), (failing, 0)):
        decisions = [agent.ask(actions=MARKED) for _ in range(first + 1)]
        for decision in decisions[:-1]:
            agent.tell(decision, 1.0, played=0)
        with pytest.raises((PolicyFailed, NoiseFailed)) as caught:
            agent.tell(decisions[-1], 1.0, played=0)
        assert "in tell" in frames_of(caught.value)
        assert not tells(frames_of(caught.value))


@pytest.mark.parametrize("text", ["", "[" * 10**5, "[]", "[[1,2", "[1, 2]", '"x"', "[[1.5, 2]]", "null"])
def test_a_damaged_table_is_told_without_it(text: str, tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    with pb.Agent(pb.AdaCOFULPrivate(dimension=2, budget=pb.zCDP(1)), (-1, 1), path=path) as agent:
        agent.ask(actions=MARKED[:1])
        agent.ask(actions=MARKED[1:])
    with closing(sqlite3.connect(path, isolation_level=None)) as file:
        file.execute("UPDATE decisions SET offered = ? WHERE number = 2", (text,))
    with pytest.raises(AgentFileInvalid, match="a row of decisions does not have its checksum") as caught:
        pb.Agent.open(path)
    assert not tells(frames_of(caught.value))


@pytest.mark.parametrize("cls", BOTH)
def test_contexts_are_kept_as_private_state_only(cls: type[pb.AdaCOFULPrivate], tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    with pb.Agent(cls(dimension=2, budget=pb.zCDP(1)), (-1, 1), path=path) as agent:
        decision = agent.ask(actions=MARKED)
        agent.give_up(agent.ask(actions=MARKED))
        bandit = bandit_of(agent)
        opened = bandit.records.find(decision.id)
        assert opened is not None
        assert opened.offered is None
        assert bandit.records.offered_to(opened) is not None
        for shown in (bandit.public, bandit.private, opened, agent.open_decisions, agent.learned, agent.ledger, agent):
            assert not tells(repr(shown))
    with pb.Agent.open(path) as agent:
        records = bandit_of(agent).records
        opened = records.find(decision.id)
        assert opened is not None
        assert opened.offered is None
        offered = records.offered_to(opened)
        assert offered is not None
        assert np.array_equal(offered[0], np.trunc(MARKED[0] * 2**20).astype(int))
        agent.tell(decision, 1.0, played=1)
        assert records.offered_to(opened) is None
        assert agent.open_decisions == []
        with pytest.raises(InvalidInput, match="from 0 to 1"):
            agent.tell(agent.ask(actions=MARKED), 1.0, played=2)


def test_a_failed_draw_gives_the_context_back() -> None:
    agent = pb.Agent(pb.ShariffSheffet(dimension=2, budget=pb.zCDP(1)), (-1, 1))
    for step in range(3):
        agent.tell(agent.ask(actions=table(step)), 1.0)
    before = json.dumps(bandit_of(agent).private.episodes[0].dump())
    exact, bandit_of(agent).door.noise = bandit_of(agent).door.noise, Failing()
    decision = agent.ask(actions=table(3))
    with pytest.raises(NoiseFailed):
        agent.tell(decision, 1.0)
    assert agent.open_decisions == [decision]
    assert json.dumps(bandit_of(agent).private.episodes[0].dump()) == before
    bandit_of(agent).door.noise = exact
    agent.tell(decision, 1.0)
    assert list(agent.ledger[-1].episodes) == ["0/1-4"]


def test_the_guarantee_says_joint_and_names_the_context() -> None:
    agent = pb.Agent(pb.AdaCOFULPrivate(dimension=2, budget=pb.zCDP(0.5)), (-1, 1))
    words = str(agent.guarantee())
    assert "joint rho-zCDP" in words
    assert "one context and its reward" in words
    assert "shown to anyone else" in words
    people = pb.Agent(
        pb.AdaCOFULPrivate(dimension=2, budget=pb.zCDP(0.5)), (-1, 1), unit="person", max_rewards_per_person=2
    )
    assert "all contexts and rewards of one person (at most 2)" in str(people.guarantee())
    assert "Interactive" in str(pb.Agent(pb.AdaCOFUL(dimension=2, budget=pb.zCDP(0.5)), (-1, 1)).guarantee())


@pytest.mark.parametrize("cls", BOTH)
def test_intervals_hold_theta(cls: type[pb.AdaCOFULPrivate]) -> None:
    """delta = 0.2 and 20 agents: with widths that hold at all times 4 fail on average at most; 11 is 4 sigma more."""
    theta, failed = np.array([0.7, -0.6]), 0
    for seed in range(20):
        policy: Policy[Any] = cls(dimension=2, budget=pb.zCDP(2.0), horizon=100, delta=0.2)
        agent = pb.Agent(policy, (-1, 1), seed=seed)
        dice = np.random.default_rng(seed)
        wrong = False
        for step in range(100):
            offered = table(1000 * seed + step)
            decision = agent.ask(actions=offered)
            agent.tell(decision, 1.0 if 2 * dice.random() - 1 < theta @ offered[decision.action] else -1.0)
            state = bandit_of(agent).public.policy
            error = state.theta - theta
            wrong |= bool(math.sqrt(error @ np.linalg.inv(state.inverse) @ error) > state.width)
        failed += wrong
    assert failed <= 11


def test_d_200_works() -> None:
    for cls in (pb.AdaCOFULPrivate, pb.AdaCOFUL, pb.LinPrivShared):
        agent = pb.Agent(cls(dimension=200, budget=pb.zCDP(1.0)), (-1, 1))
        for step in range(3 if cls is not pb.AdaCOFULPrivate else 200):
            agent.tell(agent.ask(actions=0.9 * table(step, 2, 200)), 1.0)
        assert len(agent.ledger) >= 1
        assert agent.ledger.total <= 1.0


def test_nothing_changes_on_wrong_input() -> None:
    for cls in BOTH:
        agent = pb.Agent(cls(dimension=2, budget=pb.zCDP(1)), (-1, 1))
        for wrong in (None, [], [[1.0]], [[float("nan"), 0.0]], "text", [[1, 2, 3]], [[[1, 2]]]):
            with pytest.raises(InvalidInput):
                agent.ask(actions=wrong)
        assert bandit_of(agent).public.asked == 0
        assert agent.ask(actions=[[0.0, 0.0]]).action == 0
    with pytest.raises(InvalidInput, match="horizon"):
        pb.AdaCOFULPrivate(dimension=2, budget=pb.zCDP(1), horizon=0)
    with pytest.raises(InvalidInput, match="growth"):
        pb.AdaCOFULPrivate(dimension=2, budget=pb.zCDP(1), growth=0)
    with pytest.raises(InvalidInput, match="matrix_share"):
        pb.ShariffSheffet(dimension=2, budget=pb.zCDP(1), matrix_share=0.1)
