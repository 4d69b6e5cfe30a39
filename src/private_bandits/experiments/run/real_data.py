"""Real data: the labelled tables that scikit-learn brings along, as contextual bandits, and the experiment on them."""

from __future__ import annotations

import math
from functools import lru_cache

from private_bandits.errors import InvalidInput
from private_bandits.experiments.run.experiment import TITLES, Entry, Experiment, Instance, budget_words
from private_bandits.labelled import Labelled
from private_bandits.loading import require

LOADERS = {"wine": "load_wine", "breast cancer": "load_breast_cancer", "digits": "load_digits"}
"""Functions of sklearn.datasets that need no network."""
TABLES = (
    Instance("wine", arms=3, dimension=18, table="wine", components=5),
    Instance("breast cancer", arms=2, dimension=12, table="breast cancer", components=5),
    Instance("digits", arms=10, dimension=90, table="digits", components=8),
)
PUBLIC_CONTEXTS = ("adac-oful", (0.01, 0.1, 1.0, 10.0, math.inf))
PRIVATE_CONTEXTS = ("adac-oful-private", (0.1, 1.0, 10.0, math.inf))
"""Budgets at which something is learned from so few people."""


@lru_cache(maxsize=len(LOADERS))
def bundled_table(name: str, components: int) -> Labelled:
    """Return one of the tables as a bandit.

    name: wine (which of three growers?), breast cancer (malignant or not?), digits (which of ten was written?).
    """
    require("a bundled table", "data", "scikit-learn")
    from sklearn import datasets  # here: an extra

    if name not in LOADERS:
        raise InvalidInput(f"table must be one of {', '.join(LOADERS)}, got {name!r}")
    rows, labels = getattr(datasets, LOADERS[name])(return_X_y=True)
    return Labelled(rows, labels, components=components)


def _entries(instance: Instance) -> tuple[Entry, ...]:
    """Both policies as they are by default, and the reference."""
    chosen = [(policy, rho) for policy, rhos in (PUBLIC_CONTEXTS, PRIVATE_CONTEXTS) for rho in rhos]
    return tuple(
        Entry(policy, rho, (), f"{TITLES[policy]}, {instance.name}, {budget_words(rho)}", None, instance)
        for policy, rho in [*chosen, ("linucb", math.inf)]
    )


REAL_DATA = Experiment(
    name="real-data",
    title="Real data: right recommendations for people from labelled tables",
    setting="contextual",
    setting_as="strict",
    guarantee="A person is a row of a table, drawn at random. A recommendation is right (1) if it is the row's label, "
    "else wrong (0). Rewards and the length of actions stay within what is declared, so live each policy would keep "
    "its budget; AdaC-OFUL-private protects the row's numbers as well. Mean, deviation and principal components are "
    "those of the table, as if they were public knowledge. Rewards are not exactly linear in a row's numbers, so no "
    "regret bound holds. LinUCB learns each reward at once and protects nobody.",
    entries=tuple(entry for instance in TABLES for entry in _entries(instance)),
    horizon=10**4,
    runs=3,
    figures=("shares",),
    quick=(1000, 2),
    full=(10**5, 10),
    extra="data",
)
