"""A policy that is small enough to be written down: one row of probabilities for every history."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from private_bandits.arrays import Floats
from private_bandits.definitions.histories import Histories, History, InvalidPolicy, describe

TOLERANCE = 1e-9
"""How far the sum of a row may be from one."""


@dataclass(frozen=True, eq=False)
class SmallPolicy:
    """pi_t(arm | history) for every history of a small bandit.

    `probabilities[t]` has one row for each history of t steps (times the current context) and one column for each
    arm, kept exactly as given.

    >>> coin = SmallPolicy.from_callable(lambda history: [0.5, 0.5], arms=2, horizon=2)
    >>> coin.row([(1, 0)])
    (0.5, 0.5)
    """

    name: str
    space: Histories
    probabilities: tuple[Floats, ...]

    def __post_init__(self) -> None:
        if len(self.probabilities) != self.horizon:
            raise InvalidPolicy(f"probabilities must hold {self.horizon} arrays, got {len(self.probabilities)}")
        for step, given in enumerate(self.probabilities):
            self._check_step(step, given)

    @staticmethod
    def from_callable(
        rule: Callable[..., Sequence[float]],
        *,
        arms: int | Sequence[str],
        horizon: int,
        rewards: Sequence[float] = (0, 1),
        contexts: int | Sequence[str] = 0,
        name: str = "",
    ) -> SmallPolicy:
        """The policy of `rule(history)`, or `rule(history, context)` where there are contexts.

        `history` is a tuple of (arm, reward) pairs, with contexts (context, arm, reward); whole rewards are ints, so
        that a rule can look something up by a reward. The rule is called once for each history, so it must not
        depend on anything else.
        """
        space = Histories.of(arms, rewards, horizon, contexts)
        told = replace(space, rewards=tuple(int(r) if r.is_integer() else r for r in space.rewards))
        steps = []
        for step in range(horizon):
            rows = [
                check_row(_asked(rule, history, context), len(space.arms), describe(history, context))
                for history, context in told.each(step)
            ]
            steps.append(np.array(rows, dtype=np.float64))
        return SmallPolicy(name or getattr(rule, "__name__", ""), space, tuple(steps))

    @property
    def arms(self) -> tuple[str, ...]:
        """The names of the arms."""
        return self.space.arms

    @property
    def rewards(self) -> tuple[float, ...]:
        """The rewards there can be."""
        return self.space.rewards

    @property
    def contexts(self) -> tuple[str, ...]:
        """The names of the contexts; empty where there are none."""
        return self.space.contexts

    @property
    def horizon(self) -> int:
        """The number of steps T."""
        return self.space.horizon

    def row(self, history: Sequence[Sequence[Any]], context: int | None = None) -> tuple[float, ...]:
        """The probabilities of the arms after a history."""
        return tuple(float(p) for p in self.probabilities[len(history)][self.space.index(history, context)])

    @cached_property
    def normalised(self) -> tuple[Floats, ...]:
        """The rows that are computed with: divided by their sum where that is off by more than rounding.

        Near alpha = 1 a Renyi divergence of rows that sum to 1 + 1e-10 would be nonsense.
        """
        steps = []
        for given in self.probabilities:
            total = given.sum(axis=1, keepdims=True)
            steps.append(np.where(np.abs(total - 1) > 4e-16 * len(self.arms), given / total, given))
        return tuple(steps)

    def _check_step(self, step: int, given: Floats) -> None:
        shape = (self.space.rows(step), len(self.arms))
        if given.shape != shape:
            raise InvalidPolicy(f"the array of step {step + 1} must have shape {shape}, got {given.shape}")
        with np.errstate(invalid="ignore"):
            good = np.isfinite(given).all(axis=1) & (given >= 0).all(axis=1)
            good &= np.abs(given.sum(axis=1) - 1) <= TOLERANCE
        if not good.all():
            first = int(np.argmin(good))
            check_row(given[first].tolist(), len(self.arms), f"row {first} of step {step + 1}")


def _asked(rule: Callable[..., Sequence[float]], history: History, context: int | None) -> Sequence[float]:
    try:
        return rule(history) if context is None else rule(history, context)
    except Exception as error:  # a rule is anyone's code
        told = " ".join(f"{type(error).__name__}: {error}".split())
        raise InvalidPolicy(f"the rule failed for {describe(history, context)}: {told}") from error


def check_row(given: Any, arms: int, where: str) -> list[float]:
    """One row of probabilities: a number for each arm, none negative, one in total."""
    try:
        row = [float(p) for p in given]
    except (TypeError, ValueError):
        raise InvalidPolicy(f"the probabilities of {where} must be {arms} numbers, got {given!r}") from None
    if len(row) != arms:
        raise InvalidPolicy(f"the probabilities of {where} must be {arms} numbers, one for each arm, got {len(row)}")
    if not all(math.isfinite(p) and p >= 0 for p in row):
        raise InvalidPolicy(f"the probabilities of {where} must be finite and not negative, got {row!r}")
    total = math.fsum(row)
    if abs(total - 1) > TOLERANCE:
        raise InvalidPolicy(
            f"the probabilities of {where} must sum to one within {TOLERANCE:g}, got {row!r}: {total!r}"
        )
    return row
