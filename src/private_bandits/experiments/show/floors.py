"""The picture of policies beside a lower bound: how far they are above what none can beat."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from private_bandits.experiments.analysis.estimates import RegretEstimate
from private_bandits.experiments.analysis.regrets import Regrets
from private_bandits.experiments.analysis.wording import number, rho_text
from private_bandits.experiments.analysis.worst_regrets import WorstRegret, worst_regrets
from private_bandits.experiments.run.experiment import Entry
from private_bandits.experiments.show.pictures import Panel, Picture, Series, how, log_range, rho_places, rho_ticks
from private_bandits.palette import GREY, policy_colour, policy_dash

BOUND = "lower bound"


def floor(regrets: Regrets) -> Picture:
    """The largest mean regret of every variant against rho, beside the lower bound, and how many times that it is."""
    found = worst_regrets(regrets)
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


def _line(x: np.ndarray, index: int, name: str, estimate: RegretEstimate) -> Series:
    return Series.of(name, x, estimate, policy_colour(index), policy_dash(index), marks=True)


def _words(found: Sequence[WorstRegret], place: int) -> str:
    parts = [
        f"{worst.name} {number(float(worst.regret.value[place]))}, {number(float(worst.times.value[place]))} times the "
        f"bound ({_where(worst.entries[place])})"
        for worst in found
    ]
    rho = rho_text(found[0].entries[place].rho)
    return f"At {rho} the bound is {number(float(found[0].bound[place]))}; {'; '.join(parts)}."


def _where(entry: Entry) -> str:
    return entry.instance.name if entry.instance else "its own instance"
