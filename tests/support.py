"""Shared by the tests: budgets and policies found automatically, and random interactions that replay."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import private_bandits as pb
from private_bandits.audit.target import Offers
from private_bandits.budget import BUDGETS, Budget
from private_bandits.policies import POLICIES, Policy

EXAMPLE_BUDGETS: dict[str, Budget] = {
    "zCDP": pb.zCDP(0.5),
    "ApproxDP": pb.ApproxDP(1.0, 1e-6),
    "RenyiDP": pb.RenyiDP(8.0, 2.0),
    "PureDP": pb.PureDP(1.0),
    "NoPrivacy": pb.NoPrivacy(),
}
assert set(EXAMPLE_BUDGETS) == set(BUDGETS), "a new kind of budget needs an example here"

EVERY_POLICY: list[Policy[Any]] = [
    cls.example(EXAMPLE_BUDGETS[notion])
    for _, cls in sorted(POLICIES.items())
    if cls.__module__.startswith("private_bandits.")  # not what a test made up
    for notion in cls.notions
]


def policy_id(policy: Policy[Any]) -> str:
    return f"{policy.name}-{type(policy.promise).__name__}"


OFFERED = 3


def offered(policy: Policy[Any], step: int) -> Any:
    """Actions for a step, where they change."""
    return None if policy.arm_names else Offers(policy)(step)


@dataclass
class Transcript:
    """Everything that an interaction showed to the outside, in order."""

    shown: list[Any] = field(default_factory=list)
    plays: list[tuple[int, float]] = field(default_factory=list)
    """Action and reward of every told decision, in the order of telling."""
    labels: list[str] = field(default_factory=list)
    """The episode that each told reward entered."""


def interact(
    agent: pb.Agent,
    steps: int,
    script_seed: int,
    change: Callable[[int, float], float] = lambda told, reward: reward,
    pause: Callable[[pb.Agent, int], pb.Agent] = lambda agent, step: agent,
) -> Transcript:
    """Random asks, late and missing rewards and other plays than recommended, the same for the same script_seed.

    The script does not look at the agent's actions, so two agents see the same. `change` may alter the value of
    the n-th told reward. `pause` may close and reopen the agent between two steps.
    """
    script = random.Random(script_seed)
    transcript = Transcript()
    arms = len(agent.policy.arm_names) or OFFERED
    waiting: list[pb.Decision] = []
    for step in range(steps):
        agent = pause(agent, step)
        waiting += agent.ask(script.choice([1, 1, 1, 2, 5]), actions=offered(agent.policy, step))
        transcript.shown.append([d.action for d in waiting])
        while waiting and script.random() < 0.75:
            decision = waiting.pop(script.randrange(len(waiting)))
            fate, reward, other = script.random(), script.random(), script.randrange(arms)
            if fate < 0.1:
                agent.give_up(decision)
                continue
            played = other if fate < 0.3 else decision.action
            told = change(len(transcript.plays), reward)
            key = played if agent.policy.arm_names else getattr(agent.policy, "sum_of", lambda action: 0)(played)
            episode = agent._private.episodes.get(key)
            transcript.labels.append(episode.label if episode else f"{key}/1")
            agent.tell(decision, told, played=played)
            transcript.plays.append((played, told))
            transcript.shown.append([row.to_dict() for row in agent.ledger.rows[-1:]])
        transcript.shown.append(agent.estimates())
    transcript.shown.append([row.to_dict() for row in agent.ledger])
    return transcript


def holds(row: pb.Release, label: str) -> bool:
    """Whether the rewards of an episode are in a release, alone or as one of several in a row."""
    key, number = label.split("/")
    for covered in row.episodes:
        owner, _, numbers = covered.partition("/")
        first, _, last = numbers.partition("-")
        if owner == key and int(first) <= int(number) <= int(last or first):
            return True
    return False
