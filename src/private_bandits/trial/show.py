"""Shows the statement of an agent from the public file beside its own, while its owner runs or after it ended."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from private_bandits.errors import AgentFileInvalid, AgentFileMissing, PrivateBanditsError
from private_bandits.public_view import PublicView
from private_bandits.statement import Statement, statement_of
from private_bandits.storage.public_file import SUFFIX, public_path, read_public_file


def show_path(path: str | os.PathLike[str], delta: float = 0.05) -> Statement:
    """Return the statement of a durable agent, as its public file has it. The agent's own file is not opened.

    Args:
        path: The agent's file, or the public file beside it.
        delta: The probability with which the intervals may fail, and the verdict.

    Raises:
        AgentFileMissing: There is no public file.
        AgentFileInvalid: It is damaged, or a version wrote it whose views are of another form.
        InvalidInput: Its policy is not known: import the module that defines it first.
    """
    place = _public_file(Path(path))
    data, written = read_public_file(place)
    view = _view(place, data)
    return statement_of(view, delta, f"{datetime.fromisoformat(written):%Y-%m-%d %H:%M:%S} UTC")


def _public_file(path: Path) -> Path:
    """Return where the public file stands."""
    beside = public_path(path)
    if beside.exists():
        return beside
    if path.name.endswith(SUFFIX) and path.exists():
        return path
    if path.exists():
        raise AgentFileMissing(
            f"{path} has no public file beside it ({beside.name}): an agent writes it when it opens its file. If an "
            "earlier version wrote this one, open it once with Agent.open"
        )
    raise AgentFileMissing(f"there is no file {path}, and no public file {beside}")


def _view(place: Path, data: Mapping[str, Any]) -> PublicView:
    """Return the view that a public file holds. A file of another program may vouch for anything."""
    try:
        return PublicView.from_dict(data)
    except AgentFileInvalid as error:
        raise AgentFileInvalid(f"{place} {error}") from None
    except PrivateBanditsError:
        raise
    except Exception:
        raise AgentFileInvalid(
            f"{place} holds a view that this version cannot read: use the version that runs the agent"
        ) from None
