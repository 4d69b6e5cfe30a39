"""The page of a simulation, and its short form for notebooks. The HTML is in templates."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from private_bandits.pages import render
from private_bandits.picture_style import variable
from private_bandits.simulation.curve_figure import NARROW, WIDE, colours_of, svg_image, svg_of
from private_bandits.simulation.curve_panels import note_of, panels_of, reading_of, short_name, title_of
from private_bandits.simulation.in_words import counted, percent, result_of, short_budget, short_number
from private_bandits.version import __version__

if TYPE_CHECKING:
    from private_bandits.simulation.run import Simulation

PACKAGE = "private_bandits.simulation"
REGRET = (
    "Regret is what was missed: the mean reward of the best recommendation minus that of the one that was made, summed "
    "over all steps. Less is better."
)
SHARE = (
    "Each step recommends a label for a row of the table, drawn at random. It is right if it is the label of that row. "
    "Regret is the number of wrong recommendations."
)
VERDICTS = (
    "A verdict names the best arm as soon as the releases allow it. Shares are of all runs. Numbers of decisions are "
    "of the runs in which a verdict fell."
)
DASHES = {"solid": "none", "dash": "8 3", "dashdot": "8 2.5 1.6 2.5", "dot": "2 2.5"}
"""Dashes of the lines in the tables, as in the picture."""
LONG_TEXT = 160
"""Letters of a setting from which on it is folded."""


@dataclass(frozen=True)
class Column:
    """A column of figures: its title, its name in `Simulation.summary`, and how its numbers are written."""

    title: str
    name: str
    form: Callable[[float | None], str] = short_number


REGRETS = (
    Column("mean", "regret_mean"),
    Column("standard error", "regret_stderr"),
    Column("95% of runs below", "regret_p95"),
    Column("99% of runs below", "regret_p99"),
    Column("worst run", "regret_max"),
)
SHARES = (Column("right", "share_right", percent), Column("standard error", "share_right_stderr", percent))
FALLEN = (
    Column("runs with a verdict", "verdict_share", percent),
    Column("wrong verdicts", "verdict_wrong", percent),
    Column("decisions, mean", "decisions_mean"),
    Column("standard error", "decisions_stderr"),
    Column("median", "decisions_median"),
    Column("95% of them below", "decisions_p95"),
)


@dataclass(frozen=True)
class FigureTable:
    """A row of figures for each policy."""

    title: str
    lead: str
    head: list[str]
    rows: list[tuple[str, str, list[str]]]

    @classmethod
    def of(cls, title: str, lead: str, columns: tuple[Column, ...], result: Simulation) -> FigureTable:
        """Return the table of these columns."""
        rows = [
            (str(row["name"]), short_budget(policy.budget), [column.form(row[column.name]) for column in columns])
            for row, policy in zip(result.summary(), result.policies.values(), strict=True)
        ]
        return cls(title, lead, [column.title for column in columns], rows)


def page(result: Simulation) -> str:
    """Return one HTML page of everything, which needs no network. The same result gives the same page."""
    return render(
        PACKAGE,
        "result.html",
        title=title_of(result),
        lead=SHARE if result.labelled else REGRET,
        note=note_of(result),
        reading=reading_of(result),
        wide=svg_of(result, WIDE),
        narrow=svg_of(result, NARROW),
        colours={variable(colour): colour for colour in colours_of(result)},
        tables=_tables(result),
        signs=[(variable(line.colour), DASHES[line.dash]) for line in panels_of(result)[0].lines],
        settings={name: text for name, text in _settings(result).items() if len(text) <= LONG_TEXT},
        folded={name: text for name, text in _settings(result).items() if len(text) > LONG_TEXT},
    )


def in_a_notebook(result: Simulation) -> str:
    """Return a short table and the picture."""
    rows = [
        (short_name(row["name"], 40), short_budget(policy.budget), result_of(row), short_number(row["regret_max"]))
        for row, policy in zip(result.summary(), result.policies.values(), strict=True)
    ]
    return render(
        PACKAGE,
        "notebook.html",
        title=title_of(result),
        head=["policy", "budget", "right" if result.labelled else "mean regret", "worst run"],
        rows=rows,
        picture=base64.b64encode(svg_image(result)).decode("ascii"),
    )


def _tables(result: Simulation) -> list[FigureTable]:
    end = f"at the end, after {counted(result.horizon, 'step')}"
    found = [FigureTable.of(f"Regret {end}", "", REGRETS, result)]
    if result.labelled:
        table: Any = result.environment
        known = f"Best fixed arm: {percent(table.best_fixed_share)}. Guessing: {percent(table.guessing_share)}."
        found.insert(0, FigureTable.of(f"Right recommendations {end}", known, SHARES, result))
    if result.verdicts:
        delta = next(iter(result.verdicts.values())).delta
        words = f"{VERDICTS} A verdict may be wrong with probability {delta:g} (delta)."
        found.append(FigureTable.of("Verdicts", words, FALLEN, result))
    return found


def _settings(result: Simulation) -> dict[str, str]:
    """Return names and values as texts."""
    policies = {f"policy: {name}": json.dumps(made.to_dict(), default=str) for name, made in result.policies.items()}
    return {
        "environment": str(result.environment),
        "steps": f"{result.horizon:,}",
        "runs": f"{result.runs:,}",
        "seed": str(result.seed),
        **{name: str(value) for name, value in result.arrivals.to_dict().items()},
        "private-bandits": __version__,
        **policies,
    }
