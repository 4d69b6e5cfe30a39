"""White specimens that keep their promise."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from typing import Any

import private_bandits as pb
from private_bandits.agent import bandit_of
from private_bandits.ledger import Release
from private_bandits.policies.doubling import DoublingState
from tests.audit.specimens.listing import StrPath, correct
from tests.audit.specimens.white_parts import small_policy


@correct()
def make_white_plain(path: StrPath | None = None, seed: int | None = None) -> pb.Agent:
    """Correct: the package's own AdaC-UCB with two arms."""
    return pb.Agent(small_policy(), path=path, seed=seed)


@correct(rho=0.1)
def make_white_small_budget(path: StrPath | None = None, seed: int | None = None) -> pb.Agent:
    """Correct: the package's own AdaC-UCB with four arms and rho = 0.1."""
    return pb.Agent(small_policy(0.1, arms=4), path=path, seed=seed)


@correct()
def make_white_pure(path: StrPath | None = None, seed: int | None = None) -> pb.Agent:
    """Correct: AdaP-UCB with Laplace noise, epsilon = 1, which implies rho = 0.5."""
    return pb.Agent(pb.AdaPUCB(n_arms=2, budget=pb.PureDP(1.0), beta=1), path=path, seed=seed)


class _Sampling(pb.AdaCUCB):
    """Adds randomness of its own to released means at every look."""

    def recommend(self, state: DoublingState, waiting: Any, arrived: Any, step: int) -> int:
        if state.choice is None or state.unseen:
            return super().recommend(state, waiting, arrived, step)
        released = zip(state.means, state.noise_sd, state.last, strict=True)
        drawn = [random.gauss(mean, sd + 0.5 / math.sqrt(n)) for mean, sd, n in released]
        return drawn.index(max(drawn))


@correct()
def make_white_thompson_on_releases() -> pb.Agent:
    """Correct: every ask draws anew around the released means, which is post-processing of releases."""
    return pb.Agent(small_policy(kind=_Sampling))


class _Weighted(pb.AdaCUCB):
    """Sums each reward with weight three; the sensitivity, and so the noise, is three times as large."""

    def entry(self, state: DoublingState, action: int) -> tuple[int, tuple[int, ...]]:
        return action, (3,)

    def learn(self, state: DoublingState, release: Release, step: int) -> None:
        super().learn(state, replace(release, values=(release.values[0] / 3,), noise_sd=release.noise_sd / 3), step)


@correct(rho=1.0)
def make_white_weight_three() -> pb.Agent:
    """Correct: rewards enter with weight three, and the noise is calibrated to that."""
    return pb.Agent(small_policy(1.0, kind=_Weighted))


class _AnyoneAgent(pb.Agent):
    """Takes an ask without a person as that of a new one."""

    def ask(self, n: Any = None, *, actions: Any = None, person: str | None = None) -> Any:
        return super().ask(n, actions=actions, person=person or f"somebody {bandit_of(self).public.asked}")


@correct()
def make_white_person(path: StrPath | None = None) -> pb.Agent:
    """Correct: two rewards a person at most, and rho = 0.5 for both of them together (0.125 for one)."""
    return _AnyoneAgent(small_policy(), max_rewards_per_person=2, unit="person", path=path)
