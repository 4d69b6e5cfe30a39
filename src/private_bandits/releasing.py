"""How sums leave: through the door, into the records, to the policy; one by one, from a log, and all at the end.

Guaranteed: a release is in the records for good before anyone sees it, and no episode leaves twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from private_bandits.errors import AgentFinished, InvalidInput, NoiseFailed
from private_bandits.learning import NO_END, Learning
from private_bandits.ledger import Release
from private_bandits.mechanism.composition import Outgoing
from private_bandits.mechanism.episode import Episode
from private_bandits.mechanism.release import Door
from private_bandits.people import People
from private_bandits.policies import Policy
from private_bandits.state import PrivateState, PublicState, Records, Settings
from private_bandits.verdict import Closing

LoggedReward = tuple[int, tuple[int, ...], int, str | None]
"""A row of a log on its way into a sum: the key, the weight, the reward on the grid, the person."""


class Releasing(Learning):
    """Public and private state of one bandit, and how its sums leave.

    Once `unfinished` is True a change is under way that may not be left half done.
    """

    def __init__(
        self, settings: Settings, door: Door, public: PublicState, private: PrivateState, records: Records
    ) -> None:
        super().__init__(settings.run_policy.with_budget(door.budget), public, records)
        self.settings = settings
        self.door = door
        self.private = private
        self.unlearned: list[Release] = []
        """Releases that are drawn, and not seen by anyone yet."""
        self.unfinished = False
        self._closing: Closing | None = None  # read once: nothing follows it
        self._midway = False  # whether a reward is taken, or a release written, in part
        joins = door.composition.joins_sums and type(self.policy).combination is not Policy.combination
        self.people = People(settings, records, private.episodes, leave_together=joins)
        self._declared = self.policy.declared_weight  # read once, not between a draw and its record

    def open_episode(self, key: int, number: int, dimension: int) -> Episode:
        """Return an empty sum."""
        return self.door.open_episode(key, number, dimension, self._declared)

    def drawn(self, row: Release) -> None:
        """Note a release that was drawn. Nobody sees it before `settle`."""
        self.unlearned.append(row)
        if self._lasting:
            self.door.account.link()  # stored rows are in the chain
            self.records.summed([self.private.episodes[key] for key in row.keys])
        self.records.released(row)

    def release(self, whole: Outgoing) -> Release:
        """Let a composition through the door, and open the episodes that follow those in it."""
        open_sums = self.private.episodes
        before = {key: open_sums[key] for key in whole.keys}
        carried_over = whole.carried_over
        try:
            # Taken out first: whatever happens, these episodes do not go through the door twice.
            for key, old in before.items():
                following = self.open_episode(key, old.number + 1, len(old.weight_sums))
                following.kept = carried_over
                open_sums[key] = following
            return self.door.release(whole)
        except NoiseFailed:
            # A signal handler that uses another agent may raise this too, after the draw: that is an interrupt.
            if any(map(self.door.account.covers, whole.labels)):
                raise RuntimeError("interrupted after a draw") from None
            open_sums.update(before)
            raise

    def settle(self) -> None:
        """Make the releases of this call lasting, and then let the policy learn them, in their order."""
        if not self.unlearned:
            return
        self._midway = True
        if self._lasting:
            self.records.keep_releases(self.public)
        while self.unlearned:
            self.learn(self.unlearned.pop(0))
        self.unfinished = self._lasting
        self._midway = False

    # Finishing.

    def finish(self) -> int:
        """Release what is unreleased, each sum once and like any other, and take no rewards any more.

        Returns how many rewards that were. Where no noise can be drawn, what was drawn before is kept, no reward is
        taken, and finishing again releases the rest.
        """
        self.check_running()
        waiting = {key: episode for key, episode in sorted(self.private.episodes.items()) if episode.count}
        if self.finished and not waiting:
            return 0
        ready = [self.door.composition.compose(episode) for episode in waiting.values()]
        self.encode_before_draw()
        self.unfinished = True
        ended = self.public.ended
        self._closing = None
        ended.closing_from = ended.closing_from or len(self.door.account) + 1
        failed: NoiseFailed | None = None
        for whole in ready:
            try:
                row = self.release(whole)
            except NoiseFailed as error:
                failed = error.with_traceback(None)
                break
            self.drawn(row)  # not above: what fails here fails after the draw
        if failed is None:
            self._forget_carried_over()
        if self.unlearned:
            self.settle()
        elif self._lasting:
            self.records.keep_releases(self.public)
        if failed is not None:
            self.unfinished = False  # nothing is half done
            raise failed
        self.closing()  # read now: it can be looked at when the records are closed, too
        self.unfinished = self._lasting
        return sum(episode.count for episode in waiting.values())

    def _forget_carried_over(self) -> None:
        """Forget the earlier sums that later releases would have held again: nothing follows."""
        changed = [episode for episode in self.private.episodes.values() if episode.kept]
        for episode in changed:
            episode.kept = ()
        if self._lasting:
            self.records.summed(changed)

    def closing(self) -> Closing | None:
        """Return the whole ledger, and where its closing releases begin; None before the end."""
        if not self.finished:
            return None
        if self._closing is None:
            self._closing = Closing(self.records.releases(1, NO_END), self.public.ended.closing_from)
        return self._closing

    def refuse_finished(self) -> NoReturn:
        """Say that no reward is taken any more."""
        raise AgentFinished(
            "the agent is finished: its closing release is made, and it makes no decisions and takes no rewards any "
            "more. Its estimates, verdict and ledger stay; for new rewards make a new agent"
        )

    # Starting from a log.

    def start_from(self, rows: Sequence[LoggedReward], over_limit: int, dropped: int) -> None:
        """Learn from logged rewards before the first decision. The rewards of a sum are its first episode.

        over_limit, dropped: how many other rows the log had, which were not taken.
        """
        self.check_running()
        if self.finished:
            self.refuse_finished()
        public = self.public
        if public.asked:
            raise InvalidInput(
                f"a log comes before the first ask, and {public.asked} decisions were made: start a new agent"
            )
        sums = self._sums_of(rows)
        self.unfinished = True  # in memory too: of a start that is cut short nothing may be seen
        public.asked = len(rows) + over_limit + dropped
        public.ended.count("over_limit", over_limit)
        public.ended.count("dropped", dropped)
        for key, weight, _, person in rows:
            self.policy.arrive(public.policy, key, weight)
            if person is not None:
                self.people.count(person, key)
        self.private.episodes.update(sums)
        self.encode_before_draw()
        for key in sorted(sums):
            self.drawn(self.release(self.door.composition.compose(sums[key])))
        self.settle()
        self.unfinished = self._lasting

    def _sums_of(self, rows: Sequence[LoggedReward]) -> dict[int, Episode]:
        """Return the first episodes, complete. Refused, on public grounds alone, where they do not fit."""
        sums: dict[int, Episode] = {}
        for key, weight, reward, _ in rows:
            if key not in sums:
                sums[key] = self.open_episode(key, 1, len(weight))
            sums[key].add(weight, reward)
        return sums

    def check_running(self) -> None:
        """Refuse a change after the end, or in the middle of another one."""
        if self.ended is not None or self.unfinished:
            self.refuse()
