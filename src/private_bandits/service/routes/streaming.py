"""The route of those who watch: releases as they come, as server-sent events."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Header
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import StreamingResponse

from private_bandits.protocol.problems import INVALID, Refused
from private_bandits.service.guarded import GuardedRoute
from private_bandits.service.routes.deciding import Bandit
from private_bandits.service.running import service_of
from private_bandits.service.stream import Stream

router = APIRouter(prefix="/v1/bandits", route_class=GuardedRoute, tags=["reading"])

LastEvent = Annotated[
    str | None,
    Header(alias="Last-Event-ID", max_length=15, description="The number of the last release that is known."),
]


@router.get(
    "/{bandit}/events",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}},
)
async def events(request: Request, bandit: Bandit, last_event_id: LastEvent = None) -> StreamingResponse:
    """Stream releases. The id of an event is the number of its ledger's row; Last-Event-ID goes on after one.

    Without Last-Event-ID the stream begins with releases that come from now on. It ends once the key is revoked.
    """
    if last_event_id is not None and not (last_event_id.isascii() and last_event_id.isdecimal()):
        raise Refused(INVALID, errors=[{"at": "Last-Event-ID", "problem": "must be a whole number"}])
    service = service_of(request)
    facts = await run_in_threadpool(service.snapshots.facts, bandit)
    last = None if last_event_id is None else int(last_event_id)
    stream = Stream(service, facts.number, request.scope["secret"], last)
    headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
    return StreamingResponse(stream.events(), media_type="text/event-stream", headers=headers)
