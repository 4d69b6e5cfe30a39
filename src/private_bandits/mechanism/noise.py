"""The noise: exact and cryptographic when live (OpenDP), seeded and worthless as protection in tests.

A source calibrates: given the kind of noise, the level of the budget and an integer sensitivity it returns a
`Mechanism` that takes a vector of exact integers and gives it back with noise. Only release.py uses this.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Protocol

# Not opendp.prelude: it imports scikit-learn and others where they are installed, which takes two seconds.
from opendp.domains import atom_domain, vector_domain
from opendp.measurements import make_gaussian, make_laplace
from opendp.metrics import absolute_distance, l1_distance, l2_distance
from opendp.mod import Domain, Metric, enable_features

from private_bandits.budget import NoiseKind
from private_bandits.errors import InvalidInput, NoiseFailed

enable_features("contrib")

INT64 = 2**63

Draw = Callable[[list[int]], list[int]]


class Hidden(Protocol):
    """A holder of raw sums that shows them to nobody else (episode.HiddenTotals)."""

    @property
    def dimension(self) -> int:
        """How many sums there are."""

    @property
    def fit(self) -> bool:
        """Whether they are whole numbers of 64 bits."""

    def reveal(self) -> list[int]:
        """The raw sums."""


@dataclass(frozen=True)
class Mechanism:
    """Noise calibrated to a sensitivity.

    scale: sigma of the discrete Gaussian or the scale of the discrete Laplace, in grid units.
    cost: what it costs by the accountant's own map, in rho (Gaussian) or epsilon (Laplace).
    secret: whether an attacker cannot know the noise; a seed makes it False.
    """

    kind: NoiseKind
    scale: float
    sensitivity: int
    cost: float
    secret: bool
    draw: Draw = field(repr=False)

    def __call__(self, totals: Hidden) -> list[int]:
        """The totals with noise. Whatever goes wrong, no word about the totals comes out.

        OpenDP's own error texts may hold its argument, and so may the frames of its tracebacks: both are dropped
        here, and what is raised instead is raised outside of the except blocks.
        """
        noisy: list[int] | None = None
        interrupt: BaseException | None = None
        if self.kind == "none" or totals.fit:
            try:
                noisy = self.draw(totals.reveal())
            except Exception:  # noqa: S110  (told below)
                pass
            except BaseException as caught:
                interrupt = caught
        if interrupt is not None:
            interrupt.__context__ = interrupt.__cause__ = None
            raise interrupt.with_traceback(None)
        if noisy is None or len(noisy) != totals.dimension:
            del noisy  # of the wrong length: whatever it is, it is not noise
            raise NoiseFailed("the noise could not be drawn: nothing was released and nothing was changed")
        return noisy


class NoiseSource(Protocol):
    """Where noise comes from."""

    @property
    def secret(self) -> bool:
        """Whether nobody can foresee the noise."""

    def calibrate(self, kind: NoiseKind, level: float, sensitivity: int, dimension: int, number: int) -> Mechanism:
        """Noise for release `number` that keeps `level` (rho or epsilon) at this integer sensitivity."""


class ExactNoise:
    """OpenDP's exact discrete Gaussian and Laplace over 64-bit integers, from the system's secure generator."""

    secret = True

    def calibrate(self, kind: NoiseKind, level: float, sensitivity: int, dimension: int, number: int) -> Mechanism:
        """Noise that OpenDP itself certifies: measurement.map(sensitivity) <= level."""
        return _exact(kind, level, sensitivity, dimension)


class SeededNoise:
    """The same distributions from a seed, for tests and studies. Protects nobody who knows the seed.

    The noise of release i depends on the seed and i alone, so a resumed agent goes on as it would have.
    """

    secret = False

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def calibrate(self, kind: NoiseKind, level: float, sensitivity: int, dimension: int, number: int) -> Mechanism:
        """The exact source's scale and cost, with noise drawn from the seed."""
        exact = _exact(kind, level, sensitivity, dimension)
        generator = random.Random(f"private-bandits {self.seed} {number}")  # noqa: S311  (not for protection)
        sample = {"gaussian": discrete_gaussian, "laplace": discrete_laplace, "none": _zero}[kind]
        scale = Fraction(exact.scale)

        def draw(totals: list[int]) -> list[int]:
            return [total + sample(scale, generator) for total in totals]

        return Mechanism(kind, exact.scale, sensitivity, exact.cost, secret=False, draw=draw)


@lru_cache(maxsize=256)
def _exact(kind: NoiseKind, level: float, sensitivity: int, dimension: int) -> Mechanism:
    """Calibrated once per level and sensitivity; every call of the mechanism draws anew."""
    if kind == "none":
        return Mechanism("none", 0.0, sensitivity, math.inf, secret=True, draw=lambda totals: totals)
    if not 0 < sensitivity < INT64:
        raise InvalidInput(f"the sensitivity must be a positive 64-bit integer, got {sensitivity}")
    make, scale = {
        "gaussian": (make_gaussian, sensitivity * math.sqrt(1 / (2 * level))),
        "laplace": (make_laplace, sensitivity / level),
    }[kind]
    while True:
        measurement = make(*_integer_space(kind, dimension), scale=scale)
        cost = float(measurement.map(sensitivity))
        if cost <= level:
            break
        scale = math.nextafter(scale, math.inf)  # the closed form can overshoot by one rounding
    draw: Draw = measurement if dimension > 1 else (lambda totals: [measurement(totals[0])])
    return Mechanism(kind, scale, sensitivity, cost, secret=True, draw=draw)


def _integer_space(kind: NoiseKind, dimension: int) -> tuple[Domain, Metric]:
    atom = atom_domain(T="i64")
    if dimension == 1:
        return atom, absolute_distance(T="i64")
    metric = l2_distance(T="i64") if kind == "gaussian" else l1_distance(T="i64")
    return vector_domain(atom), metric


# The seeded sampler: Canonne, Kamath and Steinke (2020), Algorithms 1 to 3, in exact rational arithmetic.


def _bernoulli_exp(gamma: Fraction, generator: random.Random) -> bool:
    """True with probability exp(-gamma), gamma >= 0 (Algorithm 1)."""
    while gamma > 1:
        if not _bernoulli_exp(Fraction(1), generator):
            return False
        gamma -= 1
    k = 1
    while generator.randrange(gamma.denominator * k) < gamma.numerator:
        k += 1
    return k % 2 == 1


def discrete_laplace(scale: Fraction, generator: random.Random) -> int:
    """A whole number x with probability proportional to exp(-|x|/scale) (Algorithm 2)."""
    numerator, denominator = scale.numerator, scale.denominator
    while True:
        low = generator.randrange(numerator)
        if not _bernoulli_exp(Fraction(low, numerator), generator):
            continue
        high = 0
        while _bernoulli_exp(Fraction(1), generator):
            high += 1
        magnitude = (low + numerator * high) // denominator
        negative = generator.randrange(2) == 1
        if not (negative and magnitude == 0):
            return -magnitude if negative else magnitude


def discrete_gaussian(sigma: Fraction, generator: random.Random) -> int:
    """A whole number x with probability proportional to exp(-x^2/(2 sigma^2)) (Algorithm 3)."""
    variance = sigma * sigma
    scale = int(sigma) + 1
    while True:
        candidate = discrete_laplace(Fraction(scale), generator)
        bias = (abs(candidate) - variance / scale) ** 2 / (2 * variance)
        if _bernoulli_exp(bias, generator):
            return candidate


def _zero(scale: Fraction, generator: random.Random) -> int:
    return 0
