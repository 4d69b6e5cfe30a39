"""API keys: one, or one for each role. They are in no repr and in no error."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from private_bandits.errors import AccessRefused, InvalidInput
from private_bandits.protocol.access import ANYONE, PERMISSIONS

ROLES = frozenset(role for one in PERMISSIONS for role in one.roles) - {ANYONE}
_FORM = re.compile(r"[\x21-\x7e]{1,500}")


class Keys:
    """The keys that a client has.

    Args:
        given: A key, or keys by their roles.

    >>> Keys({"ask": "pb_1", "tell": "pb_2"})
    Keys(ask, tell)
    """

    def __init__(self, given: str | Mapping[str, str]) -> None:
        by_role = dict(given) if isinstance(given, Mapping) else {"": given}
        for role, key in by_role.items():
            if role not in ROLES and (role or isinstance(given, Mapping)):
                raise InvalidInput(f"keys are given by their roles, {', '.join(sorted(ROLES))}; got the role {role!r}")
            if not (isinstance(key, str) and _FORM.fullmatch(key)):
                raise InvalidInput("a key is a text of letters and digits, without spaces: what `keys create` printed")
        if not by_role:
            raise InvalidInput("a client needs a key, or one key for each role that it has")
        self._by_role = by_role

    def bearer(self, roles: Collection[str]) -> str:
        """Return what a request shows for one of these roles.

        Raises:
            AccessRefused: There is no key for any of them.
        """
        for role in ("", *sorted(roles)):
            if role in self._by_role:
                return f"Bearer {self._by_role[role]}"
        raise AccessRefused(f"this needs a key of {in_words(roles)}, and the client has {self}")

    def __str__(self) -> str:
        return "one key" if "" in self._by_role else f"keys of {in_words(self._by_role, 'and')}"

    def __repr__(self) -> str:
        return f"Keys({', '.join(role or 'one' for role in self._by_role)})"


def in_words(roles: Collection[str], last: str = "or") -> str:
    """Return roles as a list in words.

    >>> in_words(["ask"]), in_words(["tell", "ask"])
    ('the role ask', 'the roles ask or tell')
    """
    *others, one = sorted(roles)
    return f"the roles {', '.join(others)} {last} {one}" if others else f"the role {one}"
