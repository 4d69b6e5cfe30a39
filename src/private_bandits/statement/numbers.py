"""Numbers and names as a statement writes them."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal

from private_bandits.guarantee import percent
from private_bandits.mechanism.rewards import RewardRange
from private_bandits.plain_data import printable

_LARGEST_WRITTEN_OUT = 1e9
_MOST_DIGITS = 9
"""After the point. Smaller and larger numbers are written with a power of ten."""


def whole(number: int) -> str:
    """Return a whole number as people write it.

    >>> whole(12345)
    '12,345'
    """
    return f"{number:,}"


def several(number: int, one: str, many: str = "") -> str:
    """Return a number of things.

    >>> several(1, "outcome"), several(1200, "outcome")
    ('one outcome', '1,200 outcomes')
    """
    return f"one {one}" if number == 1 else f"{whole(number)} {many or one + 's'}"


def chance(probability: float) -> str:
    """Return a small probability in words.

    >>> chance(0.05), chance(1e-6)
    ('5 in 100', '1 in 1,000,000')
    """
    if probability >= 0.001:
        return f"{100 * probability:.6g} in 100"
    return f"1 in {math.floor(1 / probability):,}" if probability > 1e-12 else f"{probability:g}"


def times_in_100(share: float) -> str:
    """Return how often a guess is right, rounded up.

    >>> times_in_100(0.5876)
    '59 times in 100'
    """
    return f"{percent(share)[:-1]} times in 100"


def rounded_up(value: float, digits: int = 4) -> str:
    """Return a number that is not below the value, with so many digits.

    >>> rounded_up(2.14183), rounded_up(0.1), rounded_up(5e-324)
    ('2.142', '0.1', '4.941e-324')
    """
    if not math.isfinite(value) or value <= 0:
        return f"{value:g}"
    found = float(f"{value:.{digits}g}")
    if found < value:
        found += 10.0 ** (math.floor(math.log10(value)) - digits + 1)
    return f"{found:.{digits}g}"


class Figures:
    """Writes outcomes to a thousandth of their range, or better.

    >>> figures = Figures(RewardRange(0.0, 10.0))
    >>> figures.near(4.996), figures.plain(5.0), figures.interval(0.1299, 9.8701)
    ('5.00', '5', '0.12 to 9.88')
    """

    def __init__(self, bounds: RewardRange) -> None:
        self._exponent = math.floor(math.log10(bounds.width)) - 3

    def near(self, value: float) -> str:
        """Return the value, rounded."""
        return self._written(value, ROUND_HALF_EVEN)

    def interval(self, low: float, high: float) -> str:
        """Return an interval that is no narrower than that of these ends."""
        return f"{self._written(low, ROUND_FLOOR)} to {self._written(high, ROUND_CEILING)}"

    def plain(self, value: float) -> str:
        """Return an end of the range, or a mark of a scale, as short as it can be."""
        text = self.near(value)
        return text.rstrip("0").rstrip(".") if "." in text and "e" not in text else text

    def _written(self, value: float, rounding: str) -> str:
        found = Decimal(value).quantize(Decimal(1).scaleb(self._exponent), rounding)
        found = found if found else abs(found)  # no minus before a zero
        if self._exponent >= -_MOST_DIGITS and abs(value) < _LARGEST_WRITTEN_OUT:
            return f"{found:,f}"
        return f"{found:e}" if found else "0"


def named(name: str) -> str:
    """Return an arm's name so that it can be shown in a sentence: isolated, if it is written from right to left."""
    shown = printable(name)
    backwards = any(unicodedata.bidirectional(character) in ("R", "AL", "AN") for character in shown)
    return f"\u2068{shown}\u2069" if backwards else shown


def listed(names: Sequence[str]) -> str:
    """Return names as a list in a sentence.

    >>> listed(["A", "B", "C"])
    'A, B and C'
    """
    shown = [named(name) for name in names]
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)
