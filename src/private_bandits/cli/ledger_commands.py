"""Commands about an agent's file: its statement, and its ledger."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from private_bandits.cli.commands import Json, app
from private_bandits.cli.flags import check_new_file
from private_bandits.loading import require
from private_bandits.trial.show import show_path
from private_bandits.trial.verify import verification_page, verify_path


@app.command()
def show(
    file: Annotated[Path, typer.Argument(help="An agent's file, or the public file beside it (FILE-public).")],
    html: Annotated[Path | None, typer.Option(help="Write the statement as a page to this new file.")] = None,
    delta: Annotated[
        float, typer.Option(help="The probability with which the intervals may fail, and the verdict.")
    ] = 0.05,
    as_json: Json = False,
) -> None:
    """Print the statement of a trial, also while its owner runs. The agent's own file is neither opened nor locked.

    It is made of the public file beside it, which the owner writes after each release, and otherwise at most once a
    second. The statement says when that was.
    """
    if html is not None:
        require("a page", "audit", "jinja2")
    check_new_file(html)
    statement = show_path(file, delta)
    if html is not None:
        html.write_text(statement.html(), encoding="utf-8")
    print(json.dumps(statement.to_dict()) if as_json else statement.text, end="\n" if as_json else "")


@app.command()
def verify(
    file: Annotated[Path, typer.Argument(help="An agent's file, or a ledger exported with ledger.to_jsonl.")],
    head: Annotated[str | None, typer.Option(help="A head that was noted earlier: the ledger must contain it.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write a page for a reviewer to this new file.")] = None,
    as_json: Json = False,
) -> None:
    """Check a ledger: its chain, exact costs, totals, people, episodes and noise. Nothing is changed.

    Exit code 1 if something is off.
    """
    if html is not None:
        require("a page", "audit", "jinja2")
    check_new_file(html)
    found = verify_path(file, head)
    if html is not None:
        html.write_text(verification_page(found, file.name), encoding="utf-8")
    if as_json:
        print(json.dumps(found.to_dict()))
    else:
        print(found.report())
    if not found.ok:
        raise typer.Exit(1)
