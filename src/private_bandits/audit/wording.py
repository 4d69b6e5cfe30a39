"""What was seen from outside, in words that a person can follow."""

from __future__ import annotations

import math

from private_bandits.audit.outside import OutsideEvidence


def in_words(outcome: OutsideEvidence) -> tuple[str, str]:
    """Return a violation's title, and the evidence: which two worlds, what was seen, and how much likelier it was."""
    if outcome.bound > outcome.claim.level * (1 + 1e-9):
        title = f"proven {outcome.bound:.4g}, claimed {outcome.claim.level:.6g}"
    else:
        title = f"proven more than {outcome.claim.level:.6g}, claimed {outcome.claim.level:.6g}"
    worlds = "two worlds that differ in one reward, which is the lowest in one and the highest in the other"
    parts = [f"{worlds}: {outcome.scenario}", seen(outcome), odds(outcome)]
    parts.append(f"measured: {outcome.words}; wrong with probability at most {outcome.failure:.2g}")
    return title, ". ".join(parts)


def seen(outcome: OutsideEvidence) -> str:
    """Return how often the most telling event was seen in both worlds."""
    event = outcome.sighting
    (less, where_less), (more, where_more) = sorted([(event.low, "the lowest"), (event.high, "the highest")])
    text = (
        f"in {outcome.runs:,} runs of each world, {event.words} in {more:.1%} where the secret reward was {where_more}"
    )
    text += f", and in {less:.1%} where it was {where_less}"
    return text + (f": {more / less:.2g} times as often" if less else ": never there")


def odds(outcome: OutsideEvidence) -> str:
    """Return what who bets against the claim has made, and what that means."""
    needed = f"{math.exp(outcome.log_needed):,.0f}"
    made = f"Who bets against the claim before each pair of runs turned 1 into {_amount(outcome.log_wealth)} at most"
    return f"{made}; if the claim is kept, nobody reaches {needed} in more than one of {needed} audits"


def _amount(log: float) -> str:
    if log > 13:
        return f"10^{log / math.log(10):.0f}"
    return f"{math.exp(log):,.0f}" if log > math.log(10) else f"{math.exp(log):.2g}"
