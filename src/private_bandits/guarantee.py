"""What an agent promises and has spent, as numbers and in words."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal

from private_bandits.budget import Budget, PureDP, epsilon_of
from private_bandits.plain_data import json_numbers

Unit = Literal["reward", "person"]


@dataclass(frozen=True)
class Guarantee:
    """The promise about one unit: a reward, or everything that one person ever told.

    promised, spent: rho of zCDP (epsilon itself for pure DP); spent never exceeds promised. Infinite where
    nothing is promised: without privacy, or with a seed, which makes the noise foreseeable.
    epsilon, delta: the promise as (epsilon, delta)-differential privacy (delta is 0 for pure DP).
    per_person: rho (or epsilon) for all rewards of one person; None where no limit on them is kept.
    """

    unit: Unit
    budget: Budget
    private: bool
    promised: float
    spent: float
    epsilon: float
    delta: float
    per_person: float | None
    words: str

    def __str__(self) -> str:
        return self.words

    def to_dict(self) -> dict[str, Any]:
        """Plain data; infinity as the text "inf"."""
        data = asdict(self) | {"budget": str(self.budget)}
        return json_numbers(data)


def guarantee_for(
    budget: Budget,
    unit: Unit,
    limit: int | None,
    total: float,
    delta: float,
    private: bool,
    seeded: bool,
    joint: bool = False,
) -> Guarantee:
    """What `budget` promises to one unit, when the ledger has spent `total` on the reward it cost most.

    limit: the rewards that one person may tell. m rewards of one person cost rho m^2 (pure DP: m epsilon),
    because they may all be in one episode. joint: contexts are protected as well, from everyone else (joint DP).
    """
    if not private:
        why = "the noise comes from a seed, and whoever knows the seed can take it away"
        words = f"No privacy is promised: {why if seeded else 'this agent adds no noise'}."
        per_person = None if limit is None else math.inf
        return Guarantee(unit, budget, False, math.inf, math.inf, math.inf, delta, per_person, words)
    pure = isinstance(budget, PureDP)
    rewards = limit if unit == "person" and limit else 1
    promised, spent = budget.level, budget.group_cost(total, rewards)
    epsilon, delta = (promised, 0.0) if pure else (epsilon_of(promised, delta), delta)
    per_person = None
    if limit is not None:
        per_person = promised if unit == "person" else budget.group_cost(promised, limit)
    words = _in_words(budget, _protected(unit, limit, joint), joint, promised, spent, epsilon, delta)
    if per_person is not None and unit == "reward":
        words += f" For all rewards of one person (at most {limit}) {_symbol(budget)} is {per_person:.6g}."
    return Guarantee(unit, budget, True, promised, spent, epsilon, delta, per_person, words)


def _symbol(budget: Budget) -> str:
    return "epsilon" if isinstance(budget, PureDP) else "rho"


def _protected(unit: Unit, limit: int | None, joint: bool) -> str:
    if joint:
        many = f"all contexts and rewards of one person (at most {limit})"
        return "one context and its reward" if unit == "reward" else many
    return "the value of " + ("one reward" if unit == "reward" else f"all rewards of one person (at most {limit})")


def _in_words(
    budget: Budget, protected: str, joint: bool, promised: float, spent: float, epsilon: float, delta: float
) -> str:
    symbol = _symbol(budget)
    notion = "pure DP" if symbol == "epsilon" else "zCDP"
    kept = f"joint {symbol}-{notion}" if joint else f"{symbol}-Interactive {notion}"
    whatever = "they were" if joint else "that value was"
    shown = "shown to anyone else" if joint else "that could be published"
    addend = f", plus {delta:g}" if delta else ""
    return (
        f"{budget} for {protected}, kept as {kept} with {symbol} = {promised:.6g}. "
        f"Whatever {whatever}, the probability of anything {shown} changes by at most a factor "
        f"of {_factor(epsilon)}{addend}. Spent so far: {spent:.6g} of {promised:.6g}; however long "
        f"the agent runs, it never grows beyond."
    )


def _factor(epsilon: float) -> str:
    """exp(epsilon), rounded up to four figures."""
    if epsilon > 20:
        return f"exp({math.ceil(epsilon * 100) / 100:.10g})"
    unit = 10.0 ** (math.floor(epsilon / math.log(10)) - 3)
    return f"{math.ceil(math.exp(epsilon) / unit) * unit:.6g}"
