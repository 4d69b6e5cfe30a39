"""White specimens for linear bandits, where several sums leave together."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import private_bandits as pb
from private_bandits.agent import bandit_of
from private_bandits.bandit import Bandit
from private_bandits.budget import NoiseKind
from private_bandits.ledger import Release
from private_bandits.mechanism.composition import Combined, Outgoing
from private_bandits.mechanism.noise import ExactNoise, Mechanism
from private_bandits.mechanism.release import Door
from tests.audit.specimens.listing import correct, specimen
from tests.audit.specimens.white_parts import _with_door, running


def _linear(rho: float = 0.5, noise: ExactNoise | None = None) -> pb.Agent:
    agent = pb.Agent(pb.AdaCGOPE.example(pb.zCDP(rho)))
    if noise is not None:
        bandit_of(agent).door.noise = noise
    return agent


@correct()
def make_white_linear() -> pb.Agent:
    """Correct: AdaC-GOPE as it is."""
    return _linear()


@correct()
def make_white_linear_noise_on_sums() -> pb.Agent:
    """Correct: noise on the sum of every action."""
    return pb.Agent(pb.AdaCGOPEVar.example(pb.zCDP(0.5)))


class _Mixed(ExactNoise):
    """Noise of the right size in every coordinate, which goes together: z, then share * z + rest of its own."""

    def __init__(self, share: float) -> None:
        self.share = share

    def calibrate(self, kind: NoiseKind, level: float, sensitivity: int, dimension: int, number: int) -> Mechanism:
        exact = super().calibrate(kind, level, sensitivity, dimension, number)

        def draw(totals: list[int]) -> list[int]:
            noise = [noisy - total for noisy, total in zip(exact.draw(list(totals)), totals, strict=True)]
            rest = math.sqrt(1 - self.share**2)
            mixed = [noise[0], *(round(self.share * noise[0] + rest * z) for z in noise[1:])]
            return [total + z for total, z in zip(totals, mixed, strict=True)]

        return replace(exact, draw=draw)


@specimen(cost=math.inf)
def make_white_linear_shared_noise() -> pb.Agent:
    """One draw for all coordinates of a release: their differences are raw, infinite."""
    return _linear(noise=_Mixed(1.0))


@specimen(cost=math.inf)
def make_white_linear_mirrored_noise() -> pb.Agent:
    """The second coordinate has the noise of the first, turned around: their sum is raw, infinite."""
    return _linear(noise=_Mixed(-1.0))


@specimen(cost=10.0)
def make_white_linear_correlated_noise() -> pb.Agent:
    """Noise correlated at 0.99: along the difference of two coordinates it is a seventh; 10 rho and more."""
    return _linear(noise=_Mixed(0.99))


class _LargestEntry(Combined):
    @property
    def sensitivity_l2(self) -> int:
        assert self.weights is not None
        return self.grid.steps * round(max(abs(w) for row in self.weights for w in row) * self.unit)


class _LargestEntryDoor(Door):
    def combine(self, episodes: Any, weights: Any) -> Combined:
        return _LargestEntry(episodes, weights)


@specimen(cost=0.55)
def make_white_linear_columns_ignored() -> pb.Agent:
    """The sensitivity is the largest single weight, not the norm of a column: more than rho."""
    return _with_door(_linear(), _LargestEntryDoor)


class _KeepsSums(Bandit):
    def release(self, whole: Outgoing) -> Release:
        before = {key: self.private.episodes[key] for key in whole.keys}
        row = super().release(whole)
        for part in whole.parts:
            old, again = before[part.key], self.private.episodes[part.key]
            if part.rewards == old.count:  # the one with a reward more is the one that was due
                again.totals, again.count, again.weight_sums = old.totals, old.count, list(old.weight_sums)
                again.max_squared, again.max_l1 = old.max_squared, old.max_l1
        return row


@specimen(cost=math.inf)
def make_white_linear_forgets_only_one_sum() -> pb.Agent:
    """Only the sum that ended the phase starts anew; the others are released again in every phase: rho each time."""
    return running(_KeepsSums)(pb.AdaCGOPE.example(pb.zCDP(0.5)))
