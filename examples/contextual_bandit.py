"""A trial of three treatments whose effect depends on the patient's age and severity, private in two ways.

AdaC-OFUL protects whether a treatment helped; age and severity are public to it. AdaCOFULPrivate protects age and
severity as well, from everyone but who sees that patient's own recommendation. Both learn live from the same patients.
When they release, and what they know of one kind of patient, is drawn (contextual-episodes.png).

    python examples/contextual_bandit.py [--patients 20000] [--out demo-output]
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track
from rich.table import Table

import private_bandits as pb

mpl.use("agg")
from matplotlib import pyplot as plt

Floats = NDArray[np.float64]
Policy = pb.AdaCOFUL | pb.AdaCOFULPrivate

TREATMENTS = ("A", "B", "C")
# Age runs from 20 to 90 and severity from 0 to 10: both are told as the distance from the middle.
FEATURES = pb.Features(context=["age - 55", "severity - 5"], arms=TREATMENTS, bounds=[35, 5])
CHANCES = {  # what nobody knows: the chance to be helped is base + age (age - 55)/35 + severity (severity - 5)/5
    "A": (0.55, 0.00, -0.40),
    "B": (0.55, 0.40, 0.00),
    "C": (0.50, 0.00, 0.40),
}
SHOWN = (80.0, 4.0)  # age and severity of the patients in the picture
RHO = 1.0
BLUE, ORANGE, GREEN = "#0072B2", "#E69F00", "#009E73"  # colours that the colour-blind can tell apart


def centred(age: float, severity: float) -> list[float]:
    """The numbers of a patient as the features take them."""
    return [age - 55, severity - 5]


def chances(age: float, severity: float) -> Floats:
    """To be helped, by treatment."""
    return np.array(list(CHANCES.values())) @ [1, (age - 55) / 35, (severity - 5) / 5]


def parameter_norm() -> float:
    """What theta has in the scaled features, were the chances known: in practice a guess from above."""
    return float(np.linalg.norm(list(CHANCES.values()))) / FEATURES.scale


@dataclass
class Trial:
    """One agent, and what the public, or the trial's staff, sees of it."""

    title: str
    policy: Policy
    agent: pb.Agent
    losses: list[float] = field(default_factory=list)
    steps: list[int] = field(default_factory=list)
    grown: list[float] = field(default_factory=list)
    known: list[tuple[Floats, Floats]] = field(default_factory=list)

    def treat(self, age: float, severity: float, luck: float) -> None:
        """Recommend a treatment to one patient and tell whether it helped."""
        decision = self.agent.ask(actions=FEATURES(centred(age, severity)))
        chance = chances(age, severity)
        self.losses.append(float(chance.max() - chance[decision.action]))
        self.agent.tell(decision, reward=float(luck < chance[decision.action]))

    def look(self) -> None:
        """Note what is public now."""
        learned = self.agent.learned
        self.steps.append(len(self.losses))
        self.grown.append(self.growth(learned))
        self.known.append(self.estimates(learned, FEATURES(centred(*SHOWN))))

    def growth(self, learned: dict[str, Any]) -> float:
        """By what factor det V, or the count of rewards, has grown since the last release: 1 + C ends the episode."""
        if isinstance(self.policy, pb.AdaCOFULPrivate):
            released = int(learned["rewards"])
            return len(self.losses) / released if released else math.nan
        before = np.array(learned["frozen"])
        return float(np.linalg.det(before + learned["since"]) / np.linalg.det(before))

    def estimates(self, learned: dict[str, Any], rows: Floats) -> tuple[Floats, Floats]:
        """The estimated chances, and what the policy adds to them to explore: a part of the proven width."""
        if isinstance(self.policy, pb.AdaCOFULPrivate):
            inverse = self.policy.load_state(learned).inverse
        else:
            inverse = np.linalg.inv(learned["frozen"])
        band = self.policy.exploration * learned["width"]
        return rows @ learned["theta"], band * np.sqrt(((rows @ inverse) * rows).sum(axis=1))


def make_trials(patients: int) -> list[Trial]:
    """The two kinds of privacy, with one budget."""
    options: dict[str, Any] = {
        "dimension": FEATURES.dimension,
        "context_norm": FEATURES.context_norm,
        "parameter_norm": parameter_norm(),
        "budget": pb.zCDP(RHO),
        "horizon": patients,
    }
    kinds: dict[str, Policy] = {
        "AdaC-OFUL: rewards are private": pb.AdaCOFUL(**options),
        "AdaCOFULPrivate: contexts as well": pb.AdaCOFULPrivate(**options),
    }
    return [Trial(title, policy, pb.Agent(policy, reward_range=(0, 1))) for title, policy in kinds.items()]


def run(trials: list[Trial], patients: int) -> None:
    """The same patients for both."""
    chance = np.random.default_rng(1)  # the patients' own randomness; the agents' noise is never seeded
    looks = set(np.geomspace(1, patients, 1000).round().astype(int).tolist())
    for number in track(range(1, patients + 1), description="patients", transient=True):
        age, severity, luck = chance.uniform(20, 90), chance.uniform(0, 10), chance.random()
        for trial in trials:
            trial.treat(age, severity, luck)
            if number in looks:
                trial.look()


def draw_growth(axes: Axes, trial: Trial, label: str) -> None:
    """A saw: it climbs while rewards come in, and falls at a release."""
    axes.plot(trial.steps, trial.grown, color="black", lw=0.8)
    end = 1 + trial.policy.growth
    axes.axhline(end, color="black", lw=0.8, ls=":")
    axes.set(xscale="log", ylim=(1 - 0.1 * (end - 1), end + 0.2 * (end - 1)), yticks=[1, end], ylabel=label)
    axes.set_title(f"{trial.title}\n{len(trial.agent.ledger)} releases", loc="left")


def draw_known(axes: Axes, trial: Trial) -> None:
    """Estimates with their width, and the true chances."""
    means, widths = (np.array(part) for part in zip(*trial.known, strict=True))
    for k, colour in enumerate((BLUE, ORANGE, GREEN)):
        low, high = means[:, k] - widths[:, k], means[:, k] + widths[:, k]
        axes.fill_between(trial.steps, low, high, step="post", color=colour, alpha=0.15, lw=0)
        axes.step(trial.steps, means[:, k], where="post", color=colour, lw=1.5)
        axes.axhline(chances(*SHOWN)[k], color=colour, lw=1, ls="--")
    axes.set(
        xlim=(10, trial.steps[-1]),
        ylim=(-1, 2),
        yticks=[-1, 0, 1, 2],
        xlabel="patient (log scale)",
        ylabel="chance to be helped",
    )
    axes.set_title(f"What is known of patients of age {SHOWN[0]:g} and severity {SHOWN[1]:g}", loc="left", fontsize=10)


def draw(path: Path, trials: list[Trial]) -> None:
    """A column an agent: why it releases, and what it knows."""
    figure, panels = plt.subplots(
        2, len(trials), figsize=(12, 6.4), layout="constrained", sharex=True, height_ratios=[1, 2.2]
    )
    labels = ("det V / det V at\nthe last release", "rewards / rewards at\nthe last release")
    for (above, below), trial, label in zip(panels.T, trials, labels, strict=True):
        draw_growth(above, trial, label)
        draw_known(below, trial)
    handles: list[Any] = [
        Line2D([], [], color=colour, label=f"treatment {name}, estimate")
        for name, colour in zip(TREATMENTS, (BLUE, ORANGE, GREEN), strict=True)
    ]
    handles += [
        Patch(color="black", alpha=0.15, lw=0, label="estimate ± width ||a||"),
        Line2D([], [], color="black", lw=1, ls="--", label="truth"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=5, frameon=False)
    figure.savefig(path, dpi=90, metadata={"Software": None})
    plt.close(figure)


def report(console: Console, trials: list[Trial]) -> None:
    """What was learned, what it cost the patients, what they are promised."""
    table = Table(title="How much worse than the best treatment for that patient was what was recommended (chance)")
    table.add_column("patients")
    for trial in trials:
        table.add_column(trial.title, justify="right")
    for part in np.array_split(np.arange(len(trials[0].losses)), 4):
        cells = [f"{np.array(trial.losses)[part].mean():.3f}" for trial in trials]
        table.add_row(f"{part[0] + 1:,} to {part[-1] + 1:,}", *cells)
    console.print(table)
    table = Table(title="What was learned: chance = base + age (age - 55)/35 + severity (severity - 5)/5")
    for column in ("coefficient", "truth", *(trial.title for trial in trials)):
        table.add_column(column, justify="left" if column == "coefficient" else "right")
    truth = [(f"{arm}, {what}", CHANCES[arm][i]) for arm in TREATMENTS for i, what in ((1, "age"), (2, "severity"))]
    truth += [(f"{arm}, base", CHANCES[arm][0]) for arm in TREATMENTS]
    found = [np.array(trial.agent.learned["theta"]) * FEATURES.scale for trial in trials]
    for i, (name, value) in enumerate(truth):
        table.add_row(name, f"{value:+.2f}", *(f"{theta[i]:+.2f}" for theta in found))
    console.print(table)
    for trial in trials:
        console.print(f"[bold]{trial.title}. What each patient is promised[/bold]")
        console.print(f"{trial.agent.guarantee()} The ledger lists {len(trial.agent.ledger)} releases.", soft_wrap=True)


def main() -> None:
    """Run, report and draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--patients", type=int, default=20_000)
    parser.add_argument("--out", type=Path, default=Path("demo-output"))
    arguments = parser.parse_args()
    console = Console()
    trials = make_trials(arguments.patients)
    run(trials, arguments.patients)
    report(console, trials)
    arguments.out.mkdir(parents=True, exist_ok=True)
    picture = arguments.out / "contextual-episodes.png"
    draw(picture, trials)
    console.print(f"\nPicture: {picture}")


if __name__ == "__main__":
    main()
