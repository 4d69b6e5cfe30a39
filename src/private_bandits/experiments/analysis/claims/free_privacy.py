"""Free privacy: at the largest rho the difference is within a margin, and it falls on the way there."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from private_bandits.experiments.analysis.claims.verdict import LEVEL, Row, Verdict, caution, ends_of, known
from private_bandits.experiments.analysis.estimates import FREE, RegretEstimate, contrast, holm
from private_bandits.experiments.analysis.regrets import Family, Regrets
from private_bandits.experiments.analysis.wording import interval_text, listing, number, p_text, percent, rho_text
from private_bandits.experiments.run.experiment import Entry

STATEMENT = "The difference between the regrets with and without privacy goes to zero as rho grows."


def free_privacy(regrets: Regrets) -> Iterator[Verdict]:
    """A verdict for each policy that has a twin without privacy."""
    for family, twin in regrets.with_twins():
        yield _judge(regrets, family, twin)


def _judge(regrets: Regrets, family: Family, twin: Entry) -> Verdict:
    base = regrets.mean(twin)[-1]
    ends = [regrets.difference(entry, twin)[-1] for entry in family.private]
    shares = [regrets.price(entry, twin)[-1] for entry in family.private]
    trend, free = _trend(regrets, family), shares[-1].p_within(FREE)
    costly, grows, rises = _against(regrets, family, shares[-1].p_above(FREE), trend)
    holds = None
    if min(costly, grows, *(p for _, p in rises)) < LEVEL:
        holds = False
    elif free < LEVEL and trend is not None and trend.p_below() < LEVEL:
        holds = True
    return Verdict(
        experiment=regrets.experiment.name,
        claim="free-privacy",
        statement=STATEMENT,
        policy=family.name,
        holds=holds,
        brief=f"At {rho_text(family.private[-1].rho)} the difference is {_share(shares[-1])} of the regret.",
        words=f"{_end_words(family, base, ends[-1], free, costly)} {_excluded(shares[-1])} "
        + _trend_words(trend, grows, rises)
        + caution(regrets, family.entries),
        test=_test(free, trend),
        numbers=tuple(_row(*row) for row in zip(family.private, ends, shares, strict=True)),
    )


def _trend(regrets: Regrets, family: Family) -> RegretEstimate | None:
    """Slope of the regret over the ranks of rho; that of the difference is the same, as there is one twin."""
    if len(family.private) < 2:
        return None
    ranks = np.arange(len(family.private)) - (len(family.private) - 1) / 2
    samples = [regrets.of[entry.label][:, -1] for entry in family.private]
    return contrast(samples, ranks / (ranks @ ranks), regrets.paired)


def _against(
    regrets: Regrets, family: Family, costly: float, trend: RegretEstimate | None
) -> tuple[float, float, list[tuple[str, float]]]:
    """What speaks against the claim, any of which is enough, hence Holm's: a cost, growth, a rise from rho to rho."""
    pairs = list(zip(family.private, family.private[1:], strict=False))
    steps = [regrets.difference(second, first)[-1].p_above() for first, second in pairs]
    costly, grows, *adjusted = holm([costly, trend.p_above() if trend else 1.0, *steps])
    names = [f"from {rho_text(first.rho)} to {rho_text(second.rho)}" for first, second in pairs]
    return costly, grows, list(zip(names, adjusted, strict=True))


def _end_words(family: Family, base: RegretEstimate, last: RegretEstimate, free: float, costly: float) -> str:
    if free < LEVEL:
        found = f"which is within {percent(FREE)} of it ({p_text(free)})"
    elif costly < LEVEL:
        found = f"which is more than {percent(FREE)} of it ({p_text(costly)})"
    else:
        found = f"and these runs cannot tell whether that is within {percent(FREE)} of it ({p_text(free)})"
    return (
        f"At {rho_text(family.private[-1].rho)} the regret differs from the {number(float(base.value))} without "
        f"privacy by {interval_text(last)}, {found}."
    )


def _excluded(share: RegretEstimate) -> str:
    """The least margin with which the test of equivalence would succeed: the reader may have another one in mind."""
    most = max(abs(float(end)) for end in share.interval(1 - 2 * LEVEL))
    if not most >= 0:
        return "No margin can be shown to hold."
    return f"The least margin that these runs show to hold is {percent(most)}."


def _trend_words(trend: RegretEstimate | None, grows: float, rises: list[tuple[str, float]]) -> str:
    if trend is None:
        return "There is one rho only, so that nothing can be said of a fall."
    risen = [where for where, p in rises if p < LEVEL]
    if risen:
        return f"On the way there it rises {listing(risen)}."
    if trend.p_below() < LEVEL:
        return (
            f"On the way there it falls ({p_text(trend.p_below())}), and from no rho to the next does it rise "
            "beyond chance."
        )
    if grows < LEVEL:
        return f"It grows with rho ({p_text(grows)})."
    return f"A fall on the way there cannot be seen ({p_text(trend.p_below())})."


def _test(free: float, trend: RegretEstimate | None) -> str:
    fall = f"{p_text(trend.p_below())}" if trend else "not tested: one rho"
    return (
        f"Two one-sided t tests that the difference at the largest rho is less than {percent(FREE)} of the regret "
        f"without privacy ({p_text(free)}; of the ratio of the two means, by the delta method), and a linear contrast "
        f"of the mean regrets over the ranks of rho that the difference falls ({fall}). The claim holds if both p are "
        "below 0.05. It does not if the difference at the largest rho is above the margin, grows with rho, or rises "
        "from one rho to the next (t tests with Holm's correction)."
    )


def _share(share: RegretEstimate) -> str:
    """With its interval, as a share of the regret without privacy."""
    return interval_text(share, percent) if np.isfinite(share.value) else "an unknown share"


def _row(entry: Entry, end: RegretEstimate, share: RegretEstimate) -> Row:
    return {
        "rho": entry.rho,
        "difference": float(end.value),
        **ends_of(end),
        "share of the regret without privacy": known(share.value),
        "p (within 10 %)": share.p_within(FREE),
    }
