"""How far noise and rewards stray: tails that follow from the kind of noise alone, whatever a policy makes of them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from private_bandits.budget import NoiseKind
from private_bandits.policies.base import Estimate
from private_bandits.policies.release_memory import MeanError


def mean_half_width(noise: NoiseKind, count: int, noise_sd: float, log_inv_failure: float, width: float) -> float:
    """How far a released mean of `count` rewards strays, but for a probability of 2 exp(-log_inv_failure).

    noise_sd: of the noise in the mean; width: of the reward range. With Gaussian noise, or none, the mean is
    subgaussian with variance width^2/(4n) + noise_sd^2. Laplace noise is not subgaussian: Hoeffding for the rewards
    and the Laplace tail for the noise, half of the probability each.

    >>> round(mean_half_width("gaussian", 100, 0.0, 2.0, width=1.0), 3)
    0.1
    """
    if noise == "laplace":
        log_each = log_inv_failure + math.log(2)
        return width * math.sqrt(log_each / (2.0 * count)) + noise_sd / math.sqrt(2) * log_each
    return math.sqrt(2.0 * (width**2 / (4.0 * count) + noise_sd**2) * log_inv_failure)


def noise_half_width(noise: NoiseKind, sd: float, peak: float, log_inv_failure: float) -> float:
    """How far a sum of noises strays, but for a probability of 2 exp(-log_inv_failure).

    sd^2: variance of the sum, peak^2: of its largest part. A sum of Laplace draws has a moment generating function of
    at most exp(x^2 sd^2) for x <= 1/peak, as 1/(1 - u) <= exp(2u) for u <= 1/2; then Chernoff's bound. The discrete
    distributions, Gaussian and Laplace, have smaller ones than the continuous.

    >>> noise_half_width("gaussian", 3.0, 1.0, 2.0), noise_half_width("laplace", 3.0, 1.0, 4.0)
    (6.0, 12.0)
    """
    if noise != "laplace":
        return sd * math.sqrt(2 * log_inv_failure)
    if not sd:
        return 0.0
    root = math.sqrt(log_inv_failure)
    return 2 * sd * root if root * peak <= sd else sd * (sd / peak) + peak * log_inv_failure


def upper_bound(mean: Any, spread: MeanError, log_inv_failure: Any) -> NDArray[np.float64]:
    """Return what the mean of rewards in [0, 1] exceeds with a probability of at most exp(-x), x = log_inv_failure.

    Arrays are taken element by element.

    mean: an estimate, in which rewards have squared weights of sum r and weights of at most w, and Gaussian noise the
    variance s. A mean q above it is excluded, up to that probability, once

        (q - mean)^2 > 2 (r (1/6 + q(1 - q)/3) + s) x        as no reward of mean q varies more (Kearns, Saul)
        (q - mean)^2 > 2 (w V + s) x                         V: the largest y(1 - y) between the estimate and q

    The first is never wider than Hoeffding's bound, which has 1/4 for the bracket; the second follows from the rate
    function and is the narrower near 0 and 1 (docs/guarantees.md). V is that of q up to 1/2, and that of the estimate
    from 1/2 on. The second counts where it says something: that q is below 1/2, or below 1.

    >>> bounds = upper_bound(np.array([0.1, 0.5, 0.9]), MeanError(0.01, 0.01, 0.0), 2.0)
    >>> bounds.round(3).tolist()  # Hoeffding: 0.2, 0.6, 1.0
    [0.176, 0.599, 0.96]
    """
    twice = 2.0 * log_inv_failure
    half, noise = 0.5 * (mean < 0.5), spread.noise * twice
    curve = mean * (1.0 - np.minimum(mean, 1.0))  # above 1 nothing is excluded, and the bounds below are 1 at least
    # The larger root q of (q - mean)^2 = bend q(1 - q) + level. If there is none every q is excluded: the apex will do.
    bend = spread.rewards * twice / 3.0  # level: bend/2 + noise
    inside = bend * (0.75 * bend + (curve + (0.5 + noise))) + noise
    by_variance = (mean + 0.5 * bend + np.sqrt(np.maximum(inside, 0.0))) / (1.0 + bend)
    rate = spread.weight * twice
    # Half of the bend. Level: noise; from 1/2 on there is no bend, but a level of rate mean (1 - mean) more.
    bend = rate * half
    inside = rate * curve + bend * (bend + (noise + noise)) + noise
    by_rate = (mean + bend + np.sqrt(np.maximum(inside, 0.0))) / (1.0 + (bend + bend))
    found: NDArray[np.float64] = np.where(by_rate >= 1.0 - half, by_variance, np.minimum(by_rate, by_variance))
    return found


def highest_bound(mean: Any, spread: MeanError, least: float, most: float) -> NDArray[np.float64]:
    """A number that `upper_bound` does not exceed for any log_inv_failure from least to most, rounding included.

    The same operations, in the same order, with the end of the range that makes each of them largest. A rounded sum,
    product, quotient or root grows with the exact one, so what holds for exact numbers holds for rounded ones. For
    means above 1 the bound itself falls with log_inv_failure.

    >>> mean, spread = np.array([-3.0, 0.1, 0.5, 0.9, 3.0]), MeanError(0.5, 0.5, 0.1)
    >>> bool((upper_bound(mean, spread, 2.5) <= highest_bound(mean, spread, 2.0, 3.0)).all())
    True
    """
    low, twice = 2.0 * least, 2.0 * most
    half, noise = 0.5 * (mean < 0.5), spread.noise * twice
    curve = mean * (1.0 - np.minimum(mean, 1.0))
    short, bend = spread.rewards * low / 3.0, spread.rewards * twice / 3.0
    times = 0.75 * bend + (curve + (0.5 + noise))
    inside = np.where(times > 0.0, bend, short) * times + noise
    top = mean + 0.5 * bend + np.sqrt(np.maximum(inside, 0.0))
    by_variance = top / (1.0 + np.where(top > 0.0, short, bend))
    slow, rate = spread.weight * low, spread.weight * twice
    short, bend = slow * half, rate * half
    inside = np.where(curve > 0.0, rate, slow) * curve + bend * (bend + (noise + noise)) + noise
    top = mean + bend + np.sqrt(np.maximum(inside, 0.0))
    by_rate = top / (1.0 + np.where(top > 0.0, short + short, bend + bend))
    # Where by_rate may reach its limit at some of the probabilities and not at others, by_variance is above either.
    found: NDArray[np.float64] = np.where(by_rate >= 1.0 - half, by_variance, np.minimum(by_rate, by_variance))
    return found


def interval(arm: int, name: str, mean: float, half_width: float, rewards: int, low: float, high: float) -> Estimate:
    """What is said of an arm whose mean is within `half_width` of this one, and in [low, high] anyway.

    >>> interval(0, "A", 0.9, 0.25, 10, 0.0, 1.0)
    Estimate(action=0, arm='A', mean=0.9, low=0.65, high=1.0, rewards=10)
    """
    below, middle, above = (min(max(x, low), high) for x in (mean - half_width, mean, mean + half_width))
    return Estimate(arm, name, middle, below, above, rewards)
