"""What an experiment is, as plain data: policies at budgets, on instances, and what is drawn and judged of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from private_bandits.environments import Setting
from private_bandits.theory.lower import Rewards

Options = tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Instance:
    """What is played on.

    name: in pictures. means: of finite arms; none: drawn evenly from [0, 1]. Actions of linear and contextual bandits
    are drawn too. draw: the seed of what is drawn; None: that of the experiment. worst: not 0 for the instance of a
    lower bound's proof, with so many times its gap; rewards: those of the proof. table: one of the labelled tables of
    real_data.py, of which so many principal components are kept; nothing is drawn then.
    """

    name: str
    means: tuple[float, ...] = ()
    arms: int = 10
    dimension: int = 3
    draw: int | None = None
    worst: float = 0.0
    rewards: Rewards = "gaussian"
    table: str = ""
    components: int = 0


@dataclass(frozen=True)
class Entry:
    """One policy at one budget.

    policy: a name from `private-bandits policies`, or of a reference (build.py). rho: zCDP; policies that keep pure DP
    alone run at epsilon = sqrt(2 rho), which implies it; math.inf is the non-private twin. options: for the policy's
    constructor. variant: as published ("paper") or with less regret for the same budget ("tight"); None: the policy's
    own default. instance: another one than the experiment's own.
    """

    policy: str
    rho: float
    options: Options = ()
    label: str = ""
    variant: str | None = None
    instance: Instance | None = None


@dataclass(frozen=True)
class Experiment:
    """Policies on one instance of a setting.

    setting_as: "paper" as printed there, "strict" where everything that is promised holds. guarantee: in words, what
    holds for these runs and what does not. means: of finite arms; linear and contextual instances have `arms` actions
    in `dimension` dimensions and come from the seed. horizon, runs: the usual scale; quick, full: a smaller and a
    larger one. extra: that it needs beside "experiments".
    """

    name: str
    title: str
    setting: str
    setting_as: Setting
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
    extra: str = ""

    @property
    def of_the_paper(self) -> bool:
        """Whether the paper has it."""
        return self.setting_as == "paper"

    @property
    def instance(self) -> Instance:
        """Of the entries that name none."""
        return Instance("", self.means, len(self.means) or self.arms, self.dimension)

    def resized(self, horizon: int, runs: int) -> Experiment:
        """The same at another scale."""
        return replace(self, horizon=horizon, runs=runs)


TITLES = {
    "adac-ucb": "AdaC-UCB",
    "adap-ucb": "AdaP-UCB",
    "dp-se": "DP-SE",
    "dp-ucb": "DP-UCB",
    "adac-imed": "AdaC-IMED",
    "dp-imed": "DP-IMED",
    "dp-klucb": "DP-KLUCB",
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
    "linucb": "LinUCB",
}
"""Policies as they are called in pictures."""


def entries(
    policies: Sequence[str],
    rhos: Sequence[float],
    options: Options = (),
    variants: Sequence[str] = ("paper",),
    instance: Instance | None = None,
) -> tuple[Entry, ...]:
    """Every policy at every budget, as published where nothing else is said.

    >>> [(entry.label, entry.variant) for entry in entries(["adac-ucb"], [0.1, math.inf])]
    [('AdaC-UCB, rho = 0.1', 'paper'), ('AdaC-UCB, no privacy', 'paper')]
    >>> entries(["adac-gope"], [1.0], variants=["tight"], instance=Instance("two arms"))[0].label
    'AdaC-GOPE tight, two arms, rho = 1'
    """
    where = "" if instance is None else f", {instance.name}"
    return tuple(
        Entry(policy, rho, options, f"{_name(policy, variant)}{where}, {budget_words(rho)}", variant, instance)
        for policy in policies
        for variant in variants
        for rho in rhos
    )


def _name(policy: str, variant: str) -> str:
    return TITLES[policy] if variant == "paper" else f"{TITLES[policy]} {variant}"


def budget_words(rho: float) -> str:
    """Return a budget as labels have it."""
    return "no privacy" if math.isinf(rho) else f"rho = {rho:g}"
