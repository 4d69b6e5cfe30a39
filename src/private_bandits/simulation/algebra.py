"""Small dense matrices in compiled code: numpy's own routines take many times longer to be called than to work."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from private_bandits.simulation.compiled import part

Floats = NDArray[np.float64]

HALVINGS = 200
"""More than double precision can tell apart."""


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
def _all_above(a: Floats, off: Floats, x: float) -> bool:
    """Whether every eigenvalue of the tridiagonal matrix exceeds x: Sturm's sequence stays positive."""
    pivot = a[0, 0] - x
    for i in range(1, len(a)):
        if pivot <= 0.0:
            return False
        pivot = a[i, i] - x - off[i - 1] * off[i - 1] / pivot
    return pivot > 0.0  # type: ignore[no-any-return]


@part
def least_eigenvalue(matrix: Floats, a: Floats) -> float:
    """The least eigenvalue of a symmetric positive definite matrix; `a` is room to work in."""
    copy(matrix, a)
    room = np.empty((3, len(a)))
    _reduce(a, room[0], room[1], room[2])
    low, high = 0.0, a[0, 0]
    for i in range(1, len(a)):
        high = min(high, a[i, i])
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        if _all_above(a, room[0], middle):
            low = middle
        else:
            high = middle
    return (low + high) / 2  # type: ignore[no-any-return]
