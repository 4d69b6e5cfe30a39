"""Contextual linear bandits one step at a time, for every policy: the oracle of the compiled engines, and for the rest.

All policies of a run see the contexts that the compiled engines show them, so differences between the engines' policies
are paired too.

In the setting "strict" actions are offered as to an agent. In the setting "paper" they are longer than what is
declared, and a policy would refuse or shorten them. They are taken as drawn, as in the compiled engines, and where
contexts are private as well; noise is for what is declared. No guarantee would hold then, which the simulation says.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from private_bandits.arrays import Floats
from private_bandits.environments import Contextual
from private_bandits.policies import Policy
from private_bandits.simulation import context_runs
from private_bandits.simulation.context_runs import Stretch, refuse_unknown_noise
from private_bandits.simulation.contextual import World
from private_bandits.simulation.seeds import Seeds


def stretch_of(environment: Contextual, contexts: Floats) -> Stretch:
    """Steps with these contexts, [step, action, coordinate]."""
    return Stretch(contexts, contexts @ np.array(environment.theta))


def _stretches(environment: Contextual, horizon: int, seeds: Seeds, run: int) -> Iterator[Stretch]:
    """The contexts of a run, some thousand steps at a time."""
    world = World(environment, seeds, run)
    for time in range(0, horizon, world.steps):
        world.draw()
        drawn = world.block.contexts.transpose(0, 3, 1, 2).astype(float)
        yield stretch_of(environment, drawn.reshape(-1, *drawn.shape[2:])[: horizon - time])


play_run = partial(context_runs.play_one_by_one, stretches=_stretches)
regret_curves = partial(context_runs.regret_curves, play=play_run)


def prepare(policies: Sequence[Policy[Any]], environment: Contextual) -> None:
    """Compile what draws contexts, so that what comes next can be timed; refuse what this engine does not know."""
    refuse_unknown_noise(policies)
    World(environment, Seeds(0, 0), 0).draw()
