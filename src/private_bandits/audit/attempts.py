"""Calls of somebody else's code, which may fail: that a call failed, and with which words, is published like an answer.

Whoever catches an exception can read its notes, its attributes and the exceptions behind it, and crash reporters do.
So all of these count as its words. The frames of a traceback do not: they hold whatever the code worked on.

A call may also never return. Within `watched`, an alarm ends it.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

DEEPEST = 8
"""Exceptions behind an exception that are looked at."""


AGENT_LIMIT = 10.0
"""Seconds that one call of an agent may take."""
LONG_LIMIT = 120.0
"""The same where the audit does more than one call, and work of its own."""
AGAIN = 1.0
"""Seconds after which the alarm rings again: code that catches everything is told until it ends."""


class Hanging(BaseException):
    """A call does not return. No Exception, so that an agent's own handlers do not take it for one of theirs."""


class Answer(NamedTuple):
    """The value that a call returned, or the words with which it failed. kind: the name of the exception's type."""

    value: Any = None
    kind: str = ""
    words: str = ""

    @property
    def failed(self) -> bool:
        """Whether the call raised an exception."""
        return bool(self.kind)

    def __str__(self) -> str:
        return f"error {self.words}" if self.failed else f"returned {self.value}"


def attempt(call: Callable[[], Any], limit: float | None = None) -> Answer:
    """Call it. Whatever it raises becomes its answer, an exit as well; only the user's Ctrl-C ends an audit.

    Raises:
        Hanging: Within `watched`, if it takes longer than `limit` seconds (None: LONG_LIMIT).
    """
    outer = _set_alarm(LONG_LIMIT if limit is None else limit)
    try:
        return Answer(call())
    except (KeyboardInterrupt, Hanging):
        raise
    except BaseException as error:
        return Answer(None, type(error).__name__, words_of(error))
    finally:
        _set_alarm(LONG_LIMIT if outer else 0.0)  # what it is part of has come forward


def ask_agent(call: Callable[[], Any]) -> Answer:
    """Attempt a single call of an agent, which may not take long."""
    return attempt(call, AGENT_LIMIT)


_watching = False


@contextmanager
def watched() -> Iterator[None]:
    """Within it, calls that do not return are ended: in the main thread of a process, on systems that have alarms.

    Code that is not Python, and never comes back to it, cannot be ended so.
    """
    global _watching
    able = hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()
    if _watching or not able:
        yield
        return
    before = signal.signal(signal.SIGALRM, _ring)
    _watching = True
    try:
        yield
    finally:
        _watching = False
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def _ring(number: int, frame: Any) -> None:
    raise Hanging("a call of the agent did not return in time")


def _set_alarm(seconds: float) -> float:
    """Return whether there was an alarm already, as the seconds that it still had."""
    return signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN if seconds else 0.0)[0] if _watching else 0.0


def words_of(error: BaseException) -> str:
    """Everything that an exception says: type, text, arguments, attributes, notes, and the same of those behind it."""
    return "; ".join(f"{how}{_own_words(one)}" for how, one in _chain(error))


def _chain(error: BaseException) -> Iterator[tuple[str, BaseException]]:
    """The exception, its cause, its context and the members of a group, each once, with how one comes to it."""
    seen: set[int] = set()
    waiting = [("", error)]
    while waiting and len(seen) < DEEPEST:
        how, one = waiting.pop(0)
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield how, one
        behind = [("cause ", one.__cause__), ("context ", one.__context__)]
        behind += [("member ", member) for member in getattr(one, "exceptions", ())]
        waiting += [(step, other) for step, other in behind if isinstance(other, BaseException)]


def _own_words(error: BaseException) -> str:
    text = _text(lambda: str(error))
    parts = [f"{type(error).__name__}: {text}"]
    if error.args not in ((), (text,)):
        parts.append(f"args {_text(lambda: repr(error.args))}")
    if error.__dict__:  # its notes are there too
        parts.append(_text(lambda: repr(error.__dict__)))
    return " ".join(parts)


def _text(make: Callable[[], str]) -> str:
    """Even to say something may fail."""
    try:
        return make()
    except Exception as error:
        return f"<{type(error).__name__}>"
