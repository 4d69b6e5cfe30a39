"""How far policies are above what none can beat: their largest regret over the instances of a lower bound's proof."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from private_bandits.experiments.estimates import Estimate, stacked
from private_bandits.experiments.experiment import Entry
from private_bandits.experiments.lower_bound_instances import lower_bound
from private_bandits.experiments.palette import GREY, policy_colour, policy_dash
from private_bandits.experiments.pictures import Panel, Picture, Series, how, log_range, rho_places, rho_ticks
from private_bandits.experiments.regrets import Regrets, name_of
from private_bandits.experiments.wording import number, rho_text

BOUND = "lower bound"


@dataclass(frozen=True)
class Worst:
    """A policy's largest mean regret over the instances, at each rho, and the bound there."""

    name: str
    entries: Sequence[Entry]
    regret: Estimate
    bound: np.ndarray

    @property
    def times(self) -> Estimate:
        """The regret as a multiple of the bound."""
        return Estimate(self.regret.value / self.bound, self.regret.error / self.bound, self.regret.freedom)


def floor(regrets: Regrets) -> Picture:
    """The largest mean regret of every variant against rho, beside the lower bound, and how many times that it is."""
    found = _worst(regrets)
    places = rho_places(regrets.rhos())
    x, ticks = np.array(list(places.values())), rho_ticks(places)
    lines = [_line(x, index, worst.name, worst.regret) for index, worst in enumerate(found)]
    bound = found[0].bound
    lines.append(Series(BOUND, x, bound, bound, bound, GREY, "dot"))
    times = [_line(x, index, worst.name, worst.times) for index, worst in enumerate(found)]
    return Picture(
        "floor",
        "The worst instance and the lower bound",
        (
            Panel("Largest regret", "rho", "regret", tuple(lines), True, ticks=ticks, y_range=log_range(lines)),
            Panel(
                "As a multiple of the bound", "rho", "times", tuple(times), True, ticks=ticks, y_range=log_range(times)
            ),
        ),
        f"The largest mean regret at step {regrets.horizon:,} over the instances of the bound's proof, with its gap "
        "and larger ones; of each policy its own worst. The bound says that some instance of its class costs every "
        "policy which keeps the budget as much, so that what lies between is what better policies and better bounds "
        f"could still gain together. The interval is that of the worst instance's mean. {how(regrets)}",
        tuple(_words(found, place) for place in range(len(x))),
    )


def _line(x: np.ndarray, index: int, name: str, estimate: Estimate) -> Series:
    return Series.of(name, x, estimate, policy_colour(index), policy_dash(index), marks=True)


def _worst(regrets: Regrets) -> list[Worst]:
    found = []
    for name, by_rho in _grouped(regrets).items():
        entries = [max(by_rho[rho], key=lambda e: float(regrets.mean(e).value[-1])) for rho in regrets.rhos()]
        regret = stacked([regrets.mean(entry)[-1] for entry in entries])
        bound = np.array([lower_bound(regrets.experiment, entry) for entry in entries])
        found.append(Worst(name, entries, regret, bound))
    return found


def _grouped(regrets: Regrets) -> Mapping[str, Mapping[float, list[Entry]]]:
    """Entries of every policy and variant at each rho."""
    found: dict[str, dict[float, list[Entry]]] = {}
    for entry in regrets.experiment.entries:
        found.setdefault(name_of(entry), {}).setdefault(entry.rho, []).append(entry)
    return found


def _words(found: Sequence[Worst], place: int) -> str:
    parts = [
        f"{worst.name} {number(float(worst.regret.value[place]))}, {number(float(worst.times.value[place]))} times the "
        f"bound ({_where(worst.entries[place])})"
        for worst in found
    ]
    rho = rho_text(found[0].entries[place].rho)
    return f"At {rho} the bound is {number(float(found[0].bound[place]))}; {'; '.join(parts)}."


def _where(entry: Entry) -> str:
    return entry.instance.name if entry.instance else "its own instance"
