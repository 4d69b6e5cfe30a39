"""The noise: is it the noise that is declared?

The installed sampler at small scales, where every value of the exact distribution can be told apart; then the noise
of real releases, which is what was published less the sum that went in: on the grid, of the declared size at every
release, drawn once for each, not repeated, and not foreseeable by whoever seeds the usual generators.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np

from private_bandits.agent import Agent, bandit_of
from private_bandits.arrays import Floats
from private_bandits.audit.attempts import attempt
from private_bandits.audit.inside import PATIENCE, Flaw
from private_bandits.audit.script_replay import PatchedMechanism
from private_bandits.audit.target import Target
from private_bandits.ledger import Release
from private_bandits.loading import require
from private_bandits.mechanism.composition import Outgoing
from private_bandits.mechanism.episode import HiddenTotals

SCALES = (0.7, 3.0, 20.0)
SHIFT = 4
"""The sensitivity at which the sampler is tried."""
RELEASES = 6
"""Releases of a run that are looked at."""
COORDINATES = 3
"""Of each of them."""
EXPECTED = 25
"""Draws that a cell of a chi-square test has to expect."""


@dataclass
class Draws:
    """What was tested, and the smallest p-value beside the level at which it would have been a flaw."""

    tests: int = 0
    smallest: float = 1.0
    level: float = 0.0
    releases: int = 0
    flaws: list[Flaw] = field(default_factory=list)


def examine(
    target: Target, draws: int, runs: int, failure: float, advance: Callable[[float], None] = lambda share: None
) -> Draws:
    """Sampler, then releases. A right agent is accused with probability at most `failure`."""
    require("the audit", "audit", "scipy")
    series = RELEASES * COORDINATES
    # An eighth of what each test could have. Far out, chi-square of counts has a heavier tail than its limit: 3 times
    # as heavy at 1e-8, 50 times at 1e-14. One test in ten is of this kind; rank correlations stray less.
    found = Draws(level=failure / (len(SCALES) + 3 * (3 * series + math.comb(series, 2))) / 8)
    _sampler(target.make(), draws, found)
    advance(0.5)
    if not found.flaws:
        # Half of the runs ask for several decisions and tell their rewards at once: both must have the same noise.
        _releases(target, runs, found, lambda run: noise_of_run(target, found, together=run % 2 == 1))
    if not found.flaws and target.supports_warm_start:
        _releases(target, runs, found, lambda run: noise_of_log(target, found))
    if not found.flaws:
        _releases(target, runs, found, lambda run: noise_of_end(target, found))
    advance(0.9)
    if not found.flaws:
        _foreseen(target, found)
    return found


def _sampler(agent: Agent, draws: int, found: Draws) -> None:
    """Chi-square of the installed sampler against the exact distribution."""
    door = bandit_of(agent).door
    kind = door.budget.noise
    for scale in SCALES:
        level = SHIFT**2 / (2 * scale**2) if kind == "gaussian" else SHIFT / scale
        mechanism = door.noise.calibrate(kind, level, SHIFT, 1, 1)
        noise = np.array([mechanism(HiddenTotals([100]))[0] - 100 for _ in range(draws)])
        reach = math.ceil(min(mechanism.scale, 1e4) * (12 if kind == "gaussian" else 60))
        values = np.arange(-reach, reach + 1)
        power = values**2 / (2 * mechanism.scale**2) if kind == "gaussian" else np.abs(values) / mechanism.scale
        weights = np.exp(-power)
        p = _chi_square(noise, np.asarray(values + 0.5, float), np.cumsum(weights / weights.sum()))
        text = f"{draws} draws at scale {scale:g} do not follow the exact distribution (chi-square, p = {p:.2g})"
        _judge(p, Flaw("the sampler is not the one declared", text), found)


def _chi_square(noise: Floats, edges: Floats, below: Floats) -> float:
    """p-value; edges[i] has probability below[i] under it. Cells are joined until each expects enough."""
    from scipy.stats import chi2

    kept, last = [], 0.0
    for edge, share in zip(edges, below, strict=True):
        if (share - last) * len(noise) >= EXPECTED and (1 - share) * len(noise) >= EXPECTED:
            kept.append((edge, share))
            last = share
    if not kept:
        return 1.0
    cuts, shares = np.array(kept).T
    counts = np.bincount(np.searchsorted(cuts, noise), minlength=len(cuts) + 1)
    expected = np.diff(shares, prepend=0.0, append=1.0) * len(noise)
    return float(chi2.sf(((counts - expected) ** 2 / expected).sum(), len(cuts)))


class DoorRecorder:
    """Overhears an agent's door: the sums that go in, and how often noise is drawn. Everything is let through."""

    def __init__(self, agent: Agent) -> None:
        self.sums: list[tuple[list[int], list[int]]] = []
        """Of every release: the sum of its weights, which is public, and the exact totals."""
        self.rows: list[Release] = []
        self.draws = 0
        door = bandit_of(agent).door
        self._source: Any = door.noise
        self._leaving: tuple[list[int], list[int]] = ([], [])
        door.noise = self
        door.observe(self)

    @property
    def secret(self) -> bool:
        """As the source."""
        return bool(self._source.secret)

    def calibrate(self, *arguments: Any) -> Any:
        """The source's own mechanism, counted."""
        return PatchedMechanism(self._source.calibrate(*arguments), self._count)

    def _count(self, mechanism: Any, totals: Any) -> Any:
        self.draws += 1
        return mechanism(totals)

    def leaving(self, whole: Outgoing) -> None:
        """Note the sums, which a broken door may change."""
        self._leaving = (list(whole.weight_sums), whole.totals.reveal())

    def released(self, row: Release) -> None:
        """Keep the sums with what was made of them."""
        self.sums.append(self._leaving)
        self.rows.append(row)


def _releases(target: Target, runs: int, found: Draws, noise_of: Callable[[int], list[list[float]]]) -> None:
    """Every coordinate of every release by itself, over many runs, and any two of them together."""
    series: dict[tuple[int, int], dict[int, float]] = {}
    for run in range(runs):
        noise = noise_of(run)
        found.releases += len(noise)
        if found.flaws:
            return
        for i, drawn in enumerate(noise[:RELEASES], 1):
            for j, z in enumerate(drawn[:COORDINATES], 1):
                series.setdefault((i, j), {})[run] = z
    kind = bandit_of(target.make()).door.budget.noise
    edges, below = _standard(kind)
    enough = {place: z for place, z in series.items() if len(z) >= 4 * EXPECTED}
    for (i, j), of_runs in enough.items():
        draws = np.array(list(of_runs.values()))
        p = _chi_square(draws, edges, below)
        text = f"coordinate {j} of release {i} in {len(draws)} runs (chi-square, p = {p:.2g}, "
        text += f"scale {np.std(draws) / _sd(kind):.3g} of it)"
        _judge(p, Flaw("the noise of a release is not of the size declared", text), found)
        for half in (0, 1):
            some = np.array([z for run, z in of_runs.items() if run % 2 == half])
            p = size_p_value(some, kind)
            text = f"coordinate {j} of release {i} in {len(some)} runs, every second one (p = {p:.2g}, "
            text += f"scale {np.std(some) / _sd(kind):.3g} of it)"
            _judge(p, Flaw("the noise of a release is not of the size declared", text), found)
    for (one, x), (other, y) in combinations(enough.items(), 2):
        both = sorted(x.keys() & y.keys())  # not every run reaches every release
        p = uncorrelated_p_value(np.array([x[run] for run in both]), np.array([y[run] for run in both]))
        text = f"coordinate {one[1]} of release {one[0]} and {other[1]} of {other[0]} in {len(both)} runs (p = {p:.2g})"
        _judge(p, Flaw("noise goes together that should be independent", text), found)


def noise_of_run(target: Target, found: Draws, together: bool = False) -> list[list[float]]:
    """The noise of each release of a run, one number a coordinate, in units of its declared scale.

    together: decisions are asked for, and rewards told, two at once.
    """
    agent = target.make()
    tap = DoorRecorder(agent)
    # A run that fails has shown something until then, and to leave it out would be to choose by what was released.
    attempt(lambda: _play(target, agent, 2 if together else 1))
    return _noise_of(target, agent, tap, found)


def noise_of_log(target: Target, found: Draws) -> list[list[float]]:
    """The same of the releases that a log begins with."""
    agent = target.make()
    tap = DoorRecorder(agent)
    rows = [target.log_row(i % target.arms, i % 2, i, i) for i in range(2 * target.arms)]
    attempt(lambda: agent.warm_start(rows))
    return _noise_of(target, agent, tap, found)


def noise_of_end(target: Target, found: Draws) -> list[list[float]]:
    """The same of the closing releases, after three rewards of one action."""
    agent = target.make()
    tap = DoorRecorder(agent)
    for i in range(3):
        attempt(lambda i=i: agent.tell(target.ask(agent, i), target.reward(i % 2), played=0))  # type: ignore[misc]
    before = len(tap.rows)
    attempt(agent.finish)
    return _noise_of(target, agent, tap, found)[before:]


def _play(target: Target, agent: Any, at_once: int) -> None:
    i = 0
    most = 64 * target.arms if agent.policy.factor is None else PATIENCE
    while i < 4 * target.arms or (i < most and not _enough(agent)):
        if at_once == 1:
            agent.tell(target.ask(agent, i), target.reward(i % 2))
        else:
            decisions = target.ask(agent, i, many=at_once)
            agent.tell_many([(decision, target.reward((i + j) % 2)) for j, decision in enumerate(decisions)])
        i += at_once


def _noise_of(target: Target, agent: Any, tap: DoorRecorder, found: Draws) -> list[list[float]]:
    rows = attempt(lambda: agent.ledger.rows).value
    if rows is None:  # an agent that failed may show nothing any more
        rows = tap.rows
    if tap.draws != len(rows):
        text = f"noise was drawn {tap.draws} times for {len(rows)} rows of the ledger"
        found.flaws.append(Flaw("one draw per release", text))
        return []
    noise = []
    for row, (weights, totals) in zip(rows, tap.sums, strict=False):
        step = (target.high - target.low) / row.steps
        units = [(row.unit * y - target.low * w) / step for y, w in zip(row.values, weights, strict=True)]
        drawn = [y - total for y, total in zip(units, totals, strict=True)]
        off = max(abs(d - round(d)) - 1e-6 - 1e-13 * abs(y) for d, y in zip(drawn, units, strict=True))
        if off > 0:
            text = f"release {row.number} lies {off:.3g} of a step beside the integer grid"
            found.flaws.append(Flaw("the noise is not of the integers that it is declared to be of", text))
            return []
        noise.append([d / row.scale for d in drawn])
    every = [round(d, 12) for drawn in noise for d in drawn]
    if len(every) > 1 and len(set(every)) <= len(every) / 2:
        found.flaws.append(Flaw("the noise repeats itself", f"{len(every)} draws of one run share their values"))
    return noise


def _enough(agent: Agent) -> bool:
    """Whether there are a few releases, and one that holds an earlier episode again, if there are to be any."""
    rows = agent.ledger.rows
    return len(rows) >= RELEASES / 2 and (agent.policy.factor is None or any(len(row.episodes) > 1 for row in rows))


def _standard(kind: str) -> tuple[Floats, Floats]:
    """Cells for noise in units of its scale, which is large: the continuous distribution to within 1/scale."""
    from scipy.stats import laplace, norm

    shares = np.linspace(0.05, 0.95, 19)
    return np.asarray((norm if kind == "gaussian" else laplace).ppf(shares)), shares


def _sd(kind: str) -> float:
    return 1.0 if kind == "gaussian" else math.sqrt(2)


def size_p_value(noise: Floats, kind: str) -> float:
    """p-value of the sum of squares, or of the absolute values where noise is Laplace; two-sided."""
    from scipy.stats import chi2, gamma

    if not len(noise):
        return 1.0
    total, limit = (
        ((noise**2).sum(), chi2(len(noise))) if kind == "gaussian" else (np.abs(noise).sum(), gamma(len(noise)))
    )
    return float(min(1.0, 2 * min(limit.cdf(total), limit.sf(total))))


def uncorrelated_p_value(x: Floats, y: Floats) -> float:
    """p-value of Spearman's rank correlation, which asks nothing of the distribution."""
    from scipy.stats import spearmanr

    varied = all(np.ptp(one) > 1e-9 * np.abs(one).max() for one in (x, y))
    return float(spearmanr(x, y).pvalue) if varied else 1.0


def _foreseen(target: Target, found: Draws) -> None:
    """The same noise after the same seeding, or in two runs: whoever can seed or knows the seed takes it away."""
    runs = []
    for _ in range(2):
        random.seed(12345)
        np.random.seed(12345)  # noqa: NPY002  (this is what is asked: does it matter?)
        runs.append(noise_of_run(target, found))
    random.seed()
    np.random.seed()  # noqa: NPY002
    shared = sum(a == b for a, b in zip(*runs, strict=False))
    if shared >= 2:
        text = (
            f"{shared} of {len(runs[0])} releases had the same noise in two runs with the usual generators seeded alike"
        )
        found.flaws.append(Flaw("the noise can be foreseen", text))


def _judge(p: float, flaw: Flaw, found: Draws) -> None:
    found.tests += 1
    found.smallest = min(found.smallest, p)
    if p < found.level:
        found.flaws.append(flaw)
