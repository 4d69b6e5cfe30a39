"""The runner: the numbers of simulate, nothing computed twice, nothing lost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import private_bandits as pb
from private_bandits.errors import InvalidInput
from private_bandits.experiments.run import cache as caches
from private_bandits.experiments.run.build import study_of
from private_bandits.experiments.run.data import Experiment
from private_bandits.experiments.run.runner import COLUMNS, Compute, run
from private_bandits.simulation import engines
from private_bandits.simulation.workers import Finished, Job, Shares, compute
from tests.experiments.small import FINITE, LINEAR, PLACEMENT, contextual, here, planned


def frames(
    experiments: Sequence[Experiment], folder: Path, how: Compute = here, seed: int = 0
) -> dict[str, pd.DataFrame]:
    made, cache = planned(experiments, folder, seed)
    return {study.experiment.name: frame for study, frame in run(made, cache, how, lambda part: None)}


def jobs_of(experiments: Sequence[Experiment], folder: Path) -> list[tuple[list[str], tuple[int, int]]]:
    """What would be computed: labels and block of each job."""
    return [(list(task.policies), block) for task, block in planned(experiments, folder)[0].jobs]


@pytest.mark.parametrize("experiment", [FINITE, LINEAR, contextual()], ids=lambda e: e.name)
def test_numbers_are_those_of_simulate(experiment: Experiment, tmp_path: Path) -> None:
    frame = frames([experiment], tmp_path, seed=5)[experiment.name]
    study = study_of(experiment, seed=5)
    result = pb.simulate(study.policies, study.environment, experiment.horizon, experiment.runs, seed=5)
    assert tuple(frame.columns) == COLUMNS
    assert len(frame) == len(experiment.entries) * experiment.runs * len(result.checkpoints)
    for entry in experiment.entries:
        rows = frame[frame["label"] == entry.label]
        table = rows.pivot_table(index="run", columns="step", values="regret", sort=False)
        np.testing.assert_array_equal(table.to_numpy(), result.curves[entry.label])
        np.testing.assert_array_equal(table.columns.to_numpy(), result.checkpoints)
        assert set(rows["rho"]) == {entry.rho}
        assert set(rows["policy"]) == {entry.policy}
    assert set(frame["seed"]) == {5}
    assert set(frame["version"]) == {pb.__version__}


def test_what_is_there_is_not_computed_again(tmp_path: Path) -> None:
    first = frames([FINITE, LINEAR], tmp_path)

    def refuse(jobs: Sequence[Job], report: Shares) -> Finished:
        assert not jobs
        yield from ()

    for name, frame in frames([LINEAR, FINITE], tmp_path, refuse).items():
        pd.testing.assert_frame_equal(frame, first[name])


def test_experiments_share_what_they_have_in_common(tmp_path: Path) -> None:
    """AdaC-GOPE at four budgets stands in both."""
    asked = [label for labels, _ in jobs_of([LINEAR, PLACEMENT], tmp_path) for label in labels]
    shared = {entry.label for entry in PLACEMENT.entries} & {entry.label for entry in LINEAR.entries}
    assert len(shared) == 4
    assert len(asked) == len(LINEAR.entries) + len(PLACEMENT.entries) - 4
    both = frames([LINEAR, PLACEMENT], tmp_path)
    alone = frames([PLACEMENT], tmp_path / "other")
    pd.testing.assert_frame_equal(both["noise-placement"], alone["noise-placement"])


def test_one_more_budget_costs_only_itself(tmp_path: Path) -> None:
    frames([contextual((0.1, math.inf))], tmp_path)
    wider = contextual((0.1, 1.0, math.inf))
    assert jobs_of([wider], tmp_path) == [(["AdaC-OFUL, rho = 1"], (block, 1)) for block in (0, 1)]
    added = frames([wider], tmp_path)["contextual"]
    pd.testing.assert_frame_equal(added, frames([wider], tmp_path / "other")["contextual"])


def test_more_runs_keep_the_blocks_that_are_there(tmp_path: Path) -> None:
    made, cache = planned([contextual()], tmp_path)
    for i, keys in enumerate(made.wanted):
        for key in keys:
            cache.put(key, np.full((1, len(made.studies[0].checkpoints)), float(i)))  # stands for what was computed
    assert jobs_of([contextual()], tmp_path) == []
    more = contextual().resized(600_000, 3)
    assert jobs_of([more], tmp_path) == [(["AdaC-OFUL, rho = 0.1", "AdaC-OFUL, no privacy"], (2, 1))]


def test_other_settings_and_other_code_are_other_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frames([FINITE], tmp_path)
    assert not jobs_of([FINITE], tmp_path)
    everything = [([entry.label for entry in FINITE.entries], (0, 4))]
    assert planned([FINITE], tmp_path, seed=1)[0].missing == 14
    assert jobs_of([FINITE.resized(3001, 4)], tmp_path) == everything
    monkeypatch.setattr(caches, "code_digest", lambda module: "another")
    assert jobs_of([FINITE], tmp_path) == everything


def test_the_state_of_the_code_is_all_that_numbers_depend_on(monkeypatch: pytest.MonkeyPatch) -> None:
    sources = caches._own_sources()
    assert set(caches.ROOTS) <= set(sources)
    names = {name.removeprefix("private_bandits.") for name in sources}
    assert {
        "simulation.oful_kernels",
        "simulation.trees",
        "policies.dp_se",
        "environments",
        "design.optimal",
        "budget",
    } <= names
    assert not names & {"cli", "progress", "experiments.run.data", "simulation.workers", "testing"}
    digest = caches.code_digest.__wrapped__
    before = digest()
    assert digest(__name__) != before  # a policy of another module: its file counts
    changed = {**sources, "private_bandits.budget": b"# another"}
    monkeypatch.setattr(caches, "_own_sources", lambda: changed)
    assert digest() != before
    monkeypatch.setattr(caches, "_own_sources", lambda: sources)
    monkeypatch.setattr(caches, "version_of", lambda library: "another")
    assert digest() != before


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "other shape", "not a number"])
def test_damaged_blocks_are_computed_again(damage: str, tmp_path: Path) -> None:
    before = frames([FINITE], tmp_path)["finite-strict"]
    path = sorted(tmp_path.glob("*.npz"))[0]
    data = path.read_bytes()
    middle = len(data) // 2
    with np.load(path) as file:
        curves = file["curves"]
    if damage == "other shape":
        np.savez(path, curves=curves[:, :-1])
    elif damage == "not a number":
        np.savez(path, curves=curves * np.nan)
    else:
        flipped = data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]
        path.write_bytes({"cut": data[:middle], "flipped": flipped, "empty": b""}[damage])
    ((labels, _),) = jobs_of([FINITE], tmp_path)
    assert len(labels) == 1
    pd.testing.assert_frame_equal(frames([FINITE], tmp_path)["finite-strict"], before)
    assert path.read_bytes() == data


def test_an_interrupt_keeps_what_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "BLOCK", 1)
    experiments = [FINITE, LINEAR]

    def stop_after_five(jobs: Sequence[Job], report: Shares) -> Finished:
        for number, done in enumerate(compute(jobs, 1, report)):
            yield done
            if number == 4:
                raise KeyboardInterrupt

    made, cache = planned(experiments, tmp_path)
    assert len(made.jobs) == 7
    with pytest.raises(KeyboardInterrupt):
        list(run(made, cache, stop_after_five, lambda part: None))
    left = planned(experiments, tmp_path)[0]
    assert [block for _, block in left.jobs] == [block for _, block in made.jobs[5:]]
    assert made.missing == left.missing == 2 * 14
    after = frames(experiments, tmp_path)
    for name, frame in frames(experiments, tmp_path / "other").items():
        pd.testing.assert_frame_equal(after[name], frame)


def test_numbers_do_not_depend_on_the_number_of_processes(tmp_path: Path) -> None:
    """Threads for the compiled one, processes for the other, at the same time."""

    def side_by_side(jobs: Sequence[Job], report: Shares) -> Finished:
        return compute(jobs, 2, report)

    experiments = [LINEAR, contextual()]
    shares: list[float] = []
    made, cache = planned(experiments, tmp_path / "two")
    two = {study.experiment.name: frame for study, frame in run(made, cache, side_by_side, shares.append)}
    for name, frame in frames(experiments, tmp_path / "one").items():
        pd.testing.assert_frame_equal(two[name], frame)
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1)


def test_a_finished_experiment_does_not_wait_for_the_others(tmp_path: Path) -> None:
    made, cache = planned([FINITE, LINEAR], tmp_path)
    study, _ = next(run(made, cache, here, lambda part: None))
    assert study.experiment.name == "finite-strict"
    assert made.missing == 14


def test_two_experiments_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="different names, got linear, linear"):
        planned([LINEAR, LINEAR.resized(10, 1)], tmp_path)
