"""The compiled part of the stepwise engine: optimistic policies that may learn from every reward.

What differs between the policies stands in arrays: how many sums there are, whether the matrix has noise as well, and
the numbers that widths are made of (`policies.optimism.Optimism`).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from private_bandits.arrays import Floats, Integers
from private_bandits.policies.optimism import Optimism
from private_bandits.simulation.algebra import invert
from private_bandits.simulation.compiled import compiled, part, part_as_written
from private_bandits.simulation.oful_kernels import ContextBlock

SHIFT, FLOOR, LOG_FLOOR, HALF, ODDS, RIDGE, STEEP, NOISE = range(len(Optimism._fields))
# Places among the counts of a policy.
WAITING, WANTED, RELEASED, RELEASES, USED = range(5)


class Field(NamedTuple):
    """A block of contexts as these policies see them."""

    actions: Floats
    """[step, coordinate, action], on the grid."""
    means: Floats
    """[step, action]: the true means, of the actions as drawn."""
    ideal: Floats
    """[step]: the largest mean."""


class Optimist(NamedTuple):
    """One policy in one run, as the compiled code changes it. s: a sum, k: an action."""

    gram: Floats
    """[s, i, j]: the sum of a a', without noise."""
    vector: Floats
    """[s, i]: the sum of a r, without noise."""
    upper: Floats
    """[s, z, coordinate]: noise of the nodes of z levels and more in the newest tree of a sum, and of all trees
    before it. upper[s, 0] is all that there is in the sum."""
    places: Integers
    """[s]: leaves in the newest tree."""
    before: Integers
    """[s]: noises in the trees before it."""
    optimism: Floats
    """[s, x]: the numbers of Optimism, with x noises from the newest tree."""
    normals: Floats
    """[release, coordinate]: for the next noises."""
    scales: Floats
    """[coordinate]: standard deviations of noise. Those of the matrix, if it has any, row by row from the diagonal on,
    come before those of the vector."""
    counts: Integers
    """Rewards that wait for a release, how many it is to be of, rewards released, releases, rows of `normals` used."""
    regret: Floats
    theta: Floats
    """[i, k]: of the estimate that action k belongs to, as the following are."""
    inverse: Floats
    """[i, j, k]: of V."""
    width: Floats
    """[k]."""
    room: Floats
    """Matrices to work in."""
    scores: Floats
    """[3, k]: room to score in."""


def optimist(sums: int, actions: int, d: int, levels: int, scales: Floats, ahead: int) -> Optimist:
    """A policy that knows nothing yet."""
    return Optimist(
        gram=np.zeros((sums, d, d)),
        vector=np.zeros((sums, d)),
        upper=np.zeros((sums, levels + 1, len(scales))),
        places=np.zeros(sums, np.int64),
        before=np.zeros(sums, np.int64),
        optimism=np.zeros((sums, levels + 1, len(Optimism._fields))),
        normals=np.zeros((ahead, len(scales))),
        scales=scales,
        counts=np.zeros(5, np.int64),
        regret=np.zeros(1),
        theta=np.zeros((d, actions)),
        inverse=np.zeros((d, d, actions)),
        width=np.zeros(actions),
        room=np.zeros((4, d, d)),
        scores=np.zeros((3, actions)),
    )


@part_as_written
def _on_grid(x: float, unit: float) -> float:
    """Rounded towards zero, as a policy does it."""
    return np.trunc(x / unit) * unit  # type: ignore[no-any-return]


@compiled
def lay_out(block: ContextBlock, unit: float, field: Field) -> None:
    """The contexts of a block for policies with this grid."""
    tiles, actions, d, n = block.contexts.shape
    for tile in range(tiles):
        for k in range(actions):
            for t in range(n):
                field.means[tile * n + t, k] = 0.0
            for i in range(d):
                row = block.contexts[tile, k, i]
                for t in range(n):
                    x = np.float64(row[t])
                    field.actions[tile * n + t, i, k] = _on_grid(x, unit)
                    field.means[tile * n + t, k] += block.theta[i] * x


@part_as_written
def _choose(actions: Floats, o: Optimist) -> int:
    """The largest index; ties go to the first, so equal actions must have equal scores wherever they stand."""
    d, count = actions.shape
    means, squares, row = o.scores[0], o.scores[1], o.scores[2]
    for k in range(count):
        means[k] = 0.0
        squares[k] = 0.0
    for i in range(d):
        a, theta = actions[i], o.theta[i]
        for k in range(count):
            means[k] += theta[k] * a[k]
            row[k] = o.inverse[i, i, k] * a[k]
        for j in range(i):
            b, entry = actions[j], o.inverse[i, j]
            for k in range(count):
                row[k] += 2 * entry[k] * b[k]
        for k in range(count):
            squares[k] += row[k] * a[k]
    best, chosen = -math.inf, 0
    for k in range(count):
        means[k] += o.width[k] * np.sqrt(squares[k])
    for k in range(count):
        if means[k] > best:
            best, chosen = means[k], k
    return chosen


@part
def _fill_matrix(gram: Floats, noise: Floats, shift: float, v: Floats) -> None:
    """V of a sum: the sum of a a', with its noise if it has any, and shift I."""
    d = len(gram)
    noisy, c = noise.size > d, 0
    for i in range(d):
        for j in range(i, d):
            entry = gram[i, j]
            if noisy:
                entry += noise[c]
                c += 1
            v[i, j] = entry
            v[j, i] = entry
        v[i, i] += shift


@part
def _settle(o: Optimist, s: int, known: Floats, log_det: float, least: float) -> None:
    """What follows from a sum for the actions that belong to it: theta, V^-1, which is in room[3], and the width."""
    d, noise, inverse, root = o.vector.shape[1], o.upper[s, 0], o.room[3], math.sqrt(least)
    width = known[HALF] * math.sqrt(known[ODDS] + log_det - known[LOG_FLOOR])
    width += min(known[RIDGE], known[STEEP] / root) + known[NOISE] / root
    shared = len(o.vector) == 1
    first, last = (0, o.width.size) if shared else (s, s + 1)
    for k in range(first, last):
        o.width[k] = width
    for i in range(d):
        theta = 0.0
        for j in range(d):
            theta += inverse[i, j] * (o.vector[s, j] + noise[noise.size - d + j])
            for k in range(first, last):
                o.inverse[i, j, k] = inverse[i, j]
        for k in range(first, last):
            o.theta[i, k] = theta


@part
def _add_noise(upper: Floats, place: int, normals: Floats, scales: Floats) -> None:
    """The node that the newest leaf completes has noise of its own, in place of that of the nodes below it."""
    level = 0
    while not (place >> level) & 1:
        level += 1
    for c in range(normals.size):
        total = upper[level + 1, c] + scales[c] * normals[c]
        for z in range(level + 1):
            upper[z, c] = total


@part
def _ones(number: int) -> int:
    """In binary: as many nodes make up a prefix of so many leaves."""
    count = 0
    while number:
        count += 1
        number &= number - 1
    return count


@part
def _take_node(o: Optimist, s: int) -> Floats:
    """The newest leaf releases a node: V into room[0], and the numbers of Optimism that go with it."""
    o.places[s] += 1
    _add_noise(o.upper[s], o.places[s], o.normals[o.counts[USED]], o.scales)
    known: Floats = o.optimism[s, _ones(o.places[s])]
    _fill_matrix(o.gram[s], o.upper[s, 0], known[SHIFT], o.room[0])
    return known


@part
def _close(o: Optimist, s: int) -> bool:
    """After a release: whether the policy has to be looked after. A tree that is complete makes room for the next."""
    levels = o.upper.shape[1] - 1
    o.counts[RELEASED] += o.counts[WAITING]
    o.counts[WAITING] = 0
    o.counts[RELEASES] += 1
    o.counts[USED] += 1
    if o.places[s] < (1 << levels) - 1:
        return bool(o.counts[USED] == len(o.normals))
    o.places[s] = 0
    o.before[s] += levels
    for z in range(1, levels + 1):
        for c in range(o.scales.size):
            o.upper[s, z, c] = o.upper[s, 0, c]
    return True


@part
def _reward(mean: float, chance: float, deviation: float) -> float:
    """A sign if the deviation is negative, of a uniform chance; else normal with it, of a normal one."""
    if deviation < 0:
        return 1.0 if 2 * chance - 1 < mean else -1.0
    return mean + deviation * chance


@part
def _add(o: Optimist, s: int, actions: Floats, k: int, reward: float) -> None:
    """A reward of action k arrives."""
    gram, vector = o.gram[s], o.vector[s]
    for i in range(len(actions)):
        a = actions[i, k]
        vector[i] += a * reward
        for j in range(len(actions)):
            gram[i, j] += a * actions[j, k]
    o.counts[WAITING] += 1


@compiled
def play(o: Optimist, field: Field, chances: Floats, deviation: float, start: int, stop: int) -> int:
    """Play from step `start` of the block to `stop`, or to where the policy has to be looked after: where that is.

    That is so when a tree is complete, which changes the numbers of Optimism, or the normals are used up. chances: of
    the rewards; those are signs where the deviation is negative, else normal with it.
    """
    separate = len(o.vector) > 1
    for t in range(start, stop):
        k = _choose(field.actions[t], o)
        s, mean = k if separate else 0, field.means[t, k]
        o.regret[0] += field.ideal[t] - mean
        _add(o, s, field.actions[t], k, _reward(mean, chances[t], deviation))
        if o.counts[WAITING] >= o.counts[WANTED]:
            known = _take_node(o, s)
            log_det, least = invert(o.room, known[FLOOR])
            _settle(o, s, known, log_det, least)
            if _close(o, s):
                return t + 1
    return stop
