"""Which arm each simulated run plays while rewards are outstanding or were lost: what `recommend` does, for many runs.

A decision is ahead, for its arm, from when it is made until its reward is released or it is given up.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import accumulate, repeat
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from private_bandits.arrays import Floats, Integers
from private_bandits.policies.adac_top_two import TIE as NEARLY_EQUAL
from private_bandits.policies.adac_top_two import costs_of_challengers
from private_bandits.policies.doubling import RETRY
from private_bandits.policies.imed_index import LARGEST_MEAN, TIE, all_discounted, costs
from private_bandits.simulation.finite import LastReleases, Runs
from private_bandits.simulation.halving import HalvingRuns
from private_bandits.simulation.imed import ImedRuns
from private_bandits.simulation.remembering import RememberedReleases
from private_bandits.simulation.top_two import TopTwoRuns
from private_bandits.simulation.verdicts import NOBODY, winners

NEVER = 2**62
"""No run has so many decisions."""


class Choices(ABC):
    """What is open in many runs, and the arm that each plays next. Arrays are [arm, run], or [run].

    ahead: decisions whose rewards are not released, without those given up. arrived: rewards of them that came. needs:
    rewards in the arm's next release. released, number: rewards and releases so far. lost: decisions given up.
    """

    known_type: ClassVar[type[Runs]]
    by_run: ClassVar[tuple[str, ...]] = ("lost",)
    by_arm_and_run: ClassVar[tuple[str, ...]] = ("ahead", "arrived", "needs", "released", "number")

    def __init__(self, policies: Sequence[Any], *settings: Any) -> None:
        self.known: Any = self.known_type(policies, *settings)
        rows, arms = self.known.row, len(self.known.gaps)
        self.ahead, self.arrived, self.released, self.number = (
            np.zeros((arms, len(rows)), dtype=np.int64) for _ in range(4)
        )
        self.needs = np.array([self.known.next_length(rows, np.full(len(rows), arm)) for arm in range(arms)])
        self.lost = np.zeros(len(rows), dtype=np.int64)

    @abstractmethod
    def lengths(self, policy: Any, horizon: int) -> list[int]:
        """Return the rewards in each release of an arm, of as many releases as `horizon` rewards can make."""

    @abstractmethod
    def note(self, rows: Integers, step: int) -> None:
        """Choose anew in runs that have new releases. step: the number of the next decision."""

    @abstractmethod
    def choose(self, step: int) -> Integers:
        """Return the arm that each run plays at this step."""

    def release(self, arm: Integers, row: Integers, sums: Floats, noise: Floats) -> None:
        """Release the arms of these runs, whose planned rewards are in."""
        here, count = (arm, row), self.needs[arm, row]
        self.known.learn(row, arm, count, sums, noise)
        self.released[here] += count
        self.number[here] += 1
        self.ahead[here] -= count
        self.arrived[here] -= count
        self.needs[here] = self.known.next_length(row, arm)

    def known_all(self, rows: Integers) -> NDArray[np.bool_]:
        """Say in which of these runs every arm has a release."""
        return np.asarray((self.number[:, rows] > 0).all(axis=0))

    def winners(self, rows: Integers, delta: float) -> Integers:
        """Return the winner of each of these runs, in which every arm has a release, or NOBODY."""
        return winners(self.known.evidence(rows), np.full(len(rows), delta))

    def keep(self, left: Integers) -> None:
        """Leave out all runs but these."""
        self.known.keep(left)
        for name in self.by_run:
            setattr(self, name, getattr(self, name)[left])
        for name in self.by_arm_and_run:
            setattr(self, name, getattr(self, name)[:, left])


class RememberedChoices(Choices):
    """Policies whose releases follow a plan (`RememberingPolicy.memory`)."""

    known: RememberedReleases

    def lengths(self, policy: Any, horizon: int) -> list[int]:
        """By the plan."""
        totals = [0]
        while totals[-1] < horizon:
            totals.append(totals[-1] + policy.memory.length(totals[-1]))
        return np.diff(totals).tolist()


class GeometricChoices(RememberedChoices):
    """Policies that play one arm until its episode is filled (`GeometricPolicy`).

    choice: the arm to be played, if no decision is open. until: the decision before which that holds, whatever was
    given up.
    """

    by_run: ClassVar[tuple[str, ...]] = ("lost", "choice", "until", "opening", "growth")

    def __init__(self, policies: Sequence[Any], *settings: Any) -> None:
        super().__init__(policies, *settings)
        runs = len(self.lost) // len(policies)
        self.opening = np.repeat([policy.memory.opening for policy in policies], runs)
        self.growth = np.repeat([policy.growth for policy in policies], runs)
        self.choice, self.until = np.zeros_like(self.lost), self.needs[0] + 1

    def note(self, rows: Integers, step: int) -> None:
        """The first arm without a release; else the arm of the least index."""
        seen = self.number[:, rows] > 0
        self.learn_costs(rows, seen)
        everything = seen.all(axis=0)
        choice = np.where(everything, 0, seen.argmin(axis=0))
        if everything.any():
            choice[everything] = self.pick(rows[everything], np.zeros_like(self.ahead[:, rows[everything]]))
        self.choice[rows] = choice
        self.until[rows] = step + self.needs[choice, rows]

    def choose(self, step: int) -> Integers:
        """The choice, as long as its episode is not filled; beyond that, what `pick` finds."""
        rows = np.arange(len(self.choice))
        stays = (self.ahead[self.choice, rows] < self.needs[self.choice, rows]) & (step < self.until)
        found = self.choice.copy()
        others = np.flatnonzero(~stays & (self.until < NEVER))
        if len(others):
            found[others] = self._beyond(others, step)
        return found

    def _beyond(self, rows: Integers, step: int) -> Integers:
        """Return what is played where open decisions fill an episode, or decisions came to nothing.

        What was given up counts as if it had been made one episode after the other, each of the arm that would have
        been chosen.
        """
        found, left = np.zeros(len(rows), dtype=np.int64), np.arange(len(rows))
        ahead, lost = self.ahead[:, rows], np.where(step >= self.until[rows], self.lost[rows], 0)
        while True:
            here = rows[left]
            arm = self.pick(here, ahead[:, left])
            found[left] = arm
            episode = self._episode_after(here, arm, ahead[arm, left])
            more = lost[left] >= episode
            if not more.any():
                return found
            left, arm, episode = left[more], arm[more], episode[more]
            lost[left] -= episode
            ahead[arm, left] += episode

    def _episode_after(self, rows: Integers, arm: Integers, ahead: Integers) -> Integers:
        missing = self.needs[arm, rows] - ahead
        coming = self.released[arm, rows] + ahead
        after = np.maximum(1, np.rint((self.growth[rows] - 1.0) * coming).astype(np.int64))
        after = np.where(coming < self.opening[rows], self.opening[rows] - coming, after)
        return np.asarray(np.where(missing > 0, missing, after))

    @abstractmethod
    def learn_costs(self, rows: Integers, seen: Any) -> None:
        """Compute what the choice follows from. seen: which arms have a release, [arm, run]."""

    @abstractmethod
    def pick(self, rows: Integers, ahead: Integers) -> Integers:
        """Return the arm to be played if so many rewards of each arm are on their way."""


class ImedChoices(GeometricChoices):
    """AdaC-IMED. own: what counts of each arm's cost, over beta."""

    known_type: ClassVar[type[Runs]] = ImedRuns
    known: ImedRuns
    by_arm_and_run: ClassVar[tuple[str, ...]] = (*Choices.by_arm_and_run, "own")

    def __init__(self, *settings: Any) -> None:
        super().__init__(*settings)
        self.own = np.zeros(self.ahead.shape)

    def learn_costs(self, rows: Integers, seen: Any) -> None:
        """J of every arm that has a release."""
        known = self.known
        means = known.means[:, rows]
        best = means.max(axis=0, where=seen, initial=0.0).clip(0.0, LARGEST_MEAN)
        found = costs(means, np.broadcast_to(best, means.shape), known.rewards[:, rows], known.noise[:, rows])
        self.own[:, rows] = np.where(seen, all_discounted(found) / known.beta[rows], 0.0)

    def pick(self, rows: Integers, ahead: Integers) -> Integers:
        """The arm of the least index."""
        released = self.released[:, rows]
        count = released + np.where(ahead >= self.needs[:, rows], ahead, 0)
        with np.errstate(divide="ignore"):
            index = self.own[:, rows] + np.log(count)
        return np.asarray((index <= index.min(axis=0) + TIE).argmax(axis=0))


class TopTwoChoices(GeometricChoices):
    """AdaC-TopTwo. leader: the arm of the largest mean. cost: of believing that another is as good."""

    known_type: ClassVar[type[Runs]] = TopTwoRuns
    known: TopTwoRuns
    by_run: ClassVar[tuple[str, ...]] = (*GeometricChoices.by_run, "leader")
    by_arm_and_run: ClassVar[tuple[str, ...]] = (*Choices.by_arm_and_run, "cost")

    def __init__(self, *settings: Any) -> None:
        super().__init__(*settings)
        self.cost = np.zeros(self.ahead.shape)
        self.leader = np.zeros_like(self.lost)

    def release(self, arm: Integers, row: Integers, sums: Floats, noise: Floats) -> None:
        """See whether there is a winner, too."""
        super().release(arm, row, sums, noise)
        known = self.known
        open_ = row[(known.winner[row] == NOBODY) & self.known_all(row)]
        known.winner[open_] = winners(known.evidence(open_), known.delta[open_])

    def winners(self, rows: Integers, delta: float) -> Integers:
        """The same, which is known where delta is the policy's own."""
        if (self.known.delta[rows] == delta).all():
            return np.asarray(self.known.winner[rows])
        return super().winners(rows, delta)

    def note(self, rows: Integers, step: int) -> None:
        """The winner, for ever, where there is one."""
        won = self.known.winner[rows] != NOBODY
        super().note(rows[~won], step)
        self.choice[rows[won]], self.until[rows[won]] = self.known.winner[rows[won]], NEVER

    def learn_costs(self, rows: Integers, seen: Any) -> None:
        """W of every other arm that has a release."""
        known = self.known
        means = np.where(seen, known.means[:, rows], -np.inf)
        self.leader[rows] = leader = means.argmax(axis=0)
        arm, place = np.nonzero(seen & (np.arange(len(means))[:, None] != leader))
        self.cost[:, rows] = 0.0
        ahead, behind = (
            (known.means[here], known.rewards[here], known.noise[here])
            for here in ((leader[place], rows[place]), (arm, rows[place]))
        )
        self.cost[arm, rows[place]] = costs_of_challengers(ahead, behind)

    def pick(self, rows: Integers, ahead: Integers) -> Integers:
        """An arm without a release whose episode is not filled; else the leader or its challenger."""
        filled, place, leader = ahead >= self.needs[:, rows], np.arange(len(rows)), self.leader[rows]
        count = self.released[:, rows] + np.where(filled, ahead, 0)
        if len(count) == 1:
            return np.zeros(len(rows), dtype=np.int64)
        index = self.cost[:, rows] + np.log(np.maximum(count, 1))
        index[leader, place] = np.inf
        challenger = (index <= index.min(axis=0) + NEARLY_EQUAL).argmax(axis=0)
        found = np.where(count[leader, place] <= count[challenger, place], leader, challenger)
        unseen = count == 0
        return np.asarray(np.where(unseen.any(axis=0), unseen.argmax(axis=0), found))


class HalvingChoices(RememberedChoices):
    """AdaC-Halving: the first active arm whose round is not filled; if all are, the one with the fewest ahead."""

    known_type: ClassVar[type[Runs]] = HalvingRuns
    known: HalvingRuns

    def note(self, rows: Integers, step: int) -> None:
        """End the rounds that are over."""
        self.known.end_rounds()

    def choose(self, step: int) -> Integers:
        """Begin the search one arm later for each episode's worth of decisions that was given up."""
        missing, arms = self.known.missing(), len(self.needs)
        rows = np.arange(missing.shape[1])
        first = missing.argmax(axis=0)
        shift = self.lost // self.needs[first, rows] % missing.sum(axis=0)
        # The places of missing arms among those that are missing, counted from the one where the search begins.
        place = (missing.cumsum(axis=0) - 1 - shift) % missing.sum(axis=0)
        filled = self.ahead >= self.needs
        key = np.where(filled, self.ahead + 1, 0) * (arms + 1) + place
        return np.asarray(np.where(missing, key, NEVER).argmin(axis=0))


class UcbChoices(Choices):
    """AdaC-UCB: first every arm once; then the arm that had the largest index at the last release."""

    known_type: ClassVar[type[Runs]] = LastReleases
    known: LastReleases
    by_run: ClassVar[tuple[str, ...]] = ("lost", "choice", "which")

    def __init__(self, policies: Sequence[Any], *settings: Any) -> None:
        super().__init__(policies, *settings)
        self.choice = np.full_like(self.lost, NOBODY)
        self.which = np.repeat(np.arange(len(policies)), len(self.lost) // len(policies))

    def lengths(self, policy: Any, horizon: int) -> list[int]:
        """As many as before."""
        return [1, *accumulate(repeat(1, max(0, horizon - 1).bit_length() + 1), lambda count, _: 2 * count)]

    def note(self, rows: Integers, step: int) -> None:
        """By each policy's own index, of arms that have a release."""
        known = self.known
        for number, policy in enumerate(known.policies):
            own = rows[self.which[rows] == number]
            index = policy.checked_index(known.means[own], known.last[own], np.full((len(own), 1), step), known.width)
            self.choice[own] = np.where(known.released[own] > 0, index, -np.inf).argmax(axis=1)

    def choose(self, step: int) -> Integers:
        """An arm without a release, if one is to be tried now; else the choice."""
        found = self.choice.copy()
        rows = np.flatnonzero((self.number == 0).any(axis=0))
        if len(rows):
            level = min(max((step // (RETRY * len(self.needs))).bit_length() - 1, 0), 63)
            waiting = np.maximum((self.ahead - self.arrived)[:, rows], level)
            key = np.where(self.number[:, rows] == 0, waiting, NEVER)
            arm, least = key.argmin(axis=0), key.min(axis=0)
            nothing = (self.number[:, rows] == 0).all(axis=0)
            found[rows] = np.where((least <= level) | nothing, arm, self.choice[rows])
        return found
