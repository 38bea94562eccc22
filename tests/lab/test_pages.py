"""The atlas in a browser: it opens from disk, draws every figure, and its sliders say what the theory says."""

import json
import re

import numpy as np
import pytest

import deeplimits as dl
from chromium import Watched, browser, downloads
from deeplimits.atlas import build
from deeplimits.lab import scan
from deeplimits.lab.workers import Workers

NAMES = ("spiked-covariance-bbp", "ridgeless-double-descent", "marchenko-pastur-law")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    with Workers(1) as workers:
        found = build(folder, list(NAMES), "small", executor=workers)
    assert not found.failed
    return folder


@pytest.fixture(scope="module")
def chromium():
    with browser() as found:
        yield found


def opened(chromium, address, **options):
    watched = Watched(chromium.new_page(**options), re.sub(r"(index.html|limits/.*)$", "", address))
    watched.page.goto(address)
    watched.page.wait_for_selector("body[data-ready='1']")
    return watched


def data_of(site, name):
    text = (site / "data" / f"{name}.js").read_text(encoding="utf-8")
    return json.loads(text[text.index("=") + 1 : text.rindex(";")])


def test_every_figure_is_drawn_and_nothing_is_asked_for(site, chromium):
    root = site.as_uri()
    for name in NAMES:
        watched = opened(chromium, f"{root}/limits/{name}.html")
        page, data = watched.page, data_of(site, name)
        drawn = len(data["showcase"]["panels"]) + len(data["showcase"]["charts"])
        assert page.locator("#stage > svg").count() == 1
        assert page.locator("#others svg.figure[role=img]").count() == drawn - 1
        assert page.locator("#trends svg.figure[role=img]").count() == len(data["trends"])
        # A figure without data would have a frame and no marks.
        empty = "all => all.filter(svg => !svg.querySelector('.mark, .big, .field')).length"
        assert page.eval_on_selector_all("svg.figure[role=img]", empty) == 0
        watched.is_quiet()
        page.close()


def test_points_are_spoken_of_where_they_are(site, chromium):
    for shown in ("transition", "overlap"):
        page = opened(chromium, f"{site.as_uri()}/limits/spiked-covariance-bbp.html#-show={shown}").page
        assert page.locator("#stage .simulation circle").count() > 3
        assert page.locator("#points").is_visible()
        page.close()
    page = opened(chromium, f"{site.as_uri()}/limits/spiked-covariance-bbp.html#gamma=0.8&-show=overlap").page
    assert not page.locator("#points").is_visible()  # the theory alone, where nothing was simulated
    page.close()


def test_no_two_ticks_of_an_axis_read_alike(site, chromium):
    page = opened(chromium, f"{site.as_uri()}/limits/marchenko-pastur-law.html").page
    for low, high in ((0.66438, 0.66439), (1.998, 2.0), (-3e-9, 5e-9), (123456.0, 123457.0)):
        axis = {"label": "", "symbol": ""}
        picture = {"x": axis, "y": axis, "marks": [{"mark": "line", "x": [0, 1], "y": [low, high]}]}
        drawn = "picture => { const holder = document.createElement('div'); deeplimits.draw(holder, picture); return "
        drawn += "[...holder.querySelectorAll('.grid text[text-anchor=end]')].map(one => one.textContent); }"
        ticks = page.evaluate(drawn, picture)
        assert len(ticks) >= 2
        assert len(set(ticks)) == len(ticks), ticks
    page.close()


def test_the_overview_searches_filters_and_sorts(site, chromium):
    watched = opened(chromium, f"{site.as_uri()}/index.html")
    page = watched.page
    shown = page.locator(".limits li:visible")
    assert shown.count() == len(NAMES)
    assert page.locator(".limits li svg .mark").count() >= len(NAMES)
    page.fill("#search", "double descent")
    assert shown.count() == 1
    page.fill("#search", "")
    page.select_option("#kind", "Spectrum")
    assert shown.count() == 1
    page.select_option("#kind", "")
    page.click("#as-table")
    column = page.locator("#verdicts th button", has_text="z")
    column.click()
    cells = page.eval_on_selector_all(
        "#verdicts tbody tr", "rows => rows.map(row => Number(row.cells[4].dataset.value))"
    )
    assert cells == sorted(cells)
    watched.is_quiet()
    page.close()


@pytest.mark.parametrize(("name", "slider", "result"), [("spiked-covariance-bbp", "gamma", "overlap"),
                                                        ("ridgeless-double-descent", "noise", "norm")])  # fmt: skip
def test_a_slider_moved_by_keyboard_says_what_the_theory_says(site, chromium, name, slider, result):
    watched = opened(chromium, f"{site.as_uri()}/limits/{name}.html#-show={result}")
    page, data = watched.page, data_of(site, name)
    row = next(one for one in data["showcase"]["sliders"] if one["name"] == slider)
    page.focus(f"#p-{slider}")
    for _ in range(7):
        page.keyboard.press("ArrowRight")
    value = float(page.input_value(f"#p-{slider}-box"))
    assert value != data["showcase"]["values"][slider]
    said = float(page.text_content("#said").rpartition("= ")[2].replace("−", "-"))
    limit = scan.shown_at(dl.catalogue[name], **{slider: value})
    stated = float(dl.predict(limit)[result].value)
    # The stated error is a share of the range along the slider; the page says five digits.
    numbers = [frame[result][0].get("value") for frame in row["frames"] if not isinstance(frame, str)]
    reach = np.ptp([one for one in numbers if one is not None])
    assert abs(said - stated) <= row["error"] * reach + 2e-4 * abs(stated)
    assert f"{slider}={value:g}" in page.url
    watched.is_quiet()
    # The same address shows the same.
    again = opened(chromium, page.url)
    assert again.page.text_content("#said") == page.text_content("#said")
    again.page.close()
    page.close()


@pytest.mark.parametrize(("address", "words"), [("gamma=1e9", "gamma"), ("gamma=much", "gamma"), ("gama=1", "gama")])
def test_a_bad_address_is_answered_with_a_sentence(site, chromium, address, words):
    watched = opened(chromium, f"{site.as_uri()}/limits/marchenko-pastur-law.html#{address}")
    assert words in watched.page.text_content("#message")
    assert watched.page.locator("#stage svg .mark").count() > 0
    watched.is_quiet()
    watched.page.close()


def test_downloads_open(site, chromium, tmp_path):
    watched = opened(chromium, f"{site.as_uri()}/limits/ridgeless-double-descent.html")
    found = downloads(watched.page, tmp_path)
    assert json.loads(found["JSON"])["name"] == "ridgeless-double-descent"
    watched.is_quiet()
    watched.page.close()


def test_a_phone_shows_no_wider_page(site, chromium):
    for place in ("index.html", "limits/spiked-covariance-bbp.html"):
        watched = opened(chromium, f"{site.as_uri()}/{place}", viewport={"width": 390, "height": 800})
        assert watched.page.evaluate("document.documentElement.scrollWidth") <= 390
        watched.is_quiet()
        watched.page.close()


def test_every_control_has_a_label(site, chromium):
    watched = opened(chromium, f"{site.as_uri()}/limits/spiked-covariance-bbp.html")
    unlabelled = """all => all.filter(one => !(one.labels && one.labels.length) && !one.getAttribute("aria-label")
        && !one.textContent.trim()).map(one => one.outerHTML)"""
    assert watched.page.eval_on_selector_all("input, select, button", unlabelled) == []
    watched.page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("place", ["index.html", "limits/spiked-covariance-bbp.html"])
def test_axe_finds_no_serious_fault(site, chromium, place, scheme):
    watched = opened(chromium, f"{site.as_uri()}/{place}", color_scheme=scheme)
    watched.is_accessible()
    if place == "index.html":
        watched.page.click("#as-table")
        watched.is_accessible()
    watched.page.close()
