"""How often confidence widths really fail, beside what is promised. The table of docs/theory.md comes from here.

Three widths: AdaC-UCB's index (pure DP: AdaP-UCB's), a phase of AdaC-GOPE, and AdaC-OFUL's ellipsoid over whole runs.

    python benchmarks/width_coverage.py [--runs 100000] [--ellipsoids 400] [--steps 1000] [--seed 0]
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterator

import numpy as np

import private_bandits as pb
from private_bandits.budget import Budget
from private_bandits.theory import Coverage, ellipsoid_coverage, index_coverage, phase_coverage, phase_width

RHOS = (0.001, 0.1, math.inf)
FAILURE = 0.05


def budget(rho: float) -> Budget:
    """zCDP, or none."""
    return pb.NoPrivacy() if math.isinf(rho) else pb.zCDP(rho)


def label(level: Budget) -> str:
    """As a cell of the table."""
    return "none" if isinstance(level, pb.NoPrivacy) else f"{level}"


def indices(runs: int, seed: int) -> Iterator[tuple[str, str, Coverage]]:
    """Fair coins, whose mean strays most."""
    for level in [*(budget(rho) for rho in RHOS), pb.PureDP(0.05), pb.PureDP(1.0)]:
        name = "AdaP-UCB" if isinstance(level, pb.PureDP) else "AdaC-UCB"
        for count in (1, 32):
            yield f"{name}, index, n = {count}", label(level), index_coverage(0.5, count, level, FAILURE, runs, seed)


def phases(runs: int, seed: int) -> Iterator[tuple[str, str, Coverage]]:
    """Ten random directions in R^3, and a short parameter."""
    drawn = np.random.default_rng(0).normal(size=(11, 3))
    drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
    world = pb.Linear(drawn[:10], 0.1 * drawn[10])  # means near 0, where rewards of +1 and -1 stray most
    for rho in RHOS:
        policy = pb.AdaCGOPE(world.actions, budget(rho), delta=2 * FAILURE, variant="paper")
        width = phase_width(policy)
        name = f"AdaC-GOPE, phase 1 (reaches {width.reached:.3f} of {width.aimed:g})"
        yield name, label(budget(rho)), phase_coverage(policy, world, 1, runs, seed)


def ellipsoids(runs: int, steps: int, seed: int) -> Iterator[tuple[str, str, Coverage]]:
    """Ten offers in R^3 at each step, as in the paper's experiment but within bounds."""
    world = pb.Contextual(3, 10, [0.6, 0.48, 0.63])
    for rho in RHOS:
        policy = pb.AdaCOFUL(
            dimension=3, budget=budget(rho), horizon=steps, delta=FAILURE, regulariser=0.1, variant="paper"
        )
        yield (
            f"AdaC-OFUL, all releases of {steps:,} steps",
            label(budget(rho)),
            ellipsoid_coverage(policy, world, steps, runs, seed),
        )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10**5)
    parser.add_argument("--ellipsoids", type=int, default=400, help="runs of AdaC-OFUL")
    parser.add_argument("--steps", type=int, default=1000, help="of a run of AdaC-OFUL")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    started = time.perf_counter()
    print("| width | budget | promised to fail, at most | failed | of runs |")
    print("|---|---|---:|---:|---:|")
    for part in (
        indices(given.runs, given.seed),
        phases(given.runs, given.seed),
        ellipsoids(given.ellipsoids, given.steps, given.seed),
    ):
        for name, level, measured in part:
            print(
                f"| {name} | {level} | {measured.promised:.3g} | {measured.rate:.4f} | {measured.runs:,} |", flush=True
            )
    print(f"\n{time.perf_counter() - started:.0f} seconds")


if __name__ == "__main__":
    main()
