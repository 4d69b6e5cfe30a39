"""The state of an agent. Public state and private state are two types."""

from __future__ import annotations

import hashlib
import math
import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal, NamedTuple, Protocol
from zlib import crc32

from private_bandits.checks import whole_number
from private_bandits.control import ControlCoin, checked_control
from private_bandits.errors import AgentFileInvalid, InvalidInput
from private_bandits.expiry import MICROSECOND, AskedTimes, Mark, microseconds
from private_bandits.guarantee import Unit
from private_bandits.ledger import Release
from private_bandits.mechanism.episode import Episode
from private_bandits.mechanism.rewards import RewardRange
from private_bandits.policies import Offer, Policy, policy_from_dict
from private_bandits.policies.waiting import Waiting


@dataclass(frozen=True)
class Settings:
    """The arguments that an agent was made with. Public, and fixed for its life.

    The checks are for arguments of a caller and for what a file says alike: read with a wrong unit or without the limit
    per person, a file would go on with too little noise.
    """

    policy: Policy[Any]
    reward_range: RewardRange
    max_rewards_per_person: int | None
    unit: Unit
    seed: int | None
    give_up_after: int | timedelta | None
    """The later decisions, or the time, after which a decision is given up."""
    one_reward_per_episode: bool = False
    """Whether a second reward of a person in an open episode is over the limit."""
    control: int | str | None = None
    """The arm that a coin gives out, by its name; None: there is none."""
    control_share: float | None = None
    """The probability with which a decision plays the control."""
    token: str = field(default_factory=lambda: secrets.token_hex(4))
    """Marks this agent's decisions, so that another agent's are not taken for them."""
    salt: str = field(default_factory=lambda: secrets.token_hex(16), repr=False)
    """Keeps people's names out of memory and file: only keyed hashes are stored."""

    def __post_init__(self) -> None:
        if not isinstance(self.policy, Policy):
            shown = type(self.policy).__name__
            if isinstance(self.policy, type):
                shown = f"the class {self.policy.__name__}: call it with its arms and its budget"
            raise InvalidInput(f"policy must be a policy such as AdaCUCB(...), got {shown}")
        if self.unit not in ("reward", "person"):
            raise InvalidInput(f"unit must be 'reward' or 'person', got {self.unit!r}")
        if self.unit == "person" and self.max_rewards_per_person is None:
            raise InvalidInput("unit='person' needs max_rewards_per_person: the promise depends on it")
        if type(self.one_reward_per_episode) is not bool:
            raise InvalidInput(f"one_reward_per_episode must be True or False, got {self.one_reward_per_episode!r}")
        if self.one_reward_per_episode and self.max_rewards_per_person is None:
            raise InvalidInput("one_reward_per_episode needs max_rewards_per_person: without it nobody is asked for")
        self._check_numbers()
        control, share = checked_control(self.policy, self.control, self.control_share)
        object.__setattr__(self, "control", control)
        object.__setattr__(self, "control_share", share)
        for name, digits in (("token", 8), ("salt", 32)):
            if not re.fullmatch(f"[0-9a-f]{{{digits}}}", getattr(self, name)):
                raise InvalidInput(f"{name} must be of {digits} hexadecimal digits")

    def _check_numbers(self) -> None:
        """Make whole numbers of those that are given as others, and refuse what is no number, or no span of time."""
        limits = {"max_rewards_per_person": (1, 1e9), "seed": (0, 2.0**62), "give_up_after": (1, math.inf)}
        if isinstance(self.give_up_after, timedelta):
            microseconds("give_up_after", self.give_up_after)
            del limits["give_up_after"]
        for name, (least, most) in limits.items():
            value = getattr(self, name)
            object.__setattr__(self, name, None if value is None else whole_number(name, value, least, most))

    @property
    def shown(self) -> dict[str, Any]:
        """The caller's choices, besides the policy."""
        bounds = (self.reward_range.low, self.reward_range.high)
        return {"reward_range": bounds} | {name: getattr(self, name) for name in _CHOSEN_SETTINGS}

    @property
    def give_up_time(self) -> int | None:
        """The microseconds after which a decision is given up; None: not by time."""
        return self.give_up_after // MICROSECOND if isinstance(self.give_up_after, timedelta) else None

    @property
    def coin(self) -> ControlCoin | None:
        """A new coin that gives out the control arm, if there is one."""
        if self.control is None or self.control_share is None:
            return None
        return ControlCoin(self.policy.arm_names.index(str(self.control)), self.control_share, self.seed)

    @property
    def run_policy(self) -> Policy[Any]:
        """The policy that is run, but for its budget: `Policy.for_people` where people tell several rewards."""
        if self.unit == "person" and self.one_reward_per_episode and self.max_rewards_per_person is not None:
            return self.policy.for_people(self.max_rewards_per_person)
        return self.policy

    def public_dict(self) -> dict[str, Any]:
        """Return the settings as plain data, without the salt: what the ledger begins with."""
        return {name: value for name, value in self.to_dict().items() if name != "salt"}

    def hash_person(self, person: str) -> str:
        """Return the keyed hash that stands for a name."""
        name = person.encode(errors="surrogatepass")  # Python's texts may hold halves of characters
        return hashlib.blake2b(name, key=bytes.fromhex(self.salt), digest_size=16).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as plain data."""
        plain = {k: getattr(self, k) for k in _PLAIN_SETTINGS}
        if self.give_up_time is not None:
            plain["give_up_after"] = {_TIME: self.give_up_time}
        bounds = [self.reward_range.low, self.reward_range.high]
        return plain | {"policy": self.policy.to_dict(), "reward_range": bounds} | self._reuse_fingerprint()

    def _reuse_fingerprint(self) -> dict[str, Any]:
        """Say in which releases a reward is, and what was chosen for people: a file must not go on with others."""
        policy = self.run_policy
        factor = policy.factor
        told = None if factor is None else [factor.unit, factor.cap, crc32(repr(factor.multipliers).encode())]
        people: dict[str, Any] = {}
        if policy is not self.policy:
            asked = self.policy.to_dict()
            people = {name: value for name, value in policy.to_dict().items() if value != asked[name]}
        return {"tree_levels": policy.tree_levels, "factor": told, "for_people": people}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Settings:
        """Return the settings that to_dict wrote, checked as if they were given anew."""
        policy = policy_from_dict(data["policy"])
        expected = {"policy", "reward_range", *_PLAIN_SETTINGS} - _LATER_SETTINGS
        if not expected <= data.keys() <= expected | _LATER_SETTINGS | _REUSE:
            raise AgentFileInvalid("is damaged: its settings are not those of an agent")
        plain = {name: data[name] for name in _PLAIN_SETTINGS if name in data}
        if isinstance(plain["give_up_after"], dict):
            plain["give_up_after"] = whole_number(_TIME, plain["give_up_after"].get(_TIME), 1, 2.0**62) * MICROSECOND
        found = cls(policy=policy, reward_range=RewardRange.of(data["reward_range"]), **plain)
        for name, own in found._reuse_fingerprint().items():
            stored = data.get(name, own if name != "factor" else None)  # older files know no factors, and no people
            if stored != own:  # rewards in the file would be in other releases than share the budget
                raise AgentFileInvalid(
                    f"was made by another {type(policy).__name__}, with {name} {stored}: this one has {own}"
                )
        return found


_CHOSEN_SETTINGS = (
    *("max_rewards_per_person", "one_reward_per_episode", "unit", "seed", "give_up_after"),
    *("control", "control_share"),
)
_PLAIN_SETTINGS = (*_CHOSEN_SETTINGS, "token", "salt")
_LATER_SETTINGS = {"one_reward_per_episode", "control", "control_share"}
"""Settings that files of earlier versions do not have: they are then as by default."""
_TIME = "microseconds"
"""Names a span of time in files."""
_REUSE = {"tree_levels", "factor", "for_people"}


class Decision(NamedTuple):
    """A recommendation: an action by its index and its name. Rewards are told to its id."""

    id: str
    action: int
    arm: str


class OpenDecision(NamedTuple):
    """A decision that waits for its reward. Public."""

    id: str
    number: int
    action: int
    person: str | None
    offered: Offer | None = None
    """The actions that there were to choose from, where they change and are public."""
    arm: str | None = None
    """The name that the action had, where actions that change were given names."""


Ending = Literal["told", "given_up", "out_of_time", "over_limit", "dropped"]
"""The ways in which a decision ends. Its reward was told and taken; or it was given up, as asked for or after
`give_up_after`; or its reward was told and not taken, beyond the limit of its person, or dropped by the policy."""


@dataclass
class Endings:
    """Counts decisions that ended otherwise than by a reward that was taken. Public.

    unknown: decisions up to number unknown_up_to that were closed by a version which did not note how.
    closing_from: the number of the first release that closes the bandit, or that would; 0: the bandit is not finished.
    """

    given_up: int = 0
    out_of_time: int = 0
    over_limit: int = 0
    dropped: int = 0
    unknown: int = 0
    unknown_up_to: int = 0
    closing_from: int = 0

    def count(self, ending: Ending, more: int = 1) -> None:
        """Count decisions that ended so."""
        setattr(self, ending, getattr(self, ending) + more)

    @property
    def total(self) -> int:
        """All of them."""
        return self.given_up + self.out_of_time + self.over_limit + self.dropped + self.unknown


@dataclass(frozen=True)
class DecisionCounts:
    """Decisions by what became of them: asked = open + told + given_up + over_limit + dropped + unknown. Public.

    given_up: those out of time included. over_limit, dropped: a reward was told, and not taken. unknown: closed by
    version 0.8 or earlier, which did not note how.
    """

    asked: int
    open: int
    told: int
    given_up: int
    out_of_time: int
    over_limit: int
    dropped: int
    unknown: int = 0


@dataclass
class PublicState:
    """The part of the state that everyone may know, besides the open decisions: those are in the records."""

    policy: Any
    waiting: Waiting
    asked: int = 0
    generation: int = 1
    ended: Endings = field(default_factory=Endings)
    times: AskedTimes | None = None
    """When decisions were made, where they are given up after a time."""

    def counts(self, still_open: int) -> DecisionCounts:
        """Return what became of all decisions."""
        ended = self.ended
        return DecisionCounts(
            asked=self.asked,
            open=still_open,
            told=self.asked - still_open - ended.total,
            given_up=ended.given_up + ended.out_of_time,
            out_of_time=ended.out_of_time,
            over_limit=ended.over_limit,
            dropped=ended.dropped,
            unknown=ended.unknown,
        )


@dataclass
class PrivateState:
    """The part of the state that nobody may see: the open sums. Its repr says how many there are."""

    episodes: dict[int, Episode] = field(default_factory=dict, repr=False)

    def __repr__(self) -> str:
        return f"PrivateState({len(self.episodes)} open episodes, sums hidden)"


class Records(Protocol):
    """The place where a bandit looks things up, and which it tells its changes.

    Looking up sees every change that was told before. storage/contract.py says how changes become lasting.
    """

    @property
    def lasting(self) -> bool:
        """Whether the records outlive the process, so that every change has to be told."""

    def find(self, decision: str) -> OpenDecision | None:
        """Return an open decision by its id."""

    def numbered(self, number: int) -> OpenDecision | None:
        """Return an open decision by its number."""

    def asked_in(self, generation: int) -> int:
        """Return the number of the last decision that is known of an earlier generation, or a number not below it."""

    def offered_to(self, decision: OpenDecision) -> Offer | None:
        """Return the private actions that an open decision chose from."""

    def rewards_of(self, person: str) -> int:
        """Return how many rewards of this person were taken."""

    def places_of(self, person: str) -> Mapping[int, int]:
        """Return the episodes that this person's rewards were in when the last one was taken: numbers by key."""

    def releases(self, first: int, last: int) -> Sequence[Release]:
        """Return the rows of the ledger from one number to another, both included, as far as there are."""

    def asked(self, decision: OpenDecision, offered: Offer | None) -> None:
        """Note that a decision was handed out, from what was offered."""

    def closed(self, decision: OpenDecision, ending: Ending) -> None:
        """Note that a decision was closed, and how."""

    def timed(self, mark: Mark) -> None:
        """Note by which time decisions up to a number were made."""

    def untimed(self, mark: Mark) -> None:
        """Forget the times up to this one: their decisions are closed."""

    def ending_of(self, number: int) -> Ending:
        """Return how a closed decision ended, if that was noted; "told" for all others."""

    def reopened(self, decision: OpenDecision, offered: Offer | None) -> None:
        """Take back that a decision was closed, in the same call."""

    def count_rewards_of(self, person: str, more: int) -> None:
        """Count so many more of this person's rewards; -1 where one was refused after all."""

    def put_places_of(self, person: str, places: Mapping[int, int]) -> None:
        """Note the open episodes that this person's rewards are in: numbers by key."""

    def released(self, row: Release) -> None:
        """Note a release."""

    # The rest is told to lasting records only.

    def summed(self, changed: Iterable[Episode]) -> None:
        """Note that open sums changed."""

    def keep_releases(self, public: PublicState) -> None:
        """Make everything told so far lasting, before anyone looks at the releases in it."""

    def encoded(self, learned: int, state: str) -> None:
        """Note the policy's state, as JSON, with so many releases learned and everything that arrived."""

    def arrived(self, arrivals: str) -> None:
        """Note what arrived since the last release that the policy's encoded state has learned, as JSON."""
