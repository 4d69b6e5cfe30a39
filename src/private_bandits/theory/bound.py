"""One bound, with where it comes from and what it needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from private_bandits.plain_data import json_numbers

PAPER = "Concentrated Differential Privacy for Bandits"
"""Whose bounds these are."""
Kind = Literal["upper", "lower", "order", "reference"]
Assumptions = tuple[tuple[str, bool], ...]


@dataclass(frozen=True)
class Bound:
    """A bound on regret.

    name: whose regret. value: of the formula at the given numbers; infinite where it promises nothing. private: what
    of the value is due to privacy. of: the regret that is meant: expected, with some probability, or of the worst
    instance. kind: "upper", "lower", "order": the formula of an O(.) with every constant set to one, which bounds
    nothing by itself, or "reference": what regret is compared with, no bound either. assumptions: what it needs, and
    whether the given numbers have it.

    >>> bound = Bound("UCB", 12.0, 2.0, "8 log T", "a book", "upper", "expected regret", (("T >= 2", True),))
    >>> bound.holds, bound.to_dict()["assumptions"]
    (True, [{'text': 'T >= 2', 'met': True}])
    """

    name: str
    value: float
    private: float
    formula: str
    source: str
    kind: Kind
    of: str
    assumptions: Assumptions = ()

    @property
    def holds(self) -> bool:
        """Whether everything that it needs is met."""
        return all(met for _, met in self.assumptions)

    def to_dict(self) -> dict[str, Any]:
        """Plain data; infinity as the text "inf"."""
        data: dict[str, Any] = {name: getattr(self, name) for name in self.__dataclass_fields__}
        data["assumptions"] = [{"text": text, "met": met} for text, met in self.assumptions]
        data["holds"] = self.holds
        return json_numbers(data)


EXPECTED = "expected regret"
WORST = "largest expected regret over instances"


def with_probability(failure: float) -> str:
    """What a bound that may fail is of."""
    return f"regret, with probability at least {max(0.0, 1 - failure):.12g}"
