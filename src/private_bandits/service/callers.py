"""Finds out who calls, by the key that comes with a call. What was found is good for a second."""

from __future__ import annotations

import re
import time
from collections import OrderedDict
from collections.abc import Callable

from private_bandits.protocol.problems import FORBIDDEN, TOO_MANY, UNAUTHENTICATED, Refused
from private_bandits.service.keys import ApiKey, who_has
from private_bandits.storage.sql.database import Database

SECONDS = 1.0
"""For how long a key is not looked up again. One that was revoked is refused after this time at the latest."""
MOST_KNOWN = 10_000
_FORM = re.compile(r"pb_[A-Za-z0-9_-]{43}", re.ASCII)
_SCHEME = "bearer "


class Callers:
    """The keys that came lately, those that are none among them.

    Args:
        database: The database.
        rate: Calls per second that one key may make; 0: any number.
        clock: Returns seconds.
    """

    def __init__(self, database: Database, rate: float = 0.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._database, self._rate, self._clock = database, rate, clock
        self._known: OrderedDict[str, tuple[float, ApiKey | None]] = OrderedDict()
        self._allowance: dict[int, tuple[float, float]] = {}  # by key: when it called, and how many calls it had left

    def at_hand(self, header: str | None) -> tuple[str, bool, ApiKey | None]:
        """Return the key in a header, whether it need not be looked up, and what is known of it then.

        Raises:
            Refused: There is no key, or what looks like none.
        """
        if header is None or header[: len(_SCHEME)].lower() != _SCHEME:
            raise Refused(UNAUTHENTICATED)
        secret = header[len(_SCHEME) :].strip()
        if not _FORM.fullmatch(secret):
            raise Refused(UNAUTHENTICATED)
        until, key = self._known.get(secret, (0.0, None))
        return secret, until > self._clock(), key

    def look_up(self, secret: str) -> ApiKey | None:
        """Look a key up in the database. It takes a moment."""
        key = who_has(self._database, secret)
        self._known.pop(secret, None)
        self._known[secret] = self._clock() + SECONDS, key
        while len(self._known) > MOST_KNOWN:
            self._known.popitem(last=False)
        return key

    def check(self, key: ApiKey | None, roles: frozenset[str], bandit: str | None, whole: bool) -> ApiKey:
        """Return the key, if it may make a call.

        Args:
            key: The key, if it is one.
            roles: The roles that may make the call.
            bandit: The bandit that the call names.
            whole: Whether the call is about no bandit that there is, so that a key for one bandit may not make it.

        Raises:
            Refused: It may not. The same is said whether or not there is such a bandit.
        """
        if key is None:
            raise Refused(UNAUTHENTICATED)
        elsewhere = key.bandit is not None and (whole or bandit not in (None, key.bandit))
        if key.role not in roles or elsewhere:
            raise Refused(FORBIDDEN)
        if self._rate:
            self._count(key.number)
        return key

    def _count(self, number: int) -> None:
        """Take a call off what a key has left: a second's worth at most, and it grows with time."""
        now, most = self._clock(), max(self._rate, 1.0)
        before, left = self._allowance.get(number, (now, most))
        left = min(most, left + (now - before) * self._rate)
        if left < 1.0:
            raise Refused(TOO_MANY)
        self._allowance[number] = now, left - 1.0
