"""From outside: does one reward give away more than is claimed? From many runs of two neighbouring worlds.

1. Search: many random scenarios with a few runs each; the more telling ones get more runs, until one is left.
2. Learn: on its runs, choose scores and events that tell the worlds apart.
3. Test: fresh runs, never looked at before. Wagers against the claim may end it after any pair of runs; beside them
   there are the bounds of evidence.py, shared out over everything that is measured.

These are done in rounds, of which each takes longer than the one before: what is blatant is found in the first.
An accusation is wrong with probability at most `failure`, whatever the agent is and however the search went.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from private_bandits.arrays import Floats
from private_bandits.audit.evidence import Claim
from private_bandits.audit.measures import Measure, choose, learned_scores
from private_bandits.audit.scenario import Scenario
from private_bandits.audit.scores import View
from private_bandits.audit.search import Effort, Observer, search
from private_bandits.audit.target import Target
from private_bandits.audit.wagers import Wagers
from private_bandits.audit.worlds import WorldRunner

STAGES = (0.05, 0.25, 1.0)
"""Shares of the fresh runs after which bounds are computed."""
BATCH = 32
"""Pairs of fresh runs at first; later a quarter of those that there are."""
SEARCH, LEARN = 0.35, 0.5
"""Shares of a round's time after which searching, and learning, have to end."""


@dataclass(frozen=True)
class Sighting:
    """An event, and in which share of the runs of both worlds it was seen: the secret reward at its lowest, highest."""

    words: str
    low: float
    high: float


@dataclass(frozen=True)
class OutsideEvidence:
    """What the fresh runs proved.

    bound: what the level is at least; the claimed one where the wagers alone show that it is more.
    edges, low_world, high_world: how the score was distributed in the two worlds.
    failure: half of it is for the bound, half for the wagers. log_wealth, log_curve: what the wagers against the claim
    have made of one unit at most, and those against the curve of Gaussian noise of the same rho, as logarithms.
    """

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
    sighting: Sighting
    log_wealth: float
    log_curve: float | None = None

    @property
    def log_needed(self) -> float:
        """The wealth that refutes the claim."""
        return math.log(2 / self.failure)

    @property
    def violated(self) -> bool:
        """Whether the claim is refuted."""
        return self.bound > self.claim.level * (1 + 1e-9) or self.log_wealth >= self.log_needed

    @property
    def beyond_gaussian(self) -> bool:
        """Whether more is shown than Gaussian noise of this rho would show. For zCDP that is no violation."""
        return self.log_curve is not None and self.log_curve >= math.log(1 / self.failure)


class Examination:
    """One observer's rounds."""

    def __init__(self, observer: Observer, failure: float, seed: int, rounds: int = 1) -> None:
        self._observer = observer
        self._failure = failure
        self._rounds = rounds
        self._dice = random.Random(seed)  # noqa: S311  (chooses scripts)
        claims = [observer.claim]
        if observer.claim.notion == "zCDP":
            claims.append(Claim("Gaussian DP", observer.claim.level))
        self._wagers = [Wagers(claim, rounds) for claim in claims]
        self._found: list[Scenario] = []
        self.evidence: OutsideEvidence | None = None

    @property
    def violated(self) -> bool:
        """Whether the claim is refuted."""
        return self.evidence is not None and self.evidence.violated

    def look_again(self, effort: Effort, left: Callable[[], float] = lambda: math.inf) -> OutsideEvidence:
        """Search, learn, test. left: the seconds that this round still has. Returns the strongest evidence so far."""
        whole = left()

        def until(share: float) -> float:
            return left() - (1 - share) * whole if whole < math.inf else math.inf

        self._found = search(self._observer, effort, self._dice, self._found, lambda: until(SEARCH))
        p, q = self._runs_until(effort.learn, lambda: until(LEARN))
        trial = _Trial(self._observer, p, q, effort, self._failure / 2 / self._rounds)
        for wagers in self._wagers:
            wagers.begin(trial.known)
        while not trial.over and left() > 0 and not self._refuted(trial):
            p, q = self._observer.run(self._found[0], trial.next_batch)
            fresh = trial.take(p, q)
            for wagers in self._wagers:
                wagers.play(fresh)
        found = self._evidence(trial)
        if self.evidence is None or found.violated or found.bound >= self.evidence.bound:
            self.evidence = found
        return self.evidence

    def _runs_until(self, runs: int, left: Callable[[], float]) -> tuple[list[View], list[View]]:
        """So many runs of the scenario, or fewer if there is no time: at least 80."""
        p, q = self._observer.run(self._found[0], min(80, runs))
        while len(p) < runs and left() > 0:
            more = self._observer.run(self._found[0], min(max(200, len(p) // 2), runs - len(p)))
            p, q = p + more[0], q + more[1]
        return p, q

    def _refuted(self, trial: _Trial) -> bool:
        needed = math.log(2 / self._failure)
        return self._wagers[0].best >= needed or trial.bound > self._observer.claim.level * (1 + 1e-9)

    def _evidence(self, trial: _Trial) -> OutsideEvidence:
        look, claim = self._observer.look, self._observer.claim
        p, q = trial.scores_of(trial.best)
        low, high = np.quantile(np.append(p, q), [0.001, 0.999])
        edges = np.linspace(low, high if high > low else low + 1.0, 41)
        counts = [tuple(map(int, np.histogram(x.clip(edges[0], edges[-1]), edges)[0])) for x in (p, q)]
        refuted = self._wagers[0].best >= math.log(2 / self._failure)
        return OutsideEvidence(
            "everything published" if look else "the actions only",
            max(trial.bound, claim.level) if refuted else trial.bound,
            claim,
            self._failure,
            self._found[0],
            trial.best.words,
            len(p),
            tuple(map(float, edges)),
            counts[0],
            counts[1],
            sighting=trial.sighting,
            log_wealth=self._wagers[0].best,
            log_curve=self._wagers[1].best if len(self._wagers) > 1 else None,
        )


class _Trial:
    """Fresh runs of one scenario: what is measured on them, which was chosen on earlier runs p and q."""

    def __init__(self, observer: Observer, p: list[View], q: list[View], effort: Effort, failure: float) -> None:
        half = len(p) // 2
        self._claim = observer.claim
        self._planned = effort.test
        self._failure = failure / len(STAGES)
        self._scores = learned_scores(p[:half], q[:half], observer.look)
        measures, event = choose(self._scores, p[half:], q[half:], observer.claim, effort.test, failure)
        self._measures, self._event = measures, event
        self.known = [(score(p[half:]), score(q[half:])) for _, score in self._scores]
        self._p: list[list[Floats]] = [[] for _ in self._scores]
        self._q: list[list[Floats]] = [[] for _ in self._scores]
        self._stages = [max(1, round(share * effort.test)) for share in STAGES]
        self._done = 0
        self.bound = 0.0
        self.best = measures[0]

    @property
    def over(self) -> bool:
        """Whether there were as many runs as planned."""
        return self._done >= self._planned

    @property
    def next_batch(self) -> int:
        """How many pairs of runs come next: bounds are computed after certain numbers of them, whatever they show."""
        most = min(stage for stage in self._stages if stage > self._done) - self._done
        return min(max(BATCH, self._done // 4), most)

    def take(self, p: list[View], q: list[View]) -> list[tuple[Floats, Floats]]:
        """Measure runs. Returns the values of each score in both worlds."""
        fresh = [(score(p), score(q)) for _, score in self._scores]
        for (x, y), ps, qs in zip(fresh, self._p, self._q, strict=True):
            ps.append(x)
            qs.append(y)
        self._done += len(p)
        if self._done in self._stages:
            for measure in self._measures:
                found = measure.bound(*self.scores_of(measure), self._claim, self._failure / len(self._measures))
                if found > self.bound:
                    self.bound, self.best = found, measure
        return fresh

    def scores_of(self, measure: Measure) -> tuple[Floats, Floats]:
        """The values of what is measured, in all fresh runs so far; in those before, if there are none."""
        i = next(i for i, (_, score) in enumerate(self._scores) if score is measure.score)
        return (np.concatenate(self._p[i]), np.concatenate(self._q[i])) if self._done else self.known[i]

    @property
    def sighting(self) -> Sighting:
        """The event that tells most, in fresh runs."""
        p, q = (float(np.mean(self._event.sign * (x - self._event.middle) > 0)) for x in self.scores_of(self._event))
        return Sighting(self._event.words, p, q)


def examine(
    target: Target, claim: Claim, worlds: WorldRunner, look: bool, effort: Effort, failure: float, seed: int
) -> OutsideEvidence:
    """One round: search, learn, test."""
    return Examination(Observer(target, claim, worlds, look), failure, seed).look_again(effort)
