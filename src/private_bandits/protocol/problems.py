"""Says what was wrong with a call (RFC 9457), in fixed words by the class of the error.

No error's own words are passed on, and nothing of what was sent is repeated: answers end up in logs.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from private_bandits.errors import (
    AgentFileInvalid,
    AgentFinished,
    BanditExists,
    BanditStopped,
    CapacityExceeded,
    ClosedDecision,
    DatabaseBusy,
    DatabaseFailed,
    DatabaseOutdated,
    IdempotencyKeyReused,
    InvalidInput,
    NoiseFailed,
    OutcomeUnknown,
    Overloaded,
    PolicyFailed,
    StateRolledBack,
    UnknownBandit,
    UnknownDecision,
    UnsupportedBudget,
)

MEDIA_TYPE = "application/problem+json"
PREFIX = "urn:private-bandits:"
"""What the type of a problem begins with."""
MOST_SHOWN = 20
"""Places that the problem of a body names at most."""


@dataclass(frozen=True)
class Problem:
    """A kind of problem.

    Args:
        status: The status of the answer.
        name: The end of its type.
        title: What was wrong.
        detail: What to do.
        headers: Headers of the answer.
    """

    status: int
    name: str
    title: str
    detail: str
    headers: Mapping[str, str] = field(default_factory=dict)

    def to_dict(self, **more: Any) -> dict[str, Any]:
        """Return the problem as plain data."""
        shown = {"type": PREFIX + self.name, "title": self.title, "status": self.status, "detail": self.detail}
        return shown | more

    def body(self, **more: Any) -> bytes:
        """Return the problem as JSON."""
        return json.dumps(self.to_dict(**more)).encode()


class Refused(Exception):
    """A call that is refused. Nothing was changed.

    Args:
        problem: What was wrong.
        more: Further members of the answer.
    """

    def __init__(self, problem: Problem, **more: Any) -> None:
        super().__init__(problem.title)
        self.problem, self.more = problem, more


_AGAIN = {"Retry-After": "1"}

INTERNAL = Problem(500, "internal", "The service failed", "The cause is not shown. Look for the request id in its log.")
UNAUTHENTICATED = Problem(
    401, "no-key", "A valid key is needed", "Send Authorization: Bearer KEY.", {"WWW-Authenticate": "Bearer"}
)
FORBIDDEN = Problem(403, "forbidden", "The key may not do this", "Use a key of the role and the bandit that it needs.")
NOT_FOUND = Problem(404, "not-found", "There is nothing here", "/openapi.json has all addresses.")
WRONG_METHOD = Problem(405, "wrong-method", "The address has no such method", "/openapi.json has all methods.")
INVALID = Problem(422, "invalid-request", "The request is not valid", "See errors, and /openapi.json.")
NOT_JSON = Problem(422, "invalid-json", "The body is no JSON", "Send one JSON object, as application/json.")
TOO_LARGE = Problem(413, "too-large", "The body is too large", "Send fewer items, or shorter ones.")
TOO_MANY = Problem(429, "too-many-requests", "The key made too many calls", "Wait, then try again.", _AGAIN)
HIDDEN = Problem(
    403, "private-contexts", "Decisions are not shown", "Contexts are private here, and decisions depend on them."
)
SETTINGS_REFUSED = Problem(422, "settings-refused", "The bandit cannot be made so", "Change its settings.")
NO_PRIVACY = Problem(
    403,
    "no-privacy",
    "This service keeps a promise",
    "The bandit has a seed or adds no noise. The service has to be told that such bandits may run here.",
)
NEVER_GIVES_UP = Problem(
    422,
    "never-gives-up",
    "Decisions would stay open for ever",
    "Give give_up_after_seconds, or say never_give_up: true with give_up_after_seconds: null.",
)
NO_VERDICT = Problem(
    409,
    "no-verdict",
    "There is no verdict on this bandit",
    "Its actions change from step to step, or its policy failed.",
)
STANDING = Problem(
    409, "wrong-status", "The bandit cannot change so", "active and paused may change into each other and into closed."
)
UNKNOWN_KEY = Problem(404, "unknown-key", "There is no such key", "List the keys.")

BY_CLASS: dict[type[Exception], Problem] = {
    UnknownBandit: Problem(404, "unknown-bandit", "There is no such bandit", "List the bandits."),
    BanditExists: Problem(409, "bandit-exists", "There is a bandit of this name", "Choose another name."),
    UnknownDecision: Problem(
        404, "unknown-decision", "The bandit made no such decision", "Send an id that an ask returned."
    ),
    ClosedDecision: Problem(409, "closed-decision", "The decision is closed", "Nothing was changed."),
    IdempotencyKeyReused: Problem(
        422, "key-reused", "The Idempotency-Key was used for another ask", "Choose a new one for a new ask."
    ),
    UnsupportedBudget: SETTINGS_REFUSED,
    InvalidInput: Problem(
        422,
        "does-not-fit",
        "The request does not fit the bandit",
        "Its settings say whether it takes a person and actions, which arms it has, and which policy it runs.",
    ),
    AgentFinished: Problem(409, "finished", "The bandit is finished", "It takes no rewards any more: make a new one."),
    BanditStopped: Problem(
        409, "stopped", "The bandit does not run", "It is paused or closed, or its policy failed: see its status."
    ),
    CapacityExceeded: Problem(
        409, "sum-is-full", "A sum has no room for this reward", "Give the decision up, or finish the bandit."
    ),
    PolicyFailed: Problem(500, "policy-failed", "The policy failed", "Mend the policy. The ledger has what was drawn."),
    NoiseFailed: Problem(503, "no-noise", "No noise could be drawn", "Nothing was changed: try again.", _AGAIN),
    Overloaded: Problem(503, "overloaded", "Too many calls wait for this bandit", "Try again in a moment.", _AGAIN),
    OutcomeUnknown: Problem(
        503,
        "outcome-unknown",
        "The database did not say whether it kept the change",
        "Repeat the call with the same id, or the same Idempotency-Key: that tells.",
        _AGAIN,
    ),
    StateRolledBack: Problem(
        503, "state-rolled-back", "The database is an earlier copy", "The bandit is frozen until an operator thaws it."
    ),
    DatabaseBusy: Problem(503, "busy", "The database is busy", "Nothing was changed: try again.", _AGAIN),
    DatabaseOutdated: Problem(503, "outdated", "The database is of another version", "Upgrade it: db upgrade."),
    DatabaseFailed: Problem(503, "database-failed", "The database failed", "Nothing was changed: try again.", _AGAIN),
    AgentFileInvalid: Problem(500, "damaged", "The bandit's rows are damaged", "Restore the database from a backup."),
}
"""Errors of this package by their class. The nearest class that is here counts."""

_KINDS = {
    "missing": "is missing",
    "extra_forbidden": "has a member that is not known",
    "finite_number": "must be a finite number",
    "greater_than_equal": "is too small",
    "greater_than": "is too small",
    "less_than_equal": "is too large",
    "less_than": "is too large",
    "too_long": "has too many items",
    "too_short": "has too few items",
    "string_too_long": "is too long",
    "string_too_short": "is too short",
    "literal_error": "is none of the values that are possible",
    "enum": "is none of the values that are possible",
}
"""What pydantic calls the kind of an error, in words."""


def problem_of(error: BaseException) -> Problem:
    """Return the problem that an error is."""
    return next((BY_CLASS[one] for one in type(error).__mro__ if one in BY_CLASS), INTERNAL)


def places_of(errors: Iterable[Mapping[str, Any]], known: frozenset[str]) -> list[dict[str, str]]:
    """Return where a request is not valid, and how, without what was sent.

    Args:
        errors: Of pydantic.
        known: Names that the schema has. Other parts of a place were chosen by the caller.
    """
    found: dict[str, str] = {}
    for error in errors:
        # The name of an unknown member is the caller's own.
        parts = error["loc"][:-1] if error["type"] == "extra_forbidden" else error["loc"]
        place = "/".join(str(part) for part in parts if type(part) is int or part in known)
        found.setdefault(place, _KINDS.get(error["type"], "is of the wrong type or form"))
    return [{"at": place, "problem": kind} for place, kind in list(found.items())[:MOST_SHOWN]]
