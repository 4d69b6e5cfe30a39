"""`private-bandits reproduce`: runs experiments, and writes results, pictures, tables and a report into a folder."""

from __future__ import annotations

import os
import platform
import time
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from private_bandits import __version__
from private_bandits.checks import large_number
from private_bandits.errors import InvalidInput, MissingExtra
from private_bandits.experiments.analysis.regrets import Regrets
from private_bandits.experiments.analysis.verdicts import judge_regrets
from private_bandits.experiments.outcome import ReproduceOutcome
from private_bandits.experiments.run.build import Study
from private_bandits.experiments.run.cache import LIBRARIES, Cache, version_of
from private_bandits.experiments.run.data import EXPERIMENTS
from private_bandits.experiments.run.experiment import Entry, Experiment
from private_bandits.experiments.run.results_folder import Folder
from private_bandits.experiments.run.runner import Compute, Plan, plan, run
from private_bandits.experiments.run.settings import RHOS_PLACEMENT
from private_bandits.experiments.show.drawing import Painters
from private_bandits.experiments.show.report import Chapter, write_chapters
from private_bandits.loading import require
from private_bandits.plain_data import json_number
from private_bandits.progress import progress as progress_bar
from private_bandits.simulation import workers
from private_bandits.theory.paper_tables import table_one, table_two

if TYPE_CHECKING:
    import pandas as pd

TABLES = "tables"
EVERYTHING = "all"
HORIZON_OF_TABLES = 10**7
LEAST = {"horizon": 100, "runs": 1}
"""Fewer steps leave no course of regret to be judged."""
LINE_EVERY = 20.0
"""Seconds between lines about the progress, where there is no terminal for a bar."""
SAID_BY_WORLDS = ("actions", "arms")
"""Parameters that may be long, and are those of the environment."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, with words on what is kept."""


def chosen(
    figure: str, horizon: float | None = None, runs: float | None = None, quick: bool = False, full: bool = False
) -> tuple[list[Experiment], int | None]:
    """The experiments at their scale, and the horizon of the tables, None where these are not asked for.

    figure: names with commas between; strict, rivals, tight, lower: those of all settings; all: every one, and the
    tables, but for what needs an extra that is not installed (`left_out`). An experiment that is named has the horizon
    and runs that are given. With "all" they are for the paper's experiments and tables; the others have at most that,
    so that what plays every step of slow policies keeps its own scale.

    >>> [(e.name, e.horizon, e.runs) for e in chosen("finite,finite-strict", horizon=10**6)[0]]
    [('finite', 1000000, 100), ('finite-strict', 1000000, 20)]
    """
    if quick and full:
        raise InvalidInput("quick and full are two scales: choose one")
    names = list(dict.fromkeys(figure.split(",")))
    for name in names:
        if name not in (*EXPERIMENTS, *GROUPS, TABLES, EVERYTHING):
            known = ", ".join([*EXPERIMENTS, *GROUPS, TABLES, EVERYTHING])
            raise InvalidInput(f"figure must be one of {known}, or several with commas between, got {name!r}")
    found = []
    for experiment in EXPERIMENTS.values():
        named = not {experiment.name, _group(experiment.name)}.isdisjoint(names)
        if named or (EVERYTHING in names and not lacks_extra(experiment)):
            own = experiment.quick if quick else experiment.full if full else (experiment.horizon, experiment.runs)
            limit = not (named or experiment.of_the_paper)
            steps, repeats = _given("horizon", horizon, own[0], limit), _given("runs", runs, own[1], limit)
            found.append(experiment.resized(steps, repeats))
    tables = TABLES in names or EVERYTHING in names
    return found, _given("horizon", horizon, HORIZON_OF_TABLES, limit=False) if tables else None


def left_out(figure: str) -> list[str]:
    """Return a sentence for each experiment that `all` goes on without, as its extra is not installed."""
    names = figure.split(",")
    if EVERYTHING not in names:
        return []
    missing = [lacks_extra(experiment) for experiment in EXPERIMENTS.values() if experiment.name not in names]
    return [f"Left out: {words}" for words in missing if words]


def lacks_extra(experiment: Experiment) -> str:
    """Return what has to be installed for an experiment beside the extra of all of them; empty if nothing."""
    try:
        _require_own(experiment)
    except MissingExtra as error:
        return str(error)
    return ""


def _require_own(experiment: Experiment) -> None:
    if experiment.extra:
        require(experiment.name, experiment.extra)


def _group(name: str) -> str:
    """What several experiments end with, one for each setting."""
    return name.rpartition("-")[2]


_ENDINGS = Counter(_group(e.name) for e in EXPERIMENTS.values() if not e.of_the_paper)
GROUPS = tuple(ending for ending, count in _ENDINGS.items() if count > 1)
"""strict, rivals, ...: those of all settings."""


def _given(name: str, value: float | None, own: int, limit: bool) -> int:
    if value is None:
        return own
    whole = large_number(name, value, LEAST[name])
    return min(whole, own) if limit else whole


def reproduce(
    experiments: Sequence[Experiment],
    out: Path,
    tables: int | None = None,
    seed: int = 0,
    processes: int = 1,
    dask: str | None = None,
    progress: bool = True,
) -> ReproduceOutcome:
    """Run the experiments and write all that comes of them into the folder `out`.

    What an earlier run into the same folder has computed is not computed again. tables: the horizon that the paper's
    tables are evaluated at, None for no tables. dask: the address of a scheduler, whose workers then do the work of
    the processes; the numbers are the same. Experiments need the extra "experiments", a cluster also "dask": without
    them nothing is done.
    """
    check_extras(experiments, dask)
    began = time.perf_counter()
    seed, processes = large_number("seed", seed, least=0), large_number("processes", processes)
    outcome = ReproduceOutcome(out, seed)
    with Folder(out).alone() as folder, Painters(folder, processes) as painters:
        if experiments:
            _run(experiments, folder, outcome, _where(processes, dask), painters, progress)
        outcome.files += painters.finish()
        outcome.results = {e.name: outcome.results[e.name] for e in experiments}  # in the order of the report
        outcome.verdicts = {name: outcome.verdicts[name] for name in outcome.results if name in outcome.verdicts}
        if tables is not None:
            _write_tables(folder, outcome, tables)
        if outcome.results:
            _write_report(folder, outcome)
    outcome.files = list(dict.fromkeys(outcome.files))
    outcome.moved = folder.moved
    outcome.seconds = time.perf_counter() - began
    return outcome


def check_extras(experiments: Sequence[Experiment], dask: str | None = None) -> None:
    """Refuse experiments whose extras are not installed."""
    if experiments:
        require("reproduce", "experiments")
        for experiment in experiments:
            _require_own(experiment)
        if dask is not None:
            require("a Dask cluster", "dask")


def cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _where(processes: int, dask: str | None) -> Compute:
    if dask is None:
        # What has to be compiled is compiled by the first job that needs it, while others run.
        return lambda jobs, report: workers.compute(jobs, processes, report)
    from private_bandits.experiments.run import cluster  # here: a slow import of an extra

    return partial(cluster.compute, dask)


def _run(
    experiments: Sequence[Experiment],
    folder: Folder,
    outcome: ReproduceOutcome,
    compute: Compute,
    painters: Painters,
    progress: bool,
) -> None:
    cache = Cache(folder.cache)
    made = plan(experiments, outcome.seed, cache)
    outcome.computed, outcome.reused = made.missing, made.blocks - made.missing
    try:
        with progress_bar("simulating", enabled=progress, line_every=LINE_EVERY) as report:
            for study, frame in run(made, cache, compute, report):
                outcome.results[study.experiment.name] = (study.experiment, frame)
                _write_results(folder, outcome, study, frame)
                painters.draw(outcome.regrets[study.experiment.name], frame)
    except KeyboardInterrupt:
        raise Interrupted(_kept(made, folder)) from None


def _kept(made: Plan, folder: Folder) -> str:
    return (
        f"Stopped. {made.blocks - made.missing:,} of {made.blocks:,} blocks are in {folder.cache}: "
        "the same command goes on from there."
    )


def _write_results(folder: Folder, outcome: ReproduceOutcome, study: Study, frame: pd.DataFrame) -> None:
    name = study.experiment.name
    outcome.files += folder.put_frame(name, frame)
    outcome.files.append(folder.put_settings(name, settings_of(study)))
    outcome.regrets[name] = Regrets.from_frame(study.experiment, frame)
    outcome.verdicts[name] = judge_regrets(outcome.regrets[name])


def _write_tables(folder: Folder, outcome: ReproduceOutcome, horizon: int) -> None:
    """Each table at several budgets, one beneath the other."""
    for name, make in (("one", table_one), ("two", table_two)):
        rows = [
            {"horizon": horizon, "rho": rho, **row}
            for rho in RHOS_PLACEMENT
            for row in make(horizon=horizon, budget=rho)
        ]
        outcome.tables[name] = rows
        outcome.files.append(folder.put_rows(f"table-{name}", rows))


def _write_report(folder: Folder, outcome: ReproduceOutcome) -> None:
    settings = folder.settings()
    chapters = [
        Chapter.of(outcome.regrets[name], frame, outcome.verdicts[name]) for name, (_, frame) in outcome.results.items()
    ]
    shown = {"seed": outcome.seed, "version": __version__, **{name: settings[name] for name in outcome.results}}

    def write(path: Path) -> None:
        write_chapters(path, chapters, outcome.tables, shown)

    outcome.files.append(folder.put_made("report.html", write))


def settings_of(study: Study) -> dict[str, Any]:
    """All that the results of an experiment follow from, as plain data."""
    experiment = study.experiment
    worlds = list(dict.fromkeys(str(study.environments[entry.label]) for entry in experiment.entries))
    return {
        "title": experiment.title,
        "setting": experiment.setting,
        "setting_as": experiment.setting_as,
        "guarantee": experiment.guarantee,
        **({"environment": worlds[0]} if len(worlds) == 1 else {"environments": worlds}),
        "horizon": experiment.horizon,
        "runs": experiment.runs,
        "seed": study.seed,
        "checkpoints": study.checkpoints.tolist(),
        "policies": [_entry_settings(study, entry, worlds) for entry in experiment.entries],
        "versions": {
            "private-bandits": __version__,
            "python": platform.python_version(),
            **{library: version_of(library) for library in LIBRARIES},
        },
    }


def _entry_settings(study: Study, entry: Entry, worlds: list[str]) -> dict[str, Any]:
    """Of one policy. Where there are several worlds it names its own by number, and leaves out what that one says."""
    found = {"label": entry.label, "rho": json_number(entry.rho), **study.policies[entry.label].to_dict()}
    if len(worlds) == 1:
        return found
    own = worlds.index(str(study.environments[entry.label]))
    return {name: value for name, value in found.items() if name not in SAID_BY_WORLDS} | {"environment": own}
