"""Phased elimination for linear bandits: play a design, release what was learned, drop what is surely worse.

Phase l plays the arms of a design for the active actions, c_l pi(a) times each. Its sums leave in one release, from
which theta is estimated, and actions are dropped that seem worse than the best by more than twice a width. As published
that is max(2^-l, the width really reached); tight_phases.py has another. Every phase starts from nothing, so each
reward is in one release (docs/guarantees.md).

Lengths are in the paper's units, in which the reward range is two wide; other ranges are scaled, never shifted: a
shift would not be linear in the action.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from private_bandits.arrays import Floats
from private_bandits.budget import Budget
from private_bandits.checks import check_positive, check_probability
from private_bandits.design.combining import cheapest_combinations
from private_bandits.design.optimal import RANK_TOLERANCE, Design, optimal_design, small_design
from private_bandits.errors import InvalidInput
from private_bandits.ledger import Release
from private_bandits.policies.base import UNIT_WEIGHT, Combination, Estimate, Prediction, Variant, check_variant
from private_bandits.policies.closing import planned_for
from private_bandits.policies.ellipsoid import predicted
from private_bandits.policies.evidence import ArmEvidence, Evidence
from private_bandits.policies.fit import Fit, Placement
from private_bandits.policies.linear import LinearPolicy, Rows
from private_bandits.policies.tails import interval, noise_half_width
from private_bandits.policies.tight_phases import Allocation

LONGEST = 2**30
"""Planned rewards of a phase that exact sums have room for. The phase after that is not begun."""

Solver = Callable[[Floats, float], Design]
"""From vectors and a tolerance to a design."""

ILL = 1e13
"""Condition of the played actions beyond which floats leave nothing of theta."""


@dataclass
class PhasedState:
    """What was released, and what is to be played next. Public.

    plan: how often each action of the design is to be played in this phase, in order; empty: `best` for ever.
    began: the number of the phase's first decision. best: the active action of the largest released mean.
    theta, width: the last estimate, and half of the gap from which an action was surely dropped.
    The lists hold, for each action, the last release that says something of it: its phase (0: none), the mean, ||a|| in
    V^-1, the standard deviation of the noise and the largest part that one draw has in it, what rounding may add, and
    the rewards in the release.
    """

    low: float
    high: float
    phase: int
    active: list[int]
    plan: dict[int, int]
    began: int
    best: int | None
    theta: list[float] | None
    width: float
    phases: list[int]
    means: list[float]
    leverage: list[float]
    noise_sd: list[float]
    noise_peak: list[float]
    rounding: list[float]
    rewards: list[int]


@dataclass(frozen=True)
class PhasedElimination(LinearPolicy[PhasedState]):
    """Elimination in phases of optimal design.

    delta: the probability that the best action is dropped, at most. tol: of the design. phase_factor: multiplies the
    length of all phases; below 1 they are shorter than the regret bound needs, and as the width really reached
    decides what is dropped, that stays right. Privacy depends on none of them.
    """

    in_words: ClassVar[str] = (
        "Each arm is described by numbers, so that outcomes of one arm also say something of the others. The "
        "trial has phases. In each phase the arms from which most can be learned are given a planned number "
        "of times. Then arms that seem clearly worse than the best one are dropped."
    )

    placement: ClassVar[Placement]

    delta: float = 1e-3
    variant: Variant = "paper"
    tol: float = 1e-3
    phase_factor: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_variant(self)
        check_probability("delta", self.delta)
        object.__setattr__(self, "tol", check_positive("tol", self.tol))
        object.__setattr__(self, "phase_factor", check_positive("phase_factor", self.phase_factor))
        if self.tol > 1:
            raise InvalidInput(f"tol must be at most 1, got {self.tol}")

    @classmethod
    def example(cls, budget: Budget) -> Self:
        """Three actions in a plane, all of them in the design, and phases that end after a few rewards."""
        return cls(actions=((0.9, 0.0), (-0.45, 0.8), (-0.4, -0.7)), budget=budget, phase_factor=2e-3)

    @property
    def weight_room(self) -> int:
        """For weights that are rounded relative to the largest of them."""
        return 2**9

    @property
    def solver(self) -> Solver:
        """What finds the design."""
        return optimal_design

    @property
    def lead(self) -> float:
        """How often the best action so far is played beside the design, which is played once."""
        return 0.0

    # What is public before a reward is seen.

    def design(self, active: Sequence[int]) -> Design:
        """The design for the active actions; the same for all budgets, and solved once."""
        return _design(self.rows, tuple(active), self.tol, self.solver)

    def mix(self, active: Sequence[int], best: int | None = None) -> Allocation:
        """What is played, in which shares. best: the best action so far, if anything is known."""
        return _mix(self.rows, tuple(active), self.tol, self.solver, self.lead, best)

    @abstractmethod
    def length(self, phase: int, active: Sequence[int], best: int | None = None) -> float:
        """c_l, for an action whose share is one."""

    def plan(self, phase: int, active: Sequence[int], best: int | None = None) -> dict[int, int]:
        """How often each action is played, in order.

        Nothing where there is nothing to find out, or no way to: a phase that has begun must not fail.
        """
        rows = self.vectors[list(active)]
        if (rows == rows[0]).all():
            return {}
        try:
            length = self.phase_factor * self.length(phase, active, best)
            if not length:
                return {}  # floats see no distance between these: as if they were equal
            mix = self.mix(active, best)
            found = mix.condition < ILL and (1 + self.lead) * length < LONGEST
        except (InvalidInput, np.linalg.LinAlgError):
            found = False
        if found:
            return {arm: math.ceil(length * share) for arm, share in mix.shares.items()}
        if phase == 1:
            raise InvalidInput(
                "actions cannot be told apart in floating point, or the first phase is too long for exact sums: "
                "measure features in units that make actions alike in size, or use a smaller phase_factor"
            )
        return {}

    def log_inv_failure(self, phase: int) -> float:
        """log(4 K l(l+1)/delta): half of delta for the rewards and half for the noise, shared by actions and phases."""
        return math.log(4 * len(self.rows) * phase * (phase + 1) / self.delta)

    def length_for_own_noise(self, phase: int, active: Sequence[int]) -> float:
        """Long enough for the rewards and for the noise of this placement to err by beta_l/2 each, at every action.

        With V = c V(pi), the rewards' part is sqrt(2 g/c log(4/delta_l)), g the design's leverage, and the noise at an
        action falls as 1/c for every placement.
        """
        design, beta, log_inv_failure = self.design(active), 2.0**-phase, self.log_inv_failure(phase)
        mix = self.mix(active)
        fit, vectors = mix.fit, mix.vectors
        weights = type(self).placement(fit)
        noise = self.noise_half_width(
            fit.whitened(vectors) @ fit.decoder(weights), self.noise_sd(weights, 2.0), log_inv_failure
        )
        return 8 * design.leverage / beta**2 * log_inv_failure + 2 / beta * noise

    def noise_sd(self, weights: Floats | None, width: float) -> float:
        """Standard deviation of each draw of noise on what is released with these weights; width: of the rewards."""
        columns = np.ones((1, 1)) if weights is None else weights
        budget = self.budget
        if budget.noise == "laplace":
            return math.sqrt(2) * width * float(np.abs(columns).sum(axis=0).max()) / budget.level
        return width * math.sqrt(budget.variance_factor) * float(np.linalg.norm(columns, axis=0).max())

    def noise_half_width(self, parts: Floats, noise_sd: float, log_inv_failure: float) -> float:
        """How far the noise strays at the action where it strays most. parts: of each draw in each action."""
        sd, peak = noise_sd * np.linalg.norm(parts, axis=1), noise_sd * np.abs(parts).max(axis=1)
        return max(self.noise_width(s, p, log_inv_failure) for s, p in zip(sd.tolist(), peak.tolist(), strict=True))

    def width(self, phase: int, whitened: Floats, decoder: Floats, noise_sd: float, width: float) -> float:
        """max(beta_l, how far the estimate of an active action may really be off), in units of the rewards.

        whitened: the active actions (Fit.whitened). width: of the reward range.
        """
        return max(2.0**-phase * width / 2, self.reached(phase, whitened, decoder, noise_sd, width))

    def reached(self, phase: int, whitened: Floats, decoder: Floats, noise_sd: float, width: float) -> float:
        """How far the estimate of an active action may really be off: by the rewards, and by the noise."""
        log_inv_failure = self.log_inv_failure(phase)
        rewards = width / 2 * float(np.linalg.norm(whitened, axis=1).max()) * math.sqrt(2 * log_inv_failure)
        return rewards + self.noise_half_width(whitened @ decoder, noise_sd, log_inv_failure)

    def slack(
        self, phase: int, means: Floats, whitened: Floats, decoder: Floats, noise_sd: float, width: float
    ) -> float | Floats:
        """An active action stays if it seems worse than the best by at most twice this.

        means: the active actions' estimates, a row a run. The answer has such rows, or is one number for all.
        """
        return self.width(phase, whitened, decoder, noise_sd, width)

    def half_width(self, rounding: float, rewards: float, noise: float, peak: float, odds: float) -> float:
        """How far an estimate may be off, but for a probability of 1/odds: half for rewards, half for noise.

        rewards: a standard deviation. noise, peak: those of `noise_width`. rounding: at most, and surely.
        """
        log_inv_failure = math.log(4 * odds)
        return rounding + rewards * math.sqrt(2 * log_inv_failure) + self.noise_width(noise, peak, log_inv_failure)

    def noise_width(self, sd: float, peak: float, log_inv_failure: float) -> float:
        """Return how far the noise at an action strays, but for a probability of 2 exp(-log_inv_failure)."""
        return noise_half_width(self.budget.noise, sd, peak, log_inv_failure)

    # The agent's side.

    def start(self, low: float, high: float) -> PhasedState:
        """Everything is active and nothing known."""
        k = len(self.rows)
        everything, zeros = list(range(k)), [0.0] * k
        plan = self.plan(1, everything)
        lists = (zeros[:], zeros[:], zeros[:], zeros[:], zeros[:])
        return PhasedState(low, high, 1, everything, plan, 1, None, None, 0.0, [0] * k, *lists, [0] * k)

    def recommend(self, state: PhasedState, waiting: Sequence[int], arrived: Mapping[int, int], step: int) -> int:
        """What the plan still misses, in its order; then the best action so far, or more of the design.

        Decisions whose rewards never come, and are not given up, would hold the phase up: each time twice the phase's
        length has gone by, what is missing is asked for once more.
        """
        for arm, planned in state.plan.items():
            if arrived[arm] + waiting[arm] < planned:
                return arm
        if state.plan:
            again = 1 + (step - state.began) // (2 * sum(state.plan.values()))
            for arm, planned in state.plan.items():
                if waiting[arm] < again * (planned - arrived[arm]):
                    return arm
        if state.best is None:
            plan = state.plan or {state.active[0]: 1}
            return min(plan, key=lambda arm: (arrived[arm] + waiting[arm]) / plan[arm])
        return state.best

    def entry(self, state: PhasedState, action: int) -> tuple[int, tuple[int, ...]] | None:
        """Weight one in the action's own sum; dropped where the phase's design does not have the action."""
        return (action, UNIT_WEIGHT) if action in state.plan else None

    def due(self, state: PhasedState, key: int, count: int, arrived: Mapping[int, int]) -> bool:
        """When every planned play has its reward."""
        plan = state.plan
        return count >= plan[key] and all(arm == key or arrived[arm] >= planned for arm, planned in plan.items())

    def combination(self, state: PhasedState, key: int, arrived: Mapping[int, int]) -> Combination:
        """All sums of the phase, with weights from what was really played."""
        arms = tuple(state.plan)
        weights = type(self).placement(self._fit(state.active, arms, [arrived[arm] + (arm == key) for arm in arms]))
        return Combination(arms, None if weights is None else weights.tolist())

    def _fit(self, active: Sequence[int], arms: Sequence[int], counts: Sequence[float]) -> Fit:
        return Fit.of(self.vectors[list(arms)], np.array(counts, float), self.design(active).basis)

    def learn(self, state: PhasedState, release: Release, step: int) -> None:
        """Estimate theta, drop what is surely worse, and plan the next phase."""
        fit = self._fit(state.active, release.keys, release.counts)
        decoder = fit.decoder(None if release.weights is None else np.array(release.weights))
        phi = decoder @ np.array(release.values)
        state.theta = fit.theta(phi).tolist()
        self._note(state, release, fit, decoder, phi)
        whitened = fit.whitened(self.vectors[state.active])
        means = np.array([[state.means[arm] for arm in state.active]])
        slack = self.slack(state.phase, means, whitened, decoder, release.noise_sd, state.high - state.low)
        state.width = float(np.max(slack))
        kept = surviving(means, slack)[0]
        state.best = state.active[int(means.argmax())]
        state.active = [arm for arm, keep in zip(state.active, kept.tolist(), strict=True) if keep]
        state.phase += 1
        state.plan = self.plan(state.phase, state.active, state.best)
        state.began = step

    def _note(self, state: PhasedState, release: Release, fit: Fit, decoder: Floats, phi: Floats) -> None:
        """Keep what the release says of every action in the span of what was played."""
        inside = self.vectors - self.vectors @ fit.basis @ fit.basis.T
        near = np.linalg.norm(inside, axis=1) <= RANK_TOLERANCE * np.linalg.norm(self.vectors, axis=1)
        whitened = fit.whitened(self.vectors)
        leverage, parts = np.linalg.norm(whitened, axis=1), whitened @ decoder
        sd, peak = release.noise_sd * np.linalg.norm(parts, axis=1), release.noise_sd * np.abs(parts).max(axis=1)
        # Rounding moves each of n rewards by half a step at most, hence <theta, a> by sqrt(n) ||a|| times that.
        rounding = (state.high - state.low) / release.steps / 2 * math.sqrt(release.count) * leverage
        means = whitened @ phi
        for arm in np.flatnonzero(near).tolist():
            state.phases[arm] = state.phase
            state.means[arm] = float(means[arm])
            state.leverage[arm] = float(leverage[arm])
            state.noise_sd[arm], state.noise_peak[arm] = float(sd[arm]), float(peak[arm])
            state.rounding[arm] = float(rounding[arm])
            state.rewards[arm] = release.count

    def estimates(self, state: PhasedState, delta: float) -> list[Estimate]:
        """The last mean of every action, with an interval.

        A union over actions and phases, delta/(K l(l+1)) each, makes the intervals right together at all times.
        """
        found = []
        for arm, name in enumerate(self.arm_names):
            phase, mean = state.phases[arm], state.means[arm]
            if not phase:
                found.append(Estimate(arm, name, None, state.low, state.high, 0))
                continue
            half_width = self._half_width_of(state, arm, delta)
            found.append(interval(arm, name, mean, half_width, state.rewards[arm], state.low, state.high))
        return found

    def planned(self, state: PhasedState, key: int) -> int | None:
        """The plays of the action in this phase."""
        return state.plan.get(key)

    def final_evidence(self, state: PhasedState, rows: Sequence[Release], closing: int) -> list[ArmEvidence]:
        """What the closing release of each action says of its mean, by itself."""
        found: list[ArmEvidence] = [() for _ in self.rows]
        width, odds = state.high - state.low, state.phase * (state.phase + 1.0)
        for row in rows:
            if row.number < closing:
                continue
            doublings, share = planned_for(state.plan[row.key], row.count)
            sd = row.noise_sd / width * share / row.count
            mean, n = (row.values[0] / row.count - state.low) / width, row.count / share
            own = Evidence.of_mean(self.budget.noise, mean, 0.5 / row.steps, n, sd, sd, odds * doublings)
            found[row.key] = (own._replace(share=share),)
        return found

    def eliminates(self, delta: float) -> bool:
        """With probability at least 1 - self.delta the best action is never dropped."""
        return self.delta <= delta

    def only_left(self, state: PhasedState) -> int | None:
        """The only active action."""
        return state.active[0] if len(state.active) == 1 else None

    def _half_width_of(self, state: PhasedState, arm: int, delta: float) -> float:
        """How far the last mean of an action may be off. The action's last phase has delta/(K l(l+1)) for it."""
        phase = state.phases[arm]
        odds = len(self.rows) * phase * (phase + 1) / delta
        rewards, noise = (state.high - state.low) / 2 * state.leverage[arm], state.noise_sd[arm]
        return self.half_width(state.rounding[arm], rewards, noise, state.noise_peak[arm], odds)

    def predict(self, state: PhasedState, actions: ArrayLike | None, delta: float) -> list[Prediction]:
        """The mean reward of any action: from the policy's own actions, of which it is a combination.

        If a = sum of c_k a_k, its mean is that of the means of the a_k, and off by |c_k| half_width_k at most, added
        up: intervals of all a_k hold together. The c_k are those of the least such sum, nearly. No actions: its own.
        """
        rows = self.vectors if actions is None else self._rows_of(actions)
        arms = [arm for arm, phase in enumerate(state.phases) if phase]
        if not arms:
            return [Prediction(None, state.low, state.high) for _ in rows]
        means = np.array([state.means[arm] for arm in arms])
        half_widths = np.array([self._half_width_of(state, arm, delta) for arm in arms])
        found = cheapest_combinations(self.vectors[arms], half_widths, rows)
        return [
            Prediction(None, state.low, state.high)
            if np.isnan(c).any()
            else predicted(float(c @ means), float(np.abs(c) @ half_widths), state.low, state.high)
            for c in found
        ]

    def load_state(self, data: Mapping[str, Any]) -> PhasedState:
        """From plain data, in which keys are texts."""
        return PhasedState(**{**data, "plan": {int(arm): planned for arm, planned in data["plan"].items()}})


@lru_cache(maxsize=1024)
def _design(actions: Rows, active: tuple[int, ...], tol: float, solver: Solver) -> Design:
    """Where floats cannot reach the tolerance the small design serves too: a phase must not fail for it."""
    vectors = np.array([actions[i] for i in active])
    found = None
    with suppress(InvalidInput):
        found = solver(vectors, tol)
    found = found or small_design(vectors)
    for array in (found.weights, found.support, found.basis):
        array.flags.writeable = False  # shared by all agents
    return found


@lru_cache(maxsize=1024)
def _mix(
    actions: Rows, active: tuple[int, ...], tol: float, solver: Solver, lead: float, best: int | None
) -> Allocation:
    design = _design(actions, active, tol, solver)
    shares = {active[i]: float(design.weights[i]) for i in design.support.tolist()}
    if lead and best is not None:
        # First, as it costs least: the horizon may cut the phase.
        shares = {best: lead + shares.pop(best, 0.0), **shares}
    played = np.array([actions[arm] for arm in shares])
    fit = Fit.of(played, np.array(list(shares.values())), design.basis)
    return Allocation(shares, fit, np.array([actions[arm] for arm in active]))


def surviving(means: Floats, width: float | Floats) -> NDArray[np.bool_]:
    """Which actions stay: those whose estimated gap is at most twice the width. The last axis is the actions."""
    return np.asarray(means.max(axis=-1, keepdims=True) - means <= 2 * width)
