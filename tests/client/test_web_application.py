"""The web application of the examples: four workers, one bandit, and every decision is recorded exactly once."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

import private_bandits as pb
from private_bandits.service.keys import create_key
from private_bandits.storage.sql.database import Database
from tests.client.test_page import command_serves

FOLDER = Path(__file__).parents[2] / "examples" / "web_application"
WORKERS = 4
STARTED = "Application startup complete"


@contextmanager
def application(environment: dict[str, str]) -> Iterator[str]:
    """Run the application. Gives its address once all workers have started."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        port = found.getsockname()[1]
    command = [sys.executable, "-m", "uvicorn", "--factory", "app:make_app", "--no-access-log"]
    command += ["--workers", str(WORKERS), "--port", str(port)]
    with subprocess.Popen(
        command, cwd=FOLDER, env=os.environ | environment, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        try:
            started = 0
            while started < WORKERS:
                line = process.stderr.readline()
                assert line, "the application ended"
                started += STARTED in line
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.communicate(timeout=30)


@pytest.mark.parametrize("visitors", [150, pytest.param(3000, marks=pytest.mark.full)])
def test_every_decision_is_recorded_exactly_once(visitors: int, tmp_path: Path) -> None:
    with command_serves(["serve"], tmp_path) as address:
        database = Database(tmp_path / "bandits.db")
        keys = {
            role: create_key(database, role, role).secret for role in ("ask", "tell", "observe", "operate", "audit")
        }
        database.close()
        bandit = pb.Client(address, keys).create("trial", pb.AdaCUCB(arms=["A", "B"], budget=pb.zCDP(1.0)))
        environment = {"BANDIT_URL": address, "BANDIT_ASK_KEY": keys["ask"], "BANDIT_TELL_KEY": keys["tell"]}
        with bandit, application(environment) as url, httpx2.Client(base_url=url, timeout=30) as browser:

            def visit(number: int) -> tuple[str, list[int]]:
                """See a recommendation, and say twice how it was."""
                shown = browser.post("/recommendation").json()
                sent = {"decision": shown["decision"], "helped": number % 3 == 0}
                return shown["decision"], [browser.post("/feedback", json=sent).status_code for _ in range(2)]

            with ThreadPoolExecutor(8) as threads:
                found = list(threads.map(visit, range(visitors)))
            unknown = browser.post("/feedback", json={"decision": "none", "helped": True})
            assert len({decision for decision, _ in found}) == visitors
            assert all(statuses == [200, 409] for _, statuses in found)
            assert unknown.status_code == 404
            counts, ledger = bandit.counts, bandit.ledger
            assert (counts.asked, counts.told, counts.open) == (visitors, visitors, 0)
            assert ledger.verify().ok
            assert 0 < sum(row.count for row in ledger) <= visitors
