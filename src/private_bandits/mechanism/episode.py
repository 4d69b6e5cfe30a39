"""The open episode: exact integer sums, and the sensitivity that follows from the weights in them.

Private state. Nothing here is shown: a repr tells how many rewards are in, which is public, never the sum.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import mul
from typing import Any, Self

from private_bandits.errors import CapacityExceeded, InvalidInput, PrivateBanditsError
from private_bandits.ledger import Part
from private_bandits.mechanism.factor import Factor

INT64 = 2**63
TAIL = 12  # standard deviations of noise kept free below 2^63; beyond them lies less than 1e-32

GRID = 2**24
FINE_GRID = 2**40  # where no noise follows, sums may be of any size
_STORED = ("key", "number", "first", "count", "max_squared", "max_l1")
LARGEST_EPISODE = 2**38  # rewards of weight one that fit into one episode on the full grid
LEAST_EPISODE = 2**25  # of the largest weight, whatever it is


def l1_norm(weight: tuple[int, ...]) -> int:
    """The sum of the sizes."""
    return sum(map(abs, weight))


def root_above(square: int) -> int:
    """The least whole number whose square is not below."""
    root = math.isqrt(square)
    return root if root * root == square else root + 1


@dataclass(frozen=True)
class Grid:
    """The steps that the reward range is cut into, and how large an exact sum may grow.

    Both follow from public numbers alone: a sum of weights one that stays below `capacity` keeps `TAIL` standard
    deviations of its noise, `tail` rewards wide, away from 2^63.
    """

    steps: int
    capacity: int
    tail: int = 0

    def fits(self, l2: int, l1: int) -> int:
        """How many rewards of weights up to these norms fit into a sum. Sum and noise both grow with the weight."""
        room = (self.capacity + self.tail * self.steps) // self.steps - self.tail * max(1, l1, l2)
        return room // max(1, l2)  # no coordinate exceeds the L2 norm

    def holds(self, matrix: list[list[int]], most: list[int], largest: list[int]) -> bool:
        """Whether weighted values fit, with their noise. most: the largest each sum can be; largest: its weight."""
        if not self.tail:
            return True
        value = max(sum(abs(part) * m for part, m in zip(row, most, strict=True)) for row in matrix)
        moved = max(l1_norm(column) * w for column, w in zip(zip(*matrix, strict=True), largest, strict=True))
        return self.steps * (value + self.tail * moved) < INT64

    @classmethod
    def for_noise(cls, noise_per_step: float, room: int = 1, unit: int = 1) -> Grid:
        """The finest grid (at most 2^24 steps) on which sum and noise fit into 64 bits, with weights up to `room`.

        noise_per_step: standard deviation of the noise in units of the reward range (sqrt(b) for weight one). Zero
        is for no noise at all: what 64 bits hold is then no limit. unit: what sums and noise are multiplied by before
        they leave.
        """
        if noise_per_step == 0:
            return cls(steps=FINE_GRID, capacity=FINE_GRID * INT64)
        if not unit * (LARGEST_EPISODE + TAIL * noise_per_step * room) < INT64:
            raise InvalidInput(
                f"the budget asks for noise of {noise_per_step:.3g} times the reward range, "
                "which does not fit into 64 bits: choose a larger budget"
            )
        tail = math.ceil(TAIL * noise_per_step)
        largest = max(LARGEST_EPISODE, LEAST_EPISODE * room)
        most = (INT64 - 1) // unit
        steps = min(GRID, 2 ** int(math.log2(most / (largest + tail * room))))
        return cls(steps=steps, capacity=most - tail * steps, tail=tail)


class HiddenTotals:
    """Raw sums, which no repr shows: not in a log, not in what a crash reporter prints of local variables.

    Not a sequence, because such reporters walk through sequences.
    """

    __slots__ = ("_values",)

    def __init__(self, values: list[int]) -> None:
        self._values = values

    @property
    def dimension(self) -> int:
        """How many sums there are. Public."""
        return len(self._values)

    @property
    def fit(self) -> bool:
        """Whether they are whole numbers of 64 bits."""
        return set(map(type, self._values)) <= {int} and -INT64 < min(self._values) <= max(self._values) < INT64

    def copy(self) -> HiddenTotals:
        """The same sums, kept apart."""
        other = HiddenTotals.__new__(HiddenTotals)  # with no plain list in any frame
        other._values = self._values[:]
        return other

    @classmethod
    def combined(cls, parts: Sequence[HiddenTotals], matrix: list[list[int]]) -> HiddenTotals:
        """matrix * sums, for one-dimensional sums."""
        other = cls.__new__(cls)
        other._values = [sum(w * p._values[0] for w, p in zip(row, parts, strict=True)) for row in matrix]
        return other

    def add(self, other: HiddenTotals, multiplier: int = 1) -> None:
        """Add the sums of another, so many times."""
        for i in range(len(self._values)):
            self._values[i] += multiplier * other._values[i]

    def reveal(self) -> list[int]:
        """A copy of the sums, for the door and the store."""
        return list(self._values)

    def __repr__(self) -> str:
        return "<hidden>"


class Episode:
    """The sum over an episode of weight times reward, in integers, and the weights' largest norms.

    One reward is a whole number from 0 to grid.steps and a weight is a vector of whole numbers, so changing
    one reward moves the sum by at most steps * max ||w||: the sensitivity, computed from what was summed.

    `kept` are the earlier sums that its own release, or later ones, hold again (composition.py). Merged with some of
    them it is the sum of the episodes `first` to `number`. By itself it is also what leaves (`Outgoing`), where nothing
    is held again.
    """

    unit: float = 1.0
    weights: list[list[float]] | None = None
    factor: Factor | None = None
    carried_over: tuple[Episode, ...] = ()

    __slots__ = (
        "_measured",
        "count",
        "first",
        "fits",
        "grid",
        "kept",
        "key",
        "last_weight",
        "max_l1",
        "max_squared",
        "number",
        "totals",
        "weight_sums",
    )

    def __init__(self, key: int, number: int, dimension: int, grid: Grid) -> None:
        self.key = key
        self.first = self.number = number
        self.kept: tuple[Episode, ...] = ()
        self.grid = grid
        self.count = 0
        self.max_squared = 0
        self.max_l1 = 0
        self.weight_sums = [0] * dimension
        self.totals = HiddenTotals([0] * dimension)
        self.last_weight: tuple[int, ...] | None = None  # the last one added
        self._measured: tuple[tuple[int, ...], int, int, int] | None = None  # what adding a weight would make of them
        self.fits = 0  # how many rewards may be in, with the largest weight so far

    def __repr__(self) -> str:
        return f"Episode({self.label}, {self.count} rewards, sum hidden)"

    @property
    def label(self) -> str:
        """A name that no other sum of the agent has."""
        return label_of(self.key, self.first, self.number)

    def add(self, weight: tuple[int, ...], reward: int) -> None:
        """Add one reward on the grid. Refused, on public grounds alone, if the sum might outgrow 64 bits."""
        if weight is not self.last_weight or self.count >= self.fits:
            self._measure(weight)
        self.count += 1
        i = 0
        for part in weight:
            self.weight_sums[i] += part
            self.totals._values[i] += part * reward
            i += 1  # noqa: SIM113  (enumerate doubles the time of the one-dimensional sums)

    def _measure(self, weight: tuple[int, ...]) -> None:
        """Take a weight's norms into account, before any of it is summed."""
        if self._measured is None or self._measured[0] is not weight:
            refusal = self.refusal(weight)
            if refusal is not None:
                raise refusal
        assert self._measured is not None
        self.last_weight, self.max_squared, self.max_l1, self.fits = self._measured
        self._measured = None  # for this reward only: by the next one the norms may have grown

    def refusal(self, weight: tuple[int, ...]) -> PrivateBanditsError | None:
        """Why a reward of this weight cannot be added, if so. Looks at public numbers only."""
        if weight is self.last_weight and self.count < self.fits:
            return None
        self._measured = None
        if type(weight) is not tuple:  # what can change later would be measured once and summed as something else
            return InvalidInput(f"a weight must be a tuple, got a {type(weight).__name__}")
        if len(weight) != len(self.weight_sums):
            return InvalidInput(f"the weight has {len(weight)} coordinates, the sum has {len(self.weight_sums)}")
        if not set(map(type, weight)) <= {int}:
            return InvalidInput(f"a weight must be of whole numbers, got {weight}")
        squared, l1, fits = sum(map(mul, weight, weight)), l1_norm(weight), self.fits
        if squared > self.max_squared or l1 > self.max_l1 or not fits:
            fits = self._room(max(squared, self.max_squared), max(l1, self.max_l1))
        if self.count >= fits:
            return self._full()
        self._measured = weight, max(squared, self.max_squared), max(l1, self.max_l1), fits
        return None

    def _full(self) -> CapacityExceeded:
        return CapacityExceeded(
            f"the episode {self.label} holds {self.count} rewards, as many as fit into 64 bits on a grid "
            f"of {self.grid.steps} steps: start a new agent"
        )

    def _room(self, max_squared: int, max_l1: int) -> int:
        return self.grid.fits(root_above(max_squared), max_l1)

    def with_one_more(self, weight: tuple[int, ...], reward: int) -> Episode:
        """A copy that holds one reward more; this one stays as it is."""
        other = self._copy()
        other.add(weight, reward)
        return other

    def _empty(self) -> Episode:
        return Episode(self.key, self.number, len(self.weight_sums), self.grid)

    def _copy(self) -> Episode:
        other = self._empty()
        other.first, other.kept, other.count = self.first, self.kept, self.count
        other.max_squared, other.max_l1 = self.max_squared, self.max_l1
        other.last_weight, other.fits, other._measured = self.last_weight, self.fits, self._measured
        other.weight_sums = list(self.weight_sums)
        other.totals = self.totals.copy()
        return other

    def merged(self, earlier: Sequence[Episode]) -> Episode:
        """The sum of this episode and of those right before it, as one that remembers no other.

        Refused, on public grounds alone, if that might outgrow 64 bits.
        """
        whole = self.alone()
        for part in earlier:
            whole.count += part.count
            whole.max_squared, whole.max_l1 = max(whole.max_squared, part.max_squared), max(whole.max_l1, part.max_l1)
            whole.weight_sums = [a + b for a, b in zip(whole.weight_sums, part.weight_sums, strict=True)]
            whole.totals.add(part.totals)
        whole.first = earlier[0].first if earlier else self.number
        if whole.count > whole._room(whole.max_squared, whole.max_l1):
            raise self._full()
        return whole

    def alone(self) -> Episode:
        """The same sum, which remembers no other."""
        other = self._copy()
        other.kept = ()
        return other

    @property
    def labels(self) -> tuple[str, ...]:
        """The episodes whose rewards are in it: this one."""
        return (self.label,)

    @property
    def multipliers(self) -> dict[str, float]:
        """What they enter with."""
        return {self.label: 1.0}

    @property
    def keys(self) -> tuple[int, ...]:
        """The sums it is made of: this one."""
        return (self.key,)

    @property
    def parts(self) -> tuple[Part, ...]:
        """The one part of its release, all of it new."""
        return (self.part(1.0, new=True),)

    def part(self, multiplier: float, *, new: bool) -> Part:
        """Return how a release lists this sum."""
        return Part(self.key, self.label, self.count, multiplier, new)

    @property
    def sensitivity_l2(self) -> int:
        """The least whole number not below steps * max ||w||_2."""
        return self.moved_by(1)

    def moved_by(self, times: int) -> int:
        """Return a whole number that one reward cannot move so many times the sum by more than."""
        return root_above((times * self.grid.steps) ** 2 * self.max_squared)

    @property
    def sensitivity_l1(self) -> int:
        """steps * max ||w||_1."""
        return self.grid.steps * self.max_l1

    def dump(self) -> dict[str, Any]:
        """Plain data for the store, without `kept`. Private: it holds the sum."""
        public = {name: getattr(self, name) for name in _STORED}
        sums = {"weight_sums": list(self.weight_sums), "totals": self.totals.reveal()}
        return public | sums | {"steps": self.grid.steps}

    @classmethod
    def load(cls, data: Mapping[str, Any], grid: Grid) -> Episode:
        """Make the episode that dump wrote."""
        key, number, dimension = stored_place(data)
        return cls(key, number, dimension, grid).restored(data)

    def restored(self, data: Mapping[str, Any]) -> Self:
        """Fill this empty episode with what dump wrote.

        A record that dump cannot have written is refused: read with too small a norm, it would get too little noise.
        """
        if stored_place(data) != (self.key, self.number, len(self.weight_sums)):
            raise InvalidInput("the record belongs to another sum")
        if data["steps"] != self.grid.steps:
            raise InvalidInput(f"a sum on a grid of {data['steps']} steps cannot go on with {self.grid.steps} steps")
        # Version 0.1 to 0.4 wrote no `first`. Nothing else may be missing.
        stored = {name: data[name] for name in _STORED if name != "first"} | {"first": data.get("first", self.number)}
        if not all(type(value) is int for value in (*stored.values(), data["steps"], *data["weight_sums"])):
            raise InvalidInput("a field of the record is no whole number")
        self._check_norms(stored["max_squared"], stored["max_l1"])
        if not (stored["count"] >= 0 and 1 <= stored["first"] <= self.number):
            raise InvalidInput("the record counts below zero")
        for name, value in stored.items():
            setattr(self, name, value)
        self.weight_sums = list(data["weight_sums"])
        self.totals = HiddenTotals(list(data["totals"]))
        if not self._is_possible():
            raise InvalidInput("no rewards within the range have such a sum")
        self.fits = self._room(self.max_squared, self.max_l1)
        return self

    def _check_norms(self, max_squared: int, max_l1: int) -> None:
        """Refuse norms below the declared ones, which this empty episode has, or that no weights have together."""
        declared = max_squared == self.max_squared
        fit = declared or max_squared <= max_l1**2
        if max_squared < self.max_squared or max_l1 < self.max_l1 or not fit:
            raise InvalidInput("the norms of the record are too small")
        if max_l1**2 > len(self.weight_sums) * max_squared:
            raise InvalidInput("the norms of the record are those of no weights")

    def _is_possible(self) -> bool:
        """Whether rewards from 0 to `steps`, with weights of these norms, can have these sums."""
        most, steps = self.count * root_above(self.max_squared), self.grid.steps
        return all(
            type(total) is int and abs(w) <= most and (w - most) * steps <= 2 * total <= (w + most) * steps
            for total, w in zip(self.totals.reveal(), self.weight_sums, strict=True)
        )


def label_of(key: int | str, first: int, last: int) -> str:
    """Return the name of the sum over the episodes `first` to `last` of a key."""
    return f"{key}/{last}" if first == last else f"{key}/{first}-{last}"


def stored_place(data: Mapping[str, Any]) -> tuple[int, int, int]:
    """Return key, number and dimension of the sum that a record holds."""
    key, number, dimension = data["key"], data["number"], len(data["totals"])
    if type(key) is not int or type(number) is not int or key < 0 or number < 1 or not dimension:
        raise InvalidInput("the record does not say which sum it holds")
    if len(data["weight_sums"]) != dimension:
        raise InvalidInput(f"a sum of {dimension} values cannot have {len(data['weight_sums'])} sums of weights")
    return key, number, dimension


class OpenCounts(Mapping[int, int]):
    """How many rewards each open sum holds, by key; 0 where there is none. Public: all that policies see of sums."""

    __slots__ = ("_episodes",)

    def __init__(self, episodes: Mapping[int, Episode]) -> None:
        self._episodes = episodes

    def __getitem__(self, key: int) -> int:
        episode = self._episodes.get(key)
        return 0 if episode is None else episode.count

    def __iter__(self) -> Iterator[int]:
        return iter(self._episodes)

    def __len__(self) -> int:
        return len(self._episodes)
