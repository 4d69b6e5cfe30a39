"""Live speed with contexts: ask + tell of an agent beside a step of LinUCB in plain numpy, in turns in one run.

python benchmarks/live_contextual.py
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

import private_bandits as pb

Floats = NDArray[np.float64]

ROUNDS = 7
SHAPES = ((10, 3), (50, 10), (10, 200))
DRAWN = 500  # different contexts, used over and over


def contexts(arms: int, dimension: int) -> Floats:
    """Tables of actions inside the unit ball."""
    rows = np.random.default_rng(0).normal(dimension**-0.5, 0.3, size=(DRAWN, arms, dimension))
    return np.asarray(rows / np.maximum(1.0, np.linalg.norm(rows, axis=2, keepdims=True)))


def agent_steps(tables: Floats, steps: int) -> float:
    """Seconds of a new agent in memory, its releases with exact noise included."""
    agent = pb.Agent(pb.AdaCOFUL(dimension=tables.shape[2], budget=pb.zCDP(0.1), horizon=10**6))
    started = time.perf_counter()
    for i in range(steps):
        decision = agent.ask(actions=tables[i % DRAWN])
        agent.tell(decision, 1.0 if i % 3 else 0.0)
    return time.perf_counter() - started


def linucb_steps(tables: Floats, steps: int) -> float:
    """Seconds of LinUCB as it is usually written: it inverts its matrix at every step."""
    d = tables.shape[2]
    matrix, total = np.eye(d), np.zeros(d)
    started = time.perf_counter()
    for i in range(steps):
        rows = tables[i % DRAWN]
        inverse = np.linalg.inv(matrix)
        theta = inverse @ total
        index = rows @ theta + 0.5 * np.sqrt(np.einsum("ij,jk,ik->i", rows, inverse, rows))
        row = rows[int(np.argmax(index))]
        matrix += np.outer(row, row)
        total += (1.0 if i % 3 else 0.0) * row
    return time.perf_counter() - started


def fast_linucb_steps(tables: Floats, steps: int) -> float:
    """Seconds of LinUCB written for speed: Sherman and Morrison's formula keeps the inverse up to date."""
    d = tables.shape[2]
    inverse, total = np.eye(d), np.zeros(d)
    started = time.perf_counter()
    for i in range(steps):
        rows = tables[i % DRAWN]
        index = rows @ (inverse @ total) + 0.5 * np.sqrt((rows @ inverse * rows).sum(1))
        row = rows[int(index.argmax())]
        moved = inverse @ row
        inverse -= np.outer(moved, moved / (1.0 + row @ moved))
        total += (1.0 if i % 3 else 0.0) * row
    return time.perf_counter() - started


def main() -> None:
    """Print the comparison."""
    measures: list[Callable[[Floats, int], float]] = [agent_steps, linucb_steps, fast_linucb_steps]
    print("microseconds for a step, best of", ROUNDS)
    print(f"{'arms':>5} {'d':>4} {'steps':>7} {'agent':>8} {'LinUCB':>8} {'fast':>8} {'/LinUCB':>8} {'/fast':>8}")
    for arms, dimension in SHAPES:
        tables = contexts(arms, dimension)
        for steps in (2_000, 20_000) if dimension < 100 else (500, 2_000):
            least = [float("inf")] * len(measures)
            for _ in range(ROUNDS):  # in turns, so that all see the same noise of the machine
                least = [min(old, m(tables, steps) / steps * 1e6) for old, m in zip(least, measures, strict=True)]
            ours, plain, fast = least
            print(
                f"{arms:5} {dimension:4} {steps:7} {ours:8.2f} {plain:8.2f} {fast:8.2f} "
                f"{ours / plain:8.2f} {ours / fast:8.2f}"
            )


if __name__ == "__main__":
    main()
