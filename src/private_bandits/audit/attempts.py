"""Calls of somebody else's code, which may fail: that a call failed, and with which words, is published like an answer.

Whoever catches an exception can read its notes, its attributes and the exceptions behind it, and crash reporters do.
So all of these count as its words. The frames of a traceback do not: they hold whatever the code worked on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

DEEPEST = 8
"""Exceptions behind an exception that are looked at."""


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


def attempt(call: Callable[[], Any]) -> Answer:
    """Call it. Whatever it raises becomes its answer, an exit as well; only the user's Ctrl-C ends an audit."""
    try:
        return Answer(call())
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return Answer(None, type(error).__name__, words_of(error))


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
