"""The record: settings, version, ledger, and how somebody without access to the data checks them."""

from __future__ import annotations

from private_bandits.plain_data import settings_in_words
from private_bandits.statement.chapter import Chapter
from private_bandits.statement.facts import Facts
from private_bandits.statement.numbers import several, whole

TITLE = "For specialists: settings, and how to check this statement"
COMMAND = "private-bandits verify ledger.jsonl --head HEAD"

_LEFT_OUT = {
    *("policy: arms", "policy: n arms", "policy: actions", "policy: budget", "give up after"),
    *("for people", "token"),
}
"""Settings that are said above, or are long tables, or mean nothing to a reader."""


def record(facts: Facts) -> Chapter:
    """Say what a reviewer has to know, and to do, to check this."""
    words = [
        "The program keeps a ledger of everything that it ever released. Each line holds a fingerprint of the one "
        "before it, so that no line can be changed later without being found out. The last fingerprint is called the "
        "head. Nobody needs the data of the trial to check the ledger: ask for it, install private-bandits, and run"
    ]
    rows = [
        ("releases", whole(facts.releases)),
        ("head", facts.head),
        ("head at the start", facts.first_head),
        ("program", f"private-bandits {facts.version}"),
        ("date", facts.written),
    ]
    settings = settings_in_words(facts.opening["settings"])
    rows += [(name, value) for name, value in settings if name not in _LEFT_OUT and value not in ("{}", "[]")]
    after = [
        *_heads(facts),
        'The ledger is what agent.ledger.to_jsonl("ledger.jsonl") writes, or the program\'s own file once the '
        "program is closed.",
    ]
    return Chapter(TITLE, words, after=after, rows=rows, code=[COMMAND])


def _heads(facts: Facts) -> list[str]:
    """Say which heads to check the ledger with, and what they are worth."""
    chained = facts.opening.get("chained")
    now = (
        f"Then run it with the head of this statement, {facts.head}. If it is in the ledger, everything that this "
        "statement is made of is there."
    )
    if chained is not None:
        return [
            f"In place of HEAD put a head that you were given earlier. {now}",
            f"An earlier version wrote the first {several(chained['rows'], 'release')} of this ledger, and they were "
            f"put under fingerprints on {chained['on']}. Nothing vouches for what was before that day.",
        ]
    return [
        f"In place of HEAD put the head that you were given before the first participant. It should be "
        f"{facts.first_head}. It stands for all settings and for the plan. A head that you only read here proves "
        "nothing: whoever wrote a ledger wholly anew would show you a head of that one.",
        now,
    ]
