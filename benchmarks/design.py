"""Speed and memory of an optimal design beside a plain Frank-Wolfe loop, measured in one run.

python benchmarks/design.py
"""

from __future__ import annotations

import time
import tracemalloc

import numpy as np

from private_bandits.arrays import Floats
from private_bandits.design.optimal import optimal_design, small_design

ACTIONS, DIMENSION, TOLERANCE = 10_000, 50, 1e-3
PATIENCE = 30.0
ROUNDS = 3


def gaussian(actions: int, dimension: int) -> Floats:
    """Actions of different lengths: few of them matter."""
    return np.random.default_rng(0).normal(size=(actions, dimension))


def sphere(actions: int, dimension: int) -> Floats:
    """Actions of one length: nearly all are equally good, the hard case."""
    rows = gaussian(actions, dimension)
    units: Floats = rows / np.linalg.norm(rows, axis=1)[:, None]
    return units


def frank_wolfe(rows: Floats, tol: float) -> tuple[float, float, int]:
    """Seconds of the loop as people write it first, from uniform weights; the excess leverage reached; its support."""
    started = time.perf_counter()
    d = rows.shape[1]
    weights = np.full(len(rows), 1 / len(rows))
    inverse = np.linalg.inv(rows.T @ (rows * weights[:, None]))
    leverage = ((rows @ inverse) * rows).sum(axis=1)
    while True:
        worst = int(leverage.argmax())
        largest = leverage[worst]
        spent = time.perf_counter() - started
        if largest <= (1 + tol) * d or spent > PATIENCE:
            return spent, largest / d - 1, int(np.count_nonzero(weights))
        step = (largest / d - 1) / (largest - 1)
        weights *= 1 - step
        weights[worst] += step
        ray = inverse @ rows[worst]
        scale = step / (1 - step + step * largest)
        inverse = (inverse - scale * np.outer(ray, ray)) / (1 - step)
        leverage = (leverage - scale * (rows @ ray) ** 2) / (1 - step)


def seconds(rows: Floats, tol: float) -> float:
    """The least of several rounds."""
    best = float("inf")
    for _ in range(ROUNDS):
        started = time.perf_counter()
        optimal_design(rows, tol)
        best = min(best, time.perf_counter() - started)
    return best


def memory(rows: Floats, tol: float) -> float:
    """Peak of what a design allocates, in MiB; the actions themselves are not counted."""
    tracemalloc.start()
    optimal_design(rows, tol)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 2**20


def main() -> None:
    """Print the comparison."""
    print(
        f"{'actions':22} {'tol':>7} {'seconds':>8} {'MiB':>6} {'support':>8} {'Frank-Wolfe':>22} {'support':>8} ratio"
    )
    for kind in (gaussian, sphere):
        for actions, dimension, tol in ((1_000, 10, 1e-3), (ACTIONS, DIMENSION, 0.1), (ACTIONS, DIMENSION, TOLERANCE)):
            rows = kind(actions, dimension)
            ours = seconds(rows, tol)
            theirs, excess, dense = frank_wolfe(rows, tol)
            ended = excess <= tol
            loop = f"{theirs:.2f} s" if ended else f"{theirs:.0f} s, only to {excess:.4f}"
            ratio = f"{'' if ended else '> '}{theirs / ours:,.1f}"
            name = f"{kind.__name__} {actions:,} x {dimension}"
            support = len(optimal_design(rows, tol).support)
            print(f"{name:22} {tol:7} {ours:8.3f} {memory(rows, tol):6.1f} {support:8} {loop:>22} {dense:8} {ratio}")
    rows = gaussian(ACTIONS, DIMENSION)
    started = time.perf_counter()
    small = small_design(rows)
    spent = time.perf_counter() - started
    print(f"small design: {spent:.3f} s, {len(small.support)} actions, leverage {small.leverage / small.rank:.2f} rank")


if __name__ == "__main__":
    main()
