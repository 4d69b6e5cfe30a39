"""The client of a service: its bandits by name, and what operators do."""

from __future__ import annotations

import json
import ssl
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Literal, NamedTuple, Self

import numpy as np

from private_bandits.checks import check_positive, whole_number
from private_bandits.client.bandit import ServedBandit
from private_bandits.client.calling import Caller
from private_bandits.client.calls import BANDIT, Call
from private_bandits.client.keys import Keys
from private_bandits.control import checked_control
from private_bandits.errors import InvalidInput
from private_bandits.guarantee import Unit
from private_bandits.loading import require
from private_bandits.mechanism.rewards import RewardRange
from private_bandits.policies import Policy

_ALL = "/v1/bandits"
A_MONTH = timedelta(days=30)


class BanditLine(NamedTuple):
    """A bandit in a list.

    Args:
        name: Its name.
        status: "active", "paused", "closed" or "frozen".
        created: When it was made, in microseconds since 1970.
        private: Whether anything is promised.
        warning: Why nothing is promised, if so.
    """

    name: str
    status: str
    created: int
    private: bool
    warning: str | None


class Client:
    """A service, as one key or several see it. May be used from several threads and, after a fork, in the child.

    An ask, a tell and a look are made again where that is safe: when the connection was lost, and when the service says
    that it is busy. Nothing is counted twice by that. Its errors are those of an agent, and those of a network.

    Args:
        url: The address of the service. A path in it stands in front of the service's own.
        key: A key of the service, or keys by their roles: {"ask": ..., "tell": ...}. Each role has keys of its own.
        timeout: Seconds to wait for a connection and for an answer.
        retry_for: Seconds during which a call is made again. 0: never.
        connections: Connections that are open at the same time, at most.
        tls: Which certificates are trusted; None: those that the system does.

    Example:
        >>> import private_bandits as pb
        >>> client = pb.Client("https://bandits.example.org", {"ask": "pb_1...", "tell": "pb_2..."})
        >>> client.bandit("trial")  # agent = pb.Agent(...) before
        ServedBandit('trial', 'https://bandits.example.org')
        >>> client.close()
    """

    def __init__(
        self,
        url: str,
        key: str | Mapping[str, str],
        *,
        timeout: float = 10.0,
        retry_for: float = 30.0,
        connections: int = 100,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        check_positive("timeout", timeout)
        if retry_for != 0:
            check_positive("retry_for", retry_for)
        require("Client", "service", "httpx2")
        from private_bandits.client.connection import Connections

        opened = Connections(url, Keys(key), timeout, whole_number("connections", connections), tls)
        self._caller = Caller(opened, retry_for)

    def bandit(self, name: str) -> ServedBandit:
        """Return a bandit by its name. Nothing is sent for it."""
        if not isinstance(name, str) or not name or name.strip(".") == "":
            raise InvalidInput(f"a bandit has a name, got {name!r}")
        return ServedBandit(self._caller, name)

    def bandits(self) -> list[BanditLine]:
        """Return the bandits that the key is for. Needs a key of the role observe, operate or audit."""
        found: list[BanditLine] = []
        query: dict[str, str] | None = {}
        while query is not None:
            page = self._read(Call("GET", _ALL, query=query))
            found += (BanditLine(**one) for one in page["items"])
            query = None if page["next"] is None else {"cursor": page["next"]}
        return found

    def create(
        self,
        name: str,
        policy: Policy[Any],
        reward_range: tuple[float, float] = (0.0, 1.0),
        max_rewards_per_person: int | None = None,
        unit: Unit = "reward",
        seed: int | None = None,
        give_up_after: timedelta | None = A_MONTH,
        *,
        one_reward_per_episode: bool = False,
        control: int | str | None = None,
        control_share: float | None = None,
        plan: Any = None,
    ) -> ServedBandit:
        """Make a bandit, as `Agent` does, and return it. Needs a key of the role operate for all bandits.

        Args:
            name: Letters, digits, ".", "_" and "-".
            policy: What to recommend, and the budget to keep. The service has to know it.
            reward_range: (low, high), chosen before any reward is seen; rewards outside are clipped.
            max_rewards_per_person: Later rewards of a person are not taken; asks then name the person.
            unit: The budget is for one "reward" or one "person".
            seed: Foreseeable noise, for tests. The service has to allow it.
            give_up_after: A decision without a reward is given up after this time. None: never, not even where the
                answer of an ask was lost for good.
            one_reward_per_episode: As of `Agent`.
            control: As of `Agent`.
            control_share: As of `Agent`.
            plan: The plan of the trial, as plain data.

        Raises:
            BanditExists: There is one of this name.
            InvalidInput: It cannot be made so.
            OutcomeUnknown: There was no answer. Look whether it is among `bandits()`.
        """
        if not isinstance(policy, Policy):
            raise InvalidInput(f"policy must be a policy such as AdaCUCB(...), got {type(policy).__name__}")
        if give_up_after is not None and not isinstance(give_up_after, timedelta):
            raise InvalidInput("give_up_after must be a timedelta or None: the service gives up after a time")
        bounds, (arm, share) = RewardRange.of(reward_range), checked_control(policy, control, control_share)
        body = {
            "name": name,
            "policy": _plain_policy(policy),
            "reward_range": [bounds.low, bounds.high],
            "max_rewards_per_person": max_rewards_per_person,
            "unit": unit,
            "one_reward_per_episode": one_reward_per_episode,
            "give_up_after_seconds": None if give_up_after is None else give_up_after.total_seconds(),
            "never_give_up": give_up_after is None,
            "control": arm,
            "control_share": share,
            "seed": seed,
            "plan": plan,
        }
        self._read(Call("POST", _ALL, body=_plain(body), repeats=False))
        return self.bandit(name)

    def set_status(self, name: str, status: Literal["active", "paused", "closed"]) -> None:
        """Pause a bandit, let it run again, or close it for good. Needs a key of the role operate.

        A bandit that is paused makes no decisions and takes rewards.
        """
        self._read(Call("PATCH", BANDIT, bandit=name, body={"status": status}))

    def close(self) -> None:
        """Close the connections."""
        self._caller.connections.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Client({self._caller.connections.url!r})"

    def _read(self, call: Call) -> Any:
        return self._caller.read(self._caller.make(call), lambda data: data)


def _plain_policy(policy: Policy[Any]) -> dict[str, Any]:
    parameters = policy.to_dict()
    return {"name": parameters.pop("policy"), "budget": parameters.pop("budget"), "parameters": parameters}


def _plain(body: dict[str, Any]) -> Any:
    """Return the same as plain data: tables of numpy as lists."""
    try:
        return json.loads(json.dumps(body, default=_listed, allow_nan=False))
    except (TypeError, ValueError):
        pass
    raise InvalidInput("the policy and the plan of a bandit must be plain data: finite numbers, texts, lists and dicts")


def _listed(value: Any) -> Any:
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    raise TypeError
