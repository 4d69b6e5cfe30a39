"""How far noise and rewards stray: tails that follow from the kind of noise alone, whatever a policy makes of them."""

from __future__ import annotations

import math

from private_bandits.budget import NoiseKind
from private_bandits.policies.base import Estimate


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


def interval(arm: int, name: str, mean: float, half_width: float, rewards: int, low: float, high: float) -> Estimate:
    """What is said of an arm whose mean is within `half_width` of this one, and in [low, high] anyway.

    >>> interval(0, "A", 0.9, 0.25, 10, 0.0, 1.0)
    Estimate(action=0, arm='A', mean=0.9, low=0.65, high=1.0, rewards=10)
    """
    below, middle, above = (min(max(x, low), high) for x in (mean - half_width, mean, mean + half_width))
    return Estimate(arm, name, middle, below, above, rewards)
