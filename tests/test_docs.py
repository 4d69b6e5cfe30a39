"""The examples of the documentation run as they stand."""

from __future__ import annotations

import re
import runpy
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import replace
from io import StringIO
from pathlib import Path
from unittest import mock

import pytest

from private_bandits import testing
from private_bandits.policies import POLICIES
from tests.commands import call_here
from tests.support import SELDOM

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def code_of(page: Path) -> str:
    return "\n".join(re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL))


COMMANDS = re.findall(r"^ +\.venv/bin/private-bandits (.*)$", (ROOT / "README.md").read_text(), re.MULTILINE)
AUDITS = [command for command in COMMANDS if command.startswith("audit")]
LEVEL = ("--false-accusation", str(SELDOM))


def printed(run: Callable[[], object], *arguments: str) -> str:
    """What a script prints. The policies that it makes are known to it alone."""
    out = StringIO()
    with mock.patch.dict(POLICIES), mock.patch.object(sys, "argv", ["script", *arguments]), redirect_stdout(out):
        run()
    return out.getvalue()


def printed_by_page(page: Path) -> str:
    """What the examples of a page print, one after the other."""
    code = compile(code_of(page), page.name, "exec", dont_inherit=True)
    return printed(lambda: exec(code, {"__name__": "__main__"}))


def printed_by_file(folder: str, name: str, *arguments: str) -> str:
    """What a script of the tree prints."""
    return printed(lambda: runpy.run_path(str(ROOT / folder / name), run_name="__main__"), *arguments)


@pytest.mark.parametrize("page", [p for p in PAGES if code_of(p)], ids=lambda p: p.name)
def test_examples_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rules and audits of own policies are in their shortest form; tests/test_testing.py has the others."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(testing, "SCRIPTS", range(1))
    monkeypatch.setattr(testing.PolicyAudit, "thoroughness", replace(testing.BRIEF, scripts=1, draws=150))
    assert printed_by_page(page)


def test_the_readme_has_an_example() -> None:
    assert 5 <= len([line for line in code_of(ROOT / "README.md").splitlines() if line.strip()]) <= 12


def test_the_readme_has_commands() -> None:
    assert {"simulate", "reproduce", "audit"} <= {command.split()[0] for command in COMMANDS}


def run_command(command: str, *more: str) -> None:
    done = call_here(*command.split(), *more)
    assert done.returncode == 0, done.stderr
    assert done.stdout


@pytest.mark.parametrize("command", [command for command in COMMANDS if command not in AUDITS])
def test_commands_of_the_readme_run(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_command(command)


@pytest.mark.usefixtures("short_audits_are_shorter")
@pytest.mark.parametrize("command", AUDITS)
def test_audits_of_the_readme_run(command: str) -> None:
    run_command(command, *LEVEL, "--processes", "1")


@pytest.mark.full
@pytest.mark.parametrize("command", AUDITS)
def test_audits_of_the_readme_run_at_length(command: str) -> None:
    run_command(command, *LEVEL)


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


@pytest.mark.parametrize(
    ("name", "options", "pictures"),
    [
        ("doctor_bandit.py", ["--patients", "300"], ["regret.png"]),
        ("linear_bandit.py", ["--visitors", "3000"], ["linear-design.png", "linear-phases.png"]),
        ("contextual_bandit.py", ["--patients", "1000"], ["contextual-episodes.png"]),
    ],
)
def test_examples_run_and_draw(name: str, options: list[str], pictures: list[str], tmp_path: Path) -> None:
    assert "promised" in printed_by_file("examples", name, *options, "--out", str(tmp_path))
    for picture in pictures:
        assert (tmp_path / picture).stat().st_size > 10_000


def test_the_example_of_real_data_runs(tmp_path: Path) -> None:
    text = printed_by_file("examples", "real_data.py", "--patients", "300", "--runs", "1")
    assert "569 rows, 2 arms, d = 12" in text
    assert text.count("%") == 18  # eight policies and the best fixed arm, twice
    (tmp_path / "own.csv").write_text("x,same,kind\n" + "".join(f"{i % 5},1,{'ab'[i % 5 > 2]}\n" for i in range(40)))
    own = ("--data", str(tmp_path / "own.csv"), "--label", "kind", "--patients", "50", "--runs", "1")
    assert "Left out: columns that never change: same." in printed_by_file("examples", "real_data.py", *own)


def test_the_tables_of_real_data_are_printed() -> None:
    small = ("--people", "20", "--runs", "2", "--most", "60", "--processes", "1")
    assert printed_by_file("benchmarks", "real_data.py", *small).count("| --- |") == 5


def test_the_example_of_an_own_policy_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With one script; tests/test_testing.py holds its policies to all of them."""
    monkeypatch.setattr(testing, "SCRIPTS", range(1))
    text = printed_by_file("examples", "own_policy.py", "--patients", "300", "--out", str(tmp_path))
    assert (tmp_path / "own-policy.png").stat().st_size > 10_000
    assert "explore then commit" in (tmp_path / "own-policy.html").read_text(encoding="utf-8")
    for name in ("own-moss", "own-explore-then-commit"):
        assert f"{name} keeps the rules" in text


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
    rows = [line for line in printed_by_page(page).splitlines() if line.startswith("|")]
    assert len(rows) == 11
    for line in rows:
        assert line in page.read_text(encoding="utf-8").splitlines()


def test_the_picture_for_choosing_is_drawn(tmp_path: Path) -> None:
    printed_by_file("benchmarks", "choosing.py", "--horizon", "1000", "--runs", "3", "--out", str(tmp_path))
    assert (tmp_path / "choosing-odds.png").stat().st_size > 10_000
