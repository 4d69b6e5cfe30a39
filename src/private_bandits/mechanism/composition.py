"""The rules by which sums leave: which leave together, and which later releases hold again.

A `Composition` is the rule of an agent. Each sum leaves once, alone or combined with others (`Independent`); or as part
of the nodes of a tree (`Tree`); or with earlier sums, at the multipliers of a factor (`Factored`). The rule composes
what goes through the door. It also knows, from numbers alone, which episodes a release holds: files are checked so.

Private state, as episodes are: what leaves holds exact sums, which no repr shows.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from private_bandits.errors import CapacityExceeded, InvalidInput
from private_bandits.ledger import Part, rewards_in
from private_bandits.ledger.placements import tree_cost
from private_bandits.mechanism.episode import Episode, Grid, HiddenTotals, l1_norm, label_of, root_above
from private_bandits.mechanism.factor import Factor
from private_bandits.mechanism.tree import is_complete, subtrees_before, subtrees_joined

LEAST_WEIGHT, MOST_WEIGHT = 2**6, 2**40  # what the largest weight of a combination is rounded to


class Outgoing(Protocol):
    """Exact sums on their way through the door, whatever they are made of."""

    @property
    def key(self) -> int:
        """Key of the sum that was due."""

    @property
    def keys(self) -> tuple[int, ...]:
        """Keys of all sums whose new rewards are in it."""

    @property
    def label(self) -> str:
        """Name of the newest episode in it, for messages."""

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the episodes, or nodes, that leave for the first time."""

    @property
    def parts(self) -> tuple[Part, ...]:
        """The sums it is made of, with their rewards: the new ones first, then what is held again, newest first."""

    @property
    def multipliers(self) -> Mapping[str, float]:
        """Every episode in it, with what its rewards are multiplied by."""

    @property
    def weights(self) -> list[list[float]] | None:
        """Weights that several sums are combined with; None: each sum by itself."""

    @property
    def unit(self) -> float:
        """The number of whole steps that make one in the values."""

    @property
    def factor(self) -> Factor | None:
        """Factor whose multipliers it has, if any."""

    @property
    def grid(self) -> Grid:
        """Grid that its rewards are on."""

    @property
    def max_l1(self) -> int:
        """Largest L1 norm of a reward's weight."""

    @property
    def sensitivity_l2(self) -> int:
        """Most that one reward moves the values by, in L2 norm, rounded up."""

    @property
    def sensitivity_l1(self) -> int:
        """The same in L1 norm."""

    @property
    def weight_sums(self) -> list[int]:
        """Sums of the weights. Public."""

    @property
    def totals(self) -> HiddenTotals:
        """The exact sums. Private."""

    @property
    def carried_over(self) -> tuple[Episode, ...]:
        """Sums that later releases of the key hold again."""


class Composition(ABC):
    """The rule by which the sums of an agent leave."""

    factor: Factor | None = None

    @abstractmethod
    def compose(self, newest: Episode) -> Outgoing:
        """Return what leaves when an episode is complete. Refused, on public grounds, if that might outgrow 64 bits."""

    @abstractmethod
    def parts(self, key: int, number: int) -> list[tuple[str, float]]:
        """Return the parts of the release of episode `number`, with their multipliers: the episode comes first."""

    def covered(self, key: int, number: int) -> dict[str, float]:
        """Return the episodes that the ledger charges for that release, with their multipliers."""
        return dict(self.parts(key, number))

    @abstractmethod
    def remembered(self, key: int, number: int) -> list[str]:
        """Return the earlier sums that the open episode `number` has to remember, oldest first."""

    @property
    def joins_sums(self) -> bool:
        """Whether sums of different keys may leave together."""
        return False

    @property
    @abstractmethod
    def reward_cost(self) -> Fraction:
        """The most that a reward costs in all of its releases together, where one of multiplier one costs 1."""

    def person_cost(self, rewards: int, one_per_episode: bool) -> Fraction:
        """Return the most that so many rewards of one person ever cost, in the same units, wherever they are placed.

        No placement costs more than all of them in one episode (docs/guarantees.md). one_per_episode: the agent takes
        no second reward of a person in an episode.
        """
        return self.spread_cost(rewards) if one_per_episode else rewards**2 * self.reward_cost

    @abstractmethod
    def spread_cost(self, rewards: int) -> Fraction:
        """Return the same for rewards of which one at most is in an episode."""


class Independent(Composition):
    """Each episode is in one release, alone or combined with episodes of other keys."""

    @property
    def joins_sums(self) -> bool:
        """Sums of different keys may leave together."""
        return True

    def compose(self, newest: Episode) -> Outgoing:
        """Return the episode by itself."""
        return newest

    def parts(self, key: int, number: int) -> list[tuple[str, float]]:
        """Return that episode alone."""
        return [(label_of(key, number, number), 1.0)]

    def remembered(self, key: int, number: int) -> list[str]:
        """Return nothing: no sum is held again."""
        return []

    @property
    def reward_cost(self) -> Fraction:
        """A reward is in one release."""
        return Fraction(1)

    def spread_cost(self, rewards: int) -> Fraction:
        """Each reward is in a release of its own."""
        return Fraction(rewards)


@dataclass(frozen=True)
class Tree(Composition):
    """Each episode is a leaf of a binary tree, and the node that it completes leaves (tree.py)."""

    levels: int

    def compose(self, newest: Episode) -> Node:
        """Return the node that this leaf completes."""
        return Node(newest, self.levels)

    def parts(self, key: int, number: int) -> list[tuple[str, float]]:
        """The leaf, and the subtrees that its node takes in."""
        before = subtrees_before(number, self.levels)[::-1][: subtrees_joined(number, self.levels)]
        return [(label_of(key, first, last), 1.0) for first, last in [(number, number), *before]]

    def covered(self, key: int, number: int) -> dict[str, float]:
        """The leaves of the node, as one."""
        first = number + 1 - 2 ** subtrees_joined(number, self.levels)
        return {label_of(key, first, number): 1.0}

    def remembered(self, key: int, number: int) -> list[str]:
        """Return the complete subtrees before the leaf."""
        return [label_of(key, first, last) for first, last in subtrees_before(number, self.levels)]

    @property
    def reward_cost(self) -> Fraction:
        """A leaf is in a node of each level."""
        return Fraction(self.levels)

    def spread_cost(self, rewards: int) -> Fraction:
        """Return the cost of the dearest leaves."""
        return tree_cost(self.levels, rewards)


@dataclass(frozen=True)
class Factored(Composition):
    """A release holds earlier episodes again, with the multipliers of a factor (factor.py)."""

    factor: Factor

    def compose(self, newest: Episode) -> Correlated:
        """Return the episode with those that it remembers."""
        return Correlated(newest, self.factor)

    def parts(self, key: int, number: int) -> list[tuple[str, float]]:
        """Return the episodes of the factor's column that exist by now."""
        times = self.factor.multipliers[: self.factor.covered(number)]
        return [(label_of(key, number - k, number - k), c / self.factor.unit) for k, c in enumerate(times)]

    def remembered(self, key: int, number: int) -> list[str]:
        """Return the episodes before it that its release holds again."""
        return [label_of(key, n, n) for n in range(number - self.factor.covered(number) + 1, number)]

    @property
    def reward_cost(self) -> Fraction:
        """Return the column of the factor."""
        return self.factor.column

    def spread_cost(self, rewards: int) -> Fraction:
        """Return the cost of the dearest episodes."""
        return self.factor.spread_cost(rewards)


def composition_for(factor: Factor | None, tree_levels: int) -> Composition:
    """Return the rule of a policy with this factor, or with a tree of so many levels."""
    if factor is not None:
        return Factored(factor)
    return Tree(tree_levels) if tree_levels > 1 else Independent()


class Node:
    """A leaf of a tree together with the subtrees before it that it completes: one sum, over all of their leaves."""

    weights: list[list[float]] | None = None
    factor: Factor | None = None

    def __init__(self, leaf: Episode, levels: int) -> None:
        apart = len(leaf.kept) - subtrees_joined(leaf.number, levels)
        joined = leaf.kept[apart:]
        self._sum = whole = leaf.merged(joined)
        self.carried_over = () if is_complete(leaf.number, levels) else (*leaf.kept[:apart], whole)
        self.key, self.keys = whole.key, (whole.key,)
        self.label, self.labels = whole.label, (whole.label,)
        self.parts = (leaf.part(1.0, new=True), *(part.part(1.0, new=False) for part in reversed(joined)))
        self.multipliers = {whole.label: 1.0}
        self.grid, self.unit, self.max_l1 = whole.grid, whole.unit, whole.max_l1
        self.weight_sums, self.totals = whole.weight_sums, whole.totals

    def __repr__(self) -> str:
        return f"Node({self.label}, {rewards_in(self.parts)} rewards, sum hidden)"

    @property
    def sensitivity_l2(self) -> int:
        """The sensitivity of the sum: a reward is in it once."""
        return self._sum.sensitivity_l2

    @property
    def sensitivity_l1(self) -> int:
        """The same in L1 norm."""
        return self._sum.sensitivity_l1


class Combined:
    """Several one-dimensional episodes that leave together, as exact integers like the sum of one.

    weights: a row for each value that leaves, a column for each episode: the values are weights * sums. Real weights
    are rounded to whole multiples of 1/unit, relative to the largest of them and before anything is summed with
    them; whoever decodes uses the rounded ones. None: every sum by itself.
    """

    def __init__(self, episodes: Sequence[Episode], weights: Sequence[Sequence[float]] | None) -> None:
        if not episodes or len({e.label for e in episodes}) < len(episodes):
            # Twice in the list, a reward would be in two columns, and no column alone its sensitivity.
            raise InvalidInput(f"a release needs different episodes, got {[e.label for e in episodes]}")
        if len({e.grid for e in episodes}) > 1:
            raise InvalidInput("episodes on different grids cannot leave together")
        for episode in episodes:
            if not episode.count:
                raise InvalidInput(f"episode {episode.label} holds no reward: there is nothing to release")
            if len(episode.weight_sums) != 1:
                raise InvalidInput(f"episode {episode.label} is a sum of vectors: only sums of numbers are combined")
        self.grid = episodes[0].grid
        self.key = episodes[0].key
        self.keys = tuple(e.key for e in episodes)
        self.labels = tuple(e.label for e in episodes)
        self.parts = tuple(e.part(1.0, new=True) for e in episodes)
        self.unit, matrix = (1.0, _identity(len(episodes))) if weights is None else self._rounded(episodes, weights)
        self.weights = None if weights is None else [[part / self.unit for part in row] for row in matrix]
        columns = list(zip(*matrix, strict=True))
        self.max_l1 = max(e.max_l1 * l1_norm(c) for e, c in zip(episodes, columns, strict=True))
        self._max_squared = max(
            e.max_squared * sum(part * part for part in c) for e, c in zip(episodes, columns, strict=True)
        )
        self.weight_sums = [
            sum(part * e.weight_sums[0] for part, e in zip(row, episodes, strict=True)) for row in matrix
        ]
        self.totals = HiddenTotals.combined([e.totals for e in episodes], matrix)

    factor: Factor | None = None
    carried_over: tuple[Episode, ...] = ()

    @property
    def multipliers(self) -> dict[str, float]:
        """Every episode enters once; what it is weighed with is in the sensitivity."""
        return dict.fromkeys(self.labels, 1.0)

    def __repr__(self) -> str:
        return f"Combined({', '.join(self.labels)}, {rewards_in(self.parts)} rewards, sums hidden)"

    @property
    def label(self) -> str:
        """Its episodes by name."""
        return ", ".join(self.labels)

    @property
    def sensitivity_l2(self) -> int:
        """The least whole number not below what one reward moves the values by: its column, at its weight."""
        return root_above(self.grid.steps**2 * self._max_squared)

    @property
    def sensitivity_l1(self) -> int:
        """The same in L1 norm."""
        return self.grid.steps * self.max_l1

    def _rounded(
        self, episodes: Sequence[Episode], weights: Sequence[Sequence[float]]
    ) -> tuple[float, list[list[int]]]:
        """The finest whole numbers with which values and noise fit into 64 bits, and how many of them make one."""
        shape = {len(row) for row in weights}
        if shape != {len(episodes)} or not all(math.isfinite(w) for row in weights for w in row):
            raise InvalidInput(f"the weights must be rows of {len(episodes)} finite numbers, one for each sum")
        largest = max(abs(w) for row in weights for w in row)
        if not largest:
            raise InvalidInput("the weights are all zero: there is nothing to release")
        bits = MOST_WEIGHT.bit_length() - 1
        while bits >= LEAST_WEIGHT.bit_length() - 1:
            exponent = bits - math.frexp(largest)[1]
            if exponent > 1000:
                raise InvalidInput(f"the weights are too small, {largest:g} at most: scale them")
            unit = 2.0**exponent  # a power of two: scaling by it is exact
            # Away from zero, so that the noise is never less than the real weights need.
            matrix = [[math.ceil(w * unit) if w > 0 else math.floor(w * unit) for w in row] for row in weights]
            if self.grid.holds(matrix, [e.count * e.max_l1 for e in episodes], [e.max_l1 for e in episodes]):
                return unit, matrix
            bits -= 1
        raise CapacityExceeded(
            f"{rewards_in(self.parts)} rewards are too many to be released with weights in 64 bits: start a new agent"
        )


class Correlated:
    """An episode and those before it that its release holds again, with the multipliers of a factor (factor.py).

    Exact integers like the sum of one episode: everything is multiplied by the factor's unit. Which episodes are in it
    follows from the number of the newest alone, so that no reward is in more releases than the factor's column says.
    """

    weights: list[list[float]] | None = None

    def __init__(self, newest: Episode, factor: Factor) -> None:
        kept = newest.kept
        expected = range(newest.number - factor.covered(newest.number) + 1, newest.number)
        if [part.number for part in kept] != list(expected) or any(part.key != newest.key for part in kept):
            raise AssertionError(f"episode {newest.label} does not hold the episodes that its factor covers")
        sums = (newest, *reversed(kept))
        times = factor.multipliers[: len(sums)]
        self.newest, self.factor = newest, factor
        self.key, self.keys, self.grid = newest.key, (newest.key,), newest.grid
        self.label, self.labels = newest.label, (newest.label,)
        self.unit = factor.unit * newest.unit
        self.max_squared = self._largest_l1 = self._moved_by = held = 0
        self.weight_sums = [0] * len(newest.weight_sums)
        self.totals = HiddenTotals([0] * len(newest.weight_sums))
        parts: list[Part] = []
        for one, c in zip(sums, times, strict=True):
            parts.append(one.part(c / factor.unit, new=one is newest))
            held += c * one.count
            self.max_squared = max(self.max_squared, one.max_squared)
            self._moved_by = max(self._moved_by, one.moved_by(factor.unit))
            self._largest_l1 = max(self._largest_l1, one.max_l1)
            self.weight_sums = [a + c * b for a, b in zip(self.weight_sums, one.weight_sums, strict=True)]
            self.totals.add(one.totals, c)
        self.parts = tuple(parts)
        self.multipliers = {part.episode: part.multiplier for part in parts}
        self.max_l1 = factor.unit * self._largest_l1
        if held > factor.unit * self._room():
            raise CapacityExceeded(
                f"the episodes up to {newest.label} hold {rewards_in(self.parts)} rewards, more than fit into 64 bits "
                "together: start a new agent"
            )

    def __repr__(self) -> str:
        return f"Correlated({', '.join(self.multipliers)}, {rewards_in(self.parts)} rewards, sums hidden)"

    def _room(self) -> int:
        return self.grid.fits(root_above(self.max_squared), self._largest_l1)

    @property
    def sensitivity_l2(self) -> int:
        """A whole number that a reward of multiplier one cannot move the values by more than."""
        return self._moved_by

    @property
    def sensitivity_l1(self) -> int:
        """The same in L1 norm."""
        return self.grid.steps * self.max_l1

    @property
    def carried_over(self) -> tuple[Episode, ...]:
        """The episodes that the release of the next one holds again."""
        return self.factor.kept_after(self.newest.kept, self.newest.alone(), self.newest.number)


def _identity(size: int) -> list[list[int]]:
    return [[int(i == j) for j in range(size)] for i in range(size)]
