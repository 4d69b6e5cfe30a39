"""finish(): one closing release of each open sum, within the budget, after which no reward is taken."""

from __future__ import annotations

import contextlib
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

import private_bandits as pb
from private_bandits.agent import bandit_of
from private_bandits.errors import AgentClosed, AgentFileInvalid, AgentFinished, NoiseFailed
from private_bandits.mechanism.noise import ExactNoise
from private_bandits.policies import POLICIES
from private_bandits.testing import examples_of, offered, policy_id

SHIPPED = [cls for cls in POLICIES.values() if cls.__module__.startswith("private_bandits.")]
EXAMPLES = examples_of(SHIPPED, one_of_each_noise=True)
ARMS = [policy for policy in EXAMPLES if policy.setting == "finite"]


def played(policy: Any, world: int, steps: int, **options: Any) -> pb.Agent:
    """An agent with rewards told, open decisions and decisions given up."""
    rng = np.random.default_rng(world + 1000)
    agent = pb.Agent(policy, **options)
    for step in range(steps):
        decision = agent.ask(actions=offered(policy, step)) if policy.setting == "contextual" else agent.ask()
        fate = rng.random()
        if fate < 0.8:
            agent.tell(decision, reward=float(rng.random() < 0.6))
        elif fate < 0.9:
            agent.give_up(decision)
    return agent


@pytest.mark.parametrize("policy", EXAMPLES, ids=policy_id)
def test_every_policy_can_be_finished(policy: Any) -> None:
    agent = played(policy, 3, 37, seed=3)
    before, counts = len(agent.ledger), agent.counts
    assert not agent.finished
    waiting = sum(episode.count for episode in bandit_of(agent).private.episodes.values())
    assert agent.finish() == waiting
    assert sum(row.count for row in agent.ledger.rows[before:]) == waiting
    assert not any(episode.count for episode in bandit_of(agent).private.episodes.values())
    assert agent.counts == counts  # an open decision stays one
    assert agent.finish() == 0
    assert agent.finished
    assert repr(agent).count("finished") == 1
    assert len(agent.open_decisions) == counts.open
    with pytest.raises(AgentFinished, match="finished"):
        agent.tell(agent.open_decisions[0], 1.0)
    with pytest.raises(AgentFinished, match="finished"):
        agent.tell_many([(agent.open_decisions[0], 1.0)])
    with pytest.raises(AgentFinished, match="finished"):
        agent.ask()
    agent.give_up(agent.open_decisions[0])
    assert agent.estimates(0.1) == agent.estimates(0.1)


@pytest.mark.parametrize("policy", ARMS, ids=policy_id)
def test_all_rewards_are_in_the_final_estimates(policy: Any) -> None:
    """Those of a policy that forgets as well."""
    for steps in (1, 2, 7, 40, 150):
        agent = played(policy, steps, steps, seed=steps)
        agent.finish()
        assert sum(found.rewards for found in agent.estimates()) == agent.counts.told
        assert all(found.low <= found.high for found in agent.estimates(0.5))


@pytest.mark.parametrize("policy", ARMS, ids=policy_id)
def test_without_noise_the_final_mean_is_that_of_all_rewards(policy: Any) -> None:
    free = policy.with_budget(pb.NoPrivacy())
    agent, rng = pb.Agent(free), np.random.default_rng(5)
    sums, counts = np.zeros(len(policy.arm_names)), np.zeros(len(policy.arm_names))
    for _ in range(61):
        decision, reward = agent.ask(), float(rng.random())
        before = agent.counts.dropped
        agent.tell(decision, reward)
        if agent.counts.dropped == before:
            sums[decision.action] += reward
            counts[decision.action] += 1
    agent.finish()
    for found in agent.estimates():
        if counts[found.action]:
            assert found.mean == pytest.approx(sums[found.action] / counts[found.action], abs=1e-6)


@pytest.mark.parametrize("policy", [p for p in EXAMPLES if p.budget.noise != "none"], ids=policy_id)
def test_cost_recomputed_from_the_ledger_is_within_the_budget(policy: Any) -> None:
    agent = played(policy, 8, 41)
    agent.finish()
    spent: dict[str, Fraction] = {}
    for row in agent.ledger:
        laplace = row.noise == "laplace"
        ratio = Fraction(row.sensitivity) / Fraction(row.scale)
        for episode, multiplier in row.episodes.items():
            part = ratio * Fraction(multiplier) if laplace else (ratio * Fraction(multiplier)) ** 2 / 2
            spent[episode] = spent.get(episode, Fraction(0)) + part
    promised = agent.policy.budget.level
    assert max(spent.values()) <= Fraction(promised) * (1 + Fraction(1, 10**9)) or policy.tree_levels
    assert agent.ledger.total <= promised
    assert agent.guarantee().spent <= agent.guarantee().promised


class Failing(ExactNoise):
    """Exact noise that fails at one release."""

    def __init__(self, at: int) -> None:
        self.at = at

    def calibrate(self, kind: Any, level: float, sensitivity: int, dimension: int, number: int) -> Any:
        if number == self.at:
            raise NoiseFailed("no noise")
        return super().calibrate(kind, level, sensitivity, dimension, number)


@pytest.mark.parametrize("path", [None, "trial.db"])
def test_where_noise_fails_what_was_drawn_is_kept(path: str | None, tmp_path: Path) -> None:
    policy, noise = pb.AdaCIMED(n_arms=3, budget=pb.zCDP(0.1)), Failing(2)
    agent = pb.Agent(policy, noise=noise, path=None if path is None else tmp_path / path)
    for arm in range(3):
        agent.tell(agent.ask(), 1.0, played=arm)
    with pytest.raises(NoiseFailed):
        agent.finish()
    assert len(agent.ledger) == 1
    first = agent.ledger.rows[0].to_dict()
    with pytest.raises(AgentFinished):
        agent.ask()
    noise.at = 0
    assert agent.finish() == 2
    assert agent.ledger.rows[0].to_dict() == first
    assert [row.key for row in agent.ledger] == [0, 1, 2]
    assert [found.rewards for found in agent.estimates()] == [1, 1, 1]


@pytest.mark.parametrize("policy", [p for p in EXAMPLES if p.budget.noise != "laplace"], ids=policy_id)
def test_a_finished_agent_is_still_finished_when_it_is_opened_again(policy: Any, tmp_path: Path) -> None:
    agent = played(policy, 4, 33, path=tmp_path / "trial.db", seed=1)
    agent.finish()
    said = agent.estimates(), agent.counts, agent.ledger.head, agent.learned
    verdict = agent.verdict() if policy.arm_names else None
    agent.close()
    assert agent.estimates() == said[0]
    again = pb.Agent.open(tmp_path / "trial.db")
    assert (again.estimates(), again.counts, again.ledger.head, again.learned) == said
    assert not policy.arm_names or again.verdict() == verdict
    assert again.finish() == 0
    with pytest.raises(AgentFinished):
        again.tell(again.open_decisions[0], 1.0)


@pytest.mark.parametrize("policy", [p for p in EXAMPLES if p.factor or p.tree_levels], ids=policy_id)
def test_sums_that_no_release_will_hold_again_are_forgotten(policy: Any, tmp_path: Path) -> None:
    path = tmp_path / "trial.db"
    agent = played(policy, 4, 40, path=path, seed=1)
    assert any(episode.kept for episode in bandit_of(agent).private.episodes.values())
    agent.finish()
    assert not any(episode.kept for episode in bandit_of(agent).private.episodes.values())
    agent.close()
    with contextlib.closing(sqlite3.connect(path)) as file:
        assert file.execute("SELECT count(*) FROM kept").fetchone() == (0,)
    with pb.Agent.open(path) as again:
        assert again.finished
        assert again.finish() == 0


def test_without_its_earlier_sums_an_agent_that_goes_on_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "trial.db"
    agent = played(pb.AdaCIMED(2, pb.zCDP(5)), 4, 40, path=path)
    bandit = bandit_of(agent)
    for episode in bandit.private.episodes.values():
        episode.kept = ()
    bandit.records.summed(list(bandit.private.episodes.values()))
    bandit.records.keep_releases(bandit.public)
    agent.close()
    with pytest.raises(AgentFileInvalid, match="does not follow its last release"):
        pb.Agent.open(path)


def test_two_threads_finish_once() -> None:
    agent = played(pb.AdaCUCB(n_arms=3, budget=pb.zCDP(0.1)), 2, 40)
    found: list[int] = []
    threads = [threading.Thread(target=lambda: found.append(agent.finish())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found)[:3] == [0, 0, 0]


KILLED = """
import sys, private_bandits as pb
agent = pb.Agent.open(sys.argv[1])
print("open", flush=True)
agent.finish()
print(agent.ledger.head, flush=True)
"""


@pytest.mark.parametrize("kills", [3, pytest.param(60, marks=pytest.mark.full)])
def test_killed_while_it_finishes(kills: int, tmp_path: Path) -> None:
    """Either nothing of the closing releases is in the file, or all of them are; what was seen stays."""
    rng = np.random.default_rng(0)
    for number in range(kills):
        path = tmp_path / f"{number}.db"
        agent = pb.Agent(pb.AdaCIMED(n_arms=20, budget=pb.zCDP(0.1)), path=path)
        for arm in range(20):
            agent.tell(agent.ask(), 1.0, played=arm)
        agent.close()
        worker = subprocess.Popen([sys.executable, "-c", KILLED, str(path)], stdout=subprocess.PIPE, text=True)
        assert worker.stdout is not None
        assert worker.stdout.readline() == "open\n"
        time.sleep(float(rng.uniform(0.0, 0.03)))
        worker.send_signal(signal.SIGKILL)
        seen = worker.stdout.read().strip()
        worker.wait()
        worker.stdout.close()
        again = pb.Agent.open(path)
        assert len(again.ledger) in (0, 20)
        assert not seen or seen == again.ledger.head
        again.finish()
        assert len(again.ledger) == 20
        assert [found.rewards for found in again.estimates()] == [1] * 20
        again.close()


def test_final_intervals_hold_for_whoever_stops_at_the_worst_moment() -> None:
    """Rewards are seen by who stops, and the arm looks as good as it ever does. At delta = 0.5 flaws show soonest."""
    missed, runs = 0, 150
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        agent = pb.Agent(pb.AdaCIMED(n_arms=2, budget=pb.zCDP(5.0)), seed=seed)
        total = 0.0
        for count in range(1, 80):
            reward = float(rng.random() < 0.5)
            agent.tell(agent.ask(), reward, played=0)
            total += reward
            if count > 5 and total / count > 0.5 + 0.8 / np.sqrt(count):
                break
        agent.finish()
        found = agent.estimates(delta=0.5)[0]
        missed += not found.low <= 0.5 <= found.high
    # At most half of the intervals may miss. More than this has a probability below 1e-6.
    assert missed <= runs / 2 + 4.8 * np.sqrt(runs) / 2


def test_a_failure_of_another_agents_noise_after_the_draw_is_an_interrupt(tmp_path: Path) -> None:
    """A signal handler that uses another agent can raise it. Then nothing of the draw may be seen."""
    agent = pb.Agent(pb.AdaCIMED(2, pb.zCDP(1)), path=tmp_path / "agent.db")
    agent.tell(agent.ask(), 1.0)
    account = bandit_of(agent).door.account
    strike = mock.patch.object(type(account), "link", side_effect=NoiseFailed("of another agent"))
    with strike, pytest.raises(NoiseFailed):
        agent.finish()
    with pytest.raises(AgentClosed):
        agent.estimates()
    again = pb.Agent.open(tmp_path / "agent.db")
    assert (len(again.ledger), again.finish(), len(again.ledger)) == (0, 1, 1)
