"""What was found: means with intervals, and the verdict."""

from __future__ import annotations

from private_bandits.statement.chapter import Chapter, sentence
from private_bandits.statement.facts import Facts
from private_bandits.statement.numbers import Figures, chance, named, several, whole
from private_bandits.verdict import CONDITIONS, LINEAR_CONDITIONS, LOG_CONDITION

MOST_ARMS = 200
"""Arms that are shown, at most: those of the largest means."""

PAIRS = "How much better one arm is than another (in brackets: intervals that are right together, as above):"
PLAIN = dict(
    zip(
        (*CONDITIONS, *LINEAR_CONDITIONS),
        (
            "the outcomes of an arm are alike over time, and one person's does not influence another's",
            "whether and when an outcome is told does not depend on what it is",
            "who is given which arm does not depend on the person",
            "no earlier outcomes were put in, or how many was not chosen by looking at them",
            "the mean outcome of an arm follows from the numbers that describe it: it is their sum, each times a "
            "number that is the same for all arms",
            "which arms were given, and which outcomes were told, does not depend on outcomes that were not released "
            "by then",
        ),
        strict=True,
    )
)
"""What a verdict assumes, as the library says it and as a board reads it."""
ALIKE = '"Alike" means here: more alike than outcomes of different people.'
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
        f"a probability of at most {chance(facts.delta)}, provided that {condition}. The "
        "mean need not be in the middle of its interval, which is drawn from several releases."
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
        f"most {chance(told.delta)}.{_own_delta(facts)} Where arms are exactly equal either may be named."
    )
    words.append("This is right under these conditions:")
    points, pairs = [sentence(PLAIN[condition]) for condition in _conditions(facts)], _pairs(facts)
    after = [_alike(facts), PAIRS if pairs else ""]
    return Chapter(title, words, points=points, after=list(filter(None, after)), rows=pairs)


def _own_delta(facts: Facts) -> str:
    """Say with which probability the policy itself declares an arm, where that is another one."""
    own = getattr(facts.policy, "delta", None)
    return "" if own is None or own == facts.delta else f" The policy was set up with {chance(own)}."


def _conditions(facts: Facts) -> list[str]:
    """Return what the verdict assumes. Of a log nothing, where the policy can have started from none."""
    told = () if facts.verdict is None else facts.verdict.conditions
    return [condition for condition in told if condition != LOG_CONDITION or facts.may_have_log]


def _alike(facts: Facts) -> str:
    """Say what several outcomes of one person do to the verdict."""
    limit, told = facts.settings.max_rewards_per_person, facts.verdict
    if limit == 1 or told is None:
        return ""
    taken = "How many outcomes of one person are taken was not limited. If there are several, and they"
    if limit is not None:
        taken = f"Up to {whole(limit)} outcomes of one person were taken. If they"
    broken = "the first condition is broken, and " if told.conditions[0] == CONDITIONS[0] else ""
    return f"{taken} are alike, {broken}the verdict is too sure. {ALIKE}"


def _pairs(facts: Facts) -> list[tuple[str, str]]:
    """Return the difference of each pair of arms, where there are few: the arm of the larger mean first."""
    figures = Figures(facts.settings.reward_range)
    winner = None if facts.verdict is None else facts.verdict.winner
    lines = []
    for pair in sorted(facts.differences, key=lambda found: winner not in (found.first, found.second)):
        if pair.mean is not None:
            led = pair if pair.mean >= 0 else pair.reversed
            by = f"{figures.near(abs(pair.mean))} ({figures.interval(led.low, led.high)})"
            lines.append((f"{named(led.first)} and {named(led.second)}", f"{named(led.first)} better by {by}"))
    return lines
