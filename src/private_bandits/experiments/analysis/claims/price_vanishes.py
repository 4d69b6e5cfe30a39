"""The price of privacy vanishes: at every rho it falls over the last decades of time, or is gone already."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from private_bandits.errors import InvalidInput
from private_bandits.experiments.analysis.claims.verdict import LEVEL, Row, Verdict, caution, ends_of, known
from private_bandits.experiments.analysis.estimates import FREE, RegretEstimate, holm, multiple_slope
from private_bandits.experiments.analysis.regrets import Family, Regrets
from private_bandits.experiments.analysis.wording import listing, p_text, percent, rho_number
from private_bandits.experiments.run.experiment import Entry

DECADES = 2
"""The price has to fall over the last so many powers of ten of time. The phases of AdaC-GOPE end at other steps with
privacy than without, and let its price swing within one decade."""
STATEMENT = "At a fixed rho the price of privacy goes to zero as time goes on."
STATES = {
    "gone": f"is within {percent(FREE)} of zero at the end",
    "falling": "falls",
    "rising": "rises",
    "unclear": "neither falls nor rises beyond chance",
}


@dataclass(frozen=True)
class Course:
    """How the price of one budget goes on: its values, its late slope, and the p-values of what may be said."""

    entry: Entry
    price: RegretEstimate
    slope: RegretEstimate
    falls: float
    gone: float
    rises: float

    @property
    def state(self) -> str:
        """One of STATES."""
        if self.gone < LEVEL:
            return "gone"
        if self.falls < LEVEL:
            return "falling"
        return "rising" if self.rises < LEVEL else "unclear"


def price_vanishes(regrets: Regrets) -> Iterator[Verdict]:
    """A verdict for each policy that has a twin without privacy."""
    for family, twin in regrets.with_twins():
        yield _judge(regrets, family, twin)


def _judge(regrets: Regrets, family: Family, twin: Entry) -> Verdict:
    late = _late(regrets, family, twin)
    start, courses = int(regrets.steps[late][0]), _courses(regrets, family, twin, late)
    samples = [regrets.of[entry.label][:, late] for entry in family.private]
    overall = multiple_slope(samples, regrets.of[twin.label][:, late], regrets.steps[late], regrets.paired)
    states = [course.state for course in courses]
    holds = False if "rising" in states else None if "unclear" in states else True
    return Verdict(
        experiment=regrets.experiment.name,
        claim="price-vanishes",
        statement=STATEMENT,
        policy=family.name,
        holds=holds,
        brief=f"Up to step {regrets.horizon:,}, of {len(states)} budgets, the price {_counts(states)}.",
        words=_words(courses, overall, start) + caution(regrets, family.entries),
        test=_test(start, overall),
        numbers=tuple(_row(regrets, course) for course in courses),
    )


def _late(regrets: Regrets, family: Family, twin: Entry) -> NDArray[np.bool_]:
    """The last decades, as far as there are regrets to compare."""
    least = np.min([regrets.mean(entry).value for entry in (*family.private, twin)], axis=0)
    late = (regrets.steps >= regrets.horizon / 10**DECADES) & (least > 0)
    if late.sum() < 3:
        raise InvalidInput(
            f"{regrets.experiment.name}: the price of privacy needs 3 steps in the last {DECADES} decades with regret "
            f"above 0, got {late.sum()}; record more checkpoints"
        )
    return np.asarray(late)


def _courses(regrets: Regrets, family: Family, twin: Entry, late: NDArray[np.bool_]) -> list[Course]:
    """To hold, the claim needs every rho: each is tested at 5 %. To fail it needs one rho: Holm's correction."""
    steps, plain = regrets.steps[late], regrets.of[twin.label][:, late]
    slopes = [multiple_slope([regrets.of[e.label][:, late]], plain, steps, regrets.paired) for e in family.private]
    rises = holm([slope.p_above() for slope in slopes])
    found = []
    for entry, slope, rise in zip(family.private, slopes, rises, strict=True):
        price = regrets.price(entry, twin)
        falls, gone = holm([slope.p_below(), price[-1].p_within(FREE)])
        found.append(Course(entry, price, slope, falls, gone, rise))
    return found


def _counts(states: list[str]) -> str:
    phrases = {"gone": "is gone at", "falling": "falls at", "rising": "rises at", "unclear": "is unclear at"}
    return listing([f"{phrase} {states.count(state)}" for state, phrase in phrases.items() if state in states])


def _words(courses: Sequence[Course], overall: RegretEstimate, start: int) -> str:
    parts = []
    for state, phrase in STATES.items():
        members = [course for course in courses if course.state == state]
        if members:
            where = listing([rho_number(course.entry.rho) for course in members])
            price = listing([percent(float(course.price.value[-1])) for course in members])
            parts.append(f"at rho = {where} it {phrase} (the price is {price})")
    limit = "No finite run shows a limit: a falling price need not reach zero"
    if any(course.state == "rising" for course in courses):
        limit += ", and one that rises up to this horizon may fall after it, so that more steps may say otherwise"
    change = 10 ** float(overall.value) - 1
    mean = f"{'falls' if change < 0 else 'rises'} by {percent(abs(change))} with each tenfold time"
    return (
        f"From step {start:,} on: {'; '.join(parts)}. In the mean over rho, the regret as a multiple of that without "
        f"privacy {mean}. {limit}."
    )


def _test(start: int, overall: RegretEstimate) -> str:
    return (
        f"For each rho, the straight line of log10(1 + price) against log10(step) from step {start:,} on, with the "
        "delta method's error. Falls: t test of its slope. Gone: two one-sided t tests that the price at the end is "
        f"within {percent(FREE)} of zero. Holm's correction for these two; none over rho, as the claim holds only if "
        "the price falls or is gone at every rho. It does not hold if the price rises at one rho where it is not gone "
        f"(t tests, Holm's correction over rho). Of the mean over rho: falls {p_text(overall.p_below())}, rises "
        f"{p_text(overall.p_above())}. Prices in the table are shares: 1 is 100 %."
    )


def _row(regrets: Regrets, course: Course) -> Row:
    places = [int(np.searchsorted(regrets.steps, regrets.horizon / part)) for part in (100, 10, 1)]
    return {
        "rho": course.entry.rho,
        "finding": course.state,
        **{f"price at step {regrets.steps[place]:,}": known(course.price.value[place]) for place in places},
        **ends_of(course.price[-1]),
        "slope": float(course.slope.value),
        "error of the slope": known(course.slope.error),
        "p (falls)": course.falls,
        "p (gone)": course.gone,
        "p (rises)": course.rises,
    }
