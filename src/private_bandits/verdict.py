"""The verdict: which arm is best, drawn from releases alone, and right however often one looks.

The arm of the largest mean is declared the winner once it costs too much to believe that any other arm is as good
(policies/evidence.py). docs/guarantees.md has the proof, and docs/looking.md says in plain words why looking is free.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np

from private_bandits.arrays import Floats
from private_bandits.errors import InvalidInput
from private_bandits.ledger import Release
from private_bandits.mechanism.rewards import RewardRange
from private_bandits.pages import in_notebook
from private_bandits.plain_data import printable
from private_bandits.policies import Estimate, Policy
from private_bandits.policies.evidence import ArmEvidence, declared, intervals_of, relative_costs

_TRIALS, _CLOSE = 40, 1e-5
"""Leads tried for the end of a difference's interval, at most, and how close it has to be, in reward ranges."""
_SHOWN = 21
"""Pairs of arms that a notebook shows, at most: of seven arms, all."""

LOG_CONDITION = "the length of a log to start from was not chosen by looking at its rewards"
CONDITIONS = (
    "an arm's rewards are drawn from one distribution, independently of each other and of other arms' rewards",
    "whether and when a reward arrives does not depend on its value",
    "who gets which arm does not depend on the person",
    LOG_CONDITION,
)
"""What a verdict on finite arms assumes. Nothing is assumed of when one looked or stopped."""
LINEAR_CONDITIONS = (
    "the mean reward of an action is linear in it: the sum of the numbers that describe it, each times a fixed weight",
    "which actions were played, and which rewards arrived, does not depend on rewards that were not yet released",
)
"""What a verdict on linear actions assumes."""


class Difference(NamedTuple):
    """How much better one arm is than another, in the units of the rewards: what was seen, and an interval."""

    first: str
    second: str
    mean: float | None
    low: float
    high: float

    @property
    def reversed(self) -> Difference:
        """How much better the second arm is than the first."""
        mean = None if self.mean is None else -self.mean
        return Difference(self.second, self.first, mean, -self.high, -self.low)


class Evidence(Protocol):
    """What the differences of a verdict follow from."""

    def differences(self, delta: float) -> list[Difference]:
        """Return the difference of each pair of arms, for a verdict with this delta."""


@dataclass(frozen=True)
class Verdict:
    """Which arm is best, if that can be said.

    winner: its name; None: nothing can be said. action: its index. delta: the probability that a wrong arm is ever
    declared, at any time, is at most this. Of arms that tie exactly either may be declared. conditions: what that
    assumes. differences: of all pairs of arms. With probability at least 1 - delta, all of their intervals are right
    at all times together. A winner may be declared a little before its differences leave zero, as fewer pairs have to
    be told apart for it.
    """

    winner: str | None
    action: int | None
    delta: float
    conditions: tuple[str, ...]
    _evidence: Evidence = field(repr=False, compare=False)

    @cached_property
    def differences(self) -> list[Difference]:
        """The difference of each pair of arms, the earlier one first, with its interval."""
        return self._evidence.differences(self.delta)

    def difference(self, first: str, second: str) -> Difference:
        """Return how much better one arm is than another, both by name."""
        for found in self.differences:
            if (found.first, found.second) == (first, second):
                return found
            if (found.second, found.first) == (first, second):
                return found.reversed
        raise KeyError(f"there is no pair of arms {first!r} and {second!r}")

    def __str__(self) -> str:
        if self.winner is None:
            return f"No arm can be called the best, with an error probability of {self.delta:g}."
        winner = printable(self.winner)
        return f"{winner} is the best arm. Such a verdict is wrong with a probability of at most {self.delta:g}."

    def _repr_html_(self) -> str | None:
        return in_notebook("private_bandits", "verdict.html", verdict=self, most=_SHOWN)

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict as plain data."""
        pairs = [pair._asdict() for pair in self.differences]
        plain = {"winner": self.winner, "action": self.action, "delta": self.delta}
        return plain | {"conditions": list(self.conditions), "differences": pairs}


@dataclass(frozen=True)
class _Costs:
    """Evidence of arms that is read as costs of belief."""

    names: tuple[str, ...]
    width: float
    arms: Sequence[ArmEvidence]

    @cached_property
    def means(self) -> list[float | None]:
        """The latest mean of each arm, for rewards in [0, 1]."""
        return [float(known[-1].mean) if known else None for known in self.arms]

    def winner(self, delta: float) -> int | None:
        """Return the arm of the largest mean, if no other can be as good."""
        return declared(self.arms, delta)

    def differences(self, delta: float) -> list[Difference]:
        """Return the interval of each pair: two ordered pairs, with their shares of delta each."""
        k = len(self.arms)
        known = [(i, j) for i in range(k) for j in range(k) if i != j and self.arms[i] and self.arms[j]]
        pairs = [(self.arms[i], self.arms[j]) for i, j in known]
        lows = dict(zip(known, largest_leads(pairs, k * (k - 1) / delta).tolist(), strict=True)) if known else {}
        found = []
        for i in range(k):
            for j in range(i + 1, k):
                first, second = self.means[i], self.means[j]
                mean = None if first is None or second is None else (first - second) * self.width
                low, high = self.width * lows.get((i, j), -1.0), -self.width * lows.get((j, i), -1.0)
                found.append(Difference(self.names[i], self.names[j], mean, low, high))
        return found


def largest_leads(known: Sequence[tuple[ArmEvidence, ArmEvidence]], odds: float) -> Floats:
    """Return a lead for each pair that excludes every smaller one, and is close to the largest that does.

    The root of the surplus is bracketed. Costs grow about with the square of the distance, so that between the ends
    their roots are nearly straight.

    Args:
        known: Of each pair of arms, what is known of the first and of the second; both have a release.
        odds: One over the failure probability of each pair.
    """
    low, cost_low = np.full(len(known), -1.0), np.full(len(known), np.inf)
    high = np.clip([float(first[-1].mean) - float(second[-1].mean) for first, second in known], -1.0, 1.0)
    cost_high = np.zeros(len(known))
    middle = 0.5 * (low + high)
    for trial in range(_TRIALS):
        cost = relative_costs(known, middle, odds)
        excluded = cost >= 1.0
        low, cost_low = np.where(excluded, middle, low), np.where(excluded, cost, cost_low)
        high, cost_high = np.where(excluded, high, middle), np.where(excluded, cost_high, cost)
        if (high - low < _CLOSE).all():
            break
        part = (1.0 - np.sqrt(cost_high)) / (np.sqrt(cost_low) - np.sqrt(cost_high))
        part = np.where(np.isfinite(cost_low) & (trial % 3 < 2), np.clip(part, 0.02, 0.98), 0.5)
        # A little beyond the guess, in turn on either side: so both ends come closer.
        nudge = 0.1 * _CLOSE / np.maximum(high - low, _CLOSE) * (1 if trial % 2 else -1)
        middle = high - (high - low) * np.clip(part + nudge, 0.01, 0.99)
    return low


@dataclass(frozen=True)
class _Intervals:
    """Evidence of arms that is read as intervals that hold together."""

    estimates: Sequence[Estimate]
    eliminates: bool = False
    """Whether the policy drops actions with a failure probability of at most delta. Then that decides and nothing else:
    together with intervals, both failures would count."""
    left: int | None = None
    """The one action that the policy has left."""

    def winner(self, delta: float) -> int | None:
        """Return the action that is left; where none is dropped so surely, one whose interval is above all others."""
        if self.eliminates or len(self.estimates) == 1:
            return 0 if len(self.estimates) == 1 else self.left
        best = max(self.estimates, key=lambda found: found.low)
        others = (found.high for found in self.estimates if found.action != best.action)
        return best.action if best.mean is not None and best.low > max(others) else None

    def differences(self, delta: float) -> list[Difference]:
        """Return what the intervals of two arms say of their difference."""
        return list(self._pairs())

    def _pairs(self) -> Iterator[Difference]:
        for place, first in enumerate(self.estimates):
            for second in self.estimates[place + 1 :]:
                known = first.mean is not None and second.mean is not None
                mean = first.mean - second.mean if known else None  # type: ignore[operator]
                yield Difference(first.arm, second.arm, mean, first.low - second.high, first.high - second.low)


@dataclass(frozen=True)
class Closing:
    """The end of a bandit: its whole ledger, and the number of the first closing release."""

    rows: Sequence[Release]
    first: int

    def evidence(self, policy: Policy[Any], state: Any) -> list[ArmEvidence] | None:
        """What is known of each arm at the end."""
        return policy.final_evidence(state, self.rows, self.first)

    def counts(self, arms: int) -> list[int]:
        """Return how many rewards of each arm were released."""
        found = [0] * arms
        for row in self.rows:
            for arm, count in zip(row.keys, row.counts, strict=True):
                found[arm] += count
        return found


def estimates_on(
    state: Any, policy: Policy[Any], delta: float, bounds: RewardRange, closing: Closing | None
) -> list[Estimate]:
    """Return each arm's mean with an interval; after the end from all releases, the closing ones included.

    For linear policies a closing release says something of its own action, and the phases before of all: half of delta
    is for each, and both intervals hold.
    """
    names = policy.arm_names
    known = None if closing is None or not names else closing.evidence(policy, state)
    if known is None or closing is None:
        return policy.estimates(state, delta)
    if policy.setting != "linear":
        return estimates_of(names, bounds, known, closing.counts(len(names)), delta)
    last = [row for row in closing.rows if row.number >= closing.first]
    own = estimates_of(names, bounds, known, Closing(last, closing.first).counts(len(names)), delta / 2)
    return [_both(*pair) for pair in zip(policy.estimates(state, delta / 2), own, strict=True)]


def _both(before: Estimate, closing: Estimate) -> Estimate:
    """Return what two intervals say that both hold, with the mean of the narrower one."""
    if closing.mean is None:
        return before
    narrower = min((before, closing), key=lambda found: (found.mean is None, found.high - found.low))
    low, high = max(before.low, closing.low), min(before.high, closing.high)
    assert narrower.mean is not None
    mean = min(max(narrower.mean, low), high) if low <= high else narrower.mean
    return Estimate(before.action, before.arm, mean, low, max(low, high), before.rewards + closing.rewards)


def verdict_on(
    state: Any, policy: Policy[Any], delta: float, bounds: RewardRange, closing: Closing | None = None
) -> Verdict:
    """Draw a verdict from what a policy has learned, and from the closing releases where there are any.

    Where a policy does not say what its releases are worth, the intervals of `estimates` decide.
    """
    names = policy.arm_names
    if not names:
        raise InvalidInput(
            f"{type(policy).__name__} has other actions at every step, so that none is the best: "
            "predict(actions) says how good each action is"
        )
    linear = policy.setting == "linear"
    known = policy.evidence(state) if closing is None or linear else closing.evidence(policy, state)
    if known is not None:
        return _declared(names, _Costs(names, bounds.width, known), delta, CONDITIONS)
    conditions = LINEAR_CONDITIONS if linear else CONDITIONS
    found = _Intervals(
        estimates_on(state, policy, delta, bounds, closing), policy.eliminates(delta), policy.only_left(state)
    )
    return _declared(names, found, delta, conditions)


def _declared(names: tuple[str, ...], evidence: _Intervals | _Costs, delta: float, conditions: Any) -> Verdict:
    winner = evidence.winner(delta)
    return Verdict(None if winner is None else names[winner], winner, delta, conditions, evidence)


def estimates_of(
    names: tuple[str, ...],
    bounds: RewardRange,
    arms: Sequence[ArmEvidence],
    counts: Sequence[int],
    delta: float,
) -> list[Estimate]:
    """Return the mean of each arm with an interval, from evidence. bounds: of the rewards. counts: rewards of each arm.

    With probability at least 1 - delta they hold for all arms at all times together.
    """
    low, high = bounds.low, bounds.high
    found = []
    for arm, (name, known) in enumerate(zip(names, arms, strict=True)):
        if not known:
            found.append(Estimate(arm, name, None, low, high, 0))
            continue
        ends = intervals_of(known, tuple(len(names) * way.odds / delta for way in known))
        least, most = max(end[0] for end in ends), min(end[1] for end in ends)
        mean = min(max(float(known[-1].mean), least), most) if least <= most else float(known[-1].mean)
        middle, below, above = (low + (high - low) * part for part in (mean, least, most))
        found.append(Estimate(arm, name, middle, below, max(below, above), counts[arm]))
    return found
