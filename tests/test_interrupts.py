"""Calls cut short, re-entered or forked: nothing counts twice, nothing is seen that is not on disk."""

from __future__ import annotations

import ast
import gc
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import private_bandits as pb
from private_bandits.agent import bandit_of
from private_bandits.bandit import Bandit
from private_bandits.errors import AgentBusy, AgentClosed, ClosedDecision, NoiseFailed, PolicyFailed
from private_bandits.ledger import Release
from private_bandits.ledger import ledger as ledger_module
from private_bandits.policies.doubling import DoublingState
from private_bandits.storage import rows as rows_module
from tests.storage.kill_worker import HeldAgain
from tests.storage.test_sqlite import connection_of

FULL = pytest.mark.full
PACKAGE = str(Path(pb.__file__).parent)


Strike = Callable[[pb.Agent], None]


def keyboard_interrupt(agent: pb.Agent) -> None:
    raise KeyboardInterrupt


def handler_that_closes(agent: pb.Agent) -> None:
    """What a handler of SIGTERM does; in the middle of a call it is refused, with an error of the package."""
    agent.close()


def handler_that_fails(agent: pb.Agent) -> None:
    """A handler whose own use of the package is refused."""
    pb.zCDP(0.0)


def handler_whose_noise_fails(agent: pb.Agent) -> None:
    """A handler that uses another agent, which cannot draw its noise: this agent may have drawn its own."""
    raise NoiseFailed("no noise")


STRIKES = [keyboard_interrupt, handler_that_closes, handler_that_fails, handler_whose_noise_fails]
ALONE = pb.AdaCUCB(1, pb.NoPrivacy())
AGAIN = HeldAgain(1, pb.NoPrivacy(), every=1)
HELD = [("0/1",), ("0/2", "0/1"), ("0/3", "0/2", "0/1"), ("0/4",)]
"""What each release of it holds."""


MARK = "# signals wait here"
"""In the package, on lines that take a lock and give it back: the interpreter handles no signal in between."""


def _beyond_signals() -> Iterator[tuple[str, int]]:
    """Lines at which a trace can cut in where a signal is never handled: marked ones, and the beginning of "try"."""
    for path in Path(PACKAGE).rglob("*.py"):
        source = path.read_text(encoding="utf-8")
        yield from ((str(path), number) for number, line in enumerate(source.splitlines(), 1) if line.endswith(MARK))
        yield from ((str(path), node.lineno) for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Try))


BEYOND_SIGNALS = frozenset(_beyond_signals())


class Interrupt:
    """Strikes at the n-th line that the package runs."""

    def __init__(self, at: int, strike: Callable[[], None]) -> None:
        self.at, self.seen, self.strike = at, 0, strike

    def __call__(self, frame: Any, event: str, argument: Any) -> Any:
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        if event == "line" and (frame.f_code.co_filename, frame.f_lineno) not in BEYOND_SIGNALS:
            self.seen += 1
            if self.seen == self.at:
                sys.settrace(None)
                self.strike()
        return self


def cut_short(call: Callable[[], Any], at: int, strike: Callable[[], None]) -> bool:
    """Whether the call was struck at that line; False where it was over before."""
    interrupt = Interrupt(at, strike)
    gc.disable()  # what it ends of earlier agents is not this call, and nobody would catch the strike there
    sys.settrace(interrupt)
    try:
        call()
    except (KeyboardInterrupt, pb.errors.PrivateBanditsError):
        pass
    except RuntimeError as ended:  # what NoiseFailed becomes where there was noise already
        if str(ended) != "interrupted after a draw":
            raise
    finally:
        sys.settrace(None)
        gc.enable()
    return interrupt.seen >= at


def shown(agent: pb.Agent) -> list[dict[str, Any]] | None:
    """The rows that anyone can read; None where the agent refuses."""
    try:
        return [row.to_dict() for row in agent.ledger]
    except AgentClosed:
        return None


@pytest.mark.usefixtures("old_objects_are_no_garbage")
@pytest.mark.parametrize("strike", STRIKES)
@pytest.mark.parametrize(
    ("policy", "many", "stride"),
    [
        (ALONE, False, 97),
        (ALONE, True, 197),
        (AGAIN, True, 397),
        pytest.param(ALONE, False, 1, marks=FULL),
        pytest.param(ALONE, True, 1, marks=FULL),
        pytest.param(AGAIN, False, 1, marks=FULL),
        pytest.param(AGAIN, True, 1, marks=FULL),
    ],
)
def test_an_interrupt_anywhere_in_a_durable_tell_loses_and_repeats_nothing(
    tmp_path: Path, policy: pb.IndexPolicy, many: bool, stride: int, strike: Strike
) -> None:
    """Rewards 1/8, 2/8, 4/8, ...: the exact sum says which of them were counted, and how often.

    With a factor of three releases, the fourth reward is the first of another factor.
    """
    rewards = [1 / 8, 2 / 8, 4 / 8, 1.0]
    for at in range(1, 5000, stride):
        path = tmp_path / f"{at}.db"
        agent = pb.Agent(policy, path=path)
        decisions = agent.ask(4)
        agent.tell(decisions[0], rewards[0])

        def call(agent: pb.Agent = agent, decisions: list[pb.Decision] = decisions) -> None:
            if many:
                agent.tell_many(list(zip(decisions[1:], rewards[1:], strict=True)))
            else:
                agent.tell(decisions[1], rewards[1])

        cut = cut_short(call, at, partial(strike, agent))
        seen = shown(agent)
        del agent, call
        gc.collect()
        with pb.Agent.open(path) as resumed:
            on_disk = [row.to_dict() for row in resumed.ledger]
            assert seen is None or on_disk[: len(seen)] == seen, "a release was seen that is not on disk"
            for decision, reward in zip(decisions, rewards, strict=True):
                try:
                    resumed.tell(decision, reward)
                except ClosedDecision:
                    assert decision not in resumed.open_decisions
            total = sum(alone(resumed.ledger).values())
            total += sum(e.totals.reveal()[0] / e.grid.steps for e in bandit_of(resumed).private.episodes.values())
            assert total == sum(rewards)
            if policy is AGAIN:
                assert [tuple(row.episodes) for row in resumed.ledger] == HELD
        if not cut:
            break
    assert not cut
    assert at > 50


@pytest.mark.usefixtures("old_objects_are_no_garbage")
@pytest.mark.parametrize("strike", STRIKES)
@pytest.mark.parametrize("durable", [False, True])
@pytest.mark.parametrize("stride", [29, pytest.param(1, marks=FULL)])
def test_an_interrupt_anywhere_in_finish_draws_no_sum_twice(
    tmp_path: Path, durable: bool, stride: int, strike: Strike
) -> None:
    """Three sums wait, with noise: whatever anyone saw of them stays as it is, and each reward is in one release."""
    for at in range(1, 5000, stride):
        path = tmp_path / f"{at}.db" if durable else None
        agent = pb.Agent(pb.AdaCIMED(3, pb.zCDP(1.0)), path=path)
        for arm in (0, 1, 1, 2):
            agent.tell(agent.ask(), 1.0, played=arm)
        cut = cut_short(agent.finish, at, partial(strike, agent))
        seen = shown(agent)
        if path is not None:
            del agent
            gc.collect()
            agent = pb.Agent.open(path)
        if bandit_of(agent).ended is None:  # else it was in memory, and has ended: nothing is drawn any more
            agent.finish()
            assert sum(row.count for row in agent.ledger) == 4
        elif seen is None:
            continue
        after = [row.to_dict() for row in agent.ledger]
        assert seen is None or after[: len(seen)] == seen, "a release was seen that is not kept"
        labels = [label for row in agent.ledger for label in row.episodes]
        assert len(labels) == len(set(labels)), "a sum was drawn twice"
        agent.close()
        if not cut:
            break
    assert not cut
    assert at > 50


def alone(ledger: pb.Ledger) -> dict[str, float]:
    """The sum of each episode, without the earlier ones that its release holds again."""
    found: dict[str, float] = {}
    for row in ledger:
        label, *again = row.episodes
        assert label not in found
        found[label] = row.values[0] - sum(row.episodes[earlier] * found[earlier] for earlier in again)
    return found


@pytest.mark.parametrize("strike", STRIKES)
@pytest.mark.parametrize("before", [1, 2, 4])
def test_an_interrupt_anywhere_in_memory_counts_no_reward_twice_and_no_person_beyond_the_limit(
    strike: Strike, before: int
) -> None:
    """Rewards are powers of four, so that the digits of the sum say how often each of them counted."""
    for at in range(1, 5000):
        agent = pb.Agent(pb.AdaCUCB(1, pb.NoPrivacy()), max_rewards_per_person=1, reward_range=(0, 2**24))
        decisions = [agent.ask(person=str(i // 2)) for i in range(20)]
        rewards = {decision.id: 4.0 ** (i // 2) for i, decision in enumerate(decisions)}
        for decision in decisions[:before]:
            agent.tell(decision, rewards[decision.id])
        cut = cut_short(
            partial(agent.tell, decisions[before], rewards[decisions[before].id]),
            at,
            partial(strike, agent),
        )
        if (
            bandit_of(agent).ended is None
        ):  # else a release was cut short, or the handler came before the call, and closed it
            for decision in agent.open_decisions:
                agent.tell(decision, rewards[decision.id])
        ledger = bandit_of(agent).records.releases(1, len(bandit_of(agent).door.account))
        total = sum(row.values[0] for row in ledger)
        total += sum(float(e.totals.reveal()[0]) for e in bandit_of(agent).private.episodes.values())
        assert total == int(total)
        digits = np.base_repr(int(total), 4)
        assert set(digits) <= {"0", "1"}, "a reward counted twice, or two of one person"
        labels = [label for row in ledger for label in row.episodes]
        assert len(labels) == len(set(labels))
        if not cut:
            break
    assert not cut
    assert at > 30


def test_an_agent_whose_end_was_interrupted_too_goes_on_with_nothing(tmp_path: Path) -> None:
    agent = pb.Agent(pb.AdaCUCB(1, pb.NoPrivacy()), path=tmp_path / "a.db")
    first, second = agent.ask(2)
    with pytest.MonkeyPatch.context() as patch:
        store = bandit_of(agent).records
        patch.setattr(store, "close", partial(keyboard_interrupt, agent))
        patch.setattr(store, "commit", lambda public: keyboard_interrupt(agent))
        with pytest.raises(KeyboardInterrupt):
            agent.tell(first, 1.0)
    for call in (agent.ask, lambda: agent.tell(second, 1.0), lambda: agent.give_up(second), lambda: agent.ledger):
        with pytest.raises(AgentClosed):
            call()
    agent.close()
    with pb.Agent.open(tmp_path / "a.db") as resumed:
        assert resumed.open_decisions == [second]
        assert len(resumed.ledger) == 1  # it was lasting before the policy learned it


@dataclass(frozen=True)
class Stumbling(pb.AdaCUCB):
    """Its learn fails with an error of the package, after the release."""

    name: ClassVar[str] = "stumbling-for-tests"

    def learn(self, state: DoublingState, release: Release, step: int) -> None:
        super().learn(state, release, step)
        if release.number == 2:
            pb.zCDP(0.0)


@pytest.mark.parametrize("durable", [False, True])
def test_an_error_after_the_release_does_not_open_the_decision_again(tmp_path: Path, durable: bool) -> None:
    path = tmp_path / "a.db" if durable else None
    agent = pb.Agent(Stumbling(1, pb.NoPrivacy()), path=path)
    agent.tell(agent.ask(), 1.0)
    decision = agent.ask()
    with pytest.raises(PolicyFailed, match="Stumbling failed at release 2, with InvalidInput"):
        agent.tell(decision, 1.0)
    for one in (agent, pb.Agent.open(path)) if path else (agent,):
        assert (len(one.ledger), one.open_decisions) == (2, [])
        with pytest.raises(PolicyFailed):  # it has missed a release, which later ones hold again
            one.ask()


class Meddling(float):
    """A reward whose conversion calls back."""

    meddle: Callable[[], Any]

    def __float__(self) -> float:
        self.meddle()
        return 1.0


def test_calls_from_within_a_call_are_refused() -> None:
    agent = pb.Agent(pb.AdaCUCB(2, pb.zCDP(1.0)))
    decision, other = agent.ask(2)
    calls: list[Callable[[], Any]] = [
        lambda: agent.ledger,
        agent.estimates,
        agent.guarantee,
        agent.ask,
        agent.close,
        lambda: agent.open_decisions,
        lambda: agent.tell(other, 1.0),
        lambda: agent.tell_many([(other, 1.0)]),
        lambda: agent.give_up(decision),
    ]
    for call in calls:
        reward = Meddling(1.0)
        reward.meddle = call
        with pytest.raises(AgentBusy, match="in the middle of a call"):
            agent.tell(decision, reward)
    assert agent.open_decisions == [decision, other]


def test_an_action_whose_tell_was_interrupted_is_in_v_once_when_it_is_told_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    agent = pb.Agent(pb.AdaCOFUL(2, pb.zCDP(1.0), growth=1e6))
    decision = agent.ask(actions=[[1.0, 0.0]])
    with monkeypatch.context() as patch:
        patch.setattr(pb.AdaCOFUL, "due", keyboard_interrupt_instead)
        for _ in range(3):
            with pytest.raises(KeyboardInterrupt):
                agent.tell(decision, 1.0)
    assert agent.learned["since"] == [[0.0, 0.0], [0.0, 0.0]]
    agent.tell(decision, 1.0)
    assert agent.learned["since"][0][0] == pytest.approx(1.0, rel=1e-4)


def keyboard_interrupt_instead(*arguments: Any) -> bool:
    raise KeyboardInterrupt


def test_a_generator_may_use_the_agent() -> None:
    agent = pb.Agent(pb.AdaCUCB(2, pb.NoPrivacy()))
    agent.tell_many((agent.ask(), 1.0) for _ in range(10))
    assert not agent.open_decisions


FORKS = """
import os, sys, json
import private_bandits as pb
folder = sys.argv[1]
closed = pb.Agent(pb.AdaCUCB(1, pb.zCDP(8.0)), path=folder + "/closed.db"); closed.close()
agents = [pb.Agent(pb.AdaCUCB(1, pb.zCDP(8.0)), path=f"{folder}/{i}.db" if i % 2 else None) for i in range(6)]
decisions = [agent.ask() for agent in agents]
def alive():
    count = 0
    for agent, decision in zip(agents, decisions):
        try:
            agent.tell(decision, 1.0)
            count += 1
        except pb.errors.AgentClosed:
            pass
    return count
def fork(then):
    child = os.fork()
    if child == 0:
        then()
        sys.stdout.flush()
        (sys.exit if sys.argv[2] == "exit" else os._exit)(0)
    os.waitpid(child, 0)
def child():
    print(alive())
    fork(lambda: print(alive()))
fork(child)
print(alive())
for agent, decision in zip(agents, [agent.ask() for agent in agents]):
    agent.tell(decision, 1.0)
    agent.close()
print(sum(len(pb.Agent.open(f"{folder}/{i}.db").ledger) for i in (1, 3, 5)))
"""


@pytest.mark.parametrize("ending", ["exit", "_exit"])
def test_no_agent_lives_on_in_a_forked_child_or_grandchild(tmp_path: Path, ending: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORKS, str(tmp_path), ending], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["0", "0", "6", "6"]
    assert "ignored" not in done.stderr


FORK_IN_REWARD = """
import os, sys
import private_bandits as pb
class Forking(float):
    def __float__(self):
        self.child = os.fork()
        return 1.0
agent = pb.Agent(pb.AdaCUCB(1, pb.zCDP(1.0)), path=sys.argv[1] if sys.argv[1] else None)
reward = Forking(1.0)
try:
    agent.tell(agent.ask(), reward)
except pb.errors.AgentClosed:
    assert reward.child == 0
    os._exit(7)
assert reward.child != 0
print(os.waitstatus_to_exitcode(os.waitpid(reward.child, 0)[1]), len(agent.ledger))
"""


@pytest.mark.parametrize("durable", [False, True])
def test_a_fork_within_a_tell_leaves_one_agent(tmp_path: Path, durable: bool) -> None:
    path = str(tmp_path / "a.db") if durable else ""
    done = subprocess.run(
        [sys.executable, "-c", FORK_IN_REWARD, path], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout.split() == ["7", "1"], done.stderr


def walk(value: Any, depth: int = 3) -> str:
    """What a crash reporter makes of a local variable: reprs, and the parts of sequences and mappings."""
    text = repr(value)
    if depth and isinstance(value, dict):
        text += "".join(walk(part, depth - 1) for part in value.values())
    elif depth and isinstance(value, (list, tuple, set)):
        text += "".join(walk(part, depth - 1) for part in value)
    return text


def test_no_sum_in_what_crash_reporters_collect_when_the_file_cannot_be_written(tmp_path: Path) -> None:
    agent = pb.Agent(pb.AdaCUCB(1, pb.zCDP(1.0)), path=tmp_path / "a.db")
    for reward in (0.0, 0.0, 0.731):
        agent.tell(agent.ask(), reward)
    decision = agent.ask()
    bandit_of(agent).public.policy.released[0] = 1000  # no release: the sum itself is written
    connection_of(agent).execute(
        "CREATE TRIGGER full BEFORE INSERT ON episodes BEGIN SELECT RAISE(ABORT, 'disk failure'); END"
    )
    episode = bandit_of(agent).private.episodes[0]
    with pytest.raises(AgentClosed, match="could not write its file") as failed:
        agent.tell(decision, 0.731)
    chain: list[BaseException | None] = [failed.value]
    collected = ""
    while chain[-1] is not None:
        error = chain[-1]
        collected += "".join(traceback.format_exception(error)) + walk(list(error.args))
        for frame, _ in traceback.walk_tb(error.__traceback__):
            if frame.f_code.co_filename.startswith(PACKAGE):
                collected += walk({k: v for k, v in frame.f_locals.items() if k != "told"})
        chain.append(error.__cause__ or error.__context__)
    secret = str(episode.totals.reveal()[0])
    assert len(secret) > 6
    assert secret not in collected
    assert "disk failure" not in collected  # the database's own words may quote a column


@pytest.mark.parametrize("durable", [False, True])
def test_a_second_interrupt_brings_nothing_of_the_first_one_along(
    tmp_path: Path, durable: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One comes after the draw, the next while the agent deals with it. The chain of errors must not hold the draw."""
    agent = pb.Agent(pb.AdaCUCB(1, pb.zCDP(1.0)), path=tmp_path / "a.db" if durable else None)
    decision, bandit, drawn = agent.ask(), bandit_of(agent), []
    through, records = bandit.door.release, bandit.records

    def draw_and_interrupt(whole: Any) -> Release:
        row = through(whole)
        drawn.append(str(row.values[0]))
        keyboard_interrupt(agent)
        return row

    monkeypatch.setattr(bandit.door, "release", draw_and_interrupt)
    monkeypatch.setattr(records, "close", partial(keyboard_interrupt, agent))
    with pytest.raises(KeyboardInterrupt) as caught:
        agent.tell(decision, 1.0)
    chain: list[BaseException | None] = [caught.value, caught.value.__context__, caught.value.__cause__]
    text = ""
    for error in filter(None, chain):
        for frame, _ in traceback.walk_tb(error.__traceback__):
            if frame.f_code.co_filename.startswith(PACKAGE):
                text += walk(frame.f_locals)
    assert drawn
    assert drawn[0] not in text
    with pytest.raises(AgentClosed):
        _ = agent.ledger


@pytest.mark.usefixtures("old_objects_are_no_garbage")
@pytest.mark.parametrize("stride", [7, pytest.param(1, marks=FULL)])
def test_an_interrupted_look_keeps_no_release_from_its_file(tmp_path: Path, stride: int) -> None:
    """A half-read query would keep the log from being folded, and the file from being opened again."""
    for at in range(1, 5000, stride):
        path = tmp_path / f"{at}.db"
        agent = pb.Agent(ALONE, path=path)
        decisions = agent.ask(3)
        cut = cut_short(lambda agent=agent: agent.open_decisions, at, partial(keyboard_interrupt, agent))  # type: ignore[misc]
        agent.tell(decisions[0], 1.0)
        assert len(agent.ledger) == 1
        agent.close()
        with pb.Agent.open(path) as resumed:
            assert (len(resumed.ledger), resumed.open_decisions) == (1, decisions[1:])
        if not cut:
            break
    assert not cut
    assert at > 20


@pytest.mark.parametrize("durable", [False, True])
def test_a_ledger_that_is_read_later_does_not_bring_back_an_agent_that_was_interrupted_twice(
    durable: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second interrupt strikes before the agent has ended: half of a change is left, and may not be written."""
    for module in (ledger_module, rows_module):
        monkeypatch.setattr(module, "FEW", 2)
    path = tmp_path / "agent.db" if durable else None
    agent = pb.Agent(pb.AdaCUCB(2, pb.zCDP(5.0)), path=path)
    agent.tell_many([(decision, 1.0) for decision in agent.ask(12)])
    before = agent.ledger
    rows = before.rows
    decisions = agent.ask(40)
    settle, end = Bandit.settle, pb.Agent._ended_after
    struck: list[str] = []

    def strike(where: str, self: Any) -> None:
        if where not in struck and (where == "end" or self.unlearned):
            struck.append(where)
            raise KeyboardInterrupt

    def settle_or_strike(self: Bandit) -> None:
        strike("settle", self)
        settle(self)

    def end_or_strike(self: pb.Agent, error: BaseException) -> BaseException:
        strike("end", self)
        return end(self, error)

    def tell_all() -> None:
        for decision in decisions:
            agent.tell(decision, 1.0)

    monkeypatch.setattr(Bandit, "settle", settle_or_strike)
    monkeypatch.setattr(pb.Agent, "_ended_after", end_or_strike)
    with pytest.raises(KeyboardInterrupt):
        tell_all()
    assert struck == ["settle", "end"]
    for look in (lambda: before[0], lambda: agent.ledger, agent.estimates, lambda: agent.ask(), lambda: agent.counts):
        with pytest.raises(AgentClosed, match="was interrupted"):
            look()
    agent.close()
    monkeypatch.undo()
    if path is not None:
        with pb.Agent.open(path) as again:
            assert again.ledger.rows == rows
