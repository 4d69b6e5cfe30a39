"""Routes for whoever runs the server: is it alive, can it serve, what has it done."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from private_bandits.service.guarded import GuardedRoute
from private_bandits.service.metrics import MEDIA_TYPE
from private_bandits.service.running import service_of
from private_bandits.service.shapes import Health

router = APIRouter(route_class=GuardedRoute, tags=["health"])


@router.get("/livez")
async def livez() -> Health:
    """Say that the process answers."""
    return Health(status="ok")


@router.get("/readyz")
async def readyz(request: Request) -> Health:
    """Say that the database answers, and is of this version."""
    await run_in_threadpool(service_of(request).database.check)
    return Health(status="ok")


@router.get(
    "/metrics", response_class=Response, responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}}
)
async def metrics(request: Request) -> Response:
    """Return counts of this worker, for Prometheus."""
    service = service_of(request)
    return Response(service.metrics.text(service.committer.waiting), media_type=MEDIA_TYPE)
