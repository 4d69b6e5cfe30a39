"""The rows of the ledger in a file: the latest are at hand, whatever version wrote them.

Rows up to version 0.8 have no parts. Their `count` is of all rewards, those of earlier episodes that are held again
included. Their `counts` are by key where sums left together, and by episode, the newest first, where a factor holds
earlier ones again. A node of a tree has one count. How many of its rewards are new follows from the rows before it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from private_bandits.errors import InvalidInput
from private_bandits.ledger import FEW, Part, Release, label_span
from private_bandits.ledger.chain import digest
from private_bandits.mechanism.episode import label_of
from private_bandits.storage.damage import checksum

StoredRow = tuple[int, str]
"""The number of a release, and its row as JSON."""


class LedgerRows:
    """The releases of a file. The latest are at hand, at least `FEW` of them; the others are in the file alone."""

    def __init__(self) -> None:
        self.older: dict[int, tuple[Release, int]] = {}
        """Rows that have to be written anew, as another version wrote them, with the checksum of what it wrote."""
        self._count = 0
        self._latest: list[Release] = []
        self._number = self._checksum = 0

    def read(self, stored: Iterable[StoredRow], opening: str | None) -> Iterator[Release]:
        """Read all rows, oldest first.

        opening: the text that their chain is to begin with, for rows of earlier versions, which are in none yet. These
        are going to be written anew.
        """
        found: Iterator[Release]
        if opening is None:
            found = (Release.from_text(text) for text in self._numbered(stored))
        else:
            rewards: dict[str, int] = {}
            found = chained_rows((_older_row(text, rewards) for text in self._numbered(stored)), opening)
        for row in found:
            if row.number != self._number:
                raise InvalidInput("a row of the ledger is in the wrong place")
            if opening is not None:
                self.older[row.number] = row, self._checksum
            self.append(row)
            yield row

    def _numbered(self, stored: Iterable[StoredRow]) -> Iterator[str]:
        """Return the texts of stored rows. The number and the checksum of the last one are remembered."""
        for number, text in stored:
            self._number, self._checksum = number, checksum("ledger", number, text)
            yield text

    def __len__(self) -> int:
        return self._count

    def append(self, row: Release) -> None:
        """Note one more."""
        self._latest.append(row)
        self._count += 1
        if len(self._latest) > 2 * FEW:
            del self._latest[:FEW]

    def between(self, first: int, last: int, look_up: Callable[[int, int], Iterable[StoredRow]]) -> Sequence[Release]:
        """Return the rows from one number to another. look_up: reads those that are not at hand from the file."""
        before = self._count - len(self._latest)  # so many are not at hand
        found = [Release.from_text(text) for _, text in look_up(first, min(last, before))] if (first <= before) else []
        return found + self._latest[max(first - before - 1, 0) : max(last - before, 0)]


def chained_rows(rows: Iterable[Release], opening: str) -> Iterator[Release]:
    """Put rows that are in no chain into the one that begins with an opening."""
    last = digest(opening)
    for row in rows:
        linked = replace(row, previous=last)
        last = digest(linked.text)
        yield linked


def rewards_by_label(row: Release) -> dict[str, int]:
    """Return what later releases may hold again of this one, with its rewards: its new episodes, or its node."""
    if len(row.episodes) == 1:
        return dict.fromkeys(row.episodes, row.all_rewards)
    return {part.episode: part.rewards for part in row.parts if part.new}


def _older_row(text: str, rewards: dict[str, int]) -> Release:
    """Return a row of an earlier version as rows are now. rewards: as for _with_parts; those of this row are added."""
    data = json.loads(text)
    has_parts = "parts" in data
    row = Release.from_dict(data if has_parts else _with_parts(data, rewards))
    if not has_parts:
        rewards |= rewards_by_label(row)
    return row


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
