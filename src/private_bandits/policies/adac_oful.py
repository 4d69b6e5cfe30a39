"""AdaC-OFUL: optimism for contextual linear bandits that rarely looks at rewards, under Gaussian noise."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from private_bandits.arrays import Floats
from private_bandits.budget import Budget
from private_bandits.ledger import Release
from private_bandits.mechanism.factor import INDEPENDENT, Factor, square_root
from private_bandits.policies.base import Estimate, Offer, Variant, check_variant
from private_bandits.policies.contextual import STEPS, ContextualPolicy
from private_bandits.policies.decoding import DecodedSum
from private_bandits.policies.ellipsoid import Assumed, Ellipsoid, KnownSum, ellipsoid_of_sum
from private_bandits.policies.optimism import (
    GAUSSIAN,
    INSTEAD_OF_PURE,
    check_optimism,
    noise_tail,
    reward_width,
    settle_exploration,
    squared_length,
)

BLOCK = 1024
"""Rewards whose actions are summed at once: their products stay below 2^53, so that floats sum them exactly."""
INT64_HOLDS = 2**61
MOST_RELEASES = 4096
"""What a factor is for at most. With more, it begins anew."""
CORRELATED_STEPS = 2**16
"""Steps of the grid of actions where sums are multiplied before they leave."""
EXPLORATION = 0.1
"""Of the proven width: chosen by the study in benchmarks/exploration.py, as is the regulariser."""
LEAST_REGULARISER, NOISY_REGULARISER = 0.1, 2.0
"""Lambda as published, and in units of the standard deviation of noise on a sum of weight one."""
MOST_REGULARISER = 1e100
"""Where norms are huge."""
ROUNDING = 16 * float(np.finfo(float).eps)


@dataclass
class OFULState:
    """What was released, and the actions whose rewards have arrived since. Public.

    frozen: V at the last release. sums: all released sums added up, with their noise. since: sum of a a' of the actions
    after it whose rewards have arrived, on the grid and without `pending`, the last of them. It is of whole
    numbers, so that nothing drifts in an episode of any length, and it does not matter when pending ones are added.

    Computed from these: theta, and for actions on the grid `slope`, <theta, a> = <slope, a>; `whitener`, ||a|| in V^-1
    is |a whitener|; `optimism`, the same times `exploration` and the width, which is the proven one. room, margin: see
    `AdaCOFUL.due`.
    """

    low: float
    high: float
    releases: int
    rewards: int
    frozen: Floats
    since: NDArray[Any]
    sums: DecodedSum
    pending: list[Floats] = field(init=False, default_factory=list)
    theta: Floats = field(init=False)
    slope: Floats = field(init=False)
    whitener: Floats = field(init=False)
    optimism: Floats = field(init=False)
    log_det: float = field(init=False)
    width: float = field(init=False)
    margin: float = field(init=False)
    room: float = field(init=False)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OFULState) and self.to_dict() == other.to_dict()

    def gather(self) -> NDArray[Any]:
        """`since` with the pending actions added to it."""
        if self.pending:
            rows = np.array(self.pending)
            together = self.since + (rows.T @ rows).astype(np.int64)
            self.since, self.pending = together, []  # at once: an interrupt may come at any call
            if self.since.trace() > INT64_HOLDS:  # no entry exceeds the trace; millions of rewards have arrived
                self.since = self.since.astype(object)  # Python's integers, of any size
        return self.since

    def to_dict(self) -> dict[str, Any]:
        """What the rest follows from, as plain data."""
        plain = {name: getattr(self, name) for name in ("low", "high", "releases", "rewards")}
        sums = {"frozen": self.frozen.tolist(), "total": self.sums.total.tolist(), "sums": self.sums.to_dict()}
        return plain | sums | {"since_steps": self.gather().tolist()}


@dataclass(frozen=True)
class AdaCOFUL(ContextualPolicy[OFULState]):
    """AdaC-OFUL ("Concentrated Differential Privacy for Bandits", Algorithm 3); with NoPrivacy it is RS-OFUL.

    V = lambda I + sum of a a' over the rewards that have arrived. When det V > (1 + C) det V_tau, V_tau the one at the
    last release, the sum of a r since then is released; theta = V^-1 (all released sums added up). Recommended is the
    action of the largest  <theta, a> + width ||a|| in V_tau^-1,

        width = s sqrt(2 log(1/delta) + log(det V_tau/lambda^d)) + sqrt(lambda) S + sqrt(b D^2 l f/lambda_min(V_tau))

    s: half the width of the reward range, S: parameter_norm, D: width of the range times context_norm, l: releases,
    f = d + 2 sqrt(d log(T/delta)) + 2 log(T/delta), b: variance factor of the budget. The old noise stays in the sum.
    This is variant="paper".

    variant="tight" has the same episodes and less noise: releases hold earlier episodes again, so that their noises go
    together (factor.py), and the sum of all carries S_n S_l instead of l of them, S_l = sum of c_k^2 over
    k < l, n = `cap`: 5.6 instead of 60 at l = n = 60. f is the quantile of the chi-square distribution at delta/(2n+2),
    as noise changes at releases only, and delta/2 is left for the rewards. The width is right for any contexts, up to
    the horizon (docs/guarantees.md).

    exploration: what the width is multiplied by. 1 is proven, and far too cautious for use. The default of "tight" is
    0.1, chosen by a study (docs/contextual.md); of "paper" it is 1. Privacy does not depend on it.
    regulariser: lambda. As published it is 0.1. The default of "tight" is that or, if larger, the size of the noise,
    2 sqrt(b) context_norm^2: directions of which nothing is known but noise then stay near zero.
    horizon: T, that the widths are for; the agent goes on after it, with the same privacy.

    >>> from private_bandits import zCDP
    >>> policy = AdaCOFUL(dimension=3, budget=zCDP(0.02), horizon=10**6)
    >>> policy.regulariser, policy.exploration
    (10.0, 0.1)
    """

    name: ClassVar[str] = "adac-oful"
    supported_budgets: ClassVar[tuple[str, ...]] = GAUSSIAN
    alternative_hint: ClassVar[str] = INSTEAD_OF_PURE
    source: ClassVar[str] = "Concentrated Differential Privacy for Bandits, Algorithm 3"
    in_words: ClassVar[str] = (
        "Each option is described by numbers. The option is chosen whose expected outcome is best, after an "
        "allowance that is the larger, the less is known of options like it. What is expected is computed "
        "anew whenever enough was learned since the last time."
    )
    changes_on_arrival: ClassVar[bool] = True
    supports_warm_start: ClassVar[bool] = True
    variants: ClassVar[tuple[Variant, ...]] = ("paper", "tight")
    formerly: ClassVar[Mapping[str, Any]] = {"exploration": 1.0}

    horizon: int = 10**6
    regulariser: float = None  # type: ignore[assignment]  # chosen when the policy is made
    growth: float = 1.0
    delta: float = 1e-3
    parameter_norm: float = 1.0
    variant: Variant = "tight"
    exploration: float = None  # type: ignore[assignment]  # the same
    correlated: bool = field(default=True, repr=False)
    """Whether releases of the tight variant hold earlier episodes again. `for_people` chooses it."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_variant(self)
        tight = self.variant == "tight"
        settle_exploration(self, EXPLORATION if tight else 1.0)
        if self.regulariser is None:
            noise = NOISY_REGULARISER * math.sqrt(self.budget.variance_factor) * self.context_norm**2
            chosen = max(LEAST_REGULARISER, noise if tight else 0.0)
            object.__setattr__(self, "regulariser", min(chosen, MOST_REGULARISER))
        check_optimism(self, "regulariser", "growth", "parameter_norm")

    @classmethod
    def example(cls, budget: Budget) -> Self:
        """Two dimensions, and a regulariser with which few rewards bring a release."""
        return cls(dimension=2, budget=budget, horizon=1000, regulariser=0.1)

    def start(self, low: float, high: float) -> OFULState:
        """V = lambda I, theta = 0."""
        d = self.dimension
        empty = np.zeros((d, d), np.int64)
        sums = DecodedSum(self.decoder, np.zeros(d))
        return self._settled(OFULState(low, high, 0, 0, self.regulariser * np.eye(d), empty, sums))

    def _settled(self, state: OFULState) -> OFULState:
        """With what follows from the released sums, computed anew."""
        values, vectors = np.linalg.eigh(state.frozen)
        values = np.maximum(values, self.regulariser)  # V is at least lambda I, whatever rounding says
        root = vectors / np.sqrt(values)  # V^-1 = root root'
        state.theta = root @ (state.sums.total @ root)
        state.log_det = float(np.log(values).sum())
        state.width = self.width(state.log_det, float(values[0]), state.sums.noise, state.high - state.low)
        state.slope = state.theta * self.unit
        state.whitener = root * self.unit
        state.optimism = self.exploration * state.width * state.whitener
        condition = (1 + self.growth) * float(values[-1] / values[0])
        state.margin = ROUNDING * self.dimension * (self.dimension * condition + abs(state.log_det))
        state.room = self._room(state, math.log1p(self.growth))
        return state

    @cached_property
    def _growths(self) -> int:
        """How often det V can grow by 1 + C, up to the horizon.

        det V > (1 + C)^l lambda^d after l times, and det V <= (lambda + T A^2/d)^d, A the largest norm.
        """
        d = self.dimension
        grown = d * math.log1p(self.horizon * self.context_norm**2 / (self.regulariser * d))
        return int(min(grown / math.log1p(self.growth), 1e18))  # any more is as good as no end

    @cached_property
    def cap(self) -> int:
        """How many releases a factor is for: as many as there may be, up to the horizon."""
        return max(1, min(MOST_RELEASES, self._growths))

    @cached_property
    def factor(self) -> Factor | None:
        """The square root of prefix sums for as many releases as there may be; as published, none."""
        if self.variant != "tight" or self.budget.noise == "none":
            return None
        return square_root(self.cap) if self.correlated else INDEPENDENT

    def for_people(self, rewards: int) -> Self:
        """Return the policy whose sum of all releases carries less noise for people with so many rewards each.

        Rewards of one person in several episodes meet in one release where episodes are held again. With many of them
        independent releases cost less than is won.
        """
        together = replace(self, correlated=True).factor
        if together is None:
            return self
        alone = rewards * INDEPENDENT.prefix_noise(self.cap)
        worth = float(together.spread_cost(rewards) / together.column)
        return replace(self, correlated=worth * together.prefix_noise(self.cap) <= alone)

    @property
    def decoder(self) -> Factor:
        """What the sum of all episodes is decoded with."""
        return self.factor or INDEPENDENT

    @property
    def steps(self) -> int:
        """Fewer where a factor needs room in 64 bits as well."""
        return STEPS if self.factor is None else CORRELATED_STEPS

    @cached_property
    def reward_delta(self) -> float:
        """The probability that rewards lead astray further than the width allows."""
        return self.delta if self.factor is None else self.delta / 2

    @cached_property
    def noise_length(self) -> float:
        """What the squared length of the noise stays below, in units of its variance, at all releases together."""
        if self.factor is None:
            return noise_tail(self.dimension, self.delta / self.horizon)
        # The first release may be a log's, for which det V has to grow by nothing.
        return squared_length(self.dimension, self.delta / (2 * (self._growths + 1)))

    def width(self, log_det: float, least: float, noise: float, spread: float) -> float:
        """Return the proven width. log_det, least: of V_tau and its eigenvalues. spread: the width of the reward range.

        noise: variance of the noise in the sum of all releases, where one release alone has variance one.
        """
        growth = log_det - self.dimension * math.log(self.regulariser)
        strayed = math.sqrt(self.budget.variance_factor * noise * self.noise_length / least)
        ridge = math.sqrt(self.regulariser) * self.parameter_norm
        return reward_width(spread, self.reward_delta, growth) + ridge + strayed * spread * self.context_norm

    def choose(self, state: OFULState, offered: Offer, step: int) -> int:
        """The largest index; ties go to the first."""
        rows = offered.astype(float)
        above = rows.dot(state.optimism)  # for small arrays `dot` takes half the time of `@`
        return int((rows.dot(state.slope) + np.sqrt(np.vecdot(above, above))).argmax())

    def arrive(self, state: OFULState, key: int, weight: tuple[int, ...]) -> Callable[[], None]:
        """The action enters V with its reward, whatever that is."""
        row = np.array(weight, float)
        reached = row.dot(state.whitener)
        state.room -= float(reached.dot(reached))
        state.pending.append(row)
        if len(state.pending) == BLOCK:
            state.gather()

        def undo() -> None:  # exact, pending or not; room stays smaller than it might be, which is safe
            state.since = state.since - np.outer(row, row).astype(np.int64)

        return undo

    def due(self, state: OFULState, key: int, count: int, arrived: Mapping[int, int]) -> bool:
        """When the determinant has grown by the factor 1 + C.

        It is computed only where it may have, with the same answers as if it were computed every time. Let W be a V of
        this episode, M = V_tau^-1/2 (V - W) V_tau^-1/2 and t = tr M, the sum of ||a||^2 in V_tau^-1 over the actions
        since W. As W >= V_tau,

            det V/det W <= det(I + M) <= (1 + t/d)^d

        the latter because a geometric mean of eigenvalues is at most the arithmetic one. So while t is at most
        d (exp(s/d) - 1), log det V has grown by at most s. `room` is what is left of that since the last look, with s
        what is missing to log(1 + C), less a margin for rounding.
        """
        if state.room > 0:
            return False
        v = state.frozen + self._real(state.gather())
        whole = math.log1p(self.growth)
        missing = state.log_det + whole - float(np.linalg.slogdet(v)[1])
        state.room = self._room(state, min(missing, whole))  # more is a rounding error
        return missing < 0

    def _room(self, state: OFULState, missing: float) -> float:
        """How much t may grow before log det V, as computed with rounding errors, can have grown by `missing`.

        Rounding moves log det V by a small multiple of d^2 eps times the condition of V, which within an episode is at
        most 1 + C times that of V_tau, and of d eps times its own size: `margin` is 16 times both, and covers the terms
        of t too. Adding n of them up loses a fraction n eps, here less than 1e-6. Where the margin exceeds what is
        missing, the determinant is computed at every step.
        """
        d = self.dimension
        return (1 - 1e-6) * d * math.expm1((missing - state.margin) / d)

    def _real(self, steps: NDArray[Any]) -> Floats:
        """A sum of a a' on the grid, as it is."""
        return np.asarray(steps.astype(float) * self.unit * self.unit)

    def learn(self, state: OFULState, release: Release, step: int) -> None:
        """Add the released sum to the others, and freeze V."""
        state.sums.take(np.array(release.values) * self.unit)
        state.frozen = state.frozen + self._real(state.gather())
        state.since = np.zeros_like(state.since, np.int64)
        state.releases += 1
        state.rewards += release.count
        self._settled(state)

    def estimates(self, state: OFULState, delta: float) -> list[Estimate]:
        """Actions change from step to step: there is no list of them. See `predict`, and `Agent.learned` for theta."""
        return []

    def ellipsoid(self, state: OFULState, key: int, delta: float) -> Ellipsoid:
        """Where theta is, with the noise of every release so far in it (docs/guarantees.md, "Predictions")."""
        spread = (state.high - state.low) * self.context_norm
        noise_sd = math.sqrt(self.budget.variance_factor * state.sums.noise) * spread
        known = KnownSum(state.frozen, state.sums.total, noise_sd, state.releases, state.rewards)
        assumed = Assumed(self.regulariser, self.parameter_norm, self.unit)
        return ellipsoid_of_sum(known, assumed, delta, state.low, state.high)

    def dump_state(self, state: OFULState) -> dict[str, Any]:
        """Everything, theta too."""
        known = state.to_dict()
        return known | {
            "since": self._real(state.since).tolist(),
            "theta": state.theta.tolist(),
            "width": state.width,
        }

    def dump_arrivals(self, state: OFULState) -> dict[str, Any]:
        """The actions since the last release."""
        return {"since_steps": state.gather().tolist(), "since": self._real(state.since).tolist()}

    def load_state(self, data: Mapping[str, Any]) -> OFULState:
        """From plain data; what follows is computed anew."""
        numbers = {name: data[name] for name in ("low", "high", "releases", "rewards")}
        # Before version 0.8 every release had noise of its own.
        alone = {"before": data["total"], "releases": data["releases"], "values": []}
        sums = DecodedSum.from_dict(self.decoder, data.get("sums", alone))
        frozen = np.array(data["frozen"], float)
        state = self._settled(OFULState(**numbers, frozen=frozen, since=self._loaded_steps(data), sums=sums))
        state.room = 0.0  # how much of it is used is not stored: the next reward looks
        return state

    def _loaded_steps(self, data: Mapping[str, Any]) -> NDArray[Any]:
        if "since_steps" in data:
            steps = np.array(data["since_steps"], object)
        else:  # before version 0.5 sums were of floats
            steps = np.vectorize(round, otypes=[object])(np.array(data["since"], float) / self.unit / self.unit)
        return steps if steps.trace() > INT64_HOLDS else steps.astype(np.int64)
