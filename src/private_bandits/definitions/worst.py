"""The worst case in full: two worlds, an adversary, and what gives them away."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from private_bandits.arrays import Floats
from private_bandits.definitions.models import Model
from private_bandits.definitions.observation_tree import Booleans, Leaves, delta_leaves, grow, renyi_leaves
from private_bandits.definitions.policy import SmallPolicy
from private_bandits.definitions.worlds import WorldPairs

Quantity = Literal["delta", "epsilon", "rho"]
Actions = tuple[int, ...]
Table = tuple[tuple[float, ...], ...]

MOST_LISTED = 1000
"""How many sequences of an event are listed; its probabilities count all of them."""


@dataclass(frozen=True)
class Move:
    """What the adversary does after a recommendation: the arm it plays.

    An adaptive adversary also picks the reward, at one step one for each world, and the context that comes next.
    """

    arm: int
    rewards: tuple[float, float] | None = None
    next_context: int | None = None


@dataclass(frozen=True)
class Adversary:
    """A deterministic adversary: fixed opening moves up to the differing step, then answers to what it sees.

    `answers` maps the recommendations since the opening to a move, for all that can happen in either world.
    """

    opening: tuple[Move, ...]
    answers: Mapping[Actions, Move]

    def move(self, seen: Sequence[int]) -> Move:
        """The move after these recommendations, from the first step on; where nothing matters, the recommended arm."""
        if len(seen) <= len(self.opening):
            return self.opening[len(seen) - 1]
        return self.answers.get(tuple(seen[len(self.opening) :]), Move(seen[-1]))

    def __call__(self, seen: Sequence[int]) -> int:
        """The arm that is played after these recommendations."""
        return self.move(seen).arm


@dataclass(frozen=True)
class Seen:
    """Recommendations that are seen, with their probability in both worlds."""

    actions: Actions
    p: float
    q: float


@dataclass(frozen=True)
class WorstCase:
    """Two neighbouring worlds, the adversary, and the event that tells them apart best.

    `step` is the one that differs, counted from 1. `tables` and `contexts` are those of both worlds (an adaptive
    adversary has no table, its moves hold the rewards). `event` is about the recommendations of `observed` steps,
    most telling first: for delta and epsilon all sequences with P > e^epsilon Q, with their probabilities `p` and
    `q`; for rho the sequences that weigh most in the Renyi divergence of order `alpha` (1: the limit, KL).
    """

    quantity: Quantity
    model: Model
    step: int
    tables: tuple[Table, Table] | None
    contexts: tuple[Actions, Actions] | None
    adversary: Adversary | None
    observed: Actions
    event: tuple[Seen, ...]
    p: float
    q: float
    epsilon: float | None = None
    alpha: float | None = None


def worst_case(
    policy: SmallPolicy, worlds: WorldPairs, quantity: Quantity, level: float, delta: float = 0.0
) -> WorstCase:
    """The worst case of one pair of worlds. `level` is epsilon for delta and epsilon, alpha for rho."""
    leaves, other = grow(policy, worlds), grow(policy, _swapped(worlds))
    values = _values(leaves, quantity, level, delta)
    mask = leaves.kept(values)
    q = np.exp(other.log_p)
    picked = mask & (values > 0)
    sequences, answers = _walk(leaves, mask, np.where(picked, values, 0.0), q, policy)
    adversary = Adversary(_opening(policy, worlds), answers) if leaves.queried else None
    return WorstCase(
        quantity=quantity,
        model=worlds.model,
        step=worlds.step + 1,
        tables=_tables(policy, worlds),
        contexts=_contexts(policy, worlds),
        adversary=adversary,
        observed=tuple(step + 1 for step in leaves.steps),
        event=sequences,
        p=float(leaves.p[picked].sum()),
        q=float(q[picked].sum()),
        epsilon=None if quantity == "rho" else level,
        alpha=level if quantity == "rho" else None,
    )


def _values(leaves: Leaves, quantity: Quantity, level: float, delta: float) -> Floats:
    """What the adversary of this quantity maximises."""
    if level == math.inf:  # possible in one world, impossible in the other
        return np.where(leaves.log_ratio == math.inf, leaves.p, 0.0)
    if quantity == "rho":
        return leaves.information if level == 1 else renyi_leaves(leaves, level - 1)[0]
    if quantity == "epsilon" and delta == 0:
        return np.where(leaves.log_ratio == leaves.largest, leaves.p, 0.0) if level > 0 else np.zeros_like(leaves.p)
    return delta_leaves(leaves, level)


def _walk(
    leaves: Leaves,
    mask: Booleans,
    values: Floats,
    q: Floats,
    policy: SmallPolicy,
) -> tuple[tuple[Seen, ...], dict[Actions, Move]]:
    """The sequences of the event, and the adversary's answers along everything that can happen."""
    places = np.argwhere(mask & ((leaves.p > 0) | (q > 0)))[:, :-1][:, ::-1]  # forward in time, without the pair
    answers: dict[Actions, Move] = {}
    listed = []
    for place in map(tuple, places.tolist()):
        at = (*place[::-1], 0)
        actions = place[::2] if leaves.queried else place
        if leaves.queried:
            for step, move in enumerate(place[1::2]):
                answers[actions[: step + 1]] = _move(policy, leaves.worlds, move)
        if values[at] > 0:
            listed.append((float(values[at]), Seen(actions, float(leaves.p[at]), float(q[at]))))
    listed.sort(key=lambda entry: -entry[0])
    return tuple(sequence for _, sequence in listed[:MOST_LISTED]), answers


def _move(policy: SmallPolicy, worlds: WorldPairs, move: int) -> Move:
    if worlds.model.rows != "adaptive":
        return Move(move)
    digit, context = divmod(move, policy.space.n_contexts)
    arm, reward = divmod(digit, len(policy.rewards))
    value = policy.rewards[reward]
    return Move(arm, (value, value), context if policy.contexts else None)


def _digits(policy: SmallPolicy, worlds: WorldPairs, world: int) -> list[tuple[int, int, int]]:
    """Context, arm and place of the reward of each step before `first`."""
    number, digits = int(worlds.histories[world, 0]), []
    for _ in range(worlds.first):
        number, digit = divmod(number, policy.space.base)
        rest, reward = divmod(digit, len(policy.rewards))
        context, arm = divmod(rest, len(policy.arms))
        digits.append((context, arm, reward))
    return digits[::-1]


def _opening(policy: SmallPolicy, worlds: WorldPairs) -> tuple[Move, ...]:
    moves = []
    both = [_digits(policy, worlds, world) for world in (0, 1)]
    following = [context for context, _, _ in both[0][1:]] + [int(worlds.contexts[0, worlds.first, 0])]
    for (_, arm, reward), (_, _, changed), context in zip(*both, following, strict=True):
        if worlds.model.rows == "adaptive":
            rewards = (policy.rewards[reward], policy.rewards[changed])
            moves.append(Move(arm, rewards, context if policy.contexts else None))
        else:
            moves.append(Move(arm))
    return tuple(moves)


def _tables(policy: SmallPolicy, worlds: WorldPairs) -> tuple[Table, Table] | None:
    """Rows that the worlds do not depend on hold the same reward everywhere."""
    if worlds.model.rows == "adaptive":
        return None
    tables = []
    for world in (0, 1):
        rows = [(policy.rewards[reward],) * len(policy.arms) for _, _, reward in _digits(policy, worlds, world)]
        later = worlds.rewards[world, worlds.first :, :, 0].tolist()
        rows.extend(tuple(policy.rewards[place] for place in row) for row in later)
        tables.append(tuple(rows))
    return tables[0], tables[1]


def _contexts(policy: SmallPolicy, worlds: WorldPairs) -> tuple[Actions, Actions] | None:
    """The contexts of both worlds; of an adaptive adversary those up to the step after the differing one."""
    if not policy.contexts:
        return None
    until = worlds.first + 1 if worlds.model.rows == "adaptive" else policy.horizon
    made = []
    for world in (0, 1):
        before = [context for context, _, _ in _digits(policy, worlds, world)]
        made.append((*before, *(int(worlds.contexts[world, step, 0]) for step in range(worlds.first, until))))
    return made[0], made[1]


def _swapped(worlds: WorldPairs) -> WorldPairs:
    return WorldPairs(
        worlds.model, worlds.step, worlds.first, worlds.histories[::-1], worlds.contexts[::-1], worlds.rewards[::-1]
    )
