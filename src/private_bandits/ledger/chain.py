"""The chain of a ledger: every row holds the hash of the text before it, so that nobody rewrites a row unnoticed.

The first text is the opening: the public settings, which fix the budget before the first reward, and the plan of the
trial, if there is one. Row number l holds the hash of row l - 1, and the first row that of the opening. Hashes are of
the texts as they are stored. Whoever has noted the head, which is the hash of the last text, knows all texts before it.
"""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

HEAD_BYTES = 20
"""Bytes of a hash that a head shows. Two ledgers with one head would take about 2^80 tries to find."""


def canonical(data: Any) -> str:
    """Return plain data as the one text that is stored and hashed: JSON, short, in the order given, on one line.

    What is no plain data, such as an object in a policy of one's own, is named by its type.

    >>> canonical({"number": 1, "values": (0.5, 2.0)})
    '{"number":1,"values":[0.5,2.0]}'
    """
    return _ENCODER.encode(data)


def _type_name(value: object) -> str:
    return f"a {type(value).__name__}"


_ENCODER = json.JSONEncoder(separators=(",", ":"), default=_type_name)  # made once: every release is encoded


def digest(text: str) -> str:
    """Return the SHA-256 hash of a text, in hexadecimal digits."""
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def short_head(rows: int, last: str) -> str:
    """Return a head that people can copy: the number of rows, and 32 letters and digits of the last hash.

    >>> short_head(0, digest(""))
    '0-4oymiquy7qobjgx36tejs35zeqt24qpe'
    """
    return f"{rows}-{base64.b32encode(bytes.fromhex(last)[:HEAD_BYTES]).decode().lower()}"
