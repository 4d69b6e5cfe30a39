"""The promise of privacy, in the odds of somebody who guesses; and what is not promised."""

from __future__ import annotations

from private_bandits.budget import PureDP
from private_bandits.guarantee import Guarantee, guessed_right
from private_bandits.statement.chapter import Chapter
from private_bandits.statement.facts import Facts
from private_bandits.statement.numbers import rounded_up, several, times_in_100

TITLE = "The promise of privacy"


def promise(facts: Facts) -> Chapter:
    """Say what is promised, to whom, and for how long."""
    told = facts.guarantee
    if not told.private:
        return Chapter(TITLE, [told.words])
    joint = facts.policy.private_contexts
    seen = "shown of this trial to anyone but that person" if joint else "published of this trial"
    others = "outcomes, who took part, when, and what each of them was given"
    if joint:
        others = "outcomes and descriptions, and who took part when"
    words = [
        f"Suppose that somebody wants to find out {_secret(facts)}, and thinks that two possibilities are equally "
        f"likely. They know everything else: all other {others}. They see all that is ever {seen}, and have "
        f"unlimited time and computers. Their best guess is right at most {times_in_100(told.guessed_right)}. A coin "
        "is right 50 times in 100.",
        "The promise is kept for however long the trial runs, however often anybody looks, and whatever anybody does "
        "with what was published.",
        _unit(facts),
        "It is kept by random noise, which the program adds to sums of outcomes before anybody sees them. Nobody can "
        "foresee the noise, or take it away.",
    ]
    return Chapter(TITLE, words, after=["The same for specialists:"], rows=_figures(told, joint))


def _secret(facts: Facts) -> str:
    joint, limit = facts.policy.private_contexts, facts.settings.max_rewards_per_person
    if facts.guarantee.unit == "reward" or limit is None:
        return "one description and its outcome" if joint else "one outcome of one participant"
    many = (
        several(limit, "description and outcome", "descriptions and outcomes") if joint else several(limit, "outcome")
    )
    return f"everything that one person told (at most {many})"


def _unit(facts: Facts) -> str:
    told, limit = facts.guarantee, facts.settings.max_rewards_per_person
    one = "one description with its outcome" if facts.policy.private_contexts else "one outcome"
    if limit is None or told.per_person is None:
        return (
            f"What is protected is {one}. Somebody who tells several is protected for each of them. For all of them "
            "together the promise is weaker, and how many one person may tell is not limited here."
        )
    if told.unit == "person":
        odds = times_in_100(guessed_right(told.budget, told.per_reward))
        return f"What is protected is everything that one person tells. A guess about {one} is right at most {odds}."
    if limit == 1:
        return f"What is protected is {one}. No more is taken of one person, so that the promise is for persons too."
    odds = times_in_100(guessed_right(told.budget, told.per_person))
    return (
        f"What is protected is {one}. At most {limit} of one person are taken. A guess about all of them together is "
        f"right at most {odds}."
    )


def _figures(told: Guarantee, joint: bool) -> list[tuple[str, str]]:
    pure = isinstance(told.budget, PureDP)
    symbol, notion = ("epsilon", "pure DP") if pure else ("rho", "zCDP")
    kept = f"joint {symbol}-{notion}" if joint else f"{symbol}-Interactive {notion}"
    one = "one description and its outcome" if joint else "one outcome"
    lines = [
        ("promised", f"{told.budget} for {one if told.unit == 'reward' else 'one person'}"),
        ("kept as", f"{kept} with {symbol} = {rounded_up(told.promised, 6)}"),
        ("as (epsilon, delta)", f"epsilon = {rounded_up(told.epsilon)}, delta = {told.delta:g}"),
    ]
    if told.per_person is not None:
        lines.append((one, f"{symbol} = {rounded_up(told.per_reward, 6)}"))
        lines.append(("one person", f"{symbol} = {rounded_up(told.per_person, 6)}"))
    return lines


PUBLIC = (
    "That a person took part, when, what the person was given, and whether an outcome was told are no secrets here. "
    "None of these, and not the range of outcomes either, may be chosen after seeing an outcome."
)
PUBLIC_JOINT = (
    "That a person took part and when, and whether an outcome was told, are no secrets here. None of these, and not "
    "the range of outcomes either, may be chosen after seeing an outcome. What is recommended for a person may tell of "
    "that person's own description: it is for those who serve that person, and not to be published."
)
TRUSTED = (
    "Those who run the program are trusted. Whoever can read its memory, or its file, can see sums of outcomes that no "
    "noise protects."
)
COPIES = (
    "No program can see that its file was copied. If two copies are run, both publish, and more can be guessed than is "
    "said here."
)
TIMING = "How long the program takes to answer is not hidden."
FINDINGS = (
    "What a trial finds may be true of everybody, also of those who took no part. If it finds that an arm helps, that "
    "says something of each person who is given it. No method can prevent that."
)
BEST = "Nothing is promised about how many participants are given the best arm."
SEVERAL = (
    "Somebody who tells several outcomes is not promised that all of them are protected together as well as one is."
)
NONE = "Privacy is not promised at all, as is said above."


def not_promised(facts: Facts) -> Chapter:
    """Say what nobody should take for promised."""
    told, limit = facts.guarantee, facts.settings.max_rewards_per_person
    points = [PUBLIC_JOINT if facts.policy.private_contexts else PUBLIC, TRUSTED, COPIES, TIMING]
    if told.private and told.unit == "reward" and limit != 1:
        points.append(SEVERAL)
    points = [*points, FINDINGS, BEST] if told.private else [NONE, PUBLIC, TRUSTED, BEST]
    return Chapter("What is not promised", [], points=points)
