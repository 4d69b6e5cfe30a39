"""White specimens that are broken after a restart."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import private_bandits as pb
from private_bandits.bandit import Bandit, Told
from private_bandits.ledger import Release
from private_bandits.mechanism.composition import Outgoing
from private_bandits.mechanism.episode import Episode
from private_bandits.storage.sqlite import SqliteStore
from tests.audit.specimens.listing import StrPath, specimen
from tests.audit.specimens.white_parts import _Keeping, running, small_policy


class _RedrawAtOpen(_Keeping):
    def resume(self, state: Any, learned: int) -> None:
        super().resume(state, learned)
        beside = self.beside()
        if beside is not None and beside.exists():
            found = [Episode.load(data, self.door.grid) for data in json.loads(beside.read_text())]
            self.kept = {full.key: full for full in found}
            self.draw_anew()

    def release(self, whole: Outgoing) -> Release:
        row = super().release(whole)
        beside = self.beside()
        if beside is not None:
            beside.write_text(json.dumps([full.dump() for full in self.kept.values()]))
        return row

    def beside(self) -> Path | None:
        """A file beside the agent's own."""
        if not isinstance(self.records, SqliteStore):
            return None
        return self.records.path.with_name(self.records.path.name + ".sums")


@specimen(cost=math.inf, shows="restart")
def make_white_redraw_at_open(path: StrPath | None = None) -> pb.Agent:
    """Opening the file draws the noise of the last sums anew: rho for each restart more. None without a path."""
    return running(_RedrawAtOpen)(small_policy(), path=path)


class _KeepsEpisodeOnFile(_Keeping):
    def take(self, told: Told) -> pb.errors.PrivateBanditsError | None:
        rows = len(self.door.account)
        refused = super().take(told)
        if self.records.lasting and len(self.door.account) > rows:
            full = self.kept[told[1]]
            place = {"number": full.number + 1, "first": full.number + 1}
            self.records.summed([Episode.load(full.dump() | place, full.grid)])
        return refused


@specimen(cost=math.inf, shows="restart")
def make_white_release_repeated_after_restart(path: StrPath | None = None) -> pb.Agent:
    """The file keeps a released sum as the arm's open one: after a restart it is released again.

    rho for each restart that follows right after a release, once the arm's next release comes. None without a path.
    """
    return running(_KeepsEpisodeOnFile)(small_policy(), path=path)


class _ReopensAtOpen(Bandit):
    def take(self, told: Told) -> pb.errors.PrivateBanditsError | None:
        refused = super().take(told)
        if refused is None and self.records.lasting:
            # What is asked and closed between two writes is not written: the row of the ask before stays.
            self.records.asked(told[0], None)
            self.records.closed(told[0], "told")
        return refused


@specimen(cost=math.inf, shows="restart")
def make_white_told_again_after_restart(path: StrPath | None = None) -> pb.Agent:
    """The file keeps told decisions open: after a restart the same reward can be told, and counts, once more.

    At least 2 rho after one restart. None without a path.
    """
    return running(_ReopensAtOpen)(small_policy(), path=path)
