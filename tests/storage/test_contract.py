"""The promises of storage/contract.py, as one suite that every store passes.

A new store adds a `StoreKind` to `STORES`. Stores are used as an agent uses them, and directly where a promise is about
the store alone.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import private_bandits as pb
from private_bandits.agent import bandit_of
from private_bandits.errors import AgentBusy, AgentClosed, AgentFileInvalid, ClosedDecision, UnknownDecision
from private_bandits.ledger import ledger as ledger_module
from private_bandits.state import DecisionCounts, Ending, OpenDecision
from private_bandits.storage import decisions
from private_bandits.storage import rows as rows_module
from private_bandits.storage.contract import Store
from private_bandits.storage.resuming import AgentFile
from tests.databases import KINDS, DatabaseAgent, opened


@dataclass(frozen=True)
class StoreKind:
    """How to make an agent on a store of this kind, and how to come back to it; None: it ends with the process.

    shared: several may have it at once, by version; otherwise it has one owner.
    """

    make: Callable[..., pb.Agent]
    resume: Callable[[Path], pb.Agent] | None
    shared: bool = False


def _in_memory(policy: Any, folder: Path, **options: Any) -> pb.Agent:
    return pb.Agent(policy, **options)


def _in_a_file(policy: Any, folder: Path, **options: Any) -> pb.Agent:
    return pb.Agent(policy, path=folder / "agent.db", **options)


def _in_a_database(kind: str) -> StoreKind:
    def make(policy: Any, folder: Path, **options: Any) -> pb.Agent:
        return DatabaseAgent.make(opened(kind, folder), policy, **options)

    return StoreKind(make, lambda folder: DatabaseAgent.resume(opened(kind, folder)), shared=True)


STORES = {
    "memory": StoreKind(_in_memory, None),
    "sqlite": StoreKind(_in_a_file, lambda folder: pb.Agent.open(folder / "agent.db")),
    **{f"sql-{kind}": _in_a_database(kind) for kind in KINDS},
}
LASTING = [name for name, kind in STORES.items() if kind.resume is not None]
POLICY = pb.AdaCUCB(arms=["A", "B"], budget=pb.zCDP(1.0), variant="paper")


@pytest.fixture(params=STORES)
def kind(request: pytest.FixtureRequest) -> StoreKind:
    return STORES[request.param]


@pytest.fixture(params=LASTING)
def lasting(request: pytest.FixtureRequest) -> StoreKind:
    return STORES[request.param]


def store_of(agent: pb.Agent) -> Store:
    return bandit_of(agent).records  # type: ignore[return-value]


def resumed(kind: StoreKind, folder: Path) -> pb.Agent:
    assert kind.resume is not None
    return kind.resume(folder)


# Looking up.


def test_a_decision_is_found_by_its_id_and_by_its_number_and_by_nothing_else(kind: StoreKind, tmp_path: Path) -> None:
    with kind.make(POLICY, tmp_path) as agent:
        asked = agent.ask(3)
        store = store_of(agent)
        found = [store.find(decision.id) for decision in asked]
        assert [one and (one.id, one.number, one.action) for one in found] == [
            (decision.id, number, decision.action) for number, decision in enumerate(asked, 1)
        ]
        assert [store.numbered(number) for number in range(5)] == [None, *found, None]
        token = asked[0].id.partition("-")[0]
        for stranger in ("", "-", "1", f"{token}-2-1", f"{token}-1-01", f"{token}-1-4", f"x{asked[0].id}", "٣"):
            assert store.find(stranger) is None
        assert len(store) == 3


def test_lookups_see_what_was_told_and_not_committed(kind: StoreKind, tmp_path: Path) -> None:
    with kind.make(POLICY, tmp_path, max_rewards_per_person=2) as agent:
        store = store_of(agent)
        one = OpenDecision("id-1-1", 1, 0, "somebody")
        store.asked(one, None)
        assert store.find("id-1-1") == one
        store.count_rewards_of("somebody", 1)
        assert store.rewards_of("somebody") == 1
        store.closed(one, "given_up")
        assert store.find("id-1-1") is None
        assert store.ending_of(1) == "given_up"
        store.reopened(one, None)
        assert store.find("id-1-1") == one
        store.count_rewards_of("somebody", -1)
        assert store.rewards_of("somebody") == 0


def test_open_decisions_are_listed_oldest_first(kind: StoreKind, tmp_path: Path) -> None:
    with kind.make(POLICY, tmp_path) as agent:
        asked = agent.ask(20)
        for decision in asked[5:15:2]:
            agent.tell(decision, 1.0)
        left = [decision for decision in asked if decision not in asked[5:15:2]]
        assert [decision.id for decision in store_of(agent).open_decisions()] == [decision.id for decision in left]
        assert agent.open_decisions == left


def test_many_open_decisions_are_found_without_keeping_them_at_hand(
    lasting: StoreKind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decisions, "AT_HAND", 10)
    agent = lasting.make(POLICY, tmp_path, give_up_after=90)
    asked = [decision for _ in range(10) for decision in agent.ask(8)]
    agent.tell_many([(decision, 0.5) for decision in asked[::3]])
    agent.ask(40)  # the first thirty run out of time, those that were told apart
    gone = {decision.id for decision in (*asked[::3], *asked[:30])}
    left = [decision for decision in asked if decision.id not in gone]
    assert agent.open_decisions[: len(left)] == left
    counts = DecisionCounts(120, open=73, told=27, given_up=20, out_of_time=20, over_limit=0, dropped=0)
    assert agent.counts == counts
    agent.close()
    with resumed(lasting, tmp_path) as agent:
        assert agent.counts == counts
        assert agent.open_decisions[: len(left)] == left
        agent.tell(left[0], 0.5)
        agent.give_up(left[1])
        for decision, text in ((asked[0], "told before"), (asked[1], "given up, as"), (left[1], "given up")):
            with pytest.raises(ClosedDecision, match=text):
                agent.tell(decision, 0.5)
        agent.tell_many([(decision, 0.5) for decision in agent.open_decisions])
        assert agent.counts.open == 0


# The ledger.


TREE = pb.TreeUCB(n_arms=2, budget=pb.PureDP(1.0))
"""A policy with a release for every reward."""


def test_all_releases_are_read_again_though_few_are_at_hand(
    kind: StoreKind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (ledger_module, rows_module):
        monkeypatch.setattr(module, "FEW", 10)
    monkeypatch.setattr(ledger_module, "PAGE", 7)
    agent, twin = kind.make(TREE, tmp_path, seed=1), pb.Agent(TREE, seed=1)
    for one in (agent, twin):
        one.tell_many([(decision, 0.5) for decision in one.ask(45)])
    rows, total = twin.ledger.rows, twin.ledger.total
    for _ in range(3 if kind.resume else 1):
        store = store_of(agent)
        assert [list(store.releases(*span)) for span in ((1, 45), (3, 5), (20, 40), (44, 10**9), (46, 50))] == [
            list(part) for part in (rows, rows[2:5], rows[19:40], rows[43:], ())
        ]
        ledger = agent.ledger
        assert (len(ledger), ledger.total) == (45, total)
        assert ledger.rows == tuple(ledger) == rows
        assert (ledger[0], ledger[-1], ledger[-4:]) == (rows[0], rows[-1], list(rows[-4:]))
        agent.close()
        assert agent.ledger.rows == ledger.rows == rows  # after the end too
        if kind.resume is not None:
            agent = resumed(kind, tmp_path)
            if not kind.shared:
                with pytest.raises(AgentBusy):
                    _ = ledger.rows  # another agent has what it would have to read
    agent.close()


def test_a_ledger_says_if_the_file_that_it_is_read_from_lacks_releases(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An earlier copy of the file stands in its place."""
    for module in (ledger_module, rows_module):
        monkeypatch.setattr(module, "FEW", 3)
    path = tmp_path / "agent.db"
    with pb.Agent(TREE, path=path) as agent:
        agent.tell_many([(decision, 0.5) for decision in agent.ask(4)])
    earlier = path.read_bytes()
    with pb.Agent.open(path) as agent:
        agent.tell_many([(decision, 0.5) for decision in agent.ask(15)])
        ledger = agent.ledger
    path.write_bytes(earlier)
    for look in (lambda: list(ledger), lambda: ledger[5], lambda: ledger[2:9], lambda: ledger.rows):
        with pytest.raises(AgentFileInvalid, match="lacks releases that its agent made"):
            look()
    assert ledger[0].number == 1
    assert ledger[-1].number == 19


# How decisions end.


class Dropping(pb.AdaCUCB):
    """Has no use for rewards of its second arm."""

    name = "dropping-for-tests"

    def entry(self, state: Any, action: int) -> Any:
        return None if action == 1 else super().entry(state, action)


def test_decisions_are_counted_by_how_they_ended_and_errors_say_it(kind: StoreKind, tmp_path: Path) -> None:
    policy = Dropping(arms=["A", "B"], budget=pb.zCDP(1.0), variant="paper")
    agent = kind.make(policy, tmp_path, max_rewards_per_person=1, give_up_after=6)
    told = agent.ask(person="ann")
    agent.tell(told, 1.0, played="A")
    over, given_up, dropped = agent.ask(person="ann"), agent.ask(person="bob"), agent.ask(person="eve")
    agent.tell(over, 1.0, played="A")
    agent.give_up(given_up)
    agent.tell(dropped, 1.0, played="B")
    late = agent.ask(person="kim")
    agent.ask(6, person="joe")
    expected = DecisionCounts(11, open=6, told=1, given_up=2, out_of_time=1, over_limit=1, dropped=1)
    endings: dict[str, tuple[pb.Decision, Ending]] = {
        "its reward was told before$": (told, "told"),
        "told before, and not taken, as its person": (over, "over_limit"),
        "it was given up$": (given_up, "given_up"),
        "told before, and not taken, as the policy": (dropped, "dropped"),
        "it was given up, as its reward had not come within give_up_after": (late, "out_of_time"),
    }
    for again in range(3 if kind.resume else 1):  # twice, as coming back writes too
        if again:
            agent.close()
            agent = resumed(kind, tmp_path)
        assert agent.counts == expected
        for text, (decision, ending) in endings.items():
            assert store_of(agent).ending_of(int(decision.id.rpartition("-")[2])) == ending
            with pytest.raises(ClosedDecision, match=text):
                agent.tell(decision, 0.0)
            with pytest.raises(ClosedDecision, match=text):
                agent.give_up(decision)
    agent.close()


def test_rows_of_a_log_are_counted(kind: StoreKind, tmp_path: Path) -> None:
    policy = Dropping(arms=["A", "B"], budget=pb.zCDP(1.0), variant="paper")
    with kind.make(policy, tmp_path, max_rewards_per_person=1) as agent:
        assert agent.warm_start([("A", 1.0, "ann"), ("A", 0.5, "ann"), ("B", 1.0, "bob")]) == 1
        assert agent.counts == DecisionCounts(3, 0, told=1, given_up=0, out_of_time=0, over_limit=1, dropped=1)


# All or nothing, and draws that last.


def test_what_is_committed_is_there_again_and_nothing_else(lasting: StoreKind, tmp_path: Path) -> None:
    agent = lasting.make(POLICY, tmp_path, max_rewards_per_person=3)
    for _ in range(9):
        agent.tell(agent.ask(person="ann"), 1.0)
    waiting = agent.ask(2, person="bob")
    rows, learned, counts = agent.ledger.rows, agent.learned, agent.counts
    store = store_of(agent)
    store.asked(OpenDecision(f"{waiting[0].id}9", 99, 0, None), None)  # and never committed
    agent.close()
    with resumed(lasting, tmp_path) as again:
        assert (again.ledger.rows, again.learned, again.counts) == (rows, learned, counts)
        assert again.open_decisions == waiting
        with pytest.raises(UnknownDecision):
            again.tell(f"{waiting[0].id}9", 1.0)


DIES = """
import os, sys
sys.path[:0] = {path!r}
from tests.storage.test_contract import POLICY, STORES, store_of
from pathlib import Path
agent = STORES[{name!r}].make(POLICY, Path({folder!r}), seed=3)
keep = store_of(agent).keep_releases
def keep_and_die(public):
    keep(public)
    os._exit(7)
store_of(agent).keep_releases = keep_and_die
agent.tell(agent.ask(), 1.0)
"""


@pytest.mark.parametrize("name", LASTING)
def test_a_release_lasts_before_anyone_looks_at_it(name: str, tmp_path: Path) -> None:
    """The process dies before the policy has seen it."""
    code = DIES.format(path=sys.path, name=name, folder=str(tmp_path))
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 7
    expected = pb.Agent(POLICY, seed=3)
    expected.tell(expected.ask(), 1.0)
    with resumed(STORES[name], tmp_path) as agent:
        assert agent.ledger.rows == expected.ledger.rows
        assert agent.learned == expected.learned
        assert agent.counts.told == 1


@pytest.mark.parametrize("name", [name for name in LASTING if not STORES[name].shared])
def test_a_second_owner_is_refused(name: str, tmp_path: Path) -> None:
    kind = STORES[name]
    with kind.make(POLICY, tmp_path), pytest.raises(AgentBusy):
        resumed(kind, tmp_path)
    resumed(kind, tmp_path).close()


@pytest.mark.parametrize("name", [name for name in LASTING if STORES[name].shared])
def test_of_two_that_share_a_state_the_later_one_ends(name: str, tmp_path: Path) -> None:
    """Both have the state of before. Only one may draw from it."""
    one = STORES[name].make(POLICY, tmp_path)
    decision = one.ask()
    other = resumed(STORES[name], tmp_path)
    one.tell(decision, 1.0)
    with pytest.raises(AgentClosed, match="another worker has changed"):
        other.tell(decision, 1.0)
    with pytest.raises(AgentClosed, match="another worker changed"):
        other.ask()
    with resumed(STORES[name], tmp_path) as again:
        assert again.ledger.rows == one.ledger.rows
        assert (len(again.ledger), again.counts.told) == (1, 1)


def test_closing_twice_does_nothing(kind: StoreKind, tmp_path: Path) -> None:
    agent = kind.make(POLICY, tmp_path)
    agent.close()
    store_of(agent).close()
    agent.close()


def test_a_store_is_not_taken_over_before_its_releases_are_read(tmp_path: Path) -> None:
    """Who has not read them has no account of them, and a file of an older format would lose them."""
    with pb.Agent(POLICY, path=tmp_path / "agent.db") as agent:
        agent.tell_many([(decision, 1.0) for decision in agent.ask(4)])
    stored = AgentFile(tmp_path / "agent.db")
    stored.load(bandit_of(agent).door.open_episode)
    with pytest.raises(AssertionError, match="0 of 4 releases were read"):
        stored.take_over()
    assert len(list(stored.releases(stored.opening or ""))) == 4
    stored.take_over().close()
    with pb.Agent.open(tmp_path / "agent.db") as again:
        assert again.ledger.rows == agent.ledger.rows
