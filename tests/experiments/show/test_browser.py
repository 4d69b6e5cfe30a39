"""report.html in a real browser: on a desk and on a phone, light and dark, without a network."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from private_bandits.experiments.show import report
from private_bandits.experiments.show.gallery import pictures

from .browser import Visit, missing, opened, running_browser
from .test_report import RESULTS, SETTINGS, TABLES, hostile

WIDTHS = {"desk": 1280, "phone": 360}
SETTINGS_OF: dict[str, dict[str, Any]] = {
    "desk": {"viewport": {"width": 1280, "height": 900}},
    "phone": {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True},
}
PANELS = sum(len(picture.panels) for made, frame in RESULTS for picture in pictures(made, frame))


def choose(page: Any, scheme: str) -> None:
    """Light or dark, as the reader's system says; until all is drawn so."""
    page.emulate_media(color_scheme=scheme)
    page.wait_for_function(f"document.documentElement.dataset.drawn === {scheme!r}")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with running_browser() as found:
        yield found


@pytest.fixture(scope="module")
def visits(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Visit]]:
    """One of each device for all tests: loading takes most of the time."""
    path = report.write(tmp_path_factory.mktemp("report") / "report.html", RESULTS, TABLES, SETTINGS)
    with (
        opened(browser, path.as_uri(), **SETTINGS_OF["desk"]) as desk,
        opened(browser, path.as_uri(), **SETTINGS_OF["phone"]) as phone,
    ):
        yield {"desk": desk, "phone": phone}


@pytest.mark.parametrize("device", ["desk", "phone"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_figure_is_drawn_and_fits(visits: dict[str, Visit], device: str, scheme: str) -> None:
    page, width = visits[device].page, WIDTHS[device]
    choose(page, scheme)
    plots = page.evaluate(PLOTS)
    assert len(plots) == PANELS
    for plot in plots:
        assert plot["drawn"] == plot["given"] > 0
        assert plot["width"] > 250
        assert plot["left"] >= 0
        assert plot["left"] + plot["width"] <= width
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert visits[device].said == []


PLOTS = """() => Array.from(document.querySelectorAll(".plotly-graph-div"), plot => {
  const box = plot.querySelector(".main-svg").getBoundingClientRect();
  return {given: plot.data.length, width: box.width, left: box.left,
          drawn: plot.querySelectorAll(".scatterlayer .trace path, .scatterlayer .trace .points").length
                 && plot.querySelectorAll(".scatterlayer .trace").length};
})"""


def test_nothing_is_cut_off_on_a_phone_when_all_is_open(visits: dict[str, Visit]) -> None:
    page = visits["phone"].page
    page.evaluate("document.querySelectorAll('details').forEach(part => part.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    boxes = "Array.from(document.querySelectorAll('.scroll'))"
    assert page.evaluate(f"{boxes}.length") >= 5
    assert page.evaluate(f"{boxes}.filter(box => box.scrollWidth > box.clientWidth + 1).length") == 0
    parts = "Array.from(document.querySelectorAll('p, td, li, button'))"
    assert page.evaluate(f"Math.min(...{parts}.map(part => parseFloat(getComputedStyle(part).fontSize)))") >= 12
    assert visits["phone"].said == []


def brightness(colour: str) -> float:
    """0 for black, 255 for white; of hex or rgb()."""
    if colour.startswith("#"):
        return sum(int(colour[i : i + 2], 16) for i in (1, 3, 5)) / 3
    return sum(float(part) for part in re.findall(r"[\d.]+", colour)[:3]) / 3


COLOURS = """() => {
  const plot = document.querySelector(".plotly-graph-div");
  const tick = plot.querySelector(".xtick text");
  return [getComputedStyle(document.body).backgroundColor, getComputedStyle(tick).fill,
          plot.data.find(trace => trace.meta.role === "line").line.color,
          document.querySelector(".legend line").getAttribute("stroke")];
}"""


def test_colours_follow_the_reader(visits: dict[str, Visit]) -> None:
    """Also while the page is open: paper, text of plots, lines and the signs of the legend."""
    page, seen = visits["desk"].page, []
    for scheme in ("light", "dark", "light"):
        choose(page, scheme)
        seen.append(page.evaluate(COLOURS))
    light, dark, again = seen
    assert again == light
    assert brightness(light[0]) > 230 > 60 > brightness(dark[0])
    assert brightness(dark[1]) - brightness(dark[0]) > 100
    assert brightness(light[0]) - brightness(light[1]) > 100
    assert brightness(dark[2]) > brightness(light[2])
    assert dark[3] != light[3]
    assert visits["desk"].said == []


def test_a_name_hides_its_line(visits: dict[str, Visit]) -> None:
    page = visits["desk"].page
    panel = page.locator(".panel", has=page.locator("#sample-price-0"))
    button, traces = panel.get_by_role("button", name="rho = 0.01"), panel.locator(".scatterlayer .trace")
    for pressed, shown in (("true", 6), ("false", 4), ("true", 6)):  # three lines and their bands
        assert button.get_attribute("aria-pressed") == pressed
        assert traces.count() == shown
        button.click()
    button.click()
    assert visits["desk"].said == []


def test_hostile_names_are_only_text(browser: Any, tmp_path: Path) -> None:
    path = report.write(tmp_path / "report.html", [hostile()], TABLES, SETTINGS)
    with opened(browser, path.as_uri(), **SETTINGS_OF["phone"]) as visit:
        visit.page.locator(".plotly-graph-div .nsewdrag").first.hover()
        assert visit.page.locator("img").count() == 0
        assert visit.page.evaluate("document.documentElement.scrollWidth") == 360
        assert visit.said == []


def test_a_missing_browser_is_no_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="NOT looked at"):
        missing("none")
    monkeypatch.delenv("CI")
    with pytest.raises(pytest.skip.Exception, match="NOT looked at"):
        missing("none")
