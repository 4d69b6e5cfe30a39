from __future__ import annotations

import io
import sys
import time

import pytest

from private_bandits import progress


def test_a_bar_appears_only_when_it_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    for patience, expected in ((60.0, False), (0.0, True)):
        screen = Terminal()
        monkeypatch.setattr(sys, "stderr", screen)
        monkeypatch.setattr(progress, "PATIENCE", patience)
        with progress.progress("simulating") as report:
            report(0.1)
            time.sleep(0.01)
            report(0.7)
        assert ("simulating" in screen.getvalue()) == expected


def test_lines_with_the_time_left_where_there_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    screen, now = io.StringIO(), [0.0]
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    with progress.progress("simulating", line_every=10) as report:
        for now[0], part in (
            (50.0, 0.2),
            (55.0, 0.3),
            (60.0, 0.4),
            (65.0, 0.5),
            (110.0, 0.5),
        ):  # 50: compiled until then
            report(part)
    assert screen.getvalue().splitlines() == [
        "simulating: 20% done",
        "simulating: 40% done, about 30 seconds left",
        "simulating: 50% done, about 2 minutes left",
    ]
    with progress.progress("simulating") as report:
        report(0.5)
    assert len(screen.getvalue().splitlines()) == 3
