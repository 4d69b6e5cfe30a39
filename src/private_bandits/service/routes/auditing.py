"""The route of auditors: the ledger, row by row, as it is hashed."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from private_bandits.service.cursors import Cursor, Limit, cursor_of, number_of
from private_bandits.service.guarded import GuardedRoute
from private_bandits.service.ledger_page import page_text
from private_bandits.service.routes.deciding import Bandit
from private_bandits.service.running import service_of
from private_bandits.storage.sql.public_rows import releases_since

router = APIRouter(prefix="/v1/bandits", route_class=GuardedRoute, tags=["auditing"])

LINES = "application/jsonl"


@router.get(
    "/{bandit}/ledger",
    response_class=Response,
    responses={200: {"content": {LINES: {"schema": {"type": "string"}}}}},
)
async def ledger(request: Request, bandit: Bandit, cursor: Cursor = None, limit: Limit = 1000) -> Response:
    """Return the ledger as lines of JSON: what it begins with, its rows, its head. `private-bandits verify` reads it.

    The header Link has the next page, and X-Cursor where new rows will be. The last page ends with the head.
    """
    service, last = service_of(request), number_of(cursor)
    facts = await run_in_threadpool(service.snapshots.facts, bandit)
    rows = await run_in_threadpool(releases_since, service.database, facts.number, last, limit)
    after = cursor_of(rows[-1].number if rows else last)
    links = {"Link": f'<?cursor={after}&limit={limit}>; rel="next"'} if len(rows) == limit else {}
    return Response(page_text(facts, last, rows, limit), media_type=LINES, headers=links | {"X-Cursor": after})
