"""White specimens that show too much beside the actions."""

from __future__ import annotations

import math
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import private_bandits as pb
from private_bandits.agent import bandit_of
from private_bandits.bandit import Bandit
from tests.audit.specimens.listing import Answer, StrPath, specimen
from tests.audit.specimens.white_parts import _KeepingAgent, _open_sums, running, small_policy


class _ErrorTellsReward(pb.Agent):
    def tell(self, decision: pb.Decision | str, reward: float, *, played: int | str | None = None) -> None:
        told: dict[str, float] = self.__dict__.setdefault("_told", {})
        key = decision if isinstance(decision, str) else decision.id
        try:
            super().tell(decision, reward, played=played)
        except pb.errors.ClosedDecision as error:
            raise pb.errors.ClosedDecision(f"{error} (told: {told.get(key)})") from None
        told[key] = reward


@specimen(cost=math.inf, shows="errors")
def make_white_error_tells_reward(path: StrPath | None = None, seed: int | None = None) -> pb.Agent:
    """Telling a decision twice is refused with the reward that was told before: infinite."""
    return _ErrorTellsReward(small_policy(), path=path, seed=seed)


class _VerdictPeeks(pb.Agent):
    def verdict(self, delta: float = 0.05) -> Any:
        sums = _open_sums(bandit_of(self))
        return super().verdict(delta) if max(sums, default=0.0) < 1 else "No arm yet, but one is ahead."


@specimen(cost=math.inf, shows="verdict")
def make_white_verdict_peeks() -> pb.Agent:
    """The verdict looks at sums that are not released: infinite."""
    return _VerdictPeeks(pb.AdaCHalving(2, pb.zCDP(0.5), rewards=24))


class _Talkative(Bandit, ABC):
    """Has more to say where it does not find a decision open."""

    @abstractmethod
    def told_instead(self, error: pb.errors.PrivateBanditsError) -> pb.errors.PrivateBanditsError: ...

    def tell(self, decision: pb.Decision | str, reward: Any, played: int | str | None) -> None:
        self.talking(lambda: super(_Talkative, self).tell(decision, reward, played))

    def tell_many(self, items: Sequence[Any]) -> pb.errors.PrivateBanditsError | None:
        return self.talking(lambda: super(_Talkative, self).tell_many(items))

    def give_up(self, decision: pb.Decision | str) -> None:
        self.talking(lambda: super(_Talkative, self).give_up(decision))

    def talking(self, call: Callable[[], Answer]) -> Answer:
        try:
            return call()
        except (pb.errors.UnknownDecision, pb.errors.ClosedDecision) as error:
            instead = self.told_instead(error)
            raise instead from instead.__cause__


class _ErrorTellsSum(_Talkative):
    def told_instead(self, error: pb.errors.PrivateBanditsError) -> pb.errors.PrivateBanditsError:
        if not isinstance(error, pb.errors.UnknownDecision):
            return error
        return pb.errors.UnknownDecision(f"{error} (sums in the works: {_open_sums(self)})")


@specimen(cost=math.inf, shows="errors")
def make_white_error_tells_sum(path: StrPath | None = None, seed: int | None = None) -> pb.Agent:
    """Telling or giving up an unknown decision is refused with the open sums in the text: infinite."""
    return running(_ErrorTellsSum)(small_policy(), path=path, seed=seed)


class _ReprTellsSum(pb.Agent):
    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, {sum(_open_sums(bandit_of(self))):g} collected)"


@specimen(cost=math.inf, shows="repr")
def make_white_repr_tells_sum(path: StrPath | None = None, seed: int | None = None) -> pb.Agent:
    """The repr shows the sum of the rewards not released yet: infinite."""
    return _ReprTellsSum(small_policy(), path=path, seed=seed)


class _IdTellsSum(Bandit):
    def decide(self, person: str | None, offered: Any) -> pb.Decision:
        found = super().decide(person, offered)
        sums = [e.totals.reveal() for e in self.private.episodes.values()]
        key = f"{found.id}-{zlib.crc32(repr(sums).encode()) & 0xFFF:03x}"
        opened = self.records.find(found.id)
        assert opened is not None
        self.records.closed(opened, "told")
        self.records.asked(opened._replace(id=key), offered)
        return found._replace(id=key)


@specimen(cost=math.inf, shows="decision ids")
def make_white_id_tells_sum(seed: int | None = None) -> pb.Agent:
    """A decision's id ends with a checksum of the open sums, from which they can be guessed: infinite."""
    return running(_IdTellsSum)(small_policy(), seed=seed)


class _RawEstimates(_KeepingAgent):
    def estimates(self, delta: float = 0.05) -> list[pb.Estimate]:
        raw = self._raw_means()
        return [e._replace(mean=raw.get(e.action, e.mean)) for e in super().estimates(delta)]


@specimen(cost=math.inf, shows="estimates")
def make_white_raw_estimates(seed: int | None = None) -> pb.Agent:
    """The estimates show the means without their noise: infinite."""
    return _RawEstimates(small_policy(), seed=seed)


class _RawInterval(_KeepingAgent):
    def estimates(self, delta: float = 0.05) -> list[pb.Estimate]:
        raw = self._raw_means()
        found = []
        for e in super().estimates(delta):
            mean = raw.get(e.action, 0.5)
            spread = (0.1 + math.sqrt(mean * (1 - mean))) / math.sqrt(max(1, e.rewards))
            found.append(e._replace(low=(e.mean or 0.0) - spread, high=(e.mean or 0.0) + spread))
        return found


@specimen(cost=math.inf, shows="estimates")
def make_white_interval_from_raw_variance(seed: int | None = None) -> pb.Agent:
    """The intervals around the released means are as wide as the raw rewards' own spread says: infinite."""
    return _RawInterval(small_policy(), seed=seed)


class _BadStaysListed(pb.Agent):
    def tell(self, decision: pb.Decision | str, reward: float, *, played: int | str | None = None) -> None:
        found = next((d for d in self.open_decisions if d.id == getattr(decision, "id", decision)), None)
        super().tell(decision, reward, played=played)
        if reward < 0.5 and found is not None:
            self.__dict__.setdefault("_bad", []).append(found)

    @property
    def open_decisions(self) -> list[pb.Decision]:
        return super().open_decisions + list(self.__dict__.get("_bad", []))


@specimen(cost=math.inf, shows="open_decisions")
def make_white_open_count_tells(seed: int | None = None) -> pb.Agent:
    """A decision with a reward below 0.5 stays in the list of the open ones: infinite."""
    return _BadStaysListed(small_policy(), seed=seed)


class _GuaranteeTells(_KeepingAgent):
    def guarantee(self, delta: float | None = None) -> pb.Guarantee:
        found = super().guarantee(delta)
        return replace(found, spent=found.spent * max(self._raw_means().values(), default=0.0))


@specimen(cost=math.inf, shows="guarantee")
def make_white_guarantee_from_data() -> pb.Agent:
    """What the guarantee says was spent is scaled by the rewards as they were: infinite."""
    return _GuaranteeTells(small_policy())


class _SettingsTell(pb.Agent):
    def tell(self, decision: pb.Decision | str, reward: float, *, played: int | str | None = None) -> None:
        super().tell(decision, reward, played=played)
        low, high = self.__dict__.get("_seen", (reward, reward))
        self._seen = (min(low, reward), max(high, reward))

    @property
    def settings(self) -> dict[str, Any]:
        return super().settings | {"reward_range": self.__dict__.get("_seen", (0.0, 1.0))}


@specimen(cost=math.inf, shows="settings")
def make_white_settings_tell_range(seed: int | None = None) -> pb.Agent:
    """The settings show the smallest and the largest reward told as the range: infinite."""
    return _SettingsTell(small_policy(), seed=seed)


class _TellAnswers(pb.Agent):
    def tell(self, decision: pb.Decision | str, reward: float, *, played: int | str | None = None) -> float:  # type: ignore[override]
        super().tell(decision, reward, played=played)
        return sum(_open_sums(bandit_of(self)))


@specimen(cost=math.inf, shows="tell's answer")
def make_white_tell_answers_sum(seed: int | None = None) -> pb.Agent:
    """Each tell returns the sum of what was told and not released: infinite."""
    return _TellAnswers(small_policy(), seed=seed)
