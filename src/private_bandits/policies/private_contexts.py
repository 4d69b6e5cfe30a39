"""Policies for private contexts: all that they learn from, the matrix of contexts too, are noisy sums over people."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike

from private_bandits.arrays import Floats
from private_bandits.budget import Budget
from private_bandits.checks import check_probability
from private_bandits.errors import InvalidInput
from private_bandits.ledger import Release
from private_bandits.mechanism.moments import MomentScale
from private_bandits.policies.base import Estimate, Offer
from private_bandits.policies.contextual import STEPS, ContextualPolicy
from private_bandits.policies.ellipsoid import Assumed, Ellipsoid, release_share, rounding_of_rewards
from private_bandits.policies.optimism import (
    GAUSSIAN,
    INSTEAD_OF_PURE,
    Optimism,
    check_optimism,
    noise_tail,
    reward_width,
    squared_length,
)
from private_bandits.policies.prefix import PrefixSum

LEAST_MOMENT_STEPS = 2**16
"""Steps that rewards and moments are rounded to, at least, for rho of 10^-9 and more."""


class ReleasedSum(Protocol):
    """A noisy sum over people, made of all releases so far (prefix.py, remembered_moments.py)."""

    @property
    def total(self) -> Floats:
        """The sum, in the coordinates of MomentScale."""

    @property
    def releases(self) -> int:
        """How many releases it is made of."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""

    def restored(self, data: Mapping[str, Any]) -> Self:
        """Return the same sum with the releases that to_dict wrote."""


class Known(NamedTuple):
    """What is known of actions: V by its eigenvalues and eigenvectors, and the proven width in its norm.

    V is the noisy sum of a a' plus `shift` times I, with its eigenvalues raised to `floor`. sd: of the noise in a
    coordinate of what was released.
    """

    values: Floats
    vectors: Floats
    width: float
    shift: float
    floor: float
    sd: float


@dataclass(eq=False)
class MomentsState:
    """What was released, and what follows from it. Public.

    released: of (kappa a a', a r), in the coordinates of MomentScale, all people so far. rewards: how many those are.
    """

    low: float
    high: float
    rewards: int
    released: Any
    theta: Floats = field(init=False)
    inverse: Floats = field(init=False)
    width: float = field(init=False)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MomentsState) and self.to_dict() == other.to_dict()

    def to_dict(self) -> dict[str, Any]:
        """What the rest follows from, as plain data."""
        return {"low": self.low, "high": self.high, "rewards": self.rewards, "released": self.released.to_dict()}


@dataclass(frozen=True)
class PrivateContextPolicy(ContextualPolicy[MomentsState]):
    """Optimism where contexts are private as well (joint DP); subclasses say when sums leave.

    With G and u the released sums of a a' and a r, noise included, Y a bound on the norm of G's noise, and
    l = max(lambda, Y):  V = G + (l + Y) I,  theta = V^-1 u, and the action of the largest
    <theta, a> + width ||a|| in V^-1 is recommended,

        width = s sqrt(2 log(3 k/delta) + log(det V/l^d)) + S min(sqrt(h), h/sqrt(m)) + noise of u sqrt(f/m)

    k: how many values l may take (1 without noise), h = l + 2 Y, m: the least eigenvalue of V (at least l),
    f = f(d, delta/(3 T)). Shariff and Sheffet (2018, Proposition 4) with the eigenvalues of V, which is public here, in
    place of bounds.

    matrix_share: of the budget, for the matrix; the rest is the vector's. Actions longer than context_norm are
    shortened without a word, because an error would tell of them.
    """

    in_words: ClassVar[str] = (
        "Each option is described by numbers. The option is chosen whose expected outcome is best, after an "
        "allowance that is the larger, the less is known of options like it. What is expected is computed "
        "anew at times that depend on nothing but the number of outcomes."
    )

    supported_budgets: ClassVar[tuple[str, ...]] = GAUSSIAN
    alternative_hint: ClassVar[str] = INSTEAD_OF_PURE
    private_contexts: ClassVar[bool] = True

    long_actions: Literal["refuse", "scale"] = "scale"
    horizon: int = 10**6
    regulariser: float = 1.0
    delta: float = 1e-3
    parameter_norm: float = 1.0
    matrix_share: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        check_optimism(self, "regulariser", "parameter_norm")
        if self.long_actions != "scale":
            raise InvalidInput("long_actions must be 'scale' where contexts are private: an error would tell of them")
        object.__setattr__(self, "matrix_share", check_probability("matrix_share", self.matrix_share))
        self.moments(0.0, 1.0)  # refuses one that is too small

    @classmethod
    def example(cls, budget: Budget) -> Self:
        """Two dimensions."""
        return cls(dimension=2, budget=budget, horizon=1000)

    def _checked_rows(self, actions: ArrayLike | None) -> Floats:
        """Shortened without a word, however long they are."""
        with np.errstate(all="ignore"):
            return super()._checked_rows(actions)

    def moments(self, low: float, high: float) -> MomentScale:
        """What a person adds."""
        return MomentScale(self.dimension, STEPS, low, high, self.matrix_share)

    @cached_property
    def _release_variance(self) -> float:
        """b of each release."""
        return self.budget.shared(max(1, self.tree_levels)).variance_factor

    @property
    def n_sums(self) -> int:
        """How many estimates there are: one."""
        return 1

    @abstractmethod
    def wait(self, rewards: int) -> float:
        """How many rewards a release is of, at least, once so many are released."""

    def due(self, state: MomentsState, key: int, count: int, arrived: Mapping[int, int]) -> bool:
        """When as many are waiting as the schedule asks for. It is public: nothing but counts is in it."""
        return count >= self.wait(state.rewards)

    @property
    @abstractmethod
    def noise_levels(self) -> int:
        """How many values the number of noises, and with it l, takes within the horizon, at most."""

    def start(self, low: float, high: float) -> MomentsState:
        """Nothing is known."""
        return self._settled(MomentsState(low, high, 0, self.nothing_released(low, high)))

    def nothing_released(self, low: float, high: float) -> ReleasedSum:
        """Return the sum over nobody."""
        return PrefixSum(np.zeros(self.moments(low, high).size))

    def _settled(self, state: MomentsState) -> MomentsState:
        """With what follows from the releases, computed anew."""
        matrix, vector = self.matrix_and_vector(state.released.total, state.low, state.high)
        known = self.known(matrix, state.released, state.low, state.high)
        state.inverse = (known.vectors / known.values) @ known.vectors.T
        state.theta = state.inverse @ vector
        state.width = known.width
        return state

    def known(self, matrix: Floats, released: Any, low: float, high: float) -> Known:
        """Return what a noisy sum of a a' says, made usable on public grounds: shifted by what the noise may be."""
        optimism = self.optimism(released.noises, low, high)
        values, vectors = np.linalg.eigh(matrix + optimism.shift * np.eye(self.dimension))
        values = np.maximum(values, optimism.floor)  # they are, unless the noise exceeds its bound
        width = optimism.width(float(np.log(values).sum()), float(values[0]))
        sd = self.moments(low, high).sensitivity * math.sqrt(self._release_variance * released.noises)
        return Known(values, vectors, width, optimism.shift, optimism.floor, sd)

    def matrix_and_vector(self, coordinates: Floats, low: float, high: float) -> tuple[Floats, Floats]:
        """The sums of a a' and a r, for rewards in [low, high], of sums over people in the coordinates of the scale."""
        scale = self.moments(low, high)
        matrix, vector = scale.matrix_and_vector(coordinates)
        return matrix * self.context_norm**2, vector * self.context_norm * scale.largest_reward

    def optimism(self, noises: int, low: float, high: float) -> Optimism:
        """Of sums that hold so many noises, for rewards in [low, high]."""
        scale, d = self.moments(low, high), self.dimension
        sd = scale.sensitivity * math.sqrt(self._release_variance * noises)
        norms = math.sqrt(2 * d) + math.sqrt(2 * math.log(6 * self.horizon / self.delta))
        spread = norms * sd / scale.kappa * self.context_norm**2
        floor = max(self.regulariser, spread)
        most = floor + 2 * spread
        levels = self.noise_levels if self._release_variance else 1
        tail = noise_tail(d, self.delta / (3 * self.horizon))
        return Optimism(
            shift=floor + spread,
            floor=floor,
            log_floor=d * math.log(floor),
            half=(high - low) / 2,
            odds=2 * math.log(3 * levels / self.delta),
            ridge=self.parameter_norm * math.sqrt(most),
            steep=self.parameter_norm * most,
            noise=sd * self.context_norm * scale.largest_reward * math.sqrt(tail),
        )

    def choose(self, state: MomentsState, offered: Offer, step: int) -> int:
        """The largest index; ties go to the first."""
        rows = offered * self.unit
        norms = np.sqrt(((rows @ state.inverse) * rows).sum(axis=1))
        return int((rows @ state.theta + self.optimism_of(state) * norms).argmax())

    def optimism_of(self, state: MomentsState) -> float:
        """Return what the norm of an action is multiplied by in its index: the proven width."""
        return state.width

    def learn(self, state: MomentsState, release: Release, step: int) -> None:
        """Take in the release, and estimate anew."""
        self.take(state.released, np.array(release.values))
        state.rewards += release.count
        self._settled(state)

    def take(self, released: Any, values: Floats) -> None:
        """Add what was released to the sum of all releases."""
        released.take(values, self.tree_levels)

    def estimates(self, state: MomentsState, delta: float) -> list[Estimate]:
        """Actions change from step to step: there is no list of them. See `predict`, and `Agent.learned` for theta."""
        return []

    def ellipsoid(self, state: MomentsState, key: int, delta: float) -> Ellipsoid:
        """Where theta is, for the V that the policy has (docs/guarantees.md, "Predictions").

        Each release has its share of delta, a third of it for the rewards and for each of the two noises.
        """
        low, high, released = state.low, state.high, state.released
        if not released.releases:
            return Ellipsoid(low, high)
        matrix, vector = self.matrix_and_vector(released.total, low, high)
        known = self.known(matrix, released, low, high)
        failure = release_share(delta, released.releases) / 3
        root = known.vectors / np.sqrt(known.values)
        width = self._width_at(known, state, failure)
        return Ellipsoid(low, high, root @ (vector @ root), root, width)

    def _width_at(self, known: Known, state: MomentsState, failure: float) -> float:
        """The width but for a probability of failure for the rewards, the matrix and the vector each."""
        low, high, d = state.low, state.high, self.dimension
        scale, spread, half_step = self.moments(low, high), high - low, state.rewards / (2 * LEAST_MOMENT_STEPS)
        norms = 1.001 * known.sd * (math.sqrt(2 * d) + math.sqrt(2 * math.log(2 / failure)))
        bound = self.context_norm**2 / scale.kappa * (norms + half_step * math.sqrt(d * (d + 1) / 2))
        strayed = known.sd * math.sqrt(squared_length(d, failure)) + half_step * math.sqrt(d)
        strayed *= self.context_norm * scale.largest_reward
        beyond = max(0.0, bound - (known.shift - known.floor))  # the part of the bound that the shift does not cover
        grown = float(np.log((known.values + beyond) / known.floor).sum())
        assumed = Assumed(self.regulariser, self.parameter_norm, self.unit)
        rounding = rounding_of_rewards(state.rewards, spread, LEAST_MOMENT_STEPS, d, assumed)
        from_rewards = math.sqrt(1 + beyond / known.floor) * (reward_width(spread, failure, grown) + rounding)
        most, root = known.shift + bound + beyond, math.sqrt(float(known.values[0]))
        ridge = most / root if beyond else min(math.sqrt(most), most / root)
        return from_rewards + self.parameter_norm * ridge + strayed / root

    def dump_state(self, state: MomentsState) -> dict[str, Any]:
        """Everything, theta too."""
        return state.to_dict() | {"theta": state.theta.tolist(), "width": state.width}

    def load_state(self, data: Mapping[str, Any]) -> MomentsState:
        """From plain data; what follows is computed anew."""
        released = self.nothing_released(data["low"], data["high"]).restored(data["released"])
        return self._settled(MomentsState(data["low"], data["high"], data["rewards"], released))
