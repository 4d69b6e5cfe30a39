"""A recommender of twelve films, each described by two numbers, that learns from thumbs up and down, privately.

AdaC-GOPE runs live. What it has learned after each phase is public, and drawn: which films a phase
plays, beside the optimal design (linear-design.png), and when which film was dropped (linear-phases.png).

    python examples/linear_bandit.py [--visitors 100000] [--phase-factor 1] [--out demo-output]
"""

from __future__ import annotations

import argparse
import random
from dataclasses import dataclass, replace
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.patheffects import withStroke
from rich.console import Console
from rich.progress import track
from rich.table import Table

import private_bandits as pb

mpl.use("agg")
from matplotlib import pyplot as plt

FILMS = {  # (how dark, how fast), each from -1 to 1, of norm at most 1
    "A": (0.84, 0.52),
    "B": (0.95, -0.08),
    "C": (0.62, 0.45),
    "D": (0.42, 0.88),
    "E": (0.80, -0.35),
    "F": (0.02, 0.78),
    "G": (0.35, 0.10),
    "H": (0.35, -0.70),
    "I": (-0.58, 0.80),
    "J": (-0.35, -0.30),
    "K": (-0.88, 0.20),
    "L": (-0.50, -0.68),
}
TASTE = np.array([0.75, 0.40])  # the parameter that nobody knows: mean rating = <taste, film>
RHO = 0.1
RANGE = (-1.0, 1.0)  # thumbs down, thumbs up
BLUE, ORANGE, RED, GREY = "#0072B2", "#E69F00", "#D55E00", "#9A9A9A"  # colours that the colour-blind can tell apart


@dataclass(frozen=True)
class Phase:
    """One phase as the public sees it: from the policy's plan, the decisions and one row of the ledger."""

    number: int
    began: int
    played: list[int]
    active: list[int]
    plan: dict[int, int]
    best: int | None
    width: float = 0.0
    estimates: tuple[pb.Estimate, ...] = ()
    kept: tuple[int, ...] = ()

    @property
    def ended(self) -> bool:
        """Whether the phase's sums were released."""
        return bool(self.estimates)


def rate(agent: pb.Agent, chance: random.Random) -> int:
    """Show a film to one visitor, tell the rating, return the film."""
    decision = agent.ask()
    mean = float(np.array(FILMS[decision.arm]) @ TASTE)
    agent.tell(decision, reward=1.0 if chance.random() < (1 + mean) / 2 else -1.0)
    return decision.action


def run(agent: pb.Agent, visitors: int) -> list[Phase]:
    """Serve the visitors, phase by phase. What the agent has learned, and plans, is public."""
    chance = random.Random(1)  # the visitors' own randomness; the agent's noise is never seeded
    phases: list[Phase] = []
    served = 0
    while served < visitors:
        before = agent.learned
        planned = sum(before["plan"].values()) or visitors
        count = min(planned, visitors - served)
        label = f"phase {before['phase']}" if before["plan"] else "the best film"
        played = [rate(agent, chance) for _ in track(range(count), description=label, transient=True)]
        phase = Phase(before["phase"], served, played, before["active"], before["plan"], before["best"])
        after = agent.learned
        if after["phase"] > before["phase"]:
            phase = replace(
                phase, width=after["width"], estimates=tuple(agent.estimates()), kept=tuple(after["active"])
            )
        phases.append(phase)
        served += count
    return phases


def draw_design(axes: Axes, policy: pb.AdaCGOPE, phase: Phase) -> None:
    """Films as points, planned plays as discs, and the smallest central ellipse that holds all films that are left.

    The ellipse is that of the optimal design. What is planned is a rough one, and the best film so far beside it.
    """
    vectors = policy.vectors
    active = vectors[phase.active]
    design = pb.optimal_design(active)
    shares = {arm: planned / sum(phase.plan.values()) for arm, planned in phase.plan.items()}
    values, frame = np.linalg.eigh(active.T @ (design.weights[:, None] * active))
    turn = np.linspace(0, 2 * np.pi, 400)
    circle = np.column_stack([np.cos(turn), np.sin(turn)])
    ellipse = np.sqrt(design.rank) * (circle * np.sqrt(values.clip(0))) @ frame.T
    axes.fill(*ellipse.T, facecolor=BLUE, alpha=0.08, edgecolor="none")
    axes.plot(*ellipse.T, color=BLUE, lw=1.5)
    played = vectors[list(shares)]
    areas = [4000 * share for share in shares.values()]
    axes.scatter(played[:, 0], played[:, 1], s=areas, color=ORANGE, alpha=0.55, lw=0, zorder=2)
    for arm, name in enumerate(FILMS):
        x, y = vectors[arm]
        left = arm in phase.active
        marker, size = ("*", 11) if arm == phase.best else ("o", 5)
        colour, inside = ("black", "black") if left else (GREY, "white")
        axes.plot(x, y, marker, ms=size, color=colour, mfc=inside, zorder=3)
        text = f"{name}  {shares[arm]:.0%}" if arm in shares else name
        side = -1 if x < -0.5 else 1
        axes.annotate(
            text, (x, y), (9 * side, 7), textcoords="offset points", ha="left" if side > 0 else "right",
            color="black" if left else GREY, fontsize=11, zorder=4,
            path_effects=[withStroke(linewidth=3, foreground="white", alpha=0.8)],
        )  # fmt: skip
    axes.plot(0, 0, "+", color=GREY, ms=9)
    axes.set(
        xlim=(-1.3, 1.3), ylim=(-1.3, 1.3), aspect="equal", xlabel="dark", ylabel="fast",
        title=f"Phase {phase.number}: {len(phase.active)} films left, {len(shares)} shown",
    )  # fmt: skip
    axes.grid(alpha=0.25)


def draw_designs(path: Path, policy: pb.AdaCGOPE, phases: list[Phase]) -> None:
    """The first phase, and the last one after films were dropped."""
    several = [phase for phase in phases if phase.plan and len(phase.active) > 2]
    shown = [several[0]] + [phase for phase in several[-1:] if len(phase.active) < len(FILMS)]
    figure, panels = plt.subplots(
        1, len(shown), figsize=(6 * len(shown), 6.6), layout="constrained", sharey=True, squeeze=False
    )
    for axes, phase in zip(panels[0], shown, strict=True):
        draw_design(axes, policy, phase)
    handles = [
        Line2D([], [], ls="", marker="o", color="black", label="film"),
        Line2D([], [], ls="", marker="o", color=GREY, mfc="white", label="dropped film"),
        Line2D([], [], ls="", marker="*", ms=11, color="black", label="best film so far"),
        Line2D([], [], ls="", marker="o", ms=13, color=ORANGE, alpha=0.55, mew=0, label="share of the plays (area)"),
        Line2D([], [], color=BLUE, label="leverage 2 in the optimal design"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=5, frameon=False)
    figure.savefig(path, dpi=90, metadata={"Software": None})
    plt.close(figure)


def draw_plays(axes: Axes, phases: list[Phase], rows: dict[int, int], visitors: int) -> None:
    """A row a film: light while it is in the race, full where it was shown, a cross where it was dropped."""
    first = 10.0
    for phase in phases:
        end = phase.began + len(phase.played)
        for arm in phase.active:
            axes.barh(
                rows[arm], end - max(phase.began, first), left=max(phase.began, first), height=0.75, color="#E6EEF4"
            )
        shown = np.array(phase.played)
        for arm in np.unique(shown).tolist():
            places = np.flatnonzero(shown == arm) + phase.began
            for part in np.split(places, np.flatnonzero(np.diff(places) > 1) + 1):
                start = max(int(part[0]), first)
                axes.barh(rows[arm], part[-1] + 1 - start, left=start, height=0.75, color=BLUE)
        if phase.ended:
            axes.axvline(end, color="black", lw=0.8, ls=":")
            gone = [rows[arm] for arm in phase.active if arm not in phase.kept]
            axes.plot([end] * len(gone), gone, "X", color=RED, ms=9, mec="white", zorder=3)
    axes.set(xscale="log", xlim=(10, visitors), xlabel="visitor (log scale)", ylabel="film, the best one on top")
    axes.set_yticks(list(rows.values()), [list(FILMS)[arm] for arm in rows])
    axes.set_title("What was shown", loc="left")


def draw_estimates(axes: Axes, phase: Phase, rows: dict[int, int]) -> None:
    """The released estimates of a phase, the true means, and the line below which a film is dropped in any case."""
    best = max(phase.estimates[arm].mean or 0.0 for arm in phase.active)
    limit = best - 2 * phase.width
    axes.axvspan(-1.05, limit, color=RED, alpha=0.08, lw=0)
    axes.axvline(limit, color=RED, lw=1.2)
    for arm in phase.active:
        e = phase.estimates[arm]
        assert e.mean is not None
        colour = BLUE if arm in phase.kept else RED
        axes.plot([e.low, e.high], [rows[arm]] * 2, color=colour, lw=1.5, alpha=0.6)
        axes.plot(e.mean, rows[arm], "o" if arm in phase.kept else "X", color=colour, ms=6 if arm in phase.kept else 8)
        axes.plot(np.array(list(FILMS.values())[arm]) @ TASTE, rows[arm], "|", color="black", ms=11, mew=1.5)
    axes.set(xlim=(-1.05, 1.05), xlabel="mean rating", xticks=[-1, 0, 1])
    axes.set_title(f"End of phase {phase.number}", loc="left")
    side = "left" if limit < 0 else "right"
    place = limit + 0.05 if limit < 0 else limit - 0.05
    axes.text(place, len(rows) - 0.45, f"widest W = {2 * phase.width:.3g}", color=RED, fontsize=9, va="center", ha=side)
    axes.grid(axis="x", alpha=0.25)


def draw_phases(path: Path, phases: list[Phase], visitors: int) -> None:
    """Plays over time on the left; estimates, intervals and eliminations of each phase on the right; one row a film."""
    means = np.array(list(FILMS.values())) @ TASTE
    rows = {arm: len(means) - 1 - place for place, arm in enumerate(np.argsort(-means).tolist())}
    ended = [phase for phase in phases if phase.ended]
    figure, panels = plt.subplots(
        1, 1 + len(ended), figsize=(6 + 2.1 * len(ended), 5.6), layout="constrained", sharey=True,
        width_ratios=[2.8] + [1] * len(ended), squeeze=False,
    )  # fmt: skip
    draw_plays(panels[0, 0], phases, rows, visitors)
    for axes, phase in zip(panels[0, 1:], ended, strict=True):
        draw_estimates(axes, phase, rows)
    panels[0, 0].set_ylim(-0.7, len(rows) - 0.1)
    handles = [
        Patch(color=BLUE, label="shown"),
        Patch(color="#E6EEF4", label="in the race, not shown"),
        Line2D([], [], ls="", marker="X", color=RED, ms=9, label="dropped"),
        Line2D([], [], color=BLUE, marker="o", label="released estimate, 95% interval"),
        Line2D([], [], ls="", marker="|", color="black", ms=11, mew=1.5, label="true mean"),
        Line2D([], [], color=RED, label="best estimate less the widest W"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=6, frameon=False, fontsize=10)
    figure.savefig(path, dpi=80, metadata={"Software": None})
    plt.close(figure)


def report(console: Console, agent: pb.Agent, phases: list[Phase]) -> None:
    """Phases, estimates, promise."""
    names = list(FILMS)
    table = Table(title="Phases")
    for column in ("phase", "visitors", "films shown", "2 beta", "widest W", "dropped"):
        table.add_column(column, justify="right" if column in ("phase", "visitors") else "left")
    for phase in phases:
        shown = sorted({names[arm] for arm in phase.played})
        dropped = [names[arm] for arm in phase.active if phase.ended and arm not in phase.kept]
        edge = (
            f"{2 * phase.width:.4f}" if phase.ended else "not over" if len(phase.active) > 1 else "nothing to find out"
        )
        row = (f"{len(phase.played):,}", " ".join(shown), f"{2 * 2.0**-phase.number:g}", edge, " ".join(dropped) or "-")
        table.add_row(str(phase.number), *row)
    console.print(table)
    table = Table(title="What was learned: the last release that says something of a film")
    for column in ("film", "true mean rating", "private estimate", "95% interval, all films and times together"):
        table.add_column(column, justify="left" if column == "film" else "right")
    for e in agent.estimates():
        mean = float(np.array(FILMS[e.arm]) @ TASTE)
        table.add_row(
            e.arm, f"{mean:+.3f}", "-" if e.mean is None else f"{e.mean:+.3f}", f"{e.low:+.3f} to {e.high:+.3f}"
        )
    console.print(table)
    console.print("[bold]What each visitor is promised[/bold]")
    console.print(f"{agent.guarantee()} The ledger lists {len(agent.ledger)} releases.", soft_wrap=True)


def main() -> None:
    """Run, report and draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--visitors", type=int, default=100_000)
    parser.add_argument("--phase-factor", type=float, default=1.0, help="below 1: shorter phases, more cautious drops")
    parser.add_argument("--out", type=Path, default=Path("demo-output"))
    arguments = parser.parse_args()
    console = Console()
    policy = pb.AdaCGOPE(
        actions=list(FILMS.values()), budget=pb.zCDP(RHO), arms=list(FILMS), phase_factor=arguments.phase_factor
    )
    agent = pb.Agent(policy, reward_range=RANGE)
    phases = run(agent, arguments.visitors)
    report(console, agent, phases)
    arguments.out.mkdir(parents=True, exist_ok=True)
    design, drawn = arguments.out / "linear-design.png", arguments.out / "linear-phases.png"
    draw_designs(design, policy, phases)
    draw_phases(drawn, phases, arguments.visitors)
    console.print(f"\nPictures: {design}, {drawn}")


if __name__ == "__main__":
    main()
