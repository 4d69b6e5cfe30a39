"""Starts a server: prepares the database, writes the first keys, binds the port, runs the workers, and drains them."""

from __future__ import annotations

import logging.config
import os
import signal
import socket
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import uvicorn
from fastapi import FastAPI
from uvicorn.supervisors import Multiprocess

from private_bandits.errors import InvalidInput
from private_bandits.service.app import make_app
from private_bandits.service.keys import create_key, list_keys
from private_bandits.service.logs import log_config
from private_bandits.service.settings import ServerSettings
from private_bandits.storage.sql.database import Database, address_of

FIRST_ROLES = ("operate", "admin")
"""The roles of the keys that a new database begins with: with them all other keys and bandits are made."""
KEEP_ALIVE_SECONDS = 75
"""A proxy in front closes its connections after a minute, before the server does."""


SWITCH_SECONDS = 0.001
"""How long a thread runs on while another one waits."""


class Ready(NamedTuple):
    """A server that is about to serve.

    Args:
        address: Of its port.
        keys_file: The file with the first keys, if they were just made.
    """

    address: str
    keys_file: Path | None


def serve(settings: ServerSettings, announce: Callable[[Ready], None]) -> None:
    """Serve until the process is told to stop. Then calls that came are answered, and no new ones are taken.

    Args:
        settings: How the server runs.
        announce: Is told the address once the port is bound.

    Raises:
        InvalidInput: SQLite cannot have several workers, or the port or the file of the keys is taken.
        DatabaseOutdated: The database is of another version.
    """
    if settings.workers > 1 and address_of(settings.database).get_backend_name() == "sqlite":
        raise InvalidInput(
            f"SQLite has one writer, and {settings.workers} workers would only wait for each other: serve with one "
            "worker, or keep the bandits in PostgreSQL"
        )
    keys_file = prepare(settings)
    signal.signal(signal.SIGTERM, _exit)
    logging.config.dictConfig(log_config(settings.log_level))
    listener = _bound(settings.host, settings.port)
    announce(Ready(_address(settings.host, listener), keys_file))
    config = _config(settings)
    if settings.workers > 1:
        Multiprocess(config, sockets=[listener]).run()
    else:
        uvicorn.Server(config).run(sockets=[listener])


def prepare(settings: ServerSettings) -> Path | None:
    """Make the tables of a new SQLite file, and the first keys of a database without any.

    Returns:
        The file with the keys, if they were made. Only its owner may read it.

    Raises:
        DatabaseOutdated: The database is of another version, or of PostgreSQL and without tables.
        InvalidInput: A file stands where the keys would go.
    """
    url = address_of(settings.database)
    is_new = url.get_backend_name() == "sqlite" and _made_private(Path(str(url.database)))
    database = Database(settings.database)
    try:
        if is_new:
            database.upgrade()
        database.check()
        return None if list_keys(database) else _write_keys(database, settings.shown_keys_file)
    finally:
        database.close()


def _made_private(path: Path) -> bool:
    """Make a new file that only its owner may read: it will hold sums. Returns whether it is empty."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    except OSError as error:
        problem = f"{path} cannot be opened: {error.strerror}"
    else:
        return path.stat().st_size == 0
    raise InvalidInput(problem)


def _write_keys(database: Database, path: Path) -> Path:
    """Make the first keys, and write them where only the owner of the process may read them."""
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        file = -1
    if file < 0:
        raise InvalidInput(f"{path} exists, and the first keys would go there: move it away, or name another file")
    with os.fdopen(file, "w", encoding="utf-8") as text:
        for role in FIRST_ROLES:
            text.write(f"{role} {create_key(database, f'the first {role} key', role).secret}\n")
        text.flush()
        os.fsync(text.fileno())
    return path


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        problem = f"{host} port {port} cannot be listened on: {error.strerror}"
    else:
        listener.set_inheritable(True)
        return listener
    raise InvalidInput(problem)


def _address(host: str, listener: socket.socket) -> str:
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{listener.getsockname()[1]}"


def served_app(settings: ServerSettings) -> FastAPI:
    """Return the application of a process that does nothing else.

    Its committers come back from the database many times a second. Each time they wait until the thread that answers
    calls lets them run, by default 5 ms: shorter turns gave half as many calls again.
    """
    sys.setswitchinterval(SWITCH_SECONDS)
    return make_app(settings)


def _config(settings: ServerSettings) -> uvicorn.Config:
    return uvicorn.Config(
        partial(served_app, settings),
        factory=True,
        workers=settings.workers,
        log_config=log_config(settings.log_level),
        access_log=False,  # it has paths and queries
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=settings.drain_seconds,
    )


def _exit(_: int, __: Any) -> NoReturn:
    """End the process: it has drained, or has not begun to serve."""
    raise SystemExit(0)
