"""People with several rewards: what an agent takes of them, and the noise that keeps the promise to each."""

from __future__ import annotations

import itertools
import math
import random
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import private_bandits as pb
from private_bandits.agent import bandit_of
from private_bandits.errors import AgentFileInvalid, InvalidInput, NoiseFailed
from private_bandits.ledger.people import Releases, worst_person
from private_bandits.mechanism.noise import ExactNoise
from tests.support import ONE_OF_EACH_NOISE, offered, policy_id

SPREAD: dict[str, Any] = {"max_rewards_per_person": 3, "one_reward_per_episode": True}


def plain(rho: float = 1.0, arms: int = 2) -> pb.AdaCUCB:
    """Episodes of 1, 1, 2, 4, ... rewards, each in one release."""
    return pb.AdaCUCB(arms, pb.zCDP(rho), variant="paper")


def told(agent: pb.Agent, person: str, arm: int = 0, reward: float = 1.0) -> str:
    """What became of a reward."""
    before = agent.counts
    agent.tell(agent.ask(person=person), reward, played=arm)
    after = agent.counts
    return "told" if after.told > before.told else "over_limit" if after.over_limit > before.over_limit else "dropped"


def test_a_second_reward_in_an_open_episode_is_over_the_limit() -> None:
    agent = pb.Agent(plain(), **SPREAD)
    assert [told(agent, "Ann") for _ in range(2)] == ["told", "told"]  # episodes of one reward each
    assert told(agent, "Ann") == "told"  # the first of two in the third episode
    agent = pb.Agent(plain(), **SPREAD)
    for who in ("x", "y"):
        told(agent, who)
    assert [told(agent, "Ann"), told(agent, "Ann")] == ["told", "over_limit"]
    assert told(agent, "Ann", arm=1) == "told"  # another sum
    assert told(agent, "Bob") == "told"  # completes the episode
    assert told(agent, "Ann") == "told"  # in the next one
    assert told(agent, "Ann") == "over_limit"  # three are the limit
    assert agent.counts.over_limit == 2


@pytest.mark.parametrize("reward", [0.0, 0.3, 1.0])
def test_whether_it_is_taken_does_not_depend_on_its_value(reward: float) -> None:
    agent = pb.Agent(plain(), **SPREAD)
    dice = random.Random(4)
    found = [told(agent, f"p{dice.randrange(6)}", dice.randrange(2), reward) for _ in range(60)]
    twin = pb.Agent(plain(), **SPREAD)
    dice = random.Random(4)
    assert found == [told(twin, f"p{dice.randrange(6)}", dice.randrange(2), 0.5) for _ in range(60)]
    assert {"told", "over_limit"} == set(found)


def test_sums_that_leave_together_are_one_episode() -> None:
    """Two rewards of a person for two actions would meet in the release of the phase."""
    policy = pb.AdaCGOPE(actions=[[1.0, 0.0], [0.0, 1.0]], budget=pb.zCDP(50.0))
    agent = pb.Agent(policy, max_rewards_per_person=5, one_reward_per_episode=True)
    assert [told(agent, "Ann", arm) for arm in (0, 1, 0)] == ["told", "over_limit", "over_limit"]
    while not len(agent.ledger):
        decision = agent.ask(person=f"p{agent.counts.asked}")
        agent.tell(decision, 0.5)
    assert told(agent, "Ann", 1) in ("told", "dropped")  # the next phase


def test_a_batch_counts_what_it_has_taken_before() -> None:
    agent = pb.Agent(plain(), **SPREAD)
    for who in ("x", "y"):
        told(agent, who)
    decisions = agent.ask(3, person="Ann")
    agent.tell_many([(decision, 1.0, 0) for decision in decisions])
    assert (agent.counts.told, agent.counts.over_limit) == (3, 2)


def test_a_log_is_one_episode() -> None:
    agent = pb.Agent(plain(), max_rewards_per_person=9, one_reward_per_episode=True)
    rows = [("arm 0", 1.0, "Ann"), ("arm 0", 0.0, "Ann"), ("arm 1", 1.0, "Ann"), ("arm 0", 1.0, "Bob")]
    assert agent.warm_start(rows) == 3
    assert agent.counts.over_limit == 1
    assert told(agent, "Ann") == "told"


def test_what_is_open_is_remembered_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    with pb.Agent(plain(), path=path, **SPREAD) as agent:
        for who in ("x", "y", "Ann"):
            told(agent, who)
        assert agent.settings["one_reward_per_episode"] is True
    for _ in range(2):
        with pb.Agent.open(path) as agent:
            assert told(agent, "Ann") == "over_limit"
    with pb.Agent.open(path) as agent:
        assert told(agent, "Bob") == "told"
        assert told(agent, "Ann") == "told"


def test_a_reward_whose_noise_fails_leaves_no_trace_of_its_person(tmp_path: Path) -> None:
    class Broken(ExactNoise):
        fails = False

        def calibrate(self, *arguments: Any) -> Any:
            if self.fails:
                raise NoiseFailed("no noise")
            return super().calibrate(*arguments)

    for path in (None, tmp_path / "agent.db"):
        noise = Broken()
        agent = pb.Agent(plain(), path=path, noise=noise, **SPREAD)
        for who in ("x", "y", "Bob"):
            told(agent, who)
        noise.fails = True
        decision = agent.ask(person="Ann")
        with pytest.raises(NoiseFailed):
            agent.tell(decision, 1.0, played=0)
        noise.fails = False
        agent.tell(decision, 1.0, played=0)
        assert agent.counts.told == 4
        assert len(agent.ledger) == 3
        agent.close()


@pytest.mark.parametrize("limit", [2, 3, 5, 10])
def test_independent_releases_have_the_root_of_the_limit_as_much_noise(limit: int) -> None:
    def noise(**options: Any) -> float:
        agent = pb.Agent(plain(), **options)
        agent.tell(agent.ask(person="Ann"), 1.0)
        return agent.ledger[0].noise_sd

    one = noise()
    people: dict[str, Any] = {"max_rewards_per_person": limit, "unit": "person"}
    assert noise(**people) == pytest.approx(limit * one, rel=1e-6)
    assert noise(**people, one_reward_per_episode=True) == pytest.approx(math.sqrt(limit) * one, rel=1e-6)


@pytest.mark.parametrize("limit", [2, 3, 5, 10])
@pytest.mark.parametrize("policy", ONE_OF_EACH_NOISE, ids=policy_id)
def test_the_noise_is_for_the_worst_placement_that_is_taken(policy: Any, limit: int) -> None:
    """No less than that, and at most a hundredth more."""
    agent = pb.Agent(policy, max_rewards_per_person=limit, unit="person", one_reward_per_episode=True)
    door = bandit_of(agent).door
    if door.budget.noise == "none":
        return
    run = agent.guarantee()
    worst = Fraction(door.level) * door.composition.person_cost(limit, True)
    if door.budget.noise == "laplace":
        worst = Fraction(door.level) * limit * door.composition.reward_cost
    assert worst <= Fraction(run.promised)
    assert float(worst) >= run.promised / 1.01**2
    assert run.per_person == run.promised == policy.budget.level
    assert run.per_reward == door.budget.level


@pytest.mark.parametrize("policy", [p for p in ONE_OF_EACH_NOISE if p.budget.noise != "none"], ids=policy_id)
@pytest.mark.parametrize("options", [{}, {"one_reward_per_episode": True}], ids=["anywhere", "spread"])
def test_no_person_costs_more_than_was_promised(policy: Any, options: Any) -> None:
    """By the placements that were really taken, for every person, and by the worst of all."""
    agent = pb.Agent(policy, max_rewards_per_person=3, unit="person", **options)
    dice = random.Random(3)
    open_of: dict[tuple[str, int], list[int]] = {}
    for step in range(90):
        who = f"p{dice.randrange(12)}"
        decision = agent.ask(person=who, actions=offered(policy, step))
        before = agent.counts.told
        numbers = {key: e.number for key, e in bandit_of(agent).private.episodes.items()}
        agent.tell(decision, dice.random())
        if agent.counts.told > before and policy.setting == "finite":
            key = decision.action
            open_of.setdefault((who, key), []).append(numbers.get(key, 1))
    worst = worst_person(Releases.of(agent.ledger), 3, bool(options))
    assert worst.cost <= Fraction(policy.budget.level)
    if options:
        for episodes in open_of.values():
            assert len(set(episodes)) == len(episodes)
    assert agent.ledger.verify().ok


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"one_reward_per_episode": True}, "needs max_rewards_per_person"),
        ({"one_reward_per_episode": 1, "max_rewards_per_person": 2}, "must be True or False, got 1"),
    ],
)
def test_wrong_options_are_refused(options: Any, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        pb.Agent(plain(), **options)


def test_contextual_releases_are_independent_where_people_have_many_rewards() -> None:
    policy = pb.AdaCOFUL(dimension=2, budget=pb.zCDP(1.0), horizon=1000)
    assert [policy.for_people(m).correlated for m in (1, 2, 5, 1000)] == [True, True, True, False]
    for limit, name in itertools.product((2, 1000), ("correlated", "noise")):
        agent = pb.Agent(policy, max_rewards_per_person=limit, unit="person", one_reward_per_episode=True)
        run = bandit_of(agent).policy
        assert isinstance(run, pb.AdaCOFUL)
        assert run.correlated is (limit == 2), name
        assert agent.policy == policy


def test_a_file_with_a_policy_for_people_goes_on(tmp_path: Path) -> None:
    policy = pb.AdaCOFUL(dimension=2, budget=pb.zCDP(1.0), horizon=1000)
    path = tmp_path / "agent.db"
    with pb.Agent(policy, path=path, max_rewards_per_person=1000, unit="person", one_reward_per_episode=True) as agent:
        for step in range(20):
            agent.tell(agent.ask(actions=[[1.0, 0.0], [0.0, 1.0]], person=f"p{step}"), 1.0)
        rows = agent.ledger.rows
    with pb.Agent.open(path) as agent:
        assert agent.ledger.rows == rows
        for step in range(20):
            agent.tell(agent.ask(actions=[[1.0, 0.0], [0.0, 1.0]], person=f"q{step}"), 1.0)
        assert agent.ledger.verify().ok


def test_a_file_does_not_go_on_with_another_choice_for_people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = pb.AdaCIMED(2, pb.zCDP(1.0))
    path = tmp_path / "agent.db"
    pb.Agent(policy, path=path, unit="person", **SPREAD).close()
    with pb.Agent.open(path) as agent:
        assert bandit_of(agent).policy.growth == 2.0  # type: ignore[attr-defined]
    monkeypatch.setattr(pb.AdaCIMED, "for_people", lambda self, rewards: replace(self, growth=1.5, correlated=False))
    with pytest.raises(AgentFileInvalid, match="for_people"):
        pb.Agent.open(path)
