"""Regret of the contextual policies over budgets and over time, on one instance where every bound holds.

Prints, in Markdown, mean regret with its standard error, and draws contextual-regret.png: the table and the picture of
docs/contextual.md come from here.

    python benchmarks/contextual_regret.py [--horizon 10000] [--runs 10] [--processes 2] [--out demo-output]
"""

from __future__ import annotations

import argparse
import math
import time
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes

import private_bandits as pb
from private_bandits.budget import Budget
from private_bandits.policies import Policy

mpl.use("agg")
from matplotlib import pyplot as plt

ARMS = 10
WORLD = pb.Contextual(dimension=3, arms=ARMS, theta=[0.6, 0.48, 0.64])
RHOS = (0.1, 1.0, 10.0, 100.0, math.inf)
IN_TIME = 1.0
"""The rho of the right panel."""
STYLES = {  # colours that the colour-blind can tell apart; broken lines where contexts are private too
    "AdaC-OFUL": ("#0072B2", "-", "o"),
    "AdaC-OFUL, paper": ("#56B4E9", "-", "o"),
    "LinPriv": ("#E69F00", "-", "s"),
    "LinPriv shared": ("#009E73", "-", "^"),
    "AdaC-OFUL-private": ("#0072B2", "--", "o"),
    "Shariff-Sheffet": ("#D55E00", "--", "v"),
}


def policies(budget: Budget, horizon: int) -> dict[str, Policy[Any]]:
    """All of them with the parameters that they have by themselves."""
    d = WORLD.dimension
    return {
        "AdaC-OFUL": pb.AdaCOFUL(d, budget, horizon=horizon),
        "AdaC-OFUL, paper": pb.AdaCOFUL(d, budget, horizon=horizon, variant="paper"),
        "LinPriv": pb.LinPriv(d, budget, arms=ARMS, horizon=horizon),
        "LinPriv shared": pb.LinPrivShared(d, budget, horizon=horizon),
        "AdaC-OFUL-private": pb.AdaCOFULPrivate(d, budget, horizon=horizon),
        "Shariff-Sheffet": pb.ShariffSheffet(d, budget, horizon=horizon),
    }


def guessing(horizon: int) -> float:
    """Regret of choosing at random."""
    chance = np.random.default_rng(0)
    means = np.array([WORLD.draw_actions(chance) @ np.array(WORLD.theta) for _ in range(20_000)])
    return float((means.max(axis=1) - means.mean(axis=1)).mean()) * horizon


def table(found: dict[float, pb.Simulation]) -> None:
    """Print means and standard errors."""
    print("| policy | " + " | ".join("no privacy" if math.isinf(r) else f"rho = {r:g}" for r in found) + " |")
    print("|---|" + "---:|" * len(found))
    for name in STYLES:
        rows = [row for result in found.values() for row in result.summary() if row["name"] == name]
        cells = [f"{row['regret_mean']:,.0f} ± {row['regret_stderr']:,.1f}" for row in rows]
        print(f"| {name} | " + " | ".join(cells) + " |")


def draw_budgets(axes: Axes, found: dict[float, pb.Simulation], random: float) -> None:
    """Regret at the horizon over rho; the twins without privacy at the right."""
    places = np.arange(len(found))
    for name, (colour, line, marker) in STYLES.items():
        rows = [row for result in found.values() for row in result.summary() if row["name"] == name]
        means, errors = [row["regret_mean"] for row in rows], [row["regret_stderr"] for row in rows]
        axes.errorbar(places[:-1], means[:-1], errors[:-1], color=colour, ls=line, marker=marker, ms=6, capsize=3)
        axes.errorbar(places[-1:], means[-1:], errors[-1:], color=colour, marker=marker, ms=6, capsize=3)
    axes.axhline(random, color="black", lw=0.8, ls=":")
    axes.annotate("at random", (places[-1], random), (0, 4), textcoords="offset points", ha="right", fontsize=9)
    axes.set_xticks(places, ["no\nprivacy" if math.isinf(rho) else f"{rho:g}" for rho in found])
    axes.set(xlabel="rho", ylabel="regret at the horizon", xlim=(-0.3, len(found) - 0.7))
    axes.set_ylim(0)


def draw_time(axes: Axes, result: pb.Simulation, random: float) -> None:
    """Regret over time, with one standard error to each side."""
    steps = result.checkpoints
    for name, (colour, line, _) in STYLES.items():
        curves = result.curves[name]
        mean, error = curves.mean(axis=0), curves.std(axis=0, ddof=1) / math.sqrt(result.runs)
        axes.fill_between(steps, mean - error, mean + error, color=colour, alpha=0.25, lw=0)
        axes.plot(steps, mean, color=colour, ls=line, label=name)
    axes.plot(steps, random * steps / result.horizon, color="black", lw=0.8, ls=":", label="at random")
    axes.set(xlabel="step", ylabel=f"regret, rho = {IN_TIME:g}", xlim=(0, result.horizon), ylim=(0, 1.1 * random))


def draw(path: Path, found: dict[float, pb.Simulation], random: float) -> None:
    """Both panels."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.8), layout="constrained")
    draw_budgets(left, found, random)
    draw_time(right, found[IN_TIME], random)
    result = found[IN_TIME]
    left.set_title(f"{result.horizon:,} steps, {result.runs} runs, ± one standard error", loc="left", fontsize=10)
    right.set_title("Over time", loc="left", fontsize=10)
    for axes in (left, right):
        axes.grid(alpha=0.25)
    figure.legend(*right.get_legend_handles_labels(), loc="outside lower center", ncols=6, frameon=False)
    figure.savefig(path, dpi=90, metadata={"Software": None})
    plt.close(figure)


def main() -> None:
    """Simulate, print, draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--horizon", type=int, default=10**4)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("demo-output"))
    arguments = parser.parse_args()
    started = time.perf_counter()
    found = {}
    for rho in RHOS:
        budget: Budget = pb.NoPrivacy() if math.isinf(rho) else pb.zCDP(rho)
        group = policies(budget, arguments.horizon)
        found[rho] = pb.simulate(group, WORLD, arguments.horizon, arguments.runs, processes=arguments.processes)
    print(f"Mean regret ± standard error, {arguments.horizon:,} steps, {arguments.runs} runs\n")
    table(found)
    random = guessing(arguments.horizon)
    print(f"\nAt random: {random:,.0f}. {time.perf_counter() - started:.0f} seconds")
    arguments.out.mkdir(parents=True, exist_ok=True)
    draw(arguments.out / "contextual-regret.png", found, random)


if __name__ == "__main__":
    main()
