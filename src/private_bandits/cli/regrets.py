"""Prints the regrets of `simulate`: a table that fits 80 columns, and the reference beside each regret."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.table import Table

from private_bandits.simulation import Simulation
from private_bandits.simulation.in_words import short_budget, short_number
from private_bandits.simulation.verdicts import NOBODY

NUMBERS = {"mean": "regret_mean", "± error": "regret_stderr", "95%": "regret_p95", "99%": "regret_p99"}
NUMBERS |= {"largest": "regret_max"}


def with_references(data: dict[str, Any], references: Sequence[float | None]) -> dict[str, Any]:
    """Return the results with each row's reference, and its mean regret as a multiple of it; None without one."""
    for row, reference in zip(data["results"], references, strict=True):
        row["reference"] = reference
        row["times_reference"] = None if reference is None else row["regret_mean"] / reference
    return data


def regret_table(result: Simulation, references: Sequence[float | None]) -> Table:
    """Return a row per policy. Long budgets are folded, and no name and no number is cut."""
    known = any(reference is not None for reference in references)
    title = f"Regret after {result.horizon:,} steps, {result.runs:,} runs"
    if not result.arrivals.prompt:
        title += f"; {result.arrivals}"
    table = Table(title=title, box=None, padding=(0, 1), pad_edge=False, collapse_padding=True)
    table.add_column("policy", no_wrap=True)
    table.add_column("variant", no_wrap=True)
    table.add_column("budget", overflow="fold")
    for column in NUMBERS:
        table.add_column(column, justify="right", no_wrap=True)
    if known:
        table.add_column("times ref.", justify="right")
        table.caption = "times ref.: mean regret over the asymptotic reference (private-bandits bounds)"
    for row, policy, reference in zip(result.summary(), result.policies.values(), references, strict=True):
        numbers = [short_number(row[name]) for name in NUMBERS.values()]
        times = [short_number(None if reference is None else row["regret_mean"] / reference)] if known else []
        table.add_row(row["policy"], row["variant"] or "-", short_budget(policy.budget), *numbers, *times)
    return table


TIMES = {"mean": "decisions_mean", "± error": "decisions_stderr", "median": "decisions_median", "95%": "decisions_p95"}


def verdict_table(result: Simulation) -> Table:
    """Return a row per policy: how often a verdict fell by the horizon, how often it was wrong, and when it fell."""
    delta = next(iter(result.verdicts.values())).delta
    title = f"Verdicts with delta {delta:g} by decision {result.horizon:,}, {result.runs:,} runs"
    table = Table(title=title, box=None, padding=(0, 1), pad_edge=False, collapse_padding=True)
    table.add_column("policy", no_wrap=True)
    table.add_column("budget", overflow="fold")
    for column in ("fell", "wrong", *TIMES):
        table.add_column(column, justify="right", no_wrap=True)
    table.caption = "fell, wrong: shares of all runs; then decisions until the verdict, where it fell"
    if any((verdicts.winners == NOBODY).any() for verdicts in result.verdicts.values()):
        table.caption += ". It did not fall in all runs: these numbers are of the faster ones. Raise --horizon"
    for row, policy in zip(result.summary(), result.policies.values(), strict=True):
        shares = [f"{100 * row[name]:.4g}%" for name in ("verdict_share", "verdict_wrong")]
        times = [short_number(row[name]) for name in TIMES.values()]
        table.add_row(row["policy"], short_budget(policy.budget), *shares, *times)
    return table
