"""Numbers in words."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from private_bandits.experiments.analysis.estimates import RegretEstimate

SMALL = 0.9e-4
"""Budgets below are written with an exponent."""


def number(value: float) -> str:
    """Three significant digits at least, thousands apart.

    >>> number(128082.4), number(-3.14159), number(0.00123456), number(0)
    ('128,082', '-3.14', '0.00123', '0')
    """
    if not math.isfinite(value):
        return "unknown" if math.isnan(value) else ("-" if value < 0 else "") + "infinite"
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) >= 1e-4 else f"{value:.1e}"


def percent(value: float) -> str:
    """A share in percent.

    >>> percent(0.1234), percent(-0.00123), percent(25.0)
    ('12.3 %', '-0.123 %', '2,500 %')
    """
    return f"{number(100 * value)} %" if math.isfinite(value) else "unknown"


def p_text(p_value: float) -> str:
    """A p-value.

    >>> p_text(0.0312), p_text(1e-9)
    ('p = 0.031', 'p < 0.001')
    """
    return "p < 0.001" if p_value < 0.001 else f"p = {p_value:.3f}".rstrip("0").rstrip(".")


def rho_number(rho: float) -> str:
    """Three digits, with an exponent only where there would be many zeros.

    >>> rho_number(1000.0), rho_number(0.0031622), rho_number(1e-9)
    ('1000', '0.00316', '1e-09')
    """
    if rho < SMALL:
        return f"{rho:.3g}"
    return np.format_float_positional(rho, precision=3, fractional=False, trim="-")


def rho_text(rho: float) -> str:
    """A budget in words.

    >>> rho_text(0.1), rho_text(math.inf)
    ('rho = 0.1', 'no privacy')
    """
    return "no privacy" if math.isinf(rho) else f"rho = {rho_number(rho)}"


def listing(words: list[str]) -> str:
    """With commas and a last "and".

    >>> listing(["a", "b", "c"])
    'a, b and c'
    """
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " and " + words[-1] if words else "none"


def interval_text(estimate: RegretEstimate, form: Callable[[float], str] = number) -> str:
    """A value with its interval.

    >>> from private_bandits.experiments.analysis.estimates import mean
    >>> interval_text(mean(np.array([1.0, 2.0, 3.0])))
    '2 (-0.484 to 4.48)'
    """
    low, high = (float(end) for end in estimate.interval())
    value = float(estimate.value)
    if math.isnan(low):
        return f"{form(value)} (one run: no interval)"
    seen = value if abs(value) > 1e-9 * (high - low) else 0.0  # what rounding leaves of a difference is none
    return f"{form(seen)} ({form(low)} to {form(high)})"
