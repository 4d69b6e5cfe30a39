"""Right recommendations on real data: the tables of docs/real-data.md, as Markdown.

What privacy costs on three tables that come with scikit-learn, how many people a budget asks for, at how many standard
deviations numbers are best cut, and how many steps a second are played. Minutes on two cores.

    python benchmarks/real_data.py [--people 10000] [--runs 10] [--most 100000] [--processes 2]
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn import datasets

import private_bandits as pb
from private_bandits.arrays import Floats
from private_bandits.experiments.run.experiment import Instance
from private_bandits.experiments.run.real_data import LOADERS, TABLES, bundled_table
from private_bandits.simulation.linucb import LinUCB

RHOS = {"AdaC-OFUL": (0.01, 0.1, 1.0, 10.0, math.inf), "AdaC-OFUL-private": (0.1, 1.0, 10.0, math.inf)}
KINDS = {"AdaC-OFUL": pb.AdaCOFUL, "AdaC-OFUL-private": pb.AdaCOFULPrivate}
REACHED = (0.8, 0.9)
CUTS = (0.75, 1.0, 1.5, 2.0, 3.0)
PLAIN = "LinUCB, no privacy"
RUNS_OF_PEOPLE = 3
"""Runs of the long simulations."""


def policy_of(kind: str, rho: float, world: pb.Labelled, horizon: int) -> Any:
    """As by default."""
    budget = pb.NoPrivacy() if math.isinf(rho) else pb.zCDP(rho)
    return KINDS[kind](dimension=world.dimension, budget=budget, horizon=horizon, context_norm=world.context_norm)


def all_policies(world: pb.Labelled, horizon: int) -> dict[str, Any]:
    """Both kinds of privacy at all budgets, and LinUCB."""
    found = {f"{kind}, {rho_text(rho)}": policy_of(kind, rho, world, horizon) for kind in KINDS for rho in RHOS[kind]}
    return found | {PLAIN: LinUCB(world.dimension, pb.NoPrivacy())}


def print_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """In Markdown."""
    for row in (head, ["---", *["---:"] * (len(head) - 1)], *rows):
        print(f"| {' | '.join(row)} |")
    print(flush=True)


def rho_text(rho: float) -> str:
    """Return a budget as headings name it."""
    return "no privacy" if math.isinf(rho) else f"rho = {rho:g}"


def share_text(shares: Floats) -> str:
    """Mean and standard error over runs."""
    error = f" ± {shares.std(ddof=1) / math.sqrt(len(shares)):.1%}" if len(shares) > 1 else ""
    return f"{shares.mean():.1%}{error}"


def print_shares(people: int, runs: int, processes: int) -> None:
    """Print which share of all recommendations was right."""
    print(f"Right of the first {people:,} recommendations; mean and standard error of {runs} runs.\n")
    rows: dict[str, list[str]] = {}
    for instance in TABLES:
        world = bundled_table(instance.table, instance.components)
        policies = all_policies(world, people)
        found = pb.simulate(policies, world, people, runs, checkpoints=[people], processes=processes, progress=False)
        for name, shares in found.share_right().items():
            rows.setdefault(name, []).append(share_text(shares[:, -1]))
        rows.setdefault("best fixed arm", []).append(f"{world.best_fixed_share:.1%}")
        rows.setdefault("guessing", []).append(f"{world.guessing_share:.1%}")
    print_table(["", *map(title, TABLES)], [[name, *cells] for name, cells in rows.items()])


def title(instance: Instance) -> str:
    """Return the heading of a column."""
    return f"{instance.name} (K = {instance.arms}, d = {instance.dimension})"


def people_until(steps: Floats, wrong: Floats, share: float) -> int | None:
    """How many people came until, of the people since the checkpoint before, as large a share was right; None: never.

    Once reached it has to stay, but for what chance leaves between two checkpoints.
    """
    recent = 1 - np.diff(wrong, prepend=0) / np.diff(steps, prepend=0)
    below = np.flatnonzero(recent < share)
    after = 0 if not len(below) else int(below[-1]) + 1
    return int(steps[after]) if after < len(steps) else None


def people_text(steps: Floats, curves: Floats, share: float, most: int) -> str:
    """The median over runs."""
    found = [people_until(steps, wrong, share) for wrong in curves]
    middle = float(np.median([math.inf if one is None else one for one in found]))
    return f"more than {most:,}" if math.isinf(middle) else f"{middle:,.0f}"


def long_runs(instance: Instance, most: int, processes: int) -> pb.Simulation:
    """Every policy for as long as it may take to learn."""
    points = np.unique(np.geomspace(50, most, 25).round().astype(int)).tolist()
    world = bundled_table(instance.table, instance.components)
    policies = all_policies(world, most)
    return pb.simulate(policies, world, most, RUNS_OF_PEOPLE, checkpoints=points, processes=processes, progress=False)


def people_needed(found: pb.Simulation, reached: float) -> dict[str, str]:
    """By policy, until as large a part of what LinUCB has right in the end is right."""
    steps, plain = found.checkpoints.astype(float), found.curves[PLAIN]
    last = 1 - float(np.mean(plain[:, -1] - plain[:, -2])) / (steps[-1] - steps[-2])
    return {name: people_text(steps, curves, reached * last, found.horizon) for name, curves in found.curves.items()}


def print_people(most: int, processes: int) -> None:
    """How many people each budget asks for."""
    results = [long_runs(instance, most, processes) for instance in TABLES]
    for reached in REACHED:
        print(f"People until {reached:.0%} of what LinUCB has right in the end is right; {RUNS_OF_PEOPLE} runs.\n")
        columns = [people_needed(found, reached) for found in results]
        print_table(["", *map(title, TABLES)], [[name, *(c[name] for c in columns)] for name in columns[0]])


def print_cuts(people: int, processes: int) -> None:
    """At how many standard deviations numbers are best cut."""
    print(f"Right of the first {people:,} with numbers cut at so many standard deviations; 3 runs, rho = 1.\n")
    rows = []
    for kind in KINDS:
        for cut in CUTS:
            cells = []
            for instance in TABLES:
                table, labels = getattr(datasets, LOADERS[instance.table])(return_X_y=True)
                world = pb.Labelled(table, labels, components=instance.components, cut=cut)
                policies = {"it": policy_of(kind, 1.0, world, people)}
                found = pb.simulate(policies, world, people, 3, processes=processes, progress=False)
                cells.append(share_text(found.share_right()["it"][:, -1]))
            rows.append([f"{kind}, {cut:g}", *cells])
    print_table(["", *map(title, TABLES)], rows)


def print_speed(steps: int) -> None:
    """Steps a second of one policy in one process."""
    print("Steps a second, one policy in one process.\n")
    rows = []
    for kind in KINDS:
        cells = []
        for instance in TABLES:
            world = bundled_table(instance.table, instance.components)
            started = time.perf_counter()
            pb.simulate({"it": policy_of(kind, 1.0, world, steps)}, world, steps, 1, progress=False)
            cells.append(f"{steps / (time.perf_counter() - started):,.0f}")
        rows.append([kind, *cells])
    print_table(["", *map(title, TABLES)], rows)


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--people", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--most", type=int, default=100_000)
    parser.add_argument("--processes", type=int, default=2)
    arguments = parser.parse_args()
    print_shares(arguments.people, arguments.runs, arguments.processes)
    print_people(arguments.most, arguments.processes)
    print_cuts(arguments.people, arguments.processes)
    print_speed(arguments.people)


if __name__ == "__main__":
    main()
