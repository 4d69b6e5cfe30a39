"""Real data as an experiment: what is run, what is shown of it, and what happens without scikit-learn."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import private_bandits as pb
from private_bandits.errors import InvalidInput, MissingExtra
from private_bandits.experiments import reproduce as command
from private_bandits.experiments.analysis.regrets import Regrets
from private_bandits.experiments.run.build import study_of
from private_bandits.experiments.run.cache import key_of
from private_bandits.experiments.run.data import EXPERIMENTS
from private_bandits.experiments.run.real_data import REAL_DATA, TABLES, bundled_table
from private_bandits.experiments.run.runner import run
from private_bandits.experiments.show.gallery import pictures_of
from private_bandits.experiments.show.shares import FIXED
from private_bandits.simulation.linucb import LinUCB
from tests.commands import call_here
from tests.experiments.small import here, planned

SMALL = replace(REAL_DATA.resized(200, 2), entries=tuple(e for e in REAL_DATA.entries if e.instance != TABLES[2]))


@pytest.mark.parametrize("instance", TABLES, ids=lambda i: i.name)
def test_tables_are_what_the_instances_say(instance: pb.experiments.Instance) -> None:
    table = bundled_table(instance.table, instance.components)
    assert (table.arms, table.dimension) == (instance.arms, instance.dimension)
    assert {"wine": 71 / 178, "breast cancer": 357 / 569, "digits": 183 / 1797}[
        instance.table
    ] == table.best_fixed_share
    with pytest.raises(InvalidInput, match="table must be one of wine, breast cancer, digits, got 'iris'"):
        bundled_table("iris", 2)


def test_it_is_simulate_on_the_same_table(tmp_path: Path) -> None:
    made, cache = planned([SMALL], tmp_path)
    ((study, frame),) = run(made, cache, here, lambda part: None)
    label = "AdaC-OFUL, breast cancer, rho = 1"
    world = bundled_table("breast cancer", 5)
    policies = {label: pb.AdaCOFUL(world.dimension, pb.zCDP(1.0), horizon=200)}
    expected = pb.simulate(policies, world, 200, runs=2, checkpoints=study.checkpoints.tolist())
    found = frame[frame["label"] == label].pivot(index="run", columns="step", values="regret").to_numpy()
    np.testing.assert_array_equal(found, expected.curves[label])
    again, _ = planned([SMALL], tmp_path)
    assert again.missing == 0
    (picture,) = pictures_of(Regrets.from_frame(SMALL, frame))
    rows = picture.to_frame()
    shown = rows[
        (rows["panel"] == "breast cancer: 2 arms, d = 12") & (rows["line"] == "AdaC-OFUL") & (rows["rho"] == 1)
    ]
    assert float(shown["value"].iloc[0]) == pytest.approx(float(expected.share_right()[label][:, -1].mean()))
    assert set(rows["line"]) == {"AdaC-OFUL", "AdaC-OFUL-private", "LinUCB", FIXED}
    assert len(picture.panels) == 4
    assert "the best fixed arm 62.7 %" in picture.words[1]
    late = rows[(rows["panel"] == "wine over time, rho = 1") & (rows["line"] == "LinUCB")]
    assert late["step"].min() >= 20
    assert late["step"].max() == 200


def test_other_rows_are_other_blocks() -> None:
    """A table is long: what is shown of it is cut, and the key must not be."""
    (task, *_) = study_of(SMALL, seed=0).tasks
    name = next(iter(task.policies))
    world = task.environment
    changed = pb.Labelled(world.contexts, world.answers)
    moved = world.contexts.copy()
    moved[len(moved) // 2, 1] += 1e-9
    keys = {
        key_of(replace(task, environment=one), name, (0, 1))
        for one in (world, changed, pb.Labelled(moved, world.answers))
    }
    assert len(keys) == 3
    assert key_of(task, name, (0, 1)) in keys


def test_the_reference_has_no_privacy() -> None:
    references = {entry.label: entry for entry in REAL_DATA.entries if entry.policy == "linucb"}
    assert len(references) == 3
    study = study_of(REAL_DATA, seed=0)
    for label, entry in references.items():
        assert entry.rho == math.inf
        assert isinstance(study.policies[label], LinUCB)
    bad = replace(next(iter(references.values())), rho=1.0)
    with pytest.raises(pb.errors.UnsupportedBudget):
        study_of(replace(REAL_DATA, entries=(bad,)), seed=0)


def test_without_scikit_learn_the_figure_says_what_to_install_and_all_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert command.left_out("all") == []
    monkeypatch.setitem(sys.modules, "sklearn", None)
    remedy = 'needs scikit-learn: pip install "private-bandits[data]"'
    assert [e.name for e in command.chosen("all")[0]] == [name for name in EXPERIMENTS if name != "real-data"]
    assert command.left_out("all") == [f"Left out: real-data {remedy}"]
    assert command.left_out("finite") == []
    done = call_here("reproduce", "--figure", "real-data", "--out", str(tmp_path / "out"))
    assert done.returncode == 2
    assert remedy in done.stderr
    assert not (tmp_path / "out").exists()
    with pytest.raises(MissingExtra, match="scikit-learn"):
        command.reproduce(command.chosen("all,real-data")[0], tmp_path / "out")


def test_all_without_scikit_learn_is_loud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn", None)
    monkeypatch.setattr(command, "EXPERIMENTS", {name: EXPERIMENTS[name] for name in ("finite-strict", "real-data")})
    options = ["--horizon", "200", "--runs", "2", "--processes", "1", "--out", str(tmp_path / "out"), "--json"]
    done = call_here("reproduce", *options)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("Left out: real-data") == 2  # at the start, and where it is seen
    assert {row["experiment"] for row in json.loads(done.stdout)["results"]} == {"finite-strict"}
