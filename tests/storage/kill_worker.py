"""Works on an agent's file until it is killed, and writes down what it does: python kill_worker.py FILE JOURNAL LIFE.

A line of the journal is a JSON list: what happened, then the particulars.

    ["asked", person, [[id, action], ...]]        after an ask returned
    ["tell", [[id, played, reward], ...]]         before a tell or tell_many
    ["give up", [[id]]]                           before a give_up
    ["done"]                                      after the call of the line before returned
    ["saw", [row, ...]]                           new rows of the ledger, after the tell that released them

It says "ready" on its standard output once it has the file. tests/storage/test_kill.py reads the journal.
"""

from __future__ import annotations

import json
import os
import random
import sys
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

import private_bandits as pb
from private_bandits.mechanism.factor import Factor

MOST_WAITING = 24
PEOPLE_PER_LIFE = 100


@dataclass(frozen=True)
class HeldAgain(pb.IndexPolicy):
    """Releases hold the two episodes before them again, in factors of three releases, with noise or without.

    every: rewards in an episode.
    """

    name: ClassVar[str] = "held-again-for-tests"
    supported_budgets: ClassVar[tuple[str, ...]] = ("zCDP", "NoPrivacy")

    every: int = 2

    @property
    def factor(self) -> Factor:
        """Powers of two: without noise, what is decoded is exact."""
        return Factor((4, 2, 1), 4, 3)

    def index(self, means: Any, counts: Any, step: Any, width: float) -> Any:
        """Whatever it is."""
        return means + width / np.sqrt(counts)

    def due(self, state: Any, key: int, count: int, arrived: Any) -> bool:
        """Episodes of one length."""
        return count >= self.every


class Worker:
    """Asks, and tells late, in any order, one by one or many at once."""

    def __init__(self, agent: pb.Agent, journal: int, life: int) -> None:
        self.agent = agent
        self.journal = journal
        self.life = life
        self.random = random.Random(life)
        dimension = getattr(agent.policy, "dimension", 0)
        self.actions = np.eye(dimension) if dimension and not agent.policy.arm_names else None
        self.arms = len(agent.policy.arm_names) or dimension
        self.waiting = agent.open_decisions
        self.rows = len(agent.ledger)

    def work(self) -> None:
        """For ever."""
        while True:
            if len(self.waiting) < self.random.randint(1, MOST_WAITING):
                self.ask()
            else:
                self.random.choices([self.tell, self.tell_many, self.give_up], [60, 30, 10])[0]()

    def ask(self) -> None:
        """One decision, or several; the person may be one of the life before."""
        person = f"{self.life - (self.random.random() < 0.2)}/{self.random.randrange(PEOPLE_PER_LIFE)}"
        if self.random.random() < 0.5:
            found = [self.agent.ask(person=person, actions=self.actions)]
        else:
            found = self.agent.ask(self.random.randint(1, 8), person=person, actions=self.actions)
        self.write("asked", person, [[d.id, d.action] for d in found])
        self.waiting += found

    def tell(self) -> None:
        """One late reward."""
        decision, played, reward = self.outcome()
        self.write("tell", [[decision.id, played, reward]])
        if played == decision.action:
            self.agent.tell(decision, reward)
        else:
            self.agent.tell(decision.id, reward, played=played)
        self.told()

    def tell_many(self) -> None:
        """Several at once."""
        outcomes = [self.outcome() for _ in range(min(len(self.waiting), self.random.randint(1, 12)))]
        self.write("tell", [[decision.id, played, reward] for decision, played, reward in outcomes])
        self.agent.tell_many([(decision, reward, played) for decision, played, reward in outcomes])
        self.told()

    def give_up(self) -> None:
        """A reward that will never come."""
        decision = self.take()
        self.write("give up", [[decision.id]])
        self.agent.give_up(decision)
        self.write("done")

    def take(self) -> pb.Decision:
        """Any of those that wait."""
        i = self.random.randrange(len(self.waiting))
        self.waiting[i], self.waiting[-1] = self.waiting[-1], self.waiting[i]
        return self.waiting.pop()

    def outcome(self) -> tuple[pb.Decision, int, float]:
        """A decision, what was played and a reward that is exact on the grid. Often another arm than was asked."""
        decision = self.take()
        played = self.random.randrange(self.arms) if self.random.random() < 0.7 else decision.action
        return decision, played, self.random.randint(0, 8) / 8

    def told(self) -> None:
        """Write down that the tell returned, and the rows that can be seen since."""
        self.write("done")
        ledger = self.agent.ledger
        if len(ledger) > self.rows:
            self.write("saw", [row.to_dict() for row in ledger.rows[self.rows :]])
            self.rows = len(ledger)

    def write(self, *line: Any) -> None:
        """One system call: a killed process leaves whole lines, but perhaps for the last."""
        os.write(self.journal, json.dumps(line).encode() + b"\n")


def main(path: str, journal: str, life: str) -> None:
    """Take the file over, say so, and work."""
    handle = os.open(journal, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    worker = Worker(pb.Agent.open(path), handle, int(life))
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    worker.work()


if __name__ == "__main__":
    main(*sys.argv[1:])
