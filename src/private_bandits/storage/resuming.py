"""An agent's file that is to be resumed: read and checked, with nothing written yet.

A file that is damaged, or that another agent has, is refused here and stays as it is. `AgentFile.take_over` is the
first write.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from private_bandits.errors import AgentFileInvalid
from private_bandits.expiry import stored_times
from private_bandits.ledger import Release
from private_bandits.policies.waiting import Waiting
from private_bandits.state import PrivateState, PublicState
from private_bandits.storage.decisions import OpenDecisions
from private_bandits.storage.formats import CHAINED, Moved, refuse_damage
from private_bandits.storage.ownership import OwnedFile, check_agents_file
from private_bandits.storage.parsing import OpenEpisode, load_endings, load_settings, load_sums
from private_bandits.storage.reading import read_file, stored_releases
from private_bandits.storage.rows import LedgerRows
from private_bandits.storage.sqlite import SqliteStore, Taken


class AgentFile:
    """The bandit in a file (`StoredBandit` of storage/contract.py). No other agent can have the file meanwhile.

    without_log: read the file also if the log with its latest writes is lost. moving_to: the bandit and the database
    that it is to move to; a file that began to move there can be read again.
    """

    def __init__(self, path: Path, without_log: bool = False, moving_to: tuple[str, str] | None = None) -> None:
        check_agents_file(path)
        self._path = path.absolute()
        self._owned = OwnedFile(self._path)
        self._rows = LedgerRows()
        try:
            self._contents = refuse_damage(str(path), lambda: read_file(self._path, without_log))
            self.settings = refuse_damage(str(path), lambda: load_settings(self._contents.settings))
            _check_moved(path, self._contents.moved, moving_to)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Let others have the file."""
        self._owned.close()

    @property
    def opening(self) -> str | None:
        """The text that the chain of its ledger begins with; None of files of versions that had no chain."""
        return self._contents.opening

    @property
    def rows(self) -> int:
        """How many releases it has."""
        return self._contents.releases

    def releases(self, opening: str) -> Iterator[Release]:
        """Read the rows of the ledger, oldest first, once and to the end. Not all of them stay in memory."""
        self._chain_opening = opening
        rows = stored_releases(self._path, self._contents)
        return self._rows.read(rows, None if self._contents.version >= CHAINED else opening)

    def load(self, open_episode: OpenEpisode) -> tuple[PublicState, PrivateState]:
        """Return the state as it was committed last, but for the policy's. open_episode makes the empty sums."""
        return refuse_damage(str(self._path), lambda: self._load(open_episode))

    def _load(self, open_episode: OpenEpisode) -> tuple[PublicState, PrivateState]:
        found, settings = self._contents, self.settings
        self._private = PrivateState(load_sums(found.episodes.value, found.kept.value, open_episode))
        self._public = public = PublicState(
            policy=None,
            waiting=Waiting(len(settings.policy.arm_names)),
            asked=found.asked,
            generation=found.generation + 1,
            ended=load_endings(found.ended, found.asked, found.open),
            times=stored_times(settings.give_up_time, found.times, found.oldest, found.asked),
        )
        self._decisions = OpenDecisions(settings, public.generation, found.open)
        if found.people.value and settings.max_rewards_per_person is None:
            raise AgentFileInvalid("is damaged: it counts rewards of people, and its settings have no limit for them")
        limited, changing = settings.max_rewards_per_person is not None, not settings.policy.arm_names
        if tuple(found.texts) != (found.open * limited, found.open * changing):
            raise AgentFileInvalid("is damaged: an open decision does not fit the settings")
        for row in found.decisions.value:
            self._decisions.parsed(row)
        for action, count in found.waiting or Counter(row[2] for row in found.decisions.value).items():
            if public.waiting:
                public.waiting[action] = count
        return public, self._private

    @property
    def policy_state(self) -> dict[str, Any]:
        """The policy's state as it was stored last. Later releases of the ledger are still to be learned."""
        found = self._contents
        return dict(json.loads(found.policy) | json.loads(found.arrivals or "{}"))

    @property
    def learned(self) -> int:
        """How many releases the stored state of the policy has learned."""
        return self._contents.learned

    @property
    def checked(self) -> bool:
        """Whether the file had checksums: then a state that the policy cannot read is the policy's own fault."""
        return self._contents.checked

    def check(self, check: Callable[[], object]) -> None:
        """Run a check of what was read. Whatever goes wrong there is told as damage of the file."""
        refuse_damage(str(self._path), check)

    def take_over(self) -> SqliteStore:
        """Write that the file has a new owner, and return the store that goes on with it.

        All releases have to be read before: they are written anew where the file is of an older format.
        """
        read, there = len(self._rows), self._contents.releases
        if read != there:
            raise AssertionError(f"{read} of {there} releases were read, and the file is to be taken over")
        contents = replace(self._contents, opening=self._chain_opening)
        taken = Taken(contents, self._public.ended, self._private.episodes, self._decisions, self._rows)
        return refuse_damage(str(self._path), lambda: SqliteStore.resume(self._path, self._owned, taken))


def _check_moved(path: Path, moved: Moved | None, moving_to: tuple[str, str] | None) -> None:
    """Refuse a file whose agent goes on in a database. Two copies of one state would both draw."""
    if moved is None:
        return
    if moved.done:
        raise AgentFileInvalid(f"{path} moved into a database, as the bandit {moved.bandit}: go on there")
    if moving_to != (moved.bandit, moved.database):
        raise AgentFileInvalid(
            f"{path} began to move into a database, as the bandit {moved.bandit}, and may be there: import it again, "
            "into the same database and under the same name"
        )
