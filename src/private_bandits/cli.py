"""The command line: parse, call one function, print."""

from __future__ import annotations

import json
import math
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from private_bandits.budget import ApproxDP, Budget, NoPrivacy, PureDP, equal_budget, zCDP
from private_bandits.environments import Bernoulli
from private_bandits.errors import InvalidInput, PrivateBanditsError
from private_bandits.policies import POLICIES, Policy
from private_bandits.simulation import simulate as run_simulation

app = typer.Typer(
    help="Bandit learning from people's feedback that gives no one person's feedback away.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_show_locals=False,  # a traceback must not print what was told
)

SETTINGS = sorted({policy.setting for policy in POLICIES.values()})

Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]


def _print_version(asked: bool) -> None:
    if asked:
        print(version("private-bandits"))
        raise typer.Exit


@app.callback()
def options(
    show: Annotated[bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Version.")] = False,
) -> None:
    """Bandit learning from people's feedback that gives no one person's feedback away."""


@app.command()
def simulate(
    setting: Annotated[str, typer.Option(help="Kind of bandit: " + ", ".join(SETTINGS) + ".")] = "finite",
    means: Annotated[str, typer.Option(help="Mean of each Bernoulli arm.")] = "0.75,0.625,0.5,0.375,0.25",
    policy: Annotated[str, typer.Option(help="Names from `private-bandits policies`.")] = "adac-ucb",
    rho: Annotated[
        str | None,
        typer.Option(help="zCDP budgets (pure DP: epsilon = sqrt(2 rho)); inf: no privacy.", show_default="0.1,1,inf"),
    ] = None,
    epsilon: Annotated[str | None, typer.Option(help="Budgets as epsilon instead; pure DP, or with a delta.")] = None,
    privacy_delta: Annotated[float | None, typer.Option(help="The delta of (epsilon, delta) budgets.")] = None,
    beta: Annotated[float, typer.Option(help="Optimism of the index; the regret bound needs more than 3.")] = 3.1,
    variant: Annotated[str, typer.Option(help="paper: as published.")] = "paper",
    setting_as: Annotated[
        str, typer.Option(help="paper or strict; for finite arms the paper's setting is strict already.")
    ] = "strict",
    horizon: Annotated[str, typer.Option(help="Steps of a run.")] = "1e7",
    runs: Annotated[str, typer.Option(help="Independent runs.")] = "100",
    seed: Annotated[int, typer.Option(help="Seed of the simulation.")] = 0,
    processes: Annotated[int, typer.Option(help="Processes to use; the numbers do not depend on it.")] = 1,
    csv: Annotated[Path | None, typer.Option(help="Write regret at every checkpoint to this new file.")] = None,
    as_json: Json = False,
) -> None:
    """Regret of policies over many runs, exact in distribution. Simulated noise protects nobody."""
    _one_of("setting", setting, SETTINGS)
    _one_of("setting-as", setting_as, ("paper", "strict"))
    if csv is not None and csv.exists():
        raise InvalidInput(f"{csv} exists: name another file, or remove it first")
    if csv is not None and not csv.parent.is_dir():
        raise InvalidInput(f"the folder {csv.parent} does not exist: make it first")
    environment = Bernoulli(_numbers("means", means))
    budgets = _budgets(rho, epsilon, privacy_delta)
    policies: dict[str, Policy[Any]] = {
        f"{name} {_label(budget)}": _policy(name, len(environment.means), budget, beta, variant)
        for name in policy.split(",")
        for budget in budgets
    }
    steps, repeats = _number("horizon", horizon), _number("runs", runs)
    result = run_simulation(policies, environment, steps, repeats, seed, processes=processes)
    if csv is not None:
        result.to_csv(csv)
    if as_json:
        print(json.dumps(result.to_json()))
        return
    table = Table(title=f"Regret after {result.horizon:,} steps, {result.runs:,} runs")
    for column in ("policy", "variant", "budget", "mean regret", "standard error"):
        table.add_column(column, justify="left" if column in ("policy", "variant", "budget") else "right")
    for row, made in zip(result.summary(), policies.values(), strict=True):
        error = "-" if row["regret_stderr"] is None else f"{row['regret_stderr']:,.2f}"
        table.add_row(row["policy"], row["variant"], _label(made.promise), f"{row['regret_mean']:,.2f}", error)
    Console().print(table)
    print(f"{result.seconds:.2f} seconds. Simulated with seeded noise: no privacy holds for these runs.")


@app.command()
def policies(as_json: Json = False) -> None:
    """Every name that --policy accepts, with its setting, the privacy it keeps and its source."""
    rows = [
        {"name": name, "setting": cls.setting, "privacy": list(cls.notions), "source": cls.source}
        for name, cls in sorted(POLICIES.items())
    ]
    if as_json:
        print(json.dumps({"policies": rows}))
        return
    table = Table("name", "setting", "privacy", "source")
    for row in rows:
        table.add_row(str(row["name"]), str(row["setting"]), ", ".join(row["privacy"]), str(row["source"]))
    Console().print(table)


def main() -> None:
    """The command line's entry: what the package refuses is told in one line, with exit code 2."""
    try:
        app()
    except PrivateBanditsError as error:
        Console(stderr=True).print(f"[red]error:[/red] {error}", highlight=False, soft_wrap=True)
        raise SystemExit(2) from None


def _policy(name: str, arms: int, budget: Budget, beta: float, variant: str) -> Policy[Any]:
    _one_of("policy", name, POLICIES)
    budget = equal_budget(budget, POLICIES[name].notions)
    return POLICIES[name](n_arms=arms, budget=budget, beta=beta, variant=variant)  # type: ignore[call-arg]


def _budgets(rho: str | None, epsilon: str | None, delta: float | None) -> list[Budget]:
    """rho alone: zCDP. epsilon alone: pure DP. epsilon and delta: (epsilon, delta)-DP."""
    if epsilon is None:
        if delta is not None:
            raise InvalidInput("--privacy-delta belongs to --epsilon: give both, or --rho alone")
        return [NoPrivacy() if r == math.inf else zCDP(r) for r in _numbers("rho", rho or "0.1,1,inf")]
    if rho is not None:
        raise InvalidInput("give --rho or --epsilon, not both")
    levels = _numbers("epsilon", epsilon)
    if delta is None:
        return [NoPrivacy() if e == math.inf else PureDP(e) for e in levels]
    return [NoPrivacy() if e == math.inf else ApproxDP(e, delta) for e in levels]


def _label(budget: Budget) -> str:
    return "no privacy" if isinstance(budget, NoPrivacy) else str(budget)


def _numbers(name: str, text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise InvalidInput(f"--{name} must be numbers with commas between, got {text!r}") from None


def _number(name: str, text: str) -> float:
    try:
        return float(text) if set(text.lower()) & set(".en") else int(text)
    except ValueError:
        raise InvalidInput(f"--{name} must be a number such as 1e7 or 10_000_000, got {text!r}") from None


def _one_of(name: str, value: str, known: Any) -> None:
    if value not in known:
        raise InvalidInput(f"--{name} must be one of {', '.join(sorted(known))}, got {value!r}")
