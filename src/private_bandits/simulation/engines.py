"""The engines: which one simulates a policy, and how its work is cut into pieces.

An engine is a module of this package with

    regret_curves(policies, environment, horizon, runs, checkpoints, random, report) -> [policy, run, checkpoint]

and, where something is to be compiled or refused first, prepare(policies, environment). `random` is a generator for
each policy, or, where all policies of a run see the same contexts, the `Seeds` of the block's runs.

Policies know nothing of engines. A fast engine is registered for the classes that it knows (`SERVED`). It is exact for
these alone: a subclass that changes what the engine does by itself is played one decision at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from private_bandits.arrays import Floats, Integers
from private_bandits.labelled import Labelled
from private_bandits.policies import (
    DPSE,
    AdaCHalving,
    AdaCIMED,
    AdaCOFUL,
    AdaCOFULPrivate,
    AdaCTopTwo,
    AdaCUCB,
    IndexPolicy,
    LinPriv,
    LinPrivShared,
    Policy,
    ShariffSheffet,
    TreeUCB,
)
from private_bandits.policies.phased_elimination import PhasedElimination
from private_bandits.policies.running_sum import RunningSumPolicy
from private_bandits.progress import Report
from private_bandits.simulation.arrivals import TrialWorld
from private_bandits.simulation.seeds import Seeds, fingerprint

BLOCK = 10_000
"""Runs simulated together: bounds the memory, and is the piece of work that goes to a process."""
STEPS = 10**6
"""Steps simulated together where every step is played."""
SLOW_STEPS = 10**4
"""The same, one decision at a time: a few seconds for each policy."""

LATE_STEPS = 10**5
"""The same where rewards are late or missing: about a second."""
TOGETHER = 2 * 10**7
"""The same where they are, and all runs advance together."""


@dataclass(frozen=True)
class Engine:
    """One way to simulate policies, exact in distribution.

    load: returns its module. It is called when the engine is used, as numba is an extra and slow to import.
    seconds_a_run, seconds_a_step: of one policy, about. Only the estimate of the time left depends on them.
    steps: how many are simulated together, where memory grows with them; None: a block has `BLOCK` runs.
    shares_contexts: whether all policies of a run see the same contexts.
    in_threads: whether it is compiled code, which runs side by side in threads and is compiled only once there.
    one_class: whether all policies that it simulates together have to be of one class.
    """

    load: Callable[[], Any]
    seconds_a_run: float = 0.0
    seconds_a_step: float = 0.0
    steps: int | None = None
    shares_contexts: bool = False
    in_threads: bool = False
    one_class: bool = False

    def group_of(self, policy: Policy[Any]) -> Hashable:
        """Return a key: policies that have the same one are simulated together."""
        return self, type(policy) if self.one_class else None

    def block_size(self, horizon: int) -> int:
        """Runs in a block; the same whatever the number of processes, as streams of random numbers belong to blocks."""
        return BLOCK if self.steps is None else max(1, min(BLOCK, self.steps // horizon))

    def seconds_for(self, runs: int, horizon: int) -> float:
        """How long runs of one policy take, about."""
        return runs * (self.seconds_a_run + self.seconds_a_step * horizon)

    def prepare(self, policies: Sequence[Policy[Any]], environment: Any) -> None:
        """Do what is not to be timed: import and compile. Refuses policies that the engine cannot simulate."""
        prepare = getattr(self.load(), "prepare", None)
        if prepare is not None:
            prepare(policies, environment)

    def regret_curves(
        self,
        policies: Sequence[Policy[Any]],
        environment: Any,
        horizon: int,
        block: tuple[int, int],
        checkpoints: Integers,
        seed: int,
        report: Report,
    ) -> Floats:
        """Return the regrets of a block of runs, [policy, run, checkpoint]. block: its number, and its runs."""
        number, runs = block
        random: Any = Seeds(seed, number * self.block_size(horizon))
        if not self.shares_contexts:
            random = [np.random.default_rng([seed, number, fingerprint(policy)]) for policy in policies]
        found: Floats = self.load().regret_curves(policies, environment, horizon, runs, checkpoints, random, report)
        return found


def _finite() -> Any:
    from private_bandits.simulation import finite

    return finite


def _running_sums() -> Any:
    from private_bandits.simulation import running_sums

    return running_sums


def _imed() -> Any:
    from private_bandits.simulation import imed

    return imed


def _top_two() -> Any:
    from private_bandits.simulation import top_two

    return top_two


def _halving() -> Any:
    from private_bandits.simulation import halving

    return halving


def _elimination() -> Any:
    from private_bandits.simulation import elimination

    return elimination


def _linear() -> Any:
    from private_bandits.simulation import linear

    return linear


def _trees() -> Any:
    from private_bandits.simulation import trees

    return trees


def _contextual() -> Any:
    from private_bandits.simulation import contextual

    return contextual


def _counted() -> Any:
    from private_bandits.simulation import counted

    return counted


def _stepwise() -> Any:
    from private_bandits.simulation import stepwise

    return stepwise


def _steps() -> Any:
    from private_bandits.simulation import steps

    return steps


def _late() -> Any:
    from private_bandits.simulation import late

    return late


def _late_steps() -> Any:
    from private_bandits.simulation import late_steps

    return late_steps


def _contextual_steps() -> Any:
    from private_bandits.simulation import contextual_steps

    return contextual_steps


def _labelled_steps() -> Any:
    from private_bandits.simulation import labelled_steps

    return labelled_steps


DOUBLING = Engine(_finite, seconds_a_run=1e-4)
RUNNING_SUMS = Engine(_running_sums, seconds_a_run=1e-3)
REMEMBERING = Engine(_imed, seconds_a_run=3e-4)
TOP_TWO = Engine(_top_two, seconds_a_run=3e-3)
HALVING = Engine(_halving, seconds_a_run=1e-4)
ELIMINATION = Engine(_elimination, seconds_a_run=1e-4)
PHASES = Engine(_linear, seconds_a_run=3e-3)
TREES = Engine(_trees, seconds_a_step=1e-7, steps=STEPS)
FROZEN = Engine(_contextual, seconds_a_step=4e-8, steps=STEPS, shares_contexts=True, in_threads=True)
COUNTED = Engine(_counted, seconds_a_step=1e-7, steps=STEPS, shares_contexts=True, in_threads=True)
STEPWISE = Engine(_stepwise, seconds_a_step=3e-6, steps=STEPS, shares_contexts=True, in_threads=True)
ONE_BY_ONE = Engine(_steps, seconds_a_step=2e-4)
"""Runs any policy with a list of actions, one decision at a time. The oracle of the fast ones."""
LATE = Engine(_late_steps, seconds_a_step=1e-5, steps=LATE_STEPS)
"""The same where rewards are late or missing."""
LATE_TOGETHER = Engine(_late, seconds_a_step=4e-7, steps=TOGETHER, one_class=True)
"""The same for policies whose choices are known, all runs at once."""
CONTEXTS_ONE_BY_ONE = Engine(_contextual_steps, seconds_a_step=2e-4, steps=SLOW_STEPS, shares_contexts=True)
"""The same for policies whose actions change."""
TABLE_ROWS = Engine(_labelled_steps, seconds_a_step=1e-4, steps=SLOW_STEPS, shares_contexts=True)
"""The same on a labelled table."""


LATE_SERVED = (AdaCIMED, AdaCTopTwo, AdaCHalving, AdaCUCB)
"""Policies whose choices beside open decisions are known to the engine. It is exact for no subclass of them."""
DRAW_VERDICTS = (DOUBLING, REMEMBERING, TOP_TWO, HALVING)
"""Engines that look for verdicts in all runs at once."""


class Served(NamedTuple):
    """The engine of a class of policies. by_itself: methods that it does not ask a policy for; None: all of them."""

    engine: Engine
    by_itself: frozenset[str] | None = frozenset()


_INDEX = Served(
    DOUBLING,
    frozenset({"recommend", "entry", "due", "learn", "take", "indices", "columns", "values", "factor"}),
)
_RUNNING_SUM = Served(
    RUNNING_SUMS, frozenset({"recommend", "entry", "due", "learn", "take", "indices", "columns", "values", "chosen"})
)
SERVED: dict[type, Served] = {
    IndexPolicy: _INDEX,
    RunningSumPolicy: _RUNNING_SUM,
    AdaCIMED: Served(REMEMBERING, None),
    AdaCTopTwo: Served(TOP_TWO, None),
    AdaCHalving: Served(HALVING, None),
    PhasedElimination: Served(PHASES),
    DPSE: Served(ELIMINATION),
    TreeUCB: Served(TREES),
    AdaCOFUL: Served(FROZEN, None),
    AdaCOFULPrivate: Served(COUNTED, None),
    LinPriv: Served(STEPWISE, None),
    LinPrivShared: Served(STEPWISE, None),
    ShariffSheffet: Served(STEPWISE, None),
}
"""The classes that a fast engine knows. A subclass is served too, unless it changes what the engine does by itself."""


def engine_for(policy: Policy[Any], environment: Any = None) -> Engine:
    """Return the engine that simulates a policy exactly."""
    if isinstance(environment, Labelled):
        return TABLE_ROWS
    if isinstance(environment, TrialWorld):
        fast = engine_for(policy)
        if environment.arrivals.prompt:
            return fast if fast in DRAW_VERDICTS else LATE
        return LATE_TOGETHER if type(policy) in LATE_SERVED else LATE
    ancestors = type(policy).__mro__
    for depth, ancestor in enumerate(ancestors):
        if ancestor in SERVED:
            served = SERVED[ancestor]
            changed = {name for subclass in ancestors[:depth] for name in vars(subclass)}
            if not depth or (served.by_itself is not None and served.by_itself.isdisjoint(changed)):
                return served.engine
            break
    return CONTEXTS_ONE_BY_ONE if policy.setting == "contextual" else ONE_BY_ONE
