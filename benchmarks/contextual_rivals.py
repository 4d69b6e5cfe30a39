"""The compiled engine of the contextual rivals beside the one that plays one step at a time in Python, in one run.

Both play the same steps of the same runs, in turns.

    python benchmarks/contextual_rivals.py
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import private_bandits as pb
from private_bandits.policies import Policy
from private_bandits.simulation import contextual_steps, stepwise
from private_bandits.simulation.seeds import Seeds

ARMS, DIMENSION = 10, 3
SHORT, LONG, ROUNDS = 2_000, 100_000, 3
SEEDS = Seeds(0, 0)


def seconds(play: Callable[..., Any], policy: Policy[Any], environment: pb.Contextual, steps: int, run: int) -> float:
    """Of the processor, for one run of so many steps."""
    started = time.process_time()
    play([policy], environment, steps, np.array([steps]), SEEDS, run)
    return time.process_time() - started


def main() -> None:
    """Print the comparison."""
    environment = pb.Contextual(DIMENSION, ARMS, [0.6, 0.48, 0.64])
    budget = pb.zCDP(1.0)
    policies: list[Policy[Any]] = [
        pb.LinPriv(DIMENSION, budget, arms=ARMS, horizon=LONG),
        pb.LinPrivShared(DIMENSION, budget, horizon=LONG),
        pb.ShariffSheffet(DIMENSION, budget, horizon=LONG),
        pb.AdaCOFULPrivate(DIMENSION, budget, horizon=LONG),
    ]
    stepwise.prepare(policies, environment)
    for policy in policies:
        fast, slow = [], []
        for run in range(ROUNDS):
            fast.append(seconds(stepwise.play_run, policy, environment, LONG, run) / LONG)
            slow.append(seconds(contextual_steps.play_run, policy, environment, SHORT, run) / SHORT)
        print(
            f"{policy.name}: {min(fast) * 1e9:,.0f} ns a step, one step at a time in Python {min(slow) * 1e9:,.0f} ns: "
            f"{min(slow) / min(fast):,.0f} times as fast"
        )


if __name__ == "__main__":
    main()
