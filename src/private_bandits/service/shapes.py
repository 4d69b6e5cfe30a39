"""The bodies of requests and answers. /openapi.json is made from them. None has an example of a reward or a person."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from private_bandits.service.operations import Outcome

MOST_ITEMS = 1000
MONTH_SECONDS = 30 * 24 * 3600.0

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9._-]*$", max_length=100)]
Text = Annotated[str, Field(pattern=r"^[^\x00-\x1f\x7f]+$", max_length=500)]
Number = Annotated[float, Field(allow_inf_nan=False)]
Vector = Annotated[list[Number], Field(min_length=1, max_length=MOST_ITEMS)]
Id = Annotated[str, Field(max_length=200)]


class Sent(BaseModel):
    """What is sent: nothing else, and nothing of another type."""

    model_config = ConfigDict(extra="forbid", strict=True, hide_input_in_errors=True)


class Shown(BaseModel):
    """What is answered."""

    model_config = ConfigDict(ser_json_inf_nan="strings")


# Bandits.


class Budget(Sent):
    """The promise: zCDP(rho), ApproxDP(epsilon, delta), RenyiDP(alpha, epsilon), PureDP(epsilon) or NoPrivacy()."""

    kind: Literal["zCDP", "ApproxDP", "RenyiDP", "PureDP", "NoPrivacy"]
    rho: Number | None = None
    epsilon: Number | None = None
    delta: Number | None = None
    alpha: Number | None = None


class PolicySent(Sent):
    """A policy, as `private-bandits policies` names it, its budget, and its parameters by name."""

    name: Text = Field(description="The name of the policy.")
    budget: Budget
    parameters: dict[str, Any] = Field(
        default_factory=dict, max_length=50, description="Of the policy: arms, n_arms, actions, dimension, growth, ..."
    )


class BanditSent(Sent):
    """A new bandit. Everything here is public: its ledger begins with it."""

    name: Name = Field(description="Fit for addresses, and there once.")
    policy: PolicySent
    reward_range: Annotated[list[Number], Field(min_length=2, max_length=2)] = Field(
        default=[0.0, 1.0], description="[low, high], chosen before any reward is seen. Rewards outside are clipped."
    )
    max_rewards_per_person: int | None = Field(
        default=None, ge=1, le=10**9, description="Later rewards of a person are not taken. Asks then name the person."
    )
    unit: Literal["reward", "person"] = Field(default="reward", description="What the budget is for.")
    one_reward_per_episode: bool = Field(
        default=False, description="Whether a second reward of a person in an open sum is not taken."
    )
    give_up_after_seconds: Annotated[float, Field(gt=0, le=10 * 366 * 24 * 3600.0)] | None = Field(
        default=MONTH_SECONDS,
        description="A decision without a reward is given up after this time. null needs never_give_up.",
    )
    never_give_up: bool = Field(
        default=False, description="Confirms give_up_after_seconds: null. An ask whose answer was lost stays open then."
    )
    control: Text | None = Field(default=None, description="An arm that a coin gives out.")
    control_share: Number | None = Field(default=None, description="The probability of that.")
    seed: int | None = Field(
        default=None,
        ge=0,
        le=2**62,
        description="Foreseeable noise, for tests: no privacy. The server has to allow it.",
    )
    plan: Any = Field(default=None, description="The plan of the trial, as plain data. The ledger begins with it.")


class StatusSent(Sent):
    """What a bandit is to do from now on."""

    status: Literal["active", "paused", "closed"] = Field(
        description="paused: it makes no decisions and takes rewards. closed: it does nothing any more, for good."
    )


class BanditLine(Shown):
    """A bandit in a list."""

    name: str
    status: str = Field(description="active, paused, closed or frozen.")
    created: int = Field(description="In microseconds since 1970.")
    private: bool = Field(description="Whether anything is promised.")
    warning: str | None = Field(description="Why nothing is promised, if so.")


class BanditList(Shown):
    """Bandits, in the order in which they were made."""

    items: list[BanditLine]
    next: str | None = Field(description="The cursor of the next page; null: there is none.")


class Counts(Shown):
    """Decisions by what became of them: asked = open + told + given_up + over_limit + dropped + unknown."""

    asked: int
    open: int
    told: int
    given_up: int
    out_of_time: int
    over_limit: int
    dropped: int
    unknown: int


class BanditShown(BanditLine):
    """A bandit: its settings, and where it stands."""

    failed: str | None = Field(description="How its policy failed, if it did.")
    finished: bool
    settings: dict[str, Any] = Field(description="As it was made, the policy and its budget among them.")
    plan: Any
    counts: Counts
    releases: int = Field(description="Rows of its ledger.")
    head: str = Field(description="Stands for all of them.")


# Asking and telling.


class AskSent(Sent):
    """An ask."""

    n: int = Field(default=1, ge=1, le=MOST_ITEMS, description="How many decisions.")
    person: Annotated[str, Field(min_length=1, max_length=500)] | None = Field(
        default=None, description="For whom, where the bandit has a limit for each person. Only a keyed hash is kept."
    )
    actions: (
        Annotated[list[Vector], Field(min_length=1, max_length=MOST_ITEMS)]
        | Annotated[dict[Text, Vector], Field(min_length=1, max_length=MOST_ITEMS)]
        | None
    ) = Field(default=None, description="To choose from, where they change: a vector each, or vectors by name.")


class DecisionShown(Shown):
    """A decision."""

    id: str = Field(description="Its reward is told to this id.")
    action: int = Field(description="The index of the action.")
    arm: str = Field(description="The name of the action.")


class Decisions(Shown):
    """Decisions, new or those that the same ask had before."""

    decisions: list[DecisionShown]


Played = Annotated[int, Field(ge=0, le=2**31)] | Annotated[str, Field(max_length=500)] | None
_PLAYED = Field(default=None, description="The action really taken, by index or name, where it was another.")


class RewardSent(Sent):
    """The reward of a decision."""

    reward: Number = Field(description="Clipped to the reward range.")
    played: Played = _PLAYED


class RewardItem(RewardSent):
    """The reward of one decision among others."""

    decision: Id = Field(description="The id of the decision.")


class RewardsSent(Sent):
    """Rewards of several decisions. Each has an outcome of its own."""

    items: Annotated[list[RewardItem], Field(max_length=MOST_ITEMS)]


class OutcomeShown(Shown):
    """What became of a decision."""

    outcome: Outcome


class ProblemShown(Shown):
    """A problem (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    request_id: str | None = None
    errors: list[dict[str, str]] | None = Field(default=None, description="Where a request is not valid, and how.")


class ItemOutcome(Shown):
    """What became of one reward of a list: its outcome, or the problem with it."""

    outcome: Outcome | None = None
    problem: ProblemShown | None = None


class Outcomes(Shown):
    """What became of the rewards of a list, in their order."""

    outcomes: list[ItemOutcome]


class Finished(Shown):
    """The end of a bandit."""

    rewards: int = Field(description="How many rewards the closing releases hold; 0: it was finished before.")


# Reading.


class DecisionLine(Shown):
    """A decision in a list. Times are in microseconds since 1970."""

    id: str
    number: int
    action: int
    arm: str
    status: str
    asked_at: int
    closed_at: int | None


class DecisionList(Shown):
    """Decisions, oldest first."""

    items: list[DecisionLine]
    next: str | None = Field(description="The cursor of the next page; null: there is none yet.")


class EstimateShown(Shown):
    """What the releases say of an arm: its mean, and an interval that holds it. rewards: how many say it."""

    action: int
    arm: str
    mean: float | None
    low: float
    high: float
    rewards: int


class FromReleases(Shown):
    """What follows from releases."""

    releases: int
    head: str
    private: bool
    warning: str | None


class Estimates(FromReleases):
    """Each arm's mean with an interval. All hold together, at all times, with probability at least 1 - delta."""

    delta: float
    estimates: list[EstimateShown]


class DifferenceShown(Shown):
    """How much better one arm is than another, with an interval."""

    first: str
    second: str
    mean: float | None
    low: float
    high: float


class VerdictShown(FromReleases):
    """Which arm is best, if that can be said. Looking is free."""

    winner: str | None
    action: int | None
    delta: float
    conditions: list[str]
    differences: list[DifferenceShown]


class GuaranteeShown(FromReleases):
    """What is promised, and what is spent of it. Infinity is the text "inf"."""

    unit: str
    budget: str
    promised: float | str
    spent: float | str
    epsilon: float | str
    delta: float | str
    per_reward: float | str
    per_person: float | str | None
    guessed_right: float
    words: str


class ActivitySpan(Shown):
    """The decisions that were asked in one span of time, by what became of them so far, and by action."""

    start: int = Field(description="In microseconds since 1970.")
    asked: int
    statuses: dict[str, int]
    actions: dict[str, int] | None = Field(description="By name; null where actions change.")


class Activity(Shown):
    """Decisions over time."""

    span_seconds: int
    items: list[ActivitySpan]


# Keys.


class KeySent(Sent):
    """A new key."""

    name: Annotated[str, Field(min_length=1, max_length=100)] = Field(description="For people: whose key it is.")
    role: Literal["ask", "tell", "observe", "operate", "audit", "admin"]
    bandit: Name | None = Field(default=None, description="The bandit that it is for; null: all of them.")


class KeyShown(Shown):
    """A key, without the text that its owner keeps. Times are in microseconds since 1970."""

    number: int
    name: str
    role: str
    bandit: str | None
    created: int
    revoked: int | None


class KeyList(Shown):
    """Keys, oldest first, the revoked ones too."""

    items: list[KeyShown]
    next: str | None = Field(description="The cursor of the next page; null: there is none.")


class NewKeyShown(KeyShown):
    """A new key."""

    key: str = Field(description="What its owner keeps. It is shown this once.")


class Health(Shown):
    """Whether the worker can serve."""

    status: Literal["ok"]


def known_names() -> frozenset[str]:
    """Return the names of all members that may be sent."""
    return frozenset(name for kind in _all(Sent) for name in kind.model_fields)


def _all(kind: type[BaseModel]) -> list[type[BaseModel]]:
    found = list(kind.__subclasses__())
    return found + [deeper for one in found for deeper in _all(one)]
