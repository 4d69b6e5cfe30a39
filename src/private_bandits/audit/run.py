"""audit(): the four parts, one after the other."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from multiprocessing import get_context
from typing import Any

from private_bandits.audit import accounts, draws, inside, outside
from private_bandits.audit.attempts import Answer, Hanging, ask_agent, attempt, watched
from private_bandits.audit.audit_report import FAILURE, AuditPart, Report
from private_bandits.audit.scenario import Scenario, has, play
from private_bandits.audit.search import Effort, Observer
from private_bandits.audit.target import Target
from private_bandits.audit.wording import in_words, odds
from private_bandits.audit.worlds import WorldRunner
from private_bandits.checks import check_positive, check_probability
from private_bandits.errors import InvalidInput
from private_bandits.loading import require
from private_bandits.progress import progress

LEAST_FAILURE = 1e-10
"""The smallest level that an audit keeps: see `draws.examine`."""
ROUNDS = {45.0: (0.1, 0.3, 0.6), 15.0: (0.3, 0.7), 0.0: (1.0,)}
"""From so many seconds on, shares of the time of rounds outside: what is blatant is found in the first."""
PLAIN = 12
"""Rewards of a run that shows whether an agent works at all."""


@dataclass(frozen=True)
class Thoroughness:
    """scripts: replayed from inside. draws, runs: for the noise. seconds: for the outside, about; 0 leaves it out."""

    scripts: int = 12
    draws: int = 3_000
    runs: int = 200
    seconds: float = 90.0
    effort: Effort | None = None
    """What to spend outside, in runs, whatever time it takes; None: what fits into the seconds."""
    false_accusation: float = FAILURE
    """How often an agent that keeps its claim may be accused, at most: shared out over the parts that need chance."""

    def __post_init__(self) -> None:
        if check_probability("false_accusation", self.false_accusation) < LEAST_FAILURE:
            raise InvalidInput(
                f"false_accusation must be at least {LEAST_FAILURE:g}, got {self.false_accusation!r}: so far out the "
                "tests of the noise are no longer exact enough"
            )


SHORT = Thoroughness(scripts=4, draws=600, runs=105, seconds=1.5)


def audit(
    target: Target,
    thoroughness: Thoroughness | None = None,
    processes: int = 2,
    seed: int = 0,
    advance: Callable[[float], None] = lambda share: None,
) -> Report:
    """Look for a broken promise, from inside where the sums can be seen, and from outside.

    An agent that keeps its claim is accused with probability at most `thoroughness.false_accusation`. What is not found
    is not proven.
    """
    if not isinstance(target, Target):
        raise InvalidInput(f"audit needs of_policy(policy) or of_factory(function), got a {type(target).__name__}")
    require("the audit", "audit", "scipy")
    much = thoroughness or Thoroughness()
    started = time.perf_counter()
    notes = list(target.unused)
    report = Report(target.name, target.claim, target.inside, notes=notes, false_accusation=much.false_accusation)
    try:
        with watched():
            _look(target, much, processes, seed, report, advance)
    except Hanging as error:
        report.parts.append(AuditPart("3 from outside", f"could not be judged: {error}", skipped=True, failed=True))
    report.parts.sort(key=lambda part: part.name)
    report.seconds = time.perf_counter() - started
    return report


def _look(
    target: Target, much: Thoroughness, processes: int, seed: int, report: Report, advance: Callable[[float], None]
) -> None:
    inside_share = 0.5 if target.inside else 0.0
    if target.inside:
        _look_inside(target, much, seed, report, lambda x: advance(x * inside_share))
    else:
        for name in ("1 sensitivity", "2 noise", "4 ledger"):
            report.parts.append(AuditPart(name, "sums, noise and ledger of this agent cannot be seen", skipped=True))
    if target.claim is not None and much.seconds and not report.violated:
        rest = 1 - inside_share
        _look_outside(target, much, processes, seed, report, lambda x: advance(inside_share + x * rest))


def audit_all(
    targets: Sequence[Target],
    seconds: float | None = None,
    short: bool = False,
    processes: int = 2,
    seed: int = 0,
    false_accusation: float = FAILURE,
) -> list[Report]:
    """One report for each target, with a progress bar. seconds: for each; by default 160 are shared by several.

    false_accusation: how often one that keeps its claim may be accused, at most.
    Several are audited side by side, one in each process; a single one has all of them to itself.
    """
    require("the audit", "audit", "scipy")
    if processes not in (1, 2):
        raise InvalidInput(f"processes must be 1 or 2, got {processes!r}")
    if short and seconds is not None:
        raise InvalidInput("a short audit has a time of its own: leave out either short or seconds")
    claims = sum(target.claim is not None for target in targets)
    each = seconds if seconds is not None else 90.0 if len(targets) == 1 else min(90.0, 160.0 / max(1, claims))
    check_positive("seconds", each)
    much = SHORT if short else Thoroughness(seconds=each, scripts=12 if len(targets) == 1 else 6)
    much = replace(much, false_accusation=false_accusation)
    with progress("auditing") as report, redirect_stdout(sys.stderr):
        if len(targets) == 1 or processes == 1:
            shares = [partial(_advance, report, i / len(targets), 1 / len(targets)) for i in range(len(targets))]
            return [_audit_one(t, much, processes, seed, a) for t, a in zip(targets, shares, strict=True)]
        found = []
        with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
            for one in pool.map(partial(_audit_one, much=much, processes=1, seed=seed), targets):
                found.append(one)
                report(len(found) / len(targets))
        return found


def _audit_one(
    target: Target,
    much: Thoroughness,
    processes: int,
    seed: int,
    advance: Callable[[float], None] = lambda share: None,
) -> Report:
    try:
        return audit(target, much, processes, seed, advance)
    except Exception as error:  # whatever the agent's code raised: exit code 1 is for violations alone
        raise InvalidInput(f"the audit of {target.name} stopped: {type(error).__name__}: {error}") from error


def to_dict(reports: Sequence[Report]) -> dict[str, Any]:
    """Return the reports as plain data."""
    violated = any(report.violated for report in reports)
    return {
        "violated": violated,
        "false_accusation_at_most": max((report.false_accusation for report in reports), default=FAILURE),
        "audits": [report.to_dict() for report in reports],
        "seconds": sum(report.seconds for report in reports),
    }


def _look_inside(
    target: Target, much: Thoroughness, seed: int, report: Report, advance: Callable[[float], None]
) -> None:
    # Without a claim there is no cost to search for the largest of.
    scripts = much.scripts if target.claim is not None else -(-much.scripts // 3)
    examined = attempt(lambda: inside.examine(target, scripts, seed, lambda x: advance(x / 2)))
    found = examined.value or inside.Sensitivity(blind=f"the audit stopped with {examined.words}")
    text = f"{found.replays:,} replays of neighbouring worlds"
    if found.blind:
        report.notes.append(f"the agent could not be judged from inside: {found.blind}")
    elif found.failed:
        words, _ = found.failed.most_common(1)[0]
        report.notes.append(
            f"calls failed in {found.failed.total()} of {found.scripts} scripts, most often {words}; what the agent "
            "does after that was seen only as far as it still answers"
        )
    if target.claim is not None:
        what = "context with its reward" if target.private_contexts else "reward"
        text += f"; the dearest single {what} costs {100 * found.worst:.6g} % of the budget"
    blind = bool(found.blind)
    report.parts.append(AuditPart("1 sensitivity", text, tuple(found.flaws), skipped=blind, failed=blind))
    if target.claim is None or found.flaws or found.blind.startswith("its noise"):
        return
    report.parts.append(_try_part("2 noise", lambda: _noise(target, much, lambda x: advance(0.5 + x / 2))))
    report.parts.append(_try_part("4 ledger", lambda: _ledger(target)))


def _try_part(name: str, look: Callable[[], AuditPart]) -> AuditPart:
    """The part; or, where the agent's code stopped it, that it did."""
    found = attempt(look)
    if found.failed:
        return AuditPart(name, f"could not be judged: it stopped with {found.words}", skipped=True, failed=True)
    assert isinstance(found.value, AuditPart)
    return found.value


def _noise(target: Target, much: Thoroughness, advance: Callable[[float], None]) -> AuditPart:
    noise = draws.examine(target, much.draws, much.runs, much.false_accusation / 3, advance)
    text = f"{noise.tests} tests on {3 * much.draws:,} draws and {noise.releases:,} releases; smallest p-value "
    text += f"{noise.smallest:.2g}, a flaw below {noise.level:.2g}"
    return AuditPart("2 noise", text, tuple(noise.flaws))


def _ledger(target: Target) -> AuditPart:
    assert target.claim is not None
    agent = target.make()
    told = attempt(lambda: _tell_many_rewards(target, agent))
    read = attempt(lambda: agent.ledger)
    if read.failed:
        text = f"could not be judged: it failed ({told.words}) and its ledger cannot be read ({read.words})"
        return AuditPart("4 ledger", text, skipped=True, failed=True)
    total, flaws = accounts.examine(read.value, target.claim)
    text = f"{len(read.value)} rows add up to {total:.6g} of {target.claim.level:.6g}"
    return AuditPart("4 ledger", text + (f", until it failed ({told.words})" if told.failed else ""), tuple(flaws))


def _tell_many_rewards(target: Target, agent: Any) -> None:
    for i in range(max(64, inside.held_again_after(target)) * target.arms):
        agent.tell(target.ask(agent, i), target.reward(i % 2))


def _look_outside(
    target: Target, much: Thoroughness, processes: int, seed: int, report: Report, advance: Callable[[float], None]
) -> None:
    assert target.claim is not None
    agent, heard = ask_agent(target.make).value, _heard(target)
    shows = any(has(agent, name) for name in ("estimates", "ledger"))
    rounds = (1.0,) if much.effort is not None else next(r for least, r in ROUNDS.items() if much.seconds >= least)
    began = time.perf_counter()
    worlds = WorldRunner(target, processes)
    try:
        observers = {look: Observer(target, target.claim, worlds, look) for look in (True, False)}
        level = much.false_accusation / 3
        views = {look: outside.Examination(one, level, seed, len(rounds)) for look, one in observers.items()}
        for share, look in product(rounds, views):
            # Where there is little else to see, the actions deserve the time.
            seconds = much.seconds * share * (0.5 if shows else 0.2 if look else 0.8)
            run = _seconds_of_a_run(target, look) * 2 / worlds.processes
            effort = much.effort or Effort.for_time(seconds, run, target.arms)
            ends = time.perf_counter() + seconds if much.effort is None else math.inf
            views[look].look_again(effort, partial(_seconds_until, ends, began, much.seconds, advance))
            if views[look].violated:
                break
    finally:
        worlds.close()
    report.parts += [_part(view.evidence, heard) for view in views.values() if view.evidence is not None]
    report.notes += [_note(view.evidence) for view in views.values() if view.evidence and view.evidence.beyond_gaussian]


def _seconds_until(ends: float, began: float, planned: float, advance: Callable[[float], None]) -> float:
    """Time that is left; shows how much of what was planned is over."""
    now = time.perf_counter()
    advance(min(1.0, (now - began) / planned))
    return ends - now


def _advance(advance: Callable[[float], None], begin: float, part: float, share: float) -> None:
    advance(begin + part * share)


def _heard(target: Target) -> Answer:
    """Return an answer of a plain run: a failure, if most calls of a few fresh agents fail."""
    answers = [answer for _ in range(8) for answer in _plain_run(target)]
    failed = [answer for answer in answers if answer.failed]
    most = 2 * len(failed) > len(answers)
    return failed[0] if most else next(answer for answer in answers if not answer.failed)


def _plain_run(target: Target) -> list[Answer]:
    """Make an agent, and ask and tell a few times. Returns every answer."""
    answers = [ask_agent(target.make)]
    for i in range(0 if answers[0].failed else PLAIN):
        asked = ask_agent(partial(target.ask, answers[0].value, i))
        answers.append(asked)
        if not asked.failed:
            answers.append(ask_agent(partial(target.tell, answers[0].value, asked.value, target.high)))
    return answers


def _part(outcome: outside.OutsideEvidence, heard: Answer) -> AuditPart:
    flaws = (inside.Flaw(*in_words(outcome)),) if outcome.violated else ()
    text = f"{outcome.claim.symbol} is at least {outcome.bound:.4g}, by {outcome.runs:,} runs of each world after the "
    text += f"search. {odds(outcome)}"
    unheard = heard.failed and not flaws
    if unheard:
        text = f"could not be judged: most of its calls fail ({heard.words})"
    name = f"3 from outside, seeing {outcome.sees}"
    return AuditPart(name, text, flaws, skipped=unheard, failed=unheard, outcome=outcome)


def _note(outcome: outside.OutsideEvidence) -> str:
    return (
        f"who sees {outcome.sees} learns more than Gaussian noise of this rho would show. That is no violation of "
        "zCDP, which leaves room for other noise; but if the agent's noise is Gaussian, it is too small (docs/audit.md)"
    )


def _seconds_of_a_run(target: Target, look: bool) -> float:
    scenario = Scenario(20, 0, (0.5,) * target.arms, looks=10)
    times = []
    for _ in range(3):
        started = time.perf_counter()
        play(target, scenario, 0.0, look)
        times.append(time.perf_counter() - started)
    return min(times) + 1e-6
