"""Small experiments: from real simulations, and made up with answers that are known."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import private_bandits as pb
from private_bandits.experiments.run.data import Entry, Experiment, Instance, entries

Floats = NDArray[np.float64]
STEPS = np.unique(np.geomspace(1, 10_000, 25).round().astype(np.int64))
NAMES = {"adac-ucb": "AdaC-UCB", "adac-gope": "AdaC-GOPE", "adac-gope-var": "AdaC-GOPE-Var", "adap-ucb": "AdaP-UCB"}


def label_of(policy: str, rho: float) -> str:
    return f"{NAMES[policy]}, {'no privacy' if math.isinf(rho) else f'rho = {rho:g}'}"


def experiment(
    figures: Sequence[str] = (),
    claims: Sequence[str] = (),
    policies: Sequence[str] = ("adac-ucb",),
    rhos: Sequence[float] = (0.01, 1.0, 100.0, math.inf),
    **changes: Any,
) -> Experiment:
    own = tuple(Entry(policy, rho, (), label_of(policy, rho)) for policy in policies for rho in rhos)
    settings: dict[str, Any] = {
        "name": "sample",
        "title": "A sample",
        "setting": "finite",
        "setting_as": "strict",
        "guarantee": "Everything promised holds.",
        "entries": own,
        "horizon": 10_000,
        "runs": 10,
        "figures": tuple(figures),
        "claims": tuple(claims),
    }
    return Experiment(**(settings | changes))


def frame_of(made: Experiment, regrets: Mapping[str, Floats], steps: NDArray[np.int64] = STEPS) -> pd.DataFrame:
    """A row for each label, run and step."""
    parts = [
        pd.DataFrame(
            {
                "experiment": made.name,
                "policy": entry.policy,
                "label": entry.label,
                "rho": entry.rho,
                "run": np.repeat(np.arange(len(regrets[entry.label])), len(steps)),
                "step": np.tile(steps, len(regrets[entry.label])),
                "regret": regrets[entry.label].ravel(),
                "seed": 7,
                "version": "1.2.3",
            }
        )
        for entry in made.entries
    ]
    return pd.concat(parts, ignore_index=True)


def made_up(
    made: Experiment, mean: Callable[[Entry, Floats], Floats], runs: int = 40, spread: float = 0.05, seed: int = 0
) -> pd.DataFrame:
    """Regrets mean(entry, steps) times an independent factor 1 ± spread for each run."""
    chance = np.random.default_rng(seed)
    regrets = {
        entry.label: mean(entry, STEPS.astype(float)) * (1 + spread * chance.standard_normal((runs, 1)))
        for entry in made.entries
    }
    return frame_of(made, regrets)


def budget_of(rho: float) -> pb.NoPrivacy | pb.zCDP:
    return pb.NoPrivacy() if math.isinf(rho) else pb.zCDP(rho)


def simulated(
    made: Experiment, make: Callable[[Entry], Any], environment: Any, horizon: int = 10_000, runs: int = 12
) -> pd.DataFrame:
    """By real runs."""
    policies = {entry.label: make(entry) for entry in made.entries}
    result = pb.simulate(policies, environment, horizon, runs, seed=7, progress=False)
    return frame_of(made, result.curves, result.checkpoints)


def finite(**changes: Any) -> tuple[Experiment, pd.DataFrame]:
    """AdaC-UCB on five arms."""
    made = experiment(**({"figures": ("difference", "price", "curves")} | changes))
    environment = pb.Bernoulli([0.75, 0.625, 0.5, 0.375, 0.25])
    return made, simulated(
        made, lambda entry: pb.AdaCUCB(5, budget_of(entry.rho), beta=1, variant="paper"), environment
    )


def placement(**changes: Any) -> tuple[Experiment, pd.DataFrame]:
    """AdaC-GOPE and its variant on ten directions."""
    settings = {"figures": ("placement",), "claims": ("in-between-wins",), "setting": "linear", "name": "places"}
    made = experiment(**(settings | {"policies": list(MAKERS), "rhos": (0.001, 0.1)} | changes))
    chance = np.random.default_rng(1)
    actions = chance.standard_normal((10, 3))
    actions /= np.linalg.norm(actions, axis=1, keepdims=True)
    environment = pb.Linear(actions, [0.6, 0.48, 0.64])
    return made, simulated(
        made,
        lambda entry: MAKERS[entry.policy](actions, budget_of(entry.rho), variant="paper"),
        environment,
        horizon=100_000,
    )


MAKERS: dict[str, Any] = {"adac-gope": pb.AdaCGOPE, "adac-gope-var": pb.AdaCGOPEVar}


def rivals(**changes: Any) -> tuple[Experiment, pd.DataFrame]:
    """AdaC-UCB and AdaP-UCB at equal budgets."""
    settings = {"figures": ("rivals",), "policies": ["adac-ucb", "adap-ucb"], "rhos": (0.1, 1.0, math.inf)}
    made = experiment(**(settings | {"name": "rivals"} | changes))

    def make(entry: Entry) -> Any:
        if entry.policy == "adac-ucb":
            return pb.AdaCUCB(3, budget_of(entry.rho), variant="paper")
        return pb.AdaPUCB(3, pb.NoPrivacy() if math.isinf(entry.rho) else pb.PureDP(math.sqrt(2 * entry.rho)))

    return made, simulated(made, make, pb.Bernoulli([0.9, 0.5, 0.1]))


def tightened(instances: Sequence[str] = ("one", "two"), **changes: Any) -> Experiment:
    """AdaC-UCB as published and AdaC-IMED, on instances of growing size."""
    sizes = [Instance(name, arms=2 + number) for number, name in enumerate(instances)]
    made = [e for size in sizes for e in entries(["adac-ucb", "adac-imed"], (0.1, 1.0, math.inf), instance=size)]
    settings = {"name": "tightened", "figures": ("variants",), "claims": ("tight-wins",), "entries": tuple(made)}
    return experiment(**(settings | changes))


def tight(**changes: Any) -> tuple[Experiment, pd.DataFrame]:
    """The same with regrets that were made up: AdaC-IMED has less the larger rho is."""
    made = tightened(**changes)
    shares = {("adac-imed", 0.1): 0.75, ("adac-imed", 1.0): 0.6, ("adac-imed", math.inf): 0.5}
    return made, made_up(made, lambda entry, steps: np.sqrt(steps) * shares.get((entry.policy, entry.rho), 1.0))
