"""Noise in between wins: in high privacy AdaC-GOPE has less regret than its variant."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from private_bandits.experiments.analysis.claims.verdict import LEVEL, Row, Verdict, caution, ends_of
from private_bandits.experiments.analysis.estimates import RegretEstimate, holm
from private_bandits.experiments.analysis.regrets import Regrets, name_of
from private_bandits.experiments.analysis.wording import interval_text, listing, p_text, percent, rho_text
from private_bandits.experiments.run.experiment import Entry

STATEMENT = "In high privacy AdaC-GOPE has less regret than the variant with noise on each arm's sum."


@dataclass(frozen=True)
class PlacementMatch:
    """Both at one budget: the variant's regret minus AdaC-GOPE's, and the p-values that the latter is less or more."""

    between: Entry
    variant: Entry
    base: float
    apart: RegretEstimate
    less: float
    more: float


def in_between_wins(regrets: Regrets) -> Iterator[Verdict]:
    """One verdict, from the smallest rho that both have."""
    matches = _matches(regrets)
    first = matches[0]
    yield Verdict(
        experiment=regrets.experiment.name,
        claim="in-between-wins",
        statement=STATEMENT,
        policy=name_of(first.between),
        holds=True if first.less < LEVEL else False if first.more < LEVEL else None,
        brief=f"At {rho_text(first.between.rho)} the variant's excess is "
        f"{interval_text(regrets.price(first.variant, first.between)[-1], percent)} of AdaC-GOPE's regret.",
        words=f"{_first_words(first)}{_other_words(matches[1:])}" + caution(regrets, [first.between, first.variant]),
        test=f"At each rho a one-sided t test ({'paired' if regrets.paired else 'Welch'}) that the variant's mean "
        f"regret at step {regrets.horizon:,} is the larger, and one that it is the smaller; p after Holm's correction "
        "over rho. The verdict is that of the smallest rho.",
        numbers=tuple(_row(regrets, match) for match in matches),
    )


def _matches(regrets: Regrets) -> list[PlacementMatch]:
    pairs = regrets.placements()
    apart = [regrets.difference(variant, between)[-1] for between, variant in pairs]
    less, more = holm([one.p_above() for one in apart]), holm([one.p_below() for one in apart])
    return [
        PlacementMatch(between, variant, float(regrets.mean(between).value[-1]), one, p_less, p_more)
        for (between, variant), one, p_less, p_more in zip(pairs, apart, less, more, strict=True)
    ]


def _first_words(match: PlacementMatch) -> str:
    text = f"At {rho_text(match.between.rho)} the variant's regret minus AdaC-GOPE's is {interval_text(match.apart)}: "
    share = float(match.apart.value) / match.base
    if match.less < LEVEL:
        return text + f"AdaC-GOPE has less, by {percent(share)} of its regret ({p_text(match.less)})."
    if match.more < LEVEL:
        return text + f"AdaC-GOPE has more, by {percent(-share)} of its regret ({p_text(match.more)})."
    low, high = (percent(float(end) / match.base) for end in match.apart.interval())
    return (
        f"{text}the two cannot be told apart ({p_text(match.less)}). As a share of AdaC-GOPE's regret, the variant's "
        f"excess lies between {low} and {high} with 95 % confidence."
    )


def _other_words(matches: list[PlacementMatch]) -> str:
    if not matches:
        return ""
    found = [
        f"{'less' if match.less < LEVEL else 'more'} at {rho_text(match.between.rho)}"
        for match in matches
        if min(match.less, match.more) < LEVEL
    ]
    if not found:
        return " At none of the other budgets can they be told apart."
    return f" Of the other budgets, AdaC-GOPE has {listing(found)}."


def _row(regrets: Regrets, match: PlacementMatch) -> Row:
    return {
        "rho": match.between.rho,
        "AdaC-GOPE": match.base,
        "variant": float(regrets.mean(match.variant).value[-1]),
        "variant minus AdaC-GOPE": float(match.apart.value),
        **ends_of(match.apart),
        "p (AdaC-GOPE less)": match.less,
        "p (AdaC-GOPE more)": match.more,
    }
