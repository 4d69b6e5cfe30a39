"""Late and missing rewards, all runs at once: against agents that are asked and told one decision at a time."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest

import private_bandits as pb
from private_bandits.arrays import Floats, Integers
from private_bandits.budget import Budget
from private_bandits.errors import InvalidInput
from private_bandits.policies.evidence import Evidence, beats
from private_bandits.simulation import late, late_steps
from private_bandits.simulation.arrivals import Arrivals, TrialWorld
from private_bandits.simulation.engines import LATE, LATE_SERVED, LATE_TOGETHER, engine_for
from private_bandits.simulation.late import LateRuns
from private_bandits.simulation.trial_runs import Course, trials
from private_bandits.simulation.verdicts import surely_too_little
from tests.simulation.test_finite import Certain, same_distribution


class Scripted(Arrivals):
    """The same delays and losses, whoever asks."""

    def __init__(self, delay: Any, missing: float, seed: int) -> None:
        given = Arrivals.of(delay, missing)
        object.__setattr__(self, "delay", given.delay)
        object.__setattr__(self, "missing", given.missing)
        object.__setattr__(self, "script", Arrivals.arrays(given, np.random.default_rng(seed), 4000))
        self.restart()

    def restart(self) -> None:
        """Begin anew."""
        object.__setattr__(self, "told", 0)

    def arrays(self, generator: np.random.Generator, size: int) -> Any:
        """The next ones."""
        first: int = self.__dict__["told"]
        object.__setattr__(self, "told", first + size)
        return tuple(part[first : first + size] for part in self.__dict__["script"])


def policies(arms: int, budget: Budget) -> list[Any]:
    """Every policy of the engine."""
    return [
        pb.AdaCIMED(arms, budget),
        pb.AdaCTopTwo(arms, budget, delta=0.1),
        pb.AdaCHalving(arms, budget, rewards=200),
        pb.AdaCUCB(arms, budget, beta=1),
    ]


def actions(policy: Any, environment: Any, arrivals: Arrivals, horizon: int) -> Integers:
    """The actions of one run by the engine."""
    world, generators = TrialWorld(environment, arrivals), [np.random.default_rng(0)]
    return np.array([action[0] for action in LateRuns([policy], world, horizon, 1, generators).play(horizon)])


DELAYS = [(0, 0.3), (1, 0.0), (40, 0.2), (1000, 0.0), ("geometric:3", 0.6), ("geometric:50", 0.1)]


@pytest.mark.parametrize(("delay", "missing"), DELAYS)
@pytest.mark.parametrize("which", range(4))
@pytest.mark.parametrize("values", [(0.75, 0.625, 0.5, 0.375, 0.25), (0.125, 0.875), (0.25,)])
def test_same_actions_as_agents_on_certain_rewards_without_noise(
    values: tuple[float, ...], which: int, delay: Any, missing: float
) -> None:
    policy, arrivals = policies(len(values), pb.NoPrivacy())[which], Scripted(delay, missing, seed=which)
    expected = late_steps.play_run(policy, Certain(values), arrivals, 500, np.random.default_rng(0))
    arrivals.restart()
    np.testing.assert_array_equal(actions(policy, Certain(values), arrivals, 500), expected)


@pytest.mark.parametrize(("delay", "missing"), [(25, 0.2), ("geometric:15", 0.3)])
@pytest.mark.parametrize("which", range(4))
def test_same_distribution_as_agents(which: int, delay: Any, missing: float) -> None:
    """Regret, and when the first verdict falls."""
    policy, environment = policies(2, pb.zCDP(1.0))[which], pb.Bernoulli([0.2, 0.9])
    world, horizon = TrialWorld(environment, Arrivals.of(delay, missing), 0.2), 160
    slow, fast = (
        engine.regret_curves([policy], world, horizon, runs, np.array([horizon]), [np.random.default_rng(5)], print)[0]
        for engine, runs in ((late_steps, 40), (late, 1500))
    )
    assert same_distribution(slow[:, 0], fast[:, 0])
    assert same_distribution(*(np.nan_to_num(part[:, 1], nan=horizon + 1.0) for part in (slow, fast)))


@pytest.mark.full
@pytest.mark.parametrize(("delay", "missing"), [(0, 0.4), (100, 0.2), ("geometric:60", 0.2)])
@pytest.mark.parametrize("which", range(4))
def test_same_distribution_as_agents_at_length(which: int, delay: Any, missing: float) -> None:
    policy, environment = policies(4, pb.zCDP(0.2))[which], pb.Bernoulli([0.3, 0.5, 0.8, 0.6])
    world, horizon = TrialWorld(environment, Arrivals.of(delay, missing), 0.2), 1000
    slow, fast = (
        engine.regret_curves([policy], world, horizon, runs, np.array([horizon]), [np.random.default_rng(6)], print)[0]
        for engine, runs in ((late_steps, 150), (late, 5000))
    )
    assert same_distribution(slow[:, 0], fast[:, 0])
    assert same_distribution(*(np.nan_to_num(part[:, 1], nan=horizon + 1.0) for part in (slow, fast)))


def test_a_copy_goes_on_by_itself_and_rows_can_be_left_out() -> None:
    world = TrialWorld(pb.Bernoulli([0.2, 0.9, 0.5]), Arrivals.of("geometric:20", 0.2), 0.1)

    def made() -> LateRuns:
        made_of = [pb.AdaCTopTwo(3, pb.zCDP(0.5), delta=0.1), pb.AdaCTopTwo(3, pb.NoPrivacy(), delta=0.1)]
        return LateRuns(made_of, world, 300, 10, [np.random.default_rng(seed) for seed in (1, 2)], told_until=np.inf)

    plain, copied = made(), made()
    for state in (plain, copied):
        list(state.play(150))
    other = copied.copy()
    for told in other.due.outstanding():
        other.tell(told)
    assert (other.choices.ahead == other.choices.arrived).all()  # nothing is open any more
    assert (copied.choices.ahead > copied.choices.arrived).any()
    np.testing.assert_array_equal(list(plain.play(300)), list(copied.play(300)))
    left = made()
    list(left.play(150))
    left.keep(np.array([3, 7, 15]))
    assert (left.sizes, left.run.tolist()) == ([2, 1], [3, 7, 15])
    assert np.array(list(left.play(300))).shape == (150, 3)
    assert (left.choices.ahead >= left.choices.arrived).all()


def test_what_is_surely_too_little_beats_nobody() -> None:
    generator = np.random.default_rng(7)

    def arms(centre: float) -> Evidence:
        size = 20_000
        mean = centre + 0.2 * generator.standard_normal(size)
        rewards = np.where(generator.random(size) < 0.1, np.inf, 10 ** generator.uniform(0, 4, size))
        noise = 10 ** generator.uniform(-6, 0, size) * (generator.random(size) < 0.8)
        noise = np.where(np.isinf(rewards), np.maximum(noise, 1e-4), noise)
        mean = np.where(noise > 0, mean, mean.clip(0, 1))
        nothing: Floats = np.zeros(size)
        return Evidence(mean, nothing, rewards, noise, nothing + 6.0, nothing, nothing, nothing + 1.0)

    one, other = arms(0.6), arms(0.4)
    too_little, beaten = surely_too_little(one, other, np.full(20_000, 40.0)), beats(one, other, 40.0)
    assert not (too_little & beaten).any()
    assert beaten.sum() > 500
    assert (too_little | beaten).mean() > 0.95  # so that little is left to be searched


MIXES: dict[str, tuple[dict[str, Any], int]] = {
    "late": ({"delay": 7, "missing": 0.2, "verdict": 0.2}, 80),
    "prompt": ({"verdict": 0.2}, 400),
    "no verdicts": ({}, 400),
}


@pytest.mark.parametrize("way", MIXES)
def test_every_pair_of_policies_has_the_numbers_that_each_has_alone(way: str) -> None:
    given, horizon = MIXES[way]
    world = pb.Bernoulli([0.3, 0.85, 0.5])
    made = {policy.name: policy for policy in policies(3, pb.zCDP(1.0))}
    if way != "late":
        made["other index"] = pb.AdaPUCB(3, pb.PureDP(1.0))  # late rewards: an agent plays it, which takes long

    def played(*names: str) -> pb.Simulation:
        chosen = {name: made[name] for name in names}
        return pb.simulate(chosen, world, horizon, runs=6, seed=3, progress=False, **given)

    def check(*names: str) -> None:
        together = played(*names)
        assert list(together.curves) == list(names)
        for name in names:
            np.testing.assert_array_equal(together.curves[name], alone[name].curves[name])
            if together.verdicts:
                ours, theirs = together.verdicts[name], alone[name].verdicts[name]
                np.testing.assert_array_equal(ours.winners, theirs.winners)
                np.testing.assert_array_equal(ours.decisions, theirs.decisions)

    alone = {name: played(name) for name in made}
    for pair in permutations(made, 2):
        check(*pair)
    for name, policy in {
        "own budget": pb.AdaCTopTwo(3, pb.zCDP(0.3), delta=0.05),
        "other rewards": pb.AdaCHalving(3, pb.zCDP(1.0), rewards=90),
    }.items():
        made[name] = policy
        alone[name] = played(name)
    check(*made)
    check(*reversed(made))


@pytest.mark.parametrize("arrivals", [Arrivals.of(3, 0), Arrivals.of(0, 0)])
def test_runs_of_one_class_refuse_a_mix(arrivals: Arrivals) -> None:
    mix, world = policies(2, pb.zCDP(1))[:2], pb.Bernoulli([0.5, 0.4])
    with pytest.raises(InvalidInput, match="one class of policies, got AdaCIMED, AdaCTopTwo"):
        trials(mix, world, arrivals, Course(0.1, 10, 20, 0.9, 2), 2, seed=0)
    with pytest.raises(InvalidInput, match="one class of policies"):
        LateRuns(mix, TrialWorld(world, arrivals), 10, 2, [np.random.default_rng(0)] * 2)


def test_engines() -> None:
    world = TrialWorld(pb.Bernoulli([0.5, 0.4]), Arrivals.of(3, 0))

    class Own(pb.AdaCIMED):
        """Might choose in another way."""

    served = policies(2, pb.zCDP(1))
    assert {type(policy) for policy in served} == set(LATE_SERVED) == set(late.CHOICES)
    assert {engine_for(policy, world) for policy in served} == {LATE_TOGETHER}
    assert engine_for(Own(2, pb.zCDP(1)), world) is LATE
    assert engine_for(pb.DPKLUCB(2, pb.PureDP(1)), world) is LATE
