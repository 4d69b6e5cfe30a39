"""Plans a trial: how probable a right verdict is for so many people, over policies and budgets, by simulation."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

from private_bandits.arrays import Floats
from private_bandits.budget import Budget, NoPrivacy, zCDP
from private_bandits.checks import check_positive, check_probability, large_number
from private_bandits.environments import Bernoulli
from private_bandits.errors import InvalidInput
from private_bandits.instances import policy_named
from private_bandits.mechanism.rewards import RewardRange
from private_bandits.policies import POLICIES, Policy
from private_bandits.policies.evidence import ArmEvidence, intervals_of
from private_bandits.progress import Report
from private_bandits.progress import progress as progress_bar
from private_bandits.simulation.arrivals import Arrivals
from private_bandits.state import Settings
from private_bandits.trial.planned import TARGET, Plan, PlanRow
from private_bandits.verdict import largest_leads
from private_bandits.wiring import Promise, budget_of_a_reward, run_policy_of

if TYPE_CHECKING:
    from private_bandits.simulation.trial_runs import TrialRuns

POLICIES_OF_PLANS = ("adac-imed", "adac-top-two", "adac-halving")
"""Policies whose closing releases the simulation knows."""
LONGEST, LONGEST_LATE = 20, 5
"""Runs go on for so many times the people; the second where rewards are late or missing: decisions are played then."""
WIDTH_RUNS = 40
"""Runs whose intervals are computed: their widths differ little from run to run."""
GOING_ON = 250
"""Runs of each policy and budget that go on after the last person, where each decision is played."""
SECONDS_A_DECISION, SECONDS_A_STEP = 8e-7, 8e-4
"""Of one run, and of all runs together beyond the last person, where each decision is played."""
LONG = 60.0
"""Seconds that are announced."""
POINTS = 80
MOST_DECISIONS = 10**7
"""Of one trial: people times their rewards."""


def plan(
    arms: int | Sequence[str],
    gap: float = 0.1,
    people: float = 2000,
    *,
    base_rate: float = 0.5,
    rewards_per_person: int = 1,
    unit: Literal["reward", "person"] = "reward",
    missing: float = 0.0,
    delay: float | str = 0,
    delta: float = 0.05,
    policies: Sequence[str] = ("adac-imed", "adac-top-two"),
    rho: Sequence[float] = (0.01, 0.05, 0.1, 0.5, 1.0),
    means: Sequence[float] | None = None,
    runs: float = 1000,
    seed: int = 0,
    progress: bool = True,
) -> Plan:
    """Return what to expect of a trial, for each policy and budget, by simulation; `str` of it is a table and advice.

    Trials are simulated on the hardest case that matters: the last arm succeeds with probability base_rate + gap, all
    others with base_rate. Somebody looks for a verdict all the time. After the last decision the outstanding rewards
    come in, and `finish` makes the closing release. Rewards are independent of each other, those of one person too.

    Args:
        arms: How many, or their names.
        gap: The smallest difference that matters.
        people: Who will come.
        base_rate: The success rate of all other arms.
        rewards_per_person: How many rewards each person tells, of as many decisions.
        unit: What the budget is for: a reward, or all rewards of a person.
        missing: The probability that a reward never comes.
        delay: How many later decisions are made before a reward is told: 3 weeks at 20 people a week are 60 (times
            the rewards of each person). "geometric:100" is a random delay.
        delta: The failure probability of the verdict.
        policies: Names of policies: adac-imed, adac-top-two, adac-halving.
        rho: zCDP budgets. The same trial without privacy is always simulated too, for comparison.
        means: Success rates of a case of your own, in place of gap and base_rate.
        runs: Simulated trials for each row.
        seed: Of the simulation.
        progress: Whether to show a bar on a terminal.

    Raises:
        InvalidInput: an argument makes no sense, as base_rate + gap > 1.

    Example:
        >>> import private_bandits as pb
        >>> found = pb.plan(arms=["new", "old"], gap=0.3, people=800, rho=[0.5], runs=200, progress=False)
        >>> found.recommended.policy, found.recommended.rho
        ('adac-top-two', 0.5)
    """
    names, rates = _names(arms), _rates(arms, gap, base_rate, means)
    people, runs = large_number("people", people), large_number("runs", runs, least=2)
    each, arrivals = large_number("rewards_per_person", rewards_per_person, most=1e6), Arrivals.of(delay, missing)
    seed, delta = large_number("seed", seed, least=0), check_probability("delta", delta)
    decisions = people * each
    if decisions > MOST_DECISIONS:
        of_each = f" with {each:,} rewards of each person" if each > 1 else ""
        raise InvalidInput(f"people must be at most {MOST_DECISIONS // each:,}{of_each}, got {people:,}")
    limit = people * (LONGEST if arrivals.prompt else LONGEST_LATE)
    expected = max(1, int(decisions * (1 - arrivals.missing)))
    options = {"n_arms": len(names), "delta": delta, "rewards": expected}
    asked = [[_settings(name, budget, options, each, unit) for budget in _budgets(rho)] for name in _known(policies)]
    started = time.perf_counter()
    if progress:
        _announce(len(asked), len(asked[0]) * runs, decisions, arrivals)
    with progress_bar("planning", enabled=progress) as report:
        found = _simulated(asked, rates, arrivals, (delta, decisions, limit * each, runs, seed), report)
    best = int(np.argmax(rates))
    axis = _axis([_needed(result, best, decisions, each)[0] for _, result in found], people)
    rows = _rows(found, rates, (people, each, delta, limit), axis)
    smallest = float(gap) if means is None else float(max(rates) - sorted(rates)[-2])
    world = {"arms": names, "means": rates, "gap": smallest, "people": people, "rewards_per_person": each, "unit": unit}
    late = {"missing": arrivals.missing, "delay": arrivals.delay.plain}
    course = {"delta": delta, "runs": runs, "seed": seed, "limit": limit}
    seconds = time.perf_counter() - started
    return Plan(**world, **late, **course, rows=rows, axis=axis, seconds=seconds, own_means=means is not None)  # type: ignore[arg-type]


Asked = list[list[Settings]]
Found = list[tuple[Settings, "TrialRuns"]]


def _names(arms: int | Sequence[str]) -> tuple[str, ...]:
    if isinstance(arms, (int, float)) and not isinstance(arms, bool):
        return tuple(f"arm {number}" for number in range(large_number("arms", arms, least=2, most=1000)))
    if isinstance(arms, (str, bool)) or not isinstance(arms, Sequence) or len(set(arms)) != len(arms) or len(arms) < 2:
        raise InvalidInput(f'arms must be a number of at least 2, or different names such as ["A", "B"], got {arms!r}')
    return tuple(str(name) for name in arms)


def _rates(arms: Any, gap: float, base_rate: float, means: Sequence[float] | None) -> tuple[float, ...]:
    number = len(_names(arms))
    if means is not None:
        rates = tuple(float(mean) for mean in Bernoulli(means).means)
        if len(rates) != number:
            raise InvalidInput(f"means must be {number} numbers, one of each arm, got {len(rates)}")
        if sorted(rates)[-1] == sorted(rates)[-2]:
            raise InvalidInput(f"one arm must be better than all others, and two have the mean {max(rates):g}")
        return rates
    gap = check_positive("gap", gap)
    if isinstance(base_rate, bool) or not isinstance(base_rate, (int, float)) or not 0 <= base_rate < 1:
        raise InvalidInput(f"base_rate must be a probability from 0 to below 1, got {base_rate!r}")
    if base_rate + gap > 1 + 1e-12:
        raise InvalidInput(
            f"base_rate + gap must not exceed 1, got {base_rate:g} + {gap:g}: give the success rate of the worse arms "
            "as base_rate, or a smaller gap"
        )
    return (*[float(base_rate)] * (number - 1), min(1.0, base_rate + gap))


def _budgets(rho: Sequence[float]) -> list[Budget]:
    """Return the budgets from the smallest to the largest, and the twin without privacy."""
    levels = [rho] if isinstance(rho, (int, float)) else list(rho)
    private = sorted({check_positive("rho", level) for level in levels if level != math.inf})
    return [*map(zCDP, private), NoPrivacy()]


def _known(policies: Sequence[str]) -> list[str]:
    names = [policies] if isinstance(policies, str) else list(dict.fromkeys(policies))
    for name in names:
        if name not in POLICIES_OF_PLANS:
            known = " (simulate(..., verdict=...) has verdicts of it)" if name in POLICIES else ""
            raise InvalidInput(f"policies of a plan are {', '.join(POLICIES_OF_PLANS)}, got {name!r}{known}")
    if not names:
        raise InvalidInput("policies must name at least one policy, such as adac-top-two")
    return names


def _settings(name: str, budget: Budget, options: dict[str, Any], each: int, unit: str) -> Settings:
    """Return the settings of the agent that would be made."""
    limit = each if each > 1 or unit == "person" else None
    policy = policy_named(name, "finite", budget, options)
    return Settings(policy, RewardRange(0, 1), limit, cast(Any, unit), None, None)


def _announce(groups: int, runs: int, decisions: int, arrivals: Arrivals) -> None:
    """Say how long it takes where that is minutes."""
    if arrivals.prompt:
        return
    beyond = LONGEST_LATE * decisions * SECONDS_A_STEP
    least, most = (groups * (runs * decisions * SECONDS_A_DECISION + rest) for rest in (0.0, beyond))
    if most > LONG and sys.stderr.isatty():
        words = f"planning plays every decision, as rewards are late or missing: {_minutes(least)} to {_minutes(most)}"
        print(f"{words}. Fewer runs or budgets take less.", file=sys.stderr)


def _minutes(seconds: float) -> str:
    """Return a time in words.

    >>> _minutes(12.3), _minutes(600)
    ('12 seconds', '10 minutes')
    """
    return f"{seconds:.0f} seconds" if seconds < 100 else f"{seconds / 60:.0f} minutes"


def _simulated(
    asked: Asked, rates: Sequence[float], arrivals: Arrivals, course: tuple[float, int, int, int, int], report: Report
) -> Found:
    """Simulate the policies of each name together."""
    from private_bandits.simulation.trial_runs import Course, trials

    delta, decisions, limit, runs, seed = course
    went_on = runs if arrivals.prompt else min(runs, GOING_ON)
    length = Course(delta, decisions, limit, min(1.0, TARGET + (_spread(went_on) + 1) / went_on), GOING_ON)
    found: Found = []
    for number, group in enumerate(asked):
        played: list[Policy[Any]] = [run_policy_of(settings) for settings in group]

        def within(part: float, number: int = number) -> None:
            report((number + part) / len(asked))

        found += zip(group, trials(played, Bernoulli(rates), arrivals, length, runs, seed, within), strict=True)
    return found


def _right_times(result: TrialRuns, best: int, runs: int) -> Floats:
    """Return after how many decisions each of the first runs had its first verdict, infinite unless it was right."""
    times, winners = result.found[:runs].T
    return np.where((winners == best) & np.isfinite(times), times, np.inf)


def _spread(runs: int) -> float:
    """Return how far the number of right verdicts by a time is from its mean of 90%, but with probability 5%."""
    return 1.96 * math.sqrt(runs * TARGET * (1 - TARGET))


def _needed(result: TrialRuns, best: int, decisions: int, each: int) -> list[int | None]:
    """Return the people for a right verdict with probability 90%, and the ends of an interval for their number."""
    everyone = len(result.closed)
    in_time = float((_right_times(result, best, everyone) <= decisions).mean())
    runs = everyone if in_time >= TARGET else result.went_on
    times = np.sort(_right_times(result, best, runs))
    spread = _spread(runs)
    found: list[int | None] = []
    for rank in (TARGET * runs, TARGET * runs - spread, TARGET * runs + spread):
        place = min(max(math.ceil(rank - 1e-9), 1), runs) - 1
        time = times[place] if in_time >= TARGET else max(times[place], decisions + 1)
        found.append(math.ceil(time / each) if np.isfinite(time) else None)
    return found


def _axis(needed: Sequence[int | None], people: int) -> tuple[int, ...]:
    """Return numbers of people for the curves: up to somewhat beyond the largest that is needed, and each of these."""
    known = [number for number in needed if number is not None]
    most = math.ceil(max(1.05 * max(known), 1.1 * people) if known else 1.5 * people)
    even = np.linspace(0, most, POINTS).round().astype(int)
    return tuple(int(point) for point in np.unique([*even, *known]))


def _curve(result: TrialRuns, best: int, known: int, axis: Sequence[int], people: int, each: int) -> list[float]:
    """Return the share of right verdicts by so many people, as far as it is known: so many people."""
    early, late = (np.sort(_right_times(result, best, runs)) for runs in (len(result.closed), result.went_on))
    found: list[float] = []
    for point in axis:
        if point > known:
            break
        times = early if point <= people else late
        share = float(np.searchsorted(times, point * each, side="right") / len(times))
        found.append(max(share, found[-1]) if found else share)
    return found


def _rows(
    found: Found, rates: Sequence[float], trial: tuple[int, int, float, int], axis: Sequence[int]
) -> tuple[PlanRow, ...]:
    people, each, delta, limit = trial
    best = int(np.argmax(rates))
    widths = _half_widths([result for _, result in found], rates, delta)
    rows = []
    for (settings, result), (of_best, of_difference) in zip(found, widths, strict=True):
        needed = _needed(result, best, people * each, each)
        worse = result.plays.sum(axis=0) - result.plays[best]
        missed = (max(rates) - np.array(rates)) @ result.plays
        first = result.found[:, 0] <= people * each
        shares = (
            first & (result.found[:, 1] == best),
            result.closed == best,
            (result.closed >= 0) & (result.closed != best),
        )
        probabilities = [part for share in shares for part in _mean(share.astype(float))]
        curve = _curve(result, best, max(people, needed[0] or limit), axis, people, each)
        rho = settings.policy.budget.implied_rho
        assert rho is not None
        figures = (*probabilities, *needed, *_mean(worse), *_mean(missed), of_best, of_difference, tuple(curve))
        rows.append(PlanRow(settings.policy.name, float(rho), _guessed(settings), *figures))  # type: ignore[arg-type]
    return tuple(rows)


def _mean(values: Any) -> tuple[float, float]:
    """Return a mean and its standard error."""
    return float(np.mean(values)), float(np.std(values, ddof=1) / math.sqrt(len(values)))


def _guessed(settings: Settings) -> float:
    """Return how often the best guess about one unit is right."""
    budget = budget_of_a_reward(settings)
    private = math.isfinite(budget.level)
    return Promise(settings, budget.level, private, seeded=False).guarantee(0.0).guessed_right


def _half_widths(results: Sequence[TrialRuns], rates: Sequence[float], delta: float) -> list[tuple[float, float]]:
    """Return half of the intervals at the end, on average: of the best arm, and of its difference to the next one."""
    arms, best = len(rates), int(np.argmax(rates))
    other = max((arm for arm in range(arms) if arm != best), key=lambda arm: rates[arm])
    counted = [range(min(WIDTH_RUNS, len(result.closed))) for result in results]
    ends = [result.ends.of_run(run) for result, runs in zip(results, counted, strict=True) for run in runs]
    ways = [way for end in ends for way in end[best]]
    intervals = iter(intervals_of(tuple(ways), tuple(arms * way.odds / delta for way in ways)))
    of_best = np.array([_half(end[best], intervals) for end in ends])
    of_difference = np.ones(len(ends))
    both = [place for place, end in enumerate(ends) if end[best] and end[other]]
    if both:
        pairs: list[tuple[ArmEvidence, ArmEvidence]] = [(ends[place][best], ends[place][other]) for place in both]
        leads = largest_leads([*pairs, *((second, first) for first, second in pairs)], arms * (arms - 1) / delta)
        of_difference[both] = -leads.reshape(2, -1).sum(axis=0) / 2
    cuts = np.cumsum([len(runs) for runs in counted])[:-1]
    means = ([float(part.mean()) for part in np.split(values, cuts)] for values in (of_best, of_difference))
    return list(zip(*means, strict=True))


def _half(ways: ArmEvidence, intervals: Any) -> float:
    """Return half of what all ways of knowing an arm leave of [0, 1]."""
    ends = [next(intervals) for _ in ways]
    return max(0.0, min((high for _, high in ends), default=1.0) - max((low for low, _ in ends), default=0.0)) / 2
