"""Policies whose episodes grow by a factor and are held again by later releases: AdaC-IMED and AdaC-TopTwo."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar, Self, TypeVar

from private_bandits.checks import check_positive
from private_bandits.errors import InvalidInput
from private_bandits.policies.geometric import LEAST_GROWTH, MOST_GROWTH, GeometricMemory
from private_bandits.policies.remembering import RememberedState, RememberingPolicy

LONGER_GROWTH, PRICE_OF_LONGER = 2.0, 1.4
"""A growth for people with several rewards, and what it costs by itself, in variance: 18% more regret, squared."""


@dataclass
class ChosenState(RememberedState):
    """The releases of each arm, and the choice that follows from them. Public."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.unseen = 0  # all arms before this one have a release
        self.choice: int | None = None  # what is to be played, if no decision is open; None: not computed
        self.until = 0  # the decision before which that holds, whatever was given up

    def note(self, arm: int, step: int) -> None:
        """Let the choice be made anew, and say which decision comes next."""
        super().note(arm, step)
        self.choice = None


C = TypeVar("C", bound=ChosenState)


@dataclass(frozen=True)
class GeometricPolicy(RememberingPolicy[C]):
    """Plays one arm until its episode is complete. Episodes grow by a factor (geometric.py).

    A subclass says which arm comes next: `least` where no decision is open, `choose_with_open` where some are.
    """

    supported_budgets: ClassVar[tuple[str, ...]] = ("zCDP", "ApproxDP", "RenyiDP", "NoPrivacy")
    alternative_hint: ClassVar[str] = "For PureDP use DPKLUCB, or AdaPUCB, whose Laplace noise keeps it."
    waits_for = "none"

    growth: float = 1.25
    correlated: bool = field(default=True, repr=False, kw_only=True)
    """Whether releases hold earlier episodes again. `for_people` chooses it."""

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "growth", check_positive("growth", self.growth))
        if not LEAST_GROWTH <= self.growth <= MOST_GROWTH:
            raise InvalidInput(f"growth must be from {LEAST_GROWTH:g} to {MOST_GROWTH:g}, got {self.growth:g}")

    @cached_property
    def memory(self) -> GeometricMemory:
        """How long episodes are, what releases hold again, and how they are read."""
        found = GeometricMemory.for_budget(self.budget, self.growth)
        return found if self.correlated else replace(found, factor=None)

    def for_people(self, rewards: int) -> Self:
        """Return the policy whose means carry least noise for people with so many rewards each, one in an episode.

        Where episodes are held again, rewards of one person in several episodes meet in one release. Longer episodes
        and independent releases cost less then.
        """
        if rewards == 1 or self.budget.noise == "none":
            return self
        longer = replace(self, growth=max(self.growth, LONGER_GROWTH))
        prices = {self: 1.0, replace(self, correlated=False): 1.0}
        prices |= {longer: PRICE_OF_LONGER, replace(longer, correlated=False): PRICE_OF_LONGER}
        return min(prices, key=lambda plan: prices[plan] * plan.memory.noise_for_people(rewards))

    def recommend(self, state: C, waiting: Sequence[int], arrived: Mapping[int, int], step: int) -> int:
        """The choice after the last release; an arm without a release comes first.

        The choice has no clock: were the rewards of the chosen arm late, nothing would change. So where the arm's open
        decisions and its rewards that arrived fill its episode already, they count as if they were released. If the arm
        had decisions for a whole episode since the last release of any arm, those given up so far count too.
        """
        choice = state.choice
        if choice is None:
            choice = self._choose(state)
        if not waiting[choice] and step < state.until:
            return choice
        if waiting[choice] + arrived[choice] < state.needs[choice] and step < state.until:
            return choice
        return self.choose_with_open(state, waiting, arrived, step)

    def _choose(self, state: C) -> int:
        """Find what is to be played if no decision is open."""
        released, arms = state.released, len(state.released)
        while state.unseen < arms and released[state.unseen]:
            state.unseen += 1
        choice = state.unseen if state.unseen < arms else self.least(state)
        state.choice, state.until = choice, state.step + state.needs[choice]
        return choice

    @abstractmethod
    def least(self, state: C) -> int:
        """Return the arm to be played, where every arm has a release and no decision is open."""

    @abstractmethod
    def choose_with_open(self, state: C, waiting: Sequence[int], arrived: Mapping[int, int], step: int) -> int:
        """Return the arm to be played, where decisions are open or were given up."""

    def given_up(self, state: C, waiting: Sequence[int], arrived: Mapping[int, int], step: int) -> int:
        """Return how many decisions came to nothing, if the chosen arm had a whole episode of them; else 0.

        Nobody notes of which arms they were.
        """
        if step < state.until:
            return 0
        return max(0, step - 1 - sum(state.released) - sum(waiting) - sum(arrived.values()))

    def episode_after(self, state: C, arm: int, ahead: int) -> int:
        """Return how many rewards fill the arm's episode, or the next one, if so many are on their way."""
        missing = state.needs[arm] - ahead
        return missing if missing > 0 else self.memory.length(state.released[arm] + ahead)
