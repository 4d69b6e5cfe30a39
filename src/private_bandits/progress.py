"""A progress bar on the terminal, once work has taken longer than people like to wait in the dark."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

PATIENCE = 2.0
"""Seconds before a progress bar appears."""

Report = Callable[[float], None]
"""Told now and then which share of the work is done."""


@contextmanager
def progress(words: str, enabled: bool = True) -> Iterator[Report]:
    """Yields a function that is told the share done; shows a bar on stderr if that is a terminal."""
    if not enabled or not sys.stderr.isatty():
        yield lambda part: None
        return
    from rich.console import Console
    from rich.progress import Progress

    started = time.monotonic()
    with_bar: list[Any] = []

    def report(part: float) -> None:
        if not with_bar and time.monotonic() - started > PATIENCE:
            bar = Progress(console=Console(stderr=True), transient=True)
            bar.start()
            with_bar.extend([bar, bar.add_task(words, total=1.0)])
        if with_bar:
            with_bar[0].update(with_bar[1], completed=part)

    try:
        yield report
    finally:
        if with_bar:
            with_bar[0].stop()
