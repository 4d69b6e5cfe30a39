"""Late and missing rewards of finite arms: all runs of all policies advance together, one decision at a time.

Between two releases of a run its rewards are only counted. What a release will hold is drawn beforehand, as the number
of rewards in it is planned. Which arm a run plays is in late_choices.py. The oracle is late_steps.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy, deepcopy
from typing import Any

import numpy as np

from private_bandits.arrays import Floats, Integers
from private_bandits.policies import AdaCHalving, AdaCIMED, AdaCTopTwo, AdaCUCB
from private_bandits.progress import Report
from private_bandits.simulation.arrivals import TrialWorld
from private_bandits.simulation.due import CHUNK, DueDecisions, Told
from private_bandits.simulation.finite import Runs, class_of
from private_bandits.simulation.late_choices import Choices, HalvingChoices, ImedChoices, TopTwoChoices, UcbChoices
from private_bandits.simulation.simulated_noise import noise_draws
from private_bandits.simulation.verdicts import Watch

CHOICES: dict[type, type[Choices]] = {
    AdaCIMED: ImedChoices,
    AdaCTopTwo: TopTwoChoices,
    AdaCHalving: HalvingChoices,
    AdaCUCB: UcbChoices,
}
"""How each policy chooses. A subclass may choose in another way: agents play it."""


class LateRuns:
    """Many runs of several policies of one class; rows are runs, grouped by policy.

    horizon: decisions in each run, at most. told_until: what is due after so many decisions is forgotten; by default
    after the horizon. run: which of all runs is in a row. time: decisions made. watch: notes the first verdicts.
    """

    def __init__(
        self,
        policies: Sequence[Any],
        world: TrialWorld,
        horizon: int,
        runs: int,
        generators: Sequence[np.random.Generator],
        told_until: float | None = None,
    ) -> None:
        self.choices = CHOICES[class_of(policies)](policies, world.environment, horizon, runs, generators)
        self.time, self.sizes = 0, [runs] * len(policies)
        self.run = np.arange(sum(self.sizes))
        self.watch = None if world.verdict is None else Watch(world.verdict, len(self.run))
        told_until = horizon if told_until is None else told_until
        self.due = DueDecisions(world.arrivals, generators, self.sizes, told_until)
        self.gaps = self.known.gaps
        self.regret = np.zeros(len(self.run))
        self.drawn = drawn_releases(self.choices, horizon)
        self._changed: list[Integers] = []

    @property
    def known(self) -> Runs:
        """What is released."""
        known: Runs = self.choices.known
        return known

    def play(self, stop: int) -> Iterator[Integers]:
        """Yield the actions of each decision of all runs, up to decision number `stop`, with what follows from them."""
        choices, rows = self.choices, np.arange(len(self.run))
        while self.time < stop:
            first = self.time
            for step in self.due.steps(first, min(first + CHUNK, stop)):
                action = choices.choose(step + 1)
                self.due.played[step - first] = action
                choices.ahead[action, rows] += 1
                self.regret += self.gaps[action]
                self.time = step + 1
                for told in self.due.told(step):
                    self.tell(told)
                if self._changed:
                    choices.note(np.unique(np.concatenate(self._changed)), self.time + 1)
                    self._changed.clear()
                yield action

    def tell(self, told: Told) -> None:
        """Take rewards, or give decisions up, at most one of each run."""
        choices, came = self.choices, ~told.missing
        gone = told.arm[told.missing], told.row[told.missing]
        choices.ahead[gone] -= 1
        choices.lost[gone[1]] += 1
        arm, row = told.arm[came], told.row[came]
        choices.arrived[arm, row] += 1
        full = choices.arrived[arm, row] >= choices.needs[arm, row]
        if full.any():
            self._release(arm[full], row[full])

    def _release(self, arm: Integers, row: Integers) -> None:
        choices = self.choices
        sums, noise = self.drawn[:, arm, choices.number[arm, row], row]
        choices.release(arm, row, sums, noise)
        self._changed.append(row)
        if self.watch is not None:
            rows = row[self.watch.undecided(self.run[row], choices.known_all(row))]
            self.watch.note(choices.winners(rows, self.watch.delta), self.run[rows], np.full(len(rows), self.time))

    def copy(self) -> LateRuns:
        """Return the same runs, which go on by themselves."""
        found, rows = copy(self), np.arange(len(self.run))
        found.choices, found.due, found.watch = copy(self.choices), copy(self.due), deepcopy(self.watch)
        found.choices.known, found._changed = copy(self.known), []
        found.choices.keep(rows)
        found.due.keep(rows, self.sizes)
        return found

    def keep(self, left: Integers) -> None:
        """Go on with these rows alone."""
        ends = np.cumsum(self.sizes)
        self.sizes = np.diff(np.searchsorted(left, ends), prepend=0).tolist()
        self.run, self.regret, self.drawn = self.run[left], self.regret[left], self.drawn[..., left]
        self.due.keep(left, self.sizes)
        self.choices.keep(left)


def drawn_releases(choices: Choices, horizon: int) -> Floats:
    """Draw the sum of the rewards and the noise of each release that a run can make: [part, arm, number, run]."""
    known, parts = choices.known, []
    for policy, moved, group, generator in zip(
        known.policies, known.moved, known.groups, known.generators, strict=True
    ):
        lengths = choices.lengths(policy, horizon)
        shape = (len(known.gaps), len(lengths), group.stop - group.start)
        arms, counts = np.arange(shape[0])[:, None, None], np.array(lengths)[:, None]
        arms, counts = (np.broadcast_to(part, shape).ravel() for part in (arms, counts))
        sums = known.environment.reward_sums(generator, arms, counts).reshape(shape)
        parts.append(np.array([sums, noise_draws(policy.budget, moved, generator, shape)]))
    most = max(part.shape[2] for part in parts)
    padded = [np.pad(part, ((0, 0), (0, 0), (0, most - part.shape[2]), (0, 0))) for part in parts]
    return np.concatenate(padded, axis=3)


def regret_curves(
    policies: Sequence[Any],
    world: TrialWorld,
    horizon: int,
    runs: int,
    checkpoints: Integers,
    generators: Sequence[np.random.Generator],
    report: Report,
) -> Floats:
    """Regret of every policy and run at the checkpoints: an array [policy, run, checkpoint].

    Every decision counts when it is made, whether its reward has come or not. Where verdicts are looked for, two
    columns follow (`verdicts.FirstVerdict`).
    """
    state = LateRuns(policies, world, horizon, runs, generators)
    points, columns = set(checkpoints.tolist()), []
    for _ in state.play(horizon):
        if state.time in points:
            columns.append(state.regret.copy())
        report(state.time / horizon)
    curves = np.column_stack(columns)
    if state.watch is not None:
        curves = np.column_stack([curves, state.watch.found])
    return curves.reshape(len(policies), runs, -1)
