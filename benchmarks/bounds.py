"""Regret beside its bounds: upper ones on the paper's instances, lower ones on the instances of their proofs.

The tables of docs/theory.md come from here.

    python benchmarks/bounds.py [--runs 100] [--horizon 10000000] [--seed 0]
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

import private_bandits as pb
from private_bandits import theory
from private_bandits.budget import Budget
from private_bandits.policies import Policy

MEANS = (0.75, 0.625, 0.5, 0.375, 0.25)
ARMS = 4
"""Of the lower bounds' instances."""


def budget(rho: float) -> Budget:
    """zCDP, or none."""
    return pb.NoPrivacy() if math.isinf(rho) else pb.zCDP(rho)


def finite(horizon: int, runs: int, seed: int) -> Iterator[str]:
    """AdaC-UCB on the paper's five arms."""
    gaps = [max(MEANS) - mean for mean in MEANS]
    for rho in (0.01, 1.0, math.inf):
        policy = pb.AdaCUCB(5, budget(rho), variant="paper")
        regret = pb.simulate({"p": policy}, pb.Bernoulli(MEANS), horizon, runs, seed).final["p"].mean()
        bounds = theory.adac_ucb_regret(gaps, horizon, budget(rho)), theory.adac_ucb_minimax(5, horizon, budget(rho))
        yield f"AdaC-UCB | {rho:g} | {regret:,.0f} | {bounds[0].value:,.0f} | {bounds[1].value:,.0f}"


def linear(horizon: int, runs: int, seed: int) -> Iterator[str]:
    """AdaC-GOPE on ten random directions in R^3."""
    drawn = np.random.default_rng(0).normal(size=(11, 3))
    drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
    world = pb.Linear(drawn[:10], drawn[10])
    gaps = (world.means.max() - world.means).tolist()
    for rho in (0.001, 1.0, math.inf):
        policy = pb.AdaCGOPE(world.actions, budget(rho), variant="paper")
        regret = pb.simulate({"p": policy}, world, horizon, runs, seed).final["p"].mean()
        size = (3, 10, horizon, budget(rho))
        bounds = theory.adac_gope_regret(*size, gaps=gaps), theory.adac_gope_regret(*size)
        yield f"AdaC-GOPE | {rho:g} | {regret:,.0f} | {bounds[0].value:,.0f} | {bounds[1].value:,.0f}"


def contextual(horizon: int, runs: int, seed: int) -> Iterator[str]:
    """AdaC-OFUL on offers like the paper's, within bounds; a tenth of the steps and a twentieth of the runs."""
    horizon, runs = max(10, horizon // 10), max(1, runs // 20)
    world = pb.Contextual(3, 10, [0.6, 0.48, 0.63])
    policies = {
        rho: pb.AdaCOFUL(dimension=3, budget=budget(rho), horizon=horizon, regulariser=1.0, variant="paper")
        for rho in (1.0, 100.0, math.inf)
    }
    result = pb.simulate({str(rho): policy for rho, policy in policies.items()}, world, horizon, runs, seed)
    for rho, policy in policies.items():
        bound = theory.adac_oful_regret(3, horizon, policy.budget, regulariser=1.0).value
        yield f"AdaC-OFUL, lambda = 1 | {rho:g} | {result.final[str(rho)].mean():,.0f} | - | {bound:,.0f}"


def lower(horizon: int, runs: int, seed: int) -> Iterator[str]:
    """The largest mean regret over the instances of the scanned gap; a hundredth of the steps."""
    horizon = max(10, horizon // 100)
    for rho in (1e-9, 1e-7, 1e-5, 1.0):
        value, gap = theory.finite_lower_scan(ARMS, horizon, rho)
        pure = pb.PureDP(math.sqrt(2 * rho))
        policies: dict[str, Policy[Any]] = {
            "AdaC-UCB": pb.AdaCUCB(ARMS, pb.zCDP(rho), beta=1, variant="paper"),
            "AdaP-UCB": pb.AdaPUCB(ARMS, pure, beta=1),
            "DP-SE": pb.DPSE(ARMS, pure),
        }
        worlds = theory.finite_instances(ARMS, gap)
        found = [pb.simulate(policies, world, horizon, runs, seed + i).final for i, world in enumerate(worlds)]
        worst = [max(float(final[name].mean()) for final in found) for name in policies]
        cells = " | ".join(f"{regret:,.0f}" for regret in worst)
        yield f"{rho:g} | {theory.finite_lower(ARMS, horizon, rho).value:,.0f} | {value:,.0f} | {gap:.2g} | {cells}"


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--horizon", type=int, default=10**7)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    size, started = (given.horizon, given.runs, given.seed), time.perf_counter()
    print("| policy | rho | mean regret | bound for these gaps | for any |\n|---|---:|---:|---:|---:|")
    for part in (finite, linear, contextual):
        for row in part(*size):
            print(f"| {row} |", flush=True)
    print("\n| rho | finite_lower | finite_lower_scan | gap | AdaC-UCB, beta = 1 | AdaP-UCB | DP-SE |")
    print("|---:|---:|---:|---:|---:|---:|---:|")
    for row in lower(*size):
        print(f"| {row} |", flush=True)
    print(f"\n{time.perf_counter() - started:.0f} seconds")


if __name__ == "__main__":
    main()
