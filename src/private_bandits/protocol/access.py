"""Who may call what: one table. A route that is not in it cannot be made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

ANYONE = "anyone"
"""In place of a role where no key is needed."""


class Permission(NamedTuple):
    """The roles that may call a route."""

    method: str
    path: str
    roles: Sequence[str]


_BANDIT = "/v1/bandits/{bandit}"
_READERS = ("observe", "operate", "audit")

PERMISSIONS = (
    Permission("POST", f"{_BANDIT}/decisions", ("ask",)),
    Permission("PUT", f"{_BANDIT}/decisions/{{decision}}/reward", ("tell",)),
    Permission("POST", f"{_BANDIT}/decisions/{{decision}}/give-up", ("tell",)),
    Permission("POST", f"{_BANDIT}/rewards", ("tell",)),
    Permission("POST", "/v1/bandits", ("operate",)),
    Permission("PATCH", _BANDIT, ("operate",)),
    Permission("POST", f"{_BANDIT}/finish", ("operate",)),
    Permission("GET", "/v1/bandits", _READERS),
    Permission("GET", _BANDIT, _READERS),
    Permission("GET", f"{_BANDIT}/decisions", ("observe",)),
    Permission("GET", f"{_BANDIT}/estimates", ("observe",)),
    Permission("GET", f"{_BANDIT}/verdict", ("observe",)),
    Permission("GET", f"{_BANDIT}/guarantee", ("observe",)),
    Permission("GET", f"{_BANDIT}/statement", ("observe",)),
    Permission("GET", f"{_BANDIT}/activity", ("observe",)),
    Permission("GET", f"{_BANDIT}/events", ("observe",)),
    Permission("GET", f"{_BANDIT}/ledger", ("audit",)),
    Permission("GET", "/v1/keys", ("admin",)),
    Permission("POST", "/v1/keys", ("admin",)),
    Permission("DELETE", "/v1/keys/{number}", ("admin",)),
    Permission("GET", "/livez", (ANYONE,)),
    Permission("GET", "/readyz", (ANYONE,)),
    Permission("GET", "/metrics", (ANYONE,)),
    Permission("GET", "/openapi.json", (ANYONE,)),
)
"""What one role changes, no other role changes. Only descriptions of bandits are for several roles."""

_ROLES = {(one.method, one.path): frozenset(one.roles) for one in PERMISSIONS}


def roles_for(method: str, path: str) -> frozenset[str]:
    """Return the roles that may call a route.

    Raises:
        LookupError: The route is not in the table.
    """
    found = _ROLES.get((method, path))
    if found is None:
        raise LookupError(f"{method} {path} has no role: enter it into PERMISSIONS")
    return found
