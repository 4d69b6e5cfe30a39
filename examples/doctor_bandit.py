"""DoctorBandit: a trial recommends one of five medicines to each new patient and learns who was cured.

The same trial is run twice, once privately and once not, and a picture shows what privacy costs.

    python examples/doctor_bandit.py [--patients 5000] [--out demo-output]
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path

import matplotlib as mpl
import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

import private_bandits as pb
from private_bandits.budget import Budget

mpl.use("agg")
from matplotlib import pyplot as plt

CURE_RATES = {"medicine A": 0.75, "medicine B": 0.625, "medicine C": 0.5, "medicine D": 0.375, "medicine E": 0.25}
RHO = 0.1


def policy(budget: Budget) -> pb.AdaCIMED:
    """AdaC-IMED over the five medicines."""
    return pb.AdaCIMED(arms=list(CURE_RATES), budget=budget)


def run_trial(agent: pb.Agent, patients: int, label: str) -> tuple[list[int], int]:
    """Recommend, observe, tell, for one patient after the other: the recommendations and how many were cured."""
    rates = list(CURE_RATES.values())
    chance = random.Random(1)  # the world's own randomness; the agent's noise is never seeded
    recommended, cured = [], 0
    for _ in track(range(patients), description=label, transient=True):
        decision = agent.ask()
        outcome = chance.random() < rates[decision.action]
        agent.tell(decision, reward=float(outcome))
        recommended.append(decision.action)
        cured += outcome
    return recommended, cured


def draw(path: Path, recommended: list[int], simulation: pb.Simulation) -> None:
    """Left: what the private trial recommended over time. Right: regret, averaged over many trials."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.5), layout="constrained")
    window = max(1, len(recommended) // 50)
    blocks = np.array(recommended[: len(recommended) // window * window]).reshape(-1, window)
    floor = np.zeros(len(blocks))
    for arm, (name, rate) in enumerate(CURE_RATES.items()):
        share = (blocks == arm).mean(axis=1)
        starts = np.arange(len(blocks)) * window
        left.bar(starts, share, width=window, bottom=floor, align="edge", label=f"{name} (cures {rate:.1%})")
        floor += share
    left.set(
        title=f"One private trial (rho = {RHO}); an arm is played for a whole episode",
        xlabel="patient",
        ylabel="share of recommendations",
    )
    left.legend(loc="upper center", bbox_to_anchor=(0.5, -0.15), ncols=3, fontsize="small", frameon=False)
    left.margins(0)
    left.set_ylim(0, 1)
    for name, curves in simulation.curves.items():
        mean, error = curves.mean(axis=0), curves.std(axis=0, ddof=1) / np.sqrt(len(curves))
        right.plot(simulation.checkpoints, mean, label=name)
        right.fill_between(simulation.checkpoints, mean - 2 * error, mean + 2 * error, alpha=0.25)
    right.set(
        title=f"Mean of {simulation.runs} simulated trials (band: 2 standard errors)",
        xlabel="patients",
        ylabel="regret: cures missed while learning",
        xscale="log",
    )
    right.legend(title="smaller rho: more private")
    figure.savefig(path, dpi=120, metadata={"Software": None})
    plt.close(figure)


def report(console: Console, trials: dict[str, tuple[pb.Agent, list[int], int]], patients: int) -> None:
    """What was recommended, what it cost, what is promised."""
    table = Table(title=f"DoctorBandit: recommendations to {patients:,} patients")
    table.add_column("medicine")
    table.add_column("cures", justify="right")
    for name in trials:
        table.add_column(name, justify="right")
    table.add_column("private estimate", justify="right")
    estimates = trials["private"][0].estimates()
    for arm, (medicine, rate) in enumerate(CURE_RATES.items()):
        counts = [f"{recommended.count(arm):,}" for _, recommended, _ in trials.values()]
        e = estimates[arm]
        interval = "-" if e.mean is None else f"{e.mean:.2f} ({e.low:.2f}-{e.high:.2f})"
        table.add_row(medicine, f"{rate:.1%}", *counts, interval)
    console.print(table)
    best = max(CURE_RATES.values()) * patients
    for name, (_, recommended, cured) in trials.items():
        missed = best - sum(list(CURE_RATES.values())[arm] for arm in recommended)
        console.print(f"{name:>12}: {cured:,} cured, about {missed:,.0f} cures missed while learning")
    console.print("One trial is one draw of luck; the picture shows the mean of many.")
    console.print("\n[bold]What each patient is promised[/bold] (private trial):")
    private = trials["private"][0]
    console.print(f"{private.guarantee()} The ledger lists {len(private.ledger)} releases.", soft_wrap=True)


def main() -> None:
    """Run both trials, simulate many more, draw and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--patients", type=int, default=5_000)
    parser.add_argument("--out", type=Path, default=Path("demo-output"))
    arguments = parser.parse_args()
    console = Console()
    trials = {}
    for name, budget in {"private": pb.zCDP(RHO), "not private": pb.NoPrivacy()}.items():
        agent = pb.Agent(policy(budget), reward_range=(0, 1))
        trials[name] = (agent, *run_trial(agent, arguments.patients, f"{name} trial"))
    policies = {f"rho = {rho}": policy(pb.zCDP(rho)) for rho in (0.01, 0.1, 1)} | {"no privacy": policy(pb.NoPrivacy())}
    simulation = pb.simulate(policies, pb.Bernoulli(list(CURE_RATES.values())), horizon=10**7, runs=100)
    arguments.out.mkdir(parents=True, exist_ok=True)
    picture = arguments.out / "regret.png"
    draw(picture, trials["private"][1], simulation)
    report(console, trials, arguments.patients)
    steps = len(policies) * simulation.runs * simulation.horizon
    console.print(f"\nThe picture shows {steps:,} further patients, simulated in {simulation.seconds:.2f} s")
    console.print(f"(a whole episode at a time, exact in distribution): {picture}")


if __name__ == "__main__":
    main()
