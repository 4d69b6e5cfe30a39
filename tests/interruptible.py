"""Processes that can be interrupted, wherever the tests run."""

from __future__ import annotations

import signal


def hears_interrupts() -> None:
    """For `preexec_fn`. A shell's job in the background ignores SIGINT, and hands that on to all that it starts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
