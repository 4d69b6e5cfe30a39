"""Counts decisions over time. Which rewards arrived is public here; what they were is in none of these counts."""

from __future__ import annotations

import time
from collections import Counter

from private_bandits.service.shapes import Activity, ActivitySpan
from private_bandits.service.snapshots import Facts
from private_bandits.storage.sql.database import Database
from private_bandits.storage.sql.public_rows import decisions_by_time

SPANS = 48
"""Spans that the time is divided into."""
_SHORTEST = 60


def activity_of(database: Database, facts: Facts, hours: int) -> Activity:
    """Count the decisions of the last hours by what became of them, and by action where actions are the same ones."""
    seconds = max(_SHORTEST, hours * 3600 // SPANS)
    width = seconds * 1_000_000
    now = time.time_ns() // 1000
    since = (now - hours * 3_600_000_000) // width * width
    names = facts.policy.arm_names
    statuses: dict[int, Counter[str]] = {}
    actions: dict[int, Counter[str]] = {}
    for row in decisions_by_time(database, facts.number, since, width):
        statuses.setdefault(row.span, Counter())[row.status] += row.decisions
        if names and not facts.policy.private_contexts:
            actions.setdefault(row.span, Counter())[names[row.action]] += row.decisions
    items = [
        ActivitySpan(
            start=span * width,
            asked=found.total(),
            statuses=dict(found),
            actions=dict(actions[span]) if span in actions else None,
        )
        for span, found in sorted(statuses.items())
    ]
    return Activity(span_seconds=seconds, items=items)
