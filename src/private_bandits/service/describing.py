"""Says what a bandit is, from a snapshot of it."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from private_bandits.plain_data import json_numbers
from private_bandits.service.shapes import BanditLine, BanditShown, Counts
from private_bandits.service.snapshots import Snapshot, warning_of


def shown(found: Snapshot) -> BanditShown:
    """Return a bandit as it is described."""
    facts, view = found.facts, found.view
    opening = json.loads(facts.opening)
    return BanditShown(
        name=facts.name,
        status=found.status,
        created=facts.created,
        private=facts.promise.private,
        warning=facts.warning,
        failed=view.failed,
        finished=view.finished,
        settings=json_numbers(opening["settings"]),
        plan=opening["plan"],
        counts=Counts(**asdict(view.counts)),
        releases=view.releases,
        head=view.head,
    )


def line(row: Any) -> BanditLine:
    """Return a bandit as a list shows it."""
    warning = warning_of(json.loads(row.opening))
    return BanditLine(name=row.name, status=row.status, created=row.created, private=warning is None, warning=warning)


def from_releases(found: Snapshot) -> dict[str, Any]:
    """Return what every answer says that follows from releases."""
    facts, view = found.facts, found.view
    return {
        "releases": view.releases,
        "head": view.head,
        "private": facts.promise.private,
        "warning": facts.warning,
    }
