"""The open episode: exact integer sums, and the sensitivity that follows from the weights in them.

Private state. Nothing here is shown: a repr tells how many rewards are in, which is public, never the sum.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from private_bandits.errors import CapacityExceeded, InvalidInput, PrivateBanditsError

INT64 = 2**63
TAIL = 12  # standard deviations of noise kept free below 2^63; beyond them lies less than 1e-32

GRID = 2**24
_STORED = ("key", "number", "count", "max_squared", "max_l1")
LARGEST_EPISODE = 2**38  # rewards of weight one that fit into one episode on the full grid


def _l1(weight: tuple[int, ...]) -> int:
    return sum(map(abs, weight))


@dataclass(frozen=True)
class Grid:
    """The steps that the reward range is cut into, and how large an exact sum may grow.

    Both follow from public numbers alone: a sum of weights one that stays below `capacity` keeps `TAIL` standard
    deviations of its noise, `tail` rewards wide, away from 2^63.
    """

    steps: int
    capacity: int
    tail: int = 0

    def fits(self, weight: int) -> int:
        """How many rewards of this weight (L1 norm) fit into a sum. Sum and noise both grow with the weight."""
        return (self.capacity + self.tail * self.steps) // (self.steps * max(1, weight)) - self.tail

    @classmethod
    def for_noise(cls, noise_per_step: float) -> Grid:
        """The finest grid (at most 2^24 steps) on which sum and noise fit into 64 bits.

        noise_per_step: standard deviation of the noise in units of the reward range (sqrt(b) for weight one).
        """
        if not LARGEST_EPISODE + TAIL * noise_per_step < INT64:
            raise InvalidInput(
                f"the budget asks for noise of {noise_per_step:.3g} times the reward range, "
                "which does not fit into 64 bits: choose a larger budget"
            )
        tail = math.ceil(TAIL * noise_per_step)
        steps = min(GRID, 2 ** int(math.log2((INT64 - 1) / (LARGEST_EPISODE + tail))))
        return cls(steps=steps, capacity=INT64 - 1 - tail * steps, tail=tail)


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

    def reveal(self) -> list[int]:
        """A copy of the sums, for the door and the store."""
        return list(self._values)

    def __repr__(self) -> str:
        return "<hidden>"


class Episode:
    """The sum over an episode of weight times reward, in integers, and the weights' largest norms.

    One reward is a whole number from 0 to grid.steps and a weight is a vector of whole numbers, so changing
    one reward moves the sum by at most steps * max ||w||: the sensitivity, computed from what was summed.
    """

    __slots__ = (
        "_fits",
        "_weight",
        "count",
        "grid",
        "key",
        "max_l1",
        "max_squared",
        "number",
        "totals",
        "weight_sums",
    )

    def __init__(self, key: int, number: int, dimension: int, grid: Grid) -> None:
        self.key = key
        self.number = number
        self.grid = grid
        self.count = 0
        self.max_squared = 0
        self.max_l1 = 0
        self.weight_sums = [0] * dimension
        self.totals = HiddenTotals([0] * dimension)
        self._weight: tuple[int, ...] | None = None  # the last one measured
        self._fits = 0  # how many rewards may be in, with the largest weight so far

    def __repr__(self) -> str:
        return f"Episode({self.label}, {self.count} rewards, sum hidden)"

    @property
    def label(self) -> str:
        """A name that no other episode of the agent has."""
        return f"{self.key}/{self.number}"

    def add(self, weight: tuple[int, ...], reward: int) -> None:
        """Add one reward on the grid. Refused, on public grounds alone, if the sum might outgrow 64 bits."""
        if weight is not self._weight or self.count >= self._fits:
            self._measure(weight)
        self.count += 1
        i = 0
        for part in weight:
            self.weight_sums[i] += part
            self.totals._values[i] += part * reward
            i += 1  # noqa: SIM113  (enumerate doubles the time of the one-dimensional sums)

    def _measure(self, weight: tuple[int, ...]) -> None:
        """Take a weight's norms into account, before any of it is summed."""
        refusal = self.refusal(weight)
        if refusal is not None:
            raise refusal
        self.max_l1 = max(self.max_l1, _l1(weight))
        self.max_squared = max(self.max_squared, sum(part * part for part in weight))
        self._fits = self.grid.fits(self.max_l1)
        self._weight = weight

    def refusal(self, weight: tuple[int, ...]) -> PrivateBanditsError | None:
        """Why a reward of this weight cannot be added, if so. Looks at public numbers only and changes nothing."""
        if weight is self._weight and self.count < self._fits:
            return None
        if type(weight) is not tuple:  # what can change later would be measured once and summed as something else
            return InvalidInput(f"a weight must be a tuple, got a {type(weight).__name__}")
        if len(weight) != len(self.weight_sums):
            return InvalidInput(f"the weight has {len(weight)} coordinates, the sum has {len(self.weight_sums)}")
        if not set(map(type, weight)) <= {int}:
            return InvalidInput(f"a weight must be of whole numbers, got {weight}")
        if self.count >= self.grid.fits(max(self.max_l1, _l1(weight))):
            return CapacityExceeded(
                f"the episode {self.label} holds {self.count} rewards, as many as fit into 64 bits on a grid "
                f"of {self.grid.steps} steps: start a new agent"
            )
        return None

    def with_one_more(self, weight: tuple[int, ...], reward: int) -> Episode:
        """A copy that holds one reward more; this one stays as it is."""
        other = Episode(self.key, self.number, len(self.weight_sums), self.grid)
        other.count, other.max_squared, other.max_l1 = self.count, self.max_squared, self.max_l1
        other.weight_sums = list(self.weight_sums)
        other.totals = self.totals.copy()
        other.add(weight, reward)
        return other

    @property
    def sensitivity_l2(self) -> int:
        """The least whole number not below steps * max ||w||_2."""
        squared = self.grid.steps**2 * self.max_squared
        root = math.isqrt(squared)
        return root if root * root == squared else root + 1

    @property
    def sensitivity_l1(self) -> int:
        """steps * max ||w||_1."""
        return self.grid.steps * self.max_l1

    def dump(self) -> dict[str, Any]:
        """Plain data for the store. Private: it holds the sum."""
        public = {name: getattr(self, name) for name in _STORED}
        sums = {"weight_sums": list(self.weight_sums), "totals": self.totals.reveal()}
        return public | sums | {"steps": self.grid.steps}

    @classmethod
    def load(cls, data: Mapping[str, Any], grid: Grid) -> Episode:
        """What dump wrote."""
        if data["steps"] != grid.steps:
            raise InvalidInput(f"a sum on a grid of {data['steps']} steps cannot go on with {grid.steps} steps")
        episode = cls(data["key"], data["number"], len(data["totals"]), grid)
        for name in _STORED:
            setattr(episode, name, data[name])
        episode.weight_sums = data["weight_sums"]
        episode._fits = grid.fits(episode.max_l1)
        episode.totals = HiddenTotals(data["totals"])
        return episode
