"""The command: from nothing to a trial on a free port, and its end under load; and two workers beside one agent."""

from __future__ import annotations

import json
import os
import random
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

import private_bandits as pb
from private_bandits.cli import main
from private_bandits.errors import InvalidInput
from private_bandits.service.keys import create_key
from private_bandits.service.serving import prepare
from private_bandits.service.settings import ServerSettings
from private_bandits.service.snapshots import Snapshots
from private_bandits.storage.sql.database import Database
from tests.databases import address, opened
from tests.service.site import ucb
from tests.service.test_like_an_agent import SEED, Run, Twin

COMMAND = [sys.executable, "-c", "from private_bandits.cli import main; main()", "serve", "--port", "0", "--json"]


@contextmanager
def started(log: Path, *flags: str, **variables: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """Start a server. Returns it, and what it says first. It is told to stop if it still runs."""
    with log.open("w") as written:  # not a pipe: one that nobody reads gets full, and the server would wait
        process = subprocess.Popen(
            [*COMMAND, *flags], stdout=subprocess.PIPE, stderr=written, text=True, env=os.environ | variables
        )
    assert process.stdout is not None
    try:
        yield process, json.loads(process.stdout.readline() or "{}")
    finally:
        process.terminate()
        process.communicate(timeout=60)


def _bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def client_of(where: str, key: str) -> httpx2.Client:
    """Return a client of a server, which may still be starting: its port waits."""
    return httpx2.Client(base_url=where, headers=_bearer(key), timeout=60)


def done(answer: httpx2.Response) -> Any:
    """Return what is answered, which is no problem."""
    assert answer.status_code in (200, 201), answer.text
    return answer.json()


def test_one_command_serves_and_is_drained_under_load(tmp_path: Path) -> None:
    """Whatever was answered before the end is in the database, and nothing else is."""
    path = tmp_path / "bandits.db"
    with started(tmp_path / "log", "--database", str(path)) as (process, said):
        file = Path(said["keys_file"])
        assert file == tmp_path / "bandits.db.keys"
        assert [stat.S_IMODE(one.stat().st_mode) for one in (file, path)] == [0o600, 0o600]
        keys = dict(line.split() for line in file.read_text().splitlines())
        assert set(keys) == {"operate", "admin"}
        operator, admin = client_of(said["address"], keys["operate"]), client_of(said["address"], keys["admin"])
        done(operator.post("/v1/bandits", json={"name": "trial", "policy": ucb()}))
        roles = ("ask", "tell", "observe")
        made = {role: done(admin.post("/v1/keys", json={"name": role, "role": role}))["key"] for role in roles}
        asked, recorded, stop = [0], [0], threading.Event()

        def load() -> None:
            with client_of(said["address"], made["ask"]) as ask, client_of(said["address"], made["tell"]) as tell:
                while not stop.is_set():
                    try:
                        found = done(ask.post("/v1/bandits/trial/decisions", json={"n": 3}))["decisions"]
                        asked[0] += 3
                        for one in found:
                            at = f"/v1/bandits/trial/decisions/{one['id']}/reward"
                            recorded[0] += done(tell.put(at, json={"reward": 1}))["outcome"] == "recorded"
                    except httpx2.TransportError:
                        return  # no new calls are taken

        def watch() -> None:
            at = "/v1/bandits/trial/events"
            with client_of(said["address"], made["observe"]) as observer, observer.stream("GET", at) as stream:
                seen.extend(stream.iter_lines())  # it ends when the server is told to stop

        seen: list[str] = []
        client, watcher = threading.Thread(target=load), threading.Thread(target=watch)
        watcher.start()
        client.start()
        while recorded[0] < 20 and client.is_alive():
            time.sleep(0.01)
        assert client.is_alive()
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        stop.set()
        client.join()
        watcher.join()
        assert "event: status" in seen
        log = (tmp_path / "log").read_text()
        for line in log.splitlines():
            assert json.loads(line)["level"] == "info"
        assert not any(key in log for key in (*keys.values(), *made.values()))
    for one in (operator, admin):
        one.close()
    assert prepare(ServerSettings(database=str(path))) is None  # it has its keys
    database = Database(path)
    counts = Snapshots(database).of("trial").view.counts
    database.close()
    assert (counts.asked, counts.told) == (asked[0], recorded[0])


def refusal(flags: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """Return the one line in which the command refuses to serve."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sys, "argv", ["private-bandits", "serve", *flags])
        with pytest.raises(SystemExit) as caught:
            main()
    said = capsys.readouterr()
    assert (caught.value.code, said.out) == (2, "")
    assert len(said.err.splitlines()) == 1
    return said.err


def test_what_cannot_be_served_is_refused_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for flags, words in (
        (["--workers", "2"], "SQLite has one writer"),
        (["--database", "mysql://ann:secret@x"], "a database is a path"),
        (["--port", "70000"], "port must be at most 65535"),
        (["--database", "no-such-folder/x.db"], "cannot be opened"),
    ):
        assert words in (said := refusal(flags, capsys))
        assert "secret" not in said
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setenv("PRIVATE_BANDITS_DATABASE", address("postgresql", tmp_path))
    assert "private-bandits db upgrade" in refusal([], capsys)


def test_the_first_keys_do_not_go_into_a_file_that_is_there(tmp_path: Path) -> None:
    (tmp_path / "x.keys").write_text("mine")
    settings = ServerSettings(database=str(tmp_path / "x.db"), keys_file=str(tmp_path / "x.keys"))
    with pytest.raises(InvalidInput, match="move it away"):
        prepare(settings)
    assert (tmp_path / "x.keys").read_text() == "mine"
    assert prepare(ServerSettings(database=str(tmp_path / "x.db"))) == tmp_path / "x.db.keys"


def clients_of_two_workers(where: str, key: str) -> list[httpx2.Client]:
    """Return a client of each worker. Each keeps one connection, which one worker took when it came."""
    limits, found = httpx2.Limits(max_connections=1), dict[str, httpx2.Client]()
    until = time.monotonic() + 60
    while len(found) < 2:
        assert time.monotonic() < until
        some = [httpx2.Client(base_url=where, headers=_bearer(key), timeout=60, limits=limits) for _ in range(4)]
        with ThreadPoolExecutor(len(some)) as pool:  # at once, so that no worker takes all
            workers = [
                answer.headers["x-request-id"].partition("-")[0] for answer in pool.map(_ask_whether_ready, some)
            ]
        for worker, client in zip(workers, some, strict=True):
            if found.setdefault(worker, client) is not client:
                client.close()
    return list(found.values())


def _ask_whether_ready(client: httpx2.Client) -> httpx2.Response:
    return client.get("/readyz")


def test_two_workers_do_what_one_agent_does(tmp_path: Path) -> None:
    """Random operations over HTTP, answered by either process: the same decisions, and the same ledger."""
    database = opened("postgresql", tmp_path)
    keys = {role: create_key(database, role, role).secret for role in ("operate", "ask", "tell", "observe")}
    variables = {"PRIVATE_BANDITS_DATABASE": address("postgresql", tmp_path), "PRIVATE_BANDITS_WORKERS": "2"}
    with started(tmp_path / "log", "--allow-no-privacy", **variables) as (_, said):
        clients = clients_of_two_workers(said["address"], keys["operate"])
        policy = {"name": "adac-imed", "budget": {"kind": "zCDP", "rho": 50.0}, "parameters": {"arms": ["A", "B"]}}
        sent = {"name": "trial", "policy": policy, "seed": SEED, "max_rewards_per_person": 4}
        done(clients[0].post("/v1/bandits", json=sent))

        def runs(client: httpx2.Client) -> Run:
            def run(kind: str, arguments: dict[str, Any]) -> Any:
                sent, at = dict(arguments), "/v1/bandits/trial/decisions"
                headers = {"Authorization": f"Bearer {keys['ask' if kind == 'ask' else 'tell']}"}
                if kind == "ask":
                    found = done(client.post(at, json=sent, headers=headers))["decisions"]
                    return [tuple(one.values()) for one in found]
                at += f"/{sent.pop('decision')}"
                if kind == "give_up":
                    return done(client.post(f"{at}/give-up", headers=headers))["outcome"]
                return done(client.put(f"{at}/reward", json=sent, headers=headers))["outcome"]

            return run

        agent_policy = pb.AdaCIMED(arms=["A", "B"], budget=pb.zCDP(50.0))
        options = {"max_rewards_per_person": 4}
        twin = Twin(agent_policy, options, [runs(client) for client in clients], random.Random(3))
        twin.act(40)
        twin.check(database)
        observer = {"Authorization": f"Bearer {keys['observe']}"}
        for client in clients:
            shown = done(client.get("/v1/bandits/trial/estimates", headers=observer))
            assert shown["estimates"] == [one._asdict() for one in twin.agent.estimates()]
            client.close()
