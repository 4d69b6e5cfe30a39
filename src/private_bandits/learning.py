"""Runs the policy of a bandit: it learns each release once that is lasting, and a failure ends the bandit.

Policies are other people's code. One may fail at some releases and not at others. Were a release drawn again then, the
number of failures would tell of rewards that no row of the ledger charges. So a policy is given a release once it is in
the records for good, a failure ends the bandit, and whoever resumes it runs the policy on the stored release.
"""

from __future__ import annotations

from typing import Any, NoReturn

from private_bandits.arguments import encoded
from private_bandits.errors import AgentClosed, PolicyFailed
from private_bandits.ledger import Release
from private_bandits.policies import Policy
from private_bandits.state import PublicState, Records

NO_END = 2**62
"""No release has so large a number."""


class Learning:
    """The one policy of a bandit, with the budget that one reward gets, and how it is run."""

    def __init__(self, policy: Policy[Any], public: PublicState, records: Records) -> None:
        self.policy = policy
        self.public = public
        self.records = records
        self.ended: str | None = None
        """Why no change is possible any more."""
        self.failed: str | None = None
        """How the policy failed, if it did."""
        self._lasting = records.lasting
        self._learned = self._encoded = 0  # releases that the policy has learned, and that its state in the records has
        self._has_arrivals = False  # whether rewards arrived that the records do not know of

    def learn(self, row: Release) -> None:
        """Let the policy learn a release. It is in the ledger for good by now, whatever the policy makes of it.

        Were it not, a policy that fails at some values and not at others would choose among draws, and the choice
        would tell of rewards that no row charges. A closing release holds fewer rewards than a policy with arms planned
        for: what it says is read from the ledger (closing.py).
        """
        if self.is_closing(row) and self.policy.arm_names:
            self._learned = row.number
            return
        failure: BaseException | None = None
        try:
            self.policy.learn(self.public.policy, row, self.public.asked + 1)
        except BaseException as error:
            failure = error
        if failure is not None:
            self._fail(f"at release {row.number}", failure)
        self._learned = row.number

    @property
    def finished(self) -> bool:
        """Whether the closing release was made, so that no reward is taken any more."""
        return self.public.ended.closing_from > 0

    def is_closing(self, row: Release) -> bool:
        """Whether a release is one of those that closed the bandit."""
        return 0 < self.public.ended.closing_from <= row.number

    @property
    def has_unsaved_learning(self) -> bool:
        """Whether the policy has learned more than its state in the records has."""
        return self._learned > self._encoded

    def resume(self, state: Any, learned: int) -> None:
        """Load the stored state of the policy, which has learned so many releases, and let it learn the others."""
        self._learned = self._encoded = learned
        failure: BaseException | None = None
        try:
            self.public.policy = self.policy.load_state(state)
        except BaseException as error:
            failure = error
        if failure is not None:
            self._fail("at its stored state", failure)
        for row in self.records.releases(learned + 1, NO_END):
            self.learn(row)

    def encode_changes(self) -> None:
        """Give the records what the policy has learned, and what arrived, as JSON."""
        self._encode_learned()
        if self.policy.changes_on_arrival and self._has_arrivals:
            self._encode_arrivals()

    def encode_before_draw(self) -> None:
        """Encode what the policy knows besides its releases, so that none of its code runs between draw and record."""
        if self._lasting and self.policy.changes_on_arrival:
            self._encode_learned()
            self._encode_arrivals()

    def _encode_arrivals(self) -> None:
        self.records.arrived(encoded(self.policy.dump_arrivals(self.public.policy)))
        self._has_arrivals = False

    def _encode_learned(self) -> None:
        """Encode the policy's state where it has learned something that the records do not have yet."""
        if not self.has_unsaved_learning:
            return
        failure: BaseException | None = None
        try:
            self.records.encoded(self._learned, encoded(self.policy.dump_state(self.public.policy)))
            self._encoded, self._has_arrivals = self._learned, False
        except BaseException as error:
            failure = error
        if failure is not None:
            self._fail("to write its state down", failure)

    def _fail(self, where: str, failure: BaseException) -> NoReturn:
        """Stop for good, with everything released in the ledger. Raises what the caller is told.

        The policy's own words are not passed on, nor its frames: they hold what the caller of `tell` told.
        """
        self.failed = f"{type(self.policy).__name__} failed {where}, with {type(failure).__name__}"
        if isinstance(failure, Exception):
            self.refuse()
        failure.__context__ = failure.__cause__ = None
        raise failure.with_traceback(None)

    def refuse(self) -> NoReturn:
        """Say why nothing can be done any more."""
        if self.failed is not None:
            raise PolicyFailed(
                f"{self.failed}. Everything released is in the agent's ledger, and nothing is drawn again. Mend the "
                f"policy, whose learn gets the last row of the ledger{self._how_to_go_on()}"
            )
        reason = self.ended or "was interrupted"
        raise AgentClosed(f"the agent {reason}{self._how_to_go_on()}")

    def _how_to_go_on(self) -> str:
        return ": resume it with Agent.open(path)" if self._lasting else ": it was in memory, make a new one"
