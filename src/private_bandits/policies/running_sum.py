"""Geometric batches and a running sum: the frame of DP-IMED and DP-KLUCB.

Batch l = 0, 1, ... of an arm holds ceil(alpha^l) rewards. Its sum is released once, with noise of its own, and is added
to the sums that were released of the arm before. So nothing is forgotten, and the noises of all batches stay.

Each reward is in one batch and each batch in one release: docs/guarantees.md has the proof, as for any index.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from private_bandits.arrays import Floats
from private_bandits.checks import check_positive
from private_bandits.errors import InvalidInput
from private_bandits.ledger import Release
from private_bandits.policies.doubling import DoublingState, IndexPolicy
from private_bandits.policies.evidence import ArmEvidence
from private_bandits.policies.tails import mean_half_width, noise_half_width

LEAST_ALPHA = 1.01
"""With less, an arm of a thousand rewards has hundreds of noises in its sum."""
MOST_REWARDS = 2**63
"""No exact sum holds more."""


@lru_cache(maxsize=64)
def batch_ends(alpha: float) -> tuple[int, ...]:
    """Return the number of an arm's rewards at the end of each of its batches.

    >>> batch_ends(2.0)[:5], batch_ends(1.5)[:5]
    ((1, 3, 7, 15, 31), (1, 3, 6, 10, 16))
    """
    ends, size = [1], 1.0
    while ends[-1] < MOST_REWARDS:
        size *= alpha
        ends.append(ends[-1] + math.ceil(min(size, MOST_REWARDS)))
    return tuple(ends)


def batch_length(released: int, alpha: float) -> int:
    """Return the rewards in the next batch of an arm of which so many were released.

    After a log, whose rewards leave at once, it is the batch that would be next if no batch had held more.

    >>> [batch_length(n, 1.5) for n in (0, 1, 3, 6, 10, 11)]
    [1, 2, 3, 4, 6, 6]
    """
    ends = batch_ends(alpha)
    number = bisect_right(ends, released)
    return ends[number] - ends[number - 1] if number else ends[0]


@dataclass
class RunningSumState(DoublingState):
    """What was released of each arm. Public. `last`, `means`, `noise_sd` and `rounding` are of all rewards of the arm.

    largest_noise_sd: of the noise in a release of the arm, the largest.
    """

    largest_noise_sd: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class RunningSumPolicy(IndexPolicy):
    """Plays the arm of the largest index for a batch, and adds the batch's noisy sum to the arm's running sum.

    A subclass needs a `name` and an `index`. Its index is given means that are scaled to rewards in [0, 1] and clipped
    there, `counts` of all rewards released of each arm, and a width of 1.
    """

    supported_budgets: ClassVar[tuple[str, ...]] = ("PureDP", "NoPrivacy")
    source: ClassVar[str] = (
        "Azize, Wu, Honda, Orabona, Ito and Basu 2025, Optimal Regret of Bandits under Differential Privacy"
    )
    alternative_hint: ClassVar[str] = "For zCDP, ApproxDP and RenyiDP use AdaCIMED, whose Gaussian noise is smaller."
    waits_for = "none"

    alpha: float = 2.0

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "alpha", check_positive("alpha", self.alpha))
        if self.alpha < LEAST_ALPHA:
            raise InvalidInput(f"alpha must be at least {LEAST_ALPHA}, so that batches grow, got {self.alpha}")

    def start(self, low: float, high: float) -> RunningSumState:
        """Nothing released yet."""
        plain = self.dump_state(super().start(low, high))
        return RunningSumState(**plain, largest_noise_sd=[0.0] * len(self.arm_names))

    def due(self, state: DoublingState, key: int, count: int, arrived: Mapping[int, int]) -> bool:
        """Return whether the arm's batch is complete."""
        return count >= batch_length(max(state.released[key], state.left[key]), self.alpha)

    def take(self, state: DoublingState, release: Release) -> None:
        """Add the sum of a batch to those before it."""
        assert isinstance(state, RunningSumState)
        arm, before = release.key, state.released[release.key]
        n = before + release.count
        state.released[arm] = state.last[arm] = n
        state.releases[arm] += 1
        state.means[arm] += (release.values[0] - release.count * state.means[arm]) / n
        state.noise_sd[arm] = math.hypot(before * state.noise_sd[arm], release.noise_sd) / n
        state.rounding[arm] = (before * state.rounding[arm] + release.rounding) / n
        state.largest_noise_sd[arm] = max(state.largest_noise_sd[arm], release.noise_sd)

    def columns(self, state: DoublingState, arms: Sequence[int]) -> Floats:
        """Return the mean of all rewards of each arm, clipped to the reward range and scaled to [0, 1], and n."""
        found = super().columns(state, arms)
        found[0] = clipped_means(found[0], state.low, state.high - state.low)
        return found

    def values(self, state: DoublingState, columns: Floats, step: int) -> Floats:
        """The index of each column."""
        return self.checked_index(columns[0], columns[1], step, 1.0)

    def chosen(self, state: DoublingState, step: int) -> int:
        """The arm of the largest index, from that of every arm: an index may depend on the means of other arms."""
        return self._largest(state, step)

    def half_width(self, state: DoublingState, arm: int, log_inv_failure: float) -> float:
        """How far the mean of an arm strays, but for a probability of 2 exp(-log_inv_failure).

        Half of the probability is for the rewards, by Hoeffding's bound, and half for the sum of the noises.
        """
        assert isinstance(state, RunningSumState)
        n, width, noise = state.last[arm], state.high - state.low, self.budget.noise
        if noise == "none":
            return mean_half_width(noise, n, 0.0, log_inv_failure, width)
        each = log_inv_failure + math.log(2)
        of_noise = noise_half_width(noise, n * state.noise_sd[arm], state.largest_noise_sd[arm], each) / n
        return width * math.sqrt(each / (2 * n)) + of_noise

    def evidence(self, state: DoublingState) -> list[ArmEvidence] | None:
        """The mean of all rewards of each arm, with the noises of all of its batches."""
        if not self.as_planned:
            return None
        assert isinstance(state, RunningSumState)
        peaks = [sd / max(n, 1) for sd, n in zip(state.largest_noise_sd, state.last, strict=True)]
        return [self.plain_evidence(state, arm, peak) for arm, peak in enumerate(peaks)]

    def load_state(self, data: Mapping[str, Any]) -> RunningSumState:
        """From plain data."""
        return RunningSumState(**data)


def clipped_means(means: Floats, low: float, width: float) -> Floats:
    """Return means of rewards in [low, low + width], scaled to [0, 1] and clipped there."""
    found: Floats = np.clip((means - low) / width, 0.0, 1.0)
    return found
