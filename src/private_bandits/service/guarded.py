"""The class of all routes: it knows who may call, and how a body is read."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic_core import from_json
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from private_bandits.protocol.access import ANYONE, roles_for
from private_bandits.service.callers import Callers
from private_bandits.service.keys import ApiKey

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class JsonRequest(Request):
    """A request whose body is read strictly: no NaN, no depth that a parser could fail at."""

    async def json(self) -> Any:
        """Return what the body holds."""
        body = await self.body()
        try:
            return from_json(body, allow_inf_nan=False)
        except ValueError:
            pass
        raise RequestValidationError([{"type": "json_invalid", "loc": ("body",), "msg": "", "input": None}])


class GuardedRoute(APIRoute):
    """A route that is in the table of permissions. The caller is known before anything else is read."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        methods = options.get("methods") or ["GET"]
        self.roles = frozenset[str]().union(*(roles_for(method, path) for method in methods))
        self.whole = path in ("/v1/keys", "/v1/keys/{number}") or (path == "/v1/bandits" and "POST" in methods)
        """Whether it is for keys for all bandits alone."""
        options["openapi_extra"] = {"x-roles": sorted(self.roles)} | (options.get("openapi_extra") or {})
        super().__init__(path, endpoint, **options)

    def get_route_handler(self) -> Handler:
        """Return what answers a request."""
        answer = super().get_route_handler()
        if ANYONE in self.roles:
            return answer

        async def guarded(request: Request) -> Response:
            await self._admit(request)
            return await answer(JsonRequest(request.scope, request.receive))

        return guarded

    async def _admit(self, request: Request) -> None:
        """Find out who calls, and refuse who may not."""
        callers: Callers = request.app.state.service.callers
        secret, fresh, key = callers.at_hand(request.headers.get("authorization"))
        if not fresh:
            key = await run_in_threadpool(callers.look_up, secret)
        bandit = request.path_params.get("bandit")
        request.scope["caller"] = caller = callers.check(key, self.roles, bandit, self.whole)
        request.scope["key_number"] = caller.number
        request.scope["secret"] = secret


def caller_of(request: Request) -> ApiKey:
    """Return the key of who calls."""
    found: ApiKey = request.scope["caller"]
    return found
