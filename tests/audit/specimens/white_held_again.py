"""White specimens whose releases hold earlier episodes again."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np

import private_bandits as pb
from private_bandits.agent import bandit_of
from private_bandits.bandit import Bandit
from private_bandits.budget import NoiseKind
from private_bandits.ledger import Release
from private_bandits.mechanism.composition import Correlated, Factored, Outgoing
from private_bandits.mechanism.factor import HALF_BEFORE, Factor, square_root
from private_bandits.mechanism.noise import ExactNoise, Mechanism
from private_bandits.mechanism.release import Door
from tests.audit.specimens.listing import StrPath, correct, specimen
from tests.audit.specimens.white_parts import _rewritten, _with_door, running


class _Halves(pb.AdaCUCB):
    """AdaC-UCB whose releases hold half of the arm's episode before."""

    name = "white-halves"
    factor = HALF_BEFORE


def _doubling(rho: float = 0.5) -> pb.AdaCUCB:
    """Half of the episode before."""
    return _Halves(n_arms=2, budget=pb.zCDP(rho), beta=1)


def _contextual(rho: float = 0.5) -> pb.AdaCOFUL:
    """All episodes of a factor of three releases; rewards go on in the next one."""
    return pb.AdaCOFUL(dimension=2, budget=pb.zCDP(rho), horizon=1, regulariser=0.25)


Again = pb.AdaCUCB | pb.AdaCOFUL


@correct()
def make_white_again_doubling(path: StrPath | None = None, seed: int | None = None) -> pb.Agent:
    """Correct: AdaC-UCB whose releases hold half of the arm's episode before."""
    return pb.Agent(_doubling(), path=path, seed=seed)


@correct()
def make_white_again_contextual(path: StrPath | None = None, seed: int | None = None) -> pb.Agent:
    """Correct: AdaC-OFUL with correlated noise, in factors that are soon used up."""
    return pb.Agent(_contextual(), path=path, seed=seed)


class _WholeBudget(ExactNoise):
    """Noise as if every reward were in one release."""

    def __init__(self, level: float) -> None:
        self.level = level

    def calibrate(self, kind: NoiseKind, level: float, sensitivity: int, dimension: int, number: int) -> Mechanism:
        return super().calibrate(kind, self.level, sensitivity, dimension, number)


def per_release(agent: pb.Agent) -> pb.Agent:
    """An agent that spends the whole budget at every release."""
    door = bandit_of(agent).door
    door.noise = _WholeBudget(door.budget.level)
    return agent


@specimen(cost=0.625)
def make_white_again_per_release_doubling() -> pb.Agent:
    """Every release has noise for the whole budget, and the rows say so: 5/4 rho for a reward in two of them."""
    return per_release(pb.Agent(_doubling()))


@specimen(cost=0.69)
def make_white_again_per_release_contextual() -> pb.Agent:
    """The same with AdaC-OFUL: the column of three releases, 1.39 rho."""
    return per_release(pb.Agent(_contextual()))


class _OnlyNewestDoor(Door):
    """Rows that tell of the newest episode alone."""

    def release(self, episode: Outgoing) -> Release:
        row = super().release(episode)
        return _rewritten(self, replace(row, episodes={episode.label: 1.0}))


@specimen(cost=0.625)
def make_white_again_hidden_doubling() -> pb.Agent:
    """Noise for the whole budget in every release, whose row tells of its newest episode only: 5/4 rho."""
    return per_release(_with_door(pb.Agent(_doubling()), _OnlyNewestDoor))


@specimen(cost=0.69)
def make_white_again_hidden_contextual() -> pb.Agent:
    """The same with AdaC-OFUL: 1.39 rho."""
    return per_release(_with_door(pb.Agent(_contextual()), _OnlyNewestDoor))


class _SmallerRowsDoor(Door):
    """Rows that tell half of every multiplier but the first."""

    def release(self, episode: Outgoing) -> Release:
        row = super().release(episode)
        told = {label: m if label == episode.label else m / 2 for label, m in row.episodes.items()}
        return _rewritten(self, replace(row, episodes=told))


@specimen(cost=0.5, shows="ledger")
def make_white_again_smaller_rows_doubling() -> pb.Agent:
    """The noise is right and the ledger is not: a multiplier is told as a quarter that is a half.

    rho is kept, but whoever reads the ledger is told of less.
    """
    return _with_door(pb.Agent(_doubling()), _SmallerRowsDoor)


@specimen(cost=0.5, shows="ledger")
def make_white_again_smaller_rows_contextual() -> pb.Agent:
    """The same with AdaC-OFUL."""
    return _with_door(pb.Agent(_contextual()), _SmallerRowsDoor)


def _endless(policy: Again, factor: Factor) -> pb.Agent:
    """Releases by another factor than the one that the noise is for."""
    agent = pb.Agent(policy)
    bandit_of(agent).door.composition = Factored(factor)
    return agent


@specimen(cost=math.inf)
def make_white_again_beyond_cap_contextual() -> pb.Agent:
    """The cap is ignored: with noise for three releases, the later ones hold all episodes before: beyond any bound."""
    return _endless(_contextual(), replace(square_root(200), cap=None))


@specimen(cost=0.6)
def make_white_again_third_doubling() -> pb.Agent:
    """Half of the last but one episode is held as well, with noise for the last one: 6/5 rho."""
    return _endless(_doubling(), Factor((2, 1, 1), 2))


@specimen(cost=0.5 * 1.25 / 1.09)
def make_white_again_column_before_rounding() -> pb.Agent:
    """Noise for the multipliers 1 and 0.3, which are rounded to 1 and 1/2 afterwards: 1.25/1.09 rho."""
    agent = pb.Agent(_doubling())
    door = bandit_of(agent).door
    door.noise = _WholeBudget(door.budget.level / 1.09)
    return agent


class _Remembering(Bandit):
    """Keeps the raw sum of each last release, and has the policy learn another value in its place."""

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self.last: dict[int, tuple[Correlated, Release]] = {}
        self.before: dict[int, dict[str, Any]] = {}

    def release(self, whole: Outgoing) -> Release:
        assert isinstance(whole, Correlated)
        row = super().release(whole)
        self.last[row.key] = whole, row
        return row

    def learn(self, row: Release) -> None:
        self.before[row.key] = json.loads(json.dumps(self.policy.dump_state(self.public.policy)))
        super().learn(row)

    def learn_instead(self, key: int, totals: list[int]) -> None:
        """As if these, in steps of the grid, had been released last."""
        whole, row = self.last[key]
        bounds = self.settings.reward_range
        step, low = bounds.width / whole.grid.steps / whole.unit, bounds.low / whole.unit
        values = tuple(step * y + low * w for y, w in zip(totals, whole.weight_sums, strict=True))
        self.public.policy = self.policy.load_state(self.before[key])
        self.policy.learn(self.public.policy, replace(row, values=values), self.public.asked + 1)

    def draw_through_door(self, key: int) -> None:
        whole, row = self.last[key]
        size, door = len(whole.weight_sums), self.door
        noise = door.noise.calibrate("gaussian", door.level, whole.sensitivity_l2, size, row.number)
        self.learn_instead(key, noise(whole.totals))

    def draw_from(self, generator: Any, key: int) -> None:
        whole, row = self.last[key]
        self.learn_instead(key, [round(t + row.scale * generator.normal()) for t in whole.totals.reveal()])


class _DecodesAnewAtAsk(_Remembering):
    def decide(self, person: str | None, offered: Any) -> pb.Decision:
        for key in list(self.last)[-1:]:
            self.draw_through_door(key)
        return super().decide(person, offered)


class _DecodesAnewAtLearn(_Remembering):
    def learn(self, row: Release) -> None:
        super().learn(row)
        self.draw_through_door(row.key)


class _DecodesWithNumpy(_Remembering):
    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self.generator = np.random.default_rng()

    def decide(self, person: str | None, offered: Any) -> pb.Decision:
        for key in list(self.last)[-1:]:
            self.draw_from(self.generator, key)
        return super().decide(person, offered)


class _DecodesWithOldNumpy(_Remembering):
    def learn(self, row: Release) -> None:
        super().learn(row)
        self.draw_from(np.random, row.key)


class _DecodesRaw(_Remembering):
    """Takes the earlier episodes out of a release as they were, and not as they were released."""

    def learn(self, row: Release) -> None:
        whole, _ = self.last[row.key]
        values = np.array(row.values)
        for part, multiplier in zip(whole.newest.kept, list(row.episodes.values())[:0:-1], strict=True):
            values -= multiplier * np.array(part.totals.reveal()) / part.grid.steps * self.settings.reward_range.width
        super().learn(replace(row, values=tuple(values)))


@specimen(cost=math.inf)
def make_white_again_redraw_at_ask_doubling() -> pb.Agent:
    """Every ask draws the noise of the last release anew before it decodes: rho times the number of asks."""
    return running(_DecodesAnewAtAsk)(_doubling())


@specimen(cost=math.inf)
def make_white_again_redraw_at_ask_contextual() -> pb.Agent:
    """The same with AdaC-OFUL."""
    return running(_DecodesAnewAtAsk)(_contextual())


@specimen(cost=1.0)
def make_white_again_redraw_at_learn_doubling() -> pb.Agent:
    """What is decoded has other noise than what the ledger shows, on the same sum: 2 rho."""
    return running(_DecodesAnewAtLearn)(_doubling())


@specimen(cost=1.0)
def make_white_again_redraw_at_learn_contextual() -> pb.Agent:
    """The same with AdaC-OFUL."""
    return running(_DecodesAnewAtLearn)(_contextual())


@specimen(cost=math.inf)
def make_white_again_own_noise_at_ask_doubling() -> pb.Agent:
    """Every ask decodes the last sum, kept raw, with noise of a generator of its own: rho times the number of asks."""
    return running(_DecodesWithNumpy)(_doubling())


@specimen(cost=math.inf)
def make_white_again_own_noise_at_ask_contextual() -> pb.Agent:
    """The same with AdaC-OFUL."""
    return running(_DecodesWithNumpy)(_contextual())


@specimen(cost=1.0)
def make_white_again_own_noise_at_learn_doubling() -> pb.Agent:
    """What is decoded has noise of numpy's old generator on the raw sum, beside that of the ledger: 2 rho."""
    return running(_DecodesWithOldNumpy)(_doubling())


@specimen(cost=1.0)
def make_white_again_own_noise_at_learn_contextual() -> pb.Agent:
    """The same with AdaC-OFUL."""
    return running(_DecodesWithOldNumpy)(_contextual())


@specimen(cost=math.inf)
def make_white_again_decodes_raw_doubling() -> pb.Agent:
    """The episode before is taken out of a release as it was: the next mean has it without noise, infinite."""
    return running(_DecodesRaw)(_doubling())


@specimen(cost=math.inf)
def make_white_again_decodes_raw_contextual() -> pb.Agent:
    """The same with AdaC-OFUL."""
    return running(_DecodesRaw)(_contextual())


class _KeptTwiceAtOpen(Bandit):
    def resume(self, state: Any, learned: int) -> None:
        super().resume(state, learned)
        for episode in self.private.episodes.values():
            for part in episode.kept:
                episode.totals.add(part.totals)


@specimen(cost=math.inf, shows="restart")
def make_white_again_kept_twice_doubling(path: StrPath | None = None) -> pb.Agent:
    """A restart adds the episode that is to be held again to the open one too: 3/2 of it is released. None in memory.

    Each restart adds it once more.
    """
    return running(_KeptTwiceAtOpen)(_doubling(), path=path)


@specimen(cost=math.inf, shows="restart")
def make_white_again_kept_twice_contextual(path: StrPath | None = None) -> pb.Agent:
    """The same with AdaC-OFUL."""
    return running(_KeptTwiceAtOpen)(_contextual(), path=path)


class _LastKeptAtOpen(Bandit):
    """Of several kept sums it finds one in its file, and takes it for each of them."""

    def resume(self, state: Any, learned: int) -> None:
        super().resume(state, learned)
        for episode in self.private.episodes.values():
            for part in episode.kept[:-1]:
                part.totals = episode.kept[-1].totals


@specimen(cost=math.inf, shows="restart")
def make_white_again_kept_mixed_up_contextual(path: StrPath | None = None) -> pb.Agent:
    """A restart loses an episode that is to be held again and holds the one after it in its place. None in memory.

    A reward is in releases with multipliers c_0, c_0 + c_1, ...: more than was declared.
    """
    return running(_LastKeptAtOpen)(_contextual(), path=path)
