"""Checks of numbers that callers hand in. A refusal names the argument, its value and what would be right."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any

from private_bandits.errors import InvalidInput

SMALLEST = 1e-200
"""Far from the ends of what a float can hold, so that no calibration over- or underflows."""
LARGEST = 10**18
"""Steps and counts have to fit into 64 bits."""


def check_positive(name: str, value: float) -> float:
    """Return a number that has to be positive and finite, and far from the ends of what a float can hold."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < value < math.inf:
        raise InvalidInput(f"{name} must be a positive, finite number, got {value!r}")
    if not SMALLEST <= (value if isinstance(value, int) else float(value)) <= 1 / SMALLEST:
        raise InvalidInput(f"{name} must lie between {SMALLEST:g} and {1 / SMALLEST:g}, got {value!r}")
    return float(value)


def check_probability(name: str, value: float) -> float:
    """Return a number that has to lie strictly between 0 and 1."""
    if isinstance(value, bool) or not isinstance(value, Real) or not (0 < value < 1 and 0 < float(value) < 1):
        raise InvalidInput(f"{name} must lie strictly between 0 and 1, got {value!r}")
    return float(value)


def whole_number(name: str, value: Any, least: int = 1, most: float = math.inf) -> int:
    """Return a whole number from least to most as an int: numpy has integers of its own.

    >>> whole_number("n_arms", 3)
    3
    """
    return _whole(name, value, Integral, least, most)


def large_number(name: str, value: Any, least: int = 1, most: float = LARGEST) -> int:
    """Return a whole number that may be written as a float.

    >>> large_number("horizon", 1e7)
    10000000
    """
    return _whole(name, value, Real, least, most)


def _whole(name: str, value: Any, kind: type, least: int, most: float) -> int:
    fits = isinstance(value, kind) and not isinstance(value, bool) and least <= value <= most  # type: ignore[operator]
    if not fits or value == math.inf or value != int(value):
        allowed = f"of at least {least}" if most == math.inf else f"from {least} to {most:g}"
        raise InvalidInput(f"{name} must be a whole number {allowed}, got {value!r}")
    return int(value)
