"""Errors of the client: each is an agent's own, and none holds a key, a reward or a person."""

from __future__ import annotations

import copy
import logging
import pickle
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

import private_bandits as pb
from private_bandits import errors
from private_bandits.client import ServedBandit
from private_bandits.client.refusals import _KINDS
from private_bandits.protocol import problems
from private_bandits.protocol.problems import BY_CLASS, Problem
from tests.client.server import Served, served

POLICY = pb.AdaCUCB(arms=["A", "B"], budget=pb.zCDP(1.0))
REWARD, PERSON = 0.123456789, "somebody in particular"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served("sqlite", tmp_path_factory.mktemp("service")) as found:
        found.made(POLICY)
        found.made(POLICY, "limited", max_rewards_per_person=2)
        yield found


@pytest.fixture
def bandit(service: Served) -> ServedBandit:
    return service.client().bandit("trial")


def test_each_problem_of_the_service_is_an_error_of_the_package() -> None:
    """But for those that only other callers can cause: of keys, addresses, and a service that failed."""
    others = {"internal", "not-found", "wrong-method", "unknown-key"}
    known = [one for one in vars(problems).values() if isinstance(one, Problem)] + list(BY_CLASS.values())
    assert {one.name for one in known} - _KINDS.keys() == others
    for kind, one in BY_CLASS.items():
        assert issubclass(kind, _KINDS[one.name]) or one is problems.SETTINGS_REFUSED


def test_an_ending_is_told_from_the_others(bandit: ServedBandit) -> None:
    told, given_up = bandit.ask(2)
    bandit.tell(told, 1.0)
    bandit.give_up(given_up)
    for decision, words in ((told, "its reward was told before"), (given_up, "it was given up")):
        with pytest.raises(errors.ClosedDecision, match=f"decision {decision.id} is closed: {words}$"):
            bandit.tell(decision, REWARD)
    with pytest.raises(errors.ClosedDecision, match="told before"):
        bandit.give_up(told)
    with pytest.raises(errors.UnknownDecision, match="the bandit trial"):
        bandit.tell(told.id[:-1] + ("0" if told.id[-1] != "0" else "1"), REWARD)
    for bad in ("", "../../keys", "a/b", "ä", 7, None):
        with pytest.raises(errors.UnknownDecision):
            bandit.tell(bad, REWARD)  # type: ignore[arg-type]


def test_a_reward_that_is_not_taken_is_no_error(service: Served) -> None:
    bandit = service.client().bandit("limited")
    for decision in bandit.ask(3, person=PERSON):
        bandit.tell(decision, 1.0)
    assert (bandit.counts.told, bandit.counts.over_limit) == (2, 1)


NEEDED: dict[str, tuple[Callable[[ServedBandit], Any], str]] = {
    "ask": (lambda bandit: bandit.ask(), "the role ask"),
    "tell": (lambda bandit: bandit.tell("an-id", REWARD), "the role tell"),
    "tell_many": (lambda bandit: bandit.tell_many([("an-id", REWARD)]), "the role tell"),
    "give_up": (lambda bandit: bandit.give_up("an-id"), "the role tell"),
    "finish": (lambda bandit: bandit.finish(), "the role operate"),
    "estimates": (lambda bandit: bandit.estimates(), "the role observe"),
    "verdict": (lambda bandit: bandit.verdict(), "the role observe"),
    "guarantee": (lambda bandit: bandit.guarantee(), "the role observe"),
    "statement": (lambda bandit: bandit.statement(), "the role observe"),
    "open_decisions": (lambda bandit: bandit.open_decisions, "the role observe"),
    "ledger": (lambda bandit: bandit.ledger, "the role audit"),
    "counts": (lambda bandit: bandit.counts, "the roles audit, observe or operate"),
}


@pytest.mark.parametrize("verb", NEEDED)
def test_the_role_that_is_needed_is_named(verb: str, service: Served) -> None:
    """By the client where it has keys by their roles, and after the service refused where it has one key."""
    call, role = NEEDED[verb]
    admin = service.keys["admin"]
    for key in (admin, {"admin": admin}):
        with pytest.raises(errors.AccessRefused, match=f"a key of {role}") as caught:
            call(service.client(key=key).bandit("trial"))
        assert isinstance(caught.value, PermissionError)
        assert not _secrets_in(str(caught.value), service)


def test_a_key_for_one_bandit_is_for_no_other(service: Served) -> None:
    from private_bandits.service.keys import create_key

    key = create_key(service.database, "one", "ask", "limited").secret
    with pytest.raises(errors.AccessRefused, match="for the bandit trial, or for all bandits"):
        service.client(key=key).bandit("trial").ask()


def test_a_key_that_is_none_is_refused(service: Served) -> None:
    for key in ("pb_" + "x" * 43, "another"):
        with pytest.raises(errors.AccessRefused, match="a valid key is needed"):
            service.client(key=key).bandit("trial").ask()
    bad: list[Any] = ["", "two words", "a\nb", {}, {"role": "pb_1"}, {"": "pb_1"}, None]
    for form in bad:
        with pytest.raises(errors.InvalidInput) as caught:
            service.client(key=form)
        assert "two words" not in str(caught.value)


REFUSED: dict[str, tuple[Any, type[Exception]]] = {
    "a bandit that is none": (lambda s: s.client().bandit("nothing").ask(), errors.UnknownBandit),
    "a person too many": (
        lambda s: s.client().bandit("trial").ask(person=PERSON, actions=[[1.0]]),
        errors.InvalidInput,
    ),
    "no person": (lambda s: s.client().bandit("limited").ask(), errors.InvalidInput),
    "a person of another type": (lambda s: s.client().bandit("limited").ask(person=7), errors.InvalidInput),
    "a long person": (lambda s: s.client().bandit("limited").ask(person=PERSON * 100), errors.InvalidInput),
    "no actions": (lambda s: s.client().bandit("trial").ask(actions=[["x"]]), errors.InvalidInput),
    "no number of decisions": (lambda s: s.client().bandit("trial").ask(0), errors.InvalidInput),
    "an arm that is none": (
        lambda s: s.client().bandit("trial").tell(s.client().bandit("trial").ask(), REWARD, played="C"),
        errors.InvalidInput,
    ),
    "a delta": (lambda s: s.client().bandit("trial").estimates(delta=2), errors.InvalidInput),
    "a name that is there": (lambda s: s.client().create("trial", POLICY), errors.BanditExists),
    "a name that is none": (lambda s: s.client().create("a b", POLICY), errors.InvalidInput),
    "no policy": (lambda s: s.client().create("new", "adac-ucb"), errors.InvalidInput),
    "a count of decisions": (lambda s: s.client().create("new", POLICY, give_up_after=7), errors.InvalidInput),
    "a unit without a limit": (lambda s: s.client().create("new", POLICY, unit="person"), errors.InvalidInput),
    "a status": (lambda s: s.client().set_status("trial", "asleep"), errors.InvalidInput),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_refusal_is_the_error_of_an_agent_and_tells_nothing(case: str, service: Served) -> None:
    call, kind = REFUSED[case]
    with pytest.raises(kind) as caught:
        call(service)
    assert not _secrets_in("".join(traceback.format_exception(caught.value)), service)


def test_paused_and_finished_bandits_say_so(service: Served) -> None:
    bandit, client = service.made(pb.AdaCIMED(n_arms=2, budget=pb.zCDP(0.1)), "short"), service.client()
    decision = bandit.ask()
    client.set_status("short", "paused")
    with pytest.raises(errors.BanditStopped):
        bandit.ask()
    bandit.tell(decision, 1.0)
    client.set_status("short", "active")
    assert bandit.finish() == 1
    assert bandit.finish() == 0
    with pytest.raises(errors.AgentFinished):
        bandit.ask()
    client.set_status("short", "closed")
    with pytest.raises(errors.InvalidInput):
        client.set_status("short", "active")
    assert {line.name: line.status for line in client.bandits()}["short"] == "closed"


def test_verbs_that_the_service_does_not_have_say_so(bandit: ServedBandit) -> None:
    for name in ("predict", "warm_start", "learned"):
        with pytest.raises(AttributeError, match="the service"):
            getattr(bandit, name)
    with pytest.raises(AttributeError, match="no 'vote'"):
        bandit.vote  # noqa: B018


def test_the_addresses_that_are_none_are_refused(service: Served) -> None:
    for url in ("example.org", "ftp://example.org", "http://", "https://a?b=c", "https://u:secret@a", "http://a:b", 7):
        with pytest.raises(errors.InvalidInput) as caught:
            service.client(url=url)
        assert "secret" not in str(caught.value)


class Page(BaseHTTPRequestHandler):
    """What another server has at the address."""

    def do_GET(self) -> None:
        body = b"<h1>Welcome</h1>"
        self.send_response(302 if "verdict" in self.path else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


def test_another_server_is_not_taken_for_the_service(service: Served) -> None:
    with HTTPServer(("127.0.0.1", 0), Page) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        bandit = service.client(url=f"http://127.0.0.1:{server.server_port}").bandit("trial")
        try:
            with pytest.raises(errors.ServiceFailed, match="not as the service does"):
                bandit.estimates()
            with pytest.raises(errors.ServiceFailed, match="does not verify"):
                _ = bandit.ledger
            with pytest.raises(errors.ServiceFailed, match="another address"):
                bandit.verdict()
        finally:
            server.shutdown()
            thread.join()


def test_a_closed_client_makes_no_calls(service: Served) -> None:
    with service.client().bandit("trial") as bandit:
        bandit.ask()
    with pytest.raises(errors.AgentClosed):
        bandit.ask()


def test_the_key_is_in_no_repr_no_log_and_no_traceback(service: Served, caplog: pytest.LogCaptureFixture) -> None:
    """Not even where a report of a crash shows the variables of every frame."""
    caplog.set_level(logging.DEBUG)
    client = service.client()
    bandit = client.bandit("limited")
    decision = bandit.ask(person=PERSON)
    bandit.tell(decision, REWARD)
    shown = [repr(client), repr(bandit), repr(bandit._caller), repr(vars(client)), repr(vars(bandit)), caplog.text]
    for text in shown:
        assert not _secrets_in(text, service)
    assert "HTTP" in caplog.text  # the library does log
    for call in (lambda: bandit.ask(), lambda: client.bandit("nothing").ask(), lambda: bandit.tell("no-id", 1.0)):
        assert not _secrets_in(_report_of(call), service)
    bandit._caller.connections._http.close()  # something fails within the library, whose frames hold the key
    report = _report_of(lambda: bandit.counts)
    assert not _secrets_in(report, service)


def _report_of(call: Callable[[], Any]) -> str:
    """What a report of a crash shows: each frame that an error came through, with its variables."""
    try:
        call()
    except Exception as error:
        found = "".join(traceback.TracebackException.from_exception(error, capture_locals=True).format())
    assert "calling.py" in found
    return found


def test_a_client_is_not_copied(bandit: ServedBandit) -> None:
    for copied in (copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError):
            copied(bandit)


def _secrets_in(text: str, service: Served) -> list[str]:
    return [one for one in (*service.keys.values(), str(REWARD), PERSON) if one in text]


def test_the_package_is_imported_without_the_library(service: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    code = "import sys, private_bandits; assert not {'httpx2', 'pydantic', 'sqlalchemy'} & sys.modules.keys()"
    subprocess.run([sys.executable, "-c", code], check=True)
    monkeypatch.setitem(sys.modules, "httpx2", None)
    with pytest.raises(errors.MissingExtra, match=r"Client needs httpx2: pip install .private-bandits\[service\]"):
        service.client()
