"""report.html: every picture, what it shows, and whether the claims hold. One file that works without a network."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from private_bandits.experiments.analysis.claims.verdict import LEVEL, Verdict
from private_bandits.experiments.analysis.estimates import FREE
from private_bandits.experiments.analysis.regrets import Regrets
from private_bandits.experiments.analysis.verdicts import judge_regrets
from private_bandits.experiments.analysis.wording import listing, percent
from private_bandits.experiments.run.experiment import Experiment
from private_bandits.experiments.show.gallery import pictures_of
from private_bandits.experiments.show.interactive import panel_data
from private_bandits.experiments.show.page_tables import SplitTable, Table
from private_bandits.experiments.show.pictures import Picture
from private_bandits.loading import require
from private_bandits.pages import render

if TYPE_CHECKING:
    import pandas as pd

TITLE = "Concentrated differential privacy for bandits: the experiments"
LEAD = (
    "Each experiment simulates bandits that learn from feedback with rho-zCDP and without privacy. Below are the "
    "regrets with their uncertainty, what they say about the paper's claims and about AdaC-IMED and the tight "
    "variants, which go beyond it, and where a promise does not hold. "
    "Simulated runs draw their noise from a seed and keep nobody's secret."
)
TABLES = {
    "one": "Table 1: upper and lower bounds on the regret",
    "two": "Table 2: upper bounds beside those converted from pure DP",
}
METHOD = (
    f"Every test is at the level of {percent(LEVEL)}, every interval has 95 % confidence. Where a claim could fail in "
    "one of several tests, their p-values are adjusted with Holm's method; where all tests have to agree, they "
    "need no adjustment. Verdicts of different experiments and policies are not adjusted for each other.",
    '"Free" needs a margin: a difference that is not significant may only be hard to see. Privacy counts as free '
    f"where two one-sided tests find the difference to be within {percent(FREE)} of the regret without privacy.",
    "Runs of a contextual experiment share their contexts and are compared in pairs. Other runs are independent, and "
    "their differences have Welch's errors. The price of privacy is a ratio of mean regrets; its error is the delta "
    "method's.",
    "Lines that are budgets have one colour for each rho on all pictures, from blue (strong privacy) to yellow (weak). "
    "Press a name above a picture to hide its line.",
)

NEEDED = ("the report", "experiments", "jinja2", "plotly", "scipy")


@dataclass(frozen=True)
class Chapter:
    """An experiment with what was found in it."""

    regrets: Regrets
    frame: pd.DataFrame
    pictures: Sequence[Picture]
    verdicts: Sequence[Verdict]

    @classmethod
    def of(cls, regrets: Regrets, frame: pd.DataFrame, verdicts: Sequence[Verdict]) -> Chapter:
        """Return the chapter of an experiment that was judged. frame: the table of the same regrets."""
        return cls(regrets, frame, pictures_of(regrets), verdicts)

    @property
    def experiment(self) -> Experiment:
        """Return what was run, as data."""
        return self.regrets.experiment

    @property
    def setup(self) -> str:
        """Return what was run, in a line."""
        regrets = self.regrets
        seeds = listing([str(seed) for seed in sorted(set(self.frame["seed"]))])
        versions = listing(sorted({str(version) for version in self.frame["version"]}))
        policies = listing([family.name for family in regrets.families()])
        kind = "as in the paper" if self.experiment.setting_as == "paper" else self.experiment.setting_as
        return (
            f"{policies}; {regrets.horizon:,} steps, {regrets.runs} runs; {self.experiment.setting} setting, {kind}; "
            f"seed {seeds}, version {versions}."
        )


def write(
    path: str | Path,
    results: Sequence[tuple[Experiment, pd.DataFrame]],
    tables: Mapping[str, Sequence[Mapping[str, Any]]],
    settings: Mapping[str, Any],
) -> Path:
    """Write the report as one HTML file, and return its path.

    results: experiments with a row for each label, run and step. tables: rows of the paper's tables, "one" and "two".
    settings: names and values, shown as they are. The same input gives the same bytes.
    """
    require(*NEEDED)
    read = [(Regrets.from_frame(experiment, frame), frame) for experiment, frame in results]
    return write_chapters(path, [Chapter.of(one, frame, judge_regrets(one)) for one, frame in read], tables, settings)


def write_chapters(
    path: str | Path,
    chapters: Sequence[Chapter],
    tables: Mapping[str, Sequence[Mapping[str, Any]]],
    settings: Mapping[str, Any],
) -> Path:
    """Write the same file for experiments that were read and judged before."""
    require(*NEEDED)
    from plotly.offline import get_plotlyjs

    text = render(
        "private_bandits.experiments.show",
        "report.html",
        title=TITLE,
        lead=LEAD,
        claims=_claims(chapters),
        chapters=chapters,
        tables=tables,
        table_titles=TABLES,
        method=METHOD,
        settings={name: _plain(value) for name, value in settings.items() if not _has_parts(value)},
        nested={name: _json(value) for name, value in settings.items() if _has_parts(value)},
        plotly=get_plotlyjs(),
        anchor=_anchor,
        panel_data=panel_data,
        last_rows=_last_rows,
        table_of=Table.from_rows,
        split_table_of=SplitTable.from_rows,
    )
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8", newline="\n")
    return target


def _claims(chapters: Sequence[Chapter]) -> dict[str, list[tuple[Experiment, Verdict]]]:
    """Every claim's statement, with the experiments that test it and what they say."""
    claims: dict[str, list[tuple[Experiment, Verdict]]] = {}
    for chapter in chapters:
        for verdict in chapter.verdicts:
            claims.setdefault(verdict.statement, []).append((chapter.experiment, verdict))
    return claims


def _anchor(verdict: Verdict) -> str:
    policy = re.sub(r"\W+", "-", verdict.policy.lower())
    return f"{verdict.experiment}-{verdict.claim}-{policy}"


def _last_rows(picture: Picture) -> list[Mapping[str, Any]]:
    """Return the last point of each line, and all of those that are points."""
    return [
        {
            "panel": panel.title,
            "line": series.label,
            panel.x_label: panel.x_of(series.x[place]),
            panel.y_label: float(series.y[place]),
            "low (95 %)": float(series.low[place]),
            "high (95 %)": float(series.high[place]),
        }
        for panel in picture.panels
        for series in panel.series
        if not series.bare and len(series.x)
        for place in (range(len(series.x)) if series.marks else [-1])
    ]


def _has_parts(value: Any) -> bool:
    return isinstance(value, (Mapping, list, tuple))


def _plain(value: Any) -> str:
    return str(value) if not isinstance(value, float) or math.isfinite(value) else "infinite"


def _json(value: Any) -> str:
    return json.dumps(value, indent=1, default=str)
