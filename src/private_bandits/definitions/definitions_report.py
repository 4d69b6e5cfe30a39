"""Results for people and for machines."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from rich.markup import escape
from rich.table import Table

from private_bandits.definitions.analysis import Analysis, Result
from private_bandits.definitions.policy import SmallPolicy
from private_bandits.definitions.worst import Adversary, Move, Seen, WorstCase
from private_bandits.plain_data import json_number

MOST_LINES = 12
"""Longer lists of moves or sequences are cut, with a line that says so."""


def as_table(analysis: Analysis) -> Table:
    """One line for each model."""
    name = escape(analysis.policy.name or "policy")
    table = Table(title=f"{name}: {len(analysis.policy.arms)} arms, {analysis.policy.horizon} steps")
    table.add_column("model")
    for heading in (f"delta at epsilon {analysis.epsilon:g}", f"epsilon at delta {analysis.delta:g}", "rho (zCDP)"):
        table.add_column(heading, justify="right")
    for model, result in analysis.results.items():
        low, high = result.rho.low, result.rho.high
        rho = "inf" if low == math.inf else f"{low:.7g} to {high:.7g}"
        table.add_row(model, f"{result.delta:.8g}", f"{result.epsilon:.8g}", rho)
    return table


def as_text(analysis: Analysis, quantity: str = "delta") -> str:
    """The worst neighbours and adversary of each model, step by step."""
    return "\n\n".join(_paragraphs(analysis, quantity))


def _paragraphs(analysis: Analysis, quantity: str) -> Iterator[str]:
    for name, result in analysis.results.items():
        case = next((case for kind, case in result.worst.items() if kind == quantity), None)
        if case is None:
            yield f"{name}: no two worlds differ in anything that this policy sees."
        else:
            yield in_words(analysis.policy, case)


def as_json(analysis: Analysis) -> dict[str, Any]:
    """Everything, in types that JSON knows; infinity is the text "inf"."""
    policy = analysis.policy
    return {
        "policy": policy.name,
        "arms": list(policy.arms),
        "rewards": list(policy.rewards),
        "contexts": list(policy.contexts),
        "horizon": policy.horizon,
        "epsilon": analysis.epsilon,
        "privacy_delta": analysis.delta,
        "seconds": analysis.seconds,
        "results": [_result(policy, result) for result in analysis.results.values()],
    }


def _result(policy: SmallPolicy, result: Result) -> dict[str, Any]:
    return {
        "model": result.model.name,
        "observer": result.model.observer,
        "delta": result.delta,
        "epsilon": json_number(result.epsilon),
        "rho_low": json_number(result.rho.low),
        "rho_high": json_number(result.rho.high),
        "pairs": result.cost.pairs,
        "worst": {quantity: _case(policy, case) for quantity, case in result.worst.items()},
    }


def _case(policy: SmallPolicy, case: WorstCase) -> dict[str, Any]:
    return {
        "step": case.step,
        "tables": case.tables,
        "contexts": case.contexts,
        "adversary": None if case.adversary is None else _adversary(case.adversary),
        "observed_steps": case.observed,
        "event": [{"actions": seen.actions, "p": seen.p, "q": seen.q} for seen in case.event],
        "p": case.p,
        "q": case.q,
        "epsilon": json_number(case.epsilon),
        "alpha": json_number(case.alpha),
        "text": in_words(policy, case),
    }


def _adversary(adversary: Adversary) -> list[dict[str, Any]]:
    """Opening moves come with "seen": null, because they do not depend on what is seen."""
    moves = [(step, None, move) for step, move in enumerate(adversary.opening, start=1)]
    late = [(len(adversary.opening) + len(seen), list(seen), move) for seen, move in adversary.answers.items()]
    return [
        {"step": step, "seen": seen, "plays": move.arm, "rewards": move.rewards, "next_context": move.next_context}
        for step, seen, move in [*moves, *late]
    ]


# A worst case in words that can be followed step by step.


def in_words(policy: SmallPolicy, case: WorstCase) -> str:
    """Who differs, what everyone else brings, what the adversary plays, and what gives it away.

    >>> from private_bandits.definitions import analyse, counterexample
    >>> case = analyse(counterexample(), ["view"], epsilon=0.95).results["view"].worst["delta"]
    >>> print(in_words(counterexample(), case))
    view, delta: patient 1 differs.
      Patient 1: every arm gives 0 in one world, every arm gives 1 in the other.
      Patient 2: every arm gives 1.
      Whoever sees one of these 3 sequences of recommendations believes in the first world:
        arms 1, 0, 1: probability 0.0714286, in the other world 0
        arms 0, 1, 0: probability 0.0666667, in the other world 0
        arms 0, 0, 1: probability 0.222222, in the other world 0.0740741
      Together 0.360317 against 0.0740741: 0.360317 - e^0.95 x 0.0740741 = 0.168783.
    """
    return "\n  ".join(_lines(policy, case))


def _lines(policy: SmallPolicy, case: WorstCase) -> Iterator[str]:
    yield f"{case.model.name}, {case.quantity}: patient {case.step} differs."
    yield from _people(policy, case)
    yield from _moves(policy, case)
    yield from _evidence(policy, case)


def _people(policy: SmallPolicy, case: WorstCase) -> Iterator[str]:
    """What each person brings; the last reward is never used."""
    for step in range(policy.horizon):
        worlds = []
        for world in (0, 1):
            said = []
            if case.contexts is not None and step < len(case.contexts[world]):
                said.append(f"context {policy.contexts[case.contexts[world][step]]}")
            if case.tables is not None and step + 1 < policy.horizon:
                said.append(_row(policy, case.tables[world][step]))
            worlds.append(", ".join(said))
        if worlds[0] != worlds[1]:
            yield f"Patient {step + 1}: {worlds[0]} in one world, {worlds[1]} in the other."
        elif worlds[0]:
            yield f"Patient {step + 1}: {worlds[0]}."


def _row(policy: SmallPolicy, row: Sequence[float]) -> str:
    if len(set(row)) == 1:
        return f"every arm gives {row[0]:g}"
    return ", ".join(f"arm {arm} gives {reward:g}" for arm, reward in zip(policy.arms, row, strict=True))


def _moves(policy: SmallPolicy, case: WorstCase) -> Iterator[str]:
    if case.adversary is None:
        return
    for step, move in enumerate(case.adversary.opening, start=1):
        yield f"Step {step}: whatever is recommended, the adversary plays {_move(policy, move)}."
    start = len(case.adversary.opening)
    ordered = sorted(case.adversary.answers.items(), key=lambda answer: (len(answer[0]), answer[0]))
    for seen, move in ordered[:MOST_LINES]:
        since = f"arms {_arms(policy, seen)} since step {start + 1}" if len(seen) > 1 else f"arm {_arms(policy, seen)}"
        yield f"Step {start + len(seen)}: having seen {since}, the adversary plays {_move(policy, move)}."
    if len(ordered) > MOST_LINES:
        yield f"... and {len(ordered) - MOST_LINES:,} more answers."


def _move(policy: SmallPolicy, move: Move) -> str:
    text = f"arm {policy.arms[move.arm]}"
    if move.rewards is not None:
        first, second = move.rewards
        text += f" with reward {first:g}" + (f" in one world, {second:g} in the other" if first != second else "")
    if move.next_context is not None:
        text += f"; the next context is {policy.contexts[move.next_context]}"
    return text


def _evidence(policy: SmallPolicy, case: WorstCase) -> Iterator[str]:
    if not case.event:
        yield "Nothing that is seen tells the two worlds apart at this level."
        return
    about = "" if len(case.observed) == policy.horizon else f" at steps {', '.join(map(str, case.observed))}"
    if case.quantity == "rho" and case.alpha != math.inf:
        limit = " (the limit: KL divergence)" if case.alpha == 1 else ""
        yield f"At alpha = {case.alpha:.6g}{limit} these recommendations{about} weigh most:"
    else:
        many = f"one of these {len(case.event)} sequences" if len(case.event) > 1 else "this sequence"
        yield f"Whoever sees {many} of recommendations{about} believes in the first world:"
    yield from (f"  {_seen(policy, seen)}" for seen in case.event[:MOST_LINES])
    if len(case.event) > MOST_LINES:
        yield f"  ... and {len(case.event) - MOST_LINES:,} more."
    if case.quantity != "rho" and case.epsilon is not None and case.epsilon < math.inf:
        gap = case.p - math.exp(min(case.epsilon, 700.0)) * case.q
        sides = f"{case.p:.6g} - e^{case.epsilon:.6g} x {case.q:.6g}"
        yield f"Together {case.p:.6g} against {case.q:.6g}: {sides} = {gap:.6g}."
    elif case.q == 0:
        yield f"Together {case.p:.6g} against 0: impossible in the other world, so no finite number bounds the ratio."


def _seen(policy: SmallPolicy, seen: Seen) -> str:
    noun = "arms" if len(seen.actions) > 1 else "arm"
    return f"{noun} {_arms(policy, seen.actions)}: probability {seen.p:.6g}, in the other world {seen.q:.6g}"


def _arms(policy: SmallPolicy, actions: Sequence[int]) -> str:
    return ", ".join(policy.arms[action] for action in actions)
