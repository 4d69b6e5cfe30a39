"""Commands about the database of the service: its tables, agents that move in, API keys."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from private_bandits.cli.commands import Json, app
from private_bandits.loading import require

if TYPE_CHECKING:
    from private_bandits.service.creating import Database
    from private_bandits.service.keys import ApiKey

tables = typer.Typer(help="The database of the service: its tables, and agents that move in.", no_args_is_help=True)
keys = typer.Typer(help="API keys of the service. Each has one role, and is shown once.", no_args_is_help=True)
app.add_typer(tables, name="db")
app.add_typer(keys, name="keys")

Address = Annotated[str, typer.Option(help="A SQLite file, or postgresql://user@host/name.")]
Bandit = Annotated[str | None, typer.Option(help="The bandit that it is for.", show_default="all bandits")]


@contextmanager
def opened(what: str, address: str) -> Iterator[Database]:
    """Open a database. what: needs it, for the error where the extra is not installed."""
    require(what, "service")
    from private_bandits.service.creating import open_database

    database = open_database(address)
    try:
        yield database
    finally:
        database.close()


@tables.command()
def upgrade(database: Address = "bandits.db", as_json: Json = False) -> None:
    """Bring the tables of a database to this version. A database that is not there yet is made."""
    with opened("a database", database) as found:
        before, after = found.upgrade()
    if as_json:
        print(json.dumps({"before": before, "after": after}))
    elif before == after:
        print(f"The tables are of revision {after} already.")
    else:
        print(f"The tables are of revision {after} now.")


@tables.command(name="import")
def import_(
    file: Annotated[Path, typer.Argument(help="An agent's file, which no agent has open.")],
    name: Annotated[
        str | None, typer.Option(help="The bandit's name.", show_default="the file's, without its suffix")
    ] = None,
    database: Address = "bandits.db",
    as_json: Json = False,
) -> None:
    """Move an agent from its file into a database. The file opens no more. Ids of its decisions stay good."""
    with opened("a database", database) as found:
        from private_bandits.service.moving_in import move_in

        moved = move_in(found, file, file.stem if name is None else name)
    if as_json:
        print(json.dumps(asdict(moved)))
    else:
        print(
            f"{file} is the bandit {moved.bandit} now: {moved.counts.asked:,} decisions, {moved.counts.open:,} of them "
            f"open, {moved.releases:,} releases, head {moved.head}.\nThe file opens no more. It still holds what is "
            "private: delete it once the database has a backup."
        )


@keys.command()
def create(
    name: Annotated[str, typer.Argument(help="Whose key it is.")],
    role: Annotated[str, typer.Option(help="ask, tell, observe, operate, audit or admin.")],
    bandit: Bandit = None,
    database: Address = "bandits.db",
    as_json: Json = False,
) -> None:
    """Make a key, and print it. It is not stored and cannot be shown again."""
    with opened("keys", database) as found:
        from private_bandits.service.keys import create_key

        found.check()
        made = create_key(found, name, role, bandit)
    print(json.dumps(_plain(made.key) | {"key": made.secret}) if as_json else made.secret)


@keys.command(name="list")
def list_(database: Address = "bandits.db", as_json: Json = False) -> None:
    """Print all keys by their numbers, the revoked ones too. What was shown once is not among it."""
    with opened("keys", database) as found:
        from private_bandits.service.keys import list_keys

        found.check()
        known = list_keys(found)
    if as_json:
        print(json.dumps({"keys": [_plain(key) for key in known]}))
        return
    table = Table(box=None, padding=(0, 1), pad_edge=False)
    for column in ("number", "name", "role", "bandit", "created", "revoked"):
        table.add_column(column, overflow="fold")
    for key in known:
        row = _plain(key)
        table.add_row(str(key.number), key.name, key.role, key.bandit or "all", row["created"], row["revoked"] or "-")
    Console().print(table)


@keys.command()
def revoke(
    number: Annotated[int, typer.Argument(help="The number of the key, from `private-bandits keys list`.")],
    database: Address = "bandits.db",
    as_json: Json = False,
) -> None:
    """Revoke a key, by its number. Whoever comes with it is refused from now on."""
    with opened("keys", database) as found:
        from private_bandits.service.keys import revoke_key

        found.check()
        key = revoke_key(found, number)
    print(json.dumps(_plain(key)) if as_json else f"The key {key.number}, {key.name}, is revoked.")


def _plain(key: ApiKey) -> dict[str, Any]:
    """Return a key as plain data, with times that people can read."""
    times = {"created": _time(key.created), "revoked": None if key.revoked is None else _time(key.revoked)}
    return asdict(key) | times


def _time(microseconds: int) -> str:
    return datetime.fromtimestamp(microseconds // 10**6, UTC).isoformat()
