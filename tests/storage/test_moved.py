"""Files that are moved, replaced or cut under an agent, or lose their log: no episode is ever released twice.

Noise is live here, so that a second release of an episode would show another value. Every row that anybody could see,
over all lives of a file, is kept in mind by the episodes in it.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import private_bandits as pb
from private_bandits.errors import AgentClosed, AgentFileInvalid, PrivateBanditsError
from private_bandits.policies import Policy
from tests.storage.move_worker import DEEDS, GONE, HARMLESS, LOG_CUT, LOG_LOST, call, log_of, moved

POLICIES: dict[str, Policy[Any]] = {
    "plain": pb.AdaCUCB(3, pb.zCDP(1.0), variant="paper"),
    "held again": pb.AdaCIMED(2, pb.zCDP(8.0)),
    "tree": pb.TreeUCB(2, pb.zCDP(1.0), horizon=100),
    "private contexts": pb.AdaCOFULPrivate(2, pb.zCDP(1.0), horizon=200),
}
POINTS = [0, 2, 5]
ALL_POINTS = range(12)
SEVERAL = [
    "plain",
    "private contexts",
    *(pytest.param(name, marks=pytest.mark.full) for name in ("held again", "tree")),
]
ONE = ["plain", *(pytest.param(name, marks=pytest.mark.full) for name in POLICIES if name != "plain")]
"""One in the short form, all of them in the full one."""


class Published:
    """Every row that was seen, by the episodes in it."""

    def __init__(self) -> None:
        self.rows: dict[str, str] = {}

    def see(self, rows: list[dict[str, Any]]) -> None:
        """A row of the same episodes is the same row, to the bit."""
        for row in rows:
            text = json.dumps(row)
            label = str(list(row["episodes"]))
            assert self.rows.setdefault(label, text) == text, "an episode was released twice"

    def look_at(self, agent: pb.Agent) -> None:
        """Take in what an agent shows."""
        self.see([row.to_dict() for row in agent.ledger])

    def read(self, journal: Path) -> None:
        """Take in what a worker wrote down. It writes whole lines."""
        if journal.exists():
            for line in journal.read_text().splitlines():
                self.see(json.loads(line))

    def are_in(self, agent: pb.Agent) -> bool:
        """Whether an agent knows all of them."""
        return set(self.rows.values()) <= {json.dumps(row.to_dict()) for row in agent.ledger}


def go_on(agent: pb.Agent, published: Published, calls: int = 7) -> None:
    """New releases, which have to be of new episodes."""
    for number in range(calls):
        call(agent, number)
        published.look_at(agent)


def open_and_go_on(path: Path, published: Published, **options: Any) -> bool:
    """Whether the file opens. If it does, it holds every row, and goes on with new ones."""
    try:
        agent = pb.Agent.open(path, **options)
    except PrivateBanditsError:
        return False
    with agent:
        assert published.are_in(agent), "a row that was seen is gone"
        published.look_at(agent)
        go_on(agent, published)
    return True


def files_of(folder: Path) -> list[Path]:
    """The files that may be opened: no logs, and nothing that a test replaced a file by."""
    return [folder / name for name in ("agent.db", "moved.db") if (folder / name).exists()]


# While an agent is there.


@pytest.mark.parametrize("points", [POINTS, pytest.param(ALL_POINTS, marks=pytest.mark.full)], ids=["some", "all"])
@pytest.mark.parametrize("name", ONE)
@pytest.mark.parametrize("deed", GONE)
def test_an_agent_whose_path_is_no_longer_its_file_ends_at_the_next_call(
    deed: str, name: str, points: list[int], tmp_path: Path
) -> None:
    for point in points:
        folder = tmp_path / str(point)
        folder.mkdir()
        path, published = folder / "agent.db", Published()
        agent = pb.Agent(POLICIES[name], path=path)
        for number in range(point):
            call(agent, number)
            published.look_at(agent)
        DEEDS[deed](path)
        with pytest.raises(AgentClosed):
            call(agent, point)
        for number in (0, 1, 2):
            with pytest.raises(AgentClosed):
                call(agent, number)
        agent.close()
        if deed.startswith("rename"):
            assert not path.exists()
            assert open_and_go_on(moved(path), published) or open_and_go_on(moved(path), published, without_log=True)
            continue
        if deed == "replace by another agent":
            with contextlib.suppress(AgentFileInvalid), pb.Agent.open(path) as other:
                assert not other.ledger.rows
            continue
        for file in files_of(folder):
            open_and_go_on(file, published)


@pytest.mark.parametrize("name", ONE)
@pytest.mark.parametrize("deed", [*LOG_LOST, *LOG_CUT, *HARMLESS])
def test_an_agent_whose_log_is_lost_while_it_works_releases_nothing_twice(deed: str, name: str, tmp_path: Path) -> None:
    for point in POINTS:
        folder = tmp_path / str(point)
        folder.mkdir()
        path, published = folder / "agent.db", Published()
        agent = pb.Agent(POLICIES[name], path=path)
        for number in range(point + 6):
            if number == point:
                DEEDS[deed](path)
            try:
                call(agent, number)
            except AgentClosed:
                assert deed != "nothing"
                break
            published.look_at(agent)
        agent.close()
        if deed == "a second name":
            with pytest.raises(AgentFileInvalid, match="hard links"):
                pb.Agent.open(path)
            path.with_name("second.db").unlink()
        opened = open_and_go_on(path, published)
        assert opened or deed not in HARMLESS


@pytest.mark.parametrize("name", POLICIES)
def test_a_file_that_was_closed_has_no_log_and_can_be_moved(name: str, tmp_path: Path) -> None:
    path, published = tmp_path / "agent.db", Published()
    with pb.Agent(POLICIES[name], path=path) as agent:
        go_on(agent, published)
        assert log_of(path).exists()
    for number in range(5):
        assert {file.name for file in tmp_path.iterdir()} == {path.name, f"{path.name}-public"}
        Path(f"{path}-public").unlink()  # it stays where it is, and the agent writes it anew
        path = path.rename(tmp_path / f"{number}.db")
        assert open_and_go_on(path, published)
    assert len(published.rows) >= 5


# After a kill.


class Worker:
    """Lives that end by SIGKILL, each in a child of one process."""

    def __init__(self) -> None:
        command = [sys.executable, str(Path(__file__).with_name("move_worker.py"))]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def live(self, path: Path, published: Published, calls: int, deed: str = "nothing", more: int = 0) -> str:
        """The error that ended the calls after the deed; "" if none did."""
        journal = path.with_name("journal")
        order = {"path": str(path), "journal": str(journal), "calls": calls, "deed": deed, "more": more}
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        found, status = json.loads(self.process.stdout.readline())
        assert status == -9
        published.read(journal)
        assert found in ("", "AgentClosed"), found
        return str(found)

    def end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        assert self.process.wait(timeout=60) == 0
        assert self.process.stdout is not None
        self.process.stdout.close()


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    worker = Worker()
    yield worker
    worker.end()


def make(folder: Path, name: str, published: Published) -> Path:
    """A file with some releases in it, closed."""
    folder.mkdir()
    with pb.Agent(POLICIES[name], path=folder / "agent.db") as agent:
        go_on(agent, published)
    return folder / "agent.db"


@pytest.mark.parametrize("points", [POINTS, pytest.param(ALL_POINTS, marks=pytest.mark.full)], ids=["some", "all"])
@pytest.mark.parametrize("name", SEVERAL)
@pytest.mark.parametrize("deed", [*LOG_LOST, *LOG_CUT])
def test_after_a_kill_a_log_that_is_gone_is_missed_and_every_row_is_there_without_it(
    deed: str, name: str, points: list[int], worker: Worker, tmp_path: Path
) -> None:
    for point in points:
        published = Published()
        path = make(tmp_path / str(point), name, published)
        worker.live(path, published, point, deed)
        if deed in LOG_CUT:
            open_and_go_on(path, published)
            continue
        for _ in range(2):  # the second time too
            with pytest.raises(AgentFileInvalid, match="-wal"):
                pb.Agent.open(path)
        assert open_and_go_on(path, published, without_log=True)
        assert open_and_go_on(path, published)


@pytest.mark.parametrize("name", SEVERAL)
def test_after_a_kill_the_log_is_read_and_then_not_missed(name: str, worker: Worker, tmp_path: Path) -> None:
    published = Published()
    path = make(tmp_path / "folder", name, published)
    for calls in POINTS:
        worker.live(path, published, calls)
        assert open_and_go_on(path, published)
        assert not log_of(path).exists()


@pytest.mark.parametrize("points", [[2], pytest.param(ALL_POINTS, marks=pytest.mark.full)], ids=["some", "all"])
@pytest.mark.parametrize("name", ONE)
@pytest.mark.parametrize("deed", DEEDS)
def test_after_any_deed_and_a_kill_nothing_is_released_twice(
    deed: str, name: str, points: list[int], worker: Worker, tmp_path: Path
) -> None:
    for point in points:
        published = Published()
        path = make(tmp_path / str(point), name, published)
        ended = worker.live(path, published, point, deed, more=5)
        assert ended == "AgentClosed" or deed not in GONE
        assert ended == "" or deed != "nothing"
        if deed == "replace by another agent":
            with contextlib.suppress(PrivateBanditsError), pb.Agent.open(path) as other:
                published.look_at(other)  # it has none of its own
            continue
        path.with_name("second.db").unlink(missing_ok=True)
        for file in files_of(path.parent):
            opened = open_and_go_on(file, published)
            assert opened or deed != "nothing"


@pytest.mark.parametrize("name", SEVERAL)
def test_a_file_that_is_renamed_between_a_kill_and_the_next_life_misses_its_log(
    name: str, worker: Worker, tmp_path: Path
) -> None:
    for point in POINTS:
        published = Published()
        path = make(tmp_path / str(point), name, published)
        worker.live(path, published, point)
        new = path.rename(moved(path))
        with pytest.raises(AgentFileInvalid, match="-wal"):
            pb.Agent.open(new)
        log_of(path).rename(log_of(new))
        assert open_and_go_on(new, published)


@pytest.mark.parametrize("name", SEVERAL)
def test_a_log_of_another_agent_is_not_taken_for_the_own(name: str, worker: Worker, tmp_path: Path) -> None:
    published, theirs = Published(), Published()
    path, other = make(tmp_path / "ours", name, published), make(tmp_path / "theirs", name, theirs)
    worker.live(path, published, 5)
    worker.live(other, theirs, 9)
    shutil.copy(log_of(other), log_of(path))
    open_and_go_on(path, published)
    assert open_and_go_on(other, theirs)


def test_a_log_of_an_earlier_life_is_not_taken_for_that_of_this_one(worker: Worker, tmp_path: Path) -> None:
    published = Published()
    path = make(tmp_path / "folder", "plain", published)
    worker.live(path, published, 5)
    old = path.with_name("old-log")
    shutil.copy(log_of(path), old)
    with pb.Agent.open(path) as agent:
        published.look_at(agent)
        go_on(agent, published)
    os.replace(old, log_of(path))
    open_and_go_on(path, published)
