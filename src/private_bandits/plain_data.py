"""Plain data: numbers as JSON knows them, and rows as CSV."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from typing import Any


def json_number(value: Any) -> Any:
    """Return a value as JSON knows it: infinity is the text "inf", and anything else is what it is.

    >>> json_number(math.inf), json_number(0.1), json_number("A")
    ('inf', 0.1, 'A')
    """
    return "inf" if isinstance(value, float) and value == math.inf else value


def json_numbers(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the same names with values as JSON knows them."""
    return {name: json_number(value) for name, value in data.items()}


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
