"""Lower bounds against values worked out by hand, and policies' regret above them on the instances of the proofs."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

import private_bandits as pb
from private_bandits.errors import InvalidInput
from private_bandits.policies import Policy
from private_bandits.policies.base import Variant
from private_bandits.theory import (
    Form,
    GaussianArms,
    finite_instances,
    finite_lower,
    finite_lower_best,
    finite_lower_scan,
    finite_threshold,
    linear_instances,
    linear_lower,
    linear_threshold,
)
from private_bandits.theory.lower import LARGEST_GAP, Rewards, linear_lower_size


def test_finite_by_hand() -> None:
    # K = 10, T = 9: sqrt(81)/27 = 1/3;  rho = 1e-4: sqrt(9/1e-4)/124 = 300/124, and 300/(124 sqrt 2)
    assert finite_lower(10, 9, 1e-4, "paper").value == pytest.approx(300 / 124, rel=1e-12)
    assert finite_lower(10, 9, 1e-4).value == pytest.approx(300 / 124 / math.sqrt(2), rel=1e-12)
    assert finite_lower(10, 9, math.inf).value == pytest.approx(1 / 3, rel=1e-12)
    assert finite_lower(10, 9, pb.PureDP(0.01)).value == pytest.approx(9 / (8 * math.e * 0.01), rel=1e-12)
    assert finite_lower(10, 10**6, 0.1).value == pytest.approx(3000 / 27, rel=1e-12)


def test_linear_by_hand() -> None:
    # d = 4, T = 16, rho = 1/800: e^-2/8 * 16, and e^-2/8 * 4 * 20; the paper's e^-2.25/4 * 4 sqrt(800)
    assert linear_lower(4, 16, math.inf).value == pytest.approx(2 * math.exp(-2), rel=1e-12)
    assert linear_lower(4, 16, 1 / 800).value == pytest.approx(10 * math.exp(-2), rel=1e-12)
    assert linear_lower(4, 16, 1 / 800, "paper").value == pytest.approx(math.exp(-2.25) * math.sqrt(800), rel=1e-12)
    assert linear_lower(4, 16, pb.PureDP(0.01)).value == pytest.approx(50 / math.e, rel=1e-12)


def test_thresholds_are_where_the_parts_are_equal() -> None:
    for steps in (10**3, 10**7):
        forms: tuple[Form, Form] = ("proven", "paper")
        for form in forms:
            at = finite_threshold(5, steps, form=form)
            below, above = (finite_lower(5, steps, at * x, form).private for x in (0.99, 1.01))
            assert below > 0 == above
            at = linear_threshold(steps, form=form)
            below, above = (linear_lower(3, steps, at * x, form).private for x in (0.99, 1.01))
            assert below > 0 == above
        for at, of in (
            (finite_threshold(5, steps, "PureDP"), finite_lower),
            (linear_threshold(steps, "PureDP"), linear_lower),
        ):
            below, above = (of(5, steps, pb.PureDP(at * x)).private for x in (0.99, 1.01))
            assert below > 0 == above
    assert linear_threshold(100, form="paper") == pytest.approx(4 * math.exp(-0.5) / 100, rel=1e-12)
    assert finite_threshold(5, 100, form="paper") == pytest.approx((27 / 124) ** 2 / 100, rel=1e-12)
    assert linear_threshold(100, "PureDP") == pytest.approx(math.e / 10, rel=1e-12)
    assert finite_threshold(5, 100, "PureDP") == pytest.approx(27 / (8 * math.e) * 0.2, rel=1e-12)


def test_what_lower_bounds_need() -> None:
    assert finite_lower(5, 10**4, 0.1).holds
    assert finite_lower(5, 10**4, 100).holds  # the non-private part, which is the larger, needs no small rho
    assert not finite_lower(10, 5, 0.1).holds  # T >= K-1
    tiny = finite_lower(5, 100, 1e-9)  # would exceed T: its instance has a gap beyond 1/2
    assert not tiny.holds
    assert not finite_lower(5, 10**4, 1e-9, "paper").holds
    assert finite_lower(5, 10**4, 0.1, "paper").holds  # no private part
    assert not linear_lower(3, 100, 1e-4, "paper").holds
    assert any("zCDP" in text for text, _ in finite_lower(5, 100, pb.ApproxDP(1, 1e-6)).assumptions)
    for wrong in ("x", "zcdp"):
        with pytest.raises(InvalidInput, match="notion"):
            finite_threshold(5, 100, wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="form"):
        linear_lower(3, 100, 0.1, "x")  # type: ignore[arg-type]


def test_the_scan_by_hand_without_privacy() -> None:
    # T gap/8 exp(-2 gap^2 T/(K-1)) is largest at gap = sqrt((K-1)/(4T)): sqrt(T (K-1))/16 e^-1/2
    value, gap = finite_lower_scan(5, 10**6, math.inf)
    assert gap == pytest.approx(0.001, rel=0.01)
    assert value == pytest.approx(2000 / 16 * math.exp(-0.5), rel=1e-4)
    assert value > finite_lower(5, 10**6, math.inf).value  # 27 is 16 e^1/2, rounded up


def test_the_scan_is_the_better_bound() -> None:
    for k, steps, rho in itertools.product((2, 5, 50), (10**3, 10**6), (1e-8, 1e-4, 0.1, 10.0)):
        bound = finite_lower(k, steps, rho)
        if bound.holds:
            assert finite_lower_scan(k, steps, rho)[0] >= bound.value
        assert finite_lower_best(k, steps, rho).value <= steps * LARGEST_GAP
    values = [finite_lower_scan(5, 10**4, rho)[0] for rho in (1e-8, 1e-6, 1e-4, 1e-2)]
    assert values == sorted(values, reverse=True)


def test_a_policy_that_ignores_rewards_is_as_private_as_can_be_and_above_the_bound() -> None:
    """Uniform play has rho = 0: on the scanned gap's first instance it loses T gap (K-1)/K."""
    for k, steps, rho in itertools.product((2, 5), (10**2, 10**5), (1e-9, 1e-5)):
        value, gap = finite_lower_scan(k, steps, rho)
        assert value <= steps * gap * (k - 1) / k


def worst(
    policies: dict[str, Policy[Any]], gap: float, arms: int, horizon: int, rewards: Rewards = "gaussian"
) -> dict[str, float]:
    """The largest mean regret over the proof's instances, less five standard errors."""
    found = dict.fromkeys(policies, 0.0)
    for number, world in enumerate(finite_instances(arms, gap, rewards)):
        result = pb.simulate(policies, world, horizon, runs=100, seed=number, progress=False)
        for name, regret in result.final.items():
            found[name] = max(found[name], regret.mean() - 5 * regret.std(ddof=1) / 10)
    return found


@pytest.mark.parametrize("rho", [1e-7, 1e-3, 1.0])
@pytest.mark.parametrize("horizon", [10**3, 10**5])
def test_measured_regret_is_above_the_lower_bound_on_its_instances(rho: float, horizon: int) -> None:
    """Unit-variance Gaussian arms, the gap scanned: no shipped policy beats the bound."""
    arms = 4
    bound = finite_lower(arms, horizon, rho)
    best, at = finite_lower_scan(arms, horizon, rho)
    policies: dict[str, Policy[Any]] = {
        "adac-ucb": pb.AdaCUCB(arms, pb.zCDP(rho), beta=3.1, variant="paper"),
        "adac-ucb, beta 1": pb.AdaCUCB(arms, pb.zCDP(rho), beta=1, variant="paper"),
        "adac-imed": pb.AdaCIMED(arms, pb.zCDP(rho)),
        "adap-ucb": pb.AdaPUCB(arms, pb.PureDP(math.sqrt(2 * rho)), beta=1),
        "dp-se": pb.DPSE(arms, pb.PureDP(math.sqrt(2 * rho))),
    }
    gaps = sorted({at, *(g for g in np.geomspace(3e-3, LARGEST_GAP, 4).tolist())})
    found = {gap: worst(policies, gap, arms, horizon) for gap in gaps}
    for name in policies:
        assert found[at][name] >= best  # on the instance of the bound itself
        assert not bound.holds or max(regrets[name] for regrets in found.values()) >= bound.value


@pytest.mark.parametrize("variant", pb.AdaCGOPE.variants)
@pytest.mark.parametrize("rho", [1e-6, 1.0])
def test_measured_regret_of_elimination_is_above_the_linear_bound(rho: float, variant: Variant) -> None:
    """Corners of [-1, 1]^2 and every theta of the proof, of both its sizes; N(0, 1) noise."""
    horizon = 10**4
    bound = linear_lower(2, horizon, rho)
    assert bound.holds
    regrets = []
    for size in (1 / math.sqrt(horizon), 1 / (horizon * math.sqrt(2 * rho))):
        for world in linear_instances(2, size):
            policy = pb.AdaCGOPE(world.actions, pb.zCDP(rho), variant=variant, action_norm=math.sqrt(2))
            result = pb.simulate({"gope": policy}, world, horizon, runs=20, progress=False).final["gope"]
            regrets.append(result.mean() - 5 * result.std(ddof=1) / math.sqrt(20))
    assert max(regrets) >= bound.value


@pytest.mark.parametrize("rho", [1e-7, 1.0])
def test_measured_regret_is_above_the_bound_for_rewards_of_0_and_1(rho: float) -> None:
    best, at = finite_lower_scan(4, 10**4, rho, "binary")
    policies: dict[str, Policy[Any]] = {
        "adac-ucb": pb.AdaCUCB(4, pb.zCDP(rho), beta=1),
        "adac-imed": pb.AdaCIMED(4, pb.zCDP(rho)),
    }
    assert min(worst(policies, at, 4, 10**4, "binary").values()) >= best


def test_the_bound_for_rewards_of_0_and_1_by_hand() -> None:
    """Without privacy and with a tiny gap KL is 8 n gap^2: four times the Gaussian one, so half of the bound."""
    coins, at = finite_lower_scan(4, 10**8, math.inf, "binary")
    normal, gap = finite_lower_scan(4, 10**8, math.inf)
    assert (coins, at) == pytest.approx((normal / 2, gap / 2), rel=0.02)
    # two steps, K = 2, rho so small that KL is near 0: T gap/8 at the largest gap, 0.2
    assert finite_lower_scan(2, 2, 1e-12, "binary") == pytest.approx((2 * 0.2 / 8, 0.2), rel=1e-6)
    # the coin's KL, from its definition: -log(1 - 16 gap^2)/2 of each of T/(K-1) plays
    value, at = finite_lower_scan(3, 50, math.inf, "binary")
    p = 0.5 + 2 * at
    kl = 0.5 * math.log(0.5 / p) + 0.5 * math.log(0.5 / (1 - p))
    assert value == pytest.approx(50 * at / 8 * math.exp(-25 * kl), rel=1e-9)


def test_the_size_of_the_hard_parameter() -> None:
    assert linear_lower_size(10**4, pb.PureDP(0.001)) == pytest.approx(0.1)  # 1/(epsilon T)
    assert linear_lower_size(10**4, 1.0) == 0.01  # 1/sqrt(T) is the larger
    for rho in (1e-7, 1e-3):  # it is what the bound's condition is about
        met = dict(linear_lower(2, 10**4, rho).assumptions).get("the hard theta leaves mean rewards in [-1, 1]", True)
        assert met == (2 * linear_lower_size(10**4, rho) <= 1)


def test_instances_are_those_of_the_proofs() -> None:
    world = linear_instances(2, 0.25)[1]  # theta = (-1/4, 1/4), actions (-,-), (-,+), (+,-), (+,+)
    assert world.means.tolist() == [0.0, 0.5, -0.5, 0.0]
    sums = GaussianArms((0.5, 0.0)).reward_sums(np.random.default_rng(0), np.zeros(4000, int), np.full(4000, 9))
    assert sums.mean() == pytest.approx(4.5, abs=5 * 3 / math.sqrt(4000))
    assert sums.var() == pytest.approx(9, abs=5 * 9 * math.sqrt(2 / 4000))
    with pytest.raises(InvalidInput, match="means"):
        GaussianArms((2.0, 0.0))
    with pytest.raises(InvalidInput, match="size"):
        linear_instances(2, 0.7)
