"""Reads a bandit as anyone may see it, as the last commit left it. Routes that read see bandits through this alone."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any

from private_bandits.ledger import Account, Release
from private_bandits.policies import Policy
from private_bandits.policies.waiting import Waiting
from private_bandits.public_view import NO_SALT, PublicView
from private_bandits.state import Endings, PublicState, Settings
from private_bandits.storage.sql.database import Database, Transaction
from private_bandits.storage.sql.public_rows import fixed_row, ledger_rows, moving_row, version_of
from private_bandits.version import __version__
from private_bandits.wiring import Promise, run_policy_of

MOST_KEPT = 1000
"""Bandits that are kept at hand."""
_EVERYTHING = 2**31


@dataclass(frozen=True, repr=False)
class Facts:
    """What is fixed for the life of a bandit.

    Args:
        number: The number of the bandit in its database.
        name: The name of the bandit.
        opening: The text that its ledger begins with.
        created: When it was made, in microseconds since 1970.
        id_key: Signs the ids of its decisions.
        promise: What it promises.
        policy: The policy that is run, with the budget of one reward.
    """

    number: int
    name: str
    opening: str
    created: int
    id_key: bytes
    promise: Promise
    policy: Policy[Any]

    @property
    def settings(self) -> Settings:
        """The settings of the bandit, without its salt."""
        return self.promise.settings

    @property
    def warning(self) -> str | None:
        """Why nothing is promised, if nothing is."""
        return warning_of(json.loads(self.opening))


def warning_of(opening: Mapping[str, Any]) -> str | None:
    """Return why a bandit promises nothing, if so, by the text that its ledger begins with."""
    if opening["private"]:
        return None
    if opening["settings"]["seed"] is not None:
        return "No privacy is promised: the noise comes from a seed."
    return "No privacy is promised: this bandit adds no noise."


@dataclass(frozen=True, repr=False)
class Snapshot:
    """A bandit at one moment.

    Args:
        facts: What is fixed of it.
        version: Changes with everything that is written of it.
        status: Whether it runs.
        view: What anyone may see of it.
    """

    facts: Facts
    version: int
    status: str
    view: PublicView


class Snapshots:
    """Reads bandits, and keeps what was read for as long as the database has nothing newer.

    Args:
        database: The database.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = Lock()
        self._facts: OrderedDict[str, Facts] = OrderedDict()
        self._last: OrderedDict[int, Snapshot] = OrderedDict()

    def known(self, name: str) -> Facts | None:
        """Return what is fixed of a bandit, if it was read before."""
        return self._facts.get(name)

    def facts(self, name: str) -> Facts:
        """Return what is fixed of a bandit.

        Raises:
            UnknownBandit: There is none of this name.
        """
        found = self._facts.get(name)
        if found is None:
            found = _facts_of(fixed_row(self._database, name))
            with self._lock:
                _keep(self._facts, name, found)
        return found

    def of(self, name: str) -> Snapshot:
        """Return a bandit as the last commit left it.

        Raises:
            UnknownBandit: There is none of this name.
        """
        facts = self.facts(name)
        with self._lock:
            last = self._last.get(facts.number)
        if last is not None and last.version == version_of(self._database, facts.number):
            return last
        with self._database.reading() as work:
            found = _read(work, facts)
        with self._lock:
            _keep(self._last, facts.number, found)
        return found


def _keep(kept: OrderedDict[Any, Any], key: Any, value: Any) -> None:
    kept[key] = value
    kept.move_to_end(key)
    while len(kept) > MOST_KEPT:
        kept.popitem(last=False)


def _facts_of(row: Any) -> Facts:
    opening = json.loads(row.opening)
    settings = Settings.from_dict(opening["settings"] | {"salt": NO_SALT})
    policy = run_policy_of(settings)
    promise = Promise(settings, policy.budget.level, opening["private"], settings.seed is not None)
    return Facts(row.id, row.name, row.opening, row.created, bytes.fromhex(row.id_key), promise, policy)


def _read(work: Transaction, facts: Facts) -> Snapshot:
    row = moving_row(work, facts.number)
    account = Account.restored(json.loads(row.account), facts.opening)
    ended = Endings(**json.loads(row.ended))
    unlearned = _rows(work, facts, row.learned + 1) if row.learned < row.releases else []
    state, failed = _learned(facts, row, unlearned, ended.closing_from)
    counts = PublicState(None, Waiting(0), asked=row.asked, ended=ended).counts(row.open)
    view = PublicView(
        promise=facts.promise,
        policy=facts.policy,
        state=state,
        counts=counts,
        opening=facts.opening,
        releases=row.releases,
        released=account.rewards,
        head=account.head,
        spent=account.total,
        closing_from=ended.closing_from,
        rows=_rows(work, facts, 1) if ended.closing_from else (),
        failed=failed,
        version=__version__,
    )
    return Snapshot(facts, row.version, row.status, view)


def _rows(work: Transaction, facts: Facts, first: int) -> list[Release]:
    return [Release.from_text(row.text) for row in ledger_rows(work, facts.number, first, _EVERYTHING)]


def _learned(facts: Facts, row: Any, unlearned: list[Release], closing: int) -> tuple[Any, str | None]:
    """Return the policy's state with all releases learned, or how it failed. A worker may have died before it could."""
    policy, failed = facts.policy, row.failed
    if failed is not None:
        return None, failed
    try:
        state = policy.load_state(json.loads(row.policy) | json.loads(row.arrivals or "{}"))
        for release in unlearned:
            if not (policy.arm_names and 0 < closing <= release.number):
                policy.learn(state, release, row.asked + 1)
    except Exception as error:
        return None, f"{type(policy).__name__} failed at what it has to learn, with {type(error).__name__}"
    return state, None
