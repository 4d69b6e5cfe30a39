"""Cost that does not grow: pairs with 10,000 arms beside 100, and decisions beside 200,000 open ones beside 2,000.

python benchmarks/arms.py
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from typing import Any

import private_bandits as pb

ROUNDS = 5
PAIRS = 30_000
FEW, MANY = 100, 10_000


def on_a_sphere(actions: int) -> list[list[float]]:
    """Vectors in R^3 that lie evenly: a spiral from pole to pole."""
    heights = [1 - (2 * i + 1) / actions for i in range(actions)]
    turns = [i * math.pi * (3 - math.sqrt(5)) for i in range(actions)]
    return [
        [math.sqrt(1 - z * z) * math.cos(t), math.sqrt(1 - z * z) * math.sin(t), z]
        for z, t in zip(heights, turns, strict=True)
    ]


POLICIES: dict[str, tuple[Callable[[int], Any], int]] = {
    "AdaC-UCB": (lambda k: pb.AdaCUCB(n_arms=k, budget=pb.zCDP(0.1)), MANY),
    "AdaC-UCB, paper": (lambda k: pb.AdaCUCB(n_arms=k, budget=pb.zCDP(0.1), variant="paper"), MANY),
    "AdaC-UCB, no privacy": (lambda k: pb.AdaCUCB(n_arms=k, budget=pb.NoPrivacy()), MANY),
    "AdaP-UCB": (lambda k: pb.AdaPUCB(n_arms=k, budget=pb.PureDP(1)), MANY),
    "DP-UCB (tree)": (lambda k: pb.TreeUCB(n_arms=k, budget=pb.PureDP(1)), MANY),
    "DP-SE": (lambda k: pb.DPSE(n_arms=k, budget=pb.PureDP(1)), MANY),
    "AdaC-GOPE in R^3": (lambda k: pb.AdaCGOPE(actions=on_a_sphere(k), budget=pb.zCDP(0.1)), 2_000),
}
"""Policies for a number of arms, and the larger number."""


def seconds_of_pairs(policy: Any, pairs: int) -> tuple[float, int]:
    """Seconds of a new agent in memory, the first pulls included, and how many releases it made."""
    agent = pb.Agent(policy)
    started = time.perf_counter()
    for i in range(pairs):
        agent.tell(agent.ask(), 1.0 if i % 3 else 0.0)
    return time.perf_counter() - started, len(agent.ledger)


def seconds_of_asks(arms: int, open_now: int, asks: int) -> float:
    """Seconds of decisions of a new agent, of which nothing is told, once so many are open."""
    agent = pb.Agent(pb.AdaCUCB(n_arms=arms, budget=pb.zCDP(0.1)))
    agent.ask(open_now)
    started = time.perf_counter()
    agent.ask(asks)
    return time.perf_counter() - started


def ratio(one: Callable[[], float], other: Callable[[], float]) -> float:
    """How many times longer one takes, in turns: the median, as the machine may be busy."""
    return statistics.median(one() / other() for _ in range(ROUNDS))


def main() -> None:
    """Print the ratios."""
    print(f"{'policy':22} {'arms':>7} {'us a pair':>10} {'releases':>9} {'speed, of that of few':>22}")
    for name, (make, many) in POLICIES.items():
        rows = {}
        for arms in (FEW, many):
            found = [seconds_of_pairs(make(arms), PAIRS) for _ in range(ROUNDS)]
            rows[arms] = statistics.median(seconds for seconds, _ in found) / PAIRS
            speed = rows[FEW] / rows[arms]
            print(f"{name:22} {arms:7} {rows[arms] * 1e6:10.1f} {found[-1][1]:9} {speed:22.2f}", flush=True)
    print(f"\n{'arms':>7}  cost of a decision beside 200,000 open ones, of that beside 2,000")
    for arms in (5, FEW, MANY):
        found_ratio = ratio(
            lambda k=arms: seconds_of_asks(k, 200_000, 2_000),  # type: ignore[misc]
            lambda k=arms: seconds_of_asks(k, 2_000, 2_000),  # type: ignore[misc]
        )
        print(f"{arms:7}  {found_ratio:.2f}", flush=True)


if __name__ == "__main__":
    main()
