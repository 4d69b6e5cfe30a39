"""Opens a database, and puts new bandits into it."""

from __future__ import annotations

import os
from datetime import timedelta
from functools import partial
from typing import Any

from private_bandits.bandit import Bandit
from private_bandits.guarantee import Unit
from private_bandits.mechanism.rewards import RewardRange
from private_bandits.policies import Policy
from private_bandits.state import Settings
from private_bandits.storage.sql.database import Database
from private_bandits.storage.sql.stored import create_bandit
from private_bandits.wiring import new_bandit

__all__ = ["Database", "create", "open_database"]


def open_database(address: str | os.PathLike[str]) -> Database:
    """Return a database, by its address: a path, or postgresql://USER:PASSWORD@HOST/NAME."""
    return Database(address)


def create(
    database: Database,
    name: str,
    policy: Policy[Any],
    reward_range: tuple[float, float] | RewardRange = (0.0, 1.0),
    *,
    give_up_after: int | timedelta | None,
    max_rewards_per_person: int | None = None,
    unit: Unit = "reward",
    one_reward_per_episode: bool = False,
    control: int | str | None = None,
    control_share: float | None = None,
    seed: int | None = None,
    plan: Any = None,
) -> None:
    """Put a new bandit into a database. The arguments are those of `Agent`.

    Args:
        database: The database.
        name: The name of the bandit.
        policy: What to recommend, and the budget to keep.
        reward_range: The bounds of rewards, chosen before any reward is seen.
        give_up_after: When a decision without a reward is given up. None has to be said: an ask whose answer was lost
            stays open for ever then.
        max_rewards_per_person: Later rewards of a person are not taken.
        unit: What the budget is for.
        one_reward_per_episode: Whether a second reward of a person in an open sum is not taken.
        control: An arm that a coin gives out.
        control_share: The probability of that.
        seed: Foreseeable noise, for tests.
        plan: The plan of the trial, as plain data.

    Raises:
        BanditExists: There is one of this name.
    """
    settings = Settings(
        policy=policy,
        reward_range=RewardRange.of(reward_range),
        max_rewards_per_person=max_rewards_per_person,
        unit=unit,
        seed=seed,
        give_up_after=give_up_after,
        one_reward_per_episode=one_reward_per_episode,
        control=control,
        control_share=control_share,
    )
    new_bandit(Bandit, settings, partial(create_bandit, database, name), None, plan)
