"""Puts the parts of an agent together: its door, its state, its store; and says what they promise."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

from private_bandits.arguments import encoded
from private_bandits.bandit import Bandit
from private_bandits.budget import Budget
from private_bandits.checks import check_probability
from private_bandits.errors import InvalidInput
from private_bandits.expiry import AskedTimes
from private_bandits.guarantee import Guarantee, guarantee_for
from private_bandits.ledger import Account
from private_bandits.mechanism.composition import composition_for
from private_bandits.mechanism.release import Door, NoiseSource
from private_bandits.opening import check_opening, opening_text
from private_bandits.policies import POLICIES, Policy
from private_bandits.policies.waiting import Waiting
from private_bandits.state import PrivateState, PublicState, Settings
from private_bandits.storage.contract import Store, StoredBandit
from private_bandits.storage.history import charge_history
from private_bandits.storage.memory import MemoryStore
from private_bandits.storage.ownership import file_path
from private_bandits.storage.sqlite import SqliteStore


def door_for(settings: Settings, account: Account, noise: NoiseSource | None = None) -> Door:
    """Return the door for one reward's share of the budget. Refuses a policy that no door could serve."""
    policy, bounds = settings.run_policy, settings.reward_range
    _check_declared(policy)
    budget = budget_of_a_reward(settings)
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
        account,
        settings.seed,
        policy.weight_room if moments is None else moments.room,
        releases_of_a_reward=max(1, policy.tree_levels),
        factor=policy.factor,
        moments=moments,
        noise=noise,
    )


def budget_of_a_reward(settings: Settings) -> Budget:
    """Return one reward's share of the budget: all of it, unless the unit is a person with several rewards."""
    budget: Budget = settings.run_policy.budget
    if settings.unit == "person" and settings.max_rewards_per_person is not None:
        return budget.per_reward(settings.max_rewards_per_person, worth_of_a_person(settings))
    return budget


def run_policy_of(settings: Settings) -> Policy[Any]:
    """Return the policy that is run, with the budget of one reward."""
    return settings.run_policy.with_budget(budget_of_a_reward(settings))


def worth_of_a_person(settings: Settings) -> Fraction:
    """Return how many times the cost of one reward all rewards of a person have, at most, wherever they are placed."""
    assert settings.max_rewards_per_person is not None
    policy = settings.run_policy
    composition = composition_for(policy.factor, policy.tree_levels)
    cost = composition.person_cost(settings.max_rewards_per_person, settings.one_reward_per_episode)
    return cost / composition.reward_cost


CreateStore = Callable[[Settings, str, str], Store]
"""Makes a lasting store: of the settings, the policy's state as JSON, and the opening of the ledger."""


def store_at(path: str | os.PathLike[str] | None) -> CreateStore | None:
    """Return how to make the store of an agent: a new file; None: it is kept in memory."""
    return None if path is None else partial(SqliteStore.create, file_path(path))


def new_bandit(
    kind: type[Bandit], settings: Settings, create: CreateStore | None, noise: NoiseSource | None, plan: Any = None
) -> tuple[Bandit, Store]:
    """Return a bandit before its first decision, and its store: a lasting one if there is a way to make it."""
    policy, bounds = settings.run_policy, settings.reward_range
    if policy.replaced_by:
        raise InvalidInput(f"{type(policy).__name__} only goes on with files of earlier versions: {policy.replaced_by}")
    if create is not None and POLICIES.get(policy.name) is not type(policy):
        raise InvalidInput(
            f"{type(policy).__name__} has no name of its own, so a file could not bring it back: give the class "
            f"a `name` (it has {policy.name!r})"
        )
    door = door_for(settings, Account(), noise)
    door.account = Account(opening=opening_text(settings, door, plan))
    served = policy.with_budget(door.budget)
    public = PublicState(served.start(bounds.low, bounds.high), Waiting(len(policy.arm_names)))
    if settings.give_up_time is not None:
        public.times = AskedTimes(settings.give_up_time)
    store: Store = MemoryStore(settings.token)
    if create is not None:  # last: what is refused leaves nothing behind
        store = create(settings, encoded(served.dump_state(public.policy)), door.account.opening)
    return kind(settings, door, public, PrivateState(), store), store


def resumed_bandit(kind: type[Bandit], stored: StoredBandit, noise: NoiseSource | None) -> tuple[Bandit, Store]:
    """Return a bandit that was stored, but for the state of its policy, and the store that goes on with it.

    Everything is read and checked before the store is taken over.
    """
    settings = stored.settings
    door = door_for(settings, Account(), noise)
    policy = settings.run_policy.with_budget(door.budget)
    opening = stored.opening
    if opening is None:
        opening = opening_text(settings, door, chained_rows=stored.rows)
    else:
        stored.check(lambda: check_opening(opening, settings))
    door.account = Account(opening=opening)
    public, private = stored.load(partial(door.open_episode, declared=policy.declared_weight))
    closing = public.ended.closing_from
    stored.check(lambda: charge_history(door, stored.releases(opening), private.episodes, public.asked, closing))
    if not stored.checked:  # without checksums a state that cannot be read is the file's fault: it stays as it is
        stored.check(lambda: policy.load_state(stored.policy_state))
    store = stored.take_over()
    return kind(settings, door, public, private, store), store


@dataclass(frozen=True)
class Promise:
    """The promise of an agent: its settings, and how much noise protects one reward.

    Args:
        settings: The settings of the agent.
        per_reward: The promise for one reward, as rho or epsilon.
        private: Whether there is noise that nobody can foresee.
        seeded: Whether the noise comes from a seed.
    """

    settings: Settings
    per_reward: float
    private: bool
    seeded: bool

    def guarantee(self, spent: float, delta: float | None = None) -> Guarantee:
        """Return what is promised, and what is spent of it.

        Args:
            spent: The cost of all releases to the reward that they cost most.
            delta: The delta of (epsilon, delta); 1e-6 unless it is given, or the budget's own.
        """
        settings = self.settings
        if delta is None:
            delta = getattr(settings.policy.budget, "delta", 1e-6)
        check_probability("delta", delta)
        limit = settings.max_rewards_per_person
        return guarantee_for(
            settings.policy.budget,
            settings.unit,
            limit,
            spent,
            delta,
            worth=None if limit is None else worth_of_a_person(settings),
            per_reward=self.per_reward,
            private=self.private,
            joint=settings.policy.private_contexts,
            seeded=self.seeded,
        )


def promise_of(settings: Settings, door: Door) -> Promise:
    """Return the promise that a door keeps."""
    return Promise(settings, door.budget.level, door.secret, not door.noise.secret)


def _check_declared(policy: Policy[Any]) -> None:
    """Refuse what a policy may not declare."""
    if policy.factor is not None and type(policy).combination is not Policy.combination:
        raise InvalidInput(
            f"{type(policy).__name__} has a factor and a combination, and sums that leave together hold no earlier "
            "episode again: leave one of the two out"
        )
    if policy.waits_for not in ("all", "none"):
        raise InvalidInput(f"waits_for of {type(policy).__name__} must be 'all' or 'none', got {policy.waits_for!r}")
    for name in ("tree_levels", "weight_room", "declared_weight"):
        value = getattr(policy, name)
        if type(value) is not int or value < 0:  # a number of fixed size would wrap around where it is squared
            raise InvalidInput(f"{name} of {type(policy).__name__} must be an int of at least 0, got {value!r}")
