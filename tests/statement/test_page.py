"""The page of a statement in a real browser, on a phone, on a desk and on paper; and what notebooks show."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import private_bandits as pb
from private_bandits.errors import MissingExtra
from tests.experiments.show.browser import running_browser

from .test_statement import STRANGE, play

PLAIN = {"control": 0, "plan": {"trial": "Pain", "people": 400}}
TRIALS: dict[str, tuple[Any, dict[str, Any]]] = {
    "a few arms": (pb.AdaCIMED(arms=["placebo", "10 mg", "20 mg"], budget=pb.zCDP(1.0)), PLAIN),
    "strange": (pb.AdaCIMED(arms=STRANGE, budget=pb.zCDP(5.0)), {"reward_range": (1e6, 1e6 + 1e-6)}),
    "thirty arms, no privacy": (pb.AdaCUCB(30, pb.NoPrivacy()), {"max_rewards_per_person": 9}),
    "contextual": (pb.AdaCOFULPrivate(2, pb.zCDP(1.0)), {}),
}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with running_browser() as found:
        yield found


@pytest.mark.parametrize("trial", TRIALS)
def test_the_page_on_a_phone_on_a_desk_and_on_paper(trial: str, browser: Any, tmp_path: Path) -> None:
    policy, options = TRIALS[trial]
    agent = pb.Agent(policy, **options)
    play(agent, 300)
    file = tmp_path / "statement.html"
    file.write_text(agent.statement().html(), encoding="utf-8")
    said: list[str] = []
    for width, scheme in ((390, "dark"), (1300, "light")):
        context = browser.new_context(offline=True, color_scheme=scheme, viewport={"width": width, "height": 900})
        page = context.new_page()
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: said.append(request.url) if request.url != file.as_uri() else None)
        page.on("dialog", lambda dialog: said.append(dialog.message))
        page.goto(file.as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate("document.querySelector('.pb-statement').getBoundingClientRect().width") > width / 2
        dots = page.evaluate("[...document.querySelectorAll('circle')].map(c => c.getBoundingClientRect().left)")
        assert len(dots) == sum(found.mean is not None for found in agent.estimates())
        assert all(0 < left < width for left in dots)
        words = page.inner_text("body")
        assert all(f"{row['rewards']:,}" in words for row in agent.statement().to_dict()["estimates"])
        assert f"= {agent.counts.asked}" in words
        paper = page.pdf(format="A4")
        page.emulate_media(media="print", color_scheme="dark")
        assert page.evaluate("getComputedStyle(document.querySelector('.pb-statement')).color") == "rgb(0, 0, 0)"
        assert paper.startswith(b"%PDF")
        context.close()
    assert said == []


def shown_in_notebook(agent: pb.Agent) -> dict[str, str | None]:
    things: dict[str, Any] = {"agent": agent, "ledger": agent.ledger}
    things |= {"verdict": agent.verdict(), "statement": agent.statement()}
    return {name: thing._repr_html_() for name, thing in things.items()}


def test_notebooks_show_tables() -> None:
    agent = pb.Agent(pb.AdaCUCB(arms=["<A>", "B"], budget=pb.zCDP(1.0)))
    play(agent, 300)
    shown = shown_in_notebook(agent)
    for text in shown.values():
        assert text is not None
        assert "<A>" not in text
    assert {name for name, text in shown.items() if text and "&lt;A&gt;" in text} == {"agent", "verdict", "statement"}
    ledger = str(agent.ledger._repr_html_())
    assert agent.ledger.head in ledger
    more = len(agent.ledger) - 20
    assert (f"{more} more rows" in ledger) is (more > 0)
    assert f"<td>0/{agent.ledger[0].number}</td>" in ledger
    assert "<html" not in str(shown["statement"])
    assert pb.Ledger()._repr_html_()


def test_a_long_ledger_and_many_pairs_are_cut() -> None:
    agent = pb.Agent(pb.AdaCUCB(8, pb.zCDP(1.0)))
    play(agent, 100)
    assert len(agent.ledger) > 20
    assert f"{len(agent.ledger) - 20} more rows" in str(agent.ledger._repr_html_())
    assert "7 more pairs" in str(agent.verdict()._repr_html_())


def test_an_agent_that_may_not_be_read_shows_its_repr(tmp_path: Path) -> None:
    agent = pb.Agent(pb.AdaCUCB(2, pb.zCDP(1.0)), path=tmp_path / "agent.db")
    agent.close()
    assert agent._repr_html_()
    agent._readable = False
    assert agent._repr_html_() is None


def test_without_jinja2_notebooks_show_the_repr_and_text_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    agent = pb.Agent(pb.AdaCUCB(2, pb.zCDP(1.0)))
    play(agent, 20)
    monkeypatch.setitem(sys.modules, "jinja2", None)
    assert set(shown_in_notebook(agent).values()) == {None}
    assert agent.statement().text
    with pytest.raises(MissingExtra, match="a page needs jinja2"):
        agent.statement().html()
