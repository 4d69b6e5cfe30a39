"""Show what privacy costs on real data: breast cancer, 569 patients, each with one of two findings.

Every patient is a row of a table that comes with scikit-learn. The bandit sees the row, recommends a finding, and is
told whether that was right. With a budget of zCDP, what it publishes gives nobody's outcome away (AdaCOFUL), or
nobody's row either (AdaCOFULPrivate). Beside them: LinUCB without privacy, and the best fixed arm.

    python examples/real_data.py [--patients 10000] [--runs 3]

The same for a table of your own, with a column that says what would have been right:

    python examples/real_data.py --data FILE.csv --label COLUMN [--components 8]
    private-bandits simulate --setting contextual --data FILE.csv --label COLUMN [--components 8]
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

import private_bandits as pb
from private_bandits.simulation.linucb import LinUCB

RHOS = (0.1, 1.0, 10.0)


def read_table(arguments: argparse.Namespace) -> pb.Labelled:
    """The table as a bandit: a CSV file, a DataFrame or a dict of columns, and the name of the column of labels."""
    if arguments.data is not None:
        return pb.Labelled(arguments.data, arguments.label, components=arguments.components)
    from sklearn.datasets import load_breast_cancer  # pip install "private-bandits[data]"

    frame = load_breast_cancer(as_frame=True).frame
    return pb.Labelled(frame, label="target", components=arguments.components or 5)


def make_policies(world: pb.Labelled, patients: int) -> dict[str, Any]:
    """Each kind of privacy at several budgets, and none."""
    options: dict[str, Any] = {"dimension": world.dimension, "context_norm": world.context_norm, "horizon": patients}
    found: dict[str, Any] = {}
    for rho in RHOS:
        found[f"outcomes are private, rho = {rho:g}"] = pb.AdaCOFUL(budget=pb.zCDP(rho), **options)
    for rho in RHOS:
        found[f"outcomes and rows are private, rho = {rho:g}"] = pb.AdaCOFULPrivate(budget=pb.zCDP(rho), **options)
    found["AdaC-OFUL without privacy"] = pb.AdaCOFUL(budget=pb.NoPrivacy(), **options)
    found["LinUCB without privacy"] = LinUCB(world.dimension, pb.NoPrivacy())
    return found


def report(console: Console, world: pb.Labelled, result: pb.Simulation) -> None:
    """Right recommendations among the first tenth of the patients, and among all."""
    early = f"first {result.checkpoints[0]:,}"
    table = Table("policy", early, f"all {result.horizon:,}", title="Share of right recommendations")
    for name, shares in result.share_right().items():
        table.add_row(name, *(f"{share:.1%}" for share in shares.mean(axis=0)))
    table.add_row("best fixed arm", *[f"{world.best_fixed_share:.1%}"] * 2)
    console.print(table)
    console.print(f"{world.rows:,} rows, {world.arms} arms, d = {world.dimension}. {result.note.capitalize()}.")
    if world.left_out:
        console.print(f"Left out: {world.left_out}.")


def main() -> None:
    """Simulate and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--patients", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--data", type=Path, help="a CSV file of your own")
    parser.add_argument("--label", help="the name of its column of labels")
    parser.add_argument("--components", type=int, help="principal components to keep")
    arguments = parser.parse_args()
    if (arguments.data is None) != (arguments.label is None):
        parser.error("--data and --label go together")
    world = read_table(arguments)
    policies = make_policies(world, arguments.patients)
    points = [max(1, arguments.patients // 10)]
    report(Console(), world, pb.simulate(policies, world, arguments.patients, arguments.runs, checkpoints=points))


if __name__ == "__main__":
    try:
        main()
    except pb.errors.InvalidInput as error:
        raise SystemExit(f"error: {error}") from None
