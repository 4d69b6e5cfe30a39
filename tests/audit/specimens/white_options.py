"""White specimens that are broken in their options: a limit for people, decisions that run out of time, files."""

from __future__ import annotations

import math
from typing import Any

import private_bandits as pb
from private_bandits.bandit import Bandit, Told
from tests.audit.specimens.listing import StrPath, correct, specimen
from tests.audit.specimens.white_correct import _AnyoneAgent
from tests.audit.specimens.white_parts import _open_sums, open_decisions, running, small_policy


class _CountsGoodOnes(Bandit):
    def take(self, told: Told) -> pb.errors.PrivateBanditsError | None:
        refused = super().take(told)
        decision, _, reward = told
        if refused is None and reward < self.door.grid.steps / 2 and decision.person is not None:
            self.records.count_rewards_of(decision.person, -1)
        return refused


class _LimitByReward(_AnyoneAgent):
    bandit_type = _CountsGoodOnes


@specimen(cost=math.inf, shows="person")
def make_white_limit_by_reward() -> pb.Agent:
    """Only rewards above 0.5 count for a person's limit, so that what is dropped later tells them: infinite."""
    return _LimitByReward(small_policy(), max_rewards_per_person=1)


class _NeverSpread(Bandit):
    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self.people.would_meet = lambda key, others: False  # type: ignore[method-assign]


@specimen(cost=1.5, shows="person")
def make_white_people_not_spread() -> pb.Agent:
    """The noise is for rewards of a person in different episodes, and all of them are taken into one: 3 times 0.5."""
    policy = pb.AdaCUCB(2, pb.zCDP(0.5), variant="paper")
    limits: dict[str, Any] = {"max_rewards_per_person": 3, "one_reward_per_episode": True}
    return running(_NeverSpread)(policy, unit="person", **limits)


@correct(rho=0.5)
def make_white_people_spread() -> pb.Agent:
    """A second reward of a person in an open episode is over the limit, and the noise is for that."""
    policy = pb.AdaCUCB(2, pb.zCDP(0.5), variant="paper")
    return pb.Agent(policy, unit="person", max_rewards_per_person=3, one_reward_per_episode=True)


class _ExpiresByReward(Bandit):
    def decide(self, person: str | None, offered: Any) -> pb.Decision:
        newest = super().decide(person, offered)
        if self.settings.give_up_after is not None and sum(_open_sums(self)) > 0.75:
            for older in open_decisions(self)[:-1]:
                self.give_up(older.id)
        return newest


@specimen(cost=math.inf, shows="decisions that run out of time")
def make_white_expires_by_reward(give_up_after: int | None = None) -> pb.Agent:
    """With give_up_after, open decisions run out of time at once where the open sums are high: infinite."""
    return running(_ExpiresByReward)(small_policy(), give_up_after=give_up_after)


class _DoublesAtOpen(Bandit):
    def resume(self, state: Any, learned: int) -> None:
        super().resume(state, learned)
        for episode in self.private.episodes.values():
            episode.totals.add(episode.totals.copy())


@specimen(cost=math.inf, shows="restart")
def make_white_sums_doubled_at_open(path: StrPath | None = None) -> pb.Agent:
    """A restart counts the open sums twice: 4 rho after one restart. None without a path."""
    return running(_DoublesAtOpen)(small_policy(), path=path)


class _FullAtOpen(Bandit):
    def resume(self, state: Any, learned: int) -> None:
        super().resume(state, learned)
        waiting = open_decisions(self)
        if sum(_open_sums(self)) > 0.75 and waiting:
            self.give_up(waiting[0].id)
            self.unfinished = False  # it is written with the next call


@specimen(cost=math.inf, shows="restart")
def make_white_gives_up_at_open(path: StrPath | None = None) -> pb.Agent:
    """A restart gives the oldest open decision up where the open sums are high: infinite. None without a path."""
    return running(_FullAtOpen)(small_policy(), path=path)
