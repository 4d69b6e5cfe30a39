"""Numbers and results of simulations as people read them."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from private_bandits.budget import Budget

if TYPE_CHECKING:
    from private_bandits.simulation.run import Simulation


def short_budget(budget: Budget) -> str:
    """Return a budget's numbers with their names, and four digits of each.

    >>> from private_bandits import ApproxDP, NoPrivacy
    >>> short_budget(ApproxDP(2.14193, 1e-6)), short_budget(NoPrivacy())
    ('epsilon 2.142, delta 1e-06', 'no privacy')
    """
    return ", ".join(f"{name} {number:.4g}" for name, number in asdict(budget).items()) or "no privacy"


def short_number(value: float | None) -> str:
    """Return four digits, or all before the point up to a million.

    >>> short_number(12345.6), short_number(0.0), short_number(1234567.0), short_number(None)
    ('12,346', '0', '1.235e+06', '-')
    """
    if value is None:
        return "-"
    return f"{value:,.0f}" if 1000 <= value < 1e6 else f"{value:.4g}"


def percent(share: float | None) -> str:
    """Return a share in percent.

    >>> percent(0.91234), percent(None)
    ('91.2%', '-')
    """
    return "-" if share is None else f"{share:.1%}"


def counted(number: int, noun: str) -> str:
    """Return a number with its noun.

    >>> counted(1, "run"), counted(1000, "step")
    ('1 run', '1,000 steps')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def result_of(row: dict[str, Any]) -> str:
    """Return the mean regret of a row of the summary, or its share of right recommendations, with its error."""
    form, name = (percent, "share_right") if "share_right" in row else (short_number, "regret_mean")
    error = row[f"{name.removesuffix('_mean')}_stderr"]
    return form(row[name]) + ("" if error is None else f" ± {form(error)}")


def measure_of(result: Simulation) -> str:
    """Return what the result is about."""
    return "right recommendations" if result.labelled else "regret"


def sentence(words: str) -> str:
    """Return words with a capital first letter and a full stop.

    >>> sentence("no privacy holds")
    'No privacy holds.'
    """
    return f"{words[:1].upper()}{words[1:]}."


def in_a_line(result: Simulation) -> str:
    """Return the result in one line."""
    found = ", ".join(f"{row['name']} {result_of(row)}" for row in result.summary())
    scale = f"{counted(result.horizon, 'step')}, {counted(result.runs, 'run')}"
    return f"Simulation({measure_of(result)}: {found}; {scale})"


def in_lines(result: Simulation) -> str:
    """Return the result with a line for each policy, and what does not hold for it."""
    rows = result.summary()
    width = max(len(str(row["name"])) for row in rows)
    return "\n".join(
        [
            f"{measure_of(result).capitalize()} after {counted(result.horizon, 'step')}, {_averaged(result)}:",
            *(f"  {row['name']!s:<{width}}  {result_of(row)}" for row in rows),
            sentence(result.note),
        ]
    )


def _averaged(result: Simulation) -> str:
    return "one run" if result.runs == 1 else f"mean of {result.runs:,} runs ± its standard error"
