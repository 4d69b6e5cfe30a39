"""Several sums that leave together: what one reward moves is what is declared, and decoding uses what was summed."""

from __future__ import annotations

import math
import random
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import private_bandits as pb
from private_bandits.agent import bandit_of
from private_bandits.budget import Budget
from private_bandits.errors import CapacityExceeded, InvalidInput, NoiseFailed, PolicyFailed
from private_bandits.ledger import Account, Release
from private_bandits.mechanism.composition import Combined
from private_bandits.mechanism.episode import INT64, TAIL, Episode, OpenCounts
from private_bandits.mechanism.noise import ExactNoise, Mechanism
from private_bandits.mechanism.release import Door
from private_bandits.mechanism.rewards import RewardRange
from private_bandits.policies import POLICIES, Combination
from private_bandits.policies.phased_elimination import PhasedState

steady = settings(derandomize=True, deadline=None)
Matrix = list[list[float]]


def door_for(budget: Budget, bounds: tuple[float, float] = (0.0, 1.0)) -> Door:
    return Door(budget, RewardRange(*bounds), Account(), None)


def episodes_of(door: Door, rewards: Sequence[Sequence[float]], number: int = 1) -> list[Episode]:
    """One episode for each list of rewards, of weight one, under the keys 10, 11, ..."""
    found = []
    for key, told in enumerate(rewards, 10):
        episode = door.open_episode(key, number, 1)
        for reward in told:
            episode.add((1,), door.reward_range.to_grid(reward, door.grid.steps))
        found.append(episode)
    return found


matrices = (
    st.integers(1, 4)
    .flatmap(
        lambda columns: st.lists(
            st.lists(st.floats(-50, 50, allow_subnormal=False), min_size=columns, max_size=columns),
            min_size=1,
            max_size=4,
        )
    )
    .filter(lambda matrix: max(abs(w) for row in matrix for w in row) > 1e-3)
)


@steady
@given(weights=matrices, bounds=st.sampled_from([(0.0, 1.0), (-3.0, 5.0)]))
def test_one_reward_moves_the_values_by_what_is_declared_and_no_more(
    weights: Matrix, bounds: tuple[float, float]
) -> None:
    door = door_for(pb.zCDP(0.5), bounds)
    low, high = bounds
    columns = len(weights[0])
    base = Combined(episodes_of(door, [[low, high]] * columns), weights).totals.reveal()
    moved_l2, moved_l1 = 0, 0
    for j in range(columns):
        rewards = [[low, high]] * columns
        rewards[j] = [high, high]
        other = Combined(episodes_of(door, rewards), weights)
        moved = [abs(a - b) for a, b in zip(base, other.totals.reveal(), strict=True)]
        moved_l2, moved_l1 = max(moved_l2, sum(m * m for m in moved)), max(moved_l1, sum(moved))
    assert other.sensitivity_l2 - 1 < math.isqrt(moved_l2) + 1
    assert moved_l2 <= other.sensitivity_l2**2
    assert moved_l1 == other.sensitivity_l1
    # And not less than the weights before the rounding would have asked for, nor more than one in 10^6 above.
    real = max(math.hypot(*column) for column in zip(*weights, strict=True)) * door.grid.steps * other.unit
    assert real * (1 - 1e-12) <= other.sensitivity_l2 <= real * (1 + 1e-6) + 1


@steady
@given(weights=matrices, seed=st.integers(0, 100))
def test_without_noise_values_are_rounded_weights_times_sums(weights: Matrix, seed: int) -> None:
    generator = random.Random(seed)
    bounds = (-2.0, 2.0)
    rewards = [[generator.choice([-2.0, -1.0, 0.0, 2.0]) for _ in range(3 + j)] for j in range(len(weights[0]))]
    door = door_for(pb.NoPrivacy(), bounds)
    row = door.release(door.combine(episodes_of(door, rewards), weights))
    assert row.weights is not None
    expected = np.array(row.weights) @ [sum(told) for told in rewards]
    assert np.array(row.values) == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert np.array(row.weights) == pytest.approx(np.array(weights), rel=1e-9, abs=1e-9 * np.abs(weights).max())
    assert row.keys == tuple(range(10, 10 + len(rewards)))
    assert row.counts == tuple(map(len, rewards))
    assert row.count == sum(map(len, rewards))


def test_sums_by_themselves_have_the_sensitivity_of_one() -> None:
    door = door_for(pb.zCDP(0.5))
    row = door.release(door.combine(episodes_of(door, [[1.0] * 5, [0.0] * 3]), None))
    assert row.sensitivity == door.grid.steps
    assert row.noise_sd == pytest.approx(1.0)
    assert len(row.values) == 2
    assert row.cost <= 0.5


def test_noise_has_the_size_of_the_largest_column() -> None:
    door = door_for(pb.zCDP(0.5), (-1.0, 1.0))
    weights = [[0.3, 0.0], [0.4, 0.1]]
    row = door.release(door.combine(episodes_of(door, [[1.0], [1.0]]), weights))
    assert row.noise_sd == pytest.approx(2 * 0.5, rel=1e-6)
    pure = door_for(pb.PureDP(2.0), (-1.0, 1.0))
    row = pure.release(pure.combine(episodes_of(pure, [[1.0], [1.0]]), weights))
    assert row.noise_sd == pytest.approx(math.sqrt(2) * 2 * 0.7 / 2, rel=1e-6)


def test_every_episode_of_a_release_is_covered_by_its_row() -> None:
    door = door_for(pb.zCDP(0.5))
    parts = episodes_of(door, [[1.0], [0.0]])
    door.release(door.combine(parts, [[1.0, 1.0]]))
    for again in ([parts[0]], [parts[1]], parts):
        with pytest.raises(AssertionError, match="was released before"):
            door.release(door.combine(again, None))
    assert len(door.account) == 1
    assert door.account.total <= 0.5
    door.release(door.combine(episodes_of(door, [[1.0], [0.0]], number=2), [[1.0, 1.0]]))
    assert door.account.total <= 0.5


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ([[1.0]], "rows of 2 finite numbers"),
        ([[1.0, 2.0], [1.0]], "rows of 2 finite numbers"),
        ([[1.0, math.nan]], "rows of 2 finite numbers"),
        ([[1.0, math.inf]], "rows of 2 finite numbers"),
        ([[0.0, 0.0]], "all zero"),
    ],
)
def test_bad_weights_are_refused(weights: Matrix, words: str) -> None:
    door = door_for(pb.zCDP(0.5))
    with pytest.raises(InvalidInput, match=words):
        door.combine(episodes_of(door, [[1.0], [0.0]]), weights)


def test_empty_and_vector_sums_are_not_combined() -> None:
    door = door_for(pb.zCDP(0.5))
    with pytest.raises(InvalidInput, match="holds no reward"):
        door.combine(episodes_of(door, [[1.0], []]), None)
    vector = door.open_episode(1, 1, 2)
    vector.add((1, 2), 1)
    with pytest.raises(InvalidInput, match="sum of vectors"):
        door.combine([vector], None)


def test_an_episode_is_in_a_release_once() -> None:
    """In two columns a reward would move the values by more than either column."""
    door = door_for(pb.zCDP(0.5))
    one, other = episodes_of(door, [[1.0], [0.0]])
    for wrong in ([one, one], [one, other, one], []):
        with pytest.raises(InvalidInput, match="different episodes"):
            door.combine(wrong, None)
    stranger = episodes_of(door_for(pb.NoPrivacy()), [[1.0], [1.0]])[1]
    with pytest.raises(InvalidInput, match="different grids"):
        door.combine([one, stranger], None)


@pytest.mark.parametrize("rho", [1e-9, 1e-15, 1e-18])
def test_tiny_budgets_leave_room_for_weights(rho: float) -> None:
    agent = pb.Agent(pb.AdaCGOPE([[0.9, 0.0], [-0.45, 0.8], [-0.4, -0.7]], pb.zCDP(rho), phase_factor=1e-6 * rho**0.5))
    for _ in range(40):
        agent.tell(agent.ask(), 1.0)
    assert len(agent.ledger) > 0


class Unlucky(pb.AdaCGOPE):
    """Fails when it learns, as an interrupt or a bug might have it."""

    failure: BaseException = ValueError("the released values are secret")

    def learn(self, state: PhasedState, release: Release, step: int) -> None:
        super().learn(state, release, step)
        raise self.failure


class Stray(pb.AdaCGOPE):
    """Wants a release without the sum that is due."""

    def combination(self, state: PhasedState, key: int, arrived: Mapping[int, int]) -> Combination:
        return Combination(tuple(k for k in state.plan if k != key), None)


@pytest.mark.parametrize("failure", [ValueError("the released values are secret"), KeyboardInterrupt()])
def test_a_policy_that_fails_after_the_draw_leaves_the_release_and_shows_no_reward(
    failure: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The release is in the ledger, and no frame of the failure holds the reward that was told."""
    monkeypatch.setattr(Unlucky, "failure", failure)
    monkeypatch.setattr(Unlucky, "name", "unlucky")
    monkeypatch.setitem(POLICIES, "unlucky", Unlucky)
    path = tmp_path / "agent.db"
    agent = pb.Agent(Unlucky.example(pb.zCDP(1)), path=path)
    decisions = agent.ask(sum(agent.learned["plan"].values()))
    for decision in decisions[:-1]:
        agent.tell(decision, 1.0)
    with pytest.raises((PolicyFailed, KeyboardInterrupt)) as caught:
        agent.tell(decisions[-1], 1.0)
    frames = caught.value.__traceback__
    assert frames is not None
    report = traceback.TracebackException(type(caught.value), caught.value, frames.tb_next, capture_locals=True)
    text = "".join(report.format())  # without the frame of this test
    assert "in tell" in text
    assert "secret" not in text
    assert "Release(" not in text
    with pb.Agent.open(path) as again:
        assert again.ledger.rows == agent.ledger.rows
        assert len(again.ledger) == 1
        assert sum(e.count for e in bandit_of(again).private.episodes.values()) == 0
        with pytest.raises(PolicyFailed, match="Unlucky failed at release 1, with"):
            again.ask()


def test_a_release_holds_the_sum_that_is_due() -> None:
    agent = pb.Agent(Stray.example(pb.zCDP(1)))
    decisions = agent.ask(sum(agent.learned["plan"].values()))
    for decision in decisions[:-1]:
        agent.tell(decision, 1.0)
    with pytest.raises(InvalidInput, match="is due"):
        agent.tell(decisions[-1], 1.0)
    assert agent.open_decisions == [decisions[-1]]
    assert len(agent.ledger) == 0


def filled(door: Door, counts: Sequence[int]) -> list[Episode]:
    """Episodes with all rewards at the top, without adding them one by one."""
    parts = episodes_of(door, [[1.0]] * len(counts))
    for episode, count in zip(parts, counts, strict=True):
        episode.count = count
        episode.weight_sums[0] = count
        episode.totals._values[0] = count * door.grid.steps
    return parts


@pytest.mark.parametrize("budget", [pb.zCDP(0.1), pb.zCDP(1e-6), pb.PureDP(0.01)], ids=str)
@pytest.mark.parametrize("most", [10, 10**5, 10**8, 2**30])
def test_values_and_noise_stay_within_64_bits(budget: Budget, most: int) -> None:
    door = door_for(budget)
    weights = [[1.0, -0.5, 0.01], [0.3, 0.9, 0.02]]
    whole = door.combine(filled(door, [most // 2, most // 3, most // 6 + 1]), weights)
    laplace = budget.noise == "laplace"
    scale = (75 / TAIL if laplace else 1.0) * (
        whole.sensitivity_l1 / budget.level if laplace else whole.sensitivity_l2 * math.sqrt(budget.variance_factor)
    )
    assert max(map(abs, whole.totals.reveal())) + TAIL * scale < INT64
    assert whole.weights is not None
    assert whole.weights[0][0] * whole.unit >= 2**5  # still of some use


def test_too_many_rewards_are_refused_on_public_grounds() -> None:
    door = door_for(pb.zCDP(0.1))
    with pytest.raises(CapacityExceeded, match="too many to be released with weights"):
        door.combine(filled(door, [2**36, 2**36]), [[1.0, 1.0]])


def test_counts_are_all_that_a_policy_sees_of_sums() -> None:
    door = door_for(pb.zCDP(0.1))
    counts = OpenCounts({e.key: e for e in episodes_of(door, [[1.0] * 3, []])})
    assert dict(counts) == {10: 3, 11: 0}
    assert counts[99] == 0
    assert "hidden" in repr(Combined(episodes_of(door, [[1.0]]), None))


def test_a_failed_draw_leaves_every_sum_of_the_phase_open() -> None:
    class Failing(ExactNoise):
        def calibrate(self, *arguments: object) -> Mechanism:
            raise NoiseFailed("the noise could not be drawn: nothing was released and nothing was changed")

    agent = pb.Agent(pb.AdaCGOPE.example(pb.zCDP(1)))
    exact, bandit_of(agent).door.noise = bandit_of(agent).door.noise, Failing()
    decisions = agent.ask(sum(bandit_of(agent).public.policy.plan.values()))
    for decision in decisions[:-1]:
        agent.tell(decision, 1.0)
    before = {key: episode.dump() for key, episode in bandit_of(agent).private.episodes.items()}
    with pytest.raises(NoiseFailed):
        agent.tell(decisions[-1], 1.0)
    after = {key: episode.dump() for key, episode in bandit_of(agent).private.episodes.items()}
    assert {key: dump for key, dump in after.items() if dump["count"]} == before
    assert agent.open_decisions == [decisions[-1]]
    bandit_of(agent).door.noise = exact
    agent.tell(decisions[-1], 1.0)
    assert agent.ledger[0].count == len(decisions)


def test_rows_survive_as_plain_data() -> None:
    door = door_for(pb.zCDP(0.5))
    row = door.release(door.combine(episodes_of(door, [[1.0], [0.0]]), [[0.3, 0.7]]))
    assert Release.from_dict(row.to_dict()) == row
    old = {k: v for k, v in row.to_dict().items() if k not in ("keys", "counts", "weights", "unit")}
    assert Release.from_dict(old).weights is None  # files of version 0.2
