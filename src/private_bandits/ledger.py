"""The ledger: an append-only record of releases, and the total that follows from it.

A release and its row are one object, so there are as many rows as releases. Everything in a row is public.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from types import MappingProxyType
from typing import Any, NamedTuple

from private_bandits.budget import NoiseKind
from private_bandits.errors import InvalidInput


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
        object.__setattr__(self, "episodes", MappingProxyType(dict(self.episodes)))  # nobody edits a row

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
        """What it costs a reward of multiplier one: infinite unless the noise is unforeseeable."""
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
    if not (first.isdecimal() and (last or first).isdecimal()):
        return episode, 0, 0
    return key, int(first), int(last or first)


@lru_cache(maxsize=1024)
def _exact_cost(cost: float, multiplier: float, power: int) -> tuple[Fraction, Fraction]:
    """Return the cost of an episode with this multiplier, and the same below zero. Most rows cost the same."""
    exact = Fraction(cost) * abs(Fraction(multiplier)) ** power
    return exact, -exact


class Ledger:
    """What was released so far, and what it cost the reward that it cost most."""

    def __init__(self, rows: Iterable[Release] = ()) -> None:
        self._rows: list[Release] = []
        self._labels: set[str] = set()
        # By key of the sum, and there by episode: how much more its rewards cost than those of the one before.
        self._steps: dict[str, dict[int, Fraction]] = {}
        self._foreseeable = False
        for row in rows:
            self.append(row)

    def append(self, row: Release) -> None:
        """Write a row. Rows are numbered without a gap and never change."""
        if row.number != len(self._rows) + 1:
            raise InvalidInput(f"row {len(self._rows) + 1} comes next in the ledger, got row {row.number}")
        for episode, multiplier in row.episodes.items():
            # Gaussian costs grow with the square of the multiplier, Laplace costs with its size.
            power = 2 if row.noise == "gaussian" else 1
            self._labels.add(episode)
            if not row.private:
                self._foreseeable = True
                continue
            cost, saving = _exact_cost(row.cost, multiplier, power)
            key, first, last = label_span(episode)
            steps = self._steps.setdefault(key, {})
            steps[first] = steps[first] + cost if first in steps else cost
            steps[last + 1] = steps[last + 1] + saving if last + 1 in steps else saving
        self._rows.append(row)  # last: an interrupt may leave an episode charged for nothing, never a row uncharged

    @property
    def total(self) -> float:
        """The largest, over rewards, of the summed cost of the releases that contain it.

        A reward is in one episode, so this is the largest sum over the rows that cover one episode: added up
        exactly, then rounded up.
        """
        if self._foreseeable:
            return math.inf
        exact = Fraction(0)
        for steps in self._steps.values():
            exact = max(exact, max(accumulate(steps[episode] for episode in sorted(steps))))
        nearest = float(exact)
        return nearest if nearest >= exact else math.nextafter(nearest, math.inf)

    def covers(self, episode: str) -> bool:
        """Whether this sum was released."""
        return episode in self._labels

    def copy(self) -> Ledger:
        """The ledger as it stands now."""
        other = Ledger()
        other._rows, other._labels, other._foreseeable = self._rows[:], self._labels.copy(), self._foreseeable
        other._steps = {key: steps.copy() for key, steps in self._steps.items()}
        return other

    @property
    def rows(self) -> tuple[Release, ...]:
        """All rows, oldest first."""
        return tuple(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Release]:
        return iter(self._rows)

    def __getitem__(self, index: int) -> Release:
        return self._rows[index]

    def __repr__(self) -> str:
        return f"Ledger({len(self)} releases, total {self.total:.6g})"
