"""Cursors of lists: where the next page begins. They are not to be made by callers."""

from __future__ import annotations

import base64
import binascii
from typing import Annotated

from fastapi import Query

from private_bandits.protocol.problems import INVALID, Refused

Cursor = Annotated[str | None, Query(max_length=100, description="Of the page before: its `next`.")]
Limit = Annotated[int, Query(ge=1, le=1000, description="How many items at most.")]


def cursor_of(last: int) -> str:
    """Return the cursor of the page that follows an item.

    >>> cursor_of(1000), number_of("MTAwMA")
    ('MTAwMA', 1000)
    """
    return base64.urlsafe_b64encode(str(last).encode()).decode().rstrip("=")


def number_of(cursor: str | None) -> int:
    """Return the number of the last item before a page; 0: it is the first page.

    Raises:
        Refused: It is no cursor.
    """
    if cursor is None:
        return 0
    text = ""
    try:
        text = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode("ascii")
    except (binascii.Error, ValueError):
        text = ""
    if not (text.isdecimal() and len(text) <= 15):
        raise Refused(INVALID, errors=[{"at": "cursor", "problem": "is none of this service"}])
    return int(text)
