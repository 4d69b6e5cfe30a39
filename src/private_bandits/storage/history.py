"""Whether a ledger and open sums that were read from a file can be what its door wrote.

A file with another budget than its releases had, or with sums out of place, would go on with too little noise, or
release a sum twice. Checksums notice accidents; these checks notice what was edited, and damage in older files.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from private_bandits.errors import AgentFileInvalid
from private_bandits.ledger import Release
from private_bandits.mechanism.composition import Composition
from private_bandits.mechanism.episode import Episode, label_of
from private_bandits.mechanism.release import Door
from private_bandits.storage.rows import rewards_by_label

ROUNDING = 1e-6
"""Relative difference between what a version computes and what another one computed."""


def charge_history(
    door: Door, rows: Iterable[Release], episodes: Mapping[int, Episode], asked: int, finished: bool
) -> None:
    """Charge the door's account for the releases of a file, which are read once, in their order, and check all of it.

    Refuses a file whose releases or open sums are not those of its settings, or hold more than was asked for.
    finished: whether the bandit takes no rewards any more.
    """
    last: dict[int, int] = {}
    remembered: dict[int, dict[str, int]] = {}  # what the next release of a key may hold again, with its rewards
    for row in rows:
        door.account.charge(row)
        _check_noise(door, row)
        numbers = {key: last.get(key, 0) + 1 for key in row.keys}
        _check_episodes(door.composition, row, numbers)
        known = {label: rewards for key in row.keys for label, rewards in remembered.get(key, {}).items()}
        if row.all_rewards > asked or any(known.get(p.episode) != p.rewards for p in row.parts if not p.new):
            raise AgentFileInvalid(f"is damaged: release {row.number} counts other rewards than it holds")
        known |= rewards_by_label(row)
        for key, number in numbers.items():
            again = door.composition.remembered(key, number + 1)
            remembered[key] = {label: known[label] for label in again if label in known}
        last |= numbers
        if not numbers.keys() <= episodes.keys():
            raise AgentFileInvalid("is damaged: a sum that was released has no open episode")
        _check_values(row, episodes)
    nothing_follows = finished and not any(episode.count for episode in episodes.values())
    for key, episode in episodes.items():
        _check_place(door, episode, last.get(key, 0) + 1, nothing_follows)
        if max(part.count for part in (episode, *episode.kept)) > asked:
            raise AgentFileInvalid(f"is damaged: the open sum {key} holds more rewards than were asked for")


def _check_noise(door: Door, row: Release) -> None:
    """Refuse a row with other noise than the budget of the settings asks for."""
    level, kind = door.level, door.budget.noise
    same = row.noise == kind and row.private is door.secret and row.steps == door.grid.steps
    if same and kind != "none":
        scale = row.sensitivity / level if kind == "laplace" else row.sensitivity * math.sqrt(1 / (2 * level))
        sd = door.reward_range.width / row.steps / row.unit * row.scale * (math.sqrt(2) if kind == "laplace" else 1.0)
        stored, own = (row.scale, row.calibrated, row.noise_sd), (scale, level, sd)
        same = all(math.isclose(x, y, rel_tol=ROUNDING) for x, y in zip(stored, own, strict=True))
    if not same:
        raise AgentFileInvalid(
            f"is damaged: release {row.number} was made with other noise than the settings ask for. The settings or "
            "the ledger were changed"
        )


def _check_episodes(composition: Composition, row: Release, numbers: Mapping[int, int]) -> None:
    """Refuse a row with other episodes, or parts, than come next. numbers: of the newest episodes, by key."""
    covered: dict[str, float] = {}
    parts: list[tuple[int, str, float, bool]] = []
    for key, number in numbers.items():
        covered |= composition.covered(key, number)
        (newest, multiplier), *again = composition.parts(key, number)
        parts += [(key, newest, multiplier, True), *((key, label, c, False) for label, c in again)]
    found = [(part.key, part.episode, part.multiplier, part.new) for part in row.parts]
    if dict(row.episodes) != covered or found != parts:
        raise AgentFileInvalid(f"is damaged: release {row.number} does not hold the episodes that come next")


def _check_values(row: Release, episodes: Mapping[int, Episode]) -> None:
    """Refuse a row with more or fewer values than its sums have."""
    if row.weights is not None:
        fit = len(row.values) == len(row.weights) and {len(row.keys)} == set(map(len, row.weights))
    elif len(row.keys) > 1:
        fit = len(row.values) == len(row.keys)
    else:
        fit = len(row.values) == len(episodes[row.key].weight_sums)
    if not fit:
        raise AgentFileInvalid(f"is damaged: release {row.number} has other values than its sums")


def _check_place(door: Door, episode: Episode, number: int, nothing_follows: bool) -> None:
    """Refuse an open sum that does not come next, or that holds other earlier sums again than it should."""
    expected = door.composition.remembered(episode.key, number)
    forgotten = nothing_follows and not episode.kept
    carried_over = forgotten or [part.label for part in episode.kept] == expected
    if episode.label != label_of(episode.key, number, number) or not carried_over:
        raise AgentFileInvalid(f"is damaged: the open sum {episode.key} does not follow its last release")
