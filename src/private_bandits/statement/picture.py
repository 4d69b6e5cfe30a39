"""The picture of means and intervals: where things stand, in per cent of its width, so that it fits any page."""

from __future__ import annotations

import math
from dataclasses import dataclass

from private_bandits.policies import Estimate
from private_bandits.statement.facts import Facts
from private_bandits.statement.found import MOST_ARMS
from private_bandits.statement.numbers import Figures

MOST_MARKS = 6
"""Marks of the scale, about: as many as fit on a phone."""
_SHORT, _LONG = 6, 9
"""Characters of a number on the scale. If one has more, every second mark has a number, or only both ends."""
_EDGE = 8.0
"""Per cent of the width that stay free on either side."""


@dataclass(frozen=True)
class Mark:
    """A number on the scale, and where it stands."""

    at: str
    text: str


@dataclass(frozen=True)
class ArmRow:
    """One arm: its numbers as texts, and where its interval and its mean stand. No `middle`: nothing is known."""

    name: str
    control: bool
    best: bool
    rewards: int
    mean: str
    interval: str
    left: str = ""
    middle: str = ""
    right: str = ""


class Scale:
    """A stretch of the reward range that holds all intervals of arms of which something is known."""

    def __init__(self, facts: Facts) -> None:
        bounds = facts.settings.reward_range
        known = [found for found in facts.estimates if found.mean is not None]
        low = min((min(found.low, found.mean or 0.0) for found in known), default=bounds.low)
        high = max((max(found.high, found.mean or 0.0) for found in known), default=bounds.high)
        if not high - low > 1e-3 * bounds.width:
            low, high = bounds.low, bounds.high
        self._step = _step((high - low) / (MOST_MARKS - 1))
        self._low = self._step * math.floor(low / self._step + 1e-9)
        self._high = self._step * math.ceil(high / self._step - 1e-9)
        self._figures = Figures(bounds)

    def at(self, value: float) -> str:
        """Return where a value stands, in per cent of the width."""
        part = (value - self._low) / (self._high - self._low)
        return f"{_EDGE + (100 - 2 * _EDGE) * min(max(part, 0.0), 1.0):.3f}%"

    @property
    def marks(self) -> list[Mark]:
        """The marks of the scale, from left to right."""
        count = round((self._high - self._low) / self._step)
        values = [self._low + number * self._step for number in range(count + 1)]
        texts = [self._figures.plain(value) for value in values]
        longest = max(map(len, texts))
        every = count if longest > _LONG else 2 if longest > _SHORT else 1
        texts = [text if number % every == 0 else "" for number, text in enumerate(texts)]
        return [Mark(self.at(value), text) for value, text in zip(values, texts, strict=True)]


def _step(least: float) -> float:
    """Return the smallest of 1, 2, 5, 10, 20, ... that is at least this."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(power * times for times in (1.0, 2.0, 5.0, 10.0, 20.0) if power * times >= least * (1 - 1e-9))


def arm_rows(facts: Facts, scale: Scale | None = None) -> list[ArmRow]:
    """Return a row for each arm, in their order; of very many arms those of the largest means."""
    shown = facts.estimates
    if len(shown) > MOST_ARMS:
        best = sorted(shown, key=lambda found: -math.inf if found.mean is None else found.mean, reverse=True)
        shown = sorted(best[:MOST_ARMS])
    return [_row(facts, found, scale or Scale(facts)) for found in shown]


def _row(facts: Facts, found: Estimate, scale: Scale) -> ArmRow:
    figures = Figures(facts.settings.reward_range)
    control = found.arm == facts.settings.control
    best = len(facts.estimates) > 1 and facts.verdict is not None and facts.verdict.action == found.action
    if found.mean is None:
        return ArmRow(found.arm, control, best, found.rewards, "not known", "not known")
    mean, interval = figures.near(found.mean), figures.interval(found.low, found.high)
    places = map(scale.at, (found.low, found.mean, found.high))
    return ArmRow(found.arm, control, best, found.rewards, mean, interval, *places)
