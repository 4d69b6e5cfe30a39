"""The page of a plan: its table, its picture and its advice, in one file that loads nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from private_bandits.loading import require
from private_bandits.pages import render
from private_bandits.picture_style import variable
from private_bandits.trial.planned import HEADS, cells, legend

if TYPE_CHECKING:
    from private_bandits.trial.planned import Plan


def page(plan: Plan) -> str:
    """Return the page."""
    require("the page of a plan", "pictures")
    from private_bandits.trial.plan_picture import colours_of, svg_of

    chosen = plan.recommended
    rows = [(row is chosen, parts) for row, parts in zip(plan.rows, cells(plan), strict=True)]
    values = {
        "heads": HEADS,
        "rows": rows,
        "legend": legend(plan),
        "arms": len(plan.arms),
        "people": f"{plan.people:,}",
        "wide": svg_of(plan),
        "narrow": svg_of(plan, narrow=True),
        "colours": {variable(colour): colour for colour in colours_of()},
    }
    return render("private_bandits.trial", "plan.html", note=plan.note, advice=plan.advice, **values)
