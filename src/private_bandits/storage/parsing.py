"""Makes settings, sums and counts of what was read from an agent's file. Each is checked as if it were new."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict

from private_bandits.errors import AgentFileInvalid, InvalidInput
from private_bandits.mechanism.episode import Episode, stored_place
from private_bandits.state import Endings, Settings
from private_bandits.storage.formats import Row

OpenEpisode = Callable[[int, int, int], Episode]
"""Makes an empty sum of a key, number and dimension."""


def load_settings(text: str) -> Settings:
    """Read the settings. They are public, so that a refusal may say what is wrong with them."""
    try:
        return Settings.from_dict(json.loads(text))
    except InvalidInput as error:
        raise AgentFileInvalid(f"has settings that are refused: {error}") from None


def _load_episode(text: str, open_episode: OpenEpisode) -> Episode:
    data = json.loads(text)
    return open_episode(*stored_place(data)).restored(data)


def load_sums(episodes: Iterable[Row], kept: Iterable[Row], open_episode: OpenEpisode) -> dict[int, Episode]:
    """Read the open sums, and with each the earlier ones that later releases hold again.

    Args:
        episodes: Keys, and texts that `Episode.dump` made.
        kept: Keys, numbers, labels and such texts of the earlier sums.
        open_episode: Makes an empty sum.
    """
    sums = {key: _load_episode(text, open_episode) for key, text in episodes}
    if any(key != episode.key for key, episode in sums.items()):
        raise AgentFileInvalid("is damaged: an open sum is in the wrong place")
    for key, number, label, text in kept:
        part = _load_episode(text, open_episode)
        if key not in sums or (part.key, part.number, part.label) != (key, number, label):
            raise AgentFileInvalid("is damaged: an earlier sum is in the wrong place")
        sums[key].kept += (part,)
    return sums


def load_endings(text: str, asked: int, still_open: int) -> Endings:
    """Read how decisions ended. Older versions did not note it. asked, still_open: how many were made, and are open."""
    if not text:
        return Endings(unknown=asked - still_open, unknown_up_to=asked)
    endings = Endings(**json.loads(text))
    fit = all(type(n) is int and n >= 0 for n in asdict(endings).values())
    if not fit or endings.total > asked - still_open or endings.unknown_up_to > asked:
        raise AgentFileInvalid("is damaged: more decisions ended than were made")
    return endings
