"""A contextual bandit in floating point: it does with a reward what a live one does, in the same order.

Rewards are not put on a grid, and the noise is continuous, from a generator. It protects nobody.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from private_bandits.arrays import Floats
from private_bandits.mechanism.factor import Factor
from private_bandits.mechanism.moments import MomentScale
from private_bandits.mechanism.tree import is_complete, nodes_after, subtrees_joined
from private_bandits.policies import Offer
from private_bandits.simulation.simulated_noise import release_deviation

Addend = Callable[[tuple[int, ...], float], Floats]


@dataclass(slots=True)
class NoisySum:
    """What a policy reads of a release (`ledger.Release`)."""

    key: int
    values: Floats
    count: int
    all_rewards: int

    @property
    def counts(self) -> tuple[int, ...]:
        """The number of new rewards of its one sum."""
        return (self.count,)


@dataclass
class OpenSum:
    """One of a policy's sums: what arrived since its last release, and what later releases hold again.

    That is the subtrees of its tree (tree.py), or earlier episodes (factor.py).
    """

    total: Floats
    count: int = 0
    leaves: int = 0
    kept: list[tuple[Floats, int]] = field(default_factory=list)

    def close(self, levels: int, factor: Factor | None) -> tuple[Floats, int]:
        """Return what is to be released, without noise, and how many rewards it holds in all. The next one begins."""
        total, count = self.total, self.count
        self.total, self.count = np.zeros_like(total), 0
        if factor is not None:
            return self._correlated(total, count, factor)
        if not levels:
            return total, count
        self.leaves += 1
        for part, rewards in self.kept[len(self.kept) - subtrees_joined(self.leaves, levels) :]:
            total, count = total + part, count + rewards
        after = nodes_after(self.kept, (total, count), self.leaves, levels)
        self.kept = [] if is_complete(self.leaves, levels) else after
        return total, count

    def _correlated(self, newest: Floats, count: int, factor: Factor) -> tuple[Floats, int]:
        self.leaves += 1
        parts = [(newest, count), *reversed(self.kept)]
        self.kept = list(factor.kept_after(self.kept, (newest, count), self.leaves))
        return factor.weighted([part for part, _ in parts]), sum(rewards for _, rewards in parts)


def moment_addend(scale: MomentScale) -> Addend:
    """What a person adds, without rounding and without shortening."""
    return lambda weight, reward: scale.addend(np.array(weight) / scale.context_steps, reward / scale.largest_reward)


def _weighted(weight: tuple[int, ...], reward: float) -> Floats:
    return np.array(weight) * reward


class SimulatedBandit:
    """A policy with its state and its open sums. noise: where its noise comes from."""

    def __init__(self, policy: Any, low: float, high: float, noise: np.random.Generator) -> None:
        self.policy = policy
        self.state = policy.start(low, high)
        self.releases = 0
        self.noise_sd = release_deviation(policy, low, high)
        self._noise = noise
        self._sums: dict[int, OpenSum] = {}
        self._arrived: dict[int, int] = {}
        self._levels: int = policy.tree_levels
        scale: MomentScale | None = policy.moments(low, high)
        self._size = policy.dimension if scale is None else scale.size
        self._addend = _weighted if scale is None else moment_addend(scale)

    def take(self, offered: Offer, action: int, reward: float, next_step: int) -> bool:
        """Take a reward, and release and learn the sum that it completes. Returns whether it completes one."""
        policy, state = self.policy, self.state
        entry = policy.entry_of(state, offered, action)
        if entry is None:
            return False
        key, weight = entry
        opened = self._sums.get(key)
        if opened is None:
            opened = self._sums[key] = OpenSum(np.zeros(self._size))
            self._arrived[key] = 0
        policy.arrive(state, key, () if policy.private_contexts else weight)
        due = policy.due(state, key, opened.count + 1, self._arrived)
        opened.total += self._addend(weight, reward)
        opened.count += 1
        if due:
            count = opened.count
            total, all_rewards = opened.close(self._levels, policy.factor)
            noise = self.noise_sd * self._noise.standard_normal(self._size)
            policy.learn(state, NoisySum(key, total + noise, count, all_rewards), next_step)
            self.releases += 1
        self._arrived[key] = opened.count
        return bool(due)
