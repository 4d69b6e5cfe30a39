"""The contextual engine against plain loops, one step at a time, that are written here without the package."""

from __future__ import annotations

import math
import subprocess
import sys
import tracemalloc
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

import private_bandits as pb
from private_bandits.budget import Budget
from private_bandits.environments import Setting
from private_bandits.errors import InvalidInput
from private_bandits.policies.base import Variant
from private_bandits.simulation import contextual
from private_bandits.simulation.engines import FROZEN, SERVED, Served
from private_bandits.simulation.oful_kernels import advance
from private_bandits.simulation.oful_state import GROWTH, LIMIT, REGRET, SLACK, WIDTH
from private_bandits.simulation.seeds import Seeds

Floats = NDArray[np.float64]

SEEDS = Seeds(seed=5, first=0)


def made(
    dimension: int,
    budget: Budget,
    horizon: int = 10**6,
    regulariser: float = 0.1,
    growth: float = 1.0,
    delta: float = 1e-3,
    parameter_norm: float = 1.0,
    context_norm: float = 1.0,
    variant: Variant = "paper",
) -> pb.AdaCOFUL:
    """AdaC-OFUL, as published unless told otherwise."""
    return pb.AdaCOFUL(
        dimension,
        budget,
        context_norm=context_norm,
        horizon=horizon,
        regulariser=regulariser,
        growth=growth,
        delta=delta,
        parameter_norm=parameter_norm,
        variant=variant,
    )


@dataclass(frozen=True)
class Certain(pb.Contextual):
    """Every reward is its mean."""

    @property
    def bounded(self) -> bool:
        return False

    @property
    def deviation(self) -> float:
        return 0.0


def direction(d: int, seed: int = 0) -> list[float]:
    theta = np.random.default_rng(seed).normal(size=d)
    return [float(x) for x in theta / np.linalg.norm(theta)]


def decoded_noise(policy: pb.AdaCOFUL, releases: int) -> float:
    """Variance of the noise in the sum of all, in units of one release's alone, by matrices."""
    if policy.variant == "paper" or policy.budget.noise == "none":
        return releases
    n = policy.cap
    factor = policy.decoder.matrix(n)
    decoder = np.tril(np.ones((n, n))) @ np.linalg.inv(factor)
    full, rest = divmod(releases, n)
    squares = full * (decoder[-1] ** 2).sum() + ((decoder[rest - 1] ** 2).sum() if rest else 0.0)
    return float((factor[:, 0] ** 2).sum() * squares)


def width(policy: pb.AdaCOFUL, log_det: Floats, least: Floats, releases: Any) -> Floats:
    d, log = policy.dimension, math.log(policy.horizon / policy.delta)
    f = d + 2 * math.sqrt(d * log) + 2 * log
    variance = policy.budget.variance_factor * (2 * policy.context_norm) ** 2
    first = np.sqrt(2 * math.log(1 / policy.delta) + log_det - d * math.log(policy.regulariser))
    ridge = math.sqrt(policy.regulariser) * policy.parameter_norm
    return np.asarray(first + ridge + np.sqrt(variance * releases * f / least))


def plain_loop(policy: pb.AdaCOFUL, theta: Floats, contexts: Floats) -> tuple[Floats, list[int]]:
    """Algorithm 3 of the paper with certain rewards and no noise: regret after each step, and steps before releases."""
    d = policy.dimension
    v = policy.regulariser * np.eye(d)
    frozen, total, opened, estimate = v.copy(), np.zeros(d), np.zeros(d), np.zeros(d)
    regret, ends = np.empty(len(contexts)), list[int]()
    inverse, log_det = np.linalg.inv(v), np.linalg.slogdet(v)[1]
    reach = width(policy, log_det, np.linalg.eigvalsh(v)[0], 0)
    for t, actions in enumerate(contexts):
        if np.linalg.slogdet(v)[1] > math.log(1 + policy.growth) + log_det:
            ends.append(t)
            total, opened, frozen = total + opened, np.zeros(d), v.copy()
            inverse, log_det = np.linalg.inv(frozen), np.linalg.slogdet(frozen)[1]
            estimate = inverse @ total
            reach = width(policy, log_det, np.linalg.eigvalsh(frozen)[0], len(ends))
        scores = actions @ estimate + reach * np.sqrt(np.einsum("ij,jk,ik->i", actions, inverse, actions))
        a = actions[scores.argmax()]
        regret[t] = (actions @ theta).max() - a @ theta
        opened = opened + a * (a @ theta)
        v = v + np.outer(a, a)
    return np.cumsum(regret), ends


@pytest.mark.parametrize(
    ("d", "arms", "regulariser", "growth", "setting", "horizon"),
    [
        (3, 10, 0.1, 1.0, "paper", 3000),
        (3, 10, 0.1, 1.0, "strict", 1500),
        (3, 4, 2.0, 0.01, "paper", 600),
        (3, 30, 1e-3, 10.0, "strict", 1500),
        (1, 5, 0.1, 1.0, "paper", 600),
        (1, 1, 1.0, 0.5, "strict", 600),
        (2, 1, 0.1, 1.0, "paper", 600),
        (2, 3, 0.01, 0.2, "strict", 1500),
        (4, 7, 0.3, 2.0, "paper", 1500),
        (5, 10, 0.1, 1.0, "strict", 1500),
        (9, 10, 0.1, 1.0, "paper", 1500),
        (30, 20, 1.0, 0.5, "strict", 400),
        (200, 3, 0.1, 1.0, "paper", 30),
    ],
)
def test_same_actions_as_a_plain_loop_on_certain_rewards_without_noise(
    d: int, arms: int, regulariser: float, growth: float, setting: Setting, horizon: int
) -> None:
    """The gaps differ from action to action, so equal regret at every step means equal actions."""
    policy = made(d, pb.NoPrivacy(), horizon, regulariser, growth)
    environment = Certain(d, arms, direction(d), setting)
    every_step = np.arange(1, horizon + 1)
    curves, releases = contextual.play_run([policy, policy], environment, horizon, every_step, SEEDS, 3)
    seen = contextual.contexts(environment, horizon, SEEDS, 3).astype(float)
    expected, ends = plain_loop(policy, np.array(environment.theta), seen)
    for curve in curves:
        np.testing.assert_allclose(curve, expected, atol=1e-9)
    assert releases.tolist() == [len(ends)] * 2
    assert len(ends) > 3
    coarse, _ = contextual.play_run([policy], environment, horizon, every_step[6::97], SEEDS, 3)
    np.testing.assert_allclose(coarse[0], expected[6::97], atol=1e-9)


@pytest.mark.parametrize(("d", "arms"), [(3, 10), (2, 1), (6, 4)])
def test_same_actions_as_the_agent_on_certain_rewards_without_noise(d: int, arms: int) -> None:
    """The agent rounds actions and rewards to its grids, which these contexts do not notice."""
    horizon, policy = 400, pb.AdaCOFUL(dimension=d, budget=pb.NoPrivacy(), horizon=400)
    environment = Certain(d, arms, direction(d), "strict")
    agent, theta = pb.Agent(policy, environment.reward_range, seed=1), np.array(environment.theta)
    gaps = []
    for actions in contextual.contexts(environment, horizon, SEEDS, 1).astype(float):
        decision = agent.ask(actions=actions)
        means = actions @ theta
        gaps.append(means.max() - means[decision.action])
        agent.tell(decision, float(means[decision.action]))
    curves, _ = contextual.play_run([policy], environment, horizon, np.arange(1, horizon + 1), SEEDS, 1)
    np.testing.assert_allclose(curves[0], np.cumsum(gaps), atol=1e-9)


def plain_runs(
    policy: pb.AdaCOFUL, environment: pb.Contextual, points: list[int], runs: int, generator: np.random.Generator
) -> tuple[Floats, Floats]:
    """The same with rewards and noise of its own, many runs side by side: regret at the points, and releases."""
    d, arms, strict = policy.dimension, environment.arms, environment.setting == "strict"
    theta, noise = np.array(environment.theta), 2 * policy.context_norm * math.sqrt(policy.budget.variance_factor)
    v = np.tile(policy.regulariser * np.eye(d), (runs, 1, 1))
    total, opened, estimate = np.zeros((runs, d)), np.zeros((runs, d)), np.zeros((runs, d))
    releases, regret, curves = np.zeros(runs), np.zeros(runs), []
    inverse, log_det = np.linalg.inv(v), np.linalg.slogdet(v)[1]
    reach = width(policy, log_det, np.full(runs, policy.regulariser), 0)
    for t in range(points[-1]):
        due = np.flatnonzero(np.linalg.slogdet(v)[1] > math.log(1 + policy.growth) + log_det)
        total[due] += opened[due] + noise * generator.normal(size=(len(due), d))
        opened[due] = 0
        releases[due] += 1
        inverse[due], log_det[due] = np.linalg.inv(v[due]), np.linalg.slogdet(v[due])[1]
        estimate[due] = np.einsum("rij,rj->ri", inverse[due], total[due])
        least = np.asarray(np.linalg.eigvalsh(v[due])[:, 0], float)
        reach[due] = width(policy, log_det[due], least, releases[due])
        actions = generator.normal(1 / math.sqrt(d), math.sqrt(0.1), (runs, arms, d))
        if strict:
            actions /= np.maximum(1, np.linalg.norm(actions, axis=2, keepdims=True))
        lengths = np.sqrt(np.einsum("rki,rij,rkj->rk", actions, inverse, actions, optimize=True))
        scores = np.einsum("rki,ri->rk", actions, estimate) + reach[:, None] * lengths
        a = actions[np.arange(runs), scores.argmax(axis=1)]
        mean = a @ theta
        regret += (actions @ theta).max(axis=1) - mean
        reward = 2.0 * (generator.random(runs) < (1 + mean) / 2) - 1 if strict else mean + generator.normal(size=runs)
        opened += a * reward[:, None]
        v += a[:, :, None] * a[:, None, :]
        if t + 1 in points:
            curves.append(regret.copy())
    return np.array(curves).T, releases


@pytest.mark.parametrize("budget", [pb.zCDP(0.05), pb.zCDP(5.0), pb.NoPrivacy()], ids=str)
@pytest.mark.parametrize(
    ("setting", "d", "arms", "growth"), [("paper", 3, 10, 1.0), ("strict", 3, 10, 1.0), ("strict", 2, 4, 0.3)]
)
def test_same_distribution_as_a_plain_loop(setting: Setting, d: int, arms: int, growth: float, budget: Budget) -> None:
    points, runs = [40, 200, 600], 500
    policy = made(d, budget, 600, regulariser=0.5, growth=growth, parameter_norm=1.5)
    environment = pb.Contextual(d, arms, direction(d, 2), setting)
    slow, slow_releases = plain_runs(policy, environment, points, runs, np.random.default_rng(8))
    found = [contextual.play_run([policy], environment, 600, np.array(points), SEEDS, i) for i in range(runs)]
    fast, fast_releases = np.array([curves[0] for curves, _ in found]), np.array([r[0] for _, r in found], float)
    pairs = [(slow[:, i], fast[:, i]) for i in range(len(points))]
    for one_by_one, engine in [*pairs, (slow_releases, fast_releases), *((x**2, y**2) for x, y in pairs)]:
        error = math.hypot(one_by_one.std(ddof=1), engine.std(ddof=1)) / math.sqrt(runs)
        assert abs(one_by_one.mean() - engine.mean()) <= 4 * error


def played(policies: list[pb.AdaCOFUL], environment: pb.Contextual, steps: int, number: int) -> contextual.Learners:
    """The policies after so many steps, at most a block of them."""
    world = contextual.World(environment, SEEDS, number)
    learners = contextual.Learners(policies, environment, SEEDS, number, world.steps)
    world.draw()
    learners.begin_block()
    learners.play(world, steps, 0, steps)
    return learners


@pytest.mark.parametrize("budget", [pb.zCDP(0.01), pb.ApproxDP(1.0, 1e-6), pb.NoPrivacy()], ids=str)
def test_estimate_and_width(budget: Budget) -> None:
    policies = [made(4, budget, 500, 0.3, 0.5, 0.02, 1.5, 2.0) for _ in range(2)]
    learners = played(policies, pb.Contextual(4, 6, direction(4)), 900, 0)
    for p, policy in enumerate(policies):
        v, frozen = learners._frozen.released[p], learners._frozen
        expected = width(policy, np.linalg.slogdet(v)[1], np.linalg.eigvalsh(v)[0], learners.releases[p])
        assert frozen.numbers[p, WIDTH] == pytest.approx(float(expected), rel=1e-10)
        np.testing.assert_allclose(frozen.theta[p], np.linalg.solve(v, learners._totals[p]), rtol=1e-9)
        np.testing.assert_allclose(frozen.white[p] @ v @ frozen.white[p].T, np.eye(4), atol=1e-10)
        assert learners.releases[p] > 10


@pytest.mark.parametrize("horizon", [500, 5])
def test_width_of_tight_sums(horizon: int) -> None:
    """As the policy computes it, which has tests of its own; also beyond the cap."""
    policy = made(4, pb.zCDP(0.1), horizon, 0.3, 0.5, 0.02, 1.5, 2.0, "tight")
    learners = played([policy], pb.Contextual(4, 6, direction(4)), 900, 0)
    v = learners._frozen.released[0]
    noise = decoded_noise(policy, int(learners.releases[0]))
    log_det, least = float(np.linalg.slogdet(v)[1]), float(np.linalg.eigvalsh(v)[0])
    width = policy.exploration * policy.width(log_det, least, noise, 2.0)
    assert learners._frozen.numbers[0, WIDTH] == pytest.approx(width, rel=1e-9)
    assert (learners.releases[0] > policy.cap) == (horizon == 5)


@pytest.mark.parametrize(("variant", "horizon"), [("paper", 1000), ("tight", 1000), ("tight", 3)])
@pytest.mark.parametrize("deviation", [0.0, 1.0])
def test_noise_of_every_release_stays_in_the_total(deviation: float, variant: Variant, horizon: int) -> None:
    """Beyond (V - lambda I) theta, the total holds rewards' noise of covariance V - lambda I and that of the releases.

    With one action at each step, V does not depend on either.
    """
    environment = (pb.Contextual if deviation else Certain)(3, 1, direction(3), "paper")
    policy = made(3, pb.zCDP(0.02), horizon, 0.3, 2.0, variant=variant)
    squares, wholes = 0.0, []
    for number in range(200):
        learners = played([policy], environment, 200, number)
        gram = learners._frozen.released[0] - 0.3 * np.eye(3)
        rest = learners._totals[0] - gram @ np.array(environment.theta)
        noise = decoded_noise(policy, int(learners.releases[0]))
        covariance = deviation**2 * gram + noise * 4 / (2 * 0.02) * np.eye(3)
        squares += float(rest @ np.linalg.solve(covariance, rest))
        wholes.append(np.linalg.solve(np.linalg.cholesky(covariance), rest))
    assert (learners.releases[0] > policy.cap) == (horizon == 3)
    low, high = stats.chi2.ppf([5e-5, 1 - 5e-5], 3 * len(wholes))
    assert low < squares < high
    assert stats.kstest(np.ravel(wholes), "norm").pvalue > 1e-4


def test_gaussian_rewards_add_up_to_one_draw() -> None:
    """Without privacy, the noise of the total is N(0, V - lambda I)."""
    environment, policy = pb.Contextual(3, 1, direction(3), "paper"), made(3, pb.NoPrivacy(), 1000, 0.3, 2.0)
    wholes = []
    for number in range(400):
        learners = played([policy], environment, 200, number)
        gram = learners._frozen.released[0] - 0.3 * np.eye(3)
        rest = learners._totals[0] - gram @ np.array(environment.theta)
        wholes.append(np.linalg.solve(np.linalg.cholesky(gram), rest))
    assert stats.kstest(np.ravel(wholes), "norm").pvalue > 1e-4
    assert abs(np.mean(np.square(wholes)) - 1) < 4 * math.sqrt(2 / 1200)


def test_ends_of_episodes_stay_exact_over_a_long_run() -> None:
    """With one action at each step, V is what the contexts add up to."""
    environment, horizon = pb.Contextual(1, 1, [0.7], "paper"), 10**6
    policy = made(1, pb.zCDP(1.0), horizon, growth=0.1)
    curves, releases = contextual.play_run([policy], environment, horizon, np.array([horizon]), SEEDS, 0)
    seen = contextual.contexts(environment, horizon, SEEDS, 0).astype(float).ravel()
    sums = 0.1 + np.cumsum(seen**2)
    last, expected = 0.1, 0
    while (end := int(np.searchsorted(sums, 1.1 * last, side="right"))) < horizon - 1:
        last, expected = sums[end], expected + 1
    assert releases.tolist() == [expected]
    assert curves.tolist() == [[0.0]]


def test_where_scores_are_close_double_precision_decides_the_same() -> None:
    """Two ways to choose: all steps by single precision, and all by double precision."""
    environment, policy = pb.Contextual(5, 10, direction(5), "paper"), made(5, pb.NoPrivacy())
    found = []
    for slack in (0.0, 1e30):
        world = contextual.World(environment, SEEDS, 0)
        world.draw()
        learners = contextual.Learners([policy], environment, SEEDS, 0, world.steps)
        learners.begin_block()
        learners.play(world, 500, 0, world.steps)
        learners._frozen.numbers[0, SLACK] = slack
        learners._frozen.numbers[0, [GROWTH, LIMIT]] = 1e30  # the episode goes on
        starts = np.array([500])
        advance(world.block, learners._frozen, np.zeros((1, 0), np.float32), starts, world.steps, 10**6)
        found.append((starts[0], learners._frozen.numbers[0, REGRET]))
    assert found[0][0] == found[1][0] == world.steps
    assert found[0][1] == pytest.approx(found[1][1], rel=1e-6)


@pytest.mark.parametrize("setting", ["strict", "paper"])
@pytest.mark.parametrize(("d", "arms"), [(1, 1), (3, 10), (40, 7)])
def test_contexts(setting: Setting, d: int, arms: int) -> None:
    environment = pb.Contextual(d, arms, direction(d), setting)
    steps = 400_000 // (d * arms)
    seen = contextual.contexts(environment, steps, SEEDS, 0).astype(float)
    assert seen.shape == (steps, arms, d)
    norms = np.linalg.norm(seen, axis=2)
    if setting == "strict":
        assert norms.max() <= 1
        loose = contextual.contexts(pb.Contextual(d, arms, direction(d), "paper"), steps, SEEDS, 0).astype(float)
        np.testing.assert_allclose(seen, loose / np.maximum(1, np.linalg.norm(loose, axis=2, keepdims=True)), atol=1e-5)
        return
    assert np.abs(seen.mean(axis=0) - 1 / math.sqrt(d)).max() < 5 * math.sqrt(0.1 / steps)
    rows = seen.reshape(-1, d) - 1 / math.sqrt(d)
    assert np.abs(rows.T @ rows / len(rows) - np.eye(d) / 10).max() < 5.5 * 0.1 * math.sqrt(2 / len(rows))
    for number, seeds in ((1, SEEDS), (0, Seeds(6, 0))):
        other = contextual.contexts(environment, 100, seeds, number)
        assert not np.isclose(other, seen[:100]).any(axis=(1, 2)).all()


@pytest.mark.parametrize(("d", "regulariser", "growth"), [(3, 0.1, 1.0), (6, 1.0, 0.2), (1, 0.01, 3.0)])
def test_releases_stay_below_their_cap(d: int, regulariser: float, growth: float) -> None:
    horizon = 30_000
    policies = [made(d, b, horizon, regulariser, growth) for b in (pb.zCDP(0.01), pb.NoPrivacy())]
    _, releases = contextual.play_run(
        policies, pb.Contextual(d, 5, direction(d)), horizon, np.array([horizon]), SEEDS, 0
    )
    cap = d * math.log(1 + horizon / (regulariser * d)) / math.log(1 + growth) + 1
    assert releases.max() <= cap
    assert releases.min() > 0.5 * cap


def test_memory_does_not_grow_with_the_horizon() -> None:
    environment = pb.Contextual(3, 10, direction(3))
    contextual.prepare([made(3, pb.zCDP(1.0))], environment)
    peaks = []
    for horizon in (20_000, 500_000):
        tracemalloc.start()
        contextual.play_run([made(3, pb.zCDP(1.0))], environment, horizon, np.array([horizon]), SEEDS, 0)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + 50_000


def test_shared_contexts_make_differences_less_noisy() -> None:
    """Without noise of any kind but the contexts', twins with widths a little apart differ by little."""
    environment, horizon = Certain(3, 10, direction(3), "paper"), 20_000
    policies = [made(3, pb.NoPrivacy(), horizon), made(3, pb.zCDP(1e5), horizon)]
    curves = np.array(
        [contextual.play_run(policies, environment, horizon, np.array([horizon]), SEEDS, i)[0][:, 0] for i in range(30)]
    )
    apart = curves[:, 0].var(ddof=1) + curves[:, 1].var(ddof=1)
    assert (curves[:, 1] - curves[:, 0]).var(ddof=1) < 0.2 * apart


def oful(budget: Budget, d: int = 3, **more: Any) -> pb.AdaCOFUL:
    return pb.AdaCOFUL(dimension=d, budget=budget, horizon=3000, **more)


ENVIRONMENT = pb.Contextual(3, 10, direction(3))


def test_numbers_do_not_depend_on_processes_blocks_or_other_policies(monkeypatch: pytest.MonkeyPatch) -> None:
    policies = {"b": oful(pb.zCDP(0.1)), "a": oful(pb.zCDP(1))}
    expected = pb.simulate({"a": policies["a"]}, ENVIRONMENT, 3000, runs=7, seed=2).curves["a"]
    assert len(np.unique(expected[:, -1])) == 7
    for processes, steps in ((1, 10**6), (1, 6000), (3, 3000), (2, 1)):
        monkeypatch.setitem(SERVED, pb.AdaCOFUL, Served(replace(FROZEN, steps=steps), None))
        result = pb.simulate(policies, ENVIRONMENT, 3000, runs=7, seed=2, processes=processes)
        assert list(result.curves) == ["b", "a"]
        np.testing.assert_array_equal(result.curves["a"], expected)
    assert not np.array_equal(pb.simulate(policies, ENVIRONMENT, 3000, runs=7, seed=3).curves["a"], expected)


def test_progress_is_reported() -> None:
    parts: list[float] = []
    contextual.regret_curves([oful(pb.zCDP(1))], ENVIRONMENT, 5000, 2, np.array([5000]), SEEDS, parts.append)
    assert parts == sorted(parts)
    assert len(parts) > 4
    assert parts[-1] == 1


COMPILED = """
from types import SimpleNamespace
from numba.core.dispatcher import Dispatcher
import private_bandits as pb
from private_bandits.simulation import contextual, run

found = []

def now():
    found.append(sum(len(f.signatures) for f in vars(contextual).values() if isinstance(f, Dispatcher)))
    return 0.0

now()
run.time = SimpleNamespace(perf_counter=now)
policy = pb.AdaCOFUL(dimension=4, budget=pb.zCDP(1), horizon=3000)
pb.simulate({"a": policy}, pb.Contextual(4, 3, [0.5] * 4), 3000, 2, progress=False)
print(*found)
"""
"""How many functions are ready for use at first, when the clock starts, and when it ends."""


def test_compilation_is_not_timed() -> None:
    """In a process of its own: in this one everything is compiled."""
    done = python(COMPILED)
    assert done.returncode == 0, done.stderr
    first, start, end = map(int, done.stdout.split())
    assert first == 0
    assert 0 < start == end


def test_the_paper_setting_is_labelled() -> None:
    result = pb.simulate({"a": oful(pb.zCDP(1))}, pb.Contextual(3, 10, direction(3), "paper"), 100, 2)
    assert "no guarantee would hold" in result.to_dict()["note"]
    assert "no guarantee" not in pb.simulate({"a": oful(pb.zCDP(1))}, ENVIRONMENT, 100, 2).note


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((0, 10, []), "dimension must be a whole number"),
        ((2, 0, [0.1, 0.1]), "arms must be a whole number"),
        ((2, 1.5, [0.1, 0.1]), "arms must be a whole number"),
        ((2, 3, [0.1]), "theta must be 2 finite numbers"),
        ((2, 3, [0.1, math.nan]), "theta must be 2 finite numbers"),
        ((2, 3, "ab"), "theta must be a list of numbers"),
        ((2, 3, [0.8, 0.8]), "need |theta| at most 1"),
        ((2, 3, [0.1, 0.1], "loose"), "setting must be 'strict' or 'paper'"),
    ],
)
def test_bad_environments_are_named(arguments: tuple[Any, ...], words: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        pb.Contextual(*arguments)
    assert words in str(caught.value)


def test_policies_and_environments_that_do_not_fit() -> None:
    for policy, environment, words in (
        (oful(pb.zCDP(1), d=2), ENVIRONMENT, "in dimension 2, the environment's have 3"),
        (oful(pb.zCDP(1), context_norm=0.5), ENVIRONMENT, "length 0.5 at most"),
        (pb.AdaCUCB(10, pb.zCDP(1)), ENVIRONMENT, "for the finite setting"),
        (oful(pb.zCDP(1)), pb.Bernoulli([0.5, 0.4]), "for the contextual setting"),
    ):
        with pytest.raises(InvalidInput, match=words):
            pb.simulate({"p": policy}, environment, 100, 1)


def test_an_interrupt_stops_the_other_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run of 10^15 steps would take years."""
    calls = []

    def play_or_stop(*arguments: Any) -> Any:
        calls.append(arguments)
        if arguments[5] == 0:
            raise KeyboardInterrupt
        return contextual.play_run(*arguments)

    monkeypatch.setattr(contextual, "regret_curves", partial(contextual.regret_curves, play=play_or_stop))
    with pytest.raises(KeyboardInterrupt):
        pb.simulate({"a": oful(pb.zCDP(1))}, ENVIRONMENT, 10**15, runs=4, checkpoints=[10], processes=2)
    assert len(calls) < 4


def test_a_regulariser_that_double_precision_cannot_hold() -> None:
    policy = oful(pb.NoPrivacy(), regulariser=1e-200)
    with pytest.raises(InvalidInput, match="regulariser is too small"):
        pb.simulate({"a": policy}, ENVIRONMENT, 100, 1)


def test_theta_may_be_long_in_the_papers_setting() -> None:
    result = pb.simulate({"a": oful(pb.NoPrivacy())}, pb.Contextual(3, 10, [3.0, -4.0, 12.0], "paper"), 3000, 3)
    assert (result.final["a"] > 0).all()


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120)


def test_the_light_core_imports_nothing_heavy_and_does_without_numba() -> None:
    heavy = ["numba", "pandas", "scipy", "sklearn"]  # installed here, and nobody who makes an agent waits for them
    done = python(
        "import sys, private_bandits as pb; pb.Contextual(1, 1, [1]); pb.Agent(pb.AdaCIMED(2, pb.zCDP(1))); "
        f"assert not [name for name in {heavy} if name in sys.modules]"
    )
    assert done.returncode == 0, done.stderr
    done = python(
        "import sys; sys.modules['numba'] = None; import private_bandits as pb; "
        "pb.simulate({'a': pb.AdaCOFUL(dimension=1, budget=pb.zCDP(1), horizon=9)}, pb.Contextual(1, 2, [1]), 9, 1)"
    )
    words = 'MissingExtra: a contextual or dp-ucb simulation needs numba: pip install "private-bandits[fast]"'
    assert words in done.stderr


def test_draws_one_step_at_a_time() -> None:
    generator = np.random.default_rng(0)
    action = np.array([0.6, 0.0])
    for setting in ("strict", "paper"):
        environment = pb.Contextual(2, 3, [0.5, 0.5], setting)
        rewards = np.array([environment.draw_reward(generator, action) for _ in range(20_000)])
        assert abs(rewards.mean() - 0.3) < 4 * rewards.std() / math.sqrt(20_000)
        assert (set(rewards) == {-1.0, 1.0}) == (setting == "strict")
        actions = np.array([environment.draw_actions(generator) for _ in range(2000)])
        assert (np.linalg.norm(actions, axis=2).max() <= 1) == (setting == "strict")
