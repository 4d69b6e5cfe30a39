"""Around every call: a request id, a limit on bodies, the log, the counts, and an answer whatever happens within."""

from __future__ import annotations

import itertools
import secrets
import time
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from typing import Any

from starlette.exceptions import HTTPException

from private_bandits.protocol.problems import INTERNAL, MEDIA_TYPE, TOO_LARGE, Problem
from private_bandits.service.logs import ACCESS, FAILURES
from private_bandits.service.metrics import Metrics

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

NO_ROUTE = "none"
"""In place of a route where an address is none."""
MOST_DISCARDED = 16_000_000
"""Bytes of a body that is too large that are read before it is refused."""
METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))


class BodyTooLarge(HTTPException):
    """A body with more bytes than are read."""

    def __init__(self) -> None:
        super().__init__(413)


@dataclass
class Call:
    """What is noted of a call while it is answered."""

    request_id: str
    started: float
    status: int = 0
    received: int = 0
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)


class Envelope:
    """An ASGI application around another one.

    Args:
        app: The application.
        metrics: Counts the answers.
        max_body: Bytes of a body at most.
    """

    def __init__(self, app: App, metrics: Metrics, max_body: int) -> None:
        self._app, self._metrics, self._max_body = app, metrics, max_body
        worker = secrets.token_hex(6)
        self._ids = (f"{worker}-{number}" for number in itertools.count(1))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one call."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        call = Call(next(self._ids), time.perf_counter())
        call.headers = [(b"x-request-id", call.request_id.encode()), (b"x-content-type-options", b"nosniff")]
        scope["request_id"] = call.request_id
        self._metrics.running += 1
        try:
            await self._answer(scope, receive, send, call)
        finally:
            self._metrics.running -= 1
            self._note(scope, call)

    async def _answer(self, scope: Scope, receive: Receive, send: Send, call: Call) -> None:
        async def limited() -> Message:
            message = await receive()
            call.received += len(message.get("body", b""))
            if call.received > self._max_body:
                if message.get("more_body"):
                    await _discard(receive)
                raise BodyTooLarge
            return message

        async def noted(message: Message) -> None:
            if message["type"] == "http.response.start":
                call.status = message["status"]
                message = {**message, "headers": [*message.get("headers", ()), *call.headers]}
            await send(message)

        problem: Problem | None = None
        try:
            if _announced(scope) > self._max_body:
                await _discard(receive)
                problem = TOO_LARGE
            else:
                await self._app(scope, limited, noted)
        except BodyTooLarge:
            problem = TOO_LARGE
        except Exception as error:
            # The class alone: its words, its causes and its frames may hold what was sent.
            FAILURES.error("a call failed", extra={"request_id": call.request_id, "error": type(error).__name__})
            problem = INTERNAL
        if problem is not None and not call.status:
            await send_problem(problem, noted, call.request_id, close=problem is TOO_LARGE)

    def _note(self, scope: Scope, call: Call) -> None:
        route, seconds = scope.get("route"), time.perf_counter() - call.started
        path = NO_ROUTE if route is None else getattr(route, "path_format", NO_ROUTE)
        method = scope["method"] if scope["method"] in METHODS else "OTHER"
        self._metrics.answered(method, path, call.status, seconds)
        if ACCESS.isEnabledFor(20):
            noted = {
                "request_id": call.request_id,
                "method": method,
                "route": path,
                "status": call.status,
                "milliseconds": round(seconds * 1000, 1),
                "key": scope.get("key_number"),
            }
            ACCESS.info("answered", extra=noted)


def _announced(scope: Scope) -> int:
    """Return the length that a request says its body has; 0 if it says none."""
    for name, value in scope["headers"]:
        if name == b"content-length":
            return int(value) if value.isdigit() and len(value) < 20 else 10**20
    return 0


async def _discard(receive: Receive) -> None:
    """Read what is left of a body, and forget it: who still sends would not see the answer. Not without an end."""
    left = MOST_DISCARDED
    while left > 0:
        message = await receive()
        left -= len(message.get("body", b""))
        if not message.get("more_body"):
            return


async def send_problem(problem: Problem, send: Send, request_id: str, close: bool = False) -> None:
    """Answer with a problem. close: whether the connection ends, as the rest of a body is not read."""
    headers = [(name.lower().encode(), value.encode()) for name, value in problem.headers.items()]
    headers.append((b"content-type", MEDIA_TYPE.encode()))
    if close:
        headers.append((b"connection", b"close"))
    body = problem.body(request_id=request_id)
    headers.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": problem.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
