"""The application: routes, and an answer for everything that may go wrong."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from private_bandits.errors import PrivateBanditsError
from private_bandits.protocol.access import ANYONE
from private_bandits.protocol.problems import (
    INVALID,
    MEDIA_TYPE,
    NOT_FOUND,
    NOT_JSON,
    TOO_LARGE,
    WRONG_METHOD,
    Problem,
    Refused,
    places_of,
    problem_of,
)
from private_bandits.service.draining import noticing_signals
from private_bandits.service.envelope import Envelope
from private_bandits.service.guarded import GuardedRoute
from private_bandits.service.metrics import Metrics
from private_bandits.service.routes import auditing, deciding, health, keys, operating, reading, streaming
from private_bandits.service.running import Service
from private_bandits.service.settings import ServerSettings
from private_bandits.service.shapes import ProblemShown, known_names
from private_bandits.version import __version__

ROUTERS = (
    deciding.router,
    reading.router,
    auditing.router,
    streaming.router,
    operating.router,
    keys.router,
    health.router,
)
_BY_STATUS = {404: NOT_FOUND, 405: WRONG_METHOD, 413: TOO_LARGE}
_PLACES = known_names() | {"cursor", "limit", "delta", "hours", "number", "bandit", "decision", "Idempotency-Key"}


def make_app(settings: ServerSettings) -> FastAPI:
    """Return the application of one worker. It connects to its database when it starts, and lets go when it ends."""
    metrics = Metrics()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        app.state.service = await run_in_threadpool(Service.started, settings, metrics)
        try:
            with noticing_signals():
                yield
        finally:
            await run_in_threadpool(app.state.service.close)

    app = FastAPI(
        title="private-bandits",
        version=__version__,
        description="Bandits that learn from people's feedback without revealing any one person's feedback.",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
    )
    for router in ROUTERS:
        app.router.routes.extend(router.routes)  # not included: each request would be matched twice
    for kind, handler in _HANDLERS.items():
        app.add_exception_handler(kind, handler)
    app.add_middleware(Envelope, metrics=metrics, max_body=settings.max_body)
    app.openapi = lambda: _openapi(app)  # type: ignore[method-assign]
    return app


def _answer(request: Request, problem: Problem, **more: Any) -> Response:
    body = problem.body(request_id=request.scope.get("request_id"), **more)
    return Response(body, problem.status, headers=dict(problem.headers), media_type=MEDIA_TYPE)


async def _refused(request: Request, error: Any) -> Response:
    return _answer(request, error.problem, **error.more)


async def _failed(request: Request, error: Any) -> Response:
    return _answer(request, problem_of(error))


async def _invalid(request: Request, error: Any) -> Response:
    found = error.errors()
    if any(one["type"] == "json_invalid" for one in found):
        return _answer(request, NOT_JSON)
    return _answer(request, INVALID, errors=places_of(found, _PLACES))


async def _http(request: Request, error: Any) -> Response:
    return _answer(request, _BY_STATUS.get(error.status_code, NOT_JSON))


_HANDLERS: dict[type[Exception], Callable[[Request, Any], Awaitable[Response]]] = {
    Refused: _refused,
    PrivateBanditsError: _failed,
    RequestValidationError: _invalid,
    HTTPException: _http,
}


def _openapi(app: FastAPI) -> dict[str, Any]:
    """Return the description of all routes: with it every route says which role it needs, and what may go wrong."""
    if app.openapi_schema is None:
        found = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
        schemas = found["components"]["schemas"]
        for name in ("HTTPValidationError", "ValidationError"):  # not what is answered here
            schemas.pop(name, None)
        schemas["Problem"] = ProblemShown.model_json_schema(ref_template="#/components/schemas/{model}")
        found["components"]["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
        for route in app.routes:
            if isinstance(route, GuardedRoute):
                for method in route.methods or ():
                    _complete(found["paths"][route.path_format][method.lower()], route)
        app.openapi_schema = found
    return app.openapi_schema


def _complete(operation: dict[str, Any], route: GuardedRoute) -> None:
    """Say of an operation which key it needs, and that anything else that it answers is a problem."""
    problem = {"schema": {"$ref": "#/components/schemas/Problem"}}
    operation["responses"].pop("422", None)
    operation["responses"]["default"] = {"description": "A problem.", "content": {MEDIA_TYPE: problem}}
    if ANYONE not in route.roles:
        operation["security"] = [{"key": []}]
