"""Ask a small policy how private it is."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from private_bandits.definitions.cost import CELLS, Cost, check_fits, cost
from private_bandits.definitions.epsilon_delta import LargestDelta, SmallestEpsilon
from private_bandits.definitions.models import JOINT, PLAIN, Model, resolve
from private_bandits.definitions.observation_tree import Leaves, grow
from private_bandits.definitions.policy import SmallPolicy
from private_bandits.definitions.rho import Bracket, SmallestRho
from private_bandits.definitions.worlds import PairsAtStep, WorldPairs, chunks, pairs_by_step
from private_bandits.definitions.worst import Quantity, WorstCase, worst_case
from private_bandits.errors import InvalidInput

Progress = Callable[[float], None]
"""Told the fraction of the work that is done."""


class _Question(Protocol):
    worst: WorldPairs | None

    def look(self, leaves: Leaves) -> None: ...


@dataclass(frozen=True)
class Result:
    """One model: delta at the epsilon asked, epsilon at the delta asked, rho between two numbers, and the worst cases.

    `worst` is empty if no two worlds differ in anything that the policy sees.
    """

    model: Model
    delta: float
    epsilon: float
    rho: Bracket
    worst: dict[Quantity, WorstCase]
    cost: Cost


@dataclass(frozen=True)
class Analysis:
    """What `analyse` found: the levels asked for, and one result for each model by name."""

    policy: SmallPolicy
    epsilon: float
    delta: float
    results: dict[str, Result]
    seconds: float


def analyse(
    policy: SmallPolicy,
    models: str | Sequence[str] | None = None,
    epsilon: float = 1.0,
    delta: float = 0.0,
    tolerance: float = 1e-6,
    observer: str = "later",
    progress: Progress | None = None,
) -> Analysis:
    """Delta at epsilon, epsilon at delta and rho of a policy under each model, exactly, with the worst cases.

    >>> from private_bandits.definitions import counterexample
    >>> results = analyse(counterexample(), ["view", "table"], epsilon=0.95, delta=0.17).results
    >>> [round(result.epsilon, 4) for result in results.values()]  # Proposition 1(e)
    [0.9436, 0.984]
    """
    began = time.perf_counter()
    names = [models] if isinstance(models, str) else models or (PLAIN + JOINT if policy.contexts else PLAIN)
    if not isinstance(names, Sequence):
        raise InvalidInput(f"models must be a name or a list of names, got {models!r}")
    chosen = [resolve(policy.space, name, observer) for name in names]
    if len({model.name for model in chosen}) != len(chosen):
        raise InvalidInput(f"models must be different, got {list(names)!r}")
    LargestDelta(epsilon), SmallestEpsilon(delta), SmallestRho(tolerance)  # refuse bad levels before any work
    check_fits(policy.space, chosen)
    shares = [cost(policy.space, model).cells for model in chosen]
    results = {}
    for number, model in enumerate(chosen):
        asked = LargestDelta(epsilon), SmallestEpsilon(delta), SmallestRho(tolerance)
        for cells in _look(policy, model, asked):
            if progress:
                progress((sum(shares[:number]) + cells) / sum(shares))
        results[model.name] = _result(policy, model, *asked)
    return Analysis(policy, epsilon, delta, results, time.perf_counter() - began)


def delta_at(policy: SmallPolicy, model: str, epsilon: float, observer: str = "later") -> float:
    """The smallest delta for which the policy is (epsilon, delta)-DP under a model.

    >>> from private_bandits.definitions import counterexample
    >>> round(delta_at(counterexample(), "table", 0.95), 4)
    0.1777
    """
    question = LargestDelta(epsilon)
    _ask(policy, model, question, observer)
    return question.value


def epsilon_at(policy: SmallPolicy, model: str, delta: float, observer: str = "later") -> float:
    """The smallest epsilon for which the policy is (epsilon, delta)-DP under a model; delta = 0 is pure DP."""
    question = SmallestEpsilon(delta)
    _ask(policy, model, question, observer)
    return question.value


def rho_of(policy: SmallPolicy, model: str, tolerance: float = 1e-6, observer: str = "later") -> Bracket:
    """The smallest rho for which the policy is rho-zCDP under a model, between two certified numbers."""
    question = SmallestRho(tolerance)
    _ask(policy, model, question, observer)
    return question.value


def _ask(policy: SmallPolicy, name: str, question: _Question, observer: str) -> None:
    model = resolve(policy.space, name, observer)
    check_fits(policy.space, [model])
    for _ in _look(policy, model, [question]):
        pass


def _look(policy: SmallPolicy, model: Model, asked: Sequence[_Question]) -> Iterator[int]:
    """Shows every pair of worlds to the questions; yields how many cells are done."""
    done = 0
    for worlds in chunks(pairs_by_step(policy.space, model), CELLS):
        leaves = grow(policy, worlds)
        for question in asked:
            question.look(leaves)
        done += worlds.count * PairsAtStep(policy.space, model, worlds.step).leaves
        yield done


def _result(
    policy: SmallPolicy, model: Model, delta: LargestDelta, epsilon: SmallestEpsilon, rho: SmallestRho
) -> Result:
    worst: dict[Quantity, WorstCase] = {}
    if delta.worst and epsilon.worst and rho.worst:
        alpha = float("inf") if rho.low == float("inf") else 1 + rho.order
        worst = {
            "delta": worst_case(policy, delta.worst, "delta", delta.epsilon),
            "epsilon": worst_case(policy, epsilon.worst, "epsilon", epsilon.value, epsilon.delta),
            "rho": worst_case(policy, rho.worst, "rho", alpha),
        }
    return Result(model, delta.value, epsilon.value, rho.value, worst, cost(policy.space, model))
