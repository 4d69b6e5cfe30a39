"""LinUCB without privacy: what private policies are measured against on labelled tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from private_bandits.arrays import Floats
from private_bandits.budget import Budget
from private_bandits.checks import check_positive
from private_bandits.errors import InvalidInput
from private_bandits.ledger import Release
from private_bandits.policies.base import Estimate, Offer
from private_bandits.policies.contextual import ContextualPolicy


@dataclass(eq=False)
class LinUCBState:
    """inverse: of V = lambda I + sum of a a'. total: sum of a r. theta: their product."""

    inverse: Floats
    total: Floats
    theta: Floats


@dataclass(frozen=True)
class LinUCB(ContextualPolicy[LinUCBState]):
    """Ridge regression that learns each reward at once and plays the largest <theta, a> + alpha ||a|| in V^-1.

    alpha and regulariser (lambda) are the best of six pairs on the tables of docs/real-data.md: a strong reference.
    It protects nobody, and says so: `NoPrivacy()` is the only budget that it takes. It has no name among the policies,
    so that no command offers it, and no agent keeps it in a file.

    >>> from private_bandits import NoPrivacy, zCDP
    >>> LinUCB(3, NoPrivacy()).alpha
    0.3
    >>> LinUCB(3, zCDP(1.0))
    Traceback (most recent call last):
        ...
    private_bandits.errors.UnsupportedBudget: LinUCB cannot keep zCDP(rho=1.0): it serves NoPrivacy. Use AdaCOFUL.
    """

    supported_budgets: ClassVar[tuple[str, ...]] = ("NoPrivacy",)
    alternative_hint: ClassVar[str] = "Use AdaCOFUL."
    source: ClassVar[str] = "Li, Chu, Langford and Schapire 2010, A contextual-bandit approach to personalized news"
    changes_on_arrival: ClassVar[bool] = True

    alpha: float = 0.3
    regulariser: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "regulariser", check_positive("regulariser", self.regulariser))
        if not (math.isfinite(self.alpha) and self.alpha >= 0):
            raise InvalidInput(f"alpha must be a finite number of at least 0, got {self.alpha!r}")

    @classmethod
    def example(cls, budget: Budget) -> Self:
        """Two dimensions."""
        return cls(dimension=2, budget=budget)

    def start(self, low: float, high: float) -> LinUCBState:
        """V = lambda I, theta = 0."""
        nothing = np.zeros(self.dimension)
        return LinUCBState(np.eye(self.dimension) / self.regulariser, nothing, nothing)

    def choose(self, state: LinUCBState, offered: Offer, step: int) -> int:
        """The largest index; ties go to the first."""
        rows = offered * self.unit
        norms = np.sqrt(np.vecdot(rows @ state.inverse, rows))
        return int((rows @ state.theta + self.alpha * norms).argmax())

    def arrive(self, state: LinUCBState, key: int, weight: tuple[int, ...]) -> Callable[[], None]:
        """The action enters V, whose inverse follows (Sherman and Morrison)."""
        before, row = state.inverse, np.array(weight) * self.unit
        reached = before @ row
        state.inverse = before - np.outer(reached, reached / (1 + row @ reached))

        def undo() -> None:
            state.inverse = before

        return undo

    def due(self, state: LinUCBState, key: int, count: int, arrived: Mapping[int, int]) -> bool:
        """With every reward."""
        return True

    def learn(self, state: LinUCBState, release: Release, step: int) -> None:
        """Add the reward, and estimate anew."""
        state.total = state.total + np.array(release.values) * self.unit
        state.theta = state.inverse @ state.total

    def estimates(self, state: LinUCBState, delta: float) -> list[Estimate]:
        """Actions change from step to step: there is no list of them."""
        return []

    def load_state(self, data: Mapping[str, Any]) -> LinUCBState:
        """From plain data."""
        return LinUCBState(**{name: np.array(data[name], float) for name in ("inverse", "total", "theta")})
