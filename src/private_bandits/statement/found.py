"""What was found: means with intervals, and the verdict."""

from __future__ import annotations

from private_bandits.statement.chapter import Chapter, sentence
from private_bandits.statement.facts import Facts
from private_bandits.statement.numbers import Figures, chance, named, several, whole

MOST_ARMS = 200
"""Arms that are shown, at most: those of the largest means."""

PAIRS = "How much better one arm is than another, with intervals that are right together, as above:"
UNKNOWN = (
    "Nothing was released yet, so nothing is known of any arm. The first release comes when enough outcomes were told."
)


def found(facts: Facts) -> Chapter:
    """Say what is known of each arm."""
    words, after = [_source(facts)], []
    shown = False
    if facts.failed is not None:
        words = ["The method failed, so no figure can be drawn from its releases. They stay in the ledger."]
    elif not facts.policy.arm_names:
        words.append(
            "What can be given changes from person to person, so there are no arms to show a mean of. The program has "
            f"learned from {several(facts.released, 'released outcome')} how the numbers that describe an option go "
            "together with its outcome."
        )
    elif not facts.releases:
        words = [UNKNOWN]
    else:
        shown = True
        after = [_intervals(facts), _forgotten(facts)]
        if len(facts.estimates) > MOST_ARMS:
            words.append(f"Shown are the {MOST_ARMS} arms of the largest means, of {whole(len(facts.estimates))}.")
    return Chapter("What was found", words, "arms" if shown else "", after=list(filter(None, after)))


def _source(facts: Facts) -> str:
    made = f"All that is known comes from {several(facts.releases, 'release')}"
    if not facts.guarantee.private:
        return f"{made}, which are sums of outcomes that nothing protects."
    return f"{made}: sums of outcomes to which noise was added, so that no single outcome can be read from them."


def _intervals(facts: Facts) -> str:
    """Say what the intervals mean."""
    linear = facts.policy.setting == "linear"
    condition = "the mean of an arm follows from the numbers that describe it, as the method assumes"
    if not linear:
        condition = "the outcomes of an arm have the same mean at all times"
    count = "how many, of all arms together, an arm's mean comes from" if linear else "how many are in an arm's mean"
    return (
        f'"Outcomes" says {count}. The interval is where the arm\'s true mean is, noise '
        f"and chance included. All intervals are right together, on every day and however often anybody looks, but for "
        f"a probability of at most {chance(facts.delta)}, provided that {condition}."
    )


def _forgotten(facts: Facts) -> str:
    left_out = facts.released - facts.used
    if left_out <= 0 or facts.policy.setting == "linear":
        return ""
    return (
        f"Of the {whole(facts.released)} outcomes that were released, {whole(facts.used)} are in these means. The "
        f"other {whole(left_out)} are in earlier releases, which this method does not use any more."
    )


def verdict(facts: Facts) -> Chapter:
    """Say which arm is best, if that can be said, and what that assumes."""
    title, told = "Verdict", facts.verdict
    if told is None:
        if facts.failed is not None:
            return Chapter(title, ["The method failed, so no verdict can be drawn."])
        return Chapter(title, ["There are no fixed arms, so none of them can be called the best."])
    if len(facts.policy.arm_names) == 1:
        return Chapter(title, ["There is only one arm, so there is none to compare it with."])
    if told.winner is None:
        yet = "" if facts.finished else " yet"
        words = [
            f"No arm can be called the best{yet}. That does not mean that the arms are equal. It means that the "
            "outcomes do not tell them apart surely enough."
        ]
    else:
        words = [f"{named(told.winner)} is the best arm."]
    words.append(
        f"The probability that a wrong arm is ever called the best, on any day and however often anybody looks, is at "
        f"most {chance(told.delta)}. Where arms are exactly equal either may be named."
    )
    words.append("This is right under these conditions:")
    points, pairs = [sentence(_as_outcomes(condition)) for condition in told.conditions], _pairs(facts)
    return Chapter(title, words, points=points, after=[PAIRS] if pairs else [], rows=pairs)


def _as_outcomes(condition: str) -> str:
    """The library speaks of rewards where a trial speaks of outcomes."""
    return condition.replace("a reward", "an outcome").replace("reward", "outcome")


def _pairs(facts: Facts) -> list[tuple[str, str]]:
    """Return the difference of each pair of arms, where there are few."""
    figures = Figures(facts.settings.reward_range)
    lines = []
    for pair in facts.differences:
        if pair.mean is not None:
            interval = f"{figures.near(pair.mean)} (interval: {figures.interval(pair.low, pair.high)})"
            lines.append((f"{named(pair.first)} minus {named(pair.second)}", interval))
    return lines
