"""From outside: a lower bound on what one reward gives away, from many runs of two neighbouring worlds.

1. Search: many random scenarios with a few runs each; the more telling ones get more runs, until one is left.
2. Learn: on its runs, choose scores and events that tell the worlds apart.
3. Test: fresh runs, never looked at before; the bounds of evidence.py, shared out over everything that is tested.

An accusation is wrong with probability at most `failure`, whatever the agent is and however the search went.
"""

from __future__ import annotations

import pickle
import random
import secrets
import sys
from collections.abc import Callable
from concurrent.futures import Executor, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import redirect_stdout
from dataclasses import dataclass
from itertools import islice, product
from multiprocessing import get_context

import numpy as np

from private_bandits.arrays import Floats
from private_bandits.audit.evidence import SCORE_ORDERS, Claim, clopper_pearson, rho_of_score
from private_bandits.audit.scenario import (
    Scenario,
    changed,
    on_the_scale,
    plain_scenarios,
    play,
    random_scenario,
    staged_scenarios,
    with_more,
)
from private_bandits.audit.scores import Score, View, by_discriminant, by_prefix
from private_bandits.audit.target import Target
from private_bandits.errors import InvalidInput

CAPS = (0.25, 0.5, 1.0, 2.0, 3.0)
QUANTILES = (0.005, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 0.98, 0.995)
TESTS = 4
"""What is tested on fresh runs: the most promising of everything that was tried."""
ROUNDS = 3
STAGES = (0.05, 0.25, 1.0)
"""Shares of the fresh runs after which an agent may be accused already."""


@dataclass(frozen=True)
class Effort:
    """How much is spent. scenarios: tried at first. pilot: runs of each per world. learn, test: runs per world."""

    scenarios: int = 48
    pilot: int = 100
    learn: int = 4_000
    test: int = 20_000
    longest: int = 32

    @classmethod
    def for_time(cls, seconds: float, run: float, arms: int) -> Effort:
        """What fits into the time, where a run of both worlds takes `run` seconds: a third each to search and learn."""
        # Some agents learn only now and then: where it costs little, wait for them.
        longest = max(3 * arms, 100 if run < 1e-3 else 48 if run < 4e-3 else 32 if run < 1e-2 else 16)
        runs = seconds / (run * max(1.0, longest / 50))
        scenarios = int(min(120, max(4, runs / 3 / 300)))
        pilot = int(min(200, max(6, runs / 3 / (ROUNDS * scenarios))))
        learn, test = min(15_000, max(80, runs / 6)), min(80_000, max(200, runs / 2))
        return cls(scenarios, pilot, int(learn), int(test), longest)


@dataclass(frozen=True)
class Test:
    """Something to measure in fresh runs: the event "score above the middle", or the score itself at a Renyi order.

    sign: -1 turns the score and the roles of the two worlds around.
    """

    score: Score
    words: str
    sign: int
    middle: float
    event: bool
    alpha: float = 1.0
    factor: float = 1.0
    cap: float = 1.0

    def bound(self, p: Floats, q: Floats, claim: Claim, failure: float, runs: int | None = None) -> float:
        """The lower bound on the claimed level that these scores prove, as if there had been `runs` of each."""
        p, q = (self.sign * (x - self.middle) for x in ((p, q) if self.sign > 0 else (q, p)))
        if not self.event:
            p, q = ((self.factor * x).clip(-self.cap, self.cap) for x in (p, q))
            return rho_of_score(p, q, self.alpha, self.cap, failure, runs)
        hits_p, hits_q = int((p > 0).sum()), int((q > 0).sum())
        n, m = len(p), len(q)
        if runs is not None:
            hits_p, hits_q, n, m = round(hits_p * runs / n), round(hits_q * runs / m), runs, runs
        low, high = clopper_pearson(hits_p, n, failure / 2)[0], clopper_pearson(hits_q, m, failure / 2)[1]
        return claim.of_event(low, high) if low > high else 0.0


@dataclass(frozen=True)
class OutsideEvidence:
    """What the fresh runs proved. histogram: how the score was distributed in the two worlds."""

    sees: str
    bound: float
    claim: Claim
    failure: float
    scenario: Scenario
    words: str
    runs: int
    edges: tuple[float, ...]
    low_world: tuple[int, ...]
    high_world: tuple[int, ...]

    @property
    def violated(self) -> bool:
        """Whether the claim is refuted."""
        return self.bound > self.claim.level * (1 + 1e-9)


class WorldRunner:
    """Runs both worlds, in random order, so that nothing but the secret tells them apart: no drift, no process.

    processes: where two processes would repeat each other's runs, because the agent's generator starts from a fixed
    seed in each, one does all the work: repeated runs are not independent.
    """

    def __init__(self, target: Target, processes: int) -> None:
        self._target = target
        self._pools: list[Executor] = []
        if processes > 1 and _travels(target):
            self._pools = [ProcessPoolExecutor(1, get_context("spawn")) for _ in range(processes)]
            probe = Scenario(12, 0, (0.5,) * target.arms)
            seen = [pool.submit(_play_many, target, probe, [0.0] * 8, False) for pool in self._pools]
            try:
                repeated = len({repr(future.result()) for future in seen}) < processes
            except BrokenProcessPool:
                self.close()
                raise InvalidInput(
                    "a second process could not be started: in a script, put the call under "
                    "`if __name__ == '__main__':`, or give processes=1"
                ) from None
            if repeated:
                self.close()

    @property
    def processes(self) -> int:
        """How many share the work."""
        return max(1, len(self._pools))

    def run(self, scenario: Scenario, runs: int, look: bool) -> tuple[list[View], list[View]]:
        """`runs` runs of each world."""
        order = [0.0, 1.0] * runs
        secrets.SystemRandom().shuffle(order)
        share = -(-len(order) // self.processes)
        pieces = [order[i : i + share] for i in range(0, len(order), share)]
        if self._pools:
            futures = [
                pool.submit(_play_many, self._target, scenario, piece, look)
                for pool, piece in zip(self._pools, pieces, strict=False)
            ]
            views = [view for future in futures for view in future.result()]
        else:
            views = _play_many(self._target, scenario, order, look)
        low, high = ([v for v, secret in zip(views, order, strict=True) if secret == world] for world in (0.0, 1.0))
        return low, high

    def close(self) -> None:
        """End the processes."""
        for pool in self._pools:
            pool.shutdown(cancel_futures=True)
        self._pools = []


def _travels(target: Target) -> bool:
    """Whether another process can be given it: not where a function in a function makes the agents."""
    try:
        pickle.dumps(target)
    except (pickle.PicklingError, AttributeError, TypeError):
        return False
    return True


def _play_many(target: Target, scenario: Scenario, order: list[float], look: bool) -> list[View]:
    with redirect_stdout(sys.stderr):  # an agent that prints must not write into the report
        return [play(target, scenario, secret, look) for secret in order]


def examine(
    target: Target,
    claim: Claim,
    worlds: WorldRunner,
    look: bool,
    effort: Effort,
    failure: float,
    seed: int,
    advance: Callable[[float], None] = lambda share: None,
) -> OutsideEvidence:
    """Search, learn, test."""
    dice = random.Random(seed)  # noqa: S311  (chooses scripts)
    scenario = search(target, claim, worlds, look, effort, dice, advance)
    p, q = worlds.run(scenario, effort.learn, look)
    advance(0.5)
    tests = _choose(p, q, claim, look, effort.test, failure / TESTS / len(STAGES))
    best: tuple[float, Test] = (-1.0, tests[0])
    p_scores: list[list[Floats]] = [[] for _ in tests]
    q_scores: list[list[Floats]] = [[] for _ in tests]
    done = 0
    for share in STAGES:
        p, q = worlds.run(scenario, round(effort.test * share) - done, look)
        done += len(p)
        for test, ps, qs in zip(tests, p_scores, q_scores, strict=True):
            ps.append(test.score(p))
            qs.append(test.score(q))
            found = test.bound(np.concatenate(ps), np.concatenate(qs), claim, failure / len(tests) / len(STAGES))
            best = max(best, (found, test), key=lambda pair: pair[0])
        advance(0.5 + share / 2)
        if best[0] > claim.level * (1 + 1e-9):
            break
    i = tests.index(best[1])
    return _outcome(best, np.concatenate(p_scores[i]), np.concatenate(q_scores[i]), claim, failure, scenario, look)


def _outcome(
    best: tuple[float, Test], p: Floats, q: Floats, claim: Claim, failure: float, scenario: Scenario, look: bool
) -> OutsideEvidence:
    both = np.concatenate([p, q])
    low, high = np.quantile(both, [0.001, 0.999])
    edges = np.linspace(low, high if high > low else low + 1.0, 41)
    counts = [np.histogram(x.clip(edges[0], edges[-1]), edges)[0] for x in (p, q)]
    return OutsideEvidence(
        "everything published" if look else "the actions only",
        best[0],
        claim,
        failure,
        scenario,
        best[1].words,
        len(p),
        tuple(map(float, edges)),
        *(tuple(map(int, c)) for c in counts),
    )


def search(
    target: Target,
    claim: Claim,
    worlds: WorldRunner,
    look: bool,
    effort: Effort,
    dice: random.Random,
    advance: Callable[[float], None],
) -> Scenario:
    """Successive halving: plain and random scenarios first, then the better ones beside changes of them."""
    left = plain_scenarios(target.arms, effort.longest)
    dice.shuffle(left)
    left = [with_more(plain, dice, target, i) for i, plain in enumerate(left[: effort.scenarios // 3])]
    stages = staged_scenarios(dice, target.arms, target.may_play, effort.longest)
    for staged, own in islice(stages, effort.scenarios // 3):
        left.append(_balanced(target, worlds, staged, own, max(2, effort.pilot // 10)))
    while len(left) < effort.scenarios:
        drawn = random_scenario(dice, target.arms, target.may_play, effort.longest)
        left.append(with_more(drawn, dice, target, len(left)))
    seen: dict[Scenario, tuple[list[View], list[View]]] = {}
    runs = effort.pilot
    for step in range(ROUNDS):
        ranked = []
        for i, scenario in enumerate(left):
            p, q = worlds.run(scenario, runs, look)
            before = seen.get(scenario, ([], []))
            seen[scenario] = p, q = before[0] + p, before[1] + q
            # A restart takes as long as ten runs without: it has to promise more than they do.
            ranked.append((_promise(p, q, claim, look) / (2 if scenario.restart else 1), scenario))
            advance(0.4 * (step + (i + 1) / len(left)) / ROUNDS)
        ranked.sort(key=lambda item: -item[0])
        best = [scenario for _, scenario in ranked[: max(1, len(ranked) // 8)]]
        left = list(dict.fromkeys([*best, *(changed(s, dice, effort.longest) for s in best for _ in range(3))]))
        runs *= 2
    return best[0]


def _balanced(target: Target, worlds: WorldRunner, scenario: Scenario, own: int, runs: int) -> Scenario:
    """With rewards at which the agent is undecided in the end: there a little more or less shows."""
    low, high = 0.0, 2.0
    for _ in range(7):
        middle = (low + high) / 2
        seen = [view for world in worlds.run(on_the_scale(scenario, own, middle), runs, False) for view in world]
        chosen = sum(target.place(actions[-1]) == own for actions, _ in seen)
        low, high = (middle, high) if 2 * chosen > len(seen) else (low, middle)
    return on_the_scale(scenario, own, (low + high) / 2)


def _promise(p: list[View], q: list[View], claim: Claim, look: bool) -> float:
    """How telling a scenario is, as far as these runs tell: learned on one half, measured on the other."""
    half = len(p) // 2
    best = [0.0, 0.0]
    for i, (a, b, c, d) in enumerate(
        ((p[:half], q[:half], p[half:], q[half:]), (p[half:], q[half:], p[:half], q[:half]))
    ):
        for words, score in _scores(a, b, look):
            x, y = score(c), score(d)
            # The rho of a Gaussian shift of the same size, or what an event proves with no great confidence.
            spread, shift = float((x.var() + y.var()) / 2), float(x.mean() - y.mean())
            found = [shift * abs(shift) / (2 * spread)] if spread else []
            found += [t.bound(x, y, claim, 0.2) for t in _candidates(score, x, y, claim, words) if t.event]
            best[i] = max(best[i], *found)
    return sum(best)


def _scores(p: list[View], q: list[View], look: bool) -> list[tuple[str, Score]]:
    found = [
        ("how often such a sequence of actions was seen in the two worlds", by_prefix(p, q)),
        ("a weighted count of the actions", by_discriminant(p, q, numbers=False)),
    ]
    if look:
        found.append(("a weighted sum of all numbers shown", by_discriminant(p, q, numbers=True)))
    return found


def _choose(p: list[View], q: list[View], claim: Claim, look: bool, planned: int, failure: float) -> list[Test]:
    """Learn on one half, rate on the other as if it had the planned size; the best few are tested."""
    half = len(p) // 2
    rated: list[tuple[float, int, Test]] = []
    for words, score in _scores(p[:half], q[:half], look):
        x, y = score(p[half:]), score(q[half:])
        for test in _candidates(score, x, y, claim, words):
            rated.append((test.bound(x, y, claim, failure, planned), len(rated), test))
    rated.sort(key=lambda item: (-item[0], item[1]))
    return [test for _, _, test in rated[:TESTS]]


def _candidates(score: Score, x: Floats, y: Floats, claim: Claim, words: str) -> list[Test]:
    found = []
    for middle in sorted({float(t) for t in np.quantile(np.concatenate([x, y]), QUANTILES)}):
        found.append(Test(score, f"the event that {words} is above {middle:.4g}", 1, middle, event=True))
        found.append(Test(score, f"the event that {words} is below {middle:.4g}", -1, middle, event=True))
    variance, shift = float((x.var() + y.var()) / 2), float(x.mean() - y.mean())
    if claim.notion == "zCDP" and variance > 0:
        # For a Gaussian shift the log ratio of the worlds is this multiple of the score.
        factor, middle = shift / variance, float(x.mean() + y.mean()) / 2
        for sign, cap, alpha, stretch in product((1, -1), CAPS, SCORE_ORDERS, (0.5, 1.0, 1.5)):
            text = f"the mean of {words}, at Renyi order {alpha:g}"
            found.append(Test(score, text, sign, middle, False, alpha, factor * stretch, cap))
    return found
