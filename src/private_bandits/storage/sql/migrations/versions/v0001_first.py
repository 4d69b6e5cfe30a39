"""The first tables."""

import secrets

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

_ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def _whole(name: str, nullable: bool = False) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger, nullable=nullable)


def _text(name: str, nullable: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=nullable)


def _of_bandit(table: str) -> sa.Column[int]:
    reference = sa.ForeignKey("bandits.id", name=f"{table}_bandit")
    return sa.Column("bandit", _ID, reference, primary_key=True, autoincrement=False)


def upgrade() -> None:
    """Make all tables."""
    _make_state()
    _make_rows()
    _make_keys()


def _make_state() -> None:
    identity = op.create_table("identity", _text("id"), sa.PrimaryKeyConstraint("id", name="identity_key"))
    op.bulk_insert(identity, [{"id": secrets.token_hex(8)}])
    op.create_table(
        "bandits",
        sa.Column("id", _ID, primary_key=True),
        *map(_text, ("name", "settings", "opening", "id_key")),
        _text("moved_in", nullable=True),
        _whole("created"),
        sa.UniqueConstraint("name", name="bandits_name"),
    )
    op.create_table(
        "hot",
        _of_bandit("hot"),
        _whole("version"),
        _text("status"),
        _text("failed", nullable=True),
        _text("incarnation"),
        *map(_whole, ("generation", "asked", "open")),
        *map(_text, ("waiting", "ended")),
        _text("arrivals", nullable=True),
        _text("sums"),
        _whole("releases"),
        _text("head"),
        _whole("now"),
    )
    op.create_table(
        "cold",
        _of_bandit("cold"),
        *map(_whole, ("releases", "learned")),
        *map(_text, ("policy", "kept", "account")),
    )


def _make_rows() -> None:
    op.create_table(
        "decisions",
        *map(_whole, ("bandit", "number", "generation")),
        _whole("action", nullable=True),
        *(_text(name, nullable=True) for name in ("arm", "person", "offered")),
        _text("status"),
        _whole("asked_at"),
        _whole("closed_at", nullable=True),
        sa.PrimaryKeyConstraint("bandit", "number", name="decisions_key"),
    )
    is_open = sa.text("status = 'open'")
    op.create_index(
        "decisions_open", "decisions", ["bandit", "asked_at"], sqlite_where=is_open, postgresql_where=is_open
    )
    op.create_table(
        "people",
        _whole("bandit"),
        _text("person"),
        _whole("rewards"),
        _text("places"),
        sa.PrimaryKeyConstraint("bandit", "person", name="people_key"),
    )
    op.create_table(
        "releases",
        *map(_whole, ("bandit", "number")),
        _text("row"),
        _whole("released_at"),
        sa.PrimaryKeyConstraint("bandit", "number", name="releases_key"),
    )
    op.create_table(
        "episodes",
        _whole("bandit"),
        *map(_text, ("incarnation", "episode")),
        _whole("release"),
        sa.PrimaryKeyConstraint("bandit", "incarnation", "episode", name="episodes_key"),
    )


def _make_keys() -> None:
    op.create_table(
        "asks",
        *map(_whole, ("bandit", "api_key")),
        *map(_text, ("idempotency_key", "body")),
        *map(_whole, ("first", "made", "asked_at")),
        sa.PrimaryKeyConstraint("bandit", "api_key", "idempotency_key", name="asks_key"),
    )
    op.create_index("asks_old", "asks", ["bandit", "asked_at"])
    op.create_table(
        "keys",
        sa.Column("id", _ID, primary_key=True),
        *map(_text, ("name", "hash", "role")),
        _whole("bandit", nullable=True),
        _whole("created"),
        _whole("revoked", nullable=True),
        sa.UniqueConstraint("hash", name="keys_hash"),
    )
