"""A policy as published, and ours, at equal budgets: over rho, over time and over sizes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from private_bandits.experiments.analysis.estimates import stacked
from private_bandits.experiments.analysis.regrets import Pair, Regrets, name_of
from private_bandits.experiments.analysis.wording import interval_text, listing, percent, rho_text
from private_bandits.experiments.run.experiment import Options
from private_bandits.experiments.show.pictures import (
    Panel,
    Picture,
    Series,
    calm_range,
    how,
    log_range,
    rho_places,
    rho_ticks,
)
from private_bandits.palette import GREY, INK, policy_colour, policy_dash, rho_colour

SIZES = {"arms": "K", "dimension": "d"}
"""Of an instance, as they are called in pictures."""

STYLES = ((GREY, "dash"), (INK, "solid"))
"""As published, and ours: other colours than those of instances and budgets."""


def variants(regrets: Regrets) -> Picture:
    """Regret of both on the first instance, and how much lower ours is: over rho, over time, over sizes."""
    instances = _by_instance(regrets)
    published, ours = map(name_of, regrets.pairs()[0].both)
    first, *_, last = (*instances, *instances)
    return Picture(
        "variants",
        f"{ours}, and {published} as published, at equal budgets",
        (
            _both(regrets, first, instances[first]),
            _savings(regrets, instances),
            *(_over_time(regrets, name, instances[name]) for name in dict.fromkeys((first, last))),
            *(panel for size in SIZES for panel in _over_size(regrets, size)),
        ),
        f"Mean regret at step {regrets.horizon:,} of both on the first instance, and by how much that of {ours} is "
        "lower, as a share of the regret as published: on every instance at the end, on two of them up to each "
        f'step, and at the end over sizes, each of which is one instance. "None" is without privacy. {how(regrets)}',
        (*(_words(regrets, *item) for item in instances.items()), *_time_words(regrets, first, instances[first])),
    )


def _lower(regrets: Regrets) -> str:
    return f"{name_of(regrets.pairs()[0].ours)} is lower by"


def _by_instance(regrets: Regrets) -> Mapping[str, list[Pair]]:
    found: dict[str, list[Pair]] = {}
    for pair in regrets.pairs():
        found.setdefault(pair.instance, []).append(pair)
    return found


def _both(regrets: Regrets, name: str, pairs: Sequence[Pair]) -> Panel:
    places, lines = rho_places([pair.rho for pair in pairs]), []
    for index, entries in enumerate(zip(*(pair.both for pair in pairs), strict=True)):
        ends, x = stacked([regrets.mean(entry)[-1] for entry in entries]), np.array(list(places.values()))
        lines.append(Series.of(name_of(entries[0]), x, ends, *STYLES[index], marks=True))
    title = f"Regret: {name}"
    return Panel(title, "rho", "mean regret", tuple(lines), True, ticks=rho_ticks(places), y_range=log_range(lines))


def _savings(regrets: Regrets, instances: Mapping[str, Sequence[Pair]]) -> Panel:
    places, lines = rho_places(regrets.rhos()), []
    for index, (name, pairs) in enumerate(instances.items()):
        ends, x = stacked([regrets.saving(pair)[-1] for pair in pairs]), np.array([places[pair.rho] for pair in pairs])
        lines.append(Series.of(name, x, ends, policy_colour(index), policy_dash(index), marks=True))
    return Panel("Over rho", "rho", _lower(regrets), tuple(lines), percent=True, zero=True, ticks=rho_ticks(places))


def _over_time(regrets: Regrets, name: str, pairs: Sequence[Pair]) -> Panel:
    steps = regrets.steps.astype(float)
    lines = [Series.of(rho_text(pair.rho), steps, regrets.saving(pair), rho_colour(pair.rho)) for pair in pairs]
    room = calm_range(regrets.horizon, lines)
    return Panel(f"Over time: {name}", "step", _lower(regrets), tuple(lines), percent=True, zero=True, y_range=room)


def _over_size(regrets: Regrets, size: str) -> Iterator[Panel]:
    """A panel for each set of instances that differ in this size, and agree in the other and in the parameters."""
    (other,) = set(SIZES) - {size}
    groups: dict[tuple[str, Options], dict[Pair, int]] = {}
    for pair in regrets.pairs():
        instance = regrets.instance_of(pair.ours)
        rest = "" if regrets.experiment.setting == "finite" else f", {SIZES[other]} = {getattr(instance, other)}"
        group = groups.setdefault((f"Over {SIZES[size]}{rest}", pair.published.options), {})
        group[pair] = getattr(instance, size)
    for (title, _), places in groups.items():
        sizes = sorted(set(places.values()))
        if len(sizes) > 1:
            lines = tuple(_size_line(regrets, rho, places) for rho in regrets.rhos())
            ticks = tuple((float(place), str(place)) for place in sizes)
            yield Panel(title, SIZES[size], _lower(regrets), lines, percent=True, zero=True, ticks=ticks)


def _size_line(regrets: Regrets, rho: float, places: Mapping[Pair, int]) -> Series:
    pairs = sorted((pair for pair in places if pair.rho == rho), key=lambda pair: places[pair])
    ends, x = stacked([regrets.saving(pair)[-1] for pair in pairs]), np.array([float(places[pair]) for pair in pairs])
    return Series.of(rho_text(rho), x, ends, rho_colour(rho), marks=True)


def _words(regrets: Regrets, name: str, pairs: Sequence[Pair]) -> str:
    found = [f"{interval_text(regrets.saving(pair)[-1], percent)} at {rho_text(pair.rho)}" for pair in pairs]
    return f"{name[0].upper()}{name[1:]}: {_lower(regrets)} {listing(found)}."


def _time_words(regrets: Regrets, name: str, pairs: Sequence[Pair]) -> Iterator[str]:
    early = int(np.searchsorted(regrets.steps, regrets.horizon / 100))
    found = []
    for pair in pairs:
        then, last = (percent(float(regrets.saving(pair).value[place])) for place in (early, -1))
        found.append(f"{then} and {last} at {rho_text(pair.rho)}")
    yield f"{name[0].upper()}{name[1:]}, up to step {regrets.steps[early]:,} and up to the end: {listing(found)}."
