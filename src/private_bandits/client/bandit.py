"""A bandit of the service, with the verbs of an agent."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable
from typing import Any, NoReturn, Self, TypeVar, overload

from private_bandits.checks import check_probability, whole_number
from private_bandits.client.calling import Caller, Done
from private_bandits.client.calls import BANDIT, Call
from private_bandits.client.reading import (
    estimates_in,
    guarantee_in,
    ledger_of,
    settings_in,
    statement_in,
    verdict_in,
)
from private_bandits.client.refusals import TAKEN, closed
from private_bandits.client.sending import PAGE, checked_id, plain_actions, plain_person, plain_reward, rewards_of
from private_bandits.client.telling import tell_all
from private_bandits.guarantee import Guarantee
from private_bandits.ledger import Ledger
from private_bandits.policies import Estimate, Policy
from private_bandits.policies.named_offer import Actions
from private_bandits.state import Decision, DecisionCounts
from private_bandits.statement import Statement
from private_bandits.verdict import Verdict

T = TypeVar("T")

NOT_SERVED = {
    "predict": "the service does not predict: run an agent of your own for that",
    "learned": "the service does not show a policy's own state: see estimates(delta) and ledger",
    "warm_start": "the service takes no logs: start an agent in a file from the log, and move it in with `db import`",
}
"""Why a verb of agents is not here."""


class ServedBandit:
    """A bandit of the service, with the verbs of `Agent`. `Client.bandit` makes it. May be used from several threads.

    Args:
        caller: Makes the calls.
        name: The name of the bandit.
    """

    def __init__(self, caller: Caller, name: str) -> None:
        self._caller = caller
        self.name = name

    # Asking and telling.

    @overload
    def ask(self, n: None = None, *, actions: Actions | None = None, person: str | None = None) -> Decision: ...
    @overload
    def ask(self, n: int, *, actions: Actions | None = None, person: str | None = None) -> list[Decision]: ...

    def ask(
        self, n: int | None = None, *, actions: Actions | None = None, person: str | None = None
    ) -> Decision | list[Decision]:
        """Return the next decision, or a list of n, as `Agent.ask` does. Needs a key of the role ask.

        An ask that is sent again because its answer was lost has the decisions that it had. Of more than 1,000
        decisions each thousand is asked for on its own. Where that fails half-way, decisions made before stay open
        until they are given up.

        Raises:
            AgentFinished: The bandit is finished.
            BanditStopped: It is paused or closed, or its policy failed.
            OutcomeUnknown: There was no answer in time.
        """
        wanted = 1 if n is None else whole_number("n", n)
        body = {"person": plain_person(person), "actions": plain_actions(actions)}
        found: list[Decision] = []
        for first in range(0, wanted, PAGE):
            found += self._asked(body | {"n": min(PAGE, wanted - first)})
        return found[0] if n is None else found

    def _asked(self, body: dict[str, Any]) -> list[Decision]:
        headers = {"Idempotency-Key": secrets.token_urlsafe(24)}
        found = self._make("POST", "/decisions", body=body, headers=headers)
        return self._read(found, lambda data: [Decision(**one) for one in data["decisions"]])

    def tell(self, decision: Decision | str, reward: float, *, played: int | str | None = None) -> None:
        """Take the reward of a decision, once, as `Agent.tell` does. Needs a key of the role tell.

        A reward cannot be corrected: the first that is told counts. One that is sent again because its answer was lost
        counts once.

        Raises:
            ClosedDecision: Its reward was told before, or it was given up.
            UnknownDecision: The bandit never made it.
            OutcomeUnknown: There was no answer in time. Telling it again is safe.
        """
        key = checked_id(decision)
        done = self._make("PUT", "/decisions/{decision}/reward", decision=key, body=plain_reward(reward, played))
        outcome = self._read(done, lambda data: str(data["outcome"]))
        if outcome not in TAKEN and not (outcome == "already_recorded" and done.repeated):
            raise closed(key, outcome)

    def tell_many(self, rewards: Iterable[tuple[Any, ...]]) -> None:
        """Take many (decision, reward) or (decision, reward, played): any number, a thousand in each request.

        All are checked before any is sent. Each has an outcome of its own: where one is refused, all others are taken
        nevertheless, and the error is that of the first.

        Raises:
            ClosedDecision: The reward of one of them was told before, or it was given up, or it is twice in the list.
            UnknownDecision: The bandit never made one of them.
            OutcomeUnknown: There was no answer in time. Telling them again is safe.
        """
        tell_all(self._caller, self.name, rewards_of(rewards))

    def give_up(self, decision: Decision | str) -> None:
        """Close a decision whose reward will never come. Needs a key of the role tell.

        One that was given up before stays so.

        Raises:
            ClosedDecision: Its reward was told before.
            UnknownDecision: The bandit never made it.
        """
        key = checked_id(decision)
        done = self._make("POST", "/decisions/{decision}/give-up", decision=key)
        outcome = self._read(done, lambda data: str(data["outcome"]))
        if outcome != "given_up":
            raise closed(key, outcome)

    def finish(self) -> int:
        """Release what is unreleased, and take no rewards any more, as `Agent.finish` does. Needs the role operate.

        Returns how many rewards the closing releases hold; 0 where the bandit was finished before, or by a request of
        this call whose answer was lost.
        """
        return self._read(self._make("POST", "/finish"), lambda data: int(data["rewards"]))

    # Reading. All of it is public.

    def estimates(self, delta: float = 0.05) -> list[Estimate]:
        """Return each arm's mean with an interval, as `Agent.estimates` does. Needs a key of the role observe."""
        return self._read(self._get("/estimates", delta), estimates_in)

    def verdict(self, delta: float = 0.05) -> Verdict:
        """Return which arm is best, if that can be said, as `Agent.verdict` does. Needs a key of the role observe."""
        return self._read(self._get("/verdict", delta), verdict_in)

    def guarantee(self, delta: float | None = None) -> Guarantee:
        """Return what is promised and spent, as `Agent.guarantee` does. Needs a key of the role observe."""
        found, budget = self._get("/guarantee", delta), self.policy.budget
        return self._read(found, lambda data: guarantee_in(data, budget))

    def statement(self, delta: float = 0.05) -> Statement:
        """Return the statement of the trial, as `Agent.statement` does. Needs a key of the role observe."""
        return self._read(self._get("/statement", delta), statement_in)

    @property
    def ledger(self) -> Ledger:
        """Every release so far, read and verified as it is looked at. Needs a key of the role audit.

        Raises:
            ServiceFailed: What the service shows as its ledger is none.
        """
        return ledger_of(self._caller, self.name)

    @property
    def counts(self) -> DecisionCounts:
        """Decisions by what became of them. Needs a key of the role observe, operate or audit."""
        return self._described(lambda data: DecisionCounts(**data["counts"]))

    @property
    def finished(self) -> bool:
        """Whether `finish` was called. Needs a key of the role observe, operate or audit."""
        return self._described(lambda data: bool(data["finished"]))

    @property
    def policy(self) -> Policy[Any]:
        """The policy with the budget that was asked for. Needs a key of the role observe, operate or audit."""
        return self._described(lambda data: settings_in(data["settings"]).policy)

    @property
    def settings(self) -> dict[str, Any]:
        """The arguments that the bandit was made with, besides the policy. As `policy`."""
        return self._described(lambda data: settings_in(data["settings"]).shown)

    @property
    def open_decisions(self) -> list[Decision]:
        """Decisions that wait for a reward, oldest first. Needs a key of the role observe.

        The list of all decisions is read for it, a thousand in each request. There is none where contexts are private.
        """
        found: list[Decision] = []
        query: dict[str, str] | None = {}
        while query is not None:
            page = self._read(self._make("GET", "/decisions", query=query), dict)
            query = None if page["next"] is None else {"cursor": page["next"]}
            open_ones = (one for one in page["items"] if one["status"] == "open")
            found += (Decision(one["id"], one["action"], one["arm"]) for one in open_ones)
        return found

    # Its life.

    def close(self) -> None:
        """Close the connections of its client. The bandit goes on."""
        self._caller.connections.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"ServedBandit({self.name!r}, {self._caller.connections.url!r})"

    def __getattr__(self, name: str) -> NoReturn:
        reason = NOT_SERVED.get(name, f"a bandit of the service has no {name!r}")
        raise AttributeError(reason, name=name, obj=self)

    # Calls.

    def _get(self, place: str, delta: float | None) -> Done:
        query = {} if delta is None else {"delta": repr(check_probability("delta", delta))}
        return self._make("GET", place, query=query)

    def _described(self, read: Callable[[Any], T]) -> T:
        return self._read(self._make("GET", ""), read)

    def _make(self, method: str, place: str, **parts: Any) -> Done:
        return self._caller.make(Call(method, BANDIT + place, bandit=self.name, **parts))

    def _read(self, done: Done, read: Callable[[Any], T]) -> T:
        return self._caller.read(done, read)
