"""The advice of a plan: which policy and budget to take, and why, in words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from private_bandits.budget import zCDP
from private_bandits.guarantee import guessed_right
from private_bandits.simulation.arrivals import Arrivals
from private_bandits.trial.planned import TARGET, PlanRow

if TYPE_CHECKING:
    from private_bandits.trial.planned import Plan


def note(plan: Plan) -> str:
    """Say what was simulated."""
    each = "" if plan.rewards_per_person == 1 else f" with {plan.rewards_per_person} rewards each"
    late = str(Arrivals.of(plan.delay, plan.missing))
    return (
        f"{plan.people:,} people{each}, {len(plan.arms)} arms. {_rates(plan)} "
        f"Verdicts with delta = {plan.delta:g}, looked for all the time"
        + (f"; {late}" if late else "")
        + f". The budget is for {_unit(plan)}. {plan.runs:,} simulated trials for each row."
    )


def summary(plan: Plan) -> dict[str, Any]:
    """Return what was asked and what is recommended, in a few plain entries."""
    chosen, late = plan.recommended, str(Arrivals.of(plan.delay, plan.missing))
    found: dict[str, Any] = {
        "arms": list(plan.arms),
        "people": plan.people,
        "success rates simulated": list(plan.means),
        "smallest difference to find": plan.gap,
        **({"rewards of each person": plan.rewards_per_person} if plan.rewards_per_person > 1 else {}),
        **({"late or missing": late} if late else {}),
        "the budget is for": _unit(plan),
        "failure probability of a verdict (delta)": plan.delta,
        "policies simulated": list(dict.fromkeys(row.policy for row in plan.rows)),
        "rho simulated": sorted({row.rho for row in plan.rows if row.private}),
        "recommended": "none of those simulated",
    }
    if chosen is not None:
        found |= {
            "recommended": f"{chosen.policy} with rho = {chosen.rho:g}",
            "probability of a right verdict in time": _share(chosen.right),
            "the same with the closing release": _share(chosen.right_closed),
        }
    return found | {"simulated trials": plan.runs, "seed of the simulation": plan.seed}


def _rates(plan: Plan) -> str:
    """Say how often arms succeed. They have names only if each was given its own rate."""
    if plan.own_means:
        rates = (f"{name} succeeds with probability {rate:g}" for name, rate in zip(plan.arms, plan.means, strict=True))
        return f"In the simulation {_listed(list(rates))}."
    return (
        f"In the simulation one arm, whichever it is, succeeds with probability {max(plan.means):g} and all others "
        f"with {min(plan.means):g}: the hardest case that matters."
    )


def advice(plan: Plan) -> str:
    """Say which policy and rho to take; where none will do, what would."""
    chosen = plan.recommended
    return _too_few(plan) if chosen is None else _take(plan, chosen)


def _take(plan: Plan, chosen: PlanRow) -> str:
    smaller = [row for row in plan.rows if row.private and row.rho < chosen.rho]
    least = "the smallest rho of these" if smaller else "the smallest rho that was asked for"
    words = [
        f"Take {chosen.policy} with rho = {chosen.rho:g}. It is {least} with which a right verdict falls in time with "
        f"a probability of at least {TARGET:.0%}: {_share(chosen.right)}, and {_share(chosen.right_closed)} with the "
        f"closing release. {_needed(plan, chosen)}"
    ]
    rival = next((row for row in plan.rows if row.rho == chosen.rho and row.reaches and row is not chosen), None)
    others = [row for row in plan.rows if row.rho == chosen.rho and row is not chosen]
    if rival is not None:
        words.append(
            f"{rival.policy} reaches it too, and sends more decisions to worse arms: {rival.worse:,.0f} in place of "
            f"{chosen.worse:,.0f}."
        )
    elif others and others[0].worse < chosen.worse:
        words.append(
            f"If a verdict counts less than few people on worse arms, {others[0].policy} has {others[0].worse:,.0f} "
            f"decisions for them in place of {chosen.worse:,.0f}, and a right verdict in time with a probability of "
            f"{_share(others[0].right)}."
        )
    words += [_odds(plan, chosen), *_if_one_can_wait(plan, chosen.rho)]
    if not smaller:
        words.append("A smaller rho may be enough too; run the planner with smaller ones to check.")
    close = abs(chosen.right - TARGET) < 2 * chosen.right_stderr
    if close:
        words.append("This is within the error of the simulation; run the planner with more runs to be sure.")
    return " ".join(words)


def _if_one_can_wait(plan: Plan, below: float) -> list[str]:
    """Say which smaller rho is enough once all outstanding rewards are in and the closing release is made."""
    later = [row for row in plan.rows if row.private and row.rho < below and row.right_closed >= TARGET]
    if not later:
        return []
    row = min(later, key=lambda found: (found.rho, found.worse))
    return [
        f"If a verdict after the closing release is soon enough, {row.policy} with rho = {row.rho:g} will do: a right "
        f"verdict by then has a probability of {_share(row.right_closed)}."
    ]


def _needed(plan: Plan, row: PlanRow) -> str:
    assert row.people_needed is not None
    return f"For {TARGET:.0%}, {row.people_needed:,} of the {plan.people:,} people are enough."


def _odds(plan: Plan, row: PlanRow) -> str:
    words = (
        f"With rho = {row.rho:g}, whoever knows everything else and guesses {_unit(plan)}, of two possibilities that "
        f"are equally likely, is right {_share(row.guessed_right)} of the time; who knows nothing is "
        "right 50% of the time."
    )
    if plan.unit == "reward" and plan.rewards_per_person > 1:
        of_person = guessed_right(zCDP(row.rho), row.rho * plan.rewards_per_person**2)
        words += f" For all {plan.rewards_per_person} rewards of one person together it is {_share(of_person)}."
    return words


def _too_few(plan: Plan) -> str:
    private = [row for row in plan.rows if row.private]
    twins = [row for row in plan.rows if not row.private]
    twin = max(twins, key=lambda row: row.right)
    words = [_best_of(private or twins)]
    if twin.reaches:
        words.append(f"Without privacy it is {_share(twin.right)}: a larger rho would be enough.")
    elif private:
        words.append(f"Without privacy it is {_share(twin.right)}: people are too few for this gap.")
    else:
        words.append("People are too few for this gap.")
    return " ".join([*words, *_if_one_can_wait(plan, math.inf), *_what_would(plan, private or twins)])


def _best_of(rows: Sequence[PlanRow]) -> str:
    """Say that no row reaches the target, and which one is nearest, unless none comes anywhere near."""
    best = max(rows, key=lambda row: (row.right, row.right_closed))
    words = f"None of these gives a right verdict in time with a probability of {TARGET:.0%}"
    closed = max(row.right_closed for row in rows)
    if _share(best.right) == _share(closed) == _share(0.0):
        return f"{words}: with each it is {_share(0.0)}, also with the closing release."
    level = f"with rho = {best.rho:g}" if best.private else "without privacy"
    return (
        f"{words}: the best is {best.policy} {level}, with {_share(best.right)}, and {_share(best.right_closed)} with "
        "the closing release."
    )


def _what_would(plan: Plan, rows: Sequence[PlanRow]) -> list[str]:
    """Say how many people would be enough, and which gap these would find. Evidence grows as people times gap^2."""
    enough = [row for row in rows if row.people_needed is not None]
    if not enough:
        least = plan.gap * math.sqrt(plan.limit / plan.people)
        words = [f"More than {plan.limit:,} people would be needed for a difference of {plan.gap:g}."]
        return [*words, *_larger_gap(plan, least, f"only a difference of more than {least:.2g}")]
    parts = []
    for rho in sorted({row.rho for row in enough}):
        row = min((row for row in enough if row.rho == rho), key=lambda row: row.people_needed or 0)
        level = f"rho = {rho:g}" if row.private else "no privacy"
        parts.append(f"{row.people_needed:,} with {level} ({row.policy})")
    gap = plan.gap * math.sqrt(min(row.people_needed or plan.limit for row in enough) / plan.people)
    words = [f"So many people would be enough: {_listed(parts, '; ')}."]
    return [*words, *_larger_gap(plan, gap, f"a difference of about {gap:.2g} or more")]


def _larger_gap(plan: Plan, gap: float, difference: str) -> list[str]:
    """Say which difference would be found, if there is room for it above the other arms."""
    if max(plan.means) - plan.gap + gap > 1:
        return []
    return [f"With {plan.people:,} people {difference} would be found; run the planner with that gap to check."]


def _unit(plan: Plan) -> str:
    if plan.unit == "person":
        return f"all rewards of one person (at most {plan.rewards_per_person})"
    return "one reward"


def _share(part: float) -> str:
    return f"{100 * part:.1f}%"


def _listed(parts: Sequence[float | str], between: str = ", ") -> str:
    return between.join(part if isinstance(part, str) else f"{part:g}" for part in parts)
