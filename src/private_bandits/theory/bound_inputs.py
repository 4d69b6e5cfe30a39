"""Numbers and budgets that the functions of this package take, checked."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

from numpy.typing import ArrayLike

from private_bandits.budget import Budget, NoPrivacy, zCDP
from private_bandits.checks import large_number, whole_number
from private_bandits.errors import InvalidInput


def times(rho: float, amount: float) -> float:
    """rho times an amount, where nothing times anything is nothing."""
    return rho * amount if amount else 0.0


def checked_rho(rho: float) -> float:
    """A zCDP parameter; 0 and infinity are fine."""
    if isinstance(rho, bool) or not isinstance(rho, Real) or not rho >= 0:
        raise InvalidInput(f"rho must be a number, at least 0, got {rho!r}")
    return float(rho)


def checked_count(name: str, value: int) -> int:
    """A whole number, at least 0."""
    return whole_number(name, value, least=0)


def checked_chance(name: str, value: float) -> float:
    """A probability."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 <= value <= 1:
        raise InvalidInput(f"{name} must be a probability, from 0 to 1, got {value!r}")
    return float(value)


def checked_size(name: str, value: float, least: int) -> int:
    """A whole number of some size, which may be written as 1e7."""
    return large_number(name, value, least)


def checked_gaps(gaps: ArrayLike) -> tuple[float, ...]:
    """How much worse than the best arm each arm is."""
    given: Any = gaps
    found = tuple(float(gap) for gap in given)
    if not found or not all(0 <= gap < math.inf for gap in found) or 0 not in found:
        raise InvalidInput(
            f"gaps must hold one number of at least 0 for each arm, and 0 for the best one, got {list(found)}"
        )
    return found


def as_budget(budget: float | Budget) -> Budget:
    """A budget; a number is the rho of zCDP, infinity no privacy.

    >>> as_budget(0.1), as_budget(math.inf)
    (zCDP(rho=0.1), NoPrivacy())
    """
    if isinstance(budget, Budget):
        return budget
    return NoPrivacy() if budget == math.inf else zCDP(budget)


def gaussian(budget: float | Budget, instead: str) -> Budget:
    """A budget that Gaussian noise keeps. instead: what to use for the others."""
    found = as_budget(budget)
    if found.noise == "laplace":
        raise InvalidInput(f"{found} is kept by Laplace noise, which this bound is not for: {instead}")
    return found
