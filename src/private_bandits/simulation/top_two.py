"""AdaC-TopTwo: what is released of arms is in remembering.py; here are leader, challenger and winner of all runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from private_bandits.arrays import Floats, Integers
from private_bandits.environments import FiniteEnvironment
from private_bandits.policies.adac_top_two import TIE, AdaCTopTwo, costs_of_challengers
from private_bandits.progress import Report
from private_bandits.simulation.finite import curves_of
from private_bandits.simulation.remembering import RememberedReleases
from private_bandits.simulation.verdicts import NOBODY, winners


class TopTwoRuns(RememberedReleases):
    """Runs that play the leader or its challenger, until there is a winner."""

    policies: Sequence[AdaCTopTwo]
    by_run: ClassVar[tuple[str, ...]] = ("delta", "winner")

    def __init__(self, *settings: Any) -> None:
        super().__init__(*settings)
        self.delta = np.repeat([policy.delta for policy in self.policies], len(self.row) // len(self.policies))
        self.winner = np.full(len(self.row), NOBODY)

    def choose(self) -> Integers:
        """Return the winner; or the leader, if it has no more rewards than the challenger; or that."""
        undecided = np.flatnonzero(self.winner == NOBODY)
        self.winner[undecided] = winners(self.evidence(undecided), self.delta[undecided])
        found, left = self.winner.copy(), np.flatnonzero(self.winner == NOBODY)
        if len(left):
            found[left] = self._leader_or_challenger(left)
        return found

    def _leader_or_challenger(self, runs: Integers) -> Integers:
        arms, place = len(self.means), np.arange(len(runs))
        leader: Integers = self.means[:, runs].argmax(axis=0)
        if arms == 1:
            return leader
        others = np.array([[arm for arm in range(arms) if arm != first] for first in range(arms)])[leader].T
        columns = [part[:, runs] for part in (self.means, self.rewards, self.noise, self.logs)]
        ahead = [np.tile(part[leader, place], arms - 1) for part in columns]
        behind = [part[others, place].ravel() for part in columns]
        costs = costs_of_challengers((ahead[0], ahead[1], ahead[2]), (behind[0], behind[1], behind[2]))
        index = (costs + behind[3]).reshape(arms - 1, -1)
        challenger = others[(index <= index.min(axis=0) + TIE).argmax(axis=0), place]
        logs = columns[3]
        return np.asarray(np.where(logs[leader, place] <= logs[challenger, place], leader, challenger))


def regret_curves(
    policies: Sequence[AdaCTopTwo],
    environment: FiniteEnvironment,
    horizon: int,
    runs: int,
    checkpoints: Integers,
    generators: Sequence[np.random.Generator],
    report: Report,
) -> Floats:
    """Regret of every policy and run at the checkpoints: an array [policy, run, checkpoint]."""
    return curves_of(TopTwoRuns(policies, environment, horizon, runs, generators), checkpoints, report)
