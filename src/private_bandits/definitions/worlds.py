"""Every pair of neighbouring worlds of a model, in chunks.

Where the adversary picks the arm that is played, the policy's history does not depend on what the policy recommended
before the differing step s, and both worlds are alike until then. A best adversary therefore opens with fixed moves:
V = sum over o of pi(o) max over q of V(q) = max over q of V(q). So a pair of worlds is a history of s - 1 steps, an
arm, two rewards, and the rows after s; the rows before s need not be gone through.

The reward of the last step reaches nothing, so the last row counts by its context alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from private_bandits.definitions.histories import Histories
from private_bandits.definitions.models import Model

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class WorldPairs:
    """Pairs of worlds that differ at `step` (from 0); both are looked at from the step `first` on.

    `histories[w]` are the histories before `first` in world w, by number; `contexts[w, t]` the context of step t and
    `rewards[w, t, arm]` the place of each arm's reward; the last axis counts pairs.
    """

    model: Model
    step: int
    first: int
    histories: Ints
    contexts: Ints
    rewards: Ints

    @property
    def count(self) -> int:
        """How many pairs."""
        return int(self.histories.shape[-1])

    def take(self, which: Any) -> WorldPairs:
        """Some of the pairs."""
        return WorldPairs(
            self.model,
            self.step,
            self.first,
            self.histories[..., which],
            self.contexts[..., which],
            self.rewards[..., which],
        )


@dataclass(frozen=True)
class PairsAtStep:
    """The pairs of worlds that differ at one step, counted but not yet made."""

    space: Histories
    model: Model
    step: int

    @property
    def first(self) -> int:
        """The first step that the two worlds are followed from."""
        return 0 if self.model.plays == "policy" else self.step + 1

    @property
    def cells(self) -> int:
        """What can have happened at one step, of rewards: the number of rows without their contexts."""
        return int(len(self.space.rewards) ** (1 if self.model.rows == "constant" else len(self.space.arms)))

    @property
    def moves(self) -> int:
        """What the adversary can choose between after a recommendation; one where the policy's arm is played."""
        if self.model.plays == "policy":
            return 1
        return self.space.base if self.model.rows == "adaptive" else len(self.space.arms)

    @property
    def leaves(self) -> int:
        """The size of one pair's tree: recommendations and moves from `first` on."""
        steps = self.space.horizon - self.first
        return int(len(self.space.arms) ** steps * self.moves ** (steps - 1))

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many choices each part of a pair has; their product is the number of pairs."""
        arms, rewards, contexts = len(self.space.arms), len(self.space.rewards), self.space.n_contexts
        row, last = contexts * self.cells, contexts
        rows = [row] * (self.space.horizon - 1) + [last]
        if self.model.plays == "policy":
            rows[self.step] = row * (row - 1) if self.model.joint else row * (self.cells - 1)
            return tuple(rows)
        opening = (self.space.base**self.step, contexts, arms, rewards * (rewards - 1))
        return opening + ((contexts,) if self.model.rows == "adaptive" else tuple(rows[self.step + 1 :]))

    @property
    def count(self) -> int:
        """The number of ordered pairs."""
        return math.prod(self.sizes)

    def worlds(self, start: int, stop: int) -> WorldPairs:
        """The pairs with the numbers from `start` to `stop`."""
        places = np.unravel_index(np.arange(start, stop), self.sizes)
        return self._played_by_policy(places) if self.model.plays == "policy" else self._played_by_adversary(places)

    def _played_by_policy(self, places: tuple[Ints, ...]) -> WorldPairs:
        chosen = np.array([places, places])
        if self.model.joint:
            chosen[:, self.step] = _two(places[self.step], self.space.n_contexts * self.cells)
        else:
            context, pair = np.divmod(places[self.step], self.cells * (self.cells - 1))
            chosen[:, self.step] = context * self.cells + _two(pair, self.cells)
        chosen[:, -1] *= self.cells  # the last row is a context
        return self._made(np.zeros_like(chosen[:, 0]), chosen)

    def _played_by_adversary(self, places: tuple[Ints, ...]) -> WorldPairs:
        prefix, context, arm, pair, *later = places
        before = (prefix * self.space.n_contexts + context) * len(self.space.arms) + arm
        histories = before * len(self.space.rewards) + _two(pair, len(self.space.rewards))
        chosen = np.zeros((2, self.space.horizon, len(prefix)), dtype=np.int64)
        for step, place in enumerate(later, start=self.first):
            # An adaptive adversary picks later contexts as it goes; the first and the last row have no reward to pick.
            alone = self.model.rows == "adaptive" or step == self.space.horizon - 1
            chosen[:, step] = place * self.cells if alone else place
        return self._made(histories, chosen)

    def _made(self, histories: Ints, chosen: Ints) -> WorldPairs:
        contexts, cell = np.divmod(chosen, self.cells)
        arms = len(self.space.arms)
        if self.model.rows == "constant":
            rewards = np.repeat(cell[:, :, None], arms, axis=2)
        else:
            powers = len(self.space.rewards) ** np.arange(arms - 1, -1, -1)
            rewards = cell[:, :, None] // powers[:, None] % len(self.space.rewards)
        return WorldPairs(self.model, self.step, self.first, histories, contexts, rewards)


def pairs_by_step(space: Histories, model: Model) -> list[PairsAtStep]:
    """Return the pairs of each step that can differ; the last reward is never used, so the last step cannot."""
    every = [PairsAtStep(space, model, step) for step in range(space.horizon - 1)]
    return [pairs for pairs in every if pairs.count]


def chunks(every: list[PairsAtStep], cells: int) -> Iterator[WorldPairs]:
    """All pairs, so many at a time that their trees have about `cells` leaves."""
    for pairs in every:
        size = max(1, cells // pairs.leaves)
        for start in range(0, pairs.count, size):
            yield pairs.worlds(start, min(start + size, pairs.count))


def _two(pair: Ints, values: int) -> Ints:
    """The pair-th of the values (values - 1) ordered pairs of two different values."""
    first, second = np.divmod(pair, values - 1)
    return np.array([first, second + (second >= first)])
