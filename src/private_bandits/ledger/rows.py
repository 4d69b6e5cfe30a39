"""A row of the ledger, which is a release. Everything in it is public."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, NamedTuple, NoReturn

from private_bandits.budget import NoiseKind
from private_bandits.errors import InvalidInput
from private_bandits.ledger.chain import canonical
from private_bandits.plain_data import json_number


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
    previous: the hash of the row before it, or of the ledger's opening (chain.py). It says where the row stands, not
        what was released: two rows that differ in nothing else are equal.
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
    previous: str = field(default="", compare=False, repr=False)

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

    def link(self, previous: str) -> None:
        """Put a new row into a chain, after the text of this hash. It has no place in one before."""
        if self.previous not in ("", previous):
            raise AssertionError(f"row {self.number} is in another place of the chain")
        object.__setattr__(self, "previous", previous)

    @cached_property
    def text(self) -> str:
        """The row as it is stored, exported and hashed. A row that was read has the text that it was read from."""
        if not self.previous:
            raise AssertionError(f"row {self.number} is in no chain yet")
        data = {name: getattr(self, name) for name in _STORED}
        if data["calibrated"] == math.inf:
            data["calibrated"] = json_number(math.inf)
        return canonical(data)

    def to_dict(self) -> dict[str, Any]:
        """Return what was released as plain data. Its place in the chain is in `text`."""
        data = {name: getattr(self, name) for name in _STORED if name != "previous"}
        return data | {"episodes": dict(self.episodes), "parts": [list(part) for part in self.parts]}

    @classmethod
    def from_text(cls, text: str) -> Release:
        """Return the row that a text holds, which stays its text. Refuses what no row holds."""
        found = cls.from_dict(json.loads(text))
        found.__dict__["text"] = text
        return found

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Release:
        """Return the row that to_dict wrote. Refuses what no row holds."""
        plain = dict(data) | {"values": tuple(data["values"])}
        plain["parts"] = tuple(Part(*part) for part in data["parts"])
        if data["calibrated"] == "inf":  # where there is no noise; JSON knows no infinity
            plain["calibrated"] = math.inf
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
            and type(self.previous) is str
        )


_STORED = tuple(field.name for field in fields(Release))


def label_span(episode: str) -> tuple[str, int, int]:
    """Return the key of a label, and its first and last episode; a label of another form is an episode of its own."""
    key, _, numbers = episode.rpartition("/")
    first, _, last = numbers.partition("-")
    if not (first.isdecimal() and (last or first).isdecimal()) or int(last or first) < int(first):
        return episode, 0, 0
    return key, int(first), int(last or first)
