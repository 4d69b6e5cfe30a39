"""AdaC-OFUL: optimism for contextual linear bandits that rarely looks at rewards, under Gaussian noise."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np

from private_bandits.budget import Budget, check_positive, check_probability
from private_bandits.errors import InvalidInput
from private_bandits.ledger import Release
from private_bandits.policies.base import Estimate, Offer, check_variant
from private_bandits.policies.contextual import ContextualPolicy, Floats


@dataclass
class OFULState:
    """What was released, and the actions whose rewards have arrived since. Public.

    frozen: V at the last release. since: sum of a a' of the actions after it whose rewards have arrived.
    total: all released sums added up, with the noise of each. width: of the optimism.
    """

    low: float
    high: float
    releases: int
    rewards: int
    frozen: Floats
    since: Floats
    total: Floats
    theta: Floats = field(init=False)
    inverse: Floats = field(init=False)
    log_det: float = field(init=False)
    width: float = field(init=False)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OFULState) and self.to_dict() == other.to_dict()

    def to_dict(self) -> dict[str, Any]:
        """What the rest follows from, as plain data."""
        plain = {name: getattr(self, name) for name in ("low", "high", "releases", "rewards")}
        return plain | {name: getattr(self, name).tolist() for name in ("frozen", "since", "total")}


@dataclass(frozen=True)
class AdaCOFUL(ContextualPolicy[OFULState]):
    """AdaC-OFUL ("Concentrated Differential Privacy for Bandits", Algorithm 3); with NoPrivacy it is RS-OFUL.

    V = lambda I + sum of a a' over the rewards that have arrived. When det V > (1 + C) det V_tau, V_tau the one at the
    last release, the sum of a r since then is released; theta = V^-1 (all released sums added up). Recommended is the
    action of the largest  <theta, a> + width ||a|| in V_tau^-1,

        width = s sqrt(2 log(1/delta) + log(det V_tau/lambda^d)) + sqrt(lambda) S + sqrt(b D^2 l f/lambda_min(V_tau))

    s: half the width of the reward range, S: parameter_norm, D: width of the range times context_norm, l: releases,
    f = d + 2 sqrt(d log(T/delta)) + 2 log(T/delta), b: variance factor of the budget. The old noise stays in the sum.

    horizon: T, that the widths are for; the agent goes on after it, with the same privacy.

    >>> from private_bandits import zCDP
    >>> AdaCOFUL(dimension=3, budget=zCDP(0.1), horizon=10**6).growth
    1.0
    """

    name: ClassVar[str] = "adac-oful"
    notions: ClassVar[tuple[str, ...]] = ("zCDP", "ApproxDP", "RenyiDP", "NoPrivacy")
    source: ClassVar[str] = "Concentrated Differential Privacy for Bandits, Algorithm 3"
    engine: ClassVar[str] = "contextual"
    changes_on_arrival: ClassVar[bool] = True

    horizon: int = 10**6
    regulariser: float = 0.1
    growth: float = 1.0
    delta: float = 1e-3
    parameter_norm: float = 1.0
    variant: str = "paper"

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("regulariser", "growth", "parameter_norm"):
            object.__setattr__(self, name, check_positive(name, getattr(self, name)))
        check_probability("delta", self.delta)
        check_variant(self.variant)
        if isinstance(self.horizon, bool) or self.horizon != int(self.horizon) or self.horizon < 1:
            raise InvalidInput(f"horizon must be a whole number of at least 1, got {self.horizon!r}")
        object.__setattr__(self, "horizon", int(self.horizon))

    @classmethod
    def example(cls, budget: Budget) -> Self:
        """Two dimensions."""
        return cls(dimension=2, budget=budget, horizon=1000)

    def start(self, low: float, high: float) -> OFULState:
        """V = lambda I, theta = 0."""
        d = self.dimension
        return self._settled(OFULState(low, high, 0, 0, self.regulariser * np.eye(d), np.zeros((d, d)), np.zeros(d)))

    def _settled(self, state: OFULState) -> OFULState:
        """With what follows from the released sums, computed anew."""
        values, vectors = np.linalg.eigh(state.frozen)
        state.inverse = (vectors / values) @ vectors.T
        state.log_det = float(np.log(values).sum())
        state.theta = state.inverse @ state.total
        state.width = self.width(state.log_det, float(values[0]), state.releases, state.high - state.low)
        return state

    def width(self, log_det: float, least: float, releases: int, spread: float) -> float:
        """Of the optimism. log_det, least: of V_tau and its eigenvalues. spread: the width of the reward range."""
        d = self.dimension
        growth = log_det - d * math.log(self.regulariser)
        log_odds = math.log(self.horizon / self.delta)
        f = d + 2 * math.sqrt(d * log_odds) + 2 * log_odds
        noise = math.sqrt(self.promise.variance_factor * releases * f / least) * spread * self.context_norm
        rewards = spread / 2 * math.sqrt(2 * math.log(1 / self.delta) + growth)
        return rewards + math.sqrt(self.regulariser) * self.parameter_norm + noise

    def choose(self, state: OFULState, offered: Offer, step: int) -> int:
        """The largest index; ties go to the first."""
        rows = offered * self.unit
        reach = np.sqrt(np.einsum("ij,ij->i", rows @ state.inverse, rows))
        return int((rows @ state.theta + state.width * reach).argmax())

    def arrive(self, state: OFULState, key: int, weight: tuple[int, ...]) -> Callable[[], None]:
        """The action enters V with its reward, whatever that is."""
        row = np.array(weight) * self.unit
        before = state.since
        state.since = before + np.outer(row, row)

        def undo() -> None:
            state.since = before

        return undo

    def due(self, state: OFULState, key: int, count: int, arrived: Mapping[int, int]) -> bool:
        """When the determinant has grown by the factor 1 + C."""
        log_det = float(np.linalg.slogdet(state.frozen + state.since)[1])
        return log_det > state.log_det + math.log1p(self.growth)

    def learn(self, state: OFULState, release: Release, step: int) -> None:
        """Add the released sum to the others, and freeze V."""
        state.total = state.total + np.array(release.values) * self.unit
        state.frozen = state.frozen + state.since
        state.since = np.zeros_like(state.since)
        state.releases += 1
        state.rewards += release.count
        self._settled(state)

    def estimates(self, state: OFULState, delta: float) -> list[Estimate]:
        """Actions change from step to step: there is no list of them. See `Agent.learned` for theta and V."""
        return []

    def dump_state(self, state: OFULState) -> dict[str, Any]:
        """Everything, theta too."""
        return state.to_dict() | {"theta": state.theta.tolist(), "width": state.width}

    def load_state(self, data: Mapping[str, Any]) -> OFULState:
        """From plain data; what follows is computed anew."""
        numbers = [data[name] for name in ("low", "high", "releases", "rewards")]
        arrays: Sequence[Floats] = [np.array(data[name], float) for name in ("frozen", "since", "total")]
        return self._settled(OFULState(*numbers, *arrays))
