"""Policies beside each other at equal budgets: AdaC-GOPE and its variant, and the rivals of a setting."""

from __future__ import annotations

import numpy as np

from private_bandits.experiments.analysis.estimates import holm, stacked
from private_bandits.experiments.analysis.regrets import Regrets, name_of
from private_bandits.experiments.analysis.wording import interval_text, listing, number, percent, rho_text
from private_bandits.experiments.run.experiment import Entry
from private_bandits.experiments.show.pictures import (
    Panel,
    Picture,
    Series,
    calm_range,
    curve,
    how,
    log_range,
    rho_places,
    rho_ticks,
)
from private_bandits.palette import policy_colour, policy_dash, rho_colour

SHOWN = 1000
"""Regrets are drawn for the last three powers of ten of time: before, everybody tries everything."""


def placement(regrets: Regrets) -> Picture:
    """AdaC-GOPE against its variant over time, at each budget, and how far apart they are."""
    pairs = regrets.placements()
    apart = [
        Series.of(
            rho_text(between.rho), regrets.steps.astype(float), regrets.price(variant, between), rho_colour(between.rho)
        )
        for between, variant in pairs
    ]
    room = calm_range(regrets.horizon, apart)
    excess = Panel(
        "How far the variant is above",
        "step",
        "excess of the variant",
        tuple(apart),
        percent=True,
        zero=True,
        y_range=room,
    )
    return Picture(
        "placement",
        "Noise inside the estimate, or on each arm's sum",
        (*(_both(regrets, *pair) for pair in pairs), excess),
        "Mean regret of AdaC-GOPE and of the variant that adds its noise to each arm's sum of rewards, at each budget; "
        f"the last panel is the variant's excess as a share of AdaC-GOPE's regret. {how(regrets)}",
        tuple(_pair_words(regrets, *pair) for pair in pairs),
    )


def _both(regrets: Regrets, *pair: Entry) -> Panel:
    lines = [_late(regrets, entry, name_of(entry), index) for index, entry in enumerate(pair)]
    return Panel(rho_text(pair[0].rho), "step", "mean regret", tuple(lines))


def _late(regrets: Regrets, entry: Entry, label: str, index: int) -> Series:
    line = curve(regrets, entry, label, policy_colour(index), policy_dash(index))
    return line.where((line.y > 0) & (line.x >= regrets.horizon / SHOWN))


def _pair_words(regrets: Regrets, between: Entry, variant: Entry) -> str:
    first, second = (number(float(regrets.mean(entry).value[-1])) for entry in (between, variant))
    more = interval_text(regrets.price(variant, between)[-1], percent)
    return (
        f"At {rho_text(between.rho)} the regret at step {regrets.horizon:,} is {first}, and {second} of the variant, "
        f"whose excess is {more}."
    )


def rivals(regrets: Regrets) -> Picture:
    """Regret at the horizon of every policy at each budget, and over time."""
    rhos = regrets.rhos()
    return Picture(
        "rivals",
        "Rivals at equal budgets",
        (_at_the_end(regrets), *(_over_time(regrets, rho) for rho in rhos)),
        f"Mean regret at step {regrets.horizon:,} (first panel; points beside each other have the same rho, and "
        '"none" is without privacy) and up to each step (a panel for each budget). Policies for pure DP have '
        f"epsilon = sqrt(2 rho), which implies rho-zCDP. The reference, for Bernoulli arms, is what the best policies "
        f"for a budget reach asymptotically (docs/theory.md): no floor at this horizon. {how(regrets)}",
        tuple(_ranking(regrets, rho) for rho in rhos),
    )


def _at_the_end(regrets: Regrets) -> Panel:
    places, families, lines = rho_places(regrets.rhos()), regrets.families(), []
    for index, family in enumerate(families):
        ends = stacked([regrets.mean(entry)[-1] for entry in family.entries])
        shift = 10 ** (0.08 * (index - (len(families) - 1) / 2))  # beside each other, where they would hide each other
        x = np.array([places[entry.rho] for entry in family.entries]) * shift
        lines.append(Series.of(family.name, x, ends, policy_colour(index), policy_dash(index), marks=True))
    ticks = rho_ticks(places)
    return Panel("At the end", "rho", "mean regret", tuple(lines), True, ticks=ticks, y_range=log_range(lines))


def _over_time(regrets: Regrets, rho: float) -> Panel:
    lines = [
        _late(regrets, entry, family.name, index)
        for index, family in enumerate(regrets.families())
        for entry in family.entries
        if entry.rho == rho
    ]
    return Panel(rho_text(rho), "step", "mean regret", tuple(lines), log_y=True)


def _ranking(regrets: Regrets, rho: float) -> str:
    """From the least regret up; who cannot be told from the best (two-sided, Holm) is named."""
    entries = [entry for entry in regrets.experiment.entries if entry.rho == rho]
    entries.sort(key=lambda entry: float(regrets.mean(entry).value[-1]))
    best, others = entries[0], entries[1:]
    regret = ", ".join(f"{name_of(entry)} {_regret(regrets, entry)}" for entry in entries)
    apart = [regrets.difference(entry, best)[-1] for entry in others]
    adjusted = holm([min(1.0, 2 * min(one.p_above(), one.p_below())) for one in apart])
    near = [name_of(entry) for entry, p in zip(others, adjusted, strict=True) if p >= 0.05]
    tail = f"; {listing(near)} cannot be told from {name_of(best)} in these runs" if near else ""
    name = rho_text(rho)
    return f"{name[0].upper()}{name[1:]}: {regret}{tail}."


def _regret(regrets: Regrets, entry: Entry) -> str:
    """The regret at the end, and how many times the asymptotic reference it is, where that is known."""
    value, reference = float(regrets.mean(entry).value[-1]), regrets.reference(entry)
    times = "" if reference is None else f" ({number(value / reference)} times the reference)"
    return number(value) + times
