"""Workers that are killed at any moment lose no reward, count none twice and take no release back.

Several workers (worker.py) ask and tell on one bandit, and write down what they do. All are killed, and others go on.
At the end whatever was told without an answer is told again. Without noise, all releases together hold exactly the
rewards that were told.
"""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import private_bandits as pb
from private_bandits.policies import Policy
from private_bandits.service.committer import Committer
from private_bandits.service.creating import create
from private_bandits.service.operations import Finish, Tell
from private_bandits.storage.sql.database import Database
from tests.databases import KINDS, DatabaseAgent, address, opened

ARMS = 48
"""Many arms, many releases."""
POLICIES: dict[str, Policy[Any]] = {
    "without noise": pb.AdaCUCB(n_arms=ARMS, budget=pb.NoPrivacy()),
    "held again": pb.AdaCIMED(n_arms=ARMS, budget=pb.zCDP(40.0)),
}
WORKERS = 2


class Book:
    """What all journals say."""

    def __init__(self) -> None:
        self.asked: set[str] = set()
        self.told: dict[str, tuple[int, float]] = {}
        self.answered: dict[str, str] = {}
        self.seen: dict[int, str] = {}

    def read(self, journal: Path) -> None:
        """Take in one life. A kill may have cut its last line short: that one counts as not written."""
        for line in journal.read_bytes().split(b"\n")[:-1]:
            match json.loads(line):
                case ["asked", made]:
                    keys = {key for key, _ in made}
                    assert len(keys) == len(made)
                    assert keys.isdisjoint(self.asked), "an id was handed out twice"
                    self.asked |= keys
                case ["tell", key, played, reward]:
                    assert key not in self.told
                    self.told[key] = played, reward
                case ["done", key, outcome]:
                    assert outcome == "recorded"
                    self.answered[key] = outcome
                case ["saw", texts]:
                    self.see(texts)
                case other:
                    raise AssertionError(other)

    def see(self, texts: list[str]) -> None:
        """A release that was seen stays what it was."""
        for text in texts:
            number = json.loads(text)["number"]
            assert self.seen.setdefault(number, text) == text, f"release {number} was drawn again"


def live_and_be_killed(kind: str, folder: Path, life: int, script: random.Random) -> list[Path]:
    """Several workers at once, until they have done a little and all are killed. Returns their journals."""
    journals = [folder / f"{life}-{number}" for number in range(WORKERS)]
    command = [sys.executable, "-m", "tests.service.worker", "load", address(kind, folder)]
    processes = [
        subprocess.Popen(
            [*command, str(journal), str(WORKERS * life + number)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number, journal in enumerate(journals)
    ]
    try:
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        least, until = script.randint(20, 150), time.monotonic() + 60
        while answered_in(journals) < least and time.monotonic() < until:
            time.sleep(0.005)
        time.sleep(script.uniform(0, 0.02))
    finally:
        for process in processes:
            process.kill()
    for process in processes:
        _, errors = process.communicate()
        assert process.returncode == -signal.SIGKILL, errors
    return journals


def answered_in(journals: list[Path]) -> int:
    """Return how many tells were answered so far."""
    return sum(journal.read_bytes().count(b'["done"') for journal in journals)


def settle(database: Database, book: Book) -> None:
    """Tell again what was told without an answer, and some of what was answered, with other rewards."""
    with Committer(database) as committer:
        for key, (played, reward) in book.told.items():
            outcome = committer.run("trial", Tell(key, reward, played)) if key not in book.answered else "recorded"
            assert outcome in ("recorded", "already_recorded")
        for key in list(book.answered)[::50]:
            assert committer.run("trial", Tell(key, 0.0)) == "already_recorded"
        committer.run("trial", Finish())


def check(database: Database, book: Book, exact: bool) -> None:
    """Every reward that was told is in one release for the first time, and no release was drawn twice."""
    agent = DatabaseAgent.resume(database)  # checks the ledger against the sums, too
    ledger = agent.ledger
    book.see([row.text for row in ledger])
    new = [part.episode for row in ledger for part in row.parts if part.new]
    assert len(set(new)) == len(new), "an episode was released twice"
    assert ledger.verify().ok
    assert agent.counts.told == len(book.told)
    assert agent.counts.asked >= len(book.asked)
    counts, sums = Counter[int](), Counter[int]()
    for played, reward in book.told.values():
        counts[played] += 1
        sums[played] += round(8 * reward)
    found: Counter[int] = Counter()
    values: dict[int, float] = dict.fromkeys(range(ARMS), 0.0)
    for row in ledger:
        found[row.key] += row.count
        values[row.key] += row.values[0]
    assert found == counts
    if exact:
        assert {arm: 8 * value for arm, value in values.items()} == {arm: sums[arm] for arm in range(ARMS)}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("name", "kills"),
    [
        ("without noise", 3),
        pytest.param("without noise", 100, marks=pytest.mark.full),
        pytest.param("held again", 100, marks=pytest.mark.full),
    ],
)
def test_no_kill_loses_a_reward_or_draws_again(name: str, kills: int, kind: str, tmp_path: Path) -> None:
    database, book = opened(kind, tmp_path), Book()
    options: dict[str, Any] = {"give_up_after": None}
    create(database, "trial", POLICIES[name], **options)
    script = random.Random(kills)
    for life in range(kills):
        for journal in live_and_be_killed(kind, tmp_path, life, script):
            book.read(journal)
    assert len(book.answered) >= 20 * kills
    assert len(book.seen) > 5
    settle(database, book)
    check(database, book, exact=name == "without noise")
