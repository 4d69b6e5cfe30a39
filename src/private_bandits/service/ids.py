"""Ids of decisions that nobody can make up: an incarnation, a number, and a tag that only this bandit's key makes."""

from __future__ import annotations

import hashlib
import hmac
from functools import lru_cache

from private_bandits.errors import UnknownDecision

TAG_BYTES = 16
LONGEST = 100
AT_HAND = 4096
"""Ids that were checked and need not be checked again: several batches may look at one."""


class DecisionIds:
    """Makes and reads the ids of one bandit's decisions.

    Args:
        key: The key of the bandit, which is in its database alone.
        incarnation: 64 random bits, as hexadecimal digits: other ones after a copy of the database was restored.

    >>> ids = DecisionIds(bytes(32), "0123456789abcdef")
    >>> ids.of(7)
    '0123456789abcdef-7-d8a49a12b45e8a6ea645ed7b2b58f02f'
    >>> ids.parsed(ids.of(7))
    ('0123456789abcdef', 7)
    """

    def __init__(self, key: bytes, incarnation: str) -> None:
        self._key = key
        self.incarnation = incarnation
        self._parsed = lru_cache(maxsize=AT_HAND)(self._checked)

    def of(self, number: int) -> str:
        """Return the id of a decision."""
        return f"{self.incarnation}-{number}-{self._tag(self.incarnation, number)}"

    def parsed(self, text: object) -> tuple[str, int]:
        """Return the incarnation and the number of an id that this bandit handed out, in whatever incarnation.

        Raises:
            UnknownDecision: It did not.
        """
        return self._parsed(text if isinstance(text, str) else "")

    def _checked(self, text: str) -> tuple[str, int]:
        parts = text.split("-") if len(text) <= LONGEST and text.isascii() else []
        if len(parts) == 3 and parts[1].isdecimal() and parts[1][0] != "0":
            incarnation, number = parts[0], int(parts[1])
            if hmac.compare_digest(self._tag(incarnation, number), parts[2]):
                return incarnation, number
        raise UnknownDecision("the bandit handed out no decision of this id: tell what the ask returned")

    def body_hash(self, body: str) -> str:
        """Return a keyed hash of what was asked: it tells whether an ask that comes again asks the same."""
        return self._mac(f"ask {body}").hexdigest()

    def _tag(self, incarnation: str, number: int) -> str:
        return self._mac(f"decision {incarnation} {number}").digest()[:TAG_BYTES].hex()

    def _mac(self, text: str) -> hmac.HMAC:
        return hmac.new(self._key, text.encode(errors="surrogatepass"), hashlib.sha256)
