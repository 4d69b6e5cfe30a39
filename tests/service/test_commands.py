"""The commands about the database of the service."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

import private_bandits as pb
from private_bandits.service.committer import Committer
from private_bandits.service.creating import open_database
from private_bandits.service.keys import who_has
from private_bandits.service.operations import Tell
from private_bandits.storage.sql.migrating import newest_revision
from tests.commands import call_here
from tests.databases import KINDS, address


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    return address(request.param, tmp_path)


def answer(*arguments: str) -> Any:
    done = call_here(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def refusal(*arguments: str) -> str:
    done = call_here(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    return done.stderr


def test_a_database_is_made_and_upgraded(place: str) -> None:
    assert "upgrade" in refusal("keys", "list", "--database", place)
    assert answer("db", "upgrade", "--database", place) == {"before": None, "after": newest_revision()}
    assert "already" in call_here("db", "upgrade", "--database", place).stdout


def test_a_file_of_sqlite_is_its_owners_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "of revision 0001 now" in call_here("db", "upgrade").stdout
    assert stat.S_IMODE(os.stat("bandits.db").st_mode) == 0o600


def test_keys_are_made_listed_and_revoked(place: str) -> None:
    where = ("--database", place)
    answer("db", "upgrade", *where)
    made = answer("keys", "create", "ward 3", "--role", "tell", *where)
    shown = call_here("keys", "create", "board", "--role", "audit", *where).stdout.strip()
    database = open_database(place)
    for secret, number in ((made["key"], 1), (shown, 2)):
        found = who_has(database, secret)
        assert found is not None
        assert found.number == number
    assert answer("keys", "revoke", "1", *where)["revoked"] is not None
    assert who_has(database, made["key"]) is None
    database.close()
    listed = answer("keys", "list", *where)["keys"]
    assert [(key["name"], key["role"], key["bandit"]) for key in listed] == [
        ("ward 3", "tell", None),
        ("board", "audit", None),
    ]
    table = call_here("keys", "list", *where).stdout
    assert "ward 3" in table
    assert made["key"] not in table + json.dumps(listed)
    assert "no key of number 9" in refusal("keys", "revoke", "9", *where)
    assert "role must be one of" in refusal("keys", "create", "x", "--role", "all", *where)


def test_an_agent_moves_in(place: str, tmp_path: Path) -> None:
    answer("db", "upgrade", "--database", place)
    for name in ("one", "two"):
        with pb.Agent(pb.AdaCUCB(arms=["A", "B"], budget=pb.NoPrivacy()), path=tmp_path / f"{name}.db") as agent:
            first, second = agent.ask(2)
            agent.tell(first, 1.0)
    moved = answer("db", "import", str(tmp_path / "one.db"), "--database", place)
    assert (moved["bandit"], moved["releases"], moved["counts"]["open"]) == ("one", 1, 1)
    words = call_here("db", "import", str(tmp_path / "two.db"), "--name", "trial-2", "--database", place).stdout
    assert "is the bandit trial-2 now: 2 decisions, 1 of them open, 1 releases" in " ".join(words.split())
    assert "opens no more" in words
    assert "go on there" in refusal("db", "import", str(tmp_path / "two.db"), "--database", place)
    database = open_database(place)
    with Committer(database) as committer:
        assert committer.run("trial-2", Tell(second.id, 0.5)) == "recorded"
    database.close()
