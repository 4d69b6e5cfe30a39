"""The picture of real data: shares of right recommendations, over rho and over time, beside what learns without privacy
and what learns nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from private_bandits.arrays import Floats
from private_bandits.experiments.analysis.estimates import RegretEstimate, stacked
from private_bandits.experiments.analysis.regrets import Regrets, name_of
from private_bandits.experiments.analysis.wording import interval_text, listing, percent, rho_text
from private_bandits.experiments.run.build import REFERENCES
from private_bandits.experiments.run.experiment import Entry, Instance
from private_bandits.experiments.run.real_data import bundled_table
from private_bandits.experiments.show.pictures import Panel, Picture, Series, how, rho_places, rho_ticks
from private_bandits.palette import GREY, INK, policy_colour, policy_dash

FIXED = "best fixed arm"
OVER_TIME = 1.0
"""The rho whose course is drawn."""
FIRST = 20
"""The first step that is drawn: before, a share is of a handful of people."""
Y_RANGE = (0.0, 1.02)


def shares(regrets: Regrets) -> Picture:
    """For each table a panel over rho and one over time."""
    tables = list(dict.fromkeys(map(regrets.instance_of, regrets.experiment.entries)))
    return Picture(
        "shares",
        "Share of right recommendations",
        (*(_over_rho(regrets, table) for table in tables), *(_over_time(regrets, table) for table in tables)),
        f'The share of recommendations that were right up to step {regrets.horizon:,} (above; "none" is without '
        f"privacy) and up to each step at {rho_text(OVER_TIME)} (below). LinUCB learns each reward at once, without "
        f"privacy. The best fixed arm is the most common label, for everyone. {how(regrets)}",
        tuple(_words(regrets, table) for table in tables),
    )


def _lines(regrets: Regrets, table: Instance) -> list[list[Entry]]:
    """The entries of each policy on a table."""
    found: dict[str, list[Entry]] = {}
    for entry in regrets.experiment.entries:
        if regrets.instance_of(entry) == table:
            found.setdefault(entry.policy, []).append(entry)
    return list(found.values())


def _over_rho(regrets: Regrets, table: Instance) -> Panel:
    lines = _lines(regrets, table)
    places = rho_places(sorted({entry.rho for entries in lines for entry in entries}))
    x, drawn = np.array(list(places.values())), []
    for index, entries in enumerate(lines):
        ends = [regrets.share_right(entry)[-1] for entry in entries]
        if entries[0].policy in REFERENCES:  # it has no budget: a line across
            drawn.append(Series.of(name_of(entries[0]), x, stacked(ends * len(x)), INK))
        else:
            own = np.array([places[entry.rho] for entry in entries])
            label, colour = name_of(entries[0]), policy_colour(index)
            drawn.append(Series.of(label, own, stacked(ends), colour, policy_dash(index), marks=True))
    return _panel(_title(table), "rho", [*drawn, _fixed(table, x)], rho_ticks(places))


def _over_time(regrets: Regrets, table: Instance) -> Panel:
    steps, drawn = regrets.steps.astype(float), []
    late = steps >= min(FIRST, steps[-1])
    for index, entries in enumerate(_lines(regrets, table)):
        reference = entries[0].policy in REFERENCES
        for entry in entries:
            if reference or entry.rho == OVER_TIME:
                colour, dash = (INK, "solid") if reference else (policy_colour(index), policy_dash(index))
                drawn.append(Series.of(name_of(entry), steps[late], regrets.share_right(entry)[late], colour, dash))
    return _panel(f"{table.name} over time, {rho_text(OVER_TIME)}", "step", [*drawn, _fixed(table, steps[late])])


def _panel(title: str, x: str, lines: Sequence[Series], ticks: tuple[tuple[float, str], ...] = ()) -> Panel:
    return Panel(title, x, "share right", tuple(lines), percent=True, ticks=ticks, y_range=Y_RANGE)


def _fixed(table: Instance, x: Floats) -> Series:
    share = np.full(len(x), _fixed_share(table))
    return Series(FIXED, x, share, share, share, GREY, "dot")


def _fixed_share(table: Instance) -> float:
    return bundled_table(table.table, table.components).best_fixed_share


def _title(table: Instance) -> str:
    return f"{table.name}: {table.arms} arms, d = {table.dimension}"


def _words(regrets: Regrets, table: Instance) -> str:
    lines = _lines(regrets, table)
    private = [
        f"{name_of(entries[0])} with "
        + listing([f"{rho_text(entry.rho)} {_share(regrets, entry)}" for entry in entries if math.isfinite(entry.rho)])
        for entries in lines
        if entries[0].policy not in REFERENCES
    ]
    plain = [f"{name_of(e[0])} {_interval(regrets.share_right(e[0])[-1])}" for e in lines if e[0].policy in REFERENCES]
    return (
        f"{_title(table)}. Right of {regrets.horizon:,}: {'; '.join([*private, *plain])}; the best fixed arm "
        f"{percent(_fixed_share(table))}."
    )


def _share(regrets: Regrets, entry: Entry) -> str:
    return percent(float(regrets.share_right(entry).value[-1]))


def _interval(estimate: RegretEstimate) -> str:
    return interval_text(estimate, percent)
