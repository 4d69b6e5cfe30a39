"""With many arms: the same decisions as from a look at every arm, without that look.

The classes below recommend as the policies did when they still looked at every arm at each ask and each release.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import log, sqrt
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import private_bandits as pb
from private_bandits.errors import PolicyFailed
from private_bandits.policies import Policy, doubling, shortlist, tree_ucb
from private_bandits.policies.doubling import RETRY, DoublingState, unseen_arm
from private_bandits.policies.dp_se import EliminationState
from private_bandits.policies.shortlist import Shortlist
from private_bandits.policies.tree_ucb import TreeState
from private_bandits.policies.waiting import Waiting, foremost


def scanned_unseen_arm(released: Sequence[int], waiting: Sequence[int], step: int) -> int | None:
    """The first arm without a release that has no open decision, or is to be tried again."""
    for arm, count in enumerate(released):
        if count:
            continue
        if not waiting[arm] or (waiting[arm] < 64 and step >= RETRY * len(waiting) << waiting[arm]):
            return arm
    return None


class ScanningIndex(pb.IndexPolicy):
    """Looks at every arm, for index policies."""

    def recommend(self, state: DoublingState, waiting: Sequence[int], arrived: Mapping[int, int], step: int) -> int:
        if state.unseen:
            arm = scanned_unseen_arm(state.released, waiting, step)
            if arm is not None:
                return arm
        if state.choice is None:
            return min(range(len(waiting)), key=waiting.__getitem__)
        return state.choice

    def learn(self, state: DoublingState, release: pb.Release, step: int) -> None:
        state.unseen -= state.released[release.key] == 0
        self.take(state, release)
        seen = [arm for arm, n in enumerate(state.last) if n]
        state.choice = seen[int(self.indices(state, seen, step).argmax())]


class ScanningAdaCUCB(ScanningIndex, pb.AdaCUCB):
    """AdaC-UCB that looks at every arm."""


class ScanningAdaPUCB(ScanningIndex, pb.AdaPUCB):
    """AdaP-UCB that looks at every arm."""


class ScanningDPIMED(ScanningIndex, pb.DPIMED):
    """DP-IMED that looks at every arm."""


class ScanningDPKLUCB(ScanningIndex, pb.DPKLUCB):
    """DP-KLUCB that looks at every arm."""


class ScanningTreeUCB(pb.TreeUCB):
    """DP-UCB that looks at every arm."""

    def recommend(self, state: TreeState, waiting: Sequence[int], arrived: Mapping[int, int], step: int) -> int:
        counts = state.counts
        if not all(counts):
            arm = scanned_unseen_arm(counts, waiting, step)
            if arm is not None:
                return arm
        seen = [arm for arm, n in enumerate(counts) if n]
        if not seen:
            return min(range(len(waiting)), key=waiting.__getitem__)
        optimism = sqrt(2 * log(step))
        return max(seen, key=lambda a: state.means[a] + state.bonuses[a] + optimism * state.spreads[a])


class ScanningDPSE(pb.DPSE):
    """DP-SE that looks at every arm."""

    def recommend(self, state: EliminationState, waiting: Sequence[int], arrived: Mapping[int, int], step: int) -> int:
        if not state.plays and state.best is not None:
            return state.best
        arm = min(state.active, key=lambda a: arrived[a] + waiting[a])
        if arrived[arm] + waiting[arm] < state.plays:
            return arm
        again = 1 + (step - state.began) // (2 * len(state.active) * state.plays)
        for missed in state.active:
            if waiting[missed] < again * (state.plays - arrived[missed]):
                return missed
        return arm if state.best is None else state.best

    def entry(self, state: EliminationState, action: int) -> tuple[int, tuple[int, ...]] | None:
        return (action, (1,)) if state.plays and action in state.active else None

    def due(self, state: EliminationState, key: int, count: int, arrived: Mapping[int, int]) -> bool:
        return count >= state.plays and all(arm == key or arrived[arm] >= state.plays for arm in state.active)


def fell(waiting: Waiting, arm: int) -> None:
    """Close a decision for an arm, as an agent does."""
    waiting.fallen.add(arm)
    waiting[arm] -= 1


Pair = tuple[Policy[Any], Policy[Any]]


def _both(scanning: type[Any], own: type[Any], arms: int, budget: Any, **options: Any) -> Pair:
    return own(n_arms=arms, budget=budget, **options), scanning(n_arms=arms, budget=budget, **options)


PAIRS = {
    "adac": lambda k: _both(ScanningAdaCUCB, pb.AdaCUCB, k, pb.zCDP(0.1)),
    "adac without noise": lambda k: _both(ScanningAdaCUCB, pb.AdaCUCB, k, pb.NoPrivacy()),
    "adap": lambda k: _both(ScanningAdaPUCB, pb.AdaPUCB, k, pb.PureDP(1)),
    "adap without noise": lambda k: _both(ScanningAdaPUCB, pb.AdaPUCB, k, pb.NoPrivacy()),
    "dp-imed": lambda k: _both(ScanningDPIMED, pb.DPIMED, k, pb.PureDP(1)),
    "dp-klucb": lambda k: _both(ScanningDPKLUCB, pb.DPKLUCB, k, pb.PureDP(1)),
    "tree": lambda k: _both(ScanningTreeUCB, pb.TreeUCB, k, pb.PureDP(1), horizon=1000),
    "dp-se": lambda k: _both(ScanningDPSE, pb.DPSE, k, pb.PureDP(1), horizon=1000, epoch_factor=1e-3),
}

INDICES = [name for name in PAIRS if name not in ("dp-imed", "dp-klucb", "tree", "dp-se")]


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shortlists for a handful of arms."""
    for module in (doubling, shortlist, tree_ucb):
        monkeypatch.setattr(module, "FEW", 4)


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch, few: None) -> None:
    """Shortlists of four arms at most, and of eight with those released since."""
    made = Shortlist.__init__

    def make(self: Shortlist, columns: Any, seen: Any) -> None:
        made(self, columns, seen)
        self._size = 4
        self._clear()

    monkeypatch.setattr(Shortlist, "__init__", make)


def played_alike(agents: list[pb.Agent], steps: int, seed: int, pause: Callable[..., Any] = lambda *_: None) -> None:
    """Late, missing and given up rewards, and other plays: the same moves for all agents, which must decide alike."""
    dice, arms = random.Random(seed), len(agents[0].policy.arm_names)
    for step in range(steps):
        pause(agents, step)
        asked = dice.choice([1, 1, 2, 5, arms])
        shown = [[decision.action for decision in agent.ask(asked)] for agent in agents]
        assert shown[1:] == shown[:-1], f"step {step}"
        opened = [agent.open_decisions for agent in agents]
        while opened[0] and dice.random() < dice.choice([0.2, 0.9, 0.97]):
            place, fate = dice.randrange(len(opened[0])), dice.random()
            reward, other = dice.choice([0.0, 0.5, 1.0]), dice.randrange(arms)
            for mine, agent in zip(opened, agents, strict=True):
                decision = mine.pop(place)
                if fate < 0.15:
                    agent.give_up(decision)
                elif fate < 0.3:
                    agent.tell(decision, reward, played=other)
                elif fate < 0.4:
                    agent.tell_many([(decision, reward)])
                elif fate < 0.95:
                    agent.tell(decision, reward)
        if step % 16 == 0:
            assert all(agent.learned == agents[0].learned for agent in agents), f"step {step}"


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("arms", [1, 3, 40])
@pytest.mark.usefixtures("few")
def test_decisions_are_those_of_a_look_at_every_arm(name: str, arms: int) -> None:
    played_alike([pb.Agent(policy, seed=1) for policy in PAIRS[name](arms)], steps=120, seed=arms)


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.usefixtures("short")
def test_decisions_are_the_same_with_the_shortest_lists_and_many_decisions_given_up(name: str) -> None:
    policies = PAIRS[name](17)
    played_alike([pb.Agent(policy, seed=2, give_up_after=20) for policy in policies], steps=150, seed=3)


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.usefixtures("short")
def test_an_agent_that_is_closed_and_opened_goes_on_alike(name: str, tmp_path: Path) -> None:
    own, scanning = PAIRS[name](9)
    agents = [pb.Agent(own, seed=4, path=tmp_path / "agent.db"), pb.Agent(scanning, seed=4)]
    if own.supports_warm_start:
        log = [(arm % 5, (arm % 3) / 2) for arm in range(23)]
        assert [agent.warm_start(log) for agent in agents] == [23, 23]

    def reopen(both: list[pb.Agent], step: int) -> None:
        if step % 7 == 3:
            both[0].close()
            both[0] = pb.Agent.open(tmp_path / "agent.db")

    played_alike(agents, steps=40, seed=5, pause=reopen)
    agents[0].close()


@pytest.mark.parametrize("seed", range(30))
def test_the_unseen_arm_is_that_of_a_scan(seed: int) -> None:
    """For open decisions of an agent, which keep an order, and for a plain list, which has none."""
    dice = random.Random(seed)
    arms = dice.choice([1, 2, 7, 50])
    released, waiting = [0] * arms, Waiting(arms)
    for _ in range(600):
        arm = dice.randrange(arms)
        if dice.random() < 0.5:
            waiting[arm] += 1
        elif waiting[arm]:
            fell(waiting, arm)
        if dice.random() < 0.01:
            released[arm] += 1
        exponent = dice.choice([1, 6, 12, 18, 70])
        step = dice.randrange(1, 2**exponent)
        expected = scanned_unseen_arm(released, waiting, step)
        for counts in (waiting, list(waiting)):
            found = unseen_arm(released, counts, step)
            assert (found[0] if found is not None and found[1] else None) == expected
            if expected is None and not any(released):
                assert found == (min(range(arms), key=counts.__getitem__), False)


def test_waiting_is_a_sequence_as_policies_expect_it() -> None:
    waiting = Waiting(3)
    waiting[0] += 2
    waiting[2] += 1
    assert waiting == [2, 0, 1]
    assert (len(waiting), list(waiting), waiting[2], sum(waiting)) == (3, [2, 0, 1], 1, 3)
    assert min(range(len(waiting)), key=waiting.__getitem__) == 1


def test_an_arm_is_tried_again_with_up_to_63_open_decisions() -> None:
    for open_now, step in ((63, RETRY << 63), (63, (RETRY << 63) - 1), (64, RETRY << 64)):
        waiting = Waiting(1)
        waiting[0] = open_now
        expected = scanned_unseen_arm([0], waiting, step)
        assert unseen_arm([0], waiting, step) == (0, expected == 0)


def interrupted(call: Callable[[], Any], line: int) -> bool:
    """Run a call, with an interrupt before so many lines of waiting.py were run. Returns whether it came."""
    lines = 0

    def trace(frame: Any, event: str, argument: Any) -> Any:
        nonlocal lines
        if not frame.f_code.co_filename.endswith("waiting.py"):
            return None
        lines += event == "line"
        if lines == line and event == "line":
            raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


def test_an_interrupt_in_the_middle_of_the_search_costs_no_arm() -> None:
    """Before each of its lines: the next answer is right all the same."""
    waiting, owner = Waiting(5), object()

    def search() -> tuple[float, int] | None:
        return foremost(waiting, owner, 0, lambda: range(5), waiting.__getitem__)

    line, came = 1, 0
    for turn in range(400):
        if interrupted(search, line):
            came, line = came + 1, line + 1
        else:
            line = 1
        found = search()
        assert found is not None
        assert found == min((count, arm) for arm, count in enumerate(waiting))
        waiting[found[1]] += 1
        for arm in (turn % 5, turn * 2 % 5):
            if waiting[arm] and turn % 3:
                fell(waiting, arm)
    assert came > 100


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.usefixtures("short")
def test_the_shortlist_finds_the_largest_of_all(seed: int) -> None:
    """Numbers of which many are equal, and any arm may get new ones."""
    dice, arms, step = random.Random(seed), 40, 50
    columns = np.array(
        [[dice.choice([0.0, 1.0, 1.5]) for _ in range(arms)], [dice.choice([1.0, 2.0]) for _ in range(arms)]]
    )
    expected, seen = columns.copy(), np.ones(arms, bool)
    seen[:3] = False
    listed = Shortlist(columns, seen.copy())

    def exact(numbers: Any, step: int) -> Any:
        return numbers[0] + numbers[1] * log(step)

    for _ in range(300):
        every = np.where(seen, exact(expected, step), -np.inf)
        best = listed.best(exact, lambda numbers, first, last: exact(numbers, last), step)
        assert best == int(every.argmax())
        arm = best if dice.random() < 0.7 else dice.randrange(arms)
        expected[:, arm] = dice.choice([-2.0, 0.0, 1.0]), dice.choice([0.5, 1.0, 2.0])
        seen[arm] = True
        listed.note(arm, expected[:, arm].copy())
        step = dice.choice([step, step + 1, step + 1, step + 5, max(2, step - 1)])


def test_the_search_looks_at_few_arms_whatever_their_number() -> None:
    """A hundred arms or ten thousand: a few looks for each ask once the order is made, with arms given up between."""

    def looks(arms: int) -> float:
        waiting, dice, seen = Waiting(arms), random.Random(6), 0

        def key(arm: int) -> int:
            nonlocal seen
            seen += 1
            return waiting[arm]

        for step in range(3 * arms):
            found = foremost(waiting, waiting, 0, lambda: range(arms), key)
            assert found is not None
            waiting[found[1]] += 1
            given_up = dice.randrange(arms)
            if step % 2 and waiting[given_up]:
                fell(waiting, given_up)
        return seen / (3 * arms)

    assert looks(10_000) < 6
    assert looks(100) < 6


def release(arm: int, count: int, mean: float, noise_sd: float) -> Any:
    """A release as an agent makes it, of which policies read these numbers."""
    sizes = {"count": count, "weighted_rewards": float(count), "rounding": 1e-8 * count}
    return SimpleNamespace(key=arm, values=(mean * count,), noise_sd=noise_sd, **sizes)


@pytest.mark.parametrize("coarse", [False, True])
@pytest.mark.parametrize("name", INDICES)
def test_the_choice_is_that_of_all_indices(name: str, coarse: bool) -> None:
    """Four thousand releases of a thousand arms: with means that all differ, and with means of which many are equal."""
    policy, _ = PAIRS[name](1000)
    assert isinstance(policy, pb.IndexPolicy)
    dice, state, step = random.Random(name), policy.start(0.0, 1.0), 1000
    noise_sd = 0.0 if policy.budget.noise == "none" else 1.0
    for turn in range(4000):
        arm = turn if turn < 1000 else state.choice if dice.random() < 0.9 else dice.randrange(1000)
        assert arm is not None
        mean = dice.choice([0.0, 0.5, 1.0]) if coarse else dice.gauss(0.5, 0.3)
        policy.learn(state, release(arm, max(1, state.released[arm]), mean, noise_sd), step)
        if turn >= 1000 and dice.random() < 0.8:
            seen = [arm for arm, n in enumerate(state.last) if n]
            assert state.choice == seen[int(policy.indices(state, seen, step).argmax())], f"turn {turn}"
        step += dice.choice([1, 1, 2, 8])
    assert state.shortlist is not None


class CountingAdaCUCB(pb.AdaCUCB):
    """Counts the arms whose index it computes."""

    chooses_late = True

    def values(self, state: DoublingState, columns: Any, step: int) -> Any:
        COUNTED.append(columns.shape[1])
        return super().values(state, columns, step)


COUNTED: list[int] = []


@pytest.mark.parametrize("budget", [pb.zCDP(0.1), pb.NoPrivacy()])
def test_few_indices_are_computed_for_a_release(budget: Any) -> None:
    """Ten thousand arms, and as many releases after the first ones: a tenth of all indices at most."""
    arms = 10_000
    policy = CountingAdaCUCB(n_arms=arms, budget=budget)
    dice, state, step = random.Random(7), policy.start(0.0, 1.0), arms
    noise_sd = 0.0 if policy.budget.noise == "none" else 2.5
    for arm in range(arms):
        policy.learn(state, release(arm, 1, dice.choice([0.0, 1.0]) + dice.gauss(0.0, noise_sd), noise_sd), step)
    COUNTED.clear()
    for _ in range(2000):
        best = state.choice
        assert best is not None
        count = max(1, state.released[best])
        policy.learn(state, release(best, count, 0.5 + dice.gauss(0.0, noise_sd / count), noise_sd), step)
        step += count
    assert sum(COUNTED) < 0.1 * 2000 * arms


def test_an_index_of_ones_own_is_computed_at_each_release() -> None:
    """There it may fail, and not later."""

    class Own(pb.IndexPolicy):
        def index(self, means: Any, counts: Any, step: Any, width: float) -> Any:
            raise ZeroDivisionError

    class OwnPaper(pb.AdaPUCB):
        def index(self, means: Any, counts: Any, step: Any, width: float) -> Any:
            raise ZeroDivisionError

    class Renamed(pb.AdaPUCB):
        """Changes nothing."""

    for policy in (Own(n_arms=3, budget=pb.NoPrivacy()), OwnPaper(n_arms=3, budget=pb.NoPrivacy())):
        agent = pb.Agent(policy)
        with pytest.raises(PolicyFailed):
            agent.tell(agent.ask(), 1.0)
    assert Renamed.chooses_late
    assert not ScanningAdaCUCB.chooses_late


def test_a_state_is_plain_data_whether_or_not_its_choice_was_read() -> None:
    policy = pb.AdaCUCB(n_arms=3, budget=pb.zCDP(1))
    one, other = policy.start(0.0, 1.0), policy.start(0.0, 1.0)
    for arm in range(3):
        for state in (one, other):
            policy.learn(state, release(arm, 1, arm / 2, 0.7), step=arm + 2)
        assert one.choice is not None
    assert one == replace(other)
    assert policy.dump_state(one) == policy.dump_state(other)
    assert policy.load_state(policy.dump_state(other)) == one
    assert not hasattr(one, "chosen")
