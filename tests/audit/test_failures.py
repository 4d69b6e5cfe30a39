"""Agents that fail: the audit gives a verdict, and a failure counts as something shown."""

from __future__ import annotations

import random
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

import private_bandits as pb
from private_bandits import cli
from private_bandits.audit import SHORT, Thoroughness, attempts, audit, html, of_factory, of_policy, to_dict
from private_bandits.audit import inside as exact
from private_bandits.audit.attempts import Hanging, ask_agent, attempt, watched, words_of
from private_bandits.audit.scenario import Scenario, play
from private_bandits.audit.script import Row, ScriptMove
from private_bandits.audit.script_replay import Change, replay
from private_bandits.audit.search import Effort
from private_bandits.errors import InvalidInput
from private_bandits.ledger import Release
from private_bandits.policies.doubling import DoublingState
from tests.audit.specimens import SPECIMENS, FailsByRelease, small_policy
from tests.support import SELDOM

RHO = pb.zCDP(0.5)
FEW = Effort(scenarios=3, pilot=4, learn=30, test=60, longest=6)
QUICK = replace(SHORT, scripts=1, draws=150, effort=FEW, false_accusation=SELDOM)


# What an exception says.


def _raise(error: BaseException) -> Any:
    raise error


def test_an_exception_says_all_that_can_be_read_of_it() -> None:
    error = ExceptionGroup("several", [KeyError("in the group")])
    error.add_note("a note")
    error.extra = 17  # type: ignore[attr-defined]
    error.__cause__ = ValueError("the cause")
    error.__cause__.__context__ = OSError("the context")
    error.__cause__.__cause__ = error  # a circle
    words = words_of(error)
    for part in ("ExceptionGroup", "several", "in the group", "a note", "17", "the cause", "the context"):
        assert part in words


def test_what_is_hidden_from_a_traceback_is_read_all_the_same() -> None:
    def call() -> None:
        try:
            _raise(ValueError("inner"))
        except ValueError:
            raise RuntimeError("outer") from None

    assert attempt(call).words == "RuntimeError: outer; context ValueError: inner"


def test_an_exception_that_fails_to_speak_is_no_end() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise LookupError

    assert attempt(lambda: _raise(Mute())).words == "Mute: <LookupError>"


@pytest.mark.parametrize("kind", [ValueError, SystemExit, GeneratorExit])
def test_whatever_a_call_raises_is_its_answer(kind: type[BaseException]) -> None:
    answer = attempt(lambda: _raise(kind("words")))
    assert answer.failed
    assert (answer.kind, answer.words) == (kind.__name__, f"{kind.__name__}: words")


def test_the_user_may_end_an_audit() -> None:
    with pytest.raises(KeyboardInterrupt):
        attempt(lambda: _raise(KeyboardInterrupt()))


# Verdicts.


class _AlwaysFails(pb.AdaCUCB):
    def learn(self, state: DoublingState, release: Release, step: int) -> None:
        raise ArithmeticError("no way")


def make_always_failing() -> pb.Agent:
    return pb.Agent(small_policy(kind=_AlwaysFails))


@pytest.mark.usefixtures("short_audits_are_shorter")
def test_an_agent_that_cannot_be_judged_ends_the_command_with_exit_code_3() -> None:
    options = ["--policy", "tests.audit.test_failures:make_always_failing", "--rho", "0.5", "--short"]
    options += ["--processes", "1", "--false-accusation", str(SELDOM)]
    result = CliRunner().invoke(cli.app, ["audit", *options])
    assert result.exit_code == 3
    assert "could not be judged" in result.stdout


def test_an_agent_that_always_fails_cannot_be_judged() -> None:
    report = audit(of_factory(make_always_failing, RHO), QUICK, processes=1)
    assert (report.verdict, report.violated, report.judged) == ("could not be judged", False, False)
    assert "it failed whenever it was used" in report.notes[0]
    assert {part.verdict for part in report.parts if part.name[0] in "13"} == {"could not be judged"}
    assert "PolicyFailed" in next(part.summary for part in report.parts if part.name[0] == "3")
    console = Console(record=True, width=200)
    report.print(console)
    assert console.export_text().rstrip().splitlines()[-1].strip().startswith("could not be judged")
    assert "Could not be judged" in html([report])
    assert to_dict([report])["audits"][0]["judged"] is False


def test_an_agent_that_fails_by_its_releases_is_not_accused() -> None:
    target = of_factory(lambda: pb.Agent(small_policy(kind=FailsByRelease)), RHO)
    report = audit(target, replace(SHORT, seconds=0, false_accusation=SELDOM), processes=1)
    assert report.verdict == "consistent with the claim", report.to_dict()
    assert "calls failed in" in report.notes[0]


def test_an_agent_that_fails_by_raw_sums_is_caught() -> None:
    specimen = SPECIMENS["white_learn_fails_by_raw_sum"]
    report = audit(of_factory(specimen.factory, RHO), SHORT, processes=1)
    assert [part.name for part in report.parts if part.flaws] == ["1 sensitivity"]


def _failing(hook: str, error: type[BaseException]) -> type[pb.AdaCUCB]:
    """A policy of which every seventh call of the method fails."""
    own = getattr(pb.AdaCUCB, hook)

    def fails(self: Any, *arguments: Any) -> Any:
        calls = self.__dict__.get("calls", 0) + 1
        object.__setattr__(self, "calls", calls)
        if calls % 7 == 0:
            raise error("every seventh")
        return own(self, *arguments)

    return type("Failing", (pb.AdaCUCB,), {hook: fails})


@pytest.mark.parametrize("error", [ValueError, SystemExit])
@pytest.mark.parametrize("hook", ["recommend", "due", "learn", "entry", "arrive", "combination", "estimates"])
def test_a_policy_may_fail_anywhere(hook: str, error: type[BaseException]) -> None:
    kind = _failing(hook, error)
    target = of_factory(lambda: pb.Agent(small_policy(kind=kind)), RHO)
    report = audit(target, replace(QUICK, draws=50, seconds=0), processes=1)
    assert report.verdict == "consistent with the claim", report.to_dict()
    assert [note[:12] for note in report.notes] == ([] if hook == "estimates" else ["calls failed"])
    scenario = Scenario(32, 3, (0.5, 0.5), (0, 1) * 16, batch=2, together=True, looks=8)
    _, shown = play(target, scenario, 1.0, look=True)
    words = {"learn": "PolicyFailed" if error is ValueError else "SystemExit"}.get(hook, "every seventh")
    assert any(words in name for name in shown)


class _Fragile:
    """Fails at its third ask, for good."""

    def __init__(self) -> None:
        self.asks = 0

    def ask(self) -> int:
        self.asks += 1
        if self.fails():
            raise SystemExit("worn out")
        return self.asks % 3

    def fails(self) -> bool:
        return self.asks > 2

    def tell(self, decision: Any, reward: float) -> None:
        pass

    @property
    def ledger(self) -> list[float]:
        raise SystemExit("lost")


class _Shaky(_Fragile):
    """Fails at every third ask, and goes on."""

    def fails(self) -> bool:
        return self.asks % 3 == 0


@pytest.mark.parametrize(
    ("kind", "verdict"), [(_Fragile, "could not be judged"), (_Shaky, "consistent with the claim")]
)
def test_a_foreign_agent_may_fail_too(kind: type[_Fragile], verdict: str) -> None:
    report = audit(of_factory(kind, RHO, arms=3), Thoroughness(effort=FEW, false_accusation=SELDOM), processes=1)
    assert report.verdict == verdict


# What a replay shows of it.


def _shown(agent: Callable[[], pb.Agent], *script: ScriptMove) -> list[str]:
    return [shown.text for shown in replay(of_factory(agent, RHO), script, {}, None).shown]


def test_after_a_failure_everything_is_looked_at_and_the_script_goes_on() -> None:
    steps = (ScriptMove("ask"), ScriptMove("tell", 0, 1.0), ScriptMove("ask"), ScriptMove("tell", 0, 1.0))
    shown = _shown(lambda: pb.Agent(small_policy(kind=_AlwaysFails)), *steps)
    failed = next(i for i, text in enumerate(shown) if text.startswith("tell: error PolicyFailed"))
    assert any(text.startswith("repr: returned Agent(") for text in shown[failed : failed + 20])
    assert any(text.startswith("ledger: returned [Release(") for text in shown[failed : failed + 20])
    assert any(text.startswith("ask: error PolicyFailed: _AlwaysFails failed at release 1") for text in shown[failed:])


def test_a_batch_is_refused_first_and_then_taken() -> None:
    rows = (Row(1.0), Row(0.0, 1))
    for which, words in enumerate(
        ("NaN", "not handed out", "twice in the batch", "not handed out", "an arm from 0", "tell_many takes")
    ):
        shown = _shown(pb_agent, ScriptMove("ask many", count=2), ScriptMove("batch", which, rows=rows))
        refused = next(text for text in shown if text.startswith("bad batch: error"))
        assert words in refused
        assert "tell_many: returned None" in shown


def pb_agent() -> pb.Agent:
    return pb.Agent(small_policy())


def test_noise_that_cannot_be_drawn_is_no_failure_of_the_agent() -> None:
    script = (ScriptMove("ask many", count=2), ScriptMove("no noise"), ScriptMove("batch", rows=(Row(1.0), Row(0.0))))
    trace = replay(of_policy(small_policy()), script, {}, None)
    refused = next(shown.text for shown in trace.shown if shown.text.startswith("tell_many: error NoiseFailed"))
    assert "0 of 2 rewards were taken before" in refused
    assert not trace.failure
    assert not trace.draws


def test_rewards_of_a_log_are_changed_one_by_one_and_stay_in_the_range() -> None:
    target = of_policy(small_policy())
    script = (ScriptMove("log", rows=(Row(1.0, 0), Row(0.0, 1))), ScriptMove("ask"), ScriptMove("tell", 0, 1.0))
    base = replay(target, script, {}, None)
    changes = exact.changes_of(target, base, 99, random.Random(1))
    logged = [change for change in changes if min(change) < 0]
    assert sorted(logged, key=min) == [{-2: Change(1.0)}, {-1: Change(0.0)}]
    for change in logged:
        other = replay(target, script, change, [draw.answer for draw in base.draws])
        moved = [a.totals != b.totals for a, b in zip(base.draws, other.draws, strict=True)]
        assert moved.count(True) == 1
        assert base.shown == other.shown


def test_all_of_one_person_is_changed_in_the_log_too() -> None:
    target = of_policy(small_policy()).also[0]
    script = (
        ScriptMove("log", rows=(Row(1.0, 0, 1), Row(0.0, 1, 2))),
        ScriptMove("ask", person=1),
        ScriptMove("tell", 0, 0.0),
    )
    changes = exact.changes_of(target, replay(target, script, {}, None), 99, random.Random(1))
    assert {frozenset(change) for change in changes} == {frozenset({-1, 0}), frozenset({-2})}
    assert {-1: Change(1.0), 0: Change(1.0)} in changes


def test_decisions_that_share_an_offer_differ_in_reward_and_action_alone() -> None:
    target = of_policy(pb.AdaCOFULPrivate(dimension=2, budget=RHO))
    script = (
        ScriptMove("ask many", count=2),
        ScriptMove("ask"),
        ScriptMove("tell", 0, 1.0, 0),
        ScriptMove("tell", 0, 1.0, 0),
    )
    base = replay(target, script, {}, None)
    assert base.together == {0, 1}
    changes = exact.changes_of(target, base, 99, random.Random(1))
    assert all(one.offered is None for change in changes for number, one in change.items() if number < 2)


# Calls that do not return.


class Hangs:
    """Works for a while, then asks do not return, whatever is raised in them."""

    def __init__(self) -> None:
        self.told = 0

    def ask(self) -> int:
        while self.told >= 70:
            with suppress(Exception):
                time.sleep(60)
        return 0

    def tell(self, decision: int, reward: float) -> None:
        self.told += 1


def quick_alarms(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts, "AGENT_LIMIT", 0.2)
    monkeypatch.setattr(attempts, "AGAIN", 0.1)


def test_an_agent_that_hangs_is_ended_with_a_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    quick_alarms(monkeypatch)
    target = of_factory(Hangs, RHO, arms=2)
    handler = signal.getsignal(signal.SIGALRM)
    started = time.perf_counter()
    report = audit(target, Thoroughness(effort=replace(FEW, scenarios=40, longest=100)), processes=1)
    assert time.perf_counter() - started < 15
    assert (report.verdict, report.judged, report.violated) == ("could not be judged", False, False)
    assert "did not return in time" in report.parts[-1].summary + report.parts[2].summary
    assert signal.getsignal(signal.SIGALRM) == handler
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_an_agent_that_hangs_at_once_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts, "LONG_LIMIT", 0.2)
    with pytest.raises(InvalidInput, match="cannot be audited: a call of the agent did not return in time"):
        of_factory(lambda: time.sleep(60), RHO)


def test_calls_within_calls_have_alarms_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    quick_alarms(monkeypatch)

    def whole() -> int:
        return sum(not ask_agent(lambda: time.sleep(0.12)).failed for _ in range(3))

    with watched():
        assert attempt(whole).value == 3
        assert attempt(lambda: time.sleep(0.3)).value is None
        with pytest.raises(Hanging):
            ask_agent(lambda: time.sleep(60))
    assert attempt(lambda: 5, limit=1e-9).value == 5  # nobody watches


def test_nobody_watches_where_no_alarm_can_ring() -> None:
    found: list[Any] = []

    def elsewhere() -> None:
        with watched():
            found.append(attempt(lambda: 7, limit=1e-9).value)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert found == [7]
