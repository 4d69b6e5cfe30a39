"""The opening of a ledger: everything public that was fixed before the first reward. The chain begins with it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from private_bandits.errors import AgentFileInvalid, InvalidInput
from private_bandits.ledger.chain import canonical
from private_bandits.mechanism.release import Door
from private_bandits.plain_data import json_number
from private_bandits.state import Settings

LEDGER_FORMAT = 1
"""The form of openings and rows. A version that writes others has another number."""


def opening_text(settings: Settings, door: Door, plan: Any = None, chained_rows: int | None = None) -> str:
    """Return the opening of an agent's ledger.

    Args:
        settings: Of the agent. Its salt stays out.
        door: Of the agent: the noise of its releases.
        plan: Of the trial, as plain data, if there is one.
        chained_rows: The rows that a file of an earlier version has, which is chained today; None: a new ledger.
    """
    _check_plan(plan)
    factor = settings.run_policy.factor
    facts: dict[str, Any] = {
        "ledger": LEDGER_FORMAT,
        "settings": settings.public_dict(),
        "noise": door.budget.noise,
        "private": door.secret,
        "level": json_number(door.level),
        "steps": door.grid.steps,
        "factor": None if factor is None else [list(factor.multipliers), factor.unit, factor.cap],
        "plan": plan,
    }
    if chained_rows is not None:
        facts["chained"] = {"on": datetime.now(UTC).date().isoformat(), "rows": chained_rows}
    return canonical(facts)


def _check_plan(plan: Any) -> None:
    """Refuse a plan that JSON would not give back: the hash would stand for less than was meant."""
    try:
        text = json.dumps(plan, allow_nan=False)
    except (TypeError, ValueError):
        text = ""
    if not text or json.dumps(json.loads(text)) != text:
        raise InvalidInput(
            "plan must be plain data: texts, numbers, true, false, lists, and dicts with texts as names. Write a date "
            "as a text, and numbers of numpy as int(...) or float(...)"
        )


def check_opening(opening: str, settings: Settings) -> None:
    """Refuse a file whose settings are not those that its ledger began with."""
    if not same_facts(json.loads(opening)["settings"], json.loads(canonical(settings.public_dict()))):
        raise AgentFileInvalid("is damaged: its settings are not those that its ledger began with")


def same_facts(one: Any, other: Any) -> bool:
    """Whether two settings, as plain data, say the same. Another version may know more of them, or fewer."""
    if isinstance(one, dict) and isinstance(other, dict):
        return all(same_facts(one[name], other[name]) for name in one.keys() & other.keys())
    return bool(one == other)
