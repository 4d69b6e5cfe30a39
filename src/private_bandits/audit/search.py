"""Finds the scenario in which one reward shows most: many with a few runs each, then more runs of the better ones."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from private_bandits.audit.evidence import Claim
from private_bandits.audit.measures import candidates, learned_scores
from private_bandits.audit.scenario import (
    Scenario,
    changed,
    on_the_scale,
    plain_scenarios,
    prolonged,
    random_scenario,
    staged_scenarios,
    with_more,
)
from private_bandits.audit.scores import View
from private_bandits.audit.target import Target
from private_bandits.audit.worlds import WorldRunner

STEPS = 3
"""Times that the better scenarios are chosen."""
KEPT = 3
"""Scenarios that another search begins with."""


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
        pilot = int(min(200, max(6, runs / 3 / (STEPS * scenarios))))
        learn, test = min(15_000, max(80, runs / 6)), min(80_000, max(200, runs / 2))
        return cls(scenarios, pilot, int(learn), int(test), longest)


@dataclass(frozen=True)
class Observer:
    """Somebody who watches agents, and what they claim. look: sees everything published, not only actions."""

    target: Target
    claim: Claim
    worlds: WorldRunner
    look: bool

    def run(self, scenario: Scenario, runs: int) -> tuple[list[View], list[View]]:
        """Return the views of so many runs of each world."""
        return self.worlds.run(scenario, runs, self.look)


def search(
    observer: Observer,
    effort: Effort,
    dice: random.Random,
    begin: Sequence[Scenario] = (),
    left: Callable[[], float] = lambda: math.inf,
) -> list[Scenario]:
    """Successive halving: plain and random scenarios first, then the better ones beside changes of them.

    begin: scenarios that an earlier search found, which are tried again. left: the seconds that there still are.
    Returns the best few, the best one first.
    """
    tried = list(begin)
    for scenario in _first_scenarios(observer, effort, dice):
        tried.append(scenario)
        if left() <= 0:
            break
    seen: dict[Scenario, tuple[list[View], list[View]]] = {}
    runs, ranked = effort.pilot, [(0.0, tried[0])]
    for _ in range(STEPS):
        rated: list[tuple[float, Scenario]] = []
        for scenario in tried:
            if rated and left() <= 0:
                break
            p, q = observer.run(scenario, runs)
            before = seen.get(scenario, ([], []))
            seen[scenario] = p, q = before[0] + p, before[1] + q
            # A restart takes as long as ten runs without: it has to promise more than they do.
            rated.append((promise_of(p, q, observer) / (2 if scenario.restart else 1), scenario))
        ranked = sorted(rated, key=lambda item: -item[0])
        best = [scenario for _, scenario in ranked[: max(1, len(ranked) // 8)]]
        tried = list(dict.fromkeys([*best, *(changed(s, dice, effort.longest) for s in best for _ in range(3))]))
        runs *= 2
        if left() <= 0:
            break
    return [scenario for _, scenario in ranked[:KEPT]]


def _first_scenarios(observer: Observer, effort: Effort, dice: random.Random) -> Iterator[Scenario]:
    """A third of them are plain, a third balanced, a third random."""
    target, share = observer.target, effort.scenarios // 3
    plain = plain_scenarios(target.arms, effort.longest)
    dice.shuffle(plain)
    for i, scenario in enumerate(plain[:share]):
        yield with_more(scenario, dice, target, i)
    stages = staged_scenarios(dice, target.arms, target.may_play, effort.longest)
    few = max(2, effort.pilot // 10)
    for i, (staged, own) in enumerate(islice(stages, share)):
        finished = replace(staged, finish=target.finishes and i % 3 == 2)
        if staged.played and i % 2 and not finished.finish:
            ended = _balanced(observer, _ended(staged), own, few)
            yield _balanced_again(observer, prolonged(ended, dice), own, few)
        else:
            yield _balanced(observer, finished, own, few)
    for i in range(min(len(plain), share) + share, effort.scenarios):
        yield with_more(random_scenario(dice, target.arms, target.may_play, effort.longest), dice, target, i)


def _ended(scenario: Scenario) -> Scenario:
    """The scenario up to the last play, which is the secret."""
    last = max(i for i, arm in enumerate(scenario.played) if arm == scenario.played[scenario.secret])
    return replace(scenario, steps=last + 1, secret=last, played=scenario.played[: last + 1])


def _balanced(observer: Observer, scenario: Scenario, own: int, runs: int) -> Scenario:
    """With rewards at which the agent is undecided in the end: there a little more or less shows."""
    return _tuned(observer, lambda weight: on_the_scale(scenario, own, 2 - 2 * weight), own, runs)


def _balanced_again(observer: Observer, scenario: Scenario, own: int, runs: int) -> Scenario:
    """With rewards after the secret at which the agent is undecided once more: what is held again shows again."""
    return _tuned(observer, lambda weight: replace(scenario, after=weight), own, runs)


def _tuned(observer: Observer, at: Callable[[float], Scenario], own: int, runs: int) -> Scenario:
    """Tune a weight in [0, 1] until the arm `own`, which larger weights favour, is chosen every other time."""
    low, high = 0.0, 1.0
    for _ in range(7):
        middle = (low + high) / 2
        seen = [view for world in observer.worlds.run(at(middle), runs, False) for view in world]
        chosen = sum(observer.target.place(actions[-1]) == own for actions, _ in seen)
        low, high = (low, middle) if 2 * chosen > len(seen) else (middle, high)
    return at((low + high) / 2)


def promise_of(p: list[View], q: list[View], observer: Observer) -> float:
    """How telling a scenario is, as far as these runs tell: learned on one half, measured on the other."""
    half = len(p) // 2
    best = [0.0, 0.0]
    for i, (a, b, c, d) in enumerate(
        ((p[:half], q[:half], p[half:], q[half:]), (p[half:], q[half:], p[:half], q[:half]))
    ):
        for words, score in learned_scores(a, b, observer.look):
            x, y = score(c), score(d)
            # The rho of a Gaussian shift of the same size, or what an event proves with no great confidence.
            spread, shift = float((x.var() + y.var()) / 2), float(x.mean() - y.mean())
            found = [shift * abs(shift) / (2 * spread)] if spread else []
            found += [
                t.bound(x, y, observer.claim, 0.2) for t in candidates(score, x, y, observer.claim, words) if t.event
            ]
            best[i] = max(best[i], *found)
    return sum(best)
