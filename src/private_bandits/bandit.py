"""The state machine: decide, take a reward, give up, compose a release, learn.

It has no lock, no file, no thread and no clock. It looks things up in its `Records` (state.py), and tells them every
change, so that an agent in one process and a service with many workers can run it alike. The way of a reward:
`tell` -> `take` -> `compose`, if it completes a sum -> its decision is closed -> `Door.release` -> `settle` -> `learn`.

Guaranteed: everything that it says depends on rewards only through `Door.release` (docs/guarantees.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from private_bandits.arguments import as_action, check_person, check_played, parsed_id, told_parts
from private_bandits.checks import whole_number
from private_bandits.errors import (
    CapacityExceeded,
    ClosedDecision,
    InvalidInput,
    NoiseFailed,
    PrivateBanditsError,
    UnknownDecision,
)
from private_bandits.mechanism.composition import Outgoing
from private_bandits.mechanism.episode import Episode, OpenCounts
from private_bandits.mechanism.release import Door
from private_bandits.policies import Offer, Policy
from private_bandits.policies.base import nothing_to_undo
from private_bandits.policies.named_offer import NamedOffer, offer_of
from private_bandits.releasing import Releasing
from private_bandits.state import Decision, Ending, OpenDecision, PrivateState, PublicState, Records, Settings

Told = tuple[OpenDecision, int, int]
"""A checked reward on its way into a sum: the decision, the action played, the reward on the grid."""

Entry = tuple[int, tuple[int, ...]]
"""The key of the sum that a reward enters, and its weight there."""

LARGEST_KEY = 2**62
"""A policy names its sums by whole numbers below this."""

_ENDED: dict[Ending, str] = {
    "told": "its reward was told before",
    "given_up": "it was given up",
    "out_of_time": "it was given up, as its reward had not come within give_up_after",
    "over_limit": "its reward was told before, and not taken, as its person had max_rewards_per_person",
    "dropped": "its reward was told before, and not taken, as the policy had no use for it",
}

_new_tuple = tuple.__new__  # twice as fast as calling the class, in the two calls that everyone waits for


class Bandit(Releasing):
    """Public and private state of one bandit, and the only ways in which they change.

    Methods that change something begin with checks, which change nothing. Once `unfinished` is True a change is under
    way that may not be left half done: whoever sees an exception then must not use this object any more. Its records
    are right. With records that last, it stays True until whoever runs this has made the change lasting.
    """

    def __init__(
        self, settings: Settings, door: Door, public: PublicState, private: PrivateState, records: Records
    ) -> None:
        super().__init__(settings, door, public, private, records)
        self.arrived = OpenCounts(private.episodes)
        self._names = self.policy.arm_names
        self._numbers = {name: number for number, name in enumerate(self._names)}
        self._limit = settings.max_rewards_per_person
        self.coin = settings.coin
        self._hides_offers = self.policy.private_contexts
        self._waits = self.policy.waits_for == "all"
        self._prefix = f"{settings.token}-{public.generation}-"
        self._range, self._steps = settings.reward_range, door.grid.steps
        self._give_up_after = settings.give_up_after if isinstance(settings.give_up_after, int) else None
        self.now = 0
        """The time in microseconds since 1970. Whoever runs this sets it, where decisions are given up after a time."""
        # Not called where a policy leaves them as they are: these are the calls that everyone waits for.
        self._notes_arrivals = type(self.policy).arrive is not Policy.arrive
        self._takes_offers = type(self.policy).offer is not Policy.offer

    # Asking.

    def ask(self, n: int | None, actions: Any, person: str | None) -> Decision | list[Decision]:
        """Make the next decision, or a list of n."""
        if self.ended is not None or self.unfinished:
            self.refuse()
        if self.public.ended.closing_from:
            self.refuse_finished()
        who = None if self._limit is None else self.hashed_person(person)
        count = None if n is None else whole_number("n", n, 1)
        offered = None
        if actions is not None or self._takes_offers:
            offered = offer_of(self.policy, actions)
        if offered is not None or who is not None:
            self.check_running()  # once more: the code of an argument's own type may have forked, or closed
        self.unfinished = self._lasting
        if count is None:
            made: Decision | list[Decision] = self.decide(who, offered)
        else:
            made = [self.decide(who, offered) for _ in range(count)]
        if self.public.times is not None:
            self.records.timed(self.public.times.note(self.public.asked, self.now))
        return made

    def decide(self, person: str | None, offered: Offer | None) -> Decision:
        """Make one decision, for the hash of a person, among the actions offered if they change."""
        public = self.public
        if offered is None:
            if self.coin is not None and self.coin.gives_control(public.asked + 1):
                action = self.coin.action  # whatever was learned: the coin alone decides
            else:
                action = self.policy.recommend(public.policy, public.waiting, self.arrived, public.asked + 1)
            if type(action) is not int or not 0 <= action < len(public.waiting):
                action = self._checked_action(action, len(public.waiting))
            public.waiting[action] += 1
        else:
            action = self.policy.choose(public.policy, offered, public.asked + 1)
            if type(action) is not int or not 0 <= action < len(offered):
                action = self._checked_action(action, len(offered))
        public.asked = number = public.asked + 1
        key = f"{self._prefix}{number}"
        shown = None if self._hides_offers else offered
        arm = offered.names[action] if type(offered) is NamedOffer else None
        self.records.asked(_new_tuple(OpenDecision, (key, number, action, person, shown, arm)), offered)
        if self._give_up_after is not None:
            self._give_up_old(self._give_up_after)
        if arm is None:
            arm = self._names[action] if self._names else f"action {action}"
        return _new_tuple(Decision, (key, action, arm))

    def _checked_action(self, recommended: Any, actions: int) -> int:
        # With private contexts the recommendation depends on them, and an error may end up in a log.
        return as_action(type(self.policy).__name__, recommended, actions, hidden=self._hides_offers)

    def name_of(self, opened: OpenDecision) -> str:
        """Return the name of the action that was recommended."""
        return opened.arm or (self._names[opened.action] if self._names else f"action {opened.action}")

    def _give_up_old(self, after: int) -> None:
        """Close the decision that is now `after` decisions old, if it is open. Each ask makes one decision so old."""
        oldest = self.records.numbered(self.public.asked - after)
        if oldest is not None:
            self._close(oldest, "out_of_time")

    def give_up_late(self) -> None:
        """Close the decisions that are out of time now. An agent that has ended, or is finished, keeps them."""
        times, mark = self.public.times, None
        if times is not None and self.ended is None and not (self.unfinished or self.finished):
            mark = times.late(self.now)
        if times is None or mark is None:
            return
        self.unfinished = True  # in memory too: a decision may not be closed in part
        for number in range(times.handled + 1, mark[1] + 1):
            late = self.records.numbered(number)
            if late is not None:
                self._close(late, "out_of_time")
        times.drop(mark)
        self.records.untimed(mark)
        self.unfinished = self._lasting

    def close_late(self, late: Iterable[OpenDecision]) -> None:
        """Close open decisions that are out of time, where the records know which."""
        self.check_running()
        self.unfinished = True
        for opened in late:
            self._close(opened, "out_of_time")
        self.unfinished = self._lasting

    # Telling.

    def tell(self, decision: Decision | str, reward: Any, played: int | str | None) -> None:
        """Take the reward of a decision, and release and learn what it completes."""
        if self.ended is not None or self.unfinished:
            self.refuse()
        if self.public.ended.closing_from:
            self.refuse_finished()
        told = self._check_told(decision, reward, played)
        self.check_running()  # once more, as in ask
        self.unfinished = self._lasting
        refused = self.take(told)
        if refused is not None:
            self.unfinished = False
            raise refused
        if self.unlearned:
            self.settle()

    def tell_many(self, items: Sequence[Any]) -> PrivateBanditsError | None:
        """Take many rewards, all of them checked first.

        Returns the refusal of the first that could not be taken, if there is one. Those before it are taken.
        """
        self.check_running()
        if self.finished:
            self.refuse_finished()
        batch = self._checked_batch(items)
        seen: set[str] = set()
        for decision, _, _ in batch:
            if decision.id in seen:
                raise ClosedDecision(f"decision {decision.id} is twice in the batch: nothing was changed")
            seen.add(decision.id)
        self.check_running()  # once more, as in ask
        self.unfinished = self._lasting
        refused: PrivateBanditsError | None = None
        try:
            for taken, told in enumerate(batch):
                refused = self.take(told)
                if refused is not None:
                    refused.add_note(f"{taken} of {len(batch)} rewards were taken before; the others are still open")
                    break
            self.settle()
        except BaseException as error:
            failure = self._settled_after(error)
        else:
            return refused
        raise failure

    def _checked_batch(self, items: Sequence[Any]) -> list[Told]:
        """Return the rewards of a batch, each checked. A refusal says which one it is of."""
        batch: list[Told] = []
        try:
            for item in items:
                batch.append(self._check_told(*told_parts(item)))  # noqa: PERF401  (the error needs their number)
        except PrivateBanditsError as error:
            error.add_note(f"this is number {len(batch) + 1} of the {len(items)} in the batch: nothing was changed")
            raise
        return batch

    def give_up(self, decision: Decision | str) -> None:
        """Close a decision whose reward will never come."""
        self.check_running()
        opened = self._find(decision)
        self.unfinished = self._lasting
        self._close(opened, "given_up")

    def take(self, told: Told) -> PrivateBanditsError | None:
        """Add a checked reward to its sum, and release the sum if that completes it.

        Returns the refusal, if there is one: then nothing was changed. Whatever is raised here instead, by an
        interrupt or a signal handler, opens nothing again. The decision is closed and its person counted before
        the sum changes, so that no reward counts twice or beyond the limit.
        """
        self._midway = False
        decision, played, reward = told
        policy, state = self.policy, self.public.policy
        offered = self.offered_to(decision) if self._takes_offers else None
        if self.unlearned and self._waits:
            self.settle()
        entry = self.entry(offered, played)
        if entry is None or not (decision.person is None or self.people.may_tell(decision.person, entry[0])):
            self._close(decision, "dropped" if entry is None else "over_limit")
            return None
        key, weight = entry
        episode = self.private.episodes.get(key) or self._first_episode(key, weight)
        if weight is not episode.last_weight or episode.count >= episode.fits:
            refusal = episode.refusal(weight)
            if refusal is not None:
                return refusal
        whole, undo = None, nothing_to_undo
        if self._notes_arrivals:
            undo = policy.arrive(state, key, () if self._hides_offers else weight)
        try:
            if policy.due(state, key, episode.count + 1, self.arrived):
                whole = self.compose(episode, weight, reward)
                self.encode_before_draw()
                undo_leave = policy.leave(state, {part.key: part.rewards for part in whole.parts if part.new})
        except BaseException as stopped:
            undo()  # the decision is still open, and its action would be there twice when it is told again
            return _refusal_or_raise(stopped)
        self._midway = True
        uncount = self._close_told(decision, key)
        if whole is not None:
            return self._draw(whole, decision, offered, uncount, (undo_leave, undo))
        episode.add(weight, reward)
        if self._lasting:
            self.records.summed((episode,))
            self._has_arrivals = True
        self._midway = False
        return None

    def _close_told(self, decision: OpenDecision, key: int) -> Callable[[], None]:
        """Close a decision whose reward is taken, and count its person's rewards. Returns how to undo the count."""
        self.records.closed(decision, "told")
        self._no_longer_waiting(decision)
        return nothing_to_undo if decision.person is None else self.people.count(decision.person, key)

    def offered_to(self, decision: OpenDecision) -> Offer | None:
        """Return the actions that there were to choose from, where they change."""
        return self.records.offered_to(decision) if self._hides_offers else decision.offered

    def entry(self, offered: Offer | None, played: int) -> Entry | None:
        """Return the sum that a reward enters, and its weight there; None: the reward is dropped."""
        if offered is None:
            entry = self.policy.entry(self.public.policy, played)
        else:
            entry = self.policy.entry_of(self.public.policy, offered, played)
        if entry is not None and (type(entry[0]) is not int or not 0 <= entry[0] < LARGEST_KEY):
            raise InvalidInput(
                f"{type(self.policy).__name__} names a sum that is no int from 0 to 2^62, of type "
                f"{type(entry[0]).__name__}"
            )
        return entry

    def _first_episode(self, key: int, weight: tuple[int, ...]) -> Episode:
        self.private.episodes[key] = first = self.open_episode(key, 1, len(weight))
        return first

    def _no_longer_waiting(self, decision: OpenDecision) -> None:
        if self._names:
            waiting, action = self.public.waiting, decision.action
            waiting.fallen.add(action)
            waiting[action] -= 1

    def _close(self, opened: OpenDecision, ending: Ending) -> None:
        """Close a decision without a reward that counts."""
        self.records.closed(opened, ending)
        self.public.ended.count(ending)
        self._no_longer_waiting(opened)

    def _reopen(self, decision: OpenDecision, offered: Offer | None, uncount: Callable[[], None]) -> None:
        """Undo the closing of a decision whose reward could not be taken. uncount: undoes the count of its person."""
        self.records.reopened(decision, offered)
        if self._names:
            self.public.waiting[decision.action] += 1
        uncount()

    # Releasing and learning.

    def compose(self, episode: Episode, weight: tuple[int, ...], reward: int) -> Outgoing:
        """Return what is to be released: the episode with one reward more, alone or with others."""
        full = episode.with_one_more(weight, reward)
        composition, together = self.door.composition, None
        if composition.joins_sums:
            together = self.policy.combination(self.public.policy, episode.key, self.arrived)
        if together is None:
            return composition.compose(full)
        if episode.key not in together.keys:
            raise InvalidInput(f"the sum {episode.key} is due, and {together.keys} are to be released")
        parts = [full if key == episode.key else self.private.episodes[key] for key in together.keys]
        return self.door.combine(parts, together.weights)

    def _draw(
        self,
        whole: Outgoing,
        decision: OpenDecision,
        offered: Offer | None,
        uncount: Callable[[], None],
        undo: Iterable[Callable[[], None]],
    ) -> NoiseFailed | None:
        """Release what the last reward completes. Nobody sees the release before `settle`.

        Returns the failure where no noise could be drawn: it comes before any sum was changed. It opens the decision
        again, and nothing else may.
        """
        before = self.unfinished
        self.unfinished = True  # in memory too: what a policy missed of a release it would read wrongly from the next
        failed: NoiseFailed | None = None
        try:
            row = self.release(whole)
        except NoiseFailed as error:
            self.unfinished = before
            failed = error.with_traceback(None)
        else:
            self.drawn(row)
        if failed is not None:
            self._reopen(decision, offered, uncount)
        self._midway = False
        if failed is not None:
            for take_back in undo:
                take_back()
            self.encode_before_draw()  # anew, without the arrival
        return failed

    def _settled_after(self, error: BaseException) -> BaseException:
        """Keep the releases of a batch that an error cut short, and return the error to raise.

        No draw is lost because a policy failed at a later reward. Where an interrupt came while a reward was taken, or
        a release written, nothing more is written: half of a change would be.
        """
        if self.unlearned and not self._midway and self.ended is None:
            try:
                self.settle()
            except BaseException as other:
                return other
        return error

    # Checks. None of them looks at a sum.

    def _check_told(self, decision: Decision | str, reward: Any, played: int | str | None) -> Told:
        key = decision.id if type(decision) is Decision else decision
        opened = self.records.find(key) if type(key) is str else None
        if opened is None:
            opened = self._find(decision)
        action = opened.action
        if played is not None:
            action = check_played(played, self._numbers, self.offered_to(opened), hidden=self._hides_offers)
        return opened, action, self._range.to_grid(reward, self._steps)

    def _find(self, decision: Decision | str) -> OpenDecision:
        key = decision.id if type(decision) is Decision else decision
        if not isinstance(key, str):
            raise UnknownDecision(f"expected a decision or its id, got a value of type {type(decision).__name__}")
        opened = self.records.find(key)
        if opened is not None:
            return opened
        number = self._number_of(key)
        if number is not None:
            raise ClosedDecision(f"decision {key} is closed: {self._how_it_ended(number)}")
        raise UnknownDecision(
            f"decision {key!r} was not handed out by this agent, or was lost with a part of its file: "
            "tell what ask() returned, or its id"
        )

    def _number_of(self, key: str) -> int | None:
        """Return the number of a decision that was handed out, and not lost; None of any other id."""
        found = parsed_id(key, self.settings.token)
        if found is None:
            return None
        generation, number = found
        last = self.public.asked
        if generation < self.public.generation:  # what was asked last may have been lost with a log, or in a power cut
            last = min(last, self.records.asked_in(generation))
        return number if generation <= self.public.generation and number <= last else None

    def _how_it_ended(self, number: int) -> str:
        ending = self.records.ending_of(number)
        if ending == "told" and number <= self.public.ended.unknown_up_to:
            return "its reward was told before, or it was given up: the version that closed it did not note which"
        return _ENDED[ending]

    def hashed_person(self, person: str | None) -> str:
        """Return the keyed hash that stands for a person."""
        return self.settings.hash_person(check_person(person, self._limit))


def _refusal_or_raise(stopped: BaseException) -> PrivateBanditsError:
    """Return the refusal of a sum that cannot leave. Its frames hold the action, which may be private."""
    if isinstance(stopped, (CapacityExceeded, InvalidInput)):
        return stopped.with_traceback(None)
    raise stopped
