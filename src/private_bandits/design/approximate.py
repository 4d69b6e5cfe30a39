"""Designs as good as regret needs, for many small sets of actions at once.

A design is only as useful as what is learned by it, and a largest leverage a few percent above the best does not show
in the regret. Then a simple method does, in arrays [set, action, coordinate]: weights are multiplied by leverages
(`multiplied`) until these are nearly equal, and the same V is made of fewer actions (`fewer`). A set has the same
design alone and among others. What this cannot do is left to `optimal_design`: actions that nearly depend on each
other, and large sets.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from private_bandits.arrays import Floats, Integers, Truths
from private_bandits.design.optimal import Design, certified, checked, optimal_design

FEW = 128
"""Actions of a set: beyond, `optimal_design` is faster."""
WELL, ROUNDS = 1e-3, 50
"""Singular values may differ by that factor; weights are multiplied no more often."""
EXACT = 1e-6
"""How far V may change by rounding, relative to it."""
TIE = 1e-9
"""What differs by less is equal, and the first one is taken: a set then has one design on all machines."""


def rough_design(actions: ArrayLike, tol: float) -> Design:
    """As `optimal_design`, for a tol of 0.1 or so.

    >>> design = rough_design([[1.0, 0.0], [0.0, 1.0], [0.1, 0.1]], tol=0.1)
    >>> design.weights.round(9).tolist(), round(design.leverage, 9)
    ([0.5, 0.5, 0.0], 2.0)
    """
    rows = checked(actions)
    if len(rows) > FEW:
        return optimal_design(actions, tol)
    basis = plain_basis(rows)
    weights = rough_weights(rows @ basis, np.full((1, len(rows)), True), tol)[0]
    return certified(rows @ basis, weights, basis) if weights.any() else optimal_design(actions, tol)


def plain_basis(rows: Floats) -> Floats:
    """An orthonormal basis of the span of rows that are far from any dependence; the identity if they are enough."""
    count, dimension = rows.shape[-2:]
    return np.linalg.qr(rows.mT)[0] if count < dimension else np.eye(dimension)


def far_from_dependence(rows: Floats, among: Truths) -> Truths:
    """Whether the rows of each set span everything, and not just so. among: which rows are in the set, a line each."""
    squares = np.linalg.eigvalsh((rows.mT * among[:, None]) @ rows)
    return np.asarray(squares[:, 0] >= WELL**2 * squares[:, -1])


def rough_weights(rows: Floats, among: Truths, tol: float) -> Floats:
    """The weights of `rough_design` for several sets of the rows, a line each; zeros where it has none.

    among: which rows are in the set, a line each. rows: the same for all sets, or some for each.
    """
    rows = np.broadcast_to(rows, (len(among), *rows.shape[-2:]))
    weights = multiplied(rows, among, tol)
    rank = rows.shape[-1]
    many = np.count_nonzero(weights, axis=1) > rank * (rank + 1) // 2
    if many.any():
        weights[many] = fewer(rows[many], weights[many])
    return weights


def multiplied(rows: Floats, among: Truths, tol: float) -> Floats:
    """Weights whose largest leverage is at most (1 + tol) rank, a line a set; zeros where it takes too long.

    From equal weights w <- w * leverage / rank, by which log det V grows at every step (Silvey, Titterington and
    Torsney 1978). Then actions are left out whose w * leverage adds up to at most tol / 5: V falls by no more than that
    part of it.
    """
    rank = rows.shape[-1]
    found = np.zeros(among.shape)
    left = np.flatnonzero(far_from_dependence(rows, among))
    weights = among[left] / among[left].sum(axis=1, keepdims=True)
    for _ in range(ROUNDS):
        points = rows[left]
        inverse = np.linalg.inv((points.mT * weights[:, None]) @ points)
        shares = weights * ((points @ inverse) * points).sum(axis=2) / rank
        good = (shares <= (1 + 0.6 * tol) * weights).all(axis=1)
        order = np.argsort(shares[good], axis=1)
        light = np.cumsum(np.take_along_axis(shares[good], order, 1), axis=1) * rank <= 0.2 * tol
        kept = weights[good]
        np.put_along_axis(kept, order, np.where(light, 0, np.take_along_axis(kept, order, 1)), 1)
        found[left[good]] = kept / kept.sum(axis=1, keepdims=True)
        left, weights = left[~good], shares[~good] / shares[~good].sum(axis=1, keepdims=True)
        if not len(left):
            break
    return found


def fewer(rows: Floats, weights: Floats) -> Floats:
    """The same V, or a larger multiple of it, on at most m = rank (rank + 1) / 2 rows (Caratheodory).

    Zeros where the products of the rows depend on each other, as those of corners of a cube do.

    The products a_i a_j of m rows are a basis of those of all. A row outside of it is left by moving its weight to the
    basis, in the direction in which the total does not grow, so that V is larger when the total is one again. Where a
    row of the basis is empty first, the other one takes its place: a step of the simplex method.
    """
    rank = rows.shape[-1]
    moments = (rows.mT * weights[:, None]) @ rows
    white = rows @ np.linalg.inv(np.linalg.cholesky(moments)).mT
    # Only what has weight, in front.
    played = np.argsort(weights <= 0, axis=1, kind="stable")[:, : np.count_nonzero(weights, axis=1).max()]
    mass = np.take_along_axis(weights, played, 1)
    points = np.take_along_axis(white, played[:, :, None], 1) * (mass > 0)[:, :, None]
    found = np.zeros(weights.shape)
    with np.errstate(over="ignore", invalid="ignore"):  # looked at below
        np.put_along_axis(found, played, moved(points, mass), 1)
        same = np.abs((white.mT * found[:, None]) @ white - np.eye(rank)).max(axis=(1, 2)) <= EXACT
    total = found.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(found, total, out=np.zeros_like(found), where=same[:, None] & (total <= 1 + EXACT)))


def moved(points: Floats, mass: Floats) -> Floats:
    """The mass of all points on m of them, a line a set; see `fewer`."""
    inside, outside, parts = expressed(points)
    sets = np.arange(len(mass))
    within = np.take_along_axis(mass, inside, 1)
    for j, name in enumerate(outside.T):
        part, own = parts[:, :, j], mass[sets, name]
        falls = part.sum(axis=1) <= 1 + TIE  # whether the point's own mass does
        loss = np.where(falls[:, None], -part, part)
        losing = loss > TIE * np.abs(part).max(axis=1, keepdims=True)
        lengths = np.divide(within, loss, out=np.full(within.shape, np.inf), where=losing)
        length = lengths.min(axis=1)
        first = (lengths <= (1 + TIE) * length[:, None]).argmax(axis=1)
        swaps = ~falls | (own > (1 + TIE) * length)
        length = np.where(swaps, length, own)
        within = np.maximum(within - length[:, None] * loss, 0)
        within[sets, first] = np.where(swaps, own + np.where(falls, -length, length), within[sets, first])
        inside[sets, first] = np.where(swaps, name, inside[sets, first])
        exchange(parts[:, :, j + 1 :], np.where(swaps[:, None], part, 0.0), first, swaps)
    found = np.zeros_like(mass)
    np.put_along_axis(found, inside, within, 1)
    return found


def expressed(points: Floats) -> tuple[Integers, Integers, Floats]:
    """m points, the others, and the products of these as combinations of those of the m: [set, one of m, other].

    Zeros where fewer than m products are independent.
    """
    count, rank = points.shape[-2:]
    first, second = np.triu_indices(rank)
    inside, good = independent_products(points, len(first))
    chosen = np.zeros((len(points), count), bool)
    np.put_along_axis(chosen, inside, values=True, axis=1)
    outside = np.argsort(chosen, axis=1, kind="stable")[:, : count - len(first)]
    products = (points[:, :, first] * points[:, :, second]).mT
    within = np.take_along_axis(products, inside[:, None], 2)
    within[~good] = np.eye(len(first))
    parts = np.linalg.solve(within, np.take_along_axis(products, outside[:, None], 2))
    return inside, np.asarray(outside, np.int64), np.asarray(parts * good[:, None, None])


def independent_products(points: Floats, size: int) -> tuple[Integers, Truths]:
    """So many points whose products are independent, and where there are any.

    By Cholesky with the largest pivot on their inner products, (a'b)^2, which do not depend on coordinates.
    """
    sets, count = np.arange(len(points)), points.shape[1]
    inner = (points @ points.mT) ** 2
    left = inner[:, np.arange(count), np.arange(count)]
    least = TIE * left.max(axis=1)
    factor = np.zeros((len(points), count, size))
    inside = np.zeros((len(points), size), np.int64)
    good = np.full(len(points), True)
    for k in range(size):
        largest = left.max(axis=1)
        inside[:, k] = pivots = (left >= (1 - TIE) * largest[:, None]).argmax(axis=1)
        good &= largest > least
        column = inner[sets, :, pivots] - (factor[:, :, :k] @ factor[sets, pivots, :k, None])[:, :, 0]
        factor[:, :, k] = column / np.sqrt(np.where(good, largest, 1.0))[:, None]
        left = np.maximum(left - factor[:, :, k] ** 2, 0.0)
        left[sets, pivots] = 0.0
    return inside, good


def exchange(parts: Floats, column: Floats, line: Integers, swaps: Truths) -> None:
    """A point comes in, that has this column, for the one of this line; in place. Nothing where none swaps."""
    sets = np.arange(len(parts))
    scaled = parts[sets, line] / np.where(swaps, column[sets, line], 1.0)[:, None]
    column = column.copy()
    column[sets, line] -= swaps
    parts -= column[:, :, None] * scaled[:, None]
