"""Makes this package's own errors of answers that are none. The service has fixed words: no reward, no person."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from private_bandits.client.calls import UNKNOWN_OUTCOME, Answer, Call
from private_bandits.client.keys import in_words
from private_bandits.errors import (
    AccessRefused,
    ClosedDecision,
    InvalidInput,
    OutcomeUnknown,
    Overloaded,
    PrivateBanditsError,
    ServiceFailed,
)
from private_bandits.protocol import problems
from private_bandits.protocol.problems import BY_CLASS, PREFIX

_OTHERS = (
    (problems.UNAUTHENTICATED, AccessRefused),
    (problems.FORBIDDEN, AccessRefused),
    (problems.HIDDEN, AccessRefused),
    (problems.NO_PRIVACY, AccessRefused),
    (problems.SETTINGS_REFUSED, InvalidInput),
    (problems.NEVER_GIVES_UP, InvalidInput),
    (problems.NO_VERDICT, InvalidInput),
    (problems.STANDING, InvalidInput),
    (problems.INVALID, InvalidInput),
    (problems.NOT_JSON, InvalidInput),
    (problems.TOO_LARGE, InvalidInput),
    (problems.TOO_MANY, Overloaded),
)
_KINDS: dict[str, Any] = {one.name: kind for kind, one in BY_CLASS.items()}
_KINDS |= {one.name: kind for one, kind in _OTHERS}
"""Errors by the names of problems."""

TAKEN = ("recorded", "over_limit", "dropped")
"""Outcomes of a tell that an agent returns from: the reward was taken, or counted as one that is not."""

ENDINGS = {
    "already_recorded": "its reward was told before",
    "given_up": "it was given up",
    "lost": "it was lost when an earlier copy of the database was restored",
    "over_limit": "its reward was told before, and not taken, as its person had max_rewards_per_person",
    "dropped": "its reward was told before, and not taken, as the policy had no use for it",
}
"""How a decision ended, by what the service says of it."""


def closed(decision: str, outcome: str) -> ClosedDecision:
    """Return the error of a decision that is closed, and that says how it ended."""
    return ClosedDecision(f"decision {decision} is closed: {ENDINGS.get(outcome, outcome)}")


def error_of(call: Call, answer: Answer, url: str, unknown: bool) -> PrivateBanditsError:
    """Return the error to raise where a call was not done.

    Args:
        call: The call.
        answer: The last answer to it.
        url: The address of the service.
        unknown: Whether it may have been done nevertheless.
    """
    if not (unknown and call.changes):
        return _refused(call, answer, url)
    if answer.is_for_now or answer.is_unknown:
        return _unknown(call, url)
    found = _refused(call, answer, url)
    found.add_note("an earlier request of this call was not answered, and may have been done")
    return found


def _refused(call: Call, answer: Answer, url: str) -> PrivateBanditsError:
    if answer.status == 0:
        return ServiceFailed(f"the service at {url} does not answer: is it running, and is the address right?")
    problem = answer.problem
    if problem:
        return refusal_of(problem, call)
    if 300 <= answer.status < 400:
        return ServiceFailed(f"{url} sends callers on to another address: give that address to the client")
    return ServiceFailed(f"{url} answered {answer.status}, and not as the service does: is the address right?")


def refusal_of(problem: Mapping[str, Any], call: Call) -> PrivateBanditsError:
    """Return the error that a problem stands for."""
    name = str(problem.get("type", "")).removeprefix(PREFIX)
    if name == problems.FORBIDDEN.name:
        whose = "all bandits" if call.bandit is None else f"{call.about}, or for all bandits"
        return AccessRefused(f"the key may not do this: it needs a key of {in_words(call.roles)}, for {whose}")
    found: PrivateBanditsError = _KINDS.get(name, ServiceFailed)(_words(problem, call))
    return found


def is_for_now(problem: Mapping[str, Any]) -> bool:
    """Whether the problem of an item is one that may be gone in a moment."""
    name = str(problem.get("type", "")).removeprefix(PREFIX)
    return any(one.name == name and "Retry-After" in one.headers for one in BY_CLASS.values())


def is_unknown(problem: Mapping[str, Any]) -> bool:
    """Whether the problem of an item leaves open whether it was done."""
    return str(problem.get("type", "")) == PREFIX + UNKNOWN_OUTCOME


def _unknown(call: Call, url: str) -> OutcomeUnknown:
    text = f"the service at {url} did not say whether it did what it was asked, about {call.about}: "
    if call.route.endswith("/decisions"):
        return OutcomeUnknown(f"{text}decisions that were made stay open until they are given up. Ask again")
    if call.repeats:
        return OutcomeUnknown(f"{text}make the call again, which counts nothing twice")
    return OutcomeUnknown(f"{text}look whether it did, before you make the call again")


def _words(problem: Mapping[str, Any], call: Call) -> str:
    title, detail = str(problem.get("title", "it was refused")), str(problem.get("detail", ""))
    parts = [f"{call.about}: {title[:1].lower()}{title[1:]}"]
    if "reason" in problem:
        parts.append(str(problem["reason"]))
    for one in problem.get("errors") or ():
        parts.append(f"{one.get('at') or 'the request'} {one.get('problem')}")  # noqa: PERF401
    if str(problem.get("type", "")) == PREFIX + problems.INTERNAL.name:
        parts.append(f"request id {problem.get('request_id')}")
    return ". ".join([*parts, detail]).rstrip(". ")
