"""The statement: it says what the agent says, in numbers that add up, whatever the trial is."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

import private_bandits as pb
from private_bandits.agent import bandit_of
from private_bandits.errors import InvalidInput, PolicyFailed
from private_bandits.guarantee import percent
from private_bandits.policies import POLICIES, Policy
from private_bandits.policies.base import Combination
from private_bandits.public_view import PublicView
from private_bandits.statement import Statement, statement_of
from private_bandits.statement.facts import facts_of
from private_bandits.statement.numbers import Figures
from private_bandits.statement.picture import Scale, arm_rows
from private_bandits.statement.text import WIDTH
from private_bandits.testing import offered
from tests.support import ONE_OF_EACH_NOISE, OTHER_BUDGETS, policy_id

WHEN = "2026-01-31 12:00 UTC"


def play(agent: pb.Agent, people: int) -> None:
    person: dict[str, Any] = {}
    for step in range(people):
        if agent.settings["max_rewards_per_person"]:
            person = {"person": f"person {step % 40}"}
        decision = agent.ask(actions=offered(agent.policy, step), **person)
        if step % 10 == 3:
            agent.give_up(decision)
        elif step % 10 != 7:
            agent.tell(decision, float(step % 3 == 0))


def one_line(statement: Statement) -> str:
    """The text without its line breaks."""
    return " ".join(statement.text.split())


def check(agent: pb.Agent, statement: Statement) -> None:
    """A statement says what the agent says, is 80 columns wide, and is plain data."""
    text, data = one_line(statement), statement.to_dict()
    assert max(map(cell_len, statement.text.split("\n"))) <= WIDTH
    assert json.loads(json.dumps(data, allow_nan=False)) == json.loads(json.dumps(data))
    counts, ledger, promised = agent.counts, agent.ledger, agent.guarantee()
    assert data["counts"].items() >= vars(counts).items()
    assert f"= {counts.asked:,})" in text
    assert data["ledger"]["head"] == ledger.head
    assert f"the head of this statement, {ledger.head}." in text
    assert f"before the first participant. It should be {data['ledger']['first_head']}." in text
    assert not re.search(r" (token|for people) ", text[text.index("For specialists: settings") :])
    assert data["guarantee"] == promised.to_dict()
    assert f"right at most {percent(promised.guessed_right)[:-1]} times in 100" in text or not promised.private
    assert ("PROMISES NO PRIVACY" in text) is not promised.private
    words = agent.policy.in_words
    assert (words if agent.settings["control"] is None else words.replace("verybody is", "verybody else is")) in text
    figures = Figures(bandit_of(agent).settings.reward_range)
    for found, shown in zip(agent.estimates(0.1), data["estimates"], strict=True):
        assert shown == found._asdict()
        if found.mean is not None:
            row = f"{found.arm} {found.rewards:,} {figures.near(found.mean)} {figures.interval(found.low, found.high)}"
            assert row in text.replace(" (best)", "").replace(" (control)", "")
    if agent.policy.arm_names:
        winner = agent.verdict(0.1).winner
        assert data["verdict"]["winner"] == winner
        assert (f"{winner} is the best arm." in text) or (winner is None and "No arm can be called the best" in text)
    waiting = sum(episode.count for episode in bandit_of(agent).private.episodes.values())
    assert data["counts"]["unreleased"] == waiting
    assert data["counts"]["released"] == counts.told - waiting == sum(row.count for row in ledger)


@pytest.mark.parametrize("policy", [p for p in ONE_OF_EACH_NOISE if p.budget.noise != "none"], ids=policy_id)
def test_every_policy_has_a_statement_at_every_time(policy: Policy[Any]) -> None:
    agent = pb.Agent(policy)
    play(agent, 80)
    early, same = (agent.statement(0.1, written=WHEN) for _ in range(2))
    check(agent, early)
    play(agent, 40)
    agent.finish()
    assert same.text == early.text  # which was made before the trial went on
    statement = agent.statement(0.1, written=WHEN)
    assert statement.text != early.text
    check(agent, statement)
    assert "closed" in statement.text
    agent.close()
    assert agent.statement(0.1, written=WHEN).text == statement.text
    assert type(policy).in_words != Policy.in_words


@pytest.mark.parametrize("policy", [p for p in OTHER_BUDGETS if p.name in ("adac-imed", "adap-ucb")], ids=policy_id)
@pytest.mark.parametrize("unit", ["reward", "person"])
def test_other_budgets_and_limits_for_people(policy: Policy[Any], unit: Any) -> None:
    agent = pb.Agent(policy, max_rewards_per_person=2, unit=unit, one_reward_per_episode=True)
    play(agent, 100)
    assert agent.counts.over_limit > 0
    statement = agent.statement(0.1)
    check(agent, statement)
    words = "What is protected is everything that one person tells."
    assert (words in one_line(statement)) is (unit == "person")


def test_a_trial_in_words() -> None:
    agent = pb.Agent(
        pb.AdaCIMED(arms=["placebo", "drug"], budget=pb.zCDP(0.1)),
        reward_range=(0, 10),
        control="placebo",
        max_rewards_per_person=3,
        give_up_after=timedelta(days=14),
        plan={"title": "Pain", "people": 100, "stop": [{"delta": 0.05}], "seen": None},
    )
    begin = agent.statement()
    text = one_line(begin)
    for words in (
        "2 arms are compared: placebo and drug.",
        "First a coin that nobody can foresee is tossed. With a probability of 20 in 100 the participant is given the "
        "control arm, placebo.",
        "Each outcome is a number from 0 to 10; more is better.",
        "At most 3 outcomes of one person are taken. An outcome that has not come within 14 days is given up.",
        "title Pain people 100 stop, 1, delta 0.05 seen null",
        "No outcome was told yet.",
        "Nothing was released yet",
        "Their best guess is right at most 59 times in 100. A coin is right 50 times in 100.",
        "The promise is kept for however long the trial runs",
        "The program does not hide that somebody took part, when, what they were given, whether an outcome was "
        "told, or when the trial was closed; this page names nobody. All of these, and the range of outcomes, have to "
        "be decided without having seen the outcome. Otherwise the promise fails.",
        "A guess about all of them together is right at most 75 times in 100.",
        "epsilon = 2.142, delta = 1e-06",
        f"head at the start {agent.ledger.head}",
    ):
        assert words in text, words
    assert "spent" not in text
    agent.tell(agent.ask(person="x"), 1.0)
    assert "one outcome waits for the next release" in one_line(agent.statement())
    assert agent.statement().to_dict()["ledger"]["first_head"] == begin.to_dict()["ledger"]["head"]
    agent.finish()
    assert "1 is in releases: all of them." in one_line(agent.statement())
    assert repr(begin).startswith("Statement(20")


def test_a_method_that_forgets_says_so() -> None:
    agent = pb.Agent(pb.AdaCUCB(2, pb.zCDP(1.0)))
    play(agent, 100)
    used, released = sum(e.rewards for e in agent.estimates()), sum(row.count for row in agent.ledger)
    words = f"Of the {released} outcomes that were released, {used} are in these means. The other {released - used} are"
    assert words in one_line(agent.statement())


@pytest.mark.parametrize("options", [{"seed": 3}, {}])
def test_what_promises_nothing_says_so_loudly(options: dict[str, Any]) -> None:
    agent = pb.Agent(pb.AdaCIMED(2, pb.zCDP(1.0) if options else pb.NoPrivacy()), **options)
    play(agent, 50)
    statement = agent.statement()
    assert statement.text.split("\n")[4].startswith("! THIS TRIAL PROMISES NO PRIVACY")
    assert "times in 100" not in statement.text
    check(agent, agent.statement(0.1))
    assert 'class="mark"' in statement.html()


@dataclass(frozen=True)
class Fails(pb.AdaCUCB):
    """Fails at its third release."""

    name = "fails-third-for-statements"

    def learn(self, state: Any, release: pb.Release, step: int) -> None:
        if release.number == 3:
            raise ArithmeticError("no more")
        super().learn(state, release, step)


def test_a_method_that_failed() -> None:
    agent = pb.Agent(Fails(2, pb.zCDP(1.0)))
    with pytest.raises(PolicyFailed):
        play(agent, 30)
    statement = agent.statement()
    assert "! THE METHOD FAILED. Fails failed at release 3" in statement.text
    assert (statement.to_dict()["estimates"], statement.to_dict()["verdict"]) == ([], None)
    assert "right at most" in statement.text
    assert statement.html()


STRANGE = ["<script>alert(1)</script>", "שלום", "薬" * 50, "a\nb\x1b[31m", "x" * 200, "ok\ud800", "\u202eevil", "&amp;"]


@pytest.mark.parametrize("bounds", [(0, 1), (-5, 5), (1e6, 1e6 + 1e-6), (0, 1e100), (-1e-100, 0), (0, 3e7)])
def test_strange_names_and_ranges(bounds: tuple[float, float]) -> None:
    agent = pb.Agent(pb.AdaCIMED(arms=STRANGE, budget=pb.zCDP(5.0)), reward_range=bounds, plan=["\x00", "é"])
    play(agent, 400)
    statement = agent.statement()
    assert max(map(cell_len, statement.text.split("\n"))) <= WIDTH
    assert all(character.isprintable() or character in "\n\u2068\u2069" for character in statement.text)
    assert statement.text.encode()
    page = statement.html()
    assert page.encode()
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert "&amp;amp;" in page
    assert page.count("<circle") == sum(found.mean is not None for found in agent.estimates()) > 3


def test_many_arms() -> None:
    agent = pb.Agent(pb.AdaCUCB(30, pb.zCDP(1.0)))
    play(agent, 200)
    statement = agent.statement(0.1)
    check(agent, statement)
    assert statement.to_dict()["differences"] == []
    many = pb.Agent(pb.AdaCUCB(300, pb.zCDP(1.0)))
    play(many, 380)
    page = many.statement().html()
    assert page.count('<th scope="row">') == 200
    assert "the 200 arms of the largest means, of 300" in page


@pytest.mark.parametrize("bounds", [(0, 1), (-5, 5), (1e6, 1e6 + 1e-3), (0, 1e100), (0, 3e7)])
def test_the_picture_is_to_scale(bounds: tuple[float, float]) -> None:
    agent = pb.Agent(pb.AdaCUCB(3, pb.zCDP(5.0)), reward_range=bounds)
    low, high = bounds
    for step in range(900):
        agent.tell(agent.ask(), low + (high - low) * float(step % 3 == 0))
    facts = facts_of(agent._view(), 0.1, WHEN)
    scale = Scale(facts)
    places, values = [], []
    for row, found in zip(arm_rows(facts, scale), facts.estimates, strict=True):
        places += [float(place[:-1]) for place in (row.left, row.middle, row.right)]
        values += [found.low, found.mean, found.high]
    numbered = [mark for mark in scale.marks if mark.text]
    assert 2 <= len(numbered) <= 7
    places += [float(mark.at[:-1]) for mark in numbered]
    values += [float(mark.text.replace(",", "")) for mark in numbered]
    parts = (np.array(values, dtype=float) - low) / (high - low)
    slope, start = np.polyfit(parts, places, 1)
    assert slope > 80
    assert np.abs(start + slope * parts - places).max() < 0.2  # per cent of the width
    assert min(places) >= 0
    assert max(places) <= 100


def test_deltas_that_are_none_are_refused() -> None:
    for policy in (pb.AdaCUCB(2, pb.zCDP(1.0)), pb.AdaCOFUL(2, pb.zCDP(1.0))):
        with pytest.raises(InvalidInput, match="delta"):
            pb.Agent(policy).statement(delta=2.0)


def test_two_worlds_that_differ_in_unreleased_outcomes_have_one_statement() -> None:
    pages = []
    for world in (0.0, 0.7371946):
        agent = pb.Agent(pb.AdaCIMED(arms=["A", "B", "C"], budget=pb.zCDP(0.1)), seed=5)
        while len(agent.ledger) < 3:
            agent.tell(agent.ask(), 1.0)
        agent.tell(agent.ask(), world)
        statement = agent.statement(written=WHEN)
        shown = "".join([statement.text, statement.html(), json.dumps(statement.to_dict()), str(agent._repr_html_())])
        assert "7371946" not in shown
        ledger = statement.to_dict()["ledger"]
        for random in (bandit_of(agent).settings.token, ledger["head"], ledger["first_head"]):
            shown = shown.replace(random, "")
        pages.append(shown)
    assert pages[0] == pages[1]


# Counts add up, whatever happens.

ACTS = st.lists(
    st.sampled_from(["ask", "ask", "ask", "tell", "tell", "played", "give_up", "many", "finish", "again"]),
    max_size=60,
)


def act_on(agent: pb.Agent, act: str, number: int) -> None:
    waiting = agent.open_decisions
    if act == "ask":
        agent.ask(person=f"p{number % 4}")
    elif act == "many":
        agent.tell_many([(decision, 1.0) for decision in waiting[:5]])
    elif act == "finish" and number > 40:
        agent.finish()
    elif waiting and act == "give_up":
        agent.give_up(waiting[0])
    elif waiting and act in ("tell", "played"):
        agent.tell(waiting[-1], 0.5, played=1 if act == "played" else None)


@settings(max_examples=25, deadline=None)
@given(ACTS, st.sampled_from([1, 2]), st.booleans())
def test_counts_add_up_after_any_sequence(
    tmp_path_factory: pytest.TempPathFactory, acts: list[str], limit: int, phases: bool
) -> None:
    path = tmp_path_factory.mktemp("acts") / "agent.db"
    policy: Any = pb.AdaCIMED(3, pb.zCDP(5.0))
    if phases:
        policy = pb.AdaCHalving(4, pb.zCDP(5.0), rewards=16)
    agent = pb.Agent(policy, path=path, max_rewards_per_person=limit, give_up_after=9)
    for number, act in enumerate(acts):
        if act == "again":
            agent.close()
            agent = pb.Agent.open(path)
        elif not agent.finished:
            act_on(agent, act, number)
    check(agent, agent.statement(0.1))
    assert agent.statement(0.1, written=WHEN).text == statement_of(seen(agent), 0.1, WHEN).text
    agent.close()


def seen(agent: pb.Agent) -> PublicView:
    """What an agent shows, after a way through plain data."""
    return PublicView.from_dict(json.loads(json.dumps(agent._view().to_dict())))


WORKER = """
import sys
import private_bandits as pb
agent = pb.Agent(pb.AdaCIMED(3, pb.zCDP(5.0)), path=sys.argv[1], give_up_after=50)
for step in range(10**6):
    decision = agent.ask()
    if step % 3:
        agent.tell(decision, float(step % 2))
    if step == 200:
        print("on", flush=True)
"""


def test_counts_add_up_after_a_kill(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    with subprocess.Popen([sys.executable, "-c", WORKER, str(path)], stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "on\n"
        os.kill(worker.pid, signal.SIGKILL)
    with pb.Agent.open(path) as agent:
        assert agent.counts.asked > 200
        assert agent.counts.out_of_time > 0
        check(agent, agent.statement(0.1))


def test_outcomes_that_an_earlier_version_closed_are_a_group_of_their_own() -> None:
    agent = pb.Agent(pb.AdaCUCB(2, pb.zCDP(1.0)))
    play(agent, 20)
    view = agent._view()
    old = replace(view, counts=replace(view.counts, told=view.counts.told - 4, unknown=4))
    text = one_line(statement_of(old, 0.1, WHEN))
    assert "4 unknown The outcome was told, or given up" in text
    assert "+ 4 = 20)" in text


def test_a_policy_of_ones_own_is_said_to_be_one() -> None:
    @dataclass(frozen=True)
    class Own(pb.AdaCUCB):
        name = "own-for-statements"
        in_words = "The arm is given that was given longest ago."

        def combination(self, *_: Any) -> Combination | None:
            return None

    assert "The arm is given that was given longest ago." in one_line(pb.Agent(Own(2, pb.zCDP(1.0))).statement())


@pytest.mark.parametrize("limit", [None, 1, 3])
@pytest.mark.parametrize("linear", [False, True])
def test_the_verdict_says_what_several_outcomes_of_a_person_do_to_it(limit: int | None, linear: bool) -> None:
    budget = pb.zCDP(1.0)
    policy: Any = pb.AdaCGOPE(np.eye(2), budget) if linear else pb.AdaCIMED(2, budget)
    text = one_line(pb.Agent(policy, max_rewards_per_person=limit).statement())
    assert ("Up to 3 outcomes of one person were taken. If they are alike," in text) is (limit == 3)
    assert ("How many outcomes of one person are taken was not limited." in text) is (limit is None)
    assert ("are alike, the first condition is broken, and the verdict is too sure." in text) is (
        limit != 1 and not linear
    )
    assert ("are alike, the verdict is too sure." in text) is (limit != 1 and linear)


def test_earlier_outcomes_are_spoken_of_only_where_the_policy_takes_a_log() -> None:
    agent = pb.Agent(pb.AdaCIMED(2, pb.zCDP(1.0)))
    agent.warm_start([(0, 1.0), (1, 0.0)])
    text = one_line(agent.statement())
    assert "If outcomes from before the trial were put in, each of them counts as a decision too." in text
    assert "- No earlier outcomes were put in, or how many was not chosen by looking at them." in text
    without = one_line(pb.Agent(pb.AdaCHalving(2, pb.zCDP(1.0), rewards=100)).statement())
    assert "before the trial were put in" not in without
    assert "earlier outcomes" not in without
    assert "- Who is given which arm does not depend on the person." in without


@pytest.mark.parametrize("delta", [0.05, 0.1])
def test_a_delta_that_is_not_the_policys_own_is_told(delta: float) -> None:
    text = one_line(pb.Agent(pb.AdaCTopTwo(2, pb.zCDP(1.0), delta=0.05)).statement(delta))
    assert ("The policy was set up with 5 in 100." in text) is (delta != 0.05)


def test_differences_begin_with_the_winner_and_the_better_arm() -> None:
    agent = pb.Agent(pb.AdaCIMED(arms=["A", "B", "C"], budget=pb.zCDP(50.0)))
    for step in range(3000):
        agent.tell(agent.ask(), 0.5 * (step % 3), played=step % 3)
    verdict = agent.verdict()
    assert verdict.winner == "C"  # the noise of 1000 rewards at rho 50 moves no mean by a tenth
    assert verdict.difference("C", "A") == verdict.difference("A", "C").reversed
    text = one_line(agent.statement())
    places = []
    for first, second in (("C", "A"), ("C", "B"), ("B", "A")):
        found, figures = verdict.difference(first, second), Figures(bandit_of(agent).settings.reward_range)
        assert found.mean is not None
        by = f"{first} better by {figures.near(found.mean)} ({figures.interval(found.low, found.high)})"
        places.append(text.index(f"{first} and {second} {by}"))
    assert places == sorted(places)
    assert "The mean need not be in the middle of its interval" in text


@pytest.mark.parametrize("policy", ["adac-top-two", "dp-se"])
def test_beside_a_coin_nobody_reads_that_everybody_is_given_one_arm(policy: str) -> None:
    budget: Any = pb.PureDP(1.0) if policy == "dp-se" else pb.zCDP(1.0)
    chosen: Any = POLICIES[policy]
    alone, beside = (one_line(pb.Agent(chosen(2, budget), control=control).statement()) for control in (None, 0))
    assert "everybody is given that one." in alone
    assert "The coin goes on" not in alone
    assert "everybody else is given that one. The coin goes on until the trial stops." in beside
