"""The open episode: exact sums, the sensitivity that follows from them, and nothing shown."""

from __future__ import annotations

import itertools
import json
import math
import pprint
import reprlib
import traceback
from collections.abc import Callable, Container, Iterable, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.pretty import pretty_repr

from private_bandits.budget import zCDP
from private_bandits.errors import CapacityExceeded, InvalidInput
from private_bandits.mechanism.episode import GRID, INT64, LARGEST_EPISODE, TAIL, Episode, Grid, HiddenTotals

steady = settings(derandomize=True, deadline=None)

Weight = tuple[int, ...]

WIDE = Grid(steps=2**24, capacity=INT64 - 1)

# A total that is not a part of anything public about the episode it is in.
WEIGHT, REWARD = 1_000_003, 16_000_057
SECRET = WEIGHT * REWARD


def filled(grid: Grid, weights: Sequence[Weight], rewards: Sequence[int]) -> Episode:
    episode = Episode(key=0, number=1, dimension=len(weights[0]), grid=grid)
    for weight, reward in zip(weights, rewards, strict=True):
        episode.add(weight, reward)
    return episode


def secret_episode(capacity: int = INT64 - 1) -> Episode:
    episode = filled(Grid(2**24, capacity), [(WEIGHT,)], [REWARD])
    assert episode.totals.reveal() == [SECRET]
    return episode


def state(episode: Episode) -> dict[str, Any]:
    """Everything an episode holds, as a copy."""
    copied: dict[str, Any] = json.loads(json.dumps(episode.dump()))
    return copied


@st.composite
def weighted_rewards(draw: st.DrawFn) -> tuple[list[Weight], list[int]]:
    dimension = draw(st.integers(1, 4))
    part = st.integers(-(2**20), 2**20)
    weights = draw(st.lists(st.tuples(*[part] * dimension), min_size=1, max_size=30))
    rewards = draw(st.lists(st.integers(0, 2**16), min_size=len(weights), max_size=len(weights)))
    return weights, rewards


# Exact sums.


@steady
@given(told=weighted_rewards())
def test_totals_are_the_exact_integer_sums(told: tuple[list[Weight], list[int]]) -> None:
    weights, rewards = told
    episode = filled(Grid(2**16, INT64 - 1), weights, rewards)
    columns = list(zip(*weights, strict=True))
    assert episode.totals.reveal() == [sum(w * r for w, r in zip(column, rewards, strict=True)) for column in columns]
    assert all(type(total) is int for total in episode.totals.reveal())
    assert episode.weight_sums == [sum(column) for column in columns]
    assert episode.count == len(rewards)
    assert episode.max_l1 == max(sum(abs(part) for part in weight) for weight in weights)
    assert episode.max_squared == max(sum(part**2 for part in weight) for weight in weights)


def test_sums_beyond_the_precision_of_floats_are_exact() -> None:
    episode = filled(WIDE, [(2**35,)] + [(1,)] * 5, [2**24, 1, 0, 1, 0, 1])
    assert episode.totals.reveal() == [2**59 + 3]
    assert float(2**59 + 3) != 2**59 + 3


# Sensitivity.


def largest_changes(grid: Grid, weights: Sequence[Weight], rewards: list[int]) -> tuple[int, int]:
    """The largest change of the totals when one reward takes any other value: squared L2, and L1."""
    before = filled(grid, weights, rewards).totals.reveal()
    squared, absolute = [0], [0]
    for i, value in itertools.product(range(len(rewards)), range(grid.steps + 1)):
        after = filled(grid, weights, [*rewards[:i], value, *rewards[i + 1 :]]).totals.reveal()
        moves = [b - a for a, b in zip(before, after, strict=True)]
        squared.append(sum(move**2 for move in moves))
        absolute.append(sum(map(abs, moves)))
    return max(squared), max(absolute)


@steady
@given(
    steps=st.integers(1, 3),
    weights=st.integers(1, 3).flatmap(lambda d: st.lists(st.tuples(*[st.integers(-5, 5)] * d), min_size=1, max_size=3)),
)
def test_the_sensitivity_is_the_largest_change_that_one_reward_can_make(steps: int, weights: list[Weight]) -> None:
    grid = Grid(steps, INT64 - 1)
    # The largest change starts from an end of the grid: rewards of 0, and every other start for "never below".
    starts = list(itertools.product(range(steps + 1), repeat=len(weights)))
    changes = [largest_changes(grid, weights, list(start)) for start in starts]
    episode = filled(grid, weights, starts[0])
    l2_squared, l1 = max(change[0] for change in changes), max(change[1] for change in changes)
    assert episode.sensitivity_l1 == l1
    assert episode.sensitivity_l2**2 >= l2_squared  # never below
    assert episode.sensitivity_l2 == 0 or (episode.sensitivity_l2 - 1) ** 2 < l2_squared  # and the least such integer


@pytest.mark.parametrize(
    ("weights", "l2", "l1"),
    [
        ([(1,)], 8, 8),
        ([(1,), (-3,), (2,)], 24, 24),
        ([(3, 4)], 40, 56),
        ([(1, 1)], 12, 16),  # 8 sqrt 2 = 11.3
        ([(1, 0), (0, 1)], 8, 8),  # each reward has one weight
        ([(0, 0)], 0, 0),
        ([(-2, 0, 1), (1, 1, 1)], 18, 24),  # 8 sqrt 5 = 17.9
    ],
)
def test_sensitivities_of_known_weights(weights: list[Weight], l2: int, l1: int) -> None:
    episode = filled(Grid(8, INT64 - 1), weights, [0] * len(weights))
    assert (episode.sensitivity_l2, episode.sensitivity_l1) == (l2, l1)
    assert (type(episode.sensitivity_l2), type(episode.sensitivity_l1)) == (int, int)


def test_the_sensitivity_is_rounded_up_where_floats_would_lose_it() -> None:
    weight = (2**30, 1)  # norm 2^30 sqrt(1 + 2^-60), which a float takes for 2^30
    assert filled(Grid(1, INT64 - 1), [weight], [0]).sensitivity_l2 == 2**30 + 1


def test_the_sensitivity_does_not_depend_on_rewards() -> None:
    weights = [(3, -1), (2, 2)]
    sensitivities = {
        (e.sensitivity_l2, e.sensitivity_l1)
        for e in (filled(Grid(4, 1000), weights, rewards) for rewards in itertools.product(range(5), repeat=2))
    }
    assert len(sensitivities) == 1


# Capacity.


@pytest.mark.parametrize("reward", [0, 2**24])
@pytest.mark.parametrize(("weight", "most"), [((2**30,), 511), ((-(2**30),), 511), ((2**29, -(2**29)), 724)])
def test_an_episode_is_full_before_its_sum_could_reach_64_bits(weight: Weight, most: int, reward: int) -> None:
    """512 rewards of 2^24 and weight 2^30 make 2^63, so 511 fit, whatever the rewards were. Norms are L2 norms."""
    episode = filled(WIDE, [weight] * most, [reward] * most)
    assert all(-INT64 < total < INT64 for total in episode.totals.reveal())
    before = state(episode)
    for refused in (0, 2**24):
        with pytest.raises(CapacityExceeded, match=f"holds {most} rewards"):
            episode.add(weight, refused)
    assert state(episode) == before


@steady
@given(
    capacity=st.integers(1, 400),
    steps=st.integers(1, 4),
    weights=st.lists(st.tuples(st.integers(-6, 6), st.integers(-6, 6)), min_size=1, max_size=12),
)
def test_a_reward_is_refused_exactly_when_the_worst_case_would_pass_the_capacity(
    capacity: int, steps: int, weights: list[Weight]
) -> None:
    grid = Grid(steps, capacity)
    for reward in (0, steps):  # the same for the least and the largest reward
        episode, largest = Episode(0, 1, 2, grid), 1
        for weight in weights:
            # As many rewards as would be in, each at the end of the grid and with the largest weight.
            norm = max(largest, math.isqrt(sum(w * w for w in weight) - 1) + 1 if any(weight) else 0)
            before = state(episode)
            if (episode.count + 1) * steps * norm > capacity:
                with pytest.raises(CapacityExceeded):
                    episode.add(weight, reward)
                assert state(episode) == before
            else:
                episode.add(weight, reward)
                largest = norm
            assert all(abs(total) <= capacity for total in episode.totals.reveal())


@pytest.mark.parametrize("reward", [0, 4])
def test_a_refused_heavy_weight_leaves_the_room_and_the_sensitivity_of_the_light_ones(reward: int) -> None:
    episode = filled(Grid(4, 100), [(1,)] * 10, [reward] * 10)
    before, sensitivity = state(episode), episode.sensitivity_l2
    with pytest.raises(CapacityExceeded):
        episode.add((9,), reward)
    assert state(episode) == before
    assert episode.sensitivity_l2 == sensitivity
    for _ in range(15):  # 25 of weight one fit
        episode.add((1,), reward)
    with pytest.raises(CapacityExceeded):
        episode.add((1,), reward)


def test_a_weight_of_the_wrong_dimension_is_refused_and_changes_nothing() -> None:
    episode = filled(WIDE, [(1, 2)], [5])
    before = state(episode)
    for weight in ((7,), (7, 7, 7), ()):
        with pytest.raises(InvalidInput, match=f"the weight has {len(weight)} coordinates, the sum has 2"):
            episode.add(weight, 1)
        with pytest.raises(InvalidInput):
            episode.with_one_more(weight, 1)
    assert state(episode) == before


@pytest.mark.parametrize("weight", [[1, 2], "12", {1: 1, 2: 2}], ids=str)
def test_a_weight_that_could_change_or_is_no_tuple_is_refused_and_changes_nothing(weight: Any) -> None:
    episode = filled(WIDE, [(1, 2)], [5])
    before = state(episode)
    with pytest.raises(InvalidInput, match="a weight must be a tuple"):
        episode.add(weight, 1)
    assert state(episode) == before


# Copies and plain data.


def test_a_copy_with_one_more_reward_leaves_the_original_as_it_is() -> None:
    episode = filled(WIDE, [(1, 2), (3, -1)], [5, 7])
    before = state(episode)
    more = episode.with_one_more((4, 4), 9)
    assert state(episode) == before
    assert state(more) == state(filled(WIDE, [(1, 2), (3, -1), (4, 4)], [5, 7, 9]))
    more.add((1, 1), 1)
    assert state(episode) == before


@steady
@given(told=weighted_rewards(), split=st.integers(0, 30))
def test_an_episode_goes_on_from_plain_data_as_if_never_stored(
    told: tuple[list[Weight], list[int]], split: int
) -> None:
    weights, rewards = told
    grid = Grid(2**16, INT64 - 1)
    whole = filled(grid, weights, rewards)
    episode = Episode(0, 1, len(weights[0]), grid)
    for i, (weight, reward) in enumerate(zip(weights, rewards, strict=True)):
        if i == split:
            episode = Episode.load(state(episode), grid)
        episode.add(weight, reward)
    assert state(episode) == state(whole)
    assert episode.sensitivity_l2 == whole.sensitivity_l2


def test_a_stored_episode_is_as_full_as_it_was() -> None:
    episode = Episode.load(state(filled(Grid(4, 100), [(5,)] * 5, [0] * 5)), Grid(4, 100))
    with pytest.raises(CapacityExceeded):
        episode.add((1,), 0)


def test_a_stored_sum_does_not_go_on_with_another_grid() -> None:
    with pytest.raises(InvalidInput, match="a grid of 4 steps cannot go on with 8 steps"):
        Episode.load(state(filled(Grid(4, 100), [(1,)], [1])), Grid(8, 100))


# Nothing is shown.

WAYS_TO_SHOW: dict[str, Callable[[Any], str]] = {
    "repr": repr,
    "str": str,
    "format": format,
    "f-string": lambda value: f"{value} {value!r} {value!s} {value!a}",
    "percent": lambda value: "%s %r" % (value, value),  # noqa: UP031
    "str.format": lambda value: "{} {!r}".format(value, value),  # noqa: UP032
    "in a list": lambda value: repr([value]),
    "in a dict": lambda value: str({"total": value}),
    "pprint": pprint.pformat,
    "reprlib": reprlib.repr,
    "rich": pretty_repr,
    "as an exception's text": lambda value: str(ValueError(value)),
}


@pytest.mark.parametrize("way", WAYS_TO_SHOW)
def test_no_way_to_show_private_state_shows_the_total(way: str) -> None:
    show, episode = WAYS_TO_SHOW[way], secret_episode()
    for private in (episode, episode.totals, HiddenTotals([SECRET])):
        assert str(SECRET) not in show(private)
    assert str(SECRET) in show([SECRET])  # a plain list would have been seen


def test_totals_cannot_be_walked_through_by_what_prints_containers() -> None:
    totals = secret_episode().totals
    assert not isinstance(totals, Iterable)
    assert not isinstance(totals, Container)
    assert not hasattr(totals, "__dict__")


def test_revealed_totals_are_a_copy() -> None:
    episode = secret_episode()
    episode.totals.reveal()[0] = 0
    assert episode.totals.reveal() == [SECRET]


def test_a_repr_tells_what_is_public() -> None:
    episode = Episode(3, 2, 1, WIDE)
    episode.add((1,), 5)
    assert repr(episode) == "Episode(3/2, 1 rewards, sum hidden)"
    assert repr(episode.totals) == "<hidden>"


def crash_report(call: Callable[[], object]) -> str:
    """What a crash reporter prints of a failing call: the traceback with every local variable."""
    try:
        call()
    except Exception as error:
        return "".join(traceback.TracebackException.from_exception(error, capture_locals=True).format())
    return pytest.fail("the call was expected to fail")


def test_a_traceback_with_locals_of_a_full_episode_does_not_show_the_total() -> None:
    episode = secret_episode(capacity=WEIGHT * 2**24)
    for add in (episode.add, episode.with_one_more):
        report = crash_report(partial(add, (WEIGHT,), REWARD))
        assert "CapacityExceeded" in report
        assert "sum hidden" in report  # the locals are there
        assert str(SECRET) not in report


def test_a_traceback_with_locals_hides_totals_wherever_they_are_held() -> None:
    def crash(episode: Episode, totals: HiddenTotals | list[int]) -> None:
        raise RuntimeError("something else went wrong")

    episode = secret_episode()
    assert str(SECRET) not in crash_report(lambda: crash(episode, episode.totals))
    assert str(SECRET) in crash_report(lambda: crash(episode, [SECRET]))  # a plain list would have been seen


# The grid.


@pytest.mark.parametrize("exponent", range(-30, 7))
@pytest.mark.parametrize("factor", [1.0, 2.5, 7.77])
def test_the_fullest_sum_and_12_sigma_of_noise_fit_into_64_bits(exponent: int, factor: float) -> None:
    noise = math.sqrt(zCDP(factor * 10.0**exponent).variance_factor)
    grid = Grid.for_noise(noise)
    sigma = Fraction(noise) * grid.steps
    # 12 up to the rounding of the one product: 12 sigma itself has only 53 bits.
    assert grid.capacity + TAIL * sigma * (1 - Fraction(1, 2**52)) < INT64
    assert TAIL == 12
    assert 1 <= grid.steps <= GRID
    assert grid.steps.bit_count() == 1
    # The finest such grid that has room for an episode of the promised length.
    assert grid.capacity // grid.steps >= LARGEST_EPISODE - 2**11
    assert grid.steps == GRID or (LARGEST_EPISODE + TAIL * noise) * 2 * grid.steps > INT64 * (1 - 1e-12)


def test_ordinary_budgets_have_the_full_grid() -> None:
    for rho in (1e-6, 0.1, 1.0, 1e6):
        assert Grid.for_noise(math.sqrt(zCDP(rho).variance_factor)).steps == 2**24
    assert Grid.for_noise(0.0) == Grid(2**40, 2**103)  # no noise, no limit of 64 bits


@pytest.mark.parametrize("noise", [2.0**63 / 12, 1e18, 1e300, math.inf, math.nan])
def test_noise_that_does_not_fit_into_64_bits_is_refused(noise: float) -> None:
    with pytest.raises(InvalidInput, match="does not fit into 64 bits: choose a larger budget"):
        Grid.for_noise(noise)


def test_the_largest_noise_that_fits_is_taken() -> None:
    assert Grid.for_noise((2.0**63 - 2.0**39) / 12).steps == 1
    with pytest.raises(InvalidInput):
        Grid.for_noise(math.sqrt(zCDP(1e-37).variance_factor))
