"""The participant flow: what became of every decision, in numbers that add up."""

from __future__ import annotations

from typing import NamedTuple

from private_bandits.statement.chapter import Chapter
from private_bandits.statement.facts import Facts
from private_bandits.statement.numbers import several, whole


class Group(NamedTuple):
    """Decisions that ended alike: how many there are, and what that means."""

    name: str
    number: int
    words: str


def groups(facts: Facts) -> list[Group]:
    """Return all groups. Their numbers add up to the decisions that were made."""
    counts = facts.counts
    waits = "The outcome had not been told when the trial was closed, and is not taken any more."
    late = f" Of these, {whole(counts.out_of_time)} ran out of time." if counts.out_of_time else ""
    found = [
        Group("told", counts.told, "The outcome was told, and the trial learns from it."),
        Group("still open", counts.open, waits if facts.finished else "The outcome has not been told yet."),
        Group("given up", counts.given_up, f"The outcome did not come, and nobody waits for it any more.{late}"),
        Group(
            "over the limit",
            counts.over_limit,
            "The outcome was told and not used, whatever it was: no more outcomes of that person could be taken.",
        ),
        Group(
            "not needed",
            counts.dropped,
            "The outcome was told and not used, whatever it was: the method had no use for that arm at the time.",
        ),
    ]
    if counts.unknown:
        words = "The outcome was told, or given up: an earlier version of the program did not note which."
        found.append(Group("unknown", counts.unknown, words))
    return found


def sum_of(found: list[Group]) -> str:
    """Return the sum of all groups, written out."""
    return f"{' + '.join(whole(group.number) for group in found)} = {whole(sum(group.number for group in found))}"


def flow(facts: Facts) -> Chapter:
    """Say what became of all decisions."""
    asked = facts.counts.asked
    often = "once" if asked == 1 else f"{whole(asked)} times"
    words = [
        f"The program was asked {often} what to give to a participant. Each time is one decision. Somebody who came "
        "twice counts twice. Outcomes from before the trial, if it began with any, count as decisions too. Every "
        "decision is in exactly one of these groups:"
    ]
    return Chapter("Participant flow", words, "flow", after=[_released(facts)])


def _released(facts: Facts) -> str:
    """Say how many of the outcomes told have left in releases."""
    released, waiting = facts.released, facts.unreleased
    if not facts.counts.told + facts.counts.unknown:
        return "No outcome was told yet."
    begin = f"Of the outcomes told, {whole(released)} {'is' if released == 1 else 'are'} in releases"
    if not waiting:
        return f"{begin}: all of them." if facts.counts.told == released else f"{begin}."
    most = "at most " if facts.counts.unknown else ""
    still = f"{most}{several(waiting, 'outcome')} {'waits' if waiting == 1 else 'wait'} for the next release"
    end = "and cannot be seen in any figure below. Closing the trial (finish) releases what waits."
    return f"{begin}; {still}, {end}"
