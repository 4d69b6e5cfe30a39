"""The public file beside an agent's own: what anyone may see of the agent while it runs.

Its owner writes it anew, as a whole, and puts it in place of the one before: whoever reads it sees one moment, and
never keeps the owner waiting. It holds nothing that is private (public_view.py).
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from private_bandits.errors import AgentFileInvalid, AgentFileMissing
from private_bandits.storage.damage import checksum

SUFFIX = "-public"
PAUSE = 1.0
"""Seconds between two writes at least, if nothing was released in between."""
KIND = "private-bandits public view"
"""Every public file says that it is one."""


def public_path(path: str | os.PathLike[str]) -> Path:
    """Return the path of the public file of an agent's file. It stands beside the file itself, not beside a link."""
    return Path(os.path.realpath(path) + SUFFIX)


class PublicFile:
    """Writes the public file of one agent, whose file it owns."""

    def __init__(self, path: Path) -> None:
        self._path = public_path(path)
        self._written: tuple[Any, float] | None = None  # the stamp of the last view, and when it was written

    def publish(self, stamp: object, view: Callable[[], Mapping[str, Any]], now: bool = False) -> None:
        """Write a view if it is due: after a release, or a second after the last write.

        A view that cannot be written is tried again at the next call. The agent goes on without it: nothing that it
        promises depends on this file.

        Args:
            stamp: Anything that differs after a release, or an end.
            view: Returns the view, as plain data.
            now: Whether it is due in any case.
        """
        clock = time.monotonic()
        if not now and self._written is not None and self._written[0] == stamp and clock < self._written[1] + PAUSE:
            return
        with suppress(Exception):
            _replace(self._path, _text(view()))
            self._written = stamp, clock


def _text(view: Mapping[str, Any]) -> str:
    """Return a file's text: a line that says what it is and vouches for the second one, and the view."""
    body = json.dumps(view, allow_nan=False)
    written = datetime.now(UTC).isoformat(timespec="seconds")
    first = {"kind": KIND, "written": written, "checksum": checksum(written, body)}
    return f"{json.dumps(first)}\n{body}\n"


def _replace(path: Path, text: str) -> None:
    """Put a text in place of the file, which its owner alone can read. A half-written one is seen by nobody."""
    draft = f"{path}-draft"
    if os.path.lexists(draft):
        os.unlink(draft)  # of an owner that was killed
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(handle, "w", encoding="ascii") as file:
        file.write(text)
    os.replace(draft, path)


def read_public_file(path: str | os.PathLike[str]) -> tuple[dict[str, Any], str]:
    """Read a public file, by its own path. Returns the view as plain data, and when it was written (UTC).

    Raises:
        AgentFileMissing: There is no such file.
        AgentFileInvalid: It is no public file, or is damaged.
    """
    try:
        text = Path(path).read_text(encoding="ascii")
    except FileNotFoundError:
        raise AgentFileMissing(f"no public file at {path}: an agent writes it when it opens its file") from None
    except (OSError, ValueError):
        text = ""
    with suppress(ValueError, TypeError, KeyError):
        head, body, _ = text.split("\n")
        first = json.loads(head)
        if first["kind"] == KIND and first["checksum"] == checksum(first["written"], body):
            return json.loads(body), first["written"]
    raise AgentFileInvalid(
        f"{path} is no public file of an agent, or is damaged: the agent writes it anew when it opens"
    )
