"""Several workers on one database do what one agent in memory does: the same decisions, the same ledger."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import private_bandits as pb
from private_bandits.audit.offers import OFFERED
from private_bandits.errors import ClosedDecision
from private_bandits.policies import Policy
from private_bandits.service.committer import Committer
from private_bandits.service.creating import create
from private_bandits.service.operations import Ask, Operation, Tell
from private_bandits.storage.sql.database import Database
from private_bandits.testing import offered
from tests.databases import KINDS, DatabaseAgent, address, opened
from tests.service.worker import plain_outcome

Run = Callable[[str, dict[str, Any]], Any]
"""Runs an operation somewhere. Returns its outcome as plain data."""

SEED = 5
POLICIES: dict[str, Policy[Any]] = {
    "held-again": pb.AdaCIMED(arms=["A", "B", "C"], budget=pb.zCDP(50.0)),
    "tree": pb.TreeUCB(n_arms=2, budget=pb.PureDP(1.0), horizon=100),
    "together": pb.AdaCGOPEVar(actions=np.eye(3), budget=pb.zCDP(1.0), phase_factor=1e-6),
    "contexts": pb.AdaCOFUL(dimension=3, budget=pb.zCDP(1.0), horizon=1000),
    "private-contexts": pb.AdaCOFULPrivate(dimension=3, budget=pb.zCDP(1.0), horizon=1000),
}
OPTIONS: dict[str, dict[str, Any]] = {
    "held-again": {"max_rewards_per_person": 3, "one_reward_per_episode": True, "unit": "person"},
    "tree": {"give_up_after": 15},
    "together": {"control": 0},
    "contexts": {"max_rewards_per_person": 4},
}
WORDS = {"already_recorded": "told before", "given_up": "given up", "over_limit": "its person had"}
"""What an agent says of a decision that is closed, by what a worker says."""


class Twin:
    """An agent in memory, and workers that are to do the same. Decisions are named by their numbers."""

    def __init__(self, policy: Policy[Any], options: dict[str, Any], workers: list[Run], script: random.Random) -> None:
        self.agent = pb.Agent(policy, seed=SEED, **options)
        self.workers, self.script = workers, script
        self.made: list[tuple[pb.Decision, str]] = []
        self.limited = "max_rewards_per_person" in options

    def ask(self, step: int) -> None:
        """The same decisions."""
        actions = offered(self.agent.policy, step)
        person = f"p{self.script.randrange(60)}" if self.limited else None
        n = self.script.choice([1, 1, 2, 6])
        own = self.agent.ask(n, actions=actions, person=person)
        plain = actions if actions is None else [list(map(float, row)) for row in actions]
        theirs = self.run("ask", n=n, actions=plain, person=person)
        assert [(action, arm) for _, action, arm in theirs] == [(one.action, one.arm) for one in own]
        self.made += [(one, other[0]) for one, other in zip(own, theirs, strict=True)]

    def tell(self) -> None:
        """The same outcomes, also of decisions that are closed."""
        (one, other), reward = self.script.choice(self.made), self.script.random()
        arms = len(self.agent.policy.arm_names) or OFFERED
        played = self.script.randrange(arms) if self.script.random() < 0.3 else None
        before = self.agent.counts
        outcome = self.run("tell", decision=other, reward=reward, played=played)
        refusal = ""
        try:
            self.agent.tell(one, reward, played=played)
        except ClosedDecision as error:
            refusal = str(error)
        if refusal:
            assert WORDS[outcome] in refusal
        else:
            assert outcome == ("recorded" if self.agent.counts.told > before.told else "over_limit")

    def give_up(self) -> None:
        """The same, where the decision is open."""
        one, other = self.script.choice(self.made)
        outcome = self.run("give_up", decision=other)
        try:
            self.agent.give_up(one)
        except ClosedDecision:
            assert outcome in ("already_recorded", "given_up", "over_limit")
        else:
            assert outcome == "given_up"

    def run(self, kind: str, **arguments: Any) -> Any:
        """Let any of the workers do it."""
        return self.script.choice(self.workers)(kind, arguments)

    def act(self, steps: int) -> None:
        """Many steps, with late and missing rewards."""
        for step in range(steps):
            self.ask(step)
            for _ in range(self.script.randrange(4)):
                self.tell()
            if self.script.random() < 0.1:
                self.give_up()

    def check(self, database: Database) -> None:
        """Everything that is public, and the ledger, checked as that of a file is."""
        found = DatabaseAgent.resume(database)
        assert found.ledger.rows == self.agent.ledger.rows
        assert len(found.ledger) > 5
        assert found.ledger.verify().ok
        assert found.ledger.total == self.agent.ledger.total
        assert found.counts == self.agent.counts
        assert found.learned == self.agent.learned
        assert [d.action for d in found.open_decisions] == [d.action for d in self.agent.open_decisions]


def made(database: Database, name: str) -> None:
    options: dict[str, Any] = {"give_up_after": None} | OPTIONS.get(name, {})
    create(database, "trial", POLICIES[name], seed=SEED, **options)


@contextmanager
def in_this_process(kind: str, folder: Path, count: int) -> Iterator[list[Run]]:
    """Workers with connections and copies of their own."""
    with ExitStack() as stack:
        committers = [stack.enter_context(Committer(opened(kind, folder))) for _ in range(count)]

        def runs(committer: Committer) -> Run:
            return lambda name, arguments: json.loads(json.dumps(plain_outcome(committer, name, arguments)))

        yield [runs(committer) for committer in committers]


@contextmanager
def in_processes(kind: str, folder: Path, count: int) -> Iterator[list[Run]]:
    """Workers that are processes."""
    command = [sys.executable, "-m", "tests.service.worker", "serve", address(kind, folder)]
    with ExitStack() as stack:
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        started = [stack.enter_context(subprocess.Popen(command, **pipes)) for _ in range(count)]

        def runs(process: subprocess.Popen[str]) -> Run:
            def run(name: str, arguments: dict[str, Any]) -> Any:
                assert process.stdin is not None
                assert process.stdout is not None
                process.stdin.write(json.dumps([name, arguments]) + "\n")
                process.stdin.flush()
                return json.loads(process.stdout.readline())

            return run

        try:
            yield [runs(process) for process in started]
        finally:
            for process in started:
                assert process.stdin is not None
                process.stdin.close()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", POLICIES)
def test_workers_decide_and_release_as_one_agent_does(name: str, kind: str, tmp_path: Path) -> None:
    database = opened(kind, tmp_path)
    made(database, name)
    with in_this_process(kind, tmp_path, 3) as workers:
        twin = Twin(POLICIES[name], OPTIONS.get(name, {}), workers, random.Random(7))
        twin.act(50)
        twin.check(database)
        assert twin.run("finish") == twin.agent.finish()
        twin.check(database)
        assert twin.run("ask") == "AgentFinished"


@pytest.mark.parametrize("kind", KINDS)
def test_so_do_workers_in_processes_of_their_own(kind: str, tmp_path: Path) -> None:
    database = opened(kind, tmp_path)
    made(database, "held-again")
    with in_processes(kind, tmp_path, 2) as workers:
        twin = Twin(POLICIES["held-again"], OPTIONS["held-again"], workers, random.Random(8))
        twin.act(40)
        twin.check(database)


def test_many_operations_at_once_are_done_in_their_order(tmp_path: Path) -> None:
    """They are cut into batches where they release, and the same comes out."""
    database = opened("sqlite", tmp_path)
    made(database, "held-again")
    agent = pb.Agent(POLICIES["held-again"], seed=SEED, **OPTIONS["held-again"])
    script = random.Random(3)
    with Committer(database) as committer:
        people = [f"p{i}" for i in range(300)]
        asked = [future.result()[0] for future in committer.submit_many("trial", [Ask(person=p) for p in people])]
        own = [agent.ask(person=person) for person in people]
        assert [one.action for one in asked] == [one.action for one in own]
        rewards = [(i, script.random()) for i in script.sample(range(300), 250)]
        tells: list[Operation] = [Tell(asked[i].id, reward) for i, reward in rewards]
        outcomes = [future.result() for future in committer.submit_many("trial", tells)]
    agent.tell_many([(own[i], reward) for i, reward in rewards])
    found = DatabaseAgent.resume(database)
    assert outcomes.count("recorded") == agent.counts.told
    assert found.ledger.rows == agent.ledger.rows
    assert len(found.ledger) > 10
    assert found.counts == agent.counts
