"""Works on an agent's file, does something to that file, and is killed: python move_worker.py, a line for each life.

A line on its standard input is a JSON object: path, journal, calls, deed, more. It forks a child that opens the file,
makes so many calls, does the deed (DEEDS) to the file, makes up to so many more calls and ends by SIGKILL. The journal
has a JSON line for each call that released something: the rows that can be seen. Once the child is gone it answers with
a line, what ended the calls after the deed: "" or the name of an error.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import private_bandits as pb

PAGE = 4096


def log_of(path: Path) -> Path:
    """SQLite's write-ahead log."""
    return path.with_name(path.name + "-wal")


def moved(path: Path) -> Path:
    """Where a file is renamed to."""
    return path.with_name("moved.db")


def with_log(path: Path, new: Path) -> list[tuple[Path, Path]]:
    """The file and its log, where there is one, each with its new name."""
    return [(file, to) for file, to in ((path, new), (log_of(path), log_of(new))) if file.exists()]


def remove(*files: Path) -> None:
    """Those that are there."""
    for file in files:
        file.unlink(missing_ok=True)


def replace_by_copy(path: Path) -> None:
    """The same bytes in another file, as an editor or a backup program leaves it; the old one is gone."""
    other = path.with_name("copy.db")
    shutil.copy(path, other)
    os.replace(other, path)


def replace_by_other(path: Path) -> None:
    """An agent that has nothing to do with this one."""
    other = path.with_name("other.db")
    pb.Agent(pb.AdaCUCB(2, pb.zCDP(1.0)), path=other).close()
    os.replace(other, path)


def replace_by_nothing(path: Path) -> None:
    """An empty file."""
    other = path.with_name("empty.db")
    other.touch()
    os.replace(other, path)


def cut(path: Path, size: int) -> None:
    """Shorten a file that is there."""
    if path.exists():
        os.truncate(path, max(0, size))


GONE: dict[str, Callable[[Path], object]] = {
    "rename": lambda path: path.rename(moved(path)),
    "rename with the log": lambda path: [file.rename(new) for file, new in with_log(path, moved(path))],
    "delete": remove,
    "delete with the log": lambda path: remove(path, log_of(path)),
    "replace by a copy": replace_by_copy,
    "replace by another agent": replace_by_other,
    "replace by nothing": replace_by_nothing,
    "cut to nothing": lambda path: cut(path, 0),
    "cut to a half": lambda path: cut(path, path.stat().st_size // 2),
    "cut by a page": lambda path: cut(path, path.stat().st_size - PAGE),
}
"""After these an agent's path is no longer its file, or its file is shorter than it was."""

LOG_LOST: dict[str, Callable[[Path], object]] = {
    "remove the log": lambda path: remove(log_of(path)),
    "empty the log": lambda path: cut(log_of(path), 0),
}
LOG_CUT: dict[str, Callable[[Path], object]] = {
    "halve the log": lambda path: cut(log_of(path), log_of(path).stat().st_size // 2 if log_of(path).exists() else 0),
    "cut the log by a byte": lambda path: cut(
        log_of(path), log_of(path).stat().st_size - 1 if log_of(path).exists() else 0
    ),
}
HARMLESS: dict[str, Callable[[Path], object]] = {
    "nothing": lambda path: None,
    "a second name": lambda path: path.with_name("second.db").hardlink_to(path),
}
DEEDS = {**GONE, **LOG_LOST, **LOG_CUT, **HARMLESS}


_ALIVE: list[pb.Agent] = []
"""Agents that are not dropped, which would close their files, before the kill."""


def call(agent: pb.Agent, number: int) -> None:
    """Asks, single and several, and rewards that come late; about every second call releases something."""
    actions = None if agent.policy.arm_names else np.array([[0.9, 0.1], [-0.3, 0.8], [0.5, -0.6]])
    waiting = agent.open_decisions
    if number % 3 == 0 or not waiting:
        agent.ask(2, actions=actions)
    elif number % 3 == 1:
        agent.tell(waiting[0], 0.25)
    else:
        agent.tell_many([(decision, 0.75) for decision in waiting[:2]])


def live(path: Path, journal: int, calls: int, deed: str, more: int) -> str:
    """One life, up to its end. Returns what ended it."""
    agent = pb.Agent.open(path)
    _ALIVE.append(agent)
    seen = len(agent.ledger)
    for number in range(calls + more):
        if number == calls:
            DEEDS[deed](path)
        try:
            call(agent, number)
        except pb.errors.AgentClosed as error:
            return type(error).__name__
        rows = agent.ledger.rows
        if len(rows) > seen:
            os.write(journal, json.dumps([row.to_dict() for row in rows]).encode() + b"\n")
            seen = len(rows)
    if not more:
        DEEDS[deed](path)
    return ""


def child(order: dict[str, Any], answer: int) -> None:
    """Never returns."""
    journal = os.open(order["journal"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        found = live(Path(order["path"]), journal, order["calls"], order["deed"], order["more"])
    except BaseException as error:
        found = f"{type(error).__name__}: {error}"
    os.write(answer, found.encode())
    os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    """A child for every line."""
    for line in sys.stdin:
        reader, writer = os.pipe()
        process = os.fork()
        if process == 0:
            child(json.loads(line), writer)
        os.close(writer)
        with os.fdopen(reader) as answer:
            found = answer.read()
        status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        sys.stdout.write(json.dumps([found, status]) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
