"""The parts of a release: which rewards are new in it, which are held again; and rows of earlier versions."""

from __future__ import annotations

import json
import math
import sqlite3
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import private_bandits as pb
from private_bandits.errors import InvalidInput
from private_bandits.ledger import Account, Part, Release
from private_bandits.mechanism.composition import Composition, Outgoing
from private_bandits.mechanism.episode import Episode
from private_bandits.mechanism.factor import HALF_BEFORE, Factor, square_root
from private_bandits.mechanism.moments import MomentScale
from private_bandits.mechanism.release import Door
from private_bandits.mechanism.rewards import RewardRange
from private_bandits.storage.damage import checksum
from private_bandits.storage.formats import agent_checksum
from tests.storage.test_damage import FILES, KINDS, NEW, one_step
from tests.support import read_ledger

COUNTS = [3, 1, 2, 5, 1, 4, 2, 7, 1]


def door_with(budget: pb.budget.Budget | None = None, **options: Any) -> Door:
    return Door(budget or pb.zCDP(1.0), RewardRange(0.0, 1.0), Account(), 1, **options)


def filled(door: Door, key: int, number: int, count: int, kept: tuple[Episode, ...] = ()) -> Episode:
    """An episode of so many rewards, half of the range each, with a weight of one."""
    episode = door.open_episode(key, number, 1)
    episode.kept = kept
    for _ in range(count):
        episode.add((1,), door.grid.steps // 2)
    return episode


def play(door: Door, counts: Sequence[int]) -> list[Release]:
    """Release episodes of so many rewards each, one after the other."""
    kept: tuple[Episode, ...] = ()
    rows: list[Release] = []
    for number, count in enumerate(counts, 1):
        whole: Outgoing = door.composition.compose(filled(door, 0, number, count, kept))
        kept = whole.carried_over
        rows.append(door.release(whole))
    return rows


# Compositions.


def test_an_episode_by_itself_is_one_new_part() -> None:
    door = door_with()
    row = door.release(filled(door, 4, 3, 2))
    assert row.parts == (Part(key=4, episode="4/3", rewards=2, multiplier=1.0, new=True),)
    assert (row.key, row.count, row.keys, row.counts, row.all_rewards) == (4, 2, (4,), (2,), 2)
    assert row.weighted_rewards == 2


@pytest.mark.parametrize("weights", [None, [[0.5, -2.0, 1.0]]])
def test_sums_that_leave_together_are_all_new(weights: list[list[float]] | None) -> None:
    door = door_with()
    whole = door.combine([filled(door, 7, 1, 3), filled(door, 2, 1, 1), filled(door, 5, 1, 2)], weights)
    row = door.release(whole)
    assert row.parts == (Part(7, "7/1", 3, 1.0, True), Part(2, "2/1", 1, 1.0, True), Part(5, "5/1", 2, 1.0, True))
    assert (row.key, row.count, row.keys, row.counts, row.all_rewards) == (7, 6, (7, 2, 5), (3, 1, 2), 6)
    assert dict(row.episodes) == {"7/1": 1.0, "2/1": 1.0, "5/1": 1.0}


def test_with_a_factor_the_newest_episode_is_new_and_the_others_are_held_again() -> None:
    rows = play(door_with(factor=Factor((4, 3, 1), 4, 4)), COUNTS[:6])
    assert [row.count for row in rows] == COUNTS[:6]
    assert [row.counts for row in rows] == [(n,) for n in COUNTS[:6]]
    assert rows[3].parts == (
        Part(0, "0/4", 5, 1.0, new=True),
        Part(0, "0/3", 2, 0.75, new=False),
        Part(0, "0/2", 1, 0.25, new=False),
    )
    assert (rows[3].keys, rows[3].all_rewards, rows[3].weighted_rewards) == ((0,), 8, 5 + 1.5 + 0.25)
    assert rows[4].parts == (Part(0, "0/5", 1, 1.0, new=True),)  # the cap: another factor begins
    assert rows[5].parts == (Part(0, "0/6", 4, 1.0, new=True), Part(0, "0/5", 1, 0.75, new=False))
    for row in rows:
        assert list(row.episodes.items()) == [(part.episode, part.multiplier) for part in row.parts]


def test_in_a_tree_the_leaf_is_new_and_the_subtrees_that_its_node_takes_in_are_held_again() -> None:
    rows = play(door_with(releases_of_a_reward=4), COUNTS)
    assert [row.count for row in rows] == COUNTS
    assert [row.counts for row in rows] == [(n,) for n in COUNTS]
    assert [row.parts[1:] for row in rows[::2]] == [()] * 5
    assert rows[1].parts == (Part(0, "0/2", 1, 1.0, True), Part(0, "0/1", 3, 1.0, False))
    assert rows[7].parts == (
        Part(0, "0/8", 7, 1.0, new=True),
        Part(0, "0/7", 2, 1.0, new=False),
        Part(0, "0/5-6", 5, 1.0, new=False),
        Part(0, "0/1-4", 11, 1.0, new=False),
    )
    assert dict(rows[7].episodes) == {"0/1-8": 1.0}  # the ledger charges by the node
    assert (rows[7].keys, rows[7].all_rewards) == ((0,), sum(COUNTS[:8]))


def test_another_tree_holds_nothing_of_the_first() -> None:
    rows = play(door_with(releases_of_a_reward=2), COUNTS[:6])
    assert [len(row.parts) for row in rows] == [1, 2, 1, 1, 2, 1]
    assert rows[4].parts == (Part(0, "0/5", 1, 1.0, new=True), Part(0, "0/4", 5, 1.0, new=False))


@pytest.mark.parametrize("levels", [1, 3])
def test_sums_over_people_have_parts_like_any(levels: int) -> None:
    door = door_with(releases_of_a_reward=levels, moments=MomentScale(2, 2**20, 0.0, 1.0, 0.5))
    kept: tuple[Episode, ...] = ()
    rows: list[Release] = []
    for number in range(1, 5):
        episode = door.open_episode(0, number, 2)
        episode.kept = kept
        for _ in range(number):
            episode.add((2**18, -(2**17)), door.grid.steps)
        whole = door.composition.compose(episode)
        kept = whole.carried_over
        rows.append(door.release(whole))
    assert [row.count for row in rows] == [1, 2, 3, 4]
    assert [row.all_rewards for row in rows] == ([1, 2, 3, 4] if levels == 1 else [1, 3, 3, 10])


@pytest.mark.parametrize(
    "options", [{}, {"factor": HALF_BEFORE}, {"factor": square_root(7)}, {"releases_of_a_reward": 3}]
)
def test_rounding_is_for_all_rewards_in_a_release(options: dict[str, Any]) -> None:
    """Each of them is moved by half a step at most, and no multiplier is above one."""
    door = door_with(**options)
    for row in play(door, COUNTS):
        assert row.rounding == pytest.approx(row.all_rewards / door.grid.steps / 2, rel=1e-12)
        assert row.all_rewards == sum(part.rewards for part in row.parts)


@pytest.mark.parametrize("options", [{}, {"factor": square_root(5)}, {"releases_of_a_reward": 3}])
def test_the_rule_of_an_agent_knows_the_parts_from_numbers_alone(options: dict[str, Any]) -> None:
    door = door_with(**options)
    composition: Composition = door.composition
    for number, row in enumerate(play(door, COUNTS), 1):
        assert composition.parts(0, number) == [(part.episode, part.multiplier) for part in row.parts]
        assert composition.covered(0, number) == dict(row.episodes)


def test_a_release_without_a_new_reward_is_refused_before_a_draw() -> None:
    door = door_with(factor=HALF_BEFORE)
    first = filled(door, 0, 1, 2)
    door.release(door.composition.compose(first))
    with pytest.raises(InvalidInput, match="0/2 holds no reward"):
        door.release(door.composition.compose(filled(door, 0, 2, 0, (first,))))
    assert len(door.account) == 1


@pytest.mark.parametrize("name", KINDS)
def test_every_reward_of_an_agent_is_new_once(name: str) -> None:
    policy, options = NEW[name]
    agent = pb.Agent(policy, **options)
    for step in range(60):
        one_step(agent, step)
    new = Counter(part.episode for row in agent.ledger for part in row.parts if part.new)
    assert set(new.values()) == {1}
    sizes = {part.episode: part.rewards for row in agent.ledger for part in row.parts if part.new}
    sizes |= {label: row.all_rewards for row in agent.ledger for label in row.episodes if "-" in label}
    for row in agent.ledger:
        assert row.count == sum(row.counts) == sum(part.rewards for part in row.parts if part.new)
        assert all(sizes[part.episode] == part.rewards for part in row.parts)


def test_a_log_is_new_in_the_first_release_of_each_arm() -> None:
    policy = pb.AdaCIMED(arms=["A", "B"], budget=pb.zCDP(1.0))
    agent = pb.Agent(policy, seed=1)
    agent.warm_start([("A", 1.0), ("B", 0.0), ("A", 0.5), ("A", 0.0)])
    assert [row.parts for row in agent.ledger] == [(Part(0, "0/1", 3, 1.0, True),), (Part(1, "1/1", 1, 1.0, True),)]
    for _ in range(40):
        agent.tell(agent.ask(), 1.0, played="A")
    later, factor = agent.ledger[2], policy.factor
    assert factor is not None
    again = factor.multipliers[1] / factor.unit
    assert later.parts == (Part(0, "0/2", later.count, 1.0, True), Part(0, "0/1", 3, again, False))


def test_an_index_policy_reads_a_mean_from_a_release_that_holds_episodes_again() -> None:
    class Plain(pb.IndexPolicy):
        name = "plain-with-a-factor"
        factor = HALF_BEFORE

        def index(self, means: Any, counts: Any, step: Any, width: float) -> Any:
            return means + width / np.sqrt(counts)

    try:
        agent = pb.Agent(Plain(1, pb.NoPrivacy()))
        for _ in range(20):
            agent.tell(agent.ask(), 0.25)
        [estimate] = agent.estimates()
        assert len(agent.ledger[-1].parts) == 2
        assert estimate.mean == pytest.approx(0.25, rel=1e-9)
    finally:
        del pb.policies.POLICIES["plain-with-a-factor"]


# Plain data.


def test_plain_data_of_a_row_is_lists_and_numbers() -> None:
    [_, row] = play(door_with(factor=HALF_BEFORE), [1, 3])
    data = json.loads(json.dumps(row.to_dict()))
    assert data["count"] == 3
    assert data["parts"] == row.to_dict()["parts"] == [[0, "0/2", 3, 1.0, True], [0, "0/1", 1, 0.5, False]]
    assert Release.from_dict(data) == row


DAMAGED: dict[str, Callable[[dict[str, Any]], Any]] = {
    "no parts": lambda row: row.update(parts=[]),
    "none new": lambda row: row["parts"][0].__setitem__(4, False),
    "held again before new": lambda row: row["parts"].reverse(),
    "another count": lambda row: row.update(count=4),
    "count of all": lambda row: row.update(count=5),
    "another key": lambda row: row.update(key=1),
    "key below": lambda row: row["parts"][1].__setitem__(0, -1),
    "key of a part not whole": lambda row: row["parts"][1].__setitem__(0, 0.0),
    "label of no text": lambda row: row["parts"][1].__setitem__(1, 1),
    "no rewards": lambda row: row["parts"][1].__setitem__(2, 0),
    "rewards below": lambda row: row["parts"][1].__setitem__(2, -1),
    "rewards not whole": lambda row: row["parts"][1].__setitem__(2, 1.0),
    "rewards true": lambda row: row["parts"][1].__setitem__(2, True),
    "multiplier infinite": lambda row: row["parts"][1].__setitem__(3, math.inf),
    "multiplier not a number": lambda row: row["parts"][1].__setitem__(3, math.nan),
    "multiplier of text": lambda row: row["parts"][1].__setitem__(3, "0.5"),
    "new of a number": lambda row: row["parts"][1].__setitem__(4, 0),
}


@pytest.mark.parametrize("label", DAMAGED)
def test_a_row_with_impossible_parts_is_refused(label: str) -> None:
    data = play(door_with(factor=HALF_BEFORE), [2, 3])[1].to_dict()
    assert Release.from_dict(data).count == 3
    DAMAGED[label](data)
    with pytest.raises(InvalidInput, match="what no release has"):
        Release.from_dict(data)


# Rows of earlier versions.


def as_before(row: Release, keys: bool = True) -> dict[str, Any]:
    """The row as versions up to 0.8 wrote it. keys: not those before 0.3, which released one sum at a time."""
    again = [part.rewards for part in row.parts] if len(row.episodes) > 1 else [row.all_rewards]
    data = row.to_dict() | {"count": row.all_rewards}
    del data["parts"]
    return data | {"keys": row.keys, "counts": again} if keys else data


def texts(rows: Sequence[dict[str, Any]]) -> list[str]:
    return [json.dumps(row) for row in rows]


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("now", [0, 7])
def test_rows_of_earlier_versions_are_read_with_what_is_new_in_them(name: str, now: int) -> None:
    """now: how many rows were written since, by this version."""
    policy, options = NEW[name]
    agent = pb.Agent(policy, **options)
    for step in range(70):
        one_step(agent, step)
    rows = agent.ledger.rows
    older = [as_before(row) for row in rows[: len(rows) - now]]
    found = read_ledger(texts([*older, *(row.to_dict() for row in rows[len(older) :])]))
    assert found.rows == rows
    assert found.total == agent.ledger.total


def test_rows_before_several_sums_left_together_are_read() -> None:
    rows = play(door_with(), COUNTS)
    assert read_ledger(texts([as_before(row, keys=False) for row in rows])).rows == tuple(rows)


@pytest.mark.parametrize("levels", [2, 3, 4])
def test_new_rewards_of_an_older_node_follow_from_the_rows_before_it(levels: int) -> None:
    rows = play(door_with(releases_of_a_reward=levels), COUNTS + COUNTS)
    found = read_ledger(texts([as_before(row) for row in rows]))
    assert [row.count for row in found] == COUNTS + COUNTS
    assert found.rows == tuple(rows)


@pytest.mark.parametrize("name", [*KINDS, "live"])
def test_files_of_version_eight_are_read_with_what_is_new_in_their_rows(name: str) -> None:
    with closing(sqlite3.connect(f"file:{FILES / name}.db?mode=ro&immutable=1", uri=True)) as connection:
        stored = [text for (text,) in connection.execute("SELECT release FROM ledger ORDER BY number")]
    found = read_ledger(stored)
    assert len(found) == len(stored) > 0
    for text, row in zip(stored, found, strict=True):
        data = json.loads(text)
        assert row.all_rewards == data["count"]
        assert json.loads(json.dumps(as_before(row))) == data
    if name in ("tree", "private-tree"):  # whose leaves have one reward each
        assert {row.count for row in found} == {1}
        assert max(len(row.parts) for row in found) > 3


BEFORE: dict[str, Callable[[dict[str, Any]], Any]] = {
    "a count more": lambda row: row["counts"].__setitem__(0, row["counts"][0] + 1),
    "count more": lambda row: row.update(count=row["count"] + 1),
    "count true": lambda row: row.update(count=True, counts=[1], episodes={"0/4": 1.0}),
    "count of text": lambda row: row.update(count="3"),
    "a count too many": lambda row: row["counts"].append(1),
    "no count of an episode": lambda row: row.update(counts=row["counts"][:-1] or [0]),
    "a key too many": lambda row: row.update(keys=[0, 1, 2, 3, 4, 5]),
    "two keys for one episode": lambda row: row.update(keys=[0, 1], counts=[row["count"]], episodes={"0/4": 1.0}),
    "a node of others": lambda row: row.update(counts=[row["count"]], episodes={"0/7-10": 1.0}),
    "a node of three": lambda row: row.update(counts=[row["count"]], episodes={"0/2-4": 1.0}),
    "no object": lambda row: row.clear(),
}


@pytest.mark.parametrize("label", BEFORE)
@pytest.mark.parametrize("options", [{"factor": square_root(7)}, {"releases_of_a_reward": 3}])
def test_an_older_row_that_contradicts_itself_is_refused(label: str, options: dict[str, Any]) -> None:
    rows = [json.loads(json.dumps(as_before(row))) for row in play(door_with(**options), COUNTS[:4])]
    assert len(read_ledger(texts(rows))) == 4
    BEFORE[label](rows[3])
    with pytest.raises((InvalidInput, KeyError, ValueError, TypeError)):
        read_ledger(texts(rows))


def test_an_older_node_with_fewer_rewards_than_its_subtrees_is_refused() -> None:
    rows = [as_before(row) for row in play(door_with(releases_of_a_reward=3), COUNTS[:4])]
    rows[3] |= {"count": 6, "counts": [6]}  # as many as the first three leaves have
    with pytest.raises(InvalidInput, match="what no release has"):
        read_ledger(texts(rows))


def test_older_rows_in_a_file_of_format_five_are_written_anew(tmp_path: Path) -> None:
    """A file of version 0.8 that an earlier build of this version took over has rows without parts."""
    path = tmp_path / "agent.db"
    policy, options = KINDS["tree"]
    with pb.Agent(policy, path=path, **options) as agent:
        for step in range(12):
            one_step(agent, step)
        rows = agent.ledger.rows
    with closing(sqlite3.connect(path)) as connection, connection:
        for table in ("chain", "places"):
            connection.execute(f"DROP TABLE {table}")
        connection.execute("PRAGMA user_version = 5")
        total = connection.execute("SELECT total FROM agent").fetchone()[0]
        for row in rows[:9]:
            text = json.dumps(as_before(row))
            total += checksum("ledger", row.number, text)
            total -= connection.execute("SELECT checksum FROM ledger WHERE number = ?", (row.number,)).fetchone()[0]
            connection.execute(
                "UPDATE ledger SET release = ?, checksum = ? WHERE number = ?",
                (text, checksum("ledger", row.number, text), row.number),
            )
        columns = connection.execute("SELECT asked, generation, arrivals, ended FROM agent").fetchone()
        settings = connection.execute("SELECT text FROM settings").fetchone()
        state = connection.execute("SELECT learned, text FROM policy").fetchone()
        own = checksum("settings", *settings), checksum("policy", *state)
        connection.execute("UPDATE agent SET total = ?, checksum = ?", (total, agent_checksum((*columns, total), own)))
    for _ in range(2):
        with pb.Agent.open(path) as agent:
            assert agent.ledger.rows == rows
        with closing(sqlite3.connect(path)) as connection:
            stored = [json.loads(text) for (text,) in connection.execute("SELECT release FROM ledger ORDER BY number")]
        chain = [row.pop("previous") for row in stored]
        assert chain == [json.loads(row.text)["previous"] for row in agent.ledger]
        assert stored == [json.loads(json.dumps(row.to_dict())) for row in rows]
