"""The promise of an agent, as numbers and in words that a board understands."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import Any, Literal

from private_bandits.budget import Budget, PureDP, epsilon_of
from private_bandits.plain_data import json_numbers

Unit = Literal["reward", "person"]


@dataclass(frozen=True)
class Guarantee:
    """The promise about one unit: a reward, or everything that one person ever told.

    promised, spent: rho of zCDP (epsilon itself for pure DP); spent never exceeds promised, and is an upper bound where
    the unit is a person (`Ledger.person_cost` has the exact figure). Infinite where nothing is promised: without
    privacy, or with a seed, which makes the noise foreseeable.
    epsilon, delta: the promise as (epsilon, delta)-differential privacy (delta is 0 for pure DP).
    per_reward: the promise for one reward, as rho or epsilon.
    per_person: the same for all rewards of one person; None where no limit on them is kept.
    guessed_right: how often the best guess about one unit is right, of two possibilities that are equally likely
        beforehand, for an attacker who knows everything else and sees all that is ever published. A coin has 0.5.
    """

    unit: Unit
    budget: Budget
    private: bool
    promised: float
    spent: float
    epsilon: float
    delta: float
    per_reward: float
    per_person: float | None
    guessed_right: float
    words: str

    def __str__(self) -> str:
        return self.words

    def to_dict(self) -> dict[str, Any]:
        """Plain data; infinity as the text "inf"."""
        data = asdict(self) | {"budget": str(self.budget)}
        return json_numbers(data)


def guessed_right(budget: Budget, level: float) -> float:
    """Return how often the best guess between two equally likely values is right, at most.

    Gaussian noise: Phi(sqrt(rho/2)), by the test of Neyman and Pearson between two normal distributions
    (docs/choosing.md has the proof, and what discrete noise changes). Pure DP: 1/(1 + exp(-epsilon)).

    >>> from private_bandits.budget import zCDP
    >>> round(guessed_right(zCDP(0.1), 0.1), 3)
    0.588
    """
    if isinstance(budget, PureDP):
        return 1 / (1 + math.exp(-min(level, 700.0)))
    return NormalDist().cdf(math.sqrt(min(level, 1e6) / 2))


def guarantee_for(
    budget: Budget,
    unit: Unit,
    limit: int | None,
    total: float,
    delta: float,
    *,
    private: bool,
    seeded: bool,
    worth: Fraction | None = None,
    per_reward: float | None = None,
    joint: bool = False,
) -> Guarantee:
    """Return what `budget` promises to one unit.

    Args:
        budget: Of the unit.
        unit: Of the promise.
        limit: The rewards that one person may tell; None: no limit.
        total: What the ledger has spent on the reward that it cost most.
        delta: Of the (epsilon, delta) that the promise is converted to.
        private: Whether there is noise that nobody can foresee.
        seeded: Whether the noise comes from a seed.
        worth: How many times the cost of one reward all rewards of a person have, at most. None: the square of limit.
        per_reward: The promise for one reward. None: it follows from the budget and the limit.
        joint: Whether contexts are protected as well, from everyone else (joint DP).
    """
    if not private:
        why = "the noise comes from a seed, and whoever knows the seed can take it away"
        words = f"No privacy is promised: {why if seeded else 'this agent adds no noise'}."
        of_person = None if limit is None else math.inf
        return Guarantee(unit, budget, False, math.inf, math.inf, math.inf, delta, math.inf, of_person, 1.0, words)
    promised = budget.level
    epsilon, delta = (promised, 0.0) if isinstance(budget, PureDP) else (epsilon_of(promised, delta), delta)
    if unit == "person" and limit is not None:
        one = budget.per_reward(limit, worth).level if per_reward is None else per_reward
        spent, of_person = min(promised, budget.group_cost(total, limit)), promised
    else:
        one, spent = promised, total
        of_person = None if limit is None else budget.group_cost(promised, limit, worth)
    odds = guessed_right(budget, promised)
    words = _in_words(budget, unit, limit, joint, (one, of_person), epsilon, delta)
    return Guarantee(unit, budget, True, promised, spent, epsilon, delta, one, of_person, odds, words)


def _in_words(
    budget: Budget,
    unit: Unit,
    limit: int | None,
    joint: bool,
    levels: tuple[float, float | None],
    epsilon: float,
    delta: float,
) -> str:
    """Say the odds first, then how long they hold, then the figures for those who know them."""
    one, of_person = levels
    main = one if unit == "reward" or of_person is None else of_person
    secret = _protected(unit, limit, joint)
    shown = "shown to anyone else" if joint else "published"
    symbol, notion = ("epsilon", "pure DP") if isinstance(budget, PureDP) else ("rho", "zCDP")
    kept = f"joint {symbol}-{notion}" if joint else f"{symbol}-Interactive {notion}"
    addend = f", plus {delta:g}" if delta else ""
    words = [
        f"An attacker who knows everything else, sees all that is ever {shown}, and has to guess {secret} between two "
        f"equally likely possibilities is right at most {percent(guessed_right(budget, main))} of the time; "
        "a coin is right 50%.",
        "The promise is kept for however long the agent runs.",
    ]
    if of_person is not None:
        each = f"one reward {percent(guessed_right(budget, one))} ({symbol} = {one:.6g})"
        everyone = f"all rewards of one person (at most {limit}) {percent(guessed_right(budget, of_person))}"
        words.append(f"Side by side: {each}, {everyone} ({symbol} = {of_person:.6g}).")
    words.append(
        f"In figures: {budget} for {secret}, kept as {kept} with {symbol} = {main:.6g}. The probability of anything "
        f"that could be {shown} changes by at most a factor of {_factor(epsilon)}{addend}."
    )
    return " ".join(words)


def _protected(unit: Unit, limit: int | None, joint: bool) -> str:
    if joint:
        many = f"all contexts and rewards of one person (at most {limit})"
        return "one context and its reward" if unit == "reward" else many
    return "the value of " + ("one reward" if unit == "reward" else f"all rewards of one person (at most {limit})")


def percent(share: float) -> str:
    """Return a share in per cent, rounded up: to a whole number, or closer to 100% to as many digits as it takes."""
    for digits in range(6):
        shown = math.ceil(share * 10 ** (2 + digits) - 1e-9) / 10**digits
        if shown < 100:
            return f"{shown:.{digits}f}%"
    return "100%"


def _factor(epsilon: float) -> str:
    """exp(epsilon), rounded up to four figures."""
    if epsilon > 20:
        return f"exp({math.ceil(epsilon * 100) / 100:.10g})"
    unit = 10.0 ** (math.floor(epsilon / math.log(10)) - 3)
    return f"{math.ceil(math.exp(epsilon) / unit) * unit:.6g}"
