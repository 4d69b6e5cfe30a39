"""The experiments as data: they can be built, and are what their words say."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import private_bandits as pb
from private_bandits.errors import InvalidInput
from private_bandits.experiments.analysis.regrets import Regrets
from private_bandits.experiments.reproduce import chosen
from private_bandits.experiments.run.build import REFERENCES, study_of
from private_bandits.experiments.run.data import EXPERIMENTS, Entry, Experiment
from private_bandits.experiments.run.lower_bound_instances import lower_bound
from private_bandits.theory import finite_lower_scan, linear_lower

PAPERS = ("finite", "linear", "contextual", "noise-placement")


@pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=lambda e: e.name)
def test_every_policy_has_the_budget_of_its_entry(experiment: Experiment) -> None:
    study = study_of(experiment, seed=0)
    assert len(study.policies) == len(experiment.entries)
    for entry in experiment.entries:
        policy = study.policies[entry.label]
        assert policy.name == ("" if entry.policy in REFERENCES else entry.policy)
        assert policy.budget.implied_rho == pytest.approx(entry.rho)  # pure DP: epsilon = sqrt(2 rho)
        assert policy.to_dict().items() >= dict(entry.options).items()
        assert entry.variant in (getattr(policy, "variant", "paper"), None)
        assert getattr(policy, "horizon", experiment.horizon) == experiment.horizon


@pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=lambda e: e.name)
def test_strict_settings_are_bounded_and_the_papers_are_as_printed(experiment: Experiment) -> None:
    study = study_of(experiment, seed=0)
    for environment in study.environments.values():
        bounded = getattr(environment, "bounded", True)
        assert bounded == (experiment.setting_as == "strict" or experiment.setting == "finite")
    of_tables = any(entry.instance and entry.instance.table for entry in experiment.entries)
    everything = experiment.setting_as == "strict" and not of_tables  # real rewards are not linear
    assert ("Everything promised holds" in experiment.guarantee) == everything
    assert (experiment.name in PAPERS) == experiment.of_the_paper
    if experiment.of_the_paper:
        assert (experiment.horizon, experiment.runs) == (10**7, 100)
        assert {entry.variant for entry in experiment.entries} == {"paper"}


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
    """But for those that look for the best arm, whose regret nobody asks for."""
    finders = {"adac-top-two", "adac-halving"}
    for setting in ("finite", "linear", "contextual"):
        names = {entry.policy for entry in EXPERIMENTS[f"{setting}-rivals"].entries}
        shipped = [cls for cls in pb.policies.POLICIES.values() if cls.__module__.startswith("private_bandits.")]
        assert names == {cls.name for cls in shipped if cls.setting == setting} - finders


@pytest.mark.parametrize("name", [name for name in EXPERIMENTS if name.endswith(("-tight", "-lower"))])
def test_pairs_are_of_one_world_and_one_budget(name: str) -> None:
    """Variants differ in nothing but what they choose by themselves. Every world has both at every budget."""
    study = study_of(EXPERIMENTS[name].resized(1000, 2), seed=0)
    pairs = Regrets(study.experiment, np.array([1]), {}).pairs()
    assert {e.label for pair in pairs for e in pair.both} == set(study.policies)
    assert 2 * len(pairs) == len(study.policies)
    for pair in pairs:
        assert study.environments[pair.published.label] == study.environments[pair.ours.label]
        first, second = (study.policies[entry.label] for entry in pair.both)
        if study.experiment.setting == "finite":
            assert isinstance(first, pb.AdaCUCB)
            assert second == pb.AdaCIMED(first.n_arms, first.budget)
        else:
            one, other = first.to_dict(), second.to_dict()
            differ = {key: (one[key], other[key]) for key in one if one[key] != other[key]}
            assert differ.pop("variant") == ("paper", "tight")
            assert set(differ) <= {"exploration", "regulariser"}, "what a variant chooses by itself"


def test_drawn_instances_do_not_depend_on_the_seed() -> None:
    for name in ("finite-tight", "linear-tight", "contextual-tight"):
        first, second = (study_of(EXPERIMENTS[name], seed).environments for seed in (0, 1))
        for entry in EXPERIMENTS[name].entries:
            fixed = entry.instance is not None and (entry.instance.draw is not None or entry.instance.means != ())
            assert (first[entry.label] == second[entry.label]) == fixed
        assert len({str(world) for world in first.values()}) >= 4


def test_hard_instances_have_the_gap_of_the_proof() -> None:
    rho, horizon = 1e-7, 10**4
    for name, rewards, base in (("finite-lower", "gaussian", 0.0), ("binary-lower", "binary", 0.5)):
        study = study_of(EXPERIMENTS[name].resized(horizon, 2), seed=0)
        _, gap = finite_lower_scan(4, horizon, rho, rewards)  # type: ignore[arg-type]
        first = next(e for e in study.experiment.entries if e.rho == rho)
        expected = [base + gap, base, base, base + 2 * gap]
        assert study.environments[first.label].means.tolist() == pytest.approx(expected)
        assert lower_bound(study.experiment, first) == finite_lower_scan(4, horizon, rho, rewards)[0]  # type: ignore[arg-type]
    study = study_of(EXPERIMENTS["linear-lower"].resized(horizon, 2), seed=0)
    first = next(e for e in study.experiment.entries if e.rho == rho)
    size = 1 / (horizon * math.sqrt(2 * rho))
    assert study.environments[first.label].means.max() == pytest.approx(3 * size)
    assert lower_bound(study.experiment, first) == linear_lower(3, horizon, rho).value
    assert study.policies[first.label].to_dict()["action_norm"] == pytest.approx(math.sqrt(3))


def test_mistakes_in_an_experiment_are_named() -> None:
    finite = EXPERIMENTS["finite"]
    for entries, words in (
        ((Entry("adac-ucb", 1.0, (("bta", 1.0),), "a"),), "adac-ucb has no option 'bta'"),
        ((Entry("adac-ucb", 1.0, (), "a"), Entry("adac-ucb", 2.0, (), "a")), "different labels"),
        ((Entry("adac-gope", 1.0, (), "a"),), "adac-gope is for the linear setting"),
        ((Entry("adap-ucb", 1.0, (), "a", "tight"),), "adap-ucb has no variant 'tight'"),
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
    assert list(scales("tight")) == ["finite-tight", "linear-tight", "contextual-tight"]
    assert list(scales("strict,linear-tight")) == [
        "finite-strict",
        "linear-strict",
        "contextual-strict",
        "linear-tight",
    ]


def test_which_experiments_a_horizon_is_for() -> None:
    given = scales("all", horizon=1e6, runs=50)
    assert {given[name] for name in PAPERS} == {(10**6, 50)}
    assert given["finite-strict"] == (200_000, 20)  # theirs is smaller
    assert scales("all", horizon=1e3)["finite-strict"] == (1000, 20)
    assert scales("finite-strict", horizon=1e6, runs=50) == {"finite-strict": (10**6, 50)}
    assert scales("all", quick=True)["finite"] == (10**5, 10)
    assert scales("all", full=True)["finite-rivals"] == (10**6, 100)
    assert scales("finite", quick=True, runs=3) == {"finite": (10**5, 3)}
    assert set(scales("tight", runs=3, horizon=200).values()) == {(200, 3)}  # named by their group


@pytest.mark.parametrize(
    ("figure", "flags", "words"),
    [
        ("martian", {}, "figure must be one of finite, .*tables, all.*got 'martian'"),
        ("finite", {"quick": True, "full": True}, "two scales: choose one"),
        ("finite", {"horizon": 0}, "horizon must be"),
        ("finite", {"runs": 1.5}, "runs must be"),
    ],
)
def test_wrong_choices_are_named(figure: str, flags: dict[str, float], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        scales(figure, **flags)
