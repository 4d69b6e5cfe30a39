"""AdaC-IMED and the tight variants against what is published, as data: at equal budget, and beside lower bounds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from private_bandits.experiments.run.experiment import Entry, Experiment, Instance, Options, entries
from private_bandits.experiments.run.settings import (
    DELTA,
    MEANS,
    PROVEN,
    STRICT_CONTEXTUAL,
    STRICT_FINITE,
    STRICT_LINEAR,
)
from private_bandits.theory.lower import Rewards

BOTH = ("paper", "tight")
RHOS = (1e-4, 1e-3, 0.01, 0.1, 1.0, 10.0, math.inf)
"""From what hardly learns to what is hardly private."""
TINY = (1e-9, 1e-7, 1e-5, 1e-3, 0.1, 10.0)
"""Budgets of the lower bounds, whose private parts are the larger for tiny ones only."""
TIMES = (1.0, 4.0, 16.0, 64.0, 256.0)
"""Multiples of the gap of a lower bound's proof: a policy's own worst gap is larger, as its constants are."""
WINS = "tight-wins"
LONG: dict[str, Any] = {"horizon": 10**7, "quick": (10**5, 5), "full": (10**7, 100)}
"""The scale of engines whose work hardly grows with the horizon."""
SHORT: dict[str, Any] = {"horizon": 10**6, "runs": 20, "quick": (10**5, 5), "full": (10**7, 100)}
"""The scale of the lower bounds."""
DRAWN = 20260
"""The seed of the instances that are drawn, whatever the seed of the command: nobody chose among seeds."""

ABOUT = (
    " The tight variant keeps the same budget and makes more of what is released, and its widths are proven anew "
    "(docs/guarantees.md); the paper's regret bounds are about the published one."
)
ABOUT_IMED = (
    " AdaC-IMED is as by default, and keeps the same budget (docs/guarantees.md); no bound of its regret is proven."
)
FLOOR = "The lower bound is about every policy that keeps the budget, "
RANGE = (
    " Policies are told of a range of 18 where the noise has a deviation of 1, and explore for rewards that could "
    "stray nine times as far: regret is about nine times what it would be for rewards known to stray as these do."
)
GAUSSIAN = (
    "Everything promised holds: rewards have N(0, 1) noise and are declared to lie in [-9, 9], which they leave with "
    "probability below 1e-15. "
)


def _pairs(policy: str, options: Options, instances: Sequence[Instance], rhos: Sequence[float]) -> tuple[Entry, ...]:
    return tuple(e for instance in instances for e in entries([policy], rhos, options, BOTH, instance))


def _finite_pairs(beta: float, instances: Sequence[Instance], rhos: Sequence[float]) -> tuple[Entry, ...]:
    """AdaC-UCB with this beta, and AdaC-IMED as it is by default."""
    return tuple(
        entry
        for instance in instances
        for policy, options in (("adac-ucb", (("beta", beta),)), ("adac-imed", ()))
        for entry in entries([policy], rhos, options, instance=instance)
    )


def _hard(arms: int = 10, dimension: int = 3, rewards: Rewards = "gaussian") -> list[Instance]:
    return [Instance(f"gap x {times:g}", (), arms, dimension, None, times, rewards) for times in TIMES]


TIGHT = (
    Experiment(
        name="finite-tight",
        title="Finite arms: AdaC-IMED, and AdaC-UCB as published, at equal budget",
        setting="finite",
        setting_as="strict",
        guarantee=STRICT_FINITE
        + ABOUT_IMED
        + " On the instance that says beta = 1, as the paper's experiment has it, the regret bound of AdaC-UCB does "
        "not hold.",
        entries=(
            *_finite_pairs(1.0, [Instance("the paper's means at beta = 1", MEANS, arms=5)], RHOS),
            *_finite_pairs(
                3.1,
                [
                    Instance("the paper's means", MEANS, arms=5),
                    *(Instance(f"K = {k} drawn", arms=k, draw=DRAWN) for k in (2, 10, 50)),
                ],
                RHOS,
            ),
        ),
        figures=("variants",),
        claims=(WINS,),
        runs=40,
        **LONG,
    ),
    Experiment(
        name="linear-tight",
        title="Linear bandits: AdaC-GOPE tight and as published, at equal budget",
        setting="linear",
        setting_as="strict",
        guarantee=STRICT_LINEAR + ABOUT,
        entries=_pairs(
            "adac-gope",
            DELTA,
            [
                Instance("as in the paper"),
                *(Instance(f"d = {d} and K = 30 drawn", arms=30, dimension=d, draw=DRAWN) for d in (3, 5, 10, 20)),
                Instance("d = 3 and K = 100 drawn", arms=100, draw=DRAWN),
            ],
            RHOS,
        ),
        figures=("variants",),
        claims=(WINS,),
        runs=20,
        **LONG,
    ),
    Experiment(
        name="contextual-tight",
        title="Contextual bandits: AdaC-OFUL tight and as published, at equal budget",
        setting="contextual",
        setting_as="strict",
        guarantee=STRICT_CONTEXTUAL
        + ABOUT
        + " The tight variant has an exploration of 0.1 where the published one has "
        "1, which its bound on regret is for. Without privacy they differ in nothing else.",
        entries=_pairs(
            "adac-oful",
            PROVEN,
            [
                Instance("as in the paper"),
                *(Instance(f"d = {d} and K = 10 drawn", dimension=d, draw=DRAWN) for d in (5, 10)),
                Instance("d = 3 and K = 50 drawn", arms=50, draw=DRAWN),
            ],
            RHOS,
        ),
        horizon=200_000,
        runs=20,
        figures=("variants",),
        claims=(WINS,),
        quick=(10**4, 5),
        full=(10**6, 20),
    ),
    Experiment(
        name="finite-lower",
        title="Finite arms: what is left to gain above the lower bound",
        setting="finite",
        setting_as="strict",
        guarantee=GAUSSIAN
        + FLOOR
        + "on the worst of unit-variance Gaussian arms. These are instances of its proof, with "
        "its gap and larger ones." + RANGE,
        entries=_finite_pairs(3.1, _hard(arms=4), TINY),
        figures=("floor",),
        **SHORT,
    ),
    Experiment(
        name="binary-lower",
        title="Finite arms, rewards of 0 and 1: what is left to gain above the lower bound",
        setting="finite",
        setting_as="strict",
        guarantee=STRICT_FINITE
        + " "
        + FLOOR
        + "on the worst of arms that pay 0 or 1: the paper's proof for such arms. "
        "These are instances of that proof, with its gap and larger ones.",
        entries=_finite_pairs(3.1, _hard(arms=4, rewards="binary"), TINY),
        figures=("floor",),
        **SHORT,
    ),
    Experiment(
        name="linear-lower",
        title="Linear bandits: what is left to gain above the lower bound",
        setting="linear",
        setting_as="strict",
        guarantee=GAUSSIAN
        + FLOOR
        + "with actions [-1, 1]^d and the worst theta. These are instances of its proof, the "
        "corners as actions, with its theta and larger ones."
        + RANGE
        + " It holds for contextual policies too, as actions "
        "that never change are contexts; no instance of those is here.",
        entries=_pairs("adac-gope", DELTA, _hard(dimension=3), TINY),
        figures=("floor",),
        **SHORT,
    ),
)
"""In the order of the report."""
