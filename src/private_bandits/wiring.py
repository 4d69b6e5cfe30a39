"""From the settings of an agent: the door that rewards go through, for one reward's share, and the promise."""

from __future__ import annotations

from typing import Any

from private_bandits.budget import Budget
from private_bandits.errors import InvalidInput
from private_bandits.guarantee import Guarantee, guarantee_for
from private_bandits.ledger import Ledger
from private_bandits.policies import Policy
from private_bandits.release import Door
from private_bandits.state import Settings


def door_for(settings: Settings, ledger: Ledger) -> Door:
    """Return the door for one reward's share of the budget. Refuses a policy that no door could serve."""
    policy, bounds = settings.policy, settings.reward_range
    budget: Budget = policy.promise
    if settings.unit == "person" and settings.max_rewards_per_person is not None:
        budget = budget.per_reward(settings.max_rewards_per_person)
    _check_declared(policy)
    served = policy.with_budget(budget)
    if (served.tree_levels, served.factor) != (policy.tree_levels, policy.factor):
        raise InvalidInput(
            f"{type(policy).__name__} releases a reward more or less often under {budget}, one reward's share of the "
            "budget: tree_levels and factor must not depend on the budget"
        )
    moments = policy.moments(bounds.low, bounds.high)
    return Door(
        budget,
        bounds,
        ledger,
        settings.seed,
        policy.weight_room if moments is None else moments.room,
        releases_of_a_reward=max(1, policy.tree_levels),
        factor=policy.factor,
        moments=moments,
    )


def promise_kept(settings: Settings, door: Door, spent: float, delta: float) -> Guarantee:
    """Return what is promised, and what is spent of it."""
    return guarantee_for(
        settings.policy.promise,
        settings.unit,
        settings.max_rewards_per_person,
        spent,
        delta,
        private=door.secret,
        joint=settings.policy.private_contexts,
        seeded=settings.seed is not None,
    )


def _check_declared(policy: Policy[Any]) -> None:
    """Refuse what a policy may not declare."""
    if policy.factor is not None and type(policy).combination is not Policy.combination:
        raise InvalidInput(
            f"{type(policy).__name__} has a factor and a combination, and sums that leave together hold no earlier "
            "episode again: leave one of the two out"
        )
    for name in ("tree_levels", "weight_room", "declared_weight"):
        value = getattr(policy, name)
        if type(value) is not int or value < 0:  # a number of fixed size would wrap around where it is squared
            raise InvalidInput(f"{name} of {type(policy).__name__} must be an int of at least 0, got {value!r}")
