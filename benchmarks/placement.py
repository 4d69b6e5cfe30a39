"""Where to put the noise: regret of phased elimination with the noise in different places, and of the small designs.

Prints, in Markdown, mean regret with its standard error for three instances, several budgets and three kinds of phases
(paper: Eq. 4; own: as long as the policy's own noise needs; tight: the variant of AdaC-GOPE), and which phases were too
short for the noise of their policy. The tables of docs/linear.md come from here.

    python benchmarks/placement.py [--horizon 10000000] [--runs 100] [--seed 0]
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterator
from typing import Literal

import numpy as np

import private_bandits as pb
from private_bandits.budget import Budget
from private_bandits.policies.fit import Fit
from private_bandits.policies.phased_elimination import PhasedElimination
from private_bandits.simulation.linear import PhasedRuns

RHOS = (0.001, 0.01, 0.1, 1.0, math.inf)
LENGTHS: tuple[Literal["paper", "own"], ...] = ("paper", "own")
PLACEMENTS: dict[str, type[pb.AdaCGOPE]] = {
    "between": pb.AdaCGOPE,
    "beginning": pb.AdaCGOPEVar,
    "end": pb.AdaCGOPEEnd,
}
Result = tuple[np.ndarray, str]


def directions(k: int, d: int, seed: int) -> pb.Linear:
    """k random directions in R^d and a parameter of length one; for 10 in R^3 the command line's own instance."""
    drawn = np.random.default_rng(seed).normal(size=(k + 1, d))
    drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
    return pb.Linear(drawn[:k], drawn[k])


def ellipsoid(k: int, d: int, seed: int) -> pb.Linear:
    """k points in an ellipsoid with axes from 1 to 1/8: features of unlike size, actions of unlike length."""
    chance = np.random.default_rng(seed)
    drawn = chance.normal(size=(k, d))
    drawn *= (chance.uniform(0.3, 1, k) / np.linalg.norm(drawn, axis=1))[:, None]
    drawn *= np.geomspace(1, 1 / 8, d)
    theta = np.geomspace(1 / 8, 1, d)
    return pb.Linear(drawn, theta / np.abs(drawn @ theta).max() * 0.9)


INSTANCES: dict[str, Callable[[int], pb.Linear]] = {
    "10 directions in R^3": lambda seed: directions(10, 3, seed),
    "60 directions in R^8": lambda seed: directions(60, 8, seed),
    "60 points of an ellipsoid in R^8": lambda seed: ellipsoid(60, 8, seed),
}


def budget(rho: float) -> Budget:
    """zCDP, or none."""
    return pb.NoPrivacy() if math.isinf(rho) else pb.zCDP(rho)


def reached(policy: PhasedElimination, phase: int, active: tuple[int, ...]) -> float:
    """By what factor the width that a planned phase reaches exceeds 2^-l; 1 where the phase is long enough."""
    plan = policy.plan(phase, active)
    fit = Fit.of(policy.vectors[list(plan)], np.array(list(plan.values()), float), policy.design(active).basis)
    weights = type(policy).placement(fit)
    whitened = fit.whitened(policy.vectors[list(active)])
    return policy.width(phase, whitened, fit.decoder(weights), policy.noise_sd(weights, 2.0), 2.0) / 2.0**-phase


def measure(policy: PhasedElimination, environment: pb.Linear, horizon: int, runs: int, seed: int) -> Result:
    """Regret of every run at the horizon, and the phases that were too short in some run, as "l: factor"."""
    state = PhasedRuns(policy, environment, horizon, runs, np.random.default_rng(seed))
    phase, left, short = 1, runs, {}
    while left:
        before = {id(run): run.active for run in state.runs if run.time < horizon}
        left = state.play_phase(phase)
        finished = {before[id(run)] for run in state.runs if id(run) in before and run.time < horizon}
        if policy.lead:  # its widths decide, and its phases are as long as they need
            finished.clear()
        worst = max((reached(policy, phase, a) for a in finished if policy.plan(phase, a)), default=1.0)
        if worst > 1 + 1e-9:
            short[phase] = worst
        phase += 1
    noted = ", ".join(f"phase {number}: {factor:.2f}" for number, factor in short.items())
    return state.curves(np.array([horizon]))[:, 0], noted


def rows(environment: pb.Linear) -> Iterator[tuple[str, list[PhasedElimination]]]:
    """The rows of a table: phases and policy, and one such policy for every rho."""
    actions = environment.actions
    for length in LENGTHS:
        for name, placed in PLACEMENTS.items():
            made = [placed(actions, budget(rho), phase_length=length, variant="paper") for rho in RHOS]
            yield f"{length} | {name}", list[PhasedElimination](made)
    yield "own | li-gope", [pb.LiGOPE(actions, budget(rho)) for rho in RHOS]
    pure = [pb.NoPrivacy() if math.isinf(rho) else pb.PureDP(math.sqrt(2 * rho)) for rho in RHOS]
    yield "own | hanna-gope", [pb.HannaGOPE(actions, level) for level in pure]
    yield "tight | between", [pb.AdaCGOPE(actions, budget(rho)) for rho in RHOS]


def table(environment: pb.Linear, horizon: int, runs: int) -> None:
    """Print a table, and beneath it the cells whose phases were too short."""
    print("| phases | noise | " + " | ".join("no privacy" if math.isinf(r) else f"rho = {r:g}" for r in RHOS) + " |")
    print("|---|---|" + "---:|" * len(RHOS))
    short = []
    for number, (name, policies) in enumerate(rows(environment), 1):
        cells = []
        for column, (rho, policy) in enumerate(zip(RHOS, policies, strict=True)):
            # Independent draws, but for the last column, in which the placements are one policy.
            seed = 0 if math.isinf(rho) else 100 * number + column
            regret, noted = measure(policy, environment, horizon, runs, seed)
            cells.append(f"{regret.mean():,.0f} ± {regret.std(ddof=1) / math.sqrt(runs):,.0f}")
            if noted:
                short.append(f"- {name}, rho = {rho:g}: {noted}".replace(" |", ","))
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
    if short:
        print("\nPhases too short for their noise: the largest width reached in a run, in units of 2^-l\n")
        print("\n".join(short))


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--horizon", type=int, default=10**7)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0, help="of the instances")
    arguments = parser.parse_args()
    started = time.perf_counter()
    print(f"Mean regret ± standard error, {arguments.horizon:,} steps, {arguments.runs} runs")
    for name, make in INSTANCES.items():
        environment = make(arguments.seed)
        gaps = np.sort(environment.means.max() - environment.means)
        design = pb.optimal_design(environment.actions)
        small = pb.small_design(environment.actions)
        least = design.weights[design.support].min()
        print(f"\n## {name}\n\nsmallest gap {gaps[1]:.3f}, mean gap {gaps.mean():.3f};", end=" ")
        print(f"design of {len(design.support)} actions, the least weight {least:.4f};", end=" ")
        print(f"small design of {len(small.support)} actions, leverage {small.leverage:.2f}")
        print(flush=True)
        table(environment, arguments.horizon, arguments.runs)
    print(f"\n{time.perf_counter() - started:.0f} seconds")


if __name__ == "__main__":
    main()
