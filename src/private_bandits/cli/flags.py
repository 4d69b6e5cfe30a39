"""Flags of the command line as values: worlds, budgets, numbers; and which flag is for which setting and policy."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from private_bandits.budget import ApproxDP, Budget, NoPrivacy, PureDP, zCDP
from private_bandits.environments import Contextual, Linear, Setting
from private_bandits.errors import InvalidInput
from private_bandits.instances import contextual_instance, linear_instance, parameters_of
from private_bandits.policies import POLICIES
from private_bandits.policies.linear import check_actions

PAGE = b"<!doctype html>"
"""Every page of this package begins so."""
DEFAULTS = {"finite": "adac-imed", "linear": "adac-gope", "contextual": "adac-oful"}
FINDER = "adac-top-two"
"""The policy that is made for verdicts."""
DEFAULTS_ON_TABLE = "adac-oful,adac-oful-private"
"""Rewards are private; contexts as well."""
SCALE, SCALE_ON_TABLE, SCALE_LATE, SCALE_VERDICT = ("1e7", "100"), ("1e4", "5"), ("1e4", "100"), ("1e5", "100")
"""Steps and runs: every step is played on a table, and where rewards are late or missing. A verdict falls sooner."""


def decimal(text: str | float) -> float:
    """Return the number that a flag stands for."""
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"must be a number such as 0.125, got {text!r}") from None


Verdict = Annotated[
    float | None,
    typer.Option(
        help="Finite: look for a verdict after every release, which is wrong with at most this probability: how often "
        "and when it falls, and how often it is wrong.",
        show_default="nobody looks",
    ),
]
Delay = Annotated[
    str,
    typer.Option(
        help="Finite: how many later decisions are made before a reward is told: 3 weeks at 20 people a week are 60; "
        "geometric:100 is a random delay of each reward, with that mean."
    ),
]
Missing = Annotated[
    float,
    typer.Option(
        parser=decimal,
        metavar="FLOAT",
        help="Finite: the probability that a reward never comes; its decision is given up when it would have been due.",
    ),
]
Beta = Annotated[
    float | None,
    typer.Option(
        help="Finite: exploration; the regret bound of adac-ucb needs more than 3.",
        show_default="a policy's own; adac-ucb: 3.1, adac-imed: 1",
    ),
]
Delta = Annotated[
    float | None,
    typer.Option(
        help="Linear, contextual: the probability that a width fails. AdaC-TopTwo: that its winner is wrong.",
        show_default="1e-3; adac-top-two: that of --verdict, else 0.05",
    ),
]
Rewards = Annotated[
    str | None, typer.Option(help="AdaC-Halving: how many rewards there will be.", show_default="the horizon")
]
Regulariser = Annotated[
    float | None,
    typer.Option(
        help="Contextual: lambda, that V starts from.",
        show_default="a policy's own; adac-oful: 0.1 or the size of the noise",
    ),
]
Exploration = Annotated[
    float | None,
    typer.Option(
        help="AdaC-OFUL: what the proven width is multiplied by; 1 is the proven one.",
        show_default="a policy's own; adac-oful: 0.1, adac-oful-private: 0.05, --variant paper: 1",
    ),
]
Growth = Annotated[
    float | None,
    typer.Option(
        help="AdaC-IMED, AdaC-TopTwo: of an arm's rewards from release to release. AdaC-OFUL: C; a release when det V "
        "(private contexts: the count) has grown by 1 + C.",
        show_default="a policy's own; adac-imed: 1.25, adac-top-two: 1.5, adac-oful: 1, adac-oful-private: 0.5",
    ),
]
PhaseLength = Annotated[
    str,
    typer.Option(
        help="Linear: paper, or own: long enough for a policy's own noise, as the rivals' always are; adac-gope "
        "needs --variant paper for own."
    ),
]
Horizon = Annotated[
    str | None,
    typer.Option(
        help="Steps of a run.", show_default="1e7; with --data, --delay or --missing 1e4, else with --verdict 1e5"
    ),
]
OF_TABLE = ("label", "components")
NOT_OF_TABLE = ("dimension", "arms", "theta", "setting_as")
"""Flags of a world that a table is there instead of."""
OF_SETTING = {
    "means": ("finite",),
    "beta": ("finite",),
    "actions": ("linear",),
    "theta": ("linear", "contextual"),
    "delta": ("finite", "linear", "contextual"),
    "tol": ("linear",),
    "phase_length": ("linear",),
    "phase_factor": ("linear",),
    "action_norm": ("linear",),
    "dimension": ("contextual",),
    "arms": ("contextual",),
    "data": ("contextual",),
    "label": ("contextual",),
    "components": ("contextual",),
    "regulariser": ("contextual",),
    "exploration": ("contextual",),
    "growth": ("finite", "contextual"),
    "delay": ("finite",),
    "missing": ("finite",),
    "verdict": ("finite",),
    "rewards": ("finite",),
}

OF_BOUNDS = {
    "means": ("finite", "linear"),
    "beta": ("finite",),
    "dimension": ("linear", "contextual"),
    "delta": ("linear", "contextual"),
    "tol": ("linear",),
    "regulariser": ("contextual",),
    "growth": ("contextual",),
    "parameter_norm": ("contextual",),
    "eigenvalue": ("contextual",),
    "setting_as": ("contextual",),
}

OF_POLICIES = (
    *("beta", "delta", "tol", "phase_length", "phase_factor", "action_norm"),
    *("regulariser", "growth", "exploration", "rewards"),
)
"""Flags that are a policy's and not of the world that it is in."""


def was_given(context: typer.Context, name: str) -> bool:
    """Whether a flag was given on the command line."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def refuse_flags_of_other_settings(
    context: typer.Context, setting: str, flags: Mapping[str, tuple[str, ...]] = OF_SETTING
) -> None:
    """Refuse flags that would be ignored: the setting was probably forgotten."""
    for name, settings in flags.items():
        if setting not in settings and was_given(context, name):
            flag = name.replace("_", "-")
            raise InvalidInput(f"--{flag} is for --setting {' or '.join(settings)}, the setting is {setting}")


def refuse_flags_of_other_policies(context: typer.Context, names: list[str], setting: str) -> None:
    """The same where none of the policies has any use for it."""
    used = set().union(*map(parameters_of, names))
    for flag in OF_POLICIES:
        if flag not in used and was_given(context, flag):
            others = [name for name, cls in POLICIES.items() if cls.setting == setting and flag in parameters_of(name)]
            raise InvalidInput(
                f"--{flag.replace('_', '-')} is for {' or '.join(sorted(others))}, not for {' or '.join(names)}"
            )


def refuse_flags_without_or_beside_table(context: typer.Context) -> None:
    """Refuse flags of a table where there is none, and flags that the table makes meaningless."""
    if was_given(context, "data"):
        if not was_given(context, "label"):
            raise InvalidInput("--data needs --label, the name of the column of labels")
        for name in NOT_OF_TABLE:
            if was_given(context, name):
                raise InvalidInput(
                    f"--{name.replace('_', '-')} and --data do not go together: it follows from the table"
                )
        return
    for name in OF_TABLE:
        if was_given(context, name):
            raise InvalidInput(f"--{name} belongs to --data: give a CSV file too")


def usual_policies(context: typer.Context, setting: str) -> str:
    """Return the policies of a simulation where none are given."""
    if was_given(context, "data"):
        return DEFAULTS_ON_TABLE
    return FINDER if was_given(context, "verdict") else DEFAULTS[setting]


def usual_scale(context: typer.Context) -> tuple[str, str]:
    """Return the steps and runs of a simulation where none are given."""
    if was_given(context, "data"):
        return SCALE_ON_TABLE
    if was_given(context, "delay") or was_given(context, "missing"):
        return SCALE_LATE
    return SCALE_VERDICT if was_given(context, "verdict") else SCALE


def contextual_world(dimension: int, arms: int, theta: str | None, seed: int, setting: Setting) -> Contextual:
    """A direction from the seed where no parameter is given."""
    given = None if theta is None else parse_numbers("theta", theta)
    return contextual_instance(seed, setting, arms, dimension, given)


def linear_world(actions: Path | None, theta: str | None, seed: int, noise: str, norm: float) -> Linear:
    """Actions from a file, or ten random directions in three dimensions."""
    given = None if theta is None else parse_numbers("theta", theta)
    if actions is None:
        return linear_instance(seed, noise, theta=given)
    rows = check_actions(read_table(actions), norm)
    return Linear(rows, given or [len(rows[0]) ** -0.5] * len(rows[0]), noise)


def read_table(path: Path) -> list[list[float]]:
    """Return the numbers of a CSV file, a row each."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path} cannot be read: {error}") from None
    rows = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                rows.append([float(part) for part in line.split(",")])
            except ValueError:
                raise InvalidInput(
                    f"{path}, line {number}: numbers with commas between are needed, got {line[:60]!r}"
                ) from None
    if not rows or len({len(row) for row in rows}) > 1:
        lengths = sorted({len(row) for row in rows})
        raise InvalidInput(f"{path} must hold a row an action, all of one length, got rows of {lengths} numbers")
    return rows


def parse_budgets(rho: str | None, epsilon: str | None, delta: float | None) -> list[Budget]:
    """rho alone: zCDP. epsilon alone: pure DP. epsilon and delta: (epsilon, delta)-DP."""
    if epsilon is None:
        if delta is not None:
            raise InvalidInput("--privacy-delta belongs to --epsilon: give both, or --rho alone")
        return [NoPrivacy() if r == math.inf else zCDP(r) for r in parse_numbers("rho", rho or "0.1,1,inf")]
    if rho is not None:
        raise InvalidInput("give --rho or --epsilon, not both")
    levels = parse_numbers("epsilon", epsilon)
    if delta is None:
        return [NoPrivacy() if e == math.inf else PureDP(e) for e in levels]
    return [NoPrivacy() if e == math.inf else ApproxDP(e, delta) for e in levels]


def single_budget(budgets: list[Budget]) -> Budget:
    """Return the only budget. Refuses several."""
    if len(budgets) != 1:
        raise InvalidInput(f"give one budget, got {len(budgets)}: run the command once for each")
    return budgets[0]


def check_new_file(path: Path | None) -> None:
    """Before anything long: nothing is overwritten, and nothing is computed in vain."""
    if path is not None and path.exists():
        raise InvalidInput(f"{path} exists: name another file, or remove it first")
    if path is not None and not path.parent.is_dir():
        raise InvalidInput(f"the folder {path.parent} does not exist: make it first")


def check_page(path: Path | None) -> None:
    """Before a page is written: nothing is replaced that is no page, whatever name was mistyped."""
    if path is None or not path.exists():
        check_new_file(path)
    elif not path.is_file() or not _is_page(path):
        raise InvalidInput(f"{path} is no page, and is not overwritten: name another file")


def _is_page(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(PAGE)) == PAGE


def number_text(number: float | None) -> str | None:
    """Return a number as it would be written in a flag."""
    return None if number is None else repr(number)


def parse_pair(name: str, text: str) -> tuple[float, float]:
    """Return two numbers from a text such as 0,1."""
    numbers = parse_numbers(name, text)
    if len(numbers) != 2:
        raise InvalidInput(f"--{name} must be two numbers such as 0,1, got {text!r}")
    return numbers[0], numbers[1]


def budget_label(budget: Budget) -> str:
    """Return a budget as tables show it."""
    return "no privacy" if isinstance(budget, NoPrivacy) else str(budget)


def parse_numbers(name: str, text: str) -> list[float]:
    """Return the numbers of a text such as 0.1,1,inf."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise InvalidInput(f"--{name} must be numbers with commas between, got {text!r}") from None


def parse_number(name: str, text: str) -> float:
    """Return one number; whole numbers as an int."""
    try:
        return float(text) if set(text.lower()) & set(".en") else int(text)
    except ValueError:
        raise InvalidInput(f"--{name} must be a number such as 1e7 or 10_000_000, got {text!r}") from None


def check_one_of(name: str, value: str, known: Any) -> None:
    """Refuse a value that is not known."""
    if value not in known:
        raise InvalidInput(f"--{name} must be one of {', '.join(sorted(known))}, got {value!r}")
