"""What holds for every test."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import pytest

from private_bandits.audit import draws as noise

SELDOM = 1e-8
"""How often the noise of a right agent may be accused in one audit."""


@pytest.fixture(autouse=True, scope="session")
def noise_is_accused_seldom() -> Iterator[None]:
    """Noise is live, and the tests audit dozens of right agents: at the level for users they would fail at times.

    What is broken has p-values far below. Audits from outside stay as they are: they bound the probabilities in two
    worlds, each from its side, and a right agent is accused only if chance leaves both bounds.
    """
    examine = noise.examine

    def seldom(target: Any, draws: int, runs: int, failure: float, *more: Any) -> noise.Draws:
        return examine(target, draws, runs, min(failure, SELDOM), *more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(noise, "examine", seldom)
        yield


@pytest.fixture
def old_objects_are_no_garbage() -> Iterator[None]:
    """For tests that collect garbage thousands of times: what other tests left is not looked through each time."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()
