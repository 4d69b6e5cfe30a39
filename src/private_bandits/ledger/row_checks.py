"""The facts that the opening of a ledger states, and what they ask of every row. For verification.py.

Nothing here trusts a text: whatever is not as an agent writes it is told, or raised.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any
from zlib import crc32

from private_bandits.budget import BUDGETS, Budget
from private_bandits.ledger.placements import factor_cost, tree_cost
from private_bandits.ledger.rows import Part, Release, label_span

ROUNDING = Fraction(1, 10**9)
"""Relative difference that floats may leave between a standard deviation and the scale that it follows from."""
MOST_LEVELS = 64
"""Levels of a tree, at most: one with more leaves has no end."""
FORMAT = 1
"""The form of openings and rows that is known here."""

Sizes = Mapping[tuple[str, int], int]
"""The rewards in each episode so far, by its sum and its number."""


class Facts:
    """The public facts that an opening states.

    limit: the rewards that one person may have, if there is a limit. chained: when the ledger of an earlier version was
    chained, if it was.
    """

    def __init__(self, opening: Mapping[str, Any]) -> None:
        """Take the facts over. Raises whatever it may where they are not those of an opening."""
        self.settings: Mapping[str, Any] = opening["settings"]
        self.plan, self.chained = opening["plan"], opening.get("chained")
        self.noise, self.private, self._steps = opening["noise"], opening["private"], opening["steps"]
        self._level = math.inf if opening["level"] == "inf" else float(opening["level"])
        self.limit: int | None = self.settings["max_rewards_per_person"]
        self.one_per_episode: bool = self.settings.get("one_reward_per_episode", False)
        self._unit_is_person = self.settings["unit"] == "person"
        self._levels: int = self.settings["tree_levels"]
        factor = opening["factor"]
        self._multipliers, self._unit, self._cap = ((1,), 1, 1) if factor is None else (tuple(factor[0]), *factor[1:])
        low, high = self.settings["reward_range"]
        self._width = Fraction(high) - Fraction(low)
        budget = dict(self.settings["policy"]["budget"])
        self._budget: Budget = BUDGETS[budget.pop("kind")](**budget)
        self._lengths: dict[int, int] = {}  # how many values the releases of a sum have
        self._units: dict[int, float] = {}  # and what they are in units of, where they are vectors
        self._check(opening["ledger"], factor)

    def _check(self, form: Any, factor: Any) -> None:
        """Raise ValueError where a fact is not of its kind, or does not fit another one."""
        counts = (*self._multipliers, self._unit, self._steps, *(n for n in (self._cap, self.limit) if n is not None))
        noisy = self.noise != "none"
        known = None if factor is None else [self._unit, self._cap, crc32(repr(self._multipliers).encode())]
        fit = (
            all(type(n) is int and n > 0 for n in counts)
            and type(self._levels) is int
            and 0 <= self._levels <= MOST_LEVELS
            and all(type(flag) is bool for flag in (self.private, self.one_per_episode))
            and (self.noise == self._budget.noise and noisy == math.isfinite(self._level) and self._level > 0)
            and not (self.private and not (noisy and self.settings["seed"] is None))
            and self.settings["unit"] in ("reward", "person")
            and not (self._unit_is_person and self.limit is None)
            and self._multipliers[:1] == (self._unit,)
            and not (factor is not None and self._levels)
            and self.settings["factor"] == known
            and self._width > 0
            and form == FORMAT
            and (self.chained is None or self.chained.keys() == {"on", "rows"})
        )
        if not fit:
            raise ValueError("no opening of a ledger")

    # What is promised.

    @property
    def promised_reward(self) -> float:
        """The most that was promised to cost one reward."""
        return _above(Fraction(self._level) * self._reward_cost()) if self._unit_is_person else self._budget.level

    @property
    def promised_person(self) -> float | None:
        """The most that was promised to cost one person, if people have a limit."""
        if self.limit is None:
            return None
        return self._budget.level if self._unit_is_person else _above(self.person_cost_ever())

    def wrong_level(self) -> Iterator[str]:
        """Say whether the releases may cost more than was promised, in the long run."""
        ever = self.person_cost_ever() if self._unit_is_person else Fraction(self._level) * self._reward_cost()
        if ever > Fraction(self._budget.level):
            unit, promised = self.settings["unit"], self._budget.level
            yield f"its releases may cost a {unit} {float(ever):.6g} in the end, and {promised:.6g} was promised"

    def _reward_cost(self) -> Fraction:
        """Return the cost to a reward in all of its releases, in units of one release."""
        if self._levels > 1:
            return Fraction(self._levels)
        return Fraction(sum(c * c for c in self._multipliers), self._unit**2)

    def person_cost_ever(self) -> Fraction:
        """Return the most that all rewards of a person ever cost, in the dearest placement that is taken."""
        assert self.limit is not None
        level, limit = Fraction(self._level), self.limit
        if self.noise == "laplace":
            return level * limit * max(1, self._levels)
        if not self.one_per_episode:
            return level * limit**2 * self._reward_cost()
        if self._levels > 1:
            return level * tree_cost(self._levels, limit)
        return level * factor_cost(self._multipliers, self._unit, self._cap, limit)

    # What is off with a row.

    def wrong_noise(self, row: Release) -> Iterator[str]:
        """Say what is off with the noise of a row."""
        if (row.noise, row.private, row.steps) != (self.noise, self.private, self._steps):
            yield "its kind of noise, its grid, or whether it is private differs from the opening"
            return
        if row.noise == "none":
            return
        if not (row.scale > 0 and row.unit > 0 and math.isfinite(row.scale + row.calibrated + row.noise_sd + row.unit)):
            yield "it has no noise of a size that could be"
            return
        moved = Fraction(row.sensitivity) / Fraction(row.scale)
        cost = moved if row.noise == "laplace" else moved**2 / 2
        if cost > Fraction(row.calibrated):
            yield f"it says that it cost {row.calibrated:.6g}; its noise and its sensitivity make it {float(cost):.6g}"
        if Fraction(row.calibrated) > Fraction(self._level):
            yield f"it cost {row.calibrated:.6g}, and a release may cost {self._level:.6g}"
        sd = self._width / row.steps / Fraction(row.unit) * Fraction(row.scale)
        sd *= Fraction(math.sqrt(2)) if row.noise == "laplace" else 1
        if abs(Fraction(row.noise_sd) - sd) > ROUNDING * sd:
            yield "its standard deviation is not that of its noise"
        if Fraction(row.sensitivity) ** 2 < self._least_sensitivity_squared(row):
            yield f"its sensitivity of {row.sensitivity} is less than one reward moves the sum by"

    def _least_sensitivity_squared(self, row: Release) -> Fraction:
        """Return the square of what a reward of weight one moves a release by; 0 where weights are vectors."""
        one = Fraction(row.steps * self._unit)
        if row.weights is None:
            return one**2 if len(row.values) == 1 or len(row.keys) > 1 else Fraction(0)
        columns = [[abs(Fraction(w) * Fraction(row.unit)) for w in column] for column in zip(*row.weights, strict=True)]
        if row.noise == "laplace":
            return max((one * sum(column)) ** 2 for column in columns)
        return max(one**2 * sum(w * w for w in column) for column in columns)

    def wrong_parts(self, row: Release, newest: Mapping[str, int], sizes: Sizes) -> Iterator[str]:
        """Say what is off with the episodes of a row. newest: the last one of each sum so far."""
        new = [part for part in row.parts if part.new]
        if max(Counter(part.key for part in new).values()) > 1:
            yield "it holds a sum twice"
        for part in new:
            key, first, last = label_span(part.episode)
            if last <= newest.get(key, 0):
                yield f"episode {part.episode} was released before"
            elif (first, last) != (newest.get(key, 0) + 1,) * 2 or key != str(part.key):
                yield f"episode {part.episode} does not come next"
        again = self._held_again(new[0], sizes) if len(new) == 1 else []
        found = [(part.episode, part.multiplier) for part in row.parts if not part.new]
        if found != [(label, c) for label, c, _ in again]:
            yield "it holds other episodes again than the settings say"
        elif [part.rewards for part in row.parts if not part.new] != [rewards for _, _, rewards in again]:
            yield "it counts other rewards than the earlier rows"
        if dict(row.episodes) != self._charged(row):
            yield "it charges other episodes than it holds"
        if any(part.multiplier != 1 for part in new):
            yield "a new episode does not have the multiplier one"

    def _held_again(self, newest: Part, sizes: Sizes) -> list[tuple[str, float, int]]:
        """Return the earlier sums that a release holds again, newest first: label, multiplier and rewards."""
        key, _, last = label_span(newest.episode)
        if self._levels > 1:
            spans = [(last - 2 ** (k + 1) + 1, last - 2**k) for k in range(self._joined(last))]
            return [(_label(key, a, b), 1.0, sum(sizes.get((key, n), 0) for n in range(a, b + 1))) for a, b in spans]
        place = last if self._cap is None else (last - 1) % self._cap + 1
        times = self._multipliers[1 : min(place, len(self._multipliers))]
        return [
            (_label(key, last - k, last - k), c / self._unit, sizes.get((key, last - k), 0))
            for k, c in enumerate(times, 1)
        ]

    def _joined(self, leaf: int) -> int:
        """Return how many complete subtrees before it the node of a leaf takes in: how often 2 divides its place."""
        place: int = (leaf - 1) % ((1 << self._levels) - 1) + 1
        return (place & -place).bit_length() - 1

    def _charged(self, row: Release) -> dict[str, float]:
        """Return the episodes that a row has to charge. The leaves of a node of a tree are charged as one."""
        if self._levels <= 1:
            return {part.episode: part.multiplier for part in row.parts}
        key, _, last = label_span(row.parts[0].episode)
        return {_label(key, last + 1 - 2 ** self._joined(last), last): 1.0}

    def wrong_values(self, row: Release) -> Iterator[str]:
        """Say what is off with the number of values, and with the unit that they are in."""
        if row.weights is not None:
            fit = len(row.values) == len(row.weights) and {len(row.keys)} == set(map(len, row.weights))
        elif len(row.keys) > 1:
            fit = len(row.values) == len(row.keys)
        else:
            fit = len(row.values) == self._lengths.setdefault(row.key, len(row.values))
        if not fit:
            yield "it has another number of values than its sums"
        # Sums over people with private contexts are vectors in units of one, and not of the reward range.
        own = self._unit if len(row.values) == 1 else self._units.setdefault(row.key, row.unit)
        if row.weights is None and not (row.unit == own and own in (self._unit, self._unit * float(self._width))):
            yield "its values are in another unit than the settings say"


def _label(key: str, first: int, last: int) -> str:
    return f"{key}/{first}" if first == last else f"{key}/{first}-{last}"


def _above(exact: Fraction) -> float:
    """Return a float that is not below the exact number."""
    nearest = float(exact)
    return nearest if nearest >= exact else math.nextafter(nearest, math.inf)
