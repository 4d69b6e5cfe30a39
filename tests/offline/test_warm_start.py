"""Starting from a log: each logged reward is in one release, and nothing else is known of it."""

from __future__ import annotations

import gc
import math
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest

import private_bandits as pb
from private_bandits.agent import bandit_of
from private_bandits.errors import (
    AgentBusy,
    AgentClosed,
    CapacityExceeded,
    InvalidInput,
    NoiseFailed,
    PolicyFailed,
)
from private_bandits.ledger import Release
from private_bandits.mechanism.episode import Grid
from private_bandits.policies import Policy
from private_bandits.policies.doubling import DoublingState
from tests.storage.test_sqlite import connection_of
from tests.support import EVERY_POLICY, interact, policy_id
from tests.test_agent import everything
from tests.test_interrupts import PACKAGE, STRIKES, Strike, cut_short, shown, walk

WARM = [policy for policy in EVERY_POLICY if policy.supports_warm_start]
COLD = [policy for policy in EVERY_POLICY if not policy.supports_warm_start]
LOG = [("B", 0.25), ("A", 1.0), ("B", 0.5), ("B", 0.75), ("A", 0.0)]


def log_for(policy: Policy[Any], rows: int = 20, seed: int = 0) -> list[tuple[Any, float]]:
    """Random arms, or vectors, with rewards in eighths."""
    generator = np.random.default_rng(seed)
    rewards = (generator.integers(0, 9, rows) / 8).tolist()
    if policy.arm_names:
        return list(zip(generator.choice(policy.arm_names, rows).tolist(), rewards, strict=True))
    return list(zip(generator.uniform(-0.5, 0.5, (rows, 2)).tolist(), rewards, strict=True))


def named(budget: Any = None, **options: Any) -> pb.Agent:
    return pb.Agent(pb.AdaCUCB(arms=["A", "B", "C"], budget=budget or pb.NoPrivacy()), **options)


def means_and_rewards(agent: pb.Agent) -> list[tuple[float | None, int]]:
    """What is said of each arm, but for the last digits: a mean of many releases is a combination of them."""
    return [(None if e.mean is None else round(e.mean, 12), e.rewards) for e in agent.estimates()]


# What it does.


@pytest.mark.parametrize("policy", WARM, ids=policy_id)
def test_one_release_for_each_arm_within_the_budget(policy: Policy[Any]) -> None:
    agent, log = pb.Agent(policy), log_for(policy)
    assert agent.warm_start(log) == 20
    keys = sorted({policy.arm_names.index(arm) for arm, _ in log}) if policy.arm_names else [0]
    assert [row.key for row in agent.ledger] == keys
    assert sum(row.count for row in agent.ledger) == 20
    if agent.guarantee().private:
        assert 0 < agent.ledger.total <= policy.budget.level
        assert agent.guarantee().spent <= agent.guarantee().promised
    interact(agent, 30, script_seed=1)
    assert agent.ledger.total <= policy.budget.level
    newest = [next(iter(row.episodes)) for row in agent.ledger]  # others may be in it again
    assert len(newest) == len(set(newest))


@pytest.mark.parametrize("policy", COLD, ids=policy_id)
def test_policies_that_plan_their_releases_refuse(policy: Policy[Any]) -> None:
    agent = pb.Agent(policy)
    before = everything(agent)
    with pytest.raises(InvalidInput, match=f"{type(policy).__name__} cannot start from a log"):
        agent.warm_start(log_for(policy))
    assert everything(agent) == before


def test_without_privacy_means_are_exact_and_doubling_goes_on() -> None:
    agent = named()
    agent.warm_start(LOG)
    assert means_and_rewards(agent) == [(0.5, 2), (0.5, 3), (None, 0)]
    assert agent.ask().arm == "C"  # nothing is known of it
    for _ in range(3):
        agent.tell(agent.ask(), 1.0, played="B")
    assert [(row.key, row.count) for row in agent.ledger] == [(0, 2), (1, 3), (1, 3)]


def test_a_logged_play_counts_as_a_decision() -> None:
    agent = named()
    agent.warm_start(LOG)
    assert agent.ask().id.endswith("-6")
    assert repr(agent).endswith("6 asked, 1 open)")


def test_the_bonus_is_that_of_a_later_step() -> None:
    """At step one the index would be the mean alone, and an arm that was hardly logged would be forgotten."""
    agent = pb.Agent(pb.AdaCUCB(arms=["A", "B"], budget=pb.NoPrivacy()))
    agent.warm_start([("A", 0.6)] * 1000 + [("B", 0.5)])
    assert agent.ask().arm == "B"


def test_actions_of_contextual_policies_are_vectors() -> None:
    generator = np.random.default_rng(0)
    actions, rewards = generator.uniform(-0.5, 0.5, (50, 2)), generator.uniform(0, 1, 50)
    frame = pd.DataFrame({"x": actions[:, 0], "y": actions[:, 1], "reward": rewards})
    policy = pb.AdaCOFUL(dimension=2, budget=pb.NoPrivacy(), regulariser=0.1)
    logs: list[tuple[Any, Any]] = [(frame, ["x", "y"]), (list(zip(actions, rewards, strict=True)), "arm")]
    for log, columns in logs:
        agent = pb.Agent(policy)
        assert agent.warm_start(log, arm=columns) == 50
        ridge = np.linalg.solve(0.1 * np.eye(2) + actions.T @ actions, actions.T @ rewards)
        assert np.allclose(agent.learned["theta"], ridge, atol=1e-4)
        assert (agent.learned["releases"], agent.learned["rewards"]) == (1, 50)


@pytest.mark.parametrize("arms", [["A", "B", "C"], None, ["0", "1", "2"], ["2", "1", "0"]])
def test_logs_of_every_form_are_the_same(tmp_path: Path, arms: list[str] | None) -> None:
    names: list[Any] = [*arms] if arms else [0, 1, 2]
    played, rewards, people = [names[i] for i in (1, 0, 2, 1)], [0.5, 1.0, 0.0, 0.25], [7, 8, 7, 7]
    frame = pd.DataFrame({"who": people, "treatment": played, "outcome": rewards, "other": [None] * 4})
    frame.to_csv(tmp_path / "log.csv", index=False)
    columns = {"arm": "treatment", "reward": "outcome", "person": "who"}
    rows = zip(played, rewards, people, strict=True)
    as_floats = frame.assign(who=frame.who.astype(float))
    logs: list[tuple[Any, dict[str, Any]]] = [
        (frame, columns),
        (as_floats, columns),
        (tmp_path / "log.csv", columns),
        (str(tmp_path / "log.csv"), columns),
        (frame.to_dict("list"), columns),
        (list(rows), {}),
        (zip(played, map(np.float32, rewards), people, strict=True), {}),
    ]
    for log, options in logs:
        policy = pb.AdaCUCB(n_arms=None if arms else 3, arms=arms, budget=pb.NoPrivacy())
        agent = pb.Agent(policy, max_rewards_per_person=2)
        assert agent.warm_start(log, **options) == 3
        assert means_and_rewards(agent) == [(1.0, 1), (0.5, 1), (0.0, 1)]
        agent.tell(agent.ask(person="7"), 1.0)  # has told two already
        assert sum(e.rewards for e in agent.estimates()) == 3


@pytest.mark.parametrize("durable", [False, True])
def test_people_count_against_their_limit(tmp_path: Path, durable: bool) -> None:
    path = tmp_path / "a.db" if durable else None
    agent = named(max_rewards_per_person=2, path=path)
    rows = [("A", 1.0, "p"), ("A", 1.0, "p"), ("A", 0.0, "p"), ("B", 0.5, "q"), ("A", 0.0, "p")]
    assert agent.warm_start(rows) == 3
    assert means_and_rewards(agent) == [(1.0, 2), (0.5, 1), (None, 0)]
    if path is not None:
        agent.close()
        agent = pb.Agent.open(path)
    for person, more in [("p", 0), ("q", 1), ("q", 1)]:
        agent.tell(agent.ask(person=person), 1.0, played="C")
        assert sum(row.count for row in agent.ledger) == 3 + more


def test_the_budget_of_a_person_holds() -> None:
    agent = named(pb.zCDP(0.5), max_rewards_per_person=3, unit="person")
    agent.warm_start([("A", 1.0, "p")] * 3 + [("B", 1.0, "q")])
    assert agent.guarantee().spent <= agent.guarantee().promised == 0.5
    assert agent.ledger.total <= 0.5 / 9


# What it shows.


@pytest.mark.parametrize("policy", WARM, ids=policy_id)
def test_one_changed_reward_changes_the_release_of_its_arm_only(policy: Policy[Any]) -> None:
    log = log_for(policy)
    other = [(log[0][0], 1.0 - log[0][1]), *log[1:]]
    assert other != log
    key = policy.arm_names.index(log[0][0]) if policy.arm_names else 0
    ledgers = []
    for rows in (log, other):
        agent = pb.Agent(policy, seed=1)
        agent.warm_start(rows)
        ledgers.append(agent.ledger)
    for here, there in zip(*ledgers, strict=True):
        assert (here.to_dict() == there.to_dict()) == (here.key != key)
        assert here.to_dict() | {"values": ()} == there.to_dict() | {"values": ()}


@pytest.mark.parametrize("policy", WARM, ids=policy_id)
def test_what_follows_depends_on_logged_rewards_through_releases_only(policy: Policy[Any]) -> None:
    """Two worlds with other rewards and the same sums, of each arm, hence with the same noise the same releases."""
    logs = []
    for rewards in ([0.5, 0.5, 0.25], [1.0, 0.0, 0.25]):
        arms: list[Any] = list(policy.arm_names[:2]) or [[0.5, 0.25]]
        logs.append([(arm, reward) for arm in arms for reward in rewards])
    transcripts = []
    for log in logs:
        agent = pb.Agent(policy, seed=3)
        agent.warm_start(log)
        transcripts.append((agent.learned, interact(agent, 60, script_seed=2).shown, repr(agent.guarantee())))
    assert transcripts[0] == transcripts[1]


@pytest.mark.parametrize("policy", WARM, ids=policy_id)
def test_a_resumed_agent_goes_on_as_it_would_have(policy: Policy[Any], tmp_path: Path) -> None:
    shown_by = []
    for path in (None, tmp_path / "a.db"):
        agent = pb.Agent(policy, seed=5, path=path)
        agent.warm_start(log_for(policy))
        if path is not None:
            agent.close()
            agent = pb.Agent.open(path)
        shown_by.append(interact(agent, 60, script_seed=4).shown)
        agent.close()
    assert shown_by[0] == shown_by[1]


# What it refuses.

BAD: list[tuple[Any, str]] = [
    ([], "the log is empty"),
    (pd.DataFrame({"arm": [], "reward": []}), "the log is empty"),
    (pd.DataFrame({"arm": ["A"], "outcome": [0.731]}), r"no column 'reward': it has \['arm', 'outcome'\]"),
    ({"A": ["A"], "0.731": [0.5]}, "is the line of names missing"),
    ({"arm": ["A", "B"], "reward": [0.5]}, "of one length"),
    (pd.DataFrame([["A", 0.731, 1]], columns=["arm", "reward", "reward"]), "two columns of one name"),
    ([("A", 0.5), ("B", 1.731)], r"the reward in row 1 \(the first is 0\) lies outside reward_range \(0, 1\)"),
    ([("A", 0.5), ("B", -0.731)], "row 1 .* outside"),
    ([("A", 0.5), ("B", math.inf)], "row 1 .* outside"),
    ([("A", 0.5), ("B", math.nan)], r"'reward' in row 1 \(the first is 0\) is missing"),
    ([("A", 0.5), ("B", None)], "'reward' in row 1 .* is missing"),
    ([("A", 0.5), ("", 0.731)], "'arm' in row 1 .* is missing"),
    (pd.DataFrame({"arm": ["A", pd.NA], "reward": [0.5, 0.5]}), "'arm' in row 1 .* is missing"),
    ([("A", 0.5), ("B", "0.731x")], "the reward in row 1 .* is not a number, got a value of type str"),
    ([("A", 0.5), ("B", "nan")], "the reward in row 1 .* is not a number"),
    ([("A", 0.5), ("B", [0.731])], "the reward in row 1 .* is not a number, got a value of type list"),
    ([("A", 0.5), ("D", 0.731)], r"the arm in row 1 .* is unknown: it must be one of \['A', 'B', 'C'\]"),
    ([("A", 0.5), (2, 0.731)], "the arm in row 1 .* is unknown"),
    ([(0, 0.5), (3, 0.731)], "the arm in row 0 .* is unknown"),
    ([(0, 0.5), (0.731, 0.5)], "the arm in row 0 .* is unknown"),
    ([(0, 0.5), ("9" * 5000, 0.5)], "the arm in row 0 .* is unknown"),
    ([("A", 0.5), ("B",)], "tuples of"),
    ([("A", 0.5, "p", 0.731)], "tuples of"),
    ([0.731], "tuples of"),
    (0.731, "tuples of .* got a float"),
    (b"0.731", "tuples of"),
]


@pytest.mark.parametrize(("log", "text"), BAD, ids=range(len(BAD)))
@pytest.mark.parametrize("durable", [False, True])
def test_a_bad_log_is_a_clear_error_that_knows_no_reward_and_changes_nothing(
    tmp_path: Path, log: Any, text: str, durable: bool
) -> None:
    agent = named(path=tmp_path / "a.db" if durable else None)
    before = everything(agent)
    with pytest.raises(InvalidInput, match=text) as refused:
        agent.warm_start(log)
    assert "731" not in str(refused.value)
    assert refused.value.__context__ is None
    assert everything(agent) == before
    assert agent.warm_start(LOG) == 5


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"", r"no column 'arm': it has \[\]"),
        (b"arm,reward\n", "the log is empty"),
        (b"A,0.731\nB,0.5\n", "is the line of names missing"),
        (b"arm,reward\nA,0.5\nB\n", r"2 columns, got 1 values in row 1 \(the first is 0\)"),
        (b"arm,reward\nA,0.5\nB,0.731,\n", "2 columns, got 3 values in row 1"),
        (b"arm,reward\nA,0.5\nB,\n", "'reward' in row 1 .* is missing"),
        (b"arm,reward\nA,NA\n", "the reward in row 0 .* is not a number"),
        (b"arm,arm\nA,0.731\n", "two columns of one name"),
        (b"arm,reward\nA\xff,0.731\n", "not a CSV file in UTF-8"),
        (b'arm,reward\n"A"x,0.731\n', "not a CSV file"),
    ],
)
def test_a_bad_file_is_a_clear_error(tmp_path: Path, content: bytes, text: str) -> None:
    (tmp_path / "log.csv").write_bytes(content)
    with pytest.raises(InvalidInput, match=text) as refused:
        named().warm_start(tmp_path / "log.csv")
    assert "731" not in str(refused.value)
    with pytest.raises(FileNotFoundError):
        named().warm_start(tmp_path / "other.csv")


def test_a_file_as_spreadsheets_write_it(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_bytes('\ufeffarm,reward\r\n"A",1\r\n\r\nB,0.5\r\n'.encode())
    agent = named()
    assert agent.warm_start(tmp_path / "log.csv") == 2


def test_bad_vectors_are_named() -> None:
    agent = pb.Agent(pb.AdaCOFUL(dimension=2, budget=pb.zCDP(1.0)))
    bad: list[tuple[Any, str]] = [
        ([([0.5], 0.5)], "2 columns"),
        ([([0.5, 0.5], 0.5), ([3.0, 4.0], 0.5)], "norm at most 1, got 5 in row 1"),
        ([([0.5, math.nan], 0.5)], "finite"),
        ([("A", 0.5)], "table of numbers"),
    ]
    for log, text in bad:
        with pytest.raises(InvalidInput, match=text):
            agent.warm_start(log)
    with pytest.raises(InvalidInput, match="a tuple holds the vector as one value"):
        agent.warm_start([(0.5, 0.5)], arm=["x", "y"])
    assert not agent.ledger.rows


def test_it_comes_first() -> None:
    agent = named()
    agent.ask()
    with pytest.raises(InvalidInput, match="before the first ask, and 1 decisions were made"):
        agent.warm_start(LOG)
    agent = named()
    agent.warm_start(LOG)
    with pytest.raises(InvalidInput, match="before the first ask, and 5 decisions"):
        agent.warm_start(LOG)
    agent.close()
    with pytest.raises(AgentClosed):
        agent.warm_start(LOG)


def test_a_limit_needs_people() -> None:
    agent = named(max_rewards_per_person=1)
    with pytest.raises(InvalidInput, match="tuples of \\(arm, reward, person\\), at least the first 3"):
        agent.warm_start(LOG)
    with pytest.raises(InvalidInput, match="no column 'person'"):
        agent.warm_start({"arm": ["A"], "reward": [1.0]})
    with pytest.raises(InvalidInput, match=r"'person' in row 0 .* is missing"):
        agent.warm_start({"arm": ["A"], "reward": [1.0], "person": [None]})
    assert agent.warm_start({"arm": ["A"], "reward": [1.0], "person": ["p"]}) == 1


@pytest.mark.parametrize("durable", [False, True])
def test_a_log_too_long_for_64_bits_changes_nothing(tmp_path: Path, durable: bool) -> None:
    agent = named(pb.zCDP(1.0), path=tmp_path / "a.db" if durable else None)
    grid = bandit_of(agent).door.grid
    bandit_of(agent).door.grid = Grid(grid.steps, capacity=2 * grid.steps, tail=grid.tail)
    before = everything(agent)
    with pytest.raises(CapacityExceeded, match="64 bits"):
        agent.warm_start(LOG)
    assert everything(agent) == before
    assert agent.warm_start(LOG[:3]) == 3


# Cut short.


@pytest.mark.usefixtures("old_objects_are_no_garbage")
@pytest.mark.parametrize("strike", STRIKES)
@pytest.mark.parametrize(
    ("durable", "stride"), [(False, 23), (True, 197), pytest.param(True, 7, marks=pytest.mark.full)]
)
def test_an_interrupt_anywhere_leaves_all_of_it_or_nothing(
    tmp_path: Path, durable: bool, stride: int, strike: Strike
) -> None:
    rows = [(arm, reward, str(i)) for i, (arm, reward) in enumerate(LOG)]
    outcomes = set()
    for at in range(1, 20_000, stride):
        path = tmp_path / f"{at}.db" if durable else None
        agent = named(max_rewards_per_person=1, path=path)
        cut = cut_short(partial(agent.warm_start, rows), at, partial(strike, agent))
        seen = shown(agent)
        outcomes.add(None if seen is None else len(seen))
        if path is not None:
            del agent
            gc.collect()
            with pb.Agent.open(path) as resumed:
                on_disk = [row.to_dict() for row in resumed.ledger]
                assert seen is None or on_disk == seen
                assert len(on_disk) == (2 if bandit_of(resumed).public.asked else 0)
                if not on_disk:
                    assert resumed.warm_start(rows) == 5
                assert means_and_rewards(resumed) == [(0.5, 2), (0.5, 3), (None, 0)]
        if not cut:
            break
    assert not cut
    assert outcomes == {None, 0, 2}


@dataclass(frozen=True)
class StumblingAtTwo(pb.AdaCUCB):
    """Its learn fails at the second release."""

    name: ClassVar[str] = "stumbling-at-two-for-tests"

    def learn(self, state: DoublingState, release: Release, step: int) -> None:
        super().learn(state, release, step)
        if release.number == 2:
            raise ZeroDivisionError


@pytest.mark.parametrize("durable", [False, True])
@pytest.mark.parametrize("failing", ["noise", "policy", "file"])
def test_a_failure_half_way_shows_nothing_of_the_first_release(tmp_path: Path, durable: bool, failing: str) -> None:
    if failing == "file" and not durable:
        pytest.skip("there is no file")
    path = tmp_path / "a.db" if durable else None
    kind = StumblingAtTwo if failing == "policy" else pb.AdaCUCB
    agent = pb.Agent(kind(arms=["A", "B"], budget=pb.zCDP(1.0)), path=path)
    released: list[Release] = []
    through = bandit_of(agent).door.release

    def release(whole: Any) -> Release:
        if failing == "noise" and released:
            raise NoiseFailed("the noise could not be drawn")
        released.append(through(whole))
        return released[-1]

    bandit_of(agent).door.release = release  # type: ignore[method-assign]
    if failing == "file":
        connection_of(agent).execute(
            "CREATE TRIGGER full BEFORE INSERT ON ledger BEGIN SELECT RAISE(ABORT, 'disk failure'); END"
        )
    expected = {"noise": NoiseFailed, "policy": PolicyFailed, "file": AgentClosed}[failing]
    with pytest.raises(expected) as failed:
        agent.warm_start(LOG)
    text = "".join(traceback.format_exception(failed.value)) + repr(agent)
    for frame, _ in traceback.walk_tb(failed.value.__traceback__):
        if frame.f_code.co_filename.startswith(PACKAGE):
            text += walk(frame.f_locals)
    assert released
    assert str(released[0].values[0]) not in text
    reads: list[Callable[[], Any]] = [lambda: agent.ledger, agent.estimates, lambda: agent.learned, agent.ask]
    if failing == "policy":  # it learned the first release, and failed at the second; both are in the ledger
        assert agent.ledger.rows == tuple(released)
        del reads[0]
    for read in reads:
        with pytest.raises(PolicyFailed if failing == "policy" else AgentClosed):
            read()
    if path is not None and failing == "noise":
        with pb.Agent.open(path) as resumed:
            assert resumed.warm_start(LOG) == 5


def test_no_call_from_within() -> None:
    agent = named()

    def meddling() -> Any:
        yield "A", 1.0
        agent.warm_start(LOG)

    with pytest.raises(InvalidInput, match="5 decisions were made"):  # a generator may use the agent
        agent.warm_start(meddling())


class _Starting(float):
    """A reward that starts an agent from a log when it is looked at."""

    agent: pb.Agent

    def __float__(self) -> float:
        self.agent.warm_start(LOG)
        return 1.0


def test_no_call_in_the_middle_of_another() -> None:
    agent = named()
    decision, reward = agent.ask(), _Starting(1.0)
    reward.agent = agent
    with pytest.raises(AgentBusy):
        agent.tell(decision, reward)
    assert agent.open_decisions == [decision]
