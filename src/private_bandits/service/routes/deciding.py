"""Routes of those who ask and tell."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Header, Path
from starlette.requests import Request

from private_bandits.protocol.problems import problem_of
from private_bandits.service.guarded import GuardedRoute, caller_of
from private_bandits.service.operations import LONGEST_KEY, Ask, GiveUp, Tell
from private_bandits.service.running import service_of
from private_bandits.service.shapes import (
    AskSent,
    Decisions,
    DecisionShown,
    ItemOutcome,
    Outcomes,
    OutcomeShown,
    ProblemShown,
    RewardSent,
    RewardsSent,
)
from private_bandits.service.submitting import submit, submit_many

router = APIRouter(prefix="/v1/bandits/{bandit}", route_class=GuardedRoute, tags=["asking and telling"])

Bandit = Annotated[str, Path(max_length=200, description="The name of the bandit.")]
Decision = Annotated[str, Path(max_length=200, description="The id of the decision.")]
Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=LONGEST_KEY,
        description="Under it the same ask may come again for a day, and has the same answer.",
    ),
]


@router.post("/decisions")
async def ask(request: Request, bandit: Bandit, body: AskSent, idempotency_key: Key = None) -> Decisions:
    """Make decisions. With an Idempotency-Key it is safe to repeat."""
    service, caller = service_of(request), caller_of(request)
    operation = Ask(body.n, body.person, body.actions, caller.number, idempotency_key)
    made = await submit(service, bandit, operation)
    return Decisions.model_construct(decisions=[DecisionShown.model_construct(**one._asdict()) for one in made])


@router.put("/decisions/{decision}/reward")
async def tell(request: Request, bandit: Bandit, decision: Decision, body: RewardSent) -> OutcomeShown:
    """Tell the reward of a decision. It counts once: told again it is `already_recorded`, whatever its value."""
    outcome = await submit(service_of(request), bandit, Tell(decision, body.reward, body.played))
    return OutcomeShown.model_construct(outcome=outcome)


@router.post("/rewards")
async def tell_many(request: Request, bandit: Bandit, body: RewardsSent) -> Outcomes:
    """Tell the rewards of up to 1,000 decisions. Each has an outcome of its own, in their order."""
    told = [Tell(item.decision, item.reward, item.played) for item in body.items]
    found = await submit_many(service_of(request), bandit, told)
    return Outcomes.model_construct(outcomes=[_item(outcome) for outcome in found])


def _item(outcome: Any) -> ItemOutcome:
    if isinstance(outcome, BaseException):
        return ItemOutcome(problem=ProblemShown(**problem_of(outcome).to_dict()))
    return ItemOutcome.model_construct(outcome=outcome)


@router.post("/decisions/{decision}/give-up")
async def give_up(request: Request, bandit: Bandit, decision: Decision) -> OutcomeShown:
    """Close a decision whose reward will never come. One that is closed says how it ended."""
    outcome = await submit(service_of(request), bandit, GiveUp(decision))
    return OutcomeShown.model_construct(outcome=outcome)
