"""The experiments as data: what is simulated, how often, and what is drawn and judged of it.

The runner and the pictures know nothing of a single experiment: another one is another value in EXPERIMENTS.
"""

from __future__ import annotations

from private_bandits.experiments.run.experiment import Entry, Experiment, Instance, entries
from private_bandits.experiments.run.real_data import REAL_DATA
from private_bandits.experiments.run.settings import (
    AS_PRINTED,
    COARSE,
    DELTA,
    FREE,
    MEANS,
    OUT_OF_RANGE,
    PRIVATE_TOO,
    PROVEN,
    RHOS_FINE,
    RHOS_PLACEMENT,
    RHOS_RIVALS,
    SCALE_EXTRA,
    STRICT_CONTEXTUAL,
    STRICT_FINITE,
    STRICT_LINEAR,
    VANISHES,
    WINS,
)
from private_bandits.experiments.run.tight import TIGHT

__all__ = ["EXPERIMENTS", "Entry", "Experiment", "Instance", "entries"]

_ALL = (
    Experiment(
        name="finite",
        title="Finite arms: the price of privacy of AdaC-UCB",
        setting="finite",
        setting_as="paper",
        guarantee="Rewards are 0 or 1, so live AdaC-UCB would keep rho-Interactive zCDP. beta = 1, as in the paper's "
        "experiment: no regret bound holds for these runs (the paper's needs beta > 3, ours beta > 1).",
        entries=entries(["adac-ucb"], RHOS_FINE, (("beta", 1.0),)),
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
        entries=entries(["adac-gope"], RHOS_FINE, DELTA),
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
        entries=entries(["adac-gope", "adac-gope-var"], RHOS_PLACEMENT, DELTA),
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
        entries=entries(["adac-ucb"], RHOS_FINE, (("beta", 3.1),)),
        figures=("difference", "price", "curves"),
        claims=(FREE, VANISHES),
        means=MEANS,
        **SCALE_EXTRA,
    ),
    Experiment(
        name="linear-strict",
        title="Linear bandits where every promise holds",
        setting="linear",
        setting_as="strict",
        guarantee=STRICT_LINEAR,
        entries=entries(["adac-gope"], RHOS_FINE, DELTA),
        figures=("difference", "price", "curves"),
        claims=(FREE, VANISHES),
        **SCALE_EXTRA,
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
        **SCALE_EXTRA,
    ),
    Experiment(
        name="finite-rivals",
        title="Finite arms: all policies at equal budget",
        setting="finite",
        setting_as="strict",
        guarantee=STRICT_FINITE
        + " AdaP-UCB, DP-SE, DP-IMED and DP-KLUCB keep pure DP, at epsilon = sqrt(2 rho), which "
        "implies rho-zCDP.",
        entries=entries(["adac-ucb", "adac-imed", "adap-ucb", "dp-se", "dp-ucb", "dp-imed", "dp-klucb"], RHOS_RIVALS),
        figures=("rivals", "curves"),
        means=MEANS,
        **SCALE_EXTRA,
    ),
    Experiment(
        name="linear-rivals",
        title="Linear bandits: all policies at equal budget",
        setting="linear",
        setting_as="strict",
        guarantee=STRICT_LINEAR + " Hanna-GOPE keeps pure DP, at epsilon = sqrt(2 rho), which implies rho-zCDP.",
        entries=entries(["adac-gope", "adac-gope-var", "adac-gope-end", "li-gope", "hanna-gope"], RHOS_RIVALS, DELTA),
        figures=("rivals", "curves"),
        **SCALE_EXTRA,
    ),
    Experiment(
        name="contextual-rivals",
        title="Contextual bandits: all policies at equal budget",
        setting="contextual",
        setting_as="strict",
        guarantee=STRICT_CONTEXTUAL + PRIVATE_TOO,
        entries=entries(
            ["adac-oful", "linpriv", "linpriv-shared", "adac-oful-private", "shariff-sheffet"], RHOS_RIVALS[1:], PROVEN
        ),
        figures=("rivals", "curves"),
        **SCALE_EXTRA,
    ),
)

EXPERIMENTS: dict[str, Experiment] = {experiment.name: experiment for experiment in (*_ALL, *TIGHT, REAL_DATA)}
"""Every experiment by its name, in the order of the report."""
