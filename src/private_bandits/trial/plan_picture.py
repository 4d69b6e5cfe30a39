"""The picture of a plan: right verdicts over people, and decisions for worse arms over rho. By matplotlib."""

from __future__ import annotations

import base64
import io
from typing import TYPE_CHECKING

from private_bandits.loading import require
from private_bandits.trial.planned import TARGET

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from private_bandits.trial.planned import Plan, PlanRow

COLOURS = ("#f0a35e", "#d9705a", "#b3456c", "#7b2f7f", "#3f2a7a", "#1c1a5e")
"""From little budget to much: even in lightness, and readable by the colour-blind."""
INK, GREY, GRID = "#202124", "#5f6368", "#e3e5e8"
DASHES = ("-", (0, (5, 2)), (0, (1.2, 1.5)))
STEP = 0.055
"""How far labels are kept apart, in parts of the height."""


def picture(plan: Plan) -> Figure:
    """Return the picture: a panel for each policy, and one of decisions for worse arms."""
    require("a picture of a plan", "pictures", "matplotlib")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    policies = list(dict.fromkeys(row.policy for row in plan.rows))
    figure = Figure(figsize=(4.4 * (len(policies) + 1), 3.9), layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, len(policies) + 1, squeeze=False)[0]
    for panel, policy in zip(panels, policies, strict=False):
        _curves(panel, plan, policy)
    _worse(panels[-1], plan, policies)
    return figure


def inline(plan: Plan) -> str:
    """Return the picture as an address that holds it: a page loads nothing from outside."""
    data = io.BytesIO()
    picture(plan).savefig(data, format="png", dpi=110, metadata={"Software": None})
    return "data:image/png;base64," + base64.b64encode(data.getvalue()).decode()


def _colour(plan: Plan, row: PlanRow) -> str:
    levels = sorted({other.rho for other in plan.rows if other.private})
    if not row.private:
        return INK
    place = levels.index(row.rho) / max(1, len(levels) - 1)
    return COLOURS[round(place * (len(COLOURS) - 1))]


def _dress(panel: Axes, title: str, below: str) -> None:
    panel.set_title(title, loc="left", fontsize=10, fontweight="bold", color=INK)
    panel.set_xlabel(below, color=GREY)
    panel.grid(color=GRID, linewidth=0.8)
    panel.set_axisbelow(True)
    panel.tick_params(colors=GREY)
    for name, spine in panel.spines.items():
        spine.set_visible(name in ("left", "bottom"))
        spine.set_color("#9aa0a6")


def _curves(panel: Axes, plan: Plan, policy: str) -> None:
    """The probability of a right verdict over people, a line for each rho, each with its label at its end."""
    _dress(panel, f"Right verdict, {policy}", "people")
    panel.set_xlim(0, plan.axis[-1] * 1.3)
    panel.set_ylim(0, 1.02)
    panel.yaxis.set_major_formatter(lambda share, _: f"{100 * share:.0f}%")
    panel.axhline(TARGET, color=GREY, linewidth=1, linestyle=(0, (4, 3)))
    panel.axvline(plan.people, color=GREY, linewidth=1)
    panel.annotate(
        f"{plan.people:,} planned", (plan.people, 0.45), (-3, 0), textcoords="offset points", va="center", ha="right",
        rotation=90, color=GREY, fontsize=8,
    )  # fmt: skip
    rows = [row for row in plan.rows if row.policy == policy]
    ends = []
    for row in rows:
        people = plan.axis[: len(row.curve)]
        panel.plot(people, row.curve, color=_colour(plan, row), linewidth=1.8)
        ends.append((row.curve[-1], people[-1], row))
    ends.sort(key=lambda end: end[0])
    for (share, last, row), height in zip(ends, _apart([share for share, _, _ in ends]), strict=True):
        label = f"{row.rho:.3g}" if row.private else "no privacy"
        place = {"xytext": (last + 0.02 * plan.axis[-1], height), "va": "center", "fontsize": 8}
        panel.annotate(label, (last, share), color=_colour(plan, row), annotation_clip=False, **place)  # type: ignore[arg-type]


def _apart(heights: list[float]) -> list[float]:
    """Return heights of labels that are far enough apart and within the panel, for rising heights."""
    found, most = list(heights), 1.0
    for place in range(1, len(found)):
        found[place] = max(found[place], found[place - 1] + STEP)
    for place in reversed(range(len(found))):
        found[place] = most = min(found[place], most)
        most -= STEP
    return found


def _worse(panel: Axes, plan: Plan, policies: list[str]) -> None:
    """Decisions for worse arms over rho; the twin without privacy as a level line."""
    _dress(panel, "Decisions for worse arms", "rho")
    for number, policy in enumerate(policies):
        rows = [row for row in plan.rows if row.policy == policy]
        private = [row for row in rows if row.private]
        twin = next(row for row in rows if not row.private)
        dash = DASHES[number % len(DASHES)]
        if private:
            panel.plot([row.rho for row in private], [row.worse for row in private], color=COLOURS[3], linestyle=dash,
                       marker="o", markersize=4)  # fmt: skip
            panel.set_xscale("log")
            panel.set_xticks([row.rho for row in private], [f"{row.rho:.3g}" for row in private])
            panel.minorticks_off()
            panel.annotate(policy, (private[0].rho, private[0].worse), (4, 6), textcoords="offset points", fontsize=8,
                           color=COLOURS[3])  # fmt: skip
        panel.axhline(twin.worse, color=INK, linewidth=1, linestyle=dash)
        panel.annotate(
            "no privacy", (0.5, twin.worse), (0, -3), xycoords=("axes fraction", "data"), textcoords="offset points",
            fontsize=8, color=INK, ha="center", va="top",
        )  # fmt: skip
    panel.set_ylim(0, 1.15 * max(row.worse for row in plan.rows) + 1e-9)
