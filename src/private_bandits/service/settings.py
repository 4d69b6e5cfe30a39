"""The settings of a server: flags of the command line, variables PRIVATE_BANDITS_*, and files for what is secret."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from private_bandits.errors import InvalidInput

PREFIX = "PRIVATE_BANDITS_"
MAX_BODY = 1_000_000
_TRUE, _FALSE = ("1", "true", "yes", "on"), ("0", "false", "no", "off", "")


@dataclass(frozen=True)
class ServerSettings:
    """How a server runs.

    Args:
        database: A path, or the address of a PostgreSQL server. It may hold a password.
        host: The address to listen on.
        port: The port; 0: any that is free.
        workers: How many processes serve. SQLite allows one.
        keys_file: Where the first keys go; None: beside the database.
        allow_no_privacy: Whether bandits with a seed or without noise may be made and run.
        rate: Calls per second that one key may make of each worker; 0: any number.
        max_body: Bytes of a request's body, at most.
        max_waiting: Calls that may wait for one bandit.
        drain_seconds: How long calls may take once the server was told to stop.
        log_level: Of the log: "debug", "info", "warning" or "error".
    """

    database: str = field(default="bandits.db", repr=False)
    host: str = "127.0.0.1"
    port: int = 8000
    workers: int = 1
    keys_file: str | None = None
    allow_no_privacy: bool = False
    rate: float = 0.0
    max_body: int = MAX_BODY
    max_waiting: int = 10_000
    drain_seconds: int = 30
    log_level: str = "info"

    def __post_init__(self) -> None:
        least = {"port": 0, "workers": 1, "rate": 0, "max_body": 1, "max_waiting": 1, "drain_seconds": 1}
        for name, smallest in least.items():
            if not getattr(self, name) >= smallest:
                raise InvalidInput(f"{name} must be at least {smallest}, got {getattr(self, name)}")
        if self.port > 65535:
            raise InvalidInput(f"port must be at most 65535, got {self.port}")
        if self.log_level not in ("debug", "info", "warning", "error"):
            raise InvalidInput(f"log_level must be debug, info, warning or error, got {self.log_level!r}")

    @property
    def shown_keys_file(self) -> Path:
        """The file that the first keys go into."""
        if self.keys_file is not None:
            return Path(self.keys_file)
        return Path("private-bandits.keys" if "://" in self.database else f"{self.database}.keys")


def settings_from(given: Mapping[str, Any], environment: Mapping[str, str]) -> ServerSettings:
    """Return the settings of a server.

    Args:
        given: What was said on the command line, by name; None: nothing was.
        environment: Variables. PRIVATE_BANDITS_NAME is a setting, PRIVATE_BANDITS_NAME_FILE a file that holds it.

    Raises:
        InvalidInput: A variable does not hold what it has to.
    """
    found: dict[str, Any] = {}
    for one in fields(ServerSettings):
        text = _variable(one.name, environment)
        if given.get(one.name) is not None:
            found[one.name] = given[one.name]
        elif text is not None:
            found[one.name] = _parsed(one.name, text, type(one.default))
    return ServerSettings(**found)


def _variable(name: str, environment: Mapping[str, str]) -> str | None:
    variable = PREFIX + name.upper()
    path = environment.get(f"{variable}_FILE")
    if path is None:
        return environment.get(variable)
    if variable in environment:
        raise InvalidInput(f"{variable} and {variable}_FILE are both set: set one of them")
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        raise InvalidInput(f"{variable}_FILE names a file that cannot be read") from None


def _parsed(name: str, text: str, kind: type) -> Any:
    """Return what a variable holds. What cannot be read is not shown: it may be in the wrong variable."""
    if kind is bool:
        if text.lower() in _TRUE + _FALSE:
            return text.lower() in _TRUE
        raise InvalidInput(f"{PREFIX}{name.upper()} must be true or false")
    try:
        return kind(text) if kind in (int, float) else text
    except ValueError:
        raise InvalidInput(f"{PREFIX}{name.upper()} must be a number") from None
