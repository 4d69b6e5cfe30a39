"""Routes of operators: bandits are made, paused, closed and finished."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from private_bandits.protocol.problems import STANDING, Refused
from private_bandits.service.describing import shown
from private_bandits.service.guarded import GuardedRoute
from private_bandits.service.making import make_bandit
from private_bandits.service.operations import Finish
from private_bandits.service.routes.deciding import Bandit
from private_bandits.service.running import service_of
from private_bandits.service.shapes import BanditSent, BanditShown, Finished, StatusSent
from private_bandits.service.submitting import submit
from private_bandits.storage.sql.public_rows import change_status

router = APIRouter(prefix="/v1/bandits", route_class=GuardedRoute, tags=["operating"])


@router.post("", status_code=201)
async def make(request: Request, body: BanditSent) -> BanditShown:
    """Make a bandit."""
    service = service_of(request)
    await run_in_threadpool(make_bandit, service.database, body, service.settings.allow_no_privacy)
    return shown(await run_in_threadpool(service.snapshots.of, body.name))


@router.patch("/{bandit}")
async def change(request: Request, bandit: Bandit, body: StatusSent) -> BanditShown:
    """Pause a bandit, let it run again, or close it for good."""
    service = service_of(request)
    facts = await run_in_threadpool(service.snapshots.facts, bandit)
    allowed = ("active", "paused")
    if not await run_in_threadpool(change_status, service.database, facts.number, body.status, allowed):
        raise Refused(STANDING)
    return shown(await run_in_threadpool(service.snapshots.of, bandit))


@router.post("/{bandit}/finish")
async def finish(request: Request, bandit: Bandit) -> Finished:
    """Release what is unreleased. The bandit takes no rewards any more. It is safe to repeat."""
    return Finished(rewards=await submit(service_of(request), bandit, Finish()))
