"""Makes this package's own objects of what the service shows."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from private_bandits.budget import Budget
from private_bandits.client.calling import Caller
from private_bandits.client.calls import BANDIT, Call
from private_bandits.errors import ServiceFailed
from private_bandits.guarantee import Guarantee
from private_bandits.ledger import Ledger, Release
from private_bandits.policies import Estimate
from private_bandits.public_view import NO_SALT
from private_bandits.state import DecisionCounts, Settings
from private_bandits.statement import Statement
from private_bandits.statement.facts import Facts
from private_bandits.verdict import Difference, Verdict
from private_bandits.wiring import run_policy_of

_ROWS = 1000


@dataclass(frozen=True)
class _Shown:
    """Differences that the service found."""

    pairs: tuple[Difference, ...]

    def differences(self, delta: float) -> list[Difference]:
        """Return them. They are for the delta of their verdict alone."""
        return list(self.pairs)


def estimates_in(data: Any) -> list[Estimate]:
    """Return the estimates of an answer."""
    return [Estimate(**one) for one in data["estimates"]]


def verdict_in(data: Any) -> Verdict:
    """Return the verdict of an answer."""
    pairs = tuple(Difference(**one) for one in data["differences"])
    return Verdict(data["winner"], data["action"], data["delta"], tuple(data["conditions"]), _Shown(pairs))


def guarantee_in(data: Any, budget: Budget) -> Guarantee:
    """Return the promise of an answer."""
    numbers = {name: _number(data[name]) for name in _NUMBERS}
    plain = {name: data[name] for name in ("unit", "private", "guessed_right", "words")}
    return Guarantee(budget=budget, **plain, **numbers)


_NUMBERS = ("promised", "spent", "epsilon", "delta", "per_reward", "per_person")


def _number(value: Any) -> Any:
    return math.inf if value == "inf" else value


def settings_in(plain: Mapping[str, Any]) -> Settings:
    """Return settings that are shown as plain data."""
    return Settings.from_dict({**plain, "salt": NO_SALT})


def statement_in(data: Any) -> Statement:
    """Return the statement whose facts an answer holds."""
    settings, counts, ledger = settings_in(data["settings"]), dict(data["counts"]), data["ledger"]
    released = counts.pop("released")
    del counts["unreleased"]
    verdict = data["verdict"]
    opening = {name: data[name] for name in ("settings", "plan")}
    if ledger.get("chained") is not None:
        opening["chained"] = ledger["chained"]
    facts = Facts(
        written=data["written"],
        version=data["version"],
        failed=data["failed"],
        finished=data["status"] == "finished",
        settings=settings,
        policy=run_policy_of(settings),
        opening=opening,
        counts=DecisionCounts(**counts),
        delta=data["delta"],
        estimates=estimates_in(data),
        verdict=None if verdict is None else verdict_in(data | verdict),
        guarantee=guarantee_in(data["guarantee"], settings.policy.budget),
        releases=ledger["releases"],
        released=released,
        head=ledger["head"],
        first_head=ledger["first_head"],
    )
    return Statement(facts)


def ledger_of(caller: Caller, bandit: str) -> Ledger:
    """Read a ledger, page by page, and verify it.

    Raises:
        ServiceFailed: It is none.
    """
    lines: list[str] = []
    cursor: str | None = None
    more = True
    while more:
        query = {"limit": str(_ROWS)} | ({} if cursor is None else {"cursor": cursor})
        answer = caller.make(Call("GET", f"{BANDIT}/ledger", bandit=bandit, query=query)).answer
        lines += answer.text.splitlines()
        cursor, more = answer.headers.get("x-cursor"), "link" in answer.headers
    found = _ledger_in(lines)
    if found is None or not found.verify().ok:
        where = f"{caller.connections.url} shows a ledger of the bandit {bandit}"
        raise ServiceFailed(f"{where} that does not verify: keep what it shows, and ask who runs it")
    return found


def _ledger_in(lines: list[str]) -> Ledger | None:
    """Return the ledger in these lines. The head at their end is missing where the last page had no room for it."""
    try:
        head = json.loads(lines[-1]).get("head") if len(lines) > 1 else None
        rows = [Release.from_text(line) for line in (lines[1:] if head is None else lines[1:-1])]
        found = Ledger(rows, lines[0])
    except (ValueError, KeyError, TypeError, IndexError, AttributeError):
        return None
    return found if head in (None, found.head) else None
