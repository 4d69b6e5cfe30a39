"""The asymptotic reference: its known values, its definition by brute force, and where it is shown."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from typer.testing import CliRunner

import private_bandits as pb
from private_bandits.budget import Budget
from private_bandits.cli import app
from private_bandits.errors import InvalidInput
from private_bandits.theory import Problem, bounds_of, reference_of, reference_regret
from tests.policies.test_private_divergence import by_definition, kl

MEANS = (0.75, 0.625, 0.5, 0.375, 0.25)


@pytest.mark.parametrize(
    ("rho", "expected"), [(0.001, 564.0), (0.01, 226.0), (0.1, 135.0), (1.0, 117.5), (math.inf, 115.0)]
)
def test_known_values_on_the_papers_instance(rho: float, expected: float) -> None:
    found = reference_regret(MEANS, 10**7, rho)
    assert abs(found.value - expected) <= 0.5
    assert (found.kind, found.holds) == ("reference", True)
    assert found.private == pytest.approx(found.value - reference_regret(MEANS, 10**7, math.inf).value)


@pytest.mark.parametrize(("mean", "best"), [(0.4, 0.6), (0.0, 0.1), (0.9, 0.95), (0.5, 1.0), (0.0, 1.0)])
@pytest.mark.parametrize("rho", [1e-4, 0.05, 3.0])
def test_the_plays_cost_log_t_by_the_definition(mean: float, best: float, rho: float) -> None:
    """The least n kl(y, q) + rho n^2 (y - m)^2 over many y is log T, up to the grid of y."""
    horizon = 10**6
    n = reference_regret((best, mean), horizon, rho).value / (best - mean)
    grid = np.linspace(mean, best, 20_001).tolist()
    least = min(n * kl(y, best) + rho * (n * (y - mean)) ** 2 for y in grid)
    assert least >= math.log(horizon) - 1e-9
    assert least == pytest.approx(math.log(horizon), rel=1e-4)


def test_without_privacy_it_is_lai_and_robbins() -> None:
    expected = sum((0.75 - m) * math.log(1e5) / kl(m, 0.75) for m in MEANS[1:])
    assert reference_regret(MEANS, 1e5, pb.NoPrivacy()).value == pytest.approx(expected, rel=1e-12)
    for rho in (1e9, 1e20, 1e99):
        assert reference_regret(MEANS, 1e5, rho).value == pytest.approx(expected, rel=1e-6)


def test_pure_dp_has_the_divergence_of_its_lower_bound() -> None:
    expected = sum((0.75 - m) * math.log(1e5) / by_definition(m, 0.75, 0.3) for m in MEANS[1:])
    assert reference_regret(MEANS, 1e5, pb.PureDP(0.3)).value == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("budget", [pb.ApproxDP(2.0, 1e-6), pb.RenyiDP(10, 1.0)])
def test_other_gaussian_budgets_count_by_their_noise(budget: Budget) -> None:
    rho = 1 / (2 * budget.variance_factor)
    assert reference_regret(MEANS, 10**6, budget).value == pytest.approx(reference_regret(MEANS, 10**6, rho).value)


def test_near_ties_and_ties_are_numbers() -> None:
    assert reference_regret((0.3, 0.3), 10**6, 0.1).value == 0
    near = reference_regret((0.5, 0.5 - 1e-10), 10**6, math.inf)
    assert near.value == pytest.approx(math.log(1e6) / (2 * 1e-10), rel=1e-4)  # kl is twice the squared gap there
    assert reference_regret((1.0, 0.5), 10**6, math.inf).value == 0  # one reward tells all


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (((1.5, 0.5), 100, 0.1), "a mean must be a probability, from 0 to 1, got 1.5"),
        (((0.5, 0.2), 1, 0.1), "horizon must be"),
        (((0.5, 0.2), 100, -1.0), "rho must be"),
    ],
)
def test_what_it_is_not_for_is_refused(arguments: tuple[tuple[float, ...], float, float], text: str) -> None:
    with pytest.raises(InvalidInput, match=text):
        reference_regret(*arguments)


def test_it_is_among_the_bounds_where_means_are_known() -> None:
    known = bounds_of(Problem("finite", pb.zCDP(0.1), arms=2, means=(0.75, 0.5)))
    assert [bound.value for bound in known if bound.kind == "reference"] == [
        reference_regret((0.75, 0.5), 10**7, 0.1).value
    ]
    for problem in (Problem("finite", pb.zCDP(0.1)), Problem("finite", pb.zCDP(0.1), arms=2, means=(7.0, 0.5))):
        assert not [bound for bound in bounds_of(problem) if bound.kind == "reference"]


def test_the_command_prints_it_as_text_and_json() -> None:
    arguments = ["bounds", "--means", "0.75,0.625,0.5,0.375,0.25", "--rho", "0.1"]
    text = CliRunner().invoke(app, arguments, env={"COLUMNS": "120"}).stdout
    assert "asymptotic, no floor" in text
    data = json.loads(CliRunner().invoke(app, [*arguments, "--json"]).stdout)
    (found,) = [bound for bound in data["bounds"] if bound["kind"] == "reference"]
    assert found["value"] == pytest.approx(135.2, abs=0.05)


def test_a_policy_has_the_reference_of_its_own_budget_on_bernoulli_arms() -> None:
    policy, world = pb.DPIMED(2, pb.PureDP(0.5)), pb.Bernoulli([0.5, 0.25])
    assert reference_of(policy, world, 10**4) == reference_regret((0.5, 0.25), 10**4, pb.PureDP(0.5)).value
    assert reference_of(policy, pb.Linear(np.eye(2), [0.5, 0.25]), 10**4) is None
    assert reference_of(policy, world, 1) is None
    assert reference_of(policy, pb.Bernoulli([0.5, 0.5]), 10**4) is None
