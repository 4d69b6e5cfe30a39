"""Whether the paper's claims hold in our runs, and ours: a test for each, its numbers, and words that follow from them.

All tests are at the level of 5 %; where a claim takes several, their p-values are Holm's. A claim can hold, not hold,
or be one that these runs cannot decide. That a difference is not significant never counts as evidence that there is
none: for that the difference has to be shown to lie within a margin (two one-sided tests).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from private_bandits.errors import InvalidInput
from private_bandits.experiments.analysis.claims.free_privacy import free_privacy
from private_bandits.experiments.analysis.claims.in_between import in_between_wins
from private_bandits.experiments.analysis.claims.price_vanishes import price_vanishes
from private_bandits.experiments.analysis.claims.tight_wins import tight_wins
from private_bandits.experiments.analysis.claims.verdict import Verdict
from private_bandits.experiments.analysis.regrets import Regrets
from private_bandits.experiments.analysis.wording import listing
from private_bandits.experiments.run.experiment import Experiment
from private_bandits.loading import require

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["CLAIMS", "Verdict", "judge", "judge_regrets"]

CLAIMS: dict[str, Callable[[Regrets], Iterator[Verdict]]] = {
    "free-privacy": free_privacy,
    "price-vanishes": price_vanishes,
    "in-between-wins": in_between_wins,
    "tight-wins": tight_wins,
}
"""By the names that an experiment uses in `claims`."""


def judge(experiment: Experiment, frame: pd.DataFrame) -> list[Verdict]:
    """Return a verdict for each claim of the experiment and each policy that it is about.

    frame: a row for each label, run and step.
    """
    _check_claims(experiment)
    return judge_regrets(Regrets.from_frame(experiment, frame)) if experiment.claims else []


def judge_regrets(regrets: Regrets) -> list[Verdict]:
    """Return the same verdicts for a table that was read before."""
    _check_claims(regrets.experiment)
    return [verdict for claim in regrets.experiment.claims for verdict in CLAIMS[claim](regrets)]


def _check_claims(experiment: Experiment) -> None:
    """Refuse an experiment with a claim that there is no test for, and any where scipy is missing."""
    require("a verdict", "experiments", "scipy")
    unknown = [claim for claim in experiment.claims if claim not in CLAIMS]
    if unknown:
        raise InvalidInput(f"{experiment.name}: no claim is called {unknown[0]!r}; there are {listing(list(CLAIMS))}")
