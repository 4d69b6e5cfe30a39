"""The rivals of AdaC-GOPE: noise on the sum of each action, and a design of few actions so that there are few sums."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from private_bandits.arrays import Floats
from private_bandits.design.optimal import Design, small_design
from private_bandits.policies.fit import Placement, release_per_arm
from private_bandits.policies.phased_elimination import PhasedElimination, Solver


def few_actions(vectors: Floats, tol: float) -> Design:
    """The small design, which has no tolerance."""
    return small_design(vectors)


@dataclass(frozen=True)
class SmallSupport(PhasedElimination):
    """Phases long enough for the noise on the sums of a design of at most 4 d log log d + 16 actions."""

    placement: ClassVar[Placement] = release_per_arm

    @property
    def solver(self) -> Solver:
        """The design of few arms."""
        return few_actions

    def length(self, phase: int, active: Sequence[int], best: int | None = None) -> float:
        """As long as its own noise needs."""
        return self.length_for_own_noise(phase, active)


@dataclass(frozen=True)
class HannaGOPE(SmallSupport):
    """Laplace noise on every action's sum, for pure DP (Hanna et al. 2022).

    The published algorithm has batches that grow geometrically with the horizon; here its design, its noise and its
    estimator run in the phases of GOPE, long enough for that noise, so that a comparison changes one thing.

    >>> from private_bandits import PureDP
    >>> HannaGOPE(actions=[[1, 0], [0, 1]], budget=PureDP(1)).budget
    PureDP(epsilon=1.0)
    """

    name: ClassVar[str] = "hanna-gope"
    supported_budgets: ClassVar[tuple[str, ...]] = ("PureDP", "NoPrivacy")
    source: ClassVar[str] = "Hanna, Girgis, Fragouli and Diggavi 2022, Differentially Private Stochastic Linear Bandits"
    alternative_hint: ClassVar[str] = "For zCDP, ApproxDP and RenyiDP use AdaCGOPE, whose Gaussian noise is smaller."


@dataclass(frozen=True)
class LiGOPE(SmallSupport):
    """Gaussian noise on every action's sum (Li et al. 2022), in the phases of GOPE like HannaGOPE."""

    name: ClassVar[str] = "li-gope"
    supported_budgets: ClassVar[tuple[str, ...]] = ("zCDP", "ApproxDP", "RenyiDP", "NoPrivacy")
    source: ClassVar[str] = (
        "Li, Zhou and Ji 2022, Differentially Private Linear Bandits with Partial Distributed Feedback"
    )
    alternative_hint: ClassVar[str] = "For PureDP use HannaGOPE, whose Laplace noise keeps it."
