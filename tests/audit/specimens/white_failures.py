"""White specimens that are broken in their failures, and in the words of errors beside their text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import private_bandits as pb
from private_bandits.agent import bandit_of
from private_bandits.bandit import Bandit, Told
from private_bandits.ledger import Release
from private_bandits.policies.doubling import DoublingState
from tests.audit.specimens.listing import StrPath, correct, specimen
from tests.audit.specimens.white_parts import _open_sums, open_decisions, running, small_policy
from tests.audit.specimens.white_shown import _Talkative
from tests.audit.specimens.white_sums import _sum_with


class FailsByRelease(pb.AdaCUCB):
    def learn(self, state: DoublingState, release: Release, step: int) -> None:
        if release.number > 2 and release.values[0] > 2:
            raise ArithmeticError("such a sum is not expected")
        super().learn(state, release, step)


@correct()
def make_white_learn_fails_by_release() -> pb.Agent:
    """Correct: the policy fails at a large release, which everybody may know."""
    return pb.Agent(small_policy(kind=FailsByRelease))


class _ExitsByRelease(pb.AdaCUCB):
    def learn(self, state: DoublingState, release: Release, step: int) -> None:
        if release.number > 2 and release.values[0] < -1:
            raise SystemExit(3)
        super().learn(state, release, step)


@correct()
def make_white_learn_exits_by_release() -> pb.Agent:
    """Correct: the policy wants to end the process at a low release, which everybody may know."""
    return pb.Agent(small_policy(kind=_ExitsByRelease))


class _RestsAtTimes(pb.AdaCUCB):
    def recommend(self, state: DoublingState, waiting: Any, arrived: Any, step: int) -> int:
        if step % 5 == 0 and sum(waiting) > 1:
            raise RuntimeError(f"step {step} has to wait for {sum(waiting)} rewards")
        return super().recommend(state, waiting, arrived, step)


@correct()
def make_white_recommend_fails_by_step() -> pb.Agent:
    """Correct: every fifth ask fails while two decisions are open, which everybody may know."""
    return pb.Agent(small_policy(kind=_RestsAtTimes))


class _PublicNotes(_Talkative):
    def told_instead(self, error: pb.errors.PrivateBanditsError) -> pb.errors.PrivateBanditsError:
        error.add_note(f"{self.public.asked} decisions so far, {len(open_decisions(self))} open")
        error.__cause__ = KeyError(len(self.door.account))
        return error


@correct()
def make_white_public_notes(path: StrPath | None = None) -> pb.Agent:
    """Correct: errors have notes, and a cause, that tell how many decisions and releases there were."""
    return running(_PublicNotes)(small_policy(), path=path)


class _NoteTellsSums(_Talkative):
    def told_instead(self, error: pb.errors.PrivateBanditsError) -> pb.errors.PrivateBanditsError:
        if isinstance(error, pb.errors.ClosedDecision):
            error.add_note(f"sums in the works: {_open_sums(self)}")
        return error


@specimen(cost=math.inf, shows="errors")
def make_white_note_tells_sums() -> pb.Agent:
    """Telling a decision twice is refused with the open sums in a note: infinite."""
    return running(_NoteTellsSums)(small_policy())


class _CauseTellsSums(_Talkative):
    def told_instead(self, error: pb.errors.PrivateBanditsError) -> pb.errors.PrivateBanditsError:
        if not isinstance(error, pb.errors.UnknownDecision):
            return error
        unknown = pb.errors.UnknownDecision("unknown")
        unknown.__cause__ = ValueError(f"{error}: {_open_sums(self)}")
        return unknown


@specimen(cost=math.inf, shows="errors")
def make_white_cause_tells_sums() -> pb.Agent:
    """Telling an unknown decision is refused because of an error that has the open sums in its text: infinite."""
    return running(_CauseTellsSums)(small_policy())


class _ContextTellsSums(pb.Agent):
    def tell_many(self, rewards: Any) -> None:
        items = list(rewards)
        try:
            if len({repr(item) for item in items}) < len(items):
                raise ValueError(f"twice in a batch, beside {_open_sums(bandit_of(self))}")
        except ValueError:
            raise pb.errors.ClosedDecision("a decision is twice in the batch") from None
        super().tell_many(items)


@specimen(cost=math.inf, shows="errors")
def make_white_context_tells_sums() -> pb.Agent:
    """A batch with a decision twice is refused while another error, with the open sums, is handled: infinite.

    `from None` hides it from a traceback, and from nobody who reads __context__.
    """
    return _ContextTellsSums(small_policy())


class _AttributeTellsSums(pb.Agent):
    def give_up(self, decision: pb.Decision | str) -> None:
        try:
            super().give_up(decision)
        except pb.errors.PrivateBanditsError as error:
            error.sums = _open_sums(bandit_of(self))  # type: ignore[attr-defined]
            raise


@specimen(cost=math.inf, shows="errors")
def make_white_error_attribute_tells_sums() -> pb.Agent:
    """Giving an unknown decision up is refused with an error that has the open sums as an attribute: infinite."""
    return _AttributeTellsSums(small_policy())


class _NoiseNoteTellsSums(Bandit):
    def tell_many(self, items: Sequence[Any]) -> pb.errors.PrivateBanditsError | None:
        refused = super().tell_many(items)
        if isinstance(refused, pb.errors.NoiseFailed):
            refused.add_note(f"left over: {_open_sums(self)}")
        return refused


@specimen(cost=math.inf, shows="errors")
def make_white_noise_failure_tells_sums() -> pb.Agent:
    """A batch whose noise cannot be drawn is refused with the open sums in a note: infinite."""
    return running(_NoiseNoteTellsSums)(small_policy())


class _FailureCounts(Bandit):
    def take(self, told: Told) -> pb.errors.PrivateBanditsError | None:
        refused = super().take(told)
        if isinstance(refused, pb.errors.NoiseFailed):
            _, played, reward = told
            self.private.episodes[played].add((1,), reward)
        return refused


@specimen(cost=2.0, shows="noise that cannot be drawn")
def make_white_noise_failure_counts_twice() -> pb.Agent:
    """A reward whose release failed counts, and is open to be told again: 4 rho."""
    return running(_FailureCounts)(small_policy())


class _TellsPolicy(Bandit):
    """Tells its policy, which should not know, whether the sum that a reward goes into is above 0.75."""

    def take(self, told: Told) -> pb.errors.PrivateBanditsError | None:
        object.__setattr__(self.policy, "rich", _sum_with(self, told) > 0.75 * self.door.grid.steps)
        return super().take(told)


class _LearnFailsWhenRich(pb.AdaCUCB):
    def learn(self, state: DoublingState, release: Release, step: int) -> None:
        if release.number > 2 and getattr(self, "rich", False):
            raise ArithmeticError("too much")
        super().learn(state, release, step)


@specimen(cost=math.inf, shows="failures")
def make_white_learn_fails_by_raw_sum() -> pb.Agent:
    """The policy fails at a release whose sum, without noise, is high: infinite."""
    return running(_TellsPolicy)(small_policy(kind=_LearnFailsWhenRich))


class _RecommendFailsWhenRich(pb.AdaCUCB):
    def recommend(self, state: DoublingState, waiting: Any, arrived: Any, step: int) -> int:
        if step % 3 == 0 and getattr(self, "rich", False):
            raise ArithmeticError("too much")
        return super().recommend(state, waiting, arrived, step)


@specimen(cost=math.inf, shows="failures")
def make_white_recommend_fails_by_raw_sum() -> pb.Agent:
    """Every third ask fails if the last reward made its sum high: infinite."""
    return running(_TellsPolicy)(small_policy(kind=_RecommendFailsWhenRich))


class _DueExitsWhenRich(pb.AdaCUCB):
    def due(self, state: DoublingState, key: int, count: int, arrived: Any) -> bool:
        if count == 2 and getattr(self, "rich", False):
            raise SystemExit("enough")
        return super().due(state, key, count, arrived)


@specimen(cost=math.inf, shows="failures")
def make_white_due_exits_by_raw_sum() -> pb.Agent:
    """The policy wants to end the process with the second reward of an episode, if their sum is high: infinite."""
    return running(_TellsPolicy)(small_policy(kind=_DueExitsWhenRich))


class _FailureTellsSum(Bandit):
    def learn(self, row: Release) -> None:
        if row.number == 5:
            raise RuntimeError(f"stuck, with {_open_sums(self)} to go")
        super().learn(row)


@specimen(cost=math.inf, shows="failures")
def make_white_failure_tells_sums() -> pb.Agent:
    """The fifth release always fails, with the open sums in the words: infinite."""
    return running(_FailureTellsSum)(small_policy())
