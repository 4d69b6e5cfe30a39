"""What privacy costs: at the end for each budget, over time as a price, and the regrets themselves."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from private_bandits.experiments.analysis.estimates import FREE, RegretEstimate
from private_bandits.experiments.analysis.regrets import Family, Regrets
from private_bandits.experiments.analysis.wording import interval_text, listing, percent, rho_number, rho_text
from private_bandits.experiments.run.experiment import Entry
from private_bandits.experiments.show.pictures import Panel, Picture, Series, calm_range, curve, how, log_range
from private_bandits.palette import GREY, policy_colour, policy_dash, rho_colour


def difference(regrets: Regrets) -> Picture:
    """Reg_private(T) - Reg_non-private(T) against rho."""
    families = regrets.with_twins()
    series = [line for index, pair in enumerate(families) for line in _differences(regrets, index, *pair)]
    positive = [line.where(line.y > 0) for line in series]
    ticks = _ticks(sorted({entry.rho for family, _ in families for entry in family.private}))
    margin = FREE * float(regrets.mean(families[0][1]).value[-1]) if len(families) == 1 else 0.0
    words = "difference of regret"
    several = len(families) > 1
    shared: dict[str, Any] = {"legend": several, "ticks": ticks}
    panels = [
        Panel("Linear scale", "rho", words, tuple(series), zero=True, margin=(-margin, margin), **shared),
        Panel(
            "Log scale", "rho", words, tuple(positive), True, margin=(0, margin), y_range=log_range(positive), **shared
        ),
    ]
    grey = " The grey area is 10 % of the regret without privacy to either side of zero." if margin else ""
    return Picture(
        "difference",
        "What privacy costs at the end, for each budget",
        tuple(panels if any(np.isfinite(line.y).any() for line in positive) else panels[:1]),
        f"Mean regret at step {regrets.horizon:,} minus that of the same policy without privacy; privacy gets weaker "
        f"to the right.{grey} On a log scale there is no place for differences below zero. {how(regrets)}",
        tuple(_difference_words(regrets, *pair) for pair in families),
    )


def _differences(regrets: Regrets, index: int, family: Family, twin: Entry) -> Iterator[Series]:
    """A line that leads the eye, and a point in the colour of each rho."""
    found = [regrets.difference(entry, twin)[[-1]] for entry in family.private]
    colour = GREY if len(regrets.families()) == 1 else policy_colour(index)
    values = [float(one.value[0]) for one in found]
    yield Series.guide(family.name, [entry.rho for entry in family.private], values, colour, policy_dash(index))
    for entry, one in zip(family.private, found, strict=True):
        yield Series.of(entry.label, np.array([entry.rho]), one, rho_colour(entry.rho), marks=True)


def _difference_words(regrets: Regrets, family: Family, twin: Entry) -> str:
    base = regrets.mean(twin)[-1]
    parts = []
    for entry in _ends(family.private):
        end = regrets.difference(entry, twin)[-1]
        share = percent(float(end.value / base.value)) if base.value > 0 else "unknown"
        parts.append(f"at {rho_text(entry.rho)} the difference is {interval_text(end)}, {share} of that")
    return f"{_whose(regrets, family)}Without privacy the regret is {interval_text(base)}; {'; '.join(parts)}."


def price(regrets: Regrets) -> Picture:
    """PoP(t) = (Reg_private(t) - Reg_non-private(t))/Reg_non-private(t) against the step."""
    return Picture(
        "price",
        "The price of privacy over time",
        tuple(_price_panel(regrets, *pair) for pair in regrets.with_twins()),
        "How much larger the mean regret is than that of the same policy without privacy, as a share of the latter, up "
        f"to each step. 0 %: privacy is free. {how(regrets)} The error of the ratio of means is the delta method's.",
        tuple(_price_words(regrets, *pair) for pair in regrets.with_twins()),
    )


def _price_panel(regrets: Regrets, family: Family, twin: Entry) -> Panel:
    steps = regrets.steps.astype(float)
    lines = [
        Series.of(rho_text(entry.rho), steps, regrets.price(entry, twin), rho_colour(entry.rho))
        for entry in family.private
    ]
    room = calm_range(regrets.horizon, lines)
    return Panel(family.name, "step", "price of privacy", tuple(lines), percent=True, zero=True, y_range=room)


def _price_words(regrets: Regrets, family: Family, twin: Entry) -> str:
    early = int(np.searchsorted(regrets.steps, regrets.horizon / 100))
    parts = []
    for entry in _ends(family.private):
        found = regrets.price(entry, twin)
        then = f"after {percent(float(found.value[early]))} at step {regrets.steps[early]:,}"
        parts.append(f"{interval_text(found[-1], percent)} at {rho_text(entry.rho)} ({then})")
    return f"{_whose(regrets, family)}At the end the price is {listing(parts)}."


def curves(regrets: Regrets) -> Picture:
    """Mean regret of every entry against the step."""
    panels = []
    for family in regrets.families():
        lines = [
            curve(regrets, e, rho_text(e.rho), rho_colour(e.rho), "dash" if math.isinf(e.rho) else "solid")
            for e in family.entries
        ]
        panels.append(Panel(family.name, "step", "mean regret", tuple(lines)))
    return Picture(
        "curves",
        "Regret over time",
        tuple(panels),
        f"Mean regret up to each step; the broken line is without privacy. {how(regrets)}",
        tuple(_curve_words(regrets, family) for family in regrets.families()),
    )


def _curve_words(regrets: Regrets, family: Family) -> str:
    entries = [*_ends(family.private), *([family.twin] if family.twin else [])]
    ends: list[tuple[Entry, RegretEstimate]] = [(entry, regrets.mean(entry)[-1]) for entry in entries]
    text = listing([f"{interval_text(end)} {_with(entry.rho)}" for entry, end in ends])
    return f"{_whose(regrets, family)}After {regrets.horizon:,} steps the regret is {text}."


def _with(rho: float) -> str:
    return "without privacy" if math.isinf(rho) else f"at {rho_text(rho)}"


def _whose(regrets: Regrets, family: Family) -> str:
    return f"{family.name}: " if len(regrets.families()) > 1 else ""


def _ends(entries: Sequence[Entry]) -> list[Entry]:
    """The first and the last, once where they are the same."""
    return list(dict.fromkeys([*entries[:1], *entries[-1:]]))


def _ticks(rhos: list[float]) -> tuple[tuple[float, str], ...]:
    """Every rho where there are few; powers of ten within the range otherwise."""
    if len(rhos) > 4:
        low, high = math.ceil(math.log10(rhos[0]) - 1e-9), math.floor(math.log10(rhos[-1]) + 1e-9)
        rhos = [10.0**power for power in range(low, high + 1)] or rhos
    return tuple((rho, rho_number(rho)) for rho in rhos)
