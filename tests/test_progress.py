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
