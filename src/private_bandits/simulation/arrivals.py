"""When simulated rewards are told: late, at random times, or never.

An arrival depends on chance alone. It does not depend on the reward, the arm or the policy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from private_bandits.arrays import Integers
from private_bandits.checks import LARGEST, large_number
from private_bandits.environments import FiniteEnvironment
from private_bandits.errors import InvalidInput
from private_bandits.policies import Policy

GEOMETRIC = "geometric:"
"""A random delay is written with this before its mean."""


@dataclass(frozen=True)
class Delay:
    """The number of later decisions that are made before a reward is told.

    kind: "fixed", every reward comes exactly `mean` decisions later; "geometric", each has a delay of its own from the
    geometric law on 0, 1, 2, ... with that mean.

    >>> Delay.of(100), str(Delay.of("geometric:2.5"))
    (Delay(mean=100, kind='fixed'), 'geometric:2.5')
    """

    mean: float = 0
    kind: Literal["fixed", "geometric"] = "fixed"

    @classmethod
    def of(cls, given: Any) -> Self:
        """Return the delay that a number such as 100, or a text such as "100" or "geometric:100", stands for."""
        if isinstance(given, str) and given.startswith(GEOMETRIC):
            mean = _number(given, given.removeprefix(GEOMETRIC))
            if not 0 <= mean <= LARGEST:
                raise _no_delay(given)
            return cls(int(mean) if mean.is_integer() else mean, "geometric")
        try:
            return cls(large_number("delay", _number(given, given) if isinstance(given, str) else given, least=0))
        except InvalidInput:
            raise _no_delay(given) from None

    def draws(self, generator: np.random.Generator, size: int) -> Integers:
        """Return so many delays."""
        if self.kind == "fixed":
            return np.full(size, self.mean, dtype=np.int64)
        return np.asarray(generator.geometric(1 / (1 + self.mean), size) - 1, dtype=np.int64)

    @property
    def plain(self) -> float | str:
        """The delay as plain data, from which `of` makes the same one."""
        return self.mean if self.kind == "fixed" else str(self)

    def __str__(self) -> str:
        return f"{GEOMETRIC if self.kind == 'geometric' else ''}{self.mean}"


def _number(given: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise _no_delay(given) from None


def _no_delay(given: Any) -> InvalidInput:
    return InvalidInput(
        "delay must be a whole number of decisions of at least 0 such as 100, or geometric:100 for random delays with "
        f"that mean, got {given!r}. It counts decisions, whoever they are for: 3 weeks at 20 people a week are 60"
    )


@dataclass(frozen=True)
class Arrivals:
    """When rewards come, and how many never come.

    missing: the probability that a reward never comes. Its decision is given up when the reward would have been due.
    """

    delay: Delay = Delay()
    missing: float = 0.0

    @classmethod
    def of(cls, delay: Any, missing: Any) -> Self:
        """Return the arrivals of these arguments, which are checked."""
        if isinstance(missing, bool) or not isinstance(missing, (int, float)) or not 0 <= missing <= 1:
            raise InvalidInput(f"missing must be a probability from 0 to 1, got {missing!r}")
        return cls(Delay.of(delay), float(missing))

    @property
    def prompt(self) -> bool:
        """Whether every reward is told before the next decision."""
        return self.delay.mean == 0 and self.missing == 0

    def to_dict(self) -> dict[str, Any]:
        """Return delay and missing as plain data; nothing where rewards are prompt."""
        return {} if self.prompt else {"delay": self.delay.plain, "missing": self.missing}

    def __str__(self) -> str:
        """Return in words what is not prompt.

        >>> print(Arrivals.of("geometric:100", 0.2))
        rewards 100 decisions late on average, 20% of rewards missing
        """
        delay, parts = self.delay, []
        if delay.mean:
            unit = "decision" if delay.mean == 1 else "decisions"
            parts.append(f"rewards {delay.mean:,} {unit} late" + " on average" * (delay.kind == "geometric"))
        if self.missing:
            parts.append(f"{100 * self.missing:.4g}% of rewards missing")
        return ", ".join(parts)

    def arrays(self, generator: np.random.Generator, size: int) -> tuple[Integers, NDArray[np.bool_]]:
        """Return the delay of so many rewards, and whether each is missing."""
        return self.delay.draws(generator, size), generator.random(size) < self.missing

    def draws(self, generator: np.random.Generator, size: int) -> Iterable[tuple[int, bool]]:
        """Return the same, one by one."""
        delays, missing = self.arrays(generator, size)
        return zip(delays.tolist(), missing.tolist(), strict=True)


PROMPT = Arrivals()
"""Every reward is told before the next decision."""


@dataclass(frozen=True)
class TrialWorld:
    """An environment as a trial has it: rewards may arrive late or never, and verdicts may be looked for.

    verdict: the delta of these verdicts; None: nobody looks.
    """

    environment: FiniteEnvironment
    arrivals: Arrivals = PROMPT
    verdict: float | None = None


def world_with(arrivals: Arrivals, verdict: float | None, environment: Any, policies: Mapping[str, Policy[Any]]) -> Any:
    """Return what policies are simulated on: the environment itself where rewards are prompt and nobody looks.

    Raises:
        InvalidInput: a policy is not for finite arms, and there is something to see besides its regret.
    """
    if arrivals.prompt and verdict is None:
        return environment
    asked = "verdict" if arrivals.prompt else "delay and missing"
    for name, policy in policies.items():
        setting = getattr(policy, "setting", "finite")
        if setting != "finite":
            verb = "is" if arrivals.prompt else "are"
            raise InvalidInput(f"{asked} {verb} for finite arms, policy {name!r} is for the {setting} setting")
    return TrialWorld(environment, arrivals, verdict)
