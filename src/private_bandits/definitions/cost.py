"""What a question costs, known before any memory is taken."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from private_bandits.definitions.histories import Histories, TooLarge
from private_bandits.definitions.models import MODELS, Model
from private_bandits.definitions.worlds import pairs_by_step

CELLS = 2**18
"""Leaves that are looked at together: arrays of 2 MB."""

MOST_CELLS = 2**29
"""The most pairs times leaves that are gone through: several minutes."""

MOST_LEAVES = 2**22
"""The largest tree of one pair: some 600 MB."""

SECONDS_PER_CELL = 5e-7
"""Of all three quantities together on one core, as measured at sizes that take long."""

BYTES_PER_CELL = 150
"""Of all arrays that are held at once for a leaf."""


@dataclass(frozen=True)
class Cost:
    """Pairs of neighbouring worlds, the largest tree of a pair, and the sum of all trees."""

    pairs: int
    leaves: int
    cells: int

    @property
    def seconds(self) -> float:
        """A rough time."""
        return min(self.cells, 10**300) * SECONDS_PER_CELL  # a count may be too large for a float

    @property
    def megabytes(self) -> float:
        """A rough size; pairs are taken in chunks, so only the largest tree counts."""
        return min(max(self.leaves, CELLS), 10**300) * BYTES_PER_CELL / 1e6

    @property
    def fits(self) -> bool:
        """Whether it is worth starting."""
        return self.cells <= MOST_CELLS and self.leaves <= MOST_LEAVES


def cost(space: Histories, model: Model) -> Cost:
    """What going through every pair of worlds of a model takes; nothing is allocated.

    >>> cost(Histories.of(arms=2, rewards=[0, 1], horizon=5), MODELS["table"])
    Cost(pairs=3072, leaves=32, cells=98304)
    """
    every = pairs_by_step(space, model)
    pairs, cells = sum(p.count for p in every), sum(p.count * p.leaves for p in every)
    return Cost(pairs, max((p.leaves for p in every), default=0), cells)


def check_fits(space: Histories, models: Sequence[Model]) -> None:
    """Raises TooLarge, with the numbers and what would fit, for the first model that does not fit."""
    for model in models:
        needed = cost(space, model)
        if not needed.fits:
            raise TooLarge(
                f"{model.name} with {space} and {space.horizon} steps has {_number(needed.pairs)} pairs of neighbours "
                f"with up to {_number(needed.leaves)} leaves, {_number(needed.cells)} in all: about "
                f"{_duration(needed.seconds)} and {needed.megabytes:,.0f} MB; at most {MOST_CELLS:,} in all and "
                f"{MOST_LEAVES:,} a pair are taken on. {_instead(space, model)}"
            )


def _instead(space: Histories, model: Model) -> str:
    fitting = [h for h in range(2, space.horizon) if cost(replace(space, horizon=h), model).fits]
    text = f"A horizon of {max(fitting)} fits." if fitting else "Take fewer arms, rewards or contexts."
    adaptive = MODELS["adaptive"]
    if not model.joint and model.rows != "adaptive" and cost(space, adaptive).fits:
        text += " The adaptive model fits as it is, and bounds this one from above."
    return text


def _number(value: int) -> str:
    return f"{value:,}" if value < 10**15 else f"10^{int(value.bit_length() * math.log10(2))}"


def _duration(seconds: float) -> str:
    for unit, size in (("years", 3.2e7), ("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 2 * size:
            return f"{_number(int(seconds / size))} {unit}"
    return f"{seconds:.0f} seconds"
