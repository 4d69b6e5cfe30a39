"""Policies whose actions are offered anew at every step: vectors that describe the person and the action."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from private_bandits.arrays import Floats
from private_bandits.budget import Budget
from private_bandits.checks import check_positive, whole_number
from private_bandits.errors import InvalidInput
from private_bandits.policies.base import Offer, Policy, Prediction, State, no_budget
from private_bandits.policies.ellipsoid import Ellipsoid
from private_bandits.policies.linear import as_table
from private_bandits.policies.long_rows import STILL_LONG, long_rows_divided

STEPS = 2**20
"""Steps of the grid that coordinates of actions are rounded to, from zero to the largest norm, if a policy has no other
(`ContextualPolicy.steps`)."""
LONG = ("refuse", "scale")


@dataclass(frozen=True)
class ContextualPolicy(Policy[State]):
    """A policy over actions in R^d that come with every ask, of norm at most `context_norm`.

    long_actions: "refuse" actions beyond that norm, or "scale" them down to it. An action is rounded towards zero when
    it is offered, on a grid of 1/`steps` of the norm (2^-20; AdaC-OFUL: 2^-16 where releases hold earlier episodes
    again), and the rounded one is used everywhere.
    """

    setting: ClassVar[str] = "contextual"

    dimension: int = 0
    budget: Budget = field(default_factory=no_budget)
    context_norm: float = 1.0
    long_actions: Literal["refuse", "scale"] = "refuse"

    def __post_init__(self) -> None:
        object.__setattr__(self, "dimension", whole_number("dimension", self.dimension))
        object.__setattr__(self, "context_norm", check_positive("context_norm", self.context_norm))
        if not 1e-100 <= self.context_norm <= 1e100:  # it is squared
            raise InvalidInput(
                f"context_norm must lie between 1e-100 and 1e100, got {self.context_norm}: "
                "measure features in other units"
            )
        if self.long_actions not in LONG:
            raise InvalidInput(f"long_actions must be one of {', '.join(LONG)}, got {self.long_actions!r}")
        self.check_budget()

    @property
    def arm_names(self) -> tuple[str, ...]:
        """None: actions are offered anew at every step."""
        return ()

    @property
    def steps(self) -> int:
        """Of the grid, from zero to the largest norm."""
        return STEPS

    @property
    def weight_room(self) -> int:
        """For actions on the grid."""
        return self.steps

    @property
    def declared_weight(self) -> int:
        """The largest norm, which is declared."""
        return self.steps

    @cached_property
    def unit(self) -> float:
        """What one step of the grid is worth."""
        return self.context_norm / self.steps

    @cached_property
    def _most_squared(self) -> float:
        """Below which a squared norm is at most `steps`^2 on the grid.

        There it is a whole number, and steps^2 (1 + 4e-13) is less than the next one, for 2^20 steps and fewer: rows
        that were divided by their norm may miss 1 by that much.
        """
        return self.context_norm**2 * (1 + 4e-13)

    def offer(self, actions: ArrayLike | None) -> Offer:
        """The actions on the grid. Refused, with nothing changed, where they are not K rows of d finite numbers."""
        return (self._checked_rows(actions) / self.unit).astype(np.int64)  # towards zero

    def _checked_rows(self, actions: ArrayLike | None) -> Floats:
        """The actions as floats, none of them longer than the norm."""
        if actions is None:
            raise InvalidInput(f"{type(self).__name__} needs ask(actions=...), a row of {self.dimension} numbers each")
        try:
            rows = self._as_floats(actions)
        except InvalidInput:
            raise
        except (TypeError, ValueError, OverflowError):
            raise InvalidInput("actions must be a table of numbers, one row an action; got something else") from None
        if rows.ndim != 2 or rows.shape[1] != self.dimension or not len(rows):
            raise InvalidInput(
                f"actions must be a table of {self.dimension} columns, one row an action, got shape {rows.shape}"
            )
        with np.errstate(over="ignore"):
            squared = np.vecdot(rows, rows)  # infinite beyond 1e154: that is long as well
        # The largest by argmax, in a fourth of the time of max; both take NaN for the largest.
        if not squared[squared.argmax()] <= self._most_squared:
            rows = self._shortened(rows, actions)
        return rows

    def _as_floats(self, actions: ArrayLike) -> Floats:
        try:
            return np.asarray(actions, dtype=float)
        except OverflowError:  # a whole number or a fraction that no float can hold
            if self.long_actions == "refuse":
                raise InvalidInput(
                    f"actions must have norm at most {self.context_norm:g}, got a number larger than any float: "
                    "measure features in other units, or use long_actions='scale'"
                ) from None
            return long_rows_divided(actions)

    def _shortened(self, rows: Floats, actions: ArrayLike) -> Floats:
        if self.long_actions == "scale" and np.isinf(rows).any():
            rows = long_rows_divided(actions)
        if not np.isfinite(rows).all():
            row, column = np.argwhere(~np.isfinite(rows))[0]
            raise InvalidInput(f"actions must be finite numbers, got {rows[row, column]} in row {row}, column {column}")
        largest = np.maximum(np.abs(rows).max(axis=1), 1e-300)
        norms = largest * np.linalg.norm(rows / largest[:, None], axis=1)  # without overflow
        if self.long_actions == "refuse" and norms.max() > self.context_norm * (1 + 1e-9):
            row = int(norms.argmax())
            raise InvalidInput(
                f"actions must have norm at most {self.context_norm:g}, got {norms[row]:.9g} in row {row} (the first "
                "is 0): divide by it, declare a larger context_norm, or use long_actions='scale'"
            )
        # Less than 1 only where the factor below would otherwise be too small for a float.
        near = STILL_LONG / np.maximum(largest, STILL_LONG)
        shorter = np.minimum(1.0, self.context_norm * (1 - 1e-12) / np.maximum(norms * near, 1e-300))
        return np.asarray(rows * near[:, None] * shorter[:, None])

    def sum_of(self, action: int) -> int:
        """The sum that rewards of an action enter, by the action's row."""
        return 0

    def predict(self, state: State, actions: ArrayLike | None, delta: float) -> list[Prediction]:
        """The mean reward of each action, and an interval of the proven width, whatever `exploration` is.

        Actions are taken as `ask` takes them: those that are too long are refused, or scaled down.
        """
        if actions is None:
            raise InvalidInput(f"{type(self).__name__} needs predict(actions), a row of {self.dimension} numbers each")
        rows = self._checked_rows(as_table(actions, self.dimension))
        keys = [self.sum_of(row) for row in range(len(rows))]
        known = {key: self.ellipsoid(state, key, delta) for key in set(keys)}
        return [known[key].predict(row) for key, row in zip(keys, rows, strict=True)]

    def ellipsoid(self, state: State, key: int, delta: float) -> Ellipsoid:
        """Where the parameter of a sum is, but for a probability of delta, at all times and for all sums together."""
        raise InvalidInput(f"{type(self).__name__} has no proven interval for the mean reward of an action")

    @abstractmethod
    def choose(self, state: State, offered: Offer, step: int) -> int:
        """The row of decision number `step`. Changes nothing."""

    def recommend(self, state: State, waiting: Sequence[int], arrived: Mapping[int, int], step: int) -> int:
        """Not without actions."""
        raise InvalidInput(f"{type(self).__name__} needs ask(actions=...)")

    def entry(self, state: State, action: int) -> tuple[int, tuple[int, ...]] | None:
        """Not without actions: see `entry_of`."""
        raise InvalidInput(f"{type(self).__name__} needs ask(actions=...)")

    def entry_of(self, state: State, offered: Offer, played: int) -> tuple[int, tuple[int, ...]]:
        """The sum and the weight of a reward: the action itself, on the grid."""
        return 0, tuple(offered[played].tolist())
