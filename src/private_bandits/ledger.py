"""The ledger: an append-only record of releases, and the total that follows from it.

A release and its row are one object, so there are as many rows as releases. Everything in a row is public.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from types import MappingProxyType
from typing import Any

from private_bandits.budget import NoiseKind
from private_bandits.errors import InvalidInput


@dataclass(frozen=True)
class Release:
    """One noisy sum that left through the door, and what it cost.

    number: 1, 2, 3, ... in the order of release.
    key: which of the policy's sums it is (for finite arms: the arm); of several, the first.
    episodes: every episode whose rewards are in it, with the multiplier they enter with.
    count: how many rewards are in it.
    values: sum of weight * reward, with the noise, in the units of the rewards.
    noise_sd: standard deviation of that noise, in the same units (0 without noise).
    rounding: by how much putting rewards on the grid may have moved the values, at most.
    noise, scale, sensitivity, steps: the mechanism, in integer units of the grid, to recompute the cost from.
    calibrated: its cost by the map of the mechanism, were the noise unforeseeable (rho, or epsilon of Laplace).
    private: False where there is no noise, or a seed that makes it foreseeable.
    keys, counts: where several sums leave together, each of them and how many rewards it holds.
    weights: what they were combined with, a row for each value, rounded to whole multiples of 1/unit; None: each sum
        by itself. scale and sensitivity are in units of the grid divided by `unit`.
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
    keys: tuple[int, ...] = ()
    counts: tuple[int, ...] = ()
    weights: tuple[tuple[float, ...], ...] | None = None
    unit: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "episodes", MappingProxyType(dict(self.episodes)))  # nobody edits a row

    @property
    def cost(self) -> float:
        """What it costs a reward of multiplier one: infinite unless the noise is unforeseeable."""
        return self.calibrated if self.private else math.inf

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        data = {f.name: getattr(self, f.name) for f in fields(self)}
        return data | {"episodes": dict(self.episodes)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Release:
        """What to_dict wrote."""
        plain = dict(data)
        for name in ("values", "keys", "counts"):
            plain[name] = tuple(data.get(name, ()))
        if data.get("weights") is not None:
            plain["weights"] = tuple(map(tuple, data["weights"]))
        return cls(**plain)


class Ledger:
    """What was released so far, and what it cost the reward that it cost most."""

    def __init__(self, rows: Iterable[Release] = ()) -> None:
        self._rows: list[Release] = []
        self._per_episode: defaultdict[str, Fraction] = defaultdict(Fraction)
        self._foreseeable: set[str] = set()
        for row in rows:
            self.append(row)

    def append(self, row: Release) -> None:
        """Write a row. Rows are numbered without a gap and never change."""
        if row.number != len(self._rows) + 1:
            raise InvalidInput(f"row {len(self._rows) + 1} comes next in the ledger, got row {row.number}")
        for episode, multiplier in row.episodes.items():
            # Gaussian costs grow with the square of the multiplier, Laplace costs with its size.
            power = 2 if row.noise == "gaussian" else 1
            if row.private:
                self._per_episode[episode] += Fraction(row.cost) * abs(Fraction(multiplier)) ** power
            else:
                self._foreseeable.add(episode)
        self._rows.append(row)  # last: an interrupt may leave an episode charged for nothing, never a row uncharged

    @property
    def total(self) -> float:
        """The largest, over rewards, of the summed cost of the releases that contain it.

        A reward is in one episode, so this is the largest sum over the rows that cover one episode: added up
        exactly, then rounded up.
        """
        if self._foreseeable:
            return math.inf
        exact = max(self._per_episode.values(), default=Fraction(0))
        nearest = float(exact)
        return nearest if nearest >= exact else math.nextafter(nearest, math.inf)

    def covers(self, episode: str) -> bool:
        """Whether a release holds rewards of this episode."""
        return episode in self._per_episode or episode in self._foreseeable

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
