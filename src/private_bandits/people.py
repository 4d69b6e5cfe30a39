"""The rewards of each person: how many a bandit takes, and in which open episodes they are.

Everything here depends on public facts: who came, which rewards arrived, and for which action. No value has a part.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from private_bandits.mechanism.episode import Episode
from private_bandits.state import Records, Settings


class People:
    """Keeps the limits for each person (`max_rewards_per_person`, `one_reward_per_episode`).

    episodes: the open sums, by key. leave_together: whether sums of different keys leave in one release. They are one
    episode then, as two rewards of a person would meet in that release.
    """

    def __init__(
        self, settings: Settings, records: Records, episodes: Mapping[int, Episode], leave_together: bool
    ) -> None:
        self._limit = settings.max_rewards_per_person
        self._one_per_episode = settings.one_reward_per_episode
        self._records = records
        self._episodes = episodes
        self._leave_together = leave_together

    def may_tell(self, person: str, key: int) -> bool:
        """Whether one more reward of this person may enter the open sum of a key."""
        if self._limit is not None and self._records.rewards_of(person) >= self._limit:
            return False
        return not (self._one_per_episode and self.would_meet(key, self._open_places(person)))

    def would_meet(self, key: int, others: Collection[int]) -> bool:
        """Whether a reward in the open sum of a key would leave together with one in the open sums of others."""
        return bool(others) if self._leave_together else key in others

    def is_second(self, key: int, others: Collection[int]) -> bool:
        """Whether it is over the limit beside rewards of the same person that are in the open sums of others."""
        return self._one_per_episode and self.would_meet(key, others)

    def count(self, person: str, key: int) -> Callable[[], None]:
        """Count one more reward of a person, in the open episode of a key. Returns how to undo it."""
        records, before = self._records, None
        records.count_rewards_of(person, 1)
        if self._one_per_episode:
            before = self._open_places(person)
            records.put_places_of(person, before | {key: self._open_number(key)})

        def undo() -> None:
            records.count_rewards_of(person, -1)
            if before is not None:
                records.put_places_of(person, before)

        return undo

    def _open_places(self, person: str) -> dict[int, int]:
        """Return the episodes that are still open and hold a reward of this person: numbers by key."""
        places = self._records.places_of(person)
        return {key: number for key, number in places.items() if number == self._open_number(key)}

    def _open_number(self, key: int) -> int:
        """Return the number of the open episode of a key."""
        episode = self._episodes.get(key)
        return 1 if episode is None else episode.number
