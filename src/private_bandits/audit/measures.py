"""What might tell two worlds apart: scores of runs, events in them, and the bounds that both prove."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from private_bandits.arrays import Floats
from private_bandits.audit.evidence import SCORE_ORDERS, Claim, clopper_pearson, rho_of_score
from private_bandits.audit.scores import Score, View, by_discriminant, by_prefix

CAPS = (0.25, 0.5, 1.0, 2.0, 3.0)
QUANTILES = (0.005, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 0.98, 0.995)
MEASURES = 4
"""What bounds are computed of on fresh runs: the most promising of everything that was tried."""


@dataclass(frozen=True)
class Measure:
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


def learned_scores(p: list[View], q: list[View], look: bool) -> list[tuple[str, Score]]:
    """Scores that are larger in the first world, in these runs, each with what it is in words."""
    found = [
        ("how often such a sequence of actions was seen in the two worlds", by_prefix(p, q)),
        ("a weighted count of the actions", by_discriminant(p, q, numbers=False)),
    ]
    if look:
        found.append(("a weighted sum of all numbers shown", by_discriminant(p, q, numbers=True)))
    return found


def choose(
    scores: list[tuple[str, Score]], p: list[View], q: list[View], claim: Claim, planned: int, failure: float
) -> tuple[list[Measure], Measure]:
    """Rate what might be measured as if these runs were as many as planned. Returns the best few and the best event."""
    rated: list[tuple[float, int, Measure]] = []
    for words, score in scores:
        x, y = score(p), score(q)
        for test in candidates(score, x, y, claim, words):
            rated.append((test.bound(x, y, claim, failure, planned), len(rated), test))
    rated.sort(key=lambda item: (-item[0], item[1]))
    return [test for _, _, test in rated[:MEASURES]], next(test for _, _, test in rated if test.event)


def candidates(score: Score, x: Floats, y: Floats, claim: Claim, words: str) -> list[Measure]:
    """Everything that might be measured of one score."""
    found = []
    for middle in sorted({float(t) for t in np.quantile(np.concatenate([x, y]), QUANTILES)}):
        found.append(Measure(score, f"{words} was above {middle:.4g}", 1, middle, event=True))
        found.append(Measure(score, f"{words} was below {middle:.4g}", -1, middle, event=True))
    variance, shift = float((x.var() + y.var()) / 2), float(x.mean() - y.mean())
    if claim.symbol == "rho" and variance > 0:
        # For a Gaussian shift the log ratio of the worlds is this multiple of the score.
        factor, middle = shift / variance, float(x.mean() + y.mean()) / 2
        for sign, cap, alpha, stretch in product((1, -1), CAPS, SCORE_ORDERS, (0.5, 1.0, 1.5)):
            text = f"the mean of {words}, at Renyi order {alpha:g}"
            found.append(Measure(score, text, sign, middle, False, alpha, factor * stretch, cap))
    return found
