"""Doubling, forgetting and noise: what makes any index policy for finite arms private.

Each arm has one open sum. It is released when it holds as many rewards as were released of the arm before (the first
time: one), and an index of the released means decides which arm is recommended next. With every reward in time this is
the episode structure of the paper's Appendix C: an arm is played until its count has doubled, and only the rewards of
its last episode enter its index.

Privacy needs nothing of the index: see docs/guarantees.md. A new policy is a class with a name and an index.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from private_bandits.arrays import Floats
from private_bandits.budget import BUDGETS
from private_bandits.checks import check_positive
from private_bandits.errors import InvalidInput
from private_bandits.ledger import Release
from private_bandits.policies.base import UNIT_WEIGHT, Estimate, FiniteArmsPolicy, Variant, check_variant
from private_bandits.policies.closing import pooled_evidence, releases_of_arms
from private_bandits.policies.evidence import ArmEvidence, Evidence
from private_bandits.policies.shortlist import FEW, Shortlist
from private_bandits.policies.tails import interval, mean_half_width
from private_bandits.policies.waiting import foremost

_CHOSEN_FROM = {"recommend", "learn", "take", "index", "checked_index", "indices", "columns", "values", "ceilings"}
"""The methods from which a choice follows that is computed late, or from a shortlist."""

RETRY = 32
"""An arm without any reward is tried again at 2 RETRY K decisions, and each time their number has doubled."""


@dataclass
class DoublingState:
    """The releases of each arm, as the policy remembers them. Public.

    released: rewards released of the arm so far. last: those in its last release. releases: how many there were.
    means: mean of the last release, with its noise. noise_sd, rounding: of that mean.
    choice: the arm of the largest index; None before any release. Where policies choose late it is computed when it is
        first read.
    """

    low: float
    high: float
    released: list[int]
    last: list[int]
    releases: list[int]
    means: list[float]
    noise_sd: list[float]
    rounding: list[float]
    choice: int | None
    unseen: int
    """Arms of which nothing has been released."""

    def __post_init__(self) -> None:
        self.shortlist: Shortlist | None = None
        self.left = self.released[:]  # those included that the policy has not learned yet

    def choose_late(self, policy: IndexPolicy, step: int) -> None:
        """Let the policy choose as of this step, once the choice is read."""
        self._late: tuple[IndexPolicy, int] | None = (policy, step)

    def _read_choice(self) -> int | None:
        if self._late is not None:
            policy, step = self._late
            self._set_choice(policy.chosen(self, step))
        return self._choice

    def _set_choice(self, choice: int | None) -> None:
        self._choice = choice
        self._late = None


# Here and not in the class, where `dataclass` would take the property for the default of the field.
DoublingState.choice = property(DoublingState._read_choice, DoublingState._set_choice)  # type: ignore[assignment]


@dataclass(frozen=True)
class IndexPolicy(FiniteArmsPolicy[DoublingState]):
    """Makes any index private: plays the arm of the largest one until its count of rewards has doubled.

    A subclass needs a `name` and an `index`; it is a dataclass only where it has parameters of its own. The index is of
    noisy means, so it should be wide enough for their noise: that is about regret. Guaranteed, whatever the index is:
    the budget, of any of the five kinds, for a run of any length (docs/guarantees.md).

    >>> import private_bandits as pb
    >>> class MOSS(pb.IndexPolicy):
    ...     name = "moss"
    ...     def index(self, means, counts, step, width):
    ...         spread = np.log(np.maximum(step / (self.n_arms * counts), 1.0)) / counts
    ...         return means + width * np.sqrt(spread)
    >>> agent = pb.Agent(MOSS(n_arms=3, budget=pb.zCDP(0.1)))
    >>> agent.ask().action
    0
    >>> result = pb.simulate({"moss": MOSS(n_arms=2, budget=pb.PureDP(1))}, pb.Bernoulli([0.9, 0.1]), 10**6, runs=10)
    >>> del pb.policies.POLICIES["moss"]  # an example leaves nothing behind
    """

    supports_warm_start: ClassVar[bool] = True
    waits_for = "none"
    supported_budgets: ClassVar[tuple[str, ...]] = tuple(BUDGETS)
    source: ClassVar[str] = "not published"
    in_words: ClassVar[str] = (
        "Each arm gets a score, computed from what was released of it. The arm of the best score is given "
        "until it has about as many new outcomes as its last release had. Then the scores are computed anew."
    )
    chooses_late: ClassVar[bool] = False
    """Whether the choice is computed when it is needed, from a shortlist where arms are many: for an index that cannot
    fail, with `ceilings`. A subclass that changes a method which the choice follows from chooses at each release."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for ancestor in cls.__mro__:
            if "chooses_late" in vars(ancestor):
                break
            if not _CHOSEN_FROM.isdisjoint(vars(ancestor)):
                cls.chooses_late = False
                break

    @abstractmethod
    def index(self, means: Floats, counts: Floats, step: Any, width: float) -> Floats:
        """The index of every arm from released means of `counts` rewards each, at `step`.

        Means are in units of the rewards, and their noise may take them out of the reward range. The last axis of means
        and counts is the arms: an agent gives one row, of those arms that have a release, and a
        simulation a row for each run, with a column of steps. numpy's functions, element by element or along axis=-1,
        do for both; np.vectorize(..., signature="(k),(k),()->(k)") makes a function of one row fit. width is high - low
        of the rewards. Ties go to the first arm.
        """

    def checked_index(self, means: Floats, counts: Floats, step: Any, width: float) -> Floats:
        """The index; refused where it is not a number for each arm."""
        found = np.asarray(self.index(means, counts, step, width))
        if found.shape != means.shape:
            raise InvalidInput(
                f"the index of {type(self).__name__} must keep the shape {means.shape} of means, whose last axis is "
                f"the arms, got {found.shape}"
            )
        if np.isnan(found).any():
            raise InvalidInput(
                f"the index of {type(self).__name__} is not a number: noise takes means out of the reward range, so "
                "clip them where the index needs it"
            )
        return found

    def deviation(self, count: int, noise_sd: float, log_inv_failure: float, width: float) -> float:
        """How far a released mean of `count` rewards strays, but for a probability of 2 exp(-log_inv_failure)."""
        return mean_half_width(self.budget.noise, count, noise_sd, log_inv_failure, width)

    def start(self, low: float, high: float) -> DoublingState:
        """Nothing released yet."""
        k = len(self.arm_names)
        zeros = [0.0] * k
        return DoublingState(low, high, [0] * k, [0] * k, [0] * k, zeros[:], zeros[:], zeros[:], choice=None, unseen=k)

    def recommend(self, state: DoublingState, waiting: Sequence[int], arrived: Mapping[int, int], step: int) -> int:
        """First every arm once; then the choice. Nothing released at all: the arm with fewest open decisions."""
        if state.unseen:
            found = unseen_arm(state.released, waiting, step)
            if found is not None:
                arm, now = found
                if now or (state.unseen == len(waiting) and state.choice is None):
                    return arm
        choice = state._choice if state._late is None else state.choice  # a property takes longer
        return min(range(len(waiting)), key=waiting.__getitem__) if choice is None else choice

    def entry(self, state: DoublingState, action: int) -> tuple[int, tuple[int, ...]]:
        """Weight one in the arm's own sum."""
        return action, UNIT_WEIGHT

    def due(self, state: DoublingState, key: int, count: int, arrived: Mapping[int, int]) -> bool:
        """Whether an arm's unreleased rewards equal its released ones. The first reward of an arm leaves at once."""
        released, left = state.released[key], state.left[key]
        if left > released:  # more has left than the policy has learned
            released = left
        return count >= released and count > 0

    def leave(self, state: DoublingState, rewards: Mapping[int, int]) -> Callable[[], None]:
        """Count the rewards that leave: `due` need not wait until the release is learned."""
        before = {key: state.left[key] for key in rewards}
        for key, count in rewards.items():  # of a log, or before a restart, nobody told that they left
            state.left[key] = max(before[key], state.released[key]) + count

        def undo() -> None:
            for key, count in before.items():
                state.left[key] = count

        return undo

    def learn(self, state: DoublingState, release: Release, step: int) -> None:
        """Take in what was released of an arm, and choose again."""
        arm = release.key
        state.unseen -= state.released[arm] == 0
        self.take(state, release)
        if not self.chooses_late:
            state.choice = self._largest(state, step)
            return
        if state.shortlist is not None:
            state.shortlist.note(arm, self.columns(state, [arm])[:, 0])
        state.choose_late(self, step)

    def chosen(self, state: DoublingState, step: int) -> int:
        """The arm of the largest index at a step, among those that have a release. Ties go to the first."""
        if len(state.last) <= FEW:
            return self._largest(state, step)
        if state.shortlist is None:
            columns = self.columns(state, range(len(state.last)))
            state.shortlist = Shortlist(columns, np.array(state.last) > 0)
        return state.shortlist.best(partial(self.values, state), partial(self.ceilings, state), step)

    def _largest(self, state: DoublingState, step: int) -> int:
        """The same, from the index of every arm."""
        seen = [arm for arm, n in enumerate(state.last) if n]
        return seen[int(self.indices(state, seen, step).argmax())]

    def take(self, state: DoublingState, release: Release) -> None:
        """Forget the arm's earlier mean and take the new one."""
        arm, weight = release.key, release.weighted_rewards
        state.released[arm] += release.count
        state.last[arm] = release.count
        state.releases[arm] += 1
        state.means[arm] = release.values[0] / weight
        state.noise_sd[arm] = release.noise_sd / weight
        state.rounding[arm] = release.rounding / weight

    def indices(self, state: DoublingState, seen: Sequence[int], step: int) -> Floats:
        """The index of each arm in `seen`, those that have a release."""
        return self.values(state, self.columns(state, seen), step)

    def columns(self, state: DoublingState, arms: Sequence[int]) -> Floats:
        """Return what the indices of these arms follow from, a column each: mean and rewards of the last release."""
        return np.array([[state.means[arm] for arm in arms], [state.last[arm] for arm in arms]], float)

    def values(self, state: DoublingState, columns: Floats, step: int) -> Floats:
        """The index of each column."""
        return self.checked_index(columns[0], columns[1], step, state.high - state.low)

    def ceilings(self, state: DoublingState, columns: Floats, first: int, last: int) -> Floats:
        """Return what no column's index exceeds from one step to another: the index at the last, if it grows.

        Only read where policies choose late. Rounded operations grow with their arguments as exact ones do.
        """
        return self.values(state, columns, last)

    def estimates(self, state: DoublingState, delta: float) -> list[Estimate]:
        """Released means with intervals.

        The j-th release of an arm always holds the same number of rewards, so a union over arms and j, with
        delta/(K j (j+1)) each, makes the intervals right for all arms at all times together.
        """
        k = len(self.arm_names)
        found = []
        for arm, name in enumerate(self.arm_names):
            j = state.releases[arm]
            if not j:
                found.append(Estimate(arm, name, None, state.low, state.high, 0))
                continue
            half_width = self.half_width(state, arm, math.log(2 * k * j * (j + 1) / delta)) + state.rounding[arm]
            found.append(interval(arm, name, state.means[arm], half_width, state.last[arm], state.low, state.high))
        return found

    def evidence(self, state: DoublingState) -> list[ArmEvidence] | None:
        """The last mean of each arm. A subclass that reads releases in another way has to say what they are worth."""
        if not self.as_planned:
            return None
        return [self.evidence_of(state, arm) for arm in range(len(state.means))]

    def evidence_of(self, state: DoublingState, arm: int) -> ArmEvidence:
        """What is known of one arm: a plain mean of `last` rewards, with one noise in it."""
        return self.plain_evidence(state, arm, state.noise_sd[arm])

    def plain_evidence(self, state: DoublingState, arm: int, peak: float) -> ArmEvidence:
        """Return the evidence of a plain mean. peak: standard deviation of the largest noise in it."""
        j, width = state.releases[arm], state.high - state.low
        if not j:
            return ()
        mean, parts = (state.means[arm] - state.low) / width, (state.rounding[arm], state.noise_sd[arm], peak)
        rounding, sd, largest = (part / width for part in parts)
        return (Evidence.of_mean(self.budget.noise, mean, rounding, state.last[arm], sd, largest, j * (j + 1)),)

    def planned(self, state: DoublingState, key: int) -> int | None:
        """The least number of rewards for which the arm is due."""
        if not self.as_planned:
            return None
        high = 1
        while not self.due(state, key, high, {}):
            high *= 2
        low = high // 2
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.due(state, key, middle, {}) else (middle, high)
        return high

    def final_evidence(self, state: DoublingState, rows: Sequence[Release], closing: int) -> list[ArmEvidence] | None:
        """All releases of each arm together, those that the policy forgot included."""
        if not self.as_planned:
            return None
        found = []
        for arm, own in enumerate(releases_of_arms(rows, len(state.means))):
            planned = self.planned(state, arm) if own and own[-1].number >= closing else None
            found.append(pooled_evidence(own, planned, self.factor, state.low, state.high - state.low))
        return found

    def half_width(self, state: DoublingState, arm: int, log_inv_failure: float) -> float:
        """How far the mean of an arm strays, but for a probability of 2 exp(-log_inv_failure)."""
        return self.deviation(state.last[arm], state.noise_sd[arm], log_inv_failure, state.high - state.low)

    def load_state(self, data: Mapping[str, Any]) -> DoublingState:
        """From plain data."""
        # Version 0.8 wrote two empty lists more, for a policy that remembered all releases (legacy.py).
        return DoublingState(**{name: part for name, part in data.items() if name not in ("kept", "spread")})


@dataclass(frozen=True)
class ConfidenceBoundPolicy(IndexPolicy):
    """An index that adds to the mean a width that grows with beta. Privacy does not depend on beta."""

    beta: float = 3.1
    variant: Variant = "paper"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "beta", check_positive("beta", self.beta))
        check_variant(self)


def unseen_arm(released: Sequence[int], waiting: Sequence[int], step: int) -> tuple[int, bool] | None:
    """Return the first arm to be tried of those without a release, and whether it is to be tried now.

    That is one without an open decision. An arm whose first rewards never come is tried again now and then, so that no
    arm is lost for ever. If none is to be tried now, it is the arm with the fewest open decisions.
    """
    # An arm with w open decisions is tried again from step RETRY K 2^w on. No run has 2^64 steps.
    level = min(max((step // (RETRY * len(waiting))).bit_length() - 1, 0), 63)

    def unseen() -> Iterator[int]:
        return (arm for arm, count in enumerate(released) if not count)

    def waits(arm: int) -> int | None:
        return None if released[arm] else max(waiting[arm], level)

    found = foremost(waiting, released, level, unseen, waits)
    return None if found is None else (found[1], found[0] <= level)
