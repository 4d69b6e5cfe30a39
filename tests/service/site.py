"""A service for tests: the real application on a real database, and a key for each role."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import uvicorn
from fastapi import FastAPI
from starlette.testclient import TestClient

from private_bandits.service.app import make_app
from private_bandits.service.keys import ROLES, create_key
from private_bandits.service.settings import ServerSettings
from tests.databases import address, opened

BUDGET = {"kind": "zCDP", "rho": 1.0}
EXACT = {"kind": "NoPrivacy"}
ARMS = {"arms": ["A", "B"]}


def ucb(**budget: Any) -> dict[str, Any]:
    """Return a policy with two arms, as it is sent."""
    return {"name": "adac-ucb", "budget": budget or BUDGET, "parameters": ARMS}


class Site:
    """Calls of all roles.

    Args:
        client: Sends requests.
        keys: A key for each role.
        app: The application.
    """

    def __init__(self, client: httpx2.Client, keys: dict[str, str], app: FastAPI) -> None:
        self.client, self.keys, self.app = client, keys, app

    def call(self, role: str | None, method: str, path: str, sent: Any = None, **more: Any) -> httpx2.Response:
        """Send a request with the key of a role, or without one."""
        headers = dict(more.pop("headers", {}))
        if role is not None:
            headers["Authorization"] = f"Bearer {self.keys.get(role, role)}"
        return self.client.request(method, path, headers=headers, json=sent, **more)

    def done(self, role: str, method: str, path: str, sent: Any = None, **more: Any) -> Any:
        """The same, and return what is answered, which is no problem."""
        answer = self.call(role, method, path, sent, **more)
        assert answer.status_code in (200, 201), answer.text
        return answer.json()

    def made(self, name: str = "trial", policy: Any = None, **settings: Any) -> str:
        """Make a bandit. Returns its path."""
        self.done("operate", "POST", "/v1/bandits", {"name": name, "policy": policy or ucb()} | settings)
        return f"/v1/bandits/{name}"

    def asked(self, path: str, n: int = 1, **more: Any) -> list[str]:
        """Return the ids of new decisions."""
        found = self.done("ask", "POST", f"{path}/decisions", {"n": n} | more)
        return [one["id"] for one in found["decisions"]]

    def told(self, path: str, decision: str, reward: float = 1.0) -> str:
        """Tell a reward. Returns the outcome."""
        outcome: str = self.done("tell", "PUT", f"{path}/decisions/{decision}/reward", {"reward": reward})["outcome"]
        return outcome


def problem(answer: httpx2.Response, status: int, name: str) -> dict[str, Any]:
    """Return the problem that an answer is, which has to be of this kind."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    found: dict[str, Any] = answer.json()
    assert (found["type"], found["status"]) == (f"urn:private-bandits:{name}", status)
    assert found["request_id"] == answer.headers["x-request-id"]
    return found


@contextmanager
def site(kind: str, folder: Path, **settings: Any) -> Iterator[Site]:
    """Serve in this process, without sockets."""
    database = opened(kind, folder)
    keys = {role: create_key(database, role, role).secret for role in ROLES}
    app = make_app(ServerSettings(database=address(kind, folder), **settings))
    with TestClient(app, raise_server_exceptions=False) as client:
        yield Site(client, keys, app)


@contextmanager
def listening(found: Site) -> Iterator[httpx2.Client]:
    """Serve the same application on a port as well, for streams. The site's own client keeps it running."""
    server = uvicorn.Server(uvicorn.Config(found.app, port=0, log_level="error", lifespan="off"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        with httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=20) as client:
            yield client
    finally:
        server.should_exit = True
        thread.join()
