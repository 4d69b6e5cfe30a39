"""report.html: every picture, what it shows, and whether the claims hold. One file that works without a network."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

from private_bandits.experiments.claims.verdict import LEVEL, Verdict
from private_bandits.experiments.estimates import FREE
from private_bandits.experiments.experiment import Experiment
from private_bandits.experiments.gallery import pictures
from private_bandits.experiments.interactive import panel_data
from private_bandits.experiments.markup import badge, data, folded, listed, paragraph, sentences, split_table, table
from private_bandits.experiments.pictures import Picture
from private_bandits.experiments.regrets import Regrets
from private_bandits.experiments.verdicts import judge
from private_bandits.experiments.wording import listing, percent
from private_bandits.loading import require

if TYPE_CHECKING:
    import pandas as pd

TITLE = "Concentrated differential privacy for bandits: the experiments"
LEAD = (
    "Each experiment simulates bandits that learn from feedback with rho-zCDP and without privacy. Below are the "
    "regrets with their uncertainty, what they say about the paper's claims and about the tight variants, which go "
    "beyond it, and where a promise does not hold. "
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


@dataclass(frozen=True)
class Chapter:
    """An experiment with what was found in it."""

    experiment: Experiment
    frame: pd.DataFrame
    pictures: Sequence[Picture]
    verdicts: Sequence[Verdict]


def write(
    path: str | Path,
    results: Sequence[tuple[Experiment, pd.DataFrame]],
    tables: Mapping[str, Sequence[Mapping[str, Any]]],
    settings: Mapping[str, Any],
) -> Path:
    """The report as one HTML file; returns its path.

    results: experiments with a row for each label, run and step. tables: rows of the paper's tables, "one" and "two".
    settings: names and values, shown as they are. The same input gives the same bytes.
    """
    require("the report", "experiments", "plotly", "scipy")
    chapters = [Chapter(one, frame, pictures(one, frame), judge(one, frame)) for one, frame in results]
    text = Template(_part("report.html")).substitute(
        title=escape(TITLE),
        lead=escape(LEAD),
        style=_part("report.css"),
        summary=_summary(chapters),
        contents=_contents(chapters, tables),
        experiments="\n".join(_chapter(chapter) for chapter in chapters),
        tables="\n".join(_tables(tables)),
        method="".join(paragraph(words) for words in METHOD),
        settings=listed(settings),
        plotly=_plotly(),
        script=_part("report.js"),
    )
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8", newline="\n")
    return target


def _part(name: str) -> str:
    return (files("private_bandits.experiments") / "page" / name).read_text(encoding="utf-8")


def _plotly() -> str:
    from plotly.offline import get_plotlyjs

    return str(get_plotlyjs())


def _summary(chapters: Sequence[Chapter]) -> str:
    """A card for each claim, with a line for each experiment that tests it."""
    claims: dict[str, list[str]] = {}
    for chapter in chapters:
        for verdict in chapter.verdicts:
            claims.setdefault(verdict.statement, []).append(_line(chapter.experiment, verdict))
    cards = [
        f'<li class="card"><h3>{escape(words)}</h3><ul>{"".join(lines)}</ul></li>' for words, lines in claims.items()
    ]
    return (
        f'<ul class="cards">{"".join(cards)}</ul>' if cards else paragraph("No claim was tested in these experiments.")
    )


def _line(experiment: Experiment, verdict: Verdict) -> str:
    link = f'<a href="#{escape(_anchor(verdict))}">{escape(experiment.title)}</a>'
    return f"<li>{badge(verdict.holds, verdict.answer)} {link}<br>{escape(verdict.brief)}</li>"


def _anchor(verdict: Verdict) -> str:
    policy = re.sub(r"\W+", "-", verdict.policy.lower())
    return f"{verdict.experiment}-{verdict.claim}-{policy}"


def _contents(chapters: Sequence[Chapter], tables: Mapping[str, Any]) -> str:
    links = [(chapter.experiment.name, chapter.experiment.title) for chapter in chapters]
    links += [(f"table-{name}", TABLES.get(name, name)) for name in tables]
    links += [("method", "How to read the numbers"), ("settings", "Settings, seeds and versions")]
    return "\n".join(f'<li><a href="#{escape(anchor)}">{escape(text)}</a></li>' for anchor, text in links)


def _chapter(chapter: Chapter) -> str:
    experiment = chapter.experiment
    name = escape(experiment.name)
    parts = [
        f'<section id="{name}" aria-labelledby="{name}-title"><h2 id="{name}-title">{escape(experiment.title)}</h2>',
        paragraph(_setup(chapter), "setup"),
        f'<p class="guarantee"><strong>What holds:</strong> {escape(experiment.guarantee)}</p>',
        *(_picture(experiment, picture) for picture in chapter.pictures),
        *(_verdict(verdict) for verdict in chapter.verdicts),
        "</section>",
    ]
    return "\n".join(parts)


def _setup(chapter: Chapter) -> str:
    experiment, regrets = chapter.experiment, Regrets.from_frame(chapter.experiment, chapter.frame)
    seeds = listing([str(seed) for seed in sorted(set(chapter.frame["seed"]))])
    versions = listing(sorted({str(version) for version in chapter.frame["version"]}))
    policies = listing([family.name for family in regrets.families()])
    kind = "as in the paper" if experiment.setting_as == "paper" else experiment.setting_as
    return (
        f"{policies}; {regrets.horizon:,} steps, {regrets.runs} runs; {experiment.setting} setting, {kind}; "
        f"seed {seeds}, version {versions}."
    )


def _picture(experiment: Experiment, picture: Picture) -> str:
    stem = f"{experiment.name}-{picture.name}"
    panels = "".join(_panel(f"{stem}-{index}", picture, index) for index in range(len(picture.panels)))
    return (
        f'<h3 id="{escape(stem)}">{escape(picture.title)}</h3>{sentences(picture.words)}'
        f'<div class="panels">{panels}</div>{paragraph(picture.reading, "reading")}'
        f"{folded('The numbers at the end', table(list(_last_rows(picture))))}"
    )


def _panel(identity: str, picture: Picture, index: int) -> str:
    panel, name = picture.panels[index], escape(identity)
    title = f"<h4>{escape(panel.title)}</h4>" if panel.title else ""
    label = escape(f"{picture.title}. {panel.title}: {panel.y_label} against {panel.x_label}.")
    return (
        f'<figure class="panel"><figcaption>{title}<span class="unit">{escape(panel.y_label)}</span></figcaption>'
        f'<div class="legend" id="{name}-legend"></div>'
        f'<div class="plot plotly-graph-div" id="{name}" role="img" aria-label="{label}"></div>'
        f"{data(f'{identity}-data', panel_data(panel))}</figure>"
    )


def _last_rows(picture: Picture) -> Iterator[Mapping[str, Any]]:
    """Of each line its last point; of points all."""
    for panel in picture.panels:
        for series in (series for series in panel.series if not series.bare and len(series.x)):
            for place in range(len(series.x)) if series.marks else [-1]:
                yield {
                    "panel": panel.title,
                    "line": series.label,
                    panel.x_label: panel.x_of(series.x[place]),
                    panel.y_label: float(series.y[place]),
                    "low (95 %)": float(series.low[place]),
                    "high (95 %)": float(series.high[place]),
                }


def _verdict(verdict: Verdict) -> str:
    return (
        f'<div class="verdict" id="{escape(_anchor(verdict))}">'
        f"<h3>{escape(verdict.policy)}: {badge(verdict.holds, verdict.answer)}</h3>"
        f"<p><em>{escape(verdict.statement)}</em></p>{paragraph(verdict.words)}{paragraph(verdict.test, 'test')}"
        f"{folded('The numbers behind it', table(verdict.numbers))}</div>"
    )


def _tables(tables: Mapping[str, Sequence[Mapping[str, Any]]]) -> Iterator[str]:
    for name, rows in tables.items():
        title = escape(TABLES.get(name, name))
        yield f'<section id="table-{escape(name)}"><h2>{title}</h2>{split_table(rows)}</section>'
