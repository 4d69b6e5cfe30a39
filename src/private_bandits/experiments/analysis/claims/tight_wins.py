"""Tight wins: at every budget our policy has less regret than the published one, or as good as none more.

Ours is the tight variant of the published one, or its successor.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from private_bandits.experiments.analysis.claims.verdict import LEVEL, Row, Verdict, caution, ends_of, known
from private_bandits.experiments.analysis.estimates import RegretEstimate, holm
from private_bandits.experiments.analysis.regrets import Pair, Regrets, name_of
from private_bandits.experiments.analysis.wording import interval_text, listing, percent, rho_text

MARGIN = 0.05
"""The regret that ours may have more, where it does not have less."""
STATES = {
    "less": "less",
    "no more": f"not less, and no more than {percent(MARGIN)} more",
    "more": "more",
    "unclear": "neither less nor more beyond chance",
}


@dataclass(frozen=True)
class TightMatch:
    """Both in one place: how much lower ours is, as a share, and the p-values of what may be said."""

    pair: Pair
    saving: RegretEstimate
    less: float
    no_more: float
    more: float

    @property
    def state(self) -> str:
        """One of STATES."""
        if self.less < LEVEL:
            return "less"
        if self.no_more < LEVEL:
            return "no more"
        return "more" if self.more < LEVEL else "unclear"

    @property
    def lower_by(self) -> str:
        """In words."""
        return interval_text(self.saving, percent)


def tight_wins(regrets: Regrets) -> Iterator[Verdict]:
    """One verdict, over all instances and budgets. The twins without privacy are told of, and not judged."""
    pairs = regrets.pairs()
    matches = _matches(regrets, [pair for pair in pairs if math.isfinite(pair.rho)])
    twins = _matches(regrets, [pair for pair in pairs if math.isinf(pair.rho)])
    yield Verdict(
        experiment=regrets.experiment.name,
        claim="tight-wins",
        statement="At equal budget {1} has less regret than {0} as published.".format(*map(name_of, pairs[0].both)),
        policy=name_of(matches[0].pair.published),
        holds=_holds(matches),
        brief=_brief(matches),
        words=_words(matches, twins) + caution(regrets, [entry for match in matches for entry in match.pair.both]),
        test=_test(regrets),
        numbers=tuple(_row(regrets, match) for match in (*matches, *twins)),
    )


def _test(regrets: Regrets) -> str:
    return (
        f"On each instance and at each rho, 1 minus {name_of(regrets.pairs()[0].ours)}'s mean regret at step "
        f"{regrets.horizon:,} over the published one's ({'in pairs' if regrets.paired else 'Welch'}, delta method), by "
        f"t tests. Less: above 0. No more: above -{percent(MARGIN)}, which the former implies. More: below 0, after "
        "Holm's correction. The claim holds if every pair is the first or the second and every instance has one of the "
        "first. It does not if one pair is the third. Twins without privacy are not judged. Shares in the table: 1 is "
        "100 %."
    )


def _matches(regrets: Regrets, pairs: Sequence[Pair]) -> list[TightMatch]:
    """To hold, the claim needs every pair: each is tested at 5 %. To fail it needs one: Holm's correction."""
    savings = [regrets.saving(pair)[-1] for pair in pairs]
    more = holm([saving.p_below() for saving in savings])
    return [
        TightMatch(pair, saving, saving.p_above(), saving.p_above(-MARGIN), p_more)
        for pair, saving, p_more in zip(pairs, savings, more, strict=True)
    ]


def _holds(matches: Sequence[TightMatch]) -> bool | None:
    states = {match.state for match in matches}
    if "more" in states:
        return False
    won = {match.pair.instance for match in matches if match.state == "less"}
    everywhere = won == {match.pair.instance for match in matches}
    return True if everywhere and "unclear" not in states else None


def _brief(matches: Sequence[TightMatch]) -> str:
    states = [match.state for match in matches]
    counts = [f"{phrase} at {states.count(state)}" for state, phrase in STATES.items() if state in states]
    savings = [float(match.saving.value) for match in matches]
    return (
        f"Of {len(matches)} pairs of an instance and a budget, it has {listing(counts)}; its regret is lower by "
        f"{percent(min(savings))} to {percent(max(savings))}."
    )


def _words(matches: Sequence[TightMatch], twins: Sequence[TightMatch]) -> str:
    rhos = list(dict.fromkeys(match.pair.rho for match in matches))
    parts = [f"at {rho_text(rho)} {_at([match for match in matches if match.pair.rho == rho])}" for rho in rhos]
    other = [
        f"{STATES[match.state]} at {rho_text(match.pair.rho)} on {match.pair.instance} (lower by {match.lower_by})"
        for match in matches
        if match.state != "less"
    ]
    exceptions = f"It has {'; '.join(other)}." if other else "There is no exception."
    without = f" Without privacy, where nothing is claimed: {_at(twins)}." if twins else ""
    return f"How much lower the regret of {name_of(matches[0].pair.ours)} is: {'; '.join(parts)}. {exceptions}{without}"


def _at(matches: Sequence[TightMatch]) -> str:
    """The least and the largest saving over the instances."""
    ordered = sorted(matches, key=lambda match: float(match.saving.value))
    found = [f"{one.lower_by} on {one.pair.instance}" for one in ordered[:: max(1, len(ordered) - 1)]]
    return f"from {' to '.join(found)}" if len(found) > 1 else found[0]


def _row(regrets: Regrets, match: TightMatch) -> Row:
    published, ours = (float(regrets.mean(entry).value[-1]) for entry in match.pair.both)
    return {
        "instance": match.pair.instance,
        "rho": match.pair.rho,
        "published": published,
        "ours": ours,
        "lower by": known(match.saving.value),
        **ends_of(match.saving),
        "finding": match.state,
        "p (less)": match.less,
        "p (no more)": match.no_more,
        "p (more)": match.more,
    }
