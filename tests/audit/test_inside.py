"""The exact parts: every broken agent of this package's make is caught, no right one is."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

import private_bandits as pb
from private_bandits.audit import SHORT, Target, Thoroughness, audit, audit_all, draws, of_factory, of_policy, shipped
from private_bandits.audit import inside as exact
from private_bandits.audit.accounts import examine, total_of
from private_bandits.audit.evidence import Claim
from private_bandits.audit.outside import Effort
from private_bandits.audit.script import random_script, short_scripts
from private_bandits.audit.target import EXAMPLES
from private_bandits.policies import POLICIES
from tests.audit.specimens import SPECIMENS, Specimen

BROKEN = [s for s in SPECIMENS.values() if s.group == "white" and s.broken]
RIGHT = [s for s in SPECIMENS.values() if s.group == "white" and not s.broken]
UNSEEN = {"white_first_pull_raw", "white_noise_reused_per_arm", "white_sensitivity_from_data"}
"""They draw noise where nothing watches it, so that they are judged from outside."""


FEW = Effort(scenarios=10, pilot=30, learn=300, test=600, longest=12)


def name(specimen: Specimen) -> str:
    return specimen.name


@pytest.mark.parametrize("specimen", [s for s in BROKEN if s.name not in UNSEEN], ids=name)
def test_broken_agents_are_caught_from_inside(specimen: Specimen) -> None:
    report = audit(of_factory(specimen.factory, pb.zCDP(specimen.rho)), SHORT, processes=1)
    caught = [part.name for part in report.parts if part.flaws]
    assert caught
    assert not any(part.startswith("3") for part in caught), "an exact part should have seen it"
    assert report.verdict == "violation"


@pytest.mark.parametrize(
    "specimen",
    [
        pytest.param(s, marks=[] if s.name == "white_first_pull_raw" else pytest.mark.full)
        for s in BROKEN
        if s.name in UNSEEN
    ],
    ids=name,
)
def test_agents_that_hide_their_noise_are_judged_from_outside(specimen: Specimen) -> None:
    report = audit(of_factory(specimen.path, pb.zCDP(specimen.rho)), Thoroughness(effort=FEW), processes=2)
    assert report.violated
    assert "could not be judged from inside" in report.notes[0]


@pytest.mark.parametrize("specimen", RIGHT, ids=name)
def test_right_agents_are_not_accused_from_inside(specimen: Specimen) -> None:
    target = of_factory(specimen.factory, pb.zCDP(specimen.rho))
    found = exact.examine(target, scripts=2)
    assert not found.flaws
    assert found.worst <= 1 + 1e-9


OWN = sorted(name for name, p in POLICIES.items() if p.__module__.startswith("private_bandits."))
SHORTLY = [target for target in shipped() if target.claim or target.name.startswith("adac-")]
"""One budget of each noise; without noise there is little that differs between policies."""
NAMES = {target.name for target in SHORTLY}
OTHER_BUDGETS = [target for name in OWN for target in shipped(name) if target.name not in NAMES]


@pytest.mark.parametrize(
    "target",
    [*SHORTLY, *(pytest.param(target, marks=pytest.mark.full) for target in OTHER_BUDGETS)],
    ids=lambda t: t.name,
)
def test_every_shipped_policy_keeps_its_promise(target: Target) -> None:
    little = Effort(scenarios=3, pilot=4, learn=30, test=60, longest=6)
    report = audit(target, replace(SHORT, scripts=1, effort=little), processes=1)
    assert not report.violated, report.to_dict()
    assert [part.name[0] for part in report.parts] == (["1", "2", "3", "3", "4"] if target.claim else ["1"])


@pytest.mark.full
def test_the_audit_of_everything_shipped() -> None:
    assert not any(report.violated for report in audit_all(shipped()))


def test_shipped_means_every_policy_with_every_noise_or_one_with_every_budget_it_serves() -> None:
    for name in OWN:
        assert [t.name for t in shipped(name)] == [f"{name} {EXAMPLES[notion]}" for notion in POLICIES[name].notions]
    kinds = {(name, EXAMPLES[notion].noise) for name in OWN for notion in POLICIES[name].notions}
    assert len(shipped()) == len(kinds)


def test_the_dearest_reward_costs_the_whole_budget() -> None:
    """Were the replays blind to the change, the cost would be zero; were the noise too large, it would be less."""
    found = exact.examine(of_policy(pb.AdaCUCB(2, pb.zCDP(0.3))), scripts=2)
    assert found.worst == pytest.approx(1.0, abs=1e-9)
    assert found.replays > 100


def test_replays_of_one_world_are_the_same_to_the_last_letter() -> None:
    target = of_policy(pb.AdaCUCB(3, pb.zCDP(0.3)))
    script = random_script(random.Random(5), 3, 40, restarts=True)
    first = exact.replay(target, script, {}, None)
    again = exact.replay(target, script, {}, [d.answer for d in first.draws])
    assert first.shown == again.shown
    assert first.draws == again.draws
    assert len(first.told) > 5


def test_short_scripts_are_all_there() -> None:
    scripts = short_scripts(arms=2, most=64)
    assert len(scripts) == 4**3 + 3**3
    assert len(set(scripts)) == 4**3 + 3**3 - 2**3


def test_the_total_is_recomputed_from_rows_alone() -> None:
    agent = pb.Agent(pb.AdaCUCB(2, pb.zCDP(0.3)))
    for _ in range(50):
        agent.tell(agent.ask(), 1.0)
    total, flaws = examine(agent.ledger, Claim("zCDP", 0.3))
    assert total == pytest.approx(0.3, rel=1e-12)
    assert not flaws
    twice = pb.Ledger([row for row in agent.ledger if row.number == 1])
    row = twice[0].to_dict() | {"number": 2}
    twice.append(pb.Release.from_dict(row))
    assert total_of(twice, Claim("zCDP", 1.0)) == pytest.approx(0.6, rel=1e-12)
    assert examine(twice, Claim("zCDP", 0.3))[1]


@pytest.mark.parametrize("reward_range", [(-1.0, 3.0), (10.0, 10.5)])
def test_noise_is_told_from_the_sum_whatever_range_and_weights(reward_range: tuple[float, float]) -> None:
    def make() -> pb.Agent:
        return _WeightThree(pb.AdaCUCB(2, pb.zCDP(0.5)), reward_range)

    found = draws.examine(of_factory(make, None), draws=800, runs=120, failure=1e-6)
    assert not found.flaws
    assert found.tests > 10


class _WeightThree(pb.Agent):
    """Sums each reward with weight three, and releases a third of it."""

    def _wire(self, *arguments: Any) -> None:
        super()._wire(*arguments)
        policy = _TripledPolicy(2, arguments[0].policy.budget)
        self._policy = policy


class _TripledPolicy(pb.AdaCUCB):
    def entry(self, state: Any, action: int) -> tuple[int, tuple[int, ...]]:
        return action, (3,)


class _Counting(pb.Agent):
    """Counts the asks of this session: what a restart sets back, and no reward moves."""

    asks = 0

    @property
    def session(self) -> int:
        return self.asks

    def _decide(self, person: str | None, offered: Any) -> pb.Decision:
        self.asks += 1
        return super()._decide(person, offered)


def _counting(path: str | None = None) -> pb.Agent:
    return _Counting(pb.AdaCUCB(2, pb.zCDP(0.5)), path=path)


@pytest.mark.parametrize(
    ("make", "claim"),
    [
        (lambda: pb.Agent(pb.AdaPUCB(2, pb.PureDP(4.0))), pb.zCDP(4.0)),  # its true rho is 3.02, epsilon^2/2 is 8
        (lambda: pb.Agent(pb.AdaCUCB(2, pb.zCDP(0.026))), pb.ApproxDP(1.0, 1e-6)),  # the exact delta is 4.5e-7
        (_counting, pb.zCDP(0.5)),
    ],
)
def test_claims_that_are_true_in_another_notion_are_not_refuted(make: Any, claim: Any) -> None:
    report = audit(of_factory(make, claim), replace(SHORT, scripts=2, seconds=0), processes=1)
    assert not report.violated, report.to_dict()


def test_claims_that_are_false_in_another_notion_are_refuted() -> None:
    for make, claim in (
        (lambda: pb.Agent(pb.AdaPUCB(2, pb.PureDP(4.0))), pb.zCDP(2.9)),
        (lambda: pb.Agent(pb.AdaCUCB(2, pb.zCDP(0.03))), pb.ApproxDP(1.0, 1e-6)),
        (lambda: pb.Agent(pb.AdaCUCB(2, pb.zCDP(0.5))), pb.PureDP(100.0)),
    ):
        assert audit(of_factory(make, claim), replace(SHORT, scripts=2, seconds=0), processes=1).violated
