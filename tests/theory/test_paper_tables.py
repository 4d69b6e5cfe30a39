"""Orders, the paper's two tables, and the command that prints bounds."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import private_bandits as pb
from private_bandits.cli import app
from private_bandits.errors import InvalidInput
from private_bandits.theory import (
    Problem,
    adac_gope_order,
    adac_oful_order,
    adac_ucb_order,
    adap_ucb_order,
    bounds_of,
    hanna_order,
    li_order,
    linpriv_order,
    shariff_sheffet_order,
    table_one,
    table_two,
    threshold_of,
)


def call(*arguments: str) -> str:
    """What the command prints."""
    done = CliRunner().invoke(app, ["bounds", *arguments], catch_exceptions=False)
    assert done.exit_code == 0
    return done.output


def test_orders_by_hand() -> None:
    # T = 10^4, rho = 1/4: 1/sqrt(rho) = 2, epsilon = sqrt(1/2)
    log_t, log_kt = math.log(1e4), math.log(1e5)
    free = math.sqrt(3e4 * log_kt)
    cases = [
        (adac_ucb_order(5, 10**4, 0.25), math.sqrt(5e4 * log_t), 10 * math.sqrt(log_t)),
        (adap_ucb_order(5, 10**4, 0.25), math.sqrt(5e4 * log_t), 10 * log_t),
        (adac_gope_order(3, 10, 10**4, 0.25), free, 6 * log_kt**1.5),
        (
            adac_gope_order(3, 10, 10**4, 0.25, delta=0.01),
            math.sqrt(3e4 * math.log(1000 * log_t)),
            6 * math.sqrt(math.log(1000 * log_t)) * log_t,
        ),
        (hanna_order(3, 10, 10**4, 0.25), free, 18 * log_kt**2),
        (li_order(3, 10, 10**4, 0.25), free, 2 * 3**1.5),
        (adac_oful_order(3, 10**4, 0.25), 300 * log_t, 18 * log_t**2),
        (shariff_sheffet_order(3, 10**4, 0.25), 300, 100 * math.sqrt(2)),
        (linpriv_order(3, 10, 10**4, 0.25, corrected=False), 300, 30 * log_t * math.sqrt(2)),
        (linpriv_order(3, 10, 10**4, 0.25, corrected=True), 300, 3000 * math.sqrt(2)),
    ]
    for bound, without, private in cases:
        assert bound.private == pytest.approx(private, rel=1e-12)
        assert bound.value == pytest.approx(without + private, rel=1e-12)
        assert bound.kind == "order"


def test_converted_is_compared_at_equal_budget() -> None:
    assert hanna_order(3, 10, 10**4, pb.PureDP(1)).value == hanna_order(3, 10, 10**4, pb.zCDP(0.5)).value
    assert shariff_sheffet_order(3, 10**4, pb.PureDP(2)).private == pytest.approx(50, rel=1e-12)
    assert adac_ucb_order(5, 10**4, pb.NoPrivacy()).private == 0


def test_the_first_table() -> None:
    rows = table_one(horizon=10**7, budget=0.1)
    assert [(row["setting"], row["policy"]) for row in rows] == [
        ("finite", "AdaC-UCB"),
        ("linear", "AdaC-GOPE"),
        ("contextual", "AdaC-OFUL"),
    ]
    finite, linear, contextual = rows
    assert finite["lower"] == pytest.approx(math.sqrt(4e7) / 27, rel=1e-12)
    assert linear["lower"] == contextual["lower"] == pytest.approx(3 * math.exp(-2) / 8 * math.sqrt(1e7), rel=1e-12)
    assert [row["upper_holds"] for row in rows] == [True, True, False]
    assert all(row["upper"] > row["lower"] > row["lower_private"] == 0 for row in rows)
    private = table_one(horizon=100, budget=1e-5)
    assert all(row["lower_private"] > 0 for row in private)
    assert table_one(horizon=100, budget=1e-5, form="paper")[1]["threshold"] == pytest.approx(0.04 * math.exp(-0.5))
    json.dumps(rows)


def test_the_second_table() -> None:
    finite, minimax, linear, contextual = table_two(horizon=10**7, budget=0.1, beta=4)
    log_t, gaps = math.log(1e7), (0.125, 0.25, 0.375, 0.5)
    rewards = sum(32 * log_t / gap for gap in gaps)
    assert finite["ours"] == pytest.approx(rewards + 4 * 8 * math.sqrt(40 * log_t) + 4 * 8, rel=1e-12)
    assert finite["converted"] == pytest.approx(rewards + 4 * 8 * math.sqrt(40) * log_t, rel=1e-12)
    assert finite["converted"] < finite["proven"]  # what is printed does not follow
    assert (finite["kind"], minimax["kind"], linear["kind"]) == ("upper", "order", "order")
    assert contextual["converted"] is None
    assert contextual["ours_formula"] == "d log(T) sqrt(T) + d^2 log(T)^2/sqrt(rho)"
    json.dumps([finite, minimax, linear, contextual])


def test_a_problem_has_its_bounds() -> None:
    names = [bound.name for bound in bounds_of(Problem("contextual", pb.zCDP(0.1), arms=10))]
    assert {"AdaC-OFUL, any contexts", "LinPriv, as claimed", "LinPriv, corrected", "any policy, linear"} <= set(names)
    assert "Shariff and Sheffet, joint DP" in names
    pure = [bound.name for bound in bounds_of(Problem("linear", pb.PureDP(1), arms=10))]
    assert pure == ["Hanna et al., converted", "Li et al.", "any policy, linear"]
    free = [bound.name for bound in bounds_of(Problem("finite", pb.NoPrivacy(), arms=5))]
    assert not any("AdaP" in name for name in free)
    outside = bounds_of(Problem("finite", pb.zCDP(1), arms=2, means=(1.5, 0.2)))
    assert not any(bound.holds for bound in outside if bound.kind == "upper")
    assert len({bound.name for bound in outside}) == len(outside)
    loose = bounds_of(Problem("finite", pb.ApproxDP(2, 1e-6), arms=5))
    printed = next(bound for bound in loose if "noise as printed" in bound.name)
    assert not printed.holds
    assert threshold_of(Problem("linear", pb.PureDP(1), horizon=100)) == math.e / 10
    given: dict[str, Any] = {"setting": "finite", "budget": pb.zCDP(1)}
    cases: list[tuple[dict[str, Any], str]] = [
        ({"setting": "martian"}, "finite, linear"),
        ({"arms": 3, "means": (0.5, 0.2)}, "as many as"),
        ({"arms": 1}, "arms"),
        ({"horizon": 0}, "horizon"),
    ]
    for bad, words in cases:
        with pytest.raises(InvalidInput, match=words):
            Problem(**(given | bad))


def test_the_command_prints_json() -> None:
    data = json.loads(call("--setting", "finite", "--arms", "5", "--horizon", "1e7", "--rho", "0.1", "--json"))
    assert data["problem"]["budget"] == "zCDP(rho=0.1)"
    assert (data["problem"]["horizon"], data["problem"]["arms"], data["most"]) == (1e7, 5, 1e7)
    rows = {row["name"]: row for row in data["bounds"]}
    upper, lower = rows["AdaC-UCB, any gaps"], rows["any policy, finite arms"]
    assert (upper["kind"], lower["kind"]) == ("upper", "lower")
    assert upper["value"] > lower["value"] == pytest.approx(math.sqrt(4e7) / 27, rel=1e-12)
    assert upper["assumptions"][1] == {"text": "beta > 1", "met": True}
    fields = {"name", "value", "private", "formula", "source", "kind", "of", "assumptions", "holds"}
    assert all(set(row) == fields for row in data["bounds"])
    assert data["threshold"] == pytest.approx((27 / 124) ** 2 / 2e7, rel=1e-12)


def test_the_command_tells_what_is_not_met() -> None:
    done = call("--setting", "contextual", "--dimension", "3", "--regulariser", "0.1", "--growth", "2", "--json")
    rows = {row["name"]: row for row in json.loads(done)["bounds"]}
    needs = {need["text"]: need["met"] for need in rows["AdaC-OFUL, stochastic contexts, as printed"]["assumptions"]}
    assert needs["lambda >= 1"] is False
    assert needs["rewards in [-1, 1]"] is False  # the paper's experiment
    strict = call("--setting", "contextual", "--setting-as", "strict", "--regulariser", "1", "--json")
    rows = {row["name"]: row for row in json.loads(strict)["bounds"]}
    assert rows["AdaC-OFUL, any contexts"]["holds"] is True
    one = call("--beta", "1", "--json")  # the paper's means, and its beta
    rows = {row["name"]: row for row in json.loads(one)["bounds"]}
    assert (rows["AdaC-UCB"]["value"], rows["AdaC-UCB"]["holds"]) == ("inf", False)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--setting", "linear", "--means", "0.9,0.5,0.1", "--rho", "inf"], "with gaps"),
        (["--epsilon", "1"], "AdaP-UCB"),
        (["--epsilon", "1", "--privacy-delta", "1e-6", "--setting", "contextual"], "LinPriv"),
    ],
)
def test_the_command_prints_a_table(arguments: list[str], words: str) -> None:
    printed = call(*arguments)
    assert words in printed
    assert "worst instance" in printed


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--setting", "x"], "finite"),
        (["--rho", "0.1,1"], "one budget"),
        (["--regulariser", "1"], "--regulariser is for --setting contextual"),
        (["--setting", "linear", "--beta", "2"], "--beta is for --setting finite"),
        (["--means", "0.5,x"], "--means"),
        (["--arms", "1"], "arms"),
        (["--arms", "3", "--means", "0.5,0.4"], "as many as means"),
        (["--horizon", "1.5"], "horizon"),
        (["--setting", "contextual", "--delta", "2"], "delta"),
        (["--setting", "contextual", "--eigenvalue", "0"], "eigenvalue"),
    ],
)
def test_bad_flags_are_told(arguments: list[str], words: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(words)):
        call(*arguments)


def test_an_error_is_one_line() -> None:
    code = "from private_bandits.cli import main; main()"
    command = [sys.executable, "-c", code, "bounds", "--setting", "x"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, len(done.stderr.strip().splitlines())) == (2, 1)


@pytest.mark.full
@pytest.mark.parametrize(
    ("name", "options"),
    [("width_coverage", ["--runs", "200", "--ellipsoids", "2", "--steps", "50"]), ("bounds", ["--horizon", "1000"])],
)
def test_the_tables_of_the_documentation_are_printed(name: str, options: list[str]) -> None:
    script = str(Path(__file__).parents[2] / "benchmarks" / f"{name}.py")
    done = subprocess.run([sys.executable, script, *options], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.count("\n| ") > 10
