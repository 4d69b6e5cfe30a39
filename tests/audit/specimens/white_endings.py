"""White specimens that are broken in how they finish."""

from __future__ import annotations

import math

import private_bandits as pb
from private_bandits.bandit import Bandit
from private_bandits.mechanism.episode import Episode
from tests.audit.specimens.listing import StrPath, specimen
from tests.audit.specimens.white_batches import _QuietAtTimes
from tests.audit.specimens.white_parts import running, small_policy


class _FinishesTwice(Bandit):
    def finish(self) -> int:
        kept = [episode.dump() for episode in self.private.episodes.values() if episode.count]
        found = super().finish()
        for data in kept:
            place = {"number": data["number"] + 1, "first": data["number"] + 1}
            self.private.episodes[data["key"]] = Episode.load(data | place, self.door.grid)
        self.unfinished = False
        return super().finish() if kept else found


@specimen(cost=1.0, shows="the end")
def make_white_finish_twice(path: StrPath | None = None) -> pb.Agent:
    """Finishing releases the open sums twice, the second time as if they were the episodes after: 2 rho."""
    return running(_FinishesTwice)(small_policy(), path=path)


class _FinishShowsRaw(Bandit):
    def finish(self) -> int:
        raw = {key: e.totals.reveal()[0] / e.grid.steps for key, e in self.private.episodes.items() if e.count}
        found = super().finish()
        for key, total in raw.items():
            self.public.policy.means[key] = total
        return found


@specimen(cost=math.inf, shows="the end")
def make_white_finish_raw_means() -> pb.Agent:
    """Open sums are released as they should be, and then shown as they were in the policy's state: infinite."""
    return running(_FinishShowsRaw)(small_policy())


class _QuietEnd(_QuietAtTimes):
    def finish(self) -> int:
        found: int = self._quietly(super().finish)
        return found


@specimen(cost=math.inf, shows="the end")
def make_white_finish_quiet() -> pb.Agent:
    """Closing releases have a thousandth of the noise that the ledger tells: a million rho."""
    return _QuietEnd.made()
