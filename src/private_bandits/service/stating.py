"""The statement of a trial, in the form that a reader asks for."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime

from private_bandits.public_view import PublicView
from private_bandits.statement import Statement, statement_of

FORMS: dict[str, Callable[[Statement], str]] = {
    "application/json": lambda found: json.dumps(found.to_dict()),
    "text/plain": lambda found: found.text,
    "text/html": lambda found: found.html(),
}
"""How a statement may be read, by media type. The first is for who asks for none."""


def statement_in(view: PublicView, delta: float, accepted: str) -> tuple[str, str]:
    """Return the media type and the text of a statement, in the first form that is accepted.

    Args:
        view: What anyone may see of the bandit.
        delta: The probability with which the intervals may fail, and the verdict.
        accepted: The header Accept.
    """
    kind = next((form for form in FORMS if form in accepted), next(iter(FORMS)))
    written = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
    return kind, FORMS[kind](statement_of(view, delta, written))
