"""Knows when this process was told to stop, so that streams end and the server need not wait for them."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

DRAINING = threading.Event()
"""Set once this process was told to stop."""


@contextmanager
def noticing_signals() -> Iterator[None]:
    """Notice the signals that stop the server, before it does what it does at them."""
    DRAINING.clear()
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}

    def notice(number: int, frame: Any) -> None:
        DRAINING.set()
        handler = before[signal.Signals(number)]
        if callable(handler):
            handler(number, frame)

    for number, handler in before.items():
        if callable(handler):
            signal.signal(number, notice)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
