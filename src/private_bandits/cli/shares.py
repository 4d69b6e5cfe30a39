"""Prints what `simulate` finds on a labelled table: shares of right recommendations, and what the table is."""

from __future__ import annotations

from rich.table import Table

from private_bandits.labelled import Labelled
from private_bandits.simulation import Simulation
from private_bandits.simulation.in_words import percent, short_budget


def share_table(result: Simulation, world: Labelled) -> Table:
    """Return a row per policy, and two for what is right without learning anything from a person."""
    title = f"Right recommendations of {result.horizon:,}, {result.runs:,} runs"
    table = Table(title=title, box=None, padding=(0, 1), pad_edge=False, collapse_padding=True)
    table.add_column("policy", no_wrap=True)
    table.add_column("budget", overflow="fold")
    table.add_column("share right", justify="right", no_wrap=True)
    table.add_column("± error", justify="right", no_wrap=True)
    for row, policy in zip(result.summary(), result.policies.values(), strict=True):
        table.add_row(
            row["policy"],
            short_budget(policy.budget),
            percent(row["share_right"]),
            percent(row["share_right_stderr"]),
        )
    table.add_row("best fixed arm", "-", percent(world.best_fixed_share), "-")
    table.add_row("guessing", "-", percent(world.guessing_share), "-")
    return table


def table_in_words(world: Labelled, horizon: int) -> str:
    """Return the sizes of a table, how often its rows come, and what was left out of it."""
    columns = len(world.features.context)
    sizes = f"{world.rows:,} rows, {world.arms} arms (labels), {columns} columns, d = {world.dimension}."
    often = (
        f"Each row comes {horizon / world.rows:.3g} times on average: set --horizon to the people that you will have."
    )
    return " ".join([sizes, often, *([f"Left out: {world.left_out}."] if world.left_out else [])])
