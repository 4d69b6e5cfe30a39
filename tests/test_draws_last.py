"""A draw is never thrown away: its row lasts before the policy sees it, whatever the policy then does.

A policy that fails on values it does not like, and is told the same sum again with new noise, would choose its noise.
So each draw is counted at the source of the noise: there are as many draws as rows, over all lives of a file.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest

import private_bandits as pb
from private_bandits.agent import bandit_of
from private_bandits.errors import (
    AgentFileInvalid,
    ClosedDecision,
    InvalidInput,
    NoiseFailed,
    PolicyFailed,
    PrivateBanditsError,
)
from private_bandits.mechanism.noise import Mechanism
from private_bandits.policies import POLICIES, Combination, Policy
from tests.storage.test_sqlite import Seen, run_python
from tests.support import EXAMPLE_BUDGETS, offered

LIVES = [20, pytest.param(1000, marks=pytest.mark.full)]
SOME_LIVES = [20, pytest.param(200, marks=pytest.mark.full)]
FEW_LIVES = [2, pytest.param(50, marks=pytest.mark.full)]


class Trouble:
    """Every troubled policy fails in the same way, from release number `at` on and while trouble is there."""

    def __init__(self) -> None:
        self.be_gone()

    def come(self, where: str, what: Callable[[Any], Any], at: int = 1) -> None:
        """where: the method that fails. what: how, given what the method was about to return."""
        self.where, self.what, self.at, self.met = where, what, at, False

    def be_gone(self) -> None:
        """Policies work from now on."""
        self.where, self.what, self.at, self.met = "", unchanged, 0, False
        self.arrivals = -1000

    def see(self, release: pb.Release) -> None:
        """Whether there is trouble depends on a release, and on its value as well: all of them are numbers."""
        self.met = self.met or (release.number >= self.at and release.values[0] == release.values[0])

    def meets(self, where: str, given: Any = None) -> Any:
        """Called by every method at its end; a release before this one brought the trouble, or this one does."""
        return self.what(given) if where == self.where and self.met else given


def unchanged(given: Any) -> Any:
    return given


TROUBLE = Trouble()


@pytest.fixture(autouse=True)
def calm() -> Iterator[None]:
    TROUBLE.be_gone()
    yield
    TROUBLE.be_gone()


class Troubled:
    """The methods of a policy, each of which may fail. `learn` fails when it has changed the state already."""

    def learn(self, state: Any, release: pb.Release, step: int) -> None:
        TROUBLE.see(release)
        TROUBLE.meets("learn, before the state changes")
        super().learn(state, release, step)  # type: ignore[misc]
        TROUBLE.meets("learn")

    def dump_state(self, state: Any) -> Any:
        return TROUBLE.meets("dump_state", super().dump_state(state))  # type: ignore[misc]

    def load_state(self, data: Any) -> Any:
        return TROUBLE.meets("load_state", super().load_state(data))  # type: ignore[misc]

    def recommend(self, *arguments: Any) -> Any:
        return TROUBLE.meets("recommend", super().recommend(*arguments))  # type: ignore[misc]

    def choose(self, *arguments: Any) -> Any:
        return TROUBLE.meets("recommend", super().choose(*arguments))  # type: ignore[misc]

    def entry(self, *arguments: Any) -> Any:
        return TROUBLE.meets("entry", super().entry(*arguments))  # type: ignore[misc]

    def entry_of(self, *arguments: Any) -> Any:
        return TROUBLE.meets("entry", super().entry_of(*arguments))  # type: ignore[misc]

    def due(self, *arguments: Any) -> Any:
        return TROUBLE.meets("due", super().due(*arguments))  # type: ignore[misc]

    def arrive(self, *arguments: Any) -> Any:
        return TROUBLE.meets("arrive", super().arrive(*arguments))  # type: ignore[misc]

    def estimates(self, *arguments: Any) -> Any:
        return TROUBLE.meets("estimates", super().estimates(*arguments))  # type: ignore[misc]


def troubled(policy: Policy[Any]) -> Policy[Any]:
    """The same policy, with methods that may fail."""
    name = f"troubled-{policy.name}"
    if name not in POLICIES:
        type(f"Troubled{type(policy).__name__}", (Troubled, type(policy)), {"name": name, "__module__": __name__})
    return POLICIES[name](**{f.name: getattr(policy, f.name) for f in fields(policy) if f.init})  # type: ignore[arg-type]


class WithIndex(pb.IndexPolicy):
    """An index that may be of any kind."""

    name = "with-index-for-tests"

    def learn(self, state: Any, release: pb.Release, step: int) -> None:
        TROUBLE.see(release)
        super().learn(state, release, step)

    def index(self, means: Any, counts: Any, step: Any, width: float) -> Any:
        return TROUBLE.meets("index", means + width / np.sqrt(counts))


INDEX = WithIndex(3, pb.zCDP(1.0))
PAPER = troubled(pb.AdaCUCB(3, pb.zCDP(1.0), variant="paper"))
REMEMBERS = troubled(pb.AdaCIMED(3, pb.zCDP(8.0)))
TREE = troubled(pb.TreeUCB(3, pb.zCDP(1.0), horizon=100))
PHASED = troubled(pb.AdaCGOPE(((0.9, 0.0), (-0.45, 0.8), (-0.4, -0.7)), pb.zCDP(20.0), phase_factor=1e-6))
CONTEXTUAL = troubled(pb.AdaCOFUL(2, pb.zCDP(1.0), horizon=200, growth=0.2))
PRIVATE = troubled(pb.AdaCOFULPrivate(2, pb.zCDP(1.0), horizon=200))
PRIVATE_TREE = troubled(pb.ShariffSheffet(2, pb.zCDP(1.0), horizon=200))
SORTS_OF_POLICIES = [PAPER, REMEMBERS, TREE, PHASED, CONTEXTUAL, PRIVATE, PRIVATE_TREE]


def id_of(policy: Policy[Any]) -> str:
    return policy.name


def every_class() -> list[Policy[Any]]:
    """One of each class of the package, so that a new one is tested as well."""
    found = [cls for _, cls in sorted(POLICIES.items()) if cls.__module__.startswith("private_bandits.")]
    return [troubled(cls.example(EXAMPLE_BUDGETS[cls.supported_budgets[0]])) for cls in found]


# Ways to fail.


def raises(error: BaseException | type[BaseException]) -> Callable[[Any], NoReturn]:
    def fail(given: Any) -> NoReturn:
        raise error

    return fail


def recurses(given: Any) -> Any:
    return recurses(given)


def exits(given: Any) -> NoReturn:
    sys.exit("the policy does not like it")


LEARN = {
    "ValueError": ("learn", raises(ValueError("does not like it"))),
    "before the state changes": ("learn, before the state changes", raises(ValueError("does not like it"))),
    "KeyboardInterrupt": ("learn", raises(KeyboardInterrupt)),
    "sys.exit": ("learn", exits),
    "RecursionError": ("learn", recurses),
    "MemoryError": ("learn", raises(MemoryError)),
    "StopIteration": ("learn", raises(StopIteration)),
    "an error of ours": ("learn", raises(ClosedDecision("not so"))),
}
INDICES = {
    "NaN index": ("index", lambda index: index * np.nan),
    "wrong shape": ("index", lambda index: index[:, None] + index),
    "no number": ("index", lambda index: ["high"] * len(index)),
}
DUMPS = {
    "dump_state raises": ("dump_state", raises(ValueError("does not like it"))),
    "dump_state recurses": ("dump_state", recurses),
    "dump_state interrupts": ("dump_state", raises(KeyboardInterrupt)),
    "not for JSON": ("dump_state", lambda data: {**data, "more": object()}),
    "no text": ("dump_state", lambda data: {**data, (1, 2): 3}),
    "goes round": ("dump_state", lambda data: round_and_round(data)),
}
ELSEWHERE = ["recommend", "entry", "due", "arrive", "estimates", "load_state"]


def round_and_round(data: dict[str, Any]) -> dict[str, Any]:
    data["more"] = data
    return data


WAYS = [
    *(pytest.param(PAPER, *way, id=name) for name, way in {**LEARN, **DUMPS}.items()),
    *(pytest.param(INDEX, *way, id=name) for name, way in INDICES.items()),
    *(pytest.param(policy, *LEARN["ValueError"], id=policy.name) for policy in SORTS_OF_POLICIES[1:]),
]
OTHER_WAYS = [
    pytest.param(policy, *way, id=f"{policy.name}, {name}")
    for policy in SORTS_OF_POLICIES[1:]
    for name, way in {**LEARN, **DUMPS}.items()
    if name != "ValueError"
]


# What agents do.


@pytest.fixture
def draws(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """Every noisy sum that came out of the source of noise, seen or not."""
    found: list[tuple[int, ...]] = []
    draw = Mechanism.__call__

    def counted(mechanism: Mechanism, totals: Any) -> list[int]:
        noisy = draw(mechanism, totals)
        found.append(tuple(noisy))
        return noisy

    monkeypatch.setattr(Mechanism, "__call__", counted)
    return found


def one_step(agent: pb.Agent, step: int) -> None:
    """An ask, and its reward; every fifth decision stays open."""
    decision = agent.ask(actions=offered(agent.policy, step))
    if step % 5 != 4:
        agent.tell(decision, (step * 37 % 100) / 100)


def run_into_trouble(agent: pb.Agent) -> BaseException:
    """Go on until the policy fails."""
    for step in range(200):
        try:
            one_step(agent, step)
        except BaseException as error:
            return error
    raise AssertionError("nothing failed")


def as_text(rows: Sequence[pb.Release]) -> str:
    """Equal for rows that are equal to the bit."""
    return json.dumps([row.to_dict() for row in rows])


def assert_failed(agent: pb.Agent, text: str) -> None:
    """The agent shows its releases, and does nothing else."""
    assert as_text(agent.ledger.rows) == text
    assert agent.guarantee().budget == agent.policy.budget
    assert "failed" in repr(agent)
    assert agent.settings["unit"] == "reward"
    waiting = agent.open_decisions
    key = waiting[0].id if waiting else "1"
    calls: list[Callable[[], Any]] = [
        lambda: agent.ask(actions=offered(agent.policy, 0)),
        lambda: agent.ask(3, actions=offered(agent.policy, 0)),
        lambda: agent.tell(key, 1.0),
        lambda: agent.tell_many([(key, 1.0)]),
        lambda: agent.give_up(key),
        agent.estimates,
        lambda: agent.learned,
    ]
    if agent.policy.supports_warm_start and agent.policy.arm_names:
        calls.append(lambda: agent.warm_start([(0, 0.5)]))
    for call in calls:
        with pytest.raises(PolicyFailed):
            call()
    assert agent.open_decisions == waiting
    assert as_text(agent.ledger.rows) == text


def assert_failure(error: BaseException, what: Callable[[Any], Any]) -> None:
    """Exceptions are told as the policy's; what ends a program ends it."""
    if what is exits:
        assert isinstance(error, SystemExit)
    elif what in (LEARN["KeyboardInterrupt"][1], DUMPS["dump_state interrupts"][1]):
        assert isinstance(error, KeyboardInterrupt)
    else:
        assert isinstance(error, PolicyFailed), error


@pytest.mark.parametrize("lives", LIVES)
@pytest.mark.parametrize(("policy", "where", "what"), WAYS)
def test_a_policy_that_fails_at_a_release_is_told_the_same_row_for_ever(
    policy: Policy[Any], where: str, what: Callable[[Any], Any], lives: int, tmp_path: Path, draws: list[Any]
) -> None:
    fail_again_and_again(policy, where, what, lives, tmp_path / "agent.db", draws)


@pytest.mark.full
@pytest.mark.parametrize(("policy", "where", "what"), OTHER_WAYS)
def test_every_sort_of_policy_that_fails_in_any_way_is_told_the_same_row_for_ever(
    policy: Policy[Any], where: str, what: Callable[[Any], Any], tmp_path: Path, draws: list[Any]
) -> None:
    fail_again_and_again(policy, where, what, 100, tmp_path / "agent.db", draws)


def fail_again_and_again(
    policy: Policy[Any], where: str, what: Callable[[Any], Any], lives: int, path: Path, draws: list[Any]
) -> None:
    TROUBLE.come(where, what, at=2)
    agent = pb.Agent(policy, path=path)
    assert_failure(run_into_trouble(agent), what)
    text, waiting = as_text(agent.ledger.rows), agent.open_decisions
    assert len(draws) == len(agent.ledger) == 2
    assert_failed(agent, text)
    agent.close()
    for life in range(lives):
        TROUBLE.come(where, what, at=2)  # as a new process would meet it
        with pb.Agent.open(path) as opened:
            assert as_text(opened.ledger.rows) == text
            assert opened.open_decisions == waiting
            if life < 2:
                assert_failed(opened, text)
        assert len(draws) == 2
    TROUBLE.be_gone()
    with pb.Agent.open(path) as opened:
        assert as_text(opened.ledger.rows) == text
        assert "failed" not in repr(opened)
        for step in range(40):
            one_step(opened, step)
        assert as_text(opened.ledger.rows[:2]) == text
        assert len(opened.ledger) == len(draws) > 2


@pytest.mark.parametrize(
    ("policy", "where", "what"),
    [
        *(pytest.param(PAPER, *way, id=name) for name, way in LEARN.items()),
        *(pytest.param(INDEX, *way, id=name) for name, way in INDICES.items()),
        *(pytest.param(policy, *LEARN["ValueError"], id=policy.name) for policy in SORTS_OF_POLICIES[1:]),
    ],
)
def test_in_memory_a_policy_that_fails_at_a_release_leaves_its_row(
    policy: Policy[Any], where: str, what: Callable[[Any], Any], draws: list[Any]
) -> None:
    TROUBLE.come(where, what, at=2)
    agent = pb.Agent(policy)
    assert_failure(run_into_trouble(agent), what)
    assert len(draws) == len(agent.ledger) == 2
    assert_failed(agent, as_text(agent.ledger.rows))
    TROUBLE.be_gone()  # what it missed it would read wrongly later
    assert_failed(agent, as_text(agent.ledger.rows))
    assert len(draws) == 2


@pytest.mark.parametrize("lives", FEW_LIVES)
@pytest.mark.parametrize("policy", every_class(), ids=id_of)
def test_after_a_failure_that_passes_an_agent_goes_on_as_if_nothing_had_happened(
    policy: Policy[Any], lives: int, tmp_path: Path
) -> None:
    path = tmp_path / "agent.db"
    twin, agent = pb.Agent(policy, seed=5), pb.Agent(policy, path=path, seed=5)
    failed = 0
    for step in range(36 + lives):
        one_step(twin, step)
        TROUBLE.come("learn", raises(ValueError), at=len(agent.ledger) + 1 if failed < lives else 10**9)
        try:
            one_step(agent, step)
        except PolicyFailed:
            failed += 1
            agent.close()
            TROUBLE.be_gone()
            agent = pb.Agent.open(path)
        TROUBLE.be_gone()
        assert Seen.of(agent) == Seen.of(twin)
    assert failed >= min(lives, len(twin.ledger)) >= 1
    agent.close()


class Hasty(pb.AdaCUCB):
    """Fails at its second release, and at a reward that comes after the third."""

    name = "hasty-for-tests"
    waits_for = "none"
    fails_at = ""

    def learn(self, state: Any, release: pb.Release, step: int) -> None:
        super().learn(state, release, step)
        if self.fails_at == "learn" and release.number == 2:
            raise ValueError

    def due(self, state: Any, key: int, count: int, arrived: Any) -> bool:
        if self.fails_at == "due" and key == 3:
            raise ValueError
        return super().due(state, key, count, arrived)


def test_a_policy_waits_for_what_it_says_and_subclasses_wait_for_all() -> None:
    class Index(pb.AdaCUCB):
        def indices(self, *arguments: Any) -> Any:
            return super().indices(*arguments)

    class Due(pb.AdaCUCB):
        def due(self, *arguments: Any) -> bool:
            return super().due(*arguments)

    class Mixed(Troubled, pb.AdaCUCB):
        pass

    assert [one.waits_for for one in (pb.AdaCUCB, Index, Hasty, pb.TreeUCB)] == ["none"] * 4

    class Mistaken(pb.AdaCUCB):
        waits_for = "own"  # type: ignore[assignment]

    with pytest.raises(InvalidInput, match="waits_for of Mistaken must be 'all' or 'none', got 'own'"):
        pb.Agent(Mistaken(2, pb.zCDP(1.0)))
    assert [one.waits_for for one in (Due, Mixed, pb.AdaCOFUL, pb.AdaCGOPE, pb.DPSE)] == ["all"] * 5


@pytest.mark.parametrize("kind", [pb.AdaCUCB, pb.AdaCIMED])
def test_releases_of_a_batch_are_written_once_though_an_arm_has_several(kind: Any, tmp_path: Path) -> None:
    """How many rewards have left is public, so that no release has to be learned before the next reward is taken."""
    policy = kind(2, pb.zCDP(1.0))
    agent, twin = pb.Agent(policy, path=tmp_path / "agent.db", seed=5), pb.Agent(policy, seed=5)
    store, writes = bandit_of(agent).records, list[int]()
    keep = store.keep_releases

    def keep_and_count(public: Any) -> None:
        keep(public)
        writes.append(len(bandit_of(agent).door.account))

    store.keep_releases = keep_and_count  # type: ignore[method-assign]
    batch = [(decision, i % 3 / 2, i % 2) for i, decision in enumerate(agent.ask(100))]
    agent.tell_many(batch)
    for decision, (_, reward, played) in zip(twin.ask(100), batch, strict=True):
        twin.tell(decision, reward, played=played)
    assert Seen.of(agent) == Seen.of(twin)
    assert max(Counter(row.key for row in agent.ledger).values()) >= 3
    assert writes == [len(agent.ledger)]
    agent.close()
    with pb.Agent.open(tmp_path / "agent.db") as opened:
        assert Seen.of(opened) == Seen.of(twin)


@pytest.mark.parametrize("fails_at", range(1, 8))
def test_rewards_whose_noise_could_not_be_drawn_have_not_left(fails_at: int) -> None:
    agent, twin = (pb.Agent(pb.AdaCUCB(1, pb.zCDP(1.0), variant="paper"), seed=5) for _ in range(2))
    source = bandit_of(agent).door.noise

    class Failing:
        secret = False
        left = fails_at

        def calibrate(self, *arguments: Any) -> Any:
            self.left -= 1
            if not self.left:
                raise NoiseFailed
            return source.calibrate(*arguments)

    bandit_of(agent).door.noise = Failing()
    decisions = agent.ask(100)
    with pytest.raises(NoiseFailed):
        agent.tell_many([(decision, 1.0) for decision in decisions])
    agent.tell_many([(decision, 1.0) for decision in agent.open_decisions])
    twin.tell_many([(decision, 1.0) for decision in twin.ask(100)])
    assert [row.count for row in agent.ledger] == [row.count for row in twin.ledger] == [1, 1, 2, 4, 8, 16, 32]


@pytest.mark.parametrize("durable", [False, True])
@pytest.mark.parametrize(("fails_at", "rows", "left"), [("learn", 4, 0), ("due", 3, 1)])
def test_no_draw_of_a_batch_is_lost_because_a_policy_failed_at_another_reward(
    fails_at: str,
    rows: int,
    left: int,
    durable: bool,
    tmp_path: Path,
    draws: list[Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = tmp_path / "agent.db" if durable else None
    agent = pb.Agent(Hasty(4, pb.zCDP(1.0)), path=path)
    decisions = agent.ask(4)
    monkeypatch.setattr(Hasty, "fails_at", fails_at)
    draws.clear()
    with pytest.raises(PolicyFailed if fails_at == "learn" else ValueError):
        agent.tell_many([(decision, 1.0) for decision in decisions])
    monkeypatch.setattr(Hasty, "fails_at", "")
    if path is not None:
        agent.close()
        agent = pb.Agent.open(path)
    assert len(agent.ledger) == len(draws) == rows
    assert agent.open_decisions == decisions[4 - left :]
    if durable or fails_at == "due":
        agent.tell_many([(decision, 1.0) for decision in decisions[4 - left :]])
        assert len(agent.ledger) == len(draws) == 4
        assert [estimate.rewards for estimate in agent.estimates()] == [1, 1, 1, 1]


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit, ValueError])
@pytest.mark.parametrize("policy", [PAPER, REMEMBERS, TREE, PRIVATE], ids=id_of)
def test_a_batch_is_taken_up_to_the_release_that_the_policy_fails_at(
    policy: Policy[Any], interrupt: type[BaseException], tmp_path: Path, draws: list[Any]
) -> None:
    path = tmp_path / "agent.db"
    twin, agent = pb.Agent(policy, seed=5), pb.Agent(policy, path=path, seed=5)
    batches = []
    for one in (twin, agent):
        found = [one.ask(actions=offered(policy, step)) for step in range(20)]
        batches.append([(decision, i / 20) for i, decision in enumerate(found)])
    twin.tell_many(batches[0])
    assert len(twin.ledger) >= 2
    draws.clear()
    TROUBLE.come("learn", raises(interrupt), at=2)
    with pytest.raises(PolicyFailed if interrupt is ValueError else interrupt):
        agent.tell_many(batches[1])
    assert len(agent.ledger) == len(draws) == 2
    rest = agent.open_decisions
    assert 0 < len(rest) < 20
    assert rest == [decision for decision, _ in batches[1][-len(rest) :]]
    assert_failed(agent, as_text(agent.ledger.rows))
    agent.close()
    TROUBLE.be_gone()
    with pb.Agent.open(path) as opened:
        assert opened.open_decisions == rest
        with pytest.raises(ClosedDecision):
            opened.tell(batches[1][0][0], 1.0)
        opened.tell_many(batches[1][-len(rest) :])
        assert Seen.of(opened) == Seen.of(twin)
        assert len(draws) == len(opened.ledger)


@pytest.mark.parametrize("lives", SOME_LIVES)
@pytest.mark.parametrize("what", [LEARN["ValueError"][1], LEARN["KeyboardInterrupt"][1]], ids=["error", "interrupt"])
@pytest.mark.parametrize("policy", [PAPER, REMEMBERS, INDEX], ids=id_of)
def test_all_releases_of_a_log_last_before_any_is_learned(
    policy: Policy[Any], what: Callable[[Any], Any], lives: int, tmp_path: Path, draws: list[Any]
) -> None:
    path, log = tmp_path / "agent.db", [(arm, (arm + i) / 9) for arm in range(3) for i in range(4)]
    twin, agent = pb.Agent(policy, seed=5), pb.Agent(policy, path=path, seed=5)
    assert twin.warm_start(log) == 12
    draws.clear()
    where = "index" if policy is INDEX else "learn"
    TROUBLE.come(where, what, at=2)
    try:
        agent.warm_start(log)
    except BaseException as error:
        assert_failure(error, what)
    assert len(draws) == len(agent.ledger) == 3
    text = as_text(twin.ledger.rows)
    assert_failed(agent, text)
    agent.close()
    for life in range(lives):
        TROUBLE.come(where, what, at=2)
        with pb.Agent.open(path) as opened:
            if life < 2:
                assert_failed(opened, text)
            assert as_text(opened.ledger.rows) == text
    TROUBLE.be_gone()
    with pb.Agent.open(path) as opened:
        assert Seen.of(opened) == Seen.of(twin)
        for step in range(20):
            one_step(opened, step)
            one_step(twin, step)
        assert Seen.of(opened) == Seen.of(twin)


def test_in_memory_all_releases_of_a_log_last_before_any_is_learned(draws: list[Any]) -> None:
    agent = pb.Agent(PAPER)
    TROUBLE.come("learn", raises(ValueError), at=1)
    with pytest.raises(PolicyFailed):
        agent.warm_start([(0, 0.5), (1, 0.5), (0, 1.0)])
    assert len(draws) == len(agent.ledger) == 2
    assert_failed(agent, as_text(agent.ledger.rows))


@pytest.mark.parametrize("lives", SOME_LIVES)
@pytest.mark.parametrize("where", ELSEWHERE)
@pytest.mark.parametrize("policy", [PAPER, PRIVATE], ids=id_of)
def test_a_policy_that_fails_elsewhere_because_of_a_release_brings_no_second_draw(
    policy: Policy[Any], where: str, lives: int, tmp_path: Path, draws: list[Any]
) -> None:
    """Whether it is told as it is, and whether the agent goes on, is another matter."""
    path = tmp_path / "agent.db"
    seen: dict[str, str] = {}
    with pb.Agent(policy, path=path) as agent:
        for step in range(12):
            one_step(agent, step)
        keep_in_mind(agent, seen)
    for life in range(lives):
        TROUBLE.come(where, raises((ValueError, KeyboardInterrupt)[life % 2]), at=1)
        TROUBLE.met = True
        with_trouble(path, life, seen)
        assert len(draws) == len(seen)
    TROUBLE.be_gone()
    with pb.Agent.open(path) as opened:
        for step in range(40):
            one_step(opened, step)
        keep_in_mind(opened, seen)
        assert len(draws) == len(seen) == len(opened.ledger)


def keep_in_mind(agent: pb.Agent, seen: dict[str, str]) -> None:
    """Every row by what is in it. None is ever another, and none is gone."""
    rows = {str(list(row.episodes)): as_text([row]) for row in agent.ledger}
    assert seen.items() <= rows.items()
    seen.update(rows)


def with_trouble(path: Path, life: int, seen: dict[str, str]) -> None:
    try:
        agent = pb.Agent.open(path)
    except (ValueError, KeyboardInterrupt, PrivateBanditsError):
        return
    with contextlib.suppress(ValueError, KeyboardInterrupt, PrivateBanditsError):
        agent.estimates()
        one_step(agent, life)
    with contextlib.suppress(PrivateBanditsError):  # it has ended, and nothing of it can be read
        keep_in_mind(agent, seen)
    agent.close()


ENDED = """
    import os, sys
    import private_bandits as pb
    from private_bandits.mechanism.noise import Mechanism

    path, journal, lives = sys.argv[1], sys.argv[2], int(sys.argv[3])
    log = os.open(journal, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    draw = Mechanism.__call__

    def counted(mechanism, totals):
        os.write(log, b"draw\\n")
        return draw(mechanism, totals)

    Mechanism.__call__ = counted

    class Ends(pb.AdaCUCB):
        name = "ends-for-tests"

        def learn(self, state, release, step):
            if release.number == 2 and release.values[0] == release.values[0]:
                os._exit(9)
            super().learn(state, release, step)

    def first_life():
        agent = pb.Agent(Ends(3, pb.zCDP(1.0), variant="paper"), path=path)
        for _ in range(3):
            agent.tell(agent.ask(), 0.5)

    for life in range(lives):
        child = os.fork()
        if child == 0:
            first_life() if life == 0 else pb.Agent.open(path)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9, life
    Ends.learn = pb.AdaCUCB.learn
    with pb.Agent.open(path) as agent:
        assert len(agent.ledger) == 2 and not agent.open_decisions
        agent.tell(agent.ask(), 0.5)
        assert len(agent.ledger) == 3
"""


@pytest.mark.parametrize("lives", LIVES)
def test_a_policy_that_ends_the_process_at_a_release_finds_the_same_row_again(lives: int, tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    assert run_python(ENDED, tmp_path / "agent.db", journal, lives) == ""
    assert journal.read_text() == "draw\n" * 3


@pytest.mark.parametrize("option", [{}, {"max_rewards_per_person": 2}, {"max_rewards_per_person": 2, "unit": "person"}])
def test_people_are_counted_once_where_the_policy_failed(option: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    agent = pb.Agent(PAPER, path=path, seed=1, **option)
    TROUBLE.come("learn", raises(ValueError), at=1)
    with pytest.raises(PolicyFailed):
        agent.tell(agent.ask(person="ann"), 1.0)
    agent.close()
    TROUBLE.be_gone()
    with pb.Agent.open(path) as opened:
        for _ in range(3):
            opened.tell(opened.ask(person="ann"), 1.0)
        counted = sum(row.count for row in opened.ledger) + sum(
            e.count for e in bandit_of(opened).private.episodes.values()
        )
        assert counted == (2 if option else 4)


def test_a_failure_of_a_policy_tells_nothing_of_what_is_private(tmp_path: Path) -> None:
    agent = pb.Agent(PRIVATE, path=tmp_path / "agent.db")
    TROUBLE.come("learn", raises(ValueError("does not like it")), at=1)
    error = run_into_trouble(agent)
    assert isinstance(error, PolicyFailed)
    assert error.__cause__ is None
    assert error.__context__ is None
    assert "like" not in str(error)
    agent.close()


# What policies return.


class Returning(pb.AdaCUCB):
    """Returns what the test says in place of something."""

    name = "returning-for-tests"
    action: Any = 0
    key: Any = 0
    declared: Any = 0

    def recommend(self, *arguments: Any) -> Any:
        return self.action

    def entry(self, *arguments: Any) -> Any:
        return self.key, (1,)

    @property
    def declared_weight(self) -> Any:
        return self.declared


@pytest.mark.parametrize("key", [np.int64(0), True, -1, 2**63, 0.5, "0", None, (0,)], ids=repr)
@pytest.mark.parametrize("durable", [False, True])
def test_a_sum_that_is_no_whole_number_is_refused_before_anything_is_drawn(
    key: Any, durable: bool, tmp_path: Path, draws: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "agent.db" if durable else None
    agent = pb.Agent(Returning(2, pb.zCDP(1.0), variant="paper"), path=path)
    decision = agent.ask()
    monkeypatch.setattr(Returning, "key", key)
    draws.clear()
    with pytest.raises(InvalidInput, match="names a sum that is no int"):
        agent.tell(decision, 1.0)
    monkeypatch.undo()
    if path is not None:
        agent = pb.Agent.open(path)
    agent.tell(decision, 1.0)
    assert len(agent.ledger) == 1
    agent.close()


def test_actions_of_numpy_are_taken_and_others_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "agent.db"
    agent = pb.Agent(Returning(2, pb.zCDP(1.0), variant="paper"), path=path)
    monkeypatch.setattr(Returning, "action", np.int64(1))
    assert type(agent.ask().action) is int
    monkeypatch.setattr(Returning, "action", -1)
    with pytest.raises(InvalidInput, match="recommends -1, which is no action from 0 to 1"):
        agent.ask()
    with pb.Agent.open(path) as opened:
        assert [decision.action for decision in opened.open_decisions] == [1]


@pytest.mark.parametrize("declared", [np.int64(2**20), 1.5, -1, True], ids=repr)
def test_a_declared_weight_that_is_no_int_is_refused(declared: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a number of 64 bits it would wrap around where it is squared, and the noise would be for a weight of zero."""
    monkeypatch.setattr(Returning, "declared", declared)
    with pytest.raises(InvalidInput, match="declared_weight of Returning must be an int"):
        pb.Agent(Returning(2, pb.zCDP(0.01), variant="paper"))


def test_a_release_is_in_the_file_itself_before_it_is_learned(tmp_path: Path) -> None:
    """The policy ends the process, and the log is lost: what it has seen is not drawn again."""
    path = tmp_path / "agent.db"
    script = """
        import os, sys
        import private_bandits as pb

        class Ending(pb.AdaCUCB):
            name = "ending-for-tests"
            def learn(self, state, release, step):
                print(release.values[0], flush=True)
                os._exit(0)

        path = sys.argv[1]
        if os.path.exists(path):
            agent = pb.Agent.open(path, without_log=True)
        else:
            agent = pb.Agent(Ending(1, pb.zCDP(1)), path=path)
        agent.tell(agent.ask(), 1.0)
    """
    seen = set()
    for _ in range(3):
        seen.add(run_python(script, path))
        path.with_name("agent.db-wal").unlink()
    assert len(seen) == 1


def test_a_log_of_another_agent_does_not_fit(tmp_path: Path) -> None:
    """The settings of one and the sums of another would be released with the wrong noise."""
    script = """
        import os, sys
        import private_bandits as pb
        agents = []
        for name, rho in (("one", 8.0), ("other", 0.5)):
            for told in (0, 3, 9):
                agent = pb.Agent(pb.AdaCUCB(1, pb.zCDP(rho), variant="paper"), path=f"{sys.argv[1]}/{name} {told}.db")
                for _ in range(told):
                    agent.tell(agent.ask(), 1.0)
                agents.append(agent)
        os._exit(0)  # nobody closes the files: their logs stay
    """
    run_python(script, tmp_path)
    for mine in (0, 3, 9):
        for theirs in (0, 3, 9):
            path = tmp_path / "mixed.db"
            path.write_bytes((tmp_path / f"one {mine}.db").read_bytes())
            path.with_name("mixed.db-wal").write_bytes((tmp_path / f"other {theirs}.db-wal").read_bytes())
            with pytest.raises(AgentFileInvalid):
                pb.Agent.open(path)


def test_a_number_of_levels_that_depends_on_the_budget_is_refused() -> None:
    class Deeper(pb.TreeUCB):
        @property
        def tree_levels(self) -> int:
            return 2 if self.budget.level >= 1 else 6

    with pytest.raises(InvalidInput, match="must not depend on the budget"):
        pb.Agent(Deeper(1, pb.zCDP(1.0)), max_rewards_per_person=10, unit="person")


@pytest.mark.parametrize("weight", [1.7e308, 5e-324])
def test_weights_beyond_floats_are_refused_before_the_draw(weight: float, draws: list[Any]) -> None:
    class Weighed(pb.AdaCUCB):
        def combination(self, state: Any, key: int, arrived: Any) -> Any:
            return Combination((key,), [[weight]])

    agent = pb.Agent(Weighed(1, pb.zCDP(1.0), variant="paper"))
    draws.clear()
    with pytest.raises(InvalidInput, match="the weights are too"):
        agent.tell(agent.ask(), 1.0)
    assert draws == []


def test_a_person_is_not_told_in_an_error() -> None:
    agent = pb.Agent(pb.AdaCUCB(1, pb.zCDP(1.0)), max_rewards_per_person=1)
    for person in (b"alice", 123456789, None, ""):
        with pytest.raises(InvalidInput, match="a text, got a value of type") as refused:
            agent.ask(person=person)  # type: ignore[arg-type]
        assert "alice" not in str(refused.value)
        assert "123456789" not in str(refused.value)
    agent.tell(agent.ask(person="half \ud800"), 1.0)


class Speechless(pb.AdaCUCB):
    """Cannot say what arrived, once three of its arms have rewards."""

    name = "speechless-for-tests"
    waits_for = "none"
    changes_on_arrival = True

    def dump_arrivals(self, state: Any) -> dict[str, Any]:
        if TROUBLE.arrivals > 2:
            raise ValueError("speechless")
        TROUBLE.arrivals += 1
        return super().dump_arrivals(state)


def test_draws_of_a_batch_last_although_a_later_arrival_cannot_be_written(tmp_path: Path) -> None:
    """The policy fails before the third draw of the batch. The two before it are in the file by then."""
    path = tmp_path / "agent.db"
    agent = pb.Agent(Speechless(4, pb.zCDP(1.0), variant="paper"), path=path, seed=5)
    decisions = agent.ask(4)
    TROUBLE.arrivals = 1
    with pytest.raises(ValueError, match="speechless"):
        agent.tell_many([(decision, 1.0) for decision in decisions])
    TROUBLE.arrivals = -10
    with pb.Agent.open(path) as resumed:
        assert [row.key for row in resumed.ledger] == [0, 1]
        assert resumed.open_decisions == decisions[2:]
        twin = pb.Agent(pb.AdaCUCB(4, pb.zCDP(1.0), variant="paper"), seed=5)
        twin.tell_many([(decision, 1.0) for decision in twin.ask(4)[:2]])
        assert [row.values for row in resumed.ledger] == [row.values for row in twin.ledger]
