"""Small dense matrices in compiled code: numpy's own routines take many times longer to be called than to work."""

from __future__ import annotations

import math

import numpy as np

from private_bandits.arrays import Floats
from private_bandits.simulation.compiled import part

CLIMBS = 200
"""Steps to the least eigenvalue, at most. A single one takes about five; where many are equal, each halves the rest."""
SWEEPS = 100
"""Rounds of rotations, at most: ten are many."""
ROUNDING = 1e-12
"""An eigenvalue that is less than its floor by this share is a rounding error."""


@part
def copy(source: Floats, target: Floats) -> None:
    """Copy a matrix; an assignment would compile a message for shapes that differ."""
    for i in range(source.shape[0]):
        for j in range(source.shape[1]):
            target[i, j] = source[i, j]


@part
def cholesky(matrix: Floats, lower: Floats, negligible: float) -> float:
    """Write L with L L' = matrix and return the logarithm of the determinant.

    A singular matrix has -inf: its pivots are rounding errors, at most a share `negligible` of the largest entry.
    """
    d, largest, log_det = len(matrix), 0.0, 0.0
    for i in range(d):
        largest = max(largest, matrix[i, i])
    for j in range(d):
        right, root = lower[j, :j], 0.0
        for i in range(j, d):
            left, entry = lower[i, :j], matrix[i, j]
            for k in range(j):
                entry -= left[k] * right[k]
            if i == j:
                positive = entry > negligible * largest
                root = math.sqrt(entry) if positive else 0.0
                log_det += math.log(entry) if positive else -math.inf
                lower[j, j] = root
            else:
                lower[j, i] = 0.0
                lower[i, j] = entry / root if root > 0.0 else 0.0
    return log_det


@part
def invert_lower(lower: Floats, inverse: Floats) -> None:
    """Write the inverse of a lower triangular matrix."""
    for i in range(len(lower)):
        row = inverse[i]
        for j in range(row.size):
            row[j] = 0.0
        for k in range(i):
            weight, above = lower[i, k] / lower[i, i], inverse[k]
            for j in range(k + 1):
                row[j] -= weight * above[j]
        row[i] = 1 / lower[i, i]


@part
def multiply_transposed(lower: Floats, product: Floats) -> None:
    """Write L' L for a lower triangular L."""
    for k in range(len(lower)):
        row = lower[k]
        for i in range(k + 1):
            weight, target = row[i], product[i]
            target[k] = 0.0
            product[k, i] = 0.0
            for j in range(k + 1):
                target[j] += weight * row[j]


@part
def _reduce(a: Floats, off: Floats, v: Floats, p: Floats) -> None:
    """Bring a symmetric matrix to tridiagonal form by reflections: its diagonal stays in `a`, the rest is `off`."""
    d = len(a)
    for k in range(d - 2):
        n, square = d - k - 1, 0.0
        for i in range(n):
            v[i] = a[k + 1 + i, k]
            square += v[i] * v[i]
        off[k] = -math.copysign(math.sqrt(square), v[0])
        if square == 0.0:
            continue
        v[0] -= off[k]
        beta, dot = 1 / (square + abs(off[k] * (v[0] + off[k]))), 0.0
        for i in range(n):
            row, total = a[k + 1 + i, k + 1 :], 0.0
            for j in range(n):
                total += row[j] * v[j]
            p[i] = beta * total
            dot += p[i] * v[i]
        for i in range(n):
            p[i] -= beta / 2 * dot * v[i]
        for i in range(n):
            row, left, right = a[k + 1 + i, k + 1 :], v[i], p[i]
            for j in range(n):
                row[j] -= left * p[j] + right * v[j]
    if d > 1:
        off[d - 2] = a[d - 1, d - 2]


@part
def _climb(a: Floats, off: Floats, x: float) -> float:
    """From x below every eigenvalue of the tridiagonal matrix nearer to the least one, by Laguerre's method.

    With S = sum of 1/(e - x) and Q = sum of 1/(e - x)^2 over the eigenvalues e, x + d/(S + sqrt((d - 1)(d Q - S^2)))
    lies below them too. Both are derivatives of log det, the sum of the logarithms of the pivots of Sturm's sequence.
    At the eigenvalue, where a pivot is a rounding error, x stays.
    """
    d = len(a)
    pivot, slope, bend = a[0, 0] - x, 0.0, 0.0  # of a pivot: derivatives, divided by it
    total, squares = 0.0, 0.0
    for i in range(d):
        joined = 0.0
        if i > 0:
            joined = off[i - 1] * off[i - 1] / pivot
            pivot = a[i, i] - x - joined
        if pivot <= 0.0:
            return x
        bend = joined * (bend - 2 * slope * slope) / pivot
        slope = (joined * slope - 1) / pivot
        total -= slope
        squares += slope * slope - bend
    return x + d / (total + math.sqrt(max(0.0, (d - 1) * (d * squares - total * total))))


@part
def least_eigenvalue(matrix: Floats, a: Floats) -> float:
    """The least eigenvalue of a symmetric positive definite matrix; `a` is room to work in."""
    copy(matrix, a)
    d, room = len(a), np.zeros((3, len(a)))
    _reduce(a, room[0], room[1], room[2])
    unit = a[0, 0]
    for i in range(1, d):
        unit = min(unit, a[i, i])
    for i in range(d):  # so that squares neither overflow nor vanish
        a[i, i] /= unit
        room[0, i] /= unit
    x = 0.0
    for _ in range(CLIMBS):
        higher = _climb(a, room[0], x)
        if not higher > x * (1 + 1e-15):
            break
        x = higher
    return x * unit  # type: ignore[no-any-return]


@part
def _rotate(a: Floats, vectors: Floats, p: int, q: int) -> None:
    """Turn coordinates p and q so that a[p, q] becomes zero."""
    ratio = (a[q, q] - a[p, p]) / (2 * a[p, q])
    tangent = math.copysign(1.0, ratio) / (abs(ratio) + math.sqrt(ratio * ratio + 1))
    cosine = 1 / math.sqrt(tangent * tangent + 1)
    sine = tangent * cosine
    for k in range(len(a)):
        left, right = a[k, p], a[k, q]
        a[k, p], a[k, q] = cosine * left - sine * right, sine * left + cosine * right
        left, right = vectors[k, p], vectors[k, q]
        vectors[k, p], vectors[k, q] = cosine * left - sine * right, sine * left + cosine * right
    for k in range(len(a)):
        left, right = a[p, k], a[q, k]
        a[p, k], a[q, k] = cosine * left - sine * right, sine * left + cosine * right


@part
def diagonalise(a: Floats, vectors: Floats) -> None:
    """Leave the eigenvalues of a symmetric matrix on its diagonal, and write its eigenvectors as columns (Jacobi)."""
    d, largest = len(a), 0.0
    for i in range(d):
        for j in range(d):
            vectors[i, j] = 1.0 if i == j else 0.0
            largest = max(largest, abs(a[i, j]))
    for _ in range(SWEEPS):
        turned = False
        for p in range(d):
            for q in range(p + 1, d):
                if abs(a[p, q]) > 1e-18 * largest:
                    _rotate(a, vectors, p, q)
                    turned = True
        if not turned:
            return


@part
def _invert_floored(room: Floats, floor: float) -> tuple[float, float]:
    """As `invert`, by the eigenvalues. Rare: the noise of V has exceeded its bound."""
    d, a, vectors, inverse = room.shape[1], room[1], room[2], room[3]
    copy(room[0], a)
    diagonalise(a, vectors)
    log_det, least = 0.0, math.inf
    for i in range(d):
        a[i, i] = max(a[i, i], floor)
        log_det += math.log(a[i, i])
        least = min(least, a[i, i])
    for i in range(d):
        for j in range(d):
            inverse[i, j] = 0.0
            for k in range(d):
                inverse[i, j] += vectors[i, k] * vectors[j, k] / a[k, k]
    return log_det, least


@part
def invert(room: Floats, floor: float) -> tuple[float, float]:
    """Write the inverse of V, which is room[0], to room[3]; returns log det V and the least eigenvalue.

    Eigenvalues of V below the floor, which is positive, count as the floor.
    """
    v, lower, white = room[0], room[1], room[2]
    log_det = cholesky(v, lower, 0.0)
    if log_det > -math.inf:
        least = least_eigenvalue(v, white)
        if least >= floor * (1 - ROUNDING):
            invert_lower(lower, white)
            multiply_transposed(white, room[3])
            return log_det, max(least, floor)
    return _invert_floored(room, floor)
