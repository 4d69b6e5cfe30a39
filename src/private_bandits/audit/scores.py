"""Scores that tell two worlds apart, learned from samples: the attacker's part.

Nothing here has to be right: a bound is computed on samples that no score was learned from.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence

import numpy as np

from private_bandits.arrays import Floats

Actions = tuple[Hashable, ...]
Numbers = Mapping[str, float]
View = tuple[Actions, Numbers]
"""What one run showed: the actions in order, and every other number by the place where it was shown."""

Score = Callable[[Sequence[View]], Floats]

ENOUGH = 20
"""Runs that have to share a prefix of actions before it counts."""
MOST_NUMBERS = 60


def by_prefix(p: Sequence[View], q: Sequence[View]) -> Score:
    """Log ratio of how often the longest well-known prefix of the actions was seen in the two worlds."""
    seen_p = Counter(actions[:i] for actions, _ in p for i in range(len(actions) + 1))
    seen_q = Counter(actions[:i] for actions, _ in q for i in range(len(actions) + 1))
    known = {
        prefix: math.log((seen_p[prefix] + 0.5) / (seen_q[prefix] + 0.5))
        for prefix in seen_p.keys() | seen_q.keys()
        if seen_p[prefix] + seen_q[prefix] >= ENOUGH
    }

    def score(views: Sequence[View]) -> Floats:
        return np.array([_longest(actions, known) for actions, _ in views])

    return score


def _longest(actions: Actions, known: Mapping[Actions, float]) -> float:
    """Prefixes of a known prefix are known, so the length is found by halving."""
    low, high = 0, len(actions)
    while low < high:
        middle = (low + high + 1) // 2
        if actions[:middle] in known:
            low = middle
        else:
            high = middle - 1
    return known.get(actions[:low], 0.0)


def by_discriminant(p: Sequence[View], q: Sequence[View], numbers: bool) -> Score:
    """Fisher's linear discriminant of actions (step by step and counted) and, if asked for, of the numbers shown."""
    arms = sorted({a for actions, _ in (*p[:300], *q[:300]) for a in actions}, key=str)
    length = max(len(actions) for actions, _ in (*p, *q))
    names = _telling(p, q) if numbers else []

    def matrix(views: Sequence[View]) -> Floats:
        return np.asarray(np.hstack([_actions(views, arms, length), _numbers(views, names)]))

    x, y = matrix(p), matrix(q)
    centre, spread = (x.mean(0) + y.mean(0)) / 2, np.sqrt((x.var(0) + y.var(0)) / 2)
    spread[spread == 0] = 1.0
    x, y = (x - centre) / spread, (y - centre) / spread
    shift = x.mean(0) - y.mean(0)
    x, y = x - x.mean(0), y - y.mean(0)
    within = (x.T @ x / len(x) + y.T @ y / len(y)) / 2
    ridge = np.eye(len(shift)) * (1e-6 + len(shift) / (len(p) + len(q)))
    weights = np.linalg.solve(within + ridge, shift)

    def score(views: Sequence[View]) -> Floats:
        return np.asarray((matrix(views) - centre) / spread @ weights, float)

    return score


def _actions(views: Sequence[View], arms: Sequence[Hashable], length: int) -> Floats:
    """One column for each step and arm, and for each arm's count after 1, 2, 4, ... steps."""
    place = {arm: i for i, arm in enumerate(arms)}
    coded = np.full((len(views), length), -1)
    for row, (actions, _) in zip(coded, views, strict=True):
        row[: len(actions)] = [place.get(a, -1) for a in actions[:length]]
    at = coded[:, :, None] == np.arange(len(arms))
    ends = np.unique(np.minimum(2 ** np.arange(length.bit_length() + 1), length)) - 1
    counts = at.cumsum(axis=1)[:, ends]
    return np.hstack([at[:, :, 1:].reshape(len(views), -1), counts.reshape(len(views), -1)]).astype(float)


def _telling(p: Sequence[View], q: Sequence[View]) -> list[str]:
    """The numbers whose means differ most between the worlds, against their spread."""
    often = Counter(name for _, shown in (*p, *q) for name in shown)
    names = [name for name, seen in often.most_common() if seen >= ENOUGH]
    x, y = _numbers(p, names), _numbers(q, names)
    shift, spread = np.abs(x.mean(0) - y.mean(0)), np.sqrt(x.var(0) + y.var(0))
    apart = shift / np.maximum(spread, shift * 1e-9 + 1e-300)
    return [names[i] for i in np.argsort(-apart)[:MOST_NUMBERS] if apart[i] > 0]


def _numbers(views: Sequence[View], names: Sequence[str]) -> Floats:
    found = np.array([[shown.get(name, 0.0) for name in names] for _, shown in views], float)
    return np.asarray(np.nan_to_num(found.reshape(len(views), len(names)), posinf=1e30, neginf=-1e30).clip(-1e30, 1e30))
