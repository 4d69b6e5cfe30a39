"""Every bound that says something about a problem, side by side: the command `private-bandits bounds`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rich.markup import escape
from rich.table import Table

from private_bandits.budget import ApproxDP, Budget, NoPrivacy, PureDP
from private_bandits.errors import InvalidInput
from private_bandits.theory.bound import PAPER, Bound
from private_bandits.theory.bound_inputs import checked_gaps, checked_size
from private_bandits.theory.calibration import calibration
from private_bandits.theory.gope import adac_gope_closed, adac_gope_regret
from private_bandits.theory.lower import (
    Notion,
    finite_lower,
    finite_lower_best,
    finite_threshold,
    linear_lower,
    linear_threshold,
)
from private_bandits.theory.oful import adac_oful_regret, adac_oful_stochastic
from private_bandits.theory.orders import (
    adac_gope_order,
    adac_oful_order,
    adac_ucb_order,
    adap_ucb_order,
    hanna_order,
    li_order,
    linpriv_order,
    shariff_sheffet_order,
)
from private_bandits.theory.paper_tables import PAPER_MEANS
from private_bandits.theory.reference import reference_regret
from private_bandits.theory.ucb import adac_ucb_minimax, adac_ucb_regret, adap_ucb_minimax, adap_ucb_regret

SETTINGS = ("finite", "linear", "contextual")


@dataclass(frozen=True)
class Problem:
    """What a policy is to solve; by default the paper's experiment, but for beta, of which its own, 1, has no bound.

    means: of the arms, or of the actions; without them only what holds for all means. strict: rewards and contexts in
    the bounds that the proofs need; else as in the paper's contextual experiment, N(0, 1) noise and contexts outside
    the unit ball. (Its linear one has N(0, 1) noise too, which is 1-subgaussian: enough for regret, not for privacy.)
    eigenvalue: the smallest of E[a a'] over contexts, 0.1 in the experiment.
    """

    setting: str
    budget: Budget
    horizon: float = 10**7
    arms: int = 5
    dimension: int = 3
    means: Sequence[float] | None = None
    beta: float = 3.1
    delta: float = 1e-3
    regulariser: float = 0.1
    growth: float = 1.0
    parameter_norm: float = 1.0
    eigenvalue: float = 0.1
    tol: float = 1e-3
    strict: bool = True

    def __post_init__(self) -> None:
        if self.setting not in SETTINGS:
            raise InvalidInput(f"setting must be one of {', '.join(SETTINGS)}, got {self.setting!r}")
        if self.means is not None and len(self.means) != self.arms:
            raise InvalidInput(f"arms must be as many as means, {len(self.means)}, got {self.arms}")
        checked_size("arms", self.arms, 2)
        checked_size("horizon", self.horizon, 2)

    @property
    def gaps(self) -> tuple[float, ...] | None:
        """To the best mean, where means are given."""
        return None if self.means is None else checked_gaps([max(self.means) - mean for mean in self.means])

    @property
    def in_range(self) -> bool:
        """Whether the means are possible within the bounds: in [0, 1] of finite arms, in [-1, 1] of actions."""
        least = 0 if self.setting == "finite" else -1
        return self.means is None or all(least <= mean <= 1 for mean in self.means)

    @property
    def pure(self) -> bool:
        """Whether it is pure DP that is asked for."""
        return isinstance(self.budget, PureDP)


def problem(
    setting: str, budget: Budget, arms: int | None = None, means: Sequence[float] | None = None, **rest: Any
) -> Problem:
    """A problem with what the paper's experiment has where nothing is given.

    Finite arms without a number and without means: its five means. Else ten arms, and no means.

    >>> problem("finite", NoPrivacy()).arms, problem("linear", NoPrivacy()).means
    (5, None)
    """
    if setting == "finite" and arms is None and means is None:
        means = PAPER_MEANS
    count = arms if arms is not None else 10 if means is None else len(means)
    return Problem(setting, budget, arms=count, means=means, **rest)


def bounds_of(problem: Problem) -> list[Bound]:
    """Every bound for the problem: upper ones with constants, orders of these and of rivals, a reference, lower ones.

    >>> [bound.name for bound in bounds_of(Problem("finite", PureDP(1), arms=2, means=(0.75, 0.5)))][:3]
    ['AdaP-UCB', 'AdaP-UCB, any gaps', 'AdaP-UCB, converted']
    """
    return list({"finite": _finite, "linear": _linear, "contextual": _contextual}[problem.setting](problem))


def threshold_of(problem: Problem) -> float:
    """The budget below which the lower bound's private part is the larger: rho of zCDP, or epsilon of pure DP."""
    notion: Notion = "PureDP" if problem.pure else "zCDP"
    if problem.setting == "finite":
        return finite_threshold(problem.arms, problem.horizon, notion)
    return linear_threshold(problem.horizon, notion)


def most_of(problem: Problem) -> float:
    """The most that regret can be: a step costs 1 where rewards are in [0, 1], and 2 where they are in [-1, 1]."""
    return (1 if problem.setting == "finite" else 2) * problem.horizon


def _finite(p: Problem) -> Iterator[Bound]:
    size, inside = (p.arms, p.horizon, p.budget), p.in_range  # rewards are Bernoulli in the experiment too
    if not p.pure:
        if p.gaps is not None:
            yield adac_ucb_regret(p.gaps, p.horizon, p.budget, p.beta, bounded=inside)
            yield _as_printed(adac_ucb_regret(p.gaps, p.horizon, p.budget, p.beta, "paper", inside))
        yield adac_ucb_minimax(*size, p.beta, bounded=inside)
        yield _as_printed(adac_ucb_minimax(*size, p.beta, "paper", _total(p.gaps), inside))
        if isinstance(p.budget, ApproxDP):
            yield _with_the_papers_noise(p)
        yield adac_ucb_order(*size, p.beta)
    if not isinstance(p.budget, NoPrivacy):
        if p.gaps is not None:
            yield adap_ucb_regret(p.gaps, p.horizon, p.budget, p.beta, bounded=inside)
        yield adap_ucb_minimax(*size, p.beta, inside)
        yield adap_ucb_order(*size)
    if p.means is not None and inside:
        yield reference_regret(p.means, p.horizon, p.budget)
    yield from _lower(p)


def _linear(p: Problem) -> Iterator[Bound]:
    size = (p.dimension, p.arms, p.horizon, p.budget)
    if not p.pure:
        if p.gaps is not None:
            yield adac_gope_regret(*size, p.delta, p.tol, p.gaps, in_ball=p.in_range)
        yield adac_gope_regret(*size, p.delta, p.tol, in_ball=p.in_range)
        yield adac_gope_closed(*size, p.delta, p.tol, in_ball=p.in_range)
        yield adac_gope_order(*size, p.delta)
        yield adac_gope_order(*size)
    if not isinstance(p.budget, NoPrivacy):
        yield hanna_order(*size)
        yield li_order(*size)
    yield from _lower(p)


def _contextual(p: Problem) -> Iterator[Bound]:
    size = (p.dimension, p.horizon, p.budget)
    if not p.pure:
        shape = (p.delta, p.regulariser, p.growth, p.parameter_norm)
        yield adac_oful_regret(*size, *shape, p.strict, p.strict)
        world = (p.strict, p.strict, p.dimension == 1 and p.strict)
        yield adac_oful_stochastic(*size, p.eigenvalue, *shape, "proven", *world)
        yield _as_printed(adac_oful_stochastic(*size, p.eigenvalue, *shape, "paper", *world))
        yield adac_oful_order(*size)
    if not isinstance(p.budget, NoPrivacy):
        yield linpriv_order(p.dimension, p.arms, p.horizon, p.budget, corrected=False)
        yield linpriv_order(p.dimension, p.arms, p.horizon, p.budget, corrected=True)
        yield shariff_sheffet_order(*size)
    yield from _lower(p)


def _lower(p: Problem) -> Iterator[Bound]:
    of, size = (finite_lower, p.arms) if p.setting == "finite" else (linear_lower, p.dimension)
    yield of(size, p.horizon, p.budget)
    if p.setting == "finite":
        yield finite_lower_best(size, p.horizon, p.budget)
    if p.budget.noise == "gaussian":
        yield _as_printed(of(size, p.horizon, p.budget, "paper"))


def _total(gaps: tuple[float, ...] | None) -> float | None:
    return None if gaps is None else math.fsum(gaps)


def _as_printed(bound: Bound) -> Bound:
    return replace(bound, name=f"{bound.name}, as printed")


def _with_the_papers_noise(p: Problem) -> Bound:
    """The extension to (epsilon, delta) with the paper's b, which keeps the budget for epsilon <= 1."""
    found = calibration(p.budget)
    bound = adac_ucb_minimax(p.arms, p.horizon, found.as_zcdp, p.beta)
    needs = (*bound.assumptions, ("epsilon <= 1, or b = 2 log(1.25/delta)/epsilon^2 is not proven", found.proven))
    return replace(bound, name=f"{bound.name}, noise as printed", assumptions=needs)


def as_json(problem: Problem) -> dict[str, Any]:
    """Bounds as plain data, with the problem; infinity is the text "inf"."""
    numbers = {name: getattr(problem, name) for name in problem.__dataclass_fields__}
    numbers |= {"budget": str(problem.budget), "means": None if problem.means is None else list(problem.means)}
    bounds = [bound.to_dict() for bound in bounds_of(problem)]
    return {"problem": numbers, "bounds": bounds, "threshold": threshold_of(problem), "most": most_of(problem)}


def as_table(problem: Problem) -> Table:
    """A part for each bound, a line for each of its assumptions."""
    table = Table(title=f"Regret after {problem.horizon:,.0f} steps, {problem.setting}, {problem.budget}")
    table.caption = f"the paper: {PAPER}"
    for column in ("bound", "value", "assumption", "met", "source"):
        table.add_column(column, justify="right" if column == "value" else "left")
    for bound in bounds_of(problem):
        needs = bound.assumptions or (("none", True),)
        kinds = {"order": "order, constants of one", "reference": "asymptotic, no floor"}
        cells = (f"{bound.name}\n({kinds.get(bound.kind, bound.kind)})", _number(bound.value))
        for i, (text, met) in enumerate(needs):
            first = (*cells, escape(text), _met(met), escape(bound.source.replace(PAPER, "the paper")))
            table.add_row(*(first if i == 0 else ("", "", escape(text), _met(met), "")))
        table.add_section()
    return table


def _number(value: float) -> str:
    return f"{value:,.0f}" if 1000 <= value < math.inf else f"{value:.4g}"


def _met(met: bool) -> str:
    return "yes" if met else "[red]NO[/red]"


def as_text(problem: Problem) -> str:
    """What the table does not say: formulas, and how to read lower bounds and orders."""
    name, at = "epsilon" if problem.pure else "rho", threshold_of(problem)
    formulas = "\n".join(
        f"- {bound.name}: {bound.formula}; {bound.of}; of it privacy {_number(bound.private)}"
        for bound in bounds_of(problem)
    )
    return (
        f"{formulas}\n\nUpper bounds are about policies as published, variant 'paper'. Lower bounds are about all "
        f"policies, and about the worst instance of their class, not this one. Below {name} = {at:.3g} their private "
        "part is the larger. An order has constants of one, and bounds nothing by itself. The reference is the log T "
        "term of the best policies on these means: regret at finite T may be below it. An upper bound above "
        f"{most_of(problem):,.0f}, the most that regret can be, says nothing."
    )
