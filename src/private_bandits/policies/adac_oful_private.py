"""AdaC-OFUL where contexts are private too: rare releases, by a public schedule, of the matrix as well."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from private_bandits.arrays import Floats
from private_bandits.errors import InvalidInput
from private_bandits.mechanism.factor import Factor
from private_bandits.policies.base import Variant, check_variant
from private_bandits.policies.geometric import LEAST_GROWTH, MOST_GROWTH, GeometricMemory, geometric_factor
from private_bandits.policies.optimism import check_optimism, settle_exploration, squared_length
from private_bandits.policies.private_contexts import Known, MomentsState, PrivateContextPolicy, ReleasedSum
from private_bandits.policies.remembered_moments import RememberedMoments

EXPLORATION = 0.05
"""Of the proven width: chosen by the study in benchmarks/exploration.py, as are the following."""
GROWTH = 0.5
LEAST_REGULARISER, NOISY_REGULARISER = 0.1, 0.5
"""In units of one, and of the norm that noise on the matrix has, about: sqrt(d) times its standard deviation."""
AS_PUBLISHED: Mapping[str, float] = {"regulariser": 1.0, "growth": 1.0, "exploration": 1.0}
CHOSEN: Mapping[str, float] = {"regulariser": LEAST_REGULARISER, "growth": GROWTH, "exploration": EXPLORATION}


@dataclass(frozen=True)
class AdaCOFULPrivate(PrivateContextPolicy):
    """AdaC-OFUL adapted to private contexts ("Concentrated Differential Privacy for Bandits", Section V).

    The determinant of contexts would tell of them, so an episode ends by the count of rewards, which is public: at d
    rewards, and then whenever the unreleased are C times the released ones (`growth`).

    variant="paper" has each person in one release. The sums of k releases carry k noises, and V is shifted by a bound
    on them (`PrivateContextPolicy`).

    variant="tight", the default, has releases that hold earlier episodes again, with the multipliers of AdaC-IMED
    (geometric.py), and reads all of them together (remembered_moments.py). However many releases there are, the sums
    carry about (1 + 1/(1 + C))^2 noises. With G the noisy sum of a a' with its negative eigenvalues at zero, Y a bound
    on the norm of its noise and l = max(regulariser, half of sqrt(d) times its standard deviation):

        V = G + l I        theta = V^-1 u        width = s sqrt(1 + Y/l) sqrt(2 log(3 n/delta) + log det((V + Y I)/l))
                                                         + S (l + 2 Y)/sqrt(m) + noise of u sqrt(f/m)

    n: releases up to the horizon, m: the least eigenvalue of V, f: the chi-square quantile at delta/(3 n). The width is
    proven for every l (docs/guarantees.md). Recommended is the action of the largest
    <theta, a> + exploration width ||a|| in V^-1.

    exploration: 1 is proven, and far too cautious for use. The default of "tight" is 0.05, chosen by a study
    (docs/contextual.md), as are growth and regulariser. Privacy does not depend on any of them.
    """

    name: ClassVar[str] = "adac-oful-private"
    source: ClassVar[str] = "Concentrated Differential Privacy for Bandits, AdaC-OFUL for private contexts"
    variants: ClassVar[tuple[Variant, ...]] = ("paper", "tight")
    formerly: ClassVar[Mapping[str, Any]] = {"variant": "paper", "exploration": 1.0}

    regulariser: float = None  # type: ignore[assignment]  # chosen when the policy is made, as the following
    growth: float = None  # type: ignore[assignment]
    variant: Variant = "tight"
    exploration: float = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        check_variant(self)
        chosen = CHOSEN if self.variant == "tight" else AS_PUBLISHED
        for name, value in chosen.items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, value)
        super().__post_init__()
        check_optimism(self, "growth")
        settle_exploration(self, self.exploration)
        if self.variant == "tight" and not LEAST_GROWTH <= 1 + self.growth <= MOST_GROWTH:
            raise InvalidInput(
                f"growth must be from {LEAST_GROWTH - 1:.2g} to {MOST_GROWTH - 1:g}, got {self.growth:g}, "
                "or use variant='paper'"
            )

    @cached_property
    def memory(self) -> GeometricMemory:
        """How long episodes of the tight variant are, and what its releases hold again."""
        factor = None if self.budget.noise == "none" else geometric_factor(1 + self.growth)
        return GeometricMemory(1 + self.growth, self.dimension, factor)

    @cached_property
    def factor(self) -> Factor | None:
        """Geometric multipliers of earlier episodes; as published, none."""
        return self.memory.factor if self.variant == "tight" else None

    @cached_property
    def noise_levels(self) -> int:
        """How many releases there are up to the horizon, at most, and one more."""
        if self.variant != "tight":  # each but the first multiplies the count by at least 1 + C, from d on
            after_first = math.log(max(1.0, self.horizon / self.dimension)) / math.log1p(self.growth)
            return 2 + min(self.horizon, int(after_first))
        found, released = 1, 0
        while released < self.horizon:
            released += self.memory.length(released)
            found += 1
        return found

    def wait(self, rewards: int) -> float:
        """d at first, and then C times the released ones."""
        if self.variant == "tight":
            return self.memory.length(rewards)
        return max(self.dimension, self.growth * rewards)

    def nothing_released(self, low: float, high: float) -> ReleasedSum:
        """Return the sum over nobody."""
        if self.variant != "tight":
            return super().nothing_released(low, high)
        scale = self.moments(low, high)
        column = 1.0 if self.factor is None else float(self.factor.column)
        noise = scale.sensitivity**2 * self.budget.variance_factor * column
        # A coordinate of a r has a variance of 1/(4 d) or so, if no action is longer than one.
        return RememberedMoments(self.memory, scale.size, noise, self.dimension * noise)

    def take(self, released: Any, values: Floats) -> None:
        """Add what was released to all releases."""
        if self.variant == "tight":
            released.take(values)
        else:
            super().take(released, values)

    def known(self, matrix: Floats, released: Any, low: float, high: float) -> Known:
        """Return what a noisy sum of a a' says, made usable on public grounds."""
        if self.variant != "tight":
            return super().known(matrix, released, low, high)
        values, vectors = np.linalg.eigh(matrix)
        width, least = self._proven_width(np.maximum(values, 0.0), math.sqrt(released.variance), low, high)
        return Known(np.maximum(values, 0.0) + least, vectors, width, least, least, math.sqrt(released.variance))

    def optimism_of(self, state: MomentsState) -> float:
        """Return what the norm of an action is multiplied by in its index."""
        return self.exploration * state.width

    def _proven_width(self, values: Floats, sd: float, low: float, high: float) -> tuple[float, float]:
        """Return the width, and l. values: eigenvalues of G. sd: of the noise in a coordinate of what was released."""
        scale, d, n = self.moments(low, high), self.dimension, self.noise_levels
        noise = sd / scale.kappa * self.context_norm**2  # on the diagonal; off it, a half in variance
        least = max(self.regulariser, NOISY_REGULARISER * noise * math.sqrt(d))
        bound = noise * (math.sqrt(2 * d) + math.sqrt(2 * math.log(6 * n / self.delta)))
        logs = float(np.log((values + least + bound) / least).sum())
        odds = 2 * math.log(3 * n / self.delta) + logs
        strayed = sd * self.context_norm * scale.largest_reward * math.sqrt(squared_length(d, self.delta / (3 * n)))
        from_rewards = (high - low) / 2 * math.sqrt((1 + bound / least) * odds)
        root = math.sqrt(float(values[0]) + least)
        return from_rewards + (self.parameter_norm * (least + 2 * bound) + strayed) / root, least
