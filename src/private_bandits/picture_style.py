"""How pictures look, wherever they are drawn. Nothing here needs matplotlib: axes are handed in."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from private_bandits.arrays import Floats
from private_bandits.palette import INK, Colour

LINES = {"solid": "-", "dash": (0, (5, 2)), "dashdot": (0, (5, 1.5, 1, 1.5)), "dot": (0, (1.2, 1.5))}
AXIS = Colour("#9aa0a6", "#6d747c")
GRID = Colour("#e3e5e8", "#2e3238")
TICK = Colour("#5f6368", "#a9aeb4")
STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",  # comes with matplotlib, so that pictures are the same on every machine
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": AXIS.light,
    "axes.labelcolor": INK.light,
    "axes.titlelocation": "left",
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.grid": True,
    "axes.grid.which": "major",
    "grid.color": GRID.light,
    "grid.linewidth": 0.8,
    "axes.axisbelow": True,
    "xtick.color": TICK.light,
    "ytick.color": TICK.light,
    "xtick.minor.visible": False,
    "ytick.minor.visible": False,
    "legend.frameon": False,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "svg.hashsalt": "private-bandits",  # names of parts would be random otherwise
    "svg.fonttype": "path",
}


def draw_line(
    axes: Any, label: str, x: Floats, y: Floats, band: tuple[Floats, Floats] | None, colour: Colour, dash: str
) -> None:
    """Draw a line with a band around it; without one the line is thinner."""
    style: Any = LINES[dash]
    if band is not None:
        axes.fill_between(x, *band, color=colour.light, alpha=0.18, lw=0)
    axes.plot(x, y, color=colour.light, ls=style, lw=1.2 if band is None else 1.8, label=label)


def spread_out(places: Sequence[float], gap: float, low: float, high: float) -> Floats:
    """Return places between low and high that are at least a gap apart, and as near to the given ones as that allows.

    Where there is no room for the gap, the places are evenly spaced.

    >>> spread_out([0.5, 0.5, 0.1], 0.2, 0, 1).tolist()
    [0.4, 0.6, 0.1]
    """
    wanted = np.asarray(places, dtype=float)
    if len(wanted) < 2:
        return wanted.clip(low, high)
    order = np.argsort(wanted, kind="stable")
    step = min(gap, (high - low) / (len(wanted) - 1))
    steps = step * np.arange(len(wanted))
    # Without the steps, places only have not to fall; the nearest such ones are means over blocks.
    blocks: list[tuple[float, int]] = []
    for place in wanted[order] - steps:
        mean, size = float(place), 1
        while blocks and blocks[-1][0] >= mean:
            before, count = blocks.pop()
            mean, size = (before * count + mean * size) / (count + size), count + size
        blocks.append((mean, size))
    level = np.concatenate([np.full(size, mean) for mean, size in blocks]).clip(low, high - steps[-1])
    found = np.empty_like(wanted)
    found[order] = level + steps
    return found


def svg_element(text: str, colours: Sequence[Colour]) -> str:
    """Return a picture of matplotlib's as an element for a page: no document type, no metadata, no fixed size.

    Its colours become variables of the page (`variable`).
    """
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text[text.index("<svg") :], flags=re.DOTALL)
    text = re.sub(r' (width|height)="[\d.]+pt"', "", text, count=2)
    return _recoloured(text, colours)


def variable(colour: Colour) -> str:
    """Return the name of the page's variable for a colour."""
    return f"c{colour.light[1:]}"


def _recoloured(text: str, colours: Sequence[Colour]) -> str:
    """Replace colours within tags; a name that looks like a colour is text, and stays."""
    names = {colour.light: f"var(--{variable(colour)})" for colour in colours}
    pattern = re.compile("|".join(names))
    return re.sub(r"<[^<>]+>", lambda tag: pattern.sub(lambda found: names[found[0]], tag[0]), text)
