"""The pictures of an experiment, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from private_bandits.errors import InvalidInput
from private_bandits.experiments.analysis.regrets import Regrets
from private_bandits.experiments.analysis.wording import listing
from private_bandits.experiments.run.experiment import Experiment
from private_bandits.experiments.show import comparisons, floors, prices, variants
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
}
"""By the names that an experiment uses in `figures`."""


def pictures(experiment: Experiment, frame: pd.DataFrame) -> list[Picture]:
    """Every picture that the experiment asks for, from one row for each label, run and step."""
    require("a picture", "experiments", "scipy")
    unknown = [name for name in experiment.figures if name not in PICTURES]
    if unknown:
        raise InvalidInput(
            f"{experiment.name}: no figure is called {unknown[0]!r}; there are {listing(list(PICTURES))}"
        )
    regrets = Regrets.from_frame(experiment, frame)
    return [PICTURES[name](regrets) for name in experiment.figures]
