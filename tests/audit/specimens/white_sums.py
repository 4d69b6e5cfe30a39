"""White specimens that are broken in which rewards are in a sum, and when it is released."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any

import private_bandits as pb
from private_bandits.bandit import Bandit, Told
from private_bandits.ledger import Ledger, Release
from private_bandits.mechanism.composition import Outgoing
from private_bandits.mechanism.episode import Episode, HiddenTotals
from private_bandits.mechanism.release import Door
from private_bandits.mechanism.rewards import RewardRange
from private_bandits.policies.doubling import DoublingState
from private_bandits.state import Settings
from tests.audit.specimens.listing import StrPath, specimen
from tests.audit.specimens.white_correct import _AnyoneAgent
from tests.audit.specimens.white_parts import _choose_again, _Keeping, _rewritten, _with_door, running, small_policy


class _Eager(pb.AdaCUCB):
    def due(self, state: DoublingState, key: int, count: int, arrived: Any) -> bool:
        return super().due(state, key, count, arrived) or getattr(self, "rich", False)


class _EndsWhenRich(Bandit):
    def take(self, told: Told) -> pb.errors.PrivateBanditsError | None:
        object.__setattr__(self.policy, "rich", _sum_with(self, told) >= 2 * self.door.grid.steps)
        return super().take(told)


def _sum_with(bandit: Bandit, told: Told) -> int:
    """The sum that a reward goes into, with the reward, in steps of the grid."""
    _, played, reward = told
    episode = bandit.private.episodes.get(played)
    return reward + (episode.totals.reveal()[0] if episode else 0)


@specimen(cost=math.inf)
def make_white_ends_when_rich(seed: int | None = None) -> pb.Agent:
    """An episode ends as soon as its rewards sum to two, whose time everybody sees: infinite."""
    return running(_EndsWhenRich)(small_policy(kind=_Eager), seed=seed)


class _CountsTwice(Bandit):
    last: tuple[tuple[int, ...], int] | None = None

    def compose(self, episode: Episode, weight: tuple[int, ...], reward: int) -> Outgoing:
        self.last = weight, reward
        return super().compose(episode, weight, reward)

    def release(self, whole: Outgoing) -> Release:
        row = super().release(whole)
        if self.last is not None:
            self.private.episodes[whole.key].add(*self.last)
            self.last = None
        return row


@specimen(cost=1.0, hard=True)
def make_white_reward_in_two_episodes(seed: int | None = None) -> pb.Agent:
    """The last reward of each episode is the first of the next one too: 2 rho for it."""
    return running(_CountsTwice)(small_policy(), seed=seed)


class _NeverForgets(_Keeping):
    def release(self, whole: Outgoing) -> Release:
        row = super().release(whole)
        full = self.kept[whole.key]
        self.private.episodes[whole.key] = Episode.load(full.dump() | {"number": full.number + 1}, full.grid)
        return row


@specimen(rho=0.1, cost=math.inf, hard=True)
def make_white_cumulative_uncharged() -> pb.Agent:
    """Each release holds all rewards of the arm so far and is charged as one: rho times the number of releases."""
    return running(_NeverForgets)(small_policy(0.1))


class _HonestRowsDoor(Door):
    def release(self, episode: Outgoing) -> Release:
        row = super().release(episode)
        covered = {f"{episode.key}/{i}": 1.0 for i in range(1, int(re.split("[/-]", episode.label)[-1]) + 1)}
        return _rewritten(self, replace(row, episodes=covered))


class _SkippingLedger(Ledger):
    @property
    def total(self) -> float:
        return max((row.cost for row in self), default=0.0)


class _TotalSkips(pb.Agent):
    bandit_type = _NeverForgets

    @property
    def ledger(self) -> Ledger:
        found = super().ledger
        return _SkippingLedger(found.rows, found.opening)


@specimen(cost=math.inf, hard=True)
def make_white_total_skips_rows() -> pb.Agent:
    """Cumulative sums whose rows say so, under a total that counts the dearest row only: rho a release."""
    return _with_door(_TotalSkips(small_policy()), _HonestRowsDoor)


class _RoundsSum(Bandit):
    def release(self, whole: Outgoing) -> Release:
        assert isinstance(whole, Episode)
        steps = whole.grid.steps
        whole.totals = HiddenTotals([round(whole.totals.reveal()[0] / steps) * steps])
        return super().release(whole)


@specimen(cost=2.0, hard=True)
def make_white_rounded_after_sum() -> pb.Agent:
    """The sum, not each reward, is rounded to whole rewards: one reward can move it by two (0.5 -> 0, 1.5 -> 2).

    4 rho, but only where the other rewards sum to something and a half.
    """
    return running(_RoundsSum)(small_policy())


class _NoClip(Bandit):
    def __init__(self, settings: Settings, *parts: Any) -> None:
        bounds = settings.reward_range
        super().__init__(replace(settings, reward_range=_Unclipped(bounds.low, bounds.high)), *parts)


class _Unclipped(RewardRange):
    def to_grid(self, reward: Any, grid: int) -> int:
        super().to_grid(reward, grid)  # refuses what is no number
        return round(grid * (float(reward) - self.low) / self.width)


@specimen(cost=math.inf, shows="rewards out of range")
def make_white_no_clip(path: StrPath | None = None, seed: int | None = None) -> pb.Agent:
    """Rewards are not clipped: one of 100 moves the sum by 100. Infinite; none where rewards stay in [0, 1]."""
    return running(_NoClip)(small_policy(), path=path, seed=seed)


class _GivesUpBad(pb.Agent):
    def tell(self, decision: pb.Decision | str, reward: float, *, played: int | str | None = None) -> None:
        if reward < 0.25:
            self.give_up(decision)
        else:
            super().tell(decision, reward, played=played)


@specimen(cost=math.inf)
def make_white_gives_up_bad(path: StrPath | None = None, seed: int | None = None) -> pb.Agent:
    """A reward below 0.25 counts as one that never came, which shows in when sums are released: infinite."""
    return _GivesUpBad(small_policy(), path=path, seed=seed)


class _LateEnters(Bandit):
    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self.released_at: dict[int, int] = {}

    def take(self, told: Told) -> pb.errors.PrivateBanditsError | None:
        decision, played, reward = told
        if decision.number > self.released_at.get(played, 0):
            return super().take(told)
        self.give_up(decision.id)
        state = self.public.policy
        state.means[played] += reward / self.door.grid.steps / state.last[played]
        _choose_again(self)
        return None

    def learn(self, row: Release) -> None:
        super().learn(row)
        self.released_at[row.key] = self.public.asked


@specimen(cost=math.inf, shows="late rewards")
def make_white_late_reward_enters_release(seed: int | None = None) -> pb.Agent:
    """A reward of a decision older than its arm's last release goes into the released mean, raw: infinite."""
    return running(_LateEnters)(small_policy(), seed=seed)


class _TakesTwice(Bandit):
    def take(self, told: Told) -> pb.errors.PrivateBanditsError | None:
        refused = super().take(told)
        if refused is None:
            decision = told[0]
            self.records.reopened(decision, None)
            self.public.waiting[decision.action] += 1
        return refused


@specimen(cost=math.inf, shows="telling twice")
def make_white_takes_twice(seed: int | None = None) -> pb.Agent:
    """A decision stays open when its reward is told: told k times it counts k times, k^2 rho. None if told once."""
    return running(_TakesTwice)(small_policy(), seed=seed)


class _Peeks(Bandit):
    def decide(self, person: str | None, offered: Any) -> pb.Decision:
        sums = {k: e.totals.reveal()[0] / e.count for k, e in self.private.episodes.items() if e.count > 1}
        if sums:
            self.public.policy.choice = max(sums, key=sums.__getitem__)
        return super().decide(person, offered)


@specimen(cost=math.inf)
def make_white_peeks(seed: int | None = None) -> pb.Agent:
    """The arm with the best mean of rewards not released yet is recommended: infinite."""
    return running(_Peeks)(small_policy(arms=3), seed=seed)


class _NobodyCounted(Bandit):
    def take(self, told: Told) -> pb.errors.PrivateBanditsError | None:
        decision, played, reward = told
        return super().take((decision._replace(person=None), played, reward))


class _NoLimit(_AnyoneAgent):
    bandit_type = _NobodyCounted


@specimen(cost=math.inf, shows="person")
def make_white_no_person_limit(path: StrPath | None = None) -> pb.Agent:
    """The limit of two rewards a person is not kept: k rewards of one cost k^2 rho/4, not rho.

    One reward costs rho/4, as it should; what is broken is the promise per person.
    """
    return _NoLimit(small_policy(), max_rewards_per_person=2, unit="person", path=path)
