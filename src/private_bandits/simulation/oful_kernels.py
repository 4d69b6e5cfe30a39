"""The compiled part of the contextual engine: a policy that is frozen plays many steps at once.

Steps are along the inner axis. Scores are in single precision; where two actions are too close for that to tell,
double precision decides. Everything that is summed up is summed in double precision.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from private_bandits.arrays import Floats, Floats32, Integers
from private_bandits.simulation.algebra import cholesky, copy
from private_bandits.simulation.compiled import compiled, part
from private_bandits.simulation.normals import Words, fill_normals
from private_bandits.simulation.oful_state import GROWTH, LIMIT, REGRET, SLACK, WIDTH, Frozen, one

TILE = 512
"""Steps that are scored together, at most: enough to make up for what is done once for all of them."""
LOWEST = np.float32(-3e38)

# Rows of the scratch space in single precision.
BEST, SECOND, INDEX, SCORE, SQUARES, ROW, ZERO = (i * TILE for i in range(7))
SCRATCH = ZERO + 1


class ContextBlock(NamedTuple):
    """Contexts and what follows from them for every policy."""

    contexts: Floats32
    """[tile, action, coordinate, step]."""
    theta: Floats
    """The truth."""
    ideal: Floats
    """[tile, step]: the largest mean."""
    scratch: Floats32
    chosen: Floats
    """[coordinate, step] of the stretch at hand, as the following are."""
    means: Floats
    places: Integers
    """Where the chosen actions begin among the contexts of the tile."""


@compiled
def draw(lanes: Words, normals: Floats32, block: ContextBlock, longest: float) -> None:
    """The next block of contexts, in the memory of `normals`; longer actions are scaled to `longest` unless it is 0."""
    tiles, actions, d, n = block.contexts.shape
    fill_normals(lanes, normals, 1 / math.sqrt(d), math.sqrt(0.1))
    limit = np.float32(longest)
    for tile in range(tiles):
        for t in range(n):
            block.ideal[tile, t] = -math.inf
        for k in range(actions):
            if limit > 0:
                _shorten(block.contexts[tile, k], limit, block.scratch)
            _raise_ideal(block.contexts[tile, k], block.theta, block.means, block.ideal[tile])


@part
def _shorten(action: Floats32, longest: np.float32, scratch: Floats32) -> None:
    d, n = action.shape
    for t in range(n):
        scratch[SQUARES + t] = np.float32(0)
    for i in range(d):
        row = action[i]
        for t in range(n):
            scratch[SQUARES + t] += row[t] * row[t]
    for t in range(n):
        length = np.sqrt(max(scratch[SQUARES + t], np.float32(0.25)))
        scratch[SQUARES + t] = min(np.float32(1), longest / length)
    for i in range(d):
        row = action[i]
        for t in range(n):
            row[t] *= scratch[SQUARES + t]


@part
def _raise_ideal(action: Floats32, theta: Floats, means: Floats, ideal: Floats) -> None:
    d, n = action.shape
    for t in range(n):
        means[t] = 0.0
    for i in range(d):
        weight, row = theta[i], action[i]
        for t in range(n):
            means[t] += weight * row[t]
    for t in range(n):
        ideal[t] = max(ideal[t], means[t])


@part
def _score_three(action: Floats32, start: int, n: int, theta: Floats32, scaled: Floats32, scratch: Floats32) -> None:
    """<theta, a> + |scaled a| in R^3, where nothing in between has to be stored."""
    x, y, z = action[0, start : start + n], action[1, start : start + n], action[2, start : start + n]
    h0, h1, h2 = theta[0], theta[1], theta[2]
    w00, w10, w11 = scaled[0, 0], scaled[1, 0], scaled[1, 1]
    w20, w21, w22 = scaled[2, 0], scaled[2, 1], scaled[2, 2]
    for t in range(n):
        a, b, c = x[t], y[t], z[t]
        p = w00 * a
        q = w10 * a + w11 * b
        r = w20 * a + w21 * b + w22 * c
        scratch[SCORE + t] = h0 * a + h1 * b + h2 * c + np.sqrt(p * p + q * q + r * r)


@part
def _weigh(action: Floats32, start: int, n: int, weights: Floats32, count: int, scratch: Floats32) -> None:
    """The weighted sum of the first `count` coordinates: four at a time, as memory is what limits it."""
    for t in range(n):
        scratch[ROW + t] = np.float32(0)
    full = count - count % 4
    stop = start + n
    for i in range(0, full, 4):
        a, b = action[i, start:stop], action[i + 1, start:stop]
        c, d = action[i + 2, start:stop], action[i + 3, start:stop]
        p, q, r, s = weights[i], weights[i + 1], weights[i + 2], weights[i + 3]
        for t in range(n):
            scratch[ROW + t] += p * a[t] + q * b[t] + r * c[t] + s * d[t]
    for i in range(full, count):
        a, p = action[i, start:stop], weights[i]
        for t in range(n):
            scratch[ROW + t] += p * a[t]


@part
def _score(action: Floats32, start: int, n: int, theta: Floats32, scaled: Floats32, scratch: Floats32) -> None:
    """<theta, a> + |scaled a| in any dimension."""
    for t in range(n):
        scratch[SQUARES + t] = np.float32(0)
    for j in range(len(theta)):
        _weigh(action, start, n, scaled[j], j + 1, scratch)
        for t in range(n):
            scratch[SQUARES + t] += scratch[ROW + t] * scratch[ROW + t]
    _weigh(action, start, n, theta, len(theta), scratch)
    for t in range(n):
        scratch[SCORE + t] = scratch[ROW + t] + np.sqrt(scratch[SQUARES + t])


@part
def _keep_best(k: int, n: int, scratch: Floats32) -> None:
    """The two best scores of each step so far, and the action of the better one; the earlier one wins a tie."""
    number = np.float32(k)
    # Where a value stays as it is, LLVM would store under a mask, which is many times slower on some processors. It
    # does not know that this is zero.
    zero = scratch[ZERO]
    for t in range(n):
        score, best = scratch[SCORE + t], scratch[BEST + t]
        scratch[SECOND + t] = max(scratch[SECOND + t], min(score, best)) + zero
        scratch[INDEX + t] = (number if score > best else scratch[INDEX + t]) + zero
        scratch[BEST + t] = max(score, best)


@part
def _exactly(contexts: Floats32, t: int, theta: Floats, white: Floats, width: float) -> int:
    """The action of a step in double precision."""
    actions, d, _ = contexts.shape
    best, chosen = -math.inf, 0
    for k in range(actions):
        mean, square = 0.0, 0.0
        for j in range(d):
            total = 0.0
            for i in range(j + 1):
                total += white[j, i] * contexts[k, i, t]
            square += total * total
            mean += theta[j] * contexts[k, j, t]
        score = mean + width * math.sqrt(square)
        if score > best:
            best, chosen = score, k
    return chosen


@part
def _settle(contexts: Floats32, start: int, n: int, policy: Frozen, scratch: Floats32) -> None:
    """Where two actions are too close for single precision, let double precision decide."""
    limit, close = np.float32(policy.numbers[SLACK]), 0
    for t in range(n):
        close += scratch[BEST + t] - scratch[SECOND + t] <= limit
    if close == 0:
        return
    for t in range(n):
        if scratch[BEST + t] - scratch[SECOND + t] <= limit:
            chosen = _exactly(contexts, start + t, policy.theta, policy.white, policy.numbers[WIDTH])
            scratch[INDEX + t] = np.float32(chosen)


@part
def _choose(contexts: Floats32, start: int, n: int, policy: Frozen, scratch: Floats32) -> None:
    """The actions of n steps."""
    for t in range(n):
        scratch[BEST + t] = LOWEST
        scratch[SECOND + t] = LOWEST
        scratch[INDEX + t] = np.float32(0)
    for k in range(contexts.shape[0]):
        if contexts.shape[1] == 3:
            _score_three(contexts[k], start, n, policy.theta32, policy.scaled, scratch)
        else:
            _score(contexts[k], start, n, policy.theta32, policy.scaled, scratch)
        _keep_best(k, n, scratch)
    _settle(contexts, start, n, policy, scratch)


@part
def _gather(contexts: Floats32, start: int, n: int, block: ContextBlock) -> None:
    """The coordinates of the chosen actions, and their true means."""
    _, d, size = contexts.shape
    flat, places, scratch, means = contexts.reshape(-1), block.places, block.scratch, block.means
    for t in range(n):
        places[t] = np.int64(np.int32(scratch[INDEX + t])) * (d * size) + start + t
        means[t] = 0.0
    for i in range(d):
        coordinates, row, weight = flat[i * size :], block.chosen[i], block.theta[i]
        for t in range(n):
            row[t] = coordinates[places[t]]
        for t in range(n):
            means[t] += weight * row[t]


@part
def _add_gram(chosen: Floats, start: int, stop: int, gram: Floats) -> None:
    """Add the sum of a a' over a stretch of steps."""
    for i in range(len(gram)):
        left = chosen[i, start:stop]
        for j in range(i + 1):
            right = chosen[j, start:stop]
            total = 0.0
            for t in range(left.size):
                total += left[t] * right[t]
            gram[i, j] += total
            if i != j:
                gram[j, i] += total


@part
def _over(policy: Frozen, gram: Floats) -> bool:
    """Whether the determinant has passed the end of the episode.

    The trace bounds it, as the geometric mean is at most the arithmetic one, so that most stretches need no
    factorisation.
    """
    d, trace = len(gram), 0.0
    for i in range(d):
        for j in range(d):
            trace += (gram[i, j] - policy.released[i, j]) * policy.inverse[i, j]
    if d * math.log1p(max(trace, 0.0) / d) < policy.numbers[GROWTH] * (1 - 1e-9):
        return False
    return bool(cholesky(gram, policy.room[1], 0.0) > policy.numbers[LIMIT])


@part
def _take_in(policy: Frozen, n: int, block: ContextBlock) -> tuple[int, bool]:
    """Add the chosen actions to V up to the end of the episode: how many steps that is, and whether it has come."""
    gram, trial = policy.gram, policy.room[0]
    copy(gram, trial)
    _add_gram(block.chosen, 0, n, trial)
    if not _over(policy, trial):
        copy(trial, gram)
        return n, False
    before, after = 0, n  # so many steps are too few, and enough
    while after - before > 1:
        middle = (before + after) // 2
        copy(gram, trial)
        _add_gram(block.chosen, before, middle, trial)
        if _over(policy, trial):
            after = middle
        else:
            before = middle
            copy(trial, gram)
    _add_gram(block.chosen, before, after, gram)
    return after, True


@part
def _add_signs(policy: Frozen, uniforms: Floats32, n: int, block: ContextBlock) -> None:
    """Rewards of +1 and -1, times their actions, added up; the means become the rewards."""
    for t in range(n):
        block.means[t] = 1.0 if uniforms[t] < block.means[t] else -1.0
    for i in range(len(policy.opened)):
        row, total = block.chosen[i], 0.0
        for t in range(n):
            total += block.means[t] * row[t]
        policy.opened[i] += total


@part
def _advance(
    block: ContextBlock, policy: Frozen, uniforms: Floats32, start: int, stop: int, time: int
) -> tuple[int, bool]:
    """Play from step `start` of the block to `stop`, or the end of the episode: where that is, and whether it came."""
    size = block.contexts.shape[3]
    while start < stop:
        tile, first = start // size, start % size
        # Early episodes are short: what is scored beyond the end of one has to be scored again.
        n = min(stop - start, size - first, max(8, (time + start) // 16))
        contexts = block.contexts[tile]
        _choose(contexts, first, n, policy, block.scratch)
        _gather(contexts, first, n, block)
        n, over = _take_in(policy, n, block)
        regret, ideal = 0.0, block.ideal[tile, first : first + n]
        for t in range(n):
            regret += ideal[t] - block.means[t]
        policy.numbers[REGRET] += regret
        if uniforms.size > 0:
            _add_signs(policy, uniforms[start : start + n], n, block)
        start += n
        if over:
            return start, True
    return start, False


@compiled
def advance(block: ContextBlock, stacked: Frozen, uniforms: Floats32, starts: Integers, stop: int, time: int) -> int:
    """Play every policy p from step starts[p] of the block to `stop`, or the first one whose episode ends to that end.

    Returns the number of that one, or of policies where there is none. `starts` is moved to where they have come.
    uniforms: [policy, step] if rewards are signs, else of no length. time: the steps before the block.
    """
    size = block.contexts.shape[3]
    reached = starts.min() // size * size
    while reached < stop:
        # Tile by tile: its contexts stay near the processor while all policies pass.
        reached = min(reached + size, stop)
        for p in range(starts.size):
            if starts[p] < reached:
                starts[p], over = _advance(block, one(stacked, p), uniforms[p], starts[p], reached, time)
                if over:
                    return p
    return starts.size
