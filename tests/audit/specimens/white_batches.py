"""White specimens that are broken in calls that take several rewards or decisions at once."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import private_bandits as pb
from private_bandits.agent import bandit_of
from private_bandits.budget import NoiseKind
from private_bandits.mechanism.noise import ExactNoise, Mechanism
from tests.audit.specimens.listing import StrPath, correct, specimen
from tests.audit.specimens.white_correct import _AnyoneAgent
from tests.audit.specimens.white_parts import _open_sums, small_policy


def _reward_in(item: Any) -> float:
    """The reward of an item of a batch; of what is none, 0."""
    value = item[1] if isinstance(item, (tuple, list)) and len(item) > 1 else 0.0
    return 0.0 if isinstance(value, str) or math.isnan(value) else float(value)


class _BatchInRounds(pb.Agent):
    def tell_many(self, rewards: Any) -> None:
        items = list(rewards)
        super().tell_many(items[::2] + items[1::2])


@correct()
def make_white_batch_in_rounds(path: StrPath | None = None, give_up_after: int | None = None) -> pb.Agent:
    """Correct: a batch is taken in another order, which only the places of its rewards decide."""
    return _BatchInRounds(small_policy(arms=3), path=path, give_up_after=give_up_after)


@correct()
def make_white_forgetful(path: StrPath | None = None) -> pb.Agent:
    """Correct: decisions run out of time, and a person's third reward is dropped. The promise is for one reward."""
    return _AnyoneAgent(small_policy(), max_rewards_per_person=2, give_up_after=2, path=path)


class _SortedBatch(pb.Agent):
    def tell_many(self, rewards: Any) -> None:
        super().tell_many(sorted(rewards, key=_reward_in))


@specimen(cost=math.inf, shows="batches")
def make_white_batch_sorted(path: StrPath | None = None) -> pb.Agent:
    """A batch is taken in the order of its rewards: which one ends an episode, and whose comes first, depends on them.

    Infinite: with two arms the order of the releases tells which reward was larger.
    """
    return _SortedBatch(small_policy(), path=path)


class _StopsAtZero(pb.Agent):
    def tell_many(self, rewards: Any) -> None:
        items = list(rewards)
        low = [i for i, item in enumerate(items) if _reward_in(item) < 0.25]
        super().tell_many(items[: low[0] + 1] if low else items)


@specimen(cost=math.inf, shows="batches")
def make_white_batch_stops_at_zero() -> pb.Agent:
    """A batch ends with its first reward below 0.25; the decisions after it stay open: infinite."""
    return _StopsAtZero(small_policy())


class _BatchErrorTells(pb.Agent):
    def tell_many(self, rewards: Any) -> None:
        items = list(rewards)
        try:
            super().tell_many(items)
        except pb.errors.InvalidInput as error:
            raise pb.errors.InvalidInput(f"{error}; the batch was {[_reward_in(item) for item in items]}") from None


@specimen(cost=math.inf, shows="errors")
def make_white_batch_error_tells_rewards() -> pb.Agent:
    """A batch with a reward that is no number is refused with all of its rewards in the text: infinite."""
    return _BatchErrorTells(small_policy())


class _AskManyPeeks(pb.Agent):
    def ask(self, n: Any = None, *, actions: Any = None, person: str | None = None) -> Any:
        if not isinstance(n, int) or n < 2:
            return super().ask(n, actions=actions, person=person)
        first = super().ask(1, actions=actions, person=person)
        bandit = bandit_of(self)
        sums, state = _open_sums(bandit), bandit.public.policy
        if sums and not state.unseen:
            state.choice = sums.index(max(sums))
        return first + super().ask(n - 1, actions=actions, person=person)


@specimen(cost=math.inf, shows="several asks at once")
def make_white_ask_many_peeks() -> pb.Agent:
    """Decisions asked for at once follow, all but the first, the sums that are not released: infinite."""
    return _AskManyPeeks(small_policy())


class _QuietNoise(ExactNoise):
    """Has a thousandth of the noise that it declares, for as long as it is told to."""

    quiet = False

    def calibrate(self, kind: NoiseKind, level: float, sensitivity: int, dimension: int, number: int) -> Mechanism:
        said = super().calibrate(kind, level, sensitivity, dimension, number)
        used = super().calibrate(kind, 1e6 * level, sensitivity, dimension, number) if self.quiet else said
        return replace(said, draw=used.draw)


class _QuietAtTimes(pb.Agent):
    """Some calls have nearly no noise."""

    _source: _QuietNoise

    @classmethod
    def made(cls) -> pb.Agent:
        agent = cls(small_policy())
        agent._source = bandit_of(agent).door.noise = _QuietNoise()
        return agent

    def _quietly(self, call: Callable[[], Any]) -> Any:
        self._source.quiet = True
        try:
            return call()
        finally:
            self._source.quiet = False


class _QuietBatches(_QuietAtTimes):
    def tell_many(self, rewards: Any) -> None:
        self._quietly(lambda: super(_QuietBatches, self).tell_many(rewards))


@specimen(cost=math.inf, shows="batches")
def make_white_batch_quiet() -> pb.Agent:
    """Releases of a batch have a thousandth of the noise that the ledger tells: a million rho."""
    return _QuietBatches.made()
