"""What white specimens are made of."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

import private_bandits as pb
from private_bandits.agent import bandit_of
from private_bandits.bandit import Bandit
from private_bandits.ledger import Account, Release
from private_bandits.ledger.chain import digest
from private_bandits.mechanism.composition import Outgoing
from private_bandits.mechanism.episode import Episode
from private_bandits.mechanism.noise import ExactNoise
from private_bandits.mechanism.release import Door
from private_bandits.policies.doubling import DoublingState
from private_bandits.state import OpenDecision


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
    opening = door.account.opening
    rows.append(replace(row, previous=digest(rows[-1].text if rows else opening)))
    door.account = Account(rows, opening)
    return rows[-1]


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
