"""Writes an agent that was in a file of its own into a database: its state, and all of its rows."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

from sqlalchemy import Table, insert, select

from private_bandits.arguments import encoded
from private_bandits.bandit import Bandit
from private_bandits.errors import BanditExists
from private_bandits.storage.decisions import COLUMNS, stored_offer
from private_bandits.storage.sql.database import Database, Transaction
from private_bandits.storage.sql.decisions import stored_name
from private_bandits.storage.sql.schema import bandits, decisions, episodes, identity, people, releases
from private_bandits.storage.sql.state_rows import ColdRow, HotRow, kept_of
from private_bandits.storage.sql.stored import PAGE, add_bandit, new_fixed
from private_bandits.storage.sqlite import SqliteStore

AT_ONCE = 1000
"""Rows that are written with one statement."""

Rows = Iterator[dict[str, Any]]
Report = Callable[[float], None]


def identity_of(database: Database) -> str:
    """Return which database this is, whatever its address."""
    with database.reading() as work:
        return str(work.rows(select(identity.c.id))[0][0])


def is_there(work: Transaction, name: str, opening: str, settings: str) -> bool:
    """Whether the bandit of this name is this agent. settings: with its token and its salt, as JSON.

    Raises:
        BanditExists: It is another one.
    """
    found = work.rows(select(bandits.c.opening, bandits.c.settings).where(bandits.c.name == name))
    if found and tuple(found[0]) != (opening, settings):
        raise BanditExists(f"the database has another bandit named {name!r}: choose another name")
    return bool(found)


def add_moved(work: Transaction, name: str, bandit: Bandit, store: SqliteStore, report: Report) -> None:
    """Write a bandit whose policy has learned all releases, with the rows of its file.

    Args:
        work: A transaction, which is not committed here.
        name: The name of the bandit.
        bandit: The state machine of the agent, at rest.
        store: The file of the agent.
        report: Told the share that is done.
    """
    public, account = bandit.public, bandit.door.account
    last = {g: min(public.asked, store.asked_in(g)) for g in range(1, public.generation)}
    fixed = new_fixed(name, bandit.settings, account.opening, last)
    sums = bandit.private.episodes
    first = HotRow.first(len(public.waiting), account.last_hash).after(public, len(store), sums.values(), ())
    hot = replace(first, version=1, generation=public.generation, releases=len(account))
    kept = {key: kept_of(episode) for key, episode in sums.items()}
    policy = encoded(bandit.policy.dump_state(public.policy))
    number = add_bandit(work, fixed, hot, ColdRow(len(account), len(account), policy, kept, json.dumps(account.dump())))
    tables: list[tuple[Table, Callable[[], Rows]]] = [
        (decisions, lambda: _open_rows(number, bandit, store, work.now)),
        (decisions, lambda: _ended_rows(number, store, work.now)),
        (people, lambda: _people_rows(number, store)),
        (releases, lambda: _release_rows(number, bandit, store, work.now)),
        (episodes, lambda: _episode_rows(number, bandit, store, hot.incarnation)),
    ]
    for done, (table, rows) in enumerate(tables):
        report(done / len(tables))
        _insert(work, table, rows())


def _insert(work: Transaction, table: Table, rows: Rows) -> None:
    while some := list(islice(rows, AT_ONCE)):
        work.run(insert(table), some)


def _open_rows(number: int, bandit: Bandit, store: SqliteStore, now: int) -> Rows:
    """Return the open decisions. Each was made by the first time that is noted for it or for a later one."""
    timed = bandit.public.times is not None
    marks = sorted((last, time) for time, last in store.all_rows("times", "time, number")) if timed else []
    dimension = getattr(bandit.settings.policy, "dimension", None)
    for decision, generation, action, person, offered in store.all_rows("decisions", COLUMNS):
        offer = None if offered is None else stored_offer(offered, action, dimension)
        at = bisect_left(marks, (decision, 0))
        yield {
            "bandit": number,
            "number": decision,
            "generation": generation,
            "action": action,
            "arm": stored_name(getattr(offer, "names", {action: None})[action]),
            "person": person,
            "offered": offered,
            "status": "open",
            "asked_at": marks[at][1] if at < len(marks) else now,
            "closed_at": None,
        }


def _ended_rows(number: int, store: SqliteStore, now: int) -> Rows:
    """Return the decisions that ended otherwise than by a reward that was taken. Nothing else is known of them."""
    unknown = dict.fromkeys(("action", "arm", "person", "offered"))
    for decision, ending in store.all_rows("closed", "number, ending"):
        known = {"bandit": number, "number": decision, "generation": 0, "status": ending}
        yield known | unknown | {"asked_at": now, "closed_at": now}


def _people_rows(number: int, store: SqliteStore) -> Rows:
    places: dict[str, str] = dict(store.all_rows("places", "person, episodes"))
    for person, rewards in store.all_rows("people", "person, rewards"):
        yield {"bandit": number, "person": person, "rewards": rewards, "places": places.get(person, "{}")}


def _ledger(bandit: Bandit, store: SqliteStore) -> Iterator[Any]:
    for first in range(1, len(bandit.door.account) + 1, PAGE):
        yield from store.releases(first, first + PAGE - 1)


def _release_rows(number: int, bandit: Bandit, store: SqliteStore, now: int) -> Rows:
    for row in _ledger(bandit, store):
        yield {"bandit": number, "number": row.number, "row": row.text, "released_at": now}


def _episode_rows(number: int, bandit: Bandit, store: SqliteStore, incarnation: str) -> Rows:
    for row in _ledger(bandit, store):
        for episode in _new_episodes(row.parts):
            yield {"bandit": number, "incarnation": incarnation, "episode": episode, "release": row.number}


def _new_episodes(parts: Iterable[Any]) -> Iterator[str]:
    return (part.episode for part in parts if part.new)
