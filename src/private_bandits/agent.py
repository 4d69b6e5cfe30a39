"""The agent: ask for decisions, tell their rewards.

A bandit (bandit.py), a store that makes its changes lasting (storage/), and a lock.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, ClassVar, NoReturn, Self, TypeVar, overload

from private_bandits.arguments import as_list
from private_bandits.bandit import Bandit
from private_bandits.checks import check_probability
from private_bandits.errors import AgentBusy, AgentClosed, PrivateBanditsError
from private_bandits.guarantee import Guarantee, Unit
from private_bandits.ledger import Ledger, Release
from private_bandits.mechanism.release import NoiseSource
from private_bandits.mechanism.rewards import RewardRange
from private_bandits.offline.logs import Column, read_log
from private_bandits.offline.warm_start import logged_rewards, required_columns
from private_bandits.policies import Estimate, Policy, Prediction
from private_bandits.policies.named_offer import Actions, without_names
from private_bandits.public_view import PublicView, view_of
from private_bandits.state import Decision, DecisionCounts, Settings
from private_bandits.statement import Statement, card_of, statement_of
from private_bandits.storage.contract import Store, StoreFailed
from private_bandits.storage.ownership import file_path, waiting_for
from private_bandits.storage.resuming import AgentFile
from private_bandits.verdict import Verdict, estimates_on, verdict_on
from private_bandits.version import __version__
from private_bandits.wiring import new_bandit, promise_of, resumed_bandit, store_at

__all__ = ["Agent", "Decision", "bandit_of"]

Clock = Callable[[], float]
"""Returns the time in seconds since 1970."""

T = TypeVar("T")
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")

_AGENTS: weakref.WeakSet[Agent] = weakref.WeakSet()


def bandit_of(agent: Agent) -> Bandit:
    """Return the state machine of an agent, for tests and audits. It holds raw sums: show nothing of it."""
    return agent._bandit


def _end_in_child() -> None:
    """End agents in a forked child. A copy would release the same sums with noise of its own."""
    for agent in list(_AGENTS):
        agent._bandit.ended = "belongs to the process that this one was forked from"
        agent._readable = False
        agent._unlock()  # another thread may have held the lock


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_end_in_child)


class Agent:
    """A bandit that learns from rewards and gives none of them away.

    policy: what to recommend, and the budget to keep.
    reward_range: (low, high), public and chosen before any reward is seen; rewards outside are clipped.
    path: a file that holds the state; None keeps it in memory.
    max_rewards_per_person: later rewards of a person are not taken; asks then name the person.
    one_reward_per_episode: a second reward of a person in a sum that is still open is not taken either. Rewards of one
        person then cost less together, and with unit="person" there is less noise (docs/guarantees.md).
    unit: what the budget is for, one "reward" or one "person"; the noise grows accordingly.
    seed: foreseeable noise for tests and studies; such an agent promises nothing.
    give_up_after: a decision is given up once this many later ones were made; or, with a timedelta, once that time has
        passed. Then a reward that is told later is refused.
    control: an arm, by its name or index, that a coin gives out: each decision plays it with probability control_share,
        and what the policy recommends otherwise (docs/using.md). Not for contextual policies.
    control_share: 0.2 if there is a control and nothing else is said.
    plan: the plan of the trial, as plain data. It is public, and the ledger begins with it (`ledger.opening`).
    noise: another source of noise than the exact one, for tests.
    clock: returns the time in seconds since 1970, for tests; None: the system's clock.

    Guaranteed: everything that ask, estimates, guarantee and ledger show depends on rewards only through
    `Door.release` (docs/guarantees.md). May be used from several threads.

    >>> import private_bandits as pb
    >>> agent = pb.Agent(pb.AdaCUCB(arms=["A", "B"], budget=pb.zCDP(0.1)))
    >>> decision = agent.ask()
    >>> decision.action, decision.arm
    (0, 'A')
    >>> agent.tell(decision, reward=1.0)
    >>> len(agent.ledger), agent.ledger.total <= 0.1
    (1, True)
    """

    bandit_type: ClassVar[type[Bandit]] = Bandit
    """The state machine that agents of this class run."""

    def __init__(
        self,
        policy: Policy[Any],
        reward_range: tuple[float, float] | RewardRange = (0.0, 1.0),
        path: str | os.PathLike[str] | None = None,
        max_rewards_per_person: int | None = None,
        unit: Unit = "reward",
        seed: int | None = None,
        give_up_after: int | timedelta | None = None,
        *,
        one_reward_per_episode: bool = False,
        control: int | str | None = None,
        control_share: float | None = None,
        plan: Any = None,
        noise: NoiseSource | None = None,
        clock: Clock | None = None,
    ) -> None:
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
        self._assemble(*new_bandit(self.bandit_type, settings, store_at(path), noise, plan), clock)
        self._publish(now=True)

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        wait: float = 0.0,
        without_log: bool = False,
        noise: NoiseSource | None = None,
        clock: Clock | None = None,
    ) -> Self:
        """Resume the agent whose state is in the file; it goes on as it would have.

        A release that the policy has not learned yet, because the process ended or the policy failed, is learned now:
        the stored one, never another draw. If the policy fails at it again, the agent can be read and says so.

        wait: try for so many seconds, while another agent has the file open.
        without_log: open a file although its log (FILE-wal, which holds the latest writes until the file is closed) is
        lost or damaged, with what can be read. It may lose asks and tells since the last release, never a release.

        Raises: AgentBusy while another agent has the file open; AgentFileInvalid if the file is damaged.
        """
        stored = waiting_for(lambda: AgentFile(file_path(path), without_log), wait)
        try:
            parts = resumed_bandit(cls.bandit_type, stored, noise)
            agent = cls.__new__(cls)
            agent._assemble(*parts, clock)
            agent._resume(stored.policy_state, stored.learned)
            agent._publish(now=True)
        except BaseException:
            stored.close()
            raise
        return agent

    def _assemble(self, bandit: Bandit, store: Store, clock: Clock | None) -> None:
        self._bandit = bandit
        self._store = store
        self._clock = None if bandit.public.times is None else clock or time.time
        self._readable = True
        self._last_verdict: tuple[tuple[float, int, bool], Verdict] | None = None
        self._unlock()
        _AGENTS.add(self)

    def _unlock(self) -> None:
        self._lock = threading.RLock()  # one thread at a time
        self._busy = False  # and one call at a time of that thread

    def _resume(self, state: Any, learned: int) -> None:
        """Let the policy go on from its stored state, and learn what it has not learned of the ledger."""
        bandit = self._bandit
        try:
            bandit.resume(state, learned)
            if bandit.has_unsaved_learning:
                self._commit()
        except BaseException as error:
            failure = self._ended_after(error)
            if bandit.failed is None or not self._readable:
                raise failure from None

    # Asking and telling.

    @overload
    def ask(self, n: None = None, *, actions: Actions | None = None, person: str | None = None) -> Decision: ...
    @overload
    def ask(self, n: int, *, actions: Actions | None = None, person: str | None = None) -> list[Decision]: ...

    def ask(
        self, n: int | None = None, *, actions: Actions | None = None, person: str | None = None
    ) -> Decision | list[Decision]:
        """Return the next decision, or a list of n. actions: those to choose from, where they change (contextual).

        Actions are a table with a row each. A dict of vectors gives them names, and so does a DataFrame whose index is
        of texts: `decision.arm` is then the name, and `tell` takes it for `played`.
        Many may be open at once: they walk through the policy's plan (at first every arm once) and beyond it
        get the current public choice. `person` counts only where max_rewards_per_person is set. Where contexts are
        private, n decisions from one table count as n contexts.
        """
        return self._call(self._bandit.ask, n, actions, person)

    def tell(self, decision: Decision | str, reward: float, *, played: int | str | None = None) -> None:
        """Take the reward of a decision, once. `played`: the action really taken, where it was another.

        A reward outside the range is clipped. A decision that is unknown, or closed, or a reward that is not
        a finite number, is refused and nothing changes; no error tells anything about stored values.
        """
        self._call(self._bandit.tell, decision, reward, played)

    def tell_many(self, rewards: Iterable[tuple[Any, ...]]) -> None:
        """Take many (decision, reward) or (decision, reward, played), all checked before any is taken."""
        items = as_list(rewards)  # before the lock: a generator may do anything
        refused = self._run(self._bandit.tell_many, items)
        if refused is not None:
            raise refused

    def give_up(self, decision: Decision | str) -> None:
        """Close a decision whose reward will never come. Its play is recommended again where it was planned."""
        self._run(self._bandit.give_up, decision)

    def finish(self) -> int:
        """Release what is unreleased, once and like any other release, and take no rewards any more.

        All rewards told are in `estimates` and `verdict` then, which are right although one stopped when one liked
        (docs/guarantees.md). When this is called is public: choose it by what was released or by a plan, never by a
        reward that was seen. Returns how many rewards the closing releases hold. Decisions that are open stay open in
        `counts`. Finishing again does nothing.

        >>> import private_bandits as pb
        >>> agent = pb.Agent(pb.AdaCIMED(arms=["A", "B"], budget=pb.zCDP(0.1)))
        >>> agent.tell(agent.ask(), reward=1.0)
        >>> agent.finish(), [found.rewards for found in agent.estimates()], agent.ledger.total <= 0.1
        (1, [1, 0], True)
        """
        return self._run(self._bandit.finish)

    def warm_start(self, log: Any, *, arm: Column = "arm", reward: str = "reward", person: str = "person") -> int:
        """Learn from a log of past rewards, before the first ask. Returns how many were taken.

        log: a CSV file, a table such as a DataFrame, or tuples (arm, reward) or (arm, reward, person). An arm is a name
        or an index; for contextual policies the vector that was played, in a column or, with arm=[...], in several.

        The rewards of an arm are its first episode: they leave together in its first release, and in later ones again
        where the policy's do (`Policy.factor`), so a logged reward costs what any other costs. Which arms were logged,
        how often and for whom is public. A logged play counts as a decision. With max_rewards_per_person rows beyond
        the limit are dropped.

        A value that is missing, or a reward outside the range, is refused with its row, and nothing changes; that
        refusal is for who has the log, not to be published. With a file everything is on disk before this returns, or
        nothing is: where it fails half-way, the agent ends, and has shown nothing.

        >>> import private_bandits as pb
        >>> agent = pb.Agent(pb.AdaCUCB(arms=["A", "B"], budget=pb.zCDP(0.1)))
        >>> agent.warm_start([("A", 1.0), ("B", 0.0), ("A", 0.5)])
        3
        >>> [(row.key, row.count) for row in agent.ledger], agent.ledger.total <= 0.1
        ([(0, 2), (1, 1)], True)
        """
        columns = {"arm": arm, "reward": reward, "person": person}
        found = read_log(log, columns, required_columns(self._bandit))
        logged = logged_rewards(self._bandit, found)  # before the lock: a value's own type may do anything
        self._run(self._bandit.start_from, logged.rows, logged.over_limit, logged.dropped)
        return len(logged.rows)

    # Reading. All of it is public.

    def estimates(self, delta: float = 0.05) -> list[Estimate]:
        """Return each arm's mean with an interval, from releases only.

        With probability at least 1 - delta the intervals of all arms are right at all times together, if the
        rewards of an arm share one mean whatever happened before. After `finish` all rewards told are in them. Where
        actions are new at each step there are no arms, and the list is empty: see `learned`.
        """
        check_probability("delta", delta)
        found: list[Estimate] = self._run(self._conclude, estimates_on, delta)
        return found

    def verdict(self, delta: float = 0.05) -> Verdict:
        """Return which arm is best, if that can be said, with the difference of each pair of arms. Looking is free.

        The probability that an arm is ever declared which is worse than another is at most delta, however often one
        looks, if the rewards of an arm are independent draws from one distribution, whoever chose the arm and for
        whom, and arrive whatever they are (`Verdict.conditions`). Choose delta before the first reward. After `finish`
        a verdict has a delta of its own, where a policy forgets. For linear policies the best action is the one that is
        left.

        >>> import private_bandits as pb
        >>> agent = pb.Agent(pb.AdaCIMED(arms=["A", "B"], budget=pb.zCDP(1)), seed=0)
        >>> print(agent.verdict(delta=0.05))
        No arm can be called the best, with an error probability of 0.05.
        """
        check_probability("delta", delta)
        return self._run(self._drawn_verdict, delta)

    def _drawn_verdict(self, delta: float) -> Verdict:
        """Return the verdict; the one before, if nothing was released since."""
        bandit = self._bandit
        drawn_from = (delta, len(bandit.door.account), bandit.finished)
        if self._last_verdict is None or self._last_verdict[0] != drawn_from:
            self._last_verdict = drawn_from, self._conclude(verdict_on, delta)
        found = self._last_verdict[1]
        return self._look(lambda: found)

    def _conclude(self, conclude: Callable[..., T], delta: float) -> T:
        """Draw a conclusion from what the policy has learned, and from the closing releases if there are any."""
        bandit = self._bandit
        return self._look_learned(
            lambda state: conclude(state, bandit.policy, delta, bandit.settings.reward_range, bandit.closing())
        )

    def predict(self, actions: Actions | None = None, delta: float = 0.05) -> list[Prediction]:
        """Return the mean reward of each of these actions with an interval, from releases only. It costs nothing.

        actions: a table with a row each, one vector, or vectors by name; whether they were ever offered does not
        matter. Without actions a linear policy takes its own.

        With probability at least 1 - delta the intervals of all actions are right at all times together, if the mean
        reward is <theta, a> for one theta, whatever happened before; contextual policies also assume that theta is no
        longer than their `parameter_norm`. `exploration` is not in the width. docs/guarantees.md has the proofs.

        >>> import private_bandits as pb
        >>> agent = pb.Agent(pb.AdaCOFUL(dimension=2, budget=pb.zCDP(1)))
        >>> agent.predict([0.6, 0.8])
        [Prediction(mean=None, low=0.0, high=1.0)]
        """
        check_probability("delta", delta)
        return self._run(self._look_predicted, actions, delta)

    def _look_predicted(self, actions: Actions | None, delta: float) -> list[Prediction]:
        rows = None if actions is None else without_names(actions)
        return self._look_learned(self._bandit.policy.predict, rows, delta)

    def guarantee(self, delta: float | None = None) -> Guarantee:
        """Return what is promised and spent, as rho, as (epsilon, delta) and in words.

        delta: 1e-6 unless given, or the budget's own.
        """
        spent: float = self._run(self._look, lambda: self._bandit.door.account.total)
        return promise_of(self._bandit.settings, self._bandit.door).guarantee(spent, delta)

    def statement(self, delta: float = 0.05, *, written: str | None = None) -> Statement:
        """Return the statement of the trial, for a board: `print` it, or write its `html()` to a file.

        It says what was tried, what became of each decision, what was found, and what is promised. It is made of what
        is public, and costs nothing.

        Args:
            delta: The probability with which the intervals may fail, and the verdict. Chosen before the first reward.
            written: The date that it bears; None: now.

        >>> import private_bandits as pb
        >>> agent = pb.Agent(pb.AdaCIMED(arms=["A", "B"], budget=pb.zCDP(0.1)))
        >>> agent.statement(written="2026-01-31").text.splitlines()[2]
        'The trial was running when this was written, 2026-01-31.'
        """
        date = written or f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
        found: Statement = self._run(self._look, lambda: statement_of(self._view(), delta, date))
        return found

    @property
    def ledger(self) -> Ledger:
        """Every release so far and its cost, as it stands now. A release is seen by nobody before it is on disk.

        Of very many releases only the latest are taken. The others are read from the agent when they are looked at,
        and until then its ledger keeps the agent, and its file, from being let go.
        """
        account, later = self._bandit.door.account, partial(self._run, _read_rows, self._bandit, self._store)
        found: Ledger = self._run(self._look, partial(Ledger.stored, account, self._store.releases, later))
        return found

    @property
    def learned(self) -> dict[str, Any]:
        """The policy's state as plain data: its means, what is left, what it plans. Public."""
        return self._run(self._look_learned, self._bandit.policy.dump_state)

    @property
    def policy(self) -> Policy[Any]:
        """The policy with the budget that was asked for."""
        return self._bandit.settings.policy

    @property
    def settings(self) -> dict[str, Any]:
        """The arguments that the agent was made with, besides the policy."""
        return self._bandit.settings.shown

    @property
    def open_decisions(self) -> list[Decision]:
        """Decisions that wait for a reward, oldest first."""
        name_of = self._bandit.name_of
        found = self._run(self._look, lambda: list(self._store.open_decisions()))
        return [Decision(o.id, o.action, name_of(o)) for o in found]

    @property
    def counts(self) -> DecisionCounts:
        """Decisions by what became of them: asked = open + told + given_up + over_limit + dropped + unknown."""
        found: DecisionCounts = self._run(self._look, lambda: self._bandit.public.counts(len(self._store)))
        return found

    @property
    def finished(self) -> bool:
        """Whether `finish` was called: the agent makes no decisions and takes no rewards any more."""
        found: bool = self._run(self._look, lambda: self._bandit.finished)
        return found

    def __repr__(self) -> str:
        bandit, s = self._bandit, self._bandit.settings
        options = f"reward_range=({s.reward_range.low:g}, {s.reward_range.high:g}), unit={s.unit!r}"
        if s.control is not None:
            options += f", control={s.control!r}, control_share={s.control_share:g}"
        if s.seed is not None:
            options += f", seed={s.seed}: no privacy"
        if bandit.failed is not None:
            options += f", {bandit.failed}"
        if bandit.finished:
            options += ", finished"
        return f"Agent({self.policy}, {options}, {bandit.public.asked} asked, {len(self._store)} open)"

    def _repr_html_(self) -> str | None:
        with suppress(PrivateBanditsError):  # in the middle of a call, or at an end after which nothing may be read
            found: str | None = self._run(self._look, lambda: card_of(self._view(), repr(self)))
            return found
        return None

    # Its life.

    def close(self) -> None:
        """Let go of the file. An agent in memory is gone with this."""
        self._run(self._close)

    def _close(self) -> None:
        bandit = self._bandit
        if bandit.ended is not None:
            self._store.close()  # once more: its end may have been interrupted
            return
        if not bandit.unfinished:
            with suppress(AgentClosed):  # what the policy made of its last release can be learned again
                self._store.finish(bandit.public)
            self._publish(now=True)
        self._end("was closed", readable=not bandit.unfinished)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError("an agent cannot be copied or pickled: two copies of one state would spend the budget twice")

    # One call at a time, and each of them whole.

    def _run(self, work: Callable[..., T], *arguments: Any) -> T:
        """Run one call of any number of arguments. Those with three, as ask and tell, are faster without this."""
        return self._call(_unpacked, work, arguments, None)

    def _call(self, work: Callable[[A, B, C], T], one: A, two: B, three: C) -> T:
        """Run one call, and make what it changes lasting before anything of it is seen.

        A signal handler or finalizer that runs in the middle of a call would see, or write, half of a change: it is
        refused. The interpreter handles signals after calls and at jumps back, never between a call's end and the
        "finally" or the lock's own __exit__, so that no interrupt leaves the agent locked or busy.
        """
        with self._lock:  # signals wait here
            if self._busy:
                raise AgentBusy("the agent is in the middle of a call of this thread: in a signal handler, set a flag")
            caught: BaseException | None = None
            begun = self._bandit.unfinished  # by a call that was interrupted twice: it stays as it is
            self._busy = True
            try:
                try:
                    if self._clock is not None and not begun:
                        self._give_up_late(self._clock())
                    found = work(one, two, three)
                    if self._bandit.unfinished and not begun:
                        self._commit()
                        self._publish()
                except BaseException as error:
                    caught = error
                else:
                    return found
                # Outside of the block above: an interrupt from here on would carry that error along, with its frames.
                raise self._ended_after(caught)
            finally:
                self._busy = False  # signals wait here
                caught = None  # with the frames that it holds: one of them is this

    def _give_up_late(self, now: float) -> None:
        """Close the decisions that are out of time, and make that lasting by itself: what follows may be refused."""
        self._bandit.now = int(now * 1e6)
        self._bandit.give_up_late()
        if self._bandit.unfinished:
            self._commit()

    def _publish(self, now: bool = False) -> None:
        """Let whoever reads beside the owner see what changed. Everything in it is lasting by now."""
        bandit = self._bandit
        if bandit.ended is not None:
            return  # its file may be another agent's by now
        stamp = len(bandit.door.account), bandit.finished, bandit.failed
        self._store.publish(stamp, lambda: self._view().to_dict(), now)

    def _view(self) -> PublicView:
        return view_of(self._bandit, len(self._store), __version__)

    def _look(self, look: Callable[[], T]) -> T:
        """Read what is public and lasting."""
        if self._bandit.unfinished or not self._readable:
            self._bandit.refuse()
        return look()

    def _look_learned(self, look: Callable[..., T], *arguments: Any) -> T:
        """Read the policy's state, once it has learned all releases."""
        if self._bandit.failed is not None:
            self._bandit.refuse()
        return self._look(partial(look, self._bandit.public.policy, *arguments))

    def _commit(self) -> None:
        """Make everything lasting that changed in this call. An agent that has ended writes nothing."""
        bandit = self._bandit
        if bandit.ended is None:
            bandit.encode_changes()
            self._store.commit(bandit.public)
            bandit.unfinished = False

    def _ended_after(self, error: BaseException) -> BaseException:
        """End the agent if an error left half of a change, and return the exception that is safe to raise.

        After half of a change the file is right, and this object is not.

        The next agent on the file draws noise anew for sums whose release is not on disk. Nothing of that release may
        be seen: the frames that hold it, which crash reporters log, are dropped. So are those that hold contexts, where
        these are private, or the reward at which a policy failed.
        """
        bandit, lost = self._bandit, isinstance(error, StoreFailed)
        if not (bandit.unfinished or bandit.policy.private_contexts or bandit.failed or lost):
            self._publish()  # a finish whose noise failed has ended the bandit all the same
            return error
        error.__context__ = error.__cause__ = None
        error = error.with_traceback(None)
        if bandit.ended is None and bandit.failed is not None:
            error = self._kept_after_failure(error)
        elif bandit.ended is None and (bandit.unfinished or lost):
            self._end(error.reason if isinstance(error, StoreFailed) else "was interrupted", readable=False)
        return AgentClosed(str(error)) if isinstance(error, StoreFailed) else error

    def _kept_after_failure(self, error: BaseException) -> BaseException:
        """End readable after the policy failed, with everything released in the ledger and on disk."""
        bandit = self._bandit
        try:
            self._store.commit(bandit.public)
        except BaseException as other:
            self._end(other.reason if isinstance(other, StoreFailed) else "was interrupted", readable=False)
            other.__context__ = other.__cause__ = None
            return other.with_traceback(None)
        bandit.unfinished = False
        self._publish(now=True)
        self._end(str(bandit.failed), readable=True)
        return error

    def _end(self, reason: str, readable: bool) -> None:
        """End the agent. What did not reach the file may not be read either: it was never released."""
        self._readable = self._readable and readable
        self._bandit.ended = reason
        self._bandit.unlearned.clear()
        self._store.close()


def _read_rows(bandit: Bandit, store: Store, first: int, last: int) -> Sequence[Release]:
    """Read rows of a ledger that was handed out earlier."""
    if bandit.unfinished:
        bandit.refuse()
    return store.releases(first, last)


def _unpacked(work: Callable[..., T], arguments: tuple[Any, ...], _: None) -> T:
    return work(*arguments)
