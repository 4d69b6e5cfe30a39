"""Policies over a fixed, finite set of actions that are vectors: the mean reward of an action is linear in it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Self, cast
from zlib import crc32

import numpy as np
from numpy.typing import ArrayLike

from private_bandits.arrays import Floats
from private_bandits.budget import Budget
from private_bandits.checks import check_positive
from private_bandits.errors import InvalidInput
from private_bandits.policies.base import Policy, State, arm_names, no_budget

Rows = tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class LinearPolicy(Policy[State]):
    """A policy over K actions in R^d, a row each, of norm at most `action_norm`."""

    setting: ClassVar[str] = "linear"

    actions: ArrayLike | None = field(default=None, repr=False)
    budget: Budget = field(default_factory=no_budget)
    arms: Sequence[str] | None = field(default=None, repr=False)
    action_norm: float = 1.0
    described: str = field(default="", init=False, compare=False)
    """The actions in few words, for reprs: their number, dimension and a checksum."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "action_norm", check_positive("action_norm", self.action_norm))
        object.__setattr__(self, "actions", check_actions(self.actions, self.action_norm))
        named = arm_names(len(self.rows), self.arms, "action")
        object.__setattr__(self, "arms", named)
        shape = f"{len(self.rows)} actions in R^{len(self.rows[0])}"
        object.__setattr__(self, "described", f"{shape}, {crc32(self.vectors.tobytes()):08x}")
        self.check_budget()

    @classmethod
    def example(cls, budget: Budget) -> Self:
        """Three actions in a plane."""
        return cls(actions=((1.0, 0.0), (0.0, 1.0), (0.6, 0.8)), budget=budget)

    @property
    def rows(self) -> Rows:
        """The actions as they are kept: tuples of numbers, which can be a key."""
        return cast(Rows, self.actions)

    @cached_property
    def vectors(self) -> Floats:
        """The actions as an array [action, coordinate]."""
        return np.array(self.rows, float)

    def _rows_of(self, actions: ArrayLike) -> Floats:
        """Actions to look at, as an array [action, coordinate]: rows of d numbers each, or one vector."""
        d = len(self.rows[0])
        rows = np.array(check_actions(as_table(actions, d), math.inf), float)
        if rows.shape[1] != d:
            raise InvalidInput(f"actions must be a table of {d} columns, one row an action, got shape {rows.shape}")
        return rows

    @property
    def arm_names(self) -> tuple[str, ...]:
        """The actions by name."""
        assert self.arms is not None
        return tuple(self.arms)


def as_table(actions: ArrayLike, dimension: int) -> ArrayLike:
    """Return one vector of this length as a table of one row, and anything else as it is."""
    row: Any = actions
    try:
        return [row] if np.shape(row) == (dimension,) else actions
    except ValueError:  # rows of different lengths: no table, and refused as such
        return actions


def check_actions(actions: ArrayLike | None, norm: float) -> Rows:
    """The actions as rows of finite numbers, each of norm at most `norm`."""
    given: Any = actions
    try:
        found = np.array(given, dtype=complex if np.iscomplexobj(given) else float)
    except (TypeError, ValueError):
        found = None
    if found is None or np.iscomplexobj(found):
        raise InvalidInput(
            "actions must be a table of real numbers, one row an action, all rows of one length; got something else"
        )
    if found.ndim != 2 or not found.size:
        raise InvalidInput(
            f"actions must be a table of numbers, one row an action, got an array of shape {found.shape}"
        )
    if not np.isfinite(found).all():
        row, column = np.argwhere(~np.isfinite(found))[0]
        raise InvalidInput(f"actions must be finite numbers, got {found[row, column]} in row {row}, column {column}")
    norms = np.linalg.norm(found, axis=1)
    if norms.max() > norm * (1 + 1e-9):
        row = int(norms.argmax())
        digits = 5 - math.floor(math.log10(norms[row]))
        enough = math.ceil(norms[row] * 10.0**digits) / 10.0**digits  # so that declaring it helps
        raise InvalidInput(
            f"actions must have norm at most {norm:g}, got {norms[row]:.9g} in row {row} (the first is 0): divide all "
            f"actions by one number, or declare action_norm={enough:.6g}"
        )
    largest = np.abs(found).max()
    if 0 < largest < 1e-100:
        raise InvalidInput(f"actions are too short for floating point, at most {largest:.3g}: multiply all of them")
    return tuple(map(tuple, found.tolist()))
