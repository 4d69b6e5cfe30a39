"""Names of actions that change from step to step. They are kept with the actions, wherever these are kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from private_bandits.errors import InvalidInput
from private_bandits.policies.base import Offer, Policy

Actions = ArrayLike | Mapping[str, ArrayLike]
"""The actions of one step: a row each, or vectors by name."""

_NAMELESS = (np.ndarray, list, tuple, type(None))


class NamedOffer(np.ndarray[Any, np.dtype[np.int64]]):
    """An offer whose rows have names.

    Where contexts are private, so are the names: which actions there were may tell of the person.
    """

    names: tuple[str, ...] = ()

    @classmethod
    def of(cls, offer: Offer, names: Sequence[str]) -> NamedOffer:
        """Return the same offer with names."""
        found = offer.view(cls)
        found.names = tuple(names)
        return found


def offer_of(policy: Policy[Any], actions: Any) -> Offer | None:
    """Return what `ask(actions=...)` offers, with its names if it has any."""
    if type(actions) in _NAMELESS:
        return policy.offer(actions)
    names, rows = names_and_rows(actions)
    offer = policy.offer(rows)
    return offer if names is None or offer is None else NamedOffer.of(offer, names)


def without_names(actions: Any) -> Any:
    """Return the table of actions that may have names."""
    return names_and_rows(actions)[1]


def names_of(offer: Offer) -> tuple[str, ...]:
    """Return the names of the actions of an offer: "action 0", "action 1", ... unless they have others."""
    return offer.names if type(offer) is NamedOffer else tuple(f"action {i}" for i in range(len(offer)))


def are_names(names: Any, rows: int) -> bool:
    """Whether these are so many different texts, none of them empty."""
    fit = type(names) in (list, tuple) and len(names) == rows == len(set(map(str, names)))
    return fit and all(isinstance(name, str) and name for name in names)


def names_and_rows(actions: Any) -> tuple[tuple[str, ...] | None, Any]:
    """Return the names of actions, if they have any, and the table.

    A mapping has names, and so has a DataFrame whose index is all texts. No refusal shows a name: it may be private.
    """
    if isinstance(actions, Mapping):
        items = list(actions.items())
        names, rows = [name for name, _ in items], [row for _, row in items]
    elif hasattr(actions, "index") and hasattr(actions, "columns") and len(actions.index):
        names, rows = list(actions.index), actions
        if not all(isinstance(name, str) for name in names):
            return None, actions
    else:
        return None, actions
    wrong = next((name for name in names if not isinstance(name, str)), None)
    if wrong is not None:
        raise InvalidInput(f"actions must have texts for names, got one of type {type(wrong).__name__}")
    if not are_names(names, len(names)):
        raise InvalidInput("actions must have different names, none of them empty")
    return tuple(map(str, names)), rows
