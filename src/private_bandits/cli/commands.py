"""The command line: parse, call one function, print."""

from __future__ import annotations

import json
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from private_bandits import definitions as small
from private_bandits.checks import check_probability, large_number
from private_bandits.cli.flags import (
    OF_BOUNDS,
    Beta,
    Delay,
    Delta,
    Exploration,
    Growth,
    Horizon,
    Missing,
    PhaseLength,
    Regulariser,
    Rewards,
    Verdict,
    budget_label,
    check_new_file,
    check_one_of,
    contextual_world,
    linear_world,
    number_text,
    parse_budgets,
    parse_number,
    parse_numbers,
    parse_pair,
    refuse_flags_of_other_policies,
    refuse_flags_of_other_settings,
    refuse_flags_without_or_beside_table,
    single_budget,
    usual_policies,
    usual_scale,
)
from private_bandits.cli.outputs import Csv, Html, Outputs, PictureFile
from private_bandits.cli.regrets import regret_table, verdict_table, with_references
from private_bandits.cli.shares import share_table, table_in_words
from private_bandits.environments import Bernoulli, Setting
from private_bandits.errors import InvalidInput, PrivateBanditsError
from private_bandits.instances import policy_named
from private_bandits.labelled import Labelled
from private_bandits.loading import require
from private_bandits.policies import POLICIES, Policy
from private_bandits.progress import progress
from private_bandits.simulation import simulate as run_simulation
from private_bandits.simulation.run import Environment
from private_bandits.theory import bounds_report as theory
from private_bandits.theory.reference import reference_of

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
    context: typer.Context,
    setting: Annotated[str, typer.Option(help="Kind of bandit: " + ", ".join(SETTINGS) + ".")] = "finite",
    means: Annotated[str, typer.Option(help="Mean of each Bernoulli arm.")] = "0.75,0.625,0.5,0.375,0.25",
    actions: Annotated[
        Path | None,
        typer.Option(help="Linear: a CSV file, a row an action.", show_default="10 directions in R^3, from the seed"),
    ] = None,
    dimension: Annotated[int, typer.Option(help="Contextual: of the actions.")] = 3,
    arms: Annotated[int, typer.Option(help="Contextual: actions at each step.")] = 10,
    theta: Annotated[
        str | None,
        typer.Option(
            help="Linear, contextual: the parameter.", show_default="(1, ..., 1)/sqrt(d), or a direction from the seed"
        ),
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="Contextual: a CSV file of people; the right arm is the label of a row.")
    ] = None,
    label: Annotated[
        str | None,
        typer.Option(help="Contextual: the column of --data that says which arm would have been right for each row."),
    ] = None,
    components: Annotated[
        int | None,
        typer.Option(help="Contextual: principal components of --data to keep.", show_default="all its columns"),
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(
            help="Names from `private-bandits policies`.",
            show_default="adac-imed, adac-gope, adac-oful; with --verdict adac-top-two, "
            "with --data adac-oful,adac-oful-private",
        ),
    ] = None,
    rho: Annotated[
        str | None,
        typer.Option(help="zCDP budgets (pure DP: epsilon = sqrt(2 rho)); inf: no privacy.", show_default="0.1,1,inf"),
    ] = None,
    epsilon: Annotated[str | None, typer.Option(help="Budgets as epsilon instead; pure DP, or with a delta.")] = None,
    privacy_delta: Annotated[float | None, typer.Option(help="The delta of (epsilon, delta) budgets.")] = None,
    beta: Beta = None,
    delta: Delta = None,
    rewards: Rewards = None,
    regulariser: Regulariser = None,
    exploration: Exploration = None,
    growth: Growth = None,
    tol: Annotated[float, typer.Option(help="Linear: of the optimal design.")] = 1e-3,
    phase_length: PhaseLength = "paper",
    phase_factor: Annotated[float, typer.Option(help="Linear: multiplies the length of all phases.")] = 1.0,
    action_norm: Annotated[float, typer.Option(help="Linear: the largest norm of an action.")] = 1.0,
    variant: Annotated[
        str | None,
        typer.Option(
            help="paper: as published; tight: less regret for the same budget.",
            show_default="tight where a policy has it, else paper",
        ),
    ] = None,
    setting_as: Annotated[
        str,
        typer.Option(
            help="Linear, contextual: strict, rewards +1 and -1, contexts in the unit ball; paper, N(0, 1) noise."
        ),
    ] = "strict",
    delay: Delay = "0",
    missing: Missing = 0.0,
    verdict: Verdict = None,
    horizon: Horizon = None,
    runs: Annotated[str | None, typer.Option(help="Independent runs.", show_default="100; with --data 5")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the simulation.")] = 0,
    processes: Annotated[int, typer.Option(help="Processes to use; the numbers do not depend on it.")] = 1,
    csv: Csv = None,
    html: Html = None,
    picture: PictureFile = None,
    as_json: Json = False,
) -> None:
    """Regret of policies over many runs, exact in distribution. Simulated noise protects nobody.

    With --data: the share of right recommendations on a table of your own, with privacy and without.
    """
    check_one_of("setting", setting, SETTINGS)
    check_one_of("setting-as", setting_as, ("paper", "strict"))
    refuse_flags_of_other_settings(context, setting)
    refuse_flags_without_or_beside_table(context)
    large_number("seed", seed, least=0)
    if verdict is not None:
        check_probability("verdict", verdict)
    files = Outputs(csv, html, picture)
    files.check()
    usual = usual_scale(context)
    steps, repeats = parse_number("horizon", horizon or usual[0]), parse_number("runs", runs or usual[1])
    environment: Environment
    options: dict[str, Any]
    fails = 1e-3 if delta is None else delta
    if setting == "finite":
        environment = Bernoulli(parse_numbers("means", means))
        options = {"n_arms": len(environment.means), "horizon": steps}
        options["rewards"] = steps if rewards is None else parse_number("rewards", rewards)
        sure = verdict if delta is None else delta
        options |= {} if sure is None else {"delta": sure}
    elif setting == "contextual":
        world: Setting = "paper" if setting_as == "paper" else "strict"
        drawn = contextual_world(dimension, arms, theta, seed, world) if data is None else None
        environment = drawn or Labelled(data, label, components)
        options = {
            "dimension": environment.dimension,
            "arms": environment.arms,
            "horizon": steps,
            "delta": fails,
        }
    else:
        noise = "gaussian" if setting_as == "paper" else "bounded"
        environment = linear_world(actions, theta, seed, noise, action_norm)
        options = {
            "actions": environment.actions,
            "delta": fails,
            "tol": tol,
            "action_norm": action_norm,
        }
        options |= {"phase_length": phase_length, "phase_factor": phase_factor}
    of_policies = {"beta": beta, "growth": growth, "regulariser": regulariser, "exploration": exploration}
    options |= {name: value for name, value in of_policies.items() if value is not None}
    budgets = parse_budgets(rho, epsilon, privacy_delta)
    names = (policy or usual_policies(context, setting)).split(",")
    policies: dict[str, Policy[Any]] = {
        f"{name} {budget_label(budget)}": policy_named(name, setting, budget, options, variant)
        for name in names
        for budget in budgets
    }
    refuse_flags_of_other_policies(context, names, setting)
    late: dict[str, Any] = {"delay": delay, "missing": missing, "verdict": verdict}
    result = run_simulation(policies, environment, steps, repeats, seed, processes=processes, **late)
    files.write(result)
    references = [reference_of(made, environment, result.horizon) for made in policies.values()]
    if as_json:
        print(json.dumps(with_references(result.to_dict(), references)))
        return
    if isinstance(environment, Labelled):
        Console().print(share_table(result, environment))
        Console().print(table_in_words(environment, result.horizon), soft_wrap=True, markup=False, highlight=False)
    else:
        Console().print(regret_table(result, references))
    if result.verdicts:
        Console().print(verdict_table(result))
    print(f"{result.seconds:.2f} seconds. {result.note[0].upper()}{result.note[1:]}.")


@app.command()
def policies(as_json: Json = False) -> None:
    """Every name that --policy accepts, with its setting, its variants, the privacy it keeps and its source."""
    rows = [
        {
            "name": name,
            "setting": cls.setting,
            "variants": list(cls.variants),
            "privacy": _notions(cls),
            "source": cls.source,
        }
        for name, cls in sorted(POLICIES.items())
    ]
    if as_json:
        print(json.dumps({"policies": rows}))
        return
    table = Table("name", "setting", "variants", "privacy", "source")
    for row in rows:
        table.add_row(*(", ".join(cell) if isinstance(cell, list) else str(cell) for cell in row.values()))
    Console().print(table)


@app.command()
def definitions(
    policy: Annotated[
        str | None,
        typer.Option(
            help="FILE.json, or module:name of a policy or a rule.", show_default="the paper's counterexample"
        ),
    ] = None,
    epsilon: Annotated[float, typer.Option(help="Delta is computed at this epsilon.")] = 0.95,
    privacy_delta: Annotated[
        float, typer.Option("--privacy-delta", "--delta", help="Epsilon is computed at this delta; 0: pure DP.")
    ] = 0.17,
    model: Annotated[
        str | None,
        typer.Option(
            help="From " + ", ".join(small.MODELS) + ".",
            show_default="view, table, interactive, adaptive, and joint with contexts",
        ),
    ] = None,
    worst: Annotated[str, typer.Option(help="Whose worst case is told in words: delta, epsilon or rho.")] = "delta",
    observer: Annotated[str, typer.Option(help="Who looks, for joint models: later or others.")] = "later",
    tolerance: Annotated[float, typer.Option(help="Relative width of the bracket of rho.")] = 1e-6,
    arms: Annotated[int | None, typer.Option(help="Arms of a rule module:name.", show_default="its own")] = None,
    horizon: Annotated[int | None, typer.Option(help="Steps of a rule.", show_default="its own")] = None,
    rewards: Annotated[str | None, typer.Option(help="Rewards of a rule.", show_default="its own, else 0,1")] = None,
    contexts: Annotated[int | None, typer.Option(help="Contexts of a rule.", show_default="its own, else none")] = None,
    as_json: Json = False,
) -> None:
    """How private a small policy is under each definition, exactly, with the worst neighbours and adversary."""
    check_one_of("worst", worst, ("delta", "epsilon", "rho"))
    values = None if rewards is None else parse_numbers("rewards", rewards)
    chosen = small.find(policy, arms, horizon, values, contexts)
    with progress("all pairs of neighbours") as report:
        names = None if model is None else model.split(",")
        analysis = small.analyse(chosen, names, epsilon, privacy_delta, tolerance, observer, report)
    if as_json:
        print(json.dumps(small.as_json(analysis)))
        return
    Console().print(small.as_table(analysis))
    print(small.as_text(analysis, worst), f"\n\n{analysis.seconds:.2f} seconds.")


@app.command()
def bounds(
    context: typer.Context,
    setting: Annotated[str, typer.Option(help="Kind of bandit: " + ", ".join(SETTINGS) + ".")] = "finite",
    arms: Annotated[
        int | None, typer.Option(help="Number of arms, or of actions.", show_default="those of --means; else 10")
    ] = None,
    means: Annotated[
        str | None,
        typer.Option(
            help="Finite, linear: mean of each arm; without, only what holds for all means.",
            show_default="finite without --arms: the paper's five",
        ),
    ] = None,
    dimension: Annotated[int, typer.Option(help="Linear, contextual: of the actions.")] = 3,
    horizon: Annotated[str, typer.Option(help="Steps.")] = "1e7",
    rho: Annotated[str | None, typer.Option(help="A zCDP budget; inf: no privacy.", show_default="0.1")] = None,
    epsilon: Annotated[str | None, typer.Option(help="The budget as epsilon: pure DP, or with a delta.")] = None,
    privacy_delta: Annotated[float | None, typer.Option(help="The delta of an (epsilon, delta) budget.")] = None,
    beta: Annotated[float, typer.Option(help="Finite: optimism of the index; the paper's experiment has 1.")] = 3.1,
    delta: Annotated[float, typer.Option(help="Linear, contextual: the probability that a width fails.")] = 1e-3,
    regulariser: Annotated[float, typer.Option(help="Contextual: lambda.")] = 0.1,
    growth: Annotated[float, typer.Option(help="Contextual: C.")] = 1.0,
    parameter_norm: Annotated[float, typer.Option(help="Contextual: S, the largest norm of theta.")] = 1.0,
    eigenvalue: Annotated[float, typer.Option(help="Contextual: the smallest eigenvalue of E[a a'].")] = 0.1,
    tol: Annotated[float, typer.Option(help="Linear: of the optimal designs.")] = 1e-3,
    setting_as: Annotated[
        str,
        typer.Option(help="Contextual: paper, N(0, 1) noise and contexts beyond the unit ball; strict, within."),
    ] = "paper",
    as_json: Json = False,
) -> None:
    """Regret bounds side by side, upper and lower, with what each assumes and whether these numbers meet it."""
    check_one_of("setting", setting, SETTINGS)
    check_one_of("setting-as", setting_as, ("paper", "strict"))
    refuse_flags_of_other_settings(context, setting, OF_BOUNDS)
    problem = theory.problem(
        setting,
        single_budget(parse_budgets(rho or (None if epsilon else "0.1"), epsilon, privacy_delta)),
        arms,
        None if means is None else parse_numbers("means", means),
        dimension=dimension,
        horizon=parse_number("horizon", horizon),
        beta=beta,
        delta=delta,
        regulariser=regulariser,
        growth=growth,
        parameter_norm=parameter_norm,
        eigenvalue=eigenvalue,
        tol=tol,
        strict=setting_as == "strict",
    )
    if as_json:
        print(json.dumps(theory.as_json(problem)))
        return
    Console().print(theory.as_table(problem))
    print(theory.as_text(problem))


@app.command()
def audit(
    policy: Annotated[
        str, typer.Option(help="A name from `private-bandits policies`, all of them, or a factory module:make_agent.")
    ] = "all",
    rho: Annotated[float | None, typer.Option(help="The zCDP that is claimed.", show_default="the agent's own")] = None,
    epsilon: Annotated[float | None, typer.Option(help="The claim as epsilon: pure DP, or with a delta.")] = None,
    privacy_delta: Annotated[float | None, typer.Option(help="The delta of an (epsilon, delta) claim.")] = None,
    variant: Annotated[
        str | None,
        typer.Option(help="Of a shipped policy: paper or tight.", show_default="its own; all policies: both"),
    ] = None,
    reward_range: Annotated[str, typer.Option(help="Of a factory's agents.")] = "0,1",
    arms: Annotated[int | None, typer.Option(help="Arms of a factory's agents.", show_default="counted")] = None,
    gaussian: Annotated[
        bool,
        typer.Option("--gaussian", help="A factory's agents claim Gaussian noise of this rho, which promises more."),
    ] = False,
    seconds: Annotated[
        float | None,
        typer.Option(help="Time to look from outside; the rest comes on top.", show_default="90; all policies: 160"),
    ] = None,
    short: Annotated[bool, typer.Option("--short", help="Half a minute at most: finds what is badly broken.")] = False,
    seed: Annotated[int, typer.Option(help="Seed of the search; what fits into the time varies all the same.")] = 0,
    processes: Annotated[int, typer.Option(help="How many processes share the runs: 1 or 2.")] = 2,
    false_accusation: Annotated[
        float, typer.Option(help="How often an agent that keeps its claim may be accused, at most.")
    ] = 1e-4,
    html: Annotated[Path | None, typer.Option(help="Write a report with pictures to this new file.")] = None,
    file: Annotated[
        Path | None, typer.Option(help="Test the noise in this agent's file instead, against --rewards.")
    ] = None,
    rewards: Annotated[
        Path | None,
        typer.Option(help="With --file: a CSV file of all outcomes in the order told: arm, reward, and person."),
    ] = None,
    warm_start: Annotated[
        int, typer.Option(help="With --file: rows of --rewards that the agent was started from.")
    ] = 0,
    as_json: Json = False,
) -> None:
    """Look for a broken promise, in a shipped policy, in your own agent, or in the noise of an agent's file.

    Exit code 1 if there is one, 3 if an agent failed so often that it could not be judged.
    """
    from private_bandits import audit as audits  # here: half a second that no other command needs

    if file is not None or rewards is not None:
        if html is not None:
            raise InvalidInput("--html is for audits of policies and agents: leave it out with --file")
        audit_noise(file, rewards, warm_start, as_json)
        return

    page = [] if html is None else ["jinja2"]
    require("the audit", "audit", *page, "scipy")  # before a factory is called
    check_new_file(html)
    claims = [None] if rho is epsilon is None else parse_budgets(number_text(rho), number_text(epsilon), privacy_delta)
    targets = audit_targets(policy, claims[0], variant, reward_range, arms, gaussian)
    reports = audits.audit_all(targets, seconds, short, processes, seed, false_accusation)
    if html is not None:
        html.write_text(audits.html(reports), encoding="utf-8")
    if as_json:
        print(json.dumps(audits.to_dict(reports)))
    else:
        for report in reports:
            report.print(Console())
    if any(report.violated for report in reports):
        raise typer.Exit(1)
    if not all(report.judged for report in reports):
        raise typer.Exit(3)


@app.command()
def reproduce(
    figure: Annotated[
        str, typer.Option(help="finite, linear, contextual, noise-placement, tables, all, or see docs/reproduce.md.")
    ] = "all",
    horizon: Annotated[
        str | None,
        typer.Option(
            help="Steps, of what --figure names; with all: of the paper's, the others have at most their own.",
            show_default="1e7; beyond the paper 2e5, lower 1e6, finite-tight and linear-tight 1e7, real-data 1e4",
        ),
    ] = None,
    runs: Annotated[
        str | None,
        typer.Option(
            help="Runs, of the same experiments as --horizon.",
            show_default="100; beyond the paper 20, finite-tight 40, real-data 3",
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder of results; what differs there is moved aside.")] = Path("results"),
    seed: Annotated[int, typer.Option(help="Seed of instances and simulations.")] = 0,
    processes: Annotated[
        int | None, typer.Option(help="To use here; the numbers do not depend on it.", show_default="all cores")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Everything at a small scale, in a minute.")] = False,
    full: Annotated[
        bool,
        typer.Option(
            "--full",
            help="What is beyond the paper at a large scale: 100 runs of 1e6 steps, of 1e7 for tight and lower, but "
            "contextual-tight 20 runs of 1e6.",
        ),
    ] = False,
    dask: Annotated[
        str | None, typer.Option(help="Compute on the Dask cluster with this scheduler.", metavar="tcp://HOST:PORT")
    ] = None,
    as_json: Json = False,
) -> None:
    """The paper's experiments and tables and what it lacks: numbers, pictures, a report. The same command continues."""
    from private_bandits.experiments import reproduce as command  # here: no other command needs it

    steps = None if horizon is None else parse_number("horizon", horizon)
    repeats = None if runs is None else parse_number("runs", runs)
    experiments, tables = command.chosen(figure, steps, repeats, quick, full)
    command.check_extras(experiments, dask)
    left_out = "\n".join(command.left_out(figure))
    if left_out:
        print(left_out, file=sys.stderr)
    try:
        workers = command.cores() if processes is None else processes
        outcome = command.reproduce(experiments, out, tables, seed, workers, dask)
    except KeyboardInterrupt as stop:
        print(stop if stop.args else "Stopped. The same command goes on.", file=sys.stderr)
        raise typer.Exit(130) from None
    if as_json:
        print(json.dumps(outcome.to_dict()))
    else:
        outcome.print(Console())
    if left_out:
        print(left_out, file=sys.stderr)  # again, where it is seen at the end


def main() -> None:
    """The command line's entry: what the package refuses is told in one line, with exit code 2."""
    try:
        app()
    except PrivateBanditsError as error:
        Console(stderr=True).print(f"[red]error:[/red] {escape(str(error))}", highlight=False, soft_wrap=True)
        raise SystemExit(2) from None


def audit_targets(
    policy: str, claim: Any, variant: str | None, reward_range: str, arms: int | None, gaussian: bool
) -> Any:
    """Shipped policies, or the agents of a factory."""
    from private_bandits import audit as audits

    own = policy == "all" or policy in POLICIES
    if own and gaussian:
        raise InvalidInput("--gaussian is for factories: policies of this package promise what their budget says")
    if own:
        return audits.shipped(policy, claim, variant)
    if variant is not None:
        raise InvalidInput(f"variant is for shipped policies: leave it out for {policy}")
    low, high = parse_pair("reward-range", reward_range)
    return [audits.of_factory(policy, claim, (low, high), arms, gaussian)]


def audit_noise(file: Path | None, rewards: Path | None, warm_start: int, as_json: bool) -> None:
    """Test the noise in an agent's file. Exit code 1 if it is not what the ledger says."""
    from private_bandits.audit import audit_file

    if file is None or rewards is None:
        raise InvalidInput("--file and --rewards go together: the agent's file, and all outcomes in the order told")
    found = audit_file(file, rewards, warm_start=warm_start)
    print(json.dumps(found.to_dict()) if as_json else found)
    if found.violated:
        raise typer.Exit(1)


def _notions(policy: type[Policy[Any]]) -> list[str]:
    """The budgets that it keeps; joint DP, where contexts are private too."""
    if not policy.private_contexts:
        return list(policy.supported_budgets)
    return [n if n == "NoPrivacy" else f"joint {n} (contexts private too)" for n in policy.supported_budgets]
