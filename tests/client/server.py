"""A service on a port for tests of its client, and a proxy that loses answers."""

from __future__ import annotations

import socket
import socketserver
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn

import private_bandits as pb
from private_bandits.client import ServedBandit
from private_bandits.client.keys import ROLES
from private_bandits.service.app import make_app
from private_bandits.service.keys import create_key
from private_bandits.service.settings import ServerSettings
from private_bandits.storage.sql.database import Database
from tests.databases import address, opened


@dataclass
class Served:
    """A service that runs.

    Args:
        url: Its address.
        keys: A key for each role.
        database: Its database.
        clients: Its clients.
    """

    url: str
    keys: dict[str, str]
    database: Database
    clients: ExitStack

    def client(self, **options: Any) -> pb.Client:
        """Return a client with all roles. It is closed with the service."""
        made = pb.Client(options.pop("url", self.url), options.pop("key", self.keys), **options)
        return self.clients.enter_context(made)

    def made(self, policy: Any, name: str = "trial", **options: Any) -> ServedBandit:
        """Make a bandit, and return it."""
        return self.client().create(name, policy, **options)


@contextmanager
def served(kind: str, folder: Path, **settings: Any) -> Iterator[Served]:
    """Serve on a port of this machine, from a thread of this process."""
    database = opened(kind, folder)
    keys = {role: create_key(database, role, role).secret for role in ROLES}
    app = make_app(ServerSettings(database=address(kind, folder), allow_no_privacy=True, **settings))
    server = uvicorn.Server(uvicorn.Config(app, port=settings.get("port", 0), log_config=None))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.005)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        with ExitStack() as clients:
            yield Served(f"http://127.0.0.1:{port}", keys, database, clients)
    finally:
        server.should_exit = True
        thread.join()


class LossyProxy:
    """Passes requests on to a service, and loses answers: the connection is cut once the service has answered.

    Args:
        target: The port of the service.
    """

    def __init__(self, target: int) -> None:
        self.lose = 0
        """How many answers are to be lost from now on."""
        self.lost: list[bytes] = []
        """The first lines of requests whose answers were lost."""
        self._lock = threading.Lock()

        class Handler(socketserver.BaseRequestHandler):
            def handle(handler) -> None:  # noqa: N805
                with suppress(OSError), socket.create_connection(("127.0.0.1", target)) as service:
                    self._relay(handler.request, service)

        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> LossyProxy:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _relay(self, caller: socket.socket, service: socket.socket) -> None:
        while request := _message(caller):
            service.sendall(request)
            answer = _message(service)
            with self._lock:
                lose = self.lose > 0
                if lose:
                    self.lose -= 1
                    self.lost.append(request.partition(b"\r\n")[0])
            if lose:
                return
            caller.sendall(answer)


def _message(connection: socket.socket) -> bytes:
    """Return one HTTP message with a length, or nothing where the connection ends."""
    found = b""
    while b"\r\n\r\n" not in found:
        more = connection.recv(65536)
        if not more:
            return b""
        found += more
    head, _, body = found.partition(b"\r\n\r\n")
    lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    left = (int(lengths[0].partition(b":")[2]) if lengths else 0) - len(body)
    while left > 0:
        more = connection.recv(65536)
        found += more
        left -= len(more)
    return found
