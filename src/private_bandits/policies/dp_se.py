"""DP-SE: successive elimination under Laplace noise, for pure differential privacy."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from private_bandits.budget import Budget
from private_bandits.checks import check_positive
from private_bandits.errors import InvalidInput
from private_bandits.ledger import Release
from private_bandits.policies.base import UNIT_WEIGHT, Combination, Estimate, FiniteArmsPolicy, checked_horizon
from private_bandits.policies.closing import planned_for
from private_bandits.policies.evidence import ArmEvidence, Evidence, intervals_of
from private_bandits.policies.phased_elimination import LONGEST, surviving
from private_bandits.policies.waiting import foremost


@dataclass
class EliminationState:
    """What was released, and what is to be played next. Public.

    plays: of each active arm in this epoch; 0: `best` for ever. began: the number of the epoch's first decision.
    best: the active arm of the largest released mean. The lists hold, for each arm, the last epoch that released it (0:
    none), its mean there, the rewards in it, and the noise and rounding of that mean.
    """

    low: float
    high: float
    epoch: int
    active: list[int]
    plays: int
    began: int
    best: int | None
    epochs: list[int]
    means: list[float]
    counts: list[int]
    noise_sd: list[float]
    rounding: list[float]

    def __post_init__(self) -> None:
        self._listed: list[int] | None = None  # the active arms that the two below are of
        self._members: frozenset[int] = frozenset()
        self._complete = 0

    def is_active(self, arm: int) -> bool:
        """Whether the arm is in the list of active ones."""
        if self._listed is not self.active:
            self._look_up()
        return arm in self._members

    def is_complete_with(self, key: int, arrived: Mapping[int, int]) -> bool:
        """Whether all active arms but `key` have their planned rewards.

        Within an epoch an arm that has them keeps them, so the search goes on where it stopped before. It begins anew
        where the last arm before that place has fewer: these are other counts.
        """
        if self._listed is not self.active:
            self._look_up()
        active, plays, place = self.active, self.plays, self._complete
        if place and arrived[active[place - 1]] < plays:
            place = 0
        while place < len(active) and arrived[active[place]] >= plays:
            place += 1
        self._complete = place
        return all(active[i] == key or arrived[active[i]] >= plays for i in range(place, len(active)))

    def _look_up(self) -> None:
        self._listed = None  # an interrupt below leaves it so
        self._members, self._complete = frozenset(self.active), 0
        self._listed = self.active


@dataclass(frozen=True)
class DPSE(FiniteArmsPolicy[EliminationState]):
    """DP-SE (Sajed and Sheffet 2019, "An Optimal Private Stochastic-MAB Algorithm", Algorithm 2).

    Epoch e = 1, 2, ... plays each of the active arms S, in turn, R_e times: for rewards in [0, 1], D = 2^-e and T the
    horizon,

        R_e = ceil(max(32 log(8 |S| e^2 T)/D^2, 8 log(4 |S| e^2 T)/(epsilon D))) + 1

    then releases their means with Laplace noise of scale 1/(epsilon R_e), forgets them, and drops the arms that are
    below the best by more than 2h + 2c, h = sqrt(log(8 |S| e^2 T)/(2 R_e)), c = log(4 |S| e^2 T)/(epsilon R_e). That is
    the publication's failure probability beta at 1/T. Where an arm has more rewards than planned h and c are for those
    that all arms have; a late or missing reward is waited for, and asked for again. One arm left: played for ever.

    Guaranteed: epsilon-pure DP of the published actions, in the interactive model, for every horizon.

    epoch_factor: multiplies R_e; below 1 epochs are shorter than the regret bound needs. As h and c follow what was
    played, arms are dropped as safely.

    >>> from private_bandits import PureDP
    >>> DPSE(n_arms=5, budget=PureDP(1), horizon=10**6).plays(epoch=1, active=5)
    2242
    """

    name: ClassVar[str] = "dp-se"
    supported_budgets: ClassVar[tuple[str, ...]] = ("PureDP", "NoPrivacy")
    source: ClassVar[str] = "Sajed and Sheffet 2019, An Optimal Private Stochastic-MAB Algorithm"
    in_words: ClassVar[str] = (
        "All arms that are left are given equally often, a planned number of times. Then arms that are "
        "clearly worse than the best one are dropped, and this begins again. Once one arm is left, everybody "
        "is given that one."
    )
    alternative_hint: ClassVar[str] = "For zCDP, ApproxDP and RenyiDP use AdaCUCB, whose Gaussian noise is smaller."

    horizon: int = 10**6
    epoch_factor: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "horizon", checked_horizon(self.horizon))
        object.__setattr__(self, "epoch_factor", check_positive("epoch_factor", self.epoch_factor))
        arms = len(self.arm_names)
        if arms > 1 and not self.plays(1, arms):
            raise InvalidInput(f"the first epoch under {self.budget} is too long for exact sums: choose a larger one")

    @classmethod
    def example(cls, budget: Budget) -> Self:
        """Three arms, and epochs that end after a few rewards."""
        return cls(n_arms=3, budget=budget, horizon=1000, epoch_factor=1e-3)

    def _logs(self, epoch: int, active: int) -> tuple[float, float]:
        """Of 8 |S| e^2 T for the rewards, and of 4 |S| e^2 T for the noise."""
        odds = active * epoch**2 * self.horizon
        return math.log(8 * odds), math.log(4 * odds)

    def plays(self, epoch: int, active: int) -> int:
        """R_e; 0 where nothing is left to find out, or sums would outgrow exact arithmetic."""
        if active == 1:
            return 0
        gap, (rewards, noise) = 2.0**-epoch, self._logs(epoch, active)
        length = self.epoch_factor * max(32 * rewards / gap**2, 8 * noise / (self.budget.level * gap))
        return math.ceil(length) + 1 if length < LONGEST else 0

    def half_width(self, epoch: int, active: int, count: int) -> float:
        """h + c of means of `count` rewards, in widths of the reward range."""
        rewards, noise = self._logs(epoch, active)
        return math.sqrt(rewards / (2 * count)) + noise / (self.budget.level * count)

    def kept(self, means: NDArray[np.float64], epoch: int, count: int, width: float) -> NDArray[np.bool_]:
        """Which of the active arms stay, by the means of the epoch; the last axis is the arms."""
        return surviving(means, width * self.half_width(epoch, means.shape[-1], count))

    def start(self, low: float, high: float) -> EliminationState:
        """Everything is active and nothing known."""
        k = len(self.arm_names)
        zeros, none = [0.0] * k, [0] * k
        plays = self.plays(1, k)
        first = 0 if k == 1 else None
        return EliminationState(
            low, high, 1, list(range(k)), plays, 1, first, none[:], zeros[:], none[:], zeros[:], zeros[:]
        )

    def recommend(self, state: EliminationState, waiting: Sequence[int], arrived: Mapping[int, int], step: int) -> int:
        """The active arms in turn, until every planned play has its reward or waits for it; then the best so far.

        Rewards that never come would hold the epoch up: each time twice its length has gone by, what is missing is
        asked for once more.
        """
        if not state.plays and state.best is not None:
            return state.best
        again = 1 + (step - state.began) // (2 * len(state.active) * state.plays)

        def place_in_turn(arm: int) -> int:
            """Planned plays come first, the arm with the fewest; then plays that are asked for again; then the rest."""
            came, open_now, plays = arrived[arm], waiting[arm], state.plays
            if came + open_now < plays:
                return came + open_now
            return plays if open_now < again * (plays - came) else came + open_now + 1

        found = foremost(waiting, state.active, again, lambda: state.active, place_in_turn)
        assert found is not None  # one arm is always active
        if found[0] <= state.plays or state.best is None:
            return found[1]
        return state.best

    def entry(self, state: EliminationState, action: int) -> tuple[int, tuple[int, ...]] | None:
        """Weight one in the arm's own sum; dropped where the arm is not active, or nothing is left to find out."""
        return (action, UNIT_WEIGHT) if state.plays and state.is_active(action) else None

    def due(self, state: EliminationState, key: int, count: int, arrived: Mapping[int, int]) -> bool:
        """When every planned play has its reward."""
        return count >= state.plays and state.is_complete_with(key, arrived)

    def combination(self, state: EliminationState, key: int, arrived: Mapping[int, int]) -> Combination:
        """The sums of all active arms: a reward is in one of them, so together they cost one epsilon."""
        return Combination(tuple(state.active), None)

    def learn(self, state: EliminationState, release: Release, step: int) -> None:
        """Drop what is surely worse, and plan the next epoch."""
        for arm, value, count in zip(release.keys, release.values, release.counts, strict=True):
            state.epochs[arm], state.counts[arm] = state.epoch, count
            state.means[arm] = value / count
            state.noise_sd[arm] = release.noise_sd / count
            state.rounding[arm] = (state.high - state.low) / release.steps / 2
        means = np.array([state.means[arm] for arm in state.active])
        kept = self.kept(means, state.epoch, min(release.counts), state.high - state.low)
        state.best = state.active[int(means.argmax())]
        state.active = [arm for arm, keep in zip(state.active, kept.tolist(), strict=True) if keep]
        state.epoch += 1
        state.plays = self.plays(state.epoch, len(state.active))
        state.began = step

    def estimates(self, state: EliminationState, delta: float) -> list[Estimate]:
        """The last mean of every arm with an interval: a union over arms, epochs and doublings (`evidence`)."""
        k, low, width = len(self.arm_names), state.low, state.high - state.low
        evidence = self.evidence(state)
        known = tuple(own[0] for own in evidence if own)
        ends = iter(intervals_of(known, tuple(k * own.odds / delta for own in known)))
        found = []
        for arm, (name, own) in enumerate(zip(self.arm_names, evidence, strict=True)):
            if not own:
                found.append(Estimate(arm, name, None, low, state.high, 0))
                continue
            least, most = (low + width * end for end in next(ends))
            mean = min(max(state.means[arm], least), most)
            found.append(Estimate(arm, name, mean, least, most, state.counts[arm]))
        return found

    def evidence(self, state: EliminationState) -> list[ArmEvidence]:
        """The last mean of each arm: a union over epochs.

        An arm may have more rewards than planned, and whoever plays arms decides how many. So the planned number is
        doubled until it holds them, and an epoch's share of delta is split over the doublings.
        """
        found: list[ArmEvidence] = []
        width, kind = state.high - state.low, self.budget.noise
        for arm, epoch in enumerate(state.epochs):
            if not epoch:
                found.append(())
                continue
            planned = self.plays(epoch, sum(other >= epoch for other in state.epochs))
            odds, share = planned_for(planned, state.counts[arm])
            mean, rounding = (state.means[arm] - state.low) / width, state.rounding[arm] / width
            sd = state.noise_sd[arm] / width * share
            own = Evidence.of_mean(kind, mean, rounding, state.counts[arm] / share, sd, sd, epoch * (epoch + 1) * odds)
            found.append((own._replace(share=share),))
        return found

    def planned(self, state: EliminationState, key: int) -> int | None:
        """The plays of this epoch."""
        return state.plays or None

    def final_evidence(self, state: EliminationState, rows: Sequence[Release], closing: int) -> list[ArmEvidence]:
        """The plain mean of all rewards of each arm, with the noises of all of its releases.

        Whoever plays arms decides how many rewards an epoch has beyond those planned. So what was planned in all is
        doubled until it holds them.
        """
        k, width, kind = len(state.means), state.high - state.low, self.budget.noise
        totals, counts, planned, squares, numbers = [0.0] * k, [0] * k, [0] * k, [0.0] * k, [0] * k
        for row in rows:
            for arm, value, count in zip(row.keys, row.values, row.counts, strict=True):
                numbers[arm] += 1
                # How many arms are active later depends on rewards that are in this mean: it is counted as if two were.
                planned[arm] += max(1, self.plays(numbers[arm], k if numbers[arm] == 1 else min(k, 2)))
                totals[arm], counts[arm] = totals[arm] + value, counts[arm] + count
                squares[arm] = squares[arm] + row.noise_sd**2
        found: list[ArmEvidence] = []
        peak, rounding = (rows[-1].noise_sd, 0.5 / rows[-1].steps) if rows else (0.0, 0.0)
        for arm, number in enumerate(numbers):
            if not number:
                found.append(())
                continue
            odds, share = planned_for(planned[arm], counts[arm])
            n, sums = counts[arm] / share, (math.sqrt(squares[arm]), peak)
            sd, largest = (part / width / n for part in sums)
            mean = (totals[arm] / counts[arm] - state.low) / width
            own = Evidence.of_mean(kind, mean, rounding, n, sd, largest, number * (number + 1) * odds)
            found.append((own._replace(share=share),))
        return found

    def load_state(self, data: Mapping[str, Any]) -> EliminationState:
        """From plain data."""
        return EliminationState(**data)
