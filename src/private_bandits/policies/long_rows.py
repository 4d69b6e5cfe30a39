"""Rows of numbers that floats cannot hold, such as 10**400: each is divided by a number of its own."""

from __future__ import annotations

import math
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

STILL_LONG = 1e150
"""The largest number of a divided row: beyond every context_norm, so that the row is shortened as any long one."""

_WIDE = Context(prec=40, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])


def long_rows_divided(actions: ArrayLike) -> NDArray[np.float64]:
    """The table with floats for numbers. Rows with finite numbers beyond floats keep their direction, not their length.

    >>> long_rows_divided([[10**400, 10**400], [0.5, 2]]).tolist()
    [[1e+150, 1e+150], [0.5, 2.0]]
    """
    table = np.asarray(actions, dtype=object)
    if table.ndim != 2:
        raise ValueError("not a table")
    rows = [_divided(numbers.tolist()) for numbers in table]
    return np.array(rows, float).reshape(table.shape)


def _divided(numbers: list[Any]) -> list[float]:
    floats = [_nearest(number) for number in numbers]
    if not any(map(math.isinf, floats)):
        return floats
    exact = [_exact(number, nearest) for number, nearest in zip(numbers, floats, strict=True)]
    if not all(number.is_finite() for number in exact):
        return floats  # one is infinite or NaN
    largest = max(number.copy_abs() for number in exact)  # exact, whatever the exponent
    return [STILL_LONG * float(_WIDE.divide(number, largest)) for number in exact]


def _nearest(number: Any) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf


def _exact(number: Any, nearest: float) -> Decimal:
    """The number itself where it is finite and beyond floats; infinite where it is infinite."""
    if not math.isinf(nearest):
        return Decimal(nearest)
    if isinstance(number, (Decimal, str)):
        return Decimal(number)
    try:
        numerator, denominator = number.as_integer_ratio()
    except (AttributeError, OverflowError):
        return Decimal(nearest)
    return _WIDE.divide(Decimal(numerator), Decimal(denominator))
