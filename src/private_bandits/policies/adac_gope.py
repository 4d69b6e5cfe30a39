"""AdaC-GOPE: phased elimination with optimal designs under Gaussian noise, and the other places for the noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from private_bandits.errors import InvalidInput
from private_bandits.policies.fit import Placement, between, on_the_estimate, on_the_sums
from private_bandits.policies.phased import PhasedElimination

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

    Phase l is  c_l = 8d/beta^2 log(4/delta_l) + 2d/beta sqrt(4b f(d, delta_l))  long, with beta = 2^-l,
    delta_l = delta/(K l(l+1)),  f(d, x) = d + 2 sqrt(d log(2/x)) + 2 log(2/x),  b the variance factor of the budget
    (Eq. 4, where 4b = 2/rho). The noise goes on V^(-1/2) * sum of a r, calibrated to what was really played with the
    real V: the main text's 2d/(rho c_l) can be too small for a design that is not exactly optimal.

    phase_length: "paper" as above; "own": as long as the noise in its place needs, by a Gaussian tail.

    >>> from private_bandits import zCDP
    >>> policy = AdaCGOPE(actions=[[1, 0], [0, 1], [0.6, 0.8]], budget=zCDP(0.1))
    >>> policy.arm_names
    ('action 0', 'action 1', 'action 2')
    """

    name: ClassVar[str] = "adac-gope"
    notions: ClassVar[tuple[str, ...]] = ("zCDP", "ApproxDP", "RenyiDP", "NoPrivacy")
    source: ClassVar[str] = "Concentrated Differential Privacy for Bandits, Algorithm 2"
    serves_instead: ClassVar[str] = "For PureDP use HannaGOPE, whose Laplace noise keeps it."
    placement: ClassVar[Placement] = between

    phase_length: str = "paper"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.phase_length not in LENGTHS:
            raise InvalidInput(f"phase_length must be one of {', '.join(LENGTHS)}, got {self.phase_length!r}")

    def length(self, phase: int, active: Sequence[int]) -> float:
        """Eq. (4) with d the dimension of the space, whatever the rank of the active actions; or the own length."""
        if self.phase_length == "own":
            return self.length_for_own_noise(phase, active)
        size = len(self.actions[0]), len(self.actions)
        return paper_length(phase, *size, self.delta, self.promise.variance_factor)


@dataclass(frozen=True)
class AdaCGOPEVar(AdaCGOPE):
    """AdaC-GOPE with the noise on every action's sum of rewards (the paper's appendix on where to put the noise).

    The estimate takes the noise of all actions of the design. "paper" phases are those of AdaC-GOPE, and may be too
    short for it: then the width really reached decides what is dropped.
    """

    name: ClassVar[str] = "adac-gope-var"
    source: ClassVar[str] = "Concentrated Differential Privacy for Bandits, appendix: noise in the beginning"
    placement: ClassVar[Placement] = on_the_sums


@dataclass(frozen=True)
class AdaCGOPEEnd(AdaCGOPE):
    """AdaC-GOPE with the noise on the estimate of theta (the paper's appendix on where to put the noise)."""

    name: ClassVar[str] = "adac-gope-end"
    source: ClassVar[str] = "Concentrated Differential Privacy for Bandits, appendix: noise in the end"
    placement: ClassVar[Placement] = on_the_estimate
