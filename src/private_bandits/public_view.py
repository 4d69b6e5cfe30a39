"""The public view: everything that anyone may see of a bandit, as it stood at one moment.

Statements, pages and `private-bandits show` read a bandit through this alone. It holds releases, what the policy made
of them, and counts of decisions: never a reward, a sum that was not released, or a person.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from private_bandits.bandit import Bandit
from private_bandits.checks import check_probability
from private_bandits.errors import AgentFileInvalid
from private_bandits.guarantee import Guarantee
from private_bandits.ledger import Release
from private_bandits.plain_data import json_number
from private_bandits.policies import Estimate, Policy
from private_bandits.state import DecisionCounts, Settings
from private_bandits.verdict import Closing, Verdict, estimates_on, verdict_on
from private_bandits.wiring import Promise, promise_of, run_policy_of

VIEW_FORMAT = 1
"""The form of a view as plain data. A version that writes another one has another number."""
NO_SALT = "0" * 32
"""In place of the salt, which keeps people's names out of the records and is in no view."""


@dataclass(frozen=True)
class PublicView:
    """A bandit as anyone may see it.

    Args:
        promise: The settings, and how much noise protects one reward.
        policy: The policy that is run, with the budget of one reward.
        state: The policy's state, made of releases; None where the policy failed.
        counts: Decisions by what became of them.
        opening: The text that the ledger begins with: the public settings and the plan.
        releases: The number of rows of the ledger.
        released: The number of rewards in them.
        head: The head of the ledger, which stands for all of its rows.
        spent: The cost of all releases to the reward that they cost most.
        closing_from: The number of the first closing release, or that it would have; 0: the bandit is not finished.
        rows: All rows of the ledger, where it is finished; else nothing.
        failed: How the policy failed, if it did.
        version: The version of this package that ran it.
    """

    promise: Promise
    policy: Policy[Any]
    state: Any
    counts: DecisionCounts
    opening: str
    releases: int
    released: int
    head: str
    spent: float
    closing_from: int
    rows: Sequence[Release]
    failed: str | None
    version: str

    @property
    def settings(self) -> Settings:
        """The settings that the bandit was made with."""
        return self.promise.settings

    @property
    def finished(self) -> bool:
        """Whether the closing release was made, so that no reward is taken any more."""
        return self.closing_from > 0

    @property
    def plan(self) -> Any:
        """The plan that the ledger begins with, if there is one."""
        return json.loads(self.opening).get("plan")

    @cached_property
    def _closing(self) -> Closing | None:
        return Closing(self.rows, self.closing_from) if self.finished else None

    def estimates(self, delta: float = 0.05) -> list[Estimate]:
        """Return each arm's mean with an interval, as `Agent.estimates` does; nothing where the policy failed."""
        check_probability("delta", delta)
        if self.failed is not None:
            return []
        return estimates_on(self.state, self.policy, delta, self.settings.reward_range, self._closing)

    def verdict(self, delta: float = 0.05) -> Verdict | None:
        """Return which arm is best, as `Agent.verdict` does; None where there are no fixed arms, or the policy failed.

        Args:
            delta: The probability that a wrong arm is ever declared is at most this.
        """
        check_probability("delta", delta)
        if self.failed is not None or not self.policy.arm_names:
            return None
        return verdict_on(self.state, self.policy, delta, self.settings.reward_range, self._closing)

    def guarantee(self, delta: float | None = None) -> Guarantee:
        """Return the promise, as `Agent.guarantee` does."""
        return self.promise.guarantee(self.spent, delta)

    def to_dict(self) -> dict[str, Any]:
        """Return the view as plain data, from which `from_dict` makes the same view."""
        return {
            "format": VIEW_FORMAT,
            "version": self.version,
            "opening": self.opening,
            "per_reward": json_number(self.promise.per_reward),
            "private": self.promise.private,
            "seeded": self.promise.seeded,
            "policy": None if self.failed is not None else self.policy.dump_state(self.state),
            "failed": self.failed,
            "counts": asdict(self.counts),
            "releases": self.releases,
            "released": self.released,
            "head": self.head,
            "spent": json_number(self.spent),
            "closing_from": self.closing_from,
            "rows": [row.text for row in self.rows],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> PublicView:
        """Return the view that `to_dict` wrote.

        Raises:
            AgentFileInvalid: A version wrote it whose views are of another form.
            InvalidInput: Its policy is not known here: the module that defines it has to be imported first.
        """
        if data["format"] != VIEW_FORMAT:
            raise AgentFileInvalid(f"has the form {data['format']}, and this version reads the form {VIEW_FORMAT}")
        settings = Settings.from_dict(json.loads(data["opening"])["settings"] | {"salt": NO_SALT})
        promise = Promise(settings, _number(data["per_reward"]), data["private"], data["seeded"])
        policy = run_policy_of(settings)
        return cls(
            promise=promise,
            policy=policy,
            state=None if data["failed"] is not None else policy.load_state(data["policy"]),
            counts=DecisionCounts(**data["counts"]),
            opening=data["opening"],
            releases=data["releases"],
            released=data["released"],
            head=data["head"],
            spent=_number(data["spent"]),
            closing_from=data["closing_from"],
            rows=[Release.from_text(text) for text in data["rows"]],
            failed=data["failed"],
            version=data["version"],
        )


def view_of(bandit: Bandit, still_open: int, version: str) -> PublicView:
    """Return the public view of a bandit as it stands.

    Args:
        bandit: The bandit, between two of its changes.
        still_open: The number of decisions that are open.
        version: The version of this package.
    """
    account, closing = bandit.door.account, bandit.closing()
    return PublicView(
        promise=promise_of(bandit.settings, bandit.door),
        policy=bandit.policy,
        state=bandit.public.policy,
        counts=bandit.public.counts(still_open),
        opening=account.opening,
        releases=len(account),
        released=account.rewards,
        head=account.head,
        spent=account.total,
        closing_from=bandit.public.ended.closing_from,
        rows=() if closing is None else closing.rows,
        failed=bandit.failed,
        version=version,
    )


def _number(value: Any) -> float:
    """Return a number that `json_number` made fit for JSON."""
    return math.inf if value == "inf" else float(value)
