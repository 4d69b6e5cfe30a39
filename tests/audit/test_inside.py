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
from private_bandits.audit.script import ScriptMove, random_script, short_scripts
from private_bandits.audit.script_replay import replay
from private_bandits.audit.search import Effort
from private_bandits.audit.target import EXAMPLES
from private_bandits.errors import InvalidInput
from private_bandits.mechanism.factor import HALF_BEFORE
from private_bandits.policies import POLICIES
from private_bandits.storage.rows import chained_rows
from tests.audit.specimens import SPECIMENS, Specimen
from tests.support import SELDOM

BROKEN = [s for s in SPECIMENS.values() if s.group == "white" and s.broken]
RIGHT = [s for s in SPECIMENS.values() if s.group == "white" and not s.broken]
UNSEEN = {"white_first_pull_raw", "white_noise_reused_per_arm", "white_sensitivity_from_data"}
"""They draw noise where nothing watches it, so that they are judged from outside."""


BY_NOISE = {
    "white_scale_not_used",
    "white_half_variance",
    "white_fixed_source",
    "white_float_noise_rounded",
    "white_noise_shared_by_arms",
    "white_noise_on_wrong_arm",
    "white_linear_shared_noise",
    "white_linear_mirrored_noise",
    "white_linear_correlated_noise",
    "white_batch_quiet",
    "white_finish_quiet",
    "white_warm_start_quiet",
}
"""Their sums are right: no replay shows what is wrong with them."""


FEW = Effort(scenarios=10, pilot=30, learn=300, test=600, longest=12)
MORE = Effort(scenarios=24, pilot=60, learn=600, test=1200, longest=12)
"""For what few runs find most of the time only."""


def name(specimen: Specimen) -> str:
    return specimen.name


@pytest.mark.parametrize("specimen", [s for s in BROKEN if s.name not in UNSEEN | BY_NOISE], ids=name)
def test_broken_agents_are_caught_from_inside(specimen: Specimen) -> None:
    report = audit(of_factory(specimen.factory, pb.zCDP(specimen.rho)), SHORT, processes=1)
    assert [part.name for part in report.parts if part.flaws] == ["1 sensitivity"]
    assert report.verdict == "violation"


@pytest.mark.parametrize("scripts", [1, pytest.param(SHORT.scripts, marks=pytest.mark.full)])
@pytest.mark.parametrize("specimen", [SPECIMENS[n] for n in sorted(BY_NOISE)], ids=name)
def test_wrong_noise_on_right_sums_is_caught_by_its_draws(specimen: Specimen, scripts: int) -> None:
    report = audit(of_factory(specimen.factory, pb.zCDP(specimen.rho)), replace(SHORT, scripts=scripts), processes=1)
    assert [part.name for part in report.parts if part.flaws] == ["2 noise"]


@pytest.mark.parametrize("kind", ["doubling", "contextual"])
@pytest.mark.parametrize(
    ("flaw", "total"),
    [("", 1.0), ("_per_release", None), ("_beyond_cap", None), ("_third", None), ("_hidden", 1.0)],
)
def test_the_ledger_adds_up_every_release_that_holds_a_reward(flaw: str, total: float | None, kind: str) -> None:
    """Unless it is forged, it tells what is wrong by itself."""
    found = SPECIMENS.get(f"white_again{flaw}_{kind}")
    if found is None:
        assert flaw in ("_beyond_cap", "_third"), "of which there is one each"
        return
    target = of_factory(found.factory, pb.zCDP(found.rho))
    agent = target.make()
    for i in range(40):
        agent.tell(target.ask(agent, i), float(i % 2))
    assert target.claim is not None
    spent, flaws = examine(agent.ledger, target.claim)
    assert spent == pytest.approx(agent.ledger.total, rel=1e-9)
    if total is None:
        assert [flaw.title for flaw in flaws] == ["more was spent than promised"]
    else:
        assert spent == pytest.approx(total * found.rho, rel=1e-9)
        assert not flaws


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
    effort = FEW if specimen.name == "white_first_pull_raw" else MORE
    report = audit(of_factory(specimen.path, pb.zCDP(specimen.rho)), Thoroughness(effort=effort), processes=1)
    assert report.violated
    assert "could not be judged from inside" in report.notes[0]


@pytest.mark.parametrize("specimen", RIGHT, ids=name)
def test_right_agents_are_not_accused_from_inside(specimen: Specimen) -> None:
    target = of_factory(specimen.factory, pb.zCDP(specimen.rho))
    found = exact.examine(target, scripts=2)
    assert not found.flaws
    assert found.worst <= 1 + 1e-9


OWN = sorted(name for name, p in POLICIES.items() if p.__module__.startswith("private_bandits."))
SHORTLY = [target for target in shipped() if target.claim]
"""One budget of each noise, every variant; without noise there is little that differs between policies."""
NAMES = {target.name for target in SHORTLY}
OTHERS = list({t.name: t for name in ("all", *OWN) for t in shipped(name) if t.name not in NAMES}.values())
LARGE = [of_policy(pb.AdaCOFUL.example(pb.zCDP(0.5)))]
"""With a factor that no replay uses up."""
QUICK = replace(SHORT, scripts=1, draws=150, seconds=0.0, false_accusation=SELDOM)
TINY = Effort(scenarios=3, pilot=4, learn=30, test=60, longest=6)
FROM_OUTSIDE = replace(SHORT, scripts=1, effort=TINY, false_accusation=SELDOM)
TIGHT = [target for target in SHORTLY if " tight " in target.name]
"""Of the policies of the paper."""


@pytest.mark.parametrize(
    ("target", "thoroughness"),
    [
        *((target, QUICK) for target in SHORTLY),
        *((target, FROM_OUTSIDE) for target in TIGHT),
        *(
            pytest.param(target, FROM_OUTSIDE, marks=pytest.mark.full)
            for target in (*SHORTLY, *OTHERS, *LARGE)
            if target not in TIGHT
        ),
    ],
    ids=lambda value: value.name if isinstance(value, Target) else "from outside" if value.effort else "quick",
)
def test_every_shipped_policy_keeps_its_promise(target: Target, thoroughness: Thoroughness) -> None:
    report = audit(target, thoroughness, processes=1)
    assert not report.violated, report.to_dict()
    assert not any(part.skipped for part in report.parts), report.to_dict()
    assert report.notes == []
    expected = ["1", "2", "3", "3", "4"] if thoroughness.effort else ["1", "2", "4"]
    assert [part.name[0] for part in report.parts] == (expected if target.claim else ["1"])


@pytest.mark.parametrize("target", [t for t in TIGHT if t.offers is not None], ids=lambda t: t.name)
def test_factors_that_are_audited_are_used_up_within_a_replay(target: Target) -> None:
    factor = target.make().policy.factor
    assert factor is not None
    last = factor.cap or len(factor.multipliers)  # without a cap, the first episodes leave it
    long = [random_script(random.Random(seed), target.arms, 120) for seed in range(4)]
    assert max(replay(target, script, {}, None).rows or 0 for script in long) > last


@pytest.mark.full
def test_the_audit_of_everything_shipped() -> None:
    assert not any(report.violated for report in audit_all(shipped(), false_accusation=SELDOM))


def test_shipped_means_every_policy_with_every_noise_or_one_with_every_budget_it_serves() -> None:
    for name in OWN:
        policy = POLICIES[name]
        full = f"{name} tight" if "tight" in policy.variants else name
        assert [t.name for t in shipped(name)] == [f"{full} {EXAMPLES[notion]}" for notion in policy.supported_budgets]
    kinds = {
        (name, EXAMPLES[notion].noise, variant)
        for name in OWN
        for notion in POLICIES[name].supported_budgets
        for variant in POLICIES[name].variants
    }
    assert len(shipped()) == len(kinds)


def test_a_variant_may_be_asked_for() -> None:
    (target,) = shipped("adac-oful", pb.zCDP(0.1), "paper")
    assert target.name == "adac-oful paper zCDP(rho=0.1)"
    assert target.make().policy.factor is None
    assert {t.name.split()[1] for t in shipped(variant="tight")} == {"tight"}
    for name, variant in (("adap-ucb", "tight"), ("adac-ucb", "loose"), ("all", "loose")):
        with pytest.raises(InvalidInput, match="variant"):
            shipped(name, variant=variant)


@pytest.mark.parametrize("first", [1, 64])
def test_the_dearest_reward_costs_the_whole_budget(first: int) -> None:
    """Were the replays blind to the change, the cost would be zero; were the noise too large, it would be less.

    first: rewards in an arm's first episode. With 64 a release holds an episode again after 128 rewards.
    """

    class Halves(pb.AdaCUCB):
        name = "late-halves"
        factor = HALF_BEFORE

        def due(self, state: Any, key: int, count: int, arrived: Any) -> bool:
            return bool(count >= max(state.released[key], first))

    found = exact.examine(of_policy(Halves(2, pb.zCDP(0.3))), scripts=2)
    del POLICIES["late-halves"]
    assert found.worst == pytest.approx(1.0, abs=1e-9)
    assert found.replays > 100


@pytest.mark.parametrize("rho", [pytest.param(0.3, marks=pytest.mark.full), 50.0])
def test_the_dearest_reward_of_adac_imed_costs_the_whole_budget(rho: float) -> None:
    """A script that is long enough for all releases that hold the first rewards of an arm."""
    policy = pb.AdaCIMED(2, pb.zCDP(rho))
    assert policy.factor is not None
    rewards = sum(policy.memory.lengths(policy.memory.opening, 2 + len(policy.factor.multipliers)))
    target = of_policy(policy)
    script = tuple(move for _ in range(rewards) for move in (ScriptMove("ask"), ScriptMove("tell", 0, 1.0, 1)))
    base = replay(target, script, {}, None)
    costs = []
    for change in exact.changes_of(target, base, 60, random.Random(1)):
        other = replay(target, script, change, [d.answer for d in base.draws])
        costs.append(exact.compare(target, base, other, change, found := exact.Sensitivity()))
        assert not found.flaws
    assert max(costs) == pytest.approx(1.0, abs=1e-9)


def test_noise_of_late_releases_that_hold_episodes_again_is_looked_at() -> None:
    target = of_policy(pb.AdaCIMED(2, pb.zCDP(0.003)))
    assert exact.held_again_after(target) == 151
    assert exact.held_again_after(of_policy(pb.AdaCUCB(2, pb.zCDP(0.003)))) == 0
    assert len(draws.noise_of_run(target, draws.Draws())) == 3


def test_replays_of_one_world_are_the_same_to_the_last_letter() -> None:
    target = of_policy(pb.AdaCUCB(3, pb.zCDP(0.3)))
    script = random_script(random.Random(5), 3, 40, restarts=True)
    first = replay(target, script, {}, None)
    again = replay(target, script, {}, [d.answer for d in first.draws])
    assert first.shown == again.shown
    assert first.draws == again.draws
    assert len(first.told) > 5


def test_short_scripts_are_all_there() -> None:
    scripts = short_scripts(arms=2, most=64)
    assert len(scripts) == 4**3 + 3**3
    assert len(set(scripts)) == 4**3 + 3**3 - 2**3


def test_the_total_is_recomputed_from_rows_alone() -> None:
    agent = pb.Agent(pb.AdaCUCB(2, pb.zCDP(0.3), variant="paper"))  # every reward in one release
    for _ in range(50):
        agent.tell(agent.ask(), 1.0)
    total, flaws = examine(agent.ledger, Claim("zCDP", 0.3))
    assert total == pytest.approx(0.3, rel=1e-12)
    assert not flaws
    first = agent.ledger[0]
    rows = [first, pb.Release.from_dict(first.to_dict() | {"number": 2})]
    twice = pb.Ledger(chained_rows(rows, agent.ledger.opening), agent.ledger.opening)
    assert total_of(twice, Claim("zCDP", 1.0)) == pytest.approx(0.6, rel=1e-12)
    assert examine(twice, Claim("zCDP", 0.3))[1]


@pytest.mark.parametrize("reward_range", [(-1.0, 3.0), (10.0, 10.5)])
def test_noise_is_told_from_the_sum_whatever_range_and_weights(reward_range: tuple[float, float]) -> None:
    def make() -> pb.Agent:
        return pb.Agent(_WeightThree(2, pb.zCDP(8.0)), reward_range)

    found = draws.examine(of_factory(make, None), draws=800, runs=120, failure=SELDOM)
    assert not found.flaws
    assert found.tests > 10


class _WeightThree(pb.AdaCUCB):
    """Sums each reward with weight three."""

    def entry(self, state: Any, action: int) -> tuple[int, tuple[int, ...]]:
        return action, (3,)


class _Counting(pb.Agent):
    """Counts the asks of this session: what a restart sets back, and no reward moves."""

    asks = 0

    @property
    def session(self) -> int:
        return self.asks

    def ask(self, n: Any = None, *, actions: Any = None, person: str | None = None) -> Any:
        self.asks += 1
        return super().ask(n, actions=actions, person=person)


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
    much = replace(SHORT, scripts=2, seconds=0, false_accusation=SELDOM)
    report = audit(of_factory(make, claim), much, processes=1)
    assert not report.violated, report.to_dict()


def test_claims_that_are_false_in_another_notion_are_refuted() -> None:
    for make, claim in (
        (lambda: pb.Agent(pb.AdaPUCB(2, pb.PureDP(4.0))), pb.zCDP(2.9)),
        (lambda: pb.Agent(pb.AdaCUCB(2, pb.zCDP(0.03))), pb.ApproxDP(1.0, 1e-6)),
        (lambda: pb.Agent(pb.AdaCUCB(2, pb.zCDP(0.5))), pb.PureDP(100.0)),
    ):
        assert audit(of_factory(make, claim), replace(SHORT, scripts=2, seconds=0), processes=1).violated


def test_the_rows_overheard_are_those_that_leave_the_door() -> None:
    """Also where a door changes what the release of its base class returned."""
    agent = SPECIMENS["white_float_noise_on_float_sum"].factory()
    tap = draws.DoorRecorder(agent)
    for _ in range(8):
        agent.tell(agent.ask(), 1.0)
    assert tap.rows == list(agent.ledger)
    assert len(tap.rows) > 3
    sums = [totals[0] / row.steps for (_, totals), row in zip(tap.sums, tap.rows, strict=True)]
    assert sums == [row.count for row in tap.rows]


def test_noise_that_goes_together_is_found_where_not_every_run_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Release 6 has the noise of release 5 again, in the runs that reach it."""
    generator = random.Random(1)

    def noise_of_run(target: Any, found: Any, together: bool) -> list[list[float]]:
        drawn = [[generator.gauss(0, 1)] for _ in range(5)]
        return [*drawn, drawn[-1]] if generator.random() < 0.7 else drawn

    monkeypatch.setattr(draws, "noise_of_run", noise_of_run)
    found = draws.examine(of_policy(pb.AdaCUCB(2, pb.zCDP(0.5))), draws=800, runs=200, failure=SELDOM)
    assert [flaw.title for flaw in found.flaws] == ["noise goes together that should be independent"]
    assert "release 5 and 1 of 6" in found.flaws[0].evidence
