"""AdaC-UCB and AdaP-UCB: bounds against values worked out by hand, and measured regret below them."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

import private_bandits as pb
from private_bandits.budget import Budget
from private_bandits.errors import InvalidInput
from private_bandits.theory import (
    adac_ucb_minimax,
    adac_ucb_regret,
    adap_ucb_minimax,
    adap_ucb_regret,
    calibration,
    late_plays,
)


def test_part_a_by_hand() -> None:
    # T = e^9, beta = 4, rho = 1/4, gaps 1/2 and 1/4:  8*4*9*(2 + 4) = 1728,  2 * 8 sqrt(4*9*4) = 192
    steps = round(math.exp(9))
    log_t = math.log(steps)
    paper = adac_ucb_regret([0, 0.5, 0.25], steps, 0.25, beta=4, form="paper")
    assert paper.value == pytest.approx(192 * log_t + 64 * math.sqrt(log_t) + 2 * 8, rel=1e-12)
    assert paper.private == pytest.approx(64 * math.sqrt(log_t), rel=1e-12)
    assert paper.value == pytest.approx(1728 + 192 + 16, rel=1e-4)
    proven = adac_ucb_regret([0, 0.5, 0.25], steps, 0.25, beta=4)
    assert paper.value - proven.value == pytest.approx(16 - 0.75 * late_plays(4), rel=1e-9)
    assert proven.holds
    assert paper.holds


def test_part_b_by_hand() -> None:
    # T = 10^4, K = 5, beta = 6, rho = 1:  4 sqrt(2*6*5*10^4 log T) + 8*5 sqrt(6 log T) + 3*6/3 * 4
    log_t = math.log(10**4)
    paper = adac_ucb_minimax(5, 10**4, 1.0, beta=6, form="paper")
    assert paper.value == pytest.approx(4 * math.sqrt(6e5 * log_t) + 40 * math.sqrt(6 * log_t) + 24, rel=1e-12)
    assert paper.value == pytest.approx(9403.152 + 297.354 + 24, rel=1e-6)
    assert adac_ucb_minimax(5, 10**4, 1.0, 6, "paper", gap_sum=1.5).value == pytest.approx(paper.value - 15, rel=1e-12)
    proven = adac_ucb_minimax(5, 10**4, 1.0, beta=6)
    hand = 4 * math.sqrt(4.8e5 * log_t) + 32 * math.sqrt(6 * log_t) + 4 * late_plays(6)
    assert proven.value == pytest.approx(hand, rel=1e-12)


@pytest.mark.parametrize("beta", [1.2, 2.0, 3.0, 3.1, 6.0])
def test_late_plays_is_its_series(beta: float) -> None:
    total = math.fsum(
        2.0**j * ((j + 2) * 2.0 ** (-j * beta) + math.fsum(2.0 ** (-i * beta) for i in range(j + 1, 400)))
        for j in range(1, 300)
    )
    assert late_plays(beta) == pytest.approx(total, rel=1e-9)
    assert late_plays(beta) < 2 * beta / (beta - 3) if beta > 3 else True


def test_what_nobody_promises_is_infinite() -> None:
    assert late_plays(1.0) == math.inf
    bound = adac_ucb_regret([0, 0.5], 10**4, 0.1, beta=1)
    assert (bound.value, bound.holds) == (math.inf, False)
    assert bound.to_dict()["value"] == "inf"
    printed = adac_ucb_regret([0, 0.5], 10**4, 0.1, beta=3, form="paper")
    assert (printed.value, printed.holds) == (math.inf, False)
    assert dict(printed.assumptions)["beta > 3"] is False
    assert adac_ucb_regret([0, 0.5], 10**4, 0.1, beta=2).holds  # the proof needs beta > 1 only
    assert not adac_ucb_regret([0, 0.5], 10**4, 0.1, beta=4, bounded=False).holds
    assert not adac_ucb_minimax(50, 10, 0.1, beta=4).holds  # T >= K


def test_without_worse_arms_there_is_no_regret() -> None:
    assert adac_ucb_regret([0, 0], 10**4, 0.1, beta=1).value == 0
    assert adap_ucb_minimax(1, 10**4, 0.1, beta=1).value == 0


def test_pure_dp_by_hand() -> None:
    # T = 10^4, gap 1/4, beta = 4, epsilon = 1/2:  8*4/(1/4) = 128 and 16*4*2 = 128 times log T
    log_t = math.log(10**4)
    bound = adap_ucb_regret([0, 0.25], 10**4, pb.PureDP(0.5), beta=4)
    assert bound.value == pytest.approx(256 * log_t + 1.5 * late_plays(4) / 4, rel=1e-12)
    assert adap_ucb_regret([0, 0.25], 10**4, pb.zCDP(0.125), beta=4).value == bound.value  # epsilon^2/2
    converted = adap_ucb_regret([0, 0.25], 10**4, pb.zCDP(0.125), beta=4, form="paper")
    assert converted.private == pytest.approx(8 * math.sqrt(4 / 0.125) * log_t, rel=1e-12)  # 8 sqrt(beta/rho) log T
    assert not converted.holds
    assert adap_ucb_minimax(5, 10**6, 0.1).value > adac_ucb_minimax(5, 10**6, 0.1).value


def test_budgets_enter_through_their_noise() -> None:
    """b of (epsilon, delta) and Renyi DP in the place of 1/(2 rho); the paper's own b where it is asked for."""
    renyi = adac_ucb_regret([0, 0.5], 10**4, pb.RenyiDP(alpha=10, epsilon=1))
    assert renyi.value == pytest.approx(adac_ucb_regret([0, 0.5], 10**4, 0.1).value, rel=1e-12)
    budget = pb.ApproxDP(0.5, 1e-6)
    noise = adac_ucb_regret([0, 0.5], 10**4, budget, beta=4).private
    assert noise == pytest.approx(8 * math.sqrt(2 * budget.variance_factor * 4 * math.log(10**4)), rel=1e-12)
    printed = calibration(budget)
    assert printed.paper == pytest.approx(8 * math.log(1.25e6), rel=1e-12)
    assert adac_ucb_regret([0, 0.5], 10**4, printed.as_zcdp, beta=4).private == pytest.approx(
        8 * math.sqrt(2 * printed.paper * 4 * math.log(10**4)), rel=1e-12
    )
    assert (printed.proven, calibration(pb.ApproxDP(2, 1e-6)).proven) == (True, False)
    # too small for large epsilon: less noise than any that keeps the zCDP at hand
    assert calibration(pb.ApproxDP(50, 0.1)).paper < calibration(pb.ApproxDP(50, 0.1)).used


def test_laplace_noise_is_refused_with_a_remedy() -> None:
    with pytest.raises(InvalidInput, match="adap_ucb"):
        adac_ucb_regret([0, 0.5], 100, pb.PureDP(1))
    with pytest.raises(InvalidInput, match="adap_ucb"):
        adac_ucb_minimax(2, 100, pb.PureDP(1))


def test_bad_numbers_are_named() -> None:
    for gaps in ([], [0.5], [0, -1], [0, math.inf]):
        with pytest.raises(InvalidInput, match="gaps"):
            adac_ucb_regret(gaps, 100, 0.1)
    with pytest.raises(InvalidInput, match="horizon"):
        adac_ucb_regret([0, 1], 10.5, 0.1)
    with pytest.raises(InvalidInput, match="horizon"):
        adac_ucb_minimax(3, 10**400, 0.1)
    with pytest.raises(InvalidInput, match="form"):
        adac_ucb_regret([0, 1], 100, 0.1, form="other")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="gap_sum"):
        adac_ucb_minimax(3, 100, 0.1, gap_sum=-1)
    with pytest.raises(InvalidInput, match="Gaussian"):
        calibration(pb.PureDP(1))


def test_bounds_grow_and_fall_as_they_should() -> None:
    values = [adac_ucb_minimax(k, t, rho, beta).value for k, t, rho, beta in _grid()]
    more = [adac_ucb_minimax(k + 1, 2 * t, rho / 2, beta).value for k, t, rho, beta in _grid()]
    assert all(a < b for a, b in zip(values, more, strict=True))


def _grid() -> list[tuple[int, int, float, float]]:
    return list(itertools.product((2, 10), (10**3, 10**6), (0.01, 1.0), (1.5, 3.1)))


def test_measured_regret_is_below_the_bounds() -> None:
    """Over a grid on which they hold. The mean may miss the truth by five standard errors."""
    telling = 0
    worlds = [(0.9, 0.1), (0.6, 0.5), (0.75, 0.625, 0.5, 0.375, 0.25), (0.2, 0.2, 0.7, 0.2)]
    for means, horizon, beta in itertools.product(worlds, (300, 10**5), (1.3, 3.1)):
        budgets: list[Budget] = [pb.zCDP(0.01), pb.zCDP(1), pb.NoPrivacy(), pb.ApproxDP(1, 1e-6), pb.RenyiDP(4, 0.5)]
        policies: dict[str, Any] = {str(b): pb.AdaCUCB(len(means), b, beta=beta, variant="paper") for b in budgets}
        pure = {str(e): pb.AdaPUCB(len(means), pb.PureDP(e), beta=beta) for e in (0.1, 1.0)}
        result = pb.simulate(policies | pure, pb.Bernoulli(means), horizon, runs=100, seed=1, progress=False)
        gaps = [max(means) - mean for mean in means]
        for name, policy in (policies | pure).items():
            of, any_gaps = (adap_ucb_regret, adap_ucb_minimax) if name in pure else (adac_ucb_regret, adac_ucb_minimax)
            bounds = [of(gaps, horizon, policy.budget, beta), any_gaps(len(means), horizon, policy.budget, beta)]
            regret = result.final[name]
            most = regret.mean() + 5 * regret.std(ddof=1) / 10
            for bound in bounds:
                assert bound.holds
                assert most <= bound.value, (means, horizon, name, bound.name)
                telling += bound.value < horizon * max(gaps)
    assert telling > 60  # bounds that say more than that regret is at most T times the largest gap


def test_printed_bounds_hold_where_beta_is_above_three() -> None:
    means = (0.8, 0.5, 0.4)
    gaps = [0, 0.3, 0.4]
    policy = pb.AdaCUCB(3, pb.zCDP(0.1), beta=3.1, variant="paper")
    result = pb.simulate({"p": policy}, pb.Bernoulli(means), 10**6, 100, progress=False)
    assert np.mean(result.final["p"]) < adac_ucb_regret(gaps, 10**6, 0.1, 3.1, "paper").value
    assert np.mean(result.final["p"]) < adac_ucb_minimax(3, 10**6, 0.1, 3.1, "paper").value
