"""Writes a vector as a combination of known ones, at the least cost: what is known of these then says most of it."""

from __future__ import annotations

import numpy as np

from private_bandits.arrays import Floats
from private_bandits.design.optimal import RANK_TOLERANCE

ROUNDS = 40
"""Of least squares: the cost is then within a per cent of the least, as a rule."""
SMALLEST = 1e-9
"""A weight beside the largest, in the last rounds: with smaller ones the equations would lose their digits."""
MISSED = 1e-9
"""How far a combination may be from its vector, in units of that. Floats reach no more."""
BLOCK = 2_000_000
"""Numbers that are looked at together."""


def cheapest_combinations(known: Floats, costs: Floats, wanted: Floats) -> Floats:
    """Return c with c @ known = wanted, row by row, and a small sum of |c_k| costs_k; NaN outside of the span.

    The least sum is a linear program. It is found by least squares with the weights |c_k|/costs_k of the round before.
    Every round has a right combination: the cheapest of them is right, however far the rounds have come. A vector that
    is known itself costs no more than that.

    >>> known = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> cheapest_combinations(known, np.array([1.0, 1.0, 0.5]), np.array([[2.0, 2.0], [1.0, 0.0]])).round(6).tolist()
    [[0.0, 0.0, 2.0], [1.0, 0.0, 0.0]]
    """
    _, sizes, directions = np.linalg.svd(known, full_matrices=False)
    largest = sizes.max(initial=0.0)
    basis = directions[sizes > RANK_TOLERANCE * largest].T
    found = np.full((len(wanted), len(known)), np.nan)
    lengths = np.linalg.norm(wanted, axis=1)
    found[lengths == 0] = 0.0
    outside = np.linalg.norm(wanted - wanted @ basis @ basis.T, axis=1) > 4 * RANK_TOLERANCE * lengths
    inside = np.flatnonzero(~outside & (lengths > 0))
    if not basis.size or not inside.size:
        return found
    prices = np.maximum(costs, 1e-12 * costs.max()) if costs.any() else np.ones(len(known))
    block = max(1, BLOCK // known.size)
    for rows in (inside[i : i + block] for i in range(0, len(inside), block)):
        targets = wanted[rows] @ basis / lengths[rows, None]
        found[rows] = _cheapest(known @ basis / largest, prices, targets) * (lengths[rows, None] / largest)
    for row in inside.tolist():
        _take_itself(known, costs, wanted[row], found[row])
    return found


def _cheapest(known: Floats, prices: Floats, targets: Floats) -> Floats:
    """The combinations, of vectors that span the space, for targets of length one."""
    best, least = np.full((len(targets), len(known)), np.nan), np.full(len(targets), np.inf)
    weights = np.tile(1 / prices**2, (len(targets), 1))
    for number in range(ROUNDS):
        weights /= weights.max(axis=1, keepdims=True)
        weighted = weights[:, :, None] * known
        # pinv never fails; here it is the inverse, but for what rounding made of it.
        found = np.einsum("nki,nij,nj->nk", weighted, np.linalg.pinv(known.T @ weighted, hermitian=True), targets)
        spent = np.abs(found) @ prices
        better = (np.linalg.norm(found @ known - targets, axis=1) <= MISSED) & (spent < least)
        best[better], least[better] = found[better], spent[better]
        size = np.abs(found)
        floor = max(SMALLEST, 10.0 ** -(1 + number / 4))
        weights = (size + floor * size.max(axis=1, keepdims=True)) / prices
    return best


def _take_itself(known: Floats, costs: Floats, wanted: Floats, found: Floats) -> None:
    """Take the vector itself, where it is known and no combination costs less."""
    for k in np.flatnonzero((known == wanted).all(axis=1)).tolist():
        if not float(np.abs(found) @ costs) < costs[k]:  # also where no combination was found
            found[:] = 0.0
            found[k] = 1.0
