"""Simulation speed: steps per second of the engines beside a plain per-step UCB loop, measured in one run.

python benchmarks/simulation.py
"""

from __future__ import annotations

import math
import random
import resource
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import private_bandits as pb
from private_bandits.budget import Budget
from private_bandits.environments import FiniteEnvironment
from private_bandits.policies import Policy

MEANS = [0.75, 0.625, 0.5, 0.375, 0.25]
HORIZON, RUNS = 10**7, 100


def plain_loop_rate(steps: int = 300_000) -> float:
    """Steps per second of UCB1 written as people write it first."""
    chance = random.Random(0)
    counts, sums = [0] * len(MEANS), [0.0] * len(MEANS)
    arms = range(len(MEANS))
    started = time.perf_counter()
    for t in range(1, steps + 1):
        if t <= len(MEANS):
            arm = t - 1
        else:
            log_t = 2 * math.log(t)
            arm = max(arms, key=lambda a: sums[a] / counts[a] + math.sqrt(log_t / counts[a]))
        counts[arm] += 1
        sums[arm] += chance.random() < MEANS[arm]
    return steps / (time.perf_counter() - started)


def engine_rate(make: Callable[[Budget], Policy[Any]], environment: FiniteEnvironment) -> tuple[float, float]:
    """Steps per second of 7 budgets x 100 runs x 10^7 steps, and the seconds it took."""
    budgets: list[Budget] = [pb.zCDP(10.0**k) for k in range(-3, 3)]
    policies = {str(b): make(b) for b in [*budgets, pb.NoPrivacy()]}
    seconds = min(pb.simulate(policies, environment, HORIZON, RUNS, seed=s).seconds for s in range(5))
    return len(policies) * RUNS * HORIZON / seconds, seconds


def main() -> None:
    """Print the comparison."""
    loop = max(plain_loop_rate() for _ in range(3))
    print(f"plain loop of {len(MEANS)} arms: {loop:,.0f} steps per second")
    directions = np.random.default_rng(0).normal(size=(11, 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    actions = directions[:10]
    for words, engine, seconds in (
        (
            "finite arms, 5",
            *engine_rate(lambda b: pb.AdaCUCB(len(MEANS), b, beta=1, variant="paper"), pb.Bernoulli(MEANS)),
        ),
        ("AdaC-IMED, 5 arms", *engine_rate(lambda b: pb.AdaCIMED(len(MEANS), b), pb.Bernoulli(MEANS))),
        (
            "linear, 10 in R^3",
            *engine_rate(lambda b: pb.AdaCGOPE(actions, b, variant="paper"), pb.Linear(actions, directions[10])),
        ),
    ):
        print(
            f"{words}: {engine:,.0f} steps per second, {engine / loop:,.0f} times the loop "
            f"(7 budgets x {RUNS} runs x {HORIZON:,} steps in {seconds:.3f} s)"
        )
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"memory: {memory:,.0f} MiB at most")


if __name__ == "__main__":
    main()
