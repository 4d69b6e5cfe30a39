"""Confidence widths, from the policies' own code: what their regret bounds stand on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from private_bandits.arrays import Floats
from private_bandits.budget import Budget
from private_bandits.policies import AdaCOFUL, AdaCUCB, AdaPUCB
from private_bandits.policies.fit import Fit
from private_bandits.policies.phased_elimination import PhasedElimination
from private_bandits.theory.bound_inputs import as_budget


def index_width(count: int, step: float, budget: float | Budget, beta: float = 3.1) -> float:
    """How far above its mean AdaC-UCB's index as published is (pure DP: AdaP-UCB's), for rewards in [0, 1].

    sqrt((1/(2n) + 2b/n^2) beta log t). The mean of n rewards with its noise exceeds the truth by that much with
    probability t^-beta at most, and falls short of it likewise (the paper's Lemma in Appendix C). AdaP-UCB:
    sqrt(beta log(t)/(2n)) + beta log(t)/(epsilon n), with probability 1.5 t^-beta.

    >>> round(index_width(100, math.e, math.inf, beta=2.0), 6)
    0.1
    """
    found = as_budget(budget)
    policy = (AdaPUCB if found.noise == "laplace" else AdaCUCB)(n_arms=1, budget=found, beta=beta, variant="paper")
    return float(policy.index(np.zeros(1), np.array([float(count)]), step, 1.0)[0])


@dataclass(frozen=True)
class PhaseWidth:
    """What a phase of AdaC-GOPE reaches as planned, for rewards in [-1, 1].

    aimed: 2^-l. reached: the policy's own, by the tail of the noise at one action. paper: that of the paper's Theorem
    on concentration under a fixed design, by the norm of the whole noise: g sqrt(2 log(4/x)) + g^2 sqrt(4 b f(d, x)),
    x = delta/(K l(l+1)) and g the largest ||a|| in V^-1. As published, actions are dropped by the larger of aimed and
    reached; the variant "tight" goes by differences of two actions instead (policies/tight_phases.py).
    """

    aimed: float
    reached: float
    paper: float


def phase_width(policy: PhasedElimination, phase: int = 1, active: Sequence[int] | None = None) -> PhaseWidth:
    """The widths of a phase with these active actions; all by default.

    Each action's estimate is off by more with probability delta/(K l(l+1)) at most.

    >>> import private_bandits as pb
    >>> found = phase_width(pb.AdaCGOPE(actions=[[1, 0], [0, 1], [0.6, 0.8]], budget=pb.zCDP(0.1), variant="paper"))
    >>> found.reached <= found.paper <= found.aimed == 0.5
    True
    """
    chosen = range(len(policy.rows)) if active is None else active
    fit, _ = planned_fit(policy, phase, chosen)
    whitened, weights = fit.whitened(policy.vectors[list(chosen)]), type(policy).placement(fit)
    noise_sd = policy.noise_sd(weights, 2.0)
    log_inv_failure = policy.log_inv_failure(phase)
    reached = policy.reached(phase, whitened, fit.decoder(weights), noise_sd, 2.0)
    largest, tail = float(np.linalg.norm(whitened, axis=1).max()), log_inv_failure - math.log(2)
    d = len(policy.rows[0])
    f = d + 2 * math.sqrt(d * tail) + 2 * tail
    paper = largest * math.sqrt(2 * log_inv_failure) + largest**2 * math.sqrt(4 * policy.budget.variance_factor * f)
    return PhaseWidth(2.0**-phase, reached, paper)


def planned_fit(policy: PhasedElimination, phase: int, active: Sequence[int]) -> tuple[Fit, Floats]:
    """Least squares for a phase as planned, and how often each action of its design is played."""
    plan = policy.plan(phase, active)
    counts = np.array(list(plan.values()), float)
    return Fit.of(policy.vectors[list(plan)], counts, policy.design(active).basis), counts


def ellipsoid_width(policy: AdaCOFUL, gram: ArrayLike, releases: int) -> float:
    """The radius of AdaC-OFUL's ellipsoid, ||theta - theta*|| in V, for rewards in [-1, 1].

    gram: V, with its lambda I. Of variant "tight" it is exceeded at some release with probability delta at most; of
    "paper" with 2 delta, delta for the rewards and delta for the noise. The paper has a third event, on the smallest
    eigenvalue of V; here that is computed.

    >>> import private_bandits as pb
    >>> policy = pb.AdaCOFUL(dimension=2, budget=pb.NoPrivacy(), regulariser=1.0, delta=math.exp(-2))
    >>> ellipsoid_width(policy, np.eye(2), releases=0)
    3.0
    """
    values = np.linalg.eigvalsh(np.asarray(gram, float))
    noise = policy.decoder.prefix_noise(releases)
    return policy.width(float(np.log(values).sum()), float(values[0]), noise, 2.0)
