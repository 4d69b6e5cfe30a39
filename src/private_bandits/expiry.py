"""When decisions were made, so that those without a reward can be given up after a time.

The state machine has no clock. Whoever runs it says what time it is, in whole microseconds since 1970.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from datetime import timedelta
from itertools import pairwise
from typing import Any

from private_bandits.errors import AgentFileInvalid, InvalidInput

Mark = tuple[int, int]
"""A time, and the number of the last decision that was made by then."""

STEPS = 10_000
"""A decision is given up late by one part in so many of its time at most. So no more marks than this are needed."""
MICROSECOND = timedelta(microseconds=1)
LONGEST = timedelta(days=36_525)


def microseconds(name: str, given: timedelta) -> int:
    """Return a span of time in microseconds. Refuses one that is not positive, or is longer than a century."""
    if not MICROSECOND <= given <= LONGEST:
        raise InvalidInput(f"{name} must be a timedelta of more than 0, and of 100 years at most, got {given}")
    return given // MICROSECOND


class AskedTimes:
    """The times by which decisions were made, oldest first. Public.

    A time is rounded up to a ten-thousandth of `after`, and decisions of one such step share a mark.

    Args:
        after: The microseconds after which a decision is given up.
        marks: The marks that are known already.
        handled: The number of a decision up to which none is open, or has to be given up.
    """

    def __init__(self, after: int, marks: Iterable[Mark] = (), handled: int = 0) -> None:
        self.after = after
        self.handled = handled
        self._step = max(1, after // STEPS)
        self._marks = deque(marks)

    def note(self, number: int, now: int) -> Mark:
        """Note that decisions up to this number were made by now. Returns the mark that was added or moved.

        A clock that was set back does not make a decision older than one before it.
        """
        time = -(-now // self._step) * self._step
        if self._marks and time <= self._marks[-1][0]:
            time = self._marks.pop()[0]
        self._marks.append((time, number))
        return time, number

    def late(self, now: int) -> Mark | None:
        """Return the last mark whose decisions are out of time by now, if there is one."""
        found = None
        for time, number in self._marks:
            if time + self.after > now:
                break
            found = time, number
        return found

    def drop(self, mark: Mark) -> None:
        """Forget the marks up to this one, once all of their decisions are closed."""
        self.handled = max(self.handled, mark[1])
        while self._marks and self._marks[0][0] <= mark[0]:
            self._marks.popleft()


def stored_times(
    after: int | None, rows: Iterable[tuple[Any, ...]] | None, oldest: int, asked: int
) -> AskedTimes | None:
    """Return the times that a file holds; None where decisions are not given up by time.

    Args:
        after: The microseconds after which a decision is given up; None: not by time.
        rows: The marks; None where the file has no place for them.
        oldest: The number of the oldest decision that is open, or of the next one.
        asked: The number of decisions made.
    """
    if (after is None) is not (rows is None):
        raise AgentFileInvalid("is damaged: the times of its decisions do not fit its settings")
    if after is None or rows is None:
        return None
    marks = [(time, number) for time, number in rows]
    for one, other in pairwise(marks):
        if not (one[0] < other[0] and one[1] < other[1]):
            raise AgentFileInvalid("is damaged: the times of its decisions are out of order")
    if marks and not 0 < marks[-1][1] <= asked:
        raise AgentFileInvalid("is damaged: it has times of decisions that were never made")
    return AskedTimes(after, marks, oldest - 1)
