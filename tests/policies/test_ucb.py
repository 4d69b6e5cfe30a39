"""AdaC-UCB as published: what it did before, late rewards, logs, and what subclasses change."""

from __future__ import annotations

import random
from typing import Any

import pytest

import private_bandits as pb
from private_bandits.simulation.engines import DOUBLING, ONE_BY_ONE, engine_for


def test_the_papers_agent_acts_as_it_always_did() -> None:
    """To the last digit: recorded before there was another variant."""
    agent = pb.Agent(pb.AdaCUCB(3, pb.zCDP(0.3), variant="paper"), (-1, 3), seed=5)
    chance, plays = random.Random(1), [0, 0, 0]
    for _ in range(400):
        decision = agent.ask()
        plays[decision.action] += 1
        agent.tell(decision, chance.random() * (decision.action + 1) - 0.5)
    assert plays == [64, 80, 256]
    estimates = agent.estimates(0.1)
    assert [e.mean for e in estimates] == [-0.07731582969427109, 0.252110056579113, 1.0347409155219793]
    assert [e.low for e in estimates] == [-1.0, -1.0, 0.2830025426563527]
    assert [e.rewards for e in estimates] == [32, 32, 128]


def test_a_state_that_version_eight_wrote_is_read() -> None:
    """It had two lists more, which were empty for this policy."""
    policy = pb.AdaCUCB(2, pb.NoPrivacy())
    state = policy.dump_state(policy.start(0.0, 1.0))
    assert policy.load_state(state | {"kept": [], "spread": []}) == policy.load_state(state) == policy.start(0.0, 1.0)


def test_late_rewards_and_other_actions_leave_the_doubling_as_it_is() -> None:
    agent = pb.Agent(pb.AdaCUCB(2, pb.zCDP(1.0)), seed=3)
    for i, decision in enumerate(reversed(agent.ask(40))):
        agent.tell(decision, float(i % 3 == 0), played=i % 2)
    for arm in (0, 1):
        assert [row.count for row in agent.ledger if row.key == arm] == [1, 1, 2, 4, 8]
    assert [e.rewards for e in agent.estimates()] == [8, 8]


def test_a_log_is_the_first_episode() -> None:
    agent = pb.Agent(pb.AdaCUCB(arms=["A", "B"], budget=pb.zCDP(1.0)))
    agent.warm_start([("A", 1.0)] * 7 + [("B", 0.0)] * 3)
    for _ in range(7):
        agent.tell(agent.ask(), 1.0, played="A")
    assert [(row.key, row.count) for row in agent.ledger] == [(0, 7), (1, 3), (0, 7)]
    assert agent.ledger.total <= 1.0


def test_an_index_of_its_own_is_simulated_fast() -> None:
    class Curious(pb.AdaCUCB):
        def index(self, means: Any, counts: Any, step: Any, width: float) -> Any:
            return super().index(means, counts, step, 2 * width)

    assert engine_for(Curious(2, pb.zCDP(1))) is DOUBLING


@pytest.mark.parametrize("base", [pb.AdaCUCB, pb.AdaPUCB])
def test_what_a_subclass_changes_is_simulated(base: Any) -> None:
    """The fast engine knows indices only; whoever changes more is asked, one decision at a time."""

    class Alternating(base):  # type: ignore[misc]
        def recommend(self, state: Any, waiting: Any, arrived: Any, step: int) -> int:
            return step % 2

    class Renamed(base):  # type: ignore[misc]
        pass

    budget = pb.NoPrivacy()
    regret = pb.simulate({"a": Alternating(2, budget)}, pb.Bernoulli([1.0, 0.0]), 100, runs=1).final["a"]
    assert regret == 50
    assert engine_for(Renamed(2, budget)) is DOUBLING
    assert engine_for(Alternating(2, budget)) is ONE_BY_ONE


def test_wide_ranges_keep_their_noise_finite() -> None:
    agent = pb.Agent(pb.AdaCUCB(2, pb.zCDP(1)), reward_range=(0, 1e100), seed=1)
    unit = pb.Agent(pb.AdaCUCB(2, pb.zCDP(1)), seed=1)
    for _ in range(20):
        agent.tell(agent.ask(), 1e100)
        unit.tell(unit.ask(), 1.0)
    assert agent.learned["noise_sd"] == pytest.approx([1e100 * sd for sd in unit.learned["noise_sd"]], rel=1e-12)
