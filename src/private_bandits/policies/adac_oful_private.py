"""AdaC-OFUL where contexts are private too: rare releases, by a public schedule, of the matrix as well."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from private_bandits.policies.optimism import check_optimism
from private_bandits.policies.private_contexts import PrivateContextPolicy


@dataclass(frozen=True)
class AdaCOFULPrivate(PrivateContextPolicy):
    """AdaC-OFUL adapted to private contexts ("Concentrated Differential Privacy for Bandits", Section V).

    The determinant of contexts would tell of them, so an episode ends by the count of rewards, which is public: at d
    rewards, and then whenever the unreleased are C times the released ones. Each person is in one release.
    """

    name: ClassVar[str] = "adac-oful-private"
    source: ClassVar[str] = "Concentrated Differential Privacy for Bandits, AdaC-OFUL for private contexts"

    growth: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_optimism(self, "growth")

    @property
    def noise_levels(self) -> int:
        """Each release but the first multiplies the count by at least 1 + C, from d on."""
        after_first = math.log(max(1.0, self.horizon / self.dimension)) / math.log1p(self.growth)
        return 2 + min(self.horizon, int(after_first))

    def wait(self, rewards: int) -> float:
        """d at first, and then C times the released ones."""
        return max(self.dimension, self.growth * rewards)
