"""`private-bandits show`: the statement of an agent from its public file, while its owner runs and afterwards."""

from __future__ import annotations

import json
import re
import shutil
from functools import partial
from pathlib import Path
from unittest import mock

import pytest

import private_bandits as pb
from private_bandits.errors import AgentFileInvalid, AgentFileMissing, InvalidInput
from private_bandits.policies import POLICIES
from private_bandits.storage.public_file import PublicFile, public_path
from private_bandits.trial.show import show_path
from tests.commands import call_here

FILES = sorted((Path(__file__).parents[1] / "storage" / "files").glob("*.db"))


def made(path: Path) -> pb.Agent:
    agent = pb.Agent(pb.AdaCIMED(arms=["<A>", "B"], budget=pb.zCDP(1.0)), path=path, plan={"why": "to know"})
    while len(agent.ledger) < 4:
        agent.tell(agent.ask(), 1.0)
    return agent


def undated(text: str) -> str:
    return re.sub(r"\d{4}-\d\d-\d\d[ \d:]+ UTC", "WHEN", text)


def test_it_shows_what_the_owner_shows_while_it_runs_and_after_it_ended(tmp_path: Path) -> None:
    path = tmp_path / "trial.db"
    agent = made(path)
    own = undated(agent.statement().text)
    before = sorted((file.name, file.stat().st_mtime_ns) for file in tmp_path.iterdir())
    for file in (path, public_path(path)):
        shown = call_here("show", str(file))
        assert (shown.returncode, shown.stderr) == (0, "")
        assert undated(shown.stdout) == own
        assert "\nThe trial was running when this was written, WHEN.\n" in undated(shown.stdout)
    assert sorted((file.name, file.stat().st_mtime_ns) for file in tmp_path.iterdir()) == before
    agent.finish()
    agent.close()
    path.unlink()  # it reads the public file alone
    assert "The trial is closed" in call_here("show", str(path)).stdout


def test_a_reviewer_can_run_what_the_statement_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    agent = made(tmp_path / "trial.db")
    agent.ledger.to_jsonl("ledger.jsonl")
    text = show_path("trial.db").text
    command = re.search(r"^    private-bandits (verify .*) HEAD$", text, re.MULTILINE)
    assert command
    text = " ".join(text.split())
    for words, row in (("It should be", 0), ("the head of this statement,", len(agent.ledger))):
        head = re.search(rf"{words} (\S+)\.", text)
        assert head
        shown = call_here(*command[1].split(), head[1])
        assert shown.returncode == 0
        assert f"Note: the head that you gave is in it, at row {row}" in shown.stdout
        other = "y" if head[1].endswith("x") else "x"
        assert call_here(*command[1].split(), f"{head[1][:-1]}{other}").returncode == 1
    agent.close()


def test_the_page_and_the_facts(tmp_path: Path) -> None:
    path = tmp_path / "trial.db"
    agent = made(path)
    page = tmp_path / "statement.html"
    shown = call_here("show", str(path), "--html", str(page), "--json", "--delta", "0.1")
    facts = json.loads(shown.stdout)
    assert facts | {"written": ""} == json.loads(json.dumps(agent.statement(0.1).to_dict())) | {"written": ""}
    assert "&lt;A&gt;" in page.read_text(encoding="utf-8")
    again = call_here("show", str(path), "--html", str(page))
    assert (again.returncode, "exists" in again.stderr) == (2, True)
    agent.tell_many([(agent.ask(), 1.0) for _ in range(100)])
    daily = call_here("show", str(path), "--html", str(page), "--overwrite")
    assert (daily.returncode, daily.stdout) == (0, f"Wrote the statement to {page}\n")
    assert agent.ledger.head in page.read_text(encoding="utf-8")
    assert call_here("show", str(path), "--delta", "2").returncode == 2
    agent.close()


def test_only_a_page_is_overwritten(tmp_path: Path) -> None:
    path, other = tmp_path / "trial.db", tmp_path / "notes.txt"
    made(path).close()
    other.write_text("mine")
    for file in (path, public_path(path), other, tmp_path):
        before = file.read_bytes() if file.is_file() else b""
        refused = call_here("show", str(path), "--html", str(file), "--overwrite")
        assert (refused.returncode, "is no page" in refused.stderr) == (2, True)
        assert before == (file.read_bytes() if file.is_file() else b"")
    alone = call_here("show", str(path), "--overwrite")
    assert (alone.returncode, "--overwrite needs --html" in alone.stderr) == (2, True)
    new = tmp_path / "new.html"
    assert call_here("show", str(path), "--html", str(new), "--overwrite").returncode == 0
    assert new.read_bytes().startswith(b"<!doctype html>")


def test_what_cannot_be_shown_is_told_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "trial.db"
    with pytest.raises(AgentFileMissing, match=r"no file .*trial\.db, and no public file"):
        show_path(path)
    made(path).close()
    text = public_path(path).read_text()
    public_path(path).write_text(text.replace('"asked"', '"sked"'))
    assert "is damaged" in call_here("show", str(path)).stderr
    public_path(path).unlink()
    shown = call_here("show", str(path))  # as a file of an earlier version
    assert shown.returncode == 2
    assert "open it once with Agent.open" in " ".join(shown.stderr.split())
    for form, words in ((1, "cannot read"), (2, r"trial\.db-public has the form 2")):
        PublicFile(path).publish(form, partial(dict, format=form))
        with pytest.raises(AgentFileInvalid, match=words):
            show_path(path)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_files_of_earlier_versions_are_shown_once_an_agent_has_opened_them(file: Path, tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    shutil.copy(file, path)
    with pytest.raises(AgentFileMissing):
        show_path(path)
    with pb.Agent.open(path) as agent:
        own = agent.statement()
        if len(agent.ledger):
            assert "Nothing vouches for what was before that day." in " ".join(own.text.split())
    assert undated(show_path(path).text) == undated(own.text)
    assert own.html()


def test_a_policy_whose_module_is_not_imported_is_named(tmp_path: Path) -> None:
    path = tmp_path / "trial.db"
    made(path).close()
    others = {name: policy for name, policy in POLICIES.items() if name != "adac-imed"}
    with mock.patch.dict(POLICIES, others, clear=True), pytest.raises(InvalidInput, match="import the module"):
        show_path(path)
