"""A bandit as a notebook shows it: its arms, its counts and its promise, in a few lines."""

from __future__ import annotations

from private_bandits.pages import in_notebook
from private_bandits.public_view import PublicView
from private_bandits.statement.facts import facts_of
from private_bandits.statement.flow import groups, sum_of
from private_bandits.statement.numbers import named
from private_bandits.statement.picture import arm_rows

DELTA = 0.05
"""Of the intervals."""


def card_of(view: PublicView, title: str) -> str | None:
    """Return a part of a page about a bandit; None without jinja2.

    Args:
        view: Everything that anyone may see of it.
        title: The bandit in one line.
    """
    facts = facts_of(view, DELTA, "")
    return in_notebook(
        "private_bandits.statement",
        "card.html",
        title=title,
        groups=groups(facts),
        sum=sum_of(groups(facts)),
        rows=arm_rows(facts),
        promise=facts.guarantee.words,
        releases=facts.releases,
        head=facts.head,
        named=named,
    )
