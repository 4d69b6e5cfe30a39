"""What a picture shows, before anybody draws it: panels of lines with their intervals.

`figures` draws it with matplotlib and `interactive` with plotly, so that both show the same numbers. A line that is a
budget has the colour of its rho; a line that is a policy has a colour and a dash of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from private_bandits.arrays import Floats
from private_bandits.experiments.analysis.estimates import RegretEstimate
from private_bandits.experiments.analysis.regrets import Regrets
from private_bandits.experiments.analysis.wording import rho_number
from private_bandits.experiments.run.experiment import Entry
from private_bandits.loading import require
from private_bandits.palette import Colour

if TYPE_CHECKING:
    import pandas as pd

NONE = "none"
"""Where a budget would stand, the twin without privacy."""


@dataclass(frozen=True)
class Series:
    """One line with a band, or points with bars, or (`bare`) a line that only leads the eye."""

    label: str
    x: Floats
    y: Floats
    low: Floats
    high: Floats
    colour: Colour
    dash: str = "solid"
    marks: bool = False
    bare: bool = False

    @classmethod
    def of(
        cls, label: str, x: Floats, estimate: RegretEstimate, colour: Colour, dash: str = "solid", marks: bool = False
    ) -> Series:
        """An estimate with its interval; places where it has no value are left out."""
        seen = np.isfinite(estimate.value)
        low, high = estimate.interval()
        return cls(label, x[seen], estimate.value[seen], low[seen], high[seen], colour, dash, marks)

    @classmethod
    def guide(cls, label: str, x: Sequence[float], y: Sequence[float], colour: Colour, dash: str = "solid") -> Series:
        """A line without errors."""
        place, value = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
        return cls(label, place, value, value, value, colour, dash, bare=True)

    def where(self, seen: NDArray[np.bool_]) -> Series:
        """Some of its points; a line is broken where one is missing."""
        if self.bare:
            y = np.where(seen, self.y, np.nan)
            return replace(self, y=y, low=y, high=y)
        return replace(self, x=self.x[seen], y=self.y[seen], low=self.low[seen], high=self.high[seen])


@dataclass(frozen=True)
class Panel:
    """One pair of axes. The x axis is logarithmic, with its own ticks where `ticks` gives (place, text)."""

    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    log_y: bool = False
    percent: bool = False
    zero: bool = False
    legend: bool = True
    ticks: tuple[tuple[float, str], ...] = ()
    margin: tuple[float, float] | None = None
    y_range: tuple[float, float] | None = None

    def x_of(self, place: float) -> float:
        """What stands at a place of the x axis: the place itself, or infinity where that is marked as none."""
        return math.inf if (place, NONE) in self.ticks else float(place)


@dataclass(frozen=True)
class Picture:
    """Panels, how to read them, and what they show in sentences that come from the numbers."""

    name: str
    title: str
    panels: tuple[Panel, ...]
    reading: str
    words: tuple[str, ...]

    def rows(self) -> Iterator[dict[str, object]]:
        """A row for each point with its interval; guides are left out."""
        for panel in self.panels:
            for series in (series for series in panel.series if not series.bare):
                for x, y, low, high in zip(series.x, series.y, series.low, series.high, strict=True):
                    yield {
                        "panel": panel.title,
                        "line": series.label,
                        panel.x_label: panel.x_of(x),
                        "value": float(y),
                        "low": float(low),
                        "high": float(high),
                    }

    def to_frame(self) -> pd.DataFrame:
        """The rows as a DataFrame."""
        require("a frame of a picture", "experiments", "pandas")
        import pandas as pd

        return pd.DataFrame(list(self.rows()))


def how(regrets: Regrets) -> str:
    """What the intervals are."""
    pairs = "run by run, as runs share their contexts" if regrets.paired else "of independent runs (Welch)"
    return f"Bands and bars are intervals of 95 % from {regrets.runs} runs: Student's t; differences {pairs}."


def curve(regrets: Regrets, entry: Entry, label: str, colour: Colour, dash: str) -> Series:
    """Mean regret over time."""
    return Series.of(label, regrets.steps.astype(float), regrets.mean(entry), colour, dash)


def calm_range(horizon: int, lines: Sequence[Series]) -> tuple[float, float] | None:
    """Room for everything but the first steps, where the regret is near zero and ratios of it are wild."""
    ends = np.concatenate([part[line.x >= horizon**0.25] for line in lines for part in (line.low, line.high, line.y)])
    ends = ends[np.isfinite(ends)]
    if not len(ends):
        return None
    low, high = min(0.0, float(ends.min())), max(0.0, float(ends.max()))
    room = 0.05 * (high - low) or 0.01
    return low - room, high + room


def log_range(lines: Sequence[Series]) -> tuple[float, float] | None:
    """Room for the values on a log scale; an interval that reaches to zero runs out of it, and so does a value of 0."""
    values = np.concatenate([line.y for line in lines])
    values = values[np.isfinite(values) & (values > 0)]
    if not len(values):
        return None
    ends = np.concatenate([np.concatenate([line.low, line.high]) for line in lines])
    ends = ends[np.isfinite(ends) & (ends > values.min() / 3)]
    return float(min(values.min(), *ends)) / 1.5, float(max(values.max(), *ends)) * 1.5


def rho_places(rhos: Sequence[float]) -> dict[float, float]:
    """Where each rho stands on a log axis; the twin to the right of all others."""
    last = max((rho for rho in rhos if math.isfinite(rho)), default=1.0)
    return {rho: rho if math.isfinite(rho) else 10 * last for rho in rhos}


def rho_ticks(places: Mapping[float, float]) -> tuple[tuple[float, str], ...]:
    """Each rho in words where it stands."""
    return tuple((place, NONE if math.isinf(rho) else rho_number(rho)) for rho, place in places.items())
