"""A statement as plain text, 80 columns wide, whatever script its names are written in."""

from __future__ import annotations

from collections.abc import Iterator

from rich.cells import cell_len, chop_cells

from private_bandits.plain_data import printable
from private_bandits.statement.chapter import Chapter
from private_bandits.statement.facts import Facts
from private_bandits.statement.flow import groups, sum_of
from private_bandits.statement.numbers import named, whole
from private_bandits.statement.picture import ArmRow, arm_rows

WIDTH = 80
_INDENT = 2
_LEAST_ROOM = 16
"""Columns that a table leaves to the names of arms, at least."""
_NAMES = 24
"""Columns of the names of rows."""


def plain_text(title: str, lines: list[str], marks: list[str], chapters: list[Chapter], facts: Facts) -> str:
    """Return the statement. lines: below the title. marks: what nobody may overlook."""
    found = [title, "=" * len(title), *(part for line in lines for part in wrapped(line, WIDTH))]
    for mark in marks:
        found += ["", *(f"! {line}" for line in wrapped(mark, WIDTH - 2))]
    for number, chapter in enumerate(chapters, 1):
        heading = f"{number}. {chapter.title}"
        found += ["", "", heading, "-" * len(heading)]
        found += _chapter(chapter, facts)
    return "\n".join(line.rstrip() for line in found) + "\n"


def _chapter(chapter: Chapter, facts: Facts) -> Iterator[str]:
    for words in chapter.words:
        yield from ("", *wrapped(words, WIDTH))
    if chapter.figure:
        yield from ("", *(_flow(facts) if chapter.figure == "flow" else _arms(arm_rows(facts))))
    if chapter.code:
        yield from ("", *(" " * 4 + line for line in chapter.code))
    if chapter.points:
        yield ""
        for point in chapter.points:
            yield from _hanging("- ", point)
    for words in chapter.after:
        yield from ("", *wrapped(words, WIDTH))
    if chapter.rows:
        yield from ("", *_rows(chapter.rows))


def _flow(facts: Facts) -> Iterator[str]:
    """Each group with its number, below each other, and their sum."""
    found = groups(facts)
    numbers = [whole(group.number) for group in found]
    total = whole(facts.counts.asked)
    wide = max(map(len, (*numbers, total)))
    names = max(len(group.name) for group in found)
    for group, number in zip(found, numbers, strict=True):
        yield from _hanging(f"  {number:>{wide}}  {group.name:<{names}}  ", group.words)
    yield f"  {'-' * wide}"
    yield f"  {total:>{wide}}  decisions ({sum_of(found)})"


def _arms(rows: list[ArmRow]) -> Iterator[str]:
    """A table of arms, whose names are as long as they like."""
    heads = ("outcomes", "mean", "interval")
    cells = [(whole(row.rewards), row.mean, row.interval) for row in rows]
    widths = [max(map(len, column)) for column in zip(heads, *cells, strict=True)]
    room = WIDTH - sum(widths) - 2 * len(widths) - _INDENT
    if room < _LEAST_ROOM:
        yield from _arms_below_each_other(rows)
        return
    names = [wrapped(_label(row), room) for row in rows]
    room = max(cell_len(line) for lines in (["arm"], *names) for line in lines)
    yield _line("arm", room, heads, widths)
    for lines, values in zip(names, cells, strict=True):
        yield _line(lines[0], room, values, widths)
        yield from (f"{' ' * _INDENT}{line}" for line in lines[1:])


def _arms_below_each_other(rows: list[ArmRow]) -> Iterator[str]:
    """The same where numbers are too long for a table."""
    for row in rows:
        yield from _hanging("  ", _label(row))
        yield from _hanging("      ", f"outcomes: {whole(row.rewards)}, mean: {row.mean}, interval: {row.interval}")


def _label(row: ArmRow) -> str:
    marks = [mark for mark, holds in (("control", row.control), ("best", row.best)) if holds]
    return named(row.name) + (f" ({', '.join(marks)})" if marks else "")


def _line(name: str, room: int, values: tuple[str, ...], widths: list[int]) -> str:
    cells = (f"  {value:>{width}}" for value, width in zip(values, widths, strict=True))
    return f"{' ' * _INDENT}{name}{' ' * (room - cell_len(name))}{''.join(cells)}"


def _rows(rows: list[tuple[str, str]]) -> Iterator[str]:
    """Names and values; a long name has a line of its own."""
    wide = min(max(cell_len(name) for name, _ in rows), _NAMES)
    for name, value in rows:
        lines = wrapped(name, WIDTH - _INDENT)
        last = lines.pop()
        yield from (f"{' ' * _INDENT}{line}" for line in lines)
        if cell_len(last) > wide:
            yield f"{' ' * _INDENT}{last}"
            last = ""
        yield from _hanging(f"{' ' * _INDENT}{last}{' ' * (wide - cell_len(last))}  ", value)


def _hanging(begin: str, words: str) -> Iterator[str]:
    """Words that begin after something, and go on below themselves."""
    indent = cell_len(begin)
    for number, line in enumerate(wrapped(words, WIDTH - indent)):
        yield (begin if not number else " " * indent) + line


def wrapped(text: str, width: int) -> list[str]:
    """Return a text in lines that are no wider than this, at least one.

    >>> wrapped("a long word: abcdefghijkl", 8)
    ['a long', 'word:', 'abcdefgh', 'ijkl']
    """
    lines, line = [], ""
    for word in map(printable, text.split()):
        longer = f"{line} {word}" if line else word
        if cell_len(longer) <= width:
            line = longer
            continue
        if line:
            lines.append(line)
        *full, line = chop_cells(word, width)
        lines += full
    return [*lines, line] if line or not lines else lines
