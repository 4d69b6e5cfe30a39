"""White specimens that are broken in when noise is drawn, and how much of it."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from typing import Any

import private_bandits as pb
from private_bandits.bandit import Bandit, Told
from private_bandits.budget import NoiseKind
from private_bandits.ledger import Release, rewards_in
from private_bandits.mechanism.composition import Outgoing
from private_bandits.mechanism.noise import ExactNoise, Mechanism
from private_bandits.mechanism.release import Door
from tests.audit.specimens.listing import specimen
from tests.audit.specimens.white_parts import (
    _choose_again,
    _Keeping,
    _KeepingAgent,
    _rewritten,
    _with_door,
    _with_noise,
    running,
    small_policy,
)


class _RedrawAtAsk(_Keeping):
    def decide(self, person: str | None, offered: Any) -> pb.Decision:
        self.draw_anew()
        return super().decide(person, offered)


@specimen(cost=math.inf)
def make_white_redraw_at_ask() -> pb.Agent:
    """Every ask draws the noise of the last sums anew: rho times the number of asks, without bound."""
    return running(_RedrawAtAsk)(small_policy())


class _RedrawAtEstimates(_KeepingAgent):
    def estimates(self, delta: float = 0.05) -> list[pb.Estimate]:
        self._keeping.draw_anew()
        return super().estimates(delta)


@specimen(cost=math.inf, shows="estimates")
def make_white_redraw_at_estimates() -> pb.Agent:
    """Every look at the estimates draws the noise anew: rho times the number of looks, without bound."""
    return _RedrawAtEstimates(small_policy())


class _HalfSensitivity(ExactNoise):
    def calibrate(self, kind: NoiseKind, level: float, sensitivity: int, dimension: int, number: int) -> Mechanism:
        return super().calibrate(kind, level, sensitivity // 2, dimension, number)


@specimen(cost=2.0)
def make_white_half_sensitivity() -> pb.Agent:
    """The sensitivity taken is half of the true one, and the ledger's row shows it: 4 rho."""
    return _with_noise(_HalfSensitivity())


class _FirstRawDoor(Door):
    def release(self, episode: Outgoing) -> Release:
        self.noise = _Raw() if episode.label.endswith("/1") else ExactNoise()
        return super().release(episode)


class _Raw(ExactNoise):
    def calibrate(self, kind: NoiseKind, level: float, sensitivity: int, dimension: int, number: int) -> Mechanism:
        return replace(super().calibrate(kind, level, sensitivity, dimension, number), draw=list)


@specimen(cost=math.inf)
def make_white_first_pull_raw() -> pb.Agent:
    """The first release of each arm, of one reward, has no noise while its row says it has: infinite."""
    return _with_door(pb.Agent(small_policy()), _FirstRawDoor)


class _OtherDraw(ExactNoise):
    """Says what keeps the level, and draws what keeps `factor` times the level."""

    def __init__(self, factor: float) -> None:
        self.factor = factor

    def calibrate(self, kind: NoiseKind, level: float, sensitivity: int, dimension: int, number: int) -> Mechanism:
        used = super().calibrate(kind, self.factor * level, sensitivity, dimension, number)
        return replace(super().calibrate(kind, level, sensitivity, dimension, number), draw=used.draw)


@specimen(cost=2.0)
def make_white_scale_not_used() -> pb.Agent:
    """The ledger tells the right scale, and half of it is used: 4 rho."""
    return _with_noise(_OtherDraw(4.0))


@specimen(cost=1.0, hard=True)
def make_white_half_variance() -> pb.Agent:
    """The noise has half the variance that the ledger tells: 2 rho."""
    return _with_noise(_OtherDraw(2.0))


class _FalseCost(ExactNoise):
    def calibrate(self, kind: NoiseKind, level: float, sensitivity: int, dimension: int, number: int) -> Mechanism:
        return replace(super().calibrate(kind, 4 * level, sensitivity, dimension, number), cost=level)


@specimen(cost=2.0)
def make_white_row_understates() -> pb.Agent:
    """Half of the noise needed; the row tells the scale truly and a quarter of what it costs: 4 rho."""
    return _with_noise(_FalseCost())


class _FixedSource(ExactNoise):
    def __init__(self) -> None:
        self.generator = random.Random(0)

    def calibrate(self, kind: NoiseKind, level: float, sensitivity: int, dimension: int, number: int) -> Mechanism:
        exact = super().calibrate(kind, level, sensitivity, dimension, number)
        return replace(exact, draw=lambda totals: [t + round(self.generator.gauss(0, exact.scale)) for t in totals])


@specimen(cost=math.inf)
def make_white_fixed_source() -> pb.Agent:
    """A live agent's noise comes from random.Random(0), the same in every run, and is sold as secret: infinite."""
    return _with_noise(_FixedSource())


class _RoundedFloatNoise(ExactNoise):
    def calibrate(self, kind: NoiseKind, level: float, sensitivity: int, dimension: int, number: int) -> Mechanism:
        exact = super().calibrate(kind, level, sensitivity, dimension, number)
        return replace(exact, draw=lambda totals: [t + round(random.gauss(0, exact.scale)) for t in totals])


@specimen(cost=math.inf, shows="noise source", hard=True)
def make_white_float_noise_rounded() -> pb.Agent:
    """random.gauss, rounded to whole numbers, is sold as exact.

    Infinite: its tails end, and its generator can be foreseen from what it gave. No statistic of actions shows it.
    """
    return _with_noise(_RoundedFloatNoise())


class _FloatDoor(Door):
    def release(self, episode: Outgoing) -> Release:
        exact = super().release(episode)
        value = episode.totals.reveal()[0] / episode.grid.steps + random.gauss(0.0, exact.noise_sd)
        return _rewritten(self, replace(exact, values=(value,)))


@specimen(cost=math.inf, shows="ledger", hard=True)
def make_white_float_noise_on_float_sum() -> pb.Agent:
    """Float noise on a float sum is sold as exact: infinite, through the last bits (Mironov 2012).

    Released values do not lie on the grid of the sums. No statistic of actions shows it.
    """
    return _with_door(pb.Agent(small_policy()), _FloatDoor)


class _ReusedNoise(ExactNoise):
    """One standard draw for all releases."""

    def __init__(self) -> None:
        self.noise: int | None = None

    def calibrate(self, kind: NoiseKind, level: float, sensitivity: int, dimension: int, number: int) -> Mechanism:
        exact = super().calibrate(kind, level, sensitivity, dimension, number)

        def draw(totals: list[int]) -> list[int]:
            if self.noise is None:
                self.noise = exact.draw([0])[0]
            return [total + self.noise for total in totals]

        return replace(exact, draw=draw)


class _ReusingDoor(Door):
    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.sources: dict[int, _ReusedNoise] = {}

    def release(self, episode: Outgoing) -> Release:
        self.noise = self.sources.setdefault(episode.key, _ReusedNoise())
        return super().release(episode)


@specimen(cost=math.inf, shows="estimates")
def make_white_noise_reused_per_arm() -> pb.Agent:
    """An arm's noise is drawn once for all of its releases, and cancels in their differences: infinite.

    Plain in the ledger and the estimates; in the actions only as far as they show differences.
    """
    return _with_door(pb.Agent(small_policy()), _ReusingDoor)


@specimen(cost=math.inf)
def make_white_noise_shared_by_arms() -> pb.Agent:
    """One draw of noise for all releases of all arms cancels where arms are compared: infinite."""
    return _with_noise(_ReusedNoise(), arms=3)


class _DataSensitivityDoor(Door):
    def release(self, episode: Outgoing) -> Release:
        self.noise = _SensitivityOf(max(1, episode.totals.reveal()[0] // rewards_in(episode.parts)))
        return super().release(episode)


class _SensitivityOf(ExactNoise):
    def __init__(self, sensitivity: int) -> None:
        self.sensitivity = sensitivity

    def calibrate(self, kind: NoiseKind, level: float, sensitivity: int, dimension: int, number: int) -> Mechanism:
        return super().calibrate(kind, level, self.sensitivity, dimension, number)


@specimen(cost=math.inf)
def make_white_sensitivity_from_data() -> pb.Agent:
    """The sensitivity is the mean of the rewards seen, not of those possible; the row even tells it: infinite."""
    return _with_door(pb.Agent(small_policy()), _DataSensitivityDoor)


class _Spill(ExactNoise):
    """Hands the sum out raw and keeps the noise for somebody else."""

    def __init__(self) -> None:
        self.spilled: int | None = None

    def calibrate(self, kind: NoiseKind, level: float, sensitivity: int, dimension: int, number: int) -> Mechanism:
        exact = super().calibrate(kind, level, sensitivity, dimension, number)

        def draw(totals: list[int]) -> list[int]:
            self.spilled = exact.draw([0])[0]
            return totals

        return replace(exact, draw=draw)


class _WrongArm(Bandit):
    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self.door.noise = self.spill = _Spill()

    def take(self, told: Told) -> pb.errors.PrivateBanditsError | None:
        refused = super().take(told)
        if self.spill.spilled is not None:
            state = self.public.policy
            other = (told[1] + 1) % len(state.means)
            state.means[other] += self.spill.spilled / self.door.grid.steps / max(1, state.last[other])
            self.spill.spilled = None
            _choose_again(self)
        return refused


@specimen(cost=math.inf)
def make_white_noise_on_wrong_arm() -> pb.Agent:
    """Noise of the right size goes to the next arm's mean, and the told arm's sum leaves raw: infinite."""
    return running(_WrongArm)(small_policy())
