"""The picture of a simulation by matplotlib: lines with bands, and their names at their ends."""

from __future__ import annotations

import io
import textwrap
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from private_bandits.loading import require
from private_bandits.palette import GREY, INK, Colour
from private_bandits.picture_style import AXIS, GRID, LINES, STYLE, TICK, draw_line, spread_out, svg_element
from private_bandits.simulation.curve_panels import (
    LONG,
    PICTURE_NEEDS,
    CurvePanel,
    Line,
    note_of,
    panels_of,
    reading_of,
    short_names,
    title_of,
)

require(*PICTURE_NEEDS)

import matplotlib as mpl  # noqa: E402
from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402
from matplotlib.lines import Line2D  # noqa: E402
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator  # noqa: E402

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from private_bandits.simulation.run import Simulation

WIDE, NARROW = 7.6, 4.1
"""Inches: for a page and for a phone."""
DPI = 160
LABEL_SIZE, SPACING = 9.0, 1.35
"""Points of the names at the ends of lines, and from line to line as a multiple of that."""
GAP = 0.03
"""Between a line's end and its name, as a share of the axes."""
SHARED = (INK, GREY, AXIS, GRID, TICK)
"""Colours of what is not a line."""


class CurveFigure(Figure):
    """A figure that notebooks show, whether pyplot was imported or not."""

    def _repr_png_(self) -> bytes:
        out = io.BytesIO()
        self.savefig(out, format="png", dpi=110)
        return out.getvalue()


def draw(result: Simulation, width: float = WIDE, words: bool = True) -> CurveFigure:
    """Return the picture. words: whether its title and its small print are in it."""
    panels = panels_of(result)
    heights = [_height(panel) for panel in panels]
    with mpl.rc_context(STYLE):
        figure = CurveFigure(figsize=(width, sum(heights) + (0.7 if words else 0.1)), layout="constrained")
        FigureCanvasAgg(figure)
        grid = figure.subplots(len(panels), 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0]
        labels = [_panel(axes, panel, result, width) for axes, panel in zip(grid, panels, strict=True)]
        grid[-1].set_xlabel("steps, log scale" if result.horizon >= LONG else "steps")
        if words:
            _words(figure, result, width)
        figure.get_layout_engine().execute(figure)  # type: ignore[union-attr]
        figure.set_layout_engine("none")  # the names need the room that was left for them
        for axes, panel, texts in zip(grid, panels, labels, strict=True):
            _place(axes, panel.lines, texts)
    return figure


def save(figure: Figure, path: str | Path) -> None:
    """Write the figure as its path's ending says: the same bytes for the same numbers."""
    kind = Path(path).suffix.lower()
    nothing = {".png": ("Software",), ".svg": ("Date", "Creator"), ".pdf": ("CreationDate", "Creator", "Producer")}
    with mpl.rc_context(STYLE):
        figure.savefig(path, dpi=DPI, metadata=dict.fromkeys(nothing[kind]))


def svg_of(result: Simulation, width: float = WIDE) -> str:
    """Return the picture as an element for a page, without its title and small print.

    Its text is text, and its colours are variables of the page: `colours_of` has their values.
    """
    style = STYLE | {"svg.fonttype": "none", "font.family": ["DejaVu Sans", "sans-serif"]}
    out = io.StringIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph", UserWarning)  # the browser has the letter
        figure = draw(result, width, words=False)
        with mpl.rc_context(style | {"svg.hashsalt": f"private-bandits {width}"}):  # two pictures on a page
            figure.savefig(out, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    return svg_element(out.getvalue(), colours_of(result))


def svg_image(result: Simulation) -> bytes:
    """Return the whole picture as a file of its own, for a notebook."""
    out = io.BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph", UserWarning)
        figure = draw(result)
        with mpl.rc_context(STYLE):
            figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    return out.getvalue()


def colours_of(result: Simulation) -> list[Colour]:
    """Return all colours of the picture, each once."""
    lines = (line.colour for panel in panels_of(result) for line in panel.lines)
    return list(dict.fromkeys([*SHARED, *lines]))


def _height(panel: CurvePanel) -> float:
    """Return inches of a panel in which all of its names have room."""
    return max(2.6 if panel.stairs else 3.3, len(panel.lines) * LABEL_SIZE * SPACING / 72 + 0.8)


def _panel(axes: Axes, panel: CurvePanel, result: Simulation, width: float) -> list[Any]:
    """Draw lines and their names. The names are not in their places yet."""
    first, last = float(result.checkpoints[0]), float(result.horizon)
    if result.horizon >= LONG:
        axes.set_xscale("log")
    for line in panel.lines:
        _draw(axes, line, panel.stairs)
    axes.xaxis.set_minor_locator(NullLocator())
    if first == last:
        axes.set_xlim(0.5 * last, 1.5 * last)
        axes.set_xticks([last], [f"{result.horizon:,}"])
    else:
        axes.set_xlim(first, last)
        if result.horizon < LONG:
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_ylabel(panel.y_label)
    if panel.percent:
        axes.set_ylim(0, 1.02)
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:.0f}"))
    else:
        axes.set_ylim(*_limits(panel.lines))
        axes.yaxis.set_major_formatter("{x:,.6g}")
    names = short_names([str(line.label) for line in panel.lines], 34 if width > NARROW else 18)
    return [
        axes.text(
            1 + 1.4 * GAP, 0.5, f"{name}  {line.end}", transform=axes.transAxes, va="center",
            fontsize=LABEL_SIZE, color=INK.light, parse_math=False,
        )
        for name, line in zip(names, panel.lines, strict=True)
    ]  # fmt: skip


def _limits(lines: Sequence[Line]) -> tuple[float, float]:
    """Return room for all lines and bands; zero is in sight."""
    ends = [part for line in lines for part in (line.y, *(line.band or ()))]
    low, high = min(0.0, *(float(part.min()) for part in ends)), max(0.0, *(float(part.max()) for part in ends))
    room = 0.04 * (high - low) or 0.5
    return (low - room if low < 0 else 0.0), high + room


def _draw(axes: Axes, line: Line, stairs: bool) -> None:
    style: Any = LINES[line.dash]
    if len(line.x) == 1:
        reach = None if line.band is None else (line.band[1] - line.y)
        axes.errorbar(
            line.x, line.y, reach, color=line.colour.light, marker="o", ms=6, capsize=3, label=line.label, clip_on=False
        )
    elif stairs:
        axes.plot(line.x, line.y, color=line.colour.light, ls=style, lw=1.8, label=line.label, drawstyle="steps-post")
    else:
        draw_line(axes, line.label, line.x, line.y, line.band, line.colour, line.dash)


def _words(figure: Figure, result: Simulation, width: float) -> None:
    """Title above, small print below."""
    title = textwrap.fill(title_of(result), int(11 * width))
    figure.suptitle(title, x=0.01, ha="left", fontsize=11.5, weight="bold", color=INK.light, parse_math=False)
    small = textwrap.fill(f"{reading_of(result)} {note_of(result)}", int(17 * width))
    figure.supxlabel(small, x=0.01, ha="left", fontsize=7.5, color=GREY.light, parse_math=False)


def _place(axes: Axes, lines: Sequence[Line], texts: Sequence[Any]) -> None:
    """Put each name where its line ends, or as near to it as others allow; a short line leads there."""
    low, high = axes.get_ylim()
    points = axes.get_position().height * axes.figure.get_figheight() * 72  # type: ignore[union-attr]
    ends = [(float(line.y[-1]) - low) / (high - low) for line in lines]
    gap = LABEL_SIZE * SPACING / points
    places = spread_out(ends, gap, 0.4 * gap, 1 - 0.4 * gap)
    for line, text, end, place in zip(lines, texts, ends, places, strict=True):
        text.set_y(place)
        style: Any = LINES[line.dash]
        axes.add_artist(
            Line2D(
                [1, 1 + GAP], [end, place], transform=axes.transAxes, clip_on=False, color=line.colour.light,
                ls=style, lw=1.2, gid="leader",
            )
        )  # fmt: skip
