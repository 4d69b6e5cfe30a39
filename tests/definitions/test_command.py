"""`private-bandits definitions`, as people and machines call it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from private_bandits.definitions import adaptive_gap, to_dict
from tests.commands import call_here


def call(*arguments: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("private-bandits")), "definitions", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, cwd=folder)


def refused(arguments: list[str]) -> str:
    """What the command says, in one line and with exit code 2, instead of an answer."""
    done = call_here("definitions", *arguments)
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1
    return done.stderr


def test_without_flags_it_shows_the_counterexample() -> None:
    done = call()
    assert done.returncode == 0, done.stderr
    for text in ("0.94362793", "0.98397814", "0.17768369", "interactive", "adaptive", "Patient 1", "inf"):
        assert text in done.stdout
    assert done.stderr == ""


def test_json_for_machines(tmp_path: Path) -> None:
    path = tmp_path / "gap.json"
    path.write_text(json.dumps(to_dict(adaptive_gap())))
    options = ["--epsilon", "0", "--delta", "0.1", "--model", "table,adaptive", "--json"]
    done = call_here("definitions", "--policy", str(path), *options)
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    assert [row["model"] for row in data["results"]] == ["table", "adaptive"]
    assert [row["delta"] for row in data["results"]] == pytest.approx([0.247, 0.62])
    adaptive = data["results"][1]
    assert adaptive["rho_low"] < adaptive["rho_high"] < adaptive["rho_low"] * (1 + 2e-6)
    moves = adaptive["worst"]["delta"]["adversary"]
    assert moves[0] == {"step": 1, "seen": None, "plays": 1, "rewards": [0.0, 1.0], "next_context": None}
    assert (data["epsilon"], data["privacy_delta"]) == (0, 0.1)


def test_infinity_is_a_text() -> None:
    data = json.loads(call_here("definitions", "--json", "--privacy-delta", "0").stdout)
    assert {row["rho_low"] for row in data["results"]} == {"inf"}
    assert data["results"][0]["epsilon"] == "inf"


def test_a_rule_or_a_policy_of_a_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.py").write_text(
        "from private_bandits.definitions import counterexample\n"
        "def rule(history):\n    return (0.5, 0.5) if not history or history[-1][1] == 2 else (0.25, 0.75)\n"
        "def seen(history, context):\n    return (0.5, 0.5) if context else (0.2, 0.8)\n"
        "made = counterexample()\nnumber = 3\n"
    )
    sizes = ("--arms", "2", "--horizon", "3", "--rewards", "0,1,2")
    done = call("--policy", "mine:rule", *sizes, "--json", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["rewards"] == [0, 1, 2]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path[:])
    made = call_here("definitions", "--policy", "mine:made", "--json")
    assert json.loads(made.stdout)["results"][1]["epsilon"] == pytest.approx(0.98397814)
    sizes = ("--arms", "2", "--horizon", "2", "--contexts", "2")
    joint = call_here(
        *("definitions", "--policy", "mine:seen", *sizes, "--observer", "others", "--model", "joint-table", "--json")
    )
    assert json.loads(joint.stdout)["results"][0]["observer"] == "others"
    for arguments, text in (
        (["mine:rule"], "needs arms and horizon"),
        (["mine:none"], "has no 'none'"),
        (["mine:number"], "must be a SmallPolicy or a rule"),
        (["nowhere:rule"], "cannot be loaded"),
        (["mine:made", "--arms", "2"], "has its own sizes"),
    ):
        assert text in refused(["--policy", *arguments])


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--policy", "nowhere.json"], "nowhere.json does not exist"),
        (["--policy", "[/red]:[bold]"], "cannot be loaded"),
        (["--epsilon", "-1"], "epsilon must be at least 0 and finite, got -1.0"),
        (["--privacy-delta", "1"], "delta must be at least 0 and below 1, got 1.0"),
        (["--model", "vew"], "model must be one of view, table"),
        (["--model", "joint-view"], "needs a policy with contexts"),
        (["--observer", "me"], "observer must be later or others"),
        (["--worst", "tv"], "--worst must be one of delta, epsilon, rho"),
        (["--model", "joint-view,view", "--observer", "me"], "observer must be"),
        (["--arms", "2"], "arms belongs to a rule"),
        (["--rewards", "a,b"], "--rewards must be numbers"),
        (["--tolerance", "0"], "tolerance must lie between"),
    ],
)
def test_bad_flags_are_told_in_one_line(arguments: list[str], text: str) -> None:
    assert text in refused(arguments)


def test_a_function_that_makes_a_policy() -> None:
    done = call_here("definitions", "--policy", "private_bandits.definitions:adaptive_gap", "--epsilon", "0", "--json")
    found = json.loads(done.stdout)
    assert [round(result["delta"], 3) for result in found["results"]] == [0.195, 0.247, 0.51, 0.62]
