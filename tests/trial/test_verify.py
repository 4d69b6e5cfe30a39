"""`private-bandits verify`: files and exported ledgers, in words, as JSON and as a page."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import private_bandits as pb
from private_bandits.errors import AgentBusy, InvalidInput
from private_bandits.trial.verify import verification_page, verify_path
from tests.commands import call_here

FILES = sorted((Path(__file__).parents[1] / "storage" / "files").glob("*.db"))


def made(path: Path, **options: Any) -> pb.Ledger:
    with pb.Agent(pb.AdaCUCB(arms=["<A>", "B"], budget=pb.zCDP(0.5)), path=path, **options) as agent:
        for step in range(40):
            who: dict[str, Any] = {"person": f"person {step % 9}"} if options else {}
            agent.tell(agent.ask(**who), float(step % 3 == 0))
        return agent.ledger


def test_a_file_and_its_export_are_in_order(tmp_path: Path) -> None:
    ledger = made(tmp_path / "trial.db", max_rewards_per_person=3, one_reward_per_episode=True)
    ledger.to_jsonl(tmp_path / "ledger.jsonl")
    before = (tmp_path / "trial.db").read_bytes()
    for name in ("trial.db", "ledger.jsonl"):
        found = verify_path(tmp_path / name, ledger.head)
        assert found.ok, str(found)
        assert (found.head, found.rows) == (ledger.head, len(ledger))
    assert (tmp_path / "trial.db").read_bytes() == before


def test_the_command_prints_words_json_and_a_page(tmp_path: Path) -> None:
    ledger = made(tmp_path / "trial.db")
    shown = call_here(
        "verify", str(tmp_path / "trial.db"), "--head", ledger.head, "--html", str(tmp_path / "page.html")
    )
    assert shown.returncode == 0
    assert f"{len(ledger)} rows, head {ledger.head}: everything that a ledger shows is in order." in shown.stdout
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "In order." in page
    assert "&lt;A&gt;" in page
    assert "<A>" not in page
    assert "http" not in page
    assert f"Note: the head that you gave is in it, at row {len(ledger)}." in shown.stdout
    assert "wholly anew" not in shown.stdout
    assert (
        "a ledger that was made wholly anew could not be seen" in call_here("verify", str(tmp_path / "trial.db")).stdout
    )
    data = json.loads(call_here("verify", str(tmp_path / "trial.db"), "--json").stdout)
    assert data["ok"] is True
    assert data["head"] == ledger.head


def test_something_off_is_exit_code_one_and_names_the_row(tmp_path: Path) -> None:
    text = made(tmp_path / "trial.db").to_jsonl()
    lines = text.split("\n")
    lines[3] = lines[3].replace('"count":', '"count" :')
    (tmp_path / "ledger.jsonl").write_text("\n".join(lines), encoding="ascii")
    shown = call_here("verify", str(tmp_path / "ledger.jsonl"), "--html", str(tmp_path / "page.html"))
    assert shown.returncode == 1
    assert "row 4: it does not hold the hash of the text before it" in shown.stdout
    assert "Something is off." in (tmp_path / "page.html").read_text(encoding="utf-8")
    (tmp_path / "bytes.jsonl").write_bytes(text.encode("ascii")[:500] + b"\xff" + text.encode("ascii")[501:])
    assert call_here("verify", str(tmp_path / "bytes.jsonl")).returncode == 1


def test_a_row_changed_in_a_file_is_off(tmp_path: Path) -> None:
    made(tmp_path / "trial.db")
    with closing(sqlite3.connect(tmp_path / "trial.db")) as connection, connection:
        (text,) = connection.execute("SELECT release FROM ledger WHERE number = 2").fetchone()
        connection.execute("UPDATE ledger SET release = ? WHERE number = 2", (text.replace('"count":1', '"count":2'),))
    found = verify_path(tmp_path / "trial.db")
    assert not found.ok
    assert "checksum" in str(found)


def test_what_cannot_be_read_is_told_in_one_line(tmp_path: Path) -> None:
    shown = call_here("verify", str(tmp_path / "nothing.db"))
    assert shown.returncode == 2
    with pytest.raises(InvalidInput, match="cannot be read"):
        verify_path(tmp_path / "nothing.db")
    with (
        pb.Agent(pb.AdaCUCB(2, pb.zCDP(1)), path=tmp_path / "busy.db"),
        pytest.raises(
            AgentBusy, match=r"busy\.db is running\. Look with `private-bandits show`, or verify an exported"
        ),
    ):
        verify_path(tmp_path / "busy.db")
    shown = call_here("verify", str(tmp_path / "busy.db-public"))
    assert shown.returncode == 2  # nothing is accused
    assert "is a view for `private-bandits show`; verify needs the ledger" in " ".join(shown.stderr.split())


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_files_of_earlier_versions_are_checked_and_chained_when_an_agent_opens_them(file: Path, tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    shutil.copy(file, path)
    before = path.read_bytes()
    found = verify_path(path)
    assert found.ok, str(found)
    assert found.head == ""
    assert any("in no chain yet" in note for note in found.notes)
    assert path.read_bytes() == before  # reading converts nothing
    with pb.Agent.open(path) as agent:
        rows, head = agent.ledger.rows, agent.ledger.head
        assert len(rows) == found.rows
    after = verify_path(path, head)
    assert after.ok, str(after)
    assert any(f"rows 1 to {len(rows)} were written by an earlier version and chained on" in n for n in after.notes)
    with pb.Agent.open(path) as agent:
        assert agent.ledger.head == head  # once


def test_a_long_ledger_fits_on_a_page() -> None:
    agent = pb.Agent(pb.AdaCUCB(300, pb.zCDP(1)))
    for _ in range(300):
        agent.tell(agent.ask(), 1.0)
    page = verification_page(agent.ledger.verify(), "ledger.jsonl")
    assert "100 more rows" in page
    assert page.count("<tr>") < 260
