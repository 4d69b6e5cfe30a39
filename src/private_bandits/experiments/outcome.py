"""What a run of `reproduce` has done, for people and for machines."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from private_bandits.experiments.analysis.regrets import Regrets
from private_bandits.experiments.run.experiment import Experiment
from private_bandits.plain_data import json_number

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console
    from rich.table import Table


@dataclass
class ReproduceOutcome:
    """What a run of the command has done.

    regrets: the results as arrays. computed, reused: blocks, of one policy each. verdicts: on the paper's claims, by
    experiment. tables: the paper's two, for the experiments' numbers. seconds: of all of it.
    """

    folder: Path
    seed: int
    results: dict[str, tuple[Experiment, pd.DataFrame]] = field(default_factory=dict)
    regrets: dict[str, Regrets] = field(default_factory=dict)
    verdicts: dict[str, list[Any]] = field(default_factory=dict)
    tables: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    files: list[Path] = field(default_factory=list)
    moved: dict[str, str] = field(default_factory=dict)
    computed: int = 0
    reused: int = 0
    seconds: float = 0.0

    def summary(self) -> list[dict[str, Any]]:
        """A row per policy of every experiment: mean regret at the horizon with its standard error."""
        return [row for experiment, frame in self.results.values() for row in _summary(experiment, frame)]

    def print(self, console: Console) -> None:
        """What was run, the verdicts, what to look at."""
        if self.results:
            console.print(self._table())
        judged = [(name, verdict) for name, found in self.verdicts.items() for verdict in found]
        lines = [f"{name}, {verdict.claim}: {verdict.answer}" for name, verdict in judged]
        lines += [f"{old} was another: it is now {new}" for old, new in self.moved.items()]
        lines.append(f"{self.computed:,} blocks computed, {self.reused:,} were there; {self.seconds:.0f} seconds.")
        lines.append(f"{len(self.files)} files in {self.folder}")
        for line in lines:
            console.print(line, highlight=False, markup=False, soft_wrap=True)

    def _table(self) -> Table:
        """The first policy of every experiment, each variant: without privacy, and with the smallest budget."""
        from rich.table import Table

        columns = ("experiment", "steps x runs", "policy, instance", "no privacy", "smallest rho", "with that rho")
        table = Table(*columns, title="Mean regret ± standard error")
        table.columns[0].no_wrap = True
        for experiment, frame in self.results.values():
            scale = f"{experiment.horizon:,} x {experiment.runs}"
            for rows in _first_policy(list(_summary(experiment, frame))):
                twin = _cell(rows[-1]) if rows[-1]["rho"] == "inf" else "-"
                table.add_row(experiment.name, scale, _subject(rows[0]), twin, str(rows[0]["rho"]), _cell(rows[0]))
        return table

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data."""
        return {
            "results": self.summary(),
            "verdicts": {name: [verdict.to_dict() for verdict in found] for name, found in self.verdicts.items()},
            "tables": self.tables,
            "folder": str(self.folder),
            "files": [str(path.relative_to(self.folder)) for path in self.files],
            "moved": self.moved,
            "blocks": {"computed": self.computed, "reused": self.reused},
            "seed": self.seed,
            "seconds": self.seconds,
        }


def _summary(experiment: Experiment, frame: pd.DataFrame) -> Iterator[dict[str, Any]]:
    last = frame[frame["step"] == experiment.horizon].groupby("label")["regret"]
    means, errors = last.mean(), last.sem()
    for entry in experiment.entries:
        error = float(errors[entry.label])
        yield {
            "experiment": experiment.name,
            "policy": entry.policy,
            "variant": entry.variant,
            "instance": entry.instance.name if entry.instance else None,
            "label": entry.label,
            "rho": json_number(entry.rho),
            "regret_mean": float(means[entry.label]),
            "regret_stderr": None if math.isnan(error) else error,
            "horizon": experiment.horizon,
            "runs": experiment.runs,
        }


def _subject(row: dict[str, Any]) -> str:
    """What a row is about, as far as there is something to say."""
    policy = f"{row['policy']} ({row['variant']})" if row["variant"] else row["policy"]
    return ", ".join(filter(None, (policy, row["instance"])))


def _first_policy(rows: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """The first policy on its first instance, at all of its budgets from the smallest on: a list for each variant."""
    alike = [row for row in rows if all(row[name] == rows[0][name] for name in ("policy", "instance"))]
    for variant in dict.fromkeys(row["variant"] for row in alike):
        yield sorted((row for row in alike if row["variant"] == variant), key=lambda row: float(row["rho"]))


def _cell(row: dict[str, Any]) -> str:
    return f"{row['regret_mean']:,.0f}" + ("" if row["regret_stderr"] is None else f" ± {row['regret_stderr']:,.0f}")
