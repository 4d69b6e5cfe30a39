"""The experiments as data: what is simulated, how often, and what is drawn and judged of it.

The runner and the pictures know nothing of a single experiment: another one is another value in EXPERIMENTS.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

Options = tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Entry:
    """One policy at one budget.

    policy: a name from `private-bandits policies`. rho: zCDP; policies that keep pure DP alone run at epsilon =
    sqrt(2 rho), which implies it; math.inf is the non-private twin. options: for the policy's constructor.
    """

    policy: str
    rho: float
    options: Options = ()
    label: str = ""


@dataclass(frozen=True)
class Experiment:
    """Policies on one instance of a setting.

    setting_as: "paper" as printed there, "strict" where everything that is promised holds. guarantee: in words, what
    holds for these runs and what does not. means: of finite arms; linear and contextual instances have `arms` actions
    in `dimension` dimensions and come from the seed. horizon, runs: of `reproduce` without flags; quick, full: the
    same with --quick and --full.
    """

    name: str
    title: str
    setting: str
    setting_as: str
    guarantee: str
    entries: tuple[Entry, ...]
    horizon: int
    runs: int
    figures: tuple[str, ...]
    claims: tuple[str, ...] = ()
    means: tuple[float, ...] = ()
    arms: int = 10
    dimension: int = 3
    quick: tuple[int, int] = (10**5, 10)
    full: tuple[int, int] = (10**7, 100)

    @property
    def of_the_paper(self) -> bool:
        """Whether the paper has it."""
        return self.setting_as == "paper"

    def resized(self, horizon: int, runs: int) -> Experiment:
        """The same at another scale."""
        return replace(self, horizon=horizon, runs=runs)


TITLES = {
    "adac-ucb": "AdaC-UCB",
    "adap-ucb": "AdaP-UCB",
    "dp-se": "DP-SE",
    "dp-ucb": "DP-UCB",
    "adac-gope": "AdaC-GOPE",
    "adac-gope-var": "AdaC-GOPE-Var",
    "adac-gope-end": "AdaC-GOPE-End",
    "li-gope": "Li-GOPE",
    "hanna-gope": "Hanna-GOPE",
    "adac-oful": "AdaC-OFUL",
    "linpriv": "LinPriv",
    "linpriv-shared": "LinPriv shared",
    "adac-oful-private": "AdaC-OFUL-private",
    "shariff-sheffet": "Shariff-Sheffet",
}
"""Policies as they are called in pictures."""


def entries(policies: Sequence[str], rhos: Sequence[float], options: Options = ()) -> tuple[Entry, ...]:
    """Every policy at every budget.

    >>> [entry.label for entry in entries(["adac-ucb"], [0.1, math.inf])]
    ['AdaC-UCB, rho = 0.1', 'AdaC-UCB, no privacy']
    """
    return tuple(
        Entry(policy, rho, options, f"{TITLES[policy]}, {_budget(rho)}") for policy in policies for rho in rhos
    )


def _budget(rho: float) -> str:
    return "no privacy" if math.isinf(rho) else f"rho = {rho:g}"


FINE = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, math.inf)
"""Budgets where one more costs next to nothing."""
COARSE = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0, math.inf)
"""Budgets where every step is played."""
PLACED = (0.001, 0.01, 0.1, 1.0)
"""Budgets of the paper's comparison of places for the noise, and of its tables."""
EQUAL = (0.01, 0.1, 1.0, math.inf)
"""Budgets at which rivals are compared."""

MEANS = (0.75, 0.625, 0.5, 0.375, 0.25)
DELTA = (("delta", 1e-3),)
AS_PRINTED: Options = (("regulariser", 0.1), ("growth", 1.0), ("delta", 1e-3))
PROVEN: Options = (("regulariser", 1.0), ("delta", 1e-3))
FREE, VANISHES, WINS = "free-privacy", "price-vanishes", "in-between-wins"
BEYOND: dict[str, Any] = {"horizon": 200_000, "runs": 20, "quick": (10**4, 5), "full": (10**6, 100)}
"""The scale of what the paper lacks."""

OUT_OF_RANGE = (
    "Rewards are <theta, a> + N(0, 1), as in the paper's experiment, and leave the range [-1, 1] that the noise of "
    "the policies is calibrated to: no privacy holds for these runs. (A live agent clips, and keeps its budget.) "
)
STRICT_FINITE = (
    "Everything promised holds: rewards are 0 or 1, so live each policy would keep its budget, and beta = 3.1, so the "
    "paper's regret bound of AdaC-UCB (beta > 3) holds as well."
)
STRICT_LINEAR = (
    "Everything promised holds: actions have length 1 and rewards are +1 or -1, with P(+1) = (1 + <theta, a>)/2, so "
    "live each policy would keep its budget, and widths fail with probability delta = 0.001 at most."
)
STRICT_CONTEXTUAL = (
    "Everything promised holds: contexts are scaled into the unit ball and rewards are +1 or -1, with P(+1) = "
    "(1 + <theta, a>)/2, so live each policy would keep its budget; the regulariser is 1, which the paper's proof "
    "of its regret bound needs."
)
PRIVATE_TOO = (
    " AdaC-OFUL-private and Shariff-Sheffet protect contexts as well (joint DP): a stronger promise, which costs more."
)

_ALL = (
    Experiment(
        name="finite",
        title="Finite arms: the price of privacy of AdaC-UCB",
        setting="finite",
        setting_as="paper",
        guarantee="Rewards are 0 or 1, so live AdaC-UCB would keep rho-Interactive zCDP. beta = 1, as in the paper's "
        "experiment: no regret bound holds for these runs (the paper's needs beta > 3, ours beta > 1).",
        entries=entries(["adac-ucb"], FINE, (("beta", 1.0),)),
        horizon=10**7,
        runs=100,
        figures=("difference", "price"),
        claims=(FREE, VANISHES),
        means=MEANS,
    ),
    Experiment(
        name="linear",
        title="Linear bandits: the price of privacy of AdaC-GOPE",
        setting="linear",
        setting_as="paper",
        guarantee=OUT_OF_RANGE + "The widths need subgaussian rewards only: they fail with probability delta = 0.001 "
        "at most.",
        entries=entries(["adac-gope"], FINE, DELTA),
        horizon=10**7,
        runs=100,
        figures=("difference", "price"),
        claims=(FREE, VANISHES),
    ),
    Experiment(
        name="contextual",
        title="Contextual bandits: the price of privacy of AdaC-OFUL",
        setting="contextual",
        setting_as="paper",
        guarantee=OUT_OF_RANGE + "Contexts leave the unit ball too, which a live agent would refuse, and the "
        "regulariser is 0.1, where the paper's proof needs 1: no regret bound holds for these runs either.",
        entries=entries(["adac-oful"], COARSE, AS_PRINTED),
        horizon=10**7,
        runs=100,
        figures=("difference", "price"),
        claims=(FREE, VANISHES),
    ),
    Experiment(
        name="noise-placement",
        title="Where to put the noise: AdaC-GOPE against noise on each action's sum",
        setting="linear",
        setting_as="paper",
        guarantee=OUT_OF_RANGE + "AdaC-GOPE-Var plays the phases of AdaC-GOPE, which may be too short for its noise: "
        "the width really reached decides what is dropped.",
        entries=entries(["adac-gope", "adac-gope-var"], PLACED, DELTA),
        horizon=10**7,
        runs=100,
        figures=("placement",),
        claims=(WINS,),
    ),
    Experiment(
        name="finite-strict",
        title="Finite arms where every promise holds",
        setting="finite",
        setting_as="strict",
        guarantee=STRICT_FINITE,
        entries=entries(["adac-ucb"], FINE, (("beta", 3.1),)),
        figures=("difference", "price", "curves"),
        claims=(FREE, VANISHES),
        means=MEANS,
        **BEYOND,
    ),
    Experiment(
        name="linear-strict",
        title="Linear bandits where every promise holds",
        setting="linear",
        setting_as="strict",
        guarantee=STRICT_LINEAR,
        entries=entries(["adac-gope"], FINE, DELTA),
        figures=("difference", "price", "curves"),
        claims=(FREE, VANISHES),
        **BEYOND,
    ),
    Experiment(
        name="contextual-strict",
        title="Contextual bandits where every promise holds",
        setting="contextual",
        setting_as="strict",
        guarantee=STRICT_CONTEXTUAL,
        entries=entries(["adac-oful"], COARSE, PROVEN),
        figures=("difference", "price", "curves"),
        claims=(FREE, VANISHES),
        **BEYOND,
    ),
    Experiment(
        name="finite-rivals",
        title="Finite arms: all policies at equal budget",
        setting="finite",
        setting_as="strict",
        guarantee=STRICT_FINITE + " AdaP-UCB and DP-SE keep pure DP, at epsilon = sqrt(2 rho), which implies rho-zCDP.",
        entries=entries(["adac-ucb", "adap-ucb", "dp-se", "dp-ucb"], EQUAL),
        figures=("rivals", "curves"),
        means=MEANS,
        **BEYOND,
    ),
    Experiment(
        name="linear-rivals",
        title="Linear bandits: all policies at equal budget",
        setting="linear",
        setting_as="strict",
        guarantee=STRICT_LINEAR + " Hanna-GOPE keeps pure DP, at epsilon = sqrt(2 rho), which implies rho-zCDP.",
        entries=entries(["adac-gope", "adac-gope-var", "adac-gope-end", "li-gope", "hanna-gope"], EQUAL, DELTA),
        figures=("rivals", "curves"),
        **BEYOND,
    ),
    Experiment(
        name="contextual-rivals",
        title="Contextual bandits: all policies at equal budget",
        setting="contextual",
        setting_as="strict",
        guarantee=STRICT_CONTEXTUAL + PRIVATE_TOO,
        entries=entries(
            ["adac-oful", "linpriv", "linpriv-shared", "adac-oful-private", "shariff-sheffet"], EQUAL[1:], PROVEN
        ),
        figures=("rivals", "curves"),
        **BEYOND,
    ),
)

EXPERIMENTS: dict[str, Experiment] = {experiment.name: experiment for experiment in _ALL}
"""Every experiment by its name, in the order of the report."""
