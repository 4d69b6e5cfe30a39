"""What is found about a claim."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from private_bandits.experiments.analysis.estimates import RegretEstimate
from private_bandits.experiments.analysis.regrets import Regrets
from private_bandits.experiments.run.experiment import Entry
from private_bandits.plain_data import json_numbers

Row = dict[str, float | str | None]
"""Of the table of numbers behind a verdict, by heading; None where there is no number."""
LEVEL = 0.05
"""Of every test."""
FEW = 5
"""Different regrets at the end, below which words of caution are added."""
ANSWERS = {True: "holds", False: "does not hold", None: "cannot be told from these runs"}


@dataclass(frozen=True)
class Verdict:
    """What was claimed of a policy, whether it holds in these runs, why, and the numbers behind it."""

    experiment: str
    claim: str
    statement: str
    policy: str
    holds: bool | None
    brief: str
    words: str
    test: str
    numbers: tuple[Row, ...]

    @property
    def answer(self) -> str:
        """In words."""
        return ANSWERS[self.holds]

    def to_dict(self) -> dict[str, Any]:
        """In types that JSON knows; infinity is the text "inf"."""
        rows = [json_numbers(row) for row in self.numbers]
        return asdict(self) | {"answer": self.answer, "numbers": rows}


def known(value: Any) -> float | None:
    """A number, or None where there is none, which JSON knows."""
    return float(value) if np.isfinite(value) else None


def ends_of(estimate: RegretEstimate) -> Row:
    """Its error and its interval."""
    low, high = estimate.interval()
    return {"standard error": known(estimate.error), "low (95 %)": known(low), "high (95 %)": known(high)}


def caution(regrets: Regrets, entries: Sequence[Entry]) -> str:
    """What to keep in mind of t tests where regrets take few values: phases then end in few ways, or in one."""
    if regrets.runs < 2:
        return " With one run there is no telling what is chance."
    values = regrets.values_at_the_end(entries)
    if values == 1:
        return (
            " All runs of some entry end with the same regret, so that chance does not show in them: they count as "
            "tosses of a coin that all fell alike."
        )
    if values < FEW:
        return f" The runs of some entry end with one of {values} regrets only, so that t tests are approximations."
    return ""
