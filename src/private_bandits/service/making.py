"""Makes a bandit of what an operator sent. All of it is public, so that a refusal may say what is wrong with it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from private_bandits.budget import BUDGETS, Budget, NoPrivacy
from private_bandits.errors import BanditExists, DatabaseFailed, InvalidInput, OutcomeUnknown
from private_bandits.policies import POLICIES, Policy
from private_bandits.protocol.problems import NEVER_GIVES_UP, NO_PRIVACY, SETTINGS_REFUSED, Refused
from private_bandits.service.creating import create
from private_bandits.service.shapes import BanditSent, PolicySent
from private_bandits.storage.sql.database import Database

LONGEST_REASON = 500


def make_bandit(database: Database, sent: BanditSent, allow_no_privacy: bool) -> None:
    """Put a new bandit into a database.

    Args:
        database: The database.
        sent: What it is to be.
        allow_no_privacy: Whether it may have a seed, or no noise.

    Raises:
        Refused: It cannot be made so.
        BanditExists: There is one of this name.
    """
    if (sent.give_up_after_seconds is None) is not sent.never_give_up:
        raise Refused(NEVER_GIVES_UP)
    if not allow_no_privacy and (sent.seed is not None or sent.policy.budget.kind == NoPrivacy.__name__):
        raise Refused(NO_PRIVACY)
    try:
        _create(database, sent)
    except (BanditExists, DatabaseFailed, OutcomeUnknown):
        raise
    except InvalidInput as error:
        reason = str(error)[:LONGEST_REASON]
    except Exception:  # a parameter of a type that the policy did not expect
        reason = "its policy refuses these parameters"
    else:
        return
    raise Refused(SETTINGS_REFUSED, reason=reason)


def _create(database: Database, sent: BanditSent) -> None:
    after = sent.give_up_after_seconds
    low, high = sent.reward_range
    create(
        database,
        sent.name,
        _policy(sent.policy),
        (low, high),
        give_up_after=None if after is None else timedelta(seconds=after),
        max_rewards_per_person=sent.max_rewards_per_person,
        unit=sent.unit,
        one_reward_per_episode=sent.one_reward_per_episode,
        control=sent.control,
        control_share=sent.control_share,
        seed=sent.seed,
        plan=sent.plan,
    )


def _policy(sent: PolicySent) -> Policy[Any]:
    kind: Any = POLICIES.get(sent.name)
    if kind is None:
        raise InvalidInput(f"the policy must be one of {', '.join(sorted(POLICIES))}")
    given = {name: value for name, value in sent.budget.model_dump().items() if name != "kind" and value is not None}
    budget: Budget = BUDGETS[sent.budget.kind](**given)
    if "budget" in sent.parameters:
        raise InvalidInput("the budget stands beside the parameters of a policy, not among them")
    found: Policy[Any] = kind(**sent.parameters, budget=budget)
    return found
