"""Predictions: intervals for any action that hold at all times together, whatever the contexts are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import private_bandits as pb
from private_bandits.agent import bandit_of
from private_bandits.arrays import Floats
from private_bandits.errors import InvalidInput
from private_bandits.policies import POLICIES, Policy, Prediction
from private_bandits.policies.contextual import ContextualPolicy
from private_bandits.policies.ellipsoid import LEAST_REWARD_STEPS, release_share
from private_bandits.policies.linear import LinearPolicy
from private_bandits.policies.private_contexts import LEAST_MOMENT_STEPS
from private_bandits.simulation.simulated_bandit import SimulatedBandit
from private_bandits.theory import Coverage
from tests.support import EVERY_POLICY, ONE_OF_EACH_NOISE, OTHER_VARIANTS, offered, policy_id

THETA = np.array([0.6, -0.8])

MAKERS: dict[str, Callable[..., ContextualPolicy[Any]]] = {
    "adac-oful": pb.AdaCOFUL,
    "adac-oful, paper": lambda **options: pb.AdaCOFUL(variant="paper", **options),
    "linpriv": lambda **options: pb.LinPriv(arms=2, **options),
    "linpriv-shared": pb.LinPrivShared,
    "adac-oful-private": pb.AdaCOFULPrivate,
    "adac-oful-private, paper": lambda **options: pb.AdaCOFULPrivate(variant="paper", **options),
    "shariff-sheffet": pb.ShariffSheffet,
}
VECTORS = [policy for policy in ONE_OF_EACH_NOISE + OTHER_VARIANTS if policy.setting != "finite"]


def errors_of(policy: ContextualPolicy[Any], state: Any, theta: Floats) -> Floats:
    """A direction for each sum in which its estimate is off most, of length one; the first axis before any release."""
    thetas = getattr(state, "thetas", None)
    off = (state.theta[None] if thetas is None else thetas) - theta
    lengths = np.linalg.norm(off, axis=1, keepdims=True)
    return np.asarray(np.where(lengths > 0, off / np.maximum(lengths, 1e-300), np.eye(len(theta))[0]))


def adversarial(policy: ContextualPolicy[Any], state: Any, theta: Floats, chance: np.random.Generator) -> Floats:
    """Actions of who knows theta, and everything that is public: in which the estimate errs most, or least."""
    worst = errors_of(policy, state, theta)[0]
    turned = np.roll(worst, 1) * np.where(np.arange(len(worst)) % 2, 1, -1) if len(worst) > 1 else -worst
    return np.array([worst, turned]) if chance.random() < 0.7 else np.array([turned, worst])


def missed(found: list[Prediction], rows: Floats, theta: Floats, shrunk: float = 1.0) -> bool:
    """Whether some interval does not hold its mean. shrunk: the share of each interval that is left, for controls."""
    for prediction, row in zip(found, rows, strict=True):
        middle, right = prediction.mean, float(row @ theta)
        if middle is None:
            continue
        if not middle - shrunk * (middle - prediction.low) - 1e-9 <= right:
            return True
        if not right <= middle + shrunk * (prediction.high - middle) + 1e-9:
            return True
    return False


def fails(policy: ContextualPolicy[Any], theta: Floats, delta: float, steps: int, run: int, shrunk: float) -> bool:
    """Whether an interval misses at some time of a run: in the direction of the largest error, or along an axis."""
    chance = np.random.default_rng([0, run])
    bandit = SimulatedBandit(policy, -1.0, 1.0, chance)
    for step in range(1, steps + 1):
        actions = adversarial(policy, bandit.state, theta, chance)
        offer = policy.offer(actions)
        chosen = policy.choose(bandit.state, offer, step)
        reward = 1.0 if chance.random() < (1 + actions[chosen] @ theta) / 2 else -1.0
        if bandit.take(offer, chosen, reward, step + 1):
            worst = errors_of(policy, bandit.state, theta)
            axes = np.eye(len(theta))[: len(worst)] if len(worst) > 1 else np.eye(len(theta))
            for rows in (worst, axes):
                if missed(policy.predict(bandit.state, rows, delta), rows, theta, shrunk):
                    return True
    return False


@pytest.mark.parametrize(("delta", "runs", "steps"), [(0.5, 100, 25), (0.1, 30, 75)])
@pytest.mark.parametrize("rho", [0.05, 5.0])
@pytest.mark.parametrize("name", MAKERS)
def test_intervals_hold_at_all_times_for_contexts_chosen_by_an_adversary(
    name: str, rho: float, delta: float, runs: int, steps: int
) -> None:
    policy = MAKERS[name](dimension=2, budget=pb.zCDP(rho), horizon=20)  # the run is longer: times after it count too
    failures, control = (
        sum(fails(policy, THETA, delta, steps, run, shrunk) for run in range(runs)) for shrunk in (1.0, 0.02)
    )
    assert Coverage(delta, failures, runs).kept, f"{failures} of {runs} runs"
    assert not Coverage(delta, control, runs).kept  # the measurement can fail


@pytest.mark.parametrize("name", ["adac-oful", "adac-oful, paper", "linpriv-shared", "shariff-sheffet"])
def test_where_noise_is_all_there_is_intervals_are_hardly_wider_than_they_have_to_be(name: str) -> None:
    """The measurement can fail: some intervals miss, fewer than promised, and half as wide ones miss too often."""
    options = {"regulariser": 1e-3} if name != "shariff-sheffet" else {}
    policy = MAKERS[name](dimension=1, budget=pb.zCDP(1e-4), horizon=50, **options)
    theta, runs, delta = np.array([0.9]), 200, 0.5

    def failures(shrunk: float) -> int:
        return sum(_noise_misses(policy, theta, delta, run, shrunk) for run in range(runs))

    assert Coverage(delta, failures(1.0), runs).kept
    if name != "shariff-sheffet":  # its noise is bounded twice, for the matrix and for the vector
        assert failures(1.0) > 0
    assert not Coverage(delta, failures(0.1), runs).kept


def _noise_misses(policy: ContextualPolicy[Any], theta: Floats, delta: float, run: int, shrunk: float) -> bool:
    """Whether an interval misses, before it is clipped to the reward range."""
    chance = np.random.default_rng([7, run])
    bandit = SimulatedBandit(policy, -1.0, 1.0, chance)
    row = np.array([1.0])
    for step in range(1, 13):
        offer = policy.offer(row[None])
        reward = 1.0 if chance.random() < (1 + row @ theta) / 2 else -1.0
        if bandit.take(offer, 0, reward, step + 1):
            known = policy.ellipsoid(bandit.state, 0, delta)
            assert known.theta is not None
            assert known.root is not None
            half_width = shrunk * known.width * float(np.linalg.norm(row @ known.root))
            if abs(float(row @ (known.theta - theta))) > half_width:
                return True
    return False


ACTIONS = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.6, 0.8, 0.0], [-0.6, 0.8, 0.0], [0.28, -0.96, 0.0]])
ELSEWHERE = np.array([[0.3, 0.3, 0.0], [-0.1, 0.05, 0.0], [0.8, -0.6, 0.0], [-1.0, 0.0, 0.0]])


@pytest.mark.parametrize("delta", [0.5, 0.1])
@pytest.mark.parametrize(
    "policy",
    [
        pb.AdaCGOPE(ACTIONS, pb.zCDP(0.5), phase_factor=0.05),
        pb.AdaCGOPE(ACTIONS, pb.zCDP(0.5), variant="paper", phase_factor=0.01),
        pb.HannaGOPE(ACTIONS, pb.PureDP(1.0), phase_factor=0.01),
    ],
    ids=["tight", "paper", "laplace"],
)
def test_intervals_of_linear_policies_hold_for_actions_that_were_never_played(policy: Any, delta: float) -> None:
    theta, runs, failures, control = np.array([0.5, 0.6, 0.9]), 100 if delta == 0.5 else 30, 0, 0
    for run in range(runs):
        world = np.random.default_rng([run, 5])
        agent = pb.Agent(policy, (-1, 1), seed=run)
        failed, missed_by_less, releases = False, False, 0
        for _ in range(300):
            decision = agent.ask()
            agent.tell(decision, 1.0 if world.random() < (1 + ACTIONS[decision.action] @ theta) / 2 else -1.0)
            if len(agent.ledger) > releases:
                releases = len(agent.ledger)
                for rows in (ACTIONS, ELSEWHERE):
                    found = agent.predict(rows, delta=delta)
                    failed |= missed(found, rows, theta)
                    missed_by_less |= missed(found, rows, theta, shrunk=0.02)
        failures, control = failures + failed, control + missed_by_less
    assert releases > 1
    assert Coverage(delta, failures, runs).kept
    assert not Coverage(delta, control, runs).kept  # the measurement can fail


def alike(found: list[Prediction], other: list[Prediction]) -> bool:
    """Whether predictions are the same but for rounding."""
    one, another = ([np.nan if x is None else x for row in rows for x in row] for rows in (found, other))
    return bool(np.allclose(one, another, rtol=1e-9, atol=1e-12, equal_nan=True))


def played(policy: Policy[Any], steps: int = 300, **options: Any) -> pb.Agent:
    agent = pb.Agent(policy, (-1, 1), seed=3, **options)
    for step in range(steps):
        agent.tell(agent.ask(actions=offered(policy, step)), 1.0 if step % 3 else -1.0)
    return agent


@pytest.mark.parametrize("policy", VECTORS, ids=policy_id)
def test_before_any_release_the_interval_is_the_range(policy: Policy[Any]) -> None:
    agent = pb.Agent(policy, (-1, 3), seed=1)
    rows = offered(policy, 0)
    found = agent.predict(rows)
    assert found == [(None, -1.0, 3.0)] * len(found)
    assert len(found) == len(policy.arm_names or rows)
    assert isinstance(found[0], pb.Prediction)


@pytest.mark.parametrize("policy", VECTORS, ids=policy_id)
def test_predictions_follow_from_releases_alone_and_a_file_says_the_same(policy: Policy[Any], tmp_path: Path) -> None:
    path, rows = tmp_path / "agent.db", offered(policy, 10**6)
    with played(policy, path=path) as agent:
        found = agent.predict(rows, delta=0.01)
        ledger = len(agent.ledger)
        assert agent.predict(rows, delta=0.01) == found
        assert len(agent.ledger) == ledger > 0
        assert any(prediction.mean is not None for prediction in found)
        wide, narrow = agent.predict(rows, delta=1e-6), agent.predict(rows, delta=0.5)
        for w, f, n in zip(wide, found, narrow, strict=True):
            assert -1 <= w.low <= f.low <= n.low <= n.high <= f.high <= w.high <= 1
            assert n.mean is None or n.low <= n.mean <= n.high
    assert agent.predict(rows, delta=0.01) == found  # a closed agent can be read
    with pb.Agent.open(path) as agent:
        assert alike(agent.predict(rows, delta=0.01), found)


def test_the_mean_is_that_of_the_policys_theta_and_the_width_is_not_that_of_its_exploration() -> None:
    rows = np.array([[0.3, 0.1], [-0.2, 0.9]])
    policies: list[Any] = [pb.AdaCOFUL(2, pb.zCDP(100), exploration=0), pb.AdaCOFULPrivate(2, pb.zCDP(100))]
    for policy in policies:
        agent = played(policy)
        found = agent.predict(rows)
        assert [p.mean for p in found] == pytest.approx((rows @ agent.learned["theta"]).tolist())
        other = replace(policy, exploration=1.0, delta=0.3)
        assert alike(other.predict(other.load_state(agent.learned), rows, 0.05), found)


def test_linear_policies_predict_their_own_actions_as_estimates_do_or_better() -> None:
    policy = pb.AdaCGOPE(ACTIONS, pb.zCDP(5), phase_factor=0.05)
    agent = played(policy, steps=3_000)
    assert len(agent.ledger) > 2
    for estimate, prediction in zip(agent.estimates(delta=0.2), agent.predict(delta=0.2), strict=True):
        assert prediction.mean is not None
        assert prediction.high - prediction.low <= estimate.high - estimate.low + 1e-12
    assert agent.predict(ACTIONS, 0.2) == agent.predict(delta=0.2)
    outside = agent.predict([[0.5, 0.5, 0.1], [0.0, 0.0, 0.0], [0.1, 0.1, 0.0]])
    assert outside[0] == (None, -1.0, 1.0)
    assert outside[1] == (0.0, 0.0, 0.0)  # linear rewards are zero there
    assert agent.predict([0.1, 0.1, 0.0]) == outside[2:]


def test_one_vector_names_and_tables_are_taken_alike() -> None:
    agent = played(pb.AdaCOFUL(dimension=2, budget=pb.zCDP(1)))
    (one,) = agent.predict([0.3, 0.4])
    assert agent.predict(np.array([[0.3, 0.4]])) == [one] == agent.predict({"A": [0.3, 0.4]})
    scaled = played(pb.AdaCOFUL(dimension=2, budget=pb.zCDP(1), long_actions="scale"))
    assert alike(scaled.predict([30.0, 40.0]), scaled.predict([0.6, 0.8]))


def test_arms_with_a_theta_of_their_own_are_predicted_by_row() -> None:
    policy = pb.LinPriv(dimension=2, budget=pb.zCDP(1), arms=3)
    agent = pb.Agent(policy, (-1, 1), seed=0)
    agent.tell(agent.ask(actions=np.eye(3, 2)), 1.0, played=1)
    found = agent.predict(np.eye(3, 2))
    assert [prediction.mean is None for prediction in found] == [True, False, True]


@pytest.mark.parametrize(
    ("agent", "arguments", "words"),
    [
        (pb.Agent(pb.AdaCUCB(3, pb.zCDP(1))), ([[1.0]],), r"AdaCUCB has arms .*: use estimates\(\)"),
        (pb.Agent(pb.AdaCUCB(3, pb.zCDP(1))), (), r"use estimates\(\)"),
        (pb.Agent(pb.AdaCOFUL(2, pb.zCDP(1))), (), r"needs predict\(actions\), a row of 2 numbers"),
        (pb.Agent(pb.AdaCOFUL(2, pb.zCDP(1))), ([[1.0, 0.0, 0.0]],), "a table of 2 columns"),
        (pb.Agent(pb.AdaCOFUL(2, pb.zCDP(1))), ([1.0, 1.0],), "norm at most 1"),
        (pb.Agent(pb.AdaCOFUL(2, pb.zCDP(1))), ([[1.0], [0.0, 1.0]],), "must be a table of numbers"),
        (pb.Agent(pb.AdaCOFUL(2, pb.zCDP(1))), ([[0.0, np.nan]],), "finite"),
        (pb.Agent(pb.AdaCOFUL(2, pb.zCDP(1))), ([0.0, 1.0], 1.5), "delta must"),
        (pb.Agent(pb.LinPriv(2, pb.zCDP(1), arms=3)), ([[0.0, 1.0]],), "must have 3 rows"),
        (pb.Agent(pb.AdaCGOPE(ACTIONS, pb.zCDP(1))), ([[1.0, 0.0]],), "a table of 3 columns"),
        (pb.Agent(pb.AdaCGOPE(ACTIONS, pb.zCDP(1))), ([[1.0, 0.0, "x"]],), "real numbers"),
    ],
)
def test_what_cannot_be_predicted_is_refused_with_a_remedy(
    agent: pb.Agent, arguments: tuple[Any, ...], words: str
) -> None:
    with pytest.raises(InvalidInput, match=words):
        agent.predict(*arguments)


def test_every_policy_over_vectors_predicts_and_a_policy_without_a_proof_says_so() -> None:
    for policy in EVERY_POLICY:
        assert (type(policy).predict is not Policy.predict) == isinstance(policy, (LinearPolicy, ContextualPolicy))

    class Unproven(pb.AdaCOFUL):
        name = "unproven"
        ellipsoid = ContextualPolicy.ellipsoid

    try:
        with pytest.raises(InvalidInput, match="Unproven has no proven interval"):
            pb.Agent(Unproven(2, pb.zCDP(1))).predict([0.0, 1.0])
    finally:
        del POLICIES["unproven"]


@pytest.mark.parametrize("rho", [1e-9, 1e-3, 1.0, 1e6])
def test_grids_are_as_fine_as_widths_assume(rho: float) -> None:
    for make in MAKERS.values():
        policy = make(dimension=5, budget=pb.zCDP(rho))
        steps = bandit_of(pb.Agent(policy)).door.grid.steps
        assert steps >= (LEAST_MOMENT_STEPS if policy.private_contexts else LEAST_REWARD_STEPS)


def test_shares_of_releases_add_up_to_delta() -> None:
    assert sum(release_share(0.3, n) for n in range(1, 10**5)) == pytest.approx(0.3, rel=1e-4)
    assert sum(release_share(0.3, n) for n in range(1, 10**5)) < 0.3


def test_private_contexts_that_are_too_long_are_shortened_without_a_word() -> None:
    agent = played(pb.AdaCOFULPrivate(dimension=2, budget=pb.zCDP(1)))
    with np.errstate(all="raise"):
        assert alike(agent.predict([3e200, 4e200]), agent.predict([0.6, 0.8]))
