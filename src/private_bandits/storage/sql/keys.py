"""API keys in a database: their hashes, and what they are for."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, Select, insert, select, update

from private_bandits.errors import InvalidInput
from private_bandits.storage.sql.database import Database
from private_bandits.storage.sql.schema import bandits, keys
from private_bandits.storage.sql.stored import find_bandit


@dataclass(frozen=True)
class ApiKey:
    """What is known of an API key. The key itself is known to its owner alone.

    Args:
        number: The number of the key.
        name: For people: whose key it is.
        role: What it may do.
        bandit: The name of the bandit that it is for; None: all of them.
        created: When it was made, in microseconds since 1970.
        revoked: When it was revoked; None: it was not.
    """

    number: int
    name: str
    role: str
    bandit: str | None
    created: int
    revoked: int | None


def _all() -> Select[Any]:
    columns = (keys.c.id, keys.c.name, keys.c.role, bandits.c.name, keys.c.created, keys.c.revoked)
    return select(*columns).select_from(keys.outerjoin(bandits, bandits.c.id == keys.c.bandit))


def _key_of(row: Row[Any]) -> ApiKey:
    values: tuple[Any, ...] = tuple(row)
    return ApiKey(*values)


def add_key(database: Database, name: str, role: str, bandit: str | None, hashed: str) -> ApiKey:
    """Write a new key. hashed: its hash."""
    with database.transaction() as work:
        now = time.time_ns() // 1000
        number = None if bandit is None else find_bandit(work, bandit).number
        row = {"name": name, "role": role, "bandit": number, "hash": hashed, "created": now}
        made = work.rows(insert(keys).values(row).returning(keys.c.id))[0][0]
        work.commit()
    return ApiKey(made, name, role, bandit, now, None)


def all_keys(database: Database) -> list[ApiKey]:
    """Return all keys, oldest first."""
    with database.reading() as work:
        return [_key_of(row) for row in work.rows(_all().order_by(keys.c.id))]


def key_of_hash(database: Database, hashed: str) -> ApiKey | None:
    """Return the key of a hash, if there is one that was not revoked."""
    with database.reading() as work:
        found = work.rows(_all().where(keys.c.hash == hashed, keys.c.revoked.is_(None)))
    return _key_of(found[0]) if found else None


def end_key(database: Database, number: int) -> ApiKey:
    """Revoke a key, by its number. One that was revoked before stays so.

    Raises:
        InvalidInput: There is no key of this number.
    """
    with database.transaction() as work:
        now = time.time_ns() // 1000
        work.run(update(keys).where(keys.c.id == number, keys.c.revoked.is_(None)).values(revoked=now))
        found = work.rows(_all().where(keys.c.id == number))
        if not found:
            raise InvalidInput(f"the database has no key of number {number}: list the keys")
        work.commit()
    return _key_of(found[0])
