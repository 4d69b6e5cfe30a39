"""The ledger: all releases of an agent, and the worst-case cost that follows from them."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from private_bandits.checks import whole_number
from private_bandits.errors import InvalidInput
from private_bandits.ledger.account import Account
from private_bandits.ledger.chain import canonical
from private_bandits.ledger.people import PersonCost, Releases, worst_person
from private_bandits.ledger.rows import Release
from private_bandits.ledger.verification import Verification, verify_texts
from private_bandits.loading import require
from private_bandits.pages import in_notebook

if TYPE_CHECKING:
    import pandas as pd

PAGE = 1000
"""Rows that are read from a store at a time."""
FEW = 10_000
"""Rows that a store has at hand, and a ledger may take at once."""

SHOWN = 20
"""Rows that a notebook shows, at most: the first and the last."""

COLUMNS = (
    *("number", "key", "keys", "count", "all_rewards", "episodes", "values", "noise", "noise_sd", "rounding"),
    *("cost", "private", "scale", "sensitivity", "steps", "unit"),
)
"""The columns of a frame: what a release is, what it says, what it costs, and what to recompute that from."""

ReadRows = Callable[[int, int], Sequence[Release]]
"""Reads the rows from one number to another, both included."""


class Ledger:
    """All releases so far, and the worst-case cost to any single reward. It does not change.

    Rows that are in a file are read when they are looked at. A copy, and a pickle, holds all of them, and no agent.
    """

    def __init__(self, rows: Iterable[Release] = (), opening: str = "") -> None:
        found = list(rows)
        self._take(Account(found, opening), _reader(found))

    def _take(self, account: Account, read: ReadRows) -> None:
        self._length, self._total = len(account), account.total
        self._opening, self._head = account.opening, account.head
        self._read = read

    @classmethod
    def stored(cls, account: Account, read: ReadRows, read_later: ReadRows) -> Ledger:
        """Return the ledger of an account as it stands now, whose rows are in a store.

        A few rows are read at once. Many are read when they are looked at, with read_later.
        """
        found = cls.__new__(cls)
        found._take(account, _reader(read(1, len(account))) if len(account) <= FEW else read_later)
        return found

    @property
    def total(self) -> float:
        """The largest, over rewards, of the summed cost of the releases that contain it, rounded up."""
        return self._total

    @property
    def rows(self) -> tuple[Release, ...]:
        """All rows, oldest first."""
        return tuple(self)

    @property
    def opening(self) -> str:
        """The text that the chain begins with: the public settings and the plan, as JSON."""
        return self._opening

    @property
    def head(self) -> str:
        """The head of the chain: the number of rows, and a hash that stands for all of them.

        Note it in a statement or a letter. Whoever has it can tell later whether a ledger was rewritten or cut.
        """
        return self._head

    def verify(self, head: str | None = None) -> Verification:
        """Check the chain and recompute all costs, from the texts alone.

        Args:
            head: A head that was noted earlier. The ledger must contain it.
        """
        return verify_texts(self._opening, (row.text for row in self), head)

    def person_cost(self, rewards: int | None = None, one_per_episode: bool | None = None) -> PersonCost:
        """Return what the releases so far cost the worst person, exactly where that can be found.

        The ledger knows how many rewards are in each release, not whose they are. So this is the dearest of all ways in
        which the rewards of one person can have been placed.

        Args:
            rewards: The most rewards that one person may have. None: as the agent's settings say.
            one_per_episode: Whether a person may have one in an episode at most. None: as the agent's settings say.

        Raises:
            InvalidInput: The settings have no limit for a person, and none was given.
        """
        settings = json.loads(self._opening)["settings"] if self._opening else {}
        if rewards is None:
            rewards = settings.get("max_rewards_per_person")
            if rewards is None:
                raise InvalidInput("these settings have no limit for a person: name one, as in person_cost(rewards=3)")
        if one_per_episode is None:
            one_per_episode = bool(settings.get("one_reward_per_episode", False))
        if self._total == math.inf:
            raise InvalidInput("nothing protects these releases: a seed or no noise costs everyone everything")
        most = whole_number("rewards", rewards, 1)
        return worst_person(Releases.of(self), most, one_per_episode)

    def to_jsonl(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the ledger as lines of JSON: the opening, each row as it is stored, and last the head.

        `private-bandits verify` reads such a file. It holds what is public, and nothing else.

        Args:
            path: A new file to write the lines to as well. None writes no file.

        Raises:
            InvalidInput: A file stands there already.
        """
        lines = [self._opening, *(row.text for row in self), canonical({"head": self._head})]
        text = "".join(f"{line}\n" for line in lines)
        if path is not None:
            try:
                with Path(path).open("x", encoding="utf-8", newline="\n") as file:
                    file.write(text)
            except FileExistsError:
                raise InvalidInput(f"{path} exists: name a new file") from None
        return text

    def to_frame(self) -> pd.DataFrame:
        """Return a DataFrame with a row for each release, oldest first.

        Its columns are attributes of `Release`: number, key, keys, count, all_rewards, episodes (a dict), values,
        noise, noise_sd, rounding, cost, private, scale, sensitivity, steps, unit.
        """
        require("a frame of a ledger", "frames")
        import pandas as pd  # here: half a second that an agent does not need

        rows = [{name: getattr(row, name) for name in COLUMNS} | {"episodes": dict(row.episodes)} for row in self]
        return pd.DataFrame(rows, columns=list(COLUMNS))

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Release]:
        for first in range(1, self._length + 1, PAGE):
            yield from self._read(first, min(first + PAGE - 1, self._length))

    @overload
    def __getitem__(self, index: int) -> Release: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Release]: ...

    def __getitem__(self, index: int | slice) -> Release | Sequence[Release]:
        chosen = range(1, self._length + 1)[index]
        if isinstance(chosen, int):
            return self._read(chosen, chosen)[0]
        if not chosen:
            return []
        low, high = min(chosen), max(chosen)
        found = self._read(low, high)
        return [found[number - low] for number in chosen]

    def __repr__(self) -> str:
        return f"Ledger({len(self)} releases, total {self.total:.6g})"

    def _repr_html_(self) -> str | None:
        rows = list(self[:SHOWN]) if len(self) <= SHOWN else [*self[: SHOWN // 2], *self[-SHOWN // 2 :]]
        return in_notebook("private_bandits.ledger", "ledger.html", ledger=self, rows=rows)

    def __reduce__(self) -> tuple[Any, ...]:
        # What reads the rows holds an agent, which must not be copied.
        return _whole, (self.rows, self._total, self._opening, self._head)


def _reader(rows: Sequence[Release]) -> ReadRows:
    """Read rows that are at hand."""
    return lambda first, last: rows[first - 1 : last]


def _whole(rows: Sequence[Release], total: float, opening: str, head: str) -> Ledger:
    """Return the ledger of these rows, with the total, the opening and the head that it had."""
    found = Ledger()
    found._length, found._total, found._read = len(rows), total, _reader(rows)
    found._opening, found._head = opening, head
    return found
