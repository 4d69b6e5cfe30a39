"""What a budget means, and what it costs: the picture of docs/choosing.md, choosing-odds.png.

How often the best attacker guesses a reward right, and mean regret with its standard error on the five-armed instance
of the paper, over rho.

    python benchmarks/choosing.py [--horizon 1000000] [--runs 100] [--out demo-output]
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from statistics import NormalDist

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes

import private_bandits as pb

mpl.use("agg")
from matplotlib import pyplot as plt

RHOS = (0.001, 0.01, 0.1, 1.0, 10.0)
MEANS = (0.75, 0.625, 0.5, 0.375, 0.25)
NORMAL = NormalDist()
BLUE, ORANGE, GREEN = "#0072B2", "#D55E00", "#009E73"


def guess(rho: float) -> float:
    """How often the best attacker guesses a reward right who thought it a coin: N(0, 1) against N(sqrt(2 rho), 1)."""
    return NORMAL.cdf(math.sqrt(rho / 2))


def regret(horizon: int, runs: int) -> pb.Simulation:
    """AdaC-IMED with each rho, and without privacy."""
    budgets = {f"{rho:g}": pb.zCDP(rho) for rho in RHOS} | {"no privacy": pb.NoPrivacy()}
    policies = {name: pb.AdaCIMED(len(MEANS), budget) for name, budget in budgets.items()}
    return pb.simulate(policies, pb.Bernoulli(MEANS), horizon=horizon, runs=runs, seed=0)


def draw_worlds(axes: Axes, rho: float) -> None:
    """What is published in the two worlds that an attacker tries to tell apart."""
    shift = math.sqrt(2 * rho)
    x = np.linspace(-3.5, 3.5 + shift, 400)
    for centre, colour, name in ((0.0, BLUE, "the reward was 0"), (shift, ORANGE, "the reward was 1")):
        axes.fill_between(x, np.exp(-((x - centre) ** 2) / 2), color=colour, alpha=0.35, lw=0, label=name)
    axes.axvline(shift / 2, color="black", lw=0.8, ls=":")
    axes.set_title(f"rho = {rho:g}: guessed right {guess(rho):.0%} of the time", loc="left", fontsize=10)
    axes.set_yticks([])
    axes.set_ylim(0)
    axes.set_xlabel("released sum, in standard deviations of its noise")


def draw_odds(axes: Axes, result: pb.Simulation) -> None:
    """Guessing and regret over rho."""
    rhos = np.geomspace(RHOS[0], RHOS[-1], 200)
    axes.plot(rhos, [guess(rho) for rho in rhos], color=GREEN)
    axes.plot(RHOS, [guess(rho) for rho in RHOS], "o", color=GREEN)
    axes.set(xscale="log", xlabel="rho", ylim=(0.48, 1.02))
    axes.set_ylabel("guessed right (0.5: a coin)", color=GREEN)
    rows = result.summary()
    right = axes.twinx()
    means, errors = [row["regret_mean"] for row in rows], [row["regret_stderr"] for row in rows]
    right.errorbar(RHOS, means[:-1], errors[:-1], color=ORANGE, ls="--", marker="s", capsize=3)
    right.axhline(means[-1], color=ORANGE, lw=0.8, ls=":")
    right.annotate("no privacy", (RHOS[-1], means[-1]), (0, 4), textcoords="offset points", ha="right", fontsize=8)
    right.set_ylabel(f"regret in {result.horizon:,} steps", color=ORANGE)
    right.set_ylim(0)
    axes.set_title("What it protects, what it costs", loc="left", fontsize=10)


def draw(path: Path, result: pb.Simulation) -> None:
    """Two worlds at two budgets, and both curves."""
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(13, 3.8), layout="constrained")
    draw_worlds(left, 0.1)
    draw_worlds(middle, 10.0)
    left.legend(frameon=False, fontsize=8, loc="upper left")
    draw_odds(right, result)
    figure.savefig(path, dpi=90, metadata={"Software": None})
    plt.close(figure)


def main() -> None:
    """Simulate and draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--horizon", type=int, default=10**6)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--out", type=Path, default=Path("demo-output"))
    arguments = parser.parse_args()
    result = regret(arguments.horizon, arguments.runs)
    arguments.out.mkdir(parents=True, exist_ok=True)
    draw(arguments.out / "choosing-odds.png", result)
    print(arguments.out / "choosing-odds.png")


if __name__ == "__main__":
    main()
