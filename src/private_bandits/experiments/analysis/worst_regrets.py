"""How far policies are above what none can beat: their largest regret over the instances of a lower bound's proof."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from private_bandits.arrays import Floats
from private_bandits.experiments.analysis.estimates import RegretEstimate, stacked
from private_bandits.experiments.analysis.regrets import Regrets, name_of
from private_bandits.experiments.run.experiment import Entry
from private_bandits.experiments.run.lower_bound_instances import lower_bound


@dataclass(frozen=True)
class WorstRegret:
    """A policy's largest mean regret over the instances, at each rho, and the bound there."""

    name: str
    entries: Sequence[Entry]
    regret: RegretEstimate
    bound: Floats

    @property
    def times(self) -> RegretEstimate:
        """The regret as a multiple of the bound."""
        return RegretEstimate(self.regret.value / self.bound, self.regret.error / self.bound, self.regret.freedom)


def worst_regrets(regrets: Regrets) -> list[WorstRegret]:
    """Return the largest regrets of every policy and variant, each on its own worst instances."""
    found = []
    for name, by_rho in _grouped(regrets).items():
        entries = [max(by_rho[rho], key=lambda e: float(regrets.mean(e).value[-1])) for rho in regrets.rhos()]
        regret = stacked([regrets.mean(entry)[-1] for entry in entries])
        bound = np.array([lower_bound(regrets.experiment, entry) for entry in entries])
        found.append(WorstRegret(name, entries, regret, bound))
    return found


def _grouped(regrets: Regrets) -> Mapping[str, Mapping[float, list[Entry]]]:
    """Entries of every policy and variant at each rho."""
    found: dict[str, dict[float, list[Entry]]] = {}
    for entry in regrets.experiment.entries:
        found.setdefault(name_of(entry), {}).setdefault(entry.rho, []).append(entry)
    return found
