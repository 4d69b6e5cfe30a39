"""What is drawn, against an implementation with pandas alone; and matplotlib's files."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import private_bandits as pb
from private_bandits.errors import InvalidInput
from private_bandits.experiments.analysis.regrets import Regrets
from private_bandits.experiments.analysis.wording import number
from private_bandits.experiments.run.data import Entry, Instance, entries
from private_bandits.experiments.show import figures
from private_bandits.experiments.show.gallery import PICTURES, pictures
from private_bandits.experiments.show.pictures import Picture
from private_bandits.palette import INK, rho_colour
from private_bandits.theory import finite_lower_scan, reference_regret
from tests.experiments.samples import (
    STEPS,
    Floats,
    experiment,
    finite,
    frame_of,
    label_of,
    made_up,
    placement,
    rivals,
    tight,
)

MADE, FRAME = finite()
DRAWN = {picture.name: picture for picture in pictures(MADE, FRAME)}


def at_the_end(frame: pd.DataFrame, policy: str, rho: float) -> pd.Series[float]:
    rows = frame[(frame["policy"] == policy) & (frame["rho"] == rho) & (frame["step"] == frame["step"].max())]
    return pd.Series(rows["regret"].to_numpy(np.float64), index=rows["run"])


def line_of(picture: Picture, panel: str, label: str) -> pd.DataFrame:
    rows = picture.to_frame()
    return rows[(rows["panel"] == panel) & (rows["line"] == label)]


@pytest.mark.parametrize("rho", [0.01, 1.0, 100.0])
def test_differences(rho: float) -> None:
    theirs = stats.ttest_ind(
        at_the_end(FRAME, "adac-ucb", rho), at_the_end(FRAME, "adac-ucb", math.inf), equal_var=False
    )
    expected = theirs.confidence_interval(0.95)
    row = line_of(DRAWN["difference"], "Linear scale", label_of("adac-ucb", rho)).iloc[0]
    assert row["rho"] == rho
    assert (row["low"], row["high"]) == pytest.approx((expected.low, expected.high), rel=1e-9)
    middle = at_the_end(FRAME, "adac-ucb", rho).mean() - at_the_end(FRAME, "adac-ucb", math.inf).mean()
    assert row["value"] == pytest.approx(middle, rel=1e-9)


def test_contextual_runs_are_compared_in_pairs() -> None:
    """The same numbers, said to be contextual: the interval is that of the paired test."""
    made, frame = experiment(["difference"], setting="contextual"), FRAME
    theirs = stats.ttest_rel(at_the_end(frame, "adac-ucb", 1.0), at_the_end(frame, "adac-ucb", math.inf))
    row = line_of(pictures(made, frame)[0], "Linear scale", label_of("adac-ucb", 1.0)).iloc[0]
    expected = theirs.confidence_interval(0.95)
    assert (row["low"], row["high"]) == pytest.approx((expected.low, expected.high), rel=1e-9)


@pytest.mark.parametrize("rho", [0.01, 100.0])
def test_prices_at_every_step(rho: float) -> None:
    means = FRAME.groupby(["rho", "step"])["regret"].mean().unstack(0)
    expected = (means[rho] - means[math.inf])[means[math.inf] > 0] / means[math.inf][means[math.inf] > 0]
    drawn = line_of(DRAWN["price"], "AdaC-UCB", f"rho = {rho:g}")
    np.testing.assert_array_equal(drawn["step"], expected.index)
    np.testing.assert_allclose(drawn["value"], expected, rtol=1e-9, atol=1e-12)
    assert len(expected) < len(means)  # the first pull is of the best arm: no regret to compare with


def test_bands_of_regret() -> None:
    rows = FRAME[(FRAME["rho"] == 1.0)].groupby("step")["regret"]
    drawn = line_of(DRAWN["curves"], "AdaC-UCB", "rho = 1")
    reach = stats.t.ppf(0.975, 11) * rows.sem()
    np.testing.assert_allclose(drawn["value"], rows.mean(), rtol=1e-9)
    np.testing.assert_allclose(drawn["high"], rows.mean() + reach, rtol=1e-9)
    np.testing.assert_allclose(drawn["low"], rows.mean() - reach, rtol=1e-9, atol=1e-9)


def test_placement_and_excess() -> None:
    made, frame = placement()
    picture = pictures(made, frame)[0]
    assert [panel.title for panel in picture.panels] == [
        "rho = 0.001",
        "rho = 0.1",
        "How far the variant is above",
    ]
    first, second = (at_the_end(frame, policy, 0.1).mean() for policy in ("adac-gope", "adac-gope-var"))
    excess = line_of(picture, "How far the variant is above", "rho = 0.1").iloc[-1]["value"]
    assert excess == pytest.approx(second / first - 1, rel=1e-9, abs=1e-12)
    assert line_of(picture, "rho = 0.1", "AdaC-GOPE-Var").iloc[-1]["value"] == pytest.approx(second)


def test_rivals_and_their_order() -> None:
    made, frame = rivals()
    picture = pictures(made, frame)[0]
    ends = line_of(picture, "At the end", "AdaP-UCB")["value"]
    expected = [at_the_end(frame, "adap-ucb", rho).mean() for rho in (0.1, 1.0, math.inf)]
    assert list(ends) == pytest.approx(expected)
    assert [panel.title for panel in picture.panels[1:]] == ["rho = 0.1", "rho = 1", "no privacy"]
    best = "AdaC-UCB" if at_the_end(frame, "adac-ucb", 0.1).mean() < expected[0] else "AdaP-UCB"
    assert f"Rho = 0.1: {best}" in picture.words[0]
    assert "reference" not in picture.words[0]  # no means are given


def test_rivals_are_told_as_multiples_of_the_reference_of_their_own_budget() -> None:
    made, frame = rivals(means=(0.9, 0.5, 0.1))
    words = pictures(made, frame)[0].words[0]
    steps = int(frame["step"].max())
    for name, policy, budget in (
        ("AdaC-UCB", "adac-ucb", pb.zCDP(0.1)),
        ("AdaP-UCB", "adap-ucb", pb.PureDP(math.sqrt(0.2))),
    ):
        times = at_the_end(frame, policy, 0.1).mean() / reference_regret((0.9, 0.5, 0.1), steps, budget).value
        assert re.search(rf"{name} [\d,.]+ \({re.escape(number(times))} times the reference\)", words)


def test_variants_over_budgets_time_and_sizes() -> None:
    made, frame = tight()
    picture = pictures(made, frame)[0]
    assert [panel.title for panel in picture.panels] == [
        "Regret: one",
        "Over rho",
        "Over time: one",
        "Over time: two",
        "Over K",
    ]
    ends = frame[frame["step"] == frame["step"].max()].groupby("label")["regret"].mean()
    saving = 1 - ends["AdaC-IMED, two, rho = 0.1"] / ends["AdaC-UCB, two, rho = 0.1"]
    assert line_of(picture, "Over rho", "two").iloc[0]["value"] == pytest.approx(saving, rel=1e-9)
    assert line_of(picture, "Over time: two", "rho = 0.1").iloc[-1]["value"] == pytest.approx(saving, rel=1e-9)
    over_size = line_of(picture, "Over K", "rho = 0.1")
    assert list(over_size["K"]) == [2.0, 3.0]
    assert over_size.iloc[-1]["value"] == pytest.approx(saving, rel=1e-9)
    regrets = line_of(picture, "Regret: one", "AdaC-IMED")
    assert list(regrets["rho"]) == [0.1, 1.0, math.inf]  # the twin stands to the right of the others
    assert picture.panels[0].series[1].x.tolist() == [0.1, 1.0, 10.0]
    assert regrets.iloc[0]["value"] == pytest.approx(ends["AdaC-IMED, one, rho = 0.1"])
    assert re.match(
        r"One: AdaC-IMED is lower by 2[0-9.]+ % \(.*\) at rho = 0.1, .* and [45][0-9.]+ % \(.*\) at no privacy.",
        picture.words[0],
    )


def test_the_floor_is_beneath_the_worst_instance() -> None:
    """Regrets of 1000 and 3000 on two instances: the larger counts."""
    hard = [Instance(f"gap x {times:g}", arms=4, worst=times) for times in (1.0, 4.0)]
    own = [e for one in hard for e in entries(["adac-ucb", "adac-imed"], (1e-5, 1.0), instance=one)]
    made = experiment(["floor"], entries=tuple(own), horizon=10**4)
    level = {1.0: 1000.0, 4.0: 3000.0}

    def mean(entry: Entry, steps: Floats) -> Floats:
        assert entry.instance is not None
        return np.full_like(steps, level[entry.instance.worst] * (0.5 if entry.policy == "adac-imed" else 1.0))

    picture = pictures(made, made_up(made, mean, spread=0.0))[0]
    assert line_of(picture, "Largest regret", "AdaC-UCB")["value"].tolist() == [3000.0, 3000.0]
    bound = [finite_lower_scan(4, 10**4, rho)[0] for rho in (1e-5, 1.0)]
    assert line_of(picture, "Largest regret", "lower bound")["value"].tolist() == pytest.approx(bound)
    times = line_of(picture, "As a multiple of the bound", "AdaC-IMED")["value"]
    assert times.tolist() == pytest.approx([1500 / value for value in bound])
    assert "1,500" in picture.words[0]
    assert "(gap x 4)" in picture.words[0]


def test_words_hold_the_numbers() -> None:
    made = experiment(["difference", "price"], rhos=(0.1, math.inf))
    regrets = {entry.label: np.outer([0.99, 1.01], STEPS) * (3 if entry.rho == 0.1 else 2) for entry in made.entries}
    difference, price = pictures(made, frame_of(made, regrets))
    assert "Without privacy the regret is 20,000" in difference.words[0]
    assert "at rho = 0.1 the difference is 10,000" in difference.words[0]
    assert "50 % of that" in difference.words[0]
    assert "At the end the price is 50 %" in price.words[0]


def test_a_rho_has_one_colour_everywhere() -> None:
    seen = {
        line.label: line.colour
        for name in ("price", "curves")
        for line in DRAWN[name].panels[0].series
        if line.label != "no privacy"
    }
    assert seen == {f"rho = {rho:g}": rho_colour(rho) for rho in (0.01, 1.0, 100.0)}
    assert len({colour.light for colour in seen.values()}) == 3
    twin = DRAWN["curves"].panels[0].series[-1]
    assert (twin.colour, twin.dash) == (INK, "dash")


def test_the_order_of_rows_does_not_matter() -> None:
    shuffled = FRAME.sample(frac=1.0, random_state=0)
    first, second = (Regrets.from_frame(MADE, frame) for frame in (FRAME, shuffled))
    for label in first.of:
        np.testing.assert_array_equal(first.of[label], second.of[label])


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (FRAME.iloc[1:], "one row for each run and step"),
        (pd.concat([FRAME, FRAME.iloc[:1]]), "one row for each run and step"),
        (FRAME[FRAME["rho"] != 1.0], "got 0 rows"),
        (FRAME[(FRAME["rho"] != 1.0) | (FRAME["step"] > 5)], "other runs or steps"),
        (FRAME[(FRAME["rho"] != 1.0) | (FRAME["run"] > 0)], "other runs or steps"),
    ],
)
def test_holes_are_refused(frame: pd.DataFrame, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        pictures(MADE, frame)


def test_what_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(InvalidInput, match="no figure is called 'pie'"):
        pictures(experiment(["pie"]), FRAME)
    with pytest.raises(InvalidInput, match=r"add an entry with rho = math\.inf"):
        pictures(experiment(["price"], rhos=(0.01, 1.0)), FRAME)
    with pytest.raises(InvalidInput, match="no rho has both"):
        pictures(experiment(["placement"]), FRAME)
    with pytest.raises(InvalidInput, match="has no entries"):
        pictures(experiment(["price"], entries=()), FRAME)


def test_one_run_is_drawn_without_intervals() -> None:
    made = experiment(["difference", "price", "curves"])
    frame = made_up(made, lambda entry, steps: steps * (2 if entry.rho < 1 else 1), runs=1)
    assert pictures(made, frame)[0].to_frame()["low"].isna().all()
    assert "one run: no interval" in pictures(made, frame)[0].words[0]
    figures.draw(made, frame)["difference"].canvas.draw()


def test_every_kind_of_picture_is_in_these_tests() -> None:
    assert set(PICTURES) == {
        *DRAWN,
        "placement",
        "rivals",
        "variants",
        "floor",
        "shares",
    }  # the last in run/test_real_data.py


# Matplotlib.


def test_figures_show_the_numbers() -> None:
    axes = figures.draw(MADE, FRAME)["price"].axes[0]
    drawn = {str(line.get_label()): np.asarray(line.get_ydata(), dtype=float) for line in axes.get_lines()}
    expected = line_of(DRAWN["price"], "AdaC-UCB", "rho = 0.01")["value"]
    np.testing.assert_array_equal(drawn["rho = 0.01"], expected)
    assert axes.get_xscale() == "log"
    assert len(axes.collections) == 3  # a band for each rho


@pytest.mark.parametrize("make", [placement, rivals])
def test_every_panel_is_drawn(make: object) -> None:
    assert callable(make)
    made, frame = make()
    (figure,) = figures.draw(made, frame).values()
    shown = [axes.get_title(loc="left") for axes in figure.axes if axes.axison]
    assert shown == [panel.title for panel in pictures(made, frame)[0].panels]


def test_files_are_the_same_bytes_each_time(tmp_path: Path) -> None:
    made = experiment(["difference"], name="bytes")
    frame = FRAME.assign(experiment="bytes")
    first, second = (figures.save(made, frame, tmp_path / name) for name in ("one", "two"))
    assert [path.relative_to(tmp_path / "one") for path in first] == [
        Path("figures") / f"bytes-difference.{ending}" for ending in ("png", "svg", "csv")
    ]
    for one, two in zip(first, second, strict=True):
        assert one.read_bytes() == two.read_bytes()
    drawing = first[1].read_text(encoding="utf-8")
    assert "<dc:date>" not in drawing
    assert first[0].read_bytes()[:4] == b"\x89PNG"
    numbers = pd.read_csv(first[2])
    pd.testing.assert_frame_equal(numbers, pictures(made, frame)[0].to_frame(), rtol=1e-12)


@pytest.mark.parametrize("make", [finite, placement, rivals])
def test_titles_and_legends_stay_on_the_paper_and_apart(make: object) -> None:
    assert callable(make)
    made, frame = make(title="Where to put the noise: AdaC-GOPE against noise on each action's sum")
    for figure in figures.draw(made, frame).values():
        paper = figure.bbox
        (title,) = (text.get_window_extent() for text in figure.texts if made.title in text.get_text())
        legends = [legend.get_window_extent() for legend in figure.legends]
        for box in (title, *legends):
            assert paper.x0 <= box.x0
            assert box.x1 <= paper.x1
        assert not any(title.overlaps(box) for box in legends)
