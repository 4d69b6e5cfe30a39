"""What all releases of one arm say together, for rewards of one mean in [0, 1].

Episodes of n_1, n_2, ... rewards have the sums x_1, x_2, ..., and release number l is y_l = (C x)_l + z_l, C the factor
of the policy (the identity without one) and z_l independent noise. In units of the reward range, y has the mean C n
times that of the arm, and deviates from it with a subgaussian variance of

    Cov = C diag(n/4) C' + diag(variances of the noise)

so that of all unbiased combinations w.y with w.Cn = 1 the one with w proportional to Cov^-1 C n strays least. It never
strays further than the last release alone, or than a plain mean of some releases, as those are such combinations too.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from private_bandits.arrays import Floats
from private_bandits.mechanism.factor import INDEPENDENT, Factor
from private_bandits.policies.evidence import Evidence


class MeanError(NamedTuple):
    """How far a mean may stray, in units of the reward range; numbers, or arrays of them.

    rewards: the sum of the squared weights that rewards have in it. weight: the largest of these weights. In a plain
    mean of n rewards both are 1/n. noise: the variance of the noise in it.
    """

    rewards: Any
    weight: Any
    noise: Any

    @property
    def variance(self) -> Any:
        """Subgaussian, whatever the distribution of the rewards."""
        return self.rewards / 4 + self.noise


def weighted_evidence(mean: float, rounding: float, spread: MeanError, odds: float) -> Evidence:
    """Return what a mean of weighted rewards with Gaussian noise says of an arm, for rewards in [0, 1]."""
    largest = float(spread.weight)
    return Evidence(mean, rounding, 1.0 / largest if largest else math.inf, float(spread.noise), odds)


class CombinationWeights(NamedTuple):
    """How the first j releases are read, for every j.

    weights: [j, i] of release i in the mean. spread: of that mean.

    The same mean can be had one release after the other:

        e_j = y_j - (sum over i < j of carried_(j, i) e_i)        m_j = m_(j-1) + gain_j (e_j - slope_j m_(j-1))

    e_j is what is new in y_j, and slope_j times the arm's mean its mean. carried is zero beyond the episodes that a
    release holds again.
    """

    weights: Floats
    spread: MeanError
    carried: Floats
    slope: Floats
    gain: Floats


@lru_cache(maxsize=1024)
def combination_weights(counts: tuple[int, ...], noise: tuple[float, ...], factor: Factor | None) -> CombinationWeights:
    """How releases of episodes of `counts` rewards, with noise of these variances, are read.

    >>> plain = combination_weights((1, 1, 2), (0.0, 0.0, 0.0), None)
    >>> plain.weights.round(6).tolist()[-1], round(float(plain.spread.weight[-1]), 6)
    ([0.25, 0.25, 0.25], 0.25)
    """
    rewards = np.array(counts, float)
    if factor is None and not any(noise):
        return _plain_means(rewards)
    mixed = (factor or INDEPENDENT).matrix(len(counts))
    slopes = mixed @ rewards
    covariance = mixed @ np.diag(rewards / 4) @ mixed.T + np.diag(noise)
    # Counts span many orders of magnitude; correlations are about one whatever they are.
    scale = np.sqrt(np.diag(covariance))
    root = np.linalg.cholesky(covariance / np.outer(scale, scale))
    # Cholesky's factor of the first j rows is its own first j rows, so one of them serves every j.
    whiten = np.linalg.inv(root) / scale
    signal = whiten @ slopes
    information = np.cumsum(signal**2)
    weights = np.cumsum(signal[:, None] * whiten, axis=0) / information[:, None]
    size = scale * np.diag(root)
    carried = np.tril(root, -1) * scale[:, None] / size
    spread = _spread(rewards, weights @ mixed, weights**2 @ np.array(noise))
    return CombinationWeights(weights, spread, carried, signal * size, signal / (information * size))


def _plain_means(rewards: Floats) -> CombinationWeights:
    """Without noise, the mean of all rewards: exact for counts that double, so that arms with equal means tie."""
    totals = np.cumsum(rewards)
    weights = np.tril(np.ones((len(rewards), len(rewards)))) / totals[:, None]
    nothing = np.zeros(len(rewards))
    unshared = np.zeros_like(weights)
    return CombinationWeights(weights, MeanError(1 / totals, 1 / totals, nothing), unshared, rewards, 1 / totals)


def _spread(rewards: Floats, of_rewards: Floats, noise: Floats) -> MeanError:
    """The spread of each mean, in which a reward has the weight `of_rewards` of its episode.

    The bound by the rate function (legacy.py) wants weights that are not negative. Should one be, all of the variance
    counts as that of noise, for which every bound is Hoeffding's.
    """
    found = MeanError(of_rewards**2 @ rewards, of_rewards.max(axis=1), noise)
    usable = (of_rewards >= -1e-12 * of_rewards.max(axis=1, keepdims=True)).all(axis=1)
    return MeanError(found.rewards * usable, found.weight * usable, np.where(usable, noise, found.variance))
