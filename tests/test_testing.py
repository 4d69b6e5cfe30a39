"""The contract that others inherit tells right policies from broken ones."""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from examples.own_policy import MOSS, ExploreThenCommit

import private_bandits as pb
from private_bandits import agent as agents
from private_bandits import testing
from private_bandits.agent import bandit_of
from private_bandits.errors import MissingExtra
from private_bandits.mechanism.composition import Factored
from private_bandits.mechanism.factor import Factor
from private_bandits.policies import POLICIES, Combination, Policy
from private_bandits.testing import (
    BRIEF,
    PolicyAudit,
    PolicyContract,
    PolicyRules,
    audit_policy,
    check_policy,
    examples_of,
    holds,
    policy_id,
)
from tests.storage.kill_worker import HeldAgain
from tests.support import SELDOM

BUDGET = pb.zCDP(0.5)
QUICK = replace(BRIEF, scripts=1, draws=150, false_accusation=SELDOM)


class QuickAudit(PolicyAudit):
    thoroughness = QUICK


# Right policies, as a user writes them.


class Greedy(pb.IndexPolicy):
    """An index without any bonus."""

    name = "test-greedy"

    def index(self, means: Any, counts: Any, step: Any, width: float) -> Any:
        return means


@dataclass
class Seen:
    """Public state of the policy below."""

    low: float
    high: float
    totals: list[float]
    counts: list[int]
    coin: int = 0


@dataclass(frozen=True)
class Batches(Policy[Seen]):
    """From scratch: all arms leave together, in one release, each time that they have `size` rewards in all.

    Tosses coins: public ones, from the last release.
    """

    budget: Any = None
    arms: int = 2
    size: int = 4

    name = "test-batches"
    setting = "finite"
    supported_budgets = ("zCDP", "NoPrivacy")
    source = "this file"

    def __post_init__(self) -> None:
        self.check_budget()

    @classmethod
    def example(cls, budget: Any) -> Any:
        return cls(budget)

    @property
    def arm_names(self) -> tuple[str, ...]:
        return tuple("abcdef"[: self.arms])

    def start(self, low: float, high: float) -> Seen:
        return Seen(low, high, [0.0] * self.arms, [0] * self.arms)

    def recommend(self, state: Seen, waiting: Sequence[int], arrived: Mapping[int, int], step: int) -> int:
        if random.Random(f"{state.coin} {step}").random() < 0.2 or not all(state.counts):
            return step % self.arms
        return int(np.argmax(np.array(state.totals) / state.counts))

    def entry(self, state: Seen, action: int) -> tuple[int, tuple[int, ...]] | None:
        return action, (1,)

    def due(self, state: Seen, key: int, count: int, arrived: Mapping[int, int]) -> bool:
        return count + sum(n for k, n in arrived.items() if k != key) >= self.size

    def combination(self, state: Seen, key: int, arrived: Mapping[int, int]) -> Combination:
        return Combination(tuple(k for k in range(self.arms) if k == key or arrived[k]), None)

    def learn(self, state: Seen, release: pb.Release, step: int) -> None:
        for key, count, value in zip(release.keys, release.counts, release.values, strict=True):
            state.totals[key] += value
            state.counts[key] += count
        state.coin = release.number

    def estimates(self, state: Seen, delta: float) -> list[pb.Estimate]:
        pairs = zip(self.arm_names, state.totals, state.counts, strict=True)
        means = [(name, total / n if n else None, n) for name, total, n in pairs]
        return [pb.Estimate(i, name, mean, -np.inf, np.inf, n) for i, (name, mean, n) in enumerate(means)]

    def load_state(self, data: Mapping[str, Any]) -> Seen:
        return Seen(**data)


RIGHT: list[type[Policy[Any]]] = [Greedy, Batches, HeldAgain]
FEW_SCRIPTS = range(2)
"""Enough for policies that are right or broken for certain."""


@pytest.mark.parametrize("policy", examples_of(RIGHT, one_of_each_noise=True), ids=policy_id)
def test_right_policies_keep_every_rule(policy: Policy[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(testing, "SCRIPTS", FEW_SCRIPTS)
    check_policy(policy, PolicyRules)


@pytest.mark.full
@pytest.mark.parametrize("policy", examples_of(RIGHT), ids=policy_id)
def test_right_policies_keep_every_rule_at_length(policy: Policy[Any]) -> None:
    check_policy(policy, PolicyRules)


@pytest.mark.parametrize("policy", [policy.example(BUDGET) for policy in RIGHT], ids=policy_id)
def test_right_policies_are_not_accused(policy: Policy[Any]) -> None:
    check_policy(policy, QuickAudit)


@pytest.mark.full
@pytest.mark.parametrize("policy", RIGHT, ids=["greedy", "batches", "held again"])
def test_right_policies_are_not_accused_at_length(policy: type[Policy[Any]]) -> None:
    check_policy(policy, PolicyAudit)


# Broken ones. They reach for what no method is given, as a careless or a clever author might.


class _DueSeesSums(Greedy):
    """Releases sooner where rewards were good: a global leads to the agent, and to its private sums."""

    name = "test-due-sees-sums"

    def due(self, state: Any, key: int, count: int, arrived: Mapping[int, int]) -> bool:
        agent = next((agent for agent in agents._AGENTS if bandit_of(agent).public.policy is state), None)
        episode = None if agent is None else bandit_of(agent).private.episodes.get(key)
        rich = episode is not None and episode.totals.reveal()[0] > 2 * episode.grid.steps
        return rich or super().due(state, key, count, arrived)


class _RecommendsFromSums(Greedy):
    """Keeps a reference to what holds the rewards, and breaks ties with them."""

    name = "test-recommends-from-sums"

    def recommend(self, state: Any, waiting: Sequence[int], arrived: Mapping[int, int], step: int) -> int:
        episodes = arrived._episodes  # type: ignore[attr-defined]
        good = [key for key, e in episodes.items() if e.count and e.totals.reveal()[0] > 0.8 * e.count * e.grid.steps]
        return good[0] if good else super().recommend(state, waiting, arrived, step)


class _EstimatesFromRewards(Greedy):
    """Keeps the rewards themselves, found in the frame of the caller, and publishes their mean."""

    name = "test-estimates-from-rewards"

    def due(self, state: Any, key: int, count: int, arrived: Mapping[int, int]) -> bool:
        frame = sys._getframe(1)
        while frame.f_back is not None and "reward" not in frame.f_locals:
            frame = frame.f_back
        state.means[key] += 1e-9 * frame.f_locals.get("reward", 0)
        return super().due(state, key, count, arrived)


class _TakesTurns(Greedy):
    """Takes turns, and keeps whose it is in the state."""

    name = "test-takes-turns"

    def recommend(self, state: Any, waiting: Sequence[int], arrived: Mapping[int, int], step: int) -> int:
        state.choice = None if state.choice is None else (state.choice + 1) % 3
        return super().recommend(state, waiting, arrived, step)


class _LeaksArrived(Greedy):
    """Notes in the state, without being told of a release, what has arrived."""

    name = "test-leaks-arrived"

    def due(self, state: Any, key: int, count: int, arrived: Mapping[int, int]) -> bool:
        state.rounding = [float(arrived[arm]) for arm in range(3)]
        state.unseen = 0 if count > 1 else state.unseen
        return super().due(state, key, count, arrived)


class _KeepsArrived(Batches):
    """Keeps in the state, live, what is behind `arrived`: not plain data."""

    name = "test-keeps-arrived"

    def recommend(self, state: Seen, waiting: Sequence[int], arrived: Mapping[int, int], step: int) -> int:
        state.high = arrived  # type: ignore[assignment]
        return super().recommend(state, waiting, arrived, step)


class _LosesState(Batches):
    """Forgets counts when loaded."""

    name = "test-loses-state"

    def load_state(self, data: Mapping[str, Any]) -> Seen:
        return Seen(**{**data, "coin": 0})


class _HidesState(Batches):
    """Has something that counts beside what it dumps, and compares as if it had not."""

    name = "test-hides-state"

    def start(self, low: float, high: float) -> Seen:
        return _WithMemory(low, high, [0.0] * self.arms, [0] * self.arms)

    def learn(self, state: Seen, release: pb.Release, step: int) -> None:
        super().learn(state, release, step)
        assert isinstance(state, _WithMemory)
        state.memory.append(release.number)

    def recommend(self, state: Seen, waiting: Sequence[int], arrived: Mapping[int, int], step: int) -> int:
        assert isinstance(state, _WithMemory)
        return (len(state.memory) + step) % 2

    def dump_state(self, state: Seen) -> dict[str, Any]:
        return {name: value for name, value in asdict(state).items() if name != "memory"}

    def load_state(self, data: Mapping[str, Any]) -> Seen:
        return _WithMemory(**data)


@dataclass
class _WithMemory(Seen):
    memory: list[int] = field(default_factory=list, compare=False)


class _RollsDice(Greedy):
    """Random, without public coins."""

    name = "test-rolls-dice"

    def recommend(self, state: Any, waiting: Sequence[int], arrived: Mapping[int, int], step: int) -> int:
        return int.from_bytes(os.urandom(2)) % 3


class _SharesMemory(Batches):
    """What it has learned is kept on the class, where all agents meet."""

    name = "test-shares-memory"
    last: list[int] = [0]  # noqa: RUF012

    def learn(self, state: Seen, release: pb.Release, step: int) -> None:
        super().learn(state, release, step)
        self.last[0] = release.number

    def recommend(self, state: Seen, waiting: Sequence[int], arrived: Mapping[int, int], step: int) -> int:
        return self.last[0] % 2


class _OutOfRange(Greedy):
    name = "test-out-of-range"

    def recommend(self, state: Any, waiting: Sequence[int], arrived: Mapping[int, int], step: int) -> int:
        return -1


class _Unchecked(Batches):
    """Says that it serves zCDP, and takes anything."""

    name = "test-unchecked"

    def __post_init__(self) -> None:
        pass


class _ForgetsParameters(Batches):
    name = "test-forgets-parameters"

    def to_dict(self) -> dict[str, Any]:
        return {**super().to_dict(), "size": 9}


MADE_UP = {name: cls for name, cls in POLICIES.items() if cls.__module__ in (__name__, MOSS.__module__)}
for _name in MADE_UP:
    del POLICIES[_name]  # other tests find what is shipped, and nothing else


@pytest.fixture(autouse=True, scope="module")
def _known() -> Iterator[None]:
    POLICIES.update(MADE_UP)
    yield
    for name in MADE_UP:
        del POLICIES[name]


class TestExamples(PolicyContract):
    """The policies of examples/own_policy.py, as docs/own-policy.md has it."""

    policies = examples_of((MOSS, ExploreThenCommit), one_of_each_noise=True)
    thoroughness = QUICK


@pytest.mark.full
class TestExamplesAtLength(PolicyContract):
    policies = (MOSS, ExploreThenCommit)


MOVES = "test_nothing_published_moves_before_the_release_of_a_changed_reward"
ONLY_LEARN = "test_only_learn_changes_the_state"
PLAIN = "test_policy_and_state_survive_as_plain_data"
RESUMED = "test_a_resumed_agent_goes_on_as_the_old_one_would_have"
SAME = "test_the_same_moves_have_the_same_answers"
AUDIT = "test_the_audit_finds_nothing"

BROKEN: list[tuple[type[Policy[Any]], set[str]]] = [
    (_DueSeesSums, {MOVES, AUDIT}),
    (_RecommendsFromSums, {MOVES, AUDIT}),
    (_EstimatesFromRewards, {MOVES, AUDIT}),
    (_TakesTurns, {ONLY_LEARN, RESUMED}),
    (_LeaksArrived, {ONLY_LEARN, RESUMED}),
    (_KeepsArrived, {PLAIN}),
    (_LosesState, {PLAIN, RESUMED}),
    (_HidesState, {RESUMED}),
    (_RollsDice, {SAME, MOVES, RESUMED, ONLY_LEARN, AUDIT}),
    (_SharesMemory, {"test_agents_do_not_meet"}),
    (_OutOfRange, {"test_actions_are_valid"}),
    (_Unchecked, {"test_budgets_that_it_cannot_keep_are_refused"}),
    (_ForgetsParameters, {PLAIN}),
]


def failing(policy: Policy[Any], name: str) -> str:
    """What one test of the contract says, if it fails."""
    test: Callable[..., None] = getattr(PolicyContract(), name)
    try:
        for options in [{"script_seed": seed} for seed in range(6)] if name == MOVES else [{}]:
            test(policy, **options)
    except AssertionError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("policy", "name"),
    [(policy, name) for policy, names in BROKEN for name in sorted(names)],
    ids=lambda x: x if isinstance(x, str) else x.name,
)
def test_broken_policies_fail(policy: type[Policy[Any]], name: str) -> None:
    assert failing(policy.example(BUDGET), name)
    right = Greedy if issubclass(policy, Greedy) else Batches
    assert name == AUDIT or not failing(right.example(BUDGET), name)  # and it is this that they fail for


@pytest.mark.parametrize("policy", [policy for policy, _ in BROKEN], ids=lambda policy: policy.name)
def test_the_whole_contract_refuses_them_without_pytest(
    policy: type[Policy[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(testing, "SCRIPTS", FEW_SCRIPTS)
    with pytest.raises(AssertionError, match=f"{policy.name}-zCDP: test_"):
        check_policy(policy.example(BUDGET), PolicyRules)


@pytest.mark.parametrize("budget", [BUDGET, pb.NoPrivacy()])
def test_releases_that_hold_more_than_the_factor_says_are_seen(
    budget: pb.zCDP | pb.NoPrivacy, monkeypatch: pytest.MonkeyPatch
) -> None:
    def with_another_factor(*arguments: Any, **options: Any) -> pb.Agent:
        agent = pb.Agent(*arguments, **options)
        bandit_of(agent).door.composition = Factored(Factor((4, 3, 1), 4, 3))
        return agent

    monkeypatch.setattr("private_bandits.testing.Agent", with_another_factor)
    text = failing(HeldAgain.example(budget), "test_each_reward_enters_one_release_and_counts_for_what_was_played")
    assert "is in releases with multipliers [1.0, 0.75" in text


def test_the_audit_says_what_it_has_seen() -> None:
    with pytest.raises(AssertionError, match=r"broken promise(.|\n)*violation(.|\n)*reward number \d+ of \d+"):
        audit_policy(_DueSeesSums.example(BUDGET))
    with pytest.raises(AssertionError, match="dice of its own, so that worlds cannot be compared"):
        audit_policy(_RollsDice.example(BUDGET), QUICK)
    assert {part.name[0] for part in audit_policy(Greedy.example(BUDGET), QUICK).parts} == {"1", "2", "4"}


def test_a_class_stands_for_every_budget_that_it_serves() -> None:
    assert [policy_id(p) for p in examples_of([Batches])] == ["test-batches-zCDP", "test-batches-NoPrivacy"]
    assert [type(p.budget).__name__ for p in examples_of([Greedy])] == list(Greedy.supported_budgets)
    kinds = [p.budget.noise for p in examples_of([Greedy], one_of_each_noise=True)]
    assert sorted(kinds) == ["gaussian", "laplace", "none"]
    ready = Greedy.example(pb.zCDP(3))
    assert examples_of([ready], one_of_each_noise=True) == [ready]


def test_episodes_of_a_release() -> None:
    agent = pb.Agent(Batches(pb.zCDP(1)))
    for _ in range(9):
        agent.tell(agent.ask(), 1.0)
    first, second = agent.ledger
    assert holds(first, "0/1")
    assert holds(second, "0/2")
    assert not holds(second, "0/1")
    assert not holds(second, "0/12")


SUITE = """
from private_bandits import testing
from private_bandits.testing import PolicyContract, PolicyRules
from tests.test_testing import FEW_SCRIPTS, MADE_UP, QUICK, Greedy, _TakesTurns
import private_bandits as pb

testing.SCRIPTS = FEW_SCRIPTS
pb.policies.POLICIES.update(MADE_UP)

class TestRight(PolicyContract):
    policies = [Greedy.example(pb.PureDP(1))]
    thoroughness = QUICK

class TestWrong(PolicyRules):
    policies = [_TakesTurns.example(pb.zCDP(1))]

class TestNothing(PolicyContract):
    pass
"""


def test_a_suite_of_somebody_else(tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text(SUITE)
    options = ["-q", "-rA", "-n", "0", "-p", "no:cacheprovider", "-c", os.devnull, f"--rootdir={tmp_path}"]
    root = Path(__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "--continue-on-collection-errors", str(tmp_path)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(root), str(root / "src")])},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    rules = [name for name in dir(PolicyRules) if name.startswith("test_")]
    each = len(rules) - 1 + len(FEW_SCRIPTS) + 1  # one of them for every script, and the audit
    right = re.findall(r"^PASSED .*::TestRight::(.*)$", done.stdout, re.MULTILINE)
    assert len(right) == each, done.stdout
    assert {name.split("[")[0] for name in right} == {*rules, AUDIT}
    failed = re.findall(r"^FAILED .*::TestWrong::(\w+)", done.stdout, re.MULTILINE)
    assert {ONLY_LEARN, RESUMED} <= set(failed), done.stdout
    assert "TestNothing has nothing to test: give it policies = [MyPolicy]" in done.stdout
    assert not re.search("FAILED .*TestRight", done.stdout)


def test_the_module_does_not_need_pytest() -> None:
    code = "import sys; import private_bandits.testing; sys.exit('pytest' in sys.modules)"
    env = {**os.environ, "PYTHONPATH": str(Path(pb.__file__).parents[1])}
    assert subprocess.run([sys.executable, "-c", code], env=env, timeout=60, check=False).returncode == 0


def test_without_scipy_the_audit_says_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy", None)
    with pytest.raises(MissingExtra, match=r'the audit needs scipy: pip install "private-bandits\[audit\]"'):
        audit_policy(Greedy.example(BUDGET))
