"""What phases play, for many sets of active actions at once: policies/tight_phases.py in arrays.

They are indexed by set, action and coordinate.

Actions that are not active, or not played, have no weight there. What is found here is what the policy finds for each
set by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeVar

import numpy as np

from private_bandits.arrays import Floats, Integers, Truths
from private_bandits.design.approximate import FEW, far_from_dependence, plain_basis, rough_weights
from private_bandits.errors import InvalidInput
from private_bandits.policies.fit import Fit
from private_bandits.policies.linear import Rows
from private_bandits.policies.phased_elimination import PhasedElimination
from private_bandits.policies.tight_phases import ENTRIES, ROUGH, farthest

Active = tuple[int, ...]
"""Actions, ascending."""

Key = tuple[Active, int]
"""What is active, and the best action."""


T = TypeVar("T")

REMEMBERED = 4096
"""Keys, and sets: most come again in the next phases, and for other budgets."""


class Shape(NamedTuple):
    """The design of a set: a basis of its span, and the weights of all actions."""

    basis: Floats
    weights: Floats


class PlayedAllocation(NamedTuple):
    """What is played of a set and its best action: Allocation of policies/tight_phases.py."""

    basis: Floats
    shares: Floats
    apart: float
    largest: float


class Mixes:
    """What was found so far, for policies that differ in nothing but budget and delta."""

    def __init__(self, vectors: Floats, tol: float, lead: float) -> None:
        self.vectors = vectors
        self.tol = max(tol, ROUGH)
        self.lead = lead
        self.room = max(1, ENTRIES // vectors.size)
        """Keys that are looked at together."""
        self._shapes: dict[Active, Shape | None] = {}
        self._played: dict[Key, PlayedAllocation] = {}

    def of(self, policy: PhasedElimination, keys: Iterable[Key]) -> dict[Key, PlayedAllocation]:
        """For each of at most `room` keys; none where the actions nearly depend on each other, or are on a line."""
        found = {key: self._played.get(key) for key in keys}
        unknown = [key for key, played in found.items() if played is None]
        if unknown:
            new = self._mixed(self._shaped(policy, unknown))
            found.update(new)
            if len(self._played) + len(new) <= REMEMBERED:
                self._played.update(new)
        return {key: played for key, played in found.items() if played is not None}

    def _shaped(self, policy: PhasedElimination, keys: Sequence[Key]) -> dict[Key, Shape]:
        """The designs."""
        found = {active: self._shapes.get(active) for active, _ in keys}
        unknown = [active for active in found if active not in self._shapes]
        few = (active for active in unknown if len(active) <= FEW)
        for rank, sets in alike(few, lambda active: min(len(active), self.vectors.shape[1])).items():
            found.update(self._roughly(rank, sets))
        for active in unknown:
            found[active] = found[active] or self._solved(policy, active)
        if len(self._shapes) + len(unknown) <= REMEMBERED:
            self._shapes.update({active: found[active] for active in unknown})
        shapes = ((key, found[key[0]]) for key in keys)
        return {key: shape for key, shape in shapes if shape is not None}

    def _roughly(self, rank: int, sets: Sequence[Active]) -> dict[Active, Shape]:
        """Designs of sets of one rank, but for those that rough.rough_design leaves to the solver."""
        if rank < 2:
            return {}
        arms, among = membership(sets, len(self.vectors))
        bases = plain_basis(np.array([self.vectors[list(active[:rank])] for active in sets]))
        bases = np.broadcast_to(bases, (len(sets), *bases.shape[-2:]))
        weights = np.zeros((len(sets), len(self.vectors)))
        weights[:, arms] = rough_weights(self.vectors[arms] @ bases, among, self.tol)
        return {a: Shape(basis, line) for a, basis, line in zip(sets, bases, weights, strict=True) if line.any()}

    def _solved(self, policy: PhasedElimination, active: Active) -> Shape | None:
        """The design that the policy finds, if these arrays are good enough for it."""
        rows = self.vectors[list(active)]
        try:
            design = policy.design(active)
        except (InvalidInput, np.linalg.LinAlgError):
            return None
        if design.rank < 2 or not far_from_dependence(rows @ design.basis, np.full((1, len(rows)), True))[0]:
            return None
        weights = np.zeros(len(self.vectors))
        weights[list(active)] = design.weights
        return Shape(design.basis, weights)

    def _mixed(self, shapes: dict[Key, Shape]) -> dict[Key, PlayedAllocation]:
        """With the best action beside the design, and how far actions are then apart."""
        found: dict[Key, PlayedAllocation] = {}
        for items in alike(shapes.items(), lambda item: item[1].basis.shape[1]).values():
            keys = [key for key, _ in items]
            arms, among = membership([active for active, _ in keys], len(self.vectors))
            bases, shares = (np.array(arrays) for arrays in zip(*(shape for _, shape in items), strict=True))
            shares[np.arange(len(keys)), [best for _, best in keys]] += self.lead
            whitened, weights = estimates(self.vectors[arms], shares[:, arms], bases)
            # An action that is not active is put where one is.
            places = np.where(among, np.arange(len(arms)), among.argmax(axis=1)[:, None])
            apart = farthest(np.take_along_axis(whitened, places[:, :, None], 1)).tolist()
            largest = largest_squares(weights).tolist()
            found.update(zip(keys, map(PlayedAllocation, bases, shares, apart, largest), strict=True))
        return found


@lru_cache(maxsize=16)
def known_mixes(actions: Rows, tol: float, lead: float) -> Mixes:
    """The one for these actions."""
    return Mixes(np.array(actions), tol, lead)


def alike(things: Iterable[T], kind: Callable[[T], int]) -> dict[int, list[T]]:
    """Things by their kind."""
    found: dict[int, list[T]] = {}
    for thing in things:
        found.setdefault(kind(thing), []).append(thing)
    return found


def membership(sets: Sequence[Active], count: int) -> tuple[Integers, Truths]:
    """What is in any of the sets, and which of these are in each: a line a set."""
    among = np.zeros((len(sets), count), bool)
    lines = np.repeat(np.arange(len(sets)), [len(active) for active in sets])
    among[lines, [arm for active in sets for arm in active]] = True
    arms = np.flatnonzero(among.any(axis=0))
    return arms, among[:, arms]


def estimates(vectors: Floats, counts: Floats | Integers, bases: Floats) -> tuple[Floats, Floats]:
    """For so many plays, all actions whitened, and the weights of the rewards of each in phi (policies/fit.py)."""
    fit = Fit.of(vectors, counts.astype(float), bases)
    roots = fit.roots[:, :, None]
    return fit.whitened(vectors), np.divide(fit.q, roots, out=np.zeros_like(fit.q), where=roots > 0)


def largest_squares(weights: Floats) -> Floats:
    """The largest squared norm of a weight, a number a set."""
    return np.asarray((weights**2).sum(axis=2).max(axis=1))
