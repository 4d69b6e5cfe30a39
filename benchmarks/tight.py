"""AdaC-IMED and the tight variants beside what is published, at equal budget: regret, and the time of a simulation.

Instances are drawn from --draw and are those of no test. The time is the least of several runs of each variant, which
take turns, so that whatever else the machine does meets both.

    python benchmarks/tight.py [--runs 20] [--draw 7] [--repeats 3] [--settings finite,linear,contextual]
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import private_bandits as pb
from private_bandits.budget import Budget
from private_bandits.experiments.analysis.estimates import RegretEstimate, price
from private_bandits.instances import contextual_instance, linear_instance
from private_bandits.policies import Policy

RHOS = (1e-4, 1e-3, 0.01, 0.1, 1.0, 10.0, math.inf)
VARIANTS = ("paper", "tight")


@dataclass(frozen=True)
class Case:
    """An instance, and how its policies are made of a budget and a variant."""

    name: str
    world: Any
    horizon: int
    make: Callable[..., Policy[Any]]


def finite(draw: int) -> Iterator[Case]:
    """Few arms and many, the theorem's beta and the paper's."""
    for arms, beta in ((5, 1.0), (5, 3.1), (20, 3.1)):
        world = pb.Bernoulli(np.random.default_rng([draw, arms]).uniform(size=arms).tolist())
        name = f"finite, K = {arms}, beta = {beta:g}"
        yield Case(name, world, 10**7, partial(finite_policy, arms, beta))


def finite_policy(arms: int, beta: float, budget: Budget, variant: str) -> Policy[Any]:
    """AdaC-UCB as published; AdaC-IMED stands for a tight variant."""
    return pb.AdaCUCB(arms, budget, beta=beta) if variant == "paper" else pb.AdaCIMED(arms, budget)


def linear(draw: int) -> Iterator[Case]:
    """Two dimensions, 20 random directions."""
    for d in (3, 10):
        world = linear_instance(draw, arms=20, dimension=d)
        yield Case(f"linear, d = {d}, K = 20", world, 10**7, partial(pb.AdaCGOPE, world.actions))


def contextual(draw: int) -> Iterator[Case]:
    """Two dimensions, ten offers, everything within bounds."""
    for d in (3, 10):
        world, steps = contextual_instance(draw, dimension=d), 200_000
        yield Case(f"contextual, d = {d}, K = 10", world, steps, partial(pb.AdaCOFUL, d, horizon=steps))


SETTINGS = {"finite": finite, "linear": linear, "contextual": contextual}


def budgets() -> dict[float, Budget]:
    """By rho."""
    return {rho: pb.NoPrivacy() if math.isinf(rho) else pb.zCDP(rho) for rho in RHOS}


def simulated(case: Case, variant: str, runs: int, seed: int) -> pb.Simulation:
    """All budgets of one variant."""
    policies = {f"{rho:g}": case.make(budget=budget, variant=variant) for rho, budget in budgets().items()}
    return pb.simulate(policies, case.world, case.horizon, runs, seed, progress=False)


def measured(case: Case, runs: int, repeats: int) -> tuple[dict[str, pb.Simulation], dict[str, float]]:
    """Both variants, and the seconds of each."""
    found: dict[str, pb.Simulation] = {}
    seconds = dict.fromkeys(VARIANTS, math.inf)
    for repeat in range(repeats):
        for variant in VARIANTS:
            result = simulated(case, variant, runs, seed=repeat)
            seconds[variant] = min(seconds[variant], result.seconds)
            found.setdefault(variant, result)
    return found, seconds


def lower_by(found: dict[str, pb.Simulation], name: str) -> RegretEstimate:
    """1 - tight/published; contextual runs share their contexts and are compared in pairs."""
    paired = isinstance(found["paper"].environment, pb.Contextual)
    more = price(found["tight"].final[name], found["paper"].final[name], paired)
    return RegretEstimate(-more.value, more.error, more.freedom)


def table(case: Case, runs: int, repeats: int) -> None:
    """Print one instance."""
    found, seconds = measured(case, runs, repeats)
    ratio = seconds["tight"] / seconds["paper"]
    print(f"\n{case.name}, {case.horizon:,} steps, {runs} runs: {ratio:.2f} times as long to simulate\n")
    print("| rho | published | tight | lower by |\n|---:|---:|---:|---:|")
    for rows in zip(*(found[variant].summary() for variant in VARIANTS), strict=True):
        cells = [f"{row['regret_mean']:,.0f} ± {row['regret_stderr']:,.0f}" for row in rows]
        saving = lower_by(found, rows[0]["name"])
        print(f"| {rows[0]['name']} | {' | '.join(cells)} | {saving.value:.1%} ± {saving.error:.1%} |", flush=True)


def main() -> None:
    """Simulate and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--draw", type=int, default=7)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--settings", default=",".join(SETTINGS))
    given = parser.parse_args()
    began = time.perf_counter()
    print("Mean regret ± standard error")
    for setting in given.settings.split(","):
        for case in SETTINGS[setting](given.draw):
            table(case, given.runs, given.repeats)
    print(f"\n{time.perf_counter() - began:.0f} seconds")


if __name__ == "__main__":
    main()
