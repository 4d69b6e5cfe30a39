"""Numbers as plain data: JSON knows no infinity."""

from __future__ import annotations

import math
from collections.abc import Mapping
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
