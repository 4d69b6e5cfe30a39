"""The engine for every contextual policy against live agents, and against the compiled engine."""

from __future__ import annotations

import math
import tracemalloc
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

import private_bandits as pb
from private_bandits.budget import Budget
from private_bandits.environments import Setting
from private_bandits.errors import InvalidInput
from private_bandits.mechanism.moments import MomentScale
from private_bandits.policies import POLICIES, Combination, Policy
from private_bandits.simulation import contextual, contextual_steps
from private_bandits.simulation.context_runs import ContextualLearner
from private_bandits.simulation.contextual_steps import stretch_of
from private_bandits.simulation.seeds import Seeds
from private_bandits.simulation.simulated_bandit import moment_addend

Floats = NDArray[np.float64]

SEEDS = Seeds(seed=5, first=0)
THETA = [0.6, -0.48, 0.64]
ARMS = 4
NAMES = [name for name, cls in sorted(POLICIES.items()) if cls.setting == "contextual"]


@dataclass(frozen=True)
class Certain(pb.Contextual):
    """Every reward is its mean."""

    @property
    def bounded(self) -> bool:
        return False

    @property
    def deviation(self) -> float:
        return 0.0


@dataclass(frozen=True)
class SlowOFUL(pb.AdaCOFUL):
    """What a compiled engine knows, without it: it knows that class alone."""


@dataclass(frozen=True)
class SlowPrivate(pb.AdaCOFULPrivate):
    """The same."""


@dataclass(frozen=True)
class SlowTree(pb.LinPriv):
    """The same."""


def made(name: str, budget: Budget, horizon: int = 1000, arms: int = ARMS, **more: Any) -> Policy[Any]:
    options = {"arms": arms} if name == "linpriv" else {}
    return POLICIES[name](dimension=3, budget=budget, horizon=horizon, **options, **more)  # type: ignore[call-arg]


def seen(environment: pb.Contextual, steps: int, run: int = 0) -> Floats:
    return contextual.contexts(environment, steps, SEEDS, run).astype(float)


def test_there_are_rivals() -> None:
    assert {"linpriv", "linpriv-shared", "shariff-sheffet", "adac-oful-private"} <= set(NAMES)


@pytest.mark.parametrize("horizon", [1000, 7, 6, 1])
@pytest.mark.parametrize("name", NAMES)
def test_same_actions_as_the_agent_on_certain_rewards_without_noise(name: str, horizon: int) -> None:
    """Where the horizon is short, trees are complete many times over."""
    policy, environment = made(name, pb.NoPrivacy(), horizon, context_norm=1.25), Certain(3, ARMS, THETA, "strict")
    contexts = seen(environment, 300)
    agent, theta, expected = pb.Agent(policy, environment.reward_range, seed=1), np.array(THETA), []
    for actions in contexts:
        decision = agent.ask(actions=actions)
        expected.append(decision.action)
        agent.tell(decision, float(actions[decision.action] @ theta))
    learner = ContextualLearner(policy, environment, SEEDS, 0)
    first, _ = learner.play(stretch_of(environment, contexts[:130]), 0)
    second, regrets = learner.play(stretch_of(environment, contexts[130:]), 130)
    assert [*first, *second] == expected
    assert len(set(expected)) > 1
    gaps = (contexts @ theta).max(axis=1) - (contexts @ theta)[np.arange(300), expected]
    np.testing.assert_allclose(regrets, np.cumsum(gaps)[130:], atol=1e-9)
    assert learner.releases == len(agent.ledger) > 3
    assert all(len(opened.kept) <= policy.tree_levels for opened in learner._sums.values())
    for mine, live in zip(numbers(policy.dump_state(learner.state)), numbers(agent.learned), strict=True):
        assert mine == pytest.approx(live, abs=1e-5, rel=1e-5)


@dataclass(frozen=True)
class Witness(pb.LinPriv):
    """Releases a sum at every third reward, and remembers what it was asked and told."""

    calls: ClassVar[list[Any]] = []

    def choose(self, state: Any, offered: Any, step: int) -> int:
        self.calls.append(("choose", offered.tolist(), step))
        return step % self.arms

    def arrive(self, state: Any, key: int, weight: tuple[int, ...]) -> Any:
        self.calls.append(("arrive", key, weight))
        return super().arrive(state, key, weight)

    def due(self, state: Any, key: int, count: int, arrived: Any) -> bool:
        self.calls.append(("due", key, count, dict(arrived)))
        return count == 3

    def learn(self, state: Any, release: Any, step: int) -> None:
        self.calls.append(("learn", release.key, release.all_rewards, release.count, release.counts, step))
        super().learn(state, release, step)


def test_a_policy_is_asked_and_told_the_same_as_by_an_agent() -> None:
    environment = Certain(3, ARMS, THETA, "strict")
    policy, contexts = Witness(dimension=3, budget=pb.zCDP(1.0), arms=ARMS, horizon=5), seen(environment, 60)
    agent = pb.Agent(policy, environment.reward_range, seed=1)
    Witness.calls.clear()  # of the class, so that those of an earlier run are still there
    for actions in contexts:
        agent.tell(agent.ask(actions=actions), 0.5)
    expected = Witness.calls.copy()
    Witness.calls.clear()
    ContextualLearner(policy, environment, SEEDS, 0).play(stretch_of(environment, contexts), 0)
    assert Witness.calls == expected
    assert len({call[2] for call in expected if call[0] == "learn"}) > 1  # nodes of several sizes


def numbers(data: Any) -> list[float]:
    """Those in plain data, in order."""
    if isinstance(data, dict):
        return numbers([value for name, value in data.items() if name != "since_steps"])
    if isinstance(data, list):
        return [x for part in data for x in numbers(part)]
    return [float(data)]


@pytest.mark.parametrize("budget", [pb.zCDP(0.02), pb.ApproxDP(1.0, 1e-6), pb.NoPrivacy()], ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_noise_is_as_large_as_a_live_agents(name: str, budget: Budget) -> None:
    policy, environment = made(name, budget, 500, context_norm=1.5), pb.Contextual(3, ARMS, THETA)
    agent = pb.Agent(policy, environment.reward_range, seed=1)
    for actions in seen(environment, 100):
        agent.tell(agent.ask(actions=actions), 1.0)
    learner = ContextualLearner(policy, environment, SEEDS, 0)
    for row in agent.ledger:
        # On its grid an agent takes the sensitivity of moments for larger by the rounding of each coordinate.
        slack = (math.isqrt(len(row.values)) + 3) / row.steps if policy.private_contexts else 0.0
        assert learner.noise_sd <= row.noise_sd * (1 + 1e-12)
        assert row.noise_sd <= learner.noise_sd * (1 + 1e-12) * (1 + slack)
    assert len(agent.ledger) > 1


@pytest.mark.parametrize("name", NAMES)
def test_every_release_has_noise_of_its_own(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With one action at each step and certain rewards, releases differ from those nearly without noise by it alone."""
    environment, released = Certain(3, 1, THETA, "strict"), list[Any]()
    monkeypatch.setattr(POLICIES[name], "learn", lambda self, state, release, step: released.append(release))
    found, policy = [], made(name, pb.zCDP(0.1), 20, arms=1)
    for budget in (pb.zCDP(0.1), pb.zCDP(1e13)):  # without any, sums would be released in another way
        ContextualLearner(policy.with_budget(budget), environment, SEEDS, 0).play(
            stretch_of(environment, seen(environment, 300)), 0
        )
        found.append(np.array([release.values for release in released]))
        counts, new = [release.all_rewards for release in released], {release.count for release in released}
        released.clear()
        if policy.tree_levels:
            assert new == {1}
            assert counts[:32] == [1, 2, 1, 4, 1, 2, 1, 8, 1, 2, 1, 4, 1, 2, 1, 16, *counts[:15], 1]
    noise = (found[0] - found[1]) / ContextualLearner(policy, environment, SEEDS, 0).noise_sd
    assert noise.size >= 300
    assert stats.kstest(noise.ravel(), "norm").pvalue > 1e-4
    low, high = stats.chi2.ppf([5e-5, 1 - 5e-5], noise.size)
    assert low < np.square(noise).sum() < high
    assert abs((noise[1:] * noise[:-1]).mean()) < 4 / math.sqrt(noise[1:].size)


@pytest.mark.parametrize("budget", [pb.zCDP(1.0), pb.NoPrivacy()], ids=str)
@pytest.mark.parametrize("setting", ["strict", "paper"])
def test_same_distribution_as_the_compiled_engine(setting: Setting, budget: Budget) -> None:
    """On the same contexts, with rewards and noise of their own."""
    policy, points, runs = made("adac-oful", budget, 300, exploration=0.5), np.array([50, 300]), 60
    environment = pb.Contextual(3, ARMS, THETA, setting)
    found = []
    for engine in (contextual, contextual_steps):
        played = [engine.play_run([policy], environment, 300, points, SEEDS, i) for i in range(runs)]
        found.append(np.array([[*curves[0], *(curves[0] ** 2), releases[0]] for curves, releases in played]))
    apart = found[1] - found[0]
    assert (np.abs(apart.mean(axis=0)) <= 4 * apart.std(axis=0, ddof=1) / math.sqrt(runs)).all()
    assert np.corrcoef(found[0][:, 1], found[1][:, 1])[0, 1] > 0  # contexts are shared


@pytest.mark.parametrize("setting", ["strict", "paper"])
def test_rewards(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    environment, told = pb.Contextual(3, 1, THETA, setting), list[float]()
    draw = pb.Contextual.reward_of

    def draw_and_keep(*arguments: Any) -> float:
        told.append(draw(*arguments))
        return told[-1]

    monkeypatch.setattr(pb.Contextual, "reward_of", draw_and_keep)
    contexts = seen(environment, 4000)
    ContextualLearner(made("adac-oful-private", pb.NoPrivacy()), environment, SEEDS, 0).play(
        stretch_of(environment, contexts), 0
    )
    means = contexts[:, 0] @ np.array(THETA)
    rest = np.array(told) - means
    if setting == "strict":
        assert set(told) == {-1.0, 1.0}
        rest /= np.sqrt(1 - means**2)
    assert abs(rest.mean()) < 4 / math.sqrt(len(rest))
    assert abs((rest**2).mean() - 1) < 4 * (rest**2).std() / math.sqrt(len(rest))


def test_actions_of_the_papers_setting_are_taken_as_drawn() -> None:
    environment, theta = Certain(3, 1, THETA, "paper"), np.array(THETA)
    contexts = seen(environment, 96)
    assert np.linalg.norm(contexts, axis=2).max() > 1.5
    gram = np.einsum("tki,tkj->ij", contexts, contexts)
    shared = ContextualLearner(made("linpriv-shared", pb.NoPrivacy()), environment, SEEDS, 0)
    shared.play(stretch_of(environment, contexts), 0)
    np.testing.assert_allclose(shared.state.grams[0], gram + np.eye(3), rtol=1e-5)
    np.testing.assert_allclose(shared.state.sums[0].total, gram @ theta, rtol=1e-4)
    private = ContextualLearner(made("adac-oful-private", pb.NoPrivacy()), environment, SEEDS, 0)
    private.play(stretch_of(environment, contexts), 0)
    assert private.state.rewards == 83
    gram = np.einsum("tki,tkj->ij", contexts[:83], contexts[:83])
    matrix, vector = private.policy.moments(-1.0, 1.0).matrix_and_vector(private.state.released.total)
    np.testing.assert_allclose(matrix, gram, rtol=1e-5)
    np.testing.assert_allclose(vector, gram @ theta, rtol=1e-4)


def test_what_a_person_adds() -> None:
    scale, generator = MomentScale(4, 2**20, -1.0, 3.0, 0.4), np.random.default_rng(0)
    for _ in range(20):
        a = generator.normal(size=4)
        weight, steps = tuple((a / np.linalg.norm(a) * 2**20 * generator.random()).astype(int).tolist()), 2**40
        reward = int(generator.integers(0, steps))
        expected = np.array(scale.coordinates(weight, reward, steps)) / steps
        np.testing.assert_allclose(moment_addend(scale)(weight, -1 + 4 * reward / steps), expected, atol=1e-11)


def test_contexts_are_those_of_the_compiled_engine() -> None:
    environment = pb.Contextual(3, 10, THETA)
    stretches = list(contextual_steps._stretches(environment, 5000, SEEDS, 2))
    assert len(stretches) > 2
    np.testing.assert_array_equal(
        np.concatenate([stretch.contexts for stretch in stretches]), seen(environment, 5000, 2)
    )


def test_regret_is_exact_at_checkpoints_and_progress_is_reported() -> None:
    environment, parts = pb.Contextual(3, 10, THETA), list[float]()
    policies = [made("adac-oful-private", b, 3000) for b in (pb.zCDP(1.0), pb.NoPrivacy())]
    every, some = np.arange(1, 3001), np.array([1, 17, 2047, 2048, 2049, 3000])
    fine, _ = contextual_steps.play_run(policies, environment, 3000, every, SEEDS, 0)
    coarse = contextual_steps.regret_curves(policies, environment, 3000, 1, some, SEEDS, parts.append)
    np.testing.assert_allclose(coarse[:, 0], fine[:, some - 1], rtol=1e-12)
    assert (np.diff(fine, axis=1) >= -1e-12).all()
    assert parts == sorted(parts)
    assert len(parts) == 4
    assert parts[-1] == 1


def test_numbers_do_not_depend_on_processes_or_other_policies() -> None:
    environment, budget = pb.Contextual(3, ARMS, THETA), pb.zCDP(1.0)
    others: dict[str, Policy[Any]] = {
        "slow": SlowPrivate(3, budget, horizon=6000),
        "fast": pb.AdaCOFUL(3, budget, horizon=6000),
    }
    few: dict[str, Policy[Any]] = {"tree": SlowTree(3, budget, arms=ARMS, horizon=50)}
    alone = pb.simulate({"b": others["slow"]}, environment, 6000, runs=2, seed=2, checkpoints=[50])
    among = pb.simulate(others, environment, 6000, runs=2, seed=2, checkpoints=[50], processes=2)
    np.testing.assert_array_equal(alone.curves["b"], among.curves["slow"])
    assert len(np.unique(alone.final["b"])) == 2
    one, two = (pb.simulate(few | more, environment, 50, runs=3, seed=2) for more in ({}, others))
    np.testing.assert_array_equal(one.curves["tree"], two.curves["tree"])


def test_differences_to_the_compiled_policies_are_paired() -> None:
    """The same policy in both engines, with certain rewards and no noise, has the same regret."""
    options: dict[str, Any] = {"dimension": 3, "budget": pb.NoPrivacy(), "horizon": 2500}
    policies = {"fast": pb.AdaCOFUL(**options), "slow": SlowOFUL(**options)}
    result = pb.simulate(policies, Certain(3, ARMS, THETA, "paper"), 2500, runs=2)
    np.testing.assert_allclose(result.curves["slow"], result.curves["fast"], atol=1e-6)


def test_memory_does_not_grow_with_the_horizon() -> None:
    environment, peaks = pb.Contextual(3, 40, THETA), []
    for horizon in (1100, 4000):  # stretches are of 512 steps, and two are there at once
        tracemalloc.start()
        policy = made("adac-oful-private", pb.zCDP(1.0), horizon)
        contextual_steps.play_run([policy], environment, horizon, np.array([horizon]), SEEDS, 0)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + 50_000


@dataclass(frozen=True)
class Choosy(SlowOFUL):
    """Drops the rewards of the first action."""

    def entry_of(self, state: Any, offered: Any, played: int) -> Any:
        return None if played == 0 else super().entry_of(state, offered, played)


def test_a_policy_may_drop_rewards() -> None:
    environment = pb.Contextual(3, ARMS, THETA)
    learner = ContextualLearner(Choosy(dimension=3, budget=pb.NoPrivacy(), horizon=200), environment, SEEDS, 0)
    actions, _ = learner.play(stretch_of(environment, seen(environment, 200)), 0)
    assert 0 < learner.state.rewards + learner._arrived[0] == np.count_nonzero(actions)


@dataclass(frozen=True)
class Combining(SlowOFUL):
    """Wants several sums at once."""

    def combination(self, state: Any, key: int, arrived: Any) -> Combination | None:
        return None


@dataclass(frozen=True)
class Pure(SlowOFUL):
    """Laplace noise."""

    supported_budgets: ClassVar[tuple[str, ...]] = ("PureDP",)


def test_what_does_not_fit_is_refused() -> None:
    environment = pb.Contextual(3, ARMS, THETA)
    for policy, words in (
        (made("linpriv", pb.zCDP(1.0), arms=ARMS + 1), "is for 5 actions at every step, the environment has 4"),
        (made("shariff-sheffet", pb.zCDP(1.0), context_norm=0.5), "length 0.5 at most"),
        (Combining(dimension=3, budget=pb.zCDP(1.0)), "Combining cannot be simulated"),
        (Pure(dimension=3, budget=pb.PureDP(1.0)), "Pure cannot be simulated"),
    ):
        with pytest.raises(InvalidInput, match=words):
            pb.simulate({"p": policy}, environment, 100, 1)
