"""What black specimens are made of: nothing of private_bandits."""

from __future__ import annotations

import math
import random
from abc import ABC, abstractmethod
from typing import Any, NamedTuple


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
