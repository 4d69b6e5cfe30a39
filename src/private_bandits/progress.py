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
def progress(words: str, enabled: bool = True, line_every: float | None = None) -> Iterator[Report]:
    """Yields a function that is told the share done; shows a bar with the time left on stderr if that is a terminal.

    line_every: where it is none, a line of text instead, after so many seconds each.
    """
    if not enabled or not (sys.stderr.isatty() or line_every):
        yield lambda part: None
    elif sys.stderr.isatty():
        with _bar(words) as report:
            yield report
    else:
        assert line_every is not None
        yield _lines(words, line_every)


@contextmanager
def _bar(words: str) -> Iterator[Report]:
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


def _lines(words: str, every: float) -> Report:
    began: list[tuple[float, float]] = []
    last = time.monotonic()

    def report(part: float) -> None:
        nonlocal last
        now = time.monotonic()
        if not began:  # what came before was no part of the work, as compiling
            began.append((now, part))
        if now - last >= every:
            last = now
            print(f"{words}: {part:.0%} done{_left(now, part, *began[0])}", file=sys.stderr, flush=True)

    return report


def _left(now: float, part: float, start: float, part_then: float) -> str:
    """In words, once something was done."""
    return f", about {_duration((now - start) * (1 - part) / (part - part_then))} left" if part > part_then else ""


def _duration(seconds: float) -> str:
    """As people say it.

    >>> _duration(42), _duration(600)
    ('42 seconds', '10 minutes')
    """
    return f"{seconds:.0f} seconds" if seconds < 100 else f"{seconds / 60:.0f} minutes"
