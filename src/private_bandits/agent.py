"""The agent: ask for decisions, tell their rewards.

It wires the rest: the policy decides from what is public, episodes sum rewards in exact integers, the door
releases finished sums with noise, the ledger keeps account, the store makes it lasting.
"""

from __future__ import annotations

import json
import operator
import os
import sqlite3
import threading
import weakref
from collections import Counter, deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from numbers import Integral
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, Self, overload

from private_bandits.budget import Budget, check_probability
from private_bandits.composition import Outgoing
from private_bandits.damage import database_failure
from private_bandits.episode import Counts, Episode
from private_bandits.errors import (
    AgentBusy,
    AgentClosed,
    CapacityExceeded,
    ClosedDecision,
    InvalidInput,
    NoiseFailed,
    PolicyFailed,
    PrivateBanditsError,
    UnknownDecision,
)
from private_bandits.formats import refuse_damage
from private_bandits.guarantee import Guarantee, Unit, guarantee_for
from private_bandits.history import check_history
from private_bandits.ledger import Ledger, Release
from private_bandits.logs import Column, Log, read_log
from private_bandits.policies import POLICIES, Estimate, Offer, Policy
from private_bandits.release import Door
from private_bandits.rewards import RewardRange
from private_bandits.state import (
    CountsInMemory,
    OpenDecision,
    PeopleCounts,
    PrivateState,
    PublicState,
    Settings,
    whole_number,
)
from private_bandits.store import SqliteStore


class Decision(NamedTuple):
    """What is recommended: an action by its index and its name. The id is what a reward is told to."""

    id: str
    action: int
    arm: str


_Told = tuple[str, OpenDecision, int, int]
"""A checked reward on its way into a sum: id, decision, action played, reward on the grid."""

_Logged = tuple[int, tuple[int, ...], int, str | None]
"""A row of a log on its way into a sum: the sum, the weight, the reward on the grid, the person."""

LARGEST_KEY = 2**62
"""A policy names its sums by whole numbers below this."""

_new_tuple = tuple.__new__  # twice as fast as calling the class, in the two calls that everyone waits for

_AGENTS: weakref.WeakSet[Agent] = weakref.WeakSet()


def _end_in_child() -> None:
    """A forked copy of an agent would release the same sums with noise of its own."""
    for agent in list(_AGENTS):
        agent._ended = "belongs to the process that this one was forked from"
        agent._readable = False
        agent._lock = threading.RLock()  # another thread may have held the old one


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_end_in_child)


class Agent:
    """A bandit that learns from rewards and gives none of them away.

    policy: what to recommend, and the budget to keep.
    reward_range: (low, high), public and chosen before any reward is seen; rewards outside are clipped.
    path: a file that holds the state; None keeps it in memory.
    max_rewards_per_person: later rewards of a person count as given up; asks then name the person.
    unit: what the budget is for, one "reward" or one "person"; the noise grows accordingly.
    seed: foreseeable noise for tests and studies; such an agent promises nothing.
    give_up_after: a decision is given up once this many later ones were made.

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

    def __init__(
        self,
        policy: Policy[Any],
        reward_range: tuple[float, float] | RewardRange = (0.0, 1.0),
        path: str | os.PathLike[str] | None = None,
        max_rewards_per_person: int | None = None,
        unit: Unit = "reward",
        seed: int | None = None,
        give_up_after: int | None = None,
    ) -> None:
        settings = Settings(
            policy=policy,
            reward_range=RewardRange.of(reward_range),
            max_rewards_per_person=max_rewards_per_person,
            unit=unit,
            seed=seed,
            give_up_after=give_up_after,
        )
        if path is not None and POLICIES.get(policy.name) is not type(policy):
            raise InvalidInput(
                f"{type(policy).__name__} has no name of its own, so a file could not bring it back: give the class "
                f"a `name` (it has {policy.name!r})"
            )
        door = _door(settings, Ledger())
        bounds, served = settings.reward_range, policy.with_budget(door.budget)  # refused before a file is made
        public = PublicState(served.start(bounds.low, bounds.high), [0] * len(policy.arm_names))
        file = None
        if path is not None:
            file = SqliteStore.create(Path(path), settings, encoded(policy.dump_state(public.policy)))
        self._wire(settings, file, door, public, PrivateState())

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, without_log: bool = False) -> Agent:
        """Resume the agent whose state is in the file; it goes on as it would have.

        A release that the policy has not learned yet, because the process ended or the policy failed, is learned now:
        the stored one, never another draw. If the policy fails at it again, the agent can be read and says so.

        without_log: open a file although its log (FILE-wal, which holds the latest writes until the file is closed) is
        lost or damaged, with what can be read. It may lose asks and tells since the last release, never a release.

        Raises: AgentBusy while another agent has the file open; AgentFileInvalid if the file is damaged.
        """
        file, settings, ledger = SqliteStore.open(Path(path), without_log)
        try:
            door = _door(settings, ledger)
            declared = settings.policy.with_budget(door.budget).declared_weight
            public, private = file.load(settings, partial(door.open_episode, declared=declared))
            refuse_damage(str(path), lambda: check_history(door, private.episodes, public.asked))
            agent = cls.__new__(cls)
            agent._wire(settings, file, door, public, private)
            agent._catch_up(file)
        except BaseException:
            file.close()
            raise
        return agent

    def _catch_up(self, file: SqliteStore) -> None:
        """Take the file over, and let the policy learn what it has not learned of the ledger."""
        if not file.checked:  # without checksums a state that cannot be read is the file's fault: it stays as it is
            refuse_damage(str(file.path), lambda: self._policy.load_state(file.policy_state))
        refuse_damage(str(file.path), file.take_over)
        try:
            self._load_policy(file)
            for row in self._door.ledger.rows[file.learned_releases :]:
                self._learn(row)
            if file.is_behind:
                self._commit(file)
        except BaseException:
            if self._failed is None:  # else it can be read, and says so
                raise

    def _load_policy(self, file: SqliteStore) -> None:
        failure: BaseException | None = None
        try:
            self._public.policy = self._policy.load_state(file.policy_state)
        except BaseException as error:
            failure = error
        if failure is not None:
            self._fail("at its stored state", failure)

    def _wire(
        self,
        settings: Settings,
        file: SqliteStore | None,
        door: Door,
        public: PublicState,
        private: PrivateState,
    ) -> None:
        self._settings = settings
        self._policy = settings.policy.with_budget(door.budget)
        self._range = settings.reward_range
        self._limit = settings.max_rewards_per_person
        self._file = file
        self._people: PeopleCounts = CountsInMemory() if file is None else file
        self._door = door
        self._public = public
        self._private = private
        self._arrived = Counts(private.episodes)
        self._names = settings.policy.arm_names
        self._hides_offers = settings.policy.private_contexts
        self._prefix = f"{settings.token}-{public.generation}-"
        self._steps = door.grid.steps
        # Decisions that may run out of time, oldest first; as many as give_up_after at most.
        self._aging = deque(public.open) if settings.give_up_after else None
        self._lock = threading.RLock()
        self._unlearned: list[Release] = []  # releases of this call that are drawn, and not seen by anyone yet
        self._waits_for = settings.policy.waits_for
        self._midway = False  # whether a reward is taken, or a release written, in part
        self._ended: str | None = None
        self._failed: str | None = None  # how the policy failed, if it did
        self._readable = True
        self._lasting = file is not None
        self._dirty = False  # whether memory is ahead of the file
        _AGENTS.add(self)

    # Asking.

    @overload
    def ask(self, n: None = None, *, actions: Any = None, person: str | None = None) -> Decision: ...
    @overload
    def ask(self, n: int, *, actions: Any = None, person: str | None = None) -> list[Decision]: ...

    def ask(self, n: int | None = None, *, actions: Any = None, person: str | None = None) -> Decision | list[Decision]:
        """The next decision, or a list of n. actions: what there is to choose from, where it changes (contextual).

        Many may be open at once: they walk through the policy's plan (at first every arm once) and beyond it
        get the current public choice. `person` counts only where max_rewards_per_person is set. Where contexts are
        private, n decisions from one table count as n contexts.
        """
        if self._lock._is_owned():  # type: ignore[attr-defined]
            self._refuse_reentry()
        with self._lock:
            if self._ended is not None or self._dirty:
                self._refuse()
            who = None if self._limit is None else self._check_person(person)
            count = None if n is None else _count(n)
            offered = self._policy.offer(actions)
            try:
                self._dirty = self._lasting
                found = (
                    self._decide(who, offered) if count is None else [self._decide(who, offered) for _ in range(count)]
                )
                if self._file is not None:
                    self._commit(self._file)
            except BaseException as error:
                failure = self._failure(error)
            else:
                return found
            raise failure

    def _decide(self, person: str | None, offered: Offer | None) -> Decision:
        public = self._public
        if offered is None:
            action = self._policy.recommend(public.policy, public.waiting, self._arrived, public.asked + 1)
            if type(action) is not int or not 0 <= action < len(public.waiting):
                action = self._as_action(action, len(public.waiting))
            public.waiting[action] += 1
        else:
            action = self._policy.choose(public.policy, offered, public.asked + 1)
            if type(action) is not int or not 0 <= action < len(offered):
                action = self._as_action(action, len(offered))
        public.asked = number = public.asked + 1
        key = f"{self._prefix}{number}"
        if self._hides_offers and offered is not None:
            self._private.offered[key] = offered
        shown = None if self._hides_offers else offered
        public.open[key] = opened = _new_tuple(OpenDecision, (number, action, person, shown))
        if self._file is not None:
            self._file.asked(opened, offered)
        if self._aging is not None:
            self._give_up_old(key)
        return _new_tuple(Decision, (key, action, self._name(action)))

    def _as_action(self, recommended: Any, actions: int) -> int:
        """Return what a policy recommends as an int: numpy has integers of its own."""
        whole = not isinstance(recommended, bool) and isinstance(recommended, Integral)
        if not whole or not 0 <= recommended < actions:
            # With private contexts the recommendation depends on them, and an error may end up in a log.
            shown = f"a {type(recommended).__name__}" if self._hides_offers else repr(recommended)
            raise InvalidInput(
                f"{type(self._policy).__name__} recommends {shown}, which is no action from 0 to {actions - 1}"
            )
        return int(recommended)

    def _name(self, action: int) -> str:
        return self._names[action] if self._names else f"action {action}"

    def _give_up_old(self, newest: str) -> None:
        """Close what is older than give_up_after decisions."""
        assert self._aging is not None
        assert self._settings.give_up_after is not None
        last = self._public.asked - self._settings.give_up_after
        self._aging.append(newest)
        while self._aging:
            oldest = self._public.open.get(self._aging[0])
            if oldest is not None and oldest.number > last:
                break
            key = self._aging.popleft()
            if oldest is not None:
                self._give_up(key, oldest)

    # Telling.

    def tell(self, decision: Decision | str, reward: float, *, played: int | str | None = None) -> None:
        """The reward of a decision, once. `played`: the action really taken, where it was another.

        A reward outside the range is clipped. A decision that is unknown, or closed, or a reward that is not
        a finite number, is refused and nothing changes; no error tells anything about stored values.
        """
        if self._lock._is_owned():  # type: ignore[attr-defined]
            self._refuse_reentry()
        with self._lock:
            if self._ended is not None or self._dirty:
                self._refuse()
            told = self._check_told(decision, reward, played)
            if self._ended is not None:  # once more: the code of a reward's own type may have forked
                self._refuse()
            try:
                self._dirty = self._lasting
                refused = self._take(told)
                if refused is not None:
                    self._dirty = False
                    raise refused
                if self._unlearned:
                    self._settle()
                if self._file is not None:
                    self._commit(self._file)
            except BaseException as error:
                failure = self._failure(error)
            else:
                return
            raise failure

    def tell_many(self, rewards: Iterable[tuple[Any, ...]]) -> None:
        """Many (decision, reward) or (decision, reward, played) at once, checked before any is taken."""
        items = list(rewards)  # before the lock: a generator may do anything
        if self._lock._is_owned():  # type: ignore[attr-defined]
            self._refuse_reentry()
        with self._lock:
            if self._ended is not None or self._dirty:
                self._refuse()
            batch = [self._check_told(*_told_parts(item)) for item in items]
            seen: set[str] = set()
            for told in batch:
                if told[0] in seen:
                    raise ClosedDecision(f"decision {told[0]} is twice in the batch: nothing was changed")
                seen.add(told[0])
            if self._ended is not None:  # once more, as in tell
                self._refuse()
            self._take_all(batch)

    def _take_all(self, batch: list[_Told]) -> None:
        refused: PrivateBanditsError | None = None
        failure: BaseException | None = None
        try:
            self._dirty = self._lasting
            for taken, told in enumerate(batch):
                refused = self._take(told)
                if refused is not None:
                    refused.add_note(f"{taken} of {len(batch)} rewards were taken before; the others are still open")
                    break
            self._settle()
            if self._file is not None:
                self._commit(self._file)
        except BaseException as error:
            failure = self._failure(self._settled_after(error))
        if failure is not None or refused is not None:
            raise failure or refused  # type: ignore[misc]

    def give_up(self, decision: Decision | str) -> None:
        """Close a decision whose reward will never come. Its play is recommended again where it was planned."""
        if self._lock._is_owned():  # type: ignore[attr-defined]
            self._refuse_reentry()
        with self._lock:
            if self._ended is not None or self._dirty:
                self._refuse()
            key, opened = self._find(decision)
            try:
                self._dirty = self._lasting
                self._give_up(key, opened)
                if self._file is not None:
                    self._commit(self._file)
            except BaseException as error:
                failure = self._failure(error)
            else:
                return
            raise failure

    # Starting from a log.

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
        if not self._policy.takes_logs or self._hides_offers:
            raise InvalidInput(
                f"{type(self._policy).__name__} cannot start from a log: its releases are planned, or make a tree, or "
                "hold contexts; use an index policy such as AdaCUCB, or AdaCOFUL"
            )
        required = ["arm", "reward"] if self._limit is None else ["arm", "reward", "person"]
        found = read_log(log, {"arm": arm, "reward": reward, "person": person}, required)
        rows = self._logged(found)  # before the lock: a value's own type may do anything
        if self._lock._is_owned():  # type: ignore[attr-defined]
            self._refuse_reentry()
        with self._lock:
            if self._ended is not None or self._dirty:
                self._refuse()
            if self._public.asked:
                raise InvalidInput(
                    f"a log comes before the first ask, and {self._public.asked} decisions were made: start a new agent"
                )
            sums = self._sums_of(rows)
            try:
                self._dirty = True  # in memory too: of a start that is cut short nothing may be seen
                self._start_from(found.rows, rows, sums)
                if self._file is not None:
                    self._commit(self._file)
                self._dirty = False
            except BaseException as error:
                failure = self._failure(error)
            else:
                return len(rows)
            raise failure

    def _logged(self, log: Log) -> list[_Logged]:
        """Every row that is taken."""
        grid = [self._range.to_grid(reward, self._steps) for reward in log.rewards(self._range)]
        if self._names:
            entries = [self._plain_entry(None, action) for action in log.actions(self._names)]
        else:
            offered = self._policy.offer(log.columns["arm"])
            assert offered is not None
            entries = [self._plain_entry(offered, row) for row in range(log.rows)]
        people = [None] * log.rows if self._limit is None else [*map(self._check_person, log.people())]
        rows, taken = [], Counter[str | None]()
        for entry, reward, who in zip(entries, grid, people, strict=True):
            taken[who] += 1
            if entry is not None and (self._limit is None or taken[who] <= self._limit):
                rows.append((*entry, reward, who))
        return rows

    def _sums_of(self, rows: list[_Logged]) -> dict[int, Episode]:
        """The first episodes, complete. Refused, on public grounds alone, where they do not fit."""
        sums: dict[int, Episode] = {}
        for slot, weight, reward, _ in rows:
            if slot not in sums:
                sums[slot] = self._open_episode(slot, 1, len(weight))
            sums[slot].add(weight, reward)
        return sums

    def _start_from(self, decisions: int, rows: list[_Logged], sums: dict[int, Episode]) -> None:
        public = self._public
        public.asked = decisions
        for slot, weight, _, person in rows:
            self._policy.arrive(public.policy, slot, weight)
            if person is not None:
                self._people.count_rewards_of(person, 1)
        self._private.episodes.update(sums)
        if self._file is not None:
            self._encode_before_draw(self._file)
        for slot in sorted(sums):
            first = sums[slot]
            row = self._release(first, (), 0, whole=self._door.composition.compose(first))
            self._unlearned.append(row)
            if self._file is not None:
                self._file.summed([self._private.episodes[slot]], row)
        self._settle()

    def _take(self, told: _Told) -> PrivateBanditsError | None:
        """Add a checked reward to its sum, and release the sum if that completes it.

        Returns the refusal, if there is one: then nothing was changed. Whatever is raised here instead, by an
        interrupt or a signal handler, opens nothing again. The decision is closed and its person counted before
        the sum changes, so that no reward counts twice or beyond the limit.
        """
        self._midway = False
        key, decision, played, reward = told
        public, person = self._public, decision.person
        offered = self._offered(key, decision)
        entry = self._entry(offered, played)
        if entry is None or not (person is None or self._within_limit(person)):
            self._give_up(key, decision)
            return None
        slot, weight = entry
        episode = self._private.episodes.get(slot) or self._first_episode(slot, weight)
        refusal = episode.refusal(weight)
        if refusal is not None:
            return refusal
        whole = None
        undo = self._policy.arrive(public.policy, slot, () if self._hides_offers else weight)
        try:
            if self._policy.due(public.policy, slot, episode.count + 1, self._arrived):
                whole = self._whole(episode, weight, reward)
        except BaseException as stopped:
            undo()  # the decision is still open, and its action would be there twice when it is told again
            if isinstance(stopped, (CapacityExceeded, InvalidInput)):
                return stopped.with_traceback(None)  # its frames hold the action, which may be private
            raise
        self._midway = True
        del public.open[key]
        self._private.offered.pop(key, None)
        self._wait(decision, -1)
        if person is not None:
            self._people.count_rewards_of(person, 1)
        failed = None
        if whole is None:
            episode.add(weight, reward)
            if self._file is not None:
                self._file.closed(decision, (episode,), None)
        else:
            failed = self._take_and_release(decision, episode, weight, reward, whole)
            if failed is not None:
                undo()
                self._reopen(key, decision, offered)
        self._midway = False
        return failed

    def _take_and_release(
        self,
        decision: OpenDecision,
        episode: Episode,
        weight: tuple[int, ...],
        reward: int,
        whole: Outgoing,
    ) -> NoiseFailed | None:
        """Release what the last reward completes. Nobody sees the release before `_settle`.

        Returns the failure where no noise could be drawn: it comes before anything was changed, and nothing else may
        open the decision again.
        """
        before = self._dirty
        self._dirty = True  # in memory too: what a policy missed of a release it would read wrongly from the next
        if self._file is not None:
            self._encode_before_draw(self._file)
        try:
            row = self._release(episode, weight, reward, whole)
        except NoiseFailed as failed:
            self._dirty = before
            return failed.with_traceback(None)
        self._unlearned.append(row)
        if self._file is not None:
            self._file.closed(decision, [self._private.episodes[key] for key in row.keys], row)
        return None

    def _settle(self) -> None:
        """Make the releases of this call lasting, and then let the policy learn them, in their order."""
        if not self._unlearned:
            return
        self._midway = True
        if self._file is not None:
            self._write(self._file.keep_release)
        while self._unlearned:
            self._learn(self._unlearned.pop(0))
        self._dirty = self._lasting
        self._midway = False

    def _settled_after(self, error: BaseException) -> BaseException:
        """Keep the releases of a batch that an error cut short, and return the error to raise.

        No draw is lost because a policy failed at a later reward. Where an interrupt came while a reward was taken, or
        a release written, nothing more is written: half of a change would be.
        """
        if self._unlearned and not self._midway and self._ended is None:
            try:
                self._settle()
            except BaseException as other:
                return other
        return error

    def _offered(self, key: str, decision: OpenDecision) -> Offer | None:
        return self._private.offered.get(key) if self._hides_offers else decision.offered

    def _entry(self, offered: Offer | None, played: int) -> tuple[int, tuple[int, ...]] | None:
        """Return the sum that a reward enters, and its weight there, once the policy has learned what it waits for."""
        if not self._unlearned:
            return self._plain_entry(offered, played)
        if self._waits_for == "all":
            self._settle()
        entry = self._plain_entry(offered, played)
        if self._waits_for == "own" and entry is not None and any(entry[0] in row.keys for row in self._unlearned):
            self._settle()
        return entry

    def _plain_entry(self, offered: Offer | None, played: int) -> tuple[int, tuple[int, ...]] | None:
        if offered is None:
            entry = self._policy.entry(self._public.policy, played)
        else:
            entry = self._policy.entry_of(self._public.policy, offered, played)
        if entry is not None and (type(entry[0]) is not int or not 0 <= entry[0] < LARGEST_KEY):
            raise InvalidInput(
                f"{type(self._policy).__name__} names a sum that is no int from 0 to 2^62, of type "
                f"{type(entry[0]).__name__}"
            )
        return entry

    def _wait(self, decision: OpenDecision, more: int) -> None:
        """Count a decision for its action as open, or no longer."""
        if self._names:
            self._public.waiting[decision.action] += more

    def _first_episode(self, key: int, weight: tuple[int, ...]) -> Episode:
        self._private.episodes[key] = first = self._open_episode(key, 1, len(weight))
        return first

    def _open_episode(self, key: int, number: int, dimension: int) -> Episode:
        return self._door.open_episode(key, number, dimension, self._policy.declared_weight)

    def _learn(self, row: Release) -> None:
        """Let the policy learn a release. It is in the ledger for good by now, whatever the policy makes of it.

        Were it not, a policy that fails at some values and not at others would choose among draws, and the choice
        would tell of rewards that no row charges.
        """
        failure: BaseException | None = None
        try:
            self._policy.learn(self._public.policy, row, self._public.asked + 1)
        except BaseException as error:
            failure = error
        if failure is not None:
            self._fail(f"at release {row.number}", failure)
        if self._file is not None:
            self._file.learned(row.number)

    def _encode_before_draw(self, file: SqliteStore) -> None:
        """Encode what the policy knows besides its releases, so that nothing of its code runs between draw and file."""
        if self._policy.changes_on_arrival:
            self._encode_learned(file)
            file.arrived(encoded(self._policy.dump_arrivals(self._public.policy)))

    def _encode_learned(self, file: SqliteStore) -> None:
        """Encode the policy's state where it has learned something that the file does not have yet."""
        if not file.is_behind:
            return
        failure: BaseException | None = None
        try:
            file.encoded(encoded(self._policy.dump_state(self._public.policy)))
        except BaseException as error:
            failure = error
        if failure is not None:
            self._fail("to write its state down", failure)

    def _fail(self, where: str, failure: BaseException) -> NoReturn:
        """End with everything released in the ledger, on disk and readable. Raises what the caller is told.

        The policy's own words are not passed on, nor its frames: they hold what the caller of `tell` told.
        """
        if self._file is not None:
            self._write(self._file.commit)
        self._failed = f"{type(self._policy).__name__} failed {where}, with {type(failure).__name__}"
        self._dirty = False
        self._end(self._failed, readable=True)
        if isinstance(failure, Exception):
            self._refuse()
        failure.__context__ = failure.__cause__ = None
        raise failure.with_traceback(None)

    def _whole(self, episode: Episode, weight: tuple[int, ...], reward: int) -> Outgoing:
        """What is to be released: the episode with one reward more, alone or with others."""
        full = episode.with_one_more(weight, reward)
        composition, together = self._door.composition, None
        if composition.joins_sums:
            together = self._policy.combination(self._public.policy, episode.key, self._arrived)
        if together is None:
            return composition.compose(full)
        if episode.key not in together.keys:
            raise InvalidInput(f"the sum {episode.key} is due, and {together.keys} are to be released")
        parts = [full if key == episode.key else self._private.episodes[key] for key in together.keys]
        return self._door.combine(parts, together.weights)

    def _release(
        self,
        episode: Episode,
        weight: tuple[int, ...],
        reward: int,
        whole: Outgoing | None = None,
    ) -> Release:
        """Release the episode with one reward more, alone or with others, and open the next ones."""
        open_sums = self._private.episodes
        whole = whole or self._whole(episode, weight, reward)
        before = {key: open_sums[key] for key in whole.keys}
        kept = whole.carried_over
        # Taken out first: whatever happens, these episodes do not go through the door twice.
        for key, old in before.items():
            following = self._open_episode(key, old.number + 1, len(old.weight_sums))
            following.kept = kept
            open_sums[key] = following
        try:
            return self._door.release(whole)
        except NoiseFailed:
            open_sums.update(before)
            raise

    def _reopen(self, key: str, decision: OpenDecision, offered: Offer | None = None) -> None:
        """Undo the closing of a decision whose reward could not be taken."""
        public = self._public
        public.open[key] = decision
        if self._hides_offers and offered is not None:
            self._private.offered[key] = offered
        public.open = dict(sorted(public.open.items(), key=lambda item: item[1].number))
        self._wait(decision, 1)
        if decision.person is not None:
            self._people.count_rewards_of(decision.person, -1)
        if self._file is not None:
            self._encode_before_draw(self._file)  # anew, without the arrival

    def _within_limit(self, person: str) -> bool:
        return self._limit is None or self._people.rewards_of(person) < self._limit

    def _give_up(self, key: str, opened: OpenDecision) -> None:
        del self._public.open[key]
        self._private.offered.pop(key, None)
        self._wait(opened, -1)
        if self._file is not None:
            self._file.closed(opened, (), None)

    # What is public.

    def estimates(self, delta: float = 0.05) -> list[Estimate]:
        """Each arm's mean with an interval, from releases only.

        With probability at least 1 - delta the intervals of all arms are right at all times together, if the
        rewards of an arm share one mean whatever happened before. Where actions are new at each step there are no arms,
        and the list is empty: see `learned`.
        """
        check_probability("delta", delta)
        if self._lock._is_owned():  # type: ignore[attr-defined]
            self._refuse_reentry()
        with self._lock:
            self._check_learned()
            return self._policy.estimates(self._public.policy, delta)

    def guarantee(self, delta: float | None = None) -> Guarantee:
        """What is promised and spent, as rho, as (epsilon, delta) and in words.

        delta: 1e-6 unless given, or the budget's own.
        """
        settings = self._settings
        if delta is None:
            delta = getattr(settings.policy.promise, "delta", 1e-6)
        check_probability("delta", delta)
        total = self.ledger.total
        return guarantee_for(
            settings.policy.promise,
            settings.unit,
            settings.max_rewards_per_person,
            total,
            delta,
            private=self._door.secret,
            joint=settings.policy.private_contexts,
            seeded=settings.seed is not None,
        )

    @property
    def ledger(self) -> Ledger:
        """Every release so far and its cost, as it stands now."""
        if self._lock._is_owned():  # type: ignore[attr-defined]
            self._refuse_reentry()
        with self._lock:  # a release is seen by nobody before it is on disk
            self._check_readable()
            return self._door.ledger.copy()

    @property
    def learned(self) -> dict[str, Any]:
        """What the policy has made of the releases, as plain data: its means, what is left, what it plans. Public."""
        if self._lock._is_owned():  # type: ignore[attr-defined]
            self._refuse_reentry()
        with self._lock:
            self._check_learned()
            return self._policy.dump_state(self._public.policy)

    @property
    def policy(self) -> Policy[Any]:
        """The policy with the budget that was asked for."""
        return self._settings.policy

    @property
    def settings(self) -> dict[str, Any]:
        """What the agent was made with."""
        s = self._settings
        return {
            "reward_range": (s.reward_range.low, s.reward_range.high),
            "max_rewards_per_person": s.max_rewards_per_person,
            "unit": s.unit,
            "seed": s.seed,
            "give_up_after": s.give_up_after,
        }

    @property
    def open_decisions(self) -> list[Decision]:
        """Decisions that wait for a reward, oldest first."""
        if self._lock._is_owned():  # type: ignore[attr-defined]
            self._refuse_reentry()
        with self._lock:
            self._check_readable()
            return [Decision(key, o.action, self._name(o.action)) for key, o in self._public.open.items()]

    def __repr__(self) -> str:
        public = self._public
        s = self._settings
        options = f"reward_range=({s.reward_range.low:g}, {s.reward_range.high:g}), unit={s.unit!r}"
        if s.seed is not None:
            options += f", seed={s.seed}: no privacy"
        if self._failed is not None:
            options += f", {self._failed}"
        return f"Agent({self.policy}, {options}, {public.asked} asked, {len(public.open)} open)"

    # Its life.

    def close(self) -> None:
        """Let go of the file. An agent in memory is gone with this."""
        if self._lock._is_owned():  # type: ignore[attr-defined]
            self._refuse_reentry()
        with self._lock:
            if self._ended is None:
                if self._file is not None and not self._dirty:
                    with suppress(AgentClosed):  # what the policy made of its last release can be learned again
                        self._write(self._file.finish)
                self._end("was closed", readable=not self._dirty)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError("an agent cannot be copied or pickled: two copies of one state would spend the budget twice")

    def _commit(self, file: SqliteStore) -> None:
        """Make everything lasting that changed in this call."""
        self._encode_learned(file)
        if self._policy.changes_on_arrival and file.has_arrivals:
            file.arrived(encoded(self._policy.dump_arrivals(self._public.policy)))
        self._write(file.commit)
        self._dirty = False

    def _write(self, write: Callable[[PublicState], None]) -> None:
        """Write to the file, or end."""
        failure, moved = None, None
        try:
            write(self._public)
        except (sqlite3.Error, UnicodeDecodeError) as error:  # the latter where a damaged text is part of the former
            failure = database_failure(error)
        except AgentClosed as error:  # the file is not where it was, or not this agent's any more
            moved = error.with_traceback(None)
        if moved is not None:
            self._end("has ended, as its file was moved, cut or taken over", readable=False)
            raise moved
        if failure is not None:  # told outside of the block above, whose exception knows what was to be written
            self._end(f"could not write its file ({failure})", readable=False)
            raise AgentClosed(
                f"the agent could not write its file ({failure}) and has ended; the file holds everything up to "
                "the call before: mend the cause, resume with Agent.open(path) and tell again"
            )

    def _failure(self, error: BaseException) -> BaseException:
        """Return the exception that is safe to raise. After half of a change the file is right, and this agent ends.

        The next agent on the file draws noise anew for sums whose release is not on disk. Nothing of that release may
        be seen: the frames that hold it, which crash reporters log, are dropped. So are those that hold contexts, where
        these are private, or the reward at which a policy failed.
        """
        if not (self._dirty or self._hides_offers or self._failed):
            return error
        error.__context__ = error.__cause__ = None
        error = error.with_traceback(None)
        if self._dirty and self._ended is None:
            self._end("was interrupted", readable=False)
        return error

    def _end(self, reason: str, readable: bool) -> None:
        """No more changes. What did not reach the file may not be read either: it was never released."""
        self._readable = self._readable and readable
        self._ended = reason
        self._unlearned.clear()
        if self._file is not None:
            self._file.close()

    # Checks. None of them looks at a sum.

    def _refuse_reentry(self) -> NoReturn:
        """A signal handler or finalizer that runs in the middle of a call would see, or write, half of a change."""
        raise AgentBusy("the agent is in the middle of a call of this thread: in a signal handler, set a flag")

    def _check_readable(self) -> None:
        if self._dirty or not self._readable:
            self._refuse()

    def _check_learned(self) -> None:
        """Refuse to read from a policy that has not learned all releases."""
        self._check_readable()
        if self._failed is not None:
            self._refuse()

    def _refuse(self) -> NoReturn:
        if self._failed is not None:
            raise PolicyFailed(
                f"{self._failed}. Everything released is in the agent's ledger, and nothing is drawn again. Mend the "
                "policy, whose learn gets the last row of the ledger, and resume with Agent.open(path) if it has a file"
            )
        reason = self._ended or "was interrupted"
        raise AgentClosed(f"the agent {reason}: resume it with Agent.open(path) if it has a file")

    def _check_told(self, decision: Decision | str, reward: Any, played: int | str | None) -> _Told:
        key = decision.id if type(decision) is Decision else decision
        opened = self._public.open.get(key) if type(key) is str else None
        if opened is None:
            key, opened = self._find(decision)
        action = opened.action if played is None else self._check_action(played, self._offered(str(key), opened))
        return key, opened, action, self._range.to_grid(reward, self._steps)  # type: ignore[return-value]

    def _find(self, decision: Decision | str) -> tuple[str, OpenDecision]:
        key = decision.id if type(decision) is Decision else decision
        if not isinstance(key, str):
            raise UnknownDecision(f"expected a decision or its id, got a value of type {type(decision).__name__}")
        opened = self._public.open.get(key)
        if opened is not None:
            return key, opened
        if self._was_handed_out(key):
            raise ClosedDecision(f"decision {key} is closed: its reward was told before, or it was given up")
        raise UnknownDecision(f"decision {key!r} was not handed out by this agent")

    def _was_handed_out(self, key: str) -> bool:
        token, _, rest = key.partition("-")
        generation, _, number = rest.partition("-")
        return (
            len(key) < 100
            and token == self._settings.token
            and generation.isdecimal()
            and number.isdecimal()
            and 1 <= int(generation) <= self._public.generation
            and 1 <= int(number) <= self._public.asked
        )

    def _check_action(self, played: int | str, offered: Offer | None) -> int:
        names = self._names if offered is None else [f"action {i}" for i in range(len(offered))]
        if isinstance(played, str):
            if played not in names:
                raise InvalidInput(f"played must be one of the arms {list(names)}, got {played!r}")
            return names.index(played)
        try:
            action = -1 if isinstance(played, bool) else operator.index(played)
        except TypeError:
            action = -1
        if not 0 <= action < len(names):
            # Not named: a reward and an action that changed places would end up in a log.
            raise InvalidInput(f"played must be an arm from 0 to {len(names) - 1}, or the name of one")
        return action

    def _check_person(self, person: str | None) -> str:
        if not isinstance(person, str) or not person:
            raise InvalidInput(
                f"max_rewards_per_person={self._limit} needs ask(person='...'), a text, got a value of type "
                f"{type(person).__name__}{' without a letter' if person == '' else ''}"
            )
        return self._settings.hash_person(person)


def _door(settings: Settings, ledger: Ledger) -> Door:
    """The door for one reward's share of the budget."""
    budget: Budget = settings.policy.promise
    if settings.unit == "person" and settings.max_rewards_per_person is not None:
        budget = budget.per_reward(settings.max_rewards_per_person)
    policy, bounds = settings.policy, settings.reward_range
    if policy.factor is not None and type(policy).combination is not Policy.combination:
        raise InvalidInput(
            f"{type(policy).__name__} has a factor and a combination, and sums that leave together hold no earlier "
            "episode again: leave one of the two out"
        )
    for name in ("tree_levels", "weight_room", "declared_weight"):
        value = getattr(policy, name)
        if type(value) is not int or value < 0:  # a number of fixed size would wrap around where it is squared
            raise InvalidInput(f"{name} of {type(policy).__name__} must be an int of at least 0, got {value!r}")
    served = policy.with_budget(budget)
    if (served.tree_levels, served.factor) != (policy.tree_levels, policy.factor):
        raise InvalidInput(
            f"{type(policy).__name__} releases a reward more or less often under {budget}, one reward's share of the "
            "budget: tree_levels and factor must not depend on the budget"
        )
    moments = policy.moments(bounds.low, bounds.high)
    return Door(
        budget,
        bounds,
        ledger,
        settings.seed,
        policy.weight_room if moments is None else moments.room,
        releases_of_a_reward=max(1, policy.tree_levels),
        factor=policy.factor,
        moments=moments,
    )


def encoded(state: Any) -> str:
    """Return a policy's state as JSON. Refuses what is no dictionary, which no file could be resumed with."""
    if type(state) is not dict:
        raise InvalidInput(f"a policy's state must be dumped as a dict, got a {type(state).__name__}")
    return json.dumps(state)


def _told_parts(item: Any) -> tuple[Any, Any, Any]:
    parts = tuple(item) if isinstance(item, (tuple, list)) else ()
    if len(parts) not in (2, 3) or isinstance(item, Decision):
        raise InvalidInput("tell_many takes (decision, reward) or (decision, reward, played) for each reward")
    return parts[0], parts[1], parts[2] if len(parts) == 3 else None


def _count(n: int) -> int:
    count = whole_number("n", n, 1)
    assert count is not None
    return count
