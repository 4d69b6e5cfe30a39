"""How often a confidence width really fails, by simulation with fixed seeds, beside what is promised.

The noise is simulated and protects nobody.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from private_bandits.budget import Budget
from private_bandits.environments import Contextual, Linear
from private_bandits.policies import AdaCOFUL
from private_bandits.policies.phased_elimination import PhasedElimination
from private_bandits.simulation.simulated_bandit import SimulatedBandit
from private_bandits.theory.bound_inputs import as_budget
from private_bandits.theory.widths import index_width, phase_width, planned_fit


@dataclass(frozen=True)
class Coverage:
    """In how many of the runs a width failed, and the probability that is promised for it, at most."""

    promised: float
    failures: int
    runs: int

    @property
    def rate(self) -> float:
        """The share of runs in which the width failed."""
        return self.failures / self.runs

    @property
    def most(self) -> float:
        """Failures that a width which keeps its promise has in all but one of 10^6 such measurements, at most.

        Bernstein's inequality for a sum of `runs` independent failures of probability `promised`.
        """
        odds, mean = math.log(1e6), self.runs * self.promised
        return mean + odds / 3 + math.sqrt(odds**2 / 9 + 2 * odds * mean)

    @property
    def kept(self) -> bool:
        """Whether the measurement is what a promise that is kept can give."""
        return self.failures <= self.most


def index_coverage(
    mean: float, count: int, budget: float | Budget, failure: float, runs: int = 10**5, seed: int = 0
) -> Coverage:
    """AdaC-UCB's index width (pure DP: AdaP-UCB's), on `count` Bernoulli rewards, to both sides together.

    failure: t^-beta. Promised: twice that; with Laplace noise three times.

    >>> index_coverage(0.5, 16, 0.1, failure=0.05).kept
    True
    """
    found, chance = as_budget(budget), np.random.default_rng(seed)
    width = index_width(count, 1 / failure, found, beta=1.0)
    sums = chance.binomial(count, mean, runs).astype(float)
    if found.noise == "laplace":
        sums += chance.laplace(scale=1 / found.level, size=runs)
    else:
        sums += math.sqrt(found.variance_factor) * chance.standard_normal(runs)
    failures = int((np.abs(sums / count - mean) > width).sum())
    return Coverage((3 if found.noise == "laplace" else 2) * failure, failures, runs)


def phase_coverage(
    policy: PhasedElimination, environment: Linear, phase: int = 1, runs: int = 10**4, seed: int = 0
) -> Coverage:
    """A phase of AdaC-GOPE with all actions active: whether some action's estimate is off by more than the width.

    Promised: delta/(l(l+1)), all actions together.
    """
    active, chance = range(len(policy.rows)), np.random.default_rng(seed)
    fit, counts = planned_fit(policy, phase, active)
    arms, plays = np.array(list(policy.plan(phase, active))), counts.astype(np.int64)
    sums = environment.reward_sums(chance, np.tile(arms, runs), np.tile(plays, runs)).reshape(runs, -1)
    weights = type(policy).placement(fit)
    decoder, noise_sd = fit.decoder(weights), policy.noise_sd(weights, 2.0)
    phi = sums @ fit.decoder(None).T + noise_sd * chance.standard_normal((runs, decoder.shape[1])) @ decoder.T
    off = np.abs(phi @ fit.whitened(policy.vectors).T - environment.means).max(axis=1)
    failures = int((off > phase_width(policy, phase).reached).sum())
    return Coverage(policy.delta / (phase * (phase + 1)), failures, runs)


def ellipsoid_coverage(
    policy: AdaCOFUL, environment: Contextual, steps: int, runs: int = 100, seed: int = 0
) -> Coverage:
    """AdaC-OFUL: whether theta leaves its ellipsoid at some release of a run.

    Promised: delta; of variant "paper" 2 delta, delta for the rewards and delta for the noise.
    """
    failures = sum(_leaves(policy, environment, steps, np.random.default_rng([seed, run])) for run in range(runs))
    return Coverage(policy.delta * (2 if policy.variant == "paper" else 1), failures, runs)


def _leaves(policy: AdaCOFUL, environment: Contextual, steps: int, chance: np.random.Generator) -> bool:
    bandit = SimulatedBandit(policy, *environment.reward_range, chance)
    theta, state = np.array(environment.theta), bandit.state
    for step in range(1, steps + 1):
        actions = environment.draw_actions(chance)
        offered = policy.offer(actions)
        chosen = policy.choose(state, offered, step)
        if bandit.take(offered, chosen, environment.draw_reward(chance, actions[chosen]), step):
            off = state.theta - theta
            if float(off @ state.frozen @ off) > state.width**2:
                return True
    return False
