"""The compiled engine of the contextual rivals against the slow, obvious one: the same numbers but for rounding."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import private_bandits as pb
from private_bandits.budget import Budget
from private_bandits.environments import Setting
from private_bandits.policies import Policy
from private_bandits.policies.optimism import Optimism
from private_bandits.simulation import contextual, contextual_steps
from private_bandits.simulation.algebra import invert
from private_bandits.simulation.compiled import compiled
from private_bandits.simulation.context_runs import ContextualLearner
from private_bandits.simulation.engines import CONTEXTS_ONE_BY_ONE, SERVED, STEPWISE, Served, engine_for
from private_bandits.simulation.seeds import Seeds
from private_bandits.simulation.stepwise import play_run

Floats = NDArray[np.float64]

SEEDS = Seeds(seed=5, first=0)
BUDGETS = [pb.zCDP(1.0), pb.zCDP(0.01), pb.ApproxDP(1.0, 1e-6), pb.NoPrivacy()]


def world(d: int, arms: int, setting: Setting) -> pb.Contextual:
    theta = np.cos(np.arange(d))
    return pb.Contextual(d, arms, theta / np.linalg.norm(theta), setting)


def two_of_each(d: int, arms: int, budget: Budget, horizon: int) -> list[Policy[Any]]:
    """The second one of each kind has trees that are complete again and again, or releases often."""
    return [
        pb.LinPriv(d, budget, arms=arms, horizon=horizon),
        pb.LinPriv(d, budget, arms=arms, horizon=5, regulariser=0.2, delta=0.1, context_norm=1.25),
        pb.LinPrivShared(d, budget, horizon=horizon, regulariser=1e-4, parameter_norm=0.3),
        pb.LinPrivShared(d, budget, horizon=1, delta=0.5),
        pb.ShariffSheffet(d, budget, horizon=horizon),
        pb.ShariffSheffet(d, budget, horizon=6, regulariser=0.01, matrix_share=0.3, context_norm=1.7),
    ]


def assert_same(policies: Sequence[Policy[Any]], environment: pb.Contextual, steps: int, run: int = 0) -> Floats:
    """Regrets at every step are the same: gaps differ from action to action, so all actions are."""
    every = np.arange(1, steps + 1)
    fast, fast_releases = play_run(policies, environment, steps, every, SEEDS, run)
    slow, slow_releases = contextual_steps.play_run(policies, environment, steps, every, SEEDS, run)
    np.testing.assert_allclose(fast, slow, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(fast_releases, slow_releases)
    return fast


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize(
    ("d", "arms", "setting"),
    [(3, 10, "strict"), (3, 10, "paper"), (1, 3, "strict"), (2, 1, "paper"), (6, 4, "strict")],
)
def test_same_actions_as_one_step_at_a_time(d: int, arms: int, setting: Setting, budget: Budget) -> None:
    curves = assert_same(two_of_each(d, arms, budget, 1000), world(d, arms, setting), 100)
    if d > 1 and arms > 1:
        assert len(np.unique(curves[:, -1].round(6))) == len(curves)  # no policy is played in place of another


def test_many_blocks_of_contexts_and_of_noise() -> None:
    """A block is of 512 steps here, and so is the noise that is drawn at once."""
    environment, budget = world(3, 40, "strict"), pb.zCDP(1.0)
    assert contextual.World(environment, SEEDS, 0).steps == 512
    policies: list[Policy[Any]] = [
        pb.LinPrivShared(3, budget, horizon=1100),
        pb.ShariffSheffet(3, budget, horizon=400),
        pb.LinPrivShared(3, budget, horizon=10**40),
    ]
    assert_same(policies, environment, 1100, run=3)


@pytest.mark.parametrize("budget", [pb.zCDP(1.0), pb.NoPrivacy()], ids=str)
def test_many_dimensions(budget: Budget) -> None:
    assert_same(two_of_each(50, 3, budget, 60)[::2], world(50, 3, "strict"), 60)


@pytest.mark.full
@pytest.mark.parametrize("setting", ["strict", "paper"])
@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_long_runs(budget: Budget, setting: Setting) -> None:
    assert_same(two_of_each(3, 10, budget, 10_000)[::2], world(3, 10, setting), 20_000)


class Careless:
    """Takes the noise of the matrix for smaller than it is, so that V is often singular or worse."""

    regulariser: float

    def optimism(self, noises: int, low: float, high: float) -> Optimism:
        known: Optimism = super().optimism(noises, low, high)  # type: ignore[misc]
        return known._replace(shift=self.regulariser)


@dataclass(frozen=True)
class CarelessTree(Careless, pb.ShariffSheffet):
    """With every reward."""


@pytest.mark.parametrize("d", [1, 3, 6])
def test_noise_beyond_its_bound(d: int) -> None:
    environment, steps = world(d, 4, "strict"), 100
    policies = [CarelessTree(d, pb.zCDP(0.1))]
    slow = ContextualLearner(policies[0], environment, SEEDS, 6)
    below = 0
    for t, actions in enumerate(contextual.contexts(environment, steps, SEEDS, 6).astype(float)):
        slow.play(contextual_steps.stretch_of(environment, actions[None]), t)
        known = policies[0].optimism(slow.state.released.noises, -1.0, 1.0)
        matrix, _ = policies[0].matrix_and_vector(slow.state.released.total, -1.0, 1.0)
        below += np.linalg.eigvalsh(matrix + known.shift * np.eye(d))[0] < known.floor * (1 - 1e-6)
    assert below > 10
    assert_same(policies, environment, steps, run=6)


@compiled
def inverted(room: Floats, floor: float) -> tuple[float, float]:
    return invert(room, floor)


@pytest.mark.parametrize("d", [1, 2, 3, 8, 50])
def test_inverses_determinants_and_least_eigenvalues(d: int) -> None:
    generator = np.random.default_rng(d)
    turn = np.linalg.qr(generator.normal(size=(d, d)))[0]
    for values in (
        np.full(d, 0.7),
        np.r_[np.full(d - 1, 1e-3), 50.0],
        np.geomspace(1e-4, 1e4, d),
        np.geomspace(1e-150, 1e-147, d),
        1e150 * (1 + generator.random(d)),
        generator.normal(size=d),  # of both signs: at least 0.1 is asked for
    ):
        floor = 0.1 if values.min() < 0 else float(values.min()) / 2
        raised = np.maximum(values, floor)
        matrix = (turn * values) @ turn.T
        room = np.array([(matrix + matrix.T) / 2, *np.full((3, d, d), np.nan)])
        log_det, least = inverted(room, floor)
        lost = d * 2e-16 * np.abs(values).max() / floor  # of the matrix itself: it was rounded
        assert log_det == pytest.approx(np.log(raised).sum(), abs=1e-12 + 50 * lost)
        assert least == pytest.approx(raised.min(), rel=1e-12 + 50 * lost)
        np.testing.assert_allclose(room[3] * floor, (turn / raised) @ turn.T * floor, atol=1e-12 + 50 * lost)


def test_regret_is_exact_at_checkpoints_and_progress_is_reported() -> None:
    environment, parts = world(3, 10, "strict"), list[float]()
    policies = two_of_each(3, 10, pb.zCDP(1.0), 3000)[::2]
    every, some = np.arange(1, 3001), np.array([1, 17, 2047, 2048, 2049, 3000])
    fine, _ = play_run(policies, environment, 3000, every, SEEDS, 0)
    coarse, _ = play_run(policies, environment, 3000, some, SEEDS, 0, parts.append)
    np.testing.assert_array_equal(coarse, fine[:, some - 1])
    assert (np.diff(fine, axis=1) >= -1e-12).all()
    assert parts == sorted(parts)
    assert len(parts) == 6
    assert parts[-1] == 1


def test_numbers_do_not_depend_on_threads_or_other_policies(monkeypatch: pytest.MonkeyPatch) -> None:
    environment, budget = world(3, 4, "strict"), pb.zCDP(1.0)
    policies: dict[str, Policy[Any]] = {
        "tree": pb.LinPriv(3, budget, arms=4),
        "another tree": pb.ShariffSheffet(3, budget),
    }
    alone = pb.simulate({"b": policies["tree"]}, environment, 2500, runs=5, seed=2, checkpoints=[50])
    small = Served(replace(STEPWISE, steps=5000), None)  # a block is of two runs
    for policy in policies.values():
        monkeypatch.setitem(SERVED, type(policy), small)
    among = pb.simulate(policies, environment, 2500, runs=5, seed=2, checkpoints=[50], processes=2)
    np.testing.assert_array_equal(alone.curves["b"], among.curves["tree"])
    assert len(np.unique(alone.final["b"])) == 5
    slow, _ = contextual_steps.play_run([policies["tree"]], environment, 50, np.array([50]), Seeds(2, 0), 4)
    assert alone.curves["b"][4, 0] == pytest.approx(slow[0, 0], abs=1e-9)


@dataclass(frozen=True)
class Stubborn(pb.LinPrivShared):
    """Changes what the compiled engine would not see."""

    def choose(self, state: Any, offered: Any, step: int) -> int:
        return 0


def test_a_subclass_is_played_as_it_is() -> None:
    environment = world(3, 4, "strict")
    engines = [engine_for(kind(3, pb.NoPrivacy())) for kind in (pb.LinPrivShared, Stubborn)]
    assert engines == [STEPWISE, CONTEXTS_ONE_BY_ONE]
    found = pb.simulate({"own": Stubborn(3, pb.NoPrivacy())}, environment, 100, runs=1, seed=5).final["own"][0]
    means = contextual.contexts(environment, 100, SEEDS, 0).astype(float) @ np.array(environment.theta)
    assert found == pytest.approx((means.max(axis=1) - means[:, 0]).sum())


def test_memory_does_not_grow_with_the_horizon() -> None:
    environment, peaks = world(3, 40, "strict"), []
    for horizon in (600, 2100):  # blocks are of 512 steps
        policies = two_of_each(3, 40, pb.zCDP(1.0), horizon)[1::2]
        tracemalloc.start()
        play_run(policies, environment, horizon, np.array([horizon]), SEEDS, 0)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + 50_000
