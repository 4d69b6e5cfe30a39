"""Shariff and Sheffet's private linear UCB: a tree over the moments of all people, contexts private too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from private_bandits.mechanism.tree import levels_for
from private_bandits.policies.private_contexts import PrivateContextPolicy


@dataclass(frozen=True)
class ShariffSheffet(PrivateContextPolicy):
    """Private linear UCB (Shariff and Sheffet 2018, Algorithm 1, with shifted Gaussian noise).

    Every reward releases one node of a tree of L levels over (a a', a r); a person is in at most L of them, and they
    share the budget. The sum of r^2, which nothing needs, is left out, and with it its share of the noise.
    """

    name: ClassVar[str] = "shariff-sheffet"
    source: ClassVar[str] = "Shariff and Sheffet 2018, Differentially private contextual linear bandits"
    waits_for = "none"

    @property
    def tree_levels(self) -> int:
        """Enough for the horizon; then another tree begins."""
        return levels_for(self.horizon)

    @property
    def noise_levels(self) -> int:
        """A prefix is of at most as many nodes as the tree has levels."""
        return self.tree_levels + 1

    def wait(self, rewards: int) -> float:
        """One: with every reward."""
        return 1
