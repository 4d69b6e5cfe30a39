"""Sums over private contexts: what one person can move, exactly; and what is public of them."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import private_bandits as pb
from private_bandits.errors import CapacityExceeded, InvalidInput
from private_bandits.ledger import Account
from private_bandits.mechanism.episode import Grid
from private_bandits.mechanism.moments import LEAST_SHARE, MomentScale
from private_bandits.mechanism.private_context_episode import PrivateContextEpisode
from private_bandits.mechanism.release import Door
from private_bandits.mechanism.rewards import RewardRange

Floats = NDArray[np.float64]
STEPS = 2**20


def moved(kappa: float, a: Floats, r: float, b: Floats, s: float) -> float:
    """By the definition."""
    matrix = kappa * (np.outer(a, a) - np.outer(b, b))
    return math.hypot(float(np.linalg.norm(matrix)), float(np.linalg.norm(r * a - s * b)))


def unit_at(cosine: float, d: int = 3) -> tuple[Floats, Floats]:
    a, b = np.zeros(d), np.zeros(d)
    a[0], b[0], b[1] = 1.0, cosine, math.sqrt(1 - cosine**2)
    return a, b


@pytest.mark.parametrize("share", [LEAST_SHARE, 0.3, 0.5, 0.7, 0.95])
def test_no_pair_of_people_moves_more_than_the_sensitivity_and_one_moves_as_much(share: float) -> None:
    scale = MomentScale(3, STEPS, -1.0, 1.0, share)
    dice = np.random.default_rng(1)
    for _ in range(4000):
        a, b = dice.normal(size=(2, 3))
        a *= dice.choice([1.0, 1.0, dice.random()]) / np.linalg.norm(a)
        b *= dice.choice([1.0, 1.0, dice.random()]) / np.linalg.norm(b)
        r, s = dice.choice([-1.0, 1.0, dice.uniform(-1, 1)], 2)
        assert moved(scale.kappa, a, r, b, s) <= scale.sensitivity * (1 + 1e-12)
    a, b = unit_at(1 / (2 * scale.kappa**2))
    assert moved(scale.kappa, a, 1.0, b, -1.0) == pytest.approx(scale.sensitivity, rel=1e-9)


def test_the_formulas_of_two_separate_releases_are_the_limits() -> None:
    """sqrt(2)(A^2 + R^2/2) where matrix and vector have the same noise, and 2 A R where the vector decides."""
    same = MomentScale(2, STEPS, -1.0, 1.0, 1 / 3)
    assert same.kappa == pytest.approx(1.0)
    assert same.sensitivity == pytest.approx(math.sqrt(2) * 1.5)
    assert MomentScale(2, STEPS, -1.0, 1.0, LEAST_SHARE).sensitivity == pytest.approx(2.0)


def test_together_they_need_less_noise_than_apart() -> None:
    for share in (0.2, 0.35, 0.5, 0.8):
        scale = MomentScale(2, STEPS, -1.0, 1.0, share)
        assert scale.sensitivity < 2 / math.sqrt(1 - share)  # noise of the vector alone with its share of rho
        assert scale.sensitivity / scale.kappa < math.sqrt(2 / share)


@settings(max_examples=150, deadline=None)
@given(
    st.integers(1, 6),
    st.sampled_from([LEAST_SHARE, 0.5, 0.9]),
    st.sampled_from([(-1.0, 1.0), (0.0, 1.0), (-3.0, 0.5), (2.0, 2.5)]),
    st.integers(0, 2**32),
)
def test_whole_numbers_move_by_no_more_than_the_declared(
    d: int, share: float, bounds: tuple[float, float], seed: int
) -> None:
    """Rounding, and actions beyond the norm, included."""
    scale = MomentScale(d, STEPS, *bounds, share)
    dice = random.Random(seed)
    for steps in (2**24, 64):
        grid = Grid(steps=steps, capacity=2**60)
        sums = []
        for length in (dice.choice([0, 1, 1, 7]), dice.choice([0.3, 1, 1, 10**6])):
            direction = np.array([dice.gauss(0, 1) for _ in range(d)])
            action = direction / np.linalg.norm(direction) * length * STEPS
            person = PrivateContextEpisode(0, 1, scale, grid)
            person.add(tuple(int(x) for x in action), dice.choice([0, steps, dice.randrange(steps)]))
            sums.append(np.array(person.totals.reveal(), float))
        assert np.linalg.norm(sums[0] - sums[1]) <= person.sensitivity_l2


def test_what_leaves_is_decoded_exactly_up_to_the_grid() -> None:
    scale = MomentScale(3, STEPS, -2.0, 1.0, 0.5)
    door = Door(pb.NoPrivacy(), RewardRange(-2.0, 1.0), Account(), None, scale.room, moments=scale)
    episode = door.open_episode(0, 1, 3)
    dice = np.random.default_rng(3)
    matrix, vector = np.zeros((3, 3)), np.zeros(3)
    for _ in range(50):
        action = dice.uniform(-0.5, 0.5, 3)
        reward = float(dice.uniform(-2, 1))
        rounded = np.trunc(action * STEPS)
        episode.add(tuple(int(x) for x in rounded), RewardRange(-2.0, 1.0).to_grid(reward, door.grid.steps))
        matrix += np.outer(rounded, rounded) / STEPS**2
        vector += rounded / STEPS * reward / 2.0
    row = door.release(episode)
    found, total = scale.matrix_and_vector(np.array(row.values))
    assert np.allclose(found, matrix, atol=1e-9)
    assert np.allclose(total, vector, atol=1e-9)
    assert np.allclose(found, found.T, rtol=0, atol=0)


def test_room_is_refused_by_the_number_of_people_alone() -> None:
    scale = MomentScale(2, STEPS, -1.0, 1.0, 0.5)
    episode = PrivateContextEpisode(0, 1, scale, Grid(steps=4, capacity=4 * 3 * scale.room))
    for action in ((0, 0), (STEPS, 0), (0, 0)):
        assert episode.refusal(action) is None
        episode.add(action, 4)
    for action in ((0, 0), (STEPS, 0)):
        assert isinstance(episode.refusal(action), CapacityExceeded)
        with pytest.raises(CapacityExceeded):
            episode.add(action, 0)
    assert episode.count == 3
    assert "hidden" in repr(episode)


def test_no_laplace_noise_and_no_other_share() -> None:
    scale = MomentScale(2, STEPS, -1.0, 1.0, 0.5)
    with pytest.raises(InvalidInput, match="Gaussian"):
        _ = PrivateContextEpisode(0, 1, scale, Grid(4, 100)).sensitivity_l1
    for share in (0.0, 0.19, 1.0, 2.0, float("nan")):
        with pytest.raises(InvalidInput, match="matrix_share"):
            MomentScale(2, STEPS, -1.0, 1.0, share)


def test_values_and_noise_fit_into_64_bits() -> None:
    for rho in (1e-9, 0.1, 10.0):
        for share in (0.2, 0.5, 0.99):
            scale = MomentScale(20, STEPS, -1.0, 1.0, share)
            door = Door(pb.zCDP(rho), RewardRange(-1.0, 1.0), Account(), None, scale.room, moments=scale)
            episode = door.open_episode(0, 1, 20)
            most = episode.grid.fits(scale.room, scale.room)
            assert most >= 2**25
            sigma = episode.sensitivity_l2 * math.sqrt(pb.zCDP(rho).variance_factor)
            largest = max(map(abs, scale.coordinates((STEPS,) + (0,) * 19, door.grid.steps, door.grid.steps)))
            assert most * max(largest, door.grid.steps) + 12 * sigma < 2**63
