"""Plain data: numbers as JSON knows them, rows as CSV, settings for people."""

from __future__ import annotations

import csv
import io
import json
import math
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

_JOINERS = "\u200c\u200d"
"""Several scripts write words with them."""


def json_number(value: Any) -> Any:
    """Return a value as JSON knows it: infinity is the text "inf", and anything else is what it is.

    >>> json_number(math.inf), json_number(0.1), json_number("A")
    ('inf', 0.1, 'A')
    """
    return "inf" if isinstance(value, float) and value == math.inf else value


def json_numbers(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the same names with values as JSON knows them."""
    return {name: json_number(value) for name, value in data.items()}


def settings_in_words(settings: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the settings of an agent as names and values for people, the policy's first.

    >>> settings_in_words({"unit": "person", "seed": None, "policy": {"policy": "adac-ucb"}})
    [('policy', 'adac-ucb'), ('unit', 'person')]
    """
    found = {name: value for name, value in settings.items() if name not in ("policy", "factor", "tree_levels")}
    parameters = dict(settings.get("policy", {}))
    policy = {"policy": parameters.pop("policy", None)} | {f"policy: {name}": it for name, it in parameters.items()}
    return [(name.replace("_", " "), _short(value)) for name, value in {**policy, **found}.items() if value is not None]


def _short(value: Any) -> str:
    text = printable(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
    return text if len(text) <= 200 else f"{text[:200]} ..."


def printable(text: str) -> str:
    """Return a text in which every character can be shown. Those that cannot are spelt out.

    >>> print(printable("A\\n<b>"), printable("\\ud800"))
    A\\n<b> \\ud800
    """
    return text if text.isprintable() else "".join(map(_printable, text))


def _printable(character: str) -> str:
    if character.isprintable() or character in _JOINERS:
        return character
    if unicodedata.category(character) == "Zs":
        return " "
    return character.encode("unicode_escape").decode("ascii")


def csv_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return rows of the same names as CSV, with a line of these names first.

    >>> csv_text([{"rho": 0.1, "regret": 7}, {"rho": 1.0, "regret": None}])
    'rho,regret\\n0.1,7\\n1.0,\\n'
    """
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
