"""What the picture of a simulation shows, before anybody draws it: panels of lines, in words and numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from private_bandits.arrays import Floats
from private_bandits.errors import InvalidInput
from private_bandits.palette import GREY, Colour, policy_colour, policy_dash, rho_colour
from private_bandits.policies import Policy
from private_bandits.simulation.in_words import counted, sentence

if TYPE_CHECKING:
    from private_bandits.simulation.run import Simulation

PICTURE_NEEDS = ("a picture of a simulation", "pictures", "matplotlib")
PAGE_NEEDS = ("a page of a simulation", "pictures")
ENDINGS = (".png", ".svg", ".pdf")
LONG = 1000
"""Steps from which on they are drawn on a log scale."""
ERRORS = 2.0
"""Standard errors that a band has on each side."""


def check_picture_path(path: str | Path) -> None:
    """Refuse a path that no picture can be written to, before anything is drawn."""
    if Path(path).suffix.lower() not in ENDINGS:
        raise InvalidInput(f"a picture must be a file of {', '.join(ENDINGS)}, got {Path(path).name!r}")
    check_folder(path)


def check_folder(path: str | Path) -> None:
    """Refuse a file in a folder that does not exist."""
    if not Path(path).parent.is_dir():
        raise InvalidInput(f"the folder {Path(path).parent} does not exist: make it first")


@dataclass(frozen=True)
class Line:
    """One line of a panel. band: low and high; None where there is none. end: the last value in words."""

    label: str
    x: Floats
    y: Floats
    band: tuple[Floats, Floats] | None
    colour: Colour
    dash: str
    end: str


@dataclass(frozen=True)
class CurvePanel:
    """One pair of axes. stairs: lines rise at single steps and are flat between them."""

    y_label: str
    lines: tuple[Line, ...]
    percent: bool = False
    stairs: bool = False


def panels_of(result: Simulation) -> tuple[CurvePanel, ...]:
    """Return the panels: regret, or the share of right recommendations; then verdicts where they were looked for."""
    signs = _signs(list(result.policies.values()))
    first = _share_panel(result, signs) if result.labelled else _regret_panel(result, signs)
    return (first, _verdict_panel(result, signs)) if result.verdicts else (first,)


def title_of(result: Simulation) -> str:
    """Return in plain words what the picture shows."""
    who = next(iter(result.policies)) if len(result.policies) == 1 else f"{len(result.policies)} policies"
    what = "Right recommendations" if result.labelled else "Regret"
    return f"{what} of {short_name(who, 60)} over {counted(result.horizon, 'step')}"


def reading_of(result: Simulation) -> str:
    """Return how to read the lines."""
    if result.runs == 1:
        return "One run: there is no band."
    return f"Lines: mean of {result.runs:,} runs. Bands: two standard errors on both sides."


def note_of(result: Simulation) -> str:
    """Return what does not hold for the lines, and when rewards came."""
    late = "" if result.arrivals.prompt else f" {sentence(str(result.arrivals))}"
    return sentence(result.note) + late


def short_name(name: object, most: int) -> str:
    """Return a name in one line, cut where it is too long.

    >>> short_name("a policy\\nof my own", 12)
    'a policy of…'
    """
    line = " ".join(str(name).split())
    return line if len(line) <= most else line[: most - 1].rstrip() + "…"


def short_names(names: Sequence[str], most: int) -> list[str]:
    """Return names that are cut where they are too long, and that can still be told apart.

    They lose their ends, else their middles; where neither tells them apart, they are numbered in their order.

    >>> short_names(["my policy, rho 0.1", "my policy, rho 1.0"], 12)
    ['my pol…o 0.1', 'my pol…o 1.0']
    """
    ends = [short_name(name, most) for name in names]
    for found in (ends, [_without_middle(name, most) for name in names]):
        if len(set(found)) == len(set(names)):
            return found
    return [f"{number}: {short_name(name, most - 4)}" for number, name in enumerate(names, 1)]


def _without_middle(name: str, most: int) -> str:
    line = " ".join(name.split())
    return line if len(line) <= most else f"{line[: most // 2]}…{line[len(line) - (most - 1) // 2 :]}"


Sign = tuple[Colour, str]
"""Colour and dash of a line."""


def _signs(policies: Sequence[Policy[Any]]) -> list[Sign]:
    """Return the sign of each: by rho where they differ in nothing else."""
    rhos = [policy.budget.implied_rho for policy in policies]
    if len(set(rhos)) == len(policies) > 1 and len({_without_budget(policy) for policy in policies}) == 1:
        return [(rho_colour(rho), "solid") for rho in rhos]
    return [(policy_colour(i), policy_dash(i)) for i in range(len(policies))]


def _without_budget(policy: Policy[Any]) -> str:
    return repr({name: value for name, value in policy.to_dict().items() if name != "budget"})


def _regret_panel(result: Simulation, signs: Sequence[Sign]) -> CurvePanel:
    x = result.checkpoints.astype(float)
    lines = [
        _line(name, x, curve, sign, _digits)
        for (name, curve), sign in zip(_in_order(result, result.curves), signs, strict=True)
    ]
    return CurvePanel("mean regret (units of reward)", tuple(lines))


def _share_panel(result: Simulation, signs: Sequence[Sign]) -> CurvePanel:
    """Shares of the policies, and what is right without learning."""
    x = result.checkpoints.astype(float)
    lines = [
        _line(name, x, share, sign, _percent)
        for (name, share), sign in zip(_in_order(result, result.share_right()), signs, strict=True)
    ]
    table: Any = result.environment
    known = {"best fixed arm": (table.best_fixed_share, "dash"), "guessing": (table.guessing_share, "dot")}
    guides = [
        Line(name, x, np.full(len(x), share), None, GREY, dash, _percent(share))
        for name, (share, dash) in known.items()
    ]
    return CurvePanel("right recommendations so far (%)", (*lines, *guides), percent=True)


def _verdict_panel(result: Simulation, signs: Sequence[Sign]) -> CurvePanel:
    """For each policy the share of runs with a verdict, exact at every step."""
    lines, start = [], float(result.checkpoints[0])
    for (name, verdicts), (colour, dash) in zip(_in_order(result, result.verdicts), signs, strict=True):
        times = verdicts.decisions
        fell = np.sort(times[np.isfinite(times)])
        steps = np.unique(np.concatenate([[start], fell[fell > start], [float(result.horizon)]]))
        share = np.searchsorted(fell, steps, side="right") / len(times)
        lines.append(Line(name, steps, share, None, colour, dash, _percent(float(share[-1]))))
    return CurvePanel("runs with a verdict (%)", tuple(lines), percent=True, stairs=True)


def _in_order(result: Simulation, found: Any) -> list[tuple[str, Any]]:
    return [(name, found[name]) for name in result.policies]


def _line(name: str, x: Floats, runs: Floats, sign: Sign, form: Any) -> Line:
    mean, band = runs.mean(axis=0), None
    if len(runs) > 1:
        reach = ERRORS * runs.std(axis=0, ddof=1) / np.sqrt(len(runs))
        band = (mean - reach, mean + reach)
    return Line(name, x, mean, band, *sign, form(float(mean[-1])))


def _digits(value: float) -> str:
    """Return three digits, or all before the point up to a million: enough beside a line."""
    return f"{value:,.0f}" if 100 <= abs(value) < 1e6 else f"{value:.3g}"


def _percent(share: float) -> str:
    return f"{100 * share:.3g}%"
