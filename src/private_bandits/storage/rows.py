"""Reads the rows of a ledger, whatever version wrote them.

Rows up to version 0.8 have no parts. Their `count` is of all rewards, those of earlier episodes that are held again
included. Their `counts` are by key where sums left together, and by episode, the newest first, where a factor holds
earlier ones again. A node of a tree has one count. How many of its rewards are new follows from the rows before it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from private_bandits.episode import label_of
from private_bandits.errors import InvalidInput
from private_bandits.ledger import Ledger, Part, Release, label_span


def read_ledger(texts: Iterable[str]) -> Ledger:
    """Return the ledger that these rows make. They are JSON."""
    ledger, rewards = Ledger(), dict[str, int]()
    for text in texts:
        data = json.loads(text)
        row = Release.from_dict(data if "parts" in data else _with_parts(data, rewards))
        ledger.append(row)
        rewards |= rewards_by_label(row)
    return ledger


def rewards_by_label(row: Release) -> dict[str, int]:
    """Return what later releases may hold again of this one, with its rewards: its new episodes, or its node."""
    if len(row.episodes) == 1:
        return dict.fromkeys(row.episodes, row.all_rewards)
    return {part.episode: part.rewards for part in row.parts if part.new}


def _with_parts(data: Mapping[str, Any], rewards: Mapping[str, int]) -> dict[str, Any]:
    """Return an older row as rows are now. rewards: of the sums that the rows before it released, by label."""
    keys = data.get("keys") or [data["key"]]  # before version 0.3 one sum left at a time, and rows had no keys
    counts = data.get("counts") or [data["count"]]
    fit = type(data["count"]) is int and sum(counts) == data["count"] and len(keys) in (1, len(data["episodes"]))
    if not fit:
        raise InvalidInput("a row of the ledger counts other rewards than it holds")
    found = [(label, n, c) for (label, c), n in zip(data["episodes"].items(), counts, strict=True)]
    if len(found) == 1:
        found = _nodes(*found[0], rewards)
    parts = [Part(keys[min(i, len(keys) - 1)], *found[i], new=i < len(keys)) for i in range(len(found))]
    kept = {name: value for name, value in data.items() if name not in ("keys", "counts")}
    return kept | {"count": sum(part.rewards for part in parts if part.new), "parts": parts}


def _nodes(label: str, count: int, multiplier: float, rewards: Mapping[str, int]) -> list[tuple[str, int, float]]:
    """Return the leaf of a tree's node and the subtrees before it, newest first. An episode is a leaf by itself.

    The node of 2^z leaves takes in the subtree of its first half, then that of half of the rest, and so on.
    """
    key, first, last = label_span(label)
    joined: list[tuple[str, int, float]] = []
    while first < last:
        middle = (first + last) // 2
        part = label_of(key, first, middle)
        joined.insert(0, (part, rewards[part], multiplier))
        first = middle + 1
    leaf = label_of(key, last, last) if joined else label
    return [(leaf, count - sum(n for _, n, _ in joined), multiplier), *joined]
