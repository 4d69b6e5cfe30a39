"""The command that plans a trial."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from private_bandits.cli.commands import Json, app
from private_bandits.cli.flags import (
    check_new_file,
    check_one_of,
    decimal,
    parse_number,
    parse_numbers,
    was_given,
)
from private_bandits.errors import InvalidInput
from private_bandits.loading import require
from private_bandits.trial.plan import plan as plan_trial
from private_bandits.trial.plan_contextual import plan_contextual

ONLY_FINITE = (
    *("gap", "base_rate", "means", "rewards_per_person", "unit", "missing", "delay", "delta", "policy", "picture"),
)
"""Flags that say nothing where actions change."""


@app.command()
def plan(
    context: typer.Context,
    arms: Annotated[str, typer.Option(help="How many arms, or their names: new,old. With --dimension: actions.")] = "4",
    gap: Annotated[
        float, typer.Option(parser=decimal, metavar="FLOAT", help="The smallest difference that matters.")
    ] = 0.1,
    people: Annotated[str, typer.Option(help="How many will come.")] = "2000",
    rho: Annotated[
        str | None,
        typer.Option(
            help="zCDP budgets. The same trial without privacy is always simulated too.",
            show_default="0.01,0.05,0.1,0.5,1",
        ),
    ] = None,
    base_rate: Annotated[
        float, typer.Option(parser=decimal, metavar="FLOAT", help="Success rate of all arms but the best.")
    ] = 0.5,
    means: Annotated[
        str | None,
        typer.Option(
            help="Success rate of each arm, in place of --gap and --base-rate.", show_default="base rate + gap"
        ),
    ] = None,
    rewards_per_person: Annotated[int, typer.Option(help="Rewards that each person tells.")] = 1,
    unit: Annotated[str, typer.Option(help="What the budget is for: reward, or person.")] = "reward",
    missing: Annotated[
        float, typer.Option(parser=decimal, metavar="FLOAT", help="The probability that a reward never comes.")
    ] = 0.0,
    delay: Annotated[
        str,
        typer.Option(
            help="Later decisions before a reward is told: 3 weeks at 20 people a week are 60. geometric:100 is a "
            "random delay."
        ),
    ] = "0",
    delta: Annotated[
        float, typer.Option(parser=decimal, metavar="FLOAT", help="The failure probability of the verdict.")
    ] = 0.05,
    policy: Annotated[str, typer.Option(help="From adac-imed, adac-top-two, adac-halving.")] = "adac-imed,adac-top-two",
    runs: Annotated[
        str | None, typer.Option(help="Simulated trials for each row.", show_default="1000; with --dimension 20")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the simulation.")] = 0,
    dimension: Annotated[
        int | None, typer.Option(help="Actions change, and have so many features.", show_default="fixed arms")
    ] = None,
    private_contexts: Annotated[
        bool, typer.Option("--private-contexts", help="With --dimension: contexts are private too.")
    ] = False,
    picture: Annotated[Path | None, typer.Option(help="Write a picture to this new file: .png, .svg or .pdf.")] = None,
    as_json: Json = False,
) -> None:
    """Plan a trial: how probable a right verdict is with so many people, over policies and budgets, and what to take.

    By simulation of the hardest case that matters: one arm is better than all others by the gap.
    """
    levels: dict[str, Any] = {} if rho is None else {"rho": parse_numbers("rho", rho)}
    if runs is not None:
        levels["runs"] = parse_number("runs", runs)
    number = parse_number("arms", arms) if arms.strip().isdecimal() else None
    if dimension is not None:
        _refuse_for_contexts(context, number)
        assert number is not None
        found: Any = plan_contextual(
            dimension,
            int(number),
            parse_number("people", people),
            private_contexts=private_contexts,
            seed=seed,
            **levels,
        )
    else:
        if private_contexts:
            raise InvalidInput("--private-contexts is for actions that change: give --dimension too")
        check_one_of("unit", unit, ("reward", "person"))
        _check_picture(picture)
        found = plan_trial(
            arms.split(",") if number is None else int(number),
            gap,
            parse_number("people", people),
            base_rate=base_rate,
            means=None if means is None else parse_numbers("means", means),
            rewards_per_person=rewards_per_person,
            unit="person" if unit == "person" else "reward",
            missing=missing,
            delay=delay,
            delta=delta,
            policies=policy.split(","),
            seed=seed,
            **levels,
        )
    if picture is not None:
        found.plot().savefig(picture, dpi=160)
    print(json.dumps(found.to_dict()) if as_json else f"{found}\n\n{found.seconds:.2f} seconds.")


def _check_picture(picture: Path | None) -> None:
    if picture is None:
        return
    require("a picture of a plan", "pictures", "matplotlib")
    check_new_file(picture)
    if picture.suffix not in (".png", ".svg", ".pdf"):
        raise InvalidInput(f"--picture must end in .png, .svg or .pdf, got {picture.name}")


def _refuse_for_contexts(context: typer.Context, arms: float | None) -> None:
    for name in ONLY_FINITE:
        if was_given(context, name):
            raise InvalidInput(f"--{name.replace('_', '-')} is for fixed arms: leave it out with --dimension")
    if arms is None:
        raise InvalidInput("--arms must be a number with --dimension: of the actions that each person has")
