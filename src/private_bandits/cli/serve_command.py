"""The command that serves bandits over HTTP."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Annotated

import typer

from private_bandits.cli.commands import Json, app
from private_bandits.errors import DatabaseOutdated
from private_bandits.loading import require

if TYPE_CHECKING:
    from private_bandits.service.serving import Ready


@app.command()
def serve(
    database: Annotated[
        str | None,
        typer.Option(
            help="A path, or the address of a PostgreSQL server. An address with a password is better in "
            "PRIVATE_BANDITS_DATABASE, or in a file that PRIVATE_BANDITS_DATABASE_FILE names.",
            show_default="bandits.db",
        ),
    ] = None,
    host: Annotated[str | None, typer.Option(help="To listen on.", show_default="127.0.0.1")] = None,
    port: Annotated[int | None, typer.Option(help="0: any that is free.", show_default="8000")] = None,
    workers: Annotated[
        int | None, typer.Option(help="Processes. More than one needs PostgreSQL.", show_default="1")
    ] = None,
    keys_file: Annotated[
        str | None, typer.Option(help="Where the first keys go.", show_default="beside the database")
    ] = None,
    allow_no_privacy: Annotated[
        bool | None,
        typer.Option("--allow-no-privacy", help="Let bandits run that promise nothing: with a seed, or without noise."),
    ] = None,
    rate: Annotated[
        float | None, typer.Option(help="Calls per second of one key, at each worker.", show_default="any number")
    ] = None,
    max_body: Annotated[int | None, typer.Option(help="Bytes of a body at most.", show_default="1000000")] = None,
    max_waiting: Annotated[
        int | None, typer.Option(help="Operations that may wait for one bandit.", show_default="10000")
    ] = None,
    drain_seconds: Annotated[
        int | None, typer.Option(help="How long calls may take once told to stop.", show_default="30")
    ] = None,
    log_level: Annotated[str | None, typer.Option(help="debug, info, warning or error.", show_default="info")] = None,
    as_json: Json = False,
) -> None:
    """Serve bandits over HTTP. Every flag is also a variable: --max-body is PRIVATE_BANDITS_MAX_BODY.

    A new SQLite file begins with keys for an operator and an administrator, in a file that only you may read. SIGTERM
    drains: calls that came are answered, then the process ends.
    """
    given = {name: value for name, value in locals().items() if name != "as_json"}
    require("serve", "service")
    from private_bandits.service.serving import serve as run
    from private_bandits.service.settings import settings_from

    settings = settings_from(given, os.environ)

    def announce(ready: Ready) -> None:
        keys = None if ready.keys_file is None else str(ready.keys_file)
        if as_json:
            print(json.dumps({"address": ready.address, "keys_file": keys}), flush=True)
            return
        print(f"Serving at {ready.address}", flush=True)
        if keys is not None:
            print(f"The keys of the operator and the administrator are in {keys}", flush=True)

    try:
        run(settings, announce)
    except DatabaseOutdated as error:
        raise DatabaseOutdated(f"{error}: private-bandits db upgrade") from None
