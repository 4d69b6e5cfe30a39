"""Black specimens with too little noise, or of the wrong kind."""

from __future__ import annotations

import math
import random

from tests.audit.specimens.black_correct import Laplace, RandomisedResponse
from tests.audit.specimens.black_parts import BlackBox, Doubling
from tests.audit.specimens.listing import specimen


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
