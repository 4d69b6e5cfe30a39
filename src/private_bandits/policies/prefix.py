"""All sums released so far, added up: the newest nodes of a tree, and what was complete before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from private_bandits.arrays import Floats
from private_bandits.mechanism.tree import is_complete, nodes_after


@dataclass(eq=False)
class PrefixSum:
    """The sum of all leaves and the number of noises in it. Public: it is made of releases.

    before: of complete trees, or of all releases where there is no tree (levels = 0), with their noises.
    """

    before: Floats
    noises_before: int = 0
    nodes: list[Floats] = field(default_factory=list)
    leaves: int = 0

    def take(self, values: Floats, levels: int) -> None:
        """Take in the release that the next leaf completes."""
        self.leaves += 1
        self.nodes = nodes_after(self.nodes, values, self.leaves, levels) if levels else [values]
        if not levels or is_complete(self.leaves, levels):
            self.before = self.before + np.sum(self.nodes, axis=0)
            self.noises_before += len(self.nodes)
            self.nodes = []

    @property
    def total(self) -> Floats:
        """The sum of all leaves, with noise."""
        return np.asarray(np.sum([self.before, *self.nodes], axis=0))

    @property
    def releases(self) -> int:
        """How many releases there were: one for each leaf."""
        return self.leaves

    @property
    def noises(self) -> int:
        """How many independent noises are in it."""
        return self.noises_before + len(self.nodes)

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        nodes = [node.tolist() for node in self.nodes]
        return {"before": self.before.tolist(), "noises_before": self.noises_before, "nodes": nodes} | {
            "leaves": self.leaves
        }

    def restored(self, data: Mapping[str, Any]) -> PrefixSum:
        """What to_dict wrote."""
        return self.from_dict(data)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> PrefixSum:
        """What to_dict wrote."""
        nodes: Sequence[Floats] = [np.array(node, float) for node in data["nodes"]]
        return cls(np.array(data["before"], float), data["noises_before"], list(nodes), data["leaves"])
