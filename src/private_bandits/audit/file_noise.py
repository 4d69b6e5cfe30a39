"""Tests the noise in a ledger against the raw outcomes: for whoever holds both.

The outcomes are replayed through a bandit with the settings of the file. Its door hands out the rows of the ledger
instead of drawing, so that the policy learns what it had learned, and every sum is the sum that left. What was
published less that sum is the noise. It has to be independent draws from the distribution that the rows name: of that
size and shape, never the same twice, going together neither with each other nor with the sums.

The result depends on raw outcomes. It is private.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from private_bandits.agent import Agent
from private_bandits.arrays import Floats
from private_bandits.audit.draws import size_p_value, uncorrelated_p_value
from private_bandits.audit.inside import Flaw
from private_bandits.bandit import Bandit
from private_bandits.errors import InvalidInput
from private_bandits.ledger import Account, Release
from private_bandits.loading import require
from private_bandits.mechanism.composition import Outgoing
from private_bandits.offline.logs import Column, Log, read_log
from private_bandits.offline.warm_start import logged_rewards
from private_bandits.state import Settings
from private_bandits.storage.ledger_file import read_ledger_file
from private_bandits.wiring import new_bandit

LEVEL = 1e-5
"""How often noise that is right is accused, at most."""
SIZE, SHAPE, REPEATS, TOGETHER = 1 / 2, 1 / 8, 1 / 8, 1 / 32
"""Shares of the level. The size tells most. Rank correlations are a little inexact far out in their tails: all of them
together have an eighth of what is left."""
LAGS = 10
"""Releases up to so far apart are compared."""
FEWEST = 20
"""Pairs that a correlation is computed from, at least."""
CLOSE = 1e-12
"""Draws that differ by less, in units of their scale, count as the same."""
PRIVATE = "This result depends on raw outcomes. It is private: show it to nobody who may not see the outcomes."


@dataclass
class FileNoise:
    """The result of testing the noise in a file.

    releases, draws: how many were looked at. tests: how many tests were made. smallest: the smallest p-value, each
    divided by the share of the level that its test has. level: below it the noise is accused. noticed: a scale of the
    noise, as a share of the declared one, that would be noticed.
    """

    releases: int
    draws: int
    level: float
    tests: int = 0
    smallest: float = 1.0
    noticed: float = 0.0
    flaws: list[Flaw] = field(default_factory=list)

    @property
    def violated(self) -> bool:
        """Whether the noise is not what the ledger says."""
        return bool(self.flaws)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain data."""
        return {
            "private": PRIVATE,
            "violated": self.violated,
            "releases": self.releases,
            "draws": self.draws,
            "tests": self.tests,
            "smallest_p_value": self.smallest,
            "level": self.level,
            "noticed_below_scale": self.noticed,
            "flaws": [{"title": flaw.title, "evidence": flaw.evidence} for flaw in self.flaws],
        }

    def __str__(self) -> str:
        lines = [PRIVATE]
        lines += [f"VIOLATION: {flaw.title}. {flaw.evidence}" for flaw in self.flaws]
        if self.flaws:
            lines.append("Outcomes that are not exactly those that were told explain it too: check them first.")
        else:
            lines.append("The noise is consistent with what the ledger says.")
        lines.append(
            f"{self.draws} draws in {self.releases} releases, {self.tests} tests, smallest p-value {self.smallest:.2g} "
            f"(by its share of the level); a flaw is below {self.level:.2g}. Noise of {self.noticed:.2g} of its "
            "declared scale, or less, would be noticed in every second file."
        )
        return "\n".join(lines)


@dataclass(frozen=True)
class _Draw:
    """The noise of one value. z: in units of its scale. error: how inexact floats make that. signal: the sum itself."""

    key: int
    z: float
    error: float
    signal: float


def audit_file(
    path: str | os.PathLike[str],
    log: Any,
    *,
    arm: Column = "arm",
    reward: str = "reward",
    person: str = "person",
    warm_start: int = 0,
    level: float = LEVEL,
) -> FileNoise:
    """Test whether the noise in an agent's file is what its ledger says.

    Args:
        path: The agent's file, which no agent has open.
        log: The outcomes in the order in which they were told, also those that were not taken: a CSV file, a table, or
            tuples (arm, reward) or (arm, reward, person). An arm is what was really played: a name, an index, or, for
            contextual policies, its vector.
        arm: The column, or columns, of the arm.
        reward: The column of the reward.
        person: The column of the person, where the agent has a limit for each.
        warm_start: How many rows at the beginning the agent was started from (`Agent.warm_start`).
        level: How often noise that is right is accused, at most.

    Raises:
        InvalidInput: The outcomes do not fit the ledger.
    """
    require("the audit", "audit", "scipy")
    file = read_ledger_file(path)
    settings = Settings.from_dict(file.settings)
    if not file.rows:
        raise InvalidInput(f"{path} has no release yet: there is no noise to test")
    if file.rows[0].noise == "none":
        raise InvalidInput(f"{path} has releases without noise: there is nothing to test")
    if not settings.policy.arm_names and getattr(settings.policy, "arms", None):
        raise InvalidInput(
            f"{type(settings.policy).__name__} has sums for each place in an offer, and outcomes with vectors do not "
            "say which place was played: its noise cannot be tested so"
        )
    columns = {"arm": arm, "reward": reward, "person": person}
    needed = ["arm", "reward"] if settings.max_rewards_per_person is None else ["arm", "reward", "person"]
    draws = _replayed(settings, file.opening or "", file.rows, read_log(log, columns, needed), warm_start)
    return _tested(draws, file.rows, level)


class _Recorded:
    """Stands in for the release of a door: hands out the rows of a ledger, and notes the noise in them."""

    def __init__(self, bandit: Bandit, rows: Sequence[Release], opening: str) -> None:
        self.draws: list[_Draw] = []
        self.released = 0
        self._rows = rows
        self._door = bandit.door
        self._door.account = Account(opening=opening)
        self._door.release = self.release  # type: ignore[method-assign]

    def release(self, whole: Outgoing) -> Release:
        """Compare what leaves with the next row of the ledger, and return that row."""
        if self.released == len(self._rows):
            raise _LedgerEnded
        row = self._rows[self.released]
        if [tuple(part) for part in whole.parts] != [tuple(part) for part in row.parts]:
            raise InvalidInput(
                f"the outcomes do not fit release {row.number}: it holds {row.count} new rewards of episode "
                f"{row.parts[0].episode}, and the outcomes make another one. They must be all that were told, in order"
            )
        self._note(row, whole)
        self.released += 1
        self._door.account.charge(row)
        return row

    def _note(self, row: Release, whole: Outgoing) -> None:
        bounds = self._door.reward_range
        step = bounds.width / row.steps
        for value, weight, total in zip(row.values, whole.weight_sums, whole.totals.reveal(), strict=True):
            published = (row.unit * value - bounds.low * weight) / step
            size = (abs(row.unit * value) + abs(bounds.low * weight)) / step
            z = (published - total) / row.scale
            self.draws.append(_Draw(row.key, z, CLOSE + 1e-15 * size / row.scale, total / row.scale))


class _LedgerEnded(Exception):
    """There are more outcomes than the ledger has releases for."""


def _replayed(settings: Settings, opening: str, rows: Sequence[Release], log: Log, warm_start: int) -> list[_Draw]:
    """Return the noise of every release of a ledger, by replaying the outcomes."""
    if not 0 <= warm_start <= log.rows:
        raise InvalidInput(f"warm_start must be from 0 to {log.rows}, the rows of the log, got {warm_start}")
    bandit, _ = new_bandit(Agent.bandit_type, settings, None, None)
    door = _Recorded(bandit, rows, opening)
    try:
        if warm_start:
            logged = logged_rewards(bandit, log.part(0, warm_start))
            bandit.start_from(logged.rows, logged.over_limit, logged.dropped)
        _tell_all(bandit, log.part(warm_start, log.rows))
    except _LedgerEnded:
        pass
    if door.released < len(rows):
        raise InvalidInput(
            f"the outcomes end before release {door.released + 1} of {len(rows)}: they must be all that were told"
        )
    return door.draws


def _tell_all(bandit: Bandit, log: Log) -> None:
    """Tell every outcome of a log, for the arm that was played."""
    names, limited = bandit.policy.arm_names, bandit.settings.max_rewards_per_person is not None
    rewards = log.told_rewards()
    people: Sequence[str | None] = log.people() if limited else [None] * log.rows
    actions = log.actions(names) if names else [0] * log.rows
    for i in range(log.rows):
        offered = None if names else [log.columns["arm"][i]]
        decision = bandit.ask(None, offered, people[i])
        assert not isinstance(decision, list)
        bandit.tell(decision, rewards[i], actions[i])


def _tested(draws: Sequence[_Draw], rows: Sequence[Release], level: float) -> FileNoise:
    """Test the draws. The level is shared over all tests."""
    from scipy.stats import chi2, kstest

    kind = rows[0].noise
    z = np.array([draw.z for draw in draws])
    pairs = _pairs(draws)
    found = FileNoise(len(rows), len(draws), level)
    sd = math.sqrt(2) if kind == "laplace" else 1.0
    size = f"it has {math.sqrt(float((z**2).mean())) / sd:.3g} of the declared scale"
    _judge(found, size_p_value(z, kind), SIZE, Flaw("the noise is not of the size that the ledger says", size))
    shape = float(kstest(z, "norm" if kind == "gaussian" else "laplace").pvalue)
    _judge(found, shape, SHAPE, Flaw("the noise does not have the distribution that the ledger says", "by its shape"))
    same, chance = _repeats(draws)
    repeated = f"{same} draws are the same as another one, or its opposite"
    _judge(found, chance, REPEATS, Flaw("the noise repeats itself", repeated))
    for words, (x, y) in pairs.items():
        flaw = Flaw("the noise goes together with something", words)
        _judge(found, uncorrelated_p_value(x, y), TOGETHER / len(pairs), flaw)
    found.noticed = math.sqrt(float(chi2.ppf(SIZE * level / 2, len(z)) / chi2.ppf(0.5, len(z))))
    return found


def _judge(found: FileNoise, p: float, share: float, flaw: Flaw) -> None:
    """Note a test that has a share of the level."""
    found.tests += 1
    found.smallest = min(found.smallest, p / share)
    if p < share * found.level:
        found.flaws.append(Flaw(flaw.title, f"{flaw.evidence} (p = {p:.2g})"))


def _repeats(draws: Sequence[_Draw]) -> tuple[int, float]:
    """Return how many neighbouring draws are the same up to their sign, and how likely so many are by chance.

    Two draws are within t of each other, up to their sign, with a probability of at most 1.2 t: the density of their
    sizes has a squared integral of 0.56 (normal) or 0.5 (Laplace).
    """
    from scipy.stats import poisson

    ordered = sorted(draws, key=lambda draw: abs(draw.z))
    close = max(draw.error for draw in draws)
    same = sum(abs(b.z) - abs(a.z) <= close for a, b in pairwise(ordered))
    expected = math.comb(len(draws), 2) * 1.2 * close
    return same, float(poisson.sf(same - 1, expected)) if same else 1.0


def _pairs(draws: Sequence[_Draw]) -> Mapping[str, tuple[Floats, Floats]]:
    """Return what must not go together: draws of different releases, and draws and the sums that they are added to."""
    z = np.array([draw.z for draw in draws])
    found = {"it follows the sums that it is added to": (z, np.array([draw.signal for draw in draws]))}
    by_key: dict[int, list[float]] = {}
    for draw in draws:
        by_key.setdefault(draw.key, []).append(draw.z)
    for lag in range(1, LAGS + 1):
        found[f"it follows the noise {lag} draws before"] = (z[:-lag], z[lag:])
        of_one = [np.array([series[:-lag], series[lag:]]) for series in by_key.values() if len(series) > lag]
        if of_one and len(by_key) > 1:
            earlier, later = np.concatenate(of_one, axis=1)
            found[f"it follows the noise of the same sum {lag} releases before"] = (earlier, later)
    return {words: pair for words, pair in found.items() if len(pair[0]) >= FEWEST}
