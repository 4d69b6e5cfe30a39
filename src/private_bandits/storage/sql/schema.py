"""The tables. migrations/ makes them; this is what queries are written against.

Columns whose values depend on rewards are texts without any constraint: no database may refuse a draw for its value.
Tables that a batch writes many rows of have no foreign keys: the row of `hot`, which it locks first, stands for them.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    text,
)

metadata = MetaData()

_ID = BigInteger().with_variant(Integer, "sqlite")  # SQLite counts up in a column of this type only


def _whole(name: str, *, optional: bool = False) -> Column[int]:
    return Column(name, BigInteger, nullable=optional)


def _text(name: str, *, optional: bool = False) -> Column[str]:
    return Column(name, Text, nullable=optional)


identity = Table("identity", metadata, _text("id"), PrimaryKeyConstraint("id", name="identity_key"))
"""One row of 64 random bits: which database this is, whatever its address."""

bandits = Table(
    "bandits",
    metadata,
    Column("id", _ID, primary_key=True),
    _text("name"),
    _text("settings"),
    _text("opening"),
    _text("id_key"),
    _text("moved_in", optional=True),
    _whole("created"),
    UniqueConstraint("name", name="bandits_name"),
)
"""What is fixed for the life of a bandit. id_key: signs the ids of its decisions, and hashes what was asked.

moved_in: of an agent that moved in, the number of the last decision of each generation of its file, as JSON.
"""

hot = Table(
    "hot",
    metadata,
    Column("bandit", _ID, ForeignKey("bandits.id", name="hot_bandit"), primary_key=True, autoincrement=False),
    _whole("version"),
    _text("status"),
    _text("failed", optional=True),
    _text("incarnation"),
    _whole("generation"),
    _whole("asked"),
    _whole("open"),
    _text("waiting"),
    _text("ended"),
    _text("arrivals", optional=True),
    _text("sums"),
    _whole("releases"),
    _text("head"),
    _whole("now"),
)
"""What every batch changes. A batch locks this row first, and writes it only if it still has the version it read.

sums: the open sums, private, a line each. waiting: open decisions by action. ended: how decisions ended. head: the hash
of the last row of the ledger. now: the latest time that was seen, in microseconds since 1970.
"""

cold = Table(
    "cold",
    metadata,
    Column("bandit", _ID, ForeignKey("bandits.id", name="cold_bandit"), primary_key=True, autoincrement=False),
    _whole("releases"),
    _whole("learned"),
    _text("policy"),
    _text("kept"),
    _text("account"),
)
"""What a release changes: the policy's state, the sums that later releases hold again (private), and the account.

releases: after how many releases that is. learned: how many of them the policy's state has learned.
"""

decisions = Table(
    "decisions",
    metadata,
    _whole("bandit"),
    _whole("number"),
    _whole("generation"),
    _whole("action", optional=True),
    _text("arm", optional=True),
    _text("person", optional=True),
    _text("offered", optional=True),
    _text("status"),
    _whole("asked_at"),
    _whole("closed_at", optional=True),
    PrimaryKeyConstraint("bandit", "number", name="decisions_key"),
)
"""Every decision, also after it was closed. Its person and its contexts are erased then.

arm: the name of the action as JSON, where actions change. offered: what there was to choose from, as JSON.
Of an agent that moved in, decisions that were closed before have no action, and those that were told have no row.
"""

Index(
    "decisions_open",
    decisions.c.bandit,
    decisions.c.asked_at,
    sqlite_where=text("status = 'open'"),
    postgresql_where=text("status = 'open'"),
)

people = Table(
    "people",
    metadata,
    _whole("bandit"),
    _text("person"),
    _whole("rewards"),
    _text("places"),
    PrimaryKeyConstraint("bandit", "person", name="people_key"),
)
"""How many rewards of a person were taken, and in which open episodes the last ones are. person: a keyed hash."""

releases = Table(
    "releases",
    metadata,
    _whole("bandit"),
    _whole("number"),
    _text("row"),
    _whole("released_at"),
    PrimaryKeyConstraint("bandit", "number", name="releases_key"),
)
"""The ledger. row: its text, which the chain hashes."""

episodes = Table(
    "episodes",
    metadata,
    _whole("bandit"),
    _text("incarnation"),
    _text("episode"),
    _whole("release"),
    PrimaryKeyConstraint("bandit", "incarnation", "episode", name="episodes_key"),
)
"""The episodes that were released, by their labels. A second release of one is refused by the key."""

asks = Table(
    "asks",
    metadata,
    _whole("bandit"),
    _whole("api_key"),
    _text("idempotency_key"),
    _text("body"),
    _whole("first"),
    _whole("made"),
    _whole("asked_at"),
    PrimaryKeyConstraint("bandit", "api_key", "idempotency_key", name="asks_key"),
)
"""Asks that may come again, for a day.

body: a keyed hash of what was asked. first, made: the number of the first decision, and how many there are.
"""

Index("asks_old", asks.c.bandit, asks.c.asked_at)

keys = Table(
    "keys",
    metadata,
    Column("id", _ID, primary_key=True),
    _text("name"),
    _text("hash"),
    _text("role"),
    _whole("bandit", optional=True),
    _whole("created"),
    _whole("revoked", optional=True),
    UniqueConstraint("hash", name="keys_hash"),
)
"""API keys. hash: SHA-256. bandit: the one that it is for, or none for all of them."""
