"""Calls: one request each, and its answer. Their reprs show neither what is sent nor what comes back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from private_bandits.protocol.access import roles_for
from private_bandits.protocol.problems import MEDIA_TYPE, PREFIX

BANDIT = "/v1/bandits/{bandit}"
UNKNOWN_OUTCOME = "outcome-unknown"
_OF_PROXIES = (502, 503, 504)
"""The answer of a proxy whose server did not answer. Whether the server did what it was told nobody knows."""


@dataclass(frozen=True)
class Call:
    """One request.

    Args:
        method: The method.
        route: The path of the route, as the table of permissions has it.
        bandit: The name of the bandit in it.
        decision: The id of the decision in it.
        body: What is sent, as plain data; None: nothing.
        query: The part of the address after "?".
        headers: Further headers.
        repeats: Whether it may be made again where nobody knows whether it was done.
    """

    method: str
    route: str
    bandit: str | None = None
    decision: str | None = None
    body: Any = field(default=None, repr=False)
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    repeats: bool = True

    @property
    def path(self) -> str:
        """The path, with the names in it."""
        return self.route.format(bandit=quote(self.bandit or "", safe=""), decision=quote(self.decision or "", safe=""))

    @property
    def roles(self) -> frozenset[str]:
        """The roles whose keys may make the call."""
        return roles_for(self.method, self.route)

    @property
    def changes(self) -> bool:
        """Whether it may change anything."""
        return self.method != "GET"

    @property
    def about(self) -> str:
        """Return the public names that the call is about, for errors."""
        found = "" if self.bandit is None else f"the bandit {self.bandit}"
        return f"decision {self.decision} of {found}" if self.decision is not None else found or "the service"

    def encoded(self) -> bytes | None:
        """Return the body as JSON."""
        return None if self.body is None else json.dumps(self.body, allow_nan=False).encode()


@dataclass(frozen=True)
class Answer:
    """What came back.

    Args:
        status: The status; 0: no answer came.
        text: The body.
        headers: The headers.
        arrived: Whether the request may have reached the service.
    """

    status: int
    text: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    arrived: bool = True

    @property
    def is_good(self) -> bool:
        """Whether the call was done."""
        return 200 <= self.status < 300

    @property
    def problem(self) -> Mapping[str, Any]:
        """The problem (RFC 9457), if it is one of the service."""
        if not self.headers.get("content-type", "").startswith(MEDIA_TYPE):
            return {}
        try:
            found = json.loads(self.text)
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}

    @property
    def problem_name(self) -> str:
        """The name of the problem; "" if it is none of the service."""
        return str(self.problem.get("type", "")).removeprefix(PREFIX)

    @property
    def is_unknown(self) -> bool:
        """Whether nobody knows if the call was done."""
        if self.status == 0:
            return self.arrived
        name = self.problem_name
        return name == UNKNOWN_OUTCOME or (not name and self.status in _OF_PROXIES)

    @property
    def is_for_now(self) -> bool:
        """Whether the same call may be done in a moment."""
        return self.status == 0 or self.is_unknown or (self.status in (429, 503) and "retry-after" in self.headers)

    @property
    def retry_after(self) -> float:
        """After how many seconds, at least."""
        text = self.headers.get("retry-after", "")
        return float(text) if text.isascii() and text.isdecimal() and len(text) < 6 else 0.0
