"""report.html as text: complete, self-contained, escaped, the same each time."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from plotly import graph_objects
from plotly.offline import get_plotlyjs

from private_bandits.experiments.analysis.verdicts import judge
from private_bandits.experiments.run.data import Experiment
from private_bandits.experiments.show import report
from private_bandits.experiments.show.gallery import pictures
from tests.experiments.samples import finite, placement, rivals, tight

RESULTS = [finite(claims=("free-privacy", "price-vanishes")), placement(), rivals(), tight()]
TABLES: dict[str, list[dict[str, Any]]] = {
    "one": [{"policy": "AdaC-UCB", "upper": 1234.5, "holds": False}, {"policy": "AdaC-GOPE", "upper": math.inf}],
    "two": [{"policy": "LinPriv", "assumptions": ["bounded", "known"], "threshold": None}],
}
SETTINGS = {"seed": 7, "version": "1.2.3", "sample": {"rho": [0.01, 1.0], "beta": 1}}


class Page(HTMLParser):
    """Elements with their attributes, and the text outside of scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""
        self._inside: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._inside.append(tag)

    def handle_endtag(self, tag: str) -> None:
        while self._inside and self._inside.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if not {"script", "style"} & set(self._inside):
            self.words += data

    def all(self, tag: str, name: str) -> list[str]:
        return [attributes[name] or "" for kind, attributes in self.elements if kind == tag and name in attributes]


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = report.write(tmp_path_factory.mktemp("report") / "new" / "report.html", RESULTS, TABLES, SETTINGS)
    return path.read_text(encoding="utf-8")


def panels(text: str) -> list[dict[str, Any]]:
    found = re.findall(r'<script type="application/json" id="[^"]+">(.*?)</script>', text, re.DOTALL)
    return [json.loads(one) for one in found]


def test_everything_is_said(text: str) -> None:
    page = Page(text)
    for made, frame in RESULTS:
        assert made.title in page.words
        assert made.guarantee in page.words
        for picture in pictures(made, frame):
            assert all(words in page.words for words in picture.words)
            assert picture.reading in page.words
        for verdict in judge(made, frame):
            for words in (verdict.words, verdict.test, verdict.statement, verdict.brief, verdict.answer):
                assert words in page.words
    for words in ("1,234", "infinite", "LinPriv", "bounded; known", "seed 7, version 1.2.3", "1.2.3"):
        assert words in page.words


def test_the_page_needs_nothing_else(text: str) -> None:
    page = Page(text)
    assert text.count(get_plotlyjs()) == 1
    own = text.replace(get_plotlyjs(), "")
    assert re.findall(r"https?://[^\"' ]*", own) == ["http://www.w3.org/2000/svg"]  # the name of SVG, not an address
    assert page.all("script", "src") == []
    assert page.all("link", "href") == ["data:,"]
    assert "@import" not in own
    assert len(text) < 7_000_000


def test_links_lead_somewhere(text: str) -> None:
    page = Page(text)
    names = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(names) == len(set(names))
    links = page.all("a", "href")
    assert len(links) >= 8
    assert {link[1:] for link in links} <= set(names)


def test_panels_are_what_plotly_takes(text: str) -> None:
    expected = [panel for made, frame in RESULTS for picture in pictures(made, frame) for panel in picture.panels]
    found = panels(text)
    assert len(found) == len(expected)
    for data, panel in zip(found, expected, strict=True):
        graph_objects.Figure({"data": data["traces"], "layout": data["layout"]})  # raises on what it does not know
        lines = [trace for trace in data["traces"] if trace["meta"]["role"] == "line"]
        shown = [series for series in panel.series if len(series.x)]
        assert [line["name"] for line in lines] == [series.label for series in shown]
        for line, series in zip(lines, shown, strict=True):
            values = [math.nan if y is None else y for y in line["y"]]
            assert values == pytest.approx(list(series.y), rel=1e-6, nan_ok=True)
            assert line["x"] == pytest.approx(list(series.x), rel=1e-6)


def test_the_same_input_gives_the_same_bytes(text: str, tmp_path: Path) -> None:
    again = report.write(tmp_path / "report.html", RESULTS, TABLES, SETTINGS)
    assert again.read_text(encoding="utf-8") == text


def hostile() -> tuple[Experiment, pd.DataFrame]:
    """Text that would run, everywhere text can come in."""
    made, frame = finite(claims=("free-privacy",), figures=("difference", "price"))
    evil: Any = '</script><script>alert("x")</script><img src=x onerror=alert(1)>{{ title }}'
    entries = tuple(replace(entry, label=f"{evil}{entry.label}") for entry in made.entries)
    made = replace(made, name=evil, title=evil, guarantee=evil, setting=evil, setting_as=evil, entries=entries)
    return made, frame.assign(experiment=evil, label=evil + frame["label"], version=evil)


def test_nothing_is_taken_for_markup(tmp_path: Path) -> None:
    evil = "</pre><script>alert(2)</script>"
    made, frame = hostile()
    tables = {evil: [{evil: evil, "short": "<i>"}]}
    path = report.write(tmp_path / "report.html", [(made, frame)], tables, {evil: evil, "notes": [evil]})
    text = path.read_text(encoding="utf-8")
    page = Page(text.replace(get_plotlyjs(), ""))
    tags = [tag for tag, _ in page.elements]
    assert tags.count("img") == tags.count("i") == 0
    assert tags.count("script") == 2 + len(panels(text))
    assert not any(name.startswith("on") for _, attributes in page.elements for name in attributes)
    assert page.words.count(evil) >= 6  # links and headings of the table, its cells, settings
    for words in (f"version {made.title}.", f"What holds: {made.guarantee}", f"{made.title}AdaC-UCB: "):
        assert words in page.words
    assert made.name in page.all("section", "id")
    assert {link[1:] for link in page.all("a", "href")} <= {found["id"] for _, found in page.elements if "id" in found}


def test_without_claims_or_tables(tmp_path: Path) -> None:
    made, frame = rivals()
    page = Page(report.write(tmp_path / "report.html", [(made, frame)], {}, {}).read_text(encoding="utf-8"))
    assert "No claim was tested" in page.words
