"""The cost of believing that an arm is as good as the best one: the index of AdaC-IMED.

A mean m of rewards in [0, 1], as good as that of n plain ones, carries noise of variance v. Were the arm's mean q > m,
then the rewards would have had some mean y, and the noise the rest. The likeliest of these stories costs

    J = inf over y in [max(m, 0), q] of   n kl(y, q) + (y - m)^2 / (2 v)

with Bernoulli's kl, which is safe for any rewards in [0, 1]. At the infimum logit q - logit y = d with n v d = y - m,
an equation whose left side grows with d and whose right side falls. As J is also the largest value over d of

    -n (d m + n v d^2 / 2 + log(1 - q + q e^-d))

a d that is off by a little gives a J that is off by a little squared.

Small costs are discounted (`discounted`): J (1 - e^(-J/3)) counts. An arm that is as good as the best has a J of 3 once
in twenty times, and would then be left alone for e^3 times its plays. With the discount that is e^1.9 times, and large
costs, which decide how often bad arms are played in a long run, count nearly in full.
"""

from __future__ import annotations

import math

import numpy as np

from private_bandits.arrays import Floats

LARGEST_MEAN = 1 - 1e-9
"""Means of rewards in [0, 1] are taken for no larger: kl is infinite at 1."""
DOUBT = 3.0
"""Costs of about this size are discounted: chosen by the study in benchmarks/imed.py."""
TIE = 1e-9
"""Indices that differ by no more are equal, and the first arm has precedence: rounding does not decide."""
SAFELY = 1 - 1e-9
"""Bounds are multiplied by this, for what rounding may do to them."""
_CLOSE = 1e-5
_MOST_ROUNDS = 100


def cost(mean: float, best: float, rewards: float, noise: float) -> float:
    """Return J for one arm: of its mean m, q = best, n = rewards, v = noise.

    Infinite rewards stand for a mean whose error is that of Gaussian noise altogether.

    >>> round(cost(0.4, 0.5, 100.0, 0.0), 4), round(cost(0.4, 0.5, 100.0, 0.01), 4)
    (2.0136, 0.4)
    >>> cost(0.6, 0.5, 100.0, 0.01), round(cost(-0.2, 0.0, 100.0, 0.01), 4)
    (0.0, 2.0)
    """
    if mean >= best:
        return 0.0
    if not noise:
        return rewards * _divergence(min(max(mean, 0.0), 1.0), best)
    if rewards == math.inf:
        return (best - mean) ** 2 / (2.0 * noise)
    scale = rewards * noise
    inside = min(max(mean, 0.0), 1.0)
    low, high = 0.0, (best - mean) / scale
    d = (best - mean) / (scale + 0.5 * (best * (1.0 - best) + inside * (1.0 - inside)))
    for _ in range(_MOST_ROUNDS):
        tilted = best * math.exp(-d)
        y = tilted / (1.0 - best + tilted)
        above = scale * d - y + mean
        if above < 0:
            low = d
        else:
            high = d
        step = above / (scale + y * (1.0 - y))
        if abs(step) <= _CLOSE * (1.0 + d):
            d -= step
            break
        d = d - step if low < d - step < high else 0.5 * (low + high)
    return max(0.0, -rewards * (d * mean + 0.5 * scale * d * d + math.log1p(best * math.expm1(-d))))


def _divergence(p: float, q: float) -> float:
    """Return Bernoulli's kl(p, q), for q below 1; q = 0 only if p = 0."""
    ones = p * math.log(p / q) if p else 0.0
    return ones + ((1.0 - p) * math.log((1.0 - p) / (1.0 - q)) if p < 1.0 else 0.0)


def discounted(found: float) -> float:
    """Return what counts of a cost: J (1 - e^(-J/3)). It grows with J, and is J for large ones.

    >>> [round(discounted(j), 2) for j in (0.0, 3.0, 12.0)]
    [0.0, 1.9, 11.78]
    """
    return -found * math.expm1(-found / DOUBT)


def all_discounted(found: Floats) -> Floats:
    """The same for arrays."""
    return -found * np.expm1(-found / DOUBT)


def bound_of_cost(mean: float, best: float, rewards: float, noise: float) -> float:
    """Return what J is not below, without a search: kl(y, q) >= (q - y)^2 / (2 V), V the largest x(1 - x) between.

    >>> bound_of_cost(0.4, 0.5, 100.0, 0.01) <= cost(0.4, 0.5, 100.0, 0.01)
    True
    """
    if mean >= best:
        return 0.0
    largest = min(max(mean, 0.5), best)  # of x(1 - x), from the mean to the best
    variance = noise + largest * (1.0 - largest) / rewards
    return SAFELY * (best - mean) ** 2 / (2.0 * variance) if variance else 0.0


def bounds_of_costs(means: Floats, best: Floats | float, rewards: Floats, noise: Floats) -> Floats:
    """The same for arrays, element by element."""
    largest = np.minimum(np.maximum(means, 0.5), best)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = SAFELY * (best - means) ** 2 / (2.0 * (noise + largest * (1.0 - largest) / rewards))
    return np.where((means < best) & np.isfinite(found), found, 0.0)


def costs(means: Floats, best: Floats, rewards: Floats, noise: Floats) -> Floats:
    """Return J for arrays of one shape, element by element.

    >>> arms = np.array([0.4, 0.6, -0.2]), np.array([0.5, 0.5, 0.0]), np.full(3, 100.0), np.array([0.0, 0.01, 0.01])
    >>> costs(*arms).round(4).tolist()
    [2.0136, 0.0, 2.0]
    """
    return np.asarray(costs_and_slopes(means, best, rewards, noise)[0])


def costs_and_slopes(means: Floats, best: Floats, rewards: Floats, noise: Floats) -> Floats:
    """Return J and its slope in q, as two rows of one array. J is convex in q: no tangent is above it."""
    found = np.zeros((2, *means.shape))
    below = means < best
    certain, noisy = below & (noise == 0.0), below & (noise > 0.0)
    if certain.any():
        p, q, n = means[certain].clip(0.0, 1.0), best[certain], rewards[certain]
        with np.errstate(divide="ignore", invalid="ignore"):  # p = q = 0: no ones were seen, the slope is n
            slope = (1.0 - p) / (1.0 - q) - np.where(p > 0.0, p / q, 0.0)
        found[:, certain] = n * _divergences(p, q), n * slope
    if noisy.any():
        found[:, noisy] = _noisy_costs(*(part[noisy] for part in (means, best, rewards, noise)))
    return found


def _noisy_costs(means: Floats, best: Floats, rewards: Floats, noise: Floats) -> tuple[Floats, Floats]:
    """The same where there is noise and the mean is below: Newton's steps, kept within what is known of the root."""
    gap, gaussian = best - means, np.isinf(rewards)
    rewards = np.where(gaussian, 1.0, rewards)
    scale = rewards * noise
    inside = means.clip(0.0, 1.0)
    d = gap / (scale + 0.5 * (best * (1.0 - best) + inside * (1.0 - inside)))
    left, parts = np.arange(len(d)), np.array([best, scale, means, np.zeros(len(d)), gap / scale, d])
    for _ in range(_MOST_ROUNDS):
        q, factor, m, low, high, now = parts
        tilted = q * np.exp(-now)
        y = tilted / (1.0 - q + tilted)
        above = factor * now - y + m
        below = above < 0.0
        low[:], high[:] = np.where(below, now, low), np.where(below, high, now)
        step = above / (factor + y * (1.0 - y))
        moved = now - step
        unsure = np.abs(step) > _CLOSE * (1.0 + now)
        now[:] = np.where(unsure & ((moved <= low) | (moved >= high)), 0.5 * (low + high), moved)
        d[left] = now
        left, parts = left[unsure], parts[:, unsure]
        if not len(left):
            break
    fall = np.expm1(-d)
    found = np.maximum(-rewards * (d * means + 0.5 * scale * d * d + np.log1p(best * fall)), 0.0)
    slopes = -rewards * fall / (1.0 + best * fall)
    return np.where(gaussian, gap**2 / (2.0 * noise), found), np.where(gaussian, gap / noise, slopes)


def _divergences(p: Floats, q: Floats) -> Floats:
    """Bernoulli's kl(p, q), for q below 1; q = 0 only if p = 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ones = np.where(p > 0.0, p * np.log(p / q), 0.0)
        zeros = np.where(p < 1.0, (1.0 - p) * np.log((1.0 - p) / (1.0 - q)), 0.0)
    return np.asarray(ones + zeros)
