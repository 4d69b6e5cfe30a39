"""Answers that are lost: nothing is asked, told or given up twice, and a call that cannot be repeated says so."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import private_bandits as pb
from private_bandits.client import ServedBandit
from private_bandits.errors import ClosedDecision, OutcomeUnknown, Overloaded, ServiceFailed
from tests.client.server import LossyProxy, Served, served

POLICY = pb.AdaCUCB(arms=["A", "B"], budget=pb.zCDP(1.0))


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Served]:
    with served("sqlite", tmp_path) as found:
        yield found


@pytest.fixture
def proxy(service: Served) -> Iterator[LossyProxy]:
    with LossyProxy(int(service.url.rpartition(":")[2])) as found:
        yield found


@pytest.fixture
def bandit(service: Served, proxy: LossyProxy) -> ServedBandit:
    service.made(POLICY)
    return service.client(url=proxy.url, timeout=5.0).bandit("trial")


def test_an_ask_whose_answer_was_lost_has_the_decisions_that_it_had(proxy: LossyProxy, bandit: ServedBandit) -> None:
    proxy.lose = 3
    found = bandit.ask(4)
    assert [line.split(b" ")[0] for line in proxy.lost] == [b"POST"] * 3
    assert bandit.counts.asked == 4
    assert bandit.open_decisions == found
    bandit.ask(4)  # a new ask has a new key
    assert bandit.counts.asked == 8


def test_a_reward_whose_answer_was_lost_counts_once(proxy: LossyProxy, bandit: ServedBandit) -> None:
    decision = bandit.ask()
    proxy.lose = 2
    bandit.tell(decision, 0.5)
    assert len(proxy.lost) == 2
    assert bandit.counts.told == 1
    with pytest.raises(ClosedDecision, match="told before"):
        bandit.tell(decision, 0.5)


def test_so_do_rewards_in_a_list(proxy: LossyProxy, bandit: ServedBandit) -> None:
    decisions = bandit.ask(1200)
    bandit.tell(decisions[3], 0.5)
    proxy.lose = 1
    with pytest.raises(ClosedDecision) as caught:  # of the second page, whose answers all came
        bandit.tell_many([(one, 0.5) for one in decisions[4:]] + [(decisions[3], 0.5)])
    assert "1 of the 1197 were refused" in caught.value.__notes__[0]
    assert bandit.counts.told == 1197
    assert bandit.ledger.verify().ok


def test_giving_up_and_finishing_are_done_once(proxy: LossyProxy, bandit: ServedBandit) -> None:
    first, second = bandit.ask(2)
    bandit.tell(second, 1.0)
    proxy.lose = 1
    bandit.give_up(first)
    proxy.lose = 1
    bandit.finish()
    assert bandit.finished
    assert bandit.counts.given_up == 1
    assert sum(row.count for row in bandit.ledger) == 1
    assert len(proxy.lost) == 2


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # httpx2 leaves a lost socket to the GC
def test_threads_lose_answers_all_the_time(proxy: LossyProxy, bandit: ServedBandit) -> None:
    """Every second answer, from four threads: each decision is one thread's alone, and each reward counts once."""
    found: list[list[pb.Decision]] = [[], [], [], []]

    def play(own: list[pb.Decision]) -> None:
        for _ in range(10):
            proxy.lose = 1
            decision = bandit.ask()
            own.append(decision)
            proxy.lose = 1
            bandit.tell(decision, 0.5)

    threads = [threading.Thread(target=play, args=(own,)) for own in found]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    proxy.lose = 0
    ids = [decision.id for own in found for decision in own]
    assert len(set(ids)) == len(ids) == 40
    assert len(proxy.lost) > 20
    assert (bandit.counts.asked, bandit.counts.told) == (40, 40)
    gc.collect()


def test_a_bandit_is_not_made_again_where_nobody_knows(service: Served, proxy: LossyProxy) -> None:
    client = service.client(url=proxy.url)
    proxy.lose = 1
    with pytest.raises(OutcomeUnknown, match="look whether it did"):
        client.create("other", POLICY)
    assert [line.name for line in client.bandits()] == ["other"]


@pytest.mark.parametrize("verb", ["ask", "tell", "tell_many", "counts"])
def test_after_the_time_limit_the_call_says_what_nobody_knows(
    verb: str, service: Served, proxy: LossyProxy, bandit: ServedBandit
) -> None:
    decision = bandit.ask()
    hasty = service.client(url=proxy.url, retry_for=0.1).bandit("trial")
    calls: dict[str, Any] = {
        "ask": hasty.ask,
        "tell": lambda: hasty.tell(decision, 0.125),
        "tell_many": lambda: hasty.tell_many([(decision, 0.125)]),
        "counts": lambda: hasty.counts,
    }
    proxy.lose = 1000
    with pytest.raises(ServiceFailed if verb == "counts" else OutcomeUnknown) as caught:
        calls[verb]()
    assert "0.125" not in str(caught.value)
    proxy.lose = 0
    if verb.startswith("tell"):
        assert bandit.counts.told == 1


def test_a_service_that_is_not_there_is_named(service: Served) -> None:
    client = service.client(url="http://127.0.0.1:9", retry_for=0)
    with pytest.raises(ServiceFailed, match=r"127\.0\.0\.1:9 does not answer"):
        client.bandit("trial").ask()  # nothing was sent: nothing is unknown


def test_a_service_that_starts_late_is_waited_for(tmp_path: Path) -> None:
    with served("sqlite", tmp_path) as before:
        before.made(POLICY)
        port = int(before.url.rpartition(":")[2])
        before.client().bandit("trial").ask()
        found: list[pb.Decision] = []
        again = pb.Client(before.url, before.keys, retry_for=20)
    thread = threading.Thread(target=lambda: found.append(again.bandit("trial").ask()))
    thread.start()
    with served("sqlite", tmp_path, port=port):
        thread.join()
        with again.bandit("trial") as bandit:
            assert bandit.counts.asked == 2
    assert len(found) == 1


def test_too_many_calls_are_made_later(tmp_path: Path) -> None:
    with served("sqlite", tmp_path, rate=2.0) as service:
        service.made(POLICY)
        bandit = service.client(retry_for=0).bandit("trial")
        with pytest.raises(Overloaded, match="too many calls"):
            _asked(bandit, 9)
        _asked(service.client(retry_for=20).bandit("trial"), 4)


def _asked(bandit: ServedBandit, times: int) -> None:
    for _ in range(times):
        bandit.ask()


def test_a_child_process_has_connections_of_its_own(service: Served) -> None:
    bandit = service.made(POLICY)
    bandit.ask()
    before = bandit._caller.connections._http
    child = os.fork()
    if child == 0:
        try:
            mine = bandit._caller.connections._of_this_process()
            os._exit(0 if mine is not before and bandit.ask() else 1)
        except BaseException:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert bandit.counts.asked == 2
