"""The experiments as data: they can be built, and are what their words say."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

import private_bandits as pb
from private_bandits.errors import InvalidInput
from private_bandits.experiments.build import study_of
from private_bandits.experiments.data import EXPERIMENTS, Entry, Experiment
from private_bandits.experiments.reproduce import chosen

PAPERS = ("finite", "linear", "contextual", "noise-placement")


@pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=lambda e: e.name)
def test_every_policy_has_the_budget_of_its_entry(experiment: Experiment) -> None:
    study = study_of(experiment, seed=0)
    assert len(study.policies) == len(experiment.entries)
    for entry in experiment.entries:
        policy = study.policies[entry.label]
        assert policy.name == entry.policy
        assert policy.promise.implied_rho == pytest.approx(entry.rho)  # pure DP: epsilon = sqrt(2 rho)
        assert policy.to_dict().items() >= dict(entry.options).items()
        assert getattr(policy, "horizon", experiment.horizon) == experiment.horizon


@pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=lambda e: e.name)
def test_strict_settings_are_bounded_and_the_papers_are_as_printed(experiment: Experiment) -> None:
    study = study_of(experiment, seed=0)
    bounded = getattr(study.environment, "bounded", True)
    assert bounded == (experiment.setting_as == "strict" or experiment.setting == "finite")
    assert ("Everything promised holds" in experiment.guarantee) == (experiment.setting_as == "strict")
    assert (experiment.name in PAPERS) == experiment.of_the_paper
    assert (experiment.horizon, experiment.runs) == ((10**7, 100) if experiment.of_the_paper else (200_000, 20))


def test_settings_of_the_papers_experiments() -> None:
    finite, linear, contextual = (study_of(EXPERIMENTS[name], seed=3) for name in PAPERS[:3])
    assert finite.environment == pb.Bernoulli([0.75, 0.625, 0.5, 0.375, 0.25])
    assert {policy.to_dict()["beta"] for policy in finite.policies.values()} == {1.0}
    assert {policy.to_dict()["delta"] for policy in linear.policies.values()} == {1e-3}
    assert (len(linear.environment.actions), len(linear.environment.theta)) == (10, 3)
    assert (contextual.environment.arms, contextual.environment.dimension) == (10, 3)
    made = next(iter(contextual.policies.values())).to_dict()
    assert (made["regulariser"], made["growth"], made["delta"]) == (0.1, 1.0, 1e-3)
    assert math.hypot(*linear.environment.theta) == pytest.approx(1)
    assert study_of(EXPERIMENTS["linear"], seed=4).environment != linear.environment


def test_strict_experiments_meet_the_conditions_of_the_bounds() -> None:
    for name, option, value in (("finite-strict", "beta", 3.1), ("contextual-strict", "regulariser", 1.0)):
        assert {policy.to_dict()[option] for policy in study_of(EXPERIMENTS[name], 0).policies.values()} == {value}


def test_rivals_are_all_policies_of_the_setting() -> None:
    for setting in ("finite", "linear", "contextual"):
        names = {entry.policy for entry in EXPERIMENTS[f"{setting}-rivals"].entries}
        shipped = [cls for cls in pb.policies.POLICIES.values() if cls.__module__.startswith("private_bandits.")]
        assert names == {cls.name for cls in shipped if cls.setting == setting}


def test_mistakes_in_an_experiment_are_named() -> None:
    finite = EXPERIMENTS["finite"]
    for entries, words in (
        ((Entry("adac-ucb", 1.0, (("bta", 1.0),), "a"),), "adac-ucb has no option 'bta'"),
        ((Entry("adac-ucb", 1.0, (), "a"), Entry("adac-ucb", 2.0, (), "a")), "different labels"),
        ((Entry("adac-gope", 1.0, (), "a"),), "adac-gope is for --setting linear"),
    ):
        with pytest.raises(InvalidInput, match=words):
            study_of(replace(finite, entries=entries), seed=0)
    with pytest.raises(InvalidInput, match="setting must be one of finite"):
        study_of(replace(finite, setting="martian"), seed=0)


def scales(figure: str, **flags: float | bool | None) -> dict[str, tuple[int, int]]:
    return {e.name: (e.horizon, e.runs) for e in chosen(figure, **flags)[0]}  # type: ignore[arg-type]


def test_which_experiments_are_chosen() -> None:
    assert list(scales("all")) == list(EXPERIMENTS)
    assert chosen("all")[1] == 10**7
    assert (scales("tables"), chosen("tables", horizon=1e5, quick=True)[1]) == ({}, 10**5)
    assert list(scales("linear,finite,finite")) == ["finite", "linear"]
    assert chosen("finite")[1] is None


def test_which_experiments_a_horizon_is_for() -> None:
    given = scales("all", horizon=1e6, runs=50)
    assert {given[name] for name in PAPERS} == {(10**6, 50)}
    assert given["finite-strict"] == (200_000, 20)  # theirs is smaller
    assert scales("all", horizon=1e3)["finite-strict"] == (1000, 20)
    assert scales("finite-strict", horizon=1e6, runs=50) == {"finite-strict": (10**6, 50)}
    assert scales("all", quick=True)["finite"] == (10**5, 10)
    assert scales("all", full=True)["finite-rivals"] == (10**6, 100)
    assert scales("finite", quick=True, runs=3) == {"finite": (10**5, 3)}


@pytest.mark.parametrize(
    ("figure", "flags", "words"),
    [
        ("martian", {}, "--figure must be one of finite, .*tables, all.*got 'martian'"),
        ("finite", {"quick": True, "full": True}, "not both"),
        ("finite", {"horizon": 0}, "horizon must be"),
        ("finite", {"runs": 1.5}, "runs must be"),
    ],
)
def test_wrong_choices_are_named(figure: str, flags: dict[str, float], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        scales(figure, **flags)
