"""Where the random numbers of a run come from, whichever process or thread computes it."""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple

import numpy as np


def fingerprint(policy: Any) -> int:
    """A number of its own for each set of parameters.

    Parameters that are what earlier versions did without them do not count: published numbers stay as they are.
    """
    text = repr(policy)
    for name, value in policy.formerly.items():
        text = text.replace(f", {name}={value!r}", "")
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=16).digest())


class Seeds(NamedTuple):
    """The seed of a simulation, and the number of the first run of a block."""

    seed: int
    first: int

    def contexts(self, run: int) -> np.random.SeedSequence:
        """The contexts of a run, which all policies share."""
        return np.random.SeedSequence(self.seed, spawn_key=(run,))

    def own(self, policy: Any, run: int) -> list[np.random.SeedSequence]:
        """A policy's own rewards, and its own noise, whatever else is simulated."""
        return np.random.SeedSequence(self.seed, spawn_key=(run, fingerprint(policy))).spawn(2)
