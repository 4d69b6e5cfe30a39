"""The record: settings, version, ledger, and how somebody without access to the data checks them."""

from __future__ import annotations

from private_bandits.plain_data import settings_in_words
from private_bandits.statement.chapter import Chapter
from private_bandits.statement.facts import Facts
from private_bandits.statement.numbers import several, whole

_SHOWN_ELSEWHERE = {"policy: arms", "policy: n arms", "policy: actions", "policy: budget", "give up after"}
"""Settings that are said above, or are long tables."""


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
    rows += [(name, value) for name, value in settings if name not in _SHOWN_ELSEWHERE and value not in ("{}", "[]")]
    after = [
        'The ledger is what agent.ledger.to_jsonl("ledger.jsonl") writes, or the program\'s own file once the '
        "program is closed.",
        _start(facts),
    ]
    return Chapter("Settings, and how to check this statement", words, after=after, rows=rows, code=_command(facts))


def _command(facts: Facts) -> list[str]:
    return ["private-bandits verify ledger.jsonl \\", f"    --head {facts.head}"]


def _start(facts: Facts) -> str:
    """Say what the head at the start is worth."""
    chained = facts.opening.get("chained")
    if chained is None:
        return (
            "The head at the start stands for all settings and for the plan. It was known before the first outcome, "
            "and should be the one that was handed out then."
        )
    return (
        f"An earlier version wrote the first {several(chained['rows'], 'release')} of this ledger, and they were put "
        f"under fingerprints on {chained['on']}. Nothing vouches for what was before that day."
    )
