"""The command line, as people and machines call it."""

from __future__ import annotations

import ast
import csv
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import private_bandits as pb
from tests.commands import call_here


def call(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The installed command, in a process of its own."""
    command = [str(Path(sys.executable).with_name("private-bandits")), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_simulate_json_has_the_documented_fields() -> None:
    done = call(
        "simulate",
        "--means",
        "0.9,0.5",
        "--rho",
        "0.1,inf",
        "--beta",
        "1",
        "--horizon",
        "1e5",
        "--runs",
        "20",
        "--json",
    )
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    assert data["seconds"] > 0
    assert [(row["policy"], row["variant"], row["rho"]) for row in data["results"]] == [
        ("adac-imed", None, 0.1),
        ("adac-imed", None, "inf"),
    ]
    assert all(row["horizon"] == 10**5 and row["runs"] == 20 and row["regret_stderr"] > 0 for row in data["results"])
    assert "no privacy" in data["note"]


def test_equal_budgets_for_a_pure_dp_policy() -> None:
    done = call_here(
        "simulate", "--policy", "adac-ucb,adap-ucb", "--rho", "0.5", "--horizon", "1000", "--runs", "2", "--json"
    )
    rows = json.loads(done.stdout)["results"]
    assert [row["rho"] for row in rows] == pytest.approx([0.5, 0.5])
    assert rows[1]["budget"] == "PureDP(epsilon=1.0)"


def test_epsilon_and_delta_as_a_budget() -> None:
    done = call_here(
        "simulate", "--epsilon", "2.1419,inf", "--privacy-delta", "1e-6", "--horizon", "1000", "--runs", "2", "--json"
    )
    rows = json.loads(done.stdout)["results"]
    assert rows[0]["rho"] == pytest.approx(0.1, rel=1e-3)
    assert rows[1]["rho"] == "inf"


def test_linear_bandits(tmp_path: Path) -> None:
    actions = tmp_path / "actions.csv"
    actions.write_text("1,0\n0,1\n0.6,0.8\n")
    options = ["--actions", str(actions), "--theta", "0.6,0.8", "--delta", "1e-3", "--horizon", "1e4", "--runs", "3"]
    names = "adac-gope,adac-gope-var,adac-gope-end,li-gope,hanna-gope"
    done = call_here("simulate", "--setting", "linear", "--policy", names, "--rho", "0.1,inf", *options, "--json")
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["results"]
    assert [row["policy"] for row in rows] == [name for name in names.split(",") for _ in range(2)]
    assert rows[0]["rho"] == 0.1
    assert rows[8]["budget"].startswith("PureDP")
    assert all(row["regret_mean"] > 0 for row in rows)


@pytest.mark.parametrize(
    ("setting", "variant"),
    [(s, v) for s in ("finite", "linear", "contextual") for v in ("paper", "tight") if (s, v) != ("finite", "tight")],
)
def test_variants_are_taken_by_all_that_have_them(setting: str, variant: str) -> None:
    shipped = [cls for cls in pb.policies.POLICIES.values() if cls.__module__.startswith("private_bandits.")]
    names = [cls.name for cls in shipped if cls.setting == setting and variant in cls.variants]
    options = ["--setting", setting, "--policy", ",".join(names), "--variant", variant, "--rho", "1"]
    done = call_here("simulate", *options, "--horizon", "20", "--runs", "1", "--json")
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["results"]
    assert [row["policy"] for row in rows] == names
    assert {row["variant"] for row in rows} <= {variant, None}  # None: a policy that is always as published
    if variant == "paper":
        assert len(names) == sum(cls.setting == setting for cls in shipped)


def test_contextual_bandits() -> None:
    names = "linpriv,linpriv-shared,shariff-sheffet,adac-oful-private,adac-oful"
    options = ["--dimension", "2", "--arms", "4", "--rho", "0.1,inf", "--horizon", "1e2", "--runs", "2"]
    done = call_here("simulate", "--setting", "contextual", "--policy", names, *options, "--growth", "0.5", "--json")
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    assert [(row["policy"], row["rho"]) for row in data["results"]] == [
        (name, rho) for name in names.split(",") for rho in (0.1, "inf")
    ]
    made = {row["policy"]: row for row in data["policies"].values()}
    assert made["linpriv"]["arms"] == 4
    assert "arms" not in made["linpriv-shared"]
    assert [made[name]["regulariser"] for name in names.split(",")] == [1.0, 1.0, 1.0, 0.1, 0.1]
    assert (made["adac-oful"]["exploration"], made["adac-oful-private"]["exploration"]) == (0.1, 0.05)
    assert made["adac-oful"]["growth"] == made["adac-oful-private"]["growth"] == 0.5
    short = ["--horizon", "10", "--runs", "1", "--rho", "1", "--variant", "paper", "--setting-as", "paper", "--json"]
    done = call_here("simulate", "--setting", "contextual", "--policy", "linpriv", "--regulariser", "0.3", *short)
    data = json.loads(done.stdout)
    assert data["policies"]["linpriv zCDP(rho=1.0)"]["regulariser"] == 0.3
    done = call_here("simulate", "--setting", "contextual", "--exploration", "0.7", *short)
    assert json.loads(done.stdout)["policies"]["adac-oful zCDP(rho=1.0)"]["exploration"] == 0.7
    assert "no guarantee would hold" in data["note"]


def test_the_papers_linear_setting_says_that_it_breaks_its_range() -> None:
    done = call_here(
        "simulate", "--setting", "linear", "--horizon", "1e4", "--runs", "2", "--setting-as", "paper", "--json"
    )
    data = json.loads(done.stdout)
    assert "no guarantee would hold" in data["note"]
    assert [row["policy"] for row in data["results"]] == ["adac-gope"] * 3
    strict = ["--horizon", "1e4", "--runs", "2", "--variant", "paper", "--phase-length", "own"]
    done = call_here("simulate", "--setting", "linear", *strict)
    assert done.returncode == 0, done.stderr
    assert "no guarantee" not in done.stdout


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1,0\n0,x\n", "line 2"),
        ("1,0\n0\n", "all of one length"),
        ("", "a row an action"),
        ("1,1\n0,1\n", "action_norm=1.41422"),
        ("1,nan\n", "finite"),
    ],
)
def test_bad_action_files_are_told_in_one_line(tmp_path: Path, text: str, words: str) -> None:
    actions = tmp_path / "actions.csv"
    actions.write_text(text)
    done = call_here("simulate", "--setting", "linear", "--actions", str(actions), "--horizon", "10", "--runs", "1")
    assert done.returncode == 2
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_file_from_a_spreadsheet(tmp_path: Path) -> None:
    actions = tmp_path / "actions.csv"
    actions.write_text("1,0\r\n0,1\r\n", encoding="utf-8-sig")
    done = call_here("simulate", "--setting", "linear", "--actions", str(actions), "--horizon", "100", "--runs", "1")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--actions", "films.csv"], "--actions is for --setting linear"),
        (["--setting", "linear", "--beta", "1"], "--beta is for --setting finite"),
        (["--policy", "adac-gope"], "adac-gope is for the linear setting"),
        (["--setting", "linear", "--seed", "-1"], "seed must be"),
        (
            ["--setting", "contextual", "--policy", "linpriv", "--growth", "1"],
            "--growth is for adac-oful or adac-oful-private, not for linpriv",
        ),
        (
            ["--setting", "contextual", "--policy", "linpriv", "--variant", "tight"],
            "linpriv has no variant 'tight': variant must be paper for it",
        ),
        (["--policy", "adac-ucb,adap-ucb", "--variant", "tihgt"], "adac-ucb has no variant 'tihgt'"),
        (["--policy", "adac-ucb", "--variant", "tight"], "AdaCIMED (adac-imed) replaced it"),
        (["--setting", "linear", "--policy", "li-gope", "--phase-length", "paper"], "--phase-length is for adac-gope"),
    ],
)
def test_what_would_be_ignored_is_an_error(arguments: list[str], words: str) -> None:
    done = call_here("simulate", "--horizon", "100", "--runs", "1", *arguments)
    assert done.returncode == 2
    assert words in done.stderr


def test_a_missing_action_file_is_named() -> None:
    done = call_here("simulate", "--setting", "linear", "--actions", "no-such-file.csv")
    assert done.returncode == 2
    assert "no-such-file.csv cannot be read" in done.stderr


def test_a_table_for_people_and_a_csv_file(tmp_path: Path) -> None:
    path = tmp_path / "curves.csv"
    done = call_here("simulate", "--horizon", "1000", "--runs", "3", "--csv", str(path))
    assert done.returncode == 0, done.stderr
    assert "largest times ref." in done.stdout
    assert {row["step"] for row in csv.DictReader(path.read_text().splitlines())} >= {"1", "1000"}
    again = call_here("simulate", "--horizon", "1000", "--runs", "3", "--csv", str(path))
    assert (again.returncode, "exists" in again.stderr) == (2, True)


def test_the_table_of_regrets_is_whole_in_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Long names, budgets with many digits, and a few runs of very large regret."""
    monkeypatch.setenv("COLUMNS", "80")
    shared = ("--rho", "0.00123456,0.1,inf", "--horizon", "1e6", "--runs", "200")
    arguments = ("simulate", "--policy", "adac-ucb,dp-imed,dp-klucb,dp-se", *shared)
    lines = call(*arguments).stdout.splitlines()
    rows = json.loads(call(*arguments, "--json").stdout)["results"]
    assert all(len(line) <= 80 for line in lines[:-1])
    assert "…" not in "".join(lines)
    shown = [line.split() for line in lines if line.startswith(tuple(row["policy"] for row in rows))]
    assert [words[0] for words in shown] == [row["policy"] for row in rows]
    for words, row in zip(shown, rows, strict=True):
        figures = [float(word.replace(",", "")) for word in words[-6:]]
        names = ("regret_mean", "regret_stderr", "regret_p95", "regret_p99", "regret_max", "times_reference")
        assert figures == pytest.approx([row[name] for name in names], rel=1e-3)


def test_results_have_the_tail_and_the_reference() -> None:
    (row,) = json.loads(call("simulate", "--rho", "0.1", "--horizon", "1e7", "--runs", "50", "--json").stdout)[
        "results"
    ]
    assert row["regret_mean"] < row["regret_p95"] <= row["regret_p99"] <= row["regret_max"]
    assert row["reference"] == pytest.approx(135.2, abs=0.05)
    assert row["times_reference"] == row["regret_mean"] / row["reference"]
    linear = ("simulate", "--setting", "linear", "--rho", "1", "--horizon", "100", "--runs", "2")
    (other,) = json.loads(call(*linear, "--json").stdout)["results"]
    assert (other["reference"], other["times_reference"]) == (None, None)
    assert "times ref." not in call(*linear).stdout


def test_verdicts_are_looked_for() -> None:
    command = "simulate --means 0.9,0.2 --policy adac-top-two,adac-halving --rho 1 --runs 5 --horizon 600 --verdict 0.1"
    data = json.loads(call_here(*command.split(), "--json").stdout)
    for row in data["results"]:
        assert row["verdict_delta"] == 0.1
        assert 0 <= row["verdict_wrong"] <= row["verdict_share"] <= 1
    assert data["results"][0]["decisions_mean"] < 600
    settings = [found["delta"] if "delta" in found else found["rewards"] for found in data["policies"].values()]
    assert settings == [0.1, 600]
    shown = call_here(*command.split(), "--delta", "0.01", "--rewards", "300").stdout
    assert "Verdicts with delta 0.1" in shown
    certain = "simulate --means 1,0 --policy adac-top-two --rho 1 --runs 3 --horizon 2000 --verdict 0.1"
    assert " 100%    0% " in call_here(*certain.split()).stdout
    refused = call_here("simulate", "--verdict", "2")
    assert "verdict must lie strictly between 0 and 1, got 2.0" in refused.stderr
    refused = call_here("simulate", "--setting", "linear", "--verdict", "0.1")
    assert (refused.returncode, "--verdict is for --setting finite" in refused.stderr) == (2, True)
    refused = call_here("simulate", "--delta", "0.1")
    assert "--delta is for adac-top-two" in refused.stderr


def test_rewards_may_be_late_or_missing() -> None:
    late = (
        "simulate",
        "--means",
        "0.75,0.5",
        "--rho",
        "1",
        "--runs",
        "3",
        "--delay",
        "geometric:20",
        "--missing",
        "0.1",
    )
    data = json.loads(call_here(*late, "--json").stdout)
    (row,) = data["results"]
    assert (row["delay"], row["missing"], row["horizon"]) == ("geometric:20", 0.1, 10_000)
    assert (data["delay"], data["missing"]) == ("geometric:20", 0.1)
    title = " ".join(call_here(*late, "--horizon", "100").stdout.split("policy")[0].split())
    assert title == "Regret after 100 steps, 3 runs; rewards 20 decisions late on average, 10% of rewards missing"
    prompt = ("simulate", "--horizon", "1000", "--runs", "3", "--json")
    before, again = (json.loads(call_here(*prompt, *more).stdout) for more in ((), ("--delay", "0", "--missing", "0")))
    assert before["results"] == again["results"]


def test_the_version_is_told() -> None:
    assert call("--version").stdout.strip().count(".") == 2


def test_policies_are_listed() -> None:
    rows = json.loads(call_here("policies", "--json").stdout)["policies"]
    assert {"adac-ucb", "adap-ucb"} <= {row["name"] for row in rows}
    assert all(row["setting"] and row["privacy"] and row["source"] for row in rows)
    supported_budgets = {row["name"]: row["privacy"] for row in rows}
    assert supported_budgets["shariff-sheffet"][0] == "joint zCDP (contexts private too)"
    assert (
        supported_budgets["linpriv"] == supported_budgets["adac-oful"] == ["zCDP", "ApproxDP", "RenyiDP", "NoPrivacy"]
    )
    variants = {row["name"]: row["variants"] for row in rows}
    assert variants["adac-gope"] == ["paper", "tight"]
    assert variants["dp-se"] == ["paper"]
    shown = call_here("policies").stdout
    assert "adac-ucb" in shown
    assert "tight" in shown


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--rho", "x"], "--rho"),
        (["--rho", "-1"], "rho must be a positive"),
        (["--rho", "nan"], "rho must be a positive"),
        (["--means", "0.5,2"], "means"),
        (["--policy", "ucb9"], "adac-ucb"),
        (["--setting", "martian"], "finite"),
        (["--setting-as", "loose"], "strict"),
        (["--policy", "adap-ucb", "--variant", "tight"], "adap-ucb has no variant 'tight'"),
        (["--horizon", "0"], "horizon"),
        (["--horizon", "1.5"], "horizon"),
        (["--runs", "0"], "runs"),
        (["--horizon", "1e19"], "from 1 to 1e+18"),
        (["--horizon", "10,000"], "10_000_000"),
        (["--privacy-delta", "0.1"], "--epsilon"),
        (["--rho", "1", "--epsilon", "1"], "not both"),
        (["--rho", "-inf"], "rho must be a positive"),
        (["--csv", "nowhere/at/all.csv"], "does not exist"),
        (["--epsilon", "1"], "AdaPUCB"),
        (["--delay", "-3"], "delay must be a whole number of decisions of at least 0"),
        (["--delay", "geometric:x"], "or geometric:100"),
        (["--missing", "1.01"], "missing must be a probability from 0 to 1, got 1.01"),
        (["--missing", "-0.5"], "missing must be a probability from 0 to 1, got -0.5"),
        (["--setting", "contextual", "--delay", "3"], "--delay is for --setting finite, the setting is contextual"),
        (["--setting", "linear", "--missing", "0.1"], "--missing is for --setting finite, the setting is linear"),
    ],
)
def test_bad_flags_are_told_in_one_line(arguments: list[str], text: str) -> None:
    check_refusal(call_here("simulate", "--horizon", "100", "--runs", "2", *arguments), text)


def test_a_process_of_its_own_ends_with_the_exit_code_and_the_line() -> None:
    check_refusal(call("simulate", "--rho", "-1"), "rho must be a positive")
    check_refusal(call("simulate", "--rho", "x"), "--rho")


def check_refusal(done: subprocess.CompletedProcess[str], text: str) -> None:
    assert done.returncode == 2
    assert text in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_only_the_command_line_speaks_of_its_flags() -> None:
    """Who calls the library has arguments, and no flags."""
    package = Path(pb.__file__).parent
    found = [
        (path.name, node.lineno, node.value)
        for path in package.rglob("*.py")
        if "cli" not in path.relative_to(package).parts
        if path != package / "statement" / "record.py"  # it tells a reviewer, who has nothing else, what to run
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if re.search(r"(^|[\s\"'(`])--[a-z]", node.value) and not re.match(r"\s*(--[a-z-]+: var|\.)", node.value)
    ]
    assert not found


@pytest.fixture
def people(tmp_path: Path) -> Path:
    """A CSV file of 60 people: age tells which of two drugs helps, most of the time."""
    path = tmp_path / "people.csv"
    rows = [f"{20 + i},{'fm'[i % 2]},7,{'AB'[(i > 24) ^ (i % 9 == 0)]}" for i in range(60)]
    path.write_text("\n".join(["age,sex,same,drug", *rows, ",f,7,A"]) + "\n")
    return path


def test_a_table_of_ones_own(people: Path) -> None:
    table = ("simulate", "--setting", "contextual", "--data", str(people), "--label", "drug")
    done = call_here(*table, "--rho", "1,inf", "--horizon", "400", "--runs", "2")
    assert done.returncode == 0, done.stderr
    lines = {line.split("  ")[0].strip(): line for line in done.stdout.splitlines()}
    assert "Right recommendations of 400, 2 runs" in done.stdout
    assert "60 rows, 2 arms (labels), 2 columns, d = 6. Each row comes 6.67 times on average" in done.stdout
    assert "columns that never change: same." in done.stdout
    assert "guessing" in lines
    assert "50.0%" in lines["guessing"]
    rows = json.loads(call_here(*table, "--rho", "1,inf", "--horizon", "400", "--runs", "2", "--json").stdout)[
        "results"
    ]
    assert [(row["policy"], row["rho"]) for row in rows] == [
        (name, rho) for name in ("adac-oful", "adac-oful-private") for rho in (1.0, "inf")
    ]
    for row in rows:
        assert row["share_right"] == 1 - row["regret_mean"] / 400
        assert row["best_fixed_arm"] == pytest.approx(34 / 60)
        assert f"{row['share_right']:.1%}" in done.stdout
    assert rows[1]["share_right"] > 0.6  # something was learned


def test_the_usual_scale_of_a_table_is_small(people: Path) -> None:
    flags = ("--setting", "contextual", "--data", str(people), "--label", "drug", "--components", "1")
    done = call_here("simulate", *flags, "--policy", "adac-oful", "--rho", "1", "--json")
    (row,) = json.loads(done.stdout)["results"]
    assert (row["horizon"], row["runs"]) == (10_000, 5)
    assert json.loads(done.stdout)["table"]["dimension"] == 4


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--data", "FILE"], "--data is for --setting contextual, the setting is finite"),
        (["--setting", "contextual", "--label", "drug"], "--label belongs to --data"),
        (["--setting", "contextual", "--components", "2"], "--components belongs to --data"),
        (["--setting", "contextual", "--data", "FILE"], "--data needs --label"),
        (
            ["--setting", "contextual", "--data", "FILE", "--label", "drug", "--arms", "3"],
            "--arms and --data do not go",
        ),
        (["--setting", "contextual", "--data", "FILE", "--label", "drug", "--theta", "1,1"], "--theta and --data"),
        (["--setting", "contextual", "--data", "FILE", "--label", "drg"], "the table has no column 'drg'"),
        (["--setting", "contextual", "--data", "gone.csv", "--label", "drug"], "gone.csv cannot be read"),
        (["--setting", "contextual", "--data", "FILE", "--label", "drug", "--components", "9"], "must be at most 2"),
        (["--setting", "contextual", "--data", "FILE", "--label", "drug", "--policy", "adac-ucb"], "finite setting"),
    ],
)
def test_flags_of_a_table_that_do_not_go_together(people: Path, arguments: list[str], words: str) -> None:
    given = [str(people) if argument == "FILE" else argument for argument in arguments]
    check_refusal(call_here("simulate", *given), words)
