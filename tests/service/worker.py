"""A worker process of the service, for tests: python -m tests.service.worker serve|load ADDRESS [JOURNAL LIFE].

serve: reads operations from its standard input, a line of JSON each, and writes their outcomes to its standard output.
load: asks and tells from three threads until it is killed, and writes down what it does, a line of JSON each:

    ["asked", [[id, action], ...]]     after an ask was answered
    ["tell", id, played, reward]       before a tell
    ["done", id, outcome]              after it was answered
    ["saw", [text, ...]]               new rows of the ledger, as any reader sees them
"""

from __future__ import annotations

import json
import os
import random
import sys
import threading
import time
from typing import Any

import sqlalchemy as sa

from private_bandits.errors import PrivateBanditsError
from private_bandits.service.committer import Committer
from private_bandits.service.operations import Ask, Finish, GiveUp, Operation, Tell
from private_bandits.storage.sql.database import Database
from private_bandits.storage.sql.schema import releases

OPERATIONS: dict[str, type[Operation]] = {"ask": Ask, "tell": Tell, "give_up": GiveUp, "finish": Finish}
CLIENTS = 3


def plain_outcome(committer: Committer, kind: str, arguments: dict[str, Any]) -> Any:
    """Run one operation, and return its outcome as plain data, or the class of its error."""
    try:
        return committer.run("trial", OPERATIONS[kind](**arguments))
    except PrivateBanditsError as error:
        return type(error).__name__


def serve(database: Database) -> None:
    """Do what the standard input says, until it ends."""
    with Committer(database) as committer:
        for line in sys.stdin:
            print(json.dumps(plain_outcome(committer, *json.loads(line))), flush=True)


class Load:
    """Asks and tells without an end."""

    def __init__(self, database: Database, journal: int, life: int) -> None:
        self.database, self.journal, self.life = database, journal, life
        self.committer = Committer(database)

    def client(self, number: int) -> None:
        """One of those who call at the same time. Some rewards come late, and some are told twice."""
        script = random.Random(100 * self.life + number)
        waiting: list[tuple[str, int]] = []
        while True:
            if len(waiting) < script.randint(1, 12):
                found = self.committer.run("trial", Ask(n=script.randint(1, 6)))
                self.write("asked", [[decision.id, decision.action] for decision in found])
                waiting += [(decision.id, decision.action) for decision in found]
                continue
            some = [waiting.pop(script.randrange(len(waiting))) for _ in range(min(len(waiting), script.randint(1, 5)))]
            told = [(key, action, script.randint(0, 8) / 8) for key, action in some]
            for one in told:
                self.write("tell", *one)
            futures = self.committer.submit_many("trial", [Tell(key, reward, played) for key, played, reward in told])
            for (key, _, _), future in zip(told, futures, strict=True):
                self.write("done", key, future.result())

    def watch(self) -> None:
        """Read the ledger, as a reader who never waits for a worker."""
        seen = 0
        while True:
            with self.database.reading() as reader:
                query = sa.select(releases.c.row).where(releases.c.number > seen).order_by(releases.c.number)
                texts = [row[0] for row in reader.rows(query)]
            if texts:
                seen += len(texts)
                self.write("saw", texts)
            time.sleep(0.02)

    def write(self, *line: Any) -> None:
        """One system call: a killed process leaves whole lines, but perhaps for the last."""
        os.write(self.journal, json.dumps(line).encode() + b"\n")


def load(database: Database, journal: str, life: str) -> None:
    """Say that it is ready, and work for ever."""
    handle = os.open(journal, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    works = Load(database, handle, int(life))
    clients = [threading.Thread(target=works.client, args=(number,)) for number in range(CLIENTS)]
    for thread in clients:
        thread.start()
    print("ready", flush=True)
    works.watch()


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(Database(sys.argv[2]))
    else:
        load(Database(sys.argv[2]), *sys.argv[3:])
