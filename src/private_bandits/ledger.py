"""The ledger: an append-only record of releases, and the total that follows from it.

A release and its row are one object, so there are as many rows as releases. Everything in a row is public. The rows are
in a store (storage/). A door needs no row of the past, only the `Account`: how many there were, and what they cost.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, overload

from private_bandits.budget import NoiseKind
from private_bandits.errors import InvalidInput
from private_bandits.loading import require

if TYPE_CHECKING:
    import pandas as pd


class Part(NamedTuple):
    """One of the sums that a release is made of.

    key: which of the policy's sums it belongs to.
    episode: its label: "key/number", or "key/first-last" for a subtree of a tree.
    rewards: how many rewards it holds.
    multiplier: what they are multiplied by in the release.
    new: whether they are in a release for the first time; if not, they are held again.
    """

    key: int
    episode: str
    rewards: int
    multiplier: float
    new: bool

    @property
    def is_possible(self) -> bool:
        """Whether every field has the type, and the sign, that the door gives it."""
        return (
            all(type(n) is int for n in (self.key, self.rewards))
            and type(self.episode) is str
            and type(self.multiplier) in (int, float)
            and math.isfinite(self.multiplier)
            and type(self.new) is bool
            and self.key >= 0
            and self.rewards > 0
        )


def rewards_in(parts: Iterable[Part]) -> int:
    """Return how many rewards these parts hold together."""
    return sum(part.rewards for part in parts)


class Multipliers(dict[str, float]):
    """Episodes with their multipliers, which nobody edits: a mappingproxy that can be pickled and copied."""

    __slots__ = ()

    def _refuse(self, *given: object, **named: object) -> NoReturn:
        raise TypeError("a row of the ledger cannot be changed: change a copy of it, such as dict(row.episodes)")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return Multipliers, (dict(self),)  # a dict's own way would set item by item


@dataclass(frozen=True)
class Release:
    """One noisy sum that left through the door, and what it cost.

    number: 1, 2, 3, ... in the order of release.
    key: which of the policy's sums it is (for finite arms: the arm); of several, the first.
    episodes: every episode whose rewards are in it, with the multiplier they enter with: "key/number", or
        "key/first-last" for several in a row.
    count: how many rewards are in a release for the first time with it.
    values: sum of weight * reward, with the noise, in the units of the rewards.
    noise_sd: standard deviation of that noise, in the same units (0 without noise).
    rounding: by how much putting rewards on the grid may have moved the values, at most.
    noise, scale, sensitivity, steps: the mechanism, in integer units of the grid, to recompute the cost from.
    calibrated: its cost by the map of the mechanism, were the noise unforeseeable (rho, or epsilon of Laplace).
    private: False where there is no noise, or a seed that makes it foreseeable.
    parts: each sum in it with its rewards. Those that are new come first. Earlier ones that are held again follow, the
        newest first: earlier episodes (factor.py), or the subtrees that a node of a tree takes in beside its leaf.
    weights: what several sums were combined with, a row for each value and a column for each part, rounded to whole
        multiples of 1/unit; None: each sum by itself.
    unit: scale and sensitivity are in units of the grid divided by it. Where earlier episodes are held again it is the
        factor's, and multipliers are whole numbers over it.
    """

    number: int
    key: int
    episodes: Mapping[str, float]
    count: int
    values: tuple[float, ...]
    noise_sd: float
    rounding: float
    noise: NoiseKind
    scale: float
    sensitivity: int
    steps: int
    calibrated: float
    private: bool
    parts: tuple[Part, ...]
    weights: tuple[tuple[float, ...], ...] | None = None
    unit: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "episodes", Multipliers(self.episodes))  # nobody edits a row

    @property
    def keys(self) -> tuple[int, ...]:
        """Every sum that has new rewards in it, by its key."""
        return tuple(part.key for part in self.parts if part.new)

    @property
    def counts(self) -> tuple[int, ...]:
        """The number of new rewards of each of `keys`. They add up to `count`."""
        return tuple(part.rewards for part in self.parts if part.new)

    @property
    def all_rewards(self) -> int:
        """The number of all rewards in it, new or held again."""
        return rewards_in(self.parts)

    @property
    def weighted_rewards(self) -> float:
        """The sum of multiplier times rewards over its parts. Values that are sums of rewards become means by it."""
        return math.fsum(part.multiplier * part.rewards for part in self.parts)

    @property
    def cost(self) -> float:
        """The cost to a reward of multiplier one. It is infinite unless the noise is unforeseeable."""
        return self.calibrated if self.private else math.inf

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        data = {f.name: getattr(self, f.name) for f in fields(self)}
        return data | {"episodes": dict(self.episodes), "parts": [list(part) for part in self.parts]}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Release:
        """Return the row that to_dict wrote. Refuses what no row holds."""
        plain = dict(data) | {"values": tuple(data["values"])}
        plain["parts"] = tuple(Part(*part) for part in data["parts"])
        if data.get("weights") is not None:
            plain["weights"] = tuple(map(tuple, data["weights"]))
        found = cls(**plain)
        if not found._is_possible():
            raise InvalidInput("a row of the ledger holds what no release has")
        return found

    def _is_possible(self) -> bool:
        """Whether every field has the type, and the sign, that the door gives it."""
        whole = (self.number, self.count, self.sensitivity, self.steps)
        sizes = (self.noise_sd, self.rounding, self.scale, self.calibrated, self.unit)
        finite = (*self.values, *self.episodes.values(), *(part for row in self.weights or () for part in row))
        return (
            all(type(n) is int and n > 0 for n in whole)
            and all(part.is_possible for part in self.parts)
            and [part.new for part in self.parts] == sorted((part.new for part in self.parts), reverse=True)
            and type(self.key) is int
            and (self.key,) == self.keys[:1]
            and self.count == sum(self.counts)
            and all(type(x) in (int, float) for x in (*sizes, *finite))
            and all(map(math.isfinite, finite))
            and all(x >= 0 for x in sizes)
            and type(self.private) is bool
            and self.noise in ("gaussian", "laplace", "none")
            and bool(self.values)
        )


def label_span(episode: str) -> tuple[str, int, int]:
    """Return the key of a label, and its first and last episode; a label of another form is an episode of its own."""
    key, _, numbers = episode.rpartition("/")
    first, _, last = numbers.partition("-")
    if not (first.isdecimal() and (last or first).isdecimal()) or int(last or first) < int(first):
        return episode, 0, 0
    return key, int(first), int(last or first)


@lru_cache(maxsize=1024)
def _exact_cost(cost: float, multiplier: float, power: int) -> Fraction:
    """Return the cost of an episode with this multiplier. Most rows cost the same."""
    return Fraction(cost) * abs(Fraction(multiplier)) ** power


class Account:
    """Counts releases, and adds up exactly what they cost each episode. It stays small however many there are.

    Two promises of those who release keep it small. The episodes of a sum leave in the order of their numbers. Episodes
    that left as one ("0/1-4": a node of a tree) leave as one again, or not at all. Where the second is not kept, the
    total is too large, never too small.
    """

    def __init__(self, rows: Iterable[Release] = ()) -> None:
        self._releases = 0
        self._last: dict[str, int] = {}  # the last episode of each sum that was released
        self._costs: dict[str, _Costs] = {}
        self._largest = Fraction(0)
        self._foreseeable = False
        for row in rows:
            self.charge(row)

    def charge(self, row: Release) -> None:
        """Count a release, and charge its rewards. Rows come in their order, without a gap."""
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
        self._releases += 1  # last: an interrupt may leave an episode charged for nothing, never a row uncharged

    def covers(self, episode: str) -> bool:
        """Whether this episode was released, or a later one of its sum."""
        key, _, last = label_span(episode)
        return key in self._last and last <= self._last[key]

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


PAGE = 1000
"""Rows that are read from a store at a time."""
FEW = 10_000
"""Rows that a store has at hand, and a ledger may take at once."""

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

    def __init__(self, rows: Iterable[Release] = ()) -> None:
        found = list(rows)
        account = Account(found)
        self._length, self._total = len(found), account.total
        self._read = _reader(found)

    @classmethod
    def stored(cls, account: Account, read: ReadRows, read_later: ReadRows) -> Ledger:
        """Return the ledger of an account as it stands now, whose rows are in a store.

        A few rows are read at once. Many are read when they are looked at, with read_later.
        """
        found = cls()
        found._length, found._total, found._read = len(account), account.total, read_later
        if len(account) <= FEW:
            found._read = _reader(read(1, len(account)))
        return found

    @property
    def total(self) -> float:
        """The largest, over rewards, of the summed cost of the releases that contain it, rounded up."""
        return self._total

    @property
    def rows(self) -> tuple[Release, ...]:
        """All rows, oldest first."""
        return tuple(self)

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

    def __reduce__(self) -> tuple[Any, ...]:
        return _whole, (self.rows, self._total)  # what reads the rows holds an agent, which must not be copied


def _reader(rows: Sequence[Release]) -> ReadRows:
    """Read rows that are at hand."""
    return lambda first, last: rows[first - 1 : last]


def _whole(rows: Sequence[Release], total: float) -> Ledger:
    """Return the ledger of these rows, with the total that it had."""
    found = Ledger()
    found._length, found._total, found._read = len(rows), total, _reader(rows)
    return found
