"""Trees, and contexts that are private as well (joint DP): what breaks the promise is caught, what keeps it is not."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import private_bandits as pb
from private_bandits.agent import bandit_of
from private_bandits.audit import inside as exact
from private_bandits.audit import of_factory, of_policy, shipped
from private_bandits.audit.accounts import examine, total_of
from private_bandits.audit.evidence import Claim
from private_bandits.audit.offers import Offers
from private_bandits.audit.scenario import Scenario, play
from private_bandits.audit.script import ScriptMove, random_script
from private_bandits.audit.script_replay import replay
from private_bandits.audit.target import Target
from private_bandits.bandit import Bandit
from private_bandits.errors import InvalidInput
from private_bandits.ledger import Release
from private_bandits.mechanism.composition import Correlated, Factored, Outgoing, Tree
from private_bandits.mechanism.episode import Episode
from private_bandits.mechanism.moments import MomentScale
from private_bandits.mechanism.release import Door
from private_bandits.policies import Offer
from private_bandits.policies.contextual import STEPS
from private_bandits.policies.private_contexts import MomentsState
from tests.audit.specimens import open_decisions, per_release, running

RHO = pb.zCDP(0.5)


def _rare(policy: type[pb.AdaCOFULPrivate] = pb.AdaCOFULPrivate) -> pb.AdaCOFULPrivate:
    return policy(dimension=2, budget=RHO)


def _tree(leaves: int = 7) -> pb.ShariffSheffet:
    return pb.ShariffSheffet(dimension=2, budget=RHO, horizon=leaves)


# Contexts that get out, or count for more than was declared.


class _EndsByContext(pb.AdaCOFULPrivate):
    def choose(self, state: MomentsState, offered: Offer, step: int) -> int:
        state.seen = int(offered[0, 0] > 0)  # type: ignore[attr-defined]
        return super().choose(state, offered, step)

    def due(self, state: MomentsState, key: int, count: int, arrived: Any) -> bool:
        return bool(count >= self.dimension + state.seen)  # type: ignore[attr-defined]


class _EndsByAction(pb.AdaCOFULPrivate):
    def entry_of(self, state: MomentsState, offered: Offer, played: int) -> tuple[int, tuple[int, ...]]:
        state.seen = int(offered[played, 0] > 0)  # type: ignore[attr-defined]
        return super().entry_of(state, offered, played)

    def due(self, state: MomentsState, key: int, count: int, arrived: Any) -> bool:
        return bool(count >= self.dimension + state.seen)  # type: ignore[attr-defined]


class _ShownByChoose(pb.AdaCOFULPrivate):
    def choose(self, state: MomentsState, offered: Offer, step: int) -> int:
        state.width += float(offered[0, 0]) * 1e-9
        return super().choose(state, offered, step)


class _ShownByArrive(pb.AdaCOFULPrivate):
    def entry_of(self, state: MomentsState, offered: Offer, played: int) -> tuple[int, tuple[int, ...]]:
        state.last = super().entry_of(state, offered, played)[1]  # type: ignore[attr-defined]
        return 0, state.last  # type: ignore[attr-defined]

    def arrive(self, state: MomentsState, key: int, weight: tuple[int, ...]) -> Callable[[], None]:
        state.width += state.last[0] * 1e-9  # type: ignore[attr-defined]
        return super().arrive(state, key, weight)


class _SumByAction(pb.AdaCOFULPrivate):
    def entry_of(self, state: MomentsState, offered: Offer, played: int) -> tuple[int, tuple[int, ...]]:
        return played, super().entry_of(state, offered, played)[1]


class _LongIsRefused(pb.AdaCOFULPrivate):
    def offer(self, actions: Any) -> Offer:
        if np.linalg.norm(actions, axis=1).max() > 2:
            raise InvalidInput("an action is too long")
        return super().offer(actions)


class _RewardsOnly(MomentScale):
    @property
    def sensitivity(self) -> float:
        return 2.0  # of the sum of a r


class _MatrixOnly(MomentScale):
    @property
    def sensitivity(self) -> float:
        return math.sqrt(2) * self.kappa


def _scaled(kind: type[MomentScale], policy: pb.AdaCOFULPrivate | None = None) -> pb.Agent:
    """Sums over people in another scale than the policy's, through a door that is the same otherwise."""
    agent = pb.Agent(policy or _rare())
    bandit = bandit_of(agent)
    old, scale = bandit.door, bandit.policy.moments(0.0, 1.0)
    assert scale is not None
    other = kind(scale.dimension, STEPS, scale.low, scale.high, scale.matrix_share)
    bandit.door = Door(
        old.budget, old.reward_range, old.account, None, scale.room, factor=bandit.policy.factor, moments=other
    )
    assert bandit.door.grid == old.grid, "rewards are put on the grid of the first door"
    return agent


class _AsOffered(pb.AdaCOFULPrivate):
    def offer(self, actions: Any) -> Offer:
        return (np.asarray(actions, float) / self.unit).astype(np.int64)


class _NotShortened(MomentScale):
    def coordinates(self, action: tuple[int, ...], reward: int, steps: int) -> list[int]:
        longest = math.ceil(math.hypot(self.context_steps, *action))
        whole = MomentScale.coordinates(replace(self, context_steps=longest), action, reward, steps)
        return [round(part * (longest / self.context_steps) ** 2) for part in whole]


class _TellsInRepr(pb.Agent):
    def __repr__(self) -> str:
        bandit = bandit_of(self)
        tables = [bandit.offered_to(decision) for decision in open_decisions(bandit)]
        return f"Agent({[table.tolist() for table in tables if table is not None]})"


class _ShowsLastAction(pb.Agent):
    @property
    def last(self) -> list[int]:
        return [decision.action for decision in self.open_decisions]


# Trees that hold a person more often than they pay for.


def _not_shared() -> pb.Agent:
    """Each node has the whole budget."""
    return per_release(pb.Agent(_tree()))


def _endless(policy: Any = None) -> pb.Agent:
    """The tree goes on where it should begin anew: 20 levels on a budget for two."""
    agent = pb.Agent(policy or _tree(3))
    bandit = bandit_of(agent)
    bandit.policy = replace(policy or _tree(3), horizon=10**6)
    bandit.door.composition = Tree(bandit.policy.tree_levels)
    return agent


class _LeavesToo(Bandit):
    """Releases the leaf beside the node that it completes, and tells the ledger of the node alone."""

    leaf: Episode
    released_leaf: Any = None

    def compose(self, episode: Episode, weight: tuple[int, ...], reward: int) -> Outgoing:
        self.leaf = episode.with_one_more(weight, reward)
        return super().compose(episode, weight, reward)

    def release(self, whole: Outgoing) -> Release:
        door, leaf = self.door, self.leaf
        if len(whole.parts) > 1:
            noise = door.noise.calibrate("gaussian", door.level, leaf.sensitivity_l2, len(leaf.weight_sums), 0)
            self.released_leaf = noise(leaf.totals)
        return super().release(whole)


class _Again(Bandit):
    """Releases the oldest node once more with every reward, under a name of its own."""

    def release(self, whole: Outgoing) -> Release:
        kept = self.private.episodes[whole.key].kept
        if kept:
            once_more = kept[0].alone()
            once_more.key = 1000 + len(self.door.account)
            self.door.release(once_more)
        return super().release(whole)


# Releases that hold people again, with too little noise for it.


class _UnitForgotten(Correlated):
    """Sums are multiplied by the unit of the factor, and what a person moves them by is not."""

    @property
    def sensitivity_l2(self) -> int:
        return self._moved_by // self.factor.unit


class _ForWeightsOfOne(Correlated):
    """Noise as if a reward were all that a person adds."""

    @property
    def sensitivity_l2(self) -> int:
        return self.factor.unit * self.grid.steps


def _composed(kind: type[Correlated]) -> pb.Agent:
    class Composed(Factored):
        def compose(self, newest: Episode) -> Correlated:
            return kind(newest, self.factor)

    agent = pb.Agent(_rare())
    door = bandit_of(agent).door
    assert door.composition.factor is not None
    door.composition = Composed(door.composition.factor)
    return agent


BROKEN: dict[str, tuple[Callable[[], pb.Agent], str]] = {
    "episode ends by what was offered": (lambda: pb.Agent(_rare(_EndsByContext)), ""),
    "episode ends by what was played": (lambda: pb.Agent(_rare(_EndsByAction)), ""),
    "choose puts the context into the state": (lambda: pb.Agent(_rare(_ShownByChoose)), exact.MOVES),
    "arrive puts the context into the state": (lambda: pb.Agent(_rare(_ShownByArrive)), exact.MOVES),
    "a sum for each action": (lambda: pb.Agent(_rare(_SumByAction)), ""),
    "long contexts are refused": (lambda: pb.Agent(_rare(_LongIsRefused)), ""),
    "repr tells contexts": (lambda: _TellsInRepr(_rare()), exact.MOVES),
    "everyone sees what was recommended": (lambda: _ShowsLastAction(_rare()), exact.MOVES),
    "sensitivity of rewards only": (lambda: _scaled(_RewardsOnly), "a sum moves by more"),
    "sensitivity of the matrix only": (lambda: _scaled(_MatrixOnly), "a sum moves by more"),
    "contexts of any length": (lambda: _scaled(_NotShortened, _rare(_AsOffered)), "a sum moves by more"),
    "tree: whole budget for each node": (_not_shared, "one person costs more"),
    "tree: does not begin anew": (_endless, "one person costs more"),
    "tree: leaves are not in the ledger": (lambda: running(_LeavesToo)(_tree()), "one draw per release"),
    "factor: whole budget for each release": (lambda: per_release(pb.Agent(_rare())), "one person costs more"),
    "factor: the unit is forgotten": (lambda: _composed(_UnitForgotten), "a sum moves by more"),
    "factor: noise for weights of one": (lambda: _composed(_ForWeightsOfOne), "a sum moves by more"),
    "tree: a node twice": (lambda: running(_Again)(_tree()), "one person costs more"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_agents_are_caught(name: str) -> None:
    make, title = BROKEN[name]
    found = exact.examine(of_factory(make, RHO), scripts=2)
    assert any(title in flaw.title for flaw in found.flaws), found


KEPT = {
    "rare": _rare(),
    "small tree": _tree(3),
    "large tree": _tree(1000),
    "one dimension": pb.AdaCOFULPrivate(dimension=1, budget=RHO, matrix_share=0.2, context_norm=7.0),
}
SHORTLY = {("rare", 0.0), ("small tree", -3.0), ("large tree", 0.0), ("one dimension", -3.0)}


@pytest.mark.parametrize(
    ("policy", "reward_range"),
    [
        pytest.param(policy, (low, 1.0), id=f"{name} {low}", marks=[] if (name, low) in SHORTLY else [pytest.mark.full])
        for name, policy in KEPT.items()
        for low in (0.0, -3.0)
    ],
)
def test_right_agents_are_not_accused(policy: Any, reward_range: tuple[float, float]) -> None:
    found = exact.examine(of_policy(policy, reward_range), scripts=1)
    assert not found.flaws
    assert not found.blind
    assert 0.2 < found.worst <= 1  # of a large tree few levels are reached by so few scripts


@pytest.mark.parametrize("name", ["linpriv", "linpriv-shared", "shariff-sheffet", "adac-oful-private"])
def test_the_dearest_person_costs_the_whole_budget(name: str) -> None:
    """All levels of a tree, at the largest distance; if it were less, replays were blind or noise was too large."""
    target = next(t for t in shipped(name) if t.claim)
    rewards = 60 if name == "adac-oful-private" else 9  # with so many, all releases that hold an early person are there
    tells = [move for _ in range(rewards) for move in (ScriptMove("ask"), ScriptMove("tell", 0, 1.0, 1))]
    base = replay(target, tuple(tells), {}, None)
    costs = []
    for change in exact.changes_of(target, base, 99, random.Random(1)):
        other = replay(target, tuple(tells), change, [d.answer for d in base.draws])
        costs.append(exact.compare(target, base, other, change, found := exact.Sensitivity()))
        assert not found.flaws
    assert 1 - 1e-4 < max(costs) <= 1  # what rounding to the grid may do is in the noise too


def test_only_what_the_changed_person_is_recommended_is_left_out() -> None:
    target = of_policy(_rare())
    script = random_script(random.Random(3), 3, 40)
    base = replay(target, script, {}, None)
    recommended = [shown for shown in base.shown if shown.decision == 2]
    assert recommended
    assert len(base.seen_by_others({2})) == len(base.shown) - len(recommended)
    assert base.seen_by_others(()) == [shown.text for shown in base.shown]


def test_decisions_that_were_given_up_are_changed_too() -> None:
    target = of_policy(_rare())
    script = (
        ScriptMove("ask"),
        ScriptMove("ask"),
        ScriptMove("ask"),
        ScriptMove("give up", 1),
        ScriptMove("tell", 0, 1.0),
        ScriptMove("tell", 0, 1.0),
    )
    base = replay(target, script, {}, None)
    assert list(base.told) == [0, 2]
    assert {i for change in exact.changes_of(target, base, 99, random.Random(1)) for i in change} == {0, 1, 2}


def test_where_contexts_are_public_only_rewards_change() -> None:
    target = of_policy(pb.AdaCOFUL(dimension=2, budget=RHO))
    base = replay(target, random_script(random.Random(3), 3, 40), {}, None)
    every = [one for change in exact.changes_of(target, base, 99, random.Random(1)) for one in change.values()]
    assert len(every) == len(base.told) + 1
    assert all(one.offered is None and not one.turn for one in every)


def test_other_peoples_contexts_are_as_far_away_as_sums_can_move() -> None:
    offers = Offers(_rare())
    furthest, mirrored, *_ = offers.instead(4)
    scale = offers.policy.moments(-1.0, 1.0)
    steps = 2**24
    rows = offers(4)[[0, 2]]  # the others: row 1 is short
    for row, other, reward in [(rows[0], furthest[0], steps), (rows[1], mirrored[2], 0)]:
        one, two = (tuple((a / offers.policy.unit).astype(int).tolist()) for a in (row, other))
        moved = np.subtract(scale.coordinates(one, steps, steps), scale.coordinates(two, reward, steps))
        assert np.linalg.norm(moved) == pytest.approx(steps * scale.sensitivity, rel=1e-5)


# The ledger of a tree.


def _told(agent: pb.Agent, rewards: int) -> pb.Ledger:
    for step in range(rewards):
        agent.tell(agent.ask(actions=Offers(agent.policy)(step)), 1.0)
    return agent.ledger


@pytest.mark.parametrize(
    "policy", [_tree(), pb.LinPrivShared(dimension=2, budget=RHO, horizon=7)], ids=["joint", "linear"]
)
def test_the_total_of_a_tree_is_recomputed_from_its_nodes(policy: Any) -> None:
    for rewards, share in [(1, 1 / 3), (2, 2 / 3), (4, 1.0), (20, 1.0)]:
        ledger = _told(pb.Agent(policy), rewards)
        total, flaws = examine(ledger, Claim("zCDP", 0.5))
        assert total == pytest.approx(0.5 * share, rel=1e-9)
        assert total <= ledger.total <= 0.5
        assert not flaws


def test_the_ledger_of_a_tree_tells_when_too_much_was_spent() -> None:
    shared = pb.LinPrivShared(dimension=2, budget=RHO, horizon=3)
    for make, total in [(_not_shared, 1.5), (_endless, 1.0), (lambda: _endless(shared), 1.0)]:
        ledger = _told(make(), 8)
        assert total_of(ledger, Claim("zCDP", 0.5)) == pytest.approx(total, rel=1e-9)
        assert [flaw.title for flaw in examine(ledger, Claim("zCDP", 0.5))[1]] == ["more was spent than promised"]


# From outside.


def test_the_view_leaves_out_what_the_person_of_the_secret_is_recommended() -> None:
    scenario = Scenario(steps=6, secret=3, levels=(0.0, 1.0, -1.0), batch=2, looks=2)
    private, public = of_policy(_rare()), of_policy(pb.AdaCOFUL(dimension=2, budget=RHO))
    assert len(play(private, scenario, 1.0, look=False)[0]) == 7
    assert len(play(public, scenario, 1.0, look=False)[0]) == 8


def _seeded(secret_context: bool) -> Target:
    """Without noise, so that the two worlds can be compared."""
    policy = pb.AdaCOFULPrivate(dimension=2, budget=pb.NoPrivacy())
    return replace(of_policy(policy), private_contexts=secret_context)


def test_the_person_of_the_secret_is_offered_something_else() -> None:
    scenario = Scenario(steps=2, secret=0, levels=(0.0, 0.0, 0.0), looks=0)
    low, high = (play(_seeded(True), scenario, world, look=True)[1] for world in (0.0, 1.0))
    matrix = [name for name in low if name.startswith("ledger/") and name[-2:] in ("/0", "/1", "/2")]
    assert any(low[name] != high[name] for name in matrix)
    low, high = (play(_seeded(False), scenario, world, look=True)[1] for world in (0.0, 1.0))
    assert all(low[name] == high[name] for name in matrix)


class _TellsTheNext(pb.AdaCOFULPrivate):
    """What is recommended depends on the context of the one before, and on nothing else."""

    def choose(self, state: MomentsState, offered: Offer, step: int) -> int:
        before = getattr(state, "before", 0)
        state.before = int(offered[0, 0] > 0)  # type: ignore[attr-defined]
        return before


def test_a_leak_of_contexts_is_seen_from_outside() -> None:
    target = of_policy(_rare(_TellsTheNext))
    every = [Scenario(steps=9, secret=secret, levels=(0.5, 0.5, 0.5), looks=2) for secret in range(9)]
    low, high = ([play(target, one, world, look=False) for one in every] for world in (0.0, 1.0))
    assert low != high
    assert all(len(actions) == 10 for actions, _ in low + high)
