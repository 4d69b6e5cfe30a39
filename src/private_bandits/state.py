"""The state of an agent. Public state and private state are two types."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any, NamedTuple, Protocol
from zlib import crc32

from private_bandits.episode import Episode
from private_bandits.errors import AgentFileInvalid, InvalidInput
from private_bandits.guarantee import Unit
from private_bandits.policies import Offer, Policy, policy_from_dict
from private_bandits.rewards import RewardRange


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
    give_up_after: int | None
    token: str = field(default_factory=lambda: secrets.token_hex(4))
    """Marks this agent's decisions, so that another agent's are not taken for them."""
    salt: str = field(default_factory=lambda: secrets.token_hex(16), repr=False)
    """Keeps people's names out of memory and file: only keyed hashes are stored."""

    def __post_init__(self) -> None:
        if not isinstance(self.policy, Policy):
            raise InvalidInput(f"policy must be a policy such as AdaCUCB(...), got {type(self.policy).__name__}")
        if self.unit not in ("reward", "person"):
            raise InvalidInput(f"unit must be 'reward' or 'person', got {self.unit!r}")
        if self.unit == "person" and self.max_rewards_per_person is None:
            raise InvalidInput("unit='person' needs max_rewards_per_person: the promise depends on it")
        for name, least, most in (
            ("max_rewards_per_person", 1, 10**9),
            ("seed", 0, 2**62),
            ("give_up_after", 1, 2**62),
        ):
            object.__setattr__(self, name, whole_number(name, getattr(self, name), least, most))
        for name, digits in (("token", 8), ("salt", 32)):
            if not re.fullmatch(f"[0-9a-f]{{{digits}}}", getattr(self, name)):
                raise InvalidInput(f"{name} must be of {digits} hexadecimal digits")

    def hash_person(self, person: str) -> str:
        """Return the keyed hash that stands for a name."""
        name = person.encode(errors="surrogatepass")  # Python's texts may hold halves of characters
        return hashlib.blake2b(name, key=bytes.fromhex(self.salt), digest_size=16).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as plain data."""
        plain = {k: getattr(self, k) for k in _PLAIN_SETTINGS}
        bounds = [self.reward_range.low, self.reward_range.high]
        return plain | {"policy": self.policy.to_dict(), "reward_range": bounds} | _sharing(self.policy)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Settings:
        """Return the settings that to_dict wrote, checked as if they were given anew."""
        policy = policy_from_dict(data["policy"])
        sharing = _sharing(policy)
        expected = {"policy", "reward_range", *_PLAIN_SETTINGS}
        if not expected <= data.keys() <= expected | sharing.keys():
            raise AgentFileInvalid("is damaged: its settings are not those of an agent")
        for name, own in sharing.items():
            stored = data.get(name, own if name == "tree_levels" else None)  # older files know no factors
            if stored != own:  # rewards in the file would be in other releases than share the budget
                raise AgentFileInvalid(
                    f"was made by another {type(policy).__name__}, with {name} {stored}: this one has {own}"
                )
        plain = {name: data[name] for name in _PLAIN_SETTINGS}
        return cls(policy=policy, reward_range=RewardRange.of(data["reward_range"]), **plain)


def whole_number(name: str, value: int | None, least: int, most: int = 2**62) -> int | None:
    """Return the value as an int, or None if there is none. Refuses what is no whole number in the range."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, Integral) or not least <= value <= most:
        raise InvalidInput(f"{name} must be a whole number from {least} to {most:g}, got {value!r}")
    return int(value)


def _sharing(policy: Policy[Any]) -> dict[str, Any]:
    """Say in which releases a reward is: a file must not go on with others."""
    factor = policy.factor
    told = None if factor is None else [factor.unit, factor.cap, crc32(repr(factor.multipliers).encode())]
    return {"tree_levels": policy.tree_levels, "factor": told}


_PLAIN_SETTINGS = ("max_rewards_per_person", "unit", "seed", "give_up_after", "token", "salt")


class OpenDecision(NamedTuple):
    """A decision that waits for its reward. Public."""

    number: int
    action: int
    person: str | None
    offered: Offer | None = None
    """The actions that there were to choose from, where they change and are public."""


@dataclass
class PublicState:
    """The part of the state that everyone may know: decisions made and open, releases, the policy's state."""

    policy: Any
    waiting: list[int]
    asked: int = 0
    generation: int = 1
    open: dict[str, OpenDecision] = field(default_factory=dict)


@dataclass
class PrivateState:
    """The part of the state that nobody may see: the open sums. Its repr says how many there are.

    offered: what there was to choose from, by the id of an open decision, where contexts are private.
    """

    episodes: dict[int, Episode] = field(default_factory=dict, repr=False)
    offered: dict[str, Offer] = field(default_factory=dict, repr=False)

    def __repr__(self) -> str:
        return f"PrivateState({len(self.episodes)} open episodes, sums hidden)"


class PeopleCounts(Protocol):
    """How many rewards of each person were taken."""

    def rewards_of(self, person: str) -> int:
        """Return how many rewards of this person were taken."""

    def count_rewards_of(self, person: str, more: int) -> None:
        """Count so many more of this person's rewards; -1 where one was refused after all."""


class CountsInMemory:
    """Counts that end with the process."""

    def __init__(self) -> None:
        self._rewards_of: dict[str, int] = {}

    def rewards_of(self, person: str) -> int:
        """Look the count up."""
        return self._rewards_of.get(person, 0)

    def count_rewards_of(self, person: str, more: int) -> None:
        """Change the count."""
        self._rewards_of[person] = self.rewards_of(person) + more
