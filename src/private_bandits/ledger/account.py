"""The account of a door: how many releases there were, what they cost, and the hash that the next row holds."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any

from private_bandits.errors import InvalidInput
from private_bandits.ledger.chain import digest, short_head
from private_bandits.ledger.rows import Release, label_span


@lru_cache(maxsize=1024)
def _exact_cost(cost: float, multiplier: float, power: int) -> Fraction:
    """Return the cost of an episode with this multiplier. Most rows cost the same."""
    return Fraction(cost) * abs(Fraction(multiplier)) ** power


class Account:
    """Counts releases, and adds up exactly what they cost each episode. It stays small however many there are.

    opening: the text that the chain of rows begins with. rows: those so far.

    Two promises of those who release keep it small. The episodes of a sum leave in the order of their numbers. Episodes
    that left as one ("0/1-4": a node of a tree) leave as one again, or not at all. Where the second is not kept, the
    total is too large, never too small.
    """

    def __init__(self, rows: Iterable[Release] = (), opening: str = "") -> None:
        self.opening = opening
        self._hash = digest(opening)
        self._unlinked: list[Release] = []  # rows after the one of that hash
        self._releases = 0
        self._rewards = 0
        self._last: dict[str, int] = {}  # the last episode of each sum that was released
        self._costs: dict[str, _Costs] = {}
        self._largest = Fraction(0)
        self._foreseeable = False
        for row in rows:
            self.charge(row)

    def charge(self, row: Release) -> None:
        """Count a release that was made before, and charge its rewards. Rows come in their order, without a gap."""
        if row.number == self._releases + 1 and row.previous != self.last_hash:
            raise InvalidInput(f"row {row.number} of the ledger does not hold the hash of what is before it")
        self.charge_new(row)

    def charge_new(self, row: Release) -> None:
        """Count a release that was just made, and charge its rewards. It is put into the chain before it is stored."""
        if row.number != self._releases + 1:
            raise InvalidInput(f"row {self._releases + 1} comes next in the ledger, got row {row.number}")
        for episode, multiplier in row.episodes.items():
            key, first, last = label_span(episode)
            self._last[key] = max(last, self._last.get(key, last))
            if not row.private:
                self._foreseeable = True
                continue
            # Gaussian costs grow with the square of the multiplier, Laplace costs with its size.
            cost = _exact_cost(row.cost, multiplier, 2 if row.noise == "gaussian" else 1)
            costs = self._costs.get(key)
            if costs is None:
                costs = self._costs[key] = _Costs()
            dearest = costs.charge(first, last, cost)
            if dearest is not self._largest and dearest > self._largest:  # fractions are slow
                self._largest = dearest
        self._unlinked.append(row)
        self._rewards += row.count
        self._releases += 1  # last: an interrupt may leave an episode charged for nothing, never a row uncharged

    def covers(self, episode: str) -> bool:
        """Whether this episode was released, or a later one of its sum."""
        key, _, last = label_span(episode)
        return key in self._last and last <= self._last[key]

    @property
    def last_hash(self) -> str:
        """The hash of the last row, or of the opening. The next row holds it."""
        return self.link()

    def link(self) -> str:
        """Put new rows into the chain, and return the hash of the last one.

        It is done when it is needed: an agent in memory need not hash what nobody asks for.
        """
        found = self._hash
        for row in self._unlinked:
            row.link(found)
            found = digest(row.text)
        self._unlinked, self._hash = [], found
        return found

    @property
    def head(self) -> str:
        """The head of the chain, as people copy it."""
        return short_head(self._releases, self.last_hash)

    @property
    def total(self) -> float:
        """The largest, over rewards, of the summed cost of the releases that contain it.

        A reward is in one episode, so this is the largest sum over the rows that cover one episode: added up
        exactly, then rounded up.
        """
        if self._foreseeable:
            return math.inf
        nearest = float(self._largest)
        return nearest if nearest >= self._largest else math.nextafter(nearest, math.inf)

    def dump(self) -> dict[str, Any]:
        """Return the account as plain data, from which `restored` makes the same account without its rows."""
        return {
            "releases": self._releases,
            "rewards": self._rewards,
            "hash": self.link(),
            "last": dict(self._last),
            "costs": {key: costs.dump() for key, costs in self._costs.items()},
            "largest": str(self._largest),
            "foreseeable": self._foreseeable,
        }

    @classmethod
    def restored(cls, data: Mapping[str, Any], opening: str) -> Account:
        """Return the account that `dump` wrote, for the ledger that begins with this text."""
        found = cls(opening=opening)
        found._releases, found._rewards, found._hash = data["releases"], data["rewards"], data["hash"]
        found._last = dict(data["last"])
        found._costs = {key: _Costs.restored(steps) for key, steps in data["costs"].items()}
        found._largest, found._foreseeable = Fraction(data["largest"]), data["foreseeable"]
        return found

    @property
    def rewards(self) -> int:
        """How many rewards were released."""
        return self._rewards

    def __len__(self) -> int:
        return self._releases

    def __repr__(self) -> str:
        return f"Account({len(self)} releases, total {self.total:.6g})"


class _Costs:
    """The cost of each episode of one sum so far: a step function of its number, as the places where it changes."""

    __slots__ = ("_costs", "_starts")

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._costs: list[Fraction] = []

    def dump(self) -> list[tuple[int, str]]:
        """Return the episodes at which the cost changes, each with the cost from there on."""
        return [(start, str(cost)) for start, cost in zip(self._starts, self._costs, strict=True)]

    @classmethod
    def restored(cls, steps: Iterable[tuple[int, str]]) -> _Costs:
        """Return what `dump` wrote."""
        found = cls()
        for start, cost in steps:
            found._starts.append(start)
            found._costs.append(Fraction(cost))
        return found

    def charge(self, first: int, last: int, cost: Fraction) -> Fraction:
        """Charge the episodes `first` to `last`, and return what the dearest of them costs now.

        Several that leave as one are remembered as one, at the cost of the dearest.
        """
        starts, costs = self._starts, self._costs
        begin, end = self._cut(first), self._cut(last + 1)
        before = max(costs[begin:end])
        dearest = before + cost if before else cost
        if begin and costs[begin - 1] == dearest:
            begin, first = begin - 1, starts[begin - 1]
        if costs[end] == dearest:
            end += 1
        starts[begin:end] = [first]
        costs[begin:end] = [dearest]
        return dearest

    def _cut(self, episode: int) -> int:
        """Let a step begin at this episode, and return which one it is."""
        starts, costs = self._starts, self._costs
        at = bisect_left(starts, episode)
        if at == len(starts) or starts[at] != episode:
            starts.insert(at, episode)
            costs.insert(at, costs[at - 1] if at else Fraction(0))
        return at
