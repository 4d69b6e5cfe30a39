"""AdaC-UCB: upper confidence bounds under Gaussian noise, for finitely many arms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from private_bandits.arrays import Floats
from private_bandits.errors import InvalidInput
from private_bandits.ledger import Release
from private_bandits.mechanism.factor import HALF_BEFORE, Factor
from private_bandits.policies.base import Variant
from private_bandits.policies.doubling import ConfidenceBoundPolicy, DoublingState
from private_bandits.policies.release_memory import MeanError, ReleaseRecord, combine_releases
from private_bandits.policies.tails import highest_bound, upper_bound

OPENING = 7.5
"""Rewards in an arm's first two releases, about, for a noise of standard deviation one. Noise then moves their mean by
a seventh of the reward range; with fewer nothing could be decided yet, and each release has noise of its own."""
LONGEST_OPENING = 2**30


@dataclass(frozen=True)
class AdaCUCB(ConfidenceBoundPolicy):
    """AdaC-UCB ("Concentrated Differential Privacy for Bandits", Appendix C, Algorithm 4), and a tighter form of it.

    An arm is played until its count of rewards has doubled, and their sum is released. Index of an arm at step t, for
    rewards in [0, 1], as in the paper (variant="paper"):

        m + sqrt((1/(2n) + 2b/n^2) beta log t)

    n: rewards in the arm's last release, m: their noisy mean, b: variance factor of the budget (1/(2 rho) for
    zCDP, 0 without privacy). The noise of m was drawn once, at the release.

    variant="tight", the default, has less regret for the same budget, by four things:
    - it doubles later: after its first reward an arm is played until it has about 7.5 sqrt(b) of them, a power of two,
      as noise would hide any fewer;
    - it remembers. m is the combination of all releases of the arm that strays least (release_memory.py);
    - a release holds half of the arm's episode before it as well (factor.HALF_BEFORE), with noise of variance 5b/4: as
      episodes double, two looks at a reward with that noise say more than one look with noise of variance b;
    - its bound is narrower for means near 0 and 1 (tails.upper_bound).

    Guaranteed, for every beta: rho-Interactive zCDP (Theorem "Privacy of AdaC-UCB", and docs/guarantees.md for tight).
    At step t an index is below the arm's mean with a probability of at most t^-beta for each number of releases. The
    regret bound of Appendix C needs beta > 3 and rewards in [0, 1]; the paper's experiment uses beta = 1.

    >>> from private_bandits import zCDP
    >>> AdaCUCB(n_arms=5, budget=zCDP(0.1)).beta
    3.1
    >>> AdaCUCB(arms=["aspirin", "placebo"], budget=zCDP(1)).arm_names
    ('aspirin', 'placebo')
    """

    name: ClassVar[str] = "adac-ucb"
    supported_budgets: ClassVar[tuple[str, ...]] = ("zCDP", "ApproxDP", "RenyiDP", "NoPrivacy")
    source: ClassVar[str] = "Concentrated Differential Privacy for Bandits, Appendix C"
    alternative_hint: ClassVar[str] = "For PureDP use AdaPUCB, whose Laplace noise keeps it."
    variants: ClassVar[tuple[Variant, ...]] = ("paper", "tight")
    waits_for = "none"
    chooses_late = True

    variant: Variant = "tight"

    def __post_init__(self) -> None:
        super().__post_init__()
        own = type(self)
        as_here = own.values is AdaCUCB.values and own.indices is AdaCUCB.indices
        if self.uses_all_releases and own.index is not AdaCUCB.index and as_here:
            raise InvalidInput(
                f'{own.__name__} has an index of its own, which variant="tight" does not use: start from '
                'private_bandits.IndexPolicy, or use variant="paper"'
            )

    @property
    def uses_all_releases(self) -> bool:
        """Tight does."""
        return self.variant == "tight"

    @cached_property
    def initial_rewards(self) -> int:
        """A power of two, as counts double from there on; as published, one."""
        about = OPENING * math.sqrt(self.promise.variance_factor) if self.uses_all_releases else 1.0
        return int(2 ** round(math.log2(min(max(about, 1.0), LONGEST_OPENING))))

    @property
    def factor(self) -> Factor | None:
        """Half of the episode before, again; without noise there is nothing to gain."""
        return HALF_BEFORE if self.uses_all_releases and self.promise.variance_factor else None

    def index(self, means: Floats, counts: Floats, step: Any, width: float) -> Floats:
        """The paper's Eq. for the private index of one release, scaled to rewards of any width."""
        b = self.promise.variance_factor
        spread = (0.5 / counts + 2.0 * b / counts**2) * (self.beta * np.log(step))
        found: Floats = means + width * np.sqrt(spread)
        return found

    def start(self, low: float, high: float) -> DoublingState:
        """Nothing released yet."""
        state = super().start(low, high)
        if self.uses_all_releases:
            state.kept = [[] for _ in self.arm_names]
            state.spread = [MeanError(0.0, 0.0, 0.0) for _ in self.arm_names]
        return state

    def take(self, state: DoublingState, release: Release) -> None:
        """Remember the release, and read all of the arm's together."""
        if not self.uses_all_releases:
            return super().take(state, release)
        arm, count = release.key, release.count
        kept = state.kept[arm]
        kept.append(ReleaseRecord(release.values[0], count, release.noise_sd, release.rounding))
        state.releases[arm] += 1
        state.released[arm] += count
        state.last[arm] = state.released[arm]
        said = combine_releases(kept, self.factor, state.high - state.low)
        state.means[arm], state.noise_sd[arm], state.rounding[arm], state.spread[arm] = said
        return None

    def columns(self, state: DoublingState, arms: Sequence[int]) -> Floats:
        """For tight, the mean of all releases and its spread."""
        if not self.uses_all_releases:
            return super().columns(state, arms)
        return np.array([(state.means[arm], *state.spread[arm]) for arm in arms]).T

    def values(self, state: DoublingState, columns: Floats, step: int) -> Floats:
        """For tight, the upper bound of each arm's mean, in units of the reward range."""
        if not self.uses_all_releases:
            return super().values(state, columns, step)
        means = (columns[0] - state.low) / (state.high - state.low)
        return upper_bound(means, MeanError(*columns[1:]), self.beta * math.log(step))

    def ceilings(self, state: DoublingState, columns: Floats, first: int, last: int) -> Floats:
        """For tight, those of the upper bounds."""
        if not self.uses_all_releases:
            return super().ceilings(state, columns, first, last)
        means = (columns[0] - state.low) / (state.high - state.low)
        return highest_bound(means, MeanError(*columns[1:]), self.beta * math.log(first), self.beta * math.log(last))

    def half_width(self, state: DoublingState, arm: int, log_inv_failure: float) -> float:
        """For tight, of the mean of all releases."""
        if not self.uses_all_releases:
            return super().half_width(state, arm, log_inv_failure)
        return (state.high - state.low) * math.sqrt(2.0 * state.spread[arm].variance * log_inv_failure)
