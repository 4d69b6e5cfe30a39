"""Streams of releases: resumed where they broke off, and ended with their key."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from private_bandits.service import watching
from private_bandits.service.keys import list_keys, revoke_key
from private_bandits.storage.sql import public_rows
from private_bandits.storage.sql.database import Database
from tests.databases import KINDS
from tests.service.site import Site, listening, problem, site


@pytest.fixture(params=KINDS)
def served(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setattr(watching, "SECONDS", 0.05)
    with site(request.param, tmp_path) as found:
        yield found


def events(lines: Iterator[str]) -> Iterator[dict[str, str]]:
    """Return the events of a stream, without its comments."""
    event: dict[str, str] = {}
    for line in lines:
        if line and not line.startswith(":"):
            name, _, value = line.partition(": ")
            event[name] = value
        elif not line and event:
            yield event
            event = {}


def texts(found: Site, path: str) -> list[str]:
    """Return the rows of a ledger."""
    return found.call("audit", "GET", f"{path}/ledger").text.splitlines()[1:-1]


def test_releases_come_as_they_are_made_and_go_on_where_they_broke_off(served: Site) -> None:
    path = served.made()
    with listening(served) as client:
        watcher = {"Authorization": f"Bearer {served.keys['observe']}"}
        ids = served.asked(path, 10)
        served.told(path, ids[0])
        with client.stream("GET", f"{path}/events", headers=watcher) as stream:
            assert stream.headers["content-type"].startswith("text/event-stream")
            found = events(stream.iter_lines())
            assert next(found) == {"event": "status", "data": '{"status":"active","releases":1}'}
            served.told(path, ids[1])
            new = next(found)
            assert (new["id"], new["event"], new["data"]) == ("2", "release", texts(served, path)[1])
            served.done("operate", "PATCH", path, {"status": "paused"})
            assert next(found)["data"] == '{"status":"paused","releases":2}'
        for one in ids[2:]:
            served.told(path, one)
        with client.stream("GET", f"{path}/events", headers=watcher | {"Last-Event-ID": "1"}) as stream:
            found = events(stream.iter_lines())
            next(found)
            rows = texts(served, path)
            assert [next(found)["data"] for _ in rows[1:]] == rows[1:]
        for wrong in ("x", "-1", "1.5"):
            answer = served.call("observe", "GET", f"{path}/events", headers={"Last-Event-ID": wrong})
            problem(answer, 422, "invalid-request")


def test_a_stream_ends_with_its_key(served: Site) -> None:
    path = served.made()
    database: Database = served.app.state.service.database
    (number,) = [key.number for key in list_keys(database) if key.role == "observe"]
    with listening(served) as client:
        watcher = {"Authorization": f"Bearer {served.keys['observe']}"}
        with client.stream("GET", f"{path}/events", headers=watcher) as stream:
            lines = stream.iter_lines()
            next(events(lines))
            revoke_key(database, number)
            assert all(line.startswith((":", "")) for line in lines)  # it ends
        problem(client.get(f"{path}/events", headers=watcher), 401, "no-key")


def test_who_may_not_watch(served: Site) -> None:
    path = served.made()
    for role in ("ask", "tell", "operate", "audit", "admin"):
        problem(served.call(role, "GET", f"{path}/events"), 403, "forbidden")
    problem(served.call(None, "GET", f"{path}/events"), 401, "no-key")
    problem(served.call("observe", "GET", "/v1/bandits/none/events"), 404, "unknown-bandit")


def test_one_query_looks_for_all_that_are_watched(served: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[int]] = []
    looks = public_rows.watch

    def noted(database: Database, numbers: Any) -> Any:
        asked.append(sorted(numbers))
        return looks(database, asked[-1])

    monkeypatch.setattr(watching, "watch", noted)
    paths = [served.made(name) for name in ("one", "two", "three")]
    with listening(served) as client:
        watcher = {"Authorization": f"Bearer {served.keys['observe']}"}
        seen = threading.Barrier(4, timeout=20)
        over = threading.Event()

        def watch(path: str) -> None:
            with client.stream("GET", f"{path}/events", headers=watcher) as stream:
                found = events(stream.iter_lines())  # kept: whoever lets go of it, leaves
                next(found)
                seen.wait()
                over.wait(20)

        threads = [threading.Thread(target=watch, args=(path,)) for path in (*paths[:2], paths[0])]
        for thread in threads:
            thread.start()
        seen.wait()
        while asked[-1] != [1, 2]:
            over.wait(0.01)
        over.set()
        for thread in threads:
            thread.join()
    assert all(set(numbers) <= {1, 2} for numbers in asked)
