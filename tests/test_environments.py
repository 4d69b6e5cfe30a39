"""Environments: right distributions, clear refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

import private_bandits as pb
from private_bandits.errors import InvalidInput
from private_bandits.theory import adac_ucb_regret, table_two


def test_bernoulli_sums_are_binomial() -> None:
    environment = pb.Bernoulli([0.3, 0.9])
    arms = np.repeat([0, 1], 20_000)
    sums = environment.reward_sums(np.random.default_rng(0), arms, np.full(40_000, 6))
    for arm, p in enumerate((0.3, 0.9)):
        observed = np.bincount(sums[arms == arm].astype(int), minlength=7)
        expected = stats.binom.pmf(np.arange(7), 6, p) * 20_000
        few = expected < 5
        observed = np.append(observed[~few], observed[few].sum())
        expected = np.append(expected[~few], expected[few].sum())
        keep = expected > 0
        assert stats.chisquare(observed[keep], expected[keep]).pvalue > 1e-4


@pytest.mark.parametrize("means", [[], [0.5, 1.5], [-0.1], [float("nan")], ["a"], 3])
def test_bad_means_are_named(means: Any) -> None:
    with pytest.raises(InvalidInput, match="means"):
        pb.Bernoulli(means)


def test_arrays_and_lists_are_the_same() -> None:
    actions, theta = [[1.0, 0.0], [0.6, 0.8]], [0.5, 0.25]
    assert pb.Bernoulli(np.array([0.75, 0.5])) == pb.Bernoulli([0.75, 0.5])
    assert pb.Linear(np.array(actions), np.array(theta)) == pb.Linear(actions, theta)
    assert pb.Contextual(2, 3, np.array(theta)) == pb.Contextual(2, 3, theta)
    made = [pb.AdaCGOPE(actions=given, budget=pb.zCDP(1)) for given in (np.array(actions), actions)]
    assert made[0] == made[1]
    assert made[0].rows == ((1.0, 0.0), (0.6, 0.8))
    gaps = [0.0, 0.25]
    assert adac_ucb_regret(np.array(gaps), 1000, 0.1) == adac_ucb_regret(gaps, 1000, 0.1)
    assert table_two(means=np.array([0.75, 0.5])) == table_two(means=[0.75, 0.5])
