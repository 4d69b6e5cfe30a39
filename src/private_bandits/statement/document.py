"""The statement: facts, and the ways to read them."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from private_bandits.pages import in_notebook, render
from private_bandits.public_view import PublicView
from private_bandits.statement.chapter import Chapter
from private_bandits.statement.facts import Facts, facts_of
from private_bandits.statement.flow import flow, groups, sum_of
from private_bandits.statement.found import found, verdict
from private_bandits.statement.numbers import named
from private_bandits.statement.picture import Scale, arm_rows
from private_bandits.statement.promise import not_promised, promise
from private_bandits.statement.record import record
from private_bandits.statement.text import plain_text
from private_bandits.statement.tried import tried

PACKAGE = "private_bandits.statement"
TITLE = "Statement of a trial"
_STATUS = {
    "running": "The trial is running.",
    "finished": "The trial is closed: it makes no decisions and takes no outcomes any more.",
    "failed": "The trial has stopped, because its method failed.",
}


_CHAPTERS = (tried, flow, found, verdict, promise, not_promised, record)


class Statement:
    """A trial as a board reads it: what was tried, who took part, what was found, and what is promised.

    It is made of a public view alone: of releases and counts, never of an outcome or a person. It does not change when
    the trial goes on. `print` shows it as text, and a notebook as a page.

    Args:
        facts: Everything that it says.
    """

    def __init__(self, facts: Facts) -> None:
        self._facts = facts

    @cached_property
    def text(self) -> str:
        """The statement as plain text, 80 columns wide."""
        return plain_text(TITLE, self._lines(), self._marks(), self._chapters(), self._facts)

    def html(self) -> str:
        """Return the statement as one page that needs nothing else, and can be printed.

        Raises:
            MissingExtra: Pages need jinja2, which is part of the extra "audit".
        """
        return render(PACKAGE, "statement.html", **self._values())

    def to_dict(self) -> dict[str, Any]:
        """Return the facts as plain data, fit for JSON."""
        return self._facts.to_dict()

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        facts = self._facts
        return f"Statement({facts.written}, {facts.status}, {facts.counts.asked} asked, {facts.releases} releases)"

    def _repr_html_(self) -> str | None:
        return in_notebook(PACKAGE, "body.html", **self._values())

    def _values(self) -> dict[str, Any]:
        """Return what the page shows."""
        facts = self._facts
        scale = Scale(facts)
        return {
            "title": TITLE,
            "lines": self._lines(),
            "marks": self._marks(),
            "chapters": self._chapters(),
            "asked": facts.counts.asked,
            "groups": groups(facts),
            "sum": sum_of(groups(facts)),
            "counts": facts.to_dict()["counts"],
            "rows": arm_rows(facts, scale),
            "scale": scale.marks,
            "named": named,
        }

    def _lines(self) -> list[str]:
        facts = self._facts
        return [f"{facts.written}. {_STATUS[facts.status]}"]

    def _marks(self) -> list[str]:
        """Return what nobody may overlook."""
        facts = self._facts
        found = []
        if not facts.guarantee.private:
            why = "its noise comes from a seed" if facts.settings.seed is not None else "it adds no noise"
            found.append(f"THIS TRIAL PROMISES NO PRIVACY: {why}. Publish nothing that it shows of real people.")
        if facts.failed is not None:
            found.append(f"THE METHOD FAILED. {facts.failed}. No means and no verdict can be shown.")
        return found

    def _chapters(self) -> list[Chapter]:
        return [chapter(self._facts) for chapter in _CHAPTERS]


def statement_of(view: PublicView, delta: float, written: str) -> Statement:
    """Return the statement of a bandit.

    Args:
        view: Everything that anyone may see of it.
        delta: The probability with which the intervals may fail, and the verdict.
        written: The moment that the view shows, as people read it.
    """
    return Statement(facts_of(view, delta, written))
