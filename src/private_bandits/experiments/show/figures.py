"""Pictures for papers: PNG and SVG by matplotlib, the same bytes whenever they are drawn from the same numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from private_bandits.experiments.analysis.regrets import Regrets
from private_bandits.experiments.run.experiment import Experiment
from private_bandits.experiments.show.gallery import pictures, pictures_of
from private_bandits.experiments.show.pictures import Panel, Picture, Series
from private_bandits.loading import require
from private_bandits.palette import GREY
from private_bandits.picture_style import LINES, STYLE, draw_line

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NEEDED = ("a figure", "experiments", "matplotlib", "scipy")


def draw(experiment: Experiment, frame: pd.DataFrame) -> dict[str, Figure]:
    """Every figure of the experiment, by its name, from one row for each label, run and step."""
    require(*NEEDED)
    return {picture.name: _figure(experiment, picture) for picture in pictures(experiment, frame)}


def save(experiment: Experiment, frame: pd.DataFrame, directory: Path) -> list[Path]:
    """Write figures/<experiment>-<figure>.png, .svg and .csv (the numbers that are drawn) under `directory`."""
    require(*NEEDED)
    return _save(experiment, pictures(experiment, frame), directory)


def save_regrets(regrets: Regrets, directory: Path) -> list[Path]:
    """Write the same files for a table that was read before."""
    require(*NEEDED)
    return _save(regrets.experiment, pictures_of(regrets), directory)


def _save(experiment: Experiment, shown: Sequence[Picture], directory: Path) -> list[Path]:
    import matplotlib as mpl

    folder = Path(directory) / "figures"
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for picture in shown:
        figure, stem = _figure(experiment, picture), folder / f"{experiment.name}-{picture.name}"
        with mpl.rc_context(STYLE):
            figure.savefig(stem.with_suffix(".png"), dpi=160, metadata={"Software": None})
            figure.savefig(stem.with_suffix(".svg"), metadata={"Date": None, "Creator": None})
        picture.to_frame().to_csv(stem.with_suffix(".csv"), index=False, lineterminator="\n")
        written += [stem.with_suffix(ending) for ending in (".png", ".svg", ".csv")]
    return written


def _figure(experiment: Experiment, picture: Picture) -> Figure:
    """Panels in a grid, with one legend for all of them in an empty place of it or beneath."""
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    count = len(picture.panels)
    columns = _columns(count)
    rows = math.ceil(count / columns)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(max(7.6, 4.3 * columns), 3.4 * rows + 1.2), layout="constrained")
        FigureCanvasAgg(figure)
        grid = figure.subplots(rows, columns, squeeze=False).ravel()
        for axes, panel in zip(grid, picture.panels, strict=False):
            _panel(axes, panel, alone=count == 1)
        for axes in grid[count:]:
            axes.set_axis_off()
        figure.suptitle(f"{experiment.title}\n{picture.title}", x=0.01, ha="left", fontsize=11.5)
        _legend(figure, picture, grid)
        figure.get_layout_engine().execute(figure)  # type: ignore[union-attr]
        figure.set_layout_engine("none")  # once is enough, and takes as long as drawing
    return figure


def _columns(panels: int) -> int:
    return panels if panels < 4 else 2 if panels == 4 else 3


def _panel(axes: Axes, panel: Panel, alone: bool) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log" if panel.log_y else "linear")
    if panel.margin and panel.margin[1] > 0:
        axes.axhspan(*panel.margin, color="#9aa0a6", alpha=0.18, lw=0, zorder=0)
    if panel.zero:
        axes.axhline(0, color=GREY.light, lw=1, zorder=1)
    for series in panel.series:
        (_points if series.marks else _line)(axes, series)
    axes.set(xlabel=panel.x_label, ylabel=panel.y_label, title="" if alone else panel.title)
    if panel.y_range:
        axes.set_ylim(*panel.y_range)
    _ticks(axes, panel)


def _ticks(axes: Axes, panel: Panel) -> None:
    """Whole numbers and percents as people write them; more ticks on a log scale that is short."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    axes.xaxis.set_minor_locator(NullLocator())
    if panel.ticks:
        axes.set_xticks([place for place, _ in panel.ticks], [text for _, text in panel.ticks])
    if panel.percent:
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:,.4g} %"))
    elif not panel.log_y:
        axes.yaxis.set_major_formatter("{x:,.6g}")
    elif axes.get_ylim()[1] / axes.get_ylim()[0] < 300:
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter("{x:,.6g}")
    axes.yaxis.set_minor_locator(NullLocator())


def _line(axes: Axes, series: Series) -> None:
    band = None if series.bare else (series.low, series.high)
    draw_line(axes, series.label, series.x, series.y, band, series.colour, series.dash)


def _points(axes: Axes, series: Series) -> None:
    errors = np.abs(np.stack([series.y - series.low, series.high - series.y]))
    style: Any = LINES[series.dash] if len(series.x) > 1 else "none"
    axes.errorbar(
        series.x, series.y, np.where(np.isfinite(errors), errors, 0.0), color=series.colour.light, ls=style, lw=1.2,
        marker="o", ms=6, capsize=3, label=series.label if len(series.x) > 1 else None, zorder=3,
    )  # fmt: skip


def _legend(figure: Figure, picture: Picture, grid: Any) -> None:
    """Each label once."""
    handles: dict[str, Any] = {}
    for axes, panel in zip(grid, picture.panels, strict=False):
        if panel.legend:
            own = {label: handle for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)}
            handles |= {label: handle for label, handle in own.items() if label not in handles}
    if len(handles) < 2:
        return
    if len(grid) > len(picture.panels):
        grid[-1].legend(handles.values(), handles.keys(), loc="center left", fontsize=11)
    elif len(picture.panels) == 1:
        figure.legend(handles.values(), handles.keys(), loc="outside right center")
    else:
        figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=min(len(handles), 6))
