"""Black specimens that keep their promise."""

from __future__ import annotations

import math
import random
import time
from typing import Any

import numpy as np

from tests.audit.specimens.black_parts import BlackBox, Doubling
from tests.audit.specimens.listing import correct


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
