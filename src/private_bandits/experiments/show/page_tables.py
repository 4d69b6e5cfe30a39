"""Tables of the report's page: what their cells say, which of them are numbers, and which columns are folded away."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from private_bandits.experiments.analysis.wording import listing, number

LONG = 30
"""Characters of a text that makes a column a long one."""


@dataclass(frozen=True)
class Cell:
    """The text of the cell. Numbers are aligned to the right."""

    text: str
    is_number: bool


@dataclass(frozen=True)
class Table:
    """Headings and rows of cells."""

    head: Sequence[Cell]
    body: Sequence[Sequence[Cell]]

    @classmethod
    def from_rows(cls, rows: Sequence[Mapping[str, Any]]) -> Table:
        """Rows with the union of their headings.

        >>> Table.from_rows([{"x_y": 0.5}, {}]).body[0]
        [Cell(text='0.5', is_number=True)]
        """
        headings = _headings(rows)
        head = [Cell(_plain_heading(name), any(is_number(row.get(name)) for row in rows)) for name in headings]
        values = [[row.get(name) for name in headings] for row in rows]
        return cls(head, [[Cell(text_of(value), is_number(value)) for value in row] for row in values])


@dataclass(frozen=True)
class SplitTable:
    """A table of what is short; columns with long texts are folded away beneath it, under a summary of their names."""

    short: Table
    summary: str = ""
    long: Table | None = None

    @classmethod
    def from_rows(cls, rows: Sequence[Mapping[str, Any]]) -> SplitTable:
        """Each row of what is long comes once, with the texts that say whose it is.

        >>> split = SplitTable.from_rows([{"policy": "A", "bound": 1.5, "source": "theorem and page, " * 2}])
        >>> [cell.text for cell in split.short.head], split.summary, [cell.text for cell in split.long.head]
        (['policy', 'bound'], 'source', ['policy', 'source'])
        """
        headings = _headings(rows)
        long = [name for name in headings if max(len(text_of(row.get(name))) for row in rows) > LONG]
        if not long:
            return cls(Table.from_rows(rows))
        short = [name for name in headings if name not in long]
        keys = [name for name in short if all(isinstance(row.get(name), str) for row in rows)]
        details = [{name: row.get(name) for name in [*keys, *long]} for row in rows]
        once = list({text_of(row): row for row in details}.values())
        above = Table.from_rows([{name: row.get(name) for name in short} for row in rows])
        return cls(above, listing([_plain_heading(name) for name in long]), Table.from_rows(once))


def _headings(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(heading for row in rows for heading in row))


def _plain_heading(name: str) -> str:
    return str(name).replace("_", " ")


def is_number(value: Any) -> bool:
    """Whether it is counted or measured; a yes or no is not."""
    return hasattr(value, "__float__") and not hasattr(value, "__len__") and str(value) not in ("True", "False")


def text_of(value: Any) -> str:
    """A value for people.

    >>> text_of(12345.678), text_of(True), text_of(None), text_of(["a", 2]), text_of(10**7), text_of({"d": 3})
    ('12,346', 'yes', '', 'a; 2', '10,000,000', 'd: 3')
    """
    if value is None:
        return ""
    if str(value) in ("True", "False"):
        return "yes" if value else "no"
    if is_number(value):
        return f"{value:,}" if float(value) == value and hasattr(value, "__index__") else number(float(value))
    if isinstance(value, Mapping):
        return "; ".join(f"{key}: {text_of(part)}" for key, part in value.items())
    return str(value) if isinstance(value, str) or not isinstance(value, Iterable) else "; ".join(map(text_of, value))
