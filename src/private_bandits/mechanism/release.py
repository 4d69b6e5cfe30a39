"""THE DOOR: the only code that sees both a raw sum and noise.

`Door.release` is the function that the proofs in docs/guarantees.md are about. Everything that an agent
publishes depends on rewards only through its return values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

from private_bandits.budget import Budget
from private_bandits.errors import InvalidInput
from private_bandits.ledger import Account, Release, rewards_in
from private_bandits.mechanism.composition import Combined, Composition, Outgoing, composition_for
from private_bandits.mechanism.episode import INT64, TAIL, Episode, Grid
from private_bandits.mechanism.factor import Factor
from private_bandits.mechanism.moments import MomentScale
from private_bandits.mechanism.noise import ExactNoise, NoiseSource, SeededNoise
from private_bandits.mechanism.private_context_episode import PrivateContextEpisode
from private_bandits.mechanism.rewards import RewardRange

__all__ = ["Door", "NoiseSource", "Observer"]


class Observer(Protocol):
    """Sees both sides of a door: raw sums and releases. Nothing of what it sees may be published."""

    def leaving(self, whole: Outgoing) -> None:
        """Look at what is about to go through, with its exact sums."""

    def released(self, row: Release) -> None:
        """Look at what came out."""


class Door:
    """Releases finished episodes, each once, with noise calibrated to the weights that were summed.

    budget: one reward's share of the promise. account: what was released so far, and its cost.
    seed: makes the noise foreseeable, for tests. weight_room: the largest weight that sums have to have room for.
    releases_of_a_reward: in how many releases a reward may be (trees); they share the budget.
    factor: with which multipliers releases hold earlier episodes again; the releases of a reward share the budget too.
    noise: where noise comes from; None: exact, or from the seed.
    moments: given, episodes are sums over people whose contexts are private as well.
    """

    def __init__(
        self,
        budget: Budget,
        reward_range: RewardRange,
        account: Account,
        seed: int | None,
        weight_room: int = 1,
        *,
        releases_of_a_reward: int = 1,
        factor: Factor | None = None,
        moments: MomentScale | None = None,
        noise: NoiseSource | None = None,
    ) -> None:
        if factor is not None and (releases_of_a_reward > 1 or budget.noise == "laplace"):
            raise InvalidInput("a factor is for Gaussian noise, without a tree")
        self.budget = budget
        self.reward_range = reward_range
        self.account = account
        self.composition: Composition = composition_for(factor, releases_of_a_reward)
        self._per_release = budget.shared(self.composition.reward_cost)
        self._moments = moments
        unit = 1 if factor is None else factor.unit
        self.grid = Grid.for_noise(_noise_per_step(self._per_release), weight_room, unit)
        if noise is not None and not callable(getattr(noise, "calibrate", None)):
            raise InvalidInput(f"noise must be a source of noise, with a method calibrate, got {type(noise).__name__}")
        self.noise: NoiseSource = noise or (ExactNoise() if seed is None else SeededNoise(seed))
        """Where noise comes from. Tests and audits may put their own here."""

    @property
    def level(self) -> float:
        """Cost of one release at most: rho of Gaussian noise, epsilon of Laplace noise."""
        return self._per_release.level

    @property
    def secret(self) -> bool:
        """Whether the noise protects: not where a seed makes it foreseeable, or where there is none."""
        return self.noise.secret and self.budget.noise != "none"

    def open_episode(self, key: int, number: int, dimension: int, declared: int = 0) -> Episode:
        """An empty episode on this door's grid. declared: a norm that counts even if no weight reaches it."""
        if self._moments is not None:
            return PrivateContextEpisode(key, number, self._moments, self.grid)
        if type(declared) is not int or declared < 0:  # a number of fixed size would wrap around where it is squared
            raise InvalidInput(f"a declared weight must be an int of at least 0, got {declared!r}")
        episode = Episode(key, number, dimension, self.grid)
        episode.max_squared = declared**2
        return episode

    def combine(self, episodes: Sequence[Episode], weights: Sequence[Sequence[float]] | None) -> Combined:
        """Several sums as one, still without noise: to be released once, for all of their episodes.

        Weights with which values could leave the range of floats are refused: whether they do would depend on the draw.
        """
        whole = Combined(episodes, weights)
        bounds = self.reward_range
        most = (bounds.width / whole.grid.steps * INT64, *(bounds.low * w for w in whole.weight_sums))
        if not all(math.isfinite(x / whole.unit) for x in most):
            raise InvalidInput("the weights are too small or too large for the reward range: scale them")
        return whole

    def observe(self, observer: Observer) -> None:
        """Let an observer see everything that goes through, for tests and audits.

        It stands around `release`, whatever that is: a door that is broken on purpose may have another one.
        """
        through = self.release

        def release(whole: Outgoing) -> Release:
            observer.leaving(whole)
            row = through(whole)
            observer.released(row)
            return row

        self.release = release  # type: ignore[method-assign]

    def release(self, whole: Outgoing) -> Release:
        """Release y = sum of weight * reward + noise: check, draw once, charge the account, hand out the ledger's row.

        Each episode goes through once. The sensitivity is the episode's own, in integers, and the cost is what
        the mechanism's map makes of it. If the noise cannot be drawn (NoiseFailed) nothing is written and nothing
        comes out. The row holds the value, so it is charged after the draw; nobody has seen either before.
        """
        if any(map(self.account.covers, whole.labels)):
            raise AssertionError(f"episode {whole.label} was released before")
        if whole.factor != self.composition.factor:  # the budget is shared by what the factor says, and nothing else
            raise AssertionError(f"episode {whole.label} is to leave with another factor than this door's")
        count = rewards_in(part for part in whole.parts if part.new)
        if not count:
            raise InvalidInput(f"episode {whole.label} holds no reward: there is nothing to release")
        laplace = self.budget.noise == "laplace"
        sensitivity = whole.sensitivity_l1 if laplace else whole.sensitivity_l2
        if type(sensitivity) is not int:
            raise AssertionError(f"the sensitivity of {whole.label} is no exact whole number")
        mechanism = self.noise.calibrate(
            self.budget.noise,
            self._per_release.level,
            # Never below what was computed. Zero only if every weight was zero: then the sum is zero whatever the
            # rewards were, and one step of the grid merely gives the noise a scale.
            max(1, sensitivity),
            len(whole.weight_sums),
            len(self.account) + 1,
        )
        noisy = mechanism(whole.totals)
        # Floating point starts here, after the noise.
        step = self.reward_range.width / whole.grid.steps / whole.unit
        low = self.reward_range.low / whole.unit
        row = Release(
            number=len(self.account) + 1,
            key=whole.key,
            episodes=whole.multipliers,
            count=count,
            values=tuple(step * y + low * w for y, w in zip(noisy, whole.weight_sums, strict=True)),
            noise_sd=step * mechanism.scale * (math.sqrt(2) if laplace else 1.0),
            rounding=step / 2 * rewards_in(whole.parts) * whole.max_l1,
            noise=self.budget.noise,
            scale=mechanism.scale,
            sensitivity=mechanism.sensitivity,
            steps=whole.grid.steps,
            calibrated=mechanism.cost,
            private=self.secret,
            parts=whole.parts,
            weights=None if whole.weights is None else tuple(map(tuple, whole.weights)),
            unit=whole.unit,
        )
        self.account.charge_new(row)
        return row


def _noise_per_step(budget: Budget) -> float:
    """How wide the noise for weight one is, in reward ranges, so that TAIL times this holds all but 1e-32 of it.

    The standard deviation of Gaussian noise; more than that for Laplace noise.
    """
    if budget.noise == "none":
        return 0.0
    if budget.noise == "laplace":
        # Laplace tails fall more slowly: 75 scales hold what 12 standard deviations of a Gaussian hold.
        return 75 / TAIL / budget.level
    return math.sqrt(budget.variance_factor)
