"""LinPriv: linear UCB that looks at every reward, through a tree, and pays for every node that a reward is in."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from private_bandits.arrays import Floats
from private_bandits.budget import Budget
from private_bandits.errors import InvalidInput
from private_bandits.ledger import Release
from private_bandits.mechanism.tree import levels_for
from private_bandits.policies.base import Estimate, Offer
from private_bandits.policies.contextual import ContextualPolicy
from private_bandits.policies.ellipsoid import Assumed, Ellipsoid, KnownSum, ellipsoid_of_sum
from private_bandits.policies.optimism import GAUSSIAN, INSTEAD_OF_PURE, Optimism, check_optimism, noise_tail
from private_bandits.policies.prefix import PrefixSum


@dataclass(eq=False)
class LinPrivState:
    """One estimate for each sum. Public.

    grams: V of each. sums: all of its rewards so far times their actions, from the nodes of its tree.
    """

    low: float
    high: float
    grams: Floats
    sums: list[PrefixSum]
    thetas: Floats = field(init=False)
    inverses: Floats = field(init=False)
    widths: Floats = field(init=False)

    def __post_init__(self) -> None:
        count, d, _ = self.grams.shape
        self.thetas, self.inverses, self.widths = np.zeros((count, d)), np.zeros((count, d, d)), np.zeros(count)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LinPrivState) and self.to_dict() == other.to_dict()

    def to_dict(self) -> dict[str, Any]:
        """What the rest follows from, as plain data."""
        plain = {"low": self.low, "high": self.high, "grams": self.grams.tolist()}
        return plain | {"sums": [s.to_dict() for s in self.sums]}


@dataclass(frozen=True)
class LinearTreePolicy(ContextualPolicy[LinPrivState]):
    """Linear estimates that are renewed with every reward, through trees; one estimate unless a subclass has more.

    The sum of a r of an estimate comes from a tree of L levels: each reward releases one node, a reward is in at most L
    of them, and they share the budget. Recommended is the largest  <theta_k, a_k> + width_k ||a_k|| in V_k^-1,

        width = s sqrt(2 log(K/delta) + log(det V/lambda^d)) + sqrt(lambda) S + sqrt(L b D^2 m f/lambda_min(V))

    m: nodes in the sum (at least 1), f = f(d, delta/(K T)), K: estimates; s, S, D, b as in AdaC-OFUL.

    arms: how many arms have an estimate of their own; 0 where all actions share one, which is no parameter.
    """

    supported_budgets: ClassVar[tuple[str, ...]] = GAUSSIAN
    alternative_hint: ClassVar[str] = INSTEAD_OF_PURE
    source: ClassVar[str] = "Neel and Roth 2018, Mitigating bias in adaptive data gathering via differential privacy"
    in_words: ClassVar[str] = (
        "Each option is described by numbers. The option is chosen whose expected outcome is best, after an "
        "allowance that is the larger, the less is known of options like it. What is expected is computed "
        "anew after each outcome."
    )
    changes_on_arrival: ClassVar[bool] = True

    arms: int = field(default=0, init=False)  # in every repr: simulations draw by it, and earlier ones had it
    horizon: int = 10**6
    regulariser: float = 1.0
    delta: float = 1e-3
    parameter_norm: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_optimism(self, "regulariser", "parameter_norm")

    @classmethod
    def example(cls, budget: Budget) -> Self:
        """Two dimensions."""
        return cls(dimension=2, budget=budget, horizon=1000)

    @property
    def n_sums(self) -> int:
        """How many estimates there are."""
        return 1

    @property
    def tree_levels(self) -> int:
        """Enough for the horizon; then another tree begins."""
        return levels_for(self.horizon)

    @cached_property
    def _node_variance(self) -> float:
        """b of each release."""
        return self.budget.shared(self.tree_levels).variance_factor

    def start(self, low: float, high: float) -> LinPrivState:
        """V = lambda I, theta = 0."""
        grams = np.tile(self.regulariser * np.eye(self.dimension), (self.n_sums, 1, 1))
        return self._settled(LinPrivState(low, high, grams, [PrefixSum(np.zeros(self.dimension)) for _ in grams]))

    def _settled(self, state: LinPrivState) -> LinPrivState:
        for k in range(self.n_sums):
            self._settle(state, k)
        return state

    def _settle(self, state: LinPrivState, k: int) -> None:
        values, vectors = np.linalg.eigh(state.grams[k])
        state.inverses[k] = (vectors / values) @ vectors.T
        state.thetas[k] = state.inverses[k] @ state.sums[k].total
        optimism = self.optimism(state.sums[k].noises, state.low, state.high)
        state.widths[k] = optimism.width(float(np.log(values).sum()), float(values[0]))

    def optimism(self, noises: int, low: float, high: float) -> Optimism:
        """Of an estimate whose sum holds so many noises, for rewards in [low, high]."""
        variance = self._node_variance * ((high - low) * self.context_norm) ** 2
        tail = noise_tail(self.dimension, self.delta / (self.n_sums * self.horizon))
        return Optimism(
            shift=self.regulariser,
            floor=self.regulariser,
            log_floor=self.dimension * math.log(self.regulariser),
            half=(high - low) / 2,
            odds=2 * math.log(self.n_sums / self.delta),
            ridge=math.sqrt(self.regulariser) * self.parameter_norm,
            steep=math.inf,
            # Nothing of an arm has noise before its first reward; were it wider after that, played arms would attract.
            noise=math.sqrt(variance * max(1, noises) * tail),
        )

    def choose(self, state: LinPrivState, offered: Offer, step: int) -> int:
        """The largest index; ties go to the first."""
        rows = offered * self.unit
        norms = np.sqrt(((rows[:, None] @ state.inverses)[:, 0] * rows).sum(axis=1))
        return int(((rows * state.thetas).sum(axis=1) + state.widths * norms).argmax())

    def entry_of(self, state: LinPrivState, offered: Offer, played: int) -> tuple[int, tuple[int, ...]]:
        """The sum of the action's estimate, with the action itself as the weight."""
        return self.sum_of(played), super().entry_of(state, offered, played)[1]

    def arrive(self, state: LinPrivState, key: int, weight: tuple[int, ...]) -> Callable[[], None]:
        """The action enters V with its reward, whatever that is."""
        row = np.array(weight) * self.unit
        before = state.grams[key].copy()
        state.grams[key] += np.outer(row, row)

        def undo() -> None:
            state.grams[key] = before

        return undo

    def wait(self, rewards: int) -> float:
        """How many rewards a release is of, once so many are released: one."""
        return 1

    def due(self, state: LinPrivState, key: int, count: int, arrived: Mapping[int, int]) -> bool:
        """With every reward."""
        return True

    def learn(self, state: LinPrivState, release: Release, step: int) -> None:
        """Take in the node, and estimate anew."""
        state.sums[release.key].take(np.array(release.values) * self.unit, self.tree_levels)
        self._settle(state, release.key)

    def estimates(self, state: LinPrivState, delta: float) -> list[Estimate]:
        """Actions change from step to step: there is no list of them. See `predict`, and `Agent.learned` for theta."""
        return []

    def ellipsoid(self, state: LinPrivState, key: int, delta: float) -> Ellipsoid:
        """Where the theta of a sum is, with the noise of its nodes in it (docs/guarantees.md, "Predictions")."""
        total, spread = state.sums[key], (state.high - state.low) * self.context_norm
        noise_sd = math.sqrt(self._node_variance * total.noises) * spread
        known = KnownSum(state.grams[key], total.total, noise_sd, total.leaves, total.leaves, self.n_sums)
        assumed = Assumed(self.regulariser, self.parameter_norm, self.unit)
        return ellipsoid_of_sum(known, assumed, delta, state.low, state.high)

    def dump_state(self, state: LinPrivState) -> dict[str, Any]:
        """Everything, theta too."""
        return state.to_dict() | {"thetas": state.thetas.tolist(), "widths": state.widths.tolist()}

    def load_state(self, data: Mapping[str, Any]) -> LinPrivState:
        """From plain data; what follows is computed anew."""
        sums = [PrefixSum.from_dict(s) for s in data["sums"]]
        return self._settled(LinPrivState(data["low"], data["high"], np.array(data["grams"], float), sums))


@dataclass(frozen=True)
class LinPriv(LinearTreePolicy):
    """LinPriv (Neel and Roth 2018): for each arm a linear estimate of its own, renewed with every reward.

    The rule, and its width, is that of `LinearTreePolicy`, with a tree for each arm. Here noise is Gaussian and the
    budget that of the other policies; the paper has epsilon-DP and Laplace noise.

    arms: K, the number of actions at every step; row k is for arm k.
    """

    name: ClassVar[str] = "linpriv"

    arms: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.arms, bool) or not isinstance(self.arms, int) or self.arms < 1:
            raise InvalidInput(
                f"arms must be how many actions there are at every step, got {self.arms!r}: each has an estimate of "
                "its own; LinPrivShared has one for all"
            )

    @classmethod
    def example(cls, budget: Budget) -> Self:
        """Three arms in two dimensions."""
        return cls(dimension=2, budget=budget, arms=3, horizon=1000)

    @property
    def n_sums(self) -> int:
        """One for each arm."""
        return self.arms

    def sum_of(self, action: int) -> int:
        """The action's own."""
        return action

    def _checked_rows(self, actions: ArrayLike | None) -> Floats:
        """As many rows as arms."""
        rows = super()._checked_rows(actions)
        if len(rows) != self.arms:
            raise InvalidInput(f"actions must have {self.arms} rows, one for each arm, got {len(rows)}")
        return rows


@dataclass(frozen=True)
class LinPrivShared(LinearTreePolicy):
    """LinPriv with one estimate for all actions, of which there may be any number at every step."""

    name: ClassVar[str] = "linpriv-shared"
