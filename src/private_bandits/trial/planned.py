"""What a plan of a trial says: a row for each policy and budget, in numbers, in words, and as a picture."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Any

from private_bandits.errors import MissingExtra
from private_bandits.loading import require
from private_bandits.plain_data import json_numbers, printable

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

TARGET = 0.9
"""The probability of a right verdict that a trial should have."""


@dataclass(frozen=True)
class PlanRow:
    """What is to be expected of one policy and budget. docs/planning.md defines each figure.

    Probabilities are of a right verdict by the last person's decision (`right`) and by the closing release
    (`right_closed`), and of a wrong one by then (`wrong`). `_stderr`: what the simulation adds to each. guessed_right:
    of the unit, `Guarantee.guessed_right`. people_needed: people for a right verdict with probability 90%, in
    [people_needed_low, people_needed_high] but for the simulation's chance (95%); None: more than `Plan.limit`.
    worse: decisions for a worse arm than the best. missed: successes missed by them. half_width_best,
    half_width_difference: of the intervals at the end. curve: the probability of a right verdict by `Plan.axis` people,
    as far as it was simulated.
    """

    policy: str
    rho: float
    guessed_right: float
    right: float
    right_stderr: float
    right_closed: float
    right_closed_stderr: float
    wrong: float
    wrong_stderr: float
    people_needed: int | None
    people_needed_low: int | None
    people_needed_high: int | None
    worse: float
    worse_stderr: float
    missed: float
    missed_stderr: float
    half_width_best: float
    half_width_difference: float
    curve: tuple[float, ...] = field(repr=False, default=())

    @property
    def private(self) -> bool:
        """Whether there is noise."""
        return math.isfinite(self.rho)

    @property
    def reaches(self) -> bool:
        """Whether a right verdict by the last person's decision is as probable as it should be."""
        return self.right >= TARGET

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain data, without the curve; infinity as the text "inf"."""
        found = json_numbers(asdict(self))
        del found["curve"]
        return found


@dataclass(frozen=True)
class Plan:
    """A plan of a trial, by simulation: what to expect of each policy and budget, and what to take.

    means: of the arms that were simulated, the best one last unless they were given. limit: people at which a run that
    goes on is over. axis: people, for the curves of the rows. seconds: of the simulation. own_means: whether the means
    were given, in place of a gap and a base rate.

    >>> import private_bandits as pb
    >>> plan = pb.plan(arms=2, gap=0.3, people=500, rho=[0.1, 1], runs=100, progress=False)
    >>> [row.rho for row in plan.rows if row.policy == "adac-top-two"]
    [0.1, 1.0, inf]
    """

    arms: tuple[str, ...]
    means: tuple[float, ...]
    gap: float
    people: int
    rewards_per_person: int
    unit: str
    missing: float
    delay: float | str
    delta: float
    runs: int
    seed: int
    limit: int
    rows: tuple[PlanRow, ...]
    axis: tuple[int, ...] = field(repr=False)
    seconds: float = field(repr=False, compare=False)
    own_means: bool = False

    @cached_property
    def recommended(self) -> PlanRow | None:
        """The row to take: of the smallest rho that reaches 90% in time, the policy with fewest on worse arms.

        None: none reaches it.
        """
        reaching = [row for row in self.rows if row.private and row.reaches]
        return min(reaching, key=lambda row: (row.rho, row.worse), default=None)

    @cached_property
    def advice(self) -> str:
        """Which policy and rho to take, and why, in words; where none will do, what would."""
        from private_bandits.trial.plan_advice import advice

        return advice(self)

    @property
    def note(self) -> str:
        """What was simulated, in words."""
        from private_bandits.trial.plan_advice import note

        return note(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain data, with all rows and without curves. `summary` is shorter."""
        found: dict[str, Any] = {
            name: getattr(self, name)
            for name in ("gap", "people", "rewards_per_person", "unit", "missing", "delay", "delta", "runs", "seed")
        }
        found |= {"arms": list(self.arms), "means": list(self.means), "limit": self.limit}
        chosen = self.recommended
        found["recommended"] = None if chosen is None else {"policy": chosen.policy, "rho": chosen.rho}
        return found | {"advice": self.advice, "note": self.note, "rows": [row.to_dict() for row in self.rows]}

    def summary(self) -> dict[str, Any]:
        """Return in a few plain entries what was asked and what is recommended, as `Agent(plan=...)` takes it.

        Example:
            >>> import private_bandits as pb
            >>> plan = pb.plan(arms=["new", "old"], gap=0.3, people=800, rho=[0.5], runs=200, progress=False)
            >>> plan.summary()["recommended"]
            'adac-top-two with rho = 0.5'
        """
        from private_bandits.trial.plan_advice import summary

        return summary(self)

    def to_frame(self) -> pd.DataFrame:
        """Return the rows as a DataFrame."""
        require("a frame of a plan", "frames")
        import pandas as pd

        return pd.DataFrame([{**row.to_dict(), "rho": row.rho} for row in self.rows])

    def plot(self) -> Figure:
        """Return a picture: right verdicts over people, and decisions for worse arms over rho. Needs matplotlib."""
        from private_bandits.trial.plan_picture import picture

        return picture(self)

    def html(self) -> str:
        """Return a page with table, picture and words, which loads nothing from outside. Needs jinja2, matplotlib."""
        from private_bandits.trial.plan_page import page

        return page(self)

    def _repr_html_(self) -> str | None:
        try:
            return self.html()
        except MissingExtra:
            return None

    def __str__(self) -> str:
        return "\n\n".join([_wrapped(self.note), table_text(self), _wrapped(legend(self)), _wrapped(self.advice)])


HEADS = ("policy", "rho", "guess", "right", "closed", "wrong", "people", "worse", "missed", "best", "diff.")
LEGEND = (
    "guess: how often the best guess about one {unit} is right. right, closed, wrong: probability of a right verdict "
    "by the last decision and by the closing release, and of a wrong one, +-{error} at most (standard error). people: "
    "needed for a right verdict with probability 90%, without the closing release; the range is the error of the "
    "simulation. Rows may cross: verdicts fall at releases only, and these come at different numbers of people. "
    "worse, missed: decisions for worse arms, and successes missed by them. best, diff.: half of the interval of the "
    "best arm's mean, and of its difference to the next one."
)


def cells(plan: Plan) -> list[Sequence[str]]:
    """Return the table of a plan as texts, a row each."""
    return [_cells(plan, row) for row in plan.rows]


def legend(plan: Plan) -> str:
    """Return what the columns mean."""
    error = max(max(row.right_stderr, row.right_closed_stderr, row.wrong_stderr) for row in plan.rows)
    return LEGEND.format(unit=plan.unit, error=f"{100 * error:.2g}%")


def _cells(plan: Plan, row: PlanRow) -> Sequence[str]:
    return (
        row.policy,
        f"{row.rho:.4g}" if row.private else "none",
        f"{100 * row.guessed_right:.1f}%" if row.private else "-",
        *(f"{100 * part:.1f}%" for part in (row.right, row.right_closed, row.wrong)),
        _people(plan, row),
        _count(row.worse),
        _count(row.missed),
        f"{row.half_width_best:.3f}",
        f"{row.half_width_difference:.3f}",
    )


def _people(plan: Plan, row: PlanRow) -> str:
    """Return the people needed, from the least to the most that the simulation leaves possible."""
    if row.people_needed is None or row.people_needed_low is None:
        return f">{_count(plan.limit)}"
    if row.people_needed_high is None:
        return f">{_count(row.people_needed_low)}"
    low, high = _count(row.people_needed_low), _count(row.people_needed_high)
    return low if low == high else f"{low}-{high}"


def _count(number: float) -> str:
    """Return a number without digits after the point, in thousands where it is long.

    >>> _count(1234.5), _count(1_234_567)
    ('1,234', '1,235k')
    """
    return f"{number / 1000:,.0f}k" if number >= 1e6 else f"{number:,.0f}"


def table_text(plan: Plan) -> str:
    """Return the table of a plan for 80 columns: the name of each policy is above its rows."""
    rows = cells(plan)
    widths = [max(len(row[i]) for row in (HEADS, *rows)) for i in range(1, len(HEADS))]

    def line(parts: Sequence[str]) -> str:
        return " ".join(cell.rjust(width) for cell, width in zip(parts[1:], widths, strict=True))

    lines = [line(HEADS)]
    for policy, group in groupby(rows, key=lambda row: row[0]):
        lines += ["", policy, *map(line, group)]
    return "\n".join(lines)


def _wrapped(words: str) -> str:
    return textwrap.fill(printable(words), 79)
