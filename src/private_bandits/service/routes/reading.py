"""Routes of those who read. They see bandits through snapshots alone: what was committed, and is public."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from private_bandits.protocol.problems import NO_VERDICT, Refused
from private_bandits.service.activity import activity_of
from private_bandits.service.cursors import Cursor, Limit, cursor_of, number_of
from private_bandits.service.decision_list import as_csv, decisions_page
from private_bandits.service.describing import from_releases, line, shown
from private_bandits.service.guarded import GuardedRoute, caller_of
from private_bandits.service.routes.deciding import Bandit
from private_bandits.service.running import service_of
from private_bandits.service.shapes import (
    Activity,
    BanditList,
    BanditShown,
    DecisionList,
    Estimates,
    EstimateShown,
    GuaranteeShown,
    VerdictShown,
)
from private_bandits.service.snapshots import Snapshot
from private_bandits.service.stating import FORMS, statement_in
from private_bandits.storage.sql.public_rows import bandits_after

router = APIRouter(prefix="/v1/bandits", route_class=GuardedRoute, tags=["reading"])

Delta = Annotated[
    float, Query(gt=0, lt=1, allow_inf_nan=False, description="The probability that what is said is wrong, at most.")
]
PrivacyDelta = Annotated[
    float | None, Query(gt=0, lt=1, allow_inf_nan=False, description="The delta of (epsilon, delta).")
]


async def snapshot(request: Request, bandit: str) -> Snapshot:
    """Return a bandit as the last commit left it."""
    return await run_in_threadpool(service_of(request).snapshots.of, bandit)


@router.get("")
async def bandits(request: Request, cursor: Cursor = None, limit: Limit = 100) -> BanditList:
    """List the bandits that the key is for."""
    service, name = service_of(request), caller_of(request).bandit
    page = await run_in_threadpool(bandits_after, service.database, number_of(cursor), limit, name)
    last = cursor_of(page.rows[-1].id) if page.more else None
    return BanditList(items=[line(row) for row in page.rows], next=last)


@router.get("/{bandit}")
async def one_bandit(request: Request, bandit: Bandit) -> BanditShown:
    """Describe a bandit."""
    return shown(await snapshot(request, bandit))


@router.get("/{bandit}/estimates")
async def estimates(request: Request, bandit: Bandit, delta: Delta = 0.05) -> Estimates:
    """Return each arm's mean with an interval, from releases only. A bandit whose actions change has no such list."""
    found = await snapshot(request, bandit)
    arms = await run_in_threadpool(found.view.estimates, delta)
    shown_arms = [EstimateShown(**arm._asdict()) for arm in arms]
    return Estimates(**from_releases(found), delta=delta, estimates=shown_arms)


@router.get("/{bandit}/verdict")
async def verdict(request: Request, bandit: Bandit, delta: Delta = 0.05) -> VerdictShown:
    """Return which arm is best, if that can be said. Looking is free."""
    found = await snapshot(request, bandit)
    drawn = await run_in_threadpool(found.view.verdict, delta)
    if drawn is None:
        raise Refused(NO_VERDICT)
    return VerdictShown(**from_releases(found), **await run_in_threadpool(drawn.to_dict))


@router.get("/{bandit}/guarantee")
async def guarantee(request: Request, bandit: Bandit, delta: PrivacyDelta = None) -> GuaranteeShown:
    """Return what is promised, and what is spent of it."""
    found = await snapshot(request, bandit)
    return GuaranteeShown(**from_releases(found) | found.view.guarantee(delta).to_dict())


@router.get(
    "/{bandit}/statement",
    response_class=Response,
    responses={200: {"content": {kind: {"schema": {"type": "string"}} for kind in FORMS}}},
)
async def statement(request: Request, bandit: Bandit, delta: Delta = 0.05) -> Response:
    """Return the statement of the trial: as JSON, or with Accept as text/plain or text/html. Looking is free."""
    found = await snapshot(request, bandit)
    kind, text = await run_in_threadpool(statement_in, found.view, delta, request.headers.get("accept", ""))
    return Response(text, media_type=kind)


@router.get(
    "/{bandit}/decisions",
    response_model=DecisionList,
    responses={200: {"content": {"text/csv": {"schema": {"type": "string"}}}}},
)
async def decisions(
    request: Request, bandit: Bandit, cursor: Cursor = None, limit: Limit = 1000
) -> DecisionList | Response:
    """List decisions, without persons and contexts. As CSV with Accept: text/csv. Not where contexts are private."""
    service = service_of(request)
    facts = await run_in_threadpool(service.snapshots.facts, bandit)
    page = await run_in_threadpool(decisions_page, service.database, facts, number_of(cursor), limit)
    if "text/csv" in request.headers.get("accept", ""):
        links = {} if page.next is None else {"Link": f'<?cursor={page.next}&limit={limit}>; rel="next"'}
        return Response(as_csv(page), media_type="text/csv", headers=links)
    return page


@router.get("/{bandit}/activity")
async def activity(request: Request, bandit: Bandit, hours: Annotated[int, Query(ge=1, le=24 * 366)] = 24) -> Activity:
    """Count the decisions of the last hours, over time. Not by action where contexts are private."""
    service = service_of(request)
    facts = await run_in_threadpool(service.snapshots.facts, bandit)
    return await run_in_threadpool(activity_of, service.database, facts, hours)
