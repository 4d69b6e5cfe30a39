"""Makes plain data of what callers hand in. No refusal repeats a reward, a person or an action."""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable
from typing import Any

import numpy as np

from private_bandits.arguments import as_list, told_parts
from private_bandits.errors import ClosedDecision, InvalidInput, PrivateBanditsError, UnknownDecision
from private_bandits.mechanism.rewards import LARGEST, RewardRange
from private_bandits.policies.named_offer import names_and_rows
from private_bandits.state import Decision

PAGE = 1000
"""Decisions and rewards of one request, at most."""
_ID = re.compile(r"[A-Za-z0-9_-]{1,200}", re.ASCII)
_ANY_RANGE = RewardRange(-LARGEST / 2, LARGEST / 2)


def checked_id(decision: Any) -> str:
    """Return the id of a decision."""
    key = decision.id if type(decision) is Decision else decision
    if not isinstance(key, str):
        raise UnknownDecision(f"expected a decision or its id, got a value of type {type(decision).__name__}")
    if not _ID.fullmatch(key):
        raise UnknownDecision("the bandit handed out no decision of this id: tell what the ask returned")
    return key


def plain_reward(reward: Any, played: Any = None) -> dict[str, Any]:
    """Return a reward as it is sent, and the action played."""
    _ANY_RANGE.to_grid(reward, 1)  # refuses what is no finite number
    try:
        value = float(reward)
    except OverflowError:
        value = LARGEST if reward > 0 else -LARGEST
    return {"reward": value} if played is None else {"reward": value, "played": _plain_action(played)}


def _plain_action(played: Any) -> int | str:
    if isinstance(played, str):
        return played
    try:
        return -1 if isinstance(played, bool) else operator.index(played)
    except TypeError:
        pass
    raise InvalidInput("played must be the index of an action, or its name")


def rewards_of(rewards: Iterable[Any]) -> list[dict[str, Any]]:
    """Return a batch as it is sent, every item checked."""
    items, found = as_list(rewards), []
    seen: set[str] = set()
    try:
        for item in items:
            decision, reward, played = told_parts(item)
            key = checked_id(decision)
            if key in seen:
                raise ClosedDecision(f"decision {key} is twice in the batch")
            seen.add(key)
            found.append({"decision": key, **plain_reward(reward, played)})
    except PrivateBanditsError as error:
        error.add_note(f"this is number {len(found) + 1} of the {len(items)} in the batch: nothing was sent")
        raise
    return found


def plain_actions(actions: Any) -> Any:
    """Return a table of actions as lists, or as lists by name where it has names."""
    if actions is None:
        return None
    names, table = names_and_rows(actions)
    try:
        rows = np.asarray(table, float)
    except (TypeError, ValueError, OverflowError):
        rows = np.empty(0)
    if rows.ndim != 2 or not rows.size or not np.isfinite(rows).all():
        raise InvalidInput("actions must be a table of finite numbers, one row an action; got something else")
    plain = rows.tolist()
    return plain if names is None else dict(zip(names, plain, strict=True))


def plain_person(person: Any) -> str | None:
    """Return for whom an ask is."""
    if person is not None and not (isinstance(person, str) and person):
        raise InvalidInput(f"person must be a text with a letter, got a value of type {type(person).__name__}")
    return person
