"""The noise: its distribution, its cost, and that nothing about a total comes out when it fails.

The samples of OpenDP cannot be seeded. Every test of them has a false alarm probability of FALSE_ALARM or less,
so all of them together fail a right sampler less than once in ten million runs.
"""

from __future__ import annotations

import math
import random
import traceback
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from opendp import domains, measurements, metrics
from scipy import stats

from private_bandits.budget import NoiseKind
from private_bandits.errors import InvalidInput, NoiseFailed
from private_bandits.mechanism.episode import HiddenTotals
from private_bandits.mechanism.noise import (
    Draw,
    ExactNoise,
    Mechanism,
    NoiseSource,
    SeededNoise,
    discrete_gaussian,
    discrete_laplace,
)

FALSE_ALARM = 1e-9
DRAWS = 20_000
SECRET = 7_310_583_924_117
INT64 = 2**63

KINDS: list[NoiseKind] = ["gaussian", "laplace"]
SCALES = [Fraction(7, 10), Fraction(3), Fraction(20), Fraction(5, 3)]
SIZES = [DRAWS, pytest.param(3 * DRAWS, marks=pytest.mark.full)]
SAMPLERS = {"gaussian": discrete_gaussian, "laplace": discrete_laplace}

Sample = NDArray[np.int64]


def level_for(kind: NoiseKind, scale: Fraction) -> float:
    """The budget that asks for this scale at sensitivity one."""
    return float(1 / (2 * scale**2) if kind == "gaussian" else 1 / scale)


def noisy(mechanism: Mechanism, totals: list[int]) -> list[int]:
    return mechanism(HiddenTotals(totals))


def exact_sample(mechanism: Mechanism, size: int) -> Sample:
    return np.array(noisy(mechanism, [0] * size))


def seeded_sample(kind: NoiseKind, scale: Fraction, size: int) -> Sample:
    generator = random.Random(f"{kind} {scale} {size}")
    return np.array([SAMPLERS[kind](scale, generator) for _ in range(size)])


def probabilities(kind: NoiseKind, scale: float) -> dict[int, float]:
    """The distribution by its definition, up to tails of less than 1e-18."""
    reach = math.ceil(45 * scale) + 10

    def weight(x: int) -> float:
        return math.exp(-(x**2) / (2 * scale**2)) if kind == "gaussian" else math.exp(-abs(x) / scale)

    weights = {x: weight(x) for x in range(-reach, reach + 1)}
    whole = math.fsum(weights.values())
    return {x: value / whole for x, value in weights.items()}


def cells(kind: NoiseKind, scale: float, size: int) -> tuple[list[int], list[float]]:
    """Neighbouring values joined into cells of at least 50 expected draws: their last values, and probabilities."""
    ends, shares, share = [], [], 0.0
    for x, probability in probabilities(kind, scale).items():
        share += probability
        if share * size >= 50:
            ends.append(x)
            shares.append(share)
            share = 0.0
    shares[-1] += share
    return ends[:-1], shares


def counts(sample: Sample, ends: list[int], n_cells: int) -> NDArray[np.int64]:
    return np.bincount(np.searchsorted(ends, sample), minlength=n_cells)


def p_value(sample: Sample, kind: NoiseKind, scale: float) -> float:
    """Of the chi-square test that the sample has the exact distribution."""
    ends, shares = cells(kind, scale, len(sample))
    expected = np.array(shares) * (len(sample) / math.fsum(shares))
    return float(stats.chisquare(counts(sample, ends, len(shares)), expected).pvalue)


def assert_right_variance(sample: Sample, kind: NoiseKind, scale: float) -> None:
    """The mean of the squares, as far from the exact variance as the central limit allows at FALSE_ALARM."""
    exact = probabilities(kind, scale)
    second = math.fsum(x**2 * p for x, p in exact.items())
    fourth = math.fsum(x**4 * p for x, p in exact.items())
    allowed = stats.norm.isf(FALSE_ALARM / 2) * math.sqrt((fourth - second**2) / len(sample))
    assert abs(float(np.mean(sample.astype(float) ** 2)) - second) <= allowed


# The distribution.


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("scale", SCALES, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_exact_noise_has_the_discrete_distribution_of_its_scale(kind: NoiseKind, scale: Fraction, size: int) -> None:
    # False alarm: FALSE_ALARM for each of the two assertions.
    mechanism = ExactNoise().calibrate(kind, level_for(kind, scale), 1, size, 1)
    assert mechanism.scale == pytest.approx(float(scale), rel=1e-14)
    sample = exact_sample(mechanism, size)
    assert p_value(sample, kind, mechanism.scale) > FALSE_ALARM
    assert_right_variance(sample, kind, mechanism.scale)


@pytest.mark.parametrize("kind", KINDS)
def test_exact_noise_of_single_sums_has_the_same_distribution(kind: NoiseKind) -> None:
    # One sum is another code path in OpenDP. False alarm: FALSE_ALARM for each of the two assertions.
    mechanism = ExactNoise().calibrate(kind, level_for(kind, Fraction(3)), 1, 1, 1)
    sample = np.array([noisy(mechanism, [-1000])[0] + 1000 for _ in range(5_000)])
    assert p_value(sample, kind, mechanism.scale) > FALSE_ALARM
    assert_right_variance(sample, kind, mechanism.scale)


@pytest.mark.parametrize("scale", SCALES, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_the_seeded_sampler_has_the_discrete_distribution_of_its_scale(kind: NoiseKind, scale: Fraction) -> None:
    sample = seeded_sample(kind, scale, DRAWS)
    assert p_value(sample, kind, float(scale)) > 1e-3  # fixed seeds: passes always or never
    assert_right_variance(sample, kind, float(scale))


@pytest.mark.parametrize("scale", [Fraction(7, 10), Fraction(20)], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_exact_and_seeded_noise_have_one_distribution(kind: NoiseKind, scale: Fraction) -> None:
    # False alarm: FALSE_ALARM.
    exact = exact_sample(ExactNoise().calibrate(kind, level_for(kind, scale), 1, DRAWS, 1), DRAWS)
    ends, shares = cells(kind, float(scale), DRAWS)
    table = [counts(sample, ends, len(shares)) for sample in (exact, seeded_sample(kind, scale, DRAWS))]
    assert stats.chi2_contingency(table).pvalue > FALSE_ALARM


@pytest.mark.parametrize("kind", KINDS)
def test_the_distribution_tests_notice_a_scale_that_is_off_by_a_fifth(kind: NoiseKind) -> None:
    sample = seeded_sample(kind, Fraction(20), DRAWS)
    for wrong in (16.0, 25.0):
        with pytest.raises(AssertionError):
            assert_right_variance(sample, kind, wrong)
        assert p_value(sample, kind, wrong) < FALSE_ALARM


def test_noise_of_the_largest_scales_has_the_right_spread() -> None:
    # Continuous to any test: sum of squares over sigma^2 is chi-square. False alarm: FALSE_ALARM.
    mechanism = ExactNoise().calibrate("gaussian", 1e-10, 2**24, 2_000, 1)
    noise = np.array(exact_sample(mechanism, 2_000), dtype=float) / mechanism.scale
    low, high = stats.chi2.ppf([FALSE_ALARM / 2, 1 - FALSE_ALARM / 2], 2_000)
    assert low <= float(np.sum(noise**2)) <= high


def test_every_call_draws_anew() -> None:
    # Two draws at this scale (1e15 or more) are equal with a probability below 1e-15.
    for kind in KINDS:
        mechanism = ExactNoise().calibrate(kind, 1e-8 if kind == "laplace" else 1e-16, 2**24, 1, 1)
        again = ExactNoise().calibrate(kind, 1e-8 if kind == "laplace" else 1e-16, 2**24, 1, 1)
        assert len({noisy(each, [5])[0] for each in (mechanism, mechanism, again)}) == 3


def test_the_sum_itself_is_given_to_opendp_which_stays_within_64_bits() -> None:
    # Noise drawn at zero and added afterwards would pass the largest integer in half of the draws. All 400 draws
    # lie on one side with a probability of 2^-399.
    for total in (INT64 - 1, 1 - INT64):
        values = noisy(ExactNoise().calibrate("gaussian", 1 / 2e6, 1, 400, 1), [total] * 400)
        assert all(-INT64 <= y < INT64 for y in values)
        assert 0 < sum(y in (INT64 - 1, -INT64) for y in values) < 400


# Calibration.


def opendp_map(kind: NoiseKind, scale: float, sensitivity: int, dimension: int) -> float:
    """The cost by OpenDP's own accountant, of a measurement built here."""
    atom = domains.atom_domain(T="i64")
    make = measurements.make_gaussian if kind == "gaussian" else measurements.make_laplace
    if dimension == 1:
        return float(make(atom, metrics.absolute_distance(T="i64"), scale=scale).map(sensitivity))
    metric = metrics.l2_distance(T="i64") if kind == "gaussian" else metrics.l1_distance(T="i64")
    return float(make(domains.vector_domain(atom), metric, scale=scale).map(sensitivity))


def exact_cost(kind: NoiseKind, scale: float, sensitivity: int) -> Fraction:
    if kind == "gaussian":
        return Fraction(sensitivity) ** 2 / (2 * Fraction(scale) ** 2)
    return sensitivity / Fraction(scale)


@pytest.mark.parametrize("kind", KINDS)
def test_the_cost_is_what_opendp_certifies_and_within_a_billionth_of_the_level(kind: NoiseKind) -> None:
    generator = random.Random(f"calibration {kind}")
    overshoots = 0
    for _ in range(200):
        level = 10 ** generator.uniform(-8, 4)
        sensitivity = generator.randrange(1, 2 ** generator.randrange(1, 41) + 1)
        dimension = generator.choice([1, 3])
        mechanism = ExactNoise().calibrate(kind, level, sensitivity, dimension, 1)
        assert mechanism.cost <= level
        assert mechanism.cost >= level * (1 - 1e-9)
        assert mechanism.cost == opendp_map(kind, mechanism.scale, sensitivity, dimension)
        assert exact_cost(kind, mechanism.scale, sensitivity) <= Fraction(mechanism.cost)
        assert (mechanism.kind, mechanism.sensitivity, mechanism.secret) == (kind, sensitivity, True)
        closed_form = sensitivity * math.sqrt(1 / (2 * level)) if kind == "gaussian" else sensitivity / level
        overshoots += opendp_map(kind, closed_form, sensitivity, dimension) > level
    assert overshoots > 0  # the sweep holds cases that the closed form gets wrong by a rounding


@pytest.mark.parametrize("sensitivity", [0, -1, INT64, 2**70])
@pytest.mark.parametrize("source", [ExactNoise(), SeededNoise(0)])
def test_a_sensitivity_that_is_no_positive_64_bit_integer_is_refused(source: NoiseSource, sensitivity: int) -> None:
    for kind in KINDS:
        with pytest.raises(InvalidInput, match="sensitivity must be a positive 64-bit integer"):
            source.calibrate(kind, 0.1, sensitivity, 1, 1)


def test_without_noise_the_totals_come_back_at_an_infinite_cost() -> None:
    for source in (ExactNoise(), SeededNoise(0)):
        mechanism = source.calibrate("none", math.inf, 5, 2, 1)
        assert noisy(mechanism, [3, -4]) == [3, -4]
        assert (mechanism.scale, mechanism.cost) == (0.0, math.inf)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("source", [ExactNoise(), SeededNoise(11)])
def test_vectors_get_noise_of_their_own_in_every_coordinate(source: NoiseSource, kind: NoiseKind) -> None:
    # Two coordinates get equal noise, of scale 1e14 or more, with a probability below 1e-14.
    mechanism = source.calibrate(kind, 1e-8 if kind == "laplace" else 1e-16, 2**24, 3, 1)
    totals = [10**6, -(10**6), 0]
    values = noisy(mechanism, totals)
    assert all(type(y) is int for y in values)
    assert len({y - total for y, total in zip(values, totals, strict=True)}) == 3


# The seeded source.


@pytest.mark.parametrize("kind", KINDS)
def test_the_seeded_source_has_the_scale_and_cost_of_the_exact_one_and_is_not_secret(kind: NoiseKind) -> None:
    exact, seeded = (source.calibrate(kind, 0.1, 77, 1, 1) for source in (ExactNoise(), SeededNoise(5)))
    assert (seeded.scale, seeded.cost) == (exact.scale, exact.cost)
    assert (exact.secret, seeded.secret) == (True, False)
    assert (ExactNoise().secret, SeededNoise(5).secret) == (True, False)


def seeded_noise(seed: int, number: int, kind: NoiseKind = "gaussian", total: int = 0) -> int:
    return noisy(SeededNoise(seed).calibrate(kind, 1e-4, 2**24, 1, number), [total])[0] - total


@pytest.mark.parametrize("kind", KINDS)
def test_seeded_noise_depends_on_the_seed_and_the_number_of_the_release_alone(kind: NoiseKind) -> None:
    numbers = range(1, 21)
    in_order = {number: seeded_noise(3, number, kind) for number in numbers}
    source = SeededNoise(3)
    for number in reversed(numbers):  # one source, another order, other totals
        mechanism, total = source.calibrate(kind, 1e-4, 2**24, 1, number), number * 10**9
        assert noisy(mechanism, [total]) == [total + in_order[number]]
    assert len(set(in_order.values())) == len(numbers)
    assert not set(in_order.values()) & {seeded_noise(4, number, kind) for number in numbers}


def test_seeded_noise_of_release_after_release_has_the_right_distribution() -> None:
    """The generators of neighbouring numbers are not related."""
    source, sigma = SeededNoise(0), Fraction(20)
    level = level_for("gaussian", sigma)
    sample = np.array([noisy(source.calibrate("gaussian", level, 1, 1, number), [0])[0] for number in range(1, 5_001)])
    assert p_value(sample, "gaussian", float(sigma)) > 1e-3
    assert_right_variance(sample, "gaussian", float(sigma))
    first, second = sample[:-1].astype(float), sample[1:].astype(float)
    assert stats.pearsonr(first, second).pvalue > 1e-3


# Failures tell nothing.


class RawError(Exception):
    pass


def raises_the_totals(totals: list[int]) -> list[int]:
    error = RawError(f"FailedFunction: cannot add noise to {totals}")
    error.add_note(f"totals were {totals}")
    raise error


def raises_from_another(totals: list[int]) -> list[int]:
    try:
        raise KeyError(totals[0])
    except KeyError as error:
        raise RawError(totals) from error


def raises_from_opendp(totals: list[int]) -> list[int]:
    """A real error of OpenDP, which names the argument that it could not take."""
    atom = domains.atom_domain(T="i64")
    measurement = measurements.make_gaussian(atom, metrics.absolute_distance(T="i64"), scale=1.0)
    return [measurement(totals[0] * 10**20)]


def returns_them_twice(totals: list[int]) -> list[int]:
    return totals * 2


def returns_nothing(totals: list[int]) -> list[int]:
    return []


RAISING: list[Draw] = [raises_the_totals, raises_from_another, raises_from_opendp]


def failure_of(call: Callable[[], object]) -> tuple[NoiseFailed, str]:
    """The error, and what a crash reporter prints of it: the traceback with every local variable."""
    try:
        call()
    except NoiseFailed as error:
        return error, "".join(traceback.TracebackException.from_exception(error, capture_locals=True).format())
    return pytest.fail("the noise was expected to fail")


@pytest.mark.parametrize("draw", [*RAISING, returns_them_twice, returns_nothing])
def test_a_draw_that_fails_leaves_no_trace_of_the_total(draw: Draw) -> None:
    mechanism = Mechanism("gaussian", 1.0, 1, 0.5, secret=True, draw=draw)
    totals = HiddenTotals([SECRET])
    error, report = failure_of(lambda: mechanism(totals))
    assert "in __call__" in report
    assert "totals = <hidden>" in report  # the locals are there
    for text in (str(error), repr(error), repr(error.args), report):
        assert str(SECRET) not in text
    assert error.__cause__ is None
    assert error.__context__ is None
    assert getattr(error, "__notes__", []) == []
    assert str(error) == "the noise could not be drawn: nothing was released and nothing was changed"


@pytest.mark.parametrize("draw", RAISING)
def test_the_errors_that_these_draws_raise_hold_the_total(draw: Draw) -> None:
    with pytest.raises((RawError, ValueError), match=str(SECRET)):
        draw([SECRET])


def test_the_crash_report_of_these_tests_would_show_a_total() -> None:
    def careless(totals: Sequence[int]) -> None:
        raise NoiseFailed("a local is enough")

    assert str(SECRET) in failure_of(lambda: careless([SECRET]))[1]


def interrupted(totals: list[int]) -> list[int]:
    raise KeyboardInterrupt


def test_an_interrupted_draw_stays_an_interrupt_and_leaves_no_trace_of_the_total() -> None:
    mechanism = Mechanism("gaussian", 1.0, 1, 0.5, secret=True, draw=interrupted)
    totals = HiddenTotals([SECRET])

    def interrupt() -> tuple[BaseException, str]:
        try:
            mechanism(totals)
        except KeyboardInterrupt as error:
            return error, "".join(traceback.TracebackException.from_exception(error, capture_locals=True).format())
        return pytest.fail("the draw was expected to be interrupted")

    error, report = interrupt()
    assert "in __call__" in report
    assert str(SECRET) not in report + repr(error)
    assert (error.__cause__, error.__context__) == (None, None)


@pytest.mark.parametrize(
    "total",
    [INT64, -INT64, 2**70, float(SECRET), True, np.int64(SECRET), Fraction(SECRET), str(SECRET), None],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("source", [ExactNoise(), SeededNoise(1)])
def test_a_total_that_is_no_64_bit_integer_is_refused_without_being_named(source: NoiseSource, total: Any) -> None:
    mechanism = source.calibrate("gaussian", 0.1, 1, 2, 1)
    for totals in (HiddenTotals([total, 0]), HiddenTotals([0, total])):
        error, report = failure_of(lambda totals=totals: mechanism(totals))  # type: ignore[misc]
        assert isinstance(error, RuntimeError)
        assert str(SECRET) not in report
        assert str(INT64) not in report


def test_the_largest_64_bit_totals_are_taken() -> None:
    mechanism = ExactNoise().calibrate("gaussian", 0.1, 1, 2, 1)
    assert len(noisy(mechanism, [INT64 - 1, 1 - INT64])) == 2


def test_a_vector_of_the_wrong_dimension_is_refused() -> None:
    with pytest.raises(NoiseFailed):
        noisy(ExactNoise().calibrate("gaussian", 0.1, 1, 1, 1), [1, 2])


def test_a_repr_of_a_mechanism_shows_the_public_numbers_only() -> None:
    mechanism = ExactNoise().calibrate("laplace", 0.5, 2, 1, 1)
    assert repr(mechanism) == "Mechanism(kind='laplace', scale=4.0, sensitivity=2, cost=0.5, secret=True)"
