"""Colours that all pictures share."""

from __future__ import annotations

import math
from dataclasses import dataclass

PLASMA = ("#0d0887", "#47039f", "#7301a8", "#9c179e", "#bd3786", "#d8576b", "#ed7953", "#fa9e3b", "#fdc926", "#f0f921")
"""Even in lightness, and readable by the colour-blind (van der Walt and Smith)."""
LEAST, MOST = -4.0, 3.0
"""log10(rho) at the two ends of the scale: fixed, so that a rho has one colour in all pictures."""


@dataclass(frozen=True)
class Colour:
    """One for light backgrounds and one for dark."""

    light: str
    dark: str


GREY = Colour("#5f6368", "#b4b8bd")
INK = Colour("#202124", "#e8eaed")
POLICIES = (  # Okabe and Ito's, which the colour-blind can tell apart, lighter on dark
    Colour("#0072b2", "#4fb3f0"),
    Colour("#d55e00", "#ff8f4a"),
    Colour("#009e73", "#2fd0a2"),
    Colour("#b8528f", "#e59ac8"),
    Colour("#8a6d00", "#e6c229"),
    Colour("#5a5ad6", "#a6a6ff"),
)
DASHES = ("solid", "dash", "dashdot", "dot")


def rho_colour(rho: float) -> Colour:
    """A sequential colour for log10(rho); the twin without privacy is ink.

    >>> rho_colour(1.0)
    Colour(light='#c6417d', dark='#f0824d')
    """
    if math.isinf(rho):
        return INK
    place = min(max((math.log10(rho) - LEAST) / (MOST - LEAST), 0.0), 1.0)
    return Colour(_plasma(0.84 * place), _plasma(0.34 + 0.62 * place))


def policy_colour(index: int) -> Colour:
    """For lines that are policies."""
    return POLICIES[index % len(POLICIES)]


def policy_dash(index: int) -> str:
    """A second sign beside the colour, for print and for the colour-blind."""
    return DASHES[index % len(DASHES)]


def _plasma(place: float) -> str:
    position = place * (len(PLASMA) - 1)
    low = min(int(position), len(PLASMA) - 2)
    share = position - low
    first, second = (_channels(PLASMA[low + i]) for i in (0, 1))
    return "#" + "".join(f"{round(a + share * (b - a)):02x}" for a, b in zip(first, second, strict=True))


def _channels(colour: str) -> tuple[int, ...]:
    return tuple(int(colour[i : i + 2], 16) for i in (1, 3, 5))
