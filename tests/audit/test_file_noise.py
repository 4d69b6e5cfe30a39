"""`private-bandits audit --file`: noise that is not what the ledger says is found, and right noise is not accused."""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import private_bandits as pb
from private_bandits.audit import FileNoise, audit_file
from private_bandits.audit.script_replay import PatchedMechanism
from private_bandits.errors import InvalidInput
from private_bandits.mechanism.noise import ExactNoise
from tests.commands import call_here

Row = tuple[Any, ...]
Change = Callable[[list[int]], list[int]]


class ChangedNoise(ExactNoise):
    """The exact noise, changed before it is added."""

    def __init__(self, change: Change) -> None:
        self._change = change

    def calibrate(self, *arguments: Any) -> Any:
        def call(mechanism: Any, totals: Any) -> list[int]:
            sums = totals.reveal()
            noise = [y - x for x, y in zip(sums, mechanism(totals), strict=True)]
            return [x + z for x, z in zip(sums, self._change(noise), strict=True)]

        return PatchedMechanism(super().calibrate(*arguments), call)


def repeated() -> Change:
    kept: list[list[int]] = []

    def change(noise: list[int]) -> list[int]:
        kept.append(noise)
        return kept[len(kept) // 2]

    return change


def added_again() -> Change:
    kept: list[list[int]] = []

    def change(noise: list[int]) -> list[int]:
        before = kept[-1] if kept else noise
        kept.append([round(0.9 * a + 0.19**0.5 * b) for a, b in zip(before, noise, strict=True)])
        return kept[-1]

    return change


def run(path: Path, policy: Any, steps: int, seed: int, people: int = 0, **options: Any) -> list[Row]:
    """Play, and return all outcomes in the order told."""
    dice, log = random.Random(seed), []
    with pb.Agent(policy, path=path, **options) as agent:
        for _ in range(steps):
            who: dict[str, Any] = {"person": f"person {dice.randrange(people)}"} if people else {}
            offers = [[dice.uniform(-0.5, 0.5) for _ in range(2)] for _ in range(3)]
            decision = agent.ask(**who) if policy.arm_names else agent.ask(actions=offers, **who)
            reward = float(dice.random() < 0.5) * 1.5  # the agent clips it
            agent.tell(decision, reward)
            log.append((decision.arm if policy.arm_names else offers[decision.action], reward, *who.values()))
    return log


def ucb(rho: float = 1.0) -> pb.AdaCUCB:
    return pb.AdaCUCB(n_arms=5, budget=pb.zCDP(rho), beta=1, variant="paper")


@pytest.mark.parametrize(
    ("policy", "steps", "options"),
    [
        (ucb(), 1500, {}),
        (pb.AdaCUCB(n_arms=3, budget=pb.zCDP(1.0)), 600, {}),
        (ucb(), 1500, {"people": 400, "max_rewards_per_person": 3, "one_reward_per_episode": True, "unit": "person"}),
        (pb.AdaCGOPE(actions=[[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]], budget=pb.zCDP(100.0)), 1500, {}),
        (pb.AdaCOFUL(dimension=2, budget=pb.zCDP(1.0), horizon=10**4), 400, {}),
        (pb.AdaCOFULPrivate(dimension=2, budget=pb.zCDP(1.0), horizon=10**4), 200, {}),
        (pb.AdaPUCB(n_arms=3, budget=pb.PureDP(1.0)), 600, {}),
        (pb.TreeUCB(n_arms=3, budget=pb.zCDP(1.0), horizon=1000), 100, {}),
        (pb.DPSE(n_arms=2, budget=pb.PureDP(40.0), horizon=3000), 3000, {}),
    ],
    ids=["ucb", "tight", "people", "gope", "oful", "private", "laplace", "tree", "dp-se"],
)
def test_right_noise_is_not_accused(policy: Any, steps: int, options: Any, tmp_path: Path) -> None:
    log = run(tmp_path / "agent.db", policy, steps, 1, **options)
    before = (tmp_path / "agent.db").read_bytes()
    found = audit_file(tmp_path / "agent.db", log)
    assert not found.violated, str(found)
    assert found.tests >= 3
    assert (tmp_path / "agent.db").read_bytes() == before


@pytest.mark.full
def test_none_of_two_hundred_right_files_is_accused(tmp_path: Path) -> None:
    for seed in range(200):
        log = run(tmp_path / f"{seed}.db", ucb(), 500, seed)
        assert not audit_file(tmp_path / f"{seed}.db", log).violated


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda noise: [z // 2 for z in noise], "not of the size"),
        (lambda noise: [2 * z for z in noise], "not of the size"),
        (lambda noise: [0 for _ in noise], "not of the size"),
        (repeated(), "repeats itself"),
        (added_again(), "goes together with something"),
        (lambda noise: [abs(z) for z in noise], "does not have the distribution"),
    ],
    ids=["halved", "doubled", "none", "repeated", "added again", "positive"],
)
def test_noise_that_is_not_what_the_ledger_says_is_found(change: Change, words: str, tmp_path: Path) -> None:
    many = pb.AdaCUCB(n_arms=40, budget=pb.zCDP(1.0), variant="paper")  # 200 draws: live noise hides nothing then
    log = run(tmp_path / "agent.db", many, 2500, 2, noise=ChangedNoise(change))
    found = audit_file(tmp_path / "agent.db", log)
    assert found.violated
    assert any(words in flaw.title for flaw in found.flaws), str(found)
    assert "private" in str(found)


def test_a_log_that_the_agent_started_from(tmp_path: Path) -> None:
    dice = random.Random(5)
    past = [(f"arm {dice.randrange(3)}", float(dice.random() < 0.5)) for _ in range(60)]
    log = list(past)
    with pb.Agent(pb.AdaCUCB(3, pb.zCDP(1.0)), path=tmp_path / "agent.db") as agent:
        agent.warm_start(past)
        for _ in range(300):
            decision, reward = agent.ask(), float(dice.random() < 0.5)
            agent.tell(decision, reward)
            log.append((decision.arm, reward))
    assert not audit_file(tmp_path / "agent.db", log, warm_start=60).violated
    with pytest.raises(InvalidInput, match="do not fit release 1"):
        audit_file(tmp_path / "agent.db", log)


def test_outcomes_that_do_not_fit_are_refused_without_a_reward(tmp_path: Path) -> None:
    log = run(tmp_path / "agent.db", ucb(), 300, 3)
    with pytest.raises(InvalidInput, match="the outcomes end before release"):
        audit_file(tmp_path / "agent.db", log[:100])
    with pytest.raises(InvalidInput, match="do not fit release"):
        audit_file(tmp_path / "agent.db", log[::-1])
    pb.Agent(ucb(), path=tmp_path / "empty.db").close()
    with pytest.raises(InvalidInput, match="no release yet"):
        audit_file(tmp_path / "empty.db", log)
    offers = run(tmp_path / "places.db", pb.LinPriv(dimension=2, arms=3, budget=pb.zCDP(1.0), horizon=100), 20, 1)
    with pytest.raises(InvalidInput, match="cannot be tested so"):
        audit_file(tmp_path / "places.db", offers)
    run(tmp_path / "plain.db", pb.AdaCUCB(2, pb.NoPrivacy()), 5, 1)
    with pytest.raises(InvalidInput, match="without noise"):
        audit_file(tmp_path / "plain.db", log)


def test_the_command(tmp_path: Path) -> None:
    log = run(tmp_path / "agent.db", ucb(), 600, 4)
    with (tmp_path / "log.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("arm", "reward"), *log])
    options = ["audit", "--file", str(tmp_path / "agent.db"), "--rewards", str(tmp_path / "log.csv")]
    shown = call_here(*options)
    assert shown.returncode == 0
    assert "It is private" in shown.stdout
    data = json.loads(call_here(*options, "--json").stdout)
    assert data["violated"] is False
    assert "private" in data["private"]
    refused = call_here("audit", "--file", str(tmp_path / "agent.db"))
    assert refused.returncode == 2
    assert "--rewards" in refused.stderr


def test_plain_data_of_a_result() -> None:
    found = FileNoise(releases=3, draws=3, level=1e-5)
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["flaws"] == []
