"""An agent that is killed at any moment loses no reward, counts none twice and takes no release back.

The worker (kill_worker.py) writes down what it is about to tell and what came back. After each kill the file is
opened, whatever was told without an answer is told again, and the file must then hold what was written down.
"""

from __future__ import annotations

import json
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import private_bandits as pb
from private_bandits.agent import bandit_of
from private_bandits.errors import AgentBusy, ClosedDecision
from private_bandits.ledger import Release
from private_bandits.policies import Policy
from tests.storage.kill_worker import HeldAgain

WORKER = Path(__file__).with_name("kill_worker.py")
ARMS = 48  # many arms, many releases
MOST_ASKED_AT_ONCE = 8
REWARDS_PER_PERSON = 3
DOUBLING = pb.AdaCUCB(n_arms=ARMS, budget=pb.NoPrivacy(), variant="paper")
REMEMBERS = pb.AdaCIMED(n_arms=ARMS, budget=pb.zCDP(4.0))  # releases hold earlier episodes again
HELD_AGAIN = HeldAgain(n_arms=6, budget=pb.NoPrivacy())
TREES = pb.TreeUCB(n_arms=6, budget=pb.NoPrivacy(), horizon=100)  # seven levels; rewards go on in new trees
DIMENSION = 4
CONTEXTS = pb.AdaCOFUL(dimension=DIMENSION, budget=pb.NoPrivacy(), horizon=10**5, regulariser=1.0, growth=0.02)
USED_UP = pb.AdaCOFUL(DIMENSION, pb.zCDP(1.0), horizon=1, regulariser=1.0, growth=0.2)  # factors of four releases
MOMENTS = pb.AdaCOFULPrivate(DIMENSION, pb.zCDP(1.0), growth=0.05)  # contexts are private, and sums are held again
PHASES = pb.AdaCGOPEVar(actions=np.eye(ARMS), budget=pb.NoPrivacy(), phase_factor=1e-6)  # every action in every phase


class Book:
    """What the journals of all lives say, kept as the simplest possible model of an agent."""

    def __init__(self, limit: int | None) -> None:
        self.limit = limit
        self.person_of: dict[str, str] = {}  # of every decision ever handed out
        self.open: set[str] = set()
        self.unanswered: list[list[Any]] = []  # of the last call: [id] to give up, [id, played, reward] to tell
        self.tells = 0
        self.counts: Counter[int] = Counter()
        self.sums: defaultdict[int, float] = defaultdict(float)
        self.rewards_of: Counter[str] = Counter()
        self.seen: list[pb.Release] = []

    def read(self, journal: Path) -> None:
        """Take in one life. A kill may have cut its last line short: that one counts as not written."""
        for line in journal.read_bytes().split(b"\n")[:-1]:
            match json.loads(line):
                case ["asked", person, decisions]:
                    for key, _ in decisions:
                        assert key not in self.person_of, "an id was handed out twice"
                        self.person_of[key] = person
                        self.open.add(key)
                case ["tell" | "give up", items]:
                    assert not self.unanswered
                    self.unanswered = items
                case ["done"]:
                    self.answered()
                case ["saw", rows]:
                    self.seen += [pb.Release.from_dict(row) for row in rows]
                case other:
                    raise AssertionError(other)

    def answered(self) -> None:
        """The last call has taken effect: each of its decisions is given up, or has its reward."""
        for key, *outcome in self.unanswered:
            self.open.remove(key)
            if outcome:
                self.add(self.person_of[key], *outcome)
        self.unanswered = []

    def add(self, person: str, played: int, reward: float) -> None:
        """Count a reward, within the person's limit."""
        self.tells += 1
        if self.limit is None or self.rewards_of[person] < self.limit:
            self.rewards_of[person] += 1
            self.counts[played] += 1
            self.sums[played] += reward


def live_and_be_killed(path: Path, journal: Path, life: int, seconds: float) -> None:
    """A worker owns the file from its start to its end, which is SIGKILL after `seconds` of load."""
    command = [sys.executable, str(WORKER), str(path), str(journal), str(life)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            if process.stdout.readline() == "ready\n":
                started = time.monotonic()
                with pytest.raises(AgentBusy, match="in use by another agent"):
                    pb.Agent.open(path)
                time.sleep(max(0.0, started + seconds - time.monotonic()))
        finally:
            process.kill()
            _, errors = process.communicate()
    assert process.returncode == -signal.SIGKILL, errors


def reconcile(agent: pb.Agent, book: Book) -> None:
    """Compare what is open with the book, and call again what was called without an answer."""
    held = {decision.id for decision in agent.open_decisions}
    in_doubt = {key for key, *_ in book.unanswered}
    assert book.open - in_doubt <= held, "a decision that nobody closed is not open"
    unheard = held - book.open  # handed out by an ask that was killed before it could be written down
    assert unheard.isdisjoint(book.person_of), "a decision that was closed is open"
    assert len(unheard) <= (0 if in_doubt else MOST_ASKED_AT_ONCE)
    waiting = [item[0] in held for item in book.unanswered]
    assert waiting == sorted(waiting), "of a batch, more is on disk than what came first"
    for key in unheard:
        book.person_of[key] = ""
        agent.give_up(key)
    for item in book.unanswered:
        if item[0] in held:
            call_again(agent, *item)  # was not on disk, and is accepted
        with pytest.raises(ClosedDecision):  # is on disk
            call_again(agent, *item)
    book.answered()
    assert {decision.id for decision in agent.open_decisions} == book.open


def call_again(agent: pb.Agent, key: str, played: int | None = None, reward: float | None = None) -> None:
    """What the worker was about to do with a decision."""
    if reward is None:
        agent.give_up(key)
    else:
        agent.tell(key, reward, played=played)


def check_sums(agent: pb.Agent, book: Book, exact: bool) -> None:
    """Every reward told is in one release or in an open episode, once; in a tree, in one node that no other covers.

    Where a release holds earlier episodes again, they are taken out of it.
    """
    counts: Counter[int] = Counter()
    sums: defaultdict[int, float] = defaultdict(float)
    alone: dict[str, float] = {}
    for row in agent.ledger:
        counts.update(dict(zip(row.keys, row.counts, strict=True)))
    for row in topmost(agent.ledger.rows):
        for key, label, value in zip(row.keys, newest(row), row.values, strict=False):
            alone[label] = value - sum(row.episodes[earlier] * alone[earlier] for earlier in held_again(row))
            sums[key] += alone[label]
    for arm, episode in bandit_of(agent).private.episodes.items():
        counts[arm] += episode.count
        sums[arm] += episode.dump()["totals"][0] / episode.grid.steps
        if exact and agent.policy.factor:
            assert [alone[part.label] for part in episode.kept] == [
                part.dump()["totals"][0] / part.grid.steps for part in episode.kept
            ]
    assert +counts == book.counts
    if exact:
        assert {arm: sums[arm] for arm in book.counts} == dict(book.sums)


def newest(row: Release) -> list[str]:
    """The episodes that a release holds for the first time."""
    return list(row.episodes)[: len(row.keys)]


def held_again(row: Release) -> list[str]:
    """Those that releases before it held as well."""
    return list(row.episodes)[len(row.keys) :]


def topmost(rows: Sequence[pb.Release]) -> list[pb.Release]:
    """Without the nodes of trees that a later one covers: "3/4-6" is the node of leaf 6 above those of 4 and 5."""
    found: defaultdict[str, list[tuple[int, pb.Release]]] = defaultdict(list)
    for row in rows:
        key, _, node = next(iter(row.episodes)).partition("/")
        first, last = int(node.split("-")[0]), int(node.split("-")[-1])
        while found[key] and found[key][-1][0] >= first:
            found[key].pop()
        found[key].append((last, row))
    return [row for kept in found.values() for _, row in kept]


def check_coordinates(agent: pb.Agent, book: Book, exact: bool) -> None:
    """Actions were unit vectors: coordinate j of the sum of a r, in steps of the grid, is of action j alone."""
    assert isinstance(agent.policy, pb.AdaCOFUL)
    steps = round(1 / agent.policy.unit)
    (episode,) = bandit_of(agent).private.episodes.values()
    assert episode.count + sum(row.counts[0] for row in agent.ledger) == book.counts.total()
    if exact:
        values = sum(
            (np.array(row.values) for row in agent.ledger), np.array(episode.dump()["totals"]) / episode.grid.steps
        )
        assert dict(enumerate(values / steps)) == {j: book.sums[j] for j in range(DIMENSION)}
    state = bandit_of(agent).public.policy  # V knows the same rewards
    actions = state.frozen - CONTEXTS.regulariser * np.eye(DIMENSION) + state.gather() / steps**2
    np.testing.assert_allclose(actions, np.diag([book.counts[j] for j in range(DIMENSION)]), atol=1e-6)


def check_moments(agent: pb.Agent, book: Book, exact: bool) -> None:
    """Actions were unit vectors: a person is in one number on the diagonal of the sum of a a', and nowhere off it."""
    policy = agent.policy
    assert isinstance(policy, pb.AdaCOFULPrivate)
    scale = policy.moments(0.0, 1.0)
    counts = [row.count for row in agent.ledger]
    (episode,) = bandit_of(agent).private.episodes.values()
    assert episode.count + sum(counts) == book.counts.total()
    for part in (episode, *episode.kept):
        one = round(scale.kappa * part.grid.steps)
        matrix = np.zeros((DIMENSION, DIMENSION), object)
        matrix[np.triu_indices(DIMENSION)] = part.dump()["totals"][:-DIMENSION]
        assert [total % one for total in np.diag(matrix)] == [0] * DIMENSION
        assert matrix.sum() == np.trace(matrix) == part.count * one
    state = bandit_of(agent).public.policy  # the policy knows every row
    assert [row.tolist() for row in state.released.values] == [list(row.values) for row in agent.ledger]
    assert counts == [policy.memory.length(sum(counts[:j])) for j in range(len(counts))]
    assert state.rewards == sum(counts)


def check_ledger(agent: pb.Agent, book: Book) -> None:
    """Rows without gap, no episode twice, nothing seen taken back."""
    rows = agent.ledger.rows
    assert [row.number for row in rows] == list(range(1, len(rows) + 1))
    labels = [label for row in rows for label in newest(row)]
    assert len(set(labels)) == len(labels)
    for row in book.seen:
        assert rows[row.number - 1] == row, "a release that was seen is not the one on disk"
    book.seen = list(rows)


def check_kept(agent: pb.Agent) -> None:
    """With a factor, each release holds what came before it in its factor, and each open sum keeps what its own will.

    What is kept has as many rewards as when it was released for the first time.
    """
    factor = agent.policy.factor
    if factor is None:
        return
    counts: dict[str, int] = {}
    for row in agent.ledger:
        (label,) = newest(row)
        number = int(label.partition("/")[2])
        counts[label] = row.count
        wanted = [f"{row.key}/{number - k}" for k in range(factor.covered(number))]
        assert list(row.episodes) == wanted
        assert [c * factor.unit for c in row.episodes.values()] == list(factor.multipliers[: len(wanted)])
        assert [part.rewards for part in row.parts] == [counts[label] for label in wanted]
    for episode in bandit_of(agent).private.episodes.values():
        wanted = [f"{episode.key}/{episode.number - k}" for k in range(1, factor.covered(episode.number))]
        assert [part.label for part in reversed(episode.kept)] == wanted
        assert [part.count for part in reversed(episode.kept)] == [counts[label] for label in wanted]
    assert agent.ledger.total <= agent.policy.budget.level


def check_doubling(agent: pb.Agent) -> None:
    """The policy knows every row: counts double, and means are the last of each arm."""
    rows = agent.ledger.rows
    of_arm = {arm: [row for row in rows if row.key == arm] for arm in range(ARMS)}
    for estimate in agent.estimates():
        released = of_arm[estimate.action]
        counts = [row.counts[0] for row in released]
        assert counts == [max(1, sum(counts[:j])) for j in range(len(counts))]
        assert estimate.rewards == (counts[-1] if counts else 0)
        if released:
            assert estimate.mean == min(max(released[-1].values[0] / released[-1].count, 0.0), 1.0)


def check_memory(agent: pb.Agent) -> None:
    """The policy knows every row: counts are as planned, and estimates are of all rewards of each arm."""
    policy = agent.policy
    assert isinstance(policy, pb.AdaCIMED)
    for estimate in agent.estimates():
        counts = [row.count for row in agent.ledger if row.key == estimate.action]
        assert counts == [policy.memory.length(sum(counts[:j])) for j in range(len(counts))]
        assert estimate.rewards == sum(counts)


def check_phases(agent: pb.Agent) -> None:
    """The policy knows every row: one a phase, of all actions, with as many rewards as were planned or more."""
    rows = agent.ledger.rows
    state = bandit_of(agent).public.policy
    assert state.phase == len(rows) + 1
    assert state.active == list(range(ARMS)), "actions of one mean"
    for phase, row in enumerate(rows, 1):
        plan = PHASES.plan(phase, range(ARMS))
        assert row.keys == tuple(plan)
        assert all(count >= planned for count, planned in zip(row.counts, plan.values(), strict=True))
    if rows:
        assert state.rewards == [rows[-1].count] * ARMS


@pytest.mark.parametrize("kills", [2, pytest.param(100, marks=pytest.mark.full)])
@pytest.mark.parametrize(
    ("policy", "limit"),
    [
        (DOUBLING, None),
        (REMEMBERS, None),
        (DOUBLING, REWARDS_PER_PERSON),
        (PHASES, None),
        (TREES, None),
        (TREES.with_budget(pb.zCDP(1.0)), REWARDS_PER_PERSON),
        (CONTEXTS, None),
        (CONTEXTS.with_budget(pb.zCDP(1.0)), REWARDS_PER_PERSON),
        (HELD_AGAIN, None),
        (USED_UP, None),
        (MOMENTS, None),
    ],
    ids=[
        "exact sums",
        "with noise",
        "limit per person",
        "in phases",
        "trees",
        "noisy trees",
        "contexts",
        "noisy contexts",
        "held again",
        "contexts held again",
        "private contexts held again",
    ],
)
def test_killed_at_any_moment_nothing_told_is_lost_or_counted_twice_and_nothing_seen_is_taken_back(
    policy: Policy[Any],
    limit: int | None,
    kills: int,
    tmp_path: Path,
) -> None:
    path = tmp_path / "agent.db"
    exact = isinstance(policy.budget, pb.NoPrivacy)
    check_totals = {CONTEXTS.name: check_coordinates, MOMENTS.name: check_moments}.get(policy.name, check_sums)
    check_policy = {DOUBLING.name: check_doubling, REMEMBERS.name: check_memory, PHASES.name: check_phases}.get(
        policy.name
    )
    pb.Agent(policy, path=path, max_rewards_per_person=limit).close()
    moments = random.Random(20240)
    book = Book(limit)
    for life in range(kills):
        journal = tmp_path / f"journal-{life}"
        live_and_be_killed(path, journal, life, moments.uniform(0.010, 0.300))
        book.read(journal)
        with pb.Agent.open(path) as agent:
            reconcile(agent, book)
            check_totals(agent, book, exact)
            check_ledger(agent, book)
            check_kept(agent)
            if check_policy:
                check_policy(agent)
    assert book.tells > 2 * kills, "the workers had hardly begun"
    assert len(book.seen) >= kills // (20 if policy is PHASES else 2)
    with pb.Agent.open(path) as agent:  # and what was told again here is on disk as well
        assert {decision.id for decision in agent.open_decisions} == book.open
        check_totals(agent, book, exact)
        check_ledger(agent, book)
        check_kept(agent)
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()
