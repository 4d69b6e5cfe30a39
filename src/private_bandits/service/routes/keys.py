"""Routes of administrators: keys."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Path
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from private_bandits.protocol.problems import UNKNOWN_KEY, Refused
from private_bandits.service.cursors import Cursor, Limit, cursor_of, number_of
from private_bandits.service.guarded import GuardedRoute
from private_bandits.service.keys import create_key, list_keys, revoke_key
from private_bandits.service.running import service_of
from private_bandits.service.shapes import KeyList, KeySent, KeyShown, NewKeyShown

router = APIRouter(prefix="/v1/keys", route_class=GuardedRoute, tags=["keys"])


@router.get("")
async def keys(request: Request, cursor: Cursor = None, limit: Limit = 1000) -> KeyList:
    """List the keys, without the texts that their owners keep."""
    last = number_of(cursor)
    found = await run_in_threadpool(list_keys, service_of(request).database)
    later = [key for key in found if key.number > last]
    items = [KeyShown(**asdict(key)) for key in later[:limit]]
    return KeyList(items=items, next=cursor_of(items[-1].number) if len(later) > limit else None)


@router.post("", status_code=201)
async def make_key(request: Request, body: KeySent) -> NewKeyShown:
    """Make a key. Its text is shown this once."""
    made = await run_in_threadpool(create_key, service_of(request).database, body.name, body.role, body.bandit)
    return NewKeyShown(**asdict(made.key), key=made.secret)


@router.delete("/{number}")
async def end_key(request: Request, number: Annotated[int, Path(ge=1, le=2**53)]) -> KeyShown:
    """Revoke a key. It is refused after a second at the latest."""
    database = service_of(request).database
    if all(key.number != number for key in await run_in_threadpool(list_keys, database)):
        raise Refused(UNKNOWN_KEY)
    return KeyShown(**asdict(await run_in_threadpool(revoke_key, database, number)))
