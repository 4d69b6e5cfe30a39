"""Decisions that are given up after a time: by a clock of the test, in memory and in a file."""

from __future__ import annotations

import random
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import private_bandits as pb
from private_bandits.agent import bandit_of
from private_bandits.errors import AgentFileInvalid, ClosedDecision, InvalidInput
from private_bandits.expiry import STEPS, AskedTimes, stored_times
from private_bandits.state import DecisionCounts

DAY = timedelta(days=1)
SECONDS = DAY.total_seconds()


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 1.7e9

    def __call__(self) -> float:
        return self.now


def new_agent(clock: Clock, path: Path | None = None, **options: Any) -> pb.Agent:
    policy = pb.AdaCIMED(arms=["A", "B"], budget=pb.zCDP(1.0))
    return pb.Agent(policy, path=path, give_up_after=DAY, clock=clock, **options)


@pytest.fixture(params=["memory", "file"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path | None:
    return tmp_path / "agent.db" if request.param == "file" else None


def again(agent: pb.Agent, place: Path | None, clock: Clock) -> pb.Agent:
    """The agent in its file, opened once more; in memory the same one."""
    if place is None:
        return agent
    agent.close()
    return pb.Agent.open(place, clock=clock)


def test_a_decision_is_given_up_once_its_time_has_passed_and_a_late_reward_is_refused(place: Path | None) -> None:
    clock = Clock()
    agent = new_agent(clock, place)
    first, *others = agent.ask(3)
    clock.now += SECONDS - 10
    later = agent.ask()
    agent.tell(others[0], 1.0)
    agent = again(agent, place, clock)
    assert agent.counts.given_up == 0
    clock.now += 10 + SECONDS / STEPS  # a decision is given up late by a ten-thousandth at most
    with pytest.raises(ClosedDecision, match="had not come within give_up_after"):
        agent.tell(first, 1.0)
    assert agent.counts == DecisionCounts(4, open=1, told=1, given_up=2, out_of_time=2, over_limit=0, dropped=0)
    agent = again(agent, place, clock)
    assert [decision.id for decision in agent.open_decisions] == [later.id]
    clock.now += 2 * SECONDS
    assert agent.open_decisions == []  # reading is enough
    assert bandit_of(agent).public.waiting == [0, 0]
    agent.close()


def test_a_clock_that_is_set_back_gives_nothing_up_and_order_stays(place: Path | None) -> None:
    clock = Clock()
    agent = new_agent(clock, place)
    agent.ask()
    clock.now -= 5 * SECONDS
    agent.ask()
    agent = again(agent, place, clock)
    clock.now += 5.5 * SECONDS
    assert agent.counts.open == 2
    clock.now += 0.6 * SECONDS
    assert agent.counts.out_of_time == 2
    agent.close()


@pytest.mark.parametrize("seed", range(6))
def test_random_calls_give_up_what_the_plainest_model_gives_up(seed: int, tmp_path: Path) -> None:
    chance, clock = random.Random(seed), Clock()
    place = tmp_path / "agent.db" if seed % 2 else None
    agent = new_agent(clock, place)
    asked_at: dict[str, float] = {}
    born: dict[str, float] = {}
    for _ in range(150):
        clock.now += chance.choice([0.0, 1.0, SECONDS / 7, SECONDS / 2])
        asked_at = {key: at for key, at in asked_at.items() if at + SECONDS > clock.now}
        still = {d.id for d in agent.open_decisions}
        assert set(asked_at) <= still
        for key in still - set(asked_at):  # late by less than a step
            assert born[key] + SECONDS * (1 + 1 / STEPS) >= clock.now
            asked_at[key] = born[key]
        deed = chance.randrange(4)
        if deed < 2:
            made = {d.id: clock.now for d in agent.ask(chance.randint(1, 4))}
            born |= made
            asked_at |= made
        elif asked_at:
            key = chance.choice(sorted(asked_at))
            del asked_at[key]
            agent.tell(key, 1.0) if deed == 2 else agent.give_up(key)
        if chance.random() < 0.1:
            agent = again(agent, place, clock)
        counts = agent.counts
        assert counts.asked == counts.open + counts.told + counts.given_up
    marks = bandit_of(agent).public.times
    assert marks is not None
    assert len(marks._marks) <= counts.open + 1 or marks.late(int(clock.now * 1e6)) is None
    agent.close()


def test_after_finish_open_decisions_stay_open(place: Path | None) -> None:
    clock = Clock()
    agent = new_agent(clock, place)
    agent.ask(2)
    agent.finish()
    clock.now += 3 * SECONDS
    assert agent.counts.open == 2
    agent = again(agent, place, clock)
    assert agent.counts.open == 2
    agent.close()


def test_settings_hold_the_time_and_a_file_brings_it_back(tmp_path: Path) -> None:
    agent = new_agent(Clock(), tmp_path / "agent.db", max_rewards_per_person=2)
    assert agent.settings["give_up_after"] == DAY
    agent.close()
    with pb.Agent.open(tmp_path / "agent.db") as agent:
        assert agent.settings["give_up_after"] == DAY
        assert agent.ledger.verify().ok


@pytest.mark.parametrize("given", [timedelta(0), timedelta(seconds=-1), timedelta(days=10**6), 0, "1 day", 1.5])
def test_times_that_are_none_are_refused(given: Any) -> None:
    with pytest.raises(InvalidInput, match="give_up_after"):
        pb.Agent(pb.AdaCUCB(2, pb.zCDP(1.0)), give_up_after=given)


def test_marks_stay_few_however_many_decisions_are_made() -> None:
    times = AskedTimes(10**6)
    for number in range(1, 30_001):
        times.note(number, number * 10)
    assert len(times._marks) <= 30_000 * 10 / (10**6 / STEPS) + 1
    assert times.late(10**6 + 99) is None
    found = times.late(10**6 + 250)
    assert found == (200, 20)
    times.drop(found)
    assert times.handled == 20


def test_a_time_is_noted_once_for_decisions_of_one_moment_and_never_too_early() -> None:
    times = AskedTimes(10**8)
    for number, now in enumerate((5, 10_000, 10_001, 19_999), 1):
        assert times.note(number, now)[0] >= now
    assert list(times._marks) == [(10_000, 2), (20_000, 4)]


@pytest.mark.parametrize(
    ("after", "rows"),
    [(None, []), (5, None), (5, [(1, 1), (1, 2)]), (5, [(1, 2), (2, 2)]), (5, [(1, 9)]), (5, [(1, 0)])],
)
def test_stored_times_that_do_not_fit_are_refused(after: int | None, rows: Any) -> None:
    with pytest.raises(AgentFileInvalid, match="damaged"):
        stored_times(after, rows, oldest=1, asked=8)
