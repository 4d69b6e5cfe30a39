"""What was tried: the arms, how they are chosen, the outcomes, and the plan."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

from private_bandits.plain_data import printable
from private_bandits.statement.chapter import Chapter
from private_bandits.statement.facts import Facts
from private_bandits.statement.numbers import Figures, chance, listed, named, several, whole

MOST_LISTED = 12
"""Arms that are named in a sentence, at most. All are named with the results."""
MOST_OF_PLAN = 60
"""Lines of a plan that are shown, at most."""


def tried(facts: Facts) -> Chapter:
    """Say what was compared, by which rules."""
    settings = facts.settings
    words = [_arms(facts), _coin(facts) + facts.policy.in_words, _outcomes(facts)]
    limits = [_people(facts), _time(settings.give_up_after)]
    words.append(" ".join(filter(None, limits)))
    after, rows = [], plan_lines(facts.plan)
    if rows:
        after.append("The plan of the trial, which was fixed before the first outcome:")
    elif facts.plan is None:
        after.append("No plan was put on record with the program.")
    return Chapter("What was tried", list(filter(None, words)), after=after, rows=rows)


def _arms(facts: Facts) -> str:
    names = facts.policy.arm_names
    if not names:
        dimension = getattr(facts.policy, "dimension", None)
        told = "" if dimension is None else f" Each option is described by {several(dimension, 'number')}."
        secret = " The descriptions are confidential, as outcomes are." if facts.policy.private_contexts else ""
        return f"There are no fixed arms: what can be given may change from person to person.{told}{secret}"
    meaning = "An arm is one of the things that a participant can be given."
    if len(names) == 1:
        return f"There is one arm, {named(names[0])}. {meaning}"
    if len(names) <= MOST_LISTED:
        return f"{whole(len(names))} arms are compared: {listed(names)}. {meaning}"
    return f"{whole(len(names))} arms are compared. They are listed with the results. {meaning}"


def _coin(facts: Facts) -> str:
    settings = facts.settings
    if settings.control is None or settings.control_share is None:
        return "How an arm is chosen. " if facts.policy.arm_names else "How an option is chosen. "
    kind = "a coin, which is foreseeable here," if settings.seed is not None else "a coin that nobody can foresee"
    return (
        f"How an arm is chosen. First {kind} is tossed. With a probability of {chance(settings.control_share)} the "
        f"participant is given the control arm, {named(str(settings.control))}. Otherwise it is as follows. "
    )


def _outcomes(facts: Facts) -> str:
    bounds = facts.settings.reward_range
    figures = Figures(bounds)
    return (
        f"Each outcome is a number from {figures.plain(bounds.low)} to {figures.plain(bounds.high)}; more is better. "
        "An outcome outside of this range counts as its nearest end. The range was fixed before the first outcome."
    )


def _people(facts: Facts) -> str:
    limit = facts.settings.max_rewards_per_person
    if limit is None:
        return ""
    more = ""
    if facts.settings.one_reward_per_episode:
        more = " While an outcome of a person waits for its release, no second one is taken beside it."
    return f"At most {several(limit, 'outcome')} of one person {'is' if limit == 1 else 'are'} taken.{more}"


def _time(give_up_after: int | timedelta | None) -> str:
    if give_up_after is None:
        return ""
    if isinstance(give_up_after, timedelta):
        return f"An outcome that has not come within {_span(give_up_after)} is given up."
    return f"An outcome that has not come when {several(give_up_after, 'later decision')} were made is given up."


def _span(time: timedelta) -> str:
    if not time % timedelta(days=1):
        return several(time.days, "day")
    return f"{time} (days, hours:minutes:seconds)" if time.days else f"{time} (hours:minutes:seconds)"


def plan_lines(plan: Any) -> list[tuple[str, str]]:
    """Return a plan, which may be any plain data, as names and values."""
    if plan is None:
        return []
    found = _flat("", plan)
    if len(found) > MOST_OF_PLAN:
        left = len(found) - MOST_OF_PLAN
        found = [*found[:MOST_OF_PLAN], ("...", f"{whole(left)} more lines: the ledger begins with all of them")]
    return [(printable(name), printable(value)) for name, value in found]


def _flat(name: str, value: Any) -> list[tuple[str, str]]:
    """Return a line for each plain value, and for each list of them."""
    if isinstance(value, dict) and value:
        inner = list(value.items())
    elif isinstance(value, list) and any(isinstance(part, (dict, list)) for part in value):
        inner = [(str(number), part) for number, part in enumerate(value, 1)]
    else:
        return [(name or "plan", _plain(value))]
    return [line for key, part in inner for line in _flat(f"{name}, {key}" if name else key, part)]


def _plain(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_plain, value))
    return value if isinstance(value, str) else json.dumps(value)
