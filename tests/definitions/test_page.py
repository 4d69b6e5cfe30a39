"""docs/definitions.md says what the code computes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from private_bandits.definitions import MODELS, adaptive_gap, analyse, counterexample, from_json

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "definitions.md").read_text(encoding="utf-8")


def test_the_file_on_the_page_is_a_policy() -> None:
    blocks = re.findall(r"^```json\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert [from_json(json.loads(block)).arms for block in blocks] == [("drug", "placebo")]


def test_the_numbers_on_the_page() -> None:
    paper = analyse(counterexample(), epsilon=0.95, delta=0.17).results
    gap = analyse(adaptive_gap(), epsilon=0.0, tolerance=1e-9).results
    rows = re.findall(r"^\| (\w+) \| ([\d.]+) \| ([\d.]+|infinite) \| ([\d.]+) \| ([\d.]+) \|$", PAGE, re.MULTILINE)
    assert [row[0] for row in rows] == ["view", "table", "interactive", "adaptive"]
    for name, delta, epsilon, gap_delta, rho in rows:
        assert float(delta) == pytest.approx(paper[name].delta, abs=5e-7)
        assert float(epsilon.replace("infinite", "inf")) == pytest.approx(paper[name].epsilon, abs=5e-7)
        assert float(gap_delta) == pytest.approx(gap[name].delta, abs=1e-12)
        assert gap[name].rho.low - 5e-7 <= float(rho) <= gap[name].rho.high + 5e-7


def test_every_model_is_explained() -> None:
    assert all(name in PAGE.lower() for name in MODELS)


def test_drawings_are_plain() -> None:
    drawings = sorted(DOCS.glob("definitions-*.svg"))
    assert len(drawings) == 3
    for drawing in drawings:
        text = drawing.read_text(encoding="utf-8")
        assert drawing.name in PAGE
        assert re.findall(r"https?://[^\"]*", text) == ["http://www.w3.org/2000/svg"]
        assert "<script" not in text
