"""The study behind `exploration`: regret and tails in the strict setting, and right recommendations on real data.

Prints, in Markdown, what AdaC-OFUL and AdaC-OFUL for private contexts make of several values of exploration,
regulariser and growth, and of noise that is counted in the direction of each action. The tables of docs/contextual.md
are from here.

    python benchmarks/exploration.py [--runs 20] [--people 10000] [--only public,private] [--processes 2]
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import private_bandits as pb
from private_bandits.budget import Budget
from private_bandits.experiments.run.real_data import bundled_table
from private_bandits.policies.adac_oful import OFULState
from private_bandits.policies.base import Offer

WORLDS = {
    "d = 3": (pb.Contextual(3, 10, [0.6, 0.48, 0.64]), 10**5),
    "d = 10": (pb.Contextual(10, 10, [10**-0.5] * 10), 10**5),
}
RHOS = (0.01, 0.1, 1.0)
TABLES = {
    "public": (("breast cancer", 0.1), ("wine", 0.1), ("digits", 1.0), ("digits", math.inf)),
    "private": (("breast cancer", 0.1), ("breast cancer", 1.0), ("wine", 1.0), ("digits", 10.0)),
}
COMPONENTS = {"breast cancer": 5, "wine": 5, "digits": 8}
Make = Callable[..., Any]
"""A policy, of dimension, budget and horizon."""


@dataclass(frozen=True)
class InDirections(pb.AdaCOFUL):
    """Noise is counted in the direction of each action, v ||V^-1 a||^2, and added in variance to that of rewards."""

    def choose(self, state: OFULState, offered: Offer, step: int) -> int:
        """The largest <theta, a> + exploration sqrt(s^2 ||a||^2 in V^-1 + v ||V^-1 a||^2)."""
        rows = offered.astype(float)
        above = rows.dot(state.whitener)
        around = above.dot(state.whitener.T) / self.unit
        spread = state.high - state.low
        noise = self.budget.variance_factor * state.sums.noise * (spread * self.context_norm) ** 2
        variance = spread**2 / 4 * np.vecdot(above, above) + noise * np.vecdot(around, around)
        return int((rows.dot(state.slope) + self.exploration * np.sqrt(variance)).argmax())


def budget_of(rho: float) -> Budget:
    """Infinite: none."""
    return pb.NoPrivacy() if math.isinf(rho) else pb.zCDP(rho)


def with_options(cls: Any, **options: Any) -> Make:
    """A policy with some options of its own."""
    return lambda dimension, budget, horizon: cls(dimension, budget, horizon=horizon, **options)


def noisy_regulariser(size: float) -> Make:
    """AdaC-OFUL whose lambda is so many deviations of the noise."""

    def make(dimension: int, budget: Budget, horizon: int) -> Any:
        noise = size * math.sqrt(budget.variance_factor)
        return pb.AdaCOFUL(dimension, budget, horizon=horizon, regulariser=max(0.1, noise))

    return make


SETTINGS: dict[str, dict[str, Make]] = {
    "public": {
        "default": with_options(pb.AdaCOFUL),
        "exploration 1": with_options(pb.AdaCOFUL, exploration=1),
        "exploration 0.25": with_options(pb.AdaCOFUL, exploration=0.25),
        "exploration 0.05": with_options(pb.AdaCOFUL, exploration=0.05),
        "exploration 0.02": with_options(pb.AdaCOFUL, exploration=0.02),
        "regulariser 0.1": with_options(pb.AdaCOFUL, regulariser=0.1),
        "regulariser 1 deviation": noisy_regulariser(1.0),
        "regulariser 4 deviations": noisy_regulariser(4.0),
        "growth 0.5": with_options(pb.AdaCOFUL, growth=0.5),
        "growth 3": with_options(pb.AdaCOFUL, growth=3.0),
        "in directions, 1": with_options(InDirections, exploration=1.0),
        "in directions, 0.5": with_options(InDirections, exploration=0.5),
    },
    "private": {
        "default": with_options(pb.AdaCOFULPrivate),
        "as published": with_options(pb.AdaCOFULPrivate, variant="paper"),
        "as published, exploration 0.05": with_options(pb.AdaCOFULPrivate, variant="paper", exploration=0.05),
        "exploration 1": with_options(pb.AdaCOFULPrivate, exploration=1),
        "exploration 0.1": with_options(pb.AdaCOFULPrivate, exploration=0.1),
        "exploration 0.02": with_options(pb.AdaCOFULPrivate, exploration=0.02),
        "growth 0.25": with_options(pb.AdaCOFULPrivate, growth=0.25),
        "growth 1": with_options(pb.AdaCOFULPrivate, growth=1.0),
        "matrix_share 0.35": with_options(pb.AdaCOFULPrivate, matrix_share=0.35),
        "matrix_share 0.65": with_options(pb.AdaCOFULPrivate, matrix_share=0.65),
    },
}


def regrets(make: Make, runs: int, processes: int) -> list[str]:
    """Mean regret, and in brackets the largest of the runs. Without a fast engine, nothing."""
    cells = []
    for world, horizon in WORLDS.values():
        for rho in RHOS:
            policy = make(world.dimension, pb.zCDP(rho), horizon)
            if isinstance(policy, InDirections):
                cells.append("")
                continue
            options: dict[str, Any] = {"runs": runs, "seed": 3, "processes": processes, "progress": False}
            final = pb.simulate({"": policy}, world, horizon, **options).final[""]
            cells.append(f"{final.mean():,.0f} ({final.max():,.0f})")
    return cells


def shares(kind: str, make: Make, people: int, processes: int) -> list[str]:
    """Right recommendations, in per cent."""
    cells = []
    for name, rho in TABLES[kind]:
        world = bundled_table(name, COMPONENTS[name])
        policy = make(world.dimension, budget_of(rho), people)
        options: dict[str, Any] = {"runs": 4, "seed": 3, "processes": processes, "progress": False}
        found = pb.simulate({"": policy}, world, people, **options).share_right()[""]
        cells.append(f"{100 * found[:, -1].mean():.1f}")
    return cells


def main() -> None:
    """Parse, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--people", type=int, default=10_000)
    parser.add_argument("--only", default="public,private")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    for kind in options.only.split(","):
        worlds = [f"{name}, rho = {rho:g}" for name in WORLDS for rho in RHOS]
        tables = [f"{name}, {'none' if math.isinf(rho) else f'rho = {rho:g}'}" for name, rho in TABLES[kind]]
        print(f"| {' | '.join([f'{kind} contexts', *worlds, *tables])} |")
        print(f"|---|{'---:|' * (len(worlds) + len(tables))}")
        for name, make in SETTINGS[kind].items():
            cells = [
                *regrets(make, options.runs, options.processes),
                *shares(kind, make, options.people, options.processes),
            ]
            print(f"| {name} | {' | '.join(cells)} |", flush=True)
        print()


if __name__ == "__main__":
    main()
