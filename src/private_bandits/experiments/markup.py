"""Pieces of the report's page. Everything that comes in is text and is escaped here."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from private_bandits.experiments.wording import listing, number

LONG = 30
"""Characters of a text that makes a column a long one."""
BADGES = {True: ("yes", "✓"), False: ("no", "✗"), None: ("open", "?")}


def paragraph(words: str, kind: str = "") -> str:
    """A paragraph.

    >>> paragraph("a < b")
    '<p>a &lt; b</p>'
    """
    return f'<p class="{escape(kind)}">{escape(words)}</p>' if kind else f"<p>{escape(words)}</p>"


def sentences(words: Sequence[str]) -> str:
    """One as a paragraph, several as a list.

    >>> sentences(["One.", "Two."])
    '<ul><li>One.</li><li>Two.</li></ul>'
    """
    if len(words) == 1:
        return paragraph(words[0])
    return f"<ul>{''.join(f'<li>{escape(sentence)}</li>' for sentence in words)}</ul>"


def badge(holds: bool | None, words: str) -> str:
    """A verdict: a sign, words and a colour, as not everybody sees all three."""
    kind, sign = BADGES[holds]
    return f'<span class="badge {kind}"><span aria-hidden="true">{sign}</span> {escape(words)}</span>'


def folded(summary: str, content: str) -> str:
    """What opens when asked for."""
    return f"<details><summary>{escape(summary)}</summary>{content}</details>"


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows with the union of their headings; on a phone each row becomes a list.

    >>> "<td class=\\"number\\" data-label=\\"x\\"><span>0.5</span></td>" in table([{"x": 0.5}])
    True
    """
    headings = list(dict.fromkeys(heading for row in rows for heading in row))
    head = "".join(_head(heading, rows) for heading in headings)
    body = "".join(f"<tr>{''.join(_cell(heading, row.get(heading)) for heading in headings)}</tr>" for row in rows)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _head(heading: str, rows: Sequence[Mapping[str, Any]]) -> str:
    kind = ' class="number"' if any(is_number(row.get(heading)) for row in rows) else ""
    return f'<th{kind} scope="col">{escape(_plain_heading(heading))}</th>'


def split_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """A table of what is short; columns with long texts are folded away beneath it, each row of them once.

    >>> text = split_table([{"policy": "A", "bound": 1.5, "source": "a source that is long, with theorem and page"}])
    >>> text.index("<td") < text.index("<summary>source</summary>") < text.index("theorem and page")
    True
    """
    headings = list(dict.fromkeys(heading for row in rows for heading in row))
    long = [name for name in headings if max(len(text_of(row.get(name))) for row in rows) > LONG]
    if not long:
        return table(rows)
    short = [name for name in headings if name not in long]
    keys = [name for name in short if all(isinstance(row.get(name), str) for row in rows)]
    details = [{name: row.get(name) for name in [*keys, *long]} for row in rows]
    once = list({text_of(row): row for row in details}.values())
    above = table([{name: row.get(name) for name in short} for row in rows])
    return above + folded(listing([_plain_heading(name) for name in long]), table(once))


def _plain_heading(name: str) -> str:
    return str(name).replace("_", " ")


def _cell(heading: str, value: Any) -> str:
    kind = ' class="number"' if is_number(value) else ""
    label = escape(_plain_heading(heading))
    return f'<td{kind} data-label="{label}"><span>{escape(text_of(value))}</span></td>'


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
    return value if isinstance(value, str) or not isinstance(value, Iterable) else "; ".join(map(text_of, value))


def data(identity: str, content: Any) -> str:
    """JSON that a script of the page reads. No text in it can end the element."""
    text = json.dumps(content, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    return f'<script type="application/json" id="{escape(identity)}">{text}</script>'


def listed(settings: Mapping[str, Any]) -> str:
    """Names with plain values as a list; what has parts is folded away, as JSON."""
    plain = {name: value for name, value in settings.items() if not isinstance(value, (Mapping, list, tuple))}
    items = "".join(f"<dt>{escape(str(name))}</dt><dd>{escape(_plain(value))}</dd>" for name, value in plain.items())
    nested = "".join(
        folded(str(name), f"<pre>{escape(json.dumps(value, indent=1, default=str))}</pre>")
        for name, value in settings.items()
        if name not in plain
    )
    return f"<dl>{items}</dl>{nested}"


def _plain(value: Any) -> str:
    return str(value) if not isinstance(value, float) or math.isfinite(value) else "infinite"
