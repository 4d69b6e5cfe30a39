"""Pictures and pages of simulations: what is drawn is what was simulated, names do not overlap, odd cases work."""

from __future__ import annotations

import math
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure

import private_bandits as pb
from private_bandits.errors import InvalidInput
from private_bandits.palette import policy_colour, rho_colour
from private_bandits.picture_style import spread_out, variable
from private_bandits.simulation import curve_figure
from private_bandits.simulation.curve_panels import panels_of, short_names, title_of
from tests.commands import call_here
from tests.experiments.show.browser import opened, running_browser

WORLD = pb.Bernoulli([0.8, 0.5])
MINE = {"mine": pb.AdaCUCB(2, pb.zCDP(0.1)), "AdaC-IMED": pb.AdaCIMED(2, pb.zCDP(0.1))}
HOSTILE = ["</svg><img src=x onerror=alert(1)>", "$\\frac{1}", "_hidden", 'fill: #0072b2"\nx', "x" * 200, "", "{{ 1 }}"]


def simulated(
    policies: dict[str, Any] = MINE, horizon: int = 2000, runs: int = 5, world: Any = WORLD, **more: Any
) -> pb.Simulation:
    return pb.simulate(policies, world, horizon, runs, progress=False, **more)


def lines_of(figure: Figure, panel: int = 0) -> dict[str, Any]:
    return {str(line.get_label()): line for line in figure.axes[panel].lines if line.get_gid() != "leader"}


def bands_of(figure: Figure) -> list[PolyCollection]:
    return [part for part in figure.axes[0].collections if isinstance(part, PolyCollection)]


def names_at_ends(figure: Figure, panel: int = 0) -> list[Any]:
    return list(figure.axes[panel].texts)


def assert_no_overlap(figure: Figure) -> None:
    """No two names overlap, and none leaves the figure."""
    figure.canvas.draw()
    for axes in figure.axes:
        boxes = sorted((text.get_window_extent() for text in axes.texts), key=lambda box: float(box.y0))
        assert all(below.y1 <= above.y0 for below, above in pairwise(boxes))
        assert all(figure.bbox.x0 <= box.x0 and box.x1 <= figure.bbox.x1 for box in boxes)
        assert all(figure.bbox.y0 <= box.y0 and box.y1 <= figure.bbox.y1 for box in boxes)


@pytest.mark.parametrize(
    ("places", "gap", "expected"),
    [
        ([], 0.1, []),
        ([2.0], 0.1, [1.0]),
        ([0.1, 0.5, 0.9], 0.2, [0.1, 0.5, 0.9]),
        ([0.5, 0.5], 0.2, [0.4, 0.6]),
        ([0.0, 0.0, 0.9], 0.2, [0.0, 0.2, 0.9]),
        ([1.0, 0.99], 0.2, [1.0, 0.8]),
        ([0.3, 0.1, 0.2], 0.9, [1.0, 0.0, 0.5]),
    ],
)
def test_places_are_spread_out(places: list[float], gap: float, expected: list[float]) -> None:
    np.testing.assert_allclose(spread_out(places, gap, 0, 1), expected, atol=1e-12)


def test_spread_places_are_nearest() -> None:
    """No grid point that keeps order, gap and bounds is nearer in squares."""
    generator, gap = np.random.default_rng(0), 0.2
    grid = np.linspace(0, 1, 51)
    for _ in range(10):
        places = np.sort(generator.random(3))
        found = spread_out(places.tolist(), gap, 0, 1)
        assert (np.diff(found) >= gap - 1e-12).all()
        least = min(
            (a - places[0]) ** 2 + (b - places[1]) ** 2 + (c - places[2]) ** 2
            for a in grid
            for b in grid[grid >= a + gap - 1e-12]
            for c in grid[grid >= b + gap - 1e-12]
        )
        assert ((found - places) ** 2).sum() <= least + 1e-12


def test_lines_and_bands_are_what_was_simulated() -> None:
    result = simulated()
    figure = result.plot()
    lines = lines_of(figure)
    assert list(lines) == list(result.policies)
    for (name, curve), band in zip(result.curves.items(), bands_of(figure), strict=True):
        np.testing.assert_array_equal(lines[name].get_xdata(), result.checkpoints)
        np.testing.assert_allclose(lines[name].get_ydata(), curve.mean(axis=0))
        reach = 2 * curve.std(axis=0, ddof=1) / math.sqrt(result.runs)
        corners: Any = np.asarray(band.get_paths()[0].vertices)
        for step, low, high in zip(result.checkpoints, curve.mean(0) - reach, curve.mean(0) + reach, strict=True):
            ends: Any = corners[corners[:, 0] == step][:, 1]
            assert (ends.min(), ends.max()) == (pytest.approx(low), pytest.approx(high))
    axes = figure.axes[0]
    assert (axes.get_xscale(), axes.get_xlabel()) == ("log", "steps, log scale")
    assert axes.get_ylabel() == "mean regret (units of reward)"
    texts = [text.get_text() for text in names_at_ends(figure)]
    assert [text.split("  ")[0] for text in texts] == list(result.policies)
    assert figure.get_suptitle() == "Regret of 2 policies over 2,000 steps"
    assert "no privacy holds" in figure.get_supxlabel().replace("\n", " ")
    assert_no_overlap(figure)


def test_twelve_policies_have_twelve_signs_and_room() -> None:
    result = simulated({f"beta = {beta}": pb.AdaCUCB(2, pb.zCDP(1), beta=beta) for beta in range(1, 13)}, runs=2)
    assert len({(line.colour, line.dash) for line in panels_of(result)[0].lines}) == 12
    for width in (curve_figure.WIDE, curve_figure.NARROW):
        assert_no_overlap(curve_figure.draw(result, width))


def test_equal_lines_have_names_apart() -> None:
    assert_no_overlap(simulated({name: pb.AdaCIMED(2, pb.NoPrivacy()) for name in "abcdef"}, 50, 1).plot())


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["a", "b"], ["a", "b"]),
        (["a long name", "b long name"], ["a long…", "b long…"]),
        (["long name a", "long name b"], ["long…e a", "long…e b"]),
        (["one long x name", "one long y name"], ["1: one…", "2: one…"]),
        (["a long name", "best"], ["a long…", "best"]),
    ],
)
def test_short_names_can_be_told_apart(names: list[str], expected: list[str]) -> None:
    assert short_names(names, 8) == expected


def test_budgets_have_the_colour_of_their_rho_where_nothing_else_differs() -> None:
    rhos = {"weak": 10.0, "strong": 0.01, "none": math.inf}
    budgets = {name: pb.NoPrivacy() if rho == math.inf else pb.zCDP(rho) for name, rho in rhos.items()}
    lines = lines_of(simulated({name: pb.AdaCIMED(2, budget) for name, budget in budgets.items()}).plot())
    assert [line.get_color() for line in lines.values()] == [rho_colour(rho).light for rho in rhos.values()]
    other = lines_of(simulated(MINE | {"twin": pb.AdaCIMED(2, pb.NoPrivacy())}).plot())
    assert [line.get_color() for line in other.values()] == [policy_colour(i).light for i in range(3)]


def test_one_run_has_no_band() -> None:
    result = simulated({"a name of one": MINE["mine"]}, 100, 1)
    figure = result.plot()
    assert bands_of(figure) == []
    assert figure.axes[0].get_xscale() == "linear"
    assert title_of(result) == "Regret of a name of one over 100 steps"
    assert "One run" in figure.get_supxlabel()


@pytest.mark.parametrize("runs", [1, 4])
def test_one_step_is_a_point(runs: int) -> None:
    result = simulated(horizon=1, runs=runs)
    figure = result.plot()
    assert_no_overlap(figure)
    lines = [line for line in figure.axes[0].lines if line.get_marker() == "o"]
    assert [line.get_xydata().tolist() for line in lines] == [  # type: ignore[union-attr]
        [[1.0, curve.mean()]] for curve in result.curves.values()
    ]


def test_verdicts_have_a_panel_of_their_own() -> None:
    result = simulated({"top two": pb.AdaCTopTwo(2, pb.zCDP(1))}, 1000, 20, verdict=0.05)
    figure = result.plot()
    times = result.verdicts["top two"].decisions
    assert np.isfinite(times).sum() > 0
    x, y = (np.asarray(part) for part in lines_of(figure, 1)["top two"].get_data())
    np.testing.assert_allclose(y, [(times <= step).mean() for step in x])
    assert set(times[np.isfinite(times)]) <= set(x)
    assert figure.axes[1].get_ylabel() == "runs with a verdict (%)"
    assert_no_overlap(figure)


def test_tables_show_the_share_that_is_right() -> None:
    table = {"x": [0.0, 1.0, 2.0, 3.0] * 5, "label": ["a", "b", "b", "b"] * 5}
    world = pb.Labelled(table, label="label")
    policy = pb.AdaCOFUL(world.dimension, pb.zCDP(10), horizon=50, context_norm=world.context_norm)
    result = simulated({"mine": policy}, 50, 2, world)
    figure = result.plot()
    lines = lines_of(figure)
    np.testing.assert_allclose(lines["mine"].get_ydata(), result.share_right()["mine"].mean(axis=0))
    assert set(np.asarray(lines["best fixed arm"].get_ydata())) == {0.75}
    assert set(np.asarray(lines["guessing"].get_ydata())) == {0.5}
    assert figure.axes[0].get_ylim() == (0.0, 1.02)
    assert "right" in repr(result)
    assert_no_overlap(figure)


@pytest.mark.parametrize(("ending", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("PDF", b"%PDF")])
def test_files_are_the_same_whenever_they_are_drawn(ending: str, start: bytes, tmp_path: Path) -> None:
    result = simulated(runs=2)
    paths = [tmp_path / f"{name}.{ending}" for name in "ab"]
    for path in paths:
        result.plot(path)
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert paths[0].read_bytes().startswith(start)


def test_bad_paths_are_named_and_nothing_is_written(tmp_path: Path) -> None:
    result = simulated(runs=1)
    with pytest.raises(InvalidInput, match=r"\.png, \.svg, \.pdf, got 'a.gif'"):
        result.plot(tmp_path / "a.gif")
    for write in (result.plot, result.report):
        with pytest.raises(InvalidInput, match="nowhere does not exist"):
            write(tmp_path / "nowhere" / "a.png")
    assert list(tmp_path.iterdir()) == []


def test_words_are_short() -> None:
    result = simulated()
    one, more = repr(result), str(result)
    assert "\n" not in one
    assert len(one) < 150
    assert len(more.splitlines()) == 4
    for name, final in result.final.items():
        assert f"{name} {final.mean():.4g}"[:6] in one
    assert "no privacy holds" in more


def test_a_notebook_shows_figure_and_result() -> None:
    result = simulated()
    assert result.plot()._repr_png_().startswith(b"\x89PNG")  # type: ignore[attr-defined]
    shown = str(result._repr_html_())
    assert "data:image/svg+xml;base64," in shown
    assert all(name in shown for name in MINE)
    assert "http" not in shown


def test_colours_of_a_page_are_variables() -> None:
    result = simulated({name: pb.AdaCUCB(2, pb.zCDP(1)) for name in HOSTILE}, 100, 2)
    text = curve_figure.svg_of(result)
    tags = "".join(re.findall(r"<[^<>]+>", text))
    assert set(re.findall("#[0-9a-f]{6}", tags)) == set()
    used = set(re.findall(r"var\(--(c[0-9a-f]{6})\)", tags))
    assert {variable(line.colour) for line in panels_of(result)[0].lines} <= used
    assert used <= {variable(colour) for colour in curve_figure.colours_of(result)}
    assert "fill: #0072b2" in text  # a name that looks like a colour stays


def test_the_page_in_a_browser(tmp_path: Path) -> None:
    """Wide and on a phone, light and dark: no scrolling to the side, no error, no request, and names are text."""
    policies = {name: pb.AdaCTopTwo(2, pb.zCDP(1)) for name in [*HOSTILE, *MINE]}
    result = simulated(policies, 1000, 3, verdict=0.05)
    path = result.report(tmp_path / "out.html")
    with running_browser() as browser:
        for width, scheme, seen in ((1300, "dark", ".wide svg"), (390, "light", ".narrow svg")):
            with opened(browser, path.as_uri(), viewport={"width": width, "height": 800}) as visit:
                visit.page.emulate_media(color_scheme=scheme)
                assert visit.page.evaluate("document.documentElement.scrollWidth") == width
                assert [box.is_visible() for box in visit.page.locator("figure svg").all()].count(True) == 1
                assert visit.page.locator(seen).is_visible()
                assert visit.page.locator("img").count() == 0
                rows = visit.page.locator("table").first.locator("tbody tr")
                assert rows.count() == len(policies)
                assert rows.first.locator("th").inner_text() == HOSTILE[0]
                line = visit.page.locator(f"{seen} [id^=line2d] path[clip-path]").first
                assert line.evaluate("part => getComputedStyle(part).stroke").startswith("rgb(")
                assert visit.said == []


def test_the_page_has_all_figures(tmp_path: Path) -> None:
    result = simulated({"top two": pb.AdaCTopTwo(2, pb.zCDP(1))}, 300, 10, verdict=0.05, missing=0.1)
    text = result.report(tmp_path / "out.html").read_text(encoding="utf-8")
    cells = re.findall(r'<td class="number"[^>]*>([^<]*)<', text)
    row = result.summary()[0]
    names = ["regret_mean", "regret_stderr", "regret_p95", "regret_p99", "regret_max"]
    shown = [float(cell.replace(",", "")) for cell in cells[:5]]
    assert shown == pytest.approx([row[name] for name in names], rel=1e-3)
    assert cells[5] == f"{row['verdict_share']:.1%}"
    assert "10% of rewards missing" in text
    line = panels_of(result)[0].lines[0]
    assert text.count(f'd="M0 4H30" style="stroke: var(--{variable(line.colour)})') == 2  # a row each
    assert text == result.report(tmp_path / "out.html").read_text(encoding="utf-8")
    assert set(re.findall(r'https?://[^" ]*', text)) == {"http://www.w3.org/1999/xlink", "http://www.w3.org/2000/svg"}


def test_the_command_writes_both_and_only_new_files(tmp_path: Path) -> None:
    words = ["simulate", "--means", "0.8,0.5", "--rho", "1", "--horizon", "100", "--runs", "2"]
    files = ["--html", str(tmp_path / "out.html"), "--picture", str(tmp_path / "out.png")]
    done = call_here(*words, *files)
    assert done.returncode == 0, done.stderr
    assert "adac-imed zCDP(rho=1.0)" in (tmp_path / "out.html").read_text(encoding="utf-8")
    assert (tmp_path / "out.png").read_bytes().startswith(b"\x89PNG")
    before = (tmp_path / "out.html").read_bytes()
    for refused in (files[:2], files[2:], ["--picture", "a.gif"], ["--picture", "a.png", "--csv", "a.png"]):
        assert call_here(*words, *refused).returncode == 2
    assert (tmp_path / "out.html").read_bytes() == before
