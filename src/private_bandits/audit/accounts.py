"""The ledger: the total, recomputed from the rows alone, by formulas of its own."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable
from fractions import Fraction

from private_bandits.audit.evidence import ROUNDING, Claim, own_claim
from private_bandits.audit.inside import Flaw
from private_bandits.ledger import Ledger, Release

NODE = re.compile(r"(.*)/(\d+)-(\d+)")


def total_of(rows: Iterable[Release], claim: Claim) -> float:
    """The largest, over episodes, of the summed cost of the rows that cover it, in the units of the claim."""
    spent: defaultdict[str, Fraction] = defaultdict(Fraction)
    for row in rows:
        if row.noise == "none" or not row.private:
            return math.inf
        for label, multiplier in row.episodes.items():
            moved = abs(Fraction(multiplier)) * row.sensitivity
            cost = claim.cost(row.noise, row.scale, moved, moved**2)
            for episode in _episodes(label):
                spent[episode] += cost
    return float(max(spent.values(), default=Fraction(0)))


def _episodes(label: str) -> list[str]:
    """One by one, those of a node of a tree: "0/3-4" is "0/3" and "0/4"."""
    node = NODE.fullmatch(label)
    if node is None:
        return [label]
    key, first, last = node.groups()
    return [f"{key}/{i}" for i in range(int(first), int(last) + 1)]


def examine(ledger: Ledger, claim: Claim) -> tuple[float, list[Flaw]]:
    """The recomputed total, and what is wrong with the ledger."""
    flaws = []
    for row in ledger:
        if row.private and row.noise != "none":
            cost = float(own_claim(row.noise).cost(row.noise, row.scale, row.sensitivity, row.sensitivity**2))
            if row.cost < cost * (1 - ROUNDING):
                text = f"row {row.number} says {row.cost:.6g}; its scale and sensitivity make it {cost:.6g}"
                flaws.append(Flaw("a row of the ledger understates its cost", text))
                break
    numbers = [row.number for row in ledger]
    if numbers != list(range(1, len(numbers) + 1)):
        flaws.append(Flaw("rows of the ledger are missing", f"rows {numbers[:20]}"))
    own = total_of(ledger, own_claim(ledger[0].noise)) if len(ledger) else 0.0
    if ledger.total < own * (1 - ROUNDING):
        flaws.append(Flaw("the ledger's total is too small", f"it says {ledger.total:.6g}, its rows say {own:.6g}"))
    total = total_of(ledger, claim)
    if total > claim.most * (1 + ROUNDING):
        flaws.append(Flaw("more was spent than promised", f"the rows say {total:.6g}, promised were {claim.most:.6g}"))
    return total, flaws
