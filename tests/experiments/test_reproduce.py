"""The command: files, what happens to those that stand there, Ctrl-C, the same bytes from the same seed."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from rich.console import Console

import private_bandits as pb
from private_bandits.errors import InvalidInput
from private_bandits.experiments import reproduce as command
from private_bandits.experiments.analysis import verdicts
from private_bandits.experiments.analysis.regrets import Regrets
from private_bandits.experiments.outcome import ReproduceOutcome
from private_bandits.experiments.run.build import study_of
from private_bandits.experiments.run.data import EXPERIMENTS, Experiment
from private_bandits.experiments.run.results_folder import Folder
from private_bandits.experiments.show import drawing
from tests.experiments.small import FINITE, LINEAR, PLACEMENT, contextual
from tests.interruptible import hears_interrupts

COMMAND = str(Path(sys.executable).with_name("private-bandits"))


class Idle(drawing.Painters):
    """Draws nothing."""

    def draw(self, regrets: Regrets, frame: pd.DataFrame) -> None:
        pass


@pytest.fixture(autouse=True)
def numbers_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pictures, verdicts and the report are tested where they are made."""
    monkeypatch.setattr(command, "Painters", Idle)
    monkeypatch.setattr(command, "judge_regrets", lambda regrets: [])
    monkeypatch.setattr(command, "_write_report", lambda folder, outcome: None)


def reproduce(folder: Path, *experiments: Any, seed: int = 0) -> ReproduceOutcome:
    return command.reproduce(experiments, folder, seed=seed, progress=False)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("*.*")}


def test_files_and_the_same_bytes_from_the_same_seed(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    outcome = reproduce(one, FINITE, LINEAR)
    reproduce(two, LINEAR, FINITE)
    expected = {f"{name}.{ending}" for name in ("finite-strict", "linear") for ending in ("csv", "parquet")}
    assert set(contents(one)) == expected | {"settings.json"}
    assert contents(one) == contents(two)
    assert (outcome.computed, outcome.reused, outcome.moved) == (28, 0, {})
    frame = outcome.results["linear"][1]
    for read in (
        pd.read_csv(one / "linear.csv"),
        pd.read_parquet(one / "linear.parquet"),
    ):
        pd.testing.assert_frame_equal(read, frame, check_dtype=False)


def test_running_again_changes_nothing(tmp_path: Path) -> None:
    reproduce(tmp_path, FINITE)
    before = contents(tmp_path)
    again = reproduce(tmp_path, FINITE)
    assert (again.computed, again.reused, again.moved) == (0, 14, {})
    assert contents(tmp_path) == before
    assert not (tmp_path / "earlier").exists()


def test_another_experiment_joins_the_ones_that_are_there(tmp_path: Path) -> None:
    reproduce(tmp_path, LINEAR)
    before = contents(tmp_path)
    added = reproduce(tmp_path, PLACEMENT)
    assert (added.computed, added.reused) == (4, 4)
    after = contents(tmp_path)
    assert {name: after[name] for name in before if name != "settings.json"} == {
        name: data for name, data in before.items() if name != "settings.json"
    }
    assert list(json.loads(after["settings.json"])) == ["linear", "noise-placement"]
    assert not added.moved


def test_results_of_other_settings_are_moved_aside(tmp_path: Path) -> None:
    reproduce(tmp_path, FINITE)
    before = contents(tmp_path)
    changed = reproduce(tmp_path, FINITE.resized(2000, 4))
    assert changed.moved == {name: f"earlier/1/{name}" for name in before}
    assert contents(tmp_path / "earlier" / "1") == before
    assert json.loads((tmp_path / "settings.json").read_text())["finite-strict"]["horizon"] == 2000
    back = reproduce(tmp_path, FINITE)  # as it was: from the cache
    assert (back.computed, back.reused) == (0, 14)
    assert contents(tmp_path) == before
    assert json.loads((tmp_path / "earlier" / "2" / "settings.json").read_text())["finite-strict"]["horizon"] == 2000


def test_files_of_others_are_not_lost(tmp_path: Path) -> None:
    (tmp_path / "settings.json").write_text("mine")
    (tmp_path / "finite-strict.csv").write_text("mine too")
    reproduce(tmp_path, FINITE)
    assert (tmp_path / "earlier" / "1" / "settings.json").read_text() == "mine"
    assert (tmp_path / "earlier" / "1" / "finite-strict.csv").read_text() == "mine too"
    with pytest.raises(InvalidInput, match="is a file"):
        Folder(tmp_path / "settings.json")


def test_one_command_at_a_time_writes_to_a_folder(tmp_path: Path) -> None:
    with Folder(tmp_path).alone(), pytest.raises(InvalidInput, match="another command is writing to"):
        reproduce(tmp_path, FINITE)
    reproduce(tmp_path, FINITE)


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidInput, match=r"cannot be written to \(Not a directory\): name another folder"):
        reproduce(tmp_path / "file" / "below", FINITE)


def test_a_file_that_cannot_be_made_leaves_the_old_one(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.put("a.txt", b"old")

    def fail(path: Path) -> None:
        path.write_text("half")
        raise RuntimeError

    with pytest.raises(RuntimeError):
        folder.put_made("a.txt", fail)
    assert [(path.name, path.read_text()) for path in tmp_path.glob("*.txt")] == [("a.txt", "old")]


def test_variants_on_several_worlds(tmp_path: Path) -> None:
    """Rows, settings and the table tell variants and worlds apart, and numbers are those of `simulate`."""
    experiment = EXPERIMENTS["linear-tight"].resized(1000, 2)
    outcome = reproduce(tmp_path, experiment, seed=7)
    settings = json.loads((tmp_path / "settings.json").read_text())["linear-tight"]
    assert len(settings["environments"]) == len({entry.instance for entry in experiment.entries}) == 6
    rows = outcome.summary()
    assert {(row["variant"], row["instance"]) for row in rows} >= {
        ("paper", "as in the paper"),
        ("tight", "d = 3 and K = 100 drawn"),
    }
    study = study_of(experiment, seed=7)
    for row, said in zip(rows[-2:], settings["policies"][-2:], strict=True):
        world = study.environments[row["label"]]
        assert settings["environments"][said["environment"]] == str(world)
        assert (said["variant"], "actions" in said) == (row["variant"], False)
        alone = pb.simulate({"p": study.policies[row["label"]]}, world, 1000, 2, seed=7, progress=False)
        assert row["regret_mean"] == alone.final["p"].mean()
    printed = io.StringIO()
    outcome.print(Console(file=printed, width=200))
    assert f"{rows[0]['regret_mean']:,.0f} ±" in printed.getvalue()  # the first variant on the first world


def test_settings_say_what_was_run(tmp_path: Path) -> None:
    reproduce(tmp_path, contextual().resized(100, 2), seed=7)
    settings = json.loads((tmp_path / "settings.json").read_text())["contextual"]
    assert (settings["horizon"], settings["runs"], settings["seed"]) == (100, 2, 7)
    assert settings["environment"].startswith("Contextual(dimension=3, arms=10, theta=(")
    assert [(row["policy"], row["rho"], row["horizon"]) for row in settings["policies"]] == [
        ("adac-oful", 0.1, 100),
        ("adac-oful", "inf", 100),
    ]
    assert {"private-bandits", "numpy", "numba", "python"} == set(settings["versions"])
    assert "no privacy holds for these runs" in settings["guarantee"]


def test_what_is_told(tmp_path: Path) -> None:
    outcome = reproduce(tmp_path, FINITE)
    data = json.loads(json.dumps(outcome.to_dict()))
    rows = {row["label"]: row for row in data["results"]}
    frame = outcome.results["finite-strict"][1]
    last = frame[(frame["label"] == "AdaC-UCB, rho = 1") & (frame["step"] == 3000)]["regret"]
    assert rows["AdaC-UCB, rho = 1"]["regret_mean"] == pytest.approx(last.mean())
    assert rows["AdaC-UCB, rho = 1"]["regret_stderr"] == pytest.approx(last.std() / 2)
    assert rows["AdaC-UCB, no privacy"]["rho"] == "inf"
    assert data["blocks"] == {"computed": 14, "reused": 0}
    assert "finite-strict.csv" in data["files"]
    screen = io.StringIO()
    outcome.print(Console(file=screen, width=100))
    assert "14 blocks computed, 0 were there" in screen.getvalue()


def test_every_file_that_is_written_is_listed(tmp_path: Path) -> None:
    outcome = command.reproduce([FINITE], tmp_path, tables=1000, progress=False)
    assert [path.name for path in outcome.files] == [
        *("finite-strict.csv", "finite-strict.parquet", "settings.json"),
        *("table-one.csv", "table-two.csv"),
    ]
    assert all(path.exists() for path in outcome.files)


def test_pictures_are_drawn_only_where_they_would_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = reproduce(tmp_path, FINITE).results["finite-strict"][1]
    calls: list[str] = []

    def fake(regrets: Regrets) -> dict[str, bytes]:
        calls.append(regrets.experiment.title)
        total = sum(curves.sum() for curves in regrets.of.values())
        return {"figures/a.png": f"{regrets.experiment.title} {total}".encode()}

    monkeypatch.setattr(drawing, "drawn", fake)

    def draw(experiment: Experiment, numbers: pd.DataFrame) -> bytes:
        with drawing.Painters(Folder(tmp_path), 1) as painters:
            painters.draw(Regrets.from_frame(experiment, numbers), numbers)
            (path,) = painters.finish()
        return path.read_bytes()

    first = draw(FINITE, frame)
    assert draw(FINITE, frame) == first
    assert len(calls) == 1
    (tmp_path / "figures" / "a.png").write_text("somebody drew on it")
    assert draw(FINITE, frame) == first
    assert (tmp_path / "earlier" / "1" / "figures" / "a.png").read_text() == "somebody drew on it"
    (note,) = tmp_path.glob("cache/*.pictures.json")
    note.write_text("{}")
    assert draw(FINITE, frame) == first
    assert draw(FINITE, frame.assign(regret=1.0)) != first
    assert draw(replace(FINITE, title="another"), frame).startswith(b"another")
    assert draw(FINITE, frame) == first
    assert len(calls) == 6


def test_a_table_is_read_and_judged_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()  # the pictures, verdicts and report that users get
    made = replace(FINITE, claims=("price-vanishes",))
    calls: list[str] = []
    read, judged = Regrets.from_frame, verdicts.CLAIMS["price-vanishes"]

    def reads(experiment: Experiment, frame: pd.DataFrame) -> Regrets:
        calls.append("read")
        return read(experiment, frame)

    def judges(regrets: Regrets) -> Iterator[verdicts.Verdict]:
        calls.append("judged")
        return judged(regrets)

    monkeypatch.setattr(Regrets, "from_frame", reads)
    monkeypatch.setitem(verdicts.CLAIMS, "price-vanishes", judges)
    outcome = reproduce(tmp_path, made)
    assert sorted(calls) == ["judged", "read"]
    assert outcome.verdicts[made.name][0].words in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert len(list((tmp_path / "figures").glob("*.png"))) == len(made.figures)


def test_one_run_has_no_standard_error(tmp_path: Path) -> None:
    assert {row["regret_stderr"] for row in reproduce(tmp_path, FINITE.resized(100, 1)).summary()} == {None}


def call(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([COMMAND, "reproduce", *arguments], capture_output=True, text=True, timeout=120, check=False)


def test_the_command_line(tmp_path: Path) -> None:
    done = call("--figure", "finite", "--horizon", "1e3", "--runs", "3", "--out", str(tmp_path / "new"), "--json")
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    assert {(row["experiment"], row["horizon"], row["runs"]) for row in data["results"]} == {("finite", 1000, 3)}
    assert len(pd.read_csv(tmp_path / "new" / "finite.csv")) > 0


def test_what_is_printed_for_machines_is_json_where_a_twin_has_no_budget(tmp_path: Path) -> None:
    done = call("--figure", "finite-tight", "--horizon", "100", "--runs", "2", "--out", str(tmp_path), "--json")
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout, parse_constant=pytest.fail)
    (verdict,) = data["verdicts"]["finite-tight"]
    assert "inf" in {row["rho"] for row in verdict["numbers"]}


def test_bad_settings_are_named(tmp_path: Path) -> None:
    for change, words in (({"processes": 0}, "processes must be"), ({"seed": -1}, "seed must be")):
        with pytest.raises(InvalidInput, match=words):
            command.reproduce([FINITE], tmp_path / "new", **change)  # type: ignore[arg-type]
    assert not (tmp_path / "new").exists()


HELD = """
import time
from private_bandits.cli import main
from private_bandits.simulation.run import Task

call = Task.__call__

def held(self, block, report=lambda part: None):
    while block[0] >= 2:
        report(0.0)
        time.sleep(0.01)
    return call(self, block, report)

Task.__call__ = held
main()
"""
"""The command, but from the third block on it computes, and tells how far it is, until somebody stops it."""


def test_an_interrupted_command_goes_on_where_it_stopped(tmp_path: Path) -> None:
    """Ctrl-C in a terminal reaches every process of the group, so all of them get it here."""
    stopped, runs = tmp_path / "stopped", 6  # two are done, two are stopped, two have not begun
    options = ["--figure", "contextual", "--horizon", "6e5", "--runs", str(runs), "--processes", "2", "--json"]
    options += ["--out", str(stopped)]
    running = subprocess.Popen(
        [sys.executable, "-c", HELD, "reproduce", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=hears_interrupts,
    )
    blocks = stopped / "cache"
    deadline = time.monotonic() + 100
    while len(list(blocks.glob("*.npz"))) < 14 and running.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    os.killpg(running.pid, signal.SIGINT)
    out, err = running.communicate(timeout=60)
    assert (running.returncode, out) == (130, ""), err
    assert "the same command goes on from there" in err
    assert "Traceback" not in err
    kept = len(list(blocks.glob("*.npz")))
    assert kept == 14
    assert not list(stopped.glob("*.csv"))
    experiment = EXPERIMENTS["contextual"].resized(600_000, runs)
    done = reproduce(stopped, experiment)
    assert (done.computed, done.reused) == (runs * 7 - kept, kept)
    reproduce(tmp_path / "straight", experiment)
    assert (stopped / "contextual.csv").read_bytes() == (tmp_path / "straight" / "contextual.csv").read_bytes()
