"""The examples of the documentation run as they stand."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import SELDOM

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def code_of(page: Path) -> str:
    return "\n".join(re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL))


@pytest.mark.parametrize("page", [p for p in PAGES if code_of(p)], ids=lambda p: p.name)
def test_examples_run(page: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", code_of(page)], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_the_readme_has_an_example() -> None:
    assert 5 <= len([line for line in code_of(ROOT / "README.md").splitlines() if line.strip()]) <= 12


def test_commands_of_the_readme_run(tmp_path: Path) -> None:
    commands = re.findall(r"^ +\.venv/bin/(private-bandits .*)$", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert len(commands) >= 2
    for command in commands:
        name, *arguments = command.split()
        program = str(Path(sys.executable).with_name(name))
        level = ["--false-accusation", str(SELDOM)] if arguments[0] == "audit" else []
        done = subprocess.run(
            [program, *arguments, *level], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


def test_functions_named_in_the_proof_exist() -> None:
    """guarantees.md names `Class.method`; a renamed function must take its proof along."""
    source = "\n".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    named = set(re.findall(r"`(\w+)\.(\w+)`", (ROOT / "docs" / "guarantees.md").read_text(encoding="utf-8")))
    assert len(named) > 10
    for owner, member in named:
        assert f"class {owner}" in source, owner
        assert re.search(rf"\bdef {member}\b|\b{member}:", source), member


def test_the_demo_runs_and_draws(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "doctor_bandit.py"), "--patients", "300", "--out", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "promised" in done.stdout
    assert (tmp_path / "regret.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("name", "options", "pictures"),
    [
        ("linear_bandit.py", ["--visitors", "3000"], ["linear-design.png", "linear-phases.png"]),
        ("contextual_bandit.py", ["--patients", "1000"], ["contextual-episodes.png"]),
    ],
)
def test_examples_run_and_draw(name: str, options: list[str], pictures: list[str], tmp_path: Path) -> None:
    example = str(ROOT / "examples" / name)
    done = subprocess.run(
        [sys.executable, example, *options, "--out", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "promised" in done.stdout
    for picture in pictures:
        assert (tmp_path / picture).stat().st_size > 10_000


def test_the_example_of_an_own_policy_runs() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "own_policy.py"), "--patients", "300"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for name in ("own-moss", "own-explore-then-commit"):
        assert f"{name} keeps the rules" in done.stdout


def test_own_policies_are_printed_as_they_run() -> None:
    """The classes of the page are those of the example, to the letter, and as short as it says."""
    page = (ROOT / "docs" / "own-policy.md").read_text(encoding="utf-8")
    example = (ROOT / "examples" / "own_policy.py").read_text(encoding="utf-8")
    lines = []
    for block in re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL):
        for part in block.split("\n\n\n"):
            if re.match("@dataclass|class (?!Test)", part):
                assert part.strip() in example
                lines.append(sum(bool(re.match(r'\s*[^\s"]', line)) for line in part.splitlines()))
    index, state, policy = lines  # without empty lines and docstrings
    assert index <= 10
    assert state + policy <= 40


def test_the_tables_for_choosing_a_budget_are_what_the_code_prints() -> None:
    page = ROOT / "docs" / "choosing.md"
    done = subprocess.run(
        [sys.executable, "-c", code_of(page)], capture_output=True, text=True, timeout=120, check=True
    )
    printed = [line for line in done.stdout.splitlines() if line.startswith("|")]
    assert len(printed) == 16
    for line in printed:
        assert line in page.read_text(encoding="utf-8").splitlines()


def test_the_picture_for_choosing_is_drawn(tmp_path: Path) -> None:
    script = str(ROOT / "benchmarks" / "choosing.py")
    options = ["--horizon", "1000", "--runs", "3", "--out", str(tmp_path)]
    subprocess.run([sys.executable, script, *options], capture_output=True, timeout=120, check=True)
    assert (tmp_path / "choosing-odds.png").stat().st_size > 10_000
