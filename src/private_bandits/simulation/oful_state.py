"""A policy between two releases, when it is frozen: how it scores actions, and how the next one follows from it."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from private_bandits.arrays import Floats, Floats32
from private_bandits.simulation.algebra import cholesky, copy, invert_lower, least_eigenvalue, multiply_transposed
from private_bandits.simulation.compiled import compiled, part

# Places among the numbers of a policy.
WIDTH, SLACK, LIMIT, GROWTH, REGRET = range(5)
SINGULAR = 1e-13
"""Pivots of an episode's Gram matrix that are smaller, beside its largest entry, are rounding errors."""


class Frozen(NamedTuple):
    """A policy between two releases, or a stack of them. Only `gram`, `opened` and the regret in `numbers` change."""

    numbers: Floats
    """The width; the difference of scores that single precision does not tell apart; log det V at which the
    episode is over; log(1 + C); the regret so far."""
    theta: Floats
    white: Floats
    """The inverse of the lower Cholesky factor of V at the last release."""
    inverse: Floats
    """The inverse of V at the last release."""
    theta32: Floats32
    scaled: Floats32
    """The width times `white`."""
    released: Floats
    """V at the last release."""
    gram: Floats
    """V."""
    opened: Floats
    """The sum of a r since the last release, of rewards that are drawn at each step."""
    room: Floats
    """Two matrices to work in."""


def stack(count: int, d: int) -> Frozen:
    """Room for several policies: every array has one more axis, in front."""
    return Frozen(
        numbers=np.zeros((count, 5)),
        theta=np.zeros((count, d)),
        white=np.zeros((count, d, d)),
        inverse=np.zeros((count, d, d)),
        theta32=np.zeros((count, d), np.float32),
        scaled=np.zeros((count, d, d), np.float32),
        released=np.zeros((count, d, d)),
        gram=np.zeros((count, d, d)),
        opened=np.zeros((count, d)),
        room=np.zeros((count, 2, d, d)),
    )


@part
def one(stacked: Frozen, p: int) -> Frozen:
    """Policy number p of a stack."""
    return Frozen(
        stacked.numbers[p],
        stacked.theta[p],
        stacked.white[p],
        stacked.inverse[p],
        stacked.theta32[p],
        stacked.scaled[p],
        stacked.released[p],
        stacked.gram[p],
        stacked.opened[p],
        stacked.room[p],
    )


@part
def _add_gaussian(policy: Frozen, theta: Floats, normals: Floats) -> None:
    """Add the open episode's sum of a r if rewards are <theta, a> and Gaussian noise.

    That is one draw: N(G theta, s^2 G) with G the episode's sum of a a'. normals: s N(0, I).
    """
    d, gram, lower = len(theta), policy.room[0], policy.room[1]
    for i in range(d):
        for j in range(d):
            gram[i, j] = policy.gram[i, j] - policy.released[i, j]
    cholesky(gram, lower, SINGULAR)
    for i in range(d):
        for j in range(d):
            policy.opened[i] += gram[i, j] * theta[j] + lower[i, j] * normals[j]


@compiled
def release(stacked: Frozen, p: int, total: Floats, theta: Floats, normals: Floats, noise: Floats) -> None:
    """Add policy p's open sum of a r to the total, with noise, and empty it.

    normals: what Gaussian rewards of mean <theta, a> add, if there are as many as coordinates. Other rewards have
    been added up already.
    """
    policy = one(stacked, p)
    if normals.size > 0:
        _add_gaussian(policy, theta, normals)
    for i in range(total.size):
        total[i] += policy.opened[i] + noise[i]
        policy.opened[i] = 0.0


@part
def _score_with(policy: Frozen, width: float) -> None:
    """Get ready to score actions in single precision, with the policy's theta, the norm of `white`, and this width."""
    d, squares, lengths = len(policy.theta), 0.0, 0.0
    for j in range(d):
        for i in range(j + 1):
            policy.scaled[j, i] = width * policy.white[j, i]
            squares += (width * policy.white[j, i]) ** 2
        lengths += policy.theta[j] * policy.theta[j]
        policy.theta32[j] = policy.theta[j]
    policy.numbers[WIDTH] = width
    # Several times what rounding does to the score of an action of common length.
    rounding = 2.0**-22 * (4 + math.sqrt(d)) * 2 * math.sqrt(1 + d / 10)
    policy.numbers[SLACK] = rounding * (math.sqrt(lengths) + math.sqrt(squares))


@compiled
def freeze(stacked: Frozen, p: int, total: Floats, exploration: float, beta: float, ridge: float, noise: float) -> None:
    """Policy p after a release: V^-1 times the released sums, and the width that belongs to it.

    exploration: what the width is multiplied by; beta: 2 log(1/delta) - log(lambda^d), delta being `reward_delta`;
    ridge: sqrt(lambda) S; noise: b D^2 times `Factor.prefix_noise` after l releases (l itself, as published) times
    `noise_length`.
    """
    policy = one(stacked, p)
    d, lower, white, theta = len(total), policy.room[1], policy.white, policy.theta
    copy(policy.gram, policy.released)
    log_det = cholesky(policy.released, lower, 0.0)
    invert_lower(lower, white)
    multiply_transposed(white, policy.inverse)
    width = math.sqrt(beta + log_det) + ridge
    if noise > 0.0:
        width += math.sqrt(noise / least_eigenvalue(policy.released, policy.room[0]))
    width *= exploration
    for i in range(d):
        theta[i] = 0.0
    for j in range(d):
        dot = 0.0
        for i in range(j + 1):
            dot += white[j, i] * total[i]
        for i in range(j + 1):
            theta[i] += white[j, i] * dot
    policy.numbers[LIMIT] = log_det + policy.numbers[GROWTH]
    _score_with(policy, width)


@compiled
def freeze_as(stacked: Frozen, p: int, theta: Floats, matrix: Floats, width: float) -> None:
    """Policy p with this theta and this V, which need not be the sum of a a' that is played, and this width."""
    policy = one(stacked, p)
    cholesky(matrix, policy.room[1], 0.0)
    invert_lower(policy.room[1], policy.white)
    for i in range(len(theta)):
        policy.theta[i] = theta[i]
    _score_with(policy, width)
