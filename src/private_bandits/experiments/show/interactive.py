"""The same pictures for plotly.js, as plain data: traces and a layout for each panel.

Colours come in pairs, for light and dark; the page's script takes the one that suits and draws again when that
changes. Titles and legends are the page's own, so that they wrap on a phone.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from private_bandits.arrays import Floats
from private_bandits.experiments.show.pictures import Panel, Series
from private_bandits.palette import Colour

Spec = dict[str, Any]
DIGITS = 7
"""Of every number on the page: more than anybody sees, and a smaller page."""


def panel_data(panel: Panel) -> Spec:
    """What the page's script needs to draw a panel: {"traces", "layout", "legend"}."""
    traces = [trace for index, series in enumerate(panel.series) for trace in _traces(panel, series, index)]
    shown = [(index, series) for index, series in enumerate(panel.series) if len(series.x)]
    legend = [
        {"series": index, "label": series.label, "dash": series.dash, **_colours(series.colour)}
        for index, series in shown
        if panel.legend and not (series.marks and len(series.x) == 1)
    ]
    return {"traces": traces, "layout": _layout(panel), "legend": legend}


def _colours(colour: Colour) -> dict[str, str]:
    return {"light": colour.light, "dark": colour.dark}


def _traces(panel: Panel, series: Series, index: int) -> list[Spec]:
    """A band and a line over it, or points with bars. "meta" says whose they are and in which colour."""
    if not len(series.x):
        return []
    meta = {"series": index, **_colours(series.colour)}
    found = []
    if not series.marks and not series.bare and np.isfinite(series.low).any():
        found.append(_band(panel, series, meta))
    trace: Spec = {
        "type": "scatter",
        "mode": _mode(series),
        "name": series.label,
        "x": numbers(series.x),
        "y": numbers(series.y),
        "line": {"dash": series.dash, "width": 1.3 if series.bare else 2.2},
        "meta": meta | {"role": "line"},
        "showlegend": False,
    }
    if series.bare:
        trace["hoverinfo"] = "skip"
    else:
        trace["text"] = [_hover(panel, *point) for point in zip(series.y, series.low, series.high, strict=True)]
        trace["hovertemplate"] = f"{panel.x_label} %{{x:,.4~g}}: %{{text}}<extra>%{{fullData.name}}</extra>"
    if series.marks:
        trace["marker"] = {"size": 9}
        trace["error_y"] = {
            "type": "data",
            "symmetric": False,
            "array": numbers(series.high - series.y),
            "arrayminus": numbers(series.y - series.low),
            "thickness": 1.6,
            "width": 4,
        }
    return [*found, trace]


def _mode(series: Series) -> str:
    if not series.marks:
        return "lines"
    return "markers" if len(series.x) == 1 else "lines+markers"


def _band(panel: Panel, series: Series, meta: dict[str, Any]) -> Spec:
    """One closed shape; on a log scale it ends a little below the line where the interval reaches zero."""
    low = np.where(series.low > 0, series.low, series.y / 100) if panel.log_y else series.low
    return {
        "type": "scatter",
        "mode": "lines",
        "x": numbers(np.concatenate([series.x, series.x[::-1]])),
        "y": numbers(np.concatenate([low, series.high[::-1]])),
        "fill": "toself",
        "line": {"width": 0},
        "hoverinfo": "skip",
        "showlegend": False,
        "meta": meta | {"role": "band"},
    }


def _hover(panel: Panel, value: float, low: float, high: float) -> str:
    value_text, low_text, high_text = (
        f"{100 * number:,.4g} %" if panel.percent else f"{number:,.6g}" for number in (value, low, high)
    )
    return value_text if math.isnan(low) else f"{value_text} ({low_text} to {high_text})"


def _layout(panel: Panel) -> Spec:
    layout: Spec = {"xaxis": _x_axis(panel), "yaxis": _y_axis(panel), "hovermode": "closest", "showlegend": False}
    if panel.margin and panel.margin[1] > 0:
        layout["shapes"] = [_margin(panel, *panel.margin)]
    return layout


def _x_axis(panel: Panel) -> Spec:
    """In powers of ten, with a little room so that ticks at the ends are drawn."""
    axis: Spec = {"type": "log", "automargin": True, "title": {"text": panel.x_label, "standoff": 6}}
    places = np.log10(np.concatenate([series.x for series in panel.series]))
    if len(places):
        low, high = float(places.min()), float(places.max())
        room = 0.05 * (high - low) or 0.5
        axis["range"] = [low - (room if panel.ticks else 0.2 * room), high + room]
    if panel.ticks:
        return axis | {"tickvals": [place for place, _ in panel.ticks], "ticktext": [text for _, text in panel.ticks]}
    return axis | {"dtick": 1, "exponentformat": "power"}


def _y_axis(panel: Panel) -> Spec:
    axis: Spec = {"type": "log" if panel.log_y else "linear", "automargin": True, "zeroline": panel.zero}
    if panel.y_range:
        axis["range"] = [math.log10(end) if panel.log_y else end for end in panel.y_range]
    if not panel.log_y:
        return axis | {"tickformat": ",.4~%" if panel.percent else ",.6~g"}
    ticks = _short_ticks(panel)
    if ticks:
        return axis | {"tickvals": ticks, "ticktext": [f"{tick:,.6g}" for tick in ticks]}
    return axis | {"dtick": 1, "exponentformat": "power"}


def _short_ticks(panel: Panel) -> list[float]:
    """1, 2, 5, 10, ... on a log scale of few powers of ten, where powers alone would be too few ticks."""
    values = np.concatenate([series.y for series in panel.series])
    values = values[values > 0]
    if not len(values) or values.max() / values.min() > 300:
        return []
    first, last = math.floor(math.log10(values.min())), math.ceil(math.log10(values.max()))
    return [float(f"{digit}e{power}") for power in range(first - 1, last + 1) for digit in (1, 2, 5)]


def _margin(panel: Panel, low: float, high: float) -> Spec:
    floor = high / 1e6 if panel.log_y else low
    return {
        "type": "rect", "xref": "paper", "x0": 0, "x1": 1, "y0": floor, "y1": high, "layer": "below",
        "line": {"width": 0}, "fillcolor": "rgba(128,134,139,0.16)",
    }  # fmt: skip


def numbers(values: Floats) -> list[float | None]:
    """For JSON, which knows no infinity and has a null for what is missing.

    >>> numbers(np.array([1.0, np.nan, 1234.56789123]))
    [1.0, None, 1234.568]
    """
    return [float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None for value in values]
