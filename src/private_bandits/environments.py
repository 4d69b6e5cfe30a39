"""Where simulated rewards come from. An environment knows the truth that a policy has to learn."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike

from private_bandits.arrays import Floats, Integers
from private_bandits.checks import whole_number
from private_bandits.errors import InvalidInput
from private_bandits.policies.linear import check_actions

Setting = Literal["strict", "paper"]
"""Where everything that is promised holds, or as the paper's experiments are printed."""


class FiniteEnvironment(Protocol):
    """K arms whose rewards are independent draws, arm by arm."""

    @property
    def means(self) -> Floats:
        """The mean reward of each arm."""

    @property
    def reward_range(self) -> tuple[float, float]:
        """Where rewards lie."""

    def reward_sums(self, generator: np.random.Generator, arms: Integers, counts: Integers) -> Floats:
        """For each i, the sum of counts[i] rewards of arm arms[i], exact in distribution, in one draw."""


@dataclass(frozen=True)
class Bernoulli:
    """Rewards of 1 with the arm's probability, else 0.

    >>> Bernoulli([0.75, 0.5]).means.tolist()
    [0.75, 0.5]
    """

    probabilities: ArrayLike

    def __post_init__(self) -> None:
        given: Any = self.probabilities
        try:
            values = tuple(float(p) for p in given)
        except (TypeError, ValueError):
            raise InvalidInput(f"the means must be numbers, got {given!r}") from None
        if not values:
            raise InvalidInput("the means must name at least one arm")
        if not all(0 <= p <= 1 for p in values):
            raise InvalidInput(f"the means of Bernoulli arms must lie in [0, 1], got {list(values)}")
        object.__setattr__(self, "probabilities", values)

    @property
    def means(self) -> Floats:
        """The probabilities of a reward of 1."""
        return np.array(self.probabilities)

    @property
    def reward_range(self) -> tuple[float, float]:
        """[0, 1]."""
        return (0.0, 1.0)

    def reward_sums(self, generator: np.random.Generator, arms: Integers, counts: Integers) -> Floats:
        """A Binomial draw each."""
        return generator.binomial(counts, self.means[arms]).astype(float)


def _parameter(theta: Any, size: int) -> tuple[float, ...]:
    """theta, checked: as many numbers as an action has."""
    try:
        numbers = tuple(float(x) for x in theta)
    except (TypeError, ValueError):
        raise InvalidInput(f"theta must be a list of numbers, got {theta!r}") from None
    if len(numbers) != size or not all(map(math.isfinite, numbers)):
        raise InvalidInput(f"theta must be {size} finite numbers, as many as an action has, got {list(numbers)}")
    return numbers


@dataclass(frozen=True)
class Linear:
    """Actions that are vectors, with rewards of mean <theta, a>.

    noise: "bounded" has rewards of +1 and -1, with P(+1) = (1 + <theta, a>)/2; "gaussian" adds N(0, 1) to the mean,
    as in the paper's experiment, which leaves every bounded range: no guarantee holds for such rewards.

    >>> Linear([[1, 0], [0.6, 0.8]], theta=[0.5, 0.25]).means.tolist()
    [0.5, 0.5]
    """

    actions: ArrayLike
    theta: ArrayLike
    noise: str = "bounded"

    def __post_init__(self) -> None:
        actions = check_actions(self.actions, math.inf)
        theta = _parameter(self.theta, len(actions[0]))
        if self.noise not in ("bounded", "gaussian"):
            raise InvalidInput(f"noise must be 'bounded' or 'gaussian', got {self.noise!r}")
        object.__setattr__(self, "actions", actions)
        object.__setattr__(self, "theta", theta)
        largest = float(np.abs(self.means).max())
        if self.bounded and largest > 1 + 1e-9:
            raise InvalidInput(
                f"rewards of +1 and -1 have means in [-1, 1], got |<theta, a>| = {largest:.6g}: divide theta by it"
            )

    @property
    def bounded(self) -> bool:
        """Whether rewards stay in their range."""
        return self.noise == "bounded"

    @property
    def means(self) -> Floats:
        """<theta, a> of every action."""
        return np.asarray(np.array(self.actions) @ np.array(self.theta), float)

    @property
    def reward_range(self) -> tuple[float, float]:
        """[-1, 1]: of Gaussian rewards, what is declared."""
        return (-1.0, 1.0)

    def reward_sums(self, generator: np.random.Generator, arms: Integers, counts: Integers) -> Floats:
        """A Binomial or a Normal draw each."""
        means = self.means[arms]
        if self.bounded:
            return np.asarray(2.0 * generator.binomial(counts, ((1 + means) / 2).clip(0, 1)) - counts, float)
        return np.asarray(counts * means + np.sqrt(counts) * generator.standard_normal(len(counts)))


@dataclass(frozen=True)
class Contextual:
    """Fresh actions at every step, with rewards of mean <theta, a>.

    Each of the `arms` actions is drawn from N((1/sqrt(d), ..., 1/sqrt(d)), I/10), d the dimension.

    setting: "strict" scales actions into the unit ball, a / max(1, |a|), and has rewards of +1 and -1, with
    P(+1) = (1 + <theta, a>)/2. "paper" leaves actions as drawn and adds N(0, 1) to the mean, as in the paper's
    experiment: neither stays within its bound, so no guarantee holds.

    >>> world = Contextual(dimension=2, arms=5, theta=[0.6, 0.8])
    >>> actions = world.draw_actions(np.random.default_rng(0))
    >>> actions.shape, bool((np.linalg.norm(actions, axis=1) <= 1).all())
    ((5, 2), True)
    """

    dimension: int
    arms: int
    theta: ArrayLike
    setting: Setting = "strict"

    def __post_init__(self) -> None:
        for name in ("dimension", "arms"):
            object.__setattr__(self, name, whole_number(name, getattr(self, name)))
        theta = _parameter(self.theta, self.dimension)
        if self.setting not in ("strict", "paper"):
            raise InvalidInput(f"setting must be 'strict' or 'paper', got {self.setting!r}")
        object.__setattr__(self, "theta", theta)
        if self.bounded and math.hypot(*theta) > 1 + 1e-9:
            raise InvalidInput(
                f"rewards of +1 and -1 need |theta| at most 1, got {math.hypot(*theta):.6g}: divide theta by it"
            )

    @property
    def scaled(self) -> bool:
        """Whether actions are scaled into the unit ball."""
        return self.setting == "strict"

    @property
    def bounded(self) -> bool:
        """Whether rewards are +1 and -1; else they are Gaussian."""
        return self.setting == "strict"

    @property
    def deviation(self) -> float:
        """The standard deviation of a Gaussian reward."""
        return 1.0

    @property
    def reward_range(self) -> tuple[float, float]:
        """[-1, 1]: of Gaussian rewards, what is declared."""
        return (-1.0, 1.0)

    def draw_actions(self, generator: np.random.Generator) -> Floats:
        """The actions of one step, a row each."""
        actions = generator.normal(1 / math.sqrt(self.dimension), math.sqrt(0.1), (self.arms, self.dimension))
        if self.scaled:
            # A hair less than one, so that rounding leaves no action outside the unit ball.
            actions *= np.minimum(1.0, (1 - 1e-12) / np.linalg.norm(actions, axis=1, keepdims=True))
        return actions

    def draw_reward(self, generator: np.random.Generator, action: Floats) -> float:
        """A reward of one action."""
        chance = generator.random() if self.bounded else generator.standard_normal()
        return self.reward_of(float(np.dot(self.theta, action)), float(chance))

    def reward_of(self, mean: float, chance: float) -> float:
        """The reward of an action of this mean. chance: uniform on [0, 1], or normal where rewards are Gaussian."""
        if self.bounded:
            return 1.0 if 2 * chance - 1 < mean else -1.0
        return mean + self.deviation * chance
