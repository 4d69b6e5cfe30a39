"""The policies for finite arms at equal budget: regret of each, with standard errors, on three instances.

Prints Markdown. Policies with Gaussian noise run at rho, those that keep pure DP alone at epsilon = sqrt(2 rho), which
implies it; DP-UCB, which has both, runs with both. Every row states its budget. rho = inf: no privacy. Widths are as
published, but for the noise of DP-UCB (policies/tree_ucb.py): its sqrt(2 log t/n) is that of AdaC-UCB at beta = 4.
Then the policies for pure DP alone, with the tails of their regret, in many runs of 10^7 steps.

    python benchmarks/rivals.py [--horizon 1000000] [--runs 20] [--seed 0]
"""

from __future__ import annotations

import argparse
import math
import time
from typing import Any

import numpy as np

import private_bandits as pb
from private_bandits.budget import equal_budget
from private_bandits.environments import FiniteEnvironment
from private_bandits.policies import Policy
from private_bandits.theory import reference_regret

RHOS = (0.1, 1.0, math.inf)
TAIL_RHOS = (0.001, 0.01, 0.1, 1.0, 10.0)
TAIL_RUNS = 2000
BETA = 1.0
"""Of the optimism of AdaC-UCB and AdaP-UCB, as in the paper's experiment."""
INSTANCES: dict[str, FiniteEnvironment] = {
    "The paper's: Bernoulli 0.75, 0.625, 0.5, 0.375, 0.25": pb.Bernoulli([0.75, 0.625, 0.5, 0.375, 0.25]),
    "Nearly tied: Bernoulli 0.5, 0.49, 0.48, 0.47, 0.46": pb.Bernoulli([0.5, 0.49, 0.48, 0.47, 0.46]),
    "Gaussian: N(m, 1), m = 0.5, 0.25, 0, -0.25, -0.5, declared range [-1, 1], which they leave": pb.Linear(
        np.eye(5), theta=[0.5, 0.25, 0.0, -0.25, -0.5], noise="gaussian"
    ),
}


def policies(rho: float, arms: int, horizon: int) -> dict[str, Policy[Any]]:
    """All of them at the strength of rho-zCDP."""
    budget = pb.NoPrivacy() if math.isinf(rho) else pb.zCDP(rho)
    pure = equal_budget(budget, ["PureDP"])
    found: dict[str, Policy[Any]] = {
        "AdaC-IMED": pb.AdaCIMED(arms, budget),
        "AdaC-UCB": pb.AdaCUCB(arms, budget, beta=BETA),
        "AdaP-UCB": pb.AdaPUCB(arms, pure, beta=BETA),
        "DP-IMED": pb.DPIMED(arms, pure),
        "DP-KLUCB": pb.DPKLUCB(arms, pure),
        "DP-SE": pb.DPSE(arms, pure, horizon=horizon),
        "DP-UCB": pb.TreeUCB(arms, budget, horizon=horizon),
    }
    if budget != pure:
        found["DP-UCB, Laplace"] = pb.TreeUCB(arms, pure, horizon=horizon)
    return found


def print_tails(seed: int) -> None:
    """Mean, 99% quantile and largest regret of policies for pure DP, and the asymptotic reference for epsilon."""
    world = pb.Bernoulli([0.75, 0.625, 0.5, 0.375, 0.25])
    print(f"\nPure DP, 10^7 steps, {TAIL_RUNS:,} runs: mean, 99% quantile, largest\n")
    print("| rho | DP-KLUCB | DP-IMED | AdaP-UCB, beta = 1 | reference |\n|---:|---:|---:|---:|---:|")
    for rho in TAIL_RHOS:
        pure = pb.PureDP(math.sqrt(2 * rho))
        made = {"k": pb.DPKLUCB(5, pure), "i": pb.DPIMED(5, pure), "a": pb.AdaPUCB(5, pure, beta=BETA)}
        rows = pb.simulate(made, world, 10**7, TAIL_RUNS, seed, progress=False).summary()
        cells = [f"{row['regret_mean']:,.0f}, {row['regret_p99']:,.0f}, {row['regret_max']:,.0f}" for row in rows]
        reference = reference_regret(world.means, 10**7, pure).value
        print(f"| {rho:g} | {' | '.join(cells)} | {reference:,.0f} |", flush=True)


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--horizon", type=lambda text: int(float(text)), default=10**6)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    began = time.perf_counter()
    print(f"Mean regret after {options.horizon:,} steps, {options.runs} runs, ± standard error; beta = {BETA:g}.")
    for title, environment in INSTANCES.items():
        print(f"\n{title}\n\n| rho | policy | budget | regret |\n|---|---|---|---|")
        for rho in RHOS:
            made = policies(rho, len(environment.means), options.horizon)
            result = pb.simulate(made, environment, options.horizon, options.runs, options.seed, progress=False)
            for row in result.summary():
                error = row["regret_stderr"] or 0.0
                regret = f"{row['regret_mean']:,.0f} ± {error:,.0f}"
                print(f"| {rho:g} | {row['name']} | {row['budget']} | {regret} |", flush=True)
    print_tails(options.seed)
    print(f"\n{time.perf_counter() - began:.0f} seconds.")


if __name__ == "__main__":
    main()
