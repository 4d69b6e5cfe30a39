"""The histories of a small bandit, and their numbers.

The history (a_1, r_1, ..., a_t, r_t) is read as a number: each (arm, reward) is a digit of base K R, arm-major, as
in the paper's counterexample. With contexts a digit is (context, arm, reward), and the current context comes last.
Rewards are a finite set of numbers; a digit holds the place of the reward in that set.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from private_bandits.errors import InvalidInput

MOST_ROWS, MOST_NUMBERS, MOST_NAMES = 2_000_000, 10_000_000, 10_000
"""The most rows of probabilities (seconds of a Python callable), probabilities (80 MB), and arms or contexts."""

History = tuple[tuple[Any, ...], ...]


class InvalidPolicy(InvalidInput):
    """A policy whose numbers or histories are not what they have to be."""


class PolicyFileMissing(InvalidPolicy, FileNotFoundError):
    """No file stands at the path of a policy."""


class TooLarge(InvalidInput):
    """More worlds than can be gone through; raised before any memory is taken."""


@dataclass(frozen=True)
class Histories:
    """K arms, R rewards, T steps, optionally C contexts (none: `contexts` is empty).

    >>> space = Histories.of(arms=2, rewards=[0, 1], horizon=3)
    >>> space.index([(0, 1), (1, 1)])  # the paper's Example 2
    7
    """

    arms: tuple[str, ...]
    rewards: tuple[float, ...]
    horizon: int
    contexts: tuple[str, ...] = ()

    @staticmethod
    def of(
        arms: int | Sequence[str], rewards: Sequence[float], horizon: int, contexts: int | Sequence[str] = 0
    ) -> Histories:
        """The same with numbers in place of names, checked."""
        try:
            values = tuple(float(r) for r in rewards)
        except (TypeError, ValueError, OverflowError):
            raise InvalidPolicy(f"rewards must be a list of finite numbers, got {rewards!r}") from None
        return Histories(_names("arms", arms, 1), values, horizon, _names("contexts", contexts, 0))

    def __post_init__(self) -> None:
        """Sizes that make sense and fit, before anything is allocated."""
        if isinstance(self.horizon, bool) or not isinstance(self.horizon, int) or self.horizon < 1:
            raise InvalidPolicy(f"horizon must be a whole number of steps, at least 1, got {self.horizon!r}")
        if not self.rewards or not all(math.isfinite(r) for r in self.rewards):
            raise InvalidPolicy(f"rewards must be a list of finite numbers, got {list(self.rewards)!r}")
        if len(set(self.rewards)) != len(self.rewards):
            raise InvalidPolicy(f"rewards must be different numbers, got {list(self.rewards)!r}")
        total = 0
        for step in range(self.horizon):
            total += self.rows(step)
            if total > MOST_ROWS or total * len(self.arms) > MOST_NUMBERS:
                raise TooLarge(
                    f"{self} have {total:,} histories in {step + 1} of {self.horizon} steps (some {total / 5e5:,.0f} "
                    f"seconds and {total * 8 * len(self.arms) / 1e6:,.0f} MB); at most {MOST_ROWS:,}, and "
                    f"{MOST_NUMBERS:,} probabilities, fit: "
                    + (f"a horizon of at most {step}" if step else "fewer contexts or arms")
                )

    def __str__(self) -> str:
        sizes = f"{len(self.arms)} arms, {len(self.rewards)} rewards"
        return sizes + (f", {len(self.contexts)} contexts" if self.contexts else "")

    @property
    def n_contexts(self) -> int:
        """C, or one where there are no contexts."""
        return max(1, len(self.contexts))

    @property
    def base(self) -> int:
        """How many things can happen at one step: context, arm, reward."""
        return self.n_contexts * len(self.arms) * len(self.rewards)

    def rows(self, step: int) -> int:
        """How many rows of probabilities a step has: histories times the current context."""
        return int(self.base**step * self.n_contexts)

    def index(self, history: Sequence[Sequence[Any]], context: int | None = None) -> int:
        """The row of a history (and of the current context) among those of its step."""
        number = 0
        for entry in history:
            *where, arm, reward = entry
            number = (number * self.n_contexts + (where[0] if where else 0)) * len(self.arms) + arm
            number = number * len(self.rewards) + self.rewards.index(reward)
        return number * self.n_contexts + (context or 0)

    def each(self, step: int) -> Iterator[tuple[History, int | None]]:
        """Every history of `step` steps with every current context (None without contexts), in order of the rows."""
        digit: list[tuple[Any, ...]] = list(product(range(len(self.arms)), self.rewards))
        if self.contexts:
            digit = [(context, *entry) for context in range(self.n_contexts) for entry in digit]
        for history in product(digit, repeat=step):
            for context in range(self.n_contexts):
                yield history, context if self.contexts else None


def describe(history: Sequence[Sequence[Any]], context: int | None = None) -> str:
    """A history as it is written in a file."""
    text = f"the history {[list(entry) for entry in history]!r}"
    return text if context is None else f"{text} with context {context}"


def _names(what: str, given: int | Sequence[str], least: int) -> tuple[str, ...]:
    """Names of arms or contexts: a number n stands for "0", ..., "n-1"."""
    if isinstance(given, int) and not isinstance(given, bool):
        if not least <= given <= MOST_NAMES:
            raise InvalidPolicy(f"{what} must be a number from {least} to {MOST_NAMES} or a list of names, got {given}")
        return tuple(map(str, range(given)))
    if isinstance(given, str) or not isinstance(given, Sequence) or not all(isinstance(n, str) for n in given):
        raise InvalidPolicy(f"{what} must be a number or a list of names, got {given!r}")
    if len(set(given)) != len(given) or len(given) < least:
        raise InvalidPolicy(f"{what} must be different names, at least {least}, got {list(given)!r}")
    return tuple(given)
