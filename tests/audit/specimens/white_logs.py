"""White specimens that are broken in how they start from a log."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import private_bandits as pb
from private_bandits.bandit import Bandit
from private_bandits.releasing import LoggedReward
from tests.audit.specimens.listing import StrPath, specimen
from tests.audit.specimens.white_batches import _QuietAtTimes, _reward_in
from tests.audit.specimens.white_correct import _AnyoneAgent
from tests.audit.specimens.white_noise import _OtherDraw
from tests.audit.specimens.white_parts import _choose_again, running, small_policy


class _QuietStart(_QuietAtTimes):
    def warm_start(self, log: Any, **columns: Any) -> int:
        found: int = self._quietly(lambda: super(_QuietStart, self).warm_start(log, **columns))
        return found


@specimen(cost=math.inf, shows="logs")
def make_white_warm_start_quiet() -> pb.Agent:
    """The releases of a log have a thousandth of the noise that the ledger tells: nearly raw, a million rho."""
    return _QuietStart.made()


class _NoisyStart(Bandit):
    """Draws the noise of a log from another source than that of the door."""

    def start_from(self, rows: Sequence[LoggedReward], over_limit: int, dropped: int) -> None:
        source = self.door.noise
        self.door.noise = _OtherDraw(1e6)
        try:
            super().start_from(rows, over_limit, dropped)
        finally:
            self.door.noise = source


@specimen(cost=math.inf, shows="logs")
def make_white_warm_start_other_noise(path: StrPath | None = None) -> pb.Agent:
    """The releases of a log have a thousandth of the noise, drawn from a source of their own: a million rho."""
    return running(_NoisyStart)(small_policy(), path=path)


class _StartShowsRaw(Bandit):
    def start_from(self, rows: Sequence[LoggedReward], over_limit: int, dropped: int) -> None:
        super().start_from(rows, over_limit, dropped)
        for key in {key for key, _, _, _ in rows}:
            own = [reward for other, _, reward, _ in rows if other == key]
            self.public.policy.means[key] = sum(own) / len(own) / self.door.grid.steps
        _choose_again(self)


@specimen(cost=math.inf, shows="logs")
def make_white_warm_start_raw_means() -> pb.Agent:
    """A log is released as it should be, and then the means are put back as they were: infinite."""
    return running(_StartShowsRaw)(small_policy())


class _StartKeepsSums(Bandit):
    def start_from(self, rows: Sequence[LoggedReward], over_limit: int, dropped: int) -> None:
        super().start_from(rows, over_limit, dropped)
        for key, weight, reward, _ in rows:
            again = self.private.episodes[key]
            again.add(weight, reward)
            again.first = 1  # the ledger is told of both


@specimen(cost=1.0, shows="logs")
def make_white_warm_start_in_two_episodes() -> pb.Agent:
    """The rewards of a log are in the first release of their arm, and in the second one again: 2 rho."""
    return running(_StartKeepsSums)(small_policy())


class _NobodyLogged(Bandit):
    def start_from(self, rows: Sequence[LoggedReward], over_limit: int, dropped: int) -> None:
        nobody = [(key, weight, reward, None) for key, weight, reward, _ in rows]
        super().start_from(nobody, over_limit, dropped)


class _StartForgetsPeople(_AnyoneAgent):
    bandit_type = _NobodyLogged


@specimen(cost=2.0, shows="logs")
def make_white_warm_start_forgets_people() -> pb.Agent:
    """Rewards of a log do not count for the limit of two a person: four of one person cost 4 rho."""
    return _StartForgetsPeople(small_policy(), max_rewards_per_person=2, unit="person")


class _StartSorted(_AnyoneAgent):
    def warm_start(self, log: Any, **columns: Any) -> int:
        return super().warm_start(sorted(log, key=_reward_in, reverse=True), **columns)


@specimen(cost=math.inf, shows="logs")
def make_white_warm_start_keeps_best() -> pb.Agent:
    """A log with more rewards of a person than the limit counts the best of them, and not the first: infinite."""
    return _StartSorted(small_policy(), max_rewards_per_person=2)


class _StartDropsZeros(pb.Agent):
    def warm_start(self, log: Any, **columns: Any) -> int:
        rows = list(log)
        return super().warm_start([row for row in rows if _reward_in(row) > 0] or rows[:1], **columns)


@specimen(cost=math.inf, shows="logs")
def make_white_warm_start_drops_zeros() -> pb.Agent:
    """Rewards of 0 in a log count as missing, which the counts of the first releases show: infinite."""
    return _StartDropsZeros(small_policy())


class _StartErrorTells(pb.Agent):
    def warm_start(self, log: Any, **columns: Any) -> int:
        try:
            return super().warm_start(log, **columns)
        except pb.errors.InvalidInput as error:
            error.add_note(f"rewards from {min(map(_reward_in, log), default=0)}")
            raise


@specimen(cost=math.inf, shows="errors")
def make_white_warm_start_error_tells() -> pb.Agent:
    """A log with an unknown arm is refused with its lowest reward in a note: infinite."""
    return _StartErrorTells(small_policy())
