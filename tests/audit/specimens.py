"""Specimens for the privacy audit: agents that keep their promise, and agents that break it in one known way.

White specimens are built on this package's own agent, door and policy; black ones are small agents of their own, most
with `ask` and `tell` only, on the standard library's random numbers (or numpy's). Each factory `make_<name>` can be
called without arguments; its docstring names the flaw and the true cost. `SPECIMENS` lists them all.

Costs are per reward, in rho of zCDP, rewards in [0, 1], with the neighbours and the adversary of docs/guarantees.md:
every other reward, the action played and the order of tells are the adversary's choice.
"""

from __future__ import annotations

import inspect
import json
import math
import os
import random
import re
import time
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np

import private_bandits as pb
from private_bandits.agent import bandit_of
from private_bandits.bandit import Bandit, LoggedReward, Told
from private_bandits.budget import NoiseKind
from private_bandits.ledger import Account, Ledger, Release, rewards_in
from private_bandits.mechanism.composition import Combined, Correlated, Factored, Outgoing
from private_bandits.mechanism.episode import Episode, HiddenTotals
from private_bandits.mechanism.factor import Factor, square_root
from private_bandits.mechanism.noise import ExactNoise, Mechanism
from private_bandits.mechanism.release import Door
from private_bandits.mechanism.rewards import RewardRange
from private_bandits.policies.doubling import DoublingState
from private_bandits.state import OpenDecision, Settings
from private_bandits.storage.sqlite import SqliteStore

StrPath = str | os.PathLike[str]
Factory = TypeVar("Factory", bound=Callable[..., Any])
Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Specimen:
    """An agent to audit, and what an audit should find.

    path: "module:function" of the factory. rho: what is claimed, per reward.
    cost: the true rho per reward; infinite where nothing bounds it; a lower bound where `why` says so.
    shows: where the flaw can be seen ("actions" where asks and tells are enough); "" for those without a flaw.
    hard: broken, but so little of it shows in actions that statistics of actions alone may well miss it.
    """

    name: str
    factory: Callable[..., Any]
    path: str
    broken: bool
    group: Literal["white", "black"]
    rho: float
    cost: float
    shows: str
    hard: bool
    why: str


SPECIMENS: dict[str, Specimen] = {}


def specimen(
    *, rho: float = 0.5, cost: float | None, shows: str = "actions", hard: bool = False
) -> Callable[[Factory], Factory]:
    """Enter a factory into the list. Without a cost of its own it keeps its promise."""

    def enter(factory: Factory) -> Factory:
        name = factory.__name__.removeprefix("make_")
        SPECIMENS[name] = Specimen(
            name=name,
            factory=factory,
            path=f"tests.audit.specimens:{factory.__name__}",
            broken=cost is not None,
            group="white" if name.startswith("white") else "black",
            rho=rho,
            cost=rho if cost is None else cost,
            shows="" if cost is None else shows,
            hard=hard,
            why=" ".join(inspect.cleandoc(factory.__doc__ or "").split()),
        )
        return factory

    return enter


def correct(*, rho: float = 0.5) -> Callable[[Factory], Factory]:
    """Enter the factory of an agent that keeps its promise."""
    return specimen(rho=rho, cost=None)


# ---------------------------------------------------------------------------------------------------------------------
# A. White specimens.


def small_policy(rho: float = 0.5, arms: int = 2, kind: type[pb.AdaCUCB] = pb.AdaCUCB) -> pb.AdaCUCB:
    """The simplest there is: every release by itself, and forgotten with the next."""
    return kind(n_arms=arms, budget=pb.zCDP(rho), beta=1, variant="paper")


@cache
def running(machine: type[Bandit]) -> type[pb.Agent]:
    """Agents that run this state machine."""
    return type(f"{machine.__name__}Agent", (pb.Agent,), {"bandit_type": machine})


def _with_noise(source: ExactNoise, rho: float = 0.5, arms: int = 2) -> pb.Agent:
    """An agent whose door takes its noise from elsewhere."""
    agent = pb.Agent(small_policy(rho, arms))
    bandit_of(agent).door.noise = source
    return agent


def _with_door(agent: pb.Agent, door: type[Door]) -> pb.Agent:
    """An agent with another door for the same budget."""
    bandit, policy = bandit_of(agent), agent.policy
    old = bandit.door
    bandit.door = door(old.budget, old.reward_range, old.account, None, policy.weight_room, factor=policy.factor)
    assert bandit.door.grid == old.grid, "rewards are put on the grid of the first door"
    return agent


def _rewritten(door: Door, row: Release) -> Release:
    """Have the ledger say this of the release, and the account count it so. For doors that do it at each release."""
    rows: list[Release] = vars(door).setdefault("rewritten", [])
    rows.append(row)
    door.account = Account(rows)
    return row


def _choose_again(bandit: Bandit) -> None:
    """What the policy's learn does after a release, with the means as they stand."""
    state: DoublingState = bandit.public.policy
    seen = [a for a, n in enumerate(state.last) if n]
    if seen:
        counts, means = np.array([state.last[a] for a in seen], float), np.array([state.means[a] for a in seen])
        policy: pb.AdaCUCB = bandit.policy  # type: ignore[assignment]
        index = policy.index(means, counts, bandit.public.asked + 1, state.high - state.low)
        state.choice = seen[int(index.argmax())]


def _open_sums(bandit: Bandit) -> list[float]:
    return [e.totals.reveal()[0] / e.grid.steps for e in bandit.private.episodes.values()]


def open_decisions(bandit: Bandit) -> list[OpenDecision]:
    """Oldest first."""
    every = (bandit.records.numbered(number) for number in range(1, bandit.public.asked + 1))
    return [decision for decision in every if decision is not None]


class _Keeping(Bandit):
    """Keeps the raw sums that it has released."""

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self.kept: dict[int, Episode] = {}

    def release(self, whole: Outgoing) -> Release:
        assert isinstance(whole, Episode)
        self.kept[whole.key] = whole
        return super().release(whole)

    def draw_anew(self) -> None:
        door, state = self.door, self.public.policy
        for key, full in self.kept.items():
            noise = door.noise.calibrate("gaussian", door.level, full.sensitivity_l2, 1, len(door.account) + 1)
            state.means[key] = noise(full.totals)[0] / full.grid.steps / full.count
        _choose_again(self)


class _KeepingAgent(pb.Agent):
    bandit_type = _Keeping

    @property
    def _keeping(self) -> _Keeping:
        bandit = bandit_of(self)
        assert isinstance(bandit, _Keeping)
        return bandit

    def _raw_means(self) -> dict[int, float]:
        kept = self._keeping.kept
        return {key: full.totals.reveal()[0] / full.grid.steps / full.count for key, full in kept.items()}


# Correct ones.


@correct()
def make_white_plain(path: StrPath | None = None, seed: int | None = None) -> pb.Agent:
    """Correct: the package's own AdaC-UCB with two arms."""
    return pb.Agent(small_policy(), path=path, seed=seed)


@correct(rho=0.1)
def make_white_small_budget(path: StrPath | None = None, seed: int | None = None) -> pb.Agent:
    """Correct: the package's own AdaC-UCB with four arms and rho = 0.1."""
    return pb.Agent(small_policy(0.1, arms=4), path=path, seed=seed)


@correct()
def make_white_pure(path: StrPath | None = None, seed: int | None = None) -> pb.Agent:
    """Correct: AdaP-UCB with Laplace noise, epsilon = 1, which implies rho = 0.5."""
    return pb.Agent(pb.AdaPUCB(n_arms=2, budget=pb.PureDP(1.0), beta=1), path=path, seed=seed)


class _Sampling(pb.AdaCUCB):
    """Adds randomness of its own to released means at every look."""

    def recommend(self, state: DoublingState, waiting: Any, arrived: Any, step: int) -> int:
        if state.choice is None or state.unseen:
            return super().recommend(state, waiting, arrived, step)
        released = zip(state.means, state.noise_sd, state.last, strict=True)
        drawn = [random.gauss(mean, sd + 0.5 / math.sqrt(n)) for mean, sd, n in released]
        return drawn.index(max(drawn))


@correct()
def make_white_thompson_on_releases() -> pb.Agent:
    """Correct: every ask draws anew around the released means, which is post-processing of releases."""
    return pb.Agent(small_policy(kind=_Sampling))


class _Weighted(pb.AdaCUCB):
    """Sums each reward with weight three; the sensitivity, and so the noise, is three times as large."""

    def entry(self, state: DoublingState, action: int) -> tuple[int, tuple[int, ...]]:
        return action, (3,)

    def learn(self, state: DoublingState, release: Release, step: int) -> None:
        super().learn(state, replace(release, values=(release.values[0] / 3,), noise_sd=release.noise_sd / 3), step)


@correct(rho=1.0)
def make_white_weight_three() -> pb.Agent:
    """Correct: rewards enter with weight three, and the noise is calibrated to that."""
    return pb.Agent(small_policy(1.0, kind=_Weighted))


class _AnyoneAgent(pb.Agent):
    """Takes an ask without a person as that of a new one."""

    def ask(self, n: Any = None, *, actions: Any = None, person: str | None = None) -> Any:
        return super().ask(n, actions=actions, person=person or f"somebody {bandit_of(self).public.asked}")


@correct()
def make_white_person(path: StrPath | None = None) -> pb.Agent:
    """Correct: two rewards a person at most, and rho = 0.5 for both of them together (0.125 for one)."""
    return _AnyoneAgent(small_policy(), max_rewards_per_person=2, unit="person", path=path)


# Broken: when noise is drawn, and how much of it.


class _RedrawAtAsk(_Keeping):
    def decide(self, person: str | None, offered: Any) -> pb.Decision:
        self.draw_anew()
        return super().decide(person, offered)


@specimen(cost=math.inf)
def make_white_redraw_at_ask() -> pb.Agent:
    """Every ask draws the noise of the last sums anew: rho times the number of asks, without bound."""
    return running(_RedrawAtAsk)(small_policy())


class _RedrawAtEstimates(_KeepingAgent):
    def estimates(self, delta: float = 0.05) -> list[pb.Estimate]:
        self._keeping.draw_anew()
        return super().estimates(delta)


@specimen(cost=math.inf, shows="estimates")
def make_white_redraw_at_estimates() -> pb.Agent:
    """Every look at the estimates draws the noise anew: rho times the number of looks, without bound."""
    return _RedrawAtEstimates(small_policy())


class _HalfSensitivity(ExactNoise):
    def calibrate(self, kind: NoiseKind, level: float, sensitivity: int, dimension: int, number: int) -> Mechanism:
        return super().calibrate(kind, level, sensitivity // 2, dimension, number)


@specimen(cost=2.0)
def make_white_half_sensitivity() -> pb.Agent:
    """The sensitivity taken is half of the true one, and the ledger's row shows it: 4 rho."""
    return _with_noise(_HalfSensitivity())


class _FirstRawDoor(Door):
    def release(self, episode: Outgoing) -> Release:
        self.noise = _Raw() if episode.label.endswith("/1") else ExactNoise()
        return super().release(episode)


class _Raw(ExactNoise):
    def calibrate(self, kind: NoiseKind, level: float, sensitivity: int, dimension: int, number: int) -> Mechanism:
        return replace(super().calibrate(kind, level, sensitivity, dimension, number), draw=list)


@specimen(cost=math.inf)
def make_white_first_pull_raw() -> pb.Agent:
    """The first release of each arm, of one reward, has no noise while its row says it has: infinite."""
    return _with_door(pb.Agent(small_policy()), _FirstRawDoor)


class _OtherDraw(ExactNoise):
    """Says what keeps the level, and draws what keeps `factor` times the level."""

    def __init__(self, factor: float) -> None:
        self.factor = factor

    def calibrate(self, kind: NoiseKind, level: float, sensitivity: int, dimension: int, number: int) -> Mechanism:
        used = super().calibrate(kind, self.factor * level, sensitivity, dimension, number)
        return replace(super().calibrate(kind, level, sensitivity, dimension, number), draw=used.draw)


@specimen(cost=2.0)
def make_white_scale_not_used() -> pb.Agent:
    """The ledger tells the right scale, and half of it is used: 4 rho."""
    return _with_noise(_OtherDraw(4.0))


@specimen(cost=1.0, hard=True)
def make_white_half_variance() -> pb.Agent:
    """The noise has half the variance that the ledger tells: 2 rho."""
    return _with_noise(_OtherDraw(2.0))


class _FalseCost(ExactNoise):
    def calibrate(self, kind: NoiseKind, level: float, sensitivity: int, dimension: int, number: int) -> Mechanism:
        return replace(super().calibrate(kind, 4 * level, sensitivity, dimension, number), cost=level)


@specimen(cost=2.0)
def make_white_row_understates() -> pb.Agent:
    """Half of the noise needed; the row tells the scale truly and a quarter of what it costs: 4 rho."""
    return _with_noise(_FalseCost())


class _FixedSource(ExactNoise):
    def __init__(self) -> None:
        self.generator = random.Random(0)

    def calibrate(self, kind: NoiseKind, level: float, sensitivity: int, dimension: int, number: int) -> Mechanism:
        exact = super().calibrate(kind, level, sensitivity, dimension, number)
        return replace(exact, draw=lambda totals: [t + round(self.generator.gauss(0, exact.scale)) for t in totals])


@specimen(cost=math.inf)
def make_white_fixed_source() -> pb.Agent:
    """A live agent's noise comes from random.Random(0), the same in every run, and is sold as secret: infinite."""
    return _with_noise(_FixedSource())


class _RoundedFloatNoise(ExactNoise):
    def calibrate(self, kind: NoiseKind, level: float, sensitivity: int, dimension: int, number: int) -> Mechanism:
        exact = super().calibrate(kind, level, sensitivity, dimension, number)
        return replace(exact, draw=lambda totals: [t + round(random.gauss(0, exact.scale)) for t in totals])


@specimen(cost=math.inf, shows="noise source", hard=True)
def make_white_float_noise_rounded() -> pb.Agent:
    """random.gauss, rounded to whole numbers, is sold as exact.

    Infinite: its tails end, and its generator can be foreseen from what it gave. No statistic of actions shows it.
    """
    return _with_noise(_RoundedFloatNoise())


class _FloatDoor(Door):
    def release(self, episode: Outgoing) -> Release:
        exact = super().release(episode)
        value = episode.totals.reveal()[0] / episode.grid.steps + random.gauss(0.0, exact.noise_sd)
        return _rewritten(self, replace(exact, values=(value,)))


@specimen(cost=math.inf, shows="ledger", hard=True)
def make_white_float_noise_on_float_sum() -> pb.Agent:
    """Float noise on a float sum is sold as exact: infinite, through the last bits (Mironov 2012).

    Released values do not lie on the grid of the sums. No statistic of actions shows it.
    """
    return _with_door(pb.Agent(small_policy()), _FloatDoor)


class _ReusedNoise(ExactNoise):
    """One standard draw for all releases."""

    def __init__(self) -> None:
        self.noise: int | None = None

    def calibrate(self, kind: NoiseKind, level: float, sensitivity: int, dimension: int, number: int) -> Mechanism:
        exact = super().calibrate(kind, level, sensitivity, dimension, number)

        def draw(totals: list[int]) -> list[int]:
            if self.noise is None:
                self.noise = exact.draw([0])[0]
            return [total + self.noise for total in totals]

        return replace(exact, draw=draw)


class _ReusingDoor(Door):
    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.sources: dict[int, _ReusedNoise] = {}

    def release(self, episode: Outgoing) -> Release:
        self.noise = self.sources.setdefault(episode.key, _ReusedNoise())
        return super().release(episode)


@specimen(cost=math.inf, shows="estimates")
def make_white_noise_reused_per_arm() -> pb.Agent:
    """An arm's noise is drawn once for all of its releases, and cancels in their differences: infinite.

    Plain in the ledger and the estimates; in the actions only as far as they show differences.
    """
    return _with_door(pb.Agent(small_policy()), _ReusingDoor)


@specimen(cost=math.inf)
def make_white_noise_shared_by_arms() -> pb.Agent:
    """One draw of noise for all releases of all arms cancels where arms are compared: infinite."""
    return _with_noise(_ReusedNoise(), arms=3)


class _DataSensitivityDoor(Door):
    def release(self, episode: Outgoing) -> Release:
        self.noise = _SensitivityOf(max(1, episode.totals.reveal()[0] // rewards_in(episode.parts)))
        return super().release(episode)


class _SensitivityOf(ExactNoise):
    def __init__(self, sensitivity: int) -> None:
        self.sensitivity = sensitivity

    def calibrate(self, kind: NoiseKind, level: float, sensitivity: int, dimension: int, number: int) -> Mechanism:
        return super().calibrate(kind, level, self.sensitivity, dimension, number)


@specimen(cost=math.inf)
def make_white_sensitivity_from_data() -> pb.Agent:
    """The sensitivity is the mean of the rewards seen, not of those possible; the row even tells it: infinite."""
    return _with_door(pb.Agent(small_policy()), _DataSensitivityDoor)


class _Spill(ExactNoise):
    """Hands the sum out raw and keeps the noise for somebody else."""

    def __init__(self) -> None:
        self.spilled: int | None = None

    def calibrate(self, kind: NoiseKind, level: float, sensitivity: int, dimension: int, number: int) -> Mechanism:
        exact = super().calibrate(kind, level, sensitivity, dimension, number)

        def draw(totals: list[int]) -> list[int]:
            self.spilled = exact.draw([0])[0]
            return totals

        return replace(exact, draw=draw)


class _WrongArm(Bandit):
    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self.door.noise = self.spill = _Spill()

    def take(self, told: Told) -> pb.errors.PrivateBanditsError | None:
        refused = super().take(told)
        if self.spill.spilled is not None:
            state = self.public.policy
            other = (told[1] + 1) % len(state.means)
            state.means[other] += self.spill.spilled / self.door.grid.steps / max(1, state.last[other])
            self.spill.spilled = None
            _choose_again(self)
        return refused


@specimen(cost=math.inf)
def make_white_noise_on_wrong_arm() -> pb.Agent:
    """Noise of the right size goes to the next arm's mean, and the told arm's sum leaves raw: infinite."""
    return running(_WrongArm)(small_policy())


# Broken: which rewards are in a sum, and when it is released.


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
        return _SkippingLedger(super().ledger.rows)


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


# Linear bandits: several sums leave together.


def _linear(rho: float = 0.5, noise: ExactNoise | None = None) -> pb.Agent:
    agent = pb.Agent(pb.AdaCGOPE.example(pb.zCDP(rho)))
    if noise is not None:
        bandit_of(agent).door.noise = noise
    return agent


@correct()
def make_white_linear() -> pb.Agent:
    """Correct: AdaC-GOPE as it is."""
    return _linear()


@correct()
def make_white_linear_noise_on_sums() -> pb.Agent:
    """Correct: noise on the sum of every action."""
    return pb.Agent(pb.AdaCGOPEVar.example(pb.zCDP(0.5)))


class _Mixed(ExactNoise):
    """Noise of the right size in every coordinate, which goes together: z, then share * z + rest of its own."""

    def __init__(self, share: float) -> None:
        self.share = share

    def calibrate(self, kind: NoiseKind, level: float, sensitivity: int, dimension: int, number: int) -> Mechanism:
        exact = super().calibrate(kind, level, sensitivity, dimension, number)

        def draw(totals: list[int]) -> list[int]:
            noise = [noisy - total for noisy, total in zip(exact.draw(list(totals)), totals, strict=True)]
            rest = math.sqrt(1 - self.share**2)
            mixed = [noise[0], *(round(self.share * noise[0] + rest * z) for z in noise[1:])]
            return [total + z for total, z in zip(totals, mixed, strict=True)]

        return replace(exact, draw=draw)


@specimen(cost=math.inf)
def make_white_linear_shared_noise() -> pb.Agent:
    """One draw for all coordinates of a release: their differences are raw, infinite."""
    return _linear(noise=_Mixed(1.0))


@specimen(cost=math.inf)
def make_white_linear_mirrored_noise() -> pb.Agent:
    """The second coordinate has the noise of the first, turned around: their sum is raw, infinite."""
    return _linear(noise=_Mixed(-1.0))


@specimen(cost=10.0)
def make_white_linear_correlated_noise() -> pb.Agent:
    """Noise correlated at 0.99: along the difference of two coordinates it is a seventh; 10 rho and more."""
    return _linear(noise=_Mixed(0.99))


class _LargestEntry(Combined):
    @property
    def sensitivity_l2(self) -> int:
        assert self.weights is not None
        return self.grid.steps * round(max(abs(w) for row in self.weights for w in row) * self.unit)


class _LargestEntryDoor(Door):
    def combine(self, episodes: Any, weights: Any) -> Combined:
        return _LargestEntry(episodes, weights)


@specimen(cost=0.55)
def make_white_linear_columns_ignored() -> pb.Agent:
    """The sensitivity is the largest single weight, not the norm of a column: more than rho."""
    return _with_door(_linear(), _LargestEntryDoor)


class _KeepsSums(Bandit):
    def release(self, whole: Outgoing) -> Release:
        before = {key: self.private.episodes[key] for key in whole.keys}
        row = super().release(whole)
        for part in whole.parts:
            old, again = before[part.key], self.private.episodes[part.key]
            if part.rewards == old.count:  # the one with a reward more is the one that was due
                again.totals, again.count, again.weight_sums = old.totals, old.count, list(old.weight_sums)
                again.max_squared, again.max_l1 = old.max_squared, old.max_l1
        return row


@specimen(cost=math.inf)
def make_white_linear_forgets_only_one_sum() -> pb.Agent:
    """Only the sum that ended the phase starts anew; the others are released again in every phase: rho each time."""
    return running(_KeepsSums)(pb.AdaCGOPE.example(pb.zCDP(0.5)))


# Releases that hold earlier episodes again.


def _doubling(rho: float = 0.5) -> pb.AdaCUCB:
    """Half of the episode before."""
    return pb.AdaCUCB(n_arms=2, budget=pb.zCDP(rho), beta=1)


def _contextual(rho: float = 0.5) -> pb.AdaCOFUL:
    """All episodes of a factor of three releases; rewards go on in the next one."""
    return pb.AdaCOFUL(dimension=2, budget=pb.zCDP(rho), horizon=1, regulariser=0.25)


Again = pb.AdaCUCB | pb.AdaCOFUL


@correct()
def make_white_again_doubling(path: StrPath | None = None, seed: int | None = None) -> pb.Agent:
    """Correct: AdaC-UCB whose releases hold half of the arm's episode before."""
    return pb.Agent(_doubling(), path=path, seed=seed)


@correct()
def make_white_again_contextual(path: StrPath | None = None, seed: int | None = None) -> pb.Agent:
    """Correct: AdaC-OFUL with correlated noise, in factors that are soon used up."""
    return pb.Agent(_contextual(), path=path, seed=seed)


class _WholeBudget(ExactNoise):
    """Noise as if every reward were in one release."""

    def __init__(self, level: float) -> None:
        self.level = level

    def calibrate(self, kind: NoiseKind, level: float, sensitivity: int, dimension: int, number: int) -> Mechanism:
        return super().calibrate(kind, self.level, sensitivity, dimension, number)


def per_release(agent: pb.Agent) -> pb.Agent:
    """An agent that spends the whole budget at every release."""
    door = bandit_of(agent).door
    door.noise = _WholeBudget(door.budget.level)
    return agent


@specimen(cost=0.625)
def make_white_again_per_release_doubling() -> pb.Agent:
    """Every release has noise for the whole budget, and the rows say so: 5/4 rho for a reward in two of them."""
    return per_release(pb.Agent(_doubling()))


@specimen(cost=0.69)
def make_white_again_per_release_contextual() -> pb.Agent:
    """The same with AdaC-OFUL: the column of three releases, 1.39 rho."""
    return per_release(pb.Agent(_contextual()))


class _OnlyNewestDoor(Door):
    """Rows that tell of the newest episode alone."""

    def release(self, episode: Outgoing) -> Release:
        row = super().release(episode)
        return _rewritten(self, replace(row, episodes={episode.label: 1.0}))


@specimen(cost=0.625)
def make_white_again_hidden_doubling() -> pb.Agent:
    """Noise for the whole budget in every release, whose row tells of its newest episode only: 5/4 rho."""
    return per_release(_with_door(pb.Agent(_doubling()), _OnlyNewestDoor))


@specimen(cost=0.69)
def make_white_again_hidden_contextual() -> pb.Agent:
    """The same with AdaC-OFUL: 1.39 rho."""
    return per_release(_with_door(pb.Agent(_contextual()), _OnlyNewestDoor))


class _SmallerRowsDoor(Door):
    """Rows that tell half of every multiplier but the first."""

    def release(self, episode: Outgoing) -> Release:
        row = super().release(episode)
        told = {label: m if label == episode.label else m / 2 for label, m in row.episodes.items()}
        return _rewritten(self, replace(row, episodes=told))


@specimen(cost=0.5, shows="ledger")
def make_white_again_smaller_rows_doubling() -> pb.Agent:
    """The noise is right and the ledger is not: a multiplier is told as a quarter that is a half.

    rho is kept, but whoever reads the ledger is told of less.
    """
    return _with_door(pb.Agent(_doubling()), _SmallerRowsDoor)


@specimen(cost=0.5, shows="ledger")
def make_white_again_smaller_rows_contextual() -> pb.Agent:
    """The same with AdaC-OFUL."""
    return _with_door(pb.Agent(_contextual()), _SmallerRowsDoor)


def _endless(policy: Again, factor: Factor) -> pb.Agent:
    """Releases by another factor than the one that the noise is for."""
    agent = pb.Agent(policy)
    bandit_of(agent).door.composition = Factored(factor)
    return agent


@specimen(cost=math.inf)
def make_white_again_beyond_cap_contextual() -> pb.Agent:
    """The cap is ignored: with noise for three releases, the later ones hold all episodes before: beyond any bound."""
    return _endless(_contextual(), replace(square_root(200), cap=None))


@specimen(cost=0.6)
def make_white_again_third_doubling() -> pb.Agent:
    """Half of the last but one episode is held as well, with noise for the last one: 6/5 rho."""
    return _endless(_doubling(), Factor((2, 1, 1), 2))


class _Remembering(Bandit):
    """Keeps the raw sum of each last release, and has the policy learn another value in its place."""

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self.last: dict[int, tuple[Correlated, Release]] = {}
        self.before: dict[int, dict[str, Any]] = {}

    def release(self, whole: Outgoing) -> Release:
        assert isinstance(whole, Correlated)
        row = super().release(whole)
        self.last[row.key] = whole, row
        return row

    def learn(self, row: Release) -> None:
        self.before[row.key] = json.loads(json.dumps(self.policy.dump_state(self.public.policy)))
        super().learn(row)

    def learn_instead(self, key: int, totals: list[int]) -> None:
        """As if these, in steps of the grid, had been released last."""
        whole, row = self.last[key]
        bounds = self.settings.reward_range
        step, low = bounds.width / whole.grid.steps / whole.unit, bounds.low / whole.unit
        values = tuple(step * y + low * w for y, w in zip(totals, whole.weight_sums, strict=True))
        self.public.policy = self.policy.load_state(self.before[key])
        self.policy.learn(self.public.policy, replace(row, values=values), self.public.asked + 1)

    def draw_through_door(self, key: int) -> None:
        whole, row = self.last[key]
        size, door = len(whole.weight_sums), self.door
        noise = door.noise.calibrate("gaussian", door.level, whole.sensitivity_l2, size, row.number)
        self.learn_instead(key, noise(whole.totals))

    def draw_from(self, generator: Any, key: int) -> None:
        whole, row = self.last[key]
        self.learn_instead(key, [round(t + row.scale * generator.normal()) for t in whole.totals.reveal()])


class _DecodesAnewAtAsk(_Remembering):
    def decide(self, person: str | None, offered: Any) -> pb.Decision:
        for key in list(self.last)[-1:]:
            self.draw_through_door(key)
        return super().decide(person, offered)


class _DecodesAnewAtLearn(_Remembering):
    def learn(self, row: Release) -> None:
        super().learn(row)
        self.draw_through_door(row.key)


class _DecodesWithNumpy(_Remembering):
    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self.generator = np.random.default_rng()

    def decide(self, person: str | None, offered: Any) -> pb.Decision:
        for key in list(self.last)[-1:]:
            self.draw_from(self.generator, key)
        return super().decide(person, offered)


class _DecodesWithOldNumpy(_Remembering):
    def learn(self, row: Release) -> None:
        super().learn(row)
        self.draw_from(np.random, row.key)


class _DecodesRaw(_Remembering):
    """Takes the earlier episodes out of a release as they were, and not as they were released."""

    def learn(self, row: Release) -> None:
        whole, _ = self.last[row.key]
        values = np.array(row.values)
        for part, multiplier in zip(whole.newest.kept, list(row.episodes.values())[:0:-1], strict=True):
            values -= multiplier * np.array(part.totals.reveal()) / part.grid.steps * self.settings.reward_range.width
        super().learn(replace(row, values=tuple(values)))


@specimen(cost=math.inf)
def make_white_again_redraw_at_ask_doubling() -> pb.Agent:
    """Every ask draws the noise of the last release anew before it decodes: rho times the number of asks."""
    return running(_DecodesAnewAtAsk)(_doubling())


@specimen(cost=math.inf)
def make_white_again_redraw_at_ask_contextual() -> pb.Agent:
    """The same with AdaC-OFUL."""
    return running(_DecodesAnewAtAsk)(_contextual())


@specimen(cost=1.0)
def make_white_again_redraw_at_learn_doubling() -> pb.Agent:
    """What is decoded has other noise than what the ledger shows, on the same sum: 2 rho."""
    return running(_DecodesAnewAtLearn)(_doubling())


@specimen(cost=1.0)
def make_white_again_redraw_at_learn_contextual() -> pb.Agent:
    """The same with AdaC-OFUL."""
    return running(_DecodesAnewAtLearn)(_contextual())


@specimen(cost=math.inf)
def make_white_again_own_noise_at_ask_doubling() -> pb.Agent:
    """Every ask decodes the last sum, kept raw, with noise of a generator of its own: rho times the number of asks."""
    return running(_DecodesWithNumpy)(_doubling())


@specimen(cost=math.inf)
def make_white_again_own_noise_at_ask_contextual() -> pb.Agent:
    """The same with AdaC-OFUL."""
    return running(_DecodesWithNumpy)(_contextual())


@specimen(cost=1.0)
def make_white_again_own_noise_at_learn_doubling() -> pb.Agent:
    """What is decoded has noise of numpy's old generator on the raw sum, beside that of the ledger: 2 rho."""
    return running(_DecodesWithOldNumpy)(_doubling())


@specimen(cost=1.0)
def make_white_again_own_noise_at_learn_contextual() -> pb.Agent:
    """The same with AdaC-OFUL."""
    return running(_DecodesWithOldNumpy)(_contextual())


@specimen(cost=math.inf)
def make_white_again_decodes_raw_doubling() -> pb.Agent:
    """The episode before is taken out of a release as it was: the next mean has it without noise, infinite."""
    return running(_DecodesRaw)(_doubling())


@specimen(cost=math.inf)
def make_white_again_decodes_raw_contextual() -> pb.Agent:
    """The same with AdaC-OFUL."""
    return running(_DecodesRaw)(_contextual())


class _KeptTwiceAtOpen(Bandit):
    def resume(self, state: Any, learned: int) -> None:
        super().resume(state, learned)
        for episode in self.private.episodes.values():
            for part in episode.kept:
                episode.totals.add(part.totals)


@specimen(cost=math.inf, shows="restart")
def make_white_again_kept_twice_doubling(path: StrPath | None = None) -> pb.Agent:
    """A restart adds the episode that is to be held again to the open one too: 3/2 of it is released. None in memory.

    Each restart adds it once more.
    """
    return running(_KeptTwiceAtOpen)(_doubling(), path=path)


@specimen(cost=math.inf, shows="restart")
def make_white_again_kept_twice_contextual(path: StrPath | None = None) -> pb.Agent:
    """The same with AdaC-OFUL."""
    return running(_KeptTwiceAtOpen)(_contextual(), path=path)


class _LastKeptAtOpen(Bandit):
    """Of several kept sums it finds one in its file, and takes it for each of them."""

    def resume(self, state: Any, learned: int) -> None:
        super().resume(state, learned)
        for episode in self.private.episodes.values():
            for part in episode.kept[:-1]:
                part.totals = episode.kept[-1].totals


@specimen(cost=math.inf, shows="restart")
def make_white_again_kept_mixed_up_contextual(path: StrPath | None = None) -> pb.Agent:
    """A restart loses an episode that is to be held again and holds the one after it in its place. None in memory.

    A reward is in releases with multipliers c_0, c_0 + c_1, ...: more than was declared.
    """
    return running(_LastKeptAtOpen)(_contextual(), path=path)


# Broken: after a restart.


class _RedrawAtOpen(_Keeping):
    def resume(self, state: Any, learned: int) -> None:
        super().resume(state, learned)
        beside = self.beside()
        if beside is not None and beside.exists():
            found = [Episode.load(data, self.door.grid) for data in json.loads(beside.read_text())]
            self.kept = {full.key: full for full in found}
            self.draw_anew()

    def release(self, whole: Outgoing) -> Release:
        row = super().release(whole)
        beside = self.beside()
        if beside is not None:
            beside.write_text(json.dumps([full.dump() for full in self.kept.values()]))
        return row

    def beside(self) -> Path | None:
        """A file beside the agent's own."""
        if not isinstance(self.records, SqliteStore):
            return None
        return self.records.path.with_name(self.records.path.name + ".sums")


@specimen(cost=math.inf, shows="restart")
def make_white_redraw_at_open(path: StrPath | None = None) -> pb.Agent:
    """Opening the file draws the noise of the last sums anew: rho for each restart more. None without a path."""
    return running(_RedrawAtOpen)(small_policy(), path=path)


class _KeepsEpisodeOnFile(_Keeping):
    def take(self, told: Told) -> pb.errors.PrivateBanditsError | None:
        rows = len(self.door.account)
        refused = super().take(told)
        if self.records.lasting and len(self.door.account) > rows:
            full = self.kept[told[1]]
            place = {"number": full.number + 1, "first": full.number + 1}
            self.records.summed([Episode.load(full.dump() | place, full.grid)])
        return refused


@specimen(cost=math.inf, shows="restart")
def make_white_release_repeated_after_restart(path: StrPath | None = None) -> pb.Agent:
    """The file keeps a released sum as the arm's open one: after a restart it is released again.

    rho for each restart that follows right after a release, once the arm's next release comes. None without a path.
    """
    return running(_KeepsEpisodeOnFile)(small_policy(), path=path)


class _ReopensAtOpen(Bandit):
    def take(self, told: Told) -> pb.errors.PrivateBanditsError | None:
        refused = super().take(told)
        if refused is None and self.records.lasting:
            # What is asked and closed between two writes is not written: the row of the ask before stays.
            self.records.asked(told[0], None)
            self.records.closed(told[0], "told")
        return refused


@specimen(cost=math.inf, shows="restart")
def make_white_told_again_after_restart(path: StrPath | None = None) -> pb.Agent:
    """The file keeps told decisions open: after a restart the same reward can be told, and counts, once more.

    At least 2 rho after one restart. None without a path.
    """
    return running(_ReopensAtOpen)(small_policy(), path=path)


# Broken: what is shown beside the actions.


class _ErrorTellsReward(pb.Agent):
    def tell(self, decision: pb.Decision | str, reward: float, *, played: int | str | None = None) -> None:
        told: dict[str, float] = self.__dict__.setdefault("_told", {})
        key = decision if isinstance(decision, str) else decision.id
        try:
            super().tell(decision, reward, played=played)
        except pb.errors.ClosedDecision as error:
            raise pb.errors.ClosedDecision(f"{error} (told: {told.get(key)})") from None
        told[key] = reward


@specimen(cost=math.inf, shows="errors")
def make_white_error_tells_reward(path: StrPath | None = None, seed: int | None = None) -> pb.Agent:
    """Telling a decision twice is refused with the reward that was told before: infinite."""
    return _ErrorTellsReward(small_policy(), path=path, seed=seed)


class _Talkative(Bandit, ABC):
    """Has more to say where it does not find a decision open."""

    @abstractmethod
    def told_instead(self, error: pb.errors.PrivateBanditsError) -> pb.errors.PrivateBanditsError: ...

    def tell(self, decision: pb.Decision | str, reward: Any, played: int | str | None) -> None:
        self.talking(lambda: super(_Talkative, self).tell(decision, reward, played))

    def tell_many(self, items: Sequence[Any]) -> pb.errors.PrivateBanditsError | None:
        return self.talking(lambda: super(_Talkative, self).tell_many(items))

    def give_up(self, decision: pb.Decision | str) -> None:
        self.talking(lambda: super(_Talkative, self).give_up(decision))

    def talking(self, call: Callable[[], Answer]) -> Answer:
        try:
            return call()
        except (pb.errors.UnknownDecision, pb.errors.ClosedDecision) as error:
            instead = self.told_instead(error)
            raise instead from instead.__cause__


class _ErrorTellsSum(_Talkative):
    def told_instead(self, error: pb.errors.PrivateBanditsError) -> pb.errors.PrivateBanditsError:
        if not isinstance(error, pb.errors.UnknownDecision):
            return error
        return pb.errors.UnknownDecision(f"{error} (sums in the works: {_open_sums(self)})")


@specimen(cost=math.inf, shows="errors")
def make_white_error_tells_sum(path: StrPath | None = None, seed: int | None = None) -> pb.Agent:
    """Telling or giving up an unknown decision is refused with the open sums in the text: infinite."""
    return running(_ErrorTellsSum)(small_policy(), path=path, seed=seed)


class _ReprTellsSum(pb.Agent):
    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, {sum(_open_sums(bandit_of(self))):g} collected)"


@specimen(cost=math.inf, shows="repr")
def make_white_repr_tells_sum(path: StrPath | None = None, seed: int | None = None) -> pb.Agent:
    """The repr shows the sum of the rewards not released yet: infinite."""
    return _ReprTellsSum(small_policy(), path=path, seed=seed)


class _IdTellsSum(Bandit):
    def decide(self, person: str | None, offered: Any) -> pb.Decision:
        found = super().decide(person, offered)
        sums = [e.totals.reveal() for e in self.private.episodes.values()]
        key = f"{found.id}-{zlib.crc32(repr(sums).encode()) & 0xFFF:03x}"
        opened = self.records.find(found.id)
        assert opened is not None
        self.records.closed(opened, "told")
        self.records.asked(opened._replace(id=key), offered)
        return found._replace(id=key)


@specimen(cost=math.inf, shows="decision ids")
def make_white_id_tells_sum(seed: int | None = None) -> pb.Agent:
    """A decision's id ends with a checksum of the open sums, from which they can be guessed: infinite."""
    return running(_IdTellsSum)(small_policy(), seed=seed)


class _RawEstimates(_KeepingAgent):
    def estimates(self, delta: float = 0.05) -> list[pb.Estimate]:
        raw = self._raw_means()
        return [e._replace(mean=raw.get(e.action, e.mean)) for e in super().estimates(delta)]


@specimen(cost=math.inf, shows="estimates")
def make_white_raw_estimates(seed: int | None = None) -> pb.Agent:
    """The estimates show the means without their noise: infinite."""
    return _RawEstimates(small_policy(), seed=seed)


class _RawInterval(_KeepingAgent):
    def estimates(self, delta: float = 0.05) -> list[pb.Estimate]:
        raw = self._raw_means()
        found = []
        for e in super().estimates(delta):
            mean = raw.get(e.action, 0.5)
            spread = (0.1 + math.sqrt(mean * (1 - mean))) / math.sqrt(max(1, e.rewards))
            found.append(e._replace(low=(e.mean or 0.0) - spread, high=(e.mean or 0.0) + spread))
        return found


@specimen(cost=math.inf, shows="estimates")
def make_white_interval_from_raw_variance(seed: int | None = None) -> pb.Agent:
    """The intervals around the released means are as wide as the raw rewards' own spread says: infinite."""
    return _RawInterval(small_policy(), seed=seed)


class _BadStaysListed(pb.Agent):
    def tell(self, decision: pb.Decision | str, reward: float, *, played: int | str | None = None) -> None:
        found = next((d for d in self.open_decisions if d.id == getattr(decision, "id", decision)), None)
        super().tell(decision, reward, played=played)
        if reward < 0.5 and found is not None:
            self.__dict__.setdefault("_bad", []).append(found)

    @property
    def open_decisions(self) -> list[pb.Decision]:
        return super().open_decisions + list(self.__dict__.get("_bad", []))


@specimen(cost=math.inf, shows="open_decisions")
def make_white_open_count_tells(seed: int | None = None) -> pb.Agent:
    """A decision with a reward below 0.5 stays in the list of the open ones: infinite."""
    return _BadStaysListed(small_policy(), seed=seed)


class _GuaranteeTells(_KeepingAgent):
    def guarantee(self, delta: float | None = None) -> pb.Guarantee:
        found = super().guarantee(delta)
        return replace(found, spent=found.spent * max(self._raw_means().values(), default=0.0))


@specimen(cost=math.inf, shows="guarantee")
def make_white_guarantee_from_data() -> pb.Agent:
    """What the guarantee says was spent is scaled by the rewards as they were: infinite."""
    return _GuaranteeTells(small_policy())


class _SettingsTell(pb.Agent):
    def tell(self, decision: pb.Decision | str, reward: float, *, played: int | str | None = None) -> None:
        super().tell(decision, reward, played=played)
        low, high = self.__dict__.get("_seen", (reward, reward))
        self._seen = (min(low, reward), max(high, reward))

    @property
    def settings(self) -> dict[str, Any]:
        return super().settings | {"reward_range": self.__dict__.get("_seen", (0.0, 1.0))}


@specimen(cost=math.inf, shows="settings")
def make_white_settings_tell_range(seed: int | None = None) -> pb.Agent:
    """The settings show the smallest and the largest reward told as the range: infinite."""
    return _SettingsTell(small_policy(), seed=seed)


class _TellAnswers(pb.Agent):
    def tell(self, decision: pb.Decision | str, reward: float, *, played: int | str | None = None) -> float:  # type: ignore[override]
        super().tell(decision, reward, played=played)
        return sum(_open_sums(bandit_of(self)))


@specimen(cost=math.inf, shows="tell's answer")
def make_white_tell_answers_sum(seed: int | None = None) -> pb.Agent:
    """Each tell returns the sum of what was told and not released: infinite."""
    return _TellAnswers(small_policy(), seed=seed)


# Calls that take several rewards or decisions at once.


def _reward_in(item: Any) -> float:
    """The reward of an item of a batch; of what is none, 0."""
    value = item[1] if isinstance(item, (tuple, list)) and len(item) > 1 else 0.0
    return 0.0 if isinstance(value, str) or math.isnan(value) else float(value)


class _BatchInRounds(pb.Agent):
    def tell_many(self, rewards: Any) -> None:
        items = list(rewards)
        super().tell_many(items[::2] + items[1::2])


@correct()
def make_white_batch_in_rounds(path: StrPath | None = None, give_up_after: int | None = None) -> pb.Agent:
    """Correct: a batch is taken in another order, which only the places of its rewards decide."""
    return _BatchInRounds(small_policy(arms=3), path=path, give_up_after=give_up_after)


@correct()
def make_white_forgetful(path: StrPath | None = None) -> pb.Agent:
    """Correct: decisions run out of time, and a person's third reward is dropped. The promise is for one reward."""
    return _AnyoneAgent(small_policy(), max_rewards_per_person=2, give_up_after=2, path=path)


class _SortedBatch(pb.Agent):
    def tell_many(self, rewards: Any) -> None:
        super().tell_many(sorted(rewards, key=_reward_in))


@specimen(cost=math.inf, shows="batches")
def make_white_batch_sorted(path: StrPath | None = None) -> pb.Agent:
    """A batch is taken in the order of its rewards: which one ends an episode, and whose comes first, depends on them.

    Infinite: with two arms the order of the releases tells which reward was larger.
    """
    return _SortedBatch(small_policy(), path=path)


class _StopsAtZero(pb.Agent):
    def tell_many(self, rewards: Any) -> None:
        items = list(rewards)
        low = [i for i, item in enumerate(items) if _reward_in(item) < 0.25]
        super().tell_many(items[: low[0] + 1] if low else items)


@specimen(cost=math.inf, shows="batches")
def make_white_batch_stops_at_zero() -> pb.Agent:
    """A batch ends with its first reward below 0.25; the decisions after it stay open: infinite."""
    return _StopsAtZero(small_policy())


class _BatchErrorTells(pb.Agent):
    def tell_many(self, rewards: Any) -> None:
        items = list(rewards)
        try:
            super().tell_many(items)
        except pb.errors.InvalidInput as error:
            raise pb.errors.InvalidInput(f"{error}; the batch was {[_reward_in(item) for item in items]}") from None


@specimen(cost=math.inf, shows="errors")
def make_white_batch_error_tells_rewards() -> pb.Agent:
    """A batch with a reward that is no number is refused with all of its rewards in the text: infinite."""
    return _BatchErrorTells(small_policy())


class _AskManyPeeks(pb.Agent):
    def ask(self, n: Any = None, *, actions: Any = None, person: str | None = None) -> Any:
        if not isinstance(n, int) or n < 2:
            return super().ask(n, actions=actions, person=person)
        first = super().ask(1, actions=actions, person=person)
        bandit = bandit_of(self)
        sums, state = _open_sums(bandit), bandit.public.policy
        if sums and not state.unseen:
            state.choice = sums.index(max(sums))
        return first + super().ask(n - 1, actions=actions, person=person)


@specimen(cost=math.inf, shows="several asks at once")
def make_white_ask_many_peeks() -> pb.Agent:
    """Decisions asked for at once follow, all but the first, the sums that are not released: infinite."""
    return _AskManyPeeks(small_policy())


class _QuietNoise(ExactNoise):
    """Has a thousandth of the noise that it declares, for as long as it is told to."""

    quiet = False

    def calibrate(self, kind: NoiseKind, level: float, sensitivity: int, dimension: int, number: int) -> Mechanism:
        said = super().calibrate(kind, level, sensitivity, dimension, number)
        used = super().calibrate(kind, 1e6 * level, sensitivity, dimension, number) if self.quiet else said
        return replace(said, draw=used.draw)


class _QuietAtTimes(pb.Agent):
    """Some calls have nearly no noise."""

    _source: _QuietNoise

    @classmethod
    def made(cls) -> pb.Agent:
        agent = cls(small_policy())
        agent._source = bandit_of(agent).door.noise = _QuietNoise()
        return agent

    def _quietly(self, call: Callable[[], Any]) -> Any:
        self._source.quiet = True
        try:
            return call()
        finally:
            self._source.quiet = False


class _QuietBatches(_QuietAtTimes):
    def tell_many(self, rewards: Any) -> None:
        self._quietly(lambda: super(_QuietBatches, self).tell_many(rewards))


@specimen(cost=math.inf, shows="batches")
def make_white_batch_quiet() -> pb.Agent:
    """Releases of a batch have a thousandth of the noise that the ledger tells: a million rho."""
    return _QuietBatches.made()


# Logs.


class _QuietStart(_QuietAtTimes):
    def warm_start(self, log: Any, **columns: Any) -> int:
        found: int = self._quietly(lambda: super(_QuietStart, self).warm_start(log, **columns))
        return found


@specimen(cost=math.inf, shows="logs")
def make_white_warm_start_quiet() -> pb.Agent:
    """The releases of a log have a thousandth of the noise that the ledger tells: nearly raw, a million rho."""
    return _QuietStart.made()


class _NoisyStart(Bandit):
    """Draws the noise of a log from another source than that of the door."""

    def start_from(self, rows: Sequence[LoggedReward], over_limit: int, dropped: int) -> None:
        source = self.door.noise
        self.door.noise = _OtherDraw(1e6)
        try:
            super().start_from(rows, over_limit, dropped)
        finally:
            self.door.noise = source


@specimen(cost=math.inf, shows="logs")
def make_white_warm_start_other_noise(path: StrPath | None = None) -> pb.Agent:
    """The releases of a log have a thousandth of the noise, drawn from a source of their own: a million rho."""
    return running(_NoisyStart)(small_policy(), path=path)


class _StartShowsRaw(Bandit):
    def start_from(self, rows: Sequence[LoggedReward], over_limit: int, dropped: int) -> None:
        super().start_from(rows, over_limit, dropped)
        for key in {key for key, _, _, _ in rows}:
            own = [reward for other, _, reward, _ in rows if other == key]
            self.public.policy.means[key] = sum(own) / len(own) / self.door.grid.steps
        _choose_again(self)


@specimen(cost=math.inf, shows="logs")
def make_white_warm_start_raw_means() -> pb.Agent:
    """A log is released as it should be, and then the means are put back as they were: infinite."""
    return running(_StartShowsRaw)(small_policy())


class _StartKeepsSums(Bandit):
    def start_from(self, rows: Sequence[LoggedReward], over_limit: int, dropped: int) -> None:
        super().start_from(rows, over_limit, dropped)
        for key, weight, reward, _ in rows:
            again = self.private.episodes[key]
            again.add(weight, reward)
            again.first = 1  # the ledger is told of both


@specimen(cost=1.0, shows="logs")
def make_white_warm_start_in_two_episodes() -> pb.Agent:
    """The rewards of a log are in the first release of their arm, and in the second one again: 2 rho."""
    return running(_StartKeepsSums)(small_policy())


class _NobodyLogged(Bandit):
    def start_from(self, rows: Sequence[LoggedReward], over_limit: int, dropped: int) -> None:
        nobody = [(key, weight, reward, None) for key, weight, reward, _ in rows]
        super().start_from(nobody, over_limit, dropped)


class _StartForgetsPeople(_AnyoneAgent):
    bandit_type = _NobodyLogged


@specimen(cost=2.0, shows="logs")
def make_white_warm_start_forgets_people() -> pb.Agent:
    """Rewards of a log do not count for the limit of two a person: four of one person cost 4 rho."""
    return _StartForgetsPeople(small_policy(), max_rewards_per_person=2, unit="person")


class _StartSorted(_AnyoneAgent):
    def warm_start(self, log: Any, **columns: Any) -> int:
        return super().warm_start(sorted(log, key=_reward_in, reverse=True), **columns)


@specimen(cost=math.inf, shows="logs")
def make_white_warm_start_keeps_best() -> pb.Agent:
    """A log with more rewards of a person than the limit counts the best of them, and not the first: infinite."""
    return _StartSorted(small_policy(), max_rewards_per_person=2)


class _StartDropsZeros(pb.Agent):
    def warm_start(self, log: Any, **columns: Any) -> int:
        rows = list(log)
        return super().warm_start([row for row in rows if _reward_in(row) > 0] or rows[:1], **columns)


@specimen(cost=math.inf, shows="logs")
def make_white_warm_start_drops_zeros() -> pb.Agent:
    """Rewards of 0 in a log count as missing, which the counts of the first releases show: infinite."""
    return _StartDropsZeros(small_policy())


class _StartErrorTells(pb.Agent):
    def warm_start(self, log: Any, **columns: Any) -> int:
        try:
            return super().warm_start(log, **columns)
        except pb.errors.InvalidInput as error:
            error.add_note(f"rewards from {min(map(_reward_in, log), default=0)}")
            raise


@specimen(cost=math.inf, shows="errors")
def make_white_warm_start_error_tells() -> pb.Agent:
    """A log with an unknown arm is refused with its lowest reward in a note: infinite."""
    return _StartErrorTells(small_policy())


# Options: a limit for people, decisions that run out of time; and files.


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


# Failures, and the words of errors beside their text.


class FailsByRelease(pb.AdaCUCB):
    def learn(self, state: DoublingState, release: Release, step: int) -> None:
        if release.number > 2 and release.values[0] > 2:
            raise ArithmeticError("such a sum is not expected")
        super().learn(state, release, step)


@correct()
def make_white_learn_fails_by_release() -> pb.Agent:
    """Correct: the policy fails at a large release, which everybody may know."""
    return pb.Agent(small_policy(kind=FailsByRelease))


class _ExitsByRelease(pb.AdaCUCB):
    def learn(self, state: DoublingState, release: Release, step: int) -> None:
        if release.number > 2 and release.values[0] < -1:
            raise SystemExit(3)
        super().learn(state, release, step)


@correct()
def make_white_learn_exits_by_release() -> pb.Agent:
    """Correct: the policy wants to end the process at a low release, which everybody may know."""
    return pb.Agent(small_policy(kind=_ExitsByRelease))


class _RestsAtTimes(pb.AdaCUCB):
    def recommend(self, state: DoublingState, waiting: Any, arrived: Any, step: int) -> int:
        if step % 5 == 0 and sum(waiting) > 1:
            raise RuntimeError(f"step {step} has to wait for {sum(waiting)} rewards")
        return super().recommend(state, waiting, arrived, step)


@correct()
def make_white_recommend_fails_by_step() -> pb.Agent:
    """Correct: every fifth ask fails while two decisions are open, which everybody may know."""
    return pb.Agent(small_policy(kind=_RestsAtTimes))


class _PublicNotes(_Talkative):
    def told_instead(self, error: pb.errors.PrivateBanditsError) -> pb.errors.PrivateBanditsError:
        error.add_note(f"{self.public.asked} decisions so far, {len(open_decisions(self))} open")
        error.__cause__ = KeyError(len(self.door.account))
        return error


@correct()
def make_white_public_notes(path: StrPath | None = None) -> pb.Agent:
    """Correct: errors have notes, and a cause, that tell how many decisions and releases there were."""
    return running(_PublicNotes)(small_policy(), path=path)


class _NoteTellsSums(_Talkative):
    def told_instead(self, error: pb.errors.PrivateBanditsError) -> pb.errors.PrivateBanditsError:
        if isinstance(error, pb.errors.ClosedDecision):
            error.add_note(f"sums in the works: {_open_sums(self)}")
        return error


@specimen(cost=math.inf, shows="errors")
def make_white_note_tells_sums() -> pb.Agent:
    """Telling a decision twice is refused with the open sums in a note: infinite."""
    return running(_NoteTellsSums)(small_policy())


class _CauseTellsSums(_Talkative):
    def told_instead(self, error: pb.errors.PrivateBanditsError) -> pb.errors.PrivateBanditsError:
        if not isinstance(error, pb.errors.UnknownDecision):
            return error
        unknown = pb.errors.UnknownDecision("unknown")
        unknown.__cause__ = ValueError(f"{error}: {_open_sums(self)}")
        return unknown


@specimen(cost=math.inf, shows="errors")
def make_white_cause_tells_sums() -> pb.Agent:
    """Telling an unknown decision is refused because of an error that has the open sums in its text: infinite."""
    return running(_CauseTellsSums)(small_policy())


class _ContextTellsSums(pb.Agent):
    def tell_many(self, rewards: Any) -> None:
        items = list(rewards)
        try:
            if len({repr(item) for item in items}) < len(items):
                raise ValueError(f"twice in a batch, beside {_open_sums(bandit_of(self))}")
        except ValueError:
            raise pb.errors.ClosedDecision("a decision is twice in the batch") from None
        super().tell_many(items)


@specimen(cost=math.inf, shows="errors")
def make_white_context_tells_sums() -> pb.Agent:
    """A batch with a decision twice is refused while another error, with the open sums, is handled: infinite.

    `from None` hides it from a traceback, and from nobody who reads __context__.
    """
    return _ContextTellsSums(small_policy())


class _AttributeTellsSums(pb.Agent):
    def give_up(self, decision: pb.Decision | str) -> None:
        try:
            super().give_up(decision)
        except pb.errors.PrivateBanditsError as error:
            error.sums = _open_sums(bandit_of(self))  # type: ignore[attr-defined]
            raise


@specimen(cost=math.inf, shows="errors")
def make_white_error_attribute_tells_sums() -> pb.Agent:
    """Giving an unknown decision up is refused with an error that has the open sums as an attribute: infinite."""
    return _AttributeTellsSums(small_policy())


class _NoiseNoteTellsSums(Bandit):
    def tell_many(self, items: Sequence[Any]) -> pb.errors.PrivateBanditsError | None:
        refused = super().tell_many(items)
        if isinstance(refused, pb.errors.NoiseFailed):
            refused.add_note(f"left over: {_open_sums(self)}")
        return refused


@specimen(cost=math.inf, shows="errors")
def make_white_noise_failure_tells_sums() -> pb.Agent:
    """A batch whose noise cannot be drawn is refused with the open sums in a note: infinite."""
    return running(_NoiseNoteTellsSums)(small_policy())


class _FailureCounts(Bandit):
    def take(self, told: Told) -> pb.errors.PrivateBanditsError | None:
        refused = super().take(told)
        if isinstance(refused, pb.errors.NoiseFailed):
            _, played, reward = told
            self.private.episodes[played].add((1,), reward)
        return refused


@specimen(cost=2.0, shows="noise that cannot be drawn")
def make_white_noise_failure_counts_twice() -> pb.Agent:
    """A reward whose release failed counts, and is open to be told again: 4 rho."""
    return running(_FailureCounts)(small_policy())


class _TellsPolicy(Bandit):
    """Tells its policy, which should not know, whether the sum that a reward goes into is above 0.75."""

    def take(self, told: Told) -> pb.errors.PrivateBanditsError | None:
        object.__setattr__(self.policy, "rich", _sum_with(self, told) > 0.75 * self.door.grid.steps)
        return super().take(told)


class _LearnFailsWhenRich(pb.AdaCUCB):
    def learn(self, state: DoublingState, release: Release, step: int) -> None:
        if release.number > 2 and getattr(self, "rich", False):
            raise ArithmeticError("too much")
        super().learn(state, release, step)


@specimen(cost=math.inf, shows="failures")
def make_white_learn_fails_by_raw_sum() -> pb.Agent:
    """The policy fails at a release whose sum, without noise, is high: infinite."""
    return running(_TellsPolicy)(small_policy(kind=_LearnFailsWhenRich))


class _RecommendFailsWhenRich(pb.AdaCUCB):
    def recommend(self, state: DoublingState, waiting: Any, arrived: Any, step: int) -> int:
        if step % 3 == 0 and getattr(self, "rich", False):
            raise ArithmeticError("too much")
        return super().recommend(state, waiting, arrived, step)


@specimen(cost=math.inf, shows="failures")
def make_white_recommend_fails_by_raw_sum() -> pb.Agent:
    """Every third ask fails if the last reward made its sum high: infinite."""
    return running(_TellsPolicy)(small_policy(kind=_RecommendFailsWhenRich))


class _DueExitsWhenRich(pb.AdaCUCB):
    def due(self, state: DoublingState, key: int, count: int, arrived: Any) -> bool:
        if count == 2 and getattr(self, "rich", False):
            raise SystemExit("enough")
        return super().due(state, key, count, arrived)


@specimen(cost=math.inf, shows="failures")
def make_white_due_exits_by_raw_sum() -> pb.Agent:
    """The policy wants to end the process with the second reward of an episode, if their sum is high: infinite."""
    return running(_TellsPolicy)(small_policy(kind=_DueExitsWhenRich))


class _FailureTellsSum(Bandit):
    def learn(self, row: Release) -> None:
        if row.number == 5:
            raise RuntimeError(f"stuck, with {_open_sums(self)} to go")
        super().learn(row)


@specimen(cost=math.inf, shows="failures")
def make_white_failure_tells_sums() -> pb.Agent:
    """The fifth release always fails, with the open sums in the words: infinite."""
    return running(_FailureTellsSum)(small_policy())


# ---------------------------------------------------------------------------------------------------------------------
# B. Black specimens: agents of their own. Nothing below uses private_bandits.


class Pick(NamedTuple):
    """What ask returns: an action, and an id that the reward is told to."""

    action: int
    id: int


class BlackBox(ABC):
    """Asks and tells. Subclasses choose an action and learn from a reward in [0, 1]."""

    def __init__(self, arms: int = 2, rho: float = 0.5, rng: random.Random | None = None) -> None:
        self.arms = arms
        self.sigma = 1 / math.sqrt(2 * rho)
        self.epsilon = math.sqrt(2 * rho)
        self.random = rng or random.Random()
        self.steps = 0
        self._open: dict[int, int] = {}

    def ask(self) -> Any:
        self.steps += 1
        self._open[self.steps] = action = self.choose()
        return Pick(action, self.steps)

    def tell(self, decision: Any, reward: float, *, played: int | None = None) -> None:
        if decision.id not in self._open:
            raise LookupError("this decision is not open")
        arm = self._open[decision.id] if played is None else int(played)
        value = self.check(reward)
        if not 0 <= arm < self.arms:
            raise ValueError(f"played must be from 0 to {self.arms - 1}")
        del self._open[decision.id]
        self.learn(arm, value)

    def check(self, reward: float) -> float:
        if not math.isfinite(reward):
            raise ValueError("the reward must be a finite number")
        return min(max(float(reward), 0.0), 1.0)

    @abstractmethod
    def choose(self) -> int: ...

    @abstractmethod
    def learn(self, arm: int, reward: float) -> None: ...


class Doubling(BlackBox):
    """UCB on noisy means of episodes: an arm's sum is released, and forgotten, when its count has doubled."""

    def __init__(self, arms: int = 2, rho: float = 0.5, rng: random.Random | None = None) -> None:
        super().__init__(arms, rho, rng)
        self.sums, self.counts = [0.0] * arms, [0] * arms  # not released yet
        self.released, self.last, self.means = [0] * arms, [0] * arms, [0.0] * arms
        self.choice = 0

    def choose(self) -> int:
        return self.last.index(0) if 0 in self.last else self.choice

    def learn(self, arm: int, reward: float) -> None:
        self.sums[arm] += reward
        self.counts[arm] += 1
        if self.due(arm, reward):
            self.release(arm)

    def due(self, arm: int, reward: float) -> bool:
        return self.counts[arm] >= max(1, self.released[arm])

    def release(self, arm: int) -> None:
        n = self.counts[arm]
        self.means[arm] = self.noisy_mean(arm, self.sums[arm], n)
        self.last[arm] = n
        self.released[arm] += n
        self.sums[arm], self.counts[arm] = 0.0, 0
        self.choice = self.best()

    def noisy_mean(self, arm: int, total: float, n: int) -> float:
        return (total + self.noise(arm, n)) / n

    def noise(self, arm: int, n: int) -> float:
        return self.random.gauss(0.0, self.scale(arm, n))

    def scale(self, arm: int, n: int) -> float:
        """Standard deviation of the noise on a sum of n rewards."""
        return self.sigma

    def index(self, arm: int) -> float:
        n = self.last[arm]
        if not n:
            return -math.inf
        return self.means[arm] + math.sqrt((0.5 / n + 2 * self.sigma**2 / n**2) * math.log(max(2, self.steps)))

    def best(self) -> int:
        return max(range(self.arms), key=self.index)


# Correct ones.


@correct()
def make_black_doubling_ucb(seed: int | None = None) -> BlackBox:
    """Correct: doubling UCB with Gaussian noise, one draw a release, two arms."""
    return Doubling(rng=random.Random(seed))


@correct(rho=0.1)
def make_black_doubling_ucb_small_rho(seed: int | None = None) -> BlackBox:
    """Correct: doubling UCB, three arms, rho = 0.1."""
    return Doubling(3, 0.1, random.Random(seed))


@correct(rho=1.0)
def make_black_doubling_ucb_five_arms(seed: int | None = None) -> BlackBox:
    """Correct: doubling UCB, five arms, rho = 1."""
    return Doubling(5, 1.0, random.Random(seed))


class Elimination(BlackBox):
    """Phases in which every arm left is played equally often; after each, arms that are surely worse go."""

    def __init__(self, arms: int = 2, rho: float = 0.5) -> None:
        super().__init__(arms, rho)
        self.active, self.length = list(range(arms)), 1
        self.sums, self.counts = [0.0] * arms, [0] * arms

    def choose(self) -> int:
        return min(self.active, key=self.counts.__getitem__)

    def learn(self, arm: int, reward: float) -> None:
        if arm not in self.active:
            return
        self.sums[arm] += reward
        self.counts[arm] += 1
        if min(self.counts[a] for a in self.active) >= self.length:
            mean = {a: (self.sums[a] + self.random.gauss(0, self.sigma)) / self.counts[a] for a in self.active}
            n = self.length
            width = math.sqrt((0.5 / n + 2 * self.sigma**2 / n**2) * math.log(max(2, self.steps)))
            self.active = [a for a in self.active if mean[a] + width >= max(mean.values()) - width]
            self.length *= 2
            self.sums, self.counts = [0.0] * self.arms, [0] * self.arms


@correct()
def make_black_elimination() -> BlackBox:
    """Correct: successive elimination, each phase's sums with noise of their own."""
    return Elimination(3)


class EpsilonGreedy(Doubling):
    def choose(self) -> int:
        return self.random.randrange(self.arms) if self.random.random() < 0.1 else super().choose()

    def index(self, arm: int) -> float:
        return self.means[arm] if self.last[arm] else -math.inf


@correct()
def make_black_epsilon_greedy() -> BlackBox:
    """Correct: epsilon-greedy on the noisy means of doubling episodes."""
    return EpsilonGreedy(3)


class Commit(BlackBox):
    """Five rewards an arm, one noisy sum each, then the best for ever; later rewards are not looked at."""

    def __init__(self, arms: int = 2, rho: float = 0.5) -> None:
        super().__init__(arms, rho)
        self.sums, self.counts, self.noisy = [0.0] * arms, [0] * arms, [0.0] * arms

    def choose(self) -> int:
        if min(self.counts) < 5:
            return self.counts.index(min(self.counts))
        return self.noisy.index(max(self.noisy))

    def learn(self, arm: int, reward: float) -> None:
        if self.counts[arm] < 5:
            self.sums[arm] += reward
            self.counts[arm] += 1
            if self.counts[arm] == 5:
                self.noisy[arm] = self.sums[arm] + self.random.gauss(0, self.sigma)


@correct(rho=1.0)
def make_black_explore_then_commit() -> BlackBox:
    """Correct: explore, one noisy sum an arm, then commit."""
    return Commit(2, 1.0)


class Thompson(Doubling):
    def choose(self) -> int:
        if 0 in self.last:
            return self.last.index(0)
        spread = [math.sqrt(0.25 / n + self.sigma**2 / n**2) for n in self.last]
        drawn = [self.random.gauss(m, s) for m, s in zip(self.means, spread, strict=True)]
        return drawn.index(max(drawn))


@correct()
def make_black_thompson_on_releases() -> BlackBox:
    """Correct: each ask draws around the released means, with randomness of its own."""
    return Thompson(2)


class Uniform(BlackBox):
    def choose(self) -> int:
        return self.random.randrange(self.arms)

    def learn(self, arm: int, reward: float) -> None:
        pass


@correct(rho=0.1)
def make_black_uniform() -> BlackBox:
    """Correct: any arm at random, whatever was told: costs nothing."""
    return Uniform(3, 0.1)


class RoundRobin(Uniform):
    def choose(self) -> int:
        return self.steps % self.arms


@correct()
def make_black_round_robin() -> BlackBox:
    """Correct: one arm after the other, whatever was told: costs nothing, and every run is the same."""
    return RoundRobin(2)


class RandomisedResponse(BlackBox):
    """Each reward becomes a bit that tells little; everything else uses the bits."""

    def __init__(self, arms: int = 2, rho: float = 0.5, factor: float = 1.0) -> None:
        super().__init__(arms, rho)
        self.flip = 1 / (1 + math.exp(factor * self.epsilon))
        self.bits, self.counts = [0] * arms, [0] * arms

    def choose(self) -> int:
        if 0 in self.counts:
            return self.counts.index(0)
        bonus = [math.sqrt(math.log(max(2, self.steps)) / (2 * n)) for n in self.counts]
        index = [b / n + w for b, n, w in zip(self.bits, self.counts, bonus, strict=True)]
        return index.index(max(index))

    def learn(self, arm: int, reward: float) -> None:
        bit = self.random.random() < reward
        self.bits[arm] += bit ^ (self.random.random() < self.flip)
        self.counts[arm] += 1


@correct()
def make_black_randomised_response() -> BlackBox:
    """Correct: each reward as a flipped bit of epsilon = sqrt(2 rho), then UCB at every step."""
    return RandomisedResponse(2)


class LocalGaussian(BlackBox):
    """Each reward gets noise of its own; everything else uses the noisy ones."""

    def __init__(self, arms: int = 2, rho: float = 0.5) -> None:
        super().__init__(arms, rho)
        self.noisy, self.counts = [0.0] * arms, [0] * arms

    def choose(self) -> int:
        if 0 in self.counts:
            return self.counts.index(0)
        wide = (0.5 + 2 * self.sigma**2) * math.log(max(2, self.steps))
        index = [s / n + math.sqrt(wide / n) for s, n in zip(self.noisy, self.counts, strict=True)]
        return index.index(max(index))

    def learn(self, arm: int, reward: float) -> None:
        self.noisy[arm] += reward + self.random.gauss(0, self.sigma)
        self.counts[arm] += 1


@correct()
def make_black_local_gaussian() -> BlackBox:
    """Correct: each reward is released at once, with noise of its own; the index moves at every tell."""
    return LocalGaussian(2)


class Strict(Doubling):
    def check(self, reward: float) -> float:
        if not 0 <= reward <= 1:
            raise ValueError("rewards must be from 0 to 1")
        return float(reward)


@correct()
def make_black_strict() -> BlackBox:
    """Correct for rewards in [0, 1]: refuses others, with a ValueError that does not name them."""
    return Strict(2)


class Plain:
    """ask returns an int, and tell takes it back."""

    def __init__(self, inner: Doubling) -> None:
        self._inner = inner

    def ask(self) -> int:
        self._inner.steps += 1
        return self._inner.choose()

    def tell(self, action: int, reward: float) -> None:
        if not 0 <= action < self._inner.arms:
            raise ValueError("no such action")
        self._inner.learn(action, self._inner.check(reward))


@correct()
def make_black_plain_int() -> Plain:
    """Correct: ask returns a plain int and tell takes (action, reward), without played=."""
    return Plain(Doubling(3))


class Tree(BlackBox):
    """The binary mechanism: each of an arm's first 255 rewards is in at most 8 noisy sums. Later ones are dropped."""

    levels = 8

    def __init__(self, arms: int = 2, rho: float = 0.5, charged: bool = True) -> None:
        super().__init__(arms, rho)
        self.scale = self.sigma * math.sqrt(self.levels if charged else 1)
        self.counts = [0] * arms
        self.raw = [[0.0] * self.levels for _ in range(arms)]
        self.noisy = [[0.0] * self.levels for _ in range(arms)]

    def choose(self) -> int:
        if 0 in self.counts:
            return self.counts.index(0)
        log_t = math.log(max(2, self.steps))
        index = [
            sum(noisy) / n + math.sqrt((0.5 / n + 2 * bin(n).count("1") * self.scale**2 / n**2) * log_t)
            for noisy, n in zip(self.noisy, self.counts, strict=True)
        ]
        return index.index(max(index))

    def learn(self, arm: int, reward: float) -> None:
        if self.counts[arm] + 1 >= 2**self.levels:
            return
        self.counts[arm] += 1
        level = (self.counts[arm] & -self.counts[arm]).bit_length() - 1
        raw, noisy = self.raw[arm], self.noisy[arm]
        raw[level] = sum(raw[:level]) + reward
        noisy[level] = raw[level] + self.random.gauss(0, self.scale)
        raw[:level] = noisy[:level] = [0.0] * level


@correct(rho=1.0)
def make_black_tree() -> BlackBox:
    """Correct: running sums through a binary tree of 8 levels, with noise of variance 8/(2 rho) a node."""
    return Tree(2, 1.0)


class Slow(Doubling):
    def ask(self) -> Any:
        time.sleep(0.001)
        return super().ask()

    def tell(self, decision: Any, reward: float, *, played: int | None = None) -> None:
        time.sleep(0.001)
        super().tell(decision, reward, played=played)


@correct()
def make_black_slow() -> BlackBox:
    """Correct, and slow: a millisecond a call."""
    return Slow(2)


class NumpyNoise(Doubling):
    def __init__(self, arms: int = 2, rho: float = 0.5) -> None:
        super().__init__(arms, rho)
        self.generator = np.random.default_rng()

    def noise(self, arm: int, n: int) -> float:
        return float(self.generator.normal(0.0, self.sigma))


@correct()
def make_black_numpy() -> BlackBox:
    """Correct: the noise comes from numpy's default_rng()."""
    return NumpyNoise(2)


@correct()
def make_black_system_random() -> BlackBox:
    """Correct: the noise comes from the system's generator, which cannot be seeded."""
    return Doubling(2, 0.5, random.SystemRandom())


class ClippedMean(Doubling):
    def noisy_mean(self, arm: int, total: float, n: int) -> float:
        return min(max(super().noisy_mean(arm, total, n), 0.0), 1.0)


@correct()
def make_black_clipped_mean() -> BlackBox:
    """Correct: the noisy mean is clipped to [0, 1], which is post-processing."""
    return ClippedMean(2)


class DrawnUntilInside(Doubling):
    def noisy_mean(self, arm: int, total: float, n: int) -> float:
        while True:
            mean = super().noisy_mean(arm, total, n)
            if 0 <= mean <= 1:
                return mean


@correct()
def make_black_drawn_until_inside() -> BlackBox:
    """Correct, though it looks wrong: noise is drawn until the mean lies in [0, 1], whatever the sum.

    A Gaussian restricted to an interval that does not depend on the data has no larger variance than before for any
    centre, so the divergence between two centres, an integral of it, is no larger either.
    """
    return DrawnUntilInside(2)


class Laplace(Doubling):
    factor = 1.0

    def noise(self, arm: int, n: int) -> float:
        size = self.random.expovariate(self.epsilon / self.factor)
        return size if self.random.random() < 0.5 else -size


@correct()
def make_black_laplace() -> BlackBox:
    """Correct: Laplace noise of epsilon = sqrt(2 rho), which implies rho."""
    return Laplace(2)


class TwoSums(Doubling):
    """Each reward is in its own episode's release and in the arm's next one."""

    charge = 1.0

    def __init__(self, arms: int = 2, rho: float = 0.5) -> None:
        super().__init__(arms, rho)
        self.carried = [(0.0, 0)] * arms

    def scale(self, arm: int, n: int) -> float:
        return self.sigma * math.sqrt(self.charge)

    def noisy_mean(self, arm: int, total: float, n: int) -> float:
        before, m = self.carried[arm]
        self.carried[arm] = (total, n)
        return (total + before + self.noise(arm, n)) / (n + m)


class TwoSumsCharged(TwoSums):
    charge = 2.0


@correct()
def make_black_two_sums_charged() -> BlackBox:
    """Correct: each reward is in two releases, each with noise for half of the budget."""
    return TwoSumsCharged(2)


class NoisierThanNeeded(Doubling):
    def scale(self, arm: int, n: int) -> float:
        return 2 * self.sigma


@correct(rho=1.0)
def make_black_noisier_than_needed() -> BlackBox:
    """Correct: twice the noise needed, so a quarter of the claimed rho."""
    return NoisierThanNeeded(2, 1.0)


# Broken: too little noise, or of the wrong kind.


class Scaled(Doubling):
    """Noise of `factor` times the scale needed."""

    def __init__(self, arms: int, rho: float, factor: float) -> None:
        super().__init__(arms, rho)
        self.factor = factor

    def scale(self, arm: int, n: int) -> float:
        return self.factor * self.sigma


@specimen(cost=2.0)
def make_black_sigma_halved() -> BlackBox:
    """Half of the noise: 4 rho."""
    return Scaled(2, 0.5, 1 / 2)


@specimen(rho=0.1, cost=0.4)
def make_black_sigma_halved_small_rho() -> BlackBox:
    """Half of the noise at rho = 0.1, three arms: 4 rho."""
    return Scaled(3, 0.1, 1 / 2)


@specimen(cost=8.0)
def make_black_sigma_quarter() -> BlackBox:
    """A quarter of the noise: 16 rho."""
    return Scaled(2, 0.5, 1 / 4)


@specimen(rho=0.1, cost=2.5)
def make_black_sigma_inverted() -> BlackBox:
    """sqrt(2 rho) for 1/sqrt(2 rho): a fifth of the noise at rho = 0.1, so 25 rho."""
    return Scaled(3, 0.1, 1 / 5)


@specimen(rho=1.0, cost=math.inf)
def make_black_no_noise() -> BlackBox:
    """No noise at all: infinite."""
    return Scaled(2, 1.0, 0.0)


@specimen(cost=math.inf)
def make_black_fixed_seed() -> BlackBox:
    """The noise comes from a fixed seed, the same in every run: infinite."""
    return Doubling(2, 0.5, random.Random(12345))


class PerCount(Doubling):
    power = 0.5

    def scale(self, arm: int, n: int) -> float:
        return self.sigma * math.pow(n, -self.power)


@specimen(cost=math.inf)
def make_black_variance_over_n() -> BlackBox:
    """The mean gets noise of sigma/n^1.5 for sigma/n: n rho for a sum of n rewards, without bound."""
    return PerCount(2)


class PerCountSquared(PerCount):
    power = 1.0


@specimen(rho=1.0, cost=math.inf)
def make_black_mean_noise_on_sum() -> BlackBox:
    """The sum gets the noise that is meant for the mean, sigma/n: n^2 rho, without bound."""
    return PerCountSquared(2, 1.0)


class SmallLaplace(Laplace):
    factor = 0.25


@specimen(cost=4 - 1 + math.exp(-4))
def make_black_laplace_too_small() -> BlackBox:
    """Laplace noise of a quarter of the scale, so epsilon = 4: rho is at least its KL divergence, 3.02."""
    return SmallLaplace(2)


class UniformNoise(Doubling):
    def noise(self, arm: int, n: int) -> float:
        return self.random.uniform(-1, 1) * math.sqrt(3) * self.sigma


@specimen(cost=math.inf)
def make_black_uniform_noise() -> BlackBox:
    """Uniform noise of the right variance: beyond its ends it tells for sure, so infinite."""
    return UniformNoise(2)


class BoundedNoise(Doubling):
    def noise(self, arm: int, n: int) -> float:
        while True:
            drawn = super().noise(arm, n)
            if abs(drawn) <= self.sigma:
                return drawn


@specimen(cost=math.inf)
def make_black_bounded_noise() -> BlackBox:
    """Gaussian noise beyond one sigma is drawn again, so that its ends move with the sum: infinite."""
    return BoundedNoise(2)


class RoundingOnly(Doubling):
    def noisy_mean(self, arm: int, total: float, n: int) -> float:
        return math.floor(total + self.random.random()) / n


@specimen(cost=math.inf)
def make_black_rounding_only() -> BlackBox:
    """The sum is rounded to a whole number at random, and that is all: infinite."""
    return RoundingOnly(2)


class NoNoiseAtFirst(Doubling):
    def scale(self, arm: int, n: int) -> float:
        return self.sigma if self.released[arm] else 0.0


@specimen(cost=math.inf)
def make_black_first_release_raw() -> BlackBox:
    """Noise from an arm's second release on; the first is raw: infinite."""
    return NoNoiseAtFirst(2)


class WrongArm(Doubling):
    def noisy_mean(self, arm: int, total: float, n: int) -> float:
        other = (arm + 1) % self.arms
        self.means[other] += self.noise(arm, n) / max(1, self.last[other])
        return total / n


@specimen(cost=math.inf)
def make_black_noise_on_wrong_arm() -> BlackBox:
    """The noise goes to the next arm's mean, and this one's is raw: infinite.

    An arm that was released many times lets little noise through.
    """
    return WrongArm(2)


class OneNoisePerArm(Doubling):
    def noise(self, arm: int, n: int) -> float:
        drawn: dict[int, float] = self.__dict__.setdefault("drawn", {})
        return drawn.setdefault(arm, self.random.gauss(0, self.sigma))


@specimen(cost=math.inf)
def make_black_noise_reused_per_arm() -> BlackBox:
    """An arm's noise is drawn once for all of its releases: differences of them are raw, infinite.

    In the actions what is seen of one release tells the noise of the next.
    """
    return OneNoisePerArm(2)


class OneNoise(Doubling):
    def noise(self, arm: int, n: int) -> float:
        drawn: dict[int, float] = self.__dict__.setdefault("drawn", {})
        return drawn.setdefault(0, self.random.gauss(0, self.sigma))


@specimen(cost=math.inf)
def make_black_noise_shared_by_arms() -> BlackBox:
    """One draw for all arms cancels where releases of equal counts are compared: infinite."""
    return OneNoise(3)


@specimen(cost=4 * math.tanh(2))
def make_black_randomised_response_too_weak() -> BlackBox:
    """Bits are flipped as for epsilon = 4 in place of 1: rho is at least the KL divergence, 3.86."""
    return RandomisedResponse(2, 0.5, factor=4.0)


# Broken: a reward is released more often than it is charged.


class RedrawAtAsk(Doubling):
    def noisy_mean(self, arm: int, total: float, n: int) -> float:
        self.__dict__.setdefault("kept", {})[arm] = (total, n)
        return super().noisy_mean(arm, total, n)

    def choose(self) -> int:
        for arm, (total, n) in list(self.__dict__.get("kept", {}).items()):
            self.means[arm] = super().noisy_mean(arm, total, n)
        self.choice = self.best()
        return super().choose()


@specimen(cost=math.inf)
def make_black_redraw_at_ask() -> BlackBox:
    """Noise of the last sums is drawn anew at every ask: rho times the number of asks, without bound."""
    return RedrawAtAsk(2)


@specimen(cost=1.0, hard=True)
def make_black_reward_in_two_sums() -> BlackBox:
    """Each reward is in two releases and charged for one: 2 rho."""
    return TwoSums(2)


class Cumulative(Doubling):
    def release(self, arm: int) -> None:
        total, n = self.sums[arm], self.counts[arm]
        super().release(arm)
        self.released[arm] = n
        self.sums[arm], self.counts[arm] = total, n

    def due(self, arm: int, reward: float) -> bool:
        return self.counts[arm] >= 2 * self.released[arm]


@specimen(cost=math.inf, hard=True)
def make_black_cumulative_doubling() -> BlackBox:
    """No forgetting: at each doubling the sum of all rewards leaves with fresh noise: rho a release."""
    return Cumulative(2)


class CumulativeAlways(Cumulative):
    def due(self, arm: int, reward: float) -> bool:
        return True


@specimen(rho=0.1, cost=math.inf)
def make_black_cumulative_every_tell() -> BlackBox:
    """No forgetting: at each tell the sum of all rewards leaves with fresh noise: rho a tell."""
    return CumulativeAlways(2, 0.1)


@specimen(cost=4.0, hard=True)
def make_black_tree_uncharged() -> BlackBox:
    """The binary mechanism of 8 levels with the noise of one: up to 8 rho."""
    return Tree(2, 0.5, charged=False)


# Broken: actions depend on rewards before, or beside, any release.


class Remembering(Doubling):
    """Keeps every raw reward; subclasses misuse it."""

    def __init__(self, arms: int = 2, rho: float = 0.5) -> None:
        super().__init__(arms, rho)
        self.told: list[tuple[int, float]] = []

    def learn(self, arm: int, reward: float) -> None:
        self.told.append((arm, reward))
        super().learn(arm, reward)

    def of(self, arm: int) -> list[float]:
        return [r for a, r in self.told if a == arm]

    def raw_best(self) -> int:
        return max(range(self.arms), key=lambda a: sum(self.of(a)) / max(1, len(self.of(a))))


class WinStay(Remembering):
    def choose(self) -> int:
        if not self.told:
            return 0
        arm, reward = self.told[-1]
        return arm if reward > 0.5 else (arm + 1) % self.arms


@specimen(cost=math.inf)
def make_black_win_stay_lose_shift() -> BlackBox:
    """The next action follows the last raw reward: infinite."""
    return WinStay(2)


class TieBreak(Remembering):
    def best(self) -> int:
        return max(range(self.arms), key=lambda a: (round(self.index(a)) if self.last[a] else -99, sum(self.of(a))))


@specimen(cost=math.inf)
def make_black_tie_by_raw_sum() -> BlackBox:
    """Indices are rounded to whole numbers, and ties go to the larger raw sum.

    Infinite: all later choices may show the raw sums.
    """
    return TieBreak(2)


class EndsAtWin(Doubling):
    def due(self, arm: int, reward: float) -> bool:
        return super().due(arm, reward) or reward > 0.5


@specimen(cost=math.inf)
def make_black_ends_at_first_win() -> BlackBox:
    """An episode ends at its first reward above 0.5: how long it takes is decided by raw rewards.

    Infinite: counts, and with them indices and changes of the arm, follow raw rewards.
    """
    return EndsAtWin(2)


class ThreeZeros(Remembering):
    def choose(self) -> int:
        left = [a for a in range(self.arms) if self.of(a).count(0.0) < 3]
        choice = super().choose()
        return choice if choice in left or not left else left[0]


@specimen(cost=math.inf)
def make_black_three_zeros_end_arm() -> BlackBox:
    """An arm with three raw zeros is played no more while there are others: infinite."""
    return ThreeZeros(3)


class LateLeak(Remembering):
    def choose(self) -> int:
        if len(self.told) > 20:
            return round(sum(r for _, r in self.told)) % self.arms
        return super().choose()


@specimen(cost=math.inf)
def make_black_late_parity() -> BlackBox:
    """Correct for 20 tells; from then on the raw sum, modulo the arms, decides the action: infinite."""
    return LateLeak(2)


class RareLeak(Remembering):
    def choose(self) -> int:
        return self.raw_best() if self.random.random() < 0.05 else super().choose()


@specimen(cost=math.inf)
def make_black_rare_leak() -> BlackBox:
    """Each ask tells the raw best arm with a probability of 5 percent: infinite."""
    return RareLeak(3)


class FiveOnes(Remembering):
    def choose(self) -> int:
        first = [r for _, r in self.told[:5]]
        return self.arms - 1 if first == [1.0] * 5 else super().choose()


@specimen(cost=math.inf)
def make_black_five_ones() -> BlackBox:
    """If the first five rewards were all 1, the last arm is played for ever: infinite, in that case only."""
    return FiveOnes(2)


class SkipsZeros(Doubling):
    def learn(self, arm: int, reward: float) -> None:
        if reward > 0:
            super().learn(arm, reward)


@specimen(cost=math.inf)
def make_black_zeros_not_counted() -> BlackBox:
    """Rewards of 0 count as missing, which shows in when sums are released: infinite."""
    return SkipsZeros(2)


class RawThompson(Remembering):
    def choose(self) -> int:
        sums = [(sum(self.of(a)), len(self.of(a))) for a in range(self.arms)]
        drawn = [self.random.betavariate(1 + s, 1 + n - s) for s, n in sums]
        return drawn.index(max(drawn))


@specimen(cost=math.inf)
def make_black_thompson_on_raw() -> BlackBox:
    """Thompson sampling from raw posteriors, as if its own randomness were enough.

    One action tells little; asks without tells tell ever more, without bound.
    """
    return RawThompson(2)


class Softmax(Remembering):
    def choose(self) -> int:
        weights = [math.exp(4 * sum(self.of(a)) / max(1, len(self.of(a)))) for a in range(self.arms)]
        return self.random.choices(range(self.arms), weights)[0]


@specimen(cost=math.inf)
def make_black_softmax_on_raw() -> BlackBox:
    """Each ask draws by the exponential mechanism on raw means, which nobody adds up: without bound."""
    return Softmax(2)


class RawGreedy(Remembering):
    def choose(self) -> int:
        return self.random.randrange(self.arms) if self.random.random() < 0.1 else self.raw_best()


@specimen(rho=1.0, cost=math.inf)
def make_black_epsilon_greedy_on_raw() -> BlackBox:
    """Epsilon-greedy on raw means; its exploring hides nothing for long: without bound."""
    return RawGreedy(3, 1.0)


class Pauses(Remembering):
    def choose(self) -> int:
        if [r for _, r in self.told[-3:]] == [0.0] * 3 and self.__dict__.get("paused") != len(self.told):
            self.paused = len(self.told)
            raise RuntimeError("paused for a review: ask again")
        return super().choose()


@specimen(cost=math.inf, shows="errors")
def make_black_pauses_after_zeros() -> BlackBox:
    """After three raw zeros in a row an ask is refused, once: infinite, through the error alone."""
    return Pauses(2)


# Agents that have more than ask and tell.


class Able(Remembering):
    """Asks for several decisions, takes several rewards, and starts from a log of (arm, reward)."""

    def ask(self, n: int | None = None) -> Any:
        return super().ask() if n is None else [self.next_of(i) for i in range(n)]

    def next_of(self, place: int) -> Any:
        """A decision that is asked for with others, at this place."""
        return super().ask()

    def tell_many(self, rewards: Any) -> Any:
        for item in rewards:
            decision, reward, *played = item
            self.tell(decision, reward, played=played[0] if played else None)

    def warm_start(self, log: Any) -> Any:
        for arm, reward in log:
            self.learn(int(arm), self.check(reward))
        return len(log)


@correct()
def make_black_able() -> BlackBox:
    """Correct: doubling UCB with ask(n), tell_many and warm_start."""
    return Able(2)


class Unlike(Doubling):
    """Its methods have the names of this package's, and other arguments."""

    def ask(self, n: str = "x") -> Any:
        return super().ask()

    def tell_many(self, decisions: Any, rewards: Any) -> None:
        for decision, reward in zip(decisions, rewards, strict=True):
            self.tell(decision, reward)

    def warm_start(self, path: Any) -> None:
        raise FileNotFoundError(f"no such file: {path}")


@correct()
def make_black_unlike() -> BlackBox:
    """Correct: its tell_many and warm_start want other arguments than this package's."""
    return Unlike(2)


class BatchAnswers(Able):
    def tell_many(self, rewards: Any) -> float:
        super().tell_many(rewards)
        return sum(self.of(0)) + sum(self.of(1))


@specimen(cost=math.inf, shows="tell_many's answer")
def make_black_batch_answers_sum() -> BlackBox:
    """tell_many returns the sum of all rewards: infinite."""
    return BatchAnswers(2)


class BatchStops(Able):
    def tell_many(self, rewards: Any) -> None:
        for decision, reward, *_ in rewards:
            self.tell(decision, reward)
            if reward < 0.25:
                raise RuntimeError("the rest can wait")


@specimen(cost=math.inf, shows="errors")
def make_black_batch_stops_at_zero() -> BlackBox:
    """A batch ends with its first reward below 0.25: infinite, through the error alone."""
    return BatchStops(2)


class AskManyRaw(Able):
    def next_of(self, place: int) -> Any:
        decision = super().next_of(place)
        if not place:
            return decision
        self._open[decision.id] = self.raw_best()
        return Pick(self.raw_best(), decision.id)


@specimen(cost=math.inf)
def make_black_ask_many_raw() -> BlackBox:
    """Decisions asked for at once are, all but the first, the raw best arm: infinite."""
    return AskManyRaw(2)


class RawStart(Able):
    def warm_start(self, log: Any) -> int:
        super().warm_start(log)
        for arm in range(self.arms):
            if self.of(arm):
                self.last[arm] = self.released[arm] = len(self.of(arm))
                self.means[arm] = sum(self.of(arm)) / len(self.of(arm))
        self.choice = self.best()
        return len(log)


@specimen(cost=math.inf)
def make_black_warm_start_raw() -> BlackBox:
    """A log's means are taken as they are: infinite."""
    return RawStart(2)


class NoteTells(Remembering):
    def tell(self, decision: Any, reward: float, *, played: int | None = None) -> None:
        try:
            super().tell(decision, reward, played=played)
        except LookupError as error:
            error.add_note(f"told so far: {sum(r for _, r in self.told)}")
            raise


@specimen(cost=math.inf, shows="errors")
def make_black_note_tells_sum() -> BlackBox:
    """Telling a decision twice is refused with the sum of all rewards in a note: infinite."""
    return NoteTells(2)


class Exits(Remembering):
    def choose(self) -> int:
        if [r for _, r in self.told[-2:]] == [0.0] * 2:
            raise SystemExit("no luck")
        return super().choose()


@specimen(cost=math.inf)
def make_black_exits_after_zeros() -> BlackBox:
    """After two raw zeros in a row an ask wants to end the process: infinite."""
    return Exits(2)
