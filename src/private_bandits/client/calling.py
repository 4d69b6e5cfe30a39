"""Makes a call again, where that is safe, until it is answered or the time is up."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from private_bandits.client.calls import Answer, Call
from private_bandits.client.refusals import error_of
from private_bandits.errors import PrivateBanditsError, ServiceFailed

if TYPE_CHECKING:
    from private_bandits.client.connection import Connections

T = TypeVar("T")

FIRST_WAIT = 0.05
LONGEST_WAIT = 2.0

_RANDOM = secrets.SystemRandom()  # forked processes have the state of other generators in common


class Patience:
    """The time that a call and its repetitions may take.

    Args:
        seconds: After them it is not made again.
    """

    def __init__(self, seconds: float) -> None:
        self._until = time.monotonic() + seconds
        self._wait = FIRST_WAIT

    def rest(self, at_least: float = 0.0) -> bool:
        """Wait for a moment of random length, longer each time. Returns whether there is time for another try.

        Args:
            at_least: Seconds to wait at least.
        """
        wait = at_least + _RANDOM.uniform(0, self._wait)
        self._wait = min(2 * self._wait, LONGEST_WAIT)
        if time.monotonic() + wait >= self._until:
            return False
        time.sleep(wait)
        return True


class Done(NamedTuple):
    """The answer to a call that was done.

    Args:
        answer: The answer.
        repeated: Whether an earlier request of the same call may have been done already.
    """

    answer: Answer
    repeated: bool


class Caller:
    """Makes calls. May be used from several threads.

    Args:
        connections: Where they are sent.
        seconds: How long one may be repeated.
    """

    def __init__(self, connections: Connections, seconds: float) -> None:
        self.connections, self.seconds = connections, seconds

    def make(self, call: Call, patience: Patience | None = None) -> Done:
        """Make a call, again where it was not answered or is to come again.

        Args:
            call: The call.
            patience: The time that is left for it; None: all.

        Raises:
            PrivateBanditsError: It was refused, or not answered in time.
        """
        patience = patience or Patience(self.seconds)
        repeated = False
        while True:
            answer = self.connections.send(call)
            if answer.is_good:
                return Done(answer, repeated)
            repeated = repeated or answer.is_unknown
            again = answer.is_for_now and (call.repeats or not answer.is_unknown)
            if not (again and patience.rest(answer.retry_after)):
                raise error_of(call, answer, self.connections.url, repeated)

    def read(self, done: Done, read: Callable[[Any], T]) -> T:
        """Return what a function makes of an answer.

        Raises:
            ServiceFailed: It is no answer of the service.
        """
        try:
            return read(json.loads(done.answer.text))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            if isinstance(error, PrivateBanditsError):
                raise
        raise ServiceFailed(f"{self.connections.url} answered not as the service does: is it of another version?")
