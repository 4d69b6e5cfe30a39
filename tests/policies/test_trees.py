"""Policies that look at every reward through a tree: what they learn, what the ledger charges, what stays."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import private_bandits as pb
from private_bandits.agent import bandit_of
from private_bandits.errors import AgentFileInvalid, CapacityExceeded, InvalidInput
from private_bandits.policies import Policy, policy_from_dict
from tests.support import holds

LOW, HIGH = -1.0, 1.0


def actions(step: int, rows: int = 3, dimension: int = 2) -> np.ndarray[Any, np.dtype[np.float64]]:
    table = np.random.default_rng(step).normal(size=(rows, dimension))
    return np.asarray(0.9 * table / np.linalg.norm(table, axis=1, keepdims=True))


def reward(step: int) -> float:
    return math.sin(step)


def run(agent: pb.Agent, steps: int, first: int = 0) -> list[int]:
    found = []
    for step in range(first, first + steps):
        decision = agent.ask(actions=actions(step))
        found.append(decision.action)
        agent.tell(decision, reward(step))
    return found


def tree_policies(budget: pb.budget.Budget, horizon: int) -> list[Policy[Any]]:
    return [
        pb.LinPriv(dimension=2, budget=budget, arms=3, horizon=horizon),
        pb.LinPrivShared(dimension=2, budget=budget, horizon=horizon),
        pb.ShariffSheffet(dimension=2, budget=budget, horizon=horizon),
    ]


@pytest.mark.parametrize("which", range(3))
@pytest.mark.parametrize("horizon", [1, 7, 20])
def test_the_ledger_charges_every_node_and_stays_within_the_budget_for_ever(which: int, horizon: int) -> None:
    agent = pb.Agent(tree_policies(pb.zCDP(0.3), horizon)[which], (LOW, HIGH))
    levels = horizon.bit_length()
    assert bandit_of(agent).policy.tree_levels == levels
    for step in range(3 * 2**levels):
        run(agent, 1, step)
        rows = agent.ledger.rows
        leaves = {label for row in rows for label in row.episodes if "-" not in label}
        keys = {row.key for row in rows}
        last = {
            key: max(int(label.split("/")[1].split("-")[-1]) for r in rows if r.key == key for label in r.episodes)
            for key in keys
        }
        brute = max(
            sum((Fraction(row.cost) for row in rows if holds(row, f"{key}/{leaf}")), Fraction(0))
            for key in keys
            for leaf in range(1, last[key] + 1)
        )
        assert leaves
        assert float(brute) <= agent.ledger.total <= math.nextafter(float(brute), math.inf)
        assert brute <= Fraction(0.3)
    assert len(agent.ledger) == 3 * 2**levels
    if which:  # one tree for all: it was filled
        assert agent.ledger.total == pytest.approx(0.3)


@pytest.mark.parametrize("which", range(3))
def test_without_noise_they_are_ridge_regression_whatever_the_tree(which: int) -> None:
    """Through several trees, against the plain formula."""
    policy = tree_policies(pb.NoPrivacy(), 5)[which]
    agent = pb.Agent(policy, (LOW, HIGH))
    estimates = 3 if which == 0 else 1
    grams, sums = np.tile(np.eye(2), (estimates, 1, 1)), np.zeros((estimates, 2))
    for step in range(40):
        [action] = run(agent, 1, step)
        a = np.trunc(actions(step)[action] * 2**20) / 2**20
        k = action if which == 0 else 0
        grams[k] += np.outer(a, a)
        sums[k] += a * reward(step)
        learned = agent.learned
        thetas = np.array(learned["thetas"] if which < 2 else [learned["theta"]])
        assert np.allclose(thetas, [np.linalg.solve(g, s) for g, s in zip(grams, sums, strict=True)], atol=1e-6)


def test_the_noise_of_a_node_is_drawn_once_and_stays() -> None:
    agent = pb.Agent(pb.LinPrivShared(dimension=2, budget=pb.zCDP(0.5), horizon=100), (LOW, HIGH))
    seen: dict[str, tuple[float, ...]] = {}
    unit = 2.0**-20
    for step in range(50):
        run(agent, 1, step)
        row = agent.ledger[-1]
        [label] = row.episodes
        assert label not in seen
        seen[label] = row.values
        nodes = agent.learned["sums"][0]["nodes"]
        known = [np.array(values) * unit for values in seen.values()]
        assert all(any(np.array_equal(node, other) for other in known) for node in nodes)
        assert len(nodes) == (step + 1).bit_count()


def test_noise_of_a_node_is_calibrated_to_its_share() -> None:
    for policy in tree_policies(pb.zCDP(0.5), 100):
        agent = pb.Agent(policy, (LOW, HIGH))
        run(agent, 4)
        for row in agent.ledger:
            assert row.calibrated <= 0.5 / 7
            assert row.calibrated == pytest.approx(0.5 / 7, rel=1e-6)


@pytest.mark.parametrize("which", range(3))
def test_kept_sums_survive_in_a_file_and_are_shown_nowhere(which: int, tmp_path: Path) -> None:
    policy = tree_policies(pb.zCDP(0.5), 20)[which]
    path = tmp_path / "agent.db"
    one = pb.Agent(policy, (LOW, HIGH), seed=4)
    with pb.Agent(policy, (LOW, HIGH), path=path, seed=4) as other:
        assert run(other, 13) == run(one, 13)
    with pb.Agent.open(path) as other:
        assert run(other, 30, 13) == run(one, 30, 13)
        assert other.learned == one.learned
        assert [r.values for r in other.ledger] == [r.values for r in one.ledger]
        assert "hidden" in repr(bandit_of(other).private)
        assert "hidden" in repr(next(iter(bandit_of(other).private.episodes.values())).kept)


def test_one_estimate_an_arm_needs_as_many_rows_as_arms() -> None:
    agent = pb.Agent(pb.LinPriv(dimension=2, budget=pb.zCDP(1), arms=3), (LOW, HIGH))
    with pytest.raises(InvalidInput, match="3 rows, one for each arm, got 2"):
        agent.ask(actions=actions(0, rows=2))
    assert agent.open_decisions == []
    with pytest.raises(InvalidInput, match="LinPrivShared"):
        pb.LinPriv(dimension=2, budget=pb.zCDP(1))
    with pytest.raises(TypeError, match="arms"):
        pb.LinPrivShared(dimension=2, budget=pb.zCDP(1), arms=2)  # type: ignore[call-arg]
    shared = pb.Agent(pb.LinPrivShared(dimension=2, budget=pb.zCDP(1)), (LOW, HIGH))
    assert shared.ask(actions=actions(0, rows=1)).action == 0
    assert shared.ask(actions=actions(0, rows=17)).action < 17


def test_a_file_of_before_names_the_arms_of_a_shared_estimate() -> None:
    shared = pb.LinPrivShared(dimension=2, budget=pb.zCDP(1), horizon=50)
    plain = shared.to_dict()
    assert "arms" not in plain
    assert policy_from_dict(plain) == policy_from_dict(plain | {"arms": 0}) == shared
    with pytest.raises(InvalidInput, match="arms is no parameter of the policy 'linpriv-shared', got 2"):
        policy_from_dict(plain | {"arms": 2})


def test_the_texts_that_simulations_draw_their_numbers_by_stay() -> None:
    rest = "horizon=1000000, regulariser=1.0, delta=0.001, parameter_norm=1.0)"
    of_both = "dimension=2, budget=zCDP(rho=1.0), context_norm=1.0, long_actions='refuse'"
    assert repr(pb.LinPriv(2, pb.zCDP(1), arms=3)) == f"LinPriv({of_both}, arms=3, {rest}"
    assert repr(pb.LinPrivShared(2, pb.zCDP(1))) == f"LinPrivShared({of_both}, arms=0, {rest}"


def test_a_tree_that_outgrows_64_bits_is_refused_on_public_grounds() -> None:
    agent = pb.Agent(pb.LinPrivShared(dimension=2, budget=pb.zCDP(1), horizon=100), (LOW, HIGH))
    run(agent, 1)
    episode = bandit_of(agent).private.episodes[0]
    episode.kept[0].count = 2**60
    decision = agent.ask(actions=actions(1))
    before = agent.learned
    with pytest.raises(CapacityExceeded, match="start a new agent"):
        agent.tell(decision, 1.0)
    assert agent.open_decisions == [decision]
    assert agent.learned == before
    assert len(agent.ledger) == 1


def test_the_estimate_converges_to_theta() -> None:
    theta = np.array([0.6, -0.5])
    for policy in [
        *tree_policies(pb.zCDP(5.0), 1500)[1:],
        pb.AdaCOFULPrivate(dimension=2, budget=pb.zCDP(5.0), horizon=1500),
    ]:
        agent = pb.Agent(policy, (LOW, HIGH), seed=1)
        dice = np.random.default_rng(2)
        for step in range(1500):
            table = actions(step)
            decision = agent.ask(actions=table)
            agent.tell(decision, 1.0 if 2 * dice.random() - 1 < theta @ table[decision.action] else -1.0)
        learned = agent.learned
        found = np.array(learned["thetas"][0] if "thetas" in learned else learned["theta"])
        assert np.linalg.norm(found - theta) < 0.3


def test_a_file_does_not_go_on_with_a_tree_of_another_size(tmp_path: Path) -> None:
    """Its rewards would be in more releases than share the budget."""
    path = tmp_path / "agent.db"
    with pb.Agent(pb.LinPrivShared(dimension=2, budget=pb.zCDP(1), horizon=3), (LOW, HIGH), path=path) as agent:
        run(agent, 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pb.LinPrivShared, "tree_levels", property(lambda self: 9))
        with pytest.raises(AgentFileInvalid, match="with tree_levels 2: this one has 9"):
            pb.Agent.open(path)
    pb.Agent.open(path).close()
