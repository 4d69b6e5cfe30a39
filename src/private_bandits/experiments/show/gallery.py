"""The pictures of an experiment, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from private_bandits.errors import InvalidInput
from private_bandits.experiments.analysis.regrets import Regrets
from private_bandits.experiments.analysis.wording import listing
from private_bandits.experiments.run.experiment import Experiment
from private_bandits.experiments.show import comparisons, floors, prices, shares, variants
from private_bandits.experiments.show.pictures import Picture
from private_bandits.loading import require

if TYPE_CHECKING:
    import pandas as pd

PICTURES: dict[str, Callable[[Regrets], Picture]] = {
    "difference": prices.difference,
    "price": prices.price,
    "curves": prices.curves,
    "placement": comparisons.placement,
    "rivals": comparisons.rivals,
    "variants": variants.variants,
    "floor": floors.floor,
    "shares": shares.shares,
}
"""By the names that an experiment uses in `figures`."""


def pictures(experiment: Experiment, frame: pd.DataFrame) -> list[Picture]:
    """Return every picture that the experiment asks for, from one row for each label, run and step."""
    _check_figures(experiment)
    return pictures_of(Regrets.from_frame(experiment, frame))


def pictures_of(regrets: Regrets) -> list[Picture]:
    """Return the same pictures for a table that was read before."""
    _check_figures(regrets.experiment)
    return [PICTURES[name](regrets) for name in regrets.experiment.figures]


def _check_figures(experiment: Experiment) -> None:
    """Refuse an experiment with a figure that nobody can draw, and any where scipy is missing."""
    require("a picture", "experiments", "scipy")
    unknown = [name for name in experiment.figures if name not in PICTURES]
    if unknown:
        raise InvalidInput(
            f"{experiment.name}: no figure is called {unknown[0]!r}; there are {listing(list(PICTURES))}"
        )
