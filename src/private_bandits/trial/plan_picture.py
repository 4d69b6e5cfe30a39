"""The picture of a plan: right verdicts over people, and decisions for worse arms over rho. By matplotlib."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from private_bandits.loading import require
from private_bandits.palette import GREY, INK, Colour
from private_bandits.picture_style import AXIS, GRID, LINES, STYLE, spread_out, svg_element
from private_bandits.trial.planned import TARGET

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from private_bandits.trial.planned import Plan, PlanRow

COLOURS = (
    Colour("#d9822b", "#e09a4f"),
    Colour("#d0604a", "#ee8570"),
    Colour("#b3456c", "#ee86ae"),
    Colour("#7b2f7f", "#d99be0"),
    Colour("#4a3391", "#b7a6ff"),
    Colour("#1c1a5e", "#cfd6ff"),
)
"""From little budget to much: even in lightness, and readable by the colour-blind."""
SHARED = (INK, GREY, GRID, AXIS)
DASHES = ("solid", "dash", "dot")
STEP = 0.06
"""How far labels are kept apart, in parts of the height."""
SEEN = 0.02
"""A share of right verdicts that can be seen in the picture: with less, a sentence says what there is."""
WIDE, NARROW = (4.4, 3.9), (4.8, 3.3)
"""Inches of a panel: side by side, and for a phone one below the other."""


def picture(plan: Plan, *, narrow: bool = False) -> Figure:
    """Return the picture: a panel for each policy with verdicts, and one of decisions for worse arms.

    narrow: Whether panels are below each other, for a phone.
    """
    require("a picture of a plan", "pictures", "matplotlib")
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    policies = list(dict.fromkeys(row.policy for row in plan.rows))
    most = {policy: max(row.curve[-1] for row in plan.rows if row.policy == policy) for policy in policies}
    seen = [policy for policy in policies if most[policy] >= SEEN]
    across, down = (1, len(seen) + 1) if narrow else (len(seen) + 1, 1)
    width, height = NARROW if narrow else WIDE
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(width * across, height * down), layout="constrained", facecolor="white")
        FigureCanvasAgg(figure)
        panels = figure.subplots(down, across, squeeze=False).ravel()
        for panel, policy in zip(panels, seen, strict=False):
            _curves(panel, plan, policy)
        _worse(panels[-1], plan, policies)
        words = [_too_few(plan, policy, most[policy]) for policy in policies if policy not in seen]
        if words:
            figure.suptitle("\n".join(words), x=0.01, ha="left", fontsize=9, color=GREY.light)
    return figure


def _too_few(plan: Plan, policy: str, most: float) -> str:
    share = f"at most {100 * most:.1f}%" if most else "none"
    return f"{policy}: {share} of the trials\nhave a right verdict within {plan.axis[-1]:,} people."


def svg_of(plan: Plan, *, narrow: bool = False) -> str:
    """Return the picture as an element of a page, whose variables are its colours (`colours_of`)."""
    require("a picture of a plan", "pictures", "matplotlib")
    import matplotlib as mpl

    words: dict[Any, Any] = {"svg.fonttype": "none", "font.family": ["DejaVu Sans", "sans-serif"]}
    out = io.StringIO()
    with mpl.rc_context(STYLE | words | {"svg.hashsalt": f"plan {narrow}"}):  # two pictures on a page
        figure = picture(plan, narrow=narrow)
        figure.savefig(out, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    return svg_element(out.getvalue(), colours_of())


def colours_of() -> list[Colour]:
    """Return all colours of the picture."""
    return [*SHARED, *COLOURS]


def _colour(plan: Plan, row: PlanRow) -> str:
    levels = sorted({other.rho for other in plan.rows if other.private})
    if not row.private:
        return INK.light
    place = levels.index(row.rho) / max(1, len(levels) - 1)
    return COLOURS[round(place * (len(COLOURS) - 1))].light


def _curves(panel: Axes, plan: Plan, policy: str) -> None:
    """The probability of a right verdict over people, a line for each rho, each with its label beside the panel."""
    panel.set_title(f"Right verdict, {policy}", pad=18, color=INK.light)
    last = plan.axis[-1]
    panel.set_xlabel("people")
    panel.set_xlim(0, last)
    panel.set_ylim(0, 1.02)
    panel.set_yticks([0, 0.2, 0.4, 0.6, 0.8, TARGET, 1])
    panel.yaxis.set_major_formatter(lambda share, _: f"{100 * share:.0f}%")
    panel.locator_params(axis="x", nbins=5)
    panel.xaxis.set_major_formatter(lambda people, _: f"{people:,.0f}")
    panel.axhline(TARGET, color=GREY.light, linewidth=1, linestyle=(0, (4, 3)))
    panel.axvline(plan.people, color=GREY.light, linewidth=1)
    panel.annotate(
        f"{plan.people:,} planned", (plan.people, 1), (0, 3), xycoords=("data", "axes fraction"),
        textcoords="offset points", ha="center", va="bottom", color=GREY.light, fontsize=8,
    )  # fmt: skip
    # Labels are in the order of the lines: from the one that is last at 90% to the first.
    rows = sorted((row for row in plan.rows if row.policy == policy), key=lambda row: (_end(row), -len(row.curve)))
    heights = spread_out([_end(row) for row in rows], STEP, 0, 1)
    for row, height in zip(rows, heights, strict=True):
        colour, people = _colour(plan, row), plan.axis[: len(row.curve)]
        panel.plot(people, row.curve, color=colour, linewidth=1.8)
        # A curve may end before the panel does: a thin line leads to its label.
        panel.plot([people[-1], last], [row.curve[-1]] * 2, color=colour, linewidth=0.6, linestyle=LINES["dot"])
        _label(panel, f"{row.rho:.3g}" if row.private else "no privacy", row.curve[-1], height, colour)


def _end(row: PlanRow) -> float:
    return min(row.curve[-1], TARGET)


def _worse(panel: Axes, plan: Plan, policies: list[str]) -> None:
    """Decisions for worse arms over rho; the last place is without privacy."""
    panel.set_title("Decisions for worse arms", pad=18, color=INK.light)
    panel.set_xlabel("rho")
    most = 1.15 * max(row.worse for row in plan.rows) + 1e-9
    groups = [[row for row in plan.rows if row.policy == policy] for policy in policies]
    heights = spread_out([rows[-1].worse for rows in groups], STEP * most, 0, most)
    for number, (rows, height) in enumerate(zip(groups, heights, strict=True)):
        values, colour = [row.worse for row in rows], COLOURS[3].light
        style: Any = LINES[DASHES[number % len(DASHES)]]
        panel.plot(range(len(rows) - 1), values[:-1], color=colour, linestyle=style, marker="o", markersize=4)
        panel.plot([len(rows) - 1], values[-1:], color=INK.light, marker="o", markersize=4)
        _label(panel, policies[number], values[-1], height, INK.light)
    names = [f"{row.rho:.3g}" if row.private else "none" for row in groups[0]]
    panel.set_xticks(range(len(names)), names)
    panel.set_xlim(-0.3, len(names) - 0.7)
    panel.set_ylim(0, most)
    panel.yaxis.set_major_formatter(lambda count, _: f"{count:,.0f}")


def _label(panel: Axes, text: str, at: float, height: float, colour: str) -> None:
    """Write a label beside the panel, where no line is, and join it to the height that it is for."""
    arrow = {"arrowstyle": "-", "color": colour, "linewidth": 0.6, "shrinkA": 0, "shrinkB": 0, "relpos": (0, 0.5)}
    panel.annotate(
        text, (1, at), (1.05, height), xycoords=("axes fraction", "data"), textcoords=("axes fraction", "data"),
        va="center", color=colour, fontsize=8, annotation_clip=False, arrowprops=arrow,
    )  # fmt: skip
