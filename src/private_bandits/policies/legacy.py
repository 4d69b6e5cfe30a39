"""The tight variant of AdaC-UCB, for files that earlier versions made with it. New agents use AdaC-IMED."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np

from private_bandits.arrays import Floats
from private_bandits.ledger import Release
from private_bandits.mechanism.factor import HALF_BEFORE, Factor
from private_bandits.policies.adac_ucb import AdaCUCB
from private_bandits.policies.base import Variant
from private_bandits.policies.doubling import DoublingState
from private_bandits.policies.evidence import ArmEvidence
from private_bandits.policies.release_memory import MeanError, combination_weights, weighted_evidence

OPENING = 7.5
"""Rewards in an arm's first two releases, about, for a noise of standard deviation one."""
LONGEST_OPENING = 2**30


class ReleaseRecord(NamedTuple):
    """A release as it is remembered, in the units of the rewards. rewards: how many it holds for the first time."""

    value: float
    rewards: int
    noise_sd: float
    rounding: float


@dataclass
class TightState(DoublingState):
    """What was released of each arm. Public. `last`, `means`, `noise_sd` and `rounding` are of all releases of the arm.

    kept: those releases. spread: how far the mean that they have together may stray.
    """

    kept: list[list[ReleaseRecord]] = field(default_factory=list)
    spread: list[MeanError] = field(default_factory=list)


@dataclass(frozen=True)
class TightAdaCUCB(AdaCUCB):
    """AdaC-UCB as `variant="tight"` of version 0.8 ran it, to the last bit. Only files that it made bring one back.

    It doubles later: an arm's second release brings it to about 7.5 sqrt(b) rewards, a power of two. It reads all
    releases of an arm together (release_memory.py), a release holds half of the episode before it again
    (factor.HALF_BEFORE), and its bound is narrower for means near 0 and 1 (`upper_bound`). docs/guarantees.md proves
    that it keeps its budget.
    """

    variants: ClassVar[tuple[Variant, ...]] = ("tight",)
    replaced_by: ClassVar[str] = AdaCUCB.former_variants["tight"]
    waits_for = "none"

    variant: Variant = "tight"

    @cached_property
    def initial_rewards(self) -> int:
        """How many rewards of an arm its first two releases have together: a power of two, as counts double then."""
        about = OPENING * math.sqrt(self.budget.variance_factor)
        return int(2 ** round(math.log2(min(max(about, 1.0), LONGEST_OPENING))))

    @property
    def factor(self) -> Factor | None:
        """Half of the episode before, again; without noise there is nothing to gain."""
        return HALF_BEFORE if self.budget.variance_factor else None

    def start(self, low: float, high: float) -> TightState:
        """Nothing released yet."""
        arms = self.arm_names
        plain = self.dump_state(super().start(low, high))
        return TightState(**plain, kept=[[] for _ in arms], spread=[MeanError(0.0, 0.0, 0.0) for _ in arms])

    def due(self, state: DoublingState, key: int, count: int, arrived: Mapping[int, int]) -> bool:
        """Whether an arm's unreleased rewards equal its released ones, and make up `initial_rewards`."""
        released = max(state.released[key], state.left[key])
        return count >= (max(released, self.initial_rewards - released) if released else 1)

    def take(self, state: DoublingState, release: Release) -> None:
        """Remember the release, and read all of the arm's together."""
        assert isinstance(state, TightState)
        arm, count = release.key, release.count
        kept = state.kept[arm]
        kept.append(ReleaseRecord(release.values[0], count, release.noise_sd, release.rounding))
        state.releases[arm] += 1
        state.released[arm] += count
        state.last[arm] = state.released[arm]
        said = combine_releases(kept, self.factor, state.high - state.low)
        state.means[arm], state.noise_sd[arm], state.rounding[arm], state.spread[arm] = said

    def columns(self, state: DoublingState, arms: Sequence[int]) -> Floats:
        """The mean of all releases and its spread."""
        assert isinstance(state, TightState)
        return np.array([(state.means[arm], *state.spread[arm]) for arm in arms]).T

    def values(self, state: DoublingState, columns: Floats, step: int) -> Floats:
        """The upper bound of each arm's mean, in units of the reward range."""
        means = (columns[0] - state.low) / (state.high - state.low)
        return upper_bound(means, MeanError(*columns[1:]), self.beta * math.log(step))

    def half_width(self, state: DoublingState, arm: int, log_inv_failure: float) -> float:
        """Of the mean of all releases."""
        assert isinstance(state, TightState)
        return (state.high - state.low) * math.sqrt(2.0 * state.spread[arm].variance * log_inv_failure)

    def evidence(self, state: DoublingState) -> list[ArmEvidence]:
        """The mean of all releases of each arm."""
        assert isinstance(state, TightState)
        found: list[ArmEvidence] = []
        for j, mean, rounding, spread in zip(state.releases, state.means, state.rounding, state.spread, strict=True):
            width = state.high - state.low
            means = (mean - state.low) / width, rounding / width
            found.append((weighted_evidence(*means, spread, j * (j + 1)),) if j else ())
        return found

    def load_state(self, data: Mapping[str, Any]) -> TightState:
        """From plain data."""
        kept = [[ReleaseRecord(*row) for row in rows] for rows in data["kept"]]
        return TightState(**{**data, "kept": kept, "spread": [MeanError(*row) for row in data["spread"]]})


class ArmEstimate(NamedTuple):
    """The mean of an arm, in the units of the rewards, with what is known of its error. noise_sd, rounding: in it."""

    mean: float
    noise_sd: float
    rounding: float
    spread: MeanError


class _NewestWeights(NamedTuple):
    """How some releases are read together: the weight of each, and what follows from weights and noise alone."""

    weights: Floats
    sizes: Floats
    noise_sd: float
    spread: MeanError


@lru_cache(maxsize=1024)
def _newest_weights(counts: tuple[int, ...], noise: tuple[float, ...], factor: Factor | None) -> _NewestWeights:
    found = combination_weights(counts, noise, factor)
    weights = found.weights[-1]
    noise_sd = float(np.sqrt(weights**2 @ np.array(noise)))
    return _NewestWeights(weights, np.abs(weights), noise_sd, MeanError(*(float(part[-1]) for part in found.spread)))


def combine_releases(kept: Sequence[ReleaseRecord], factor: Factor | None, width: float) -> ArmEstimate:
    """What the releases of an arm say together, for rewards in a range of this width."""
    noise = [k.noise_sd / width for k in kept]
    found = _newest_weights(tuple([k.rewards for k in kept]), tuple([sd * sd for sd in noise]), factor)
    if len(kept) == 1:  # without an array: of very many arms most have one release
        weight, only = float(found.weights[0]), kept[0]
        return ArmEstimate(weight * only.value, width * found.noise_sd, abs(weight) * only.rounding, found.spread)
    return ArmEstimate(
        float(found.weights @ [k.value for k in kept]),
        width * found.noise_sd,
        float(found.sizes @ [k.rounding for k in kept]),
        found.spread,
    )


def upper_bound(mean: Any, spread: MeanError, log_inv_failure: Any) -> Floats:
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
    found: Floats = np.where(by_rate >= 1.0 - half, by_variance, np.minimum(by_rate, by_variance))
    return found
