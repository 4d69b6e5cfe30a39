"""The facts of a statement: everything that its words are made of, taken from a public view at one moment."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any, Literal

from private_bandits.guarantee import Guarantee
from private_bandits.ledger.chain import digest, short_head
from private_bandits.policies import Estimate, Policy
from private_bandits.public_view import PublicView
from private_bandits.state import DecisionCounts, Settings
from private_bandits.verdict import Difference, Verdict

MOST_PAIRED = 6
"""Arms of which a statement has the difference of each pair, at most: of more the pairs are too many to read."""

Status = Literal["running", "finished", "failed"]


@dataclass(frozen=True)
class Facts:
    """Everything that a statement says.

    Args:
        written: The moment that the statement is about.
        version: The version of this package that ran the bandit.
        failed: How the policy failed, if it did.
        finished: Whether the closing release was made.
        settings: The settings that the bandit was made with.
        policy: The policy that is run.
        opening: What the ledger begins with, as plain data.
        counts: Decisions by what became of them.
        delta: The probability that the intervals fail, and that the verdict does.
        estimates: Each arm's mean with its interval; empty where there are no fixed arms, or the policy failed.
        verdict: Which arm is best; None where there are no fixed arms, or the policy failed.
        guarantee: The promise.
        releases: The number of rows of the ledger.
        released: The number of outcomes in them.
        head: The head of the ledger.
        first_head: The head that the ledger had before the first release.
    """

    written: str
    version: str
    failed: str | None
    finished: bool
    settings: Settings
    policy: Policy[Any]
    opening: dict[str, Any]
    counts: DecisionCounts
    delta: float
    estimates: list[Estimate]
    verdict: Verdict | None
    guarantee: Guarantee
    releases: int
    released: int
    head: str
    first_head: str

    @property
    def status(self) -> Status:
        """Whether the trial is running."""
        return "failed" if self.failed is not None else "finished" if self.finished else "running"

    @property
    def plan(self) -> Any:
        """The plan that the ledger begins with, if there is one."""
        return self.opening.get("plan")

    @property
    def may_have_log(self) -> bool:
        """Whether outcomes from before the first decision may be among those told: most policies can take a log.

        No public record says whether there was one.
        """
        return self.policy.supports_warm_start and not self.policy.private_contexts

    @property
    def differences(self) -> list[Difference]:
        """How much better one arm is than another, for each pair of arms, where there are few."""
        few = self.verdict is not None and len(self.policy.arm_names) <= MOST_PAIRED
        return self.verdict.differences if self.verdict is not None and few else []

    @property
    def unreleased(self) -> int:
        """How many outcomes were told and are in no release yet. Decisions of unknown end may be among them."""
        return max(0, self.counts.told + self.counts.unknown - self.released)

    @property
    def used(self) -> int:
        """How many released outcomes are in the estimates: some methods forget earlier releases."""
        in_each = [found.rewards for found in self.estimates]
        return max(in_each, default=0) if self.policy.setting == "linear" else sum(in_each)

    def to_dict(self) -> dict[str, Any]:
        """Return the facts as plain data."""
        told = self.verdict
        verdict = None
        if told is not None:
            verdict = {"winner": told.winner, "action": told.action, "conditions": list(told.conditions)}
        chained = {name: it for name, it in self.opening.items() if name == "chained"}
        return {
            "written": self.written,
            "version": self.version,
            "status": self.status,
            "failed": self.failed,
            "settings": self.opening["settings"],
            "plan": self.plan,
            "counts": asdict(self.counts) | {"released": self.released, "unreleased": self.unreleased},
            "delta": self.delta,
            "estimates": [found._asdict() for found in self.estimates],
            "verdict": verdict,
            "differences": [pair._asdict() for pair in self.differences],
            "guarantee": self.guarantee.to_dict(),
            "ledger": {"releases": self.releases, "head": self.head, "first_head": self.first_head} | chained,
        }


def facts_of(view: PublicView, delta: float, written: str) -> Facts:
    """Take the facts from a view. Nothing of them changes when the bandit goes on."""
    return Facts(
        written=written,
        version=view.version,
        failed=view.failed,
        finished=view.finished,
        settings=view.settings,
        policy=view.policy,
        opening=json.loads(view.opening),
        counts=view.counts,
        delta=delta,
        estimates=view.estimates(delta),
        verdict=view.verdict(delta),
        guarantee=view.guarantee(),
        releases=view.releases,
        released=view.released,
        head=view.head,
        first_head=short_head(0, digest(view.opening)),
    )
