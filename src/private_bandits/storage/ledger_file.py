"""Reads the public records of an agent's file, and changes nothing: for commands that look at a ledger."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from private_bandits.ledger import Release
from private_bandits.storage.formats import CHAINED, refuse_damage
from private_bandits.storage.ownership import check_agents_file, file_path
from private_bandits.storage.reading import read_file, stored_releases
from private_bandits.storage.rows import LedgerRows


@dataclass(frozen=True, repr=False)
class LedgerFile:
    """The ledger of a file.

    settings: as stored, salt included: not to be shown. opening: what its chain begins with; None where an earlier
    version wrote the file, whose rows are in no chain.
    """

    settings: dict[str, Any]
    opening: str | None
    rows: list[Release]


def read_ledger_file(path: str | os.PathLike[str]) -> LedgerFile:
    """Read the ledger of a file that no agent has open. A file of an earlier version is not converted.

    Raises:
        AgentFileInvalid: The file is damaged, or is no agent's file.
        AgentBusy: An agent has it open.
    """
    place = file_path(path)
    check_agents_file(place)
    return refuse_damage(str(path), lambda: _read(place.absolute()))


def _read(path: Path) -> LedgerFile:
    contents = read_file(path, without_log=False)
    rows = LedgerRows().read(stored_releases(path, contents), None if contents.version >= CHAINED else "")
    return LedgerFile(json.loads(contents.settings), contents.opening, list(rows))
