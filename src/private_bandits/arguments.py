"""Checks of what callers and policies hand in. None of them sees a sum, and no refusal repeats a reward or a person."""

from __future__ import annotations

import json
import operator
from collections.abc import Mapping
from numbers import Integral
from typing import Any

from private_bandits.errors import InvalidInput
from private_bandits.policies import Offer
from private_bandits.policies.named_offer import names_of
from private_bandits.state import Decision


def as_action(policy: str, recommended: Any, actions: int, hidden: bool) -> int:
    """Return what a policy recommends as an int: numpy has integers of its own.

    hidden: whether a refusal may not show it.
    """
    whole = not isinstance(recommended, bool) and isinstance(recommended, Integral)
    if not whole or not 0 <= recommended < actions:
        shown = f"a {type(recommended).__name__}" if hidden else repr(recommended)
        raise InvalidInput(f"{policy} recommends {shown}, which is no action from 0 to {actions - 1}")
    return int(recommended)


def check_played(played: int | str, numbers: Mapping[str, int], offered: Offer | None, hidden: bool = False) -> int:
    """Return the action that was really played, by its index. numbers: the index of each arm, by its name.

    hidden: whether a refusal may not show names, because they are of private contexts.
    """
    if offered is not None:
        numbers = {name: i for i, name in enumerate(names_of(offered))}
    if isinstance(played, str):
        if played not in numbers:
            if hidden:
                raise InvalidInput("played must be the name of an action that was offered, or its row")
            raise InvalidInput(f"played must be one of the arms {list(numbers)}, got {played!r}")
        return numbers[played]
    try:
        action = -1 if isinstance(played, bool) else operator.index(played)
    except TypeError:
        action = -1
    if not 0 <= action < len(numbers):
        # Not named: a reward and an action that changed places would end up in a log.
        raise InvalidInput(f"played must be an arm from 0 to {len(numbers) - 1}, or the name of one")
    return action


def check_person(person: str | None, limit: int | None) -> str:
    """Return the name of a person. Refuses what is no text."""
    if not isinstance(person, str) or not person:
        raise InvalidInput(
            f"max_rewards_per_person={limit} needs ask(person='...'), a text, got a value of type "
            f"{type(person).__name__}{' without a letter' if person == '' else ''}"
        )
    return person


def as_list(rewards: Any) -> list[Any]:
    """Return the items of a batch."""
    try:
        items = iter(rewards)
    except TypeError:
        raise InvalidInput(
            f"tell_many takes a list of (decision, reward), got a value of type {type(rewards).__name__}"
        ) from None
    return list(items)


def told_parts(item: Any) -> tuple[Any, Any, Any]:
    """Return decision, reward and action played of one item of a batch."""
    parts = tuple(item) if isinstance(item, (tuple, list)) else ()
    if len(parts) not in (2, 3) or isinstance(item, Decision):
        raise InvalidInput("tell_many takes (decision, reward) or (decision, reward, played) for each reward")
    return parts[0], parts[1], parts[2] if len(parts) == 3 else None


def parsed_id(key: str, token: str) -> tuple[int, int] | None:
    """Return generation and number of a decision's id, written as this agent writes them; None of any other text."""
    own, _, rest = key.partition("-")
    numbers = rest.split("-")
    if own != token or len(key) > 100 or len(numbers) != 2:
        return None
    if not all(part.isascii() and part.isdecimal() and part[0] != "0" for part in numbers):
        return None
    return int(numbers[0]), int(numbers[1])


def encoded(state: Any) -> str:
    """Return a policy's state as JSON. Refuses what is no dictionary, which no file could be resumed with."""
    if type(state) is not dict:
        raise InvalidInput(f"a policy's state must be dumped as a dict, got a {type(state).__name__}")
    return json.dumps(state)
