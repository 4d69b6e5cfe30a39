"""The engine for linear bandits against the agent, against a plain loop, and on odd settings."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import private_bandits as pb
from private_bandits.arrays import Integers
from private_bandits.errors import InvalidInput
from private_bandits.policies.base import Variant
from private_bandits.policies.phased_elimination import PhasedElimination
from private_bandits.simulation import allocation_cache, linear, steps

Floats = NDArray[np.float64]

EVERY = (pb.AdaCGOPE, pb.AdaCGOPEVar, pb.AdaCGOPEEnd, pb.LiGOPE, pb.HannaGOPE)
VARIANTS = pytest.mark.parametrize(("cls", "variant"), [(cls, variant) for cls in EVERY for variant in cls.variants])


def directions(seed: int, k: int, d: int) -> Floats:
    rows = np.random.default_rng(seed).normal(size=(k, d))
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


@dataclass(frozen=True)
class Certain:
    """Every reward of an action is its mean."""

    actions: Any
    theta: Any
    reward_range: tuple[float, float] = (-1.0, 1.0)

    @property
    def means(self) -> Floats:
        return np.asarray(np.array(self.actions) @ np.array(self.theta))

    def reward_sums(self, generator: np.random.Generator, arms: Integers, counts: Integers) -> Floats:
        return np.asarray(self.means[arms] * counts)


def regret_by_step(policy: PhasedElimination, environment: Any, horizon: int) -> Floats:
    every_step = range(1, horizon + 1)
    return np.asarray(pb.simulate({"p": policy}, environment, horizon, runs=1, checkpoints=every_step).curves["p"][0])


SETS: dict[str, Any] = {
    "directions": directions(1, 6, 3),
    "in a plane": [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.6, 0.8, 0.0], [0.6, -0.8, 0.0]],
    "repeats": [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [0.1, 0.1]],
    "fewer than dimensions": [[1.0, 0.0, 0.0], [0.0, 0.6, 0.8]],
    "one": [[0.5, 0.5]],
    "with zero": [[0.0, 0.0], [1.0, 0.0], [0.0, -1.0]],
    "two best": [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]],
}


@pytest.mark.parametrize("name", SETS)
@VARIANTS
def test_same_actions_as_the_agent_on_certain_rewards_without_noise(
    cls: type[PhasedElimination], variant: Variant, name: str
) -> None:
    """The gaps differ from action to action but for repeats, so equal regret at every step means equal actions."""
    rows = tuple(map(tuple, np.array(SETS[name]).tolist()))
    theta = (0.5, 0.5) if name == "two best" else tuple(np.linspace(0.6, 0.2, len(rows[0])).tolist())
    if variant == "tight" and name == "two best":
        theta = (0.5, 0.5 - 1e-9)  # of two that are equal, the last bit would say which one leads
    environment = Certain(rows, theta)
    for factor in (1.0, 0.01):
        policy = cls(rows, pb.NoPrivacy(), phase_factor=factor, variant=variant)
        _, expected = steps.actions_and_regret(policy, environment, 1_500, np.random.default_rng(0))
        np.testing.assert_allclose(regret_by_step(policy, environment, 1_500), expected, atol=1e-9)


def test_same_actions_in_another_range() -> None:
    rows = tuple(map(tuple, directions(2, 5, 2).tolist()))
    environment = Certain(rows, (1.0, 2.0), reward_range=(-2.0, 6.0))
    policy = pb.AdaCGOPE(rows, pb.NoPrivacy(), phase_factor=0.02)
    _, expected = steps.actions_and_regret(policy, environment, 1_500, np.random.default_rng(0))
    np.testing.assert_allclose(regret_by_step(policy, environment, 1_500), expected, atol=1e-9)


@VARIANTS
def test_same_distribution_as_the_agent(cls: type[PhasedElimination], variant: Variant) -> None:
    """Phases are short and the noise is large, so that it decides what is dropped."""
    environment = pb.Linear([[1.0, 0.0], [0.0, 1.0], [0.8, 0.6]], [0.9, -0.3])
    budget = pb.PureDP(2.0) if cls is pb.HannaGOPE else pb.zCDP(1.0)
    policy = cls(environment.actions, budget, delta=0.9, phase_factor=0.3, variant=variant)
    slow = steps.regret_curves(
        [policy], environment, 600, 60, np.array([300, 600]), [np.random.default_rng(3)], lambda share: None
    )[0]
    fast = pb.simulate({"p": policy}, environment, 600, 4_000, checkpoints=[300]).curves["p"]
    assert len(np.unique(fast[:, 1].round(9))) > 1
    for i in range(2):
        error = math.hypot(slow[:, i].std(ddof=1) / math.sqrt(60), fast[:, i].std(ddof=1) / math.sqrt(4_000))
        assert abs(slow[:, i].mean() - fast[:, i].mean()) <= 4 * error + 1e-9


@pytest.mark.parametrize("rho", [0.001, 1.0])
@pytest.mark.parametrize(("k", "d"), [(20, 3), (30, 10)])
def test_plans_of_many_groups_are_those_of_each(k: int, d: int, rho: float) -> None:
    """Sets of every size, with a rough design or with one solved, also of fewer actions than dimensions."""
    policy = pb.AdaCGOPE(directions(9, k, d), pb.zCDP(rho), delta=0.01)
    generator = np.random.default_rng(1)
    for size in range(2, k + 1):
        sets = [tuple(sorted(generator.choice(k, size, replace=False).tolist())) for _ in range(5)]
        keys = [(active, active[0]) for active in sets]
        played = allocation_cache.Mixes(policy.vectors, policy.tol, policy.lead).of(policy, keys)
        assert {mix.basis.shape for mix in played.values()} == {(d, min(size, d))}
        batch = linear.Batch.of(policy, 3, played)
        assert batch.keys
        for (active, best), counts in zip(batch.keys, batch.counts, strict=True):
            expected = policy.plan(3, active, best)
            assert dict(zip(batch.arms[counts > 0].tolist(), counts[counts > 0].tolist(), strict=True)) == expected


@pytest.mark.parametrize("rho", [0.001, 0.1, math.inf])
def test_groups_together_have_the_distribution_of_groups_one_by_one(
    rho: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also in small blocks of groups and runs."""
    environment = pb.Linear(directions(10, 12, 4), directions(11, 1, 4)[0])
    budget = pb.NoPrivacy() if math.isinf(rho) else pb.zCDP(rho)
    policy = pb.AdaCGOPE(environment.actions, budget, delta=0.5)

    def regrets(kind: type[linear.PhasedRuns], seed: int) -> Floats:
        state, phase = kind(policy, environment, 10**5, 1_000, np.random.default_rng(seed)), 1
        while state.play_phase(phase):
            phase += 1
        return state.curves(np.array([10**3, 10**4, 10**5]))

    one_by_one = regrets(linear.PhasedRuns, 1)
    together = regrets(linear.ShortPhasedRuns, 2)
    error = np.hypot(one_by_one.std(axis=0, ddof=1), together.std(axis=0, ddof=1)) / math.sqrt(1_000)
    assert (np.abs(one_by_one.mean(axis=0) - together.mean(axis=0)) <= 4 * error + 1e-9).all()
    assert error[-1] > 0
    monkeypatch.setattr(linear, "ENTRIES", 2_000)
    np.testing.assert_allclose(
        regrets(linear.ShortPhasedRuns, 3).mean(axis=0), together.mean(axis=0), atol=6 * error.max()
    )


def plain_loop(
    actions: Floats,
    theta: Floats,
    rho: float,
    delta: float,
    horizon: int,
    generator: np.random.Generator,
    designs: dict[bytes, Floats],
) -> float:
    """Algorithm 2 of the paper with continuous noise calibrated to the real V; written without the package.

    The design is found by the multiplicative algorithm.
    """
    k, d = actions.shape
    gaps = (actions @ theta).max() - actions @ theta
    active, phase, t, regret = np.arange(k), 1, 0, 0.0
    while t < horizon:
        if len(active) == 1:
            return float(regret + gaps[active[0]] * (horizon - t))
        rows = actions[active]
        span = np.linalg.svd(rows)[2][: np.linalg.matrix_rank(rows)].T
        x = rows @ span
        if active.tobytes() not in designs:
            pi = np.full(len(active), 1 / len(active))
            for _ in range(5_000):
                pi *= np.einsum("ij,ij->i", x @ np.linalg.inv(x.T @ (pi[:, None] * x)), x) / x.shape[1]
            designs[active.tobytes()] = pi
        pi = designs[active.tobytes()]
        share = delta / (k * phase * (phase + 1))
        log_two, beta = math.log(2 / share), 2.0**-phase
        f = d + 2 * math.sqrt(d * log_two) + 2 * log_two
        c = 8 * d / beta**2 * math.log(4 / share) + 2 * d / beta * math.sqrt(2 / rho * f)
        counts = np.ceil(c * np.where(pi > 1e-4, pi, 0)).astype(int)
        for i, n in enumerate(counts):
            n = min(n, horizon - t)
            regret, t = regret + n * gaps[active[i]], t + n
        if t >= horizon:
            break
        v = x.T @ (counts[:, None] * x)
        total = x.T @ (2 * generator.binomial(counts, (1 + rows @ theta) / 2) - counts)
        values, vectors = np.linalg.eigh(v)
        root = vectors / np.sqrt(values) @ vectors.T
        sigma = math.sqrt(2 / rho) * max(np.linalg.norm(root @ a) for a, n in zip(x, counts, strict=True) if n)
        estimate = x @ root @ (root @ total + sigma * generator.normal(size=len(total)))
        active = active[estimate.max() - estimate <= 2 * beta]
        phase += 1
    return float(regret)


@pytest.mark.parametrize("rho", [0.01, 1.0])
def test_regret_of_an_independent_implementation(rho: float) -> None:
    actions, theta = directions(4, 8, 3), np.array([0.6, -0.5, 0.4])
    horizon, runs = 300_000, 200
    generator, designs = np.random.default_rng(5), dict[bytes, Floats]()
    plain = np.array([plain_loop(actions, theta, rho, 1e-3, horizon, generator, designs) for _ in range(runs)])
    policy = pb.AdaCGOPE(actions, pb.zCDP(rho), variant="paper")
    fast = pb.simulate({"p": policy}, pb.Linear(actions, theta), horizon, 2_000).final["p"]
    error = math.hypot(plain.std(ddof=1) / math.sqrt(runs), fast.std(ddof=1) / math.sqrt(2_000))
    # The two solvers stop at designs that are optimal to one in a thousand.
    assert abs(plain.mean() - fast.mean()) <= 4 * error + 0.01 * plain.mean()


@pytest.mark.parametrize("horizon", [1, 2, 17, 500])
def test_a_horizon_shorter_than_the_first_phase(horizon: int) -> None:
    actions = directions(6, 4, 2)
    environment = pb.Linear(actions, [0.6, 0.3])
    policy = pb.AdaCGOPE(actions, pb.zCDP(1e-3))
    plan = policy.plan(1, range(4))
    assert sum(plan.values()) > 500
    gaps = environment.means.max() - environment.means
    expected = float(np.cumsum(np.repeat(gaps[list(plan)], list(plan.values())))[horizon - 1])
    result = pb.simulate({"p": policy}, environment, horizon, 3)
    assert result.final["p"] == pytest.approx([expected] * 3)


def test_gaussian_rewards_are_labelled() -> None:
    actions = directions(7, 4, 2)
    policy = {"p": pb.AdaCGOPE(actions, pb.zCDP(1))}
    loose = pb.simulate(policy, pb.Linear(actions, [0.6, 0.8], noise="gaussian"), 10_000, 5)
    strict = pb.simulate(policy, pb.Linear(actions, [0.6, 0.8]), 10_000, 5)
    assert "no guarantee would hold" in loose.to_dict()["note"]
    assert "no guarantee" not in strict.to_dict()["note"]


def test_numbers_do_not_depend_on_other_policies() -> None:
    actions = directions(8, 5, 3)
    environment = pb.Linear(actions, [0.5, 0.5, 0.5])
    one, other = pb.AdaCGOPE(actions, pb.zCDP(0.1)), pb.LiGOPE(actions, pb.zCDP(0.1))
    alone = pb.simulate({"a": one}, environment, 10**5, 20).final["a"]
    both = pb.simulate({"b": other, "a": one}, environment, 10**5, 20).final["a"]
    np.testing.assert_array_equal(alone, both)


def test_policy_and_environment_must_have_the_same_actions() -> None:
    policy = pb.AdaCGOPE(directions(1, 3, 2), pb.zCDP(1))
    with pytest.raises(InvalidInput, match="other actions"):
        pb.simulate({"p": policy}, pb.Linear(directions(2, 3, 2), [0.1, 0.1]), 100, 1)


@pytest.mark.parametrize("noise", ["bounded", "gaussian"])
def test_linear_reward_sums(noise: str) -> None:
    environment = pb.Linear([[1.0, 0.0], [0.0, 1.0]], [0.5, -0.25], noise)
    arms = np.repeat([0, 1], 20_000)
    sums = environment.reward_sums(np.random.default_rng(0), arms, np.full(40_000, 9))
    for arm, mean in enumerate((0.5, -0.25)):
        variance = 9 * (1 - mean**2) if noise == "bounded" else 9.0
        found = sums[arms == arm]
        assert found.mean() == pytest.approx(9 * mean, abs=4 * math.sqrt(variance / 20_000))
        assert found.var() == pytest.approx(variance, rel=0.05)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([[1.0, 0.0]], [0.5]), "theta must be 2 finite numbers"),
        (([[1.0, 0.0]], [0.5, math.nan]), "theta must be 2 finite numbers"),
        (([[1.0, 0.0]], "ab"), "theta must be a list"),
        (([[1.0, 0.0]], None), "theta must be a list"),
        (([[1.0, 1.0]], [0.9, 0.9]), r"got \|<theta, a>\| = 1.8"),
        (([[1.0, 0.0]], [0.5, 0.5], "cauchy"), "noise must be"),
        (([[math.nan, 0.0]], [0.5, 0.5]), "finite"),
    ],
)
def test_bad_environments_are_named(arguments: tuple[Any, ...], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        pb.Linear(*arguments)
