"""From outside: broken agents are caught by what they do, right ones never."""

from __future__ import annotations

import math
import os
import random
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from itertools import islice
from multiprocessing import get_context
from typing import Any

import numpy as np
import pytest

import private_bandits as pb
from private_bandits.audit import FAILURE, Thoroughness, audit, of_factory, of_policy, outside
from private_bandits.audit.evidence import Claim
from private_bandits.audit.outside import examine
from private_bandits.audit.scenario import (
    Scenario,
    changed,
    on_the_scale,
    plain_scenarios,
    play,
    random_scenario,
    staged_scenarios,
    with_more,
)
from private_bandits.audit.scores import by_discriminant, by_prefix
from private_bandits.audit.search import Effort
from private_bandits.audit.target import accepts
from private_bandits.audit.worlds import WorldRunner
from tests.audit.specimens import SPECIMENS, Specimen
from tests.support import SELDOM

BLACK = [s for s in SPECIMENS.values() if s.group == "black"]
BLATANT = (
    "no_noise",
    "first_release_raw",
    "win_stay_lose_shift",
    "rounding_only",
    "batch_stops_at_zero",
    "warm_start_raw",
    "note_tells_sum",
    "exits_after_zeros",
)
"""Broken so badly that seconds are enough."""
QUICK_RIGHT = ("plain_int",)
SMALL = Effort(scenarios=24, pilot=40, learn=600, test=2000, longest=24)
"""In runs and not in seconds, so that a slow machine sees as much as a fast one."""


MUCH = Effort(scenarios=100, pilot=80, learn=5_000, test=25_000, longest=100)


def name(specimen: Specimen) -> str:
    return specimen.name


def chosen(names: tuple[str, ...]) -> list[Specimen]:
    return [SPECIMENS[f"black_{n}"] for n in names]


@pytest.mark.parametrize("specimen", chosen(BLATANT), ids=name)
def test_blatant_leaks_are_caught_in_seconds(specimen: Specimen) -> None:
    report = audit(of_factory(specimen.path, pb.zCDP(specimen.rho)), Thoroughness(effort=SMALL), processes=1)
    assert report.violated
    assert report.to_dict()["seen"] == "outside only"
    assert [p.verdict for p in report.parts if p.name[0] != "3"] == ["not possible from outside"] * 3


@pytest.mark.parametrize("specimen", chosen(QUICK_RIGHT), ids=name)
def test_right_agents_are_not_accused(specimen: Specimen) -> None:
    much = Thoroughness(effort=SMALL, false_accusation=SELDOM)
    report = audit(of_factory(specimen.path, pb.zCDP(specimen.rho)), much, processes=1)
    assert not report.violated


@pytest.mark.full
def test_half_of_the_noise_is_caught_from_actions_alone() -> None:
    specimen = SPECIMENS["black_sigma_halved"]
    effort = Effort(scenarios=48, pilot=80, learn=3000, test=12_000)
    report = audit(of_factory(specimen.path, pb.zCDP(specimen.rho)), Thoroughness(effort=effort), processes=2)
    assert report.violated


HARD = {"black_finish_raw", "black_reward_in_two_sums"}
"""Two sums: twice the rho, of which an action shows two thirds at most, as it says only which side of a threshold a sum
lies on. The raw end: its few rewards are noticed in too few of the runs that there is time for."""


@pytest.mark.full
@pytest.mark.parametrize("specimen", [s for s in BLACK if s.broken and s.name not in HARD], ids=name)
def test_every_broken_agent_is_caught(specimen: Specimen) -> None:
    report = audit(of_factory(specimen.path, pb.zCDP(specimen.rho)), Thoroughness(effort=MUCH), processes=2)
    assert report.violated


@pytest.mark.full
@pytest.mark.parametrize("specimen", [SPECIMENS[n] for n in sorted(HARD)], ids=name)
def test_no_more_is_proven_than_is_true(specimen: Specimen) -> None:
    report = audit(of_factory(specimen.path, pb.zCDP(specimen.rho)), Thoroughness(effort=MUCH), processes=2)
    assert all(part.outcome.bound <= specimen.cost for part in report.parts if part.outcome is not None)


def _audit_once(task: tuple[str, float, int]) -> tuple[str, bool]:
    path, rho, seed = task
    report = audit(of_factory(path, pb.zCDP(rho)), Thoroughness(scripts=2, draws=800, seconds=2), 1, seed)
    return path, report.violated


@pytest.mark.full
def test_no_right_agent_is_accused_in_200_audits() -> None:
    right = [s for s in SPECIMENS.values() if not s.broken and s.name != "black_slow"]
    tasks = [(right[i % len(right)].path, right[i % len(right)].rho, i) for i in range(200)]
    with ProcessPoolExecutor(os.cpu_count(), get_context("spawn")) as pool:
        accused = [path for path, violated in pool.map(_audit_once, tasks) if violated]
    assert accused == []


# What an accusation rests on.


class Coin:
    """Shows a coin whose bias depends on the first reward by a factor that is exactly epsilon-DP."""

    def __init__(self, epsilon: float) -> None:
        self.odds = 1 / (1 + math.exp(-epsilon))
        self.shown: int | None = None

    def ask(self) -> int:
        return 0 if self.shown is None else self.shown

    def tell(self, decision: Any, reward: float) -> None:
        if self.shown is None:
            self.shown = int((reward > 0.5) == (random.random() < self.odds))


@pytest.mark.parametrize(("factor", "violated"), [pytest.param(1.0, False, marks=pytest.mark.full), (0.7, True)])
def test_pure_and_approximate_claims(factor: float, violated: bool) -> None:
    target = of_factory(lambda: Coin(1.0), pb.PureDP(factor), arms=2)
    effort = Effort(scenarios=6, pilot=40, learn=600, test=8000, longest=4)
    for claim in (Claim("pure DP", factor), Claim("approximate DP", factor, 1e-3)):
        outcome = examine(target, claim, WorldRunner(target, 1), False, effort, 1e-4, seed=1)
        assert outcome.violated == violated
        assert (0.3 if violated else 0.6) < outcome.bound < 1.0  # wagers end it early where they refute


def test_the_bound_comes_close_to_the_truth() -> None:
    """epsilon tanh(epsilon/2) is the rho of the coin."""
    target = of_factory(lambda: Coin(2.0), pb.zCDP(9.0), arms=2)
    effort = Effort(scenarios=6, pilot=40, learn=1000, test=20_000, longest=4)
    outcome = examine(target, Claim("zCDP", 9.0), WorldRunner(target, 1), False, effort, 1e-4, seed=1)
    assert 0.85 * 2 * math.tanh(1) < outcome.bound < 2 * math.tanh(1)


def test_processes_that_would_repeat_each_other_are_not_used() -> None:
    fixed = SPECIMENS["black_fixed_seed"]
    worlds = WorldRunner(of_factory(fixed.path, pb.zCDP(fixed.rho)), 2)
    assert worlds.processes == 1
    free = SPECIMENS["black_uniform"]
    target = of_factory(free.path, pb.zCDP(free.rho))
    worlds = WorldRunner(target, 2)
    assert worlds.processes == 2
    low, high = worlds.run(Scenario(3, 0, (0.5,) * target.arms), 11, look=False)
    worlds.close()
    assert len(low) == len(high) == 11


class Drifting:
    """Keeps its promise, as it ignores rewards, but shows how many agents there were."""

    made = 0

    def __init__(self) -> None:
        Drifting.made += 1

    def ask(self) -> int:
        return Drifting.made // 1000 % 2

    def tell(self, decision: Any, reward: float) -> None:
        pass

    def estimates(self) -> float:
        return float(Drifting.made)


def test_what_drifts_with_time_accuses_nobody() -> None:
    much = Thoroughness(effort=SMALL, false_accusation=SELDOM)
    report = audit(of_factory(Drifting, pb.zCDP(0.01), arms=2), much, processes=1)
    assert not report.violated


class Fluent(Coin):
    """Returns itself, in which the raw reward lies: what is inside an object was not shown."""

    def __init__(self) -> None:
        super().__init__(0.0)
        self.raw: list[float] = []

    def tell(self, decision: Any, reward: float) -> Fluent:  # type: ignore[override]
        super().tell(decision, reward)
        self.raw.append(reward)
        return self


def test_what_lies_inside_a_returned_object_was_not_shown() -> None:
    made = lambda: Fluent()  # noqa: E731  (and nothing that another process could be given)
    report = audit(of_factory(made, pb.zCDP(0.01)), Thoroughness(seconds=1, false_accusation=SELDOM), processes=2)
    assert not report.violated


def test_a_scenario_says_what_it_does() -> None:
    scenario = Scenario(
        4,
        1,
        (0.5, -1.0),
        (None, 1),
        2,
        3,
        together=True,
        log=1,
        people=2,
        option=1,
        restart=3,
        late=2,
        missing=3,
        repeated=True,
        finish=True,
    )
    text = str(scenario)
    for part in (
        "4 rewards",
        "number 2 is the secret",
        "0.5, low and high in turn",
        "-, 1",
        "2 at a time",
        "3 more asks",
        "by ask(n) and tell_many",
        "first 1 rewards are a log",
        "2 people in turn",
        "other options, number 1",
        "restarted after 3",
        "each reward comes 2 decisions late",
        "one reward in 3 never comes",
        "told again with half of the range",
        "then finish()",
    ):
        assert part in text


def test_scenarios_stay_within_bounds() -> None:
    dice = random.Random(0)
    drawn = [random_scenario(dice, 3, True, 12) for _ in range(200)] + [
        scenario for scenario, _ in islice(staged_scenarios(dice, 3, True, 12), 200)
    ]
    able = of_policy(pb.AdaCUCB(3, pb.zCDP(1)))
    drawn += [with_more(random_scenario(dice, 3, True, 12), dice, able, turn) for turn in range(200)]
    for scenario in [*plain_scenarios(3, 12), *drawn]:
        for variant in (scenario, changed(scenario, dice, 12)):
            assert 1 <= variant.steps <= 12
            assert 0 <= variant.secret < variant.steps
            assert 0 <= variant.log <= variant.steps
            assert 0 <= variant.restart <= variant.steps
            assert 0 <= variant.option <= len(able.also)
            assert all(level in (-1.0,) or 0 <= level <= 1 for level in variant.levels)


def test_staged_scenarios_put_the_secret_on_the_arm_in_question() -> None:
    dice = random.Random(1)
    for arms, may_play in ((1, True), (2, True), (3, True), (3, False)):
        for scenario, own in islice(staged_scenarios(dice, arms, may_play, 40), 100):
            if scenario.played:
                assert may_play
                assert len(scenario.played) == scenario.steps
                assert scenario.played[scenario.secret] == own
            for weight, levels in ((0.0, (1.0, 0.0)), (1.0, (1.0, 1.0)), (1.5, (0.5, 1.0)), (2.0, (0.0, 1.0))):
                on = on_the_scale(scenario, own, weight).levels
                assert on == tuple(levels[arm != own] for arm in range(arms))


def test_play_tells_what_the_scenario_says() -> None:
    told: list[tuple[int, float, int | None]] = []

    class Recorder:
        def ask(self) -> int:
            return len(told) % 2

        def tell(self, decision: int, reward: float, played: int | None = None) -> None:
            told.append((decision, reward, played))

    target = of_factory(Recorder, pb.zCDP(1), (-1.0, 3.0), arms=2)
    told.clear()
    actions, shown = play(target, Scenario(4, 2, (0.5, -1.0), (None, None, None, 0), looks=1), 1.0, look=False)
    assert told == [(0, 1.0, None), (1, -1.0, None), (0, 3.0, None), (1, 1.0, 0)]
    assert actions == (0, 1, 0, 1, 0)
    assert shown == {}


class Clerk:
    """Writes down what it is told, and how."""

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def ask(self, n: int | None = None) -> Any:
        self.calls.append(("ask", n))
        return 0 if n is None else [0] * n

    def tell(self, decision: int, reward: float, played: int | None = None) -> None:
        self.calls.append(("tell", reward))

    def tell_many(self, rewards: Any) -> None:
        self.calls.append(("tell_many", [item[1:] for item in rewards]))

    def warm_start(self, log: Any) -> None:
        self.calls.append(("warm_start", log))


def test_play_uses_what_an_agent_has_beside_ask_and_tell() -> None:
    made: list[Clerk] = []

    def make() -> Clerk:
        made.append(Clerk())
        return made[-1]

    target = of_factory(make, pb.zCDP(1), arms=2)
    assert (target.asks_many, target.tells_many, target.supports_warm_start) == (True, True, True)
    scenario = Scenario(5, 1, (0.5, 0.25), (None, None, 1), batch=2, looks=1, together=True, log=2)
    play(target, scenario, 1.0, look=False)
    assert made[-1].calls == [
        ("warm_start", [(0, 0.5), (1, 1.0)]),
        ("ask", 2),
        ("tell_many", [(0.25, 1), (0.5,)]),
        ("ask", 1),
        ("tell_many", [(0.5,)]),
        ("ask", None),
    ]
    play(target, replace(scenario, together=False, log=0, batch=1, steps=1), 1.0, look=False)
    assert made[-1].calls == [("ask", None), ("tell", 0.5), ("ask", None)]


class Finisher:
    """Writes down the order in which things happen."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def ask(self) -> dict[str, int]:
        self.calls.append("ask")
        return {"id": self.calls.count("ask"), "arm": 0}

    def tell(self, decision: dict[str, int], reward: float) -> None:
        self.calls.append(f"{decision['id']}:{reward:g}")

    def finish(self) -> None:
        self.calls.append("finish")


def test_rewards_come_late_never_or_twice_and_the_run_is_finished() -> None:
    made: list[Finisher] = []

    def make() -> Finisher:
        made.append(Finisher())
        return made[-1]

    target = of_factory(make, pb.zCDP(1), arms=2)
    assert target.finishes
    plain = Scenario(3, 1, (0.25, 0.25), looks=0)
    for scenario, calls in (
        (replace(plain, late=1), "ask ask 1:0.25 ask 2:1 3:0.25"),
        (replace(plain, late=5), "ask ask ask 1:0.25 2:1 3:0.25"),
        (replace(plain, missing=2), "ask 1:0.25 ask 2:1 ask 3:0.25"),  # the secret comes
        (replace(plain, missing=3), "ask 1:0.25 ask 2:1 ask"),
        (replace(plain, repeated=True), "ask 1:0.25 1:0.5 ask 2:1 2:0.5 ask 3:0.25 3:0.5"),
        (replace(plain, steps=2, finish=True), "ask 1:0.25 ask 2:1 finish"),
    ):
        play(target, scenario, 1.0, look=False)
        assert " ".join(made[-1].calls) == calls


@pytest.mark.parametrize(("name", "able"), [("able", True), ("unlike", False), ("doubling_ucb", False)])
def test_what_an_agent_has_beside_ask_and_tell_is_tried_out(name: str, able: bool) -> None:
    found = SPECIMENS[f"black_{name}"]
    target = of_factory(found.path, pb.zCDP(found.rho))
    assert (target.asks_many, target.tells_many, target.supports_warm_start) == (able, able, able)
    assert [words.split()[0] for words in target.unused] == (["tell_many", "warm_start"] if name == "unlike" else [])


def test_a_restart_goes_on_where_the_agent_was() -> None:
    """Without noise, so that runs can be compared."""
    target = of_policy(pb.AdaCUCB(2, pb.NoPrivacy()))
    scenario = Scenario(8, 3, (0.25, 0.75), batch=2, looks=4, together=True, log=1)
    without, shown = play(target, scenario, 1.0, look=True)
    again, shown_again = play(target, replace(scenario, restart=4), 1.0, look=True)
    assert without == again
    assert [shown[name] for name in shown if name.startswith("ledger")] == [
        shown_again[name] for name in shown_again if name.startswith("ledger")
    ]


def test_other_options_are_used() -> None:
    target = of_policy(pb.AdaCUCB(2, pb.NoPrivacy()))
    scenario = Scenario(12, 3, (0.25, 0.75), looks=0, people=2)
    rows = [play(target, replace(scenario, option=option), 1.0, look=True)[1]["rows"] for option in (0, 1, 2)]
    assert rows[0] > rows[1] == rows[2]  # two people with two rewards each


class Shows:
    """Recommends three actions in turn, in some form that a data scientist might choose."""

    def __init__(self, form: Callable[[int, int], Any]) -> None:
        self.form, self.step = form, 0

    def ask(self) -> Any:
        self.step += 1
        return self.form(self.step, self.step % 3)

    def tell(self, decision: Any, reward: float) -> None:
        pass


@dataclass
class Offer:
    item: int
    key: str


@pytest.mark.parametrize(
    ("form", "names"),
    [
        (lambda step, arm: arm, (0, 1, 2)),
        (lambda step, arm: np.int64(arm), (0, 1, 2)),
        (lambda step, arm: "abc"[arm], ("a", "b", "c")),
        (lambda step, arm: (0.25, 0.5, 0.75)[arm], (0.25, 0.5, 0.75)),
        (lambda step, arm: (step, arm), (0, 1, 2)),
        (lambda step, arm: {"id": step, "arm": "abc"[arm]}, ("a", "b", "c")),
        (lambda step, arm: {"decision_id": f"x{step}", "item": arm}, (0, 1, 2)),
        (lambda step, arm: Offer(arm, f"{step:x}"), (0, 1, 2)),
        (lambda step, arm: pb.Decision(f"{step}", arm, "abc"[arm]), (0, 1, 2)),
        (lambda step, arm: (arm, "red"), ("(0, 'red')", "(1, 'red')", "(2, 'red')")),
    ],
)
def test_what_counts_as_an_action(form: Callable[[int, int], Any], names: tuple[Any, ...]) -> None:
    target = of_factory(lambda: Shows(form), pb.zCDP(1))
    assert target.names == names
    agent = Shows(form)
    assert [target.place(target.action(agent.ask())) for _ in range(4)] == [1, 2, 0, 1]


def test_arguments_are_seen() -> None:
    assert accepts(pb.Agent.tell, "played")
    assert not accepts(Coin.tell, "played")


@pytest.mark.parametrize(
    "shown",
    [
        lambda raw: [{"sum": x} for x in raw],
        pytest.param(np.array, marks=pytest.mark.full),
        pytest.param(lambda raw: {"m": raw}, marks=pytest.mark.full),
    ],
)
def test_estimates_and_ledgers_of_any_form_are_looked_at(shown: Callable[[list[float]], Any]) -> None:
    class Leaky(Fluent):
        def estimates(self) -> Any:
            return shown(self.raw)

    class Books(Fluent):
        @property
        def ledger(self) -> Any:
            return shown(self.raw)

    for kind in (Leaky, Books):
        assert audit(of_factory(kind, pb.zCDP(0.5)), Thoroughness(effort=SMALL), processes=1).violated


def test_scores_tell_worlds_apart() -> None:
    generator = np.random.default_rng(0)
    views = {
        world: [((int(x > 0), 0), {"y": x}) for x in generator.normal(shift, 1, 400)]
        for world, shift in (("p", 1.0), ("q", 0.0))
    }
    p, q = views["p"], views["q"]
    for score in (by_prefix(p, q), by_discriminant(p, q, numbers=False), by_discriminant(p, q, numbers=True)):
        assert score(p).mean() > score(q).mean() + 0.2
    assert by_discriminant(p, q, numbers=True)(p).std() > 0.5


def test_a_policy_is_judged_by_what_it_publishes_not_only_by_actions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the search, which chance may lead astray. The bound is then 0.9 with a standard deviation of 0.05."""
    target = of_policy(pb.AdaCUCB(2, pb.zCDP(2.0), variant="paper"))
    assert target.claim is not None
    monkeypatch.setattr(outside, "search", lambda *_: [Scenario(2, 1, (0.5, 0.5), looks=1)])
    outcome = examine(target, target.claim, WorldRunner(target, 1), True, Effort(learn=400, test=1200), FAILURE, seed=0)
    assert not outcome.violated
    assert outcome.bound > 0.5  # the releases are seen: much more than actions show


# The sharper claim of Gaussian noise.


class ShowsOne:
    """One number: the first reward with noise."""

    def __init__(self, noise: Callable[[], float]) -> None:
        self.noise = noise
        self.shown: float | None = None

    def ask(self) -> int:
        return 0

    def tell(self, decision: int, reward: float) -> None:
        self.shown = reward + self.noise() if self.shown is None else self.shown

    def estimates(self) -> float | None:
        return self.shown


def normal_noise() -> float:
    """rho = 0.5."""
    return random.gauss(0.0, 1.0)


def laplace_noise() -> float:
    """epsilon = 1, so that rho is 0.5 at most."""
    return random.expovariate(1.0) * random.choice((-1, 1))


ONE_NUMBER = Effort(scenarios=4, pilot=20, learn=1000, test=4000, longest=2)
LONGER = replace(ONE_NUMBER, test=16_000)


@pytest.mark.parametrize(
    ("noise", "claimed", "beyond", "effort"),
    [
        (normal_noise, 0.5, False, ONE_NUMBER),
        (normal_noise, 0.25, True, ONE_NUMBER),
        pytest.param(laplace_noise, 0.37, True, LONGER, marks=pytest.mark.full),  # a narrow difference
    ],
)
def test_the_curve_of_gaussian_noise_is_a_claim_of_its_own(
    noise: Callable[[], float], claimed: float, beyond: bool, effort: Effort
) -> None:
    """Laplace noise of epsilon = 1 has rho = e^-1 = 0.368, and more weight where worlds tell apart than a Gaussian."""
    target = of_factory(lambda: ShowsOne(noise), pb.zCDP(claimed), arms=2)
    assert target.claim is not None
    outcome = examine(target, target.claim, WorldRunner(target, 1), True, effort, FAILURE, seed=1)
    assert outcome.beyond_gaussian == beyond
    assert outcome.violated == (claimed == 0.25)
    sharper = of_factory(lambda: ShowsOne(noise), pb.zCDP(claimed), arms=2, gaussian=True)
    assert str(sharper.claim) == f"Gaussian DP with rho = {claimed:g}"
    assert sharper.claim is not None
    outcome = examine(sharper, sharper.claim, WorldRunner(sharper, 1), True, effort, FAILURE, seed=1)
    assert outcome.violated == beyond
    assert outcome.log_curve is None


def test_a_claim_of_gaussian_noise_has_a_rho() -> None:
    with pytest.raises(pb.errors.InvalidInput, match="a claim of Gaussian noise has a rho"):
        of_factory(lambda: ShowsOne(normal_noise), pb.PureDP(1.0), arms=2, gaussian=True)
