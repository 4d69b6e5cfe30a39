"""Black specimens that have more than ask and tell."""

from __future__ import annotations

import math
from typing import Any

from tests.audit.specimens.black_actions import Remembering
from tests.audit.specimens.black_parts import BlackBox, Doubling, Pick
from tests.audit.specimens.listing import correct, specimen


class Able(Remembering):
    """Asks for several decisions, takes several rewards, and starts from a log of (arm, reward)."""

    def ask(self, n: int | None = None) -> Any:
        return super().ask() if n is None else [self.next_of(i) for i in range(n)]

    def next_of(self, place: int) -> Any:
        """A decision that is asked for with others, at this place."""
        return super().ask()

    def tell_many(self, rewards: Any) -> Any:
        for item in rewards:
            decision, reward, *played = item
            self.tell(decision, reward, played=played[0] if played else None)

    def warm_start(self, log: Any) -> Any:
        for arm, reward in log:
            self.learn(int(arm), self.check(reward))
        return len(log)


@correct()
def make_black_able() -> BlackBox:
    """Correct: doubling UCB with ask(n), tell_many and warm_start."""
    return Able(2)


class Unlike(Doubling):
    """Its methods have the names of this package's, and other arguments."""

    def ask(self, n: str = "x") -> Any:
        return super().ask()

    def tell_many(self, decisions: Any, rewards: Any) -> None:
        for decision, reward in zip(decisions, rewards, strict=True):
            self.tell(decision, reward)

    def warm_start(self, path: Any) -> None:
        raise FileNotFoundError(f"no such file: {path}")


@correct()
def make_black_unlike() -> BlackBox:
    """Correct: its tell_many and warm_start want other arguments than this package's."""
    return Unlike(2)


class BatchAnswers(Able):
    def tell_many(self, rewards: Any) -> float:
        super().tell_many(rewards)
        return sum(self.of(0)) + sum(self.of(1))


@specimen(cost=math.inf, shows="tell_many's answer")
def make_black_batch_answers_sum() -> BlackBox:
    """tell_many returns the sum of all rewards: infinite."""
    return BatchAnswers(2)


class BatchStops(Able):
    def tell_many(self, rewards: Any) -> None:
        for decision, reward, *_ in rewards:
            self.tell(decision, reward)
            if reward < 0.25:
                raise RuntimeError("the rest can wait")


@specimen(cost=math.inf, shows="errors")
def make_black_batch_stops_at_zero() -> BlackBox:
    """A batch ends with its first reward below 0.25: infinite, through the error alone."""
    return BatchStops(2)


class AskManyRaw(Able):
    def next_of(self, place: int) -> Any:
        decision = super().next_of(place)
        if not place:
            return decision
        self._open[decision.id] = self.raw_best()
        return Pick(self.raw_best(), decision.id)


@specimen(cost=math.inf)
def make_black_ask_many_raw() -> BlackBox:
    """Decisions asked for at once are, all but the first, the raw best arm: infinite."""
    return AskManyRaw(2)


class RawStart(Able):
    def warm_start(self, log: Any) -> int:
        super().warm_start(log)
        for arm in range(self.arms):
            if self.of(arm):
                self.last[arm] = self.released[arm] = len(self.of(arm))
                self.means[arm] = sum(self.of(arm)) / len(self.of(arm))
        self.choice = self.best()
        return len(log)


@specimen(cost=math.inf)
def make_black_warm_start_raw() -> BlackBox:
    """A log's means are taken as they are: infinite."""
    return RawStart(2)


class NoteTells(Remembering):
    def tell(self, decision: Any, reward: float, *, played: int | None = None) -> None:
        try:
            super().tell(decision, reward, played=played)
        except LookupError as error:
            error.add_note(f"told so far: {sum(r for _, r in self.told)}")
            raise


@specimen(cost=math.inf, shows="errors")
def make_black_note_tells_sum() -> BlackBox:
    """Telling a decision twice is refused with the sum of all rewards in a note: infinite."""
    return NoteTells(2)


class Exits(Remembering):
    def choose(self) -> int:
        if [r for _, r in self.told[-2:]] == [0.0] * 2:
            raise SystemExit("no luck")
        return super().choose()


@specimen(cost=math.inf)
def make_black_exits_after_zeros() -> BlackBox:
    """After two raw zeros in a row an ask wants to end the process: infinite."""
    return Exits(2)
