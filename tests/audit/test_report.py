from __future__ import annotations

import json
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

import private_bandits as pb
from private_bandits import cli
from private_bandits.audit import FAILURE, AuditPart, Report, Thoroughness, audit, audit_all, html, of_factory
from private_bandits.audit.evidence import Claim
from private_bandits.audit.inside import Flaw
from private_bandits.audit.outside import OutsideEvidence, Sighting
from private_bandits.audit.scenario import Scenario
from private_bandits.audit.search import Effort
from private_bandits.errors import InvalidInput
from tests.audit.specimens import SPECIMENS
from tests.support import SELDOM

FAST = Thoroughness(2, 800, 120, effort=Effort(scenarios=12, pilot=30, learn=300, test=1000, longest=12))
LEVEL = ("--false-accusation", str(SELDOM))
BROKEN, RIGHT = SPECIMENS["black_no_noise"], SPECIMENS["black_round_robin"]


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(cli.app, ["audit", *arguments], catch_exceptions=True)
    if isinstance(result.exception, pb.errors.PrivateBanditsError):
        return 2, str(result.exception)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.stdout


@pytest.mark.usefixtures("short_audits_are_shorter")
def test_the_level_of_an_audit_is_a_setting() -> None:
    code, text = run("--policy", RIGHT.path, "--rho", "0.5", "--short", "--processes", "1", "--json", *LEVEL)
    found = json.loads(text)
    assert code == 0
    assert found["false_accusation_at_most"] == SELDOM
    outside = [part for part in found["audits"][0]["parts"] if part["name"][0] == "3"]
    assert [part["confidence"] for part in outside] == [1 - SELDOM / 3] * 2


def test_noise_is_accused_below_its_share_of_the_level() -> None:
    target = of_factory(SPECIMENS["white_plain"].factory, pb.zCDP(0.5))
    levels = []
    for level in (SELDOM, 2 * SELDOM):
        much = Thoroughness(1, 100, 10, seconds=0, false_accusation=level)
        (noise,) = [part for part in audit(target, much, processes=1).parts if part.name == "2 noise"]
        levels.append(float(noise.summary.rpartition(" ")[2]))
    assert levels[1] == pytest.approx(2 * levels[0], rel=0.1)  # the summary has two digits
    assert levels[0] < SELDOM / 3


def test_a_violation_ends_with_exit_code_1_and_its_evidence() -> None:
    code, text = run("--policy", BROKEN.path, "--rho", "1", "--seconds", "40", "--json", "--processes", "1")
    found = json.loads(text)
    assert code == 1
    assert found["violated"] is True
    assert found["false_accusation_at_most"] == FAILURE
    (report,) = found["audits"]
    (flaw,) = [f for part in report["parts"] for f in part["flaws"]]
    assert "claimed 1" in flaw["title"]
    assert "wrong with probability at most" in flaw["evidence"]
    seen = next(part for part in report["parts"] if part["flaws"])
    assert seen["lower_bound"] >= 1
    assert 0.9999 < seen["confidence"] < 1


@pytest.mark.usefixtures("short_audits_are_shorter")
def test_a_right_agent_ends_with_exit_code_0_and_a_page(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    options = ("--policy", RIGHT.path, "--rho", "0.5", "--short", "--processes", "1", *LEVEL)
    code, text = run(*options, "--html", str(page))
    assert code == 0
    assert "consistent with the claim" in text
    content = page.read_text()
    HTMLParser().feed(content)
    assert content.count("<svg") == content.count("</svg>") == 2
    assert "http" not in content
    assert "Seen from outside only" in content
    code, text = run("--policy", RIGHT.path, "--rho", "0.5", "--html", str(page))
    assert code == 2
    assert "exists" in text


def test_only_a_page_needs_templates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    options = ("--policy", RIGHT.path, "--rho", "0.5", "--seconds", "0.1", "--processes", "1", *LEVEL)
    assert run(*options)[0] == 0
    code, text = run(*options, "--html", str(tmp_path / "report.html"))
    assert (code, text) == (2, 'the audit needs jinja2: pip install "private-bandits[audit]"')
    assert list(tmp_path.iterdir()) == []


@pytest.mark.full  # the short run has the same command in the README's tests
def test_a_shipped_policy_by_name() -> None:
    code, text = run("--policy", "adac-ucb", "--rho", "0.1", "--short", "--json", *LEVEL)
    (report,) = json.loads(text)["audits"]
    assert code == 0
    assert report["claim"] == "zCDP with rho = 0.1"
    assert [part["name"][0] for part in report["parts"]] == ["1", "2", "3", "3", "4"]


def test_an_agent_may_say_itself_what_it_keeps() -> None:
    target = of_factory("tests.audit.specimens:make_white_plain", None)
    assert str(target.claim) == "zCDP with rho = 0.5"
    assert str(of_factory(lambda: pb.Agent(pb.AdaPUCB(2, pb.PureDP(2.0))), None).claim) == "pure DP with epsilon = 2"
    assert of_factory(lambda: pb.Agent(pb.AdaCUCB(2, pb.NoPrivacy())), None).claim is None
    assert of_factory(lambda: pb.Agent(pb.AdaCUCB(2, pb.zCDP(1)), seed=1), None).claim is None


class Mute:
    def ask(self) -> int:
        return 0


class Chatty:
    def ask(self) -> dict[str, str]:
        print("asked")
        return {"id": "x", "arm": "A"}

    def tell(self, decision: dict[str, str], reward: float) -> None:
        print("told", reward)


class Unwilling:
    def ask(self) -> int:
        raise RuntimeError("not today")

    tell = ask


class Deaf(Mute):
    def tell(self, reward: float) -> None:
        pass


class Named:
    """Leaks, and wants its reward by name."""

    last = 0.0

    def ask(self) -> int:
        return int(self.last > 0.5)

    def tell(self, decision: int, *, reward: float) -> None:
        self.last = reward


def nothing() -> None:
    pass


def test_a_reward_that_goes_by_name_reaches_the_agent() -> None:
    assert audit(of_factory(Named, pb.zCDP(0.5)), FAST, processes=1).violated


def fails() -> None:
    raise OSError("no database")


ONLY = Chatty()


def always_the_same() -> Chatty:
    return ONLY


def test_an_agent_that_prints_does_not_write_into_the_report() -> None:
    command = str(Path(sys.executable).with_name("private-bandits"))
    options = ["--policy", "tests.audit.test_report:Chatty", "--rho", "1", "--seconds", "0.3", "--json", *LEVEL]
    done = subprocess.run(
        [command, "audit", *options],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr[-500:]
    assert json.loads(done.stdout)["violated"] is False


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--policy", "adac-ubc"], "module:make_agent, got 'adac-ubc'"),
        (["--policy", "no.such.module:make"], "cannot be loaded"),
        (["--policy", "tests.audit.specimens:make_nothing"], "cannot be loaded"),
        (["--policy", "tests.audit.specimens:SPECIMENS"], "not a function"),
        (["--policy", "tests.audit.test_report:Mute", "--rho", "1"], "has no tell()"),
        (["--policy", "tests.audit.test_report:fails", "--rho", "1"], "failed with OSError: no database"),
        (
            ["--policy", "tests.audit.test_report:Unwilling", "--rho", "1"],
            "refuses its first ask(): RuntimeError: not today",
        ),
        (
            ["--policy", "tests.audit.test_report:Deaf", "--rho", "1"],
            "refuses its first tell(decision, reward): TypeError",
        ),
        (["--policy", "tests.audit.test_report:nothing", "--rho", "1"], "returned nothing"),
        (["--policy", RIGHT.path, "--rho", "1", "--short", "--seconds", "3"], "leave out either"),
        (["--policy", "tests.audit.test_report:always_the_same", "--rho", "1"], "the same agent twice"),
        (["--policy", "adap-ucb", "--variant", "tight"], "variant of adap-ucb must be one of paper, got 'tight'"),
        (["--policy", RIGHT.path, "--rho", "1", "--variant", "paper"], "variant is for shipped policies"),
        (["--policy", RIGHT.path], "does not say what it keeps: give rho"),
        (["--policy", RIGHT.path, "--rho", "-1"], "rho must be a positive"),
        (["--policy", RIGHT.path, "--rho", "1", "--reward-range", "1,0"], "low < high"),
        (["--policy", RIGHT.path, "--rho", "1", "--reward-range", "1"], "two numbers"),
        (["--policy", RIGHT.path, "--rho", "1", "--processes", "3"], "processes must be 1 or 2"),
        (["--policy", RIGHT.path, "--rho", "1", "--seconds", "-1"], "seconds must be"),
        (["--policy", RIGHT.path, "--rho", "1", "--false-accusation", "0"], "false_accusation must lie strictly"),
        (["--policy", RIGHT.path, "--rho", "1", "--false-accusation", "1e-11"], "must be at least 1e-10, got 1e-11"),
        (["--policy", RIGHT.path, "--rho", "1", "--html", "no/such/folder/x.html"], "does not exist"),
    ],
)
def test_errors_name_the_value_and_the_remedy(arguments: list[str], words: str) -> None:
    code, text = run(*arguments)
    assert code == 2
    assert words in text


def test_the_terminal_shows_verdict_evidence_and_notes() -> None:
    specimen = SPECIMENS["white_half_sensitivity"]
    report = audit(of_factory(specimen.factory, pb.zCDP(specimen.rho)), FAST, processes=1)
    console = Console(record=True, width=200)
    report.print(console)
    text = console.export_text()
    assert "moves by more than was declared" in text
    assert text.rstrip().splitlines()[-1].strip().startswith("violation")
    assert "moves by more than was declared" in html([report])


class Tags(HTMLParser):
    """The elements of a page with their attributes, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words += data


def planted(words: str, *, flaw: bool) -> Report:
    """A report with these words everywhere that words can come in."""
    claim = Claim(words, 1.0)
    seen = OutsideEvidence(
        words,
        2.0,
        claim,
        0.1,
        Scenario(2, 0, (0.5,)),
        words,
        9,
        (0.0, 1.0, 2.0),
        (1, 0),
        (0, 3),
        Sighting(words, 0.1, 0.4),
        2.0,
    )
    part = AuditPart(f"3 {words}", words, (Flaw(words, words),) if flaw else (), outcome=seen)
    return Report(words, claim, inside=False, parts=[part], notes=[words])


@pytest.mark.parametrize("judged", [True, False])
@pytest.mark.parametrize("flaw", [True, False])
def test_nothing_is_taken_for_markup(flaw: bool, judged: bool) -> None:
    evil = '"></style><script>alert("x")</script><img src=x onerror=alert(1)>{{ title }}&amp;'
    reports = [planted(words, flaw=flaw) for words in ("plain", evil)]
    if not judged:
        reports += [Report(words, None, inside=False) for words in ("mute", evil)]
    plain = html([report for report in reports if report.name != evil])
    assert "script" not in plain
    page = Tags(html(reports))
    assert {tag for tag, _ in page.found} == {tag for tag, _ in Tags(plain).found}
    assert not any(name.startswith("on") for _, attributes in page.found for name in attributes)
    for words in (f"{evil}: ", f"Claim: {evil} with", f"3 {evil}", f"Note: {evil}", f"observer of {evil} can"):
        assert words in page.words
    assert (f"Violations found: plain, {evil}." in page.words) == flaw
    assert (f"Could not be judged: mute, {evil}." in page.words) == (not flaw and not judged)
    assert page.words.count(evil) >= 7 + 3 * flaw


def test_a_page_has_what_was_seen() -> None:
    page = Tags(html([planted("plain", flaw=True)]))
    bars = [attributes for tag, attributes in page.found if tag == "rect"][2:]
    assert [(bar["x"], bar["y"], bar["width"], bar["height"], bar["fill"]) for bar in bars] == [
        ("24.0", "140.0", "296.0", "60.0", "#0072b2"),
        ("320.0", "20.0", "296.0", "180.0", "#d55e00"),
    ]
    (drawn,) = [attributes for tag, attributes in page.found if tag == "svg"]
    assert (drawn["role"], drawn["aria-label"]) == ("img", "Two distributions")
    for words in ("number of runs", "score of a run", "plain in 40.0% where the secret reward was the highest"):
        assert words in page.words
    assert "10.0% where it was the lowest: 4 times as often" in page.words


def test_what_cannot_be_seen_is_grey() -> None:
    skipped = AuditPart("2 noise", "unseen", skipped=True)
    assert [skipped.colour, AuditPart("2", "").colour, AuditPart("2", "", failed=True).colour] == [
        "skipped",
        "ok",
        "violation",
    ]
    page = Tags(html([Report("name", None, inside=False, parts=[skipped])]))
    assert ("td", {"class": "skipped"}) in page.found


def test_audit_all_needs_one_or_two_processes() -> None:
    with pytest.raises(InvalidInput, match="processes"):
        audit_all([], processes=0)


def as_any(value: Any) -> Any:
    return value


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: of_factory(lambda: None, as_any(0.5)), "budget must be one such as zCDP"),
        (lambda: of_factory(as_any(object()), pb.zCDP(1)), "a function that makes agents"),
        (lambda: audit(as_any(lambda: None)), "of_policy"),
    ],
)
def test_calls_that_are_not_meant_so_are_told_what_is(call: Any, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        call()
