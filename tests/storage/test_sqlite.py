"""State on disk: resumed as it was, owned by one agent at a time, whole after every fault."""

from __future__ import annotations

import contextlib
import copy
import gc
import itertools
import json
import os
import pickle
import random
import shutil
import sqlite3
import stat
import subprocess
import sys
import textwrap
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np
import pytest

import private_bandits as pb
from private_bandits import policies
from private_bandits.agent import bandit_of
from private_bandits.errors import (
    AgentBusy,
    AgentClosed,
    AgentFileExists,
    AgentFileInvalid,
    AgentFileMissing,
    ClosedDecision,
    NoiseFailed,
    PrivateBanditsError,
    UnknownDecision,
)
from private_bandits.mechanism.noise import Mechanism
from private_bandits.storage.formats import FORMAT
from private_bandits.storage.sqlite import SqliteStore
from tests.support import EXAMPLE_BUDGETS


def plain_policy(n_arms: int = 2) -> pb.AdaCUCB:
    """Without noise, so that releases show exact sums."""
    return pb.AdaCUCB(n_arms=n_arms, budget=pb.NoPrivacy())


def log_of(path: Path) -> Path:
    """SQLite's write-ahead log."""
    return path.with_name(path.name + "-wal")


def connection_of(agent: pb.Agent) -> sqlite3.Connection:
    """The agent's own connection, to look at its file or to make it fail."""
    store = bandit_of(agent).records
    assert isinstance(store, SqliteStore)
    return store.connection


def number_of(decision: pb.Decision) -> int:
    """The part of an id that does not depend on the agent or on how often its file was opened."""
    return int(decision.id.rpartition("-")[2])


def told_to(agent: pb.Agent) -> tuple[int, float]:
    """How many rewards an agent without noise holds, released or not, and their exact sum; range (0, 1)."""
    episodes = bandit_of(agent).private.episodes.values()
    count = sum(row.count for row in agent.ledger) + sum(e.count for e in episodes)
    total = sum(row.values[0] for row in agent.ledger) + sum(e.dump()["totals"][0] / e.grid.steps for e in episodes)
    return count, total


def run_python(script: str, *arguments: object) -> str:
    """What a script prints in a process of its own, which has to end well and write no error."""
    command = [sys.executable, "-c", textwrap.dedent(script), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


OPEN_ELSEWHERE = """
    import sys
    import private_bandits as pb
    try:
        pb.Agent.open(sys.argv[1])
    except Exception as error:
        print(type(error).__name__)
    else:
        print("opened")
"""


# Resuming.


class Seen(NamedTuple):
    """Everything that an agent shows, and the sums that it does not show; equal for equal histories."""

    open: list[tuple[int, int, str]]
    ledger: tuple[pb.Release, ...]
    estimates: list[pb.Estimate]
    guarantee: pb.Guarantee
    text: str
    sums: dict[int, dict[str, Any]]
    waiting: list[int]

    @classmethod
    def of(cls, agent: pb.Agent) -> Seen:
        return cls(
            open=[(number_of(d), d.action, d.arm) for d in agent.open_decisions],
            ledger=agent.ledger.rows,
            estimates=agent.estimates(),
            guarantee=agent.guarantee(),
            text=repr(agent),
            sums={key: e.dump() for key, e in bandit_of(agent).private.episodes.items() if e.count or e.number > 1},
            waiting=list(bandit_of(agent).public.waiting),
        )


class Script:
    """The same random calls for any number of agents: a call names decisions by their number."""

    def __init__(self, seed: int, arms: Sequence[str], bounds: tuple[float, float]) -> None:
        self.random = random.Random(seed)
        self.arms = arms
        self.bounds = bounds
        self.handed_out: list[int] = []

    def next_call(self, open_numbers: Sequence[int]) -> Callable[[dict[int, str], pb.Agent], Any]:
        """A call, for an agent whose decisions have these ids."""
        kinds = ["ask", "ask many", "tell", "tell many", "give up", "tell twice"]
        kind = self.random.choices(kinds, [30, 8, 40, 10, 6, 10])[0]
        person = f"person {self.random.randrange(12)}"
        if kind == "ask" or not open_numbers:
            return lambda ids, agent: agent.ask(person=person)
        if kind == "ask many":
            n = self.random.randint(1, 9)
            return lambda ids, agent: agent.ask(n, person=person)
        if kind == "tell many":
            some = self.random.sample(open_numbers, self.random.randint(1, len(open_numbers)))
            batch = [(number, *self.outcome()) for number in some]
            return lambda ids, agent: agent.tell_many([(ids[number], *outcome) for number, *outcome in batch])
        # Late, in any order; now and then for a decision that is closed already.
        number = self.random.choice(self.handed_out if kind == "tell twice" else open_numbers)
        if kind == "give up":
            return lambda ids, agent: agent.give_up(ids[number])
        reward, played = self.outcome()
        return lambda ids, agent: agent.tell(ids[number], reward, played=played)

    def outcome(self) -> tuple[float, int | str | None]:
        """A reward, sometimes outside the range, and what was played: as asked, by index or by name."""
        low, high = self.bounds
        played = self.random.choice([None, None, self.random.randrange(len(self.arms)), self.random.choice(self.arms)])
        return self.random.uniform(low - 0.1, high + 0.1), played


class Player:
    """An agent under a script, with the ids that it gave to numbers."""

    def __init__(self, agent: pb.Agent) -> None:
        self.agent = agent
        self.ids: dict[int, str] = {}

    def answer(self, call: Callable[[dict[int, str], pb.Agent], Any]) -> Any:
        """What the call gave, or the kind of error, in terms that all agents share."""
        try:
            given = call(self.ids, self.agent)
        except PrivateBanditsError as error:
            return type(error)
        decisions = given if isinstance(given, list) else [given] if given is not None else []
        self.ids |= {number_of(d): d.id for d in decisions}
        return [(number_of(d), d.action, d.arm) for d in decisions]


POLICIES = {
    "zCDP": pb.AdaCUCB(n_arms=4, budget=pb.zCDP(80.0)),
    "no privacy": pb.AdaCUCB(arms=["a", "b", "c"], budget=pb.NoPrivacy(), beta=1.0),
    "ApproxDP": pb.AdaCUCB(n_arms=2, budget=pb.ApproxDP(30.0, 1e-6)),
    "pure DP": pb.AdaPUCB(n_arms=3, budget=pb.PureDP(1.0)),
}
OPTIONS: list[dict[str, Any]] = [
    {},
    {"max_rewards_per_person": 2},
    {"max_rewards_per_person": 3, "unit": "person"},
    {"give_up_after": 6},
    {"give_up_after": 3, "max_rewards_per_person": 4},
]


@pytest.mark.parametrize("options", OPTIONS, ids=lambda o: " ".join(o) or "defaults")
@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.full)])
def test_an_agent_closed_and_resumed_at_any_point_goes_on_as_if_it_never_had_been(
    seed: int, policy: pb.AdaCUCB | pb.AdaPUCB, options: dict[str, Any], tmp_path: Path
) -> None:
    bounds = (-1.0, 2.0)
    path = tmp_path / "resumed.db"
    steady = [
        Player(pb.Agent(policy, bounds, seed=seed, **options)),
        Player(pb.Agent(policy, bounds, path=tmp_path / "steady.db", seed=seed, **options)),
    ]
    resumed = Player(pb.Agent(policy, bounds, path=path, seed=seed, **options))
    script = Script(seed, policy.arm_names, bounds)
    resumes = 0
    refused = 0
    for _ in range(150):
        call = script.next_call([number_of(d) for d in steady[0].agent.open_decisions])
        answers = [player.answer(call) for player in (*steady, resumed)]
        assert answers[0] == answers[1] == answers[2]
        refused += answers[0] is ClosedDecision
        script.handed_out = sorted(resumed.ids)
        if script.random.random() < 0.2:
            resumed.agent.close()
            resumed.agent = pb.Agent.open(path)
            resumes += 1
        assert Seen.of(steady[0].agent) == Seen.of(steady[1].agent) == Seen.of(resumed.agent)
    assert resumes >= 10
    assert refused >= 1
    assert len(resumed.agent.ledger) >= 2 * len(policy.arm_names)
    for player in (*steady, resumed):
        player.agent.close()


PERSONAL = [
    pb.AdaCUCB(3, pb.zCDP(0.3)),
    pb.TreeUCB(3, pb.zCDP(0.3), horizon=200),
    pb.AdaCGOPE(((0.9, 0.0), (-0.45, 0.8), (-0.4, -0.7)), pb.zCDP(0.3), phase_factor=1e-3),
    pb.AdaCOFUL(2, pb.zCDP(0.3), horizon=200),
    pb.AdaCOFUL(2, pb.zCDP(0.3), horizon=200, variant="paper"),
    pb.LinPrivShared(2, pb.zCDP(0.3), horizon=200),
    pb.ShariffSheffet(2, pb.zCDP(0.3), horizon=200),
    pb.AdaCOFULPrivate(2, pb.zCDP(0.3), horizon=200),
]


@pytest.mark.parametrize("policy", PERSONAL, ids=lambda policy: policy.name)
def test_widths_are_for_the_noise_of_a_persons_budget_after_a_restart_too(
    policy: policies.Policy[Any], tmp_path: Path
) -> None:
    path, chance = tmp_path / "agent.db", np.random.default_rng(3)
    with pb.Agent(policy, (-1, 1), path, max_rewards_per_person=6, unit="person", seed=1) as agent:
        for i in range(120):
            offers = chance.uniform(-0.7, 0.7, (3, 2)) if policy.setting == "contextual" else None
            agent.tell(agent.ask(actions=offers, person=str(i % 40)), float(chance.uniform(-1, 1)))
        assert len(agent.ledger) >= 3
        state = bandit_of(agent).public.policy
    with pb.Agent.open(path) as agent:
        for name, value in vars(state).items():
            if name not in ("room", "pending"):  # how much is left before the next look; what is summed already
                assert repr(vars(bandit_of(agent).public.policy)[name]) == repr(value), name


def test_the_first_phase_is_planned_for_the_noise_of_a_persons_budget() -> None:
    policy = pb.AdaCGOPE(((0.9, 0.0), (-0.45, 0.8), (-0.4, -0.7)), pb.zCDP(0.1))
    agent = pb.Agent(policy, (-1, 1), max_rewards_per_person=20, unit="person")
    assert agent.learned["plan"] == policy.with_budget(pb.zCDP(0.1 / 400)).plan(1, range(3))


def test_settings_survive_and_ids_of_earlier_lives_stay_valid(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    policy = pb.AdaCUCB(arms=["aspirin", "placebo"], budget=pb.zCDP(0.25), beta=2.0)
    decisions = []
    with pb.Agent(policy, (-2, 5), path=path, max_rewards_per_person=3, unit="person", give_up_after=50) as agent:
        settings = bandit_of(agent).settings
        decisions.append(agent.ask(person="a"))
    for life in range(3):
        with pb.Agent.open(path) as agent:
            assert bandit_of(agent).settings == settings
            assert agent.policy == policy
            assert agent.open_decisions == decisions
            decisions.append(agent.ask(person=f"person {life}"))
    assert [d.id.split("-")[1:] for d in decisions] == [["1", "1"], ["2", "2"], ["3", "3"], ["4", "4"]]
    with pb.Agent.open(path) as agent:
        agent.tell_many([(d.id, 1.0) for d in decisions])
        assert agent.open_decisions == []
        for decision in decisions:
            with pytest.raises(ClosedDecision):
                agent.tell(decision, 1.0)
    with pb.Agent.open(path) as agent:
        for decision in decisions:
            with pytest.raises(ClosedDecision):
                agent.tell(decision, 1.0)
        with pytest.raises(UnknownDecision):
            agent.tell(decisions[0].id + "0", 1.0)


def test_the_limit_per_person_outlives_the_process(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    pb.Agent(plain_policy(), path=path, max_rewards_per_person=3).close()
    for _ in range(5):
        with pb.Agent.open(path) as agent:
            agent.tell(agent.ask(person="ann"), 1.0)
    with pb.Agent.open(path) as agent:
        assert told_to(agent) == (3, 3.0)
        agent.tell(agent.ask(person="bob"), 1.0)
        assert told_to(agent) == (4, 4.0)


# One owner.


def test_a_second_opener_is_refused_in_the_same_process_and_in_another(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    link = tmp_path / "link.db"
    with pb.Agent(plain_policy(), path=path) as agent:
        link.symlink_to(path)
        for name in (path, link):
            with pytest.raises(AgentBusy, match="in use by another agent: close that one first"):
                pb.Agent.open(name)
            with pytest.raises(AgentBusy):
                pb.Agent(plain_policy(), path=name)
            assert run_python(OPEN_ELSEWHERE, name) == "AgentBusy\n"
        agent.tell(agent.ask(), 1.0)
        assert told_to(agent) == (1, 1.0)
    assert run_python(OPEN_ELSEWHERE, path) == "opened\n"


def test_a_second_opener_is_refused_after_a_backup_within_the_process_and_the_first_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    with pb.Agent(plain_policy(), path=path) as agent:
        agent.tell(agent.ask(), 1.0)
        shutil.copy(path, tmp_path / "backup.db")  # when it closes the file, the system drops SQLite's own locks
        assert run_python(OPEN_ELSEWHERE, path) == "AgentBusy\n"
        with pytest.raises(AgentBusy):
            pb.Agent.open(path)
        decision = agent.ask()
        agent.tell(decision, 0.5)
        late = agent.ask()
    with pb.Agent.open(path) as agent:
        assert told_to(agent) == (2, 1.5)
        assert agent.open_decisions == [late]


def test_other_sqlite_programs_are_kept_out_also_after_a_second_opener_was_refused_here(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    write = """
        import sqlite3, sys
        connection = sqlite3.connect(sys.argv[1], timeout=0)
        try:
            connection.execute("UPDATE agent SET asked = asked + 100")
        except sqlite3.OperationalError as error:
            print(error)
    """
    with pb.Agent(plain_policy(), path=path) as agent:
        agent.tell(agent.ask(), 1.0)
        assert run_python(write, path) == "database is locked\n"
        with pytest.raises(AgentBusy):
            pb.Agent.open(path)
        assert run_python(write, path) == "database is locked\n"
    with pb.Agent.open(path) as agent:
        assert number_of(agent.ask()) == 2


def test_a_closed_agent_frees_its_file_and_refuses_more(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    agent = pb.Agent(plain_policy(), path=path)
    decision = agent.ask()
    agent.tell(agent.ask(), 1.0)
    agent.close()
    agent.close()
    with pb.Agent.open(path) as resumed:
        calls: list[Callable[[], Any]] = [
            agent.ask,
            lambda: agent.ask(3),
            lambda: agent.tell(decision, 1.0),
            lambda: agent.tell_many([(decision, 1.0)]),
            lambda: agent.give_up(decision),
        ]
        for call in calls:
            with pytest.raises(AgentClosed, match=r"was closed: resume it with Agent\.open"):
                call()
        assert agent.ledger.rows == resumed.ledger.rows  # what was released stays readable
        assert resumed.open_decisions == [decision]


def test_an_agent_that_is_dropped_frees_its_file(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    agent = pb.Agent(plain_policy(), path=path)
    agent.tell(agent.ask(), 1.0)
    gone = weakref.ref(agent)
    del agent
    gc.collect()
    assert gone() is None
    assert run_python(OPEN_ELSEWHERE, path) == "opened\n"
    with pb.Agent.open(path) as resumed:
        assert told_to(resumed) == (1, 1.0)


def test_an_opener_that_was_refused_leaves_no_trace(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    with pb.Agent(plain_policy(), path=path) as agent:
        before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
        for _ in range(3):
            with pytest.raises(AgentBusy):
                pb.Agent.open(path)
        assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before
        assert agent.ask().id.split("-")[1] == "1"  # the generation


@pytest.mark.parametrize(
    "write",
    [lambda a, d: a.ask(), lambda a, d: a.tell(d, 1.0), lambda a, d: a.give_up(d)],
    ids=["ask", "tell", "give_up"],
)
def test_an_agent_ends_at_its_next_write_when_another_took_the_file_over(
    write: Callable[[pb.Agent, pb.Decision], Any], tmp_path: Path
) -> None:
    path = tmp_path / "agent.db"
    agent = pb.Agent(plain_policy(), path=path)
    agent.tell(agent.ask(), 1.0)
    decision = agent.ask()
    connection_of(agent).execute("UPDATE agent SET generation = generation + 1")
    with pytest.raises(AgentClosed, match="taken over by another agent"):
        write(agent, decision)
    assert_unreadable(agent)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE agent SET generation = generation - 1")
        connection.commit()
    with pb.Agent.open(path) as resumed:
        assert resumed.open_decisions == [decision]
        assert told_to(resumed) == (1, 1.0)
        resumed.tell(decision, 0.25)
        assert told_to(resumed) == (2, 1.25)


def assert_unreadable(agent: pb.Agent) -> None:
    """No call does anything, and nothing can be read: memory may hold a release that is not on disk."""
    calls: list[Callable[[], Any]] = [
        agent.ask,
        lambda: agent.tell("1", 1.0),
        lambda: agent.tell_many([]),
        lambda: agent.give_up("1"),
        agent.estimates,
        agent.guarantee,
        lambda: agent.ledger,
        lambda: agent.open_decisions,
    ]
    for call in calls:
        with pytest.raises(AgentClosed, match=r"resume it with Agent\.open"):
            call()


@pytest.mark.parametrize("copier", [copy.copy, copy.deepcopy, pickle.dumps])
def test_an_agent_cannot_be_copied_or_pickled(copier: Callable[[pb.Agent], object], tmp_path: Path) -> None:
    for path in (None, tmp_path / "agent.db"):
        with pb.Agent(plain_policy(), path=path) as agent:
            with pytest.raises(TypeError, match="two copies of one state"):
                copier(agent)
            agent.tell(agent.ask(), 1.0)
            assert told_to(agent) == (1, 1.0)


# Files that are not what they should be.


def test_an_agent_that_exists_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    with pb.Agent(plain_policy(), path=path) as agent:
        agent.tell(agent.ask(), 1.0)
    before = path.read_bytes()
    with pytest.raises(AgentFileExists, match=r"agent\.db exists: resume it with Agent\.open"):
        pb.Agent(plain_policy(5), path=path)
    assert path.read_bytes() == before
    with pb.Agent.open(path) as agent:
        assert told_to(agent) == (1, 1.0)


def other_database(path: Path, journal_mode: str) -> None:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA journal_mode = {journal_mode}")
        connection.execute("CREATE TABLE patients (name TEXT)")
        connection.execute("INSERT INTO patients VALUES ('someone')")
        connection.commit()


NOT_OURS: dict[str, Callable[[Path], object]] = {
    "text": lambda path: path.write_text("arm,reward\n0,1\n" * 500),
    "short text": lambda path: path.write_text("hello"),
    "other database": lambda path: other_database(path, "DELETE"),
    "other database with a log": lambda path: other_database(path, "WAL"),
}


@pytest.mark.parametrize("make", NOT_OURS.values(), ids=NOT_OURS)
def test_another_programs_file_is_refused_and_its_bytes_are_unchanged(
    make: Callable[[Path], object], tmp_path: Path
) -> None:
    path = tmp_path / "theirs"
    make(path)
    before = path.read_bytes()
    calls: list[Callable[[], object]] = [lambda: pb.Agent.open(path), lambda: pb.Agent(plain_policy(), path=path)]
    for call in calls:
        with pytest.raises(AgentFileInvalid, match="theirs is not an agent's file"):
            call()
        assert path.read_bytes() == before
        assert [p.name for p in tmp_path.iterdir()] == ["theirs"]


def test_an_empty_file_holds_no_agent_to_resume_but_may_become_one(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    path.touch(mode=0o644)
    with pytest.raises(AgentFileInvalid, match=r"agent\.db is empty: no agent was made in it"):
        pb.Agent.open(path)
    assert path.read_bytes() == b""
    with pb.Agent(plain_policy(), path=path) as agent:
        agent.tell(agent.ask(), 1.0)
        assert {stat.S_IMODE(p.stat().st_mode) for p in tmp_path.iterdir()} == {0o600}
    with pb.Agent.open(path) as agent:
        assert told_to(agent) == (1, 1.0)


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    calls: list[Callable[[], object]] = [
        lambda: pb.Agent.open(tmp_path),
        lambda: pb.Agent(plain_policy(), path=tmp_path),
    ]
    for call in calls:
        with pytest.raises(AgentFileInvalid, match="is a folder: name a file"):
            call()


def test_a_file_with_a_second_name_is_refused_because_its_log_would_not_be_found(tmp_path: Path) -> None:
    path, other = tmp_path / "agent.db", tmp_path / "other.db"
    with pb.Agent(plain_policy(), path=path) as agent:
        decision = agent.ask()
    other.hardlink_to(path)
    for name in (path, other):
        with pytest.raises(AgentFileInvalid, match="hard links"):
            pb.Agent.open(name)
    other.unlink()
    with pb.Agent.open(path) as agent:
        assert agent.open_decisions == [decision]


def test_a_missing_file_or_folder_is_named_and_nothing_is_made(tmp_path: Path) -> None:
    with pytest.raises(AgentFileMissing, match=r"no agent's file at .*agent\.db: make one with Agent"):
        pb.Agent.open(tmp_path / "agent.db")
    with pytest.raises(AgentFileMissing, match=r"no agent's file at .*nowhere.*agent\.db"):
        pb.Agent.open(tmp_path / "nowhere" / "agent.db")
    with pytest.raises(AgentFileMissing, match=r"the folder .*nowhere does not exist: make it first"):
        pb.Agent(plain_policy(), path=tmp_path / "nowhere" / "agent.db")
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_another_format_is_refused_until_a_version_that_reads_it_comes(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    with pb.Agent(plain_policy(), path=path) as agent:
        agent.tell(agent.ask(), 1.0)
        decision = agent.ask()

    def set_format(number: int) -> None:
        with contextlib.closing(sqlite3.connect(path)) as connection:
            connection.execute(f"PRAGMA user_version = {number}")

    set_format(FORMAT + 98)
    before = path.read_bytes()
    with pytest.raises(
        AgentFileInvalid, match=rf"agent\.db has format {FORMAT + 98}, this version reads formats 1 to {FORMAT}"
    ):
        pb.Agent.open(path)
    assert path.read_bytes() == before
    set_format(FORMAT)
    with pb.Agent.open(path) as agent:
        assert agent.open_decisions == [decision]


@pytest.fixture
def no_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("no_umask")
def test_file_and_log_are_readable_by_their_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    with pb.Agent(plain_policy(), path=path) as agent:
        agent.tell(agent.ask(), 1.0)
        files = list(tmp_path.iterdir())
        assert {path, log_of(path)} <= set(files)
        assert {stat.S_IMODE(p.stat().st_mode) for p in files} == {0o600}


# Forks.

FORK = """
    import os, sys
    import private_bandits as pb
    from private_bandits.errors import AgentClosed

    path, ending, bystanders = sys.argv[1], sys.argv[2], int(sys.argv[3])
    policy = pb.AdaCUCB(n_arms=2, budget=pb.NoPrivacy())
    agents = [pb.Agent(policy), pb.Agent(policy, path=path)]
    closed = [pb.Agent(policy, path=f"{path}-{i}") for i in range(bystanders)]
    for agent in closed:
        agent.close()
    decisions = []
    for agent in agents:
        agent.tell(agent.ask(), 1.0)
        decisions.append(agent.ask())
    child = os.fork()
    if child == 0:
        for agent, decision in zip(agents, decisions):
            calls = [
                agent.ask,
                lambda: agent.tell(decision, 1.0),
                lambda: agent.tell_many([(decision, 1.0)]),
                lambda: agent.give_up(decision),
                agent.estimates,
                agent.guarantee,
                lambda: agent.ledger,
                lambda: agent.open_decisions,
            ]
            for call in calls:
                try:
                    call()
                except AgentClosed as error:
                    assert "forked" in str(error), error
                else:
                    os._exit(1)
        try:
            pb.Agent.open(path)
        except pb.errors.AgentBusy:
            pass
        else:
            os._exit(2)
        agents[1].close()
        if ending == "collected":
            del agents, agent, calls, call
        if ending == "os._exit":
            os._exit(7)
        sys.exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert os.path.exists(path + "-wal"), "the child took the log away"
    for agent, decision in zip(agents, decisions):
        agent.tell(decision, 0.5)
        assert len(agent.ledger) == 2 and agent.open_decisions == []
    agents[1].close()
"""


@pytest.mark.parametrize("ending", ["sys.exit", "os._exit", "collected"])
def test_a_forked_child_can_neither_use_nor_read_the_agent_and_the_parent_goes_on(ending: str, tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    assert run_python(FORK, path, ending, 0) == ""
    with pb.Agent.open(path) as agent:
        assert told_to(agent) == (2, 1.5)
        assert agent.open_decisions == []


def test_a_forked_child_can_not_use_the_agent_where_others_were_closed_before(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    assert run_python(FORK, path, "sys.exit", 20) == ""
    with pb.Agent.open(path) as agent:
        assert told_to(agent) == (2, 1.5)


def test_a_fork_closes_no_file_of_others_in_the_child(tmp_path: Path) -> None:
    script = """
        import os, sys
        import private_bandits as pb

        agent = pb.Agent(pb.AdaCUCB(n_arms=2, budget=pb.NoPrivacy()), path=sys.argv[1])
        agent.close()
        handles = [os.open(os.devnull, os.O_RDONLY) for _ in range(20)]  # the numbers that the agent had are theirs now
        child = os.fork()
        if child == 0:
            for handle in handles:
                os.fstat(handle)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    """
    assert run_python(script, tmp_path / "agent.db") == ""


def test_a_forked_child_that_lives_on_does_not_keep_the_file(tmp_path: Path) -> None:
    script = """
        import os, sys
        import private_bandits as pb

        agent = pb.Agent(pb.AdaCUCB(n_arms=2, budget=pb.NoPrivacy()), path=sys.argv[1])
        up, say_up = os.pipe()
        end, say_end = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(say_up, b"!")
            os.read(end, 1)
            os._exit(0)
        os.read(up, 1)
        agent.close()
        with pb.Agent.open(sys.argv[1]) as agent:
            agent.tell(agent.ask(), 1.0)
        os.write(say_end, b"!")
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        print("resumed")  # and the child was there all the time
    """
    assert run_python(script, tmp_path / "agent.db") == "resumed\n"


def test_a_forked_child_is_refused_at_once_while_another_thread_was_in_a_call(tmp_path: Path) -> None:
    script = """
        import os, signal, sys, threading, warnings
        import private_bandits as pb

        agent = pb.Agent(pb.AdaCUCB(n_arms=2, budget=pb.NoPrivacy()), path=sys.argv[1])
        decision = agent.ask()
        within, go_on = threading.Event(), threading.Event()

        class Slow(float):
            def __float__(self):
                within.set()
                go_on.wait()
                return 1.0

        thread = threading.Thread(target=agent.tell, args=[decision, Slow()])
        thread.start()
        within.wait()
        warnings.simplefilter("ignore")  # later versions of Python warn of what is done here
        child = os.fork()
        if child == 0:
            signal.alarm(10)  # the end of a child that waits for ever
            try:
                agent.ask()
            except pb.errors.AgentClosed:
                os._exit(0)
            os._exit(1)
        status = os.waitpid(child, 0)[1]
        go_on.set()
        thread.join()
        agent.close()
        print(len(agent.ledger), os.waitstatus_to_exitcode(status))
    """
    assert run_python(script, tmp_path / "agent.db") == "1 0\n"


# Faults.


def test_a_full_disk_ends_the_agent_and_the_same_tell_is_accepted_after_it_is_resumed(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    agent = pb.Agent(plain_policy(400), path=path)  # the first reward of every arm is a release, a row of the file
    connection_of(agent).execute("PRAGMA max_page_count = 1")  # of what it has now, no page more
    told = 0
    while True:
        decision = agent.ask()
        rows = agent.ledger.rows
        try:
            agent.tell(decision, 0.5)
        except AgentClosed as error:
            refusal = str(error)
            break
        told += 1
    assert "full" in refusal
    assert "mend the cause, resume with Agent.open(path) and tell again" in refusal
    assert_unreadable(agent)
    with pb.Agent.open(path) as resumed:
        assert resumed.ledger.rows == rows
        assert told_to(resumed) == (told, 0.5 * told)
        assert resumed.open_decisions == [decision]
        resumed.tell(decision, 0.5)
        assert told_to(resumed) == (told + 1, 0.5 * told + 0.5)
        with pytest.raises(ClosedDecision):
            resumed.tell(decision, 0.5)


def test_a_full_disk_in_a_batch_leaves_what_was_not_released_to_tell_again(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    agent = pb.Agent(plain_policy(400), path=path)
    agent.tell(agent.ask(), 1.0)
    decisions = agent.ask(200)
    connection_of(agent).execute("PRAGMA max_page_count = 1")
    batch = [(decision, 0.5) for decision in decisions]
    with pytest.raises(AgentClosed, match="could not write its file"):
        agent.tell_many(batch)
    assert_unreadable(agent)
    with pb.Agent.open(path) as resumed:
        taken = 200 - len(resumed.open_decisions)
        assert resumed.open_decisions == decisions[taken:]  # each of them was to be a release, lasting by itself
        assert told_to(resumed) == (1 + taken, 1.0 + 0.5 * taken)
        resumed.tell_many(batch[taken:])
        assert told_to(resumed) == (201, 101.0)


def test_an_ask_that_does_not_reach_the_disk_hands_nothing_out(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    agent = pb.Agent(plain_policy(), path=path)
    kept = agent.ask()
    connection_of(agent).execute("PRAGMA max_page_count = 1")
    with pytest.raises(AgentClosed, match="could not write its file"):
        agent.ask(5000)
    assert_unreadable(agent)
    with pb.Agent.open(path) as resumed:
        assert resumed.open_decisions == [kept]
        assert number_of(resumed.ask()) == 2


def stop_once_at(step: int) -> Callable[[], bool]:
    """For SQLite, which asks before every step of its virtual machine whether to fail."""
    steps = itertools.count(1)
    return lambda: next(steps) == step


@pytest.mark.parametrize("limit", [None, 2], ids=["no limit", "limit per person"])
def test_a_tell_whose_file_fails_at_any_point_leaves_the_state_before(limit: int | None, tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    with pb.Agent(plain_policy(1), path=path, max_rewards_per_person=limit) as agent:
        decisions = [agent.ask(person=name) for name in ("ann", "bob", "cid", "ann")]
        for decision in decisions[:3]:
            agent.tell(decision, 0.5)
        before = Seen.of(agent)
    last = decisions[3]  # it completes a sum: every table changes
    for step in range(1, 10_000, 5):
        agent = pb.Agent.open(path)
        connection_of(agent).set_progress_handler(stop_once_at(step), 1)
        refusal = None
        try:
            agent.tell(last, 0.5)
        except AgentClosed as error:
            refusal = str(error)
        if refusal is None:
            break
        assert "mend the cause, resume with Agent.open(path) and tell again" in refusal
        assert_unreadable(agent)
        with pb.Agent.open(path) as resumed:
            if not resumed.open_decisions:
                break  # SQLite reports the last step of a commit as failed that is on disk: then all of it is
            assert Seen.of(resumed) == before
    assert step > 50
    agent.close()
    with pb.Agent.open(path) as agent:
        assert told_to(agent) == (4, 2.0)
        assert [row.count for row in agent.ledger] == [1, 1, 2]
        assert agent.open_decisions == []


def break_noise(patch: pytest.MonkeyPatch, error: BaseException) -> None:
    """Until the patch is undone no noise can be drawn."""

    def fail(mechanism: Mechanism, totals: Sequence[int]) -> NoReturn:
        raise error

    patch.setattr(Mechanism, "__call__", fail)


@pytest.fixture(params=["in memory", "on file"])
def maybe_path(request: pytest.FixtureRequest, tmp_path: Path) -> Path | None:
    return tmp_path / "agent.db" if request.param == "on file" else None


def resume_if_on_file(agent: pb.Agent, path: Path | None) -> pb.Agent:
    """What the file holds has to be what the agent holds."""
    if path is None:
        return agent
    agent.close()
    return pb.Agent.open(path)


def test_a_tell_whose_noise_fails_changes_nothing_and_can_be_told_again(
    maybe_path: Path | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = pb.Agent(plain_policy(1), path=maybe_path, max_rewards_per_person=2)
    decisions = [agent.ask(person=name) for name in ("ann", "ann", "bob", "cid", "ann")]
    before = Seen.of(agent)
    for reopen in (False, True):  # the first reward is a release
        with monkeypatch.context() as patch:
            break_noise(patch, NoiseFailed("no noise"))
            with pytest.raises(NoiseFailed):
                agent.tell(decisions[0], 1.0)
        assert Seen.of(agent) == before
        if reopen:
            agent = resume_if_on_file(agent, maybe_path)
            assert Seen.of(agent) == before
    for decision in decisions[:3]:
        agent.tell(decision, 1.0)
    before = Seen.of(agent)
    with monkeypatch.context() as patch:  # the fourth completes a sum of two
        break_noise(patch, NoiseFailed("no noise"))
        with pytest.raises(NoiseFailed):
            agent.tell(decisions[3], 0.25)
    assert Seen.of(agent) == before
    agent.tell(decisions[3], 0.25)
    agent.tell(decisions[4], 1.0)  # ann's third
    agent = resume_if_on_file(agent, maybe_path)
    assert told_to(agent) == (4, 3.25)
    assert [row.count for row in agent.ledger] == [1, 1, 2]
    assert agent.open_decisions == []
    agent.close()


def test_a_batch_keeps_what_came_before_the_reward_whose_noise_failed(
    maybe_path: Path | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = pb.Agent(plain_policy(1), path=maybe_path, max_rewards_per_person=1)
    first = [agent.ask(person=f"person {i}") for i in range(2)]
    agent.tell_many([(decision, 1.0) for decision in first])
    batch = [agent.ask(person=f"person {i}") for i in range(2, 6)]
    with monkeypatch.context() as patch:
        break_noise(patch, NoiseFailed("no noise"))
        with pytest.raises(NoiseFailed) as caught:  # the second of the batch completes a sum of two
            agent.tell_many([(decision, 0.5) for decision in batch])
    assert caught.value.__notes__ == ["1 of 4 rewards were taken before; the others are still open"]
    for _ in range(2):
        assert told_to(agent) == (3, 2.5)
        assert len(agent.ledger) == 2
        assert agent.open_decisions == batch[1:]
        agent = resume_if_on_file(agent, maybe_path)
    with pytest.raises(ClosedDecision):
        agent.tell(batch[0], 0.5)
    agent.tell_many([(decision, 0.5) for decision in batch[1:]])
    agent = resume_if_on_file(agent, maybe_path)
    assert told_to(agent) == (6, 4.0)
    assert [row.count for row in agent.ledger] == [1, 1, 2]
    agent.close()


@pytest.mark.parametrize(
    "tell", [lambda a, d: a.tell(d, 1.0), lambda a, d: a.tell_many([(d, 1.0)])], ids=["tell", "tell_many"]
)
def test_an_interrupt_in_the_middle_of_a_tell_ends_the_agent_and_its_file_holds_the_state_before(
    tell: Callable[[pb.Agent, pb.Decision], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "agent.db"
    agent = pb.Agent(plain_policy(1), path=path)
    decision = agent.ask()
    with monkeypatch.context() as patch:
        break_noise(patch, KeyboardInterrupt())
        with pytest.raises(KeyboardInterrupt):
            tell(agent, decision)
    assert_unreadable(agent)
    with pb.Agent.open(path) as resumed:
        assert resumed.open_decisions == [decision]
        tell(resumed, decision)
        assert told_to(resumed) == (1, 1.0)


def test_an_interrupt_in_a_release_ends_an_agent_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its reward is lost, and later releases might be of it again."""
    agent = pb.Agent(plain_policy(1))
    decisions = agent.ask(4)
    with monkeypatch.context() as patch:
        break_noise(patch, KeyboardInterrupt())
        with pytest.raises(KeyboardInterrupt):
            agent.tell(decisions[0], 1.0)
    for decision in decisions:
        with pytest.raises(AgentClosed, match="interrupted"):
            agent.tell(decision, 1.0)


def test_in_the_middle_of_a_release_the_same_thread_can_neither_read_nor_write(
    maybe_path: Path | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = pb.Agent(plain_policy(1), path=maybe_path)
    decision, other = agent.ask(2)
    calls: list[Callable[[], Any]] = [
        agent.ask,
        lambda: agent.tell(other, 1.0),
        lambda: agent.tell_many([(other, 1.0)]),
        lambda: agent.give_up(other),
        agent.estimates,
        agent.guarantee,
        lambda: agent.ledger,
        lambda: agent.open_decisions,
        agent.close,
    ]
    draw = Mechanism.__call__

    def handle_signal_and_draw(mechanism: Mechanism, *totals: Any) -> list[int]:
        for call in calls:
            with pytest.raises(AgentBusy, match="in the middle of a call"):
                call()
        return draw(mechanism, *totals)

    monkeypatch.setattr(Mechanism, "__call__", handle_signal_and_draw)
    agent.tell(decision, 1.0)
    assert told_to(agent) == (1, 1.0)
    assert agent.open_decisions == [other]
    agent.close()


# What is in the file, and when.


def test_a_tell_is_in_the_file_before_it_returns(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    copies = tmp_path / "copies"
    with pb.Agent(plain_policy(2), path=path) as agent:
        for i in range(1, 13):
            early, decision = agent.ask(2)
            agent.give_up(early)
            agent.tell(decision, i / 16)
            copies.mkdir()
            for file in (path, log_of(path)):  # as they would be found after a crash at this moment
                shutil.copy(file, copies)
            with pb.Agent.open(copies / path.name) as copied:
                assert told_to(copied) == told_to(agent) == (i, sum(range(i + 1)) / 16)
                assert copied.ledger.rows == agent.ledger.rows
                assert copied.estimates() == agent.estimates()
                assert copied.open_decisions == []
                with pytest.raises(ClosedDecision):
                    copied.tell(decision, 1.0)
            shutil.rmtree(copies)


def test_a_batch_and_the_decisions_asked_are_in_the_file_before_the_call_returns(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    copies = tmp_path / "copies"
    copies.mkdir()
    with pb.Agent(plain_policy(3), path=path) as agent:
        decisions = agent.ask(40)
        agent.tell_many([(decision, 0.25) for decision in decisions[:30]])
        agent.give_up(decisions[30])
        late = agent.ask()
        for file in (path, log_of(path)):
            shutil.copy(file, copies)
        with pb.Agent.open(copies / path.name) as copied:
            assert told_to(copied) == (30, 7.5)
            assert copied.ledger.rows == agent.ledger.rows
            assert copied.open_decisions == [*decisions[31:], late]


def test_a_tell_and_a_give_up_are_synced_to_the_disk(tmp_path: Path) -> None:
    with pb.Agent(plain_policy(1), path=tmp_path / "agent.db") as agent:
        for _ in range(8):
            agent.tell(agent.ask(), 1.0)  # the next release is that of the sixteenth
        connection = connection_of(agent)
        assert connection.execute("PRAGMA journal_mode").fetchone() == (b"wal",)
        closers: list[Callable[[pb.Decision], None]] = [
            lambda decision: agent.tell(decision, 1.0),
            lambda decision: agent.tell_many([(decision, 1.0)]),
            agent.give_up,
        ]
        for close in closers:
            close(agent.ask())
            assert connection.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL: the log is synced at commit


def test_only_open_decisions_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    with pb.Agent(plain_policy(), path=path) as agent:
        kept = []
        for i in range(200):
            decision, other = agent.ask(2)
            agent.give_up(other)
            if i % 50 == 0:
                kept.append(decision)
            else:
                agent.tell(decision, 0.5)
        assert agent.open_decisions == kept
        assert connection_of(agent).execute("SELECT count(*) FROM decisions").fetchone() == (4,)
        assert sum(bandit_of(agent).public.waiting) == 4
    with pb.Agent.open(path) as agent:
        assert agent.open_decisions == kept


def test_decisions_that_nobody_answers_are_kept_no_longer_than_give_up_after(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    pb.Agent(plain_policy(), path=path, give_up_after=7).close()
    for _ in range(2):
        with pb.Agent.open(path) as agent:
            decisions = agent.ask(50) + [agent.ask() for _ in range(50)]
            assert agent.open_decisions == decisions[-7:]
            assert connection_of(agent).execute("SELECT count(*) FROM decisions").fetchone() == (7,)


def test_no_name_of_a_person_is_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    names = ["Wilhelmina Oberstein", "Łucja Żółć", "patient-1957-03-21"]

    def assert_nameless(*files: Path) -> None:
        content = b"".join(file.read_bytes() for file in files)
        for name in names:
            for text in (name, name[:8], name[-8:], name.encode().hex()):
                assert text.encode() not in content

    with pb.Agent(plain_policy(), path=path, max_rewards_per_person=2) as agent:
        for name in names:
            agent.tell(agent.ask(person=name), 1.0)
            agent.ask(person=name)
        assert connection_of(agent).execute("SELECT count(*) FROM people").fetchone() == (3,)
        assert_nameless(path, log_of(path))
    assert_nameless(path)


def test_no_sum_of_the_past_stays_in_a_closed_file(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    with pb.Agent(plain_policy(20), path=path) as agent:
        for _ in range(30):
            agent.tell_many([(decision, 0.3) for decision in agent.ask(20)])
            decision = agent.ask()
            agent.tell(decision, 0.7, played=decision.action)
        sums = connection_of(agent).execute("SELECT private FROM episodes").fetchall()
    content = path.read_bytes()
    assert content.count(b'"totals"') == len(sums) == 20
    assert all(text in content for (text,) in sums)


@pytest.mark.parametrize("table", ["ledger", "episodes", "agent"])
def test_a_damaged_file_is_named_and_left_free(tmp_path: Path, table: str) -> None:
    path = tmp_path / "agent.db"
    with pb.Agent(plain_policy(), path=path) as agent:
        for _ in range(20):
            agent.tell(agent.ask(), 1.0)
    connection = sqlite3.connect(path)
    if table == "agent":
        connection.execute("DELETE FROM agent")
    else:
        connection.execute(f"UPDATE {table} SET {'release' if table == 'ledger' else 'private'} = 'nonsense 123456'")
    connection.commit()
    connection.close()
    for _ in range(2):  # the second time too: the first did not keep the file
        with pytest.raises(AgentFileInvalid, match="damaged"):
            pb.Agent.open(path)


def test_a_file_with_broken_pages_is_named(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    with pb.Agent(plain_policy(), path=path) as agent:
        agent.tell_many([(d, 1.0) for d in agent.ask(200)])
    content = bytearray(path.read_bytes())
    content[4096 * 2 :] = b"\xff" * (len(content) - 4096 * 2)
    path.write_bytes(content)
    with pytest.raises(AgentFileInvalid, match="damaged"):
        pb.Agent.open(path)


def test_a_path_that_sqlite_takes_for_memory_is_a_file_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pb.Agent(plain_policy(), path=":memory:") as agent:
        agent.tell(agent.ask(), 1.0)
    with pb.Agent.open(":memory:") as resumed:
        assert len(resumed.ledger) == 1
    assert (tmp_path / ":memory:").stat().st_size > 0


def as_in_format_three(path: Path) -> None:
    """Tables without checksums, and settings and the policy's state in one row with the rest, as in version 0.8."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            """
            CREATE TABLE old_agent AS SELECT s.text AS settings, p.text AS policy, a.asked, a.generation, a.arrivals
                FROM agent a, settings s, policy p;
            DROP TABLE agent; DROP TABLE settings; DROP TABLE policy; DROP TABLE presence;
            ALTER TABLE old_agent RENAME TO agent;
            PRAGMA user_version = 3;
            """
        )
        for table in ("decisions", "episodes", "kept", "ledger", "people"):
            connection.execute(f"ALTER TABLE {table} DROP COLUMN checksum")
        connection.commit()


SINCE_FORMAT_THREE = {"adac-oful": ["sums"]}
"""What states of version 0.7 did not have."""


def as_in_format_two(path: Path, name: str) -> None:
    """Earlier sums beside the open ones, and the policy's state as a whole, as version 0.7 wrote it."""
    as_in_format_three(path)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        for key, text in connection.execute("SELECT key, private FROM episodes").fetchall():
            rows = connection.execute("SELECT private FROM kept WHERE key = ? ORDER BY number", (key,)).fetchall()
            whole = json.loads(text) | {"kept": [json.loads(part) for (part,) in rows]}
            connection.execute("UPDATE episodes SET private = ? WHERE key = ?", (json.dumps(whole), key))
        policy, arrivals = connection.execute("SELECT policy, arrivals FROM agent").fetchone()
        state = json.loads(policy) | json.loads(arrivals or "{}")
        for part in SINCE_FORMAT_THREE.get(name, []):
            del state[part]
        connection.execute("UPDATE agent SET policy = ?", (json.dumps(state),))
        connection.execute("ALTER TABLE agent DROP COLUMN arrivals")
        connection.execute("DROP TABLE kept")
        connection.execute("PRAGMA user_version = 2")
        connection.commit()


@pytest.mark.parametrize("older", [False, True])
@pytest.mark.parametrize("private", [False, True])
@pytest.mark.parametrize("name", ["dp-ucb", "adac-oful", "adac-ucb", "linpriv"])
def test_an_agent_goes_on_from_a_file_of_the_second_format(
    tmp_path: Path, name: str, private: bool, older: bool
) -> None:
    cls = policies.POLICIES[name]
    policy: Any = cls.example(EXAMPLE_BUDGETS[cls.supported_budgets[0]] if private else pb.NoPrivacy())
    if name in SINCE_FORMAT_THREE:
        policy = replace(policy, variant="paper")  # there was no other
    actions = None if policy.arm_names else np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])
    path = tmp_path / "agent.db"
    with pb.Agent(policy, path=path, seed=3) as agent, pb.Agent(policy, seed=3) as twin:
        for step in range(23):
            for one in (agent, twin):
                one.tell(one.ask(actions=actions), float(step % 3 == 0))
        agent.close()
        if older:
            as_in_format_two(path, name)
        with pb.Agent.open(path) as opened:
            for step in range(40):
                for one in (opened, twin):
                    one.tell(one.ask(actions=actions), float(step % 3 == 1))
            assert opened.learned == twin.learned
            assert [row.values for row in opened.ledger] == [row.values for row in twin.ledger]


def test_a_file_of_the_first_format_is_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    with pb.Agent(plain_policy(), path=path) as agent:
        agent.tell(agent.ask(), 1.0)
        decision, learned = agent.ask(), agent.learned
    as_in_format_three(path)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("ALTER TABLE decisions DROP COLUMN offered")
        connection.execute("ALTER TABLE agent DROP COLUMN arrivals")
        connection.execute("DROP TABLE kept")
        connection.execute("PRAGMA user_version = 1")
        connection.commit()
    for _ in range(2):
        with pb.Agent.open(path) as agent:
            assert (agent.open_decisions, agent.learned) == ([decision], learned)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (FORMAT,)


def test_a_report_of_a_crash_has_no_salt() -> None:
    """With it, names could be guessed from their hashes."""
    agent = pb.Agent(pb.AdaCUCB(2, pb.zCDP(1)), max_rewards_per_person=1)
    assert bandit_of(agent).settings.salt not in repr(bandit_of(agent).settings)


KILLED = """
    import os, sys
    import private_bandits as pb
    agent = pb.Agent(pb.AdaCUCB(1, pb.zCDP(1.0), variant="paper"), path=sys.argv[1])
    for _ in range(100):  # the last release is that of the 64th
        agent.tell(agent.ask(), 1.0)
    os._exit(0)
"""


def test_a_damaged_log_is_noticed_and_what_can_be_read_of_it_is_kept_where_asked(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    run_python(KILLED, path)
    content, log = path.read_bytes(), log_of(path).read_bytes()
    asked = {}
    for place in (20, 32 + 8, 32 + 100, len(log) // 8):  # the header, the first page's own, a page, another one
        damaged = bytearray(log)
        damaged[place] ^= 1
        path.write_bytes(content)
        log_of(path).write_bytes(damaged)
        with pytest.raises(AgentFileInvalid, match=r"agent\.db-wal, is damaged"):
            pb.Agent.open(path)
        assert (path.read_bytes(), log_of(path).read_bytes()) == (content, bytes(damaged))
        with pb.Agent.open(path, without_log=True) as agent:
            assert len(agent.ledger) == 7
            asked[place] = bandit_of(agent).public.asked
    assert list(asked.values())[:3] == [64, 64, 64]
    assert 64 < asked[len(log) // 8] < 100
    path.write_bytes(content)
    log_of(path).write_bytes(log)
    with pb.Agent.open(path) as agent:
        assert (len(agent.ledger), bandit_of(agent).public.asked) == (7, 100)


def test_a_decision_that_was_lost_is_not_taken_for_one_that_was_told(tmp_path: Path) -> None:
    """Its number is handed out again, in another generation, and may be closed by then."""
    path, copy = tmp_path / "agent.db", tmp_path / "copy.db"
    with pb.Agent(plain_policy(), path=path) as agent:
        kept = agent.ask()
    with pb.Agent.open(path) as agent:
        lost = agent.ask(3)
        shutil.copy(path, copy)  # without its log, which has the asks
    with pb.Agent.open(copy, without_log=True) as agent:
        again = agent.ask(3)
        assert [number_of(decision) for decision in again] == [number_of(decision) for decision in lost]
        agent.tell(again[0], 1.0)
        for decision in lost:
            with pytest.raises(UnknownDecision, match="or was lost with a part of its file"):
                agent.tell(decision, 1.0)
        agent.tell(kept, 1.0)
        for decision in (kept, again[0]):
            with pytest.raises(ClosedDecision, match="was told before"):
                agent.tell(decision, 1.0)
        assert agent.counts.told == 2
