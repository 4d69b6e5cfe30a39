"""The long table of an experiment as arrays: the regret of each entry, [run, step]."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from private_bandits.arrays import Floats
from private_bandits.budget import equal_budget
from private_bandits.errors import InvalidInput
from private_bandits.experiments.analysis.estimates import RegretEstimate, difference, mean, price
from private_bandits.experiments.run.experiment import Entry, Experiment, Instance
from private_bandits.policies import POLICIES
from private_bandits.theory.bound_inputs import as_budget
from private_bandits.theory.reference import reference_regret

if TYPE_CHECKING:
    import pandas as pd


BETWEEN, VARIANT = "adac-gope", "adac-gope-var"
"""Noise between the two factors of least squares, and on the sums of rewards."""
PUBLISHED, TIGHT = "paper", "tight"
"""Variants of one policy."""
SUCCESSORS = {"adac-imed": "adac-ucb"}
"""Policies that are compared with another one, as published, and not with a variant of their own."""
DIGITS = 12
"""Of a regret that are kept: runs that did the same differ in the last ones of a float, which is no chance."""


@dataclass(frozen=True)
class Family:
    """A policy at several budgets, from the smallest rho to the largest, and its twin without privacy."""

    name: str
    policy: str
    private: tuple[Entry, ...]
    twin: Entry | None

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All of them, the twin last."""
        return (*self.private, self.twin) if self.twin else self.private


@dataclass(frozen=True)
class Pair:
    """A policy as published, and its tight variant or its successor, at one budget on one instance."""

    published: Entry
    ours: Entry

    @property
    def rho(self) -> float:
        """The budget of both."""
        return self.ours.rho

    @property
    def instance(self) -> str:
        """The name of what both play on."""
        return self.ours.instance.name if self.ours.instance else ""

    @property
    def both(self) -> tuple[Entry, Entry]:
        """The published one first."""
        return self.published, self.ours


@dataclass(frozen=True)
class Regrets:
    """What was measured in an experiment. `of[label]` is [run, step]."""

    experiment: Experiment
    steps: NDArray[np.int64]
    of: Mapping[str, Floats]

    @classmethod
    def from_frame(cls, experiment: Experiment, frame: pd.DataFrame) -> Regrets:
        """From a row for each label, run and step; refused where one is missing."""
        rows = frame[frame["experiment"] == experiment.name]
        if not experiment.entries:
            raise InvalidInput(f"experiment {experiment.name!r} has no entries, so there is nothing to draw or judge")
        groups = dict(iter(rows.groupby("label")))
        tables = {
            entry.label: _table(experiment, entry, groups.get(entry.label, rows[:0])) for entry in experiment.entries
        }
        first = next(iter(tables.values()))
        for label, table in tables.items():
            if not (table.index.equals(first.index) and table.columns.equals(first.columns)):
                raise InvalidInput(
                    f"{experiment.name}: {label!r} has other runs or steps than the other entries; run it again"
                )
        regrets = {label: _rounded(table.to_numpy(np.float64)) for label, table in tables.items()}
        return cls(experiment, first.columns.to_numpy(np.int64), regrets)

    @property
    def horizon(self) -> int:
        """The last step that was recorded."""
        return int(self.steps[-1])

    @property
    def runs(self) -> int:
        """How many there are of each entry."""
        return len(next(iter(self.of.values())))

    @property
    def paired(self) -> bool:
        """Whether runs of the same number share their contexts."""
        return self.experiment.setting == "contextual"

    def mean(self, entry: Entry) -> RegretEstimate:
        """Mean regret at every step."""
        return mean(self.of[entry.label])

    def difference(self, first: Entry, second: Entry) -> RegretEstimate:
        """Mean regret of the first minus that of the second, at every step."""
        return difference(self.of[first.label], self.of[second.label], self.paired)

    def price(self, private: Entry, plain: Entry) -> RegretEstimate:
        """The price of privacy at every step."""
        return price(self.of[private.label], self.of[plain.label], self.paired)

    def saving(self, pair: Pair) -> RegretEstimate:
        """By how much our mean regret is lower, as a share of the published one's, at every step."""
        more = self.price(pair.ours, pair.published)
        return RegretEstimate(-more.value, more.error, more.freedom)

    def share_right(self, entry: Entry) -> RegretEstimate:
        """Share of right recommendations up to every step, where regret is the number of wrong ones."""
        return mean(1 - self.of[entry.label] / self.steps)

    def instance_of(self, entry: Entry) -> Instance:
        """What it plays on."""
        return entry.instance or self.experiment.instance

    def reference(self, entry: Entry) -> float | None:
        """Return the asymptotic reference at the horizon for the entry's own budget; None where no means are given."""
        means = self.instance_of(entry).means
        if self.experiment.setting != "finite" or not means:
            return None
        budget = equal_budget(as_budget(entry.rho), POLICIES[entry.policy].supported_budgets)
        return reference_regret(means, self.horizon, budget).value or None

    def families(self) -> tuple[Family, ...]:
        """Entries of one policy together, in the order of the experiment.

        Where a policy comes twice at one budget (with other options), the label up to its first comma tells them apart.
        """
        entries = self.experiment.entries
        unique = len({(entry.policy, entry.rho) for entry in entries}) == len(entries)
        groups: dict[str, list[Entry]] = {}
        for entry in entries:
            groups.setdefault(entry.policy if unique else name_of(entry), []).append(entry)
        return tuple(_family(group) for group in groups.values())

    def with_twins(self) -> list[tuple[Family, Entry]]:
        """The families that have a twin without privacy, and it."""
        found = [(family, family.twin) for family in self.families() if family.twin and family.private]
        if not found:
            raise InvalidInput(
                f"{self.experiment.name}: no policy comes both with privacy and without (rho = inf), so there is no "
                "price of privacy; add an entry with rho = math.inf"
            )
        return found

    def placements(self) -> list[tuple[Entry, Entry]]:
        """AdaC-GOPE and its variant at each budget that both have."""
        by_policy = {family.policy: family.private for family in self.families()}
        others = {entry.rho: entry for entry in by_policy.get(VARIANT, ())}
        pairs = [(entry, others[entry.rho]) for entry in by_policy.get(BETWEEN, ()) if entry.rho in others]
        if not pairs:
            raise InvalidInput(
                f"{self.experiment.name}: noise placement compares {BETWEEN} and {VARIANT} at the same rho, and no rho "
                "has both; add them"
            )
        return pairs

    def pairs(self) -> list[Pair]:
        """A policy as published and its variant or successor, on each instance and at each budget that both have."""
        entries = self.experiment.entries
        ours = [entry for entry in entries if entry.variant == TIGHT or entry.policy in SUCCESSORS]
        found = [Pair(published, own) for own in ours for published in entries if _is_published_of(own, published)]
        if not found:
            raise InvalidInput(
                f"{self.experiment.name}: the variants {PUBLISHED} and {TIGHT}, or a policy and its successor, are "
                "compared at the same rho, and no rho has both; add them"
            )
        return found

    def values_at_the_end(self, entries: Sequence[Entry]) -> int:
        """How many different regrets the runs of an entry end with, at the least."""
        return min(len(np.unique(self.of[entry.label][:, -1])) for entry in entries)

    def rhos(self) -> list[float]:
        """Every budget of the experiment, the smallest first."""
        return sorted({entry.rho for entry in self.experiment.entries})


def name_of(entry: Entry) -> str:
    """The policy's name as people write it: the label up to its first comma."""
    return entry.label.partition(",")[0].strip()


def _is_published_of(ours: Entry, other: Entry) -> bool:
    """Whether the other one is what ours is compared with."""
    if other.variant != PUBLISHED or (other.rho, other.instance) != (ours.rho, ours.instance):
        return False
    if ours.policy in SUCCESSORS:
        return other.policy == SUCCESSORS[ours.policy]
    return (other.policy, other.options) == (ours.policy, ours.options)


def _family(entries: list[Entry]) -> Family:
    private = sorted((entry for entry in entries if math.isfinite(entry.rho)), key=lambda entry: entry.rho)
    twin = next((entry for entry in entries if math.isinf(entry.rho)), None)
    return Family(name_of(entries[0]), entries[0].policy, tuple(private), twin)


def _table(experiment: Experiment, entry: Entry, own: pd.DataFrame) -> pd.DataFrame:
    """Runs down, steps across."""
    doubled = bool(own.duplicated(["run", "step"]).any())
    table = own.drop_duplicates(["run", "step"]).pivot(index="run", columns="step", values="regret").sort_index(axis=1)
    if doubled or table.empty or bool(table.isna().to_numpy().any()):
        raise InvalidInput(
            f"{experiment.name}: {entry.label!r} needs one row for each run and step, got {len(own)} rows of "
            f"{table.shape[0]} runs and {table.shape[1]} steps; run the experiment again"
        )
    return table


def _rounded(values: Floats) -> Floats:
    """To so many significant digits."""
    with np.errstate(divide="ignore"):
        exponent = np.where(values == 0, 0, np.floor(np.log10(np.abs(values))))
    scale = 10.0 ** (DIGITS - 1 - exponent)
    return np.asarray(np.round(values * scale) / scale)
