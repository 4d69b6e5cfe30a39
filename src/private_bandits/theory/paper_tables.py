"""The paper's two tables of regret bounds, evaluated at given numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from private_bandits.budget import Budget
from private_bandits.theory.bound import Bound
from private_bandits.theory.divergence import Form
from private_bandits.theory.lower import finite_lower, finite_threshold, linear_lower, linear_threshold
from private_bandits.theory.orders import (
    adac_gope_order,
    adac_oful_order,
    adac_ucb_order,
    adap_ucb_order,
    hanna_order,
)
from private_bandits.theory.ucb import adac_ucb_regret, adap_ucb_regret

PAPER_MEANS = (0.75, 0.625, 0.5, 0.375, 0.25)
"""Of the paper's experiment with finite arms."""
Row = dict[str, Any]


def table_one(
    horizon: float = 10**7,
    budget: float | Budget = 0.1,
    finite_arms: int = 5,
    arms: int = 10,
    dimension: int = 3,
    form: Form = "proven",
) -> list[Row]:
    """Table I: for each setting the order of the upper bound, and the lower bound with its constants.

    A row: setting, policy, upper, upper_private, upper_formula, upper_source, upper_holds, and the same for lower;
    threshold: the rho below which the lower bound's private part is the larger. Uppers are orders, with constants of
    one: they may well be below the lower bounds of small horizons, and are not bounds by themselves.

    finite_arms: of the finite setting; arms, dimension: of the other two. form: of the lower bounds.

    >>> [row["setting"] for row in table_one()]
    ['finite', 'linear', 'contextual']
    >>> table_one(horizon=100)[1]["threshold"]
    0.005
    """
    lower = linear_lower(dimension, horizon, budget, form)
    threshold = linear_threshold(horizon, form=form)
    finite = finite_lower(finite_arms, horizon, budget, form)
    bounds = [
        ("finite", "AdaC-UCB", adac_ucb_order(finite_arms, horizon, budget), finite),
        ("linear", "AdaC-GOPE", adac_gope_order(dimension, arms, horizon, budget), lower),
        ("contextual", "AdaC-OFUL", adac_oful_order(dimension, horizon, budget), lower),
    ]
    thresholds = [finite_threshold(finite_arms, horizon, form=form), threshold, threshold]
    return [
        {"setting": setting, "policy": policy, **_cells("upper", upper), **_cells("lower", below), "threshold": at}
        for (setting, policy, upper, below), at in zip(bounds, thresholds, strict=True)
    ]


def table_two(
    horizon: float = 10**7,
    budget: float | Budget = 0.1,
    means: ArrayLike = PAPER_MEANS,
    beta: float = 3.1,
    arms: int = 10,
    dimension: int = 3,
) -> list[Row]:
    """Table II: the paper's upper bounds beside those converted from pure DP, at epsilon = sqrt(2 rho).

    A row: setting, kind (upper: with constants, order: without), ours, ours_private, ours_formula, ours_source,
    ours_holds, and the same for converted; None where nothing is known, and infinity is the text "inf". The first row
    has the constants as printed, of which the converted ones do not follow from AdaP-UCB's index; proven: what does.

    >>> rows = table_two()
    >>> [(row["setting"], row["converted"] is not None) for row in rows]
    [('finite', True), ('finite', True), ('linear', True), ('contextual', False)]
    >>> all(row["ours_private"] < row["converted_private"] for row in rows[:3])
    True
    """
    found = np.asarray(means, float)
    gaps = found.max() - found
    pairs: list[tuple[str, Bound, Bound | None, float | None]] = [
        (
            "finite",
            adac_ucb_regret(gaps, horizon, budget, beta, "paper"),
            adap_ucb_regret(gaps, horizon, budget, beta, "paper"),
            adap_ucb_regret(gaps, horizon, budget, beta).value,
        ),
        ("finite", adac_ucb_order(len(found), horizon, budget), adap_ucb_order(len(found), horizon, budget), None),
        (
            "linear",
            adac_gope_order(dimension, arms, horizon, budget),
            hanna_order(dimension, arms, horizon, budget),
            None,
        ),
        ("contextual", adac_oful_order(dimension, horizon, budget), None, None),
    ]
    return [
        {"setting": setting, "kind": ours.kind, **_cells("ours", ours), **_cells("converted", other), "proven": proven}
        for setting, ours, other, proven in pairs
    ]


def _cells(name: str, bound: Bound | None) -> Row:
    """The columns of one bound; empty without one."""
    known = None if bound is None else bound.to_dict()
    columns = {"": "value", "_private": "private", "_formula": "formula", "_source": "source", "_holds": "holds"}
    return {name + suffix: None if known is None else known[field] for suffix, field in columns.items()}
