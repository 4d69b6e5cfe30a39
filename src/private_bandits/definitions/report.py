"""Results for people and for machines."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from rich.markup import escape
from rich.table import Table

from private_bandits.definitions.analysis import Analysis, Result
from private_bandits.definitions.policy import SmallPolicy
from private_bandits.definitions.words import in_words
from private_bandits.definitions.worst import Adversary, WorstCase


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
        "epsilon": _number(result.epsilon),
        "rho_low": _number(result.rho.low),
        "rho_high": _number(result.rho.high),
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
        "epsilon": _number(case.epsilon),
        "alpha": _number(case.alpha),
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


def _number(value: float | None) -> float | str | None:
    return "inf" if value == math.inf else value
