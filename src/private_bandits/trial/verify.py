"""Checks the ledger in a file, an agent's own or an exported one, for a reviewer without access to the data."""

from __future__ import annotations

import json
import math
import os
from fractions import Fraction
from pathlib import Path

from private_bandits.errors import AgentFileInvalid, InvalidInput
from private_bandits.ledger import Account
from private_bandits.ledger.verification import (
    BLIND,
    CHECKED,
    Finding,
    Verification,
    verify_lines,
    verify_texts,
)
from private_bandits.opening import opening_text, same_facts
from private_bandits.pages import render
from private_bandits.plain_data import settings_in_words
from private_bandits.state import Settings
from private_bandits.storage.ledger_file import LedgerFile, read_ledger_file
from private_bandits.storage.rows import chained_rows
from private_bandits.wiring import door_for

SQLITE = b"SQLite format 3\0"
SHOWN = 200
"""Rows that a page shows, at most: the first and the last of them."""


def verify_path(path: str | os.PathLike[str], head: str | None = None) -> Verification:
    """Check a ledger in a file.

    Args:
        path: An agent's file, which no agent has open, or lines of JSON that `Ledger.to_jsonl` wrote.
        head: A head that was noted earlier, in a statement for instance. The ledger must contain it.

    Returns:
        What was found. A file that is damaged is a finding too.

    Raises:
        InvalidInput: There is no such file.
        AgentBusy: An agent has the file open. Export its ledger with `agent.ledger.to_jsonl(...)` instead.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}") from None
    if data.startswith(SQLITE):
        try:
            return _verify_file(read_ledger_file(path), head)
        except AgentFileInvalid as error:
            return Verification(findings=[Finding(None, str(error))])
    if not data.isascii():
        place = next(i for i, byte in enumerate(data) if byte > 127)
        return Verification(findings=[Finding(data.count(b"\n", 0, place), "it holds a byte that no ledger has")])
    return verify_lines(data.decode("ascii"), head)


def _verify_file(file: LedgerFile, head: str | None) -> Verification:
    """Check the ledger of an agent's file."""
    if file.opening is None:
        settings = Settings.from_dict(file.settings)
        opening = opening_text(settings, door_for(settings, Account()))
        found = verify_texts(opening, (row.text for row in chained_rows(file.rows, opening)), head)
        found.notes.append(
            "an earlier version wrote this file, and its ledger is in no chain yet: nothing vouches for its rows. "
            "They are chained when an agent opens the file"
        )
        found.head = ""
        return found
    found = verify_texts(file.opening, (row.text for row in file.rows), head)
    if not same_facts(file.settings, found.settings):
        found.findings.append(Finding(0, "the settings in the file are not those that the ledger began with"))
    return found


def verification_page(found: Verification, name: str) -> str:
    """Return one HTML page for a reviewer: what was found, what was checked, and what cannot be seen.

    name: of the file.
    """
    rows = found.releases
    shown = rows if len(rows) <= SHOWN else [*rows[: SHOWN // 2], *rows[-SHOWN // 2 :]]
    return render(
        "private_bandits.trial",
        "verify.html",
        found=found,
        name=name,
        symbol="epsilon" if found.noise == "laplace" else "rho",
        settings=settings_in_words(found.settings),
        shown=shown,
        left_out=len(rows) - len(shown),
        cut=SHOWN // 2 if len(rows) > SHOWN else 0,
        checked=CHECKED,
        blind=BLIND,
        figure=_figure,
        plan=None if found.plan is None else json.dumps(found.plan, indent=1),
    )


def _figure(cost: Fraction | float | None) -> str:
    """Return a cost in six figures."""
    if cost is None or (isinstance(cost, float) and math.isinf(cost)):
        return "no limit"
    return f"{float(cost):.6g}"
