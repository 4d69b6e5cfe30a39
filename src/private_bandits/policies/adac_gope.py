"""AdaC-GOPE: phased elimination with optimal designs under Gaussian noise, and the other places for the noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from private_bandits.arrays import Floats
from private_bandits.errors import InvalidInput
from private_bandits.policies.base import Variant
from private_bandits.policies.fit import Placement, release_estimate, release_per_arm, release_whitened
from private_bandits.policies.phased_elimination import PhasedElimination, Solver
from private_bandits.policies.tight_phases import (
    LEAD,
    ROUNDING,
    pair_log_inv_failure,
    pair_widths,
    quick_design,
    shortest_length,
)

LENGTHS = ("paper", "own")


def paper_length(phase: int, dimension: int, arms: int, delta: float, variance_factor: float) -> float:
    """c_l of Eq. (4), for rewards in a range of width two; see `AdaCGOPE`.

    >>> round(paper_length(1, dimension=2, arms=2, delta=0.1, variance_factor=0.0), 6) == round(64 * math.log(160), 6)
    True
    """
    d, beta = dimension, 2.0**-phase
    share = delta / (arms * phase * (phase + 1))
    log_two = math.log(2 / share)
    f = d + 2 * math.sqrt(d * log_two) + 2 * log_two
    return 8 * d / beta**2 * math.log(4 / share) + 2 * d / beta * math.sqrt(4 * variance_factor * f)


@dataclass(frozen=True)
class AdaCGOPE(PhasedElimination):
    """AdaC-GOPE ("Concentrated Differential Privacy for Bandits", Algorithm 2); with NoPrivacy it is GOPE.

    The noise goes on V^(-1/2) * sum of a r, calibrated to what was really played with the real V: the main text's
    2d/(rho c_l) can be too small for a design that is not exactly optimal.

    variant "paper": phase l is  c_l = 8d/beta^2 log(4/delta_l) + 2d/beta sqrt(4b f(d, delta_l))  long, with
    beta = 2^-l, delta_l = delta/(K l(l+1)),  f(d, x) = d + 2 sqrt(d log(2/x)) + 2 log(2/x),  b the variance factor of
    the budget (Eq. 4, where 4b = 2/rho). Whatever seems worse than the best by 2 beta is dropped.

    variant "tight", the default: an action is dropped if it seems worse than the best one by more than the width of the
    two, sqrt(2 v log((n-1) l(l+1)/delta)), n actions being left and v = ||a - a'||^2 in V^-1 times 1 + 4 b m^2, the
    variances of rewards and noise at what was really played (m: the largest ||a|| of a played action). A phase is as
    short as brings these to 2 beta, and beside the design the best action so far is played three times as often as all
    of it (tight_phases.py).

    phase_length, of variant "paper" only: "paper" as above; "own": as long as the noise in its place needs, by a
    Gaussian tail.

    >>> from private_bandits import zCDP
    >>> policy = AdaCGOPE(actions=[[1, 0], [0, 1], [0.6, 0.8]], budget=zCDP(0.1))
    >>> policy.arm_names
    ('action 0', 'action 1', 'action 2')
    """

    name: ClassVar[str] = "adac-gope"
    supported_budgets: ClassVar[tuple[str, ...]] = ("zCDP", "ApproxDP", "RenyiDP", "NoPrivacy")
    source: ClassVar[str] = "Concentrated Differential Privacy for Bandits, Algorithm 2"
    alternative_hint: ClassVar[str] = "For PureDP use HannaGOPE, whose Laplace noise keeps it."
    placement: ClassVar[Placement] = release_whitened
    variants: ClassVar[tuple[Variant, ...]] = ("paper", "tight")

    variant: Variant = "tight"
    phase_length: Literal["paper", "own"] = "paper"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.phase_length not in LENGTHS:
            raise InvalidInput(f"phase_length must be one of {', '.join(LENGTHS)}, got {self.phase_length!r}")
        if self.tight and self.phase_length != "paper":
            raise InvalidInput(
                f'phase_length={self.phase_length!r} needs variant="paper": '
                'phases of variant="tight" are as short as their widths allow'
            )

    @property
    def tight(self) -> bool:
        """Whether phases and widths are those of tight_phases.py."""
        return self.variant == "tight"

    @property
    def solver(self) -> Solver:
        """What finds the design."""
        return quick_design if self.tight else super().solver

    @property
    def lead(self) -> float:
        """How often the best action so far is played beside the design, which is played once."""
        return LEAD if self.tight else super().lead

    def length(self, phase: int, active: Sequence[int], best: int | None = None) -> float:
        """As short as can be, for what is played; or Eq. (4), with d the dimension of the space; or the own length."""
        if self.tight:
            mix, log_inv_failure = self.mix(active, best), pair_log_inv_failure(phase, len(active), self.delta)
            return float(
                shortest_length(log_inv_failure, 2.0**-phase, mix.apart, mix.largest, self.budget.variance_factor)
            )
        if self.phase_length == "own":
            return self.length_for_own_noise(phase, active)
        size = len(self.rows[0]), len(self.rows)
        return paper_length(phase, *size, self.delta, self.budget.variance_factor)

    def slack(
        self, phase: int, means: Floats, whitened: Floats, decoder: Floats, noise_sd: float, width: float
    ) -> float | Floats:
        """Half of the width of each active action and the best one together; as published, one width for all."""
        if not self.tight:
            return super().slack(phase, means, whitened, decoder, noise_sd, width)
        errors = np.hstack([width / 2 * whitened, noise_sd * (whitened @ decoder)])
        pairs = pair_widths(errors, means.argmax(axis=-1), pair_log_inv_failure(phase, len(whitened), self.delta))
        return pairs / 2 + ROUNDING * width

    def half_width(self, rounding: float, rewards: float, noise: float, peak: float, odds: float) -> float:
        """With the variances of rewards and noise added; as published, the widths."""
        if not self.tight:
            return super().half_width(rounding, rewards, noise, peak, odds)
        return rounding + math.hypot(rewards, noise) * math.sqrt(2 * math.log(2 * odds))


@dataclass(frozen=True)
class AdaCGOPEVar(AdaCGOPE):
    """AdaC-GOPE with the noise on every action's sum of rewards (the paper's appendix on where to put the noise).

    The estimate takes the noise of all actions of the design. "paper" phases are those of AdaC-GOPE, and may be too
    short for it: then the width really reached decides what is dropped.
    """

    name: ClassVar[str] = "adac-gope-var"
    source: ClassVar[str] = "Concentrated Differential Privacy for Bandits, appendix: noise in the beginning"
    placement: ClassVar[Placement] = release_per_arm
    variants: ClassVar[tuple[Variant, ...]] = ("paper",)

    variant: Variant = "paper"


@dataclass(frozen=True)
class AdaCGOPEEnd(AdaCGOPE):
    """AdaC-GOPE with the noise on the estimate of theta (the paper's appendix on where to put the noise)."""

    name: ClassVar[str] = "adac-gope-end"
    source: ClassVar[str] = "Concentrated Differential Privacy for Bandits, appendix: noise in the end"
    placement: ClassVar[Placement] = release_estimate
    variants: ClassVar[tuple[Variant, ...]] = ("paper",)

    variant: Variant = "paper"
