"""Many trials of one kind: verdicts by the last person, after the closing release, and if the trial went on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from private_bandits.arrays import Floats, Integers
from private_bandits.environments import FiniteEnvironment
from private_bandits.policies import AdaCHalving, AdaCIMED, AdaCTopTwo
from private_bandits.policies.evidence import Evidence
from private_bandits.progress import Report
from private_bandits.simulation.arrivals import Arrivals, TrialWorld
from private_bandits.simulation.closings import Ends, close
from private_bandits.simulation.due import CHUNK
from private_bandits.simulation.finite import class_of
from private_bandits.simulation.halving import HalvingRuns
from private_bandits.simulation.imed import ImedRuns
from private_bandits.simulation.late import LateRuns
from private_bandits.simulation.remembering import RememberedReleases
from private_bandits.simulation.seeds import fingerprint
from private_bandits.simulation.top_two import TopTwoRuns
from private_bandits.simulation.verdicts import NOBODY, Watch

TRIED: dict[type, type[RememberedReleases]] = {AdaCIMED: ImedRuns, AdaCTopTwo: TopTwoRuns, AdaCHalving: HalvingRuns}
"""Policies whose closing releases are known here, and their runs where every reward is in time."""


@dataclass(frozen=True)
class Course:
    """How long trials are, and what is looked for.

    delta: of the verdicts. decisions: in the trial. limit: decisions at which even a run that goes on is over. sure:
    once so large a share of a policy's runs has a right verdict, none of them goes on. going_on: how many runs of each
    policy do, where every decision is played.
    """

    delta: float
    decisions: int
    limit: int
    sure: float
    going_on: int


@dataclass(frozen=True)
class TrialRuns:
    """Many trials of one policy, [run].

    found: the first verdict, if nobody stops at the last decision: after how many decisions, nan where there was none,
    and the winner. went_on: the runs of which that is known beyond the last decision. closed: the winner by the closing
    release. plays: decisions for each arm, [arm, run]. ends: what was known at the end.
    """

    found: Floats
    went_on: int
    closed: Integers
    plays: Integers
    ends: Ends


class _Course:
    """Runs of policies of one class on their way, and what is noted of them. Rows are runs, grouped by policy."""

    def __init__(self, policies: Sequence[Any], world: TrialWorld, course: Course, runs: int, seed: int) -> None:
        self.policies, self.world, self.course, self.runs = policies, world, course, runs
        self.generators = [np.random.default_rng([seed, fingerprint(policy)]) for policy in policies]
        self.closers = [generator.spawn(1)[0] for generator in self.generators]
        arms, total = len(world.environment.means), runs * len(policies)
        self.which = np.repeat(np.arange(len(policies)), runs)
        self.plays = np.zeros((arms, total), dtype=np.int64)
        self.closed = np.full(total, NOBODY)
        self.best = world.environment.means.max()
        self.ends: list[tuple[Integers, Ends]] = []

    def close(self, known: RememberedReleases, run: Integers, arrived: Integers, needs: Integers, watch: Watch) -> None:
        """Close these runs, whose state `known` is given away."""
        ends = close(known, self.which[run], self.closers, arrived, needs)
        first = watch.found[run, 1].astype(np.int64)
        self.closed[run] = np.where(first == NOBODY, ends.winners(self.course.delta), first)
        self.ends.append((run, ends))

    def goes_on(self, watch: Watch, run: Integers, among: int) -> Any:
        """Say which of these runs go on: those without a verdict, where too few of the policy's have a right one."""
        winner = watch.found[:, 1].astype(np.int64)
        right = (winner != NOBODY) & (self.world.environment.means[winner] >= self.best)
        share = right.reshape(len(self.policies), -1)[:, :among].mean(axis=1)
        return (winner[run] == NOBODY) & (share[self.which[run]] < self.course.sure) & (run % self.runs < among)

    def result(self, watch: Watch, among: int) -> list[TrialRuns]:
        """Return what was noted, of each policy."""
        found = []
        for number in range(len(self.policies)):
            own = slice(number * self.runs, (number + 1) * self.runs)
            found.append(
                TrialRuns(watch.found[own], among, self.closed[own], self.plays[:, own], self._ends_of(own.start))
            )
        return found

    def _ends_of(self, first: int) -> Ends:
        place = np.concatenate([run for run, _ in self.ends]).argsort()[first : first + self.runs]
        parts = [_flat(ends) for _, ends in self.ends]
        whole = [np.concatenate(part, axis=1)[:, place] for part in zip(*parts, strict=True)]
        size = len(Evidence._fields)
        return Ends(Evidence(*whole[:size]), whole[size], Evidence(*whole[size + 1 : -1]), whole[-1])


def _flat(ends: Ends) -> list[Any]:
    return [*ends.before, ends.known, *ends.after, ends.seen]


def prompt_trials(
    policies: Sequence[Any], world: TrialWorld, course: Course, runs: int, seed: int, report: Report
) -> list[TrialRuns]:
    """Play trials in which every reward is in time, an episode at a time."""
    noted = _Course(policies, world, course, runs, seed)
    state = TRIED[class_of(policies)](policies, world, course.limit, runs, noted.generators)
    watch, arms = state.watch, len(noted.plays)
    assert watch is not None
    number = 0
    while len(state.row):
        arm = np.full(len(state.row), number) if number < arms else state.choose()
        steps = state.next_length(state.row, arm)
        left = np.maximum(0, course.decisions - state.time)
        noted.plays[arm, state.run] += np.minimum(steps, left)
        ending = np.flatnonzero((state.time <= course.decisions) & (steps > left))
        if len(ending):
            arrived, needs = (np.zeros((arms, len(ending)), dtype=np.int64) for _ in range(2))
            here = arm[ending], np.arange(len(ending))
            arrived[here], needs[here] = left[ending], steps[ending]
            known = copy(state)
            known.keep(ending)
            noted.close(known, state.run[ending], arrived, needs, watch)
        state.play(arm, steps)
        number += 1
        if number >= arms:
            rows = watch.undecided(state.run, state.complete)
            watch.look(state.evidence(rows), state.run[rows], state.time[rows])
        before_end = state.time <= course.decisions
        on = noted.goes_on(watch, state.run, runs) & (state.time < course.limit)
        state.keep(np.flatnonzero(before_end | on))
        report(1.0 - len(state.row) / len(noted.which))
    return noted.result(watch, runs)


def late_trials(
    policies: Sequence[Any], world: TrialWorld, course: Course, runs: int, seed: int, report: Report
) -> list[TrialRuns]:
    """Play trials in which rewards are late or missing, one decision at a time."""
    noted = _Course(policies, world, course, runs, seed)
    state = LateRuns(policies, world, course.limit, runs, noted.generators, told_until=np.inf)
    watch, rows = state.watch, np.arange(len(state.run))
    assert watch is not None
    for action in state.play(course.decisions):
        noted.plays[action, rows] += 1
        report(0.7 * state.time / course.decisions)
    end = state.copy()
    for told in end.due.outstanding():
        end.tell(told)
    assert end.watch is not None
    choices = end.choices
    noted.close(choices.known, rows, choices.arrived, choices.needs, end.watch)
    going_on = min(runs, course.going_on)
    while state.time < course.limit:
        on = np.flatnonzero(noted.goes_on(watch, state.run, going_on))
        if not len(on):
            break
        state.keep(on)
        for _ in state.play(min(course.limit, state.time + CHUNK)):
            pass
        report(0.7 + 0.3 * state.time / course.limit)
    return noted.result(watch, going_on)


def trials(
    policies: Sequence[Any],
    environment: FiniteEnvironment,
    arrivals: Arrivals,
    course: Course,
    runs: int,
    seed: int,
    report: Report = lambda part: None,
) -> list[TrialRuns]:
    """Play many trials with each of the policies, which are of one class. What one does is the same beside others."""
    world = TrialWorld(environment, arrivals, course.delta)
    play: Callable[..., list[TrialRuns]] = prompt_trials if arrivals.prompt else late_trials
    return play(policies, world, course, runs, seed, report)
