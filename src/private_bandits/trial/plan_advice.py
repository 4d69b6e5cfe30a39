"""The advice of a plan: which policy and budget to take, and why, in words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from private_bandits.budget import zCDP
from private_bandits.guarantee import guessed_right
from private_bandits.simulation.arrivals import Arrivals
from private_bandits.trial.planned import TARGET, PlanRow

if TYPE_CHECKING:
    from private_bandits.trial.planned import Plan


def note(plan: Plan) -> str:
    """Say what was simulated."""
    last = f"{plan.arms[plan.means.index(max(plan.means))]} succeeds with probability {max(plan.means):g}"
    others = sorted({mean for mean in plan.means if mean < max(plan.means)})
    rest = f"every other arm with {others[0]:g}" if len(others) == 1 else "the others with " + _listed(others)
    each = "" if plan.rewards_per_person == 1 else f" with {plan.rewards_per_person} rewards each"
    late = str(Arrivals.of(plan.delay, plan.missing))
    hardest = ": the hardest case that matters" if len(others) == 1 else ""
    return (
        f"{plan.people:,} people{each}, {len(plan.arms)} arms; {last}, {rest}{hardest}. "
        f"Verdicts with delta = {plan.delta:g}, looked for all the time"
        + (f"; {late}" if late else "")
        + f". The budget is for {_unit(plan)}. {plan.runs:,} simulated trials for each row."
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
        words.append("A smaller rho may do as well: ask for some.")
    close = abs(chosen.right - TARGET) < 2 * chosen.right_stderr
    if close:
        words.append("This is within the error of the simulation: more runs, or a few more people, make it sure.")
    return " ".join(words)


def _if_one_can_wait(plan: Plan, below: float) -> list[str]:
    """Say which smaller rho is enough once all outstanding rewards are in and the closing release is made."""
    later = [row for row in plan.rows if row.private and row.rho < below and row.right_closed >= TARGET]
    if not later:
        return []
    row = min(later, key=lambda found: (found.rho, found.worse))
    return [
        f"If it is enough to know after the closing release, {row.policy} with rho = {row.rho:g} does as well: "
        f"{_share(row.right_closed)} by then."
    ]


def _needed(plan: Plan, row: PlanRow) -> str:
    assert row.people_needed is not None
    return f"For {TARGET:.0%}, {row.people_needed:,} of the {plan.people:,} people are enough."


def _odds(plan: Plan, row: PlanRow) -> str:
    words = (
        f"With rho = {row.rho:g}, whoever knows everything else and guesses {_unit(plan)}, of two possibilities that "
        f"are equally likely, is right {_share(row.guessed_right)} of the time; a coin is right 50%."
    )
    if plan.unit == "reward" and plan.rewards_per_person > 1:
        of_person = guessed_right(zCDP(row.rho), row.rho * plan.rewards_per_person**2)
        words += f" For all {plan.rewards_per_person} rewards of one person together it is {_share(of_person)}."
    return words


def _too_few(plan: Plan) -> str:
    private = [row for row in plan.rows if row.private]
    twins = [row for row in plan.rows if not row.private]
    best = max(private or twins, key=lambda row: row.right)
    words = [
        f"None of these gives a right verdict in time with a probability of {TARGET:.0%}: the best is {best.policy}"
        + (f" with rho = {best.rho:g}" if best.private else " without privacy")
        + f", with {_share(best.right)}, and {_share(best.right_closed)} with the closing release."
    ]
    twin = max(twins, key=lambda row: row.right)
    if twin.reaches:
        words.append(f"Without privacy it is {_share(twin.right)}: a larger rho would do, if you can answer for it.")
    else:
        words.append(
            f"Nor would it be reached without privacy ({_share(twin.right)}): people are too few for this gap."
        )
    return " ".join([*words, *_if_one_can_wait(plan, math.inf), *_what_would(plan, private or twins)])


def _what_would(plan: Plan, rows: Sequence[PlanRow]) -> list[str]:
    """Say how many people would be enough, and for which gap these are."""
    enough = [row for row in rows if row.people_needed is not None]
    if not enough:
        least = plan.gap * math.sqrt(plan.limit / plan.people)
        return [
            f"More than {plan.limit:,} people would be needed for a gap of {plan.gap:g}. The evidence grows about with "
            f"people times the gap squared, so that the gap would have to be more than {least:.2g}: plan for that one."
        ]
    words = []
    for rho in sorted({row.rho for row in enough}):
        row = min((row for row in enough if row.rho == rho), key=lambda row: row.people_needed or 0)
        level = f"rho = {rho:g}" if row.private else "no privacy"
        words.append(f"{row.people_needed:,} with {level} ({row.policy})")
    fewest = min(row.people_needed or plan.limit for row in enough)
    gap = plan.gap * math.sqrt(fewest / plan.people)
    return [
        f"People who would be enough: {_listed(words, '; ')}. Or a larger gap: about {gap:.2g} for {plan.people:,} "
        "people, as the evidence grows about with people times the gap squared. Plan for it to see."
    ]


def _unit(plan: Plan) -> str:
    if plan.unit == "person":
        return f"all rewards of one person (at most {plan.rewards_per_person})"
    return "one reward"


def _share(part: float) -> str:
    return f"{100 * part:.1f}%"


def _listed(parts: Sequence[float | str], between: str = ", ") -> str:
    return between.join(part if isinstance(part, str) else f"{part:g}" for part in parts)
