"""Live speed: ask + tell of an agent beside pull + update of river's UCB, measured in turns in one run.

python benchmarks/live.py
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from river import bandit

import private_bandits as pb

ROUNDS = 7


def agent_pairs(arms: int, pairs: int) -> float:
    """Seconds of a new agent in memory, its releases with exact noise included."""
    agent = pb.Agent(pb.AdaCIMED(n_arms=arms, budget=pb.zCDP(0.1)))
    started = time.perf_counter()
    for i in range(pairs):
        decision = agent.ask()
        agent.tell(decision, 1.0 if i % 3 else 0.0)
    return time.perf_counter() - started


def river_pairs(arms: int, pairs: int) -> float:
    """Seconds of river's UCB for the same."""
    policy = bandit.UCB(delta=1, seed=1)
    names = range(arms)
    started = time.perf_counter()
    for i in range(pairs):
        arm = policy.pull(names)
        policy.update(arm, 1.0 if i % 3 else 0.0)
    return time.perf_counter() - started


def durable_pairs(batches: int, ask_singly: bool) -> float:
    """Seconds of an agent on a file, rewards told in batches of 100."""
    policy = pb.AdaCIMED(n_arms=5, budget=pb.zCDP(0.1))
    with tempfile.TemporaryDirectory() as folder, pb.Agent(policy, path=Path(folder) / "agent.db") as agent:
        started = time.perf_counter()
        for _ in range(batches):
            decisions = [agent.ask() for _ in range(100)] if ask_singly else agent.ask(100)
            agent.tell_many([(decision, 1.0) for decision in decisions])
        return time.perf_counter() - started


def best(measure: Callable[[], float]) -> float:
    """The least of several rounds: what the machine can do when nobody else is on it."""
    return min(measure() for _ in range(ROUNDS))


def main() -> None:
    """Print the comparison."""
    print("microseconds for a pair, best of", ROUNDS)
    print(f"{'arms':>5} {'pairs':>7} {'agent':>8} {'river':>8} {'agent/river':>12}")
    for arms in (2, 5, 10):
        for pairs in (2_000, 60_000):
            ours, theirs = float("inf"), float("inf")
            for _ in range(ROUNDS):  # in turns, so that both see the same noise of the machine
                ours = min(ours, agent_pairs(arms, pairs))
                theirs = min(theirs, river_pairs(arms, pairs))
            print(f"{arms:5} {pairs:7} {ours / pairs * 1e6:8.2f} {theirs / pairs * 1e6:8.2f} {ours / theirs:12.2f}")
    for singly in (True, False):
        rate = 5_000 / best(lambda singly=singly: durable_pairs(50, singly))  # type: ignore[misc]
        print(f"durable, asked {'one by one' if singly else 'in hundreds'}: {rate:,.0f} pairs per second")


if __name__ == "__main__":
    main()
