"""A chapter of a statement: what the text and the page are both made of."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Figure = Literal["", "flow", "arms"]


@dataclass(frozen=True)
class Chapter:
    """A part of a statement, in words.

    Args:
        title: In a few words.
        words: Sentences, in paragraphs.
        figure: The numbers that are shown after the words, if there are any.
        after: Paragraphs that come after the figure.
        points: Sentences that are listed.
        rows: Names and values.
        code: Commands, a line each.
    """

    title: str
    words: list[str]
    figure: Figure = ""
    after: list[str] = field(default_factory=list)
    points: list[str] = field(default_factory=list)
    rows: list[tuple[str, str]] = field(default_factory=list)
    code: list[str] = field(default_factory=list)


def sentence(text: str) -> str:
    """Return a clause as a sentence of its own.

    >>> sentence("nobody looked")
    'Nobody looked.'
    """
    return f"{text[:1].upper()}{text[1:]}."
